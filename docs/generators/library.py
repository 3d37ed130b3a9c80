"""The library's page, from docstrings and types."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import msgspec

import vigil
from generators.markdown import block, code, page, table
from vigil import api, errors
from vigil.changes import Change
from vigil.diagnosis.cause import Cause
from vigil.verdict import Attempt, Evidence, PhaseSpan, Verdict, Word

INTRO = """The same as the command line, for programs.
A sick server is a verdict; an exception means that we could not look or act.

```python
import anyio
import vigil

command = ("llama-server", "-m", "model.gguf", "--port", "8080")
plan = vigil.Plan(command=command, name="s1")


async def main() -> None:
    async with vigil.watch(plan) as watching:
        async for verdict in watching:
            print(verdict.word, verdict.phase)


anyio.run(main)
```

Programs to run as they are: `examples/up.py`, which blocks, and `examples/follow.py`, which does not."""


def pages() -> dict[str, str]:
    """Return the page by its path."""
    functions = [part for one in (api.up, api.watch) for part in function_parts(one)]
    structs = [
        part for one in (vigil.Plan, Verdict, Attempt, PhaseSpan, Evidence, Cause, Change) for part in struct_parts(one)
    ]
    words = f"## vigil.Word\n\n{Word.__doc__} One of {', '.join(map(code, Word))}. See [verdicts](verdicts/index.md)."
    faults = (
        f"## Errors\n\n{block(errors.__doc__ or '', 'text')}\n\nAll have `exit_code`. `vigil.VigilError` is their base."
    )
    limits = "## vigil.Policy\n\nThe numbers that decide, as fields. See [numbers](policy.md)."
    return {
        "library.md": page("The library", "the docstrings of vigil", INTRO, *functions, *structs, words, limits, faults)
    }


def function_parts(function: Callable[..., Any]) -> list[str]:
    """Return a function's section."""
    signature = inspect.signature(function)
    parameters = "".join(
        f"    {one},\n" for one in re.split(r", (?=\w+[:,]|\*)", str(signature)[1:].rpartition(") ->")[0])
    )
    shown = f"vigil.{function.__name__}(\n{parameters}) -> {signature.return_annotation.__name__}"
    return [f"## vigil.{function.__name__}", block(without_modules(shown), "python"), inspect.getdoc(function) or ""]


def struct_parts(kind: type[msgspec.Struct]) -> list[str]:
    """Return a class's section: its docstring and its fields."""
    name = f"vigil.{kind.__name__}" if kind.__name__ in vigil.__all__ else kind.__name__
    rows = [[code(one.name), code(type_text(one)), code(default_text(one))] for one in msgspec.structs.fields(kind)]
    return [f"## {name}", inspect.getdoc(kind) or "", table(["field", "type", "default"], rows)]


def type_text(field: msgspec.structs.FieldInfo) -> str:
    """Return a field's type as it is written."""
    kind = field.type
    return without_modules(kind.__name__ if isinstance(kind, type) and not hasattr(kind, "__args__") else repr(kind))


def without_modules(text: str) -> str:
    """Return types without the modules that they come from."""
    return re.sub(r"<class '([^']+)'>|\b(?:[a-z_]+\.)+(?=[A-Z])", lambda found: found[1] or "", text)


def default_text(field: msgspec.structs.FieldInfo) -> str:
    """Return a field's default as it is written; empty where it is required."""
    if field.default_factory is not msgspec.NODEFAULT:
        return "{}" if field.default_factory is dict else f"{getattr(field.default_factory, '__name__', '...')}()"
    if field.default is msgspec.NODEFAULT:
        return ""
    return "Policy()" if isinstance(field.default, vigil.Policy) else repr(field.default)
