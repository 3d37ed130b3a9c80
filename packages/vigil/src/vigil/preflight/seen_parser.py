"""What the engine's own parser takes, as the scout saw it."""

import msgspec


class FieldSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a class that a flag takes as JSON.

    `type`: "bool", "int", "float", "str", "list", "dict", or "enum" (the names in `choices`, in any case); None: any, or
    what `choices` say. `config`: the class that it is itself.
    """

    type: str | None = None
    choices: tuple[str | int | float | bool | None, ...] | None = None
    config: str | None = None


class ConfigSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A class that a flag takes as JSON. `closed`: a field that it does not have is refused, else it is dropped silently.

    `free`: the flag takes something shorter, too.
    """

    closed: bool
    free: bool = False
    fields: dict[str, FieldSpec]


class FlagSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A flag that an engine takes.

    `nargs`: how many words follow it, as argparse tells it ("0", "1", "2", "?", "*", "+"); "~" where that cannot be told.
    `type`: "int", "float", "json", "size" (1k, 2M), "stoi" (C++, a number's beginning), or None: any word. `choices` None: not
    known, or any. `instead`: it is on its way out, and this is what it says to use ("" where it says nothing);
    `dead`: it ends the start. `config`: the class that it takes as JSON.
    """

    names: tuple[str, ...]
    nargs: str = "1"
    type: str | None = None
    choices: tuple[str, ...] | None = None
    required: bool = False
    default: str | None = None
    instead: str | None = None
    dead: bool = False
    config: str | None = None

    @property
    def key(self) -> str:
        """The name that it goes by: its first long one."""
        return next((name for name in self.names if name.startswith("--")), self.names[0])


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """How the engine's parser died when it was made. `kind`: the exception's name; `edited`: the file is not the install's."""

    kind: str
    text: str
    file: str | None = None
    line: int | None = None
    edited: bool = False


class ParserSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The parser of the installed engine, in its interpreter. All None: neither is on the host.

    `how`: "asked" (the parser itself was made and asked), "read" (its source was read), "help" (the text of `--help`); None: its
    flags could not be seen, `trouble` says why. `whole`: all of it was understood, so that what is not here is unknown to it.
    `foreign`: the command's program is there, and is none of the engine's own, but a script of that name.
    `edited`: files of the parser that differ from what the install brought. `configs`: the classes that flags take as JSON.
    """

    interpreter: str | None = None
    version: str | None = None
    how: str | None = None
    flags: tuple[FlagSpec, ...] = ()
    configs: dict[str, ConfigSpec] | None = None
    whole: bool = True
    broken: Broken | None = None
    edited: tuple[str, ...] = ()
    kept: bool = False
    trouble: str | None = None
    foreign: bool = False
