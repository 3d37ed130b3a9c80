"""What a diagnosis says to people and to programs: a log's story, a rule's page."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from vigil.cli.prose import wrapped
from vigil.cli.render import cause_lines
from vigil.cli.saying import mention
from vigil.diagnosis.postmortem import Story
from vigil.diagnosis.rules import Rule, known_rules
from vigil.errors import UsageError
from vigil.screen import plain, plain_json


def story_json(story: Story) -> str:
    """Return a story as one line of JSON."""
    return plain_json(msgspec.json.encode(story).decode())


def story_text(story: Story, source: str) -> str:
    """Return a story for people, on one screen."""
    engine = f"  {story.engine}{' ' + story.version if story.version else ''}" if story.engine else ""
    lives = f"  {story.attempts} lives" if story.attempts > 1 else ""
    alike = f", the last {story.alike} ended alike" if story.alike > 1 else ""
    lines = [plain(f"{source}{engine}{lives}{alike}", 400)]
    if story.cause is not None:
        lines += cause_lines(story.cause)
        lines += _host(story)
        lines += _others(story)
        lines += ["", f"  rule:  vigil diagnose --explain {story.cause.code}"]
    else:
        lines += wrapped(_without_cause(story))
        if story.engine is not None and story.stuck_in is not None and story.stuck_in.advice:
            lines += ["", *wrapped(f"what to do: {story.stuck_in.advice}")]
        lines += _host(story)
    return "\n".join(lines)


def _host(story: Story) -> list[str]:
    """Return what the host showed when the server ended, and what it shows now."""
    lines: list[str] = []
    for when, heading in (("end", "when it ended:"), ("now", "on its host now:")):
        told = [line for one in story.host if one.when == when for line in wrapped(one.text, first="  - ")]
        lines += ["", f"  {heading}", *told] if told else []
    return lines


def _others(story: Story) -> list[str]:
    if not story.candidates:
        return []
    lines = ["", "  also possible:"]
    for one in story.candidates:
        at = f"line {one.line}: " if one.line is not None else ""
        lines += wrapped(f"{one.code}  {at}{one.text}", first="    ", then="      ")
    return lines


def _without_cause(story: Story) -> str:
    if story.attempts == 0:
        return "the log is empty"
    stuck = story.stuck_in
    if stuck is not None and story.engine is None:
        return "no cause found, and nothing in it is in the words of an engine that vigil knows (--engine NAME says it)"
    if stuck is not None:
        at = f"line {stuck.line}: {stuck.text}" if stuck.line is not None else stuck.text
        return f"no cause found; it stands in {stuck.phase} since {at}"
    if story.ready:
        return "no cause found: it says that it serves, and nothing after that says otherwise"
    return "no cause found: no line of it says why"


def own_rules(folder: Path) -> tuple[Rule, ...]:
    """Return the rules of a user's folder; say what is wrong with a file, and go on without it."""
    from vigil.diagnosis.load import load_rules

    if not folder.is_dir():
        raise UsageError(f"--rules {folder}: there is no such folder")
    rules, wrong = load_rules(folder)
    for one in wrong:
        mention(plain(one, 600))
    return tuple(rules)


def rule_text(code: str, own: Sequence[Rule]) -> str:
    """Return what a rule says; raise `UsageError` where there is none of that code."""
    rule = {**known_rules(), **{one.code: one for one in own}}.get(code.upper())
    if rule is None:
        raise UsageError(f"there is no rule {code!r}: give one of {', '.join(known_rules())}")
    retry = "starting again may mend it" if rule.retry else "starting again does not mend it"
    lines = [f"{rule.code}  {rule.title}", f"  kind: {rule.kind}; engines: {', '.join(rule.engines) or 'any'}; {retry}"]
    lines += ["", *wrapped(rule.because, then="  "), "", *wrapped(f"what to do: {rule.advice}")]
    advices = {one.advice: ", ".join(one.engines) for one in rule.when if one.advice and one.advice != rule.advice}
    for advice, engines in advices.items():
        lines += wrapped(f"{engines + ': ' if engines else ''}{advice}", first="  - ")
    lines = [plain(line, 400) for line in lines]
    lines += ["", "  lines that it knows:"]
    for sample in rule.match:
        lines += [f"    {plain(line, 160)}" for line in sample.text.strip().splitlines()[-2:]]
    return "\n".join(lines)
