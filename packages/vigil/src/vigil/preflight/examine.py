"""Put a command through all checks."""

from itertools import islice

import msgspec

from vigil.preflight.basis import unseen
from vigil.preflight.check_config_file import check_config_file, unread
from vigil.preflight.check_draft import check_draft
from vigil.preflight.check_flags import check_flags, version_of
from vigil.preflight.check_host import check_host, unlooked
from vigil.preflight.check_model import check_model
from vigil.preflight.check_program import unlisted
from vigil.preflight.check_values import check_values
from vigil.preflight.command import Command
from vigil.preflight.filed import in_file, told_of, without_file
from vigil.preflight.finding import Edit, Finding, Report, Severity, edited
from vigil.preflight.sight import Sight

CHECKS = (check_flags, check_config_file, check_values, check_model, check_draft, check_host)
_ORDER = list(Severity)
MOST_FINDINGS = 40
"""Of one check: a command of ten thousand wrong words is not held up word for word."""
_ROUNDS = 3
"""Looks at what was made right: a flag under its right name may need another beside it."""


def examine(command: Command, sight: Sight) -> Report:
    """Return what the command would die of, the worst first."""
    installed = sight.parser.version if sight.parser is not None else None
    sight = msgspec.structs.replace(sight, version=command.version or installed)
    findings = [one for check in CHECKS for one in islice(check(command, sight), MOST_FINDINGS)]
    findings.sort(key=lambda one: _ORDER.index(one.severity))
    corrected, filed = _corrected(command, sight, findings), command.filed
    if filed is not None:
        findings = [told for one in findings if (told := told_of(one, filed)) is not None]
    return Report(
        words=without_file(command.words, filed),
        engine=command.engine,
        version=version_of(command, sight),
        findings=tuple(findings),
        corrected=corrected,
        unseen=(
            *sight.troubles,
            *(sight.host.troubles if sight.host is not None else ()),
            *unseen(command, sight),
            *unread(command, sight),
            *unlooked(sight.host),
            *unlisted(sight.host),
        ),
    )


def _corrected(command: Command, sight: Sight, findings: list[Finding]) -> tuple[str, ...] | None:
    """Return the words with all edits made, those included that only the words so made right show to be needed."""
    words, edits = command.words, tuple(edit for one in findings for edit in one.edits if _typed(command, edit))
    for _ in range(_ROUNDS):
        if not edits:
            break
        words = edited(words, edits)
        again = msgspec.structs.replace(command, words=words, end=None)
        found = (one for check in CHECKS for one in islice(check(again, sight), MOST_FINDINGS))
        fatal = (one for one in found if one.severity is Severity.FATAL)
        edits = tuple(edit for one in fatal for edit in one.edits if _typed(command, edit))
    return without_file(words, command.filed) if words != command.words else None


def _typed(command: Command, edit: Edit) -> bool:
    """Tell whether an edit changes what was typed, and not a file."""
    return in_file(command.filed, edit.at) is None
