"""When a flag came and went, in words."""

from vigil.preflight.basis import Basis
from vigil.preflight.naming import ENGINES
from vigil.preflight.tables import order


def told_of(name: str, basis: Basis) -> tuple[str, str]:
    """Return (what is wrong with a flag that this release does not have, what to do where it is newer than the release)."""
    engine = ENGINES[basis.engine]
    if basis.engine in {"vllm", "llamacpp"}:
        name = "--" + name[2:].replace("_", "-") if name.startswith("--") else name
    rows = basis.history(name)
    plain = f"{basis.title} has no flag {name}"
    if not rows or basis.table is None:
        return plain, ""
    first, last = rows[0].first, rows[-1].last
    if order(first) > order(basis.release):
        return (
            f"{plain}: it came with {_build(first, basis)}",
            f"Install {engine} {_build(first, basis)} or newer, or leave it out.",
        )
    after = basis.table.following(last)
    if order(last) < order(basis.release) and after is not None:
        return f"{plain}: it went with {_build(after, basis)}, {_build(last, basis)} still took it", ""
    return plain, ""


def _build(release: str, basis: Basis) -> str:
    return f"build {release}" if basis.engine == "llamacpp" else release
