"""The program of one process of a client: it puts its share of a load on the server and tells what came of it.

    python -m vigil.bench.hand        # started by crew.py, with a socket for its standard input

It ends when the other side does, however that happens: the socket is then at its end.
"""

import asyncio
import gc
import socket

from vigil.bench.client import client_of
from vigil.bench.load import Load
from vigil.bench.messages import JOB, ORDER, Begin, End, Ended, Heard, Ready, framed, heard, packed
from vigil.bench.work import Work

TELL_S = 0.2


async def work_for(other: socket.socket) -> None:
    """Do one job."""
    reader, writer = await asyncio.open_connection(sock=other)
    job = await heard(reader, JOB)
    work = Work(job.settings, job.model, job.words, job.prompts)
    async with client_of(job.place, job.settings.limits) as client:
        load = Load(client, work, job.point, job.first_index, job.share)
        writer.write(framed(Ready()))
        begin = await heard(reader, ORDER)
        gc.collect()
        gc.disable()  # a pause of it would be a pause of every request
        running = asyncio.create_task(load.run(begin.at_s if isinstance(begin, Begin) else 0.0))
        told = Told(load)
        obeying = asyncio.create_task(obey(reader, load))
        while not running.done() and not obeying.done():
            await asyncio.wait({running, obeying}, timeout=TELL_S, return_when=asyncio.FIRST_COMPLETED)
            writer.write(framed(told.next()))
        if running.done():
            running.result()
            writer.write(framed(Ended(load.heart.packed())))
            await writer.drain()
            await obeying  # until the other side has read it and goes


async def obey(reader: asyncio.StreamReader, load: Load) -> None:
    """Do as told, until nobody is there any more."""
    try:
        while True:
            order = await heard(reader, ORDER)
            if isinstance(order, End) and order.cut is not None:
                load.cut(order.cut)
            else:
                load.end()
    except (asyncio.IncompleteReadError, ConnectionError):
        return


class Told:
    """What the other side has been told of a load. Invariant: nothing is told twice."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._bin = self._reply = 0

    def next(self) -> Heard:
        """Return what is new."""
        load = self._load
        until_s = load.known_s
        bins = [(at, load.bins[at]) for at in range(self._bin, len(load.bins)) if load.bins[at]]
        for at, _ in bins:
            load.bins[at] = 0
        self._bin = max(self._bin, len(load.bins) - 1)  # the last one may still grow
        replies = [packed(one) for one in load.replies[self._reply :]]
        self._reply += len(replies)
        return Heard(until_s, bins, replies)


if __name__ == "__main__":
    asyncio.run(work_for(socket.socket(fileno=0)))
