"""PostgreSQL: the rows stay on the server, only grouped totals come here.

Every statement of a session is one SELECT in the same read-only transaction, so that all see one snapshot; what DuckDB
puts into temporary tables are the parts of a WITH.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.engines.postgres_connection import connect
from discreet.engines.texts import from_texts, key_texts, measured, public_texts, spread
from discreet.errors import EngineError, UsageError
from discreet.laplace.limbs import Int128Array
from discreet.plan import PlannedJoin
from discreet.query import Scalar
from discreet.quirks import Quirks
from discreet.quirks.postgres import POSTGRES
from discreet.quirks.postgres_words import quoted, type_name
from discreet.relational import KeyTable, Statement
from discreet.relational_joins import joined_source
from discreet.relational_selection import SelectionStatement
from discreet.schema import Kind, Registration, Type
from discreet.sources.postgres_tables import check_table, select_postgres

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["PostgresEngine", "PostgresSession"]

_Result = TypeVar("_Result")


class PostgresEngine:
    """Runs statements over one registered table.

    Args:
        registration: which table, and its types.
        address: of the database, as libpq takes it; it may hold a password, and is shown nowhere.
    """

    quirks: Quirks = POSTGRES

    def __init__(self, registration: Registration, address: str) -> None:
        self._registration = registration
        self._address = address

    def check(self, zones: Collection[str]) -> None:
        """See `discreet.engines.engine.Engine.check`."""
        named = sorted(zone for zone in zones if zone[0] not in "+-")
        with connect(self._address, self._registration.source) as connection:
            _without_server_text(lambda: check_table(connection, self._registration))
            if named:
                text = b"SELECT lower(name) FROM pg_timezone_names"
                known = {name for (name,) in _without_server_text(lambda: connection.execute(text).fetchall())}
                for zone in (zone for zone in named if zone.lower() not in known):
                    rule = "is not known to the server. Nothing was charged"
                    raise UsageError("time zone", rule, zone, "write an offset such as '+08:00'")

    def ahead(self) -> AbstractContextManager[None]:
        """See `discreet.engines.engine.Engine.ahead`: nothing."""
        return nullcontext()

    def run(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The totals of one statement, in a session of its own."""
        with self.session(statement.columns, statement.joins) as session:
            return session.totals(statement)

    @contextmanager
    def session(self, columns: Collection[int], joins: Sequence[PlannedJoin] = ()) -> Iterator[PostgresSession]:
        """See `discreet.engines.engine.Engine.session`."""
        with ExitStack() as stack:
            yield PostgresSession(*_without_server_text(lambda: self._open(stack, columns, joins)))

    def _open(
        self, stack: ExitStack, columns: Collection[int], joins: Sequence[PlannedJoin]
    ) -> tuple[Connection, list[tuple[str, str]]]:
        parts = _public_parts(joins)
        connection = stack.enter_context(connect(self._address, self._registration.source))
        own = len(self._registration.schema.columns)
        rows = select_postgres(connection, self._registration, [place for place in columns if place < own])
        parts.append(("source", joined_source(rows, joins, columns, POSTGRES)))
        return connection, parts


def _without_server_text(work: Callable[[], _Result]) -> _Result:
    """Do it; psycopg's errors become one constant error.

    It is raised outside the handler, and not from a context manager's exit: neither the server's text nor a chained
    cause or context leaves, as both may quote the data.
    """
    import duckdb
    import psycopg

    try:
        return work()
    except (psycopg.Error, duckdb.Error, OSError, MemoryError):
        pass
    raise EngineError("engine", "could not run the query; its cost stays spent")


class PostgresSession:
    """Statements over one snapshot of the table. See `discreet.engines.engine.Session`.

    Args:
        connection: in whose transaction all is read.
        parts: names and texts of the first parts of every WITH; the last is ``source``.
    """

    def __init__(self, connection: Connection, parts: Sequence[tuple[str, str]]) -> None:
        self._connection = connection
        self._parts = parts
        self._keys: list[tuple[str | None, ...]] = []

    def totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The exact totals of a plan's measurements. Private.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_server_text(lambda: self._read_totals(statement))

    def _read_totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        self._check_keys(statement.keys)
        found: dict[int, Int128Array] = {}
        for result in statement.results:
            names = ", ".join(f"CAST(COALESCE(m{i}, 0) AS text)" for i in measured(result))
            outer = f"SELECT CAST(g AS bigint), {names} FROM ({POSTGRES.sql(result.select)}) AS totals"
            # In hand: exact totals of the groups that have rows. Private.
            found.update(spread(self._rows(statement.keys, statement.steps, outer), result))
        return tuple(found[i] for i in range(len(found)))

    def candidates(self, statement: SelectionStatement) -> Int128Array:
        """The exact number of units counted in each group that has one. Private, and so is how many there are.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_server_text(lambda: self._read_candidates(statement))

    def _read_candidates(self, statement: SelectionStatement) -> Int128Array:
        self._check_keys(statement.keys)
        names = "".join(f", {_readable(f'e{n}', type_)}" for n, type_ in enumerate(statement.types))
        rows = self._rows(statement.keys, statement.steps, f"SELECT CAST(d AS bigint){names} FROM candidates")
        # The keys stay in this session until it is known which of them are released.
        self._keys = [row[1:] for row in rows]
        return Int128Array.from_int64(np.array([row[0] for row in rows], dtype=np.int64))

    def keys(self, statement: SelectionStatement, places: NDArray[np.int64]) -> tuple[tuple[Scalar, ...], ...]:
        """The keys of the candidates at those places, which have been released; in no order."""
        return tuple(from_texts(self._keys[place], statement.types) for place in places.tolist())

    def _check_keys(self, keys: Sequence[KeyTable]) -> None:
        """Every sensitivity rests on a row standing in one group at most: see `engines.duckdb`."""
        for table in keys:
            names = ", ".join(f"k{place}" for place in range(len(table.types)))
            repeated = f"SELECT 1 FROM ({_key_rows(table)}) AS listed GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1"
            if self._connection.execute(repeated.encode()).fetchone() is not None:
                rule = "two of them are one and the same value to the engine; the query's cost stays spent"
                raise EngineError("keys", rule)

    def _rows(
        self, keys: Sequence[KeyTable], steps: Sequence[tuple[str, exp.Expr]], select: str
    ) -> list[tuple[Any, ...]]:
        # Steps that nothing refers to are not computed. The rows are read anew by each that needs them, not kept.
        parts = [*((table.name, _key_rows(table)) for table in keys), *self._parts]
        parts += [(name, POSTGRES.sql(step)) for name, step in steps]
        written = ", ".join(
            f"{name} AS {'NOT MATERIALIZED' if name == 'source' else 'MATERIALIZED'} ({text})" for name, text in parts
        )
        return self._connection.execute(f"WITH {written} {select}".encode()).fetchall()


# --- tables that are handed over --------------------------------------------------------------------------------------


def _array(values: Sequence[str | None]) -> str:
    """An array of texts as one constant: far quicker to parse than as many of them."""
    escaped = (
        "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' for value in values
    )
    return f"CAST({quoted('{' + ','.join(escaped) + '}')} AS text[])"


def _handed_over(columns: Sequence[tuple[str, Type, Sequence[str | None]]], index: str = "") -> str:
    """A SELECT of the rows that lie in columns of texts, which are cast to their types."""
    typed = [
        f"CAST(t{n} AS {type_name(type_)}){' COLLATE ' + chr(34) + 'C' + chr(34) if type_.kind is Kind.TEXT else ''} "
        f"AS {name}"
        for n, (name, type_, _) in enumerate(columns)
    ]
    arrays = ", ".join(_array(values) for _, _, values in columns)
    names = ", ".join(f"t{n}" for n in range(len(columns)))
    first = [f"place - 1 AS {index}"] if index else []
    return f"SELECT {', '.join([*first, *typed])} FROM unnest({arrays}) WITH ORDINALITY AS given({names}, place)"


def _key_rows(table: KeyTable) -> str:
    rows = key_texts(table)
    columns = [(f"k{place}", type_, [row[place] for row in rows]) for place, type_ in enumerate(table.types)]
    return _handed_over(columns, index="i")


def _public_parts(joins: Sequence[PlannedJoin]) -> list[tuple[str, str]]:
    """The public tables of joins, read here and handed over."""
    return [
        (name, _handed_over([(column, type_, [row[n] for row in rows]) for n, (column, type_) in enumerate(columns)]))
        for name, columns, rows in public_texts(joins)
    ]


# --- keys that come back ----------------------------------------------------------------------------------------------


def _readable(name: str, type_: Type) -> str:
    """A key as a text that Python reads whatever the value: times in microseconds."""
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return f"CAST(CAST(extract(epoch FROM {name}) * 1000000 AS bigint) AS text)"
    return f"CAST({name} AS text)"
