"""Pages of data: the engines' phases, the policy's numbers, the observer's protocol."""

import ast
import inspect
import itertools
from importlib import resources

import msgspec

from generators.markdown import code, facts, first_sentence, page, prose, table
from vigil import policy
from vigil.engine_table import EngineTable
from vigil.engines import TABLES, phase_table


def pages() -> dict[str, str]:
    """Return the pages by path."""
    return {"engines.md": engines_page(), "policy.md": policy_page(), "protocol.md": protocol_page()}


def engines_page() -> str:
    """Return what is known of each engine."""
    intro = (
        "Every engine has the same phases. Which line shows a phase is data; a phase without a line of its own is seen by the "
        "port, the process or a probe. "
        "Where no limit is given, [`silent_s`](policy.md) counts. [How to add an engine](add-an-engine.md)."
    )
    parts = [part for one in TABLES.values() for part in engine_parts(one)]
    return page("Engines", "vigil/engines/", intro, *parts)


def engine_parts(engine: EngineTable) -> list[str]:
    """Return an engine's section."""
    told = [
        ("`--engine`", code(engine.name)),
        ("known by", ", ".join(map(code, (*engine.commands, *engine.images))) or "anything else"),
        ("health", code(engine.health_path)),
        ("models", code(engine.models_path)),
        ("token", ", ".join(map(code, engine.completion_paths))),
        ("counters", metrics_of(engine)),
        ("its own API key", ", ".join(map(code, (*engine.key_flags, *engine.key_variables)))),
        ("port without a flag", str(engine.default_port)),
        ("workers", ", ".join(map(code, engine.workers)) or "none known"),
    ]
    signs = (
        phase_table(engine)
        if engine.signs
        else "No line of its log is known; phases come from process, port and probes."
    )
    return [f"## {engine.title}", facts(told), signs]


def metrics_of(engine: EngineTable) -> str:
    """Return where the engine's counters stand, in words."""
    if engine.metrics.path is None:
        return "none"
    needs = f", with {code(engine.metrics.needs_flag)}" if engine.metrics.needs_flag else ""
    return code(engine.metrics.path) + needs


def policy_page() -> str:
    """Return every number that a decision uses, with its docstring."""
    values = policy.Policy()
    rows = [[code(name), shown(getattr(values, name)), prose(text)] for name, text in field_docs(policy.Policy).items()]
    return page("Numbers", "vigil/policy.py", first_sentence(policy.__doc__), table(["name", "value", "meaning"], rows))


def shown(value: float) -> str:
    """Return a number as it is written."""
    return f"{value:g}" if isinstance(value, float) else f"{value:,}".replace(",", " ")


def field_docs(kind: type[msgspec.Struct]) -> dict[str, str]:
    """Return the strings that stand below the fields of a class."""
    body = ast.parse(inspect.getsource(kind)).body[0].body  # type: ignore[attr-defined]
    found = {}
    for field, below in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(field.target)] = " ".join(str(below.value.value).split())
    return found


def protocol_page() -> str:
    """Return the observer's protocol as a page."""
    text = resources.files("vigil.observer").joinpath("PROTOCOL.md").read_text("utf-8")
    title, _, rest = text.removeprefix("# ").partition("\n")
    return page(title, "vigil/observer/PROTOCOL.md", rest)
