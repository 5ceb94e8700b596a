"""Parquet files: registering them, and the rows of registered ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError
from discreet.schema import Registration, Schema, Type
from discreet.sources.cells import CellRules, typed
from discreet.sources.engine_types import Field, fields, missing, reconciled, value
from discreet.sources.files import source_files
from discreet.sources.inference import Finding
from discreet.sources.inspection import Inspection, check_names, settle_types
from discreet.sources.lines import LineFile, key_columns
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.preparing import add_partitions, create_view, partition_places, presence_notes, view_name
from discreet.sources.sql_text import one_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["attach_parquet", "inspect_parquet", "select_parquet"]


@dataclass(frozen=True)
class _Layout:
    """Files with the same columns, of the same types."""

    files: tuple[LineFile, ...]
    names: tuple[str, ...]
    fields: tuple[Field, ...]


def inspect_parquet(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register Parquet files. Their own types are taken, so nothing but the footers is read.

    Raises:
        SourceError: for a file that is not Parquet, names that are the same but for case, or types of one
            column that no type holds exactly.
    """
    import duckdb

    thing = location.thing
    reader: dict[str, Any] = {**location.to_reader(), "partitions": []}
    files = _files(reader)
    try:
        layouts = _layouts(connection, files)
        counted = connection.execute(f"SELECT COUNT(*) FROM {_table(files)}").fetchone() if files else None
    except duckdb.Error:
        what = "is not a Parquet file" if len(files) == 1 else "holds a file that is not Parquet, or not one"
        raise SourceError(thing, f"{what} that can be read, or is damaged") from None
    found: dict[tuple[str, ...], list[Field]] = {}
    present: dict[str, int] = {}
    for layout in layouts:
        check_names(thing, layout.names, fix="rename one of them in the file")
        for field in layout.fields:
            found.setdefault(field.path, []).append(field)
            present[".".join(field.path)] = present.get(".".join(field.path), 0) + len(layout.files)
    shown = [".".join(path) for path in found]
    check_names(thing, shown, fix="rename one of them in the file")
    types = [_one_type(thing, name, some, options) for name, some in zip(shown, found.values(), strict=True)]
    partitions = add_partitions(thing, shown, reader, options)
    findings = [Finding(type_, 0) for type_ in types]
    columns, notes = settle_types(thing, shown, findings, options, others=partitions)
    notes += presence_notes(shown, present, len(files))
    reader["paths"] = [*(list(path) for path in found), *([] for _ in partitions)]
    registration = Registration(location.source, "parquet", Schema((*columns, *partitions)), reader)
    return Inspection(registration, counted[0] if counted else 0, 0, tuple(notes))


def attach_parquet(connection: DuckDBPyConnection, registration: Registration) -> None:
    """Make the typed columns ``c{i}`` known to the connection, each file read by its own types.

    A registered column that a file no longer has, or has as something else than a value, is missing there.

    Raises:
        SourceError: if a file is gone.
    """
    reader = registration.reader
    columns = registration.schema.columns
    folders = partition_places(reader)
    partitions = [name for _, name in reader["partitions"]]
    parts = []
    for layout in _layouts(connection, _files(reader)):
        there = {field.path for field in layout.fields}
        values = []
        for i, column in enumerate(columns):
            path = tuple(reader["paths"][i])
            if i in folders:
                text = typed(f"k{folders[i]}", column.type, CellRules(empty=False))
            else:
                text = value(path, column.type) if path in there else missing(column.type)
            values.append(f"{text} AS c{i}")
        keys = key_columns(layout.files, partitions)
        parts.append(f"SELECT {', '.join(values)} FROM (SELECT *{keys} FROM {_table(layout.files)})")
    if not parts:
        nothing = ", ".join(f"{missing(column.type)} AS c{i}" for i, column in enumerate(columns))
        parts.append(f"SELECT {nothing} WHERE FALSE")
    create_view(connection, view_name(registration.source), " UNION ALL ".join(parts))


def select_parquet(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered source's columns ``c{i}`` from what `attach_parquet` made."""
    chosen = ", ".join(f"c{i}" for i in sorted(columns))
    return f"SELECT {chosen or '1 AS one'} FROM {view_name(registration.source)}"


def _files(reader: Mapping[str, Any]) -> list[LineFile]:
    return [LineFile(file.path, "none", dict(file.keys), file.path) for file in source_files(reader)]


def _table(files: Sequence[LineFile]) -> str:
    # A text that is not UTF-8 would make the reader raise; replaced, it changes no other value.
    paths = ", ".join(one_file(file.path) for file in files)
    return f"READ_PARQUET([{paths}], hive_partitioning = FALSE, utf8_validation = 'replace')"


def _layouts(connection: DuckDBPyConnection, files: Sequence[LineFile]) -> list[_Layout]:
    """The files by what their footers say, in order of their first appearance."""
    groups: dict[tuple[Any, ...], list[LineFile]] = {}
    for file in files:
        nodes = connection.execute(
            "SELECT name, type, type_length, num_children, repetition_type, converted_type, scale, precision, "
            f"CAST(logical_type AS VARCHAR) FROM PARQUET_SCHEMA({one_file(file.path)})"
        ).fetchall()
        groups.setdefault(tuple(nodes), []).append(file)
    layouts = []
    for nodes_, some in groups.items():
        described = connection.sql(f"FROM {_table(some[:1])}")
        found = tuple(fields(described.columns, described.types))
        layouts.append(_Layout(tuple(some), tuple(_own_names(nodes_)), found))
    return layouts


def _own_names(nodes: Sequence[Sequence[Any]]) -> list[str]:
    """The names of the top-level columns, from the footer's depth-first list of nodes."""
    names: list[str] = []
    i = 1  # the first node is the root
    while i < len(nodes):
        names.append(nodes[i][0])
        pending = 1
        while pending:
            pending += (nodes[i][3] or 0) - 1
            i += 1
    return names


def _one_type(thing: str, name: str, found: Sequence[Field], options: ReadOptions) -> Type:
    if name in options.types:
        return options.types[name]
    type_ = reconciled(found)
    if type_ is None:
        kinds = ", ".join(dict.fromkeys(field.engine for field in found))
        raise SourceError(
            thing,
            f"column {name!r} has types that no one type holds exactly: {kinds}",
            hint=f"declare one: --types {name}=VARCHAR (Python: types=); values that do not fit it are missing",
        )
    return type_
