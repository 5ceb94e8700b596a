"""Whether a delimited file has line breaks inside quotes: registration refuses it then.

Such a file cannot be cut into lines first, and where a record ends would depend on the quotes before it: one
person's quote that is never closed could swallow everybody after it, which no noise would hide. Every query
reads line by line, each on its own, whatever the file holds by then.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator

from discreet.sources.dialect import Dialect
from discreet.sources.files import byte_chunks
from discreet.sources.lines import LONGEST_LINE, LineFile

__all__ = ["has_broken_quotes"]


def has_broken_quotes(file: LineFile, dialect: Dialect) -> bool:
    """Whether the whole file makes sense as one with line breaks inside quotes, and has some."""
    broken = False
    fields = good = bad = 0
    for row in _rows(file, dialect):
        if row is None:
            return False
        fields = fields or len(row)
        if len(row) == fields:
            good += 1
            broken = broken or any("\n" in field or "\r" in field for field in row)
        else:
            bad += bool(row)
    return broken and good > bad


def _rows(file: LineFile, dialect: Dialect) -> Iterator[list[str] | None]:
    """The records; None, and no more, where they make no sense."""
    # The limit is the process's; it is only ever raised.
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    try:
        yield from csv.reader(_lines(file), **dialect.reader_arguments())
    except csv.Error:
        yield None


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
