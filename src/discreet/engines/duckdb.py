"""DuckDB: the default engine, in this process."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.engines.duckdb_connection import connect
from discreet.errors import EngineError
from discreet.laplace.limbs import Int128Array
from discreet.query import Scalar
from discreet.relational import KeyTable, Result, Statement
from discreet.schema import Registration
from discreet.sources import attach, fingerprint, is_read_in_place, relation

if TYPE_CHECKING:
    import duckdb

__all__ = ["DuckDBEngine"]

# A total lies within +-2^126. Shifted to be positive it is divided into a signed upper and an unsigned lower
# half of 64 bits: DuckDB hands 128-bit integers to NumPy as doubles, which would not be exact.
_SHIFT = 2**126
_HALF = 2**64

_Limb = TypeVar("_Limb", np.int64, np.uint64)


class DuckDBEngine:
    """Runs statements over one registered source.

    Args:
        registration: how the source is read and typed.
        frame: the data frame itself, if the source is one.
    """

    def __init__(self, registration: Registration, frame: object = None) -> None:
        self._registration = registration
        self._frame = frame

    def run(self, statement: Statement) -> tuple[Int128Array, ...]:
        """See `discreet.engines.engine.Engine.run`.

        Raises:
            EngineError: with a constant text, whatever went wrong.
            SourceError: the registered file is gone.
        """
        import duckdb

        failed = False
        try:
            with connect() as connection:
                return self._run(connection, statement)
        except (duckdb.Error, OSError, MemoryError):
            failed = True
        if failed:
            # Raised outside the handler: neither the engine's text nor a chained cause leaves, as both may
            # quote the data.
            raise EngineError("engine", "could not run the query; its cost stays spent")
        raise AssertionError

    def _run(self, connection: duckdb.DuckDBPyConnection, statement: Statement) -> tuple[Int128Array, ...]:
        attach(connection, self._registration, self._frame)
        version = fingerprint(self._registration)
        source = relation(self._registration, statement.columns)
        # Text is parsed once and kept in a table for this query, so that every step reads one snapshot; Parquet
        # and frames are read in place.
        kept = "VIEW" if is_read_in_place(self._registration) else "TABLE"
        connection.execute(f"CREATE TEMP {kept} source AS {source}")
        for table in statement.keys:
            _load_keys(connection, table)
        for name, select in statement.steps:
            connection.execute(f"CREATE TEMP TABLE {name} AS {select.sql(dialect='duckdb')}")
        found: dict[int, Int128Array] = {}
        for result in statement.results:
            found.update(_totals(connection, result, statement.groups))
        if fingerprint(self._registration) != version:
            # The weights of one version bound nothing in another: what was read is not used.
            raise EngineError("source", "was changed while it was read; the query's cost stays spent")
        return tuple(found[i] for i in range(len(found)))


def _load_keys(connection: duckdb.DuckDBPyConnection, table: KeyTable) -> None:
    """Every key is handed over as text, so that none is rounded on the way."""
    columns = ", ".join(f"k{place} {type_}" for place, type_ in enumerate(table.types))
    connection.execute(f"CREATE TEMP TABLE {table.name} (i BIGINT, {columns})")
    cast = ", ".join(f"CAST(unnest(CAST(? AS VARCHAR[])) AS {type_})" for type_ in table.types)
    texts = [[_key_text(row[place]) for row in table.rows] for place in range(len(table.types))]
    # In row order: the position of a key in the list is its index.
    connection.execute(f"INSERT INTO {table.name} SELECT unnest(range(?)), {cast}", [len(table.rows), *texts])


def _key_text(value: Scalar) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _totals(connection: duckdb.DuckDBPyConnection, result: Result, groups: int) -> dict[int, Int128Array]:
    names = [f"m{i}" for i in result.measurements]
    shifted = {name: f"CAST(coalesce({name}, 0) AS HUGEINT) + {_SHIFT}" for name in names}
    halves = ", ".join(
        f"CAST(({x}) // {_HALF} AS BIGINT) AS {name}_high, CAST(({x}) % {_HALF} AS UBIGINT) AS {name}_low"
        for name, x in shifted.items()
    )
    text = f"SELECT CAST(g AS BIGINT) AS g, {halves} FROM ({result.select.sql(dialect='duckdb')})"
    # In hand: exact totals of the groups that have rows. Private.
    columns = connection.execute(text).fetchnumpy()
    places = np.asarray(columns["g"], dtype=np.int64)
    return {
        i: Int128Array(
            _spread(columns[f"{name}_high"], places, groups, np.int64(_SHIFT // _HALF)),
            _spread(columns[f"{name}_low"], places, groups, np.uint64(0)),
        )
        for i, name in zip(result.measurements, names, strict=True)
    }


def _spread(values: NDArray[_Limb], places: NDArray[np.int64], groups: int, offset: _Limb) -> NDArray[_Limb]:
    """One limb of every group's total; groups without rows are 0. Takes the shift off the upper limb."""
    spread = np.zeros(groups, dtype=type(offset))
    spread[places] = np.asarray(values, dtype=type(offset)) - offset
    return spread
