"""What Spark reads: data frames of a session, tables of its catalogue, files. Their types, and their rows as a SELECT.

Registering reads a schema; a frame's lazy plan is not run.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.spark_session import fresh, session_at, silent
from discreet.errors import SourceError, UsageError
from discreet.quirks.spark_statements import type_name
from discreet.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    INTEGER,
    OTHER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Column,
    Kind,
    Registration,
    Schema,
    Type,
)
from discreet.sources.inspection import Inspection, check_names
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = [
    "frame_at",
    "identify_spark",
    "inspect_spark",
    "inspect_spark_frame",
    "is_spark_frame",
    "is_spark_session",
    "select_spark",
]

_ADDRESS = re.compile(r"spark:(?://[^/:]+:\d+|local(?:\[(?:\d+|\*)\])?)", re.IGNORECASE)
_HINT = "spark:local::parquet./folder, spark:local::json./folder or spark://HOST:7077::schema.table"


def is_spark_frame(source: object) -> bool:
    """Whether it is a data frame of PySpark, which is not imported to know it."""
    return _is_classic(source, "DataFrame")


def is_spark_session(source: object) -> bool:
    """Whether it is a session of PySpark."""
    return _is_classic(source, "SparkSession")


def _is_classic(source: object, name: str) -> bool:
    """A thing of Spark Connect has the name too, and cannot be read: it has no session beside it to lend a frame to."""
    kind = type(source)
    if not kind.__module__.startswith("pyspark.sql") or kind.__name__ != name:
        return False
    if kind.__module__.startswith("pyspark.sql.connect"):
        raise SourceError(f"a {name} of Spark Connect", "cannot be read", hint="use a session in the driver's process")
    return True


def identify_spark(text: str, table: str | None) -> Location:
    """Identity of a table or of files. Connects to nothing.

    Files are the same whichever Spark reads them, and have one budget; a table of a catalogue is known by its master.

    Raises:
        UsageError: the address cannot be understood.
    """
    address, parted, after = text.partition("::")
    if parted and table is not None and table != after:
        raise UsageError("table", "is said twice, differently", f"{after} and {table}")
    table = after if parted else table
    if not _ADDRESS.fullmatch(address):
        raise UsageError("source", "is not the address of a Spark master", address, _HINT)
    if not table:
        raise UsageError("source", "is a Spark master; say which table or files", address, _HINT)
    master = address[6:] if not address.startswith("spark://") else address
    master = "local[*]" if master == "local" else master
    kind, dot, path = table.partition(".")
    if kind in ("parquet", "json") and dot and ("/" in path or path.startswith("~")):
        path = os.path.realpath(Path(path).expanduser()) if "://" not in path else path.rstrip("/")
        name = Path(path).name.split(".")[0] or "data"
        return Location(f"spark:{kind}:{path}", path, "spark", name, table=f"{kind}.{path}", address=master)
    if not all(re.fullmatch(r"\w+", part) for part in table.split(".")):
        raise UsageError("table", "must be a table's name, with or without its schema, or files", table, _HINT)
    full = (table if "." in table else f"default.{table}").lower()
    where = "local" if master.startswith("local") else master
    return Location(f"spark:table:{where}/{full}", "", "spark", full.rpartition(".")[2], table=full, address=master)


def frame_at(session: SparkSession, table: str, stored: Schema | None = None) -> DataFrame:
    """The frame of a table or of files. Reads a schema, unless it is given (of JSON, by reading all of it).

    Files are read by the stored schema, in a session of our own: types that Spark infers, from the rows of JSON and
    from the names of folders, would change with a person's row, and with them what is read of everybody. Folders' keys
    are text.

    Args:
        session: that will read.
        table: a table's name, or ``parquet.PATH`` or ``json.PATH``.
        stored: the registered schema, once there is one; what does not fit is missing.

    Raises:
        SourceError: it is not there, or cannot be read.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    kind, _, path = table.partition(".")
    with suppress(PySparkException, Py4JError), silent():
        if kind in ("parquet", "json") and "/" in path:
            own = fresh(session)
            reader = own.read if stored is None else own.read.schema(_as_native(stored))
            return reader.parquet(path) if kind == "parquet" else reader.json(path)
        return session.table(table)
    raise SourceError("source", "there is no such table, or Spark cannot read it", table)


def inspect_spark_frame(frame: DataFrame, source: str, options: ReadOptions, table: str | None = None) -> Inspection:
    """Register a frame: the names and types of its schema. No row is read.

    Raises:
        SourceError: names repeat.
        UsageError: a declared type that is another than Spark's.
    """
    fields = list(frame.schema.fields)
    check_names(source, [field.name for field in fields], fix="rename one of them")
    types = {field.name: _type(field.dataType) for field in fields}
    for name, declared in options.types.items():
        if name not in types:
            raise UsageError("types", f"there is no such column; there are {', '.join(list(types)[:20])}", name)
        if declared != types[name]:
            rule = f"is {types[name]} to Spark, which cannot be read as {declared}"
            raise UsageError(f"type of {name!r}", rule, hint="cast it in the frame")
    columns = tuple(Column(name, type_) for name, type_ in types.items())
    return Inspection(Registration(source, "spark", Schema(columns), {"table": table}), 0, 0, ())


def inspect_spark(location: Location, options: ReadOptions) -> Inspection:
    """Register a table or files.

    Raises:
        SourceError: it cannot be reached or read.
        UsageError: as `inspect_spark_frame`.
    """
    frame = frame_at(fresh(session_at(location.address)), location.table or "")
    return inspect_spark_frame(frame, location.source, options, location.table)


def _as_native(schema: Schema) -> str:
    """A schema as Spark reads it: values of other types, which cannot be asked about, as the text that they are."""
    columns = (("`" + column.name.replace("`", "``") + "`", type_name(column.type)) for column in schema.columns)
    return ", ".join(f"{name} {type_}" for name, type_ in columns)


def _type(native: Any) -> Type:
    name = native.typeName()
    if name == "decimal":
        return Type(Kind.DECIMAL, precision=native.precision, scale=native.scale)
    if name == "string" and getattr(native, "collation", "UTF8_BINARY") != "UTF8_BINARY":
        return OTHER
    return _TYPES.get(name, OTHER)


_RECAST = (Kind.BOOLEAN, Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.TEXT)
"""Between these, and from text to anything, TRY_CAST has a meaning."""

_TYPES: Mapping[str, Type] = {
    "boolean": BOOLEAN,
    **dict.fromkeys(("byte", "short", "integer", "long"), INTEGER),
    **dict.fromkeys(("float", "double"), FLOAT),
    **dict.fromkeys(("string", "varchar", "char"), TEXT),
    "date": DATE,
    "timestamp": TIMESTAMPTZ,
    "timestamp_ntz": TIMESTAMP,
}


def select_spark(frame: DataFrame, registration: Registration, columns: Collection[int], view: str) -> str:
    """The SELECT of the columns ``c{i}`` of a view that is the frame.

    Total: a column that is gone is missing, and so are times beyond the years 1 to 9999, and what does not fit the
    registered type where the frame has another one. Types that were inferred from rows may change with one of them,
    which must not change the others.
    """
    there = {field.name: _type(field.dataType) for field in frame.schema.fields}
    chosen = []
    for i in sorted(columns):
        column = registration.schema.columns[i]
        name = "`" + column.name.replace("`", "``") + "`"
        value = f"CAST({name} AS {type_name(column.type)})"
        found = there.get(column.name)
        if found is None or OTHER in (found, column.type):
            value = f"CAST(NULL AS {type_name(column.type)})"
        elif found != column.type:
            plain = found.kind in _RECAST and column.type.kind in _RECAST
            value = f"try_cast({name} AS {type_name(column.type)})" if plain or found == TEXT else "NULL"
            value = f"CAST({value} AS {type_name(column.type)})"
        elif column.type.kind is Kind.DATE:
            value = f"CASE WHEN {name} BETWEEN DATE'0001-01-01' AND DATE'9999-12-31' THEN {name} END"
        elif column.type.kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
            zone = "" if column.type.kind is Kind.TIMESTAMP else "+00:00"
            low, high = (
                f"CAST('{end}{zone}' AS {type_name(column.type)})"
                for end in ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")
            )
            value = f"CASE WHEN {name} BETWEEN {low} AND {high} THEN {name} END"
        chosen.append(f"{value} AS c{i}")
    return f"SELECT {', '.join(chosen) or '1 AS one'} FROM {view}"
