"""A verdict in words, on one screen: what happened, the line that says so, what to do, and where the whole log is."""

from pathlib import Path

from vigil.cli.changed import block_of
from vigil.cli.options import leading_to
from vigil.cli.prose import width, wrapped
from vigil.diagnosis.cause import Cause
from vigil.screen import duration, plain
from vigil.verdict import SERVING, Verdict, Word

SHOWN_ATTEMPTS = 5
SHOWN_TEXT = 500
SHOWN_EVIDENCE = 8
NEED_A_CAUSE = frozenset({Word.CRASHED, Word.CRASH_LOOPING})
LEVELS = {
    "token": "a real token came back",
    "http": "weaker proof: only its health path was asked",
    "log": "weaker proof: only its log was read",
}


def text_of(verdict: Verdict, trace: Path | None, *, hints: bool = True) -> str:
    """Return a verdict for people. Nothing in it can move or colour the terminal. `hints`: say what to do next."""
    parts = [_head(verdict), *_what(verdict)]
    if verdict.word not in {Word.READY, Word.BUSY, Word.FINISHED}:
        parts += [*_attempts(verdict), *_cause(verdict), *block_of(verdict, width())]
    else:
        parts += _phases(verdict)
    parts += _expectations(verdict)
    for warning in verdict.warnings:
        parts += wrapped(f"warning: {warning}")
    parts += _where_next(verdict, trace, hints=hints)
    return "\n".join(parts)


def _head(verdict: Verdict) -> str:
    where = f" on {verdict.host}" if verdict.host != "here" else ""
    address = f"  {verdict.url}" if verdict.url else ""
    model = f"  serving {verdict.model}" if verdict.model and verdict.word in SERVING else ""
    return plain(
        f"{verdict.word.value.upper()}  {verdict.name or 'the server'}{where}  after {duration(verdict.since_s)}{address}{model}",
        400,
    )


def _what(verdict: Verdict) -> list[str]:
    lines = wrapped(verdict.reason) if verdict.reason else []
    listed = len(verdict.attempts) > 1  # the attempts have a list of their own
    for one in verdict.evidence[:SHOWN_EVIDENCE]:
        if one.text not in verdict.reason and not (listed and one.text.startswith("attempt ")):
            lines += wrapped(one.text, first="  - ")
    if verdict.ready_level is not None and verdict.word in SERVING:
        owner = {"verified": "from the process that we started or watch", "unknown": "owner of the port unknown"}.get(
            verdict.owner or "", ""
        )
        lines.append(f"  proof: {LEVELS[verdict.ready_level]}{', ' + owner if owner else ''}")
    return lines


def _expectations(verdict: Verdict) -> list[str]:
    words = {True: "as expected", False: "NOT as expected", None: "NOT KNOWN"}
    lines: list[str] = []
    for one in verdict.expectations:
        lines += wrapped(f"{words[one.met]}: {one.expectation}: {one.found}")
    return lines


def _phases(verdict: Verdict) -> list[str]:
    spans = [span for span in verdict.phases if span.to_s is not None]
    if not spans:
        return []
    told = ", ".join(f"{span.name} {duration((span.to_s or 0.0) - span.from_s)}" for span in spans[-10:])
    return wrapped(f"phases: {told}")


def _attempts(verdict: Verdict) -> list[str]:
    if len(verdict.attempts) < 2:  # noqa: PLR2004 - one life needs no list
        return []
    lines = [f"  {len(verdict.attempts)} attempts:"]
    for one in verdict.attempts[-SHOWN_ATTEMPTS:]:
        end = "alive" if one.ended_s is None else f"lived {duration(one.ended_s - one.started_s)}"
        how = f", signal {one.signal}" if one.signal else f", exit {one.exit}" if one.exit is not None else ""
        served = ", was ready" if one.ready_s is not None else ""
        lines.append(f"    {one.n}: pid {one.pid or '?'}, {end}{how}{served}  {one.cause or ''}".rstrip())
    return lines


def _cause(verdict: Verdict) -> list[str]:
    cause = verdict.cause
    if cause is None:
        return _no_cause(verdict)
    return cause_lines(cause)


def _no_cause(verdict: Verdict) -> list[str]:
    """Say that no cause was found; the end of the log may tell a person more."""
    said = ["", "  no cause found in what was seen"] if verdict.word in NEED_A_CAUSE else []
    if not verdict.tail:
        return said
    shown = [f"    {number:>6}  {plain(text, width() - 12)}" for number, text in verdict.tail]
    return [*said, *([] if said else [""]), "  the end of its log:", *shown]


def cause_lines(cause: Cause) -> list[str]:
    """Return a cause for people: its rule, the lines around the one that says so, what to do."""
    lines = ["", f"  {cause.code}  {plain(cause.title or cause.kind, 80)}  (sure: {cause.sure:.0%})"]
    around = list(cause.around)
    if cause.line is not None and cause.line not in {number for number, _ in around}:
        around = [(cause.line, cause.text)]
    if around:
        for number, text in around:
            if number == cause.line:  # the line that says so is shown whole
                lines += wrapped(plain(text, SHOWN_TEXT), first=f"  > {number:>6}  ", then=" " * 12)
            else:
                lines.append(f"    {number:>6}  {plain(text, width() - 12)}")
    elif cause.text:
        lines += wrapped(plain(cause.text, SHOWN_TEXT), first="    ", then="    ")
    if cause.advice:
        lines += ["", *wrapped(f"what to do: {cause.advice}")]
    return lines


def _where_next(verdict: Verdict, trace: Path | None, *, hints: bool) -> list[str]:
    lines = [""]
    if verdict.log:
        line = f", line {verdict.cause.line}" if verdict.cause and verdict.cause.line else ""
        lines.append(f"  log:   {plain(verdict.log, 300)}{line}")
    if trace is not None:
        lines.append(f"  trace: {trace}   (vigil replay TRACE)")
    at = leading_to(verdict.host)
    steps = {
        Word.READY: f"vigil stop {verdict.name}{at}",
        Word.BUSY: f"vigil stop {verdict.name}{at}",
        Word.STARTING: f"vigil wait {verdict.name}{at}",
        Word.STALLED: f"it was left running: vigil wait {verdict.name}{at} · vigil stop {verdict.name}{at}",
        Word.TIMED_OUT: f"it was left running: vigil wait {verdict.name}{at} · vigil stop {verdict.name}{at}",
        Word.UNHEALTHY: f"it was left running: vigil logs {verdict.name}{at} · vigil stop {verdict.name}{at}",
        Word.DEGRADED: f"it was left running: vigil stop {verdict.name}{at}",
        Word.CRASH_LOOPING: f"what restarts it is still there: vigil stop {verdict.name}{at}",
        Word.UNREACHABLE: f"vigil wait {verdict.name}{at}",
    }
    if hints and verdict.name and verdict.word in steps:
        lines.append(f"  next:  {steps[verdict.word]}")
    return lines if len(lines) > 1 else []
