"""Ask a server that nobody watches what it runs, through the desk of its host."""

from typing import Any

import msgspec

from vigil.attest.arguments import Row, table_of_arguments
from vigil.engine_table import EngineTable
from vigil.engines import TABLES, detect, table
from vigil.errors import StateError, UsageError
from vigil.facts import Attested
from vigil.hosts import Reach, call

ANSWER_S = 60.0
UNKNOWABLE = (
    "vigil did not start it: which files and versions of them its processes loaded, and which classes are alive, "
    "cannot be known but for what stands on a stack"
)


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """What a server runs, and its arguments: asked for, and in force. `command_known`: whether its flags could be read."""

    schema: int = 1
    name: str
    engine: str
    seen: Attested
    arguments: tuple[Row, ...] = ()
    note: str = ""
    command_known: bool = True


async def ask_account(
    reach: Reach, name: str | None, plan: dict[str, Any], at: tuple[str, str, int | None], key: str | None
) -> Account:
    """Return the account of a server: by its `name` and the `plan` kept of it, or of what answers `at` (scheme, host, port)."""
    engine = table(str(plan.get("engine") or "generic"))
    known = [engine] if engine.name != "generic" else list(TABLES.values())
    scheme, host, port = at
    answer = await call(
        reach,
        "attest",
        timeout_s=ANSWER_S,
        name=name,
        scheme=scheme,
        host=host,
        port=port,
        key=key,
        signs=[sign for one in known for sign in one.main_signs],
        key_flags=[flag for one in known for flag in one.key_flags],
        key_variables=[flag for one in known for flag in one.key_variables],
        **order_of(known),
    )
    words = [str(word) for word in answer.pop("words", None) or ()]
    seen = _fact(answer)
    if not name and not words and (seen.served is None or not seen.served.values):
        why = seen.served.error if seen.served is not None else "no answer"
        raise UsageError(f"nothing at {host}:{port} says what it runs ({why})")
    asked = [str(word) for word in plan.get("command") or ()]
    if engine.name == "generic" and detect(words).name != "generic":
        engine, asked = detect(words), words
    rows = table_of_arguments(asked or words, engine, seen)
    return Account(
        name=name or f"{host}:{port}",
        engine=engine.name,
        seen=seen,
        arguments=rows,
        note="" if name else UNKNOWABLE,
        command_known=bool(asked or words),
    )


def order_of(tables: list[EngineTable]) -> dict[str, list[str]]:
    """Return what the processes and the address of one of these engines are asked."""
    fields = {
        "packages": [name for one in tables for name in one.imports_as],
        "arguments": [name for one in tables for name in one.argument_classes],
        "roots": [name for one in tables for name in one.argument_roots],
        "paths": [name for one in tables for name in one.info_paths],
        "marks": [name for one in tables for name in one.environment],
    }
    return {name: list(dict.fromkeys(values)) for name, values in fields.items()}


def _fact(answer: dict[str, Any]) -> Attested:
    try:
        return msgspec.convert({"kind": "Attested", "at_s": 0.0, **answer}, Attested)
    except msgspec.ValidationError as error:
        raise StateError(f"what its host answers has another form: {error}") from error
