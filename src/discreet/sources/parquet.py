"""Parquet files: registering one, and the rows of a registered one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError, UsageError
from discreet.schema import Registration, Schema
from discreet.sources.engine_types import fields, value
from discreet.sources.inference import Finding
from discreet.sources.inspection import Inspection, check_names, settle_types
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.sql_text import one_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["inspect_parquet", "select_parquet"]


def inspect_parquet(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register a Parquet file. Its own types are taken, so nothing but the footer is read.

    Raises:
        SourceError: for a file that is not Parquet, or whose names are the same but for case.
        UsageError: for options that mean something for text files only.
    """
    import duckdb

    thing = f"source {location.path!r}"
    _no_text_options(options)
    try:
        described = connection.sql(f"FROM {_table({'path': location.path})}")
        names, types = described.columns, described.types
        own = _own_names(connection, location.path)
        counted = connection.execute(f"SELECT COUNT(*) FROM {_table({'path': location.path})}").fetchone()
    except duckdb.Error:
        raise SourceError(thing, "is not a Parquet file that can be read, or is damaged") from None
    check_names(thing, own, fix="rename one of them in the file")
    found = list(fields(names, types))
    shown = [".".join(field.path) for field in found]
    check_names(thing, shown, fix="rename one of them in the file")
    columns, notes = settle_types(thing, shown, [Finding(field.type, 0) for field in found], options)
    reader: dict[str, Any] = {"path": location.path, "paths": [list(field.path) for field in found]}
    registration = Registration(location.source, "parquet", Schema(columns), reader)
    return Inspection(registration, counted[0] if counted else 0, 0, tuple(notes))


def select_parquet(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered file's columns ``c{i}``."""
    reader = registration.reader
    parts = [f"{value(reader['paths'][i], registration.schema.columns[i].type)} AS c{i}" for i in sorted(columns)]
    return f"SELECT {', '.join(parts) or '1 AS one'} FROM {_table(reader)}"


def _table(reader: Mapping[str, Any]) -> str:
    # A text that is not UTF-8 would make the reader raise; replaced, it changes no other value.
    return f"READ_PARQUET({one_file(reader['path'])}, hive_partitioning = FALSE, utf8_validation = 'replace')"


def _own_names(connection: DuckDBPyConnection, path: str) -> list[str]:
    """The names of the top-level columns, read from the footer's depth-first list of nodes."""
    nodes = connection.execute(f"SELECT name, num_children FROM PARQUET_SCHEMA({one_file(path)})").fetchall()
    names: list[str] = []
    i = 1  # the first node is the root
    while i < len(nodes):
        names.append(nodes[i][0])
        pending = 1
        while pending:
            pending += (nodes[i][1] or 0) - 1
            i += 1
    return names


def _no_text_options(options: ReadOptions) -> None:
    for name in ("header", "names", "delimiter", "quote", "escape", "encoding", "timezone"):
        if getattr(options, name) is not None:
            raise UsageError(name, "is for text files; a Parquet file says it itself", getattr(options, name))
    if options.null_values or options.thousands or options.decimal != ".":
        raise UsageError("null_values, decimal and thousands", "are for text files")
