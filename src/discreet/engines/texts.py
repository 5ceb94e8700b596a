"""Keys, public tables and totals on their way to and from an engine that is handed texts: what engines share beside
their own words for it."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from discreet.bins import level_totals
from discreet.engines.duckdb_connection import connect
from discreet.laplace.limbs import Int128Array
from discreet.plan import PlannedJoin
from discreet.public_tables import load_public
from discreet.query import Scalar
from discreet.relational import KeyTable, Result
from discreet.relational_joins import join_name
from discreet.schema import Kind, Type

__all__ = ["from_texts", "key_texts", "measured", "public_texts", "spread"]


def measured(result: Result) -> tuple[int, ...]:
    """The measurements whose totals a result holds: of a tree, the leaves alone."""
    return result.measurements if result.bins is None else result.measurements[-1:]


def spread(rows: Sequence[tuple[Any, ...]], result: Result) -> dict[int, Int128Array]:
    """The totals of a result's rows, each in its place; places that are not given are 0.

    Args:
        rows: a place, then the total of each measurement in `measured`, as text.
        result: whose they are.
    """
    totals = []
    for n in range(len(measured(result))):
        values = [0] * result.cells
        for row in rows:
            values[row[0]] = int(row[n + 1])
        totals.append(Int128Array.from_ints(values))
    if result.bins is not None:
        return dict(zip(result.measurements, level_totals(totals[0], result.bins), strict=True))
    return dict(zip(result.measurements, totals, strict=True))


def key_texts(table: KeyTable) -> list[list[str | None]]:
    """The listed keys as rows of texts, which the engine casts to the table's types."""
    return [[_text(value) for value in row] for row in table.rows]


def _text(value: Scalar) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def public_texts(joins: Sequence[PlannedJoin]) -> Iterator[tuple[str, list[tuple[str, Type]], list[Any]]]:
    """The public tables of joins, read here: of each its name, its columns with their types, and its rows of texts."""
    with connect() as connection:
        load_public(connection, joins)
        for i, join in enumerate(joins):
            columns = join.table.registration.schema.columns
            texts = ", ".join(f"CAST(c{place} AS VARCHAR)" for place in range(len(columns)))
            rows = connection.execute(f"SELECT {texts} FROM {join_name(i)}").fetchall()
            yield join_name(i), [(f"c{n}", column.type) for n, column in enumerate(columns)], rows


_EPOCH = datetime.datetime(1970, 1, 1)


def from_texts(row: Sequence[str | None], types: Sequence[Type]) -> tuple[Scalar, ...]:
    """A key that came back as texts; times as microseconds since 1970."""
    return tuple(_value(text, type_) for text, type_ in zip(row, types, strict=True))


def _value(text: str | None, type_: Type) -> Scalar:
    match type_.kind:
        case _ if text is None:
            return None
        case Kind.TIMESTAMP:
            return _EPOCH + datetime.timedelta(microseconds=int(text))
        case Kind.TIMESTAMPTZ:
            return _EPOCH.replace(tzinfo=datetime.UTC) + datetime.timedelta(microseconds=int(text))
        case Kind.DATE:
            return datetime.date.fromisoformat(text)
        case Kind.DECIMAL:
            return Decimal(text)
        case Kind.INTEGER:
            return int(text)
        case Kind.BOOLEAN:
            return text == "true"
        case _:
            return text
