"""Options that several commands share, and how their values are read."""

import math
import re
import shlex
import shutil
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from vigil.errors import UsageError
from vigil.plan import HERE
from vigil.policy import Policy

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
SLOWEST_HEARTBEAT_S = 1.5
SLOWEST_LOGIN_S = 15.0
LONGEST_S = 10 * 366 * 86400.0
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def _host(value: str | None) -> str | None:
    """Refuse an empty host: an unset variable (`--on "$HOST"`) must not start a server on this machine."""
    if value is not None and not value.strip():
        raise UsageError("--on is empty: give the name of a host, or leave --on away for this one")
    return value


def _reach(value: str | None) -> str | None:
    """Refuse a reach that cannot be run at all, for the same reason."""
    if value is None:
        return None
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise UsageError(f"--reach {value!r}: {str(error).lower()}; close the quotes") from error
    if not words:
        raise UsageError("--reach is empty: give a command that runs a program there, such as 'docker exec -i NAME'")
    if shutil.which(words[0]) is None:
        raise UsageError(f"--reach {value!r}: there is no program {words[0]!r} here; give its full path or install it")
    return value


On = Annotated[
    str | None,
    typer.Option("--on", metavar="HOST", callback=_host, help="The host, by your own ssh and its config."),
]
ReachOption = Annotated[
    str | None,
    typer.Option(
        "--reach",
        metavar="COMMAND",
        callback=_reach,
        help="Any command prefix that runs a program there: 'docker exec -i C'.",
    ),
]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Name it; else a name is made.")]
Env = Annotated[
    list[str] | None, typer.Option("--env", metavar="K=V", help="A variable for the command; may be given again.")
]
EnvFile = Annotated[list[Path] | None, typer.Option("--env-file", metavar="FILE", help="Variables, one K=V a line.")]
Log = Annotated[str | None, typer.Option("--log", metavar="FILE", help="The server's log, on its host.")]
Url = Annotated[
    str | None, typer.Option("--url", metavar="URL", help="Where it will answer, if its command line does not say.")
]
Cwd = Annotated[str | None, typer.Option("--cwd", metavar="FOLDER", help="Where the command starts, on its host.")]
Timeout = Annotated[
    str, typer.Option("--timeout", metavar="TIME", help="Give a start-up this long (30s, 15m, 1h; 0: no limit).")
]
ForTime = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="Watch this long; exit 12 if it is still starting.")
]
Json = Annotated[bool, typer.Option("--json", help="Print verdicts as JSON objects on stdout.")]
Ready = Annotated[str, typer.Option("--ready", metavar="LEVEL", help="What counts as ready: token, http or log.")]
HealthPath = Annotated[
    str | None,
    typer.Option("--health-path", metavar="PATH", help="Where health is asked, if not at the engine's own path."),
]
ReadyOfKnown = Annotated[
    str | None,
    typer.Option("--ready", metavar="LEVEL", help="What counts as ready: token, http or log; else as it was started."),
]
Model = Annotated[str | None, typer.Option("--model", metavar="ID", help="The model id that the server must list.")]
KeyEnv = Annotated[
    str | None, typer.Option("--api-key-env", metavar="NAME", help="A variable here that holds the server's API key.")
]
Engine = Annotated[
    str | None,
    typer.Option("--engine", metavar="NAME", help="sglang, vllm, llamacpp or generic; else it is recognised."),
]
Follow = Annotated[bool, typer.Option("--follow", help="Go on watching once it is ready.")]
OnTimeout = Annotated[
    str, typer.Option("--on-timeout", metavar="WHAT", help="leave or stop it when it stalled or timed out.")
]
NoAttest = Annotated[
    bool, typer.Option("--no-attest", help="Put nothing into its Python processes; what they run is then not known.")
]
Expect = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="WHAT",
        help="Exit 9 unless this is in force: module=NAME, file=PATH, class=NAME, arg.NAME=VALUE or speculation.",
    ),
]
NoCheck = Annotated[bool, typer.Option("--no-check", help="Start it whatever `vigil check` would say.")]
OnVerdict = Annotated[
    str | None, typer.Option("--on-verdict", metavar="COMMAND", help="Run this with each verdict's JSON on its input.")
]
Trace = Annotated[
    Path | None, typer.Option("--trace", metavar="FILE", help="Where to record the facts; else the state folder.")
]
ProgressEvery = Annotated[
    str, typer.Option("--progress-every", metavar="TIME", help="Without a terminal: a line at least this often.")
]
Strict = Annotated[bool, typer.Option("--strict", help="Exit 9 for every degraded verdict.")]
TimeScale = Annotated[
    float, typer.Option("--time-scale", metavar="FACTOR", hidden=True, help="Multiply all times of the policy.")
]


def seconds(text: str, option: str) -> float:
    """Return a duration in seconds; raise `UsageError` for what is none."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text):
        raise UsageError(f"{option} {text!r} is no duration: give 30s, 15m, 1h, 1h30m, or a number of seconds")
    found_s = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if found_s > LONGEST_S:
        raise UsageError(f"{option} {text[:40]}: that is longer than ten years; 0 means no limit for --timeout")
    return found_s


def environment(pairs: list[str] | None, files: list[Path] | None) -> dict[str, str]:
    """Return the variables of `--env-file` and `--env`; the latter win."""
    found: dict[str, str] = {}
    for path in files or []:
        found.update(_read_env_file(path))
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals:  # not shown: it may be a secret without its name
            raise UsageError("--env: there is no '=' in it; give it as NAME=VALUE")
        if not _VARIABLE.match(name):
            raise UsageError(f"--env {name[:40]!r} is no name of a variable: give it as NAME=VALUE")
        found[name] = value
    return found


def _read_env_file(path: Path) -> dict[str, str]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise UsageError(f"--env-file {path} cannot be read: {why}") from error
    if "\0" in text:
        raise UsageError(f"--env-file {path} holds a NUL byte: give a text file with one NAME=VALUE a line")
    found: dict[str, str] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line = raw.strip().removeprefix("export ")
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.partition("=")
        if not equals or not _VARIABLE.match(name.strip()):
            raise UsageError(f"--env-file {path}, line {number} is not NAME=VALUE")
        value = value.strip()
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        found[name.strip()] = value[1:-1] if quoted else value
    return found


def policy(timeout: str, time_scale: float) -> Policy:
    """Return the policy with the user's limit; the limit itself is not scaled, since the user gave it."""
    if not (time_scale > 0 and math.isfinite(time_scale)):
        raise UsageError(f"--time-scale {time_scale:g}: give a number above 0")
    scaled = Policy().scaled(time_scale)
    # What keeps its own pace is not scaled below it: the heartbeat, a login over ssh with a python3 at its end.
    return msgspec.structs.replace(
        scaled,
        timeout_s=seconds(timeout, "--timeout"),
        lost_after_s=max(scaled.lost_after_s, SLOWEST_HEARTBEAT_S),
        connect_s=max(scaled.connect_s, SLOWEST_LOGIN_S),
        unreachable_after_s=max(scaled.unreachable_after_s, SLOWEST_LOGIN_S),
    )


def choice(value: str, allowed: tuple[str, ...], option: str) -> str:
    """Return the value if it is allowed; raise `UsageError` if not."""
    if value not in allowed:
        raise UsageError(f"{option} {value!r}: give one of {', '.join(allowed)}")
    return value


def here(on: str | None, reach: str | None) -> str | None:
    """Return the current folder for a command that starts on this machine; elsewhere its login decides."""
    if on or reach:
        return None
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the current folder was deleted: go to another one, or give --cwd") from None


def leading_to(host: str, *, by_ssh: bool | None = None) -> str:
    """Return the option that leads a command to a plan's or a verdict's host, with a blank before it; nothing for this one.

    `by_ssh` None: its looks say how it is reached, since a verdict holds one text for both; a name has no blank and no slash.
    """
    if host == HERE:
        return ""
    ssh = by_ssh if by_ssh is not None else not re.search(r"[\s/]", host)
    return f" --{'on' if ssh else 'reach'} {shlex.quote(host)}"


def absolute(path: str, on: str | None, reach: str | None) -> str:
    """Return a path that still means the same in another process; on another host it stays as it is."""
    return path if on or reach else str(Path(path).expanduser().absolute())


def health(path: str | None) -> str | None:
    """Return the health path, if it is one; raise `UsageError` if not."""
    if path is not None and (not path.startswith("/") or not path.isprintable() or " " in path):
        raise UsageError(f"--health-path {path!r}: give a path such as /health")
    return path


def expectations(texts: list[str] | None, on: str | None, reach: str | None) -> tuple[str, ...]:
    """Return what is expected, paths of this machine made whole; raise `UsageError` for what cannot be expected."""
    from vigil.verdict import read_expectation

    found = []
    for text in texts or []:
        try:
            one = read_expectation(text)
        except ValueError as error:
            raise UsageError(f"--expect {error}") from error
        if one.what == "file" and (on or reach) and not one.name.startswith("/"):
            raise UsageError(f"--expect {text[:80]!r}: give the whole path of a file on another host")
        found.append(f"file={_file_here(one.name, on, reach)}" if one.what == "file" else text)
    return tuple(found)


def _file_here(path: str, on: str | None, reach: str | None) -> str:
    """Return the whole path of a file; on this machine it must be there, before minutes go by until nothing loaded it."""
    whole = absolute(path, on, reach)
    if not (on or reach) and not Path(whole).is_file():
        wrong = "it is no file" if Path(whole).exists() else "there is no such file"
        raise UsageError(f"--expect file={path[:200]!r}: {wrong}")
    return whole


def engine_name(name: str | None) -> str | None:
    """Return the name if such an engine is known; raise `UsageError` if not."""
    from vigil.engines import TABLES

    if name is not None and name not in TABLES:
        raise UsageError(f"--engine {name!r}: give one of {', '.join(sorted(TABLES))}")
    return name


def address(url: str | None) -> str | None:
    """Return the address as it was given, if it is one; raise `UsageError` if not."""
    from vigil.supervise.spec import parse_url

    if url is not None:
        parse_url(url)
    return url
