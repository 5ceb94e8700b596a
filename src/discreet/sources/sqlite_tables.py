"""Tables of SQLite files, read by Python's own module (the engine's would have to be downloaded).

A column of SQLite may hold anything in any row, so a table is streamed as texts, read-only and in one snapshot,
into the connection's private folder, and typed there like every other text.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from discreet.errors import SourceError
from discreet.schema import BOOLEAN, OTHER, Registration, Schema
from discreet.sources.cells import CellRules, present, typed
from discreet.sources.duckdb_tables import choose_table
from discreet.sources.files import source_files
from discreet.sources.inference import NUMBERS, TIMES, Finding, infer
from discreet.sources.inspection import Inspection, check_names, settle_types
from discreet.sources.lines import LineFile, lines_sql
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.preparing import create_view, temp_folder, view_name

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["attach_sqlite", "inspect_sqlite", "select_sqlite"]

_BATCH = 10_000


def inspect_sqlite(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register a table of a SQLite file; its types are those of all its values, not those it declares.

    Raises:
        SourceError: if the file cannot be read, or there is no such table.
    """
    thing, view = location.thing, view_name(location.source)
    rules = CellRules(empty=False, null_values=options.null_values, timezone=options.timezone)
    reader: dict[str, Any] = {**location.to_reader(), "partitions": [], **rules.to_reader()}
    with _opened(reader) as database:
        reader["table"] = choose_table(location, _tables(database))
        declared = _columns(database, reader["table"])
        reader["columns"] = names = list(declared)
        kinds = _write(connection, database, reader, range(len(names)), view)
    check_names(thing, names, fix="rename one of them")
    texts = [present(f"t{i}", rules) for i in range(len(names))]
    classes = [_classes(kind) for kind in kinds]
    findings = infer(connection, _cells(view, range(len(names))), texts, rules, classes)
    for i, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        whole = findings[i].present and kind == {"int"}
        if whole and declared[name].upper().startswith("BOOL") and _only_bits(connection, view, i, len(names)):
            findings[i] = Finding(BOOLEAN, findings[i].present)
        elif kind == {"bytes"}:
            findings[i] = Finding(OTHER, 0)
    columns, notes = settle_types(thing, names, findings, options)
    counted = connection.execute(f"SELECT COUNT(*) FROM {view}").fetchone()
    registration = Registration(location.source, "sqlite", Schema(columns), reader)
    return Inspection(registration, counted[0] if counted else 0, 0, tuple(notes))


def attach_sqlite(connection: DuckDBPyConnection, registration: Registration, columns: Collection[int]) -> None:
    """Stream the columns into the connection's folder, and make their texts ``t{i}`` known to it.

    Raises:
        SourceError: if the file or the table is gone, or cannot be read.
    """
    reader = registration.reader
    with _opened(reader) as database:
        _write(connection, database, reader, sorted(columns), view_name(registration.source))


def select_sqlite(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered table's columns ``c{i}``, of those that `attach_sqlite` streamed."""
    rules, wanted = CellRules.from_reader(registration.reader), sorted(columns)
    types = [column.type for column in registration.schema.columns]
    parts = [f"{typed(present(f't{i}', rules), types[i], rules)} AS c{i}" for i in wanted]
    view = view_name(registration.source)
    return f"SELECT {', '.join(parts) or '1 AS one'} FROM ({_cells(view, wanted)})"


def _cells(view: str, columns: Sequence[int]) -> str:
    """The view holds the list of each row's streamed texts; ``t{i}`` is that of column i."""
    texts = ", ".join(f"f[{k + 1}] AS t{i}" for k, i in enumerate(columns))
    return f"SELECT {texts or '1 AS one'} FROM {view}"


@contextlib.contextmanager
def _opened(reader: Mapping[str, Any]) -> Iterator[sqlite3.Connection]:
    """The database, read-only.

    Raises:
        SourceError: with a text that quotes nothing, if it cannot be read.
    """
    (file,) = source_files(reader)
    failed = False
    try:
        database = sqlite3.connect(f"file:{quote(file.path)}?mode=ro", uri=True)
        try:
            database.text_factory = _text
            yield database
        finally:
            database.close()
    except sqlite3.Error:
        failed = True
    if failed:
        rule = "cannot be read as a SQLite file: it is something else, damaged or locked, or its table is gone"
        raise SourceError(f"source {file.path!r}", rule)


def _text(raw: bytes) -> str | None:
    """A text that is not UTF-8 is missing."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None


def _tables(database: sqlite3.Connection) -> list[str]:
    found = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    # A virtual table runs a module's code.
    return [
        name for name, sql in found if not name.startswith("sqlite_") and "VIRTUAL" not in str(sql).upper().split()[:2]
    ]


def _columns(database: sqlite3.Connection, table: str) -> dict[str, str]:
    """The declared type of each stored column. Computed ones may raise, and are left out."""
    found = database.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
    return {name: declared or "" for _, name, declared, _, _, _, hidden in found if hidden == 0}


def _write(
    connection: DuckDBPyConnection,
    database: sqlite3.Connection,
    reader: Mapping[str, Any],
    columns: Sequence[int],
    view: str,
) -> list[set[str]]:
    """Stream the columns as one JSON list of texts a row; gives the kinds of values in each."""
    names = [reader["columns"][i] for i in columns]
    there = _columns(database, reader["table"])
    # A column that is gone is missing. Double quotes alone would make a text of an unknown name.
    wanted = ", ".join(_quoted(name) if name in there else "NULL" for name in names) or "1"
    rows = database.execute(f"SELECT {wanted} FROM {_quoted(reader['table'])}")
    kinds: list[set[type]] = [set() for _ in names]
    target = temp_folder(connection, view) / "table.lists"
    with Path(target).open("w", encoding="utf-8", newline="\n") as file:
        while batch := rows.fetchmany(_BATCH):
            for values, seen in zip(zip(*batch, strict=True), kinds, strict=False):
                seen.update(map(type, values))
            file.writelines(json.dumps([_cell(value) for value in row], ensure_ascii=False) + "\n" for row in batch)
    lines = lines_sql([LineFile(str(target), "none")])
    create_view(
        connection, view, f"SELECT CAST(CAST(line AS JSON) AS VARCHAR[]) AS f FROM ({lines}) WHERE line IS NOT NULL"
    )
    return [{kind.__name__ for kind in seen if kind is not type(None)} for seen in kinds]


def _cell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return None if isinstance(value, bytes) else repr(value)


def _classes(kind: set[str]) -> tuple[str, ...]:
    if kind and kind <= {"int", "float"}:
        return NUMBERS
    return TIMES if kind == {"str"} else ()


def _only_bits(connection: DuckDBPyConnection, view: str, i: int, columns: int) -> bool:
    rows = _cells(view, range(columns))
    found = connection.execute(f"SELECT COUNT(*) FROM ({rows}) WHERE t{i} NOT IN ('0', '1')").fetchone()
    return found is not None and found[0] == 0


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
