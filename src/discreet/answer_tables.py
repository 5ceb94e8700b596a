"""An answer as an Arrow, pandas or Polars table, or as the bytes of a Parquet file: typed, also where it has no row.

The libraries are imported when they are asked for. Parquet is written by DuckDB and needs none of them.
"""

from __future__ import annotations

import datetime
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from discreet.answer import Answer, Value
from discreet.errors import UsageError
from discreet.schema import FLOAT, INTEGER, Kind, Type

__all__ = ["as_parquet", "to_arrow", "to_pandas", "to_polars"]

_INT64 = range(-(2**63), 2**63)
_WIDE = Type(Kind.DECIMAL, precision=38, scale=0)


def _columns(answer: Answer) -> list[tuple[str, Type, Sequence[Value]]]:
    """Names, types and values of all fields of a row."""
    found: list[tuple[str, Type, Sequence[Value]]] = []
    for column in answer.columns:
        type_ = column.type
        found.append((column.name, type_, column.values))
        if column.low is not None and column.high is not None:
            end = type_ if type_ == INTEGER or type_.kind.is_temporal else FLOAT
            found += [(f"{column.name}_low", end, column.low), (f"{column.name}_high", end, column.high)]
    # Whole numbers of more than 64 bits have no type of their own in any of these.
    return [(name, _WIDE if _is_wide(type_, values) else type_, values) for name, type_, values in found]


def _is_wide(type_: Type, values: Sequence[Value]) -> bool:
    whole = type_.kind is Kind.INTEGER
    return whole and (type_.bits > 64 or any(isinstance(v, int) and v not in _INT64 for v in values))


def _typed(value: Value, type_: Type) -> Any:
    if value is None:
        return None
    if type_.kind is Kind.FLOAT:
        return float(value)  # type: ignore[arg-type]
    return Decimal(value) if type_ == _WIDE and isinstance(value, int) else value


def _library(name: str, asked: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise UsageError(asked, f"needs the library {name}", hint="pip install 'discreet[frames]'") from None


def to_arrow(answer: Answer) -> Any:
    """See `Answer.to_arrow`."""
    pa = _library("pyarrow", "to_arrow")
    types = {
        Kind.BOOLEAN: pa.bool_(),
        Kind.INTEGER: pa.int64(),
        Kind.FLOAT: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.DATE: pa.date32(),
        Kind.TIMESTAMP: pa.timestamp("us"),
        Kind.TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    }
    fields, arrays = [], []
    for name, type_, values in _columns(answer):
        arrow = pa.decimal128(type_.precision, type_.scale) if type_.kind is Kind.DECIMAL else types[type_.kind]
        fields.append(pa.field(name, arrow))
        arrays.append(pa.array([_typed(value, type_) for value in values], arrow))
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def to_pandas(answer: Answer) -> Any:
    """See `Answer.to_pandas`."""
    pd = _library("pandas", "to_pandas")
    dtypes = {
        Kind.BOOLEAN: "boolean",
        Kind.INTEGER: "Int64",
        Kind.FLOAT: "float64",
        Kind.TIMESTAMP: "datetime64[us]",
        Kind.TIMESTAMPTZ: "datetime64[us, UTC]",
    }
    series = []
    for _, type_, values in _columns(answer):
        typed = [_typed(value, type_) for value in values]
        dtype = dtypes.get(type_.kind, "object")
        if dtype == "Int64" and None not in typed:
            dtype = "int64"
        series.append(pd.Series(typed, dtype=dtype))
    frame = pd.concat(series, axis=1)
    frame.columns = [name for name, _, _ in _columns(answer)]
    return frame


def to_polars(answer: Answer) -> Any:
    """See `Answer.to_polars`."""
    pl = _library("polars", "to_polars")
    types = {
        Kind.BOOLEAN: pl.Boolean,
        Kind.INTEGER: pl.Int64,
        Kind.FLOAT: pl.Float64,
        Kind.TEXT: pl.String,
        Kind.DATE: pl.Date,
        Kind.TIMESTAMP: pl.Datetime("us"),
        Kind.TIMESTAMPTZ: pl.Datetime("us", "UTC"),
    }
    series = []
    for name, type_, values in _columns(answer):
        dtype = pl.Decimal(type_.precision, type_.scale) if type_.kind is Kind.DECIMAL else types[type_.kind]
        series.append(pl.Series(name, [_typed(value, type_) for value in values], dtype=dtype))
    return pl.DataFrame(series)


def as_parquet(answer: Answer) -> bytes:
    """The bytes of a Parquet file: one row a group, in the order of the answer."""
    from discreet.engines.duckdb_connection import connect

    columns = _columns(answer)
    # Values travel as text, each cast to its type: none is rounded on the way.
    parts = [
        f"CAST(unnest(CAST(? AS VARCHAR[])) AS {type_}) AS " + '"' + name.replace('"', '""') + '"'
        for name, type_, _ in columns
    ]
    texts = [[_text(_typed(value, type_)) for value in values] for _, type_, values in columns]
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder, connect() as connection:
        path = Path(folder) / "answer.parquet"
        connection.execute("SET preserve_insertion_order = true")
        escaped = str(path).replace("'", "''")
        connection.execute(f"COPY (SELECT {', '.join(parts)}) TO '{escaped}' (FORMAT parquet)", texts)
        return path.read_bytes()


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)
