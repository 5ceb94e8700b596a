"""Every engine under one roof for the conformance suite: the same rows, put where it reads them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import psycopg

from definition import Row
from discreet.engines.duckdb import DuckDBEngine
from discreet.engines.engine import Engine
from discreet.engines.postgres import PostgresEngine
from discreet.plan import Plan
from discreet.relational import compile_plan
from discreet.schema import Registration
from discreet.sources import locate, register
from postgres_server import PostgresServer
from tables import TYPES, store

__all__ = ["Bench", "DuckDBBench", "PostgresBench", "totals_of"]


class Bench(Protocol):
    """Where an engine is tested."""

    name: str
    registration: Registration

    def hold(self, rows: Sequence[Row]) -> Engine:
        """The engine over these rows, and no others, of the layout of `tables`."""
        ...


def totals_of(engine: Engine, plan: Plan, hash_key: int = 0) -> list[list[int]]:
    """The exact totals of every measurement."""
    return [total.to_ints() for total in engine.run(compile_plan(plan, hash_key, engine.quirks))]


class DuckDBBench:
    """Arrow tables."""

    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.registration = store([], "arrow", folder).registration

    def hold(self, rows: Sequence[Row]) -> Engine:
        stored = store(rows, "arrow", self._folder)
        return DuckDBEngine(stored.registration, stored.frame)


_POSTGRES_TYPES = {
    "VARCHAR": "text",
    "HUGEINT": "numeric",
    "DOUBLE": "double precision",
    "BOOLEAN": "boolean",
}


class PostgresBench:
    """A table, written anew for every use."""

    name = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self.url = server.url(server.new_database())
        self._connection = psycopg.connect(self.url, autocommit=True)
        columns = ", ".join(f'"{name}" {_POSTGRES_TYPES.get(kind, kind)}' for name, kind in TYPES.items())
        self._connection.execute(f"CREATE TABLE rows ({columns})".encode())
        self.registration = register(locate(self.url, table="rows"), types={"h": "HUGEINT"})

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def hold(self, rows: Sequence[Row]) -> Engine:
        self._connection.execute("TRUNCATE rows")
        with self._connection.cursor().copy("COPY rows FROM STDIN") as copy:
            for row in rows:
                copy.write_row([_as_text(row[name]) for name in TYPES])
        return PostgresEngine(self.registration, self.url)


def _as_text(value: Any) -> str | None:
    """So that nothing is rounded on the way."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)
