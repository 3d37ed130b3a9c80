"""The table of facts, and of the effects that follow from them: parts of the page on how facts flow."""

import inspect
import typing

import msgspec

from generators.markdown import code, first_sentence, prose, table
from vigil import facts
from vigil.verdict import effects
from vigil.verdict.step import HANDLERS


def parts() -> dict[str, dict[str, str]]:
    """Return the parts by page and by name."""
    kinds = typing.get_args(facts.AnyFact)
    told = [
        [
            code(one.__name__),
            prose(first_sentence(inspect.getdoc(one))),
            code(HANDLERS[one].__module__.removeprefix("vigil.verdict.")),
        ]
        for one in kinds
    ]
    orders = [
        one for one in vars(effects).values() if isinstance(one, type) and one.__module__ == effects.__name__
        and issubclass(one, msgspec.Struct)
    ]  # fmt: skip
    asked = [[code(one.__name__), prose(first_sentence(inspect.getdoc(one)))] for one in orders]
    return {
        "facts.md": {
            "facts": table(["fact", "what was seen", "taken in by"], told),
            "effects": table(["effect", "what is asked for"], asked),
        }
    }
