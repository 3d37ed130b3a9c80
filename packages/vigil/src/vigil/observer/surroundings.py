"""What the host shows beside the log when a process of the server ends: taken at that moment, and only then."""

import os
from typing import Any, Dict, Iterable, List, Optional, Set, Tuple

from .gpu import GpuReader, tell
from .holders import Holders
from .kmsg import CLOCK_SLACK_S, Kmsg, lines_of, own_pids, read_device
from .life import read_command
from .process import TICKS_PER_S, read_cwd, read_environ, sees_our_files
from .report import Reporter
from .rooms import KEPT_VARIABLES, PLACE_CHARS, RoomLook, places_of

PATIENCE_S = 0.05  # a verdict waits for this where a file system does not answer; one that does takes microseconds
MOST_PIDS = 10_000
MOST_LINES = 8


class Surroundings:
    """Says what could explain an end: `KernelSaid`, `RoomSeen`, `GpusSeen`, and `PortHeld` for a port of somebody else."""

    def __init__(self, report: Reporter, gpu: GpuReader) -> None:
        self._report = report
        self._gpu = gpu
        self._kernel = Kmsg()
        self._pids: Set[int] = set()
        self._places: List[str] = []
        self._rooms = RoomLook()

    def begin(self, pid: int, argv: Tuple[str, ...]) -> None:
        """Begin with another main process."""
        self._pids = {pid}
        self.note_place(pid, argv)

    def note_place(self, pid: int, argv: Tuple[str, ...]) -> None:
        """Take note of where a process works: once it has ended, nobody tells. In a container, its disks are not ours to see."""
        environ = {name: value for name, value in read_environ(pid) if name in KEPT_VARIABLES}
        cwd = read_cwd(pid)
        words = self._report.redactor.clean_argv(argv)  # a key may look like a path
        self._places = places_of(words, environ, cwd) if cwd and sees_our_files(pid) else []

    def know(self, pids: Iterable[int]) -> None:
        """Take note of processes of the tree: the kernel names them by nothing but their pids."""
        if len(self._pids) < MOST_PIDS:
            self._pids.update(pids)

    def begin_late(self, pid: int, life: Optional[str]) -> None:
        """Begin with a main process that was gone before it was seen: what it was is known from its start."""
        self._pids = {pid}
        command = read_command(life) if life is not None else ()
        self._places = places_of(command, os.environ, "/") if command else []

    def look_back(self, start_ticks: int) -> None:
        """Say what the kernel wrote since then: a process that was never seen was killed before we began to listen."""
        began_s = start_ticks / TICKS_PER_S - CLOCK_SLACK_S
        self._tell(lines_of(record for record in read_device() if record.at_s >= began_s))

    def tell_kernel(self) -> None:
        """Say what the kernel wrote since the last time about processes that it killed, or about a GPU."""
        records = self._kernel.read()
        if records:
            self._tell(lines_of(records))

    def _tell(self, lines: List[Dict[str, Any]]) -> None:
        told = [line for line in lines if self._concerns(line)]
        if told:
            self._report.say("KernelSaid", lines=[self._clean(line) for line in told[-MOST_LINES:]])

    def _concerns(self, line: Dict[str, Any]) -> bool:
        """Mark a line that names a process of ours: one that lived shorter than our looks lie apart was never seen.

        Where the kernel's pids are not those that we see, only what names none can be about us.
        """
        line["ours"] = True if line["pid"] in self._pids else None
        return line["what"] == "xid" if line["pid"] is None else own_pids()

    def _clean(self, line: Dict[str, Any]) -> Dict[str, Any]:
        return {name: self._report.shorten(one, 400) if isinstance(one, str) else one for name, one in line.items()}

    def tell_all(self, log: Optional[str]) -> None:
        """Say all that is cheap to see, before an end is told."""
        self.tell_kernel()
        places = [*self._places, *([log] if log else [])]
        rooms = self._rooms.within(places, PATIENCE_S) if self._places else []
        if rooms:
            self._report.say("RoomSeen", rooms=[self._shown(room) for room in rooms])
        gpus, ours = self._gpu.seen
        if gpus:
            who = Holders(self._report.redactor).tell
            self._report.say("GpusSeen", gpus=tell(gpus, ours | frozenset(self._pids), who))

    def _shown(self, room: Dict[str, Any]) -> Dict[str, Any]:
        path, *places = (self._report.shorten(one, PLACE_CHARS) for one in (room["path"], *room["places"]))
        return {**room, "path": path, "places": places}

    def tell_port(self, port: int, pid: int) -> None:
        """Say who holds a port that should be the server's."""
        self._report.say("PortHeld", port=port, holders=[Holders(self._report.redactor).tell(pid)])

    def close(self) -> None:
        """Give the kernel's log back."""
        self._kernel.close()
