"""DuckDB: the default engine, in this process."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.bins import level_totals
from discreet.engines.duckdb_connection import OpenedAhead, check_zones, connect, memory_limit_in_force
from discreet.errors import EngineError
from discreet.laplace.limbs import Int128Array
from discreet.plan import PlannedJoin
from discreet.public_tables import load_public
from discreet.query import Scalar
from discreet.quirks import DUCKDB, Quirks
from discreet.relational import Dense, KeyTable, Result, Statement
from discreet.relational_joins import joined_source
from discreet.relational_selection import SelectionStatement
from discreet.schema import Kind, Registration, Type
from discreet.sources import attach, check_there, fingerprint, is_read_in_place, relation

if TYPE_CHECKING:
    import duckdb

__all__ = ["DuckDBEngine", "DuckDBSession"]

# A total lies within +-2^126. Shifted to be positive it is divided into a signed upper and an unsigned lower
# half of 64 bits: DuckDB hands 128-bit integers to NumPy as doubles, which would not be exact.
_SHIFT = 2**126
_HALF = 2**64

_DENSE_BITS = 20
"""Whole numbers that span less than 2^20 are joined (see `DuckDBSession._choose`) and grouped by their place, without
hashing. For grouping, DuckDB wants to be told; a count is 8 bytes a place and thread."""

_Limb = TypeVar("_Limb", np.int64, np.uint64)
_Result = TypeVar("_Result")


class DuckDBEngine:
    """Runs statements over one registered source.

    Args:
        registration: how the source is read and typed.
        frame: the data frame itself, if the source is one.
        threads: at most so many; None for all cores. No total depends on it.
    """

    quirks: Quirks = DUCKDB

    def __init__(self, registration: Registration, frame: object = None, *, threads: int | None = None) -> None:
        self._registration = registration
        self._frame = frame
        self._threads = threads
        self._ahead: OpenedAhead | None = None

    def check(self, zones: Collection[str]) -> None:
        """See `discreet.engines.engine.Engine.check`."""
        memory_limit_in_force()
        check_zones(zones)
        check_there(self._registration)

    @contextmanager
    def ahead(self) -> Iterator[None]:
        """See `discreet.engines.engine.Engine.ahead`."""
        with OpenedAhead(self._threads) as self._ahead:
            try:
                yield
            finally:
                self._ahead = None

    def run(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The totals of one statement, in a session of its own."""
        with self.session(statement.columns, statement.joins) as session:
            return session.totals(statement)

    @contextmanager
    def session(self, columns: Collection[int], joins: Sequence[PlannedJoin] = ()) -> Iterator[DuckDBSession]:
        """See `discreet.engines.engine.Engine.session`."""
        with ExitStack() as stack:
            yield DuckDBSession(*_without_engine_text(lambda: self._open(stack, columns, joins)))

    def _open(
        self, stack: ExitStack, columns: Collection[int], joins: Sequence[PlannedJoin]
    ) -> tuple[duckdb.DuckDBPyConnection, Callable[[], bool]]:
        ahead, self._ahead = self._ahead, None
        connection = stack.enter_context(ahead.lend() if ahead else connect(threads=self._threads))
        load_public(connection, joins)
        own = len(self._registration.schema.columns)
        private = [place for place in columns if place < own]
        attach(connection, self._registration, self._frame, private)
        version = fingerprint(self._registration)
        source = joined_source(relation(self._registration, private), joins, columns)
        # Text is parsed once and kept in a table for this query, so that every step reads one snapshot; Parquet
        # and frames are read in place.
        kept = "VIEW" if is_read_in_place(self._registration) else "TABLE"
        connection.execute(f"CREATE TEMP {kept} source AS {source}")
        return connection, lambda: fingerprint(self._registration) == version


def _without_engine_text(work: Callable[[], _Result]) -> _Result:
    """Do it; DuckDB's errors become one constant error.

    It is raised outside the handler, and not from a context manager's exit: neither the engine's text nor a chained
    cause or context leaves, as both may quote the data.
    """
    import duckdb

    try:
        return work()
    except (duckdb.Error, OSError, MemoryError):
        pass
    raise EngineError("engine", "could not run the query; its cost stays spent")


class DuckDBSession:
    """Statements over one snapshot of the source. See `discreet.engines.engine.Session`.

    Args:
        connection: on which ``source`` is ready.
        unchanged: whether the source is still the one that was opened.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, unchanged: Callable[[], bool]) -> None:
        self._connection = connection
        self._unchanged = unchanged

    def totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The exact totals of a plan's measurements. Private.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_engine_text(lambda: self._read_totals(statement))

    def _read_totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        found: dict[int, Int128Array] = {}
        steps, results = list(statement.steps), statement.results
        self._create(statement.keys)
        if statement.dense is not None:
            steps, results = self._choose(statement.dense, steps, results)
        self._create((), steps)
        for result in results:
            found.update(_totals(self._connection, result))
        made = [name for name, _ in steps] + (["units"] if statement.dense else [])
        self._drop([table.name for table in statement.keys] + made)
        self._check_unchanged()
        return tuple(found[i] for i in range(len(found)))

    def _choose(
        self, dense: Dense, steps: list[tuple[str, exp.Select]], results: tuple[Result, ...]
    ) -> tuple[list[tuple[str, exp.Select]], tuple[Result, ...]]:
        """The way that is quicker here: both give the same totals, so only the time tells which it was (and the time
        of the engine is not protected). DuckDB looks whole numbers up by their place, without hashing, in an inner join
        whose smaller side spans at most so many of them."""
        self._connection.execute(f"SET perfect_ht_threshold = {_DENSE_BITS}")
        self._create((), [("units", dense.units)])
        self._connection.execute("RESET perfect_ht_threshold")
        # As doubles: the difference of two 64-bit numbers may not fit 64 bits.
        span = f"SELECT coalesce(CAST(max(u0) AS DOUBLE) - min(u0) < {2**_DENSE_BITS}, TRUE) FROM units"
        found = self._connection.execute(span).fetchone()
        others = [(name, select) for name, select in steps if name != "heavy"]
        if found is not None and found[0]:
            return others, dense.results
        return [("heavy", dense.heavy), *others], results

    def candidates(self, statement: SelectionStatement) -> Int128Array:
        """The exact number of units counted in each group that has one. Private, and so is how many there are.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_engine_text(lambda: self._read_candidates(statement))

    def _read_candidates(self, statement: SelectionStatement) -> Int128Array:
        self._create(statement.keys, statement.steps)
        self._drop([table.name for table in statement.keys] + [name for name, _ in statement.steps[:-1]])
        counted = self._connection.execute("SELECT CAST(d AS BIGINT) AS d FROM candidates ORDER BY i").fetchnumpy()
        self._check_unchanged()
        return Int128Array.from_int64(np.asarray(counted["d"], dtype=np.int64))

    def keys(self, statement: SelectionStatement, places: NDArray[np.int64]) -> tuple[tuple[Scalar, ...], ...]:
        """The keys of the candidates at those places, which have been released; in no order.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_engine_text(lambda: self._read_keys(statement, places))

    def _read_keys(self, statement: SelectionStatement, places: NDArray[np.int64]) -> tuple[tuple[Scalar, ...], ...]:
        columns = ", ".join(_readable(f"e{n}", type_) for n, type_ in enumerate(statement.types))
        chosen = "SELECT unnest(CAST(? AS BIGINT[]))"
        text = f"SELECT {columns} FROM candidates WHERE i IN ({chosen})"
        rows = self._connection.execute(text, [places.tolist()]).fetchall()
        return tuple(
            tuple(_from_readable(value, type_) for value, type_ in zip(row, statement.types, strict=True))
            for row in rows
        )

    def _check_unchanged(self) -> None:
        """The weights of one version bound nothing in another: what was read of two is not used."""
        if not self._unchanged():
            raise EngineError("source", "was changed while it was read; the query's cost stays spent")

    def _create(self, keys: Sequence[KeyTable], steps: Sequence[tuple[str, exp.Expr]] = ()) -> None:
        for table in keys:
            _load_keys(self._connection, table)
        for name, select in steps:
            self._connection.execute(f"CREATE TEMP TABLE {name} AS {select.sql(dialect='duckdb')}")

    def _drop(self, names: Sequence[str]) -> None:
        for name in names:
            self._connection.execute(f"DROP TABLE {name}")


def _readable(name: str, type_: Type) -> str:
    """A key in a form that Python reads whatever the value: numbers and text as they are, times in microseconds."""
    match type_.kind:
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"epoch_us({name})"
        case Kind.DATE | Kind.DECIMAL:
            return f"CAST({name} AS VARCHAR)"
        case _:
            return name


_EPOCH = datetime.datetime(1970, 1, 1)


def _from_readable(value: Any, type_: Type) -> Scalar:
    match type_.kind:
        case _ if value is None:
            return None
        case Kind.TIMESTAMP:
            return _EPOCH + datetime.timedelta(microseconds=value)
        case Kind.TIMESTAMPTZ:
            return _EPOCH.replace(tzinfo=datetime.UTC) + datetime.timedelta(microseconds=value)
        case Kind.DATE:
            return datetime.date.fromisoformat(value)
        case Kind.DECIMAL:
            return Decimal(value)
        case _:
            return value  # type: ignore[no-any-return]


def _load_keys(connection: duckdb.DuckDBPyConnection, table: KeyTable) -> None:
    """Every key is handed over as text, so that none is rounded on the way."""
    columns = ", ".join(f"k{place} {type_}" for place, type_ in enumerate(table.types))
    connection.execute(f"CREATE TEMP TABLE {table.name} (i BIGINT, {columns})")
    cast = ", ".join(f"CAST(unnest(CAST(? AS VARCHAR[])) AS {type_})" for type_ in table.types)
    texts = [[_key_text(row[place]) for row in table.rows] for place in range(len(table.types))]
    # In row order: the position of a key in the list is its index.
    connection.execute(f"INSERT INTO {table.name} SELECT unnest(range(?)), {cast}", [len(table.rows), *texts])
    # Every sensitivity rests on a row standing in one group at most. The keys were told apart before the engine's own
    # cast; if the cast made two of them one, a row would count in both groups.
    names = ", ".join(f"k{place}" for place in range(len(table.types)))
    repeated = f"SELECT 1 FROM {table.name} GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1"
    if connection.execute(repeated).fetchone() is not None:
        raise EngineError("keys", "two of them are one and the same value to the engine; the query's cost stays spent")


def _key_text(value: Scalar) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _totals(connection: duckdb.DuckDBPyConnection, result: Result) -> dict[int, Int128Array]:
    # Of a tree only the leaves come from the engine.
    measured = result.measurements if result.bins is None else result.measurements[-1:]
    names = [f"m{i}" for i in measured]
    shifted = {name: f"CAST(coalesce({name}, 0) AS HUGEINT) + {_SHIFT}" for name in names}
    halves = ", ".join(
        # Shifts: a division of 128-bit integers takes thirty times as long.
        f"CAST(({x}) >> 64 AS BIGINT) AS {name}_high, CAST(({x}) & {_HALF - 1} AS UBIGINT) AS {name}_low"
        for name, x in shifted.items()
    )
    text = f"SELECT CAST(g AS BIGINT) AS g, {halves} FROM ({result.select.sql(dialect='duckdb')})"
    # In hand: exact totals of the groups that have rows. Private.
    columns = connection.execute(text).fetchnumpy()
    places = np.asarray(columns["g"], dtype=np.int64)
    totals = [
        Int128Array(
            _spread(columns[f"{name}_high"], places, result.cells, np.int64(_SHIFT // _HALF)),
            _spread(columns[f"{name}_low"], places, result.cells, np.uint64(0)),
        )
        for name in names
    ]
    if result.bins is not None:
        return dict(zip(result.measurements, level_totals(totals[0], result.bins), strict=True))
    return dict(zip(result.measurements, totals, strict=True))


def _spread(values: NDArray[_Limb], places: NDArray[np.int64], cells: int, offset: _Limb) -> NDArray[_Limb]:
    """One limb of every total; places that are not given are 0. Takes the shift off the upper limb."""
    spread = np.zeros(cells, dtype=type(offset))
    spread[places] = np.asarray(values, dtype=type(offset)) - offset
    return spread
