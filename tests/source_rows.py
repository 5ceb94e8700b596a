"""What the tests of reading share: the rows of a registered source, as a query reads them."""

from __future__ import annotations

from typing import Any

from discreet.engines.duckdb_connection import connect
from discreet.schema import Registration
from discreet.sources import attach, relation


def rows(registration: Registration, columns: list[int] | None = None) -> list[tuple[Any, ...]]:
    """All rows, sorted."""
    with connect() as connection:
        attach(connection, registration)
        return sorted(connection.execute(relation(registration, columns)).fetchall(), key=repr)


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
