"""Put a command through all checks."""

import msgspec

from vigil.preflight.basis import unseen
from vigil.preflight.check_draft import check_draft
from vigil.preflight.check_flags import check_flags, version_of
from vigil.preflight.check_host import check_host
from vigil.preflight.check_model import check_model
from vigil.preflight.check_values import check_values
from vigil.preflight.command import Command
from vigil.preflight.finding import Report, Severity, edited
from vigil.preflight.sight import Sight

CHECKS = (check_flags, check_values, check_model, check_draft, check_host)
_ORDER = list(Severity)


def examine(command: Command, sight: Sight) -> Report:
    """Return what the command would die of, the worst first."""
    installed = sight.parser.version if sight.parser is not None else None
    sight = msgspec.structs.replace(sight, version=command.version or installed)
    findings = [one for check in CHECKS for one in check(command, sight)]
    findings.sort(key=lambda one: _ORDER.index(one.severity))
    edits = tuple(edit for one in findings for edit in one.edits)
    return Report(
        words=command.words,
        engine=command.engine,
        version=version_of(command, sight),
        findings=tuple(findings),
        corrected=edited(command.words, edits) if edits else None,
        unseen=(
            *sight.troubles,
            *(sight.host.troubles if sight.host is not None else ()),
            *unseen(command, sight),
        ),
    )
