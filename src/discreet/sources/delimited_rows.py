"""The rows of a registered CSV or TSV source: each file by its own header, all under the registered columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.schema import Registration
from discreet.sources.cells import CellRules, present, typed
from discreet.sources.dialect import Dialect
from discreet.sources.lines import LineFile, first_line, lines_sql
from discreet.sources.preparing import create_view, line_files, partition_places, view_name
from discreet.sources.sql_text import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Key", "Layout", "attach_delimited", "cells_sql", "column_keys", "select_delimited"]

Key = tuple[str, int]
"""A column of a file: its name in the header, and which of the columns of that name it is, from 0."""


@dataclass(frozen=True)
class Layout:
    """Files whose records look alike.

    Attributes:
        header: the line that names the columns, left out wherever it stands (joined files do not count it as
            a row); None if there is none.
        fields: how many a record has; any other line is a bad record.
        places: for each registered column, its place among the fields; None where it is absent.
        files: with these records.
    """

    header: str | None
    fields: int
    places: tuple[int | None, ...]
    files: tuple[LineFile, ...]


def column_keys(header: Sequence[str]) -> list[Key]:
    """The columns that a header names, in order."""
    names = [name.strip() for name in header]
    return [(name, names[:i].count(name)) for i, name in enumerate(names)]


def attach_delimited(connection: DuckDBPyConnection, registration: Registration) -> None:
    """Make the texts of all cells known to the connection: columns ``t{i}``, and ``k{i}`` of the folders' keys.

    A registered column that a file does not have is missing there; one that it has besides is not read.

    Raises:
        SourceError: if a file is gone or cannot be read.
    """
    reader, view = registration.reader, view_name(registration.source)
    dialect = Dialect.from_reader(reader)
    files = line_files(connection, reader, view)
    layouts: dict[str | None, Layout] = {}
    wanted = [(name, number) for name, number in reader["columns"]]
    for file in files:
        if not reader["header"]:
            header, fields = None, len(wanted)
            places: tuple[int | None, ...] = tuple(range(len(wanted)))
        else:
            line = first_line(file)
            if line is None:
                continue
            header = line
            keys = column_keys(dialect.fields(line) or [])
            fields = len(keys)
            places = tuple(keys.index(key) if key in keys else None for key in wanted)
        known = layouts.get(header)
        layouts[header] = Layout(header, fields, places, (*(known.files if known else ()), file))
    select = cells_sql(list(layouts.values()), reader, len(wanted))
    create_view(connection, view, select)


def cells_sql(
    layouts: Sequence[Layout],
    reader: Mapping[str, Any],
    columns: int,
    *,
    limit: int | None = None,
    raw: bool = False,
) -> str:
    """A SELECT of the texts ``t{i}`` and the keys ``k{i}`` of every record of the layouts' files.

    With `raw`, instead, of every line that is not blank: ``line``, and ``f``, the list of its fields.
    """
    dialect = Dialect.from_reader(reader)
    names = [] if raw else [name for _, name in reader["partitions"]]
    keys = "".join(f", k{k}" for k in range(len(names)))
    parts = []
    for layout in layouts:
        skip = "" if layout.header is None else f" AND line <> {literal(layout.header)}"
        split, kept = dialect.fields_sql("line"), ", line" if raw else keys
        rows = f"SELECT {split} AS f{kept} FROM ({lines_sql(layout.files, names)}) WHERE line IS NOT NULL{skip}"
        if raw:
            parts.append(rows)
            continue
        texts = [
            f"{'CAST(NULL AS VARCHAR)' if place is None else dialect.field_sql('f', place)} AS t{i}"
            for i, place in enumerate(layout.places)
        ]
        cut = "" if limit is None else f" LIMIT {limit}"
        parts.append(f"SELECT {', '.join(texts)}{keys} FROM ({rows}) WHERE LEN(f) = {layout.fields}{cut}")
    if not parts:
        nothing = [f"CAST(NULL AS VARCHAR) AS t{i}" for i in range(columns)]
        nothing += [f"CAST(NULL AS VARCHAR) AS k{k}" for k in range(len(names))]
        return f"SELECT {', '.join(nothing)} WHERE FALSE"
    return parts[0] if len(parts) == 1 else " UNION ALL ".join(f"({part})" for part in parts)


def select_delimited(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered source's columns ``c{i}`` from what `attach_delimited` made."""
    reader = registration.reader
    rules, folders = CellRules.from_reader(reader), partition_places(reader)
    parts = []
    for i in sorted(columns):
        type_ = registration.schema.columns[i].type
        if i in folders:
            parts.append(f"{typed(f'k{folders[i]}', type_, CellRules(empty=False))} AS c{i}")
        else:
            parts.append(f"{typed(present(f't{i}', rules), type_, rules)} AS c{i}")
    return f"SELECT {', '.join(parts) or '1 AS one'} FROM {view_name(registration.source)}"
