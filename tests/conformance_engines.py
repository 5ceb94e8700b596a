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
from discreet.engines.postgres_connection import SETTINGS
from discreet.engines.spark import SparkEngine
from discreet.engines.spark_session import fresh
from discreet.expressions import Expression
from discreet.plan import Plan
from discreet.quirks import Quirks
from discreet.quirks.postgres import POSTGRES
from discreet.quirks.postgres_words import type_name
from discreet.quirks.spark import SPARK
from discreet.quirks.spark_statements import type_name as spark_type
from discreet.relational import compile_plan
from discreet.row_rendering import render
from discreet.schema import Kind, Registration, Type
from discreet.sources import locate, register, register_frame
from expression_tables import SCHEMA, nasty_rows, values_of
from postgres_server import PostgresServer
from tables import TYPES, store

__all__ = [
    "EXPRESSION_ROWS",
    "Bench",
    "DuckDBBench",
    "ExpressionBench",
    "PostgresBench",
    "PostgresExpressions",
    "SparkBench",
    "SparkExpressions",
    "totals_of",
]


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


_SPARK_TYPES = {
    "VARCHAR": "string",
    "HUGEINT": "decimal(38,0)",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMPTZ": "timestamp",
}


class SparkBench:
    """A lazy frame of several partitions."""

    name = "spark"

    def __init__(self, session: Any) -> None:
        self._session = session
        self._layout = ", ".join(f"{name} {_SPARK_TYPES.get(kind, kind)}" for name, kind in TYPES.items())
        self.registration = register_frame(self._frame([]), "table")

    def _frame(self, rows: Sequence[Row]) -> Any:
        values = [tuple(row[name] if name != "h" else _decimal(row[name]) for name in TYPES) for row in rows]
        return self._session.createDataFrame(values, self._layout).repartition(3)

    def hold(self, rows: Sequence[Row]) -> Engine:
        return SparkEngine(self.registration, self._frame(rows))


def _decimal(value: int | None) -> Decimal | None:
    return None if value is None else Decimal(value)


def _as_text(value: Any) -> str | None:
    """So that nothing is rounded on the way."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dt.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else repr(value)


# --- row expressions --------------------------------------------------------------------------------------------------

EXPRESSION_ROWS = nasty_rows(seed=7, count=90)
"""Of the layout of `expression_tables`."""


class ExpressionBench(Protocol):
    """Where an engine's row expressions are tested, over `EXPRESSION_ROWS`.

    Attributes:
        name: of the engine.
        quirks: its own words.
        refused: how many of the functions on columns it may refuse.
        rows: EXPRESSION_ROWS, as far as the engine has types for their values.
    """

    name: str
    quirks: Quirks
    refused: int
    rows: Sequence[tuple[Any, ...]]

    def values(self, expressions: Sequence[Expression]) -> list[list[Any]]:
        """The value of each in every row, in order."""
        ...

    def duckdb(self, expression: Expression) -> list[Any]:
        """DuckDB's values."""
        ...


class PostgresExpressions:
    """A table of all columns."""

    name, quirks, refused, rows = "postgres", POSTGRES, 4, EXPRESSION_ROWS

    def __init__(self, server: PostgresServer, duckdb: Any) -> None:
        self._duckdb = duckdb
        self._connection = psycopg.connect(server.url(server.new_database()), autocommit=True)
        for name, value in SETTINGS.items():
            self._connection.execute("SELECT set_config(%s, %s, false)", [name, value])
        columns = [f"c{i} {_column(column.type)}" for i, column in enumerate(SCHEMA.columns)]
        self._connection.execute(f"CREATE TABLE public.source (place integer, {', '.join(columns)})".encode())
        with self._connection.cursor().copy("COPY public.source FROM STDIN") as copy:
            for place, row in enumerate(EXPRESSION_ROWS):
                copy.write_row([str(place), *map(_as_text, row)])

    def close(self) -> None:
        """Let the connection go."""
        self._connection.close()

    def duckdb(self, expression: Expression) -> list[Any]:
        return values_of(self._duckdb, expression)

    def values(self, expressions: Sequence[Expression]) -> list[list[Any]]:
        texts = [POSTGRES.sql(render(expression, POSTGRES)) for expression in expressions]
        chosen = [f"CAST({text} AS text), CAST(pg_typeof({text}) AS text)" for text in texts]
        text = f"SELECT {', '.join(chosen)} FROM public.source ORDER BY place"
        rows = self._connection.execute(text.encode()).fetchall()
        for i, expression in enumerate(expressions):
            assert {row[2 * i + 1] for row in rows} == {type_name(expression.type).split("(")[0]}, texts[i]
        return [[_from_text(row[2 * i], expression.type) for row in rows] for i, expression in enumerate(expressions)]


class SparkExpressions:
    """A cached frame of all columns. There are no whole numbers from 10^38 on: they are missing there."""

    name, quirks, refused = "spark", SPARK, 10
    rows = tuple(
        tuple(None if isinstance(value, int) and abs(value) >= 10**38 else value for value in row)
        for row in EXPRESSION_ROWS
    )

    def __init__(self, session: Any, duckdb: Any) -> None:
        self._duckdb, self._session = duckdb, fresh(session)
        self._session.conf.set("spark.sql.maxPlanStringLength", "100")  # the driver keeps them all
        columns = [f"CAST(c{i} AS {spark_type(column.type)}) AS c{i}" for i, column in enumerate(SCHEMA.columns)]
        rows = [(place, *map(_as_text, row)) for place, row in enumerate(self.rows)]
        layout = ", ".join(["place INT", *(f"c{i} STRING" for i in range(len(columns)))])
        frame = self._session.createDataFrame(rows, layout).selectExpr("place", *columns).coalesce(1)
        frame.cache().createOrReplaceTempView("source")

    def close(self) -> None:
        """Let the cached rows go."""
        self._session.catalog.dropTempView("source")

    def duckdb(self, expression: Expression) -> list[Any]:
        return values_of(self._duckdb, expression)

    def values(self, expressions: Sequence[Expression]) -> list[list[Any]]:
        # Few are compiled, as they are for a query; many at a time would be compiled for minutes, and are interpreted.
        compiled = len(expressions) <= 8
        self._session.conf.set("spark.sql.codegen.wholeStage", str(compiled).lower())
        self._session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if compiled else "NO_CODEGEN")
        texts = [SPARK.sql(render(expression, SPARK)) for expression in expressions]
        named = ", ".join(f"{text} AS e{i}" for i, text in enumerate(texts))
        frame = self._session.sql(f"SELECT place, {named} FROM source")
        for text, expression, field in zip(texts, expressions, frame.schema.fields[1:], strict=True):
            assert field.dataType.simpleString() == spark_type(expression.type).lower().replace(" ", ""), text
        rows = frame.selectExpr("place", *(f"CAST(e{i} AS STRING)" for i in range(len(texts)))).collect()
        rows.sort(key=lambda row: row[0])
        return [
            [_from_text(row[i + 1], expression.type, zone="+00:00") for row in rows]
            for i, expression in enumerate(expressions)
        ]


def _column(type_: Type) -> str:
    return type_name(type_) + (' COLLATE "C"' if type_.kind is Kind.TEXT else "")


def _from_text(text: str | None, type_: Type, zone: str = "") -> Any:
    """A value that was cast to text, of the Python type that stands for it."""
    match type_.kind:
        case _ if text is None:
            return None
        case Kind.BOOLEAN:
            return {"true": True, "false": False}[text]
        case Kind.INTEGER:
            return int(text)
        case Kind.DECIMAL:
            return Decimal(text)
        case Kind.FLOAT:
            return float(text)
        case Kind.TEXT:
            return text
        case Kind.DATE:
            return dt.date.fromisoformat(text)
        case Kind.TIMESTAMPTZ:
            return dt.datetime.fromisoformat(text + zone)
        case _:
            return dt.datetime.fromisoformat(text)
