"""A cause: why an attempt ended, with the line that says so."""

import msgspec

from vigil.diagnosis.seen import Seen


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """The first failure that explains the others.

    `code` is stable (`FLAG001`); `kind` is a category of the taxonomy; `line` counts from 1 in `file`; `when` is the
    line's own time stamp, as printed; `sure` is 0 to 1. `fingerprint` is what stays of the failure when pids, addresses,
    ports, paths, times and sizes are taken out: two attempts with the same one ended alike. `retry`: whether starting
    again could mend it. `around`: a few lines before and after.
    """

    code: str
    kind: str
    text: str
    advice: str
    fingerprint: str
    title: str = ""
    file: str | None = None
    line: int | None = None
    when: str | None = None
    rank: str | None = None
    sure: float = 0.5
    retry: bool = True
    around: tuple[tuple[int, str], ...] = ()


class End(msgspec.Struct, frozen=True, kw_only=True):
    """How an attempt ended, as far as it was seen. `phase` is where it was; `ready`: it had served before.

    `over`: it is known to have ended, though not how. With nothing known, it may still run. `seen`: what its host showed.
    """

    code: int | None = None
    signal: int | None = None
    oom_killed: bool = False
    phase: str | None = None
    ready: bool = False
    over: bool = False
    seen: Seen = Seen()

    @property
    def died(self) -> bool:
        """Whether an end was seen at all."""
        return self.over or self.oom_killed or self.code is not None or self.signal is not None
