"""Spark: the rows stay where they are, only grouped totals come here.

A query has a session of its own beside the one that it was given. The needed columns are read once and kept until its
end, so that all statements see the same rows, and a lazy plan runs once. Parquet files of this machine are read in
place by each statement, which is quicker, and must be the same files in the end.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from discreet.engines.duckdb_connection import check_zones
from discreet.engines.spark_session import fresh, pyspark_or_hint, session_at, silent
from discreet.engines.texts import from_texts, key_texts, measured, public_texts, spread
from discreet.errors import EngineError
from discreet.laplace.limbs import Int128Array
from discreet.plan import PlannedJoin
from discreet.query import Scalar
from discreet.quirks import Quirks
from discreet.quirks.spark import SPARK
from discreet.quirks.spark_statements import quoted, type_name
from discreet.relational import KeyTable, Statement
from discreet.relational_joins import joined_source
from discreet.relational_selection import SelectionStatement
from discreet.schema import Kind, Registration, Type
from discreet.sources import frame_at, select_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["SparkEngine", "SparkQuery"]

_Result = TypeVar("_Result")
_NUMBERS = itertools.count()


class SparkEngine:
    """Runs statements over one registered table, files or frame.

    Args:
        registration: which, and its types.
        access: the frame itself, or the address of the master.
    """

    quirks: Quirks = SPARK

    def __init__(self, registration: Registration, access: object) -> None:
        pyspark_or_hint()
        self._registration = registration
        self._access = access

    def check(self, zones: Collection[str]) -> None:
        """See `discreet.engines.engine.Engine.check`."""
        check_zones(zones)
        _without_engine_text(lambda: self._frame().schema)

    def ahead(self) -> AbstractContextManager[None]:
        """See `discreet.engines.engine.Engine.ahead`: nothing."""
        return nullcontext()

    def run(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The totals of one statement, in a session of its own."""
        with self.session(statement.columns, statement.joins) as session:
            return session.totals(statement)

    @contextmanager
    def session(self, columns: Collection[int], joins: Sequence[PlannedJoin] = ()) -> Iterator[SparkQuery]:
        """See `discreet.engines.engine.Engine.session`."""
        with ExitStack() as stack:
            version = _without_engine_text(self._version)
            opened = _without_engine_text(lambda: self._open(stack, columns, joins, keep=version is None))
            yield SparkQuery(opened, lambda: self._version() == version)

    def _frame(self) -> Any:
        if isinstance(self._access, str):
            table, schema = self._registration.reader["table"], self._registration.schema
            return frame_at(fresh(session_at(self._access)), table, schema)
        return self._access

    def _version(self) -> tuple[tuple[str, int, int, int], ...] | None:
        """What tells one version of Parquet files of this machine from another; None for what is no such files."""
        table = self._registration.reader["table"] if isinstance(self._access, str) else ""
        kind, _, path = table.partition(".")
        if kind != "parquet" or "://" in path or not Path(path).exists():
            return None
        files = [Path(path)] if Path(path).is_file() else sorted(Path(path).rglob("*"))
        status = ((str(file), file.stat()) for file in files if file.is_file())
        return tuple((name, found.st_ino, found.st_size, found.st_mtime_ns) for name, found in status)

    def _open(
        self, stack: ExitStack, columns: Collection[int], joins: Sequence[PlannedJoin], *, keep: bool
    ) -> SparkSession:
        frame: DataFrame = self._frame()
        session = fresh(frame.sparkSession)
        lent = f"discreet_{next(_NUMBERS)}"
        frame.createGlobalTempView(lent)
        stack.callback(_quietly, lambda: session.catalog.dropGlobalTempView(lent))
        _lend_public(session, joins)
        own = len(self._registration.schema.columns)
        private = [place for place in columns if place < own]
        rows = select_spark(frame, self._registration, private, f"global_temp.{lent}")
        source = session.sql(joined_source(rows, joins, columns, SPARK))
        if keep:
            source.persist()
            stack.callback(_quietly, lambda: source.unpersist(blocking=True))
        source.createOrReplaceTempView("source")
        return session


def _quietly(work: Callable[[], object]) -> None:
    """Do it; that it fails changes nothing."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with silent():
            work()
    except (PySparkException, Py4JError, OSError):
        return


def _without_engine_text(work: Callable[[], _Result]) -> _Result:
    """Do it; Spark's errors become one constant error.

    It is raised outside the handler, and not from a context manager's exit: neither the engine's text nor a chained
    cause or context leaves, as both may quote the data.
    """
    import duckdb
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        with silent():
            return work()
    except (PySparkException, Py4JError, duckdb.Error, OSError, MemoryError):
        pass
    raise EngineError("engine", "could not run the query; its cost stays spent")


class SparkQuery:
    """Statements over one snapshot of the source. See `discreet.engines.engine.Session`.

    Args:
        session: where ``source`` is a view.
        unchanged: whether the source is still the one that was opened.
    """

    def __init__(self, session: SparkSession, unchanged: Callable[[], bool]) -> None:
        self._session = session
        self._unchanged = unchanged
        self._keys: list[tuple[str | None, ...]] = []

    def totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The exact totals of a plan's measurements. Private.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_engine_text(lambda: self._read_totals(statement))

    def _read_totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        self._create(statement.keys, statement.steps)
        found: dict[int, Int128Array] = {}
        for result in statement.results:
            names = ", ".join(f"CAST(COALESCE(m{i}, 0) AS STRING)" for i in measured(result))
            rows = self._rows(f"SELECT CAST(g AS BIGINT), {names} FROM ({SPARK.sql(result.select)}) AS totals")
            # In hand: exact totals of the groups that have rows. Private.
            found.update(spread(rows, result))
        self._check_unchanged()
        return tuple(found[i] for i in range(len(found)))

    def candidates(self, statement: SelectionStatement) -> Int128Array:
        """The exact number of units counted in each group that has one. Private, and so is how many there are.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        return _without_engine_text(lambda: self._read_candidates(statement))

    def _read_candidates(self, statement: SelectionStatement) -> Int128Array:
        self._create(statement.keys, statement.steps)
        names = "".join(f", {_readable(f'e{n}', type_)}" for n, type_ in enumerate(statement.types))
        rows = self._rows(f"SELECT CAST(d AS BIGINT){names} FROM candidates")
        # The keys stay in this session until it is known which of them are released.
        self._keys = [row[1:] for row in rows]
        self._check_unchanged()
        return Int128Array.from_int64(np.array([row[0] for row in rows], dtype=np.int64))

    def keys(self, statement: SelectionStatement, places: NDArray[np.int64]) -> tuple[tuple[Scalar, ...], ...]:
        """The keys of the candidates at those places, which have been released; in no order."""
        return tuple(from_texts(self._keys[place], statement.types) for place in places.tolist())

    def _check_unchanged(self) -> None:
        """Weights, groups and totals must come of one version of the files: every sensitivity rests on it."""
        if not self._unchanged():
            raise EngineError("source", "was changed while it was read; the query's cost stays spent")

    def _create(self, keys: Sequence[KeyTable], steps: Sequence[tuple[str, exp.Expr]]) -> None:
        for table in keys:
            self._view(table.name, _key_rows(table))
            # Every sensitivity rests on a row standing in one group at most: see `engines.duckdb`.
            names = ", ".join(f"k{place}" for place in range(len(table.types)))
            if self._rows(f"SELECT 1 FROM {table.name} GROUP BY {names} HAVING COUNT(*) > 1 LIMIT 1"):
                rule = "two of them are one and the same value to the engine; the query's cost stays spent"
                raise EngineError("keys", rule)
        for name, step in steps:
            self._view(name, SPARK.sql(step))

    def _view(self, name: str, text: str) -> None:
        self._session.sql(text).createOrReplaceTempView(name)

    def _rows(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._session.sql(text).collect()]


# --- tables that are handed over --------------------------------------------------------------------------------------


def _handed_over(columns: Sequence[tuple[str, Type]], rows: Sequence[Sequence[str | None]], index: str = "") -> str:
    """A SELECT of rows of texts, which are cast to their types: one constant, far quicker to parse than as many."""
    names = [f"t{n}" for n in range(len(columns))]
    given = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    shape = ", ".join(f"{name}: STRING" for name in names)
    typed = [
        f"CAST(given.{t} AS {type_name(type_)}) AS {name}" for t, (name, type_) in zip(names, columns, strict=True)
    ]
    first = [f"CAST(place AS BIGINT) AS {index}"] if index else []
    exploded = f"SELECT posexplode(from_json({quoted(given)}, 'array<struct<{shape}>>')) AS (place, given)"
    return f"SELECT {', '.join([*first, *typed])} FROM ({exploded}) AS handed"


def _key_rows(table: KeyTable) -> str:
    columns = [(f"k{place}", type_) for place, type_ in enumerate(table.types)]
    return _handed_over(columns, key_texts(table), index="i")


def _lend_public(session: SparkSession, joins: Sequence[PlannedJoin]) -> None:
    """The public tables of joins, read here and handed over."""
    for name, columns, rows in public_texts(joins):
        session.sql(_handed_over(columns, rows)).createOrReplaceTempView(name)


# --- keys that come back ----------------------------------------------------------------------------------------------


def _readable(name: str, type_: Type) -> str:
    """A key as a text that Python reads whatever the value: times in microseconds."""
    if type_.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        return f"CAST(unix_micros(CAST({name} AS TIMESTAMP)) AS STRING)"
    return f"CAST({name} AS STRING)"
