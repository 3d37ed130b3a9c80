"""Whether an SGLang can do what `--speculate` asked of its command: a step without drafts is there from 0.5.14 on."""

from collections.abc import Iterator

from vigil.observer.switching import PLACE
from vigil.preflight.command import Command
from vigil.preflight.finding import Finding, Severity
from vigil.preflight.pointed import pointed

CONFIG = "--speculative-adaptive-config"
SWITCHES = (0, 5, 14)
"""sglang#23994; 0.5.12 and 0.5.13 adapt between numbers of steps that are never 0."""


def check_switching(command: Command, version: tuple[int, ...] | None) -> Iterator[Finding]:
    """Find an SGLang that is too old to be switched: it would serve, and its speculation would stay on."""
    given = command.last(CONFIG)
    if given is None or not (given.value or "").startswith(PLACE) or version is None or version >= SWITCHES:
        return
    release = ".".join(map(str, version))
    text = f"SGLang {release} has no step without drafts: speculation is switched with the load from 0.5.14 on"
    yield pointed(
        given, "FLAG002", Severity.FATAL, text, "a newer SGLang; or leave --speculate out", seen="sglang#23994"
    )
