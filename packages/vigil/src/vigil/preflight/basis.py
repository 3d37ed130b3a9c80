"""What a command's flags are held against: the installed engine's own parser, or a release's table."""

import re

import msgspec

from vigil.preflight.command import Command
from vigil.preflight.config_tables import configs_at
from vigil.preflight.grammar import Grammar
from vigil.preflight.naming import ENGINES
from vigil.preflight.seen_parser import ConfigSpec, FlagSpec, ParserSeen
from vigil.preflight.sight import Sight
from vigil.preflight.tables import Row, Table, order, table_of

_IMAGE = re.compile(r"(?:sglang|vllm)[\w.-]*:v?(\d+\.\d+\.\d+(?:\.?(?:post|rc)\d+)?)")
_HOW = {"asked": "its own parser", "read": "the source of its parser", "help": "its --help"}


class Basis(msgspec.Struct, frozen=True, kw_only=True):
    """The flags of one release. `release`: of the install, or of the table. `wanted`: the release that is meant, where known.

    `exact`: these are the flags of the release that will run, all of them. `foreign`: what will run is none of the engine's own
    programs, so that nothing is sure. `seen`: where they are known from, in one line. `own_configs`: the install's own classes.
    """

    engine: str
    release: str
    wanted: str | None
    exact: bool
    foreign: bool = False
    seen: str
    flags: tuple[FlagSpec, ...]
    table: Table | None
    own_configs: dict[str, ConfigSpec] | None = None

    @property
    def title(self) -> str:
        """The engine and its release, for people."""
        return f"{ENGINES[self.engine]} {self.release}"

    def history(self, name: str) -> tuple[Row, ...]:
        """Return what the table has of a flag, in all releases."""
        return self.table.named(name) if self.table is not None else ()

    def config(self, name: str) -> ConfigSpec | None:
        """Return a class that flags take as JSON, None where it is not known."""
        told = self.own_configs if self.own_configs is not None else configs_at(self.engine, self.release)
        return told.get(name)

    def refuses(self, name: str) -> bool:
        """Tell whether the release that will run surely has no flag of this name, given that this basis has none.

        Where the release is not known, a flag that any release took, in full or shortened, may be right. Between two releases of
        the table, what the later one has may have come; before the first and after the last nothing is sure.
        """
        if self.exact or self.foreign or self.table is None:
            return self.exact
        if self.wanted is None:
            return not any(one.startswith(name) for row in self.table.flags for one in row.names)
        if order(self.wanted) < order(self.table.releases[0]) or order(self.wanted) > order(self.table.releases[-1]):
            return False
        later = self.table.following(self.release)
        return later is None or not any(name in row.names for row in self.table.at(later))

    def agrees(self, name: str) -> bool:
        """Tell whether a flag surely has the form here that it has in the release that will run."""
        forms = {(row.nargs, row.type) for row in self.history(name)}
        return self.exact or (self.wanted is None and len(forms) == 1 and not self.foreign)

    def refuses_value(self, name: str, value: str) -> bool:
        """Tell whether the release that will run surely does not take this value, given that this basis does not."""
        if self.exact:
            return True
        if self.table is None or self.wanted is not None or self.foreign:
            return False
        return all(row.choices is not None and value not in row.choices for row in self.history(name))


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A command held against a basis: all that a finding on a flag needs."""

    basis: Basis
    grammar: Grammar
    command: Command


def basis_of(command: Command, sight: Sight) -> Basis | None:
    """Return what to hold a command's flags against, or None where nothing is known of its engine, or of where its words begin.

    An engine that was only named (`--engine`) runs behind a script, whose words are its own.
    """
    if command.engine not in ENGINES or not command.own:
        return None
    table, parser = table_of(command.engine), sight.parser
    if parser is not None and parser.broken is not None and not parser.flags:
        return None  # whatever its files were meant to say now, the table of another state of them does not know it
    if parser is not None and parser.how is not None and parser.flags and _meant(command, parser):
        return Basis(
            engine=command.engine,
            release=parser.version or "(no version found)",
            wanted=parser.version,
            exact=parser.whole,
            seen=f"{_HOW.get(parser.how, parser.how)}, {parser.interpreter or 'on this host'}",
            flags=parser.flags,
            table=table,
            own_configs=parser.configs or {},
        )
    if table is None:
        return None
    wanted = command.version or (parser.version if parser is not None else None) or _of_image(command)
    release = table.nearest(wanted)
    return Basis(
        engine=command.engine,
        release=release,
        wanted=wanted,
        exact=wanted is not None and table.holds(wanted),
        foreign=parser is not None and parser.foreign and command.version is None,
        seen=f"the table of {ENGINES[command.engine]} {release}",
        flags=tuple(row.spec() for row in table.at(release)),
        table=table,
    )


def _of_image(command: Command) -> str | None:
    """Return the release that a container's image names: `vllm/vllm-openai:v0.10.2`."""
    found = (_IMAGE.search(word) for word in command.words[: command.own])
    return next((one.group(1) for one in found if one is not None), None)


def _meant(command: Command, parser: ParserSeen) -> bool:
    """Tell whether the install is of the release that the user means."""
    return command.version is None or parser.version is None or order(command.version)[:3] == order(parser.version)[:3]


def unseen(command: Command, sight: Sight) -> tuple[str, ...]:
    """Return what is to be said where the installed parser did not answer: nothing, or one line."""
    basis, parser = basis_of(command, sight), sight.parser
    if basis is None or not basis.seen.startswith("the table"):
        return ()
    engine = ENGINES[command.engine]
    if command.version is not None:
        why = f"--engine-version {command.version} was given"
    elif parser is None or parser.version is None:
        why = (parser.trouble if parser is not None else None) or f"no {engine} was found on this host"
    else:
        why = parser.trouble or f"the parser of {engine} {parser.version} could not be asked"
    return (f"{why}: flags were held against {basis.seen}",)
