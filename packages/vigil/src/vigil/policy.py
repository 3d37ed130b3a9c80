"""Every number that a decision uses, in one place, so that one factor can make a test run ten times faster than life."""

from typing import Self

import msgspec


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and patience. Names ending in `_s` are seconds and scale together; the others are counts or bytes."""

    timeout_s: float = 900.0
    """The user's limit for a start-up (`--timeout`)."""
    lost_after_s: float = 5.0
    """Silence of an observer after which the connection is called lost."""
    connect_s: float = 30.0
    """How long a new connection may take until its observer reports."""
    unreachable_after_s: float = 60.0
    """A connection lost for longer than this is the verdict `unreachable`."""
    silent_s: float = 300.0
    """Quiet time after which a phase without a default of its own is stalled."""
    stall_factor: float = 3.0
    """A phase may be quiet this many times longer than it ever took in earlier starts of the plan."""
    stall_floor_s: float = 30.0
    """No phase is called stalled sooner than this, however fast it was before."""
    token_patience_s: float = 60.0
    """How long the first token may take once the port is open and nothing else moves."""
    token_timeout_s: float = 20.0
    """How long a token may take from a server that has been ready."""
    fail_patience_s: float = 10.0
    """How long errors in place of tokens, redirects, foreign owners and refused keys are tried again."""
    worker_patience_s: float = 5.0
    """As `token_patience_s`, when a worker of the engine has died."""
    restart_patience_s: float = 60.0
    """How long a wrapper may stay without a new attempt before the last death counts as the end."""
    gone_patience_s: float = 15.0
    """The same for a server that somebody else started, where nothing that could restart it is to be seen."""
    loop_window_s: float = 3600.0
    """Attempts further apart than this are not one loop."""
    loop_same_hopeless: int = 2
    """Attempts that end alike, when a retry cannot mend the cause."""
    loop_same: int = 3
    """Attempts that end alike, otherwise."""
    loop_any: int = 10
    """Attempts that end without ever being ready, whatever their causes."""
    attest_patience_s: float = 5.0
    """How long a ready server's processes may take to say what they run."""
    measure_patience_s: float = 90.0
    """How long the answers to a few prompts may take, by which speculation is measured."""
    probe_every_s: float = 0.05
    """Pace of the model-list probe until the server is ready."""
    health_every_s: float = 2.0
    """Pace of the health probe once ready (never sooner than the engine's own health call takes)."""
    metrics_every_s: float = 5.0
    """Pace of reading the server's counters once ready."""
    token_every_s: float = 10.0
    """A ready server is asked for one token this often, and not while real traffic shows life."""
    io_moved_bytes: int = 4096
    """Bytes read or written by the tree that count as progress."""
    memory_moved_bytes: int = 8 << 20
    """Change of memory (host or GPU) that counts as progress."""
    spinning_cpu: float = 0.5
    """Cores busy without progress from which a stall is called spinning."""

    def scaled(self, factor: float) -> Self:
        """Return the policy with every time multiplied by `factor` (> 0; below 1 is faster)."""
        changed = {name: getattr(self, name) * factor for name in self.__struct_fields__ if name.endswith("_s")}
        return msgspec.structs.replace(self, **changed)
