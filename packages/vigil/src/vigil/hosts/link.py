"""A line to an observer: commands go out, facts come back. Local and remote through one interface."""

import asyncio
import json
import math
import os
import signal
import subprocess
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Protocol

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from vigil.errors import HostError, UnreachableError, VigilError
from vigil.hosts.bundle import program
from vigil.hosts.reach import Reach
from vigil.hosts.reply import failure
from vigil.observer.core import Observer

Message = dict[str, Any]
LONGEST_MESSAGE_BYTES = 64 << 20
QUIT_PATIENCE_S = 2.0


class Link(Protocol):
    """One observer, wherever it runs."""

    messages: MemoryObjectReceiveStream[Message]

    async def send(self, command: Message) -> None:
        """Give the observer a command; raise `UnreachableError` where the line is dead."""


@asynccontextmanager
async def open_link(reach: Reach) -> AsyncIterator[Link]:
    """Start an observer on the host and yield the line to it.

    The stream of messages ends when the observer does. Raises `HostError` where it cannot be started.
    """
    if reach.local:
        async with _open_local() as link:
            yield link
    else:
        async with _open_remote(reach) as remote:
            yield remote


class _LocalLink:
    """The observer as a thread of this process."""

    def __init__(self, messages: MemoryObjectReceiveStream[Message], observer: Observer) -> None:
        self.messages = messages
        self._observer = observer

    async def send(self, command: Message) -> None:
        self._observer.submit(command)


@asynccontextmanager
async def _open_local() -> AsyncIterator[_LocalLink]:
    send, receive = anyio.create_memory_object_stream[Message](math.inf)
    loop = asyncio.get_running_loop()
    closing = threading.Event()

    def put(message: Message) -> None:
        if closing.is_set():
            return
        with suppress(RuntimeError):  # the event loop was closed under a message on its way
            loop.call_soon_threadsafe(_pass_on, send, message)

    observer = Observer(put)
    thread = threading.Thread(target=observer.run, name="vigil-observer", daemon=True)
    thread.start()
    try:
        yield _LocalLink(receive, observer)
    finally:
        closing.set()
        observer.submit({"do": "quit"})
        with anyio.CancelScope(shield=True), anyio.move_on_after(QUIT_PATIENCE_S):
            await anyio.to_thread.run_sync(thread.join, QUIT_PATIENCE_S, abandon_on_cancel=True)
        send.close()
        receive.close()


def _pass_on(stream: MemoryObjectSendStream[Message], message: Message) -> None:
    with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):  # nobody listens any more
        stream.send_nowait(message)


class _RemoteLink:
    """The observer as a process at the other end of the reach."""

    def __init__(self, reach: Reach, process: anyio.abc.Process) -> None:
        self._reach = reach
        self._process = process
        self._send, self.messages = anyio.create_memory_object_stream[Message](math.inf)
        self.stderr = b""

    async def send(self, command: Message) -> None:
        assert self._process.stdin is not None  # noqa: S101 - opened with a pipe
        try:
            await self._process.stdin.send(json.dumps(command).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError) as error:
            raise UnreachableError(f"{self._reach.label}: the connection broke") from error

    async def read(self) -> None:
        """Pass messages on until the other end is gone."""
        assert self._process.stdout is not None  # noqa: S101 - opened with a pipe
        stream = BufferedByteReceiveStream(self._process.stdout)
        with self._send:
            while True:
                try:
                    line = await stream.receive_until(b"\n", LONGEST_MESSAGE_BYTES)
                    message = json.loads(line)
                except (anyio.EndOfStream, anyio.IncompleteRead, anyio.DelimiterNotFound, anyio.BrokenResourceError):
                    return
                except ValueError:
                    continue  # a login banner, or noise of the reach
                if isinstance(message, dict):
                    self._send.send_nowait(message)

    async def read_stderr(self) -> None:
        """Keep the last words of the reach: they say why it failed."""
        assert self._process.stderr is not None  # noqa: S101 - opened with a pipe
        async for data in self._process.stderr:
            self.stderr = (self.stderr + data)[-4096:]


@asynccontextmanager
async def _open_remote(reach: Reach) -> AsyncIterator[_RemoteLink]:
    try:
        process = await anyio.open_process(reach.command, stderr=subprocess.PIPE, start_new_session=True)
    except OSError as error:
        raise UnreachableError(f"{reach.label}: cannot run {reach.command[0]}: {error.strerror}") from error
    link = _RemoteLink(reach, process)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(link.read)
            tasks.start_soon(link.read_stderr)
            assert process.stdin is not None  # noqa: S101 - opened with a pipe
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the exit status says it better
                await process.stdin.send(program("observer", "stdio"))
            yield link
            tasks.cancel_scope.cancel()
    finally:
        link.messages.close()
        with anyio.CancelScope(shield=True):
            await _end(process)


async def _end(process: anyio.abc.Process) -> None:
    if process.stdin is not None:
        await process.stdin.aclose()
    with anyio.move_on_after(QUIT_PATIENCE_S):
        await process.wait()
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with its proxies: the reach has a session of its own
        await process.wait()
    await process.aclose()


async def why_ended(link: Link, reach: Reach) -> VigilError:
    """Return the error that says why a link ended: no python3, a refused or a broken connection."""
    if not isinstance(link, _RemoteLink):
        return HostError("the observer ended")
    with anyio.move_on_after(1.0):
        await link._process.wait()  # noqa: SLF001 - same module
    return failure(reach, link._process.returncode, link.stderr)  # noqa: SLF001
