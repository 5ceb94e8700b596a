"""Delimited files with line breaks inside quotes: the one shape of CSV that cannot be cut into lines first.

Such a file is streamed through Python's own CSV reader into a private file of one JSON list a line, which
then is read like any other file of lines. It is slower, and it is the one format in which a single badly
written record (a quote that is never closed) can swallow the records after it; registration refuses a file
that has one.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from discreet.sources.dialect import Dialect
from discreet.sources.files import byte_chunks
from discreet.sources.lines import LONGEST_LINE, LineFile
from discreet.sources.preparing import temp_folder

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["has_broken_quotes", "json_list", "write_lists"]


def json_list(fields: Sequence[str | None]) -> str:
    """A record as `write_lists` writes it."""
    return json.dumps(fields, ensure_ascii=False)


def has_broken_quotes(file: LineFile, dialect: Dialect) -> bool:
    """Whether the whole file makes sense as one with line breaks inside quotes, and has some."""
    broken = False
    fields = good = bad = 0
    for row in _rows(file, dialect, on_error="stop"):
        if row is None:
            return False
        fields = fields or len(row)
        if len(row) == fields:
            good += 1
            broken = broken or any("\n" in field or "\r" in field for field in row)
        else:
            bad += bool(row)
    return broken and good > bad


def write_lists(
    connection: DuckDBPyConnection, files: Sequence[LineFile], dialect: Dialect, view: str
) -> tuple[list[LineFile], list[list[str] | None]]:
    """Write the files' records where only `connection` reads them.

    Returns:
        The files to read instead, and the first record of each, None for an empty one.
    """
    written: list[LineFile] = []
    firsts: list[list[str] | None] = []
    for i, source in enumerate(files):
        target = temp_folder(connection, view) / f"{i}.lists"
        first: list[str] | None = None
        with target.open("w", encoding="utf-8", newline="\n") as file:
            for row in _rows(source, dialect, on_error="skip"):
                if row:
                    first = first or row
                    try:
                        file.write(json_list(row) + "\n")
                    except UnicodeEncodeError:
                        continue  # bytes that are not UTF-8: a bad record; nothing of it was written
        written.append(LineFile(str(target), "none", source.keys, source.source))
        firsts.append(first)
    return written, firsts


def _rows(file: LineFile, dialect: Dialect, *, on_error: str) -> Iterator[list[str] | None]:
    # The limit is the process's; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    rows = csv.reader(_lines(file), **dialect.reader_arguments())
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except csv.Error:
            if on_error == "stop":
                yield None
                return


def _lines(file: LineFile) -> Iterator[str]:
    """The lines with their ends, which the CSV reader wants to see."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")("surrogateescape")
    rest = ""
    for chunk in byte_chunks(file.path, file.compression):
        text = rest + decoder.decode(chunk)
        # A carriage return at the end may be the first half of a line's end.
        end = text.rfind("\n") + 1 or (text.rfind("\r", 0, -1) + 1)
        yield from _cut(text[:end])
        rest = text[end:]
    yield from _cut(rest + decoder.decode(b"", final=True))


def _cut(text: str) -> Iterator[str]:
    # Not splitlines(): that also breaks at form feeds and Unicode separators.
    return iter(io.StringIO(text, newline=""))
