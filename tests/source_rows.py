"""What the tests of reading share: the rows of a registered source, as a query reads them."""

from __future__ import annotations

import math
from typing import Any

from discreet.engines.duckdb_connection import connect
from discreet.schema import Registration
from discreet.sources import attach, relation


def rows(registration: Registration, columns: list[int] | None = None) -> list[tuple[Any, ...]]:
    """All rows, sorted."""
    with connect() as connection:
        attach(connection, registration)
        return sorted(without_nan(connection.execute(relation(registration, columns)).fetchall()), key=repr)


def without_nan(found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """As every reader of a relation takes them: NaN is missing (`row_rendering`, and the tests of queries)."""
    return [tuple(None if isinstance(v, float) and math.isnan(v) else v for v in row) for row in found]


def one(registration: Registration, aggregate: str) -> Any:
    """Aggregates over the relation; columns by name in braces."""
    for i, column in enumerate(registration.schema.columns):
        aggregate = aggregate.replace(f"{{{column.name}}}", f"c{i}")
    with connect() as connection:
        attach(connection, registration)
        return connection.execute(f"SELECT {aggregate} FROM ({relation(registration)})").fetchone()


def types(registration: Registration) -> dict[str, str]:
    """Each column's type, by name."""
    return {column.name: str(column.type) for column in registration.schema.columns}
