"""Where a source is and what kind of file it is, found out from its name alone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from discreet.errors import SourceError, UsageError
from discreet.sources.files import COMPRESSIONS, matching

__all__ = ["FORMATS", "Location", "identify", "is_address", "locate", "where_it_was"]

_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".log": "log",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".duckdb": "duckdb",
    ".ddb": "duckdb",
    ".sqlite": "sqlite",
    ".sqlite3": "sqlite",
    ".db": "sqlite",
}
FORMATS = ("csv", "jsonl", "log", "parquet", "duckdb", "sqlite")
_DATABASES = ("duckdb", "sqlite")
_PACKED_INSIDE = ("parquet", *_DATABASES)
_SERVER = re.compile(r"postgres(?:ql)?://|spark:", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Location:
    """A source's canonical identity, and how it is to be read.

    Attributes:
        source: by which the registration, the ledger and the budget are found: ``file:`` and the real path
            (links resolved), then the pattern of a glob or ``::`` and the table of a database.
        path: of the file, or of the folder below which the files lie.
        format: one of `FORMATS`.
        name: what the source is called in FROM: the file's name up to its first dot, or the table's.
        pattern: of the files below `path`, or None for one file.
        endings: of the files that count, where the format was found by them; None for all.
        delimiter: what the name says about the delimiter (a tab for .tsv), or None.
        table: in a database; None if it was not said.
        problem: why the files there are now cannot be registered (none, or several formats); a source that is
            registered already may be opened all the same.
        address: of a database server, as its client takes it. It may hold a password: it is never shown or stored.
    """

    source: str
    path: str
    format: str
    name: str
    pattern: str | None = None
    endings: tuple[str, ...] | None = None
    delimiter: str | None = None
    table: str | None = None
    problem: SourceError | None = None
    address: str = field(default="", repr=False)

    @property
    def thing(self) -> str:
        """The source in errors."""
        return f"source {self.source.removeprefix('file:')!r}"

    def to_reader(self) -> dict[str, Any]:
        """As JSON values for a registration's reader, from which the files are found in every query."""
        return {
            "path": self.path,
            "pattern": self.pattern,
            "endings": None if self.endings is None else list(self.endings),
        }


def locate(source: str | os.PathLike[str], *, format: str | None = None, table: str | None = None) -> Location:
    """`identify`, for a source that is to be registered.

    Raises:
        SourceError, UsageError: as `identify`, and if the files of a folder or pattern are none, or not of one
            known format.
    """
    location = identify(source, format=format, table=table)
    if location.problem is not None:
        raise location.problem
    return location


def identify(source: str | os.PathLike[str], *, format: str | None = None, table: str | None = None) -> Location:
    """Identity and format of a source. Reads the folder, never a file.

    Args:
        source: the path of a file, of a folder of files of one format, or a pattern with ``*``, ``?``,
            ``[...]`` and ``**``; for a database, ``FILE::TABLE``; or the address of a PostgreSQL database or
            of a Spark master.
        format: one of "csv", "jsonl", "log", "parquet", "duckdb" and "sqlite", where the name does not tell.
        table: of a database, instead of ``::TABLE``.

    Raises:
        SourceError: if there is no such file, or it cannot be told what it is.
        UsageError: for an unknown `format`, or a table where there is none.
    """
    text = os.fspath(source)
    if is_address(text):
        if text[:6].lower() == "spark:":
            from discreet.sources.spark_tables import identify_spark

            return identify_spark(text, table)
        from discreet.sources.postgres_tables import identify_postgres

        return identify_postgres(text, table)
    if format is not None and format not in FORMATS:
        raise UsageError("format", f"must be one of {', '.join(FORMATS)}", format)
    if not text:
        raise UsageError("source", "must be the path of a file", text)
    if not _is_a_name(text):
        shown = text.encode("ascii", "backslashreplace").decode()
        # The ledger, and the SQL that reads the file, hold its name as UTF-8.
        raise SourceError("source", "its name must be valid UTF-8", shown, hint="rename the file")
    path = Path(text).expanduser()
    if not path.exists() and "::" in text:
        before, _, after = text.rpartition("::")
        if Path(before).expanduser().is_file():
            if table is not None and table != after:
                raise UsageError("table", "is said twice, differently", f"{after} and {table}")
            text, path, table = before, Path(before).expanduser(), after
    if not path.exists():
        if _GLOB.search(text):
            return _pattern(text, path, format, table)
        raise SourceError("source", "there is no such file", text, hint="check the path")
    path = path.resolve()
    if path.is_dir():
        return _folder(text, path, format, table)
    if not path.is_file():
        # A pipe or a device can be read only once; registration and every query each read the source.
        raise SourceError("source", "must be a regular file: it is read again for every query", text)
    ending, packed = _ending(path)
    kind = format or _ENDINGS.get(ending)
    if kind is None:
        raise _unknown(text)
    if kind in _PACKED_INSIDE and packed:
        raise SourceError(
            "source", "Parquet and database files must not be compressed as a whole", text, hint="unpack it first"
        )
    if kind in _DATABASES:
        table = None if table is None else table.removeprefix("main.")
        identity = f"file:{path}" + (f"::{table}" if table else "")
        return Location(identity, str(path), kind, table or _stem(path), table=table)
    _no_table(table)
    return Location(f"file:{path}", str(path), kind, _stem(path), delimiter=_delimiter(ending))


def is_address(source: object) -> TypeGuard[str]:
    """Whether a source is written as the address of a server, PostgreSQL's or Spark's: it is no path."""
    return isinstance(source, str) and _SERVER.match(source) is not None


def _is_a_name(text: str) -> bool:
    try:
        os.fsencode(text).decode("utf-8")
    except UnicodeError:
        return False
    return "\0" not in text


def where_it_was(source: str | os.PathLike[str], *, table: str | None = None) -> tuple[tuple[str, str], ...]:
    """If nothing is there any more: the identities that `identify` may have given the source, and its names.

    A source that was registered is planned by its stored schema, whatever became of its files.
    """
    text = os.fspath(source)
    if not text or is_address(text) or not _is_a_name(text) or Path(text).expanduser().exists() or _GLOB.search(text):
        return ()
    found = []
    for before, after in ((text, table), text.rpartition("::")[::2]):
        path = Path(before).expanduser()
        if before and not path.exists():
            name = after or _stem(path)
            found.append(
                (f"file:{os.path.realpath(path)}" + (f"::{after.removeprefix('main.')}" if after else ""), name)
            )
    return tuple(found)


def _pattern(text: str, path: Path, format: str | None, table: str | None) -> Location:
    """A glob: the folder before its first magic part, and the rest."""
    _no_table(table)
    parts = path.parts
    first = next(i for i, part in enumerate(parts) if _GLOB.search(part))
    root = Path(*parts[:first]).resolve()
    pattern = "/".join(parts[first:])
    return _many(text, root, pattern, format, _stem(Path(parts[-1])) if first else "data")


def _folder(text: str, root: Path, format: str | None, table: str | None) -> Location:
    _no_table(table)
    if (root / "_delta_log").exists():
        raise SourceError(
            "source",
            "is a Delta table, whose files hold rows that were deleted since",
            text,
            hint="export it to Parquet first",
        )
    return _many(text, root, "**/*", format, _stem(root))


def _many(text: str, root: Path, pattern: str, format: str | None, name: str) -> Location:
    identity = f"file:{root}" if pattern == "**/*" else f"file:{root}/{pattern}"
    paths = [Path(file) for file in matching(str(root), pattern)]
    found: dict[str, set[str]] = {}
    for path in paths:
        ending, packed = _ending(path)
        kind = _ENDINGS.get(ending)
        if kind is not None and not (packed and kind in _PACKED_INSIDE):
            found.setdefault(kind, set()).add(ending)
    problem: SourceError | None = None
    if not paths:
        problem = SourceError("source", "no file matches", text, hint="check the pattern")
    elif format is None and not found:
        problem = _unknown(text)
    elif format is None and len(found) > 1:
        kinds = " and ".join(sorted(found))
        problem = SourceError("source", f"holds {kinds} files; only one format can be read", text, hint="use a pattern")
    said = format is not None
    format = format or next(iter(found), "csv")
    if format in _DATABASES and problem is None:
        problem = SourceError("source", "databases are read one at a time", text)
    # A pattern with a format says which files are meant (access.log*); a folder may hold other things too.
    endings = None if said and pattern != "**/*" else found.get(format)
    tabs = endings is not None and endings <= {".tsv", ".tab"}
    return Location(
        identity,
        str(root),
        format,
        name,
        pattern=pattern,
        endings=None if endings is None else tuple(sorted(e for e, kind in _ENDINGS.items() if kind == format)),
        delimiter="\t" if tabs else None,
        problem=problem,
    )


def _ending(path: Path) -> tuple[str, bool]:
    """The ending that tells the format, and whether another one after it says that the file is packed."""
    endings = [ending.lower() for ending in path.suffixes]
    packed = bool(endings) and endings[-1] in COMPRESSIONS
    if packed:
        endings.pop()
    return (endings[-1] if endings else ""), packed


def _stem(path: Path) -> str:
    stem = path.name.split(".")[0]
    return stem if stem and not _GLOB.search(stem) else "data"


def _delimiter(ending: str) -> str | None:
    return "\t" if ending in (".tsv", ".tab") else None


def _no_table(table: str | None) -> None:
    if table is not None:
        raise UsageError("table", "is for DuckDB and SQLite files", table)


def _unknown(text: str) -> SourceError:
    known = ", ".join(sorted(_ENDINGS))
    return SourceError(
        "source",
        f"its name does not say what it is; known endings are {known}, text also with .gz or .zst",
        text,
        hint="say it: --source-format csv, jsonl or parquet (Python: format=), or --log-format combined (log_format=)",
    )
