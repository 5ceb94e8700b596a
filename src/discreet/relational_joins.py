"""The private rows with their counterparts in public tables: still one row for each private row, or none."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from discreet.plan import PlannedJoin
from discreet.quirks import DUCKDB, Quirks
from discreet.row_rendering import render

__all__ = ["join_name", "joined_source", "repeated_keys"]


def join_name(place: int) -> str:
    """The temporary table that holds the public table of a join."""
    return f"public{place}"


def joined_source(source: str, joins: Sequence[PlannedJoin], columns: Collection[int], quirks: Quirks = DUCKDB) -> str:
    """The SELECT that gives ``c0, c1, ...`` of the joined schema.

    Args:
        source: the SELECT of the private table's columns.
        joins: in order; the public table of the i-th lies in ``join_name(i)``.
        columns: the places that are needed.
        quirks: of the engine.
    """
    rows = source
    for i, join in enumerate(joins):
        keys = ", ".join(f"{quirks.sql(render(ours, quirks))} AS j{n}" for n, (ours, _) in enumerate(join.on))
        last = join.first + len(join.table.registration.schema.columns)
        needed = [place for place in sorted(columns) if place < last]
        chosen = [f"r.c{p}" if p < join.first else f"p.c{p - join.first} AS c{p}" for p in needed]
        on = " AND ".join(f"r.j{n} = p.c{place - join.first}" for n, (_, place) in enumerate(join.on))
        kind = "LEFT" if join.left else "INNER"
        rows = (
            f"SELECT {', '.join(chosen) or '1 AS one'} FROM (SELECT *, {keys} FROM ({rows}) AS q) AS r "
            f"{kind} JOIN {join_name(i)} AS p ON {on}"
        )
    return rows


def repeated_keys(join: PlannedJoin, table: str) -> str:
    """The SELECT of keys that a public table holds more than once; none may. A missing key meets nothing."""
    keys = [f"c{place - join.first}" for _, place in join.on]
    present = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    return f"SELECT 1 FROM {table} WHERE {present} GROUP BY {', '.join(keys)} HAVING COUNT(*) > 1 LIMIT 1"
