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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from discreet.errors import SourceError
from discreet.sources.files import byte_chunks
from discreet.sources.sql_text import literal, one_file

__all__ = ["LONGEST_LINE", "LineFile", "Scan", "first_line", "key_columns", "lines_sql", "scan_text", "text_lines"]

LONGEST_LINE = 2_000_000
"""Bytes; a longer line is a bad record, at registration and in every query. (DuckDB's default, which sets its
buffers to 16 times as much.)"""

_HEAD = 1 << 18
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class LineFile:
    """A file that the engine cuts into lines: UTF-8, perhaps packed.

    Attributes:
        path: of the file.
        compression: "none", "gzip" or "zstd".
        keys: what the folders of the source's own file say.
        source: the path of the source's own file, for its owner.
    """

    path: str
    compression: str
    keys: Mapping[str, str | None] = field(default_factory=dict)
    source: str = ""


@dataclass(frozen=True)
class Scan:
    """What the raw bytes are like.

    Attributes:
        head: the file's first lines, blank ones left out, decoded.
        bad_lines: lines that are not UTF-8 or longer than `LONGEST_LINE`.
        empty: there is nothing in it.
    """

    head: tuple[str, ...]
    bad_lines: int
    empty: bool


def lines_sql(files: Sequence[LineFile], partitions: Sequence[str] = ()) -> str:
    """A SELECT with a VARCHAR column ``line``: every line that is UTF-8 and not too long; blank ones NULL.

    For each folder key in `partitions` there is a column ``k{i}`` too. A line ends at a line feed, a carriage
    return, or both. A line that holds the four control characters 1, 2, 3, 4 in a row is cut there (the reader
    must have some delimiter). A byte order mark is skipped.
    """
    parts = []
    for compression in dict.fromkeys(file.compression for file in files):
        some = [file for file in files if file.compression == compression]
        paths = ", ".join(one_file(file.path) for file in some)
        parts.append(
            f"SELECT line{key_columns(some, partitions)} FROM READ_CSV([{paths}], auto_detect = FALSE, header = FALSE, "
            "delim = CHR(1) || CHR(2) || CHR(3) || CHR(4), quote = '', escape = '', comment = '', "
            "strict_mode = FALSE, ignore_errors = TRUE, hive_partitioning = FALSE, "
            f"max_line_size = {LONGEST_LINE}, compression = {literal(compression)}, "
            "columns = {'line': 'VARCHAR'})"
        )
    if not parts:
        nothing = "".join(f", CAST(NULL AS VARCHAR) AS k{i}" for i in range(len(partitions)))
        return f"SELECT CAST(NULL AS VARCHAR) AS line{nothing} WHERE FALSE"
    return " UNION ALL ".join(parts)


def key_columns(files: Sequence[LineFile], partitions: Sequence[str]) -> str:
    """The columns ``k{i}`` of the folder keys, for a reader over just these files, in this order."""
    columns = ""
    for i, name in enumerate(partitions):
        values = [file.keys.get(name) for file in files]
        if len(set(values)) == 1:
            only = "NULL" if values[0] is None else literal(values[0])
            columns += f", CAST({only} AS VARCHAR) AS k{i}"
        else:
            listed = ", ".join("NULL" if value is None else literal(value) for value in values)
            columns += f", CAST([{listed}] AS VARCHAR[])[CAST(file_index AS BIGINT) + 1] AS k{i}"
    return columns


def scan_text(file: LineFile, *, lenient: bool) -> Scan:
    """Read a whole file once, as bytes.

    Args:
        file: the file.
        lenient: count lines that are not UTF-8, rather than refuse the file.

    Raises:
        SourceError: for a damaged file and, unless lenient, for a line that is not UTF-8, by its number.
    """
    head = b""
    bad = newlines = 0
    size = 0
    rest = b""
    for chunk in byte_chunks(file.path, file.compression):
        size += len(chunk)
        if len(head) < _HEAD:
            head += chunk[: _HEAD - len(head)]
        whole, newline, rest_ = (rest + chunk).rpartition(b"\n")
        if newline:
            bad += _bad_lines(whole, newlines, head, file, lenient=lenient)
            newlines += whole.count(b"\n") + 1
        rest = rest_
        if len(rest) > LONGEST_LINE:
            # A line that has no end yet: it is bad already, and need not be kept in memory.
            rest = rest[: LONGEST_LINE + 1]
    bad += _bad_lines(rest, newlines, head, file, lenient=lenient)
    text = head.decode("utf-8-sig", errors="ignore")
    lines = [line for line in _split(text) if line.strip()]
    if size > _HEAD and len(lines) > 1:
        lines.pop()  # cut in two by the limit
    # A byte order mark alone is nothing either.
    return Scan(tuple(lines), bad, not lines and (size <= _HEAD or not head.strip()))


def _bad_lines(whole: bytes, before: int, head: bytes, file: LineFile, *, lenient: bool) -> int:
    """How many of these whole lines are too long, or not UTF-8."""
    longest = 0
    if len(whole) > LONGEST_LINE:
        longest = sum(len(line) > LONGEST_LINE for line in whole.replace(b"\r", b"\n").split(b"\n"))
    try:
        whole.decode()
    except UnicodeDecodeError as error:
        if not lenient and not longest:
            line = 1 + before + whole.count(b"\n", 0, error.start)
            raise _not_utf8(f"source {(file.source or file.path)!r}", line, head) from None
    else:
        return longest
    return sum(len(line) > LONGEST_LINE or not _is_utf8(line) for line in whole.replace(b"\r", b"\n").split(b"\n"))


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def first_line(file: LineFile) -> str | None:
    """The first line that is not blank, as the engine cuts it; None for an empty file."""
    head = b""
    for chunk in byte_chunks(file.path, file.compression):
        head += chunk
        text = head.decode("utf-8-sig", errors="replace")
        for line in _split(text)[:-1]:
            if line:
                return line.split("\x01\x02\x03\x04")[0]
        if len(head) > LONGEST_LINE:
            return None
    lines = [line for line in _split(head.decode("utf-8-sig", errors="replace")) if line]
    return lines[0].split("\x01\x02\x03\x04")[0] if lines else None


def text_lines(file: LineFile) -> Iterator[tuple[int, str]]:
    """The lines that are UTF-8, with their numbers from 1: for naming the first bad record to the owner."""
    number, rest = 1, b""
    for chunk in byte_chunks(file.path, file.compression):
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


def _not_utf8(thing: str, line: int, head: bytes) -> SourceError:
    wide = head[:2] in _UTF16_MARKS or head[:200].count(0) > len(head[:200]) // 4
    which = "--encoding utf-16" if wide else "--encoding gb18030 (or latin-1, ...)"
    return SourceError(
        thing,
        f"line {line} is not UTF-8",
        hint=f"name its encoding: {which}; --encoding utf-8 drops such lines (Python: encoding=)",
    )
