"""Data frames in memory: registering one, and lending it to a connection.

A frame is lent under columns ``c0``, ``c1``, ... whatever its own names are. Columns of Python objects, in
which any value may stand, are lent as text and cast like every other text, so that no value can make a query
raise.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError, UsageError
from discreet.schema import FLOAT, INTEGER, TEXT, Column, Kind, Registration, Schema, Type, parse_type
from discreet.sources.engine_types import fields, missing, value
from discreet.sources.objects import column_texts, column_type
from discreet.sources.preparing import create_view, view_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["check_names_of", "frame_types", "inspect_frame", "lend", "select_frame"]


def inspect_frame(
    connection: DuckDBPyConnection, frame: object, name: str, types: dict[str, Type]
) -> tuple[Registration, int]:
    """Register a frame by name; also how many rows it has.

    Raises:
        SourceError: for something that is no frame, that can be read only once, or whose names repeat; for a
            Polars or Arrow frame where pyarrow is missing.
        UsageError: for a declared type of a column that does not exist.
    """
    thing = f"frame {name!r}"
    names = check_names_of(frame, thing)
    if not names:
        raise SourceError(thing, "has no columns that can be asked about")
    view = view_name(f"frame:{name}")
    lent, objects = _lent(frame, names, thing)
    own = {i: column_type(values, f"{thing}, column {names[i]!r}") for i, values in objects.items()}
    _register(connection, view, lent, names, thing)
    described = connection.sql(f"FROM {view}")
    columns: list[Column] = []
    paths: list[list[str]] = []
    for field in fields(described.columns, described.types):
        position = int(field.path[0][1:])
        shown = ".".join((names[position], *field.path[1:]))
        columns.append(Column(shown, types.get(shown, own.get(position, field.type))))
        paths.append(list(field.path))
    for declared in types:
        if declared not in [column.name for column in columns]:
            shown = ", ".join(column.name for column in columns[:20])
            raise UsageError("types", f"there is no such column; there are {shown}", declared)
    counted = connection.execute(f"SELECT COUNT(*) FROM {view}").fetchone()
    reader = {"columns": names, "paths": paths}
    return Registration(f"frame:{name}", "frame", Schema(tuple(columns)), reader), counted[0] if counted else 0


def lend(connection: DuckDBPyConnection, registration: Registration, frame: object) -> None:
    """Make `frame` known to the connection under the name that `select_frame` uses.

    The stored schema decides, not the values: a registered column that the frame no longer has is missing
    everywhere, a value that does not fit the stored type is missing.

    Raises:
        SourceError: if it cannot be read at all, whatever its values.
    """
    names, paths = list(registration.reader["columns"]), registration.reader["paths"]
    view = view_name(registration.source)
    lent, _ = _lent(frame, names, registration.source)
    _register(connection, f"{view}_lent", lent, names, registration.source)
    described = connection.sql(f"FROM {view}_lent")
    there = {field.path: field.type for field in fields(described.columns, described.types)}
    parts = []
    for i, column in enumerate(registration.schema.columns):
        path = tuple(paths[i])
        if len(path) > 1 and path not in there:
            text = missing(column.type)
        elif column.type == TEXT and there.get(path) == FLOAT:
            text = _double_text(path)
        else:
            text = value(path, column.type)
        parts.append(f"{text} AS c{i}")
    create_view(connection, view, f"SELECT {', '.join(parts)} FROM {view}_lent")


def select_frame(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a lent frame's columns ``c{i}``."""
    chosen = ", ".join(f"c{i}" for i in sorted(columns))
    return f"SELECT {chosen or '1 AS one'} FROM {view_name(registration.source)}"


def check_names_of(frame: object, thing: str) -> list[str]:
    """The frame's columns, in order.

    Raises:
        SourceError: for something that is no frame, that can be read only once, or whose names repeat.
    """
    names = _names(frame, thing)
    for i, column in enumerate(names):
        if column in names[:i]:
            twice = f"column {column!r} appears twice (positions {names.index(column) + 1} and {i + 1})"
            raise SourceError(thing, twice, hint="rename one of them")
    return names


def _double_text(path: Sequence[str]) -> str:
    """A double as text, whole ones as whole numbers.

    pandas turns whole numbers into doubles where one of them is missing; they must not all read 1.0 for 1 then.
    """
    text, whole = value(path, TEXT), value(path, INTEGER)
    double = value(path, FLOAT)
    return f"CASE WHEN {double} = TRY_CAST({whole} AS DOUBLE) THEN CAST({whole} AS VARCHAR) ELSE {text} END"


def _register(connection: DuckDBPyConnection, view: str, lent: Any, names: Sequence[str], thing: str) -> None:
    """Make `lent` known to the connection.

    Raises:
        SourceError: naming the column, for an Arrow type that DuckDB does not read.
    """
    if hasattr(lent, "schema"):
        empty = lent.schema.empty_table()
        if not _readable(connection, empty):
            for i, column in enumerate(names):
                if not _readable(connection, empty.select([i])):
                    rule = f"column {column!r} is {empty.schema.types[i]}, which cannot be read"
                    raise SourceError(thing, rule, hint="cast it first, to float64 or decimal128")
    connection.register(view, lent)


def _readable(connection: DuckDBPyConnection, empty: object) -> bool:
    import duckdb

    try:
        connection.from_arrow(empty).fetchall()
    except duckdb.Error:
        return False
    return True


def _lent(frame: Any, names: Sequence[str], thing: str) -> tuple[object, dict[int, list[Any]]]:
    """What DuckDB can read, its columns renamed, and the values of those that became text on the way."""
    module = type(frame).__module__.split(".")[0]
    if module == "pandas":
        return _lent_pandas(frame, names)
    try:
        import pyarrow as pa
    except ImportError:
        raise SourceError(
            thing, "Polars and Arrow frames are read through pyarrow", hint="pip install 'discreet[frames]'"
        ) from None
    if module == "polars":
        if hasattr(frame, "collect"):
            frame = _collected(frame, thing)
        # Arrow has no Python objects; they cannot be asked about here either.
        frame = frame.select([column for column in frame.columns if str(frame.schema[column]) != "Object"])
        frame = frame.to_arrow()
    table = None
    try:
        table = pa.table(frame)
        table.validate(full=True)
        valid = True
    except (pa.ArrowException, TypeError, ValueError):
        valid = False
    if table is None or not valid:
        # Outside the handler: Arrow's own text may quote the data, and would be found as this error's context.
        raise SourceError(thing, "is not a valid Arrow table")
    present = set(table.column_names)
    columns = [table.column(name) if name in present else pa.nulls(table.num_rows) for name in names]
    return pa.table(columns, names=[f"c{i}" for i in range(len(names))]), {}


def _collected(frame: Any, thing: str) -> Any:
    """A lazy frame computed.

    Raises:
        SourceError: with a constant text; Polars' own may quote the data.
    """
    import polars as pl

    try:
        return frame.collect()
    except (pl.exceptions.PolarsError, OSError):
        pass
    raise SourceError(thing, "is a lazy frame that cannot be computed", hint="collect it first")


def _lent_pandas(frame: Any, names: Sequence[str]) -> tuple[object, dict[int, list[Any]]]:
    import pandas as pd

    objects: dict[int, list[Any]] = {}
    columns: dict[str, Any] = {}
    shown = [str(name) for name in frame.columns]
    for i, name in enumerate(names):
        if name not in shown:
            columns[f"c{i}"] = pd.Series([None] * len(frame), dtype=object)
            continue
        series = frame.iloc[:, shown.index(name)].reset_index(drop=True)
        if not _engine_reads(series.dtype):
            values = series.tolist()
            objects[i] = values
            series = pd.Series(column_texts(values), dtype=object)
        columns[f"c{i}"] = series
    return pd.DataFrame(columns, index=pd.RangeIndex(len(frame))), objects


def _engine_reads(dtype: Any) -> bool:
    """Whether DuckDB reads a pandas column of this type by itself, whatever its values."""
    kind, name = getattr(dtype, "kind", "O"), str(dtype)
    if name.startswith("datetime64"):
        return True
    if type(dtype).__module__.startswith("numpy"):
        return kind in "biu" or (kind == "f" and dtype.itemsize in (4, 8)) or kind == "m"
    return name in ("boolean", "Float32", "Float64") or name.lstrip("U").startswith("Int")


def _names(frame: Any, thing: str) -> list[str]:
    module = type(frame).__module__.split(".")[0]
    if type(frame).__name__ in ("RecordBatchReader", "Scanner", "ArrowArrayStream"):
        raise SourceError(thing, "can be read only once", hint="make a table of it first: .read_all()")
    if module == "pandas":
        if getattr(frame, "ndim", 0) != 2:
            raise SourceError(thing, "must be a frame, not a single column", hint="series.to_frame()")
        if frame.columns.nlevels > 1:
            raise SourceError(thing, "its columns have several levels", hint="flatten them first")
        return [str(name) for name in frame.columns]
    if module == "polars" and hasattr(frame, "collect_schema"):
        schema = frame.collect_schema()
        return [name for name in schema if str(schema[name]) != "Object"]
    if hasattr(frame, "schema") and hasattr(frame.schema, "names"):
        return [str(name) for name in frame.schema.names]
    if hasattr(frame, "__arrow_c_stream__"):
        try:
            import pyarrow as pa
        except ImportError:
            raise SourceError(
                thing, "Arrow tables are read through pyarrow", hint="pip install 'discreet[frames]'"
            ) from None
        return [str(name) for name in pa.table(frame).column_names]
    raise SourceError(thing, "is no pandas, Polars or Arrow table", type(frame).__name__)


def frame_types(types: dict[str, str]) -> dict[str, Type]:
    """Declared types by name.

    Raises:
        UsageError: for one that is not known or cannot be asked about.
    """
    declared = {name: parse_type(text, thing=f"type of {name!r}") for name, text in types.items()}
    for name, type_ in declared.items():
        if type_.kind is Kind.OTHER:
            raise UsageError(f"type of {name!r}", "must be one that can be asked about", str(type_))
    return declared
