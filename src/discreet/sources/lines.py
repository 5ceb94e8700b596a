"""Text files as lines: the owner's look at the raw bytes, and the one reader that every query uses.

DuckDB's own CSV reader cannot be used for private rows: one bad quote swallows the rows after it, a lone
carriage return makes it raise, and its JSON reader raises for a line above its limit, so that one record
would decide whether all others are read. Here the CSV reader only cuts the file into *lines*, in a setting
(no quotes, no strict mode, bad lines ignored) in which nothing raises, and each line is then taken apart on
its own. It costs 1.6 times DuckDB's own reading of a plain CSV file and nothing for JSON lines.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from discreet.errors import SourceError, UsageError
from discreet.sources.location import Location
from discreet.sources.sql_text import literal, one_file

__all__ = ["LONGEST_LINE", "Scan", "lines_sql", "scan_text", "text_lines"]

LONGEST_LINE = 2_000_000
"""Bytes; a longer line is a bad record, at registration and in every query. (DuckDB's default, which sets its
buffers to 16 times as much.)"""

_CHUNK = 1 << 20
_HEAD = 1 << 18
_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Scan:
    """What the raw bytes are like.

    Attributes:
        compression: "none" or "gzip", by the file's first bytes.
        head: the file's first lines, blank ones left out, decoded.
        bad_lines: lines that are not UTF-8 or longer than `LONGEST_LINE`.
    """

    compression: str
    head: tuple[str, ...]
    bad_lines: int


def lines_sql(path: str, compression: str) -> str:
    """A SELECT with one VARCHAR column ``line``: every line that is UTF-8 and not too long; blank ones NULL.

    A line ends at a line feed, a carriage return, or both. A line that holds the four control characters
    1, 2, 3, 4 in a row is cut there (the reader must have some delimiter). A byte order mark is skipped.
    """
    return (
        f"SELECT line FROM READ_CSV({one_file(path)}, auto_detect = FALSE, header = FALSE, "
        "delim = CHR(1) || CHR(2) || CHR(3) || CHR(4), quote = '', escape = '', comment = '', "
        "strict_mode = FALSE, ignore_errors = TRUE, hive_partitioning = FALSE, "
        f"max_line_size = {LONGEST_LINE}, compression = {literal(compression)}, "
        "columns = {'line': 'VARCHAR'})"
    )


def scan_text(location: Location, *, encoding: str | None) -> Scan:
    """Read the whole file once, as bytes, and refuse what cannot be read as text lines.

    Raises:
        SourceError: for an empty file, a truncated or mislabelled gzip file, and, unless `encoding` is
            "utf-8" (which means: drop such lines), for a line that is not UTF-8, by its number.
    """
    thing = f"source {location.path!r}"
    if encoding not in (None, "utf-8"):
        raise UsageError("encoding", "only UTF-8 can be read yet", encoding, hint="convert the file first")
    compression = _compression(location)
    decode = codecs.getincrementaldecoder("utf-8")().decode
    head = b""
    bad = newlines = run = 0
    lenient = encoding == "utf-8"
    size = 0
    for chunk in _chunks(location.path, compression, thing):
        size += len(chunk)
        if len(head) < _HEAD:
            head += chunk[: _HEAD - len(head)]
        if not lenient:
            try:
                decode(chunk)
            except UnicodeDecodeError as error:
                # error.object is what was left over from the last chunk and this one.
                line = 1 + newlines + chunk.count(b"\n", 0, max(0, error.start - (len(error.object) - len(chunk))))
                raise _not_utf8(thing, line, head) from None
        newlines += chunk.count(b"\n")
        first = chunk.find(b"\n")
        if first < 0:
            run += len(chunk)
        else:
            bad += run + first > LONGEST_LINE
            run = len(chunk) - chunk.rfind(b"\n") - 1
    if not lenient:
        try:
            decode(b"", final=True)
        except UnicodeDecodeError:
            raise _not_utf8(thing, 1 + newlines, head) from None
    bad += run > LONGEST_LINE
    text = head.decode("utf-8-sig", errors="ignore")
    lines = [line for line in _split(text) if line.strip()]
    if size >= _HEAD and len(lines) > 1:
        lines.pop()  # cut in two by the limit
    if not size or (not lines and not head.strip()):
        raise SourceError(thing, "the file is empty", hint="a CSV file needs at least its header line")
    return Scan(compression, tuple(lines), bad)


def text_lines(location: Location, compression: str) -> Iterator[tuple[int, str]]:
    """The lines that are UTF-8, with their numbers from 1: for naming the first bad record to the owner."""
    number, rest = 1, b""
    for chunk in _chunks(location.path, compression, f"source {location.path!r}"):
        *whole, rest = (rest + chunk).replace(b"\r\n", b"\n").split(b"\n")
        for raw in whole:
            for part in raw.split(b"\r"):
                with contextlib.suppress(UnicodeDecodeError):
                    yield number, part.decode("utf-8-sig" if number == 1 else "utf-8")
            number += 1
    if rest:
        yield number, rest.decode("utf-8", errors="replace")


def _split(text: str) -> list[str]:
    # Not splitlines(): that also breaks at form feeds and Unicode separators, which DuckDB does not.
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _compression(location: Location) -> str:
    try:
        with Path(location.path).open("rb") as file:
            magic = file.read(6)
    except OSError as error:
        raise SourceError(f"source {location.path!r}", f"cannot be opened: {error.strerror}") from None
    if magic[:2] == _GZIP_MAGIC:
        return "gzip"
    if location.compression == "gzip" and magic:
        raise SourceError(
            f"source {location.path!r}", "is not gzip, whatever its name says", hint="rename it without .gz"
        )
    if magic[:4] == b"PAR1":
        raise SourceError(
            f"source {location.path!r}", "is a Parquet file, whatever its name says", hint="format='parquet'"
        )
    return "none"


def _chunks(path: str, compression: str, thing: str) -> Iterator[bytes]:
    try:
        with Path(path).open("rb") as raw:
            file = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if compression == "gzip" else raw
            while chunk := file.read(_CHUNK):
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise SourceError(
            thing, "the gzip file is cut short or damaged: it is not read in part", hint="fetch it again"
        ) from None
    except OSError as error:
        raise SourceError(thing, f"cannot be read: {error.strerror}") from None


def _not_utf8(thing: str, line: int, head: bytes) -> SourceError:
    wide = head[:2] in _UTF16_MARKS or head[:200].count(0) > len(head[:200]) // 4
    which = "encoding='utf-16'" if wide else "encoding='gb18030' (or 'latin-1', ...)"
    return SourceError(
        thing,
        f"line {line} is not UTF-8",
        hint=f"name its encoding: {which}; encoding='utf-8' drops such lines",
    )
