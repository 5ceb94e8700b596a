"""A registered source as a SELECT, for every query."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import SourceError
from discreet.schema import Registration
from discreet.sources.delimited import select_delimited
from discreet.sources.frames import lend, select_frame
from discreet.sources.json_lines import below, select_json_lines
from discreet.sources.multiline import view_name, write_lists
from discreet.sources.parquet import select_parquet

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["attach", "extended", "relation"]


def relation(registration: Registration, columns: Collection[int] | None = None) -> str:
    """The SQL text of a SELECT that gives a registered source's columns as ``c0``, ``c1``, ... with their
    types.

    It is total: no record can make it raise, and no record changes how another one is read. What does not
    fit its column's type is NULL, NaN is NULL, lines that are no records are left out. Call `attach` first.

    Args:
        registration: of the source.
        columns: the positions that are needed; None for all. Each costs time, so name them.
    """
    wanted = range(len(registration.schema.columns)) if columns is None else columns
    match registration.format:
        case "csv":
            return select_delimited(registration, wanted, view_name(registration.source))
        case "jsonl":
            return select_json_lines(registration, wanted)
        case "parquet":
            return select_parquet(registration, wanted)
        case "frame":
            return select_frame(registration, wanted)
    raise SourceError(registration.source, "was registered by a newer discreet", registration.format)


def attach(connection: DuckDBPyConnection, registration: Registration, frame: object = None) -> None:
    """Make ready on `connection` what `relation` refers to.

    Args:
        connection: the one that will run the relation; what is made lives as long as it.
        registration: of the source.
        frame: the data frame itself, if it is one.

    Raises:
        SourceError: if the file is gone, or the frame was not given.
    """
    if registration.format == "frame":
        if frame is None:
            raise SourceError(registration.source, "is a data frame and must be given")
        lend(connection, registration, frame)
        return
    path = registration.reader["path"]
    if not Path(path).is_file():
        raise SourceError(f"source {path!r}", "the registered file is gone", hint="register it again, or put it back")
    if registration.reader.get("multiline"):
        write_lists(connection, registration.reader, view_name(registration.source))


def extended(registration: Registration, name: str) -> Registration | None:
    """The registration with one more column, of text, for a path below a registered map or list of JSON.

    For names that `Schema.position` does not know, such as ``annotations.k/a`` or ``events[0].name``. None
    if there is no such map or list. Nothing is read.
    """
    return below(registration, name) if registration.format == "jsonl" else None
