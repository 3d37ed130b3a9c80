"""What the user asked for: the command, where it runs, what it should become, and within which limits."""

import hashlib
from typing import Literal

import msgspec

from vigil.policy import Policy
from vigil.screen import hide_in_command

HERE = "here"


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """One server or job to start or to watch.

    `command` starts something new; without it `name`, `url`, `pid`, `match` or `log` say what to watch. `on` is an ssh host,
    `reach` any command prefix that runs a program elsewhere. `env` goes to the command; it is not part of what is written
    down of the plan.
    `timeout_s` lives in `policy`; 0 there means no limit. `model`: the id that the server must list. `speculation`: it was
    asked to speculate, so that the first tokens asked of it must exercise that. `ready`: None stands for "token".
    `health_path`: where health is asked, if not where the engine has it.
    `attest`: put the attester into its Python processes; `expect`: what must be in force, each as `--expect` takes it.
    `check`: look ahead of the start (`vigil check`), and refuse what it would die of.
    `schedule`: the one by which speculation is switched with the load, as JSON; it travels with vigil-engine. `placed`: the files
    beside it that the command names under `{vigil-engine}`.
    `time_scale` is the one number by which all times of policy and engine tables were multiplied (tests run faster than
    life).
    """

    name: str | None = None
    command: tuple[str, ...] = ()
    env: dict[str, str] = msgspec.field(default_factory=dict)
    cwd: str | None = None
    on: str | None = None
    reach: str | None = None
    engine: str | None = None
    job: bool = False
    url: str | None = None
    log: str | None = None
    pid: int | None = None
    match: str | None = None
    model: str | None = None
    ready: Literal["token", "http", "log"] | None = None
    speculation: bool = False
    health_path: str | None = None
    api_key_env: str | None = None
    on_timeout: Literal["leave", "stop"] = "leave"
    attached: bool = False
    check: bool = True
    attest: bool = True
    expect: tuple[str, ...] = ()
    schedule: str | None = None
    placed: dict[str, str] = msgspec.field(default_factory=dict)
    policy: Policy = Policy()
    time_scale: float = 1.0

    @property
    def host(self) -> str:
        """The host in words, for people and for the history."""
        return self.on or self.reach or HERE

    @property
    def id(self) -> str:
        """What makes two starts the same plan: host, command without its secrets, and address; 16 hexadecimal characters."""
        parts = [self.host, *hide_in_command(self.command), self.url or "", self.match or ""]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
