"""Watch the server's port: what listens there, and whose it is."""

import threading
import time
from typing import Callable, FrozenSet, Iterable, NamedTuple, Optional

from .exchange import Reply, Target, is_here
from .process import all_pids, read_stat
from .report import TITLE_CHARS, Reporter
from .sockets import find_holders, reachable, read_listeners

# What holds a port for somebody else: the server itself is behind it, where it cannot be seen.
RELAYS = frozenset(
    {"docker-proxy", "rootlessport", "rootlesskit", "slirp4netns", "pasta", "gvproxy", "ssh", "kubectl", "socat"}
)
COST_SHARE = 20  # a look that takes t is not made more often than every 20 t
_PROOF = {None: True, "closed": True, "tls": True, "refused": False}  # what an outcome says of the port


class Owner(NamedTuple):
    """Whose socket it is, in the words of `PortOpened`."""

    owner: str
    pid: Optional[int] = None
    name: str = ""


class PortWatch:
    """One port. `tree` gives the pids of the watched tree; `adopted` tells whether the tree was found by its port.

    `tell_holder` is called with the port and the pid of a stranger that holds it, before that is reported.
    """

    def __init__(
        self,
        target: Target,
        report: Reporter,
        tree: Callable[[], Iterable[int]],
        adopted: Callable[[], bool],
        tell_holder: Callable[[int, int], None] = lambda _port, _pid: None,
    ) -> None:
        self.inodes: FrozenSet[int] = frozenset()
        self.open = False
        self._target = target
        self._report = report
        self._tree = tree
        self._adopted = adopted
        self._tell_holder = tell_holder
        self._here = is_here(target.host)
        self._visible = self._here
        self._said: Optional[Owner] = None
        self._blind = False  # it is open, but only an answer told us
        self._next_s = 0.0
        self._lock = threading.Lock()
        self._answer: Optional[bool] = None

    @property
    def owner(self) -> Optional[str]:
        """Return whose the port is, as far as it was told; None where nobody listens."""
        return self._said.owner if self.open and self._said is not None else None

    def answered(self, reply: Reply) -> bool:
        """Take a probe's outcome, from its thread. Return True where the loop should look at once."""
        if reply.error not in _PROOF:
            return False  # a time-out or a reset proves neither that something listens nor that nothing does
        opened = _PROOF[reply.error]
        with self._lock:
            self._answer = opened
        return opened != self.open

    def look(self, now: float, *, owner_may_have_changed: bool = False) -> None:
        """See what listens, and report a change."""
        with self._lock:
            answer, self._answer = self._answer, None
        if self._visible and (now >= self._next_s or answer is not None):
            self._look_at_sockets(now, again=owner_may_have_changed)
        if answer is None or self.inodes:
            return
        if answer and not self.open:
            self._blind = True
            self._open(Owner("unknown"))
        elif not answer and self._blind:
            self._close()

    def _look_at_sockets(self, now: float, *, again: bool) -> None:
        begun = time.thread_time()
        listeners = read_listeners(self._target.port)
        self._next_s = now + (time.thread_time() - begun) * COST_SHARE
        if listeners is None:
            self._visible = False
            return
        inodes = frozenset(listener.inode for listener in reachable(listeners, self._target.host))
        if inodes == self.inodes and not again:
            return
        self.inodes = inodes
        if inodes:
            self._blind = False
            self._open(self.find_owner(inodes))
        elif self.open and not self._blind:
            self._close()

    def _open(self, owner: Owner) -> None:
        if self.open and owner == self._said:
            return
        self.open = True
        self._said = owner
        name = self._report.shorten(owner.name, TITLE_CHARS)
        if owner.owner == "foreign" and owner.pid is not None:
            self._tell_holder(self._target.port, owner.pid)
        self._report.say("PortOpened", port=self._target.port, owner=owner.owner, pid=owner.pid, name=name)

    def _close(self) -> None:
        self.open = False
        self._blind = False
        self._said = None
        self._report.say("PortClosed", port=self._target.port)

    def find_owner(self, inodes: FrozenSet[int]) -> Owner:
        """Tell whose these sockets are: ours only if every one is held in our tree."""
        tree = list(self._tree())
        ours = find_holders(inodes, tree)
        if len(ours.by_inode) == len(inodes):
            pid = min(pid for pids in ours.by_inode.values() for pid in pids)
            return Owner("adopted" if self._adopted() else "ours", pid, _name(pid))
        left = inodes - ours.by_inode.keys()
        others = find_holders(left, (pid for pid in all_pids() if pid not in tree))
        holders = sorted(pid for pids in others.by_inode.values() for pid in pids)
        if not holders:
            return Owner("unknown")
        name = _name(holders[0])
        return Owner("unknown" if name in RELAYS else "foreign", holders[0], name)


def _name(pid: int) -> str:
    stat = read_stat(pid)
    return stat.comm if stat else ""
