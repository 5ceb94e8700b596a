"""Delimited files with line breaks inside quotes: the one shape of CSV that cannot be cut into lines first.

Such a file is streamed through Python's own CSV reader into a private file of one JSON list a line, which
then is read like any other file of lines. It is slower, and it is the one format in which a single badly
written record (a quote that is never closed) can swallow the records after it; registration refuses a file
that has one.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from discreet.sources.dialect import Dialect
from discreet.sources.lines import LONGEST_LINE, lines_sql
from discreet.sources.sql_text import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["has_broken_quotes", "json_list", "rows_of_lists", "view_name", "write_lists"]


def view_name(source: str) -> str:
    """The name under which a prepared source is known to its connection."""
    return "source_" + hashlib.sha256(source.encode()).hexdigest()[:16]


def json_list(fields: list[str]) -> str:
    """A record as `write_lists` writes it."""
    return json.dumps(fields, ensure_ascii=False)


def has_broken_quotes(path: str, compression: str, dialect: Dialect) -> bool:
    """Whether the whole file makes sense as one with line breaks inside quotes, and has some."""
    broken = False
    fields = good = bad = 0
    for row in _rows(path, compression, dialect, on_error="stop"):
        if row is None:
            return False
        fields = fields or len(row)
        if len(row) == fields:
            good += 1
            broken = broken or any("\n" in field or "\r" in field for field in row)
        else:
            bad += bool(row)
    return broken and good > bad


def write_lists(connection: DuckDBPyConnection, reader: Mapping[str, Any], view: str) -> list[str]:
    """Write the file's records where only `connection` reads them, as the temporary view `view`.

    Returns:
        The first record.
    """
    setting = connection.execute("SELECT CURRENT_SETTING('temp_directory')").fetchone()
    assert setting is not None  # noqa: S101 - a SELECT without FROM has one row
    target = Path(setting[0]) / f"{view}.jsonl"
    first: list[str] = []
    with target.open("w", encoding="utf-8", newline="\n") as file:
        for row in _rows(reader["path"], reader["compression"], Dialect.from_reader(reader), on_error="skip"):
            if row:
                first = first or row
                try:
                    file.write(json_list(row) + "\n")
                except UnicodeEncodeError:
                    continue  # bytes that are not UTF-8: a bad record; nothing of it was written
    connection.execute(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS {lines_sql(str(target), 'none')}")
    return first


def rows_of_lists(view: str, header: str | None) -> str:
    """A SELECT with one column ``f``, the list of a record's fields, over what `write_lists` wrote."""
    skip = "" if header is None else f" AND line <> {literal(header)}"
    return f"SELECT CAST(CAST(line AS JSON) AS VARCHAR[]) AS f FROM {view} WHERE line IS NOT NULL{skip}"


def _rows(path: str, compression: str, dialect: Dialect, *, on_error: str) -> Iterator[list[str] | None]:
    # The limit is the process's; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    with (
        _opened(path, compression) as raw,
        io.TextIOWrapper(raw, "utf-8-sig", errors="surrogateescape", newline="") as text,
    ):
        rows = csv.reader(text, **dialect.reader_arguments())
        while True:
            try:
                yield next(rows)
            except StopIteration:
                return
            except csv.Error:
                if on_error == "stop":
                    yield None
                    return


def _opened(path: str, compression: str) -> IO[bytes]:
    if compression == "gzip":
        return cast("IO[bytes]", gzip.GzipFile(path))
    return Path(path).open("rb")
