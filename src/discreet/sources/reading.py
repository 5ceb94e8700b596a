"""A registered source as a SELECT, for every query."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.errors import SourceError
from discreet.schema import Registration
from discreet.sources.delimited_rows import attach_delimited, select_delimited
from discreet.sources.duckdb_tables import attach_duckdb, select_duckdb
from discreet.sources.files import is_among, source_files
from discreet.sources.frames import lend, select_frame
from discreet.sources.json_lines import attach_json, below, select_json
from discreet.sources.location import Location
from discreet.sources.logs import attach_log, select_log
from discreet.sources.parquet import attach_parquet, select_parquet
from discreet.sources.sqlite_tables import attach_sqlite, select_sqlite

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "attach",
    "belongs",
    "check_there",
    "extended",
    "files_of",
    "fingerprint",
    "has_files",
    "is_read_in_place",
    "relation",
    "same_files",
]


def relation(registration: Registration, columns: Collection[int] | None = None) -> str:
    """The SQL text of a SELECT that gives a registered source's columns as ``c0``, ``c1``, ... with their
    types.

    It is total: no record can make it raise, and no record changes how another one is read. What does not
    fit its column's type is NULL, lines that are no records are left out; a double may be NaN. Call `attach` first.

    Args:
        registration: of the source.
        columns: the positions that are needed; None for all. Each costs time, so name them.
    """
    wanted = range(len(registration.schema.columns)) if columns is None else columns
    return _handlers(registration)[1](registration, wanted)


def attach(
    connection: DuckDBPyConnection,
    registration: Registration,
    frame: object = None,
    columns: Collection[int] | None = None,
) -> None:
    """Make ready on `connection` what `relation` refers to; finds out which files there are now.

    Args:
        connection: the one that will run the relation; what is made lives as long as it.
        registration: of the source.
        frame: the data frame itself, if it is one.
        columns: the positions that the relation will ask for; None for all.

    Raises:
        SourceError: if a file is gone or cannot be read, or the frame was not given.
    """
    if registration.format == "frame":
        if frame is None:
            raise SourceError(registration.source, "is a data frame and must be given")
        lend(connection, registration, frame)
        return
    if registration.format == "sqlite":
        # Here every column costs, as the rows are copied.
        wanted = range(len(registration.schema.columns)) if columns is None else columns
        attach_sqlite(connection, registration, wanted)
        return
    failed = False
    try:
        _handlers(registration)[0](connection, registration)
    except SourceError:
        if registration.reader["pattern"] is None:
            raise
        failed = True
    if failed:
        # Names of single files may be private (``user=ann/log.csv``), so the error does not show which it was.
        rule = "its folder is gone, or one of its files is damaged or cannot be read"
        raise SourceError(registration.source, rule, hint="register it again, or put it back")


def is_read_in_place(registration: Registration) -> bool:
    """Whether each reading of the relation reads the files again, rather than takes texts apart again."""
    return registration.format in ("parquet", "frame", "duckdb")


def same_files(one: Registration, other: Registration) -> bool:
    """Whether two sources have a file in common.

    Raises:
        SourceError: if a registered file is gone.
    """
    if not (has_files(one) and has_files(other)):
        return False
    files = [{Path(file.path).resolve() for file in source_files(source.reader)} for source in (one, other)]
    return bool(files[0] & files[1])


def files_of(registration: Registration) -> list[Path]:
    """The files of a source as they are now; none of a data frame or a server, and none if they are gone."""
    if not has_files(registration):
        return []
    try:
        return [Path(file.path) for file in source_files(registration.reader)]
    except SourceError:
        return []


def check_there(registration: Registration) -> None:
    """Refuse a source whose file or folder is gone, before anything is charged for reading it.

    Raises:
        SourceError: it is gone.
    """
    if "path" in registration.reader:
        source_files(registration.reader)


def belongs(source: Registration | Location, path: Path) -> bool:
    """Whether a file, which need not exist yet, is or would be of a source: its file or a side file of its
    database, in its folder, or of its pattern.

    Args:
        source: what is registered, or where it is.
        path: absolute, the links of its folder followed.
    """
    if not has_files(source):
        return False
    suffixes = {"sqlite": ("-wal", "-shm", "-journal"), "duckdb": (".wal",)}.get(source.format, ())
    return is_among(source.to_reader() if isinstance(source, Location) else source.reader, path, suffixes)


def fingerprint(registration: Registration) -> tuple[tuple[str, int, int, int, int], ...]:
    """What tells one version of the files from another, where several steps read them in place.

    Raises:
        OSError: if one is gone.
    """
    if registration.format == "frame" or not is_read_in_place(registration):
        return ()
    found = []
    for file in source_files(registration.reader):
        status = Path(file.path).stat()
        found.append((file.path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(found)


def has_files(source: Registration | Location) -> bool:
    """Whether the source is files of this machine; else it is a data frame, or lies on a server."""
    return source.format not in ("frame", "postgres", "spark")


def _handlers(registration: Registration) -> tuple[Callable[..., None], Callable[..., str]]:
    match registration.format:
        case "csv":
            return attach_delimited, select_delimited
        case "jsonl":
            return attach_json, select_json
        case "log":
            return attach_log, select_log
        case "parquet":
            return attach_parquet, select_parquet
        case "duckdb":
            return attach_duckdb, select_duckdb
        case "sqlite":
            return attach_sqlite, select_sqlite
        case "frame":
            return lend, select_frame
    raise SourceError(registration.source, "was registered by a newer discreet", registration.format)


def extended(registration: Registration, name: str) -> Registration | None:
    """The registration with one more column, of text, for a path below a registered map or list of JSON.

    For names that `Schema.position` does not know, such as ``annotations.k/a`` or ``events[0].name``. None
    if there is no such map or list. Nothing is read.
    """
    return below(registration, name) if registration.format == "jsonl" else None
