"""Tables of DuckDB files: registering one, and its rows. The file is opened read-only.

Views and generated columns are left out: their expressions are the owner's own SQL, in which one record may
raise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError
from discreet.schema import Registration, Schema
from discreet.sources.engine_types import fields, missing, value
from discreet.sources.files import source_files
from discreet.sources.inference import Finding
from discreet.sources.inspection import Inspection, check_names, settle_types
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.preparing import create_view, view_name
from discreet.sources.sql_text import identifier, literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["attach_duckdb", "choose_table", "inspect_duckdb", "select_duckdb"]


def inspect_duckdb(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register a table of a DuckDB file. Its own types are taken; no row is read.

    Raises:
        SourceError: if the file cannot be opened, or there is no such table.
    """
    reader: dict[str, Any] = {**location.to_reader(), "partitions": []}
    database = _open(connection, reader, location.source)
    tables = [
        name if schema == "main" else f"{schema}.{name}"
        for schema, name in connection.execute(
            "SELECT schema_name, table_name FROM DUCKDB_TABLES() WHERE database_name = ? AND NOT internal ORDER BY ALL",
            [database],
        ).fetchall()
    ]
    reader["table"] = choose_table(location, tables)
    generated = connection.execute(
        "SELECT column_name FROM information_schema.columns WHERE table_catalog = ? AND table_schema = ? "
        "AND table_name = ? AND is_generated <> 'NEVER' ORDER BY ALL",
        [database, *_parts(reader["table"])],
    ).fetchall()
    left_out = {name for (name,) in generated}
    described = connection.sql(f"FROM {_table(database, reader)}")
    found = [x for x in fields(described.columns, described.types) if x.path[0] not in left_out]
    shown = [".".join(field.path) for field in found]
    check_names(location.thing, shown, fix="rename one of them")
    columns, notes = settle_types(location.thing, shown, [Finding(field.type, 0) for field in found], options)
    notes += [f"column {name!r} is computed in the database, and left out" for name in sorted(left_out)]
    counted = connection.execute(f"SELECT COUNT(*) FROM {_table(database, reader)}").fetchone()
    reader["paths"] = [list(field.path) for field in found]
    registration = Registration(location.source, "duckdb", Schema(columns), reader)
    return Inspection(registration, counted[0] if counted else 0, 0, tuple(notes))


def attach_duckdb(connection: DuckDBPyConnection, registration: Registration) -> None:
    """Make the typed columns ``c{i}`` known to the connection. A column that is gone is missing.

    Raises:
        SourceError: if the file or the table is gone, or another process writes to the file.
    """
    import duckdb

    reader = registration.reader
    database = _open(connection, reader, registration.source)
    described = None
    with suppress(duckdb.Error):
        described = connection.sql(f"FROM {_table(database, reader)}")
    if described is None:
        # Outside the handler: the engine's text would be found as this error's context.
        raise SourceError(registration.source, "the registered table is gone")
    there = {field.path for field in fields(described.columns, described.types)}
    values = []
    for i, column in enumerate(registration.schema.columns):
        path = tuple(reader["paths"][i])
        text = value(path, column.type) if path in there else missing(column.type)
        values.append(f"{text} AS c{i}")
    create_view(
        connection, view_name(registration.source), f"SELECT {', '.join(values)} FROM {_table(database, reader)}"
    )


def select_duckdb(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered table's columns ``c{i}`` from what `attach_duckdb` made."""
    chosen = ", ".join(f"c{i}" for i in sorted(columns))
    return f"SELECT {chosen or '1 AS one'} FROM {view_name(registration.source)}"


def choose_table(location: Location, tables: list[str]) -> str:
    """The table that the owner named, as the database spells it.

    Raises:
        SourceError: naming those there are.
    """
    shown = ", ".join(tables[:20]) or "none"
    if location.table is None:
        raise SourceError(
            location.thing,
            f"is a database; say which table: there are {shown}",
            hint="FILE::TABLE, or --table TABLE (Python: table=)",
        )
    if location.table not in tables:
        raise SourceError(location.thing, f"there is no such table; there are {shown}", location.table)
    return location.table


def _open(connection: DuckDBPyConnection, reader: Mapping[str, Any], source: str) -> str:
    import duckdb

    name = f"{view_name(source)}_db"
    (file,) = source_files(reader)
    with suppress(duckdb.Error):
        connection.execute(f"ATTACH IF NOT EXISTS {literal(file.path)} AS {name} (TYPE duckdb, READ_ONLY)")
        return name
    # Outside the handler, as above.
    raise SourceError(
        f"source {file.path!r}",
        "cannot be opened as a DuckDB file: it is something else, or another process has it open for writing",
    )


def _parts(table: str) -> tuple[str, str]:
    schema, dot, name = table.partition(".")
    return (schema, name) if dot else ("main", schema)


def _table(database: str, reader: Mapping[str, Any]) -> str:
    schema, name = _parts(reader["table"])
    return f"{database}.{identifier(schema)}.{identifier(name)}"
