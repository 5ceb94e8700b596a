"""Registering a source: the owner's act, which reads all of it once and fixes names, types and reading."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from discreet.engines.duckdb_connection import connect
from discreet.errors import SourceError, UsageError
from discreet.schema import Registration
from discreet.sources.delimited import inspect_delimited
from discreet.sources.duckdb_tables import inspect_duckdb
from discreet.sources.files import sizes
from discreet.sources.frames import check_names_of, frame_types, inspect_frame, lend
from discreet.sources.inspection import Inspection
from discreet.sources.json_lines import inspect_json
from discreet.sources.location import Location, locate
from discreet.sources.logs import inspect_log
from discreet.sources.options import ReadOptions, read_options
from discreet.sources.parquet import inspect_parquet
from discreet.sources.progress import reading_bytes, running_passes
from discreet.sources.spark_tables import inspect_spark, inspect_spark_frame, is_spark_frame
from discreet.sources.sqlite_tables import inspect_sqlite

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from pyspark.sql import DataFrame

__all__ = [
    "check_frame",
    "check_stored",
    "describe",
    "inspect_source",
    "register",
    "register_frame",
    "stored_reading",
]

_INSPECT = {
    "csv": inspect_delimited,
    "duckdb": inspect_duckdb,
    "jsonl": inspect_json,
    "log": inspect_log,
    "parquet": inspect_parquet,
    "sqlite": inspect_sqlite,
}


def _inspect_postgres(source: Location, settled: ReadOptions) -> Inspection:
    from discreet.sources.postgres_tables import inspect_postgres

    return inspect_postgres(source, settled)


_INSPECT_SERVER = {"postgres": _inspect_postgres, "spark": inspect_spark}


def register(source: Location | str | os.PathLike[str], **options: Any) -> Registration:
    """Read the whole source once and fix what it is.

    Args:
        source: a path, or what `locate` made of it.
        **options: of `read_options`, which names and explains each: types, header, names, delimiter, quote,
            escape, null_values, decimal, thousands, timezone, year, encoding, records, log_format, table,
            partitions, strict, expect.

    Raises:
        SourceError: if the source cannot be read as one table.
        UsageError: for an option that is not valid.
    """
    return inspect_source(source, **options).registration


def inspect_source(source: Location | str | os.PathLike[str], **options: Any) -> Inspection:
    """`register`, together with what the owner may want to see: bad records, and notes on the types.

    Raises:
        SourceError, UsageError: as `register`.
    """
    settled = read_options(**options)
    if not isinstance(source, Location):
        source = locate(source, format=None if settled.log_format is None else "log", table=settled.table)
    if source.problem is not None:
        raise source.problem
    settled.check_format(source.format)
    if source.format in _INSPECT_SERVER:
        found = _INSPECT_SERVER[source.format](source, settled)
        reader = {**found.registration.reader, "options": {}}
        return replace(found, registration=replace(found.registration, reader=reader))
    with connect() as connection:
        if (
            settled.timezone is not None
            and not connection.execute(
                "SELECT 1 FROM PG_TIMEZONE_NAMES() WHERE name = ?", [settled.timezone]
            ).fetchall()
        ):
            raise UsageError("timezone", "is not a known time zone", settled.timezone, hint="Asia/Tokyo, UTC, ...")
        found = _inspected(connection, source, settled)
    reader = {**found.registration.reader, "options": dict(settled.given)}
    return replace(found, registration=replace(found.registration, reader=reader))


def _inspected(connection: DuckDBPyConnection, source: Location, options: ReadOptions) -> Inspection:
    import duckdb

    try:
        with running_passes(connection), reading_bytes("reading", lambda: sizes(source.to_reader())):
            return _INSPECT[source.format](connection, source, options)
    except duckdb.Error:
        pass  # its text may quote the data
    raise SourceError(source.thing, "cannot be read: it is damaged, or was changed meanwhile", hint="try again")


def register_frame(frame: object, name: str, *, types: Mapping[str, str] | None = None) -> Registration:
    """Fix the columns and types of a pandas, Polars or Arrow frame, known from now on as ``frame:NAME``.

    Raises:
        SourceError: if it is no such frame, or cannot be read.
        UsageError: for an empty name, or declared types that do not fit.
    """
    if not name or not name.strip():
        raise UsageError("name", "must not be empty: the budget of the frame is found by it", name)
    if is_spark_frame(frame):
        settled = read_options(types=dict(types or {}))
        return inspect_spark_frame(cast("DataFrame", frame), f"frame:{name}", settled).registration
    with connect() as connection:
        return inspect_frame(connection, frame, name, frame_types(dict(types or {})))[0]


def check_frame(registration: Registration, frame: object, *, types: Mapping[str, str] | None = None) -> None:
    """Refuse a frame that cannot be read as the registered one, before anything is asked about it.

    No type is inferred and no value looked at: columns that are absent, and values that do not fit the stored
    types, are missing.

    Raises:
        SourceError: if it is no frame, or of a kind that cannot be read.
        UsageError: for declared types that are not the stored ones.
    """
    stored = {column.name: column.type for column in registration.schema.columns}
    for name, declared in frame_types(dict(types or {})).items():
        if name not in stored:
            raise UsageError("types", f"there is no such column; there are {', '.join(list(stored)[:20])}", name)
        if declared != stored[name]:
            raise UsageError(f"type of {name!r}", f"is {stored[name]}, fixed at registration", str(declared))
    if is_spark_frame(frame) is not (registration.format == "spark"):
        rule = "was registered as a frame of Spark" if registration.format == "spark" else "was no frame of Spark"
        raise UsageError(registration.source, rule, hint="give this frame another name")
    if registration.format == "spark":
        return
    check_names_of(frame, registration.source)
    with connect() as connection:
        lend(connection, registration, frame)


def check_stored(registration: Registration, **options: Any) -> None:
    """Refuse options of a later opening that say something else than what is stored.

    Args:
        registration: as stored.
        **options: as of `register`.

    Raises:
        UsageError: naming both, or as `register`.
    """
    asked = read_options(**options)
    asked.check_format(registration.format)
    stored = registration.reader.get("options", {})
    for name, value in asked.given.items():
        known = stored[name] if name in stored else registration.reader.get(name)
        if name == "table" and registration.format == "spark":
            continue  # it is part of the identity
        if name == "table" and registration.format == "postgres":
            value = value if "." in value else f"public.{value}"
        if name == "names":
            known = [column.name for column in registration.schema.columns[: len(value)]]
        if known != value:
            none = known is None or (known == [] and name != "records")  # [] is the whole document
            was = "without it" if none else f"with {_shown(known)}"
            hint = "leave it out, or register it anew: discreet refresh SOURCE"
            raise UsageError(name, f"was registered {was}; how a source is read is fixed then", _shown(value), hint)
    for column, type_ in asked.types.items():
        position = registration.schema.position(column)
        if position is None:
            raise UsageError("types", "names an unknown column", column)
        known_type = registration.schema.columns[position].type
        if type_ != known_type:
            hint = "register it anew: discreet refresh SOURCE"
            raise UsageError(f"type of {column!r}", f"was registered as {known_type}", str(type_), hint)


def stored_reading(registration: Registration) -> dict[str, Any]:
    """How a source was read when it was registered, as `register` takes it; without its types."""
    options = dict(registration.reader.get("options", {}))
    if "records" in options:
        options["records"] = ".".join(json.dumps(key) for key in options["records"]) or "$"
    return options


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(str(part) for part in value) or "$"
    return str(value)


def describe(registration: Registration) -> list[str]:
    """What a registration says, in lines: one on the source, one for each column. Holds no data."""
    reader = registration.reader
    about = {
        "csv": "delimited text",
        "jsonl": "JSON lines",
        "log": "log",
        "parquet": "Parquet",
        "duckdb": "DuckDB table",
        "sqlite": "SQLite table",
        "postgres": "PostgreSQL table",
        "spark": "table or files of Spark",
        "frame": "data frame",
    }
    text = about[registration.format]
    if registration.format == "jsonl" and reader["records"] is not None:
        text = "JSON documents"
    if registration.format == "log":
        text = f"{reader['log_format']} log"
    if registration.format == "csv":
        mark = {"\t": "tab", ",": "comma", ";": "semicolon"}.get(reader["delimiter"], repr(reader["delimiter"]))
        text += f" ({mark}, {'with' if reader['header'] else 'no'} header)"
    columns = registration.schema.columns
    head = f"{registration.source}: {text}, {len(columns)} column{'' if len(columns) == 1 else 's'}"
    return [head, *(f"  {column.name}: {column.type}" for column in columns)]
