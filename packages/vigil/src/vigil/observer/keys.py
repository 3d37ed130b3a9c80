"""Find the server's API key, for its own probes only. It is never reported."""

import threading
from typing import Optional, Sequence, Tuple

from .process import is_alive, read_environ
from .redact import Redactor, flag_values, secrets_of

OWN = ("ours", "adopted")


class KeyRing:
    """The key from the user or a variable of ours, else from the server's own command line or environment.

    A key that was read from the server goes to the server only: to a port that its own tree holds. One that the user handed
    over goes to their address, unless another program on this machine is seen to hold it.
    """

    def __init__(
        self, redactor: Redactor, given: Optional[str], flags: Sequence[str], variables: Sequence[str]
    ) -> None:
        self._redactor = redactor
        self._given = given
        self._flags = tuple(flags)
        self._variables = tuple(variables)
        self._lock = threading.Condition()
        self._main: Optional[Tuple[int, int, Tuple[str, ...]]] = None
        self._found: Optional[str] = None
        self._owner: Optional[str] = None
        redactor.key_flags = self._flags
        if given:
            redactor.learn([given])

    def know(self, pid: int, argv: Sequence[str]) -> None:
        """Keep the secrets of a process out of everything that follows."""
        self._redactor.learn(secrets_of(argv, read_environ(pid), self._flags))

    def follow(self, pid: int, start_ticks: int, argv: Sequence[str]) -> None:
        """Know the secrets of the server's main process, and take its API key for our probes."""
        self.know(pid, argv)
        with self._lock:
            same = self._main is not None and self._main[:2] == (pid, start_ticks)
            if same and self._found and not flag_values(argv, self._flags):
                return  # the process took a title, which hides its flags
            self._main = (pid, start_ticks, tuple(argv))
            self._found = self._look(*self._main)

    def face(self, owner: Optional[str]) -> None:
        """Learn whose the port is now, in the words of `PortOpened`; None: nobody listens, or it is not known."""
        with self._lock:
            self._owner = owner
            self._lock.notify_all()

    def await_owner(self, timeout_s: float) -> bool:
        """Wait until it is told whose the port is, where a key was read and waits for that. Return True where it may now go."""
        with self._lock:
            if self._given or self._found is None or self._owner is not None:
                return False
            self._lock.wait_for(lambda: self._owner is not None, timeout_s)
            return self._owner in OWN

    def key(self) -> Optional[str]:
        """Return the key to send to the port as it is held now, or None."""
        with self._lock:
            if self._given:
                return None if self._owner == "foreign" else self._given
            return self._found if self._owner in OWN else None

    def _look(self, pid: int, start_ticks: int, argv: Sequence[str]) -> Optional[str]:
        values = flag_values(argv, self._flags)
        if values:
            return values[-1].split(",")[0]  # llama-server takes several, parted by commas
        environ = dict(read_environ(pid)) if is_alive(pid, start_ticks) else {}
        for name in self._variables:
            if environ.get(name):
                return environ[name].split(",")[0]
        return None
