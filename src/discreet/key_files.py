"""Tables of public keys: a CSV or Parquet file, or a data frame, with one column a grouping column.

Several columns list *combinations*: a row of the table is a group. The table must be public knowledge, not a
copy of the private data: its keys appear in the answer whoever has rows there.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from discreet.errors import SourceError, UsageError
from discreet.keys import MOST_KEYS, KeyText, split_line

__all__ = ["is_frame", "keys_of_frame", "read_keys_list", "read_keys_table"]

KeyRows = list[tuple[object, ...]]

LARGEST_FILE = 2**28
"""Bytes of a keys file that is text: MOST_KEYS keys of 268 bytes each."""


def read_keys_table(path: Path, thing: str = "keys file") -> tuple[tuple[str, ...], KeyRows]:
    """The column names and the rows of a CSV or Parquet file of public keys.

    CSV is read as on the command line: UTF-8, commas, quotes; a bare ``NULL`` is the missing key, ``""`` the empty
    text, and nothing at all the empty text too. Its first line names the columns.

    Raises:
        SourceError: the file cannot be read.
        UsageError: no rows, too many, lines of other lengths, a name twice.
    """
    shown = str(path)
    if path.suffix.lower() in (".parquet", ".pq"):
        names, rows = _read_parquet(path, thing)
    else:
        names, rows = _read_csv(path, thing)
    for i, name in enumerate(names):
        if not name.strip() or name in names[:i]:
            raise UsageError(thing, "must name each column once, in its first line", shown)
    if not rows:
        raise UsageError(thing, "lists no key", shown, "the first line names the columns, the others list keys")
    return names, rows


def read_keys_list(path: Path, thing: str = "keys file") -> tuple[KeyText | None, ...]:
    """The keys of a text file, one a line, each written as on the command line; empty lines are skipped.

    Raises:
        SourceError: the file cannot be read.
        UsageError: no key, or several in one line.
    """
    keys: list[KeyText | None] = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", _text_of(path, thing)), start=1):
        if not line.strip():
            continue
        where = f"{thing} {path.name}, line {number}"
        values = split_line(line, where)
        if len(values) != 1:
            raise UsageError(where, "must hold one key; quote one with a comma", line)
        keys += values
    if not keys:
        raise UsageError(thing, "lists no key", str(path), 'write "" for the empty text')
    return tuple(keys)


def _text_of(path: Path, thing: str) -> str:
    try:
        _check_regular(path, thing)
        with path.open("rb") as file:
            # The size that the system tells is not asked: of some files it is 0, whatever is in them.
            content = file.read(LARGEST_FILE + 1)
        text = content.decode("utf-8-sig") if len(content) <= LARGEST_FILE else None
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise SourceError(thing, "is not UTF-8 text", str(path)) from None
        reason = (getattr(error, "strerror", None) or "unknown reason").lower()
        raise SourceError(thing, f"cannot be read ({reason})", str(path)) from None
    if text is None:
        raise UsageError(thing, f"must have at most {LARGEST_FILE} bytes", str(path))
    return text


def _check_regular(path: Path, thing: str) -> None:
    """Refuse pipes, which would be waited for, and devices, which have no end; and folders."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise SourceError(thing, "is not a regular file", str(path))


def _read_csv(path: Path, thing: str) -> tuple[tuple[str, ...], KeyRows]:
    text = _text_of(path, thing)
    names: tuple[str, ...] = ()
    rows: KeyRows = []
    for number, record in _records(text):
        where = f"{thing} {path.name}, line {number}"
        fields = split_line(record, where)
        if not names:
            if None in fields:
                raise UsageError(where, "must name the columns", record)
            names = tuple(str(field) for field in fields)
            continue
        if len(fields) != len(names):
            raise UsageError(where, f"must have {len(names)} values, as the first line has names", len(fields))
        rows.append(fields)
        if len(rows) > MOST_KEYS:
            raise UsageError(thing, f"must list at most {MOST_KEYS} keys", str(path))
    return names, rows


def _records(text: str) -> Iterator[tuple[int, str]]:
    """The records and the lines they begin in: a quoted value may hold line breaks. Empty lines are skipped."""
    begun, record = 1, ""
    for number, line in enumerate(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), start=1):
        begun = begun if record else number
        record = f"{record}\n{line}" if record else line
        if record.count('"') % 2 == 0:
            if record.strip():
                yield begun, record
            record = ""
    if record:
        yield begun, record


def _read_parquet(path: Path, thing: str) -> tuple[tuple[str, ...], KeyRows]:
    import duckdb

    from discreet.engines.duckdb_connection import connect

    if not path.is_file():
        raise SourceError(thing, "is not a file", str(path))
    try:
        with connect() as connection:
            escaped = str(path).replace("'", "''")
            # In the file's order: it is the order of the answer.
            connection.execute("SET preserve_insertion_order = true")
            found = connection.execute(f"SELECT * FROM read_parquet('{escaped}') LIMIT {MOST_KEYS + 1}")
            names = tuple(str(column[0]) for column in found.description or ())
            rows: KeyRows = found.fetchall()
    except duckdb.Error:
        raise SourceError(thing, "is not a Parquet file that can be read", str(path)) from None
    if len(rows) > MOST_KEYS:
        raise UsageError(thing, f"must list at most {MOST_KEYS} keys", str(path))
    return names, [tuple(_missing_nan(value) for value in row) for row in rows]


def is_frame(value: object) -> bool:
    """Whether a value is a data frame: of pandas, Polars or Arrow."""
    return hasattr(value, "__arrow_c_stream__") or (hasattr(value, "iloc") and hasattr(value, "columns"))


def keys_of_frame(frame: Any) -> tuple[tuple[str, ...], KeyRows]:
    """The column names and the rows of a pandas, Polars or Arrow table of public keys.

    Raises:
        UsageError: it is no table, or too long.
    """
    if hasattr(frame, "iloc"):
        names: Sequence[object] = list(frame.columns)
        columns: list[list[Any]] = [frame.iloc[:, i].tolist() for i in range(len(names))]
    elif hasattr(frame, "get_columns"):
        names, columns = list(frame.columns), [column.to_list() for column in frame.get_columns()]
    elif hasattr(frame, "column_names") and hasattr(frame, "columns"):
        names, columns = list(frame.column_names), [column.to_pylist() for column in frame.columns]
    else:
        raise UsageError("keys", "must be a dictionary, or a pandas, Polars or Arrow table", type(frame).__name__)
    if not columns or not columns[0]:
        raise UsageError("keys", "lists no key")
    if len(columns[0]) > MOST_KEYS:
        raise UsageError("keys", f"must list at most {MOST_KEYS} keys", len(columns[0]))
    rows = zip(*columns, strict=True)
    return tuple(str(name) for name in names), [tuple(_missing_nan(value) for value in row) for row in rows]


def _missing_nan(value: object) -> object:
    """pandas writes what is missing as NaN, NaT or NA."""
    missing = type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)  # noqa: PLR0124
    return None if missing else value
