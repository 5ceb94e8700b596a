"""Public tables to be joined: opened when a query is planned, loaded anew, whole, for the query itself.

What is in them must be public knowledge. That their key is unique is what keeps each private row one row; it is checked
twice: when the query is planned, so that it can be refused before anything is charged, and in the very table that the
query joins.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from discreet.engines.duckdb_connection import connect
from discreet.errors import EngineError, RefusedError, UsageError
from discreet.plan import PlannedJoin, PublicTable
from discreet.relational_joins import join_name, repeated_keys
from discreet.schema import Registration
from discreet.sources import attach, is_address, locate, register, register_frame, relation, same_files

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["check_keys", "load_public", "open_public"]


def open_public(name: str, source: object, private: Registration, private_frame: object = None) -> PublicTable:
    """Read a public table once, to know its columns and its content.

    Args:
        name: what queries call it.
        source: a file, or a pandas, Polars or Arrow table.
        private: the private table, which is not public.
        private_frame: itself, if it is a frame.

    Raises:
        SourceError: it cannot be read.
        RefusedError: it is the private table itself.
        UsageError: a name that is none.
    """
    if not name.strip() or name.casefold() == "data":
        raise UsageError("public", "a public table must have a name of its own; data is the private one", name)
    if is_address(source):
        raise UsageError(f"public table {name!r}", "must be a file or a data frame, not a table of a server")
    if isinstance(source, str | os.PathLike):
        registration, frame = register(locate(source)), None
    else:
        registration, frame = register_frame(source, f"public {name}"), source
    if (frame is not None and frame is private_frame) or same_files(registration, private):
        raise RefusedError(f"public table {name!r}", "is the private table itself", hint="join public tables only")
    with connect() as connection:
        attach(connection, registration, frame)
        connection.execute(f"CREATE TEMP TABLE public AS {relation(registration)}")
        return PublicTable(name, registration, _content(connection, "public", registration), frame)


def check_keys(joins: Sequence[PlannedJoin]) -> None:
    """Refuse a join whose key is not unique; before anything is charged.

    Raises:
        RefusedError: a key stands twice in a public table.
    """
    for join in joins:
        with connect() as connection:
            attach(connection, join.table.registration, join.table.frame)
            connection.execute(f"CREATE TEMP TABLE public AS {relation(join.table.registration)}")
            if connection.execute(repeated_keys(join, "public")).fetchall():
                raise RefusedError(
                    f"JOIN with {join.table.name!r}",
                    "needs a key that is unique in the public table: with two rows of one key, one person's row would "
                    "count twice",
                    hint="make it unique, or join on more columns",
                )


def load_public(connection: DuckDBPyConnection, joins: Sequence[PlannedJoin]) -> None:
    """Load the tables that a plan joins; they must be the very ones it was made for.

    Raises:
        EngineError: one has changed since, or its key is not unique.
    """
    for i, join in enumerate(joins):
        registration, name = join.table.registration, join_name(i)
        attach(connection, registration, join.table.frame)
        connection.execute(f"CREATE TEMP TABLE {name} AS {relation(registration)}")
        repeated = connection.execute(repeated_keys(join, name)).fetchall()
        if repeated or _content(connection, name, registration) != join.table.content:
            rule = "was changed since the query was planned; the query's cost stays spent"
            raise EngineError(f"public table {join.table.name!r}", rule)


def _content(connection: DuckDBPyConnection, table: str, registration: Registration) -> str:
    """SHA-256 of all values, whatever the order of the rows."""
    parts = [
        f"coalesce(length(CAST(c{i} AS VARCHAR)) || ':' || CAST(c{i} AS VARCHAR), '-')"
        for i in range(len(registration.schema.columns))
    ]
    hashed = f"SELECT sha256({' || '.join(parts)}) AS h FROM {table}"
    joined = f"SELECT sha256(coalesce(string_agg(h, '' ORDER BY h), '')) FROM ({hashed})"
    return str(connection.execute(joined).fetchall()[0][0])
