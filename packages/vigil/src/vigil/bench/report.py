"""A whole measurement as one object: what `--json` prints and `vigil report` reads again. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from vigil.bench.answer import Comparison, comparisons
from vigil.bench.figures import Figure, figures
from vigil.bench.folder import Meta
from vigil.bench.row import SCHEMA, Row


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is told of a measurement. `servers`: what each said of itself. `answers`: arms against the first."""

    schema: int = SCHEMA
    meta: Meta
    servers: dict[str, Any]
    figures: tuple[Figure, ...]
    answers: tuple[Comparison, ...] = ()
    rows: tuple[Row, ...] = ()


def report(meta: Meta, rows: Sequence[Row], servers: dict[str, Any]) -> Report:
    """Return the report of the rows of a measurement."""
    seed = meta.settings.seed
    return Report(
        meta=meta,
        servers=servers,
        figures=tuple(figures(rows, seed)),
        answers=tuple(comparisons([arm.name for arm in meta.arms], rows, seed)),
        rows=tuple(rows),
    )
