"""What a command would die of, said before it is started: findings from its words and from what was seen of its host. Pure.

Each `check_<noun>` module holds one subject. The codes stand in `findings.toml`.
"""

from vigil.preflight.command import Command, Given
from vigil.preflight.examine import examine
from vigil.preflight.finding import Edit, Finding, Report, Severity
from vigil.preflight.sight import Sight

__all__ = ["Command", "Edit", "Finding", "Given", "Report", "Severity", "Sight", "examine"]
