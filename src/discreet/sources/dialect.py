"""How a delimited file marks its fields, and how one line is taken apart."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from discreet.sources.options import ReadOptions
from discreet.sources.sql_text import character, literal

__all__ = ["Dialect", "guess_dialect"]

_DELIMITERS = (",", ";", "\t", "|")
_FIRST_GROUP = literal(r"\1")


@dataclass(frozen=True)
class Dialect:
    """A delimited file's marks.

    `quote` is "" for none. `trim` says that blanks after a delimiter belong to the delimiter (``a, b, c``).
    """

    delimiter: str
    quote: str
    escape: str
    trim: bool

    def to_reader(self) -> dict[str, Any]:
        """As JSON values for a registration's reader; `from_reader` reads them back."""
        return {"delimiter": self.delimiter, "quote": self.quote, "escape": self.escape, "trim": self.trim}

    @staticmethod
    def from_reader(reader: Mapping[str, Any]) -> Dialect:
        """What `to_reader` made."""
        return Dialect(reader["delimiter"], reader["quote"], reader["escape"], reader["trim"])

    def fields_sql(self, line: str) -> str:
        """An expression for the list of fields of the expression `line`; NULL if a quote is not closed.

        Lines without any quote, nearly all in most files, are simply split.
        """
        split = f"STRING_SPLIT({line}, {literal(self.delimiter)})"
        if not self.quote:
            return split
        grammar = self._grammar(character)
        d = character(self.delimiter)
        ends = literal(self.delimiter)
        fields = f"REGEXP_EXTRACT_ALL({line} || {ends}, {literal(f'(?s)({grammar}){d}')}, 1)"
        blank = "LTRIM(x, ' ')" if self.trim else "x"
        doubled = literal(self.escape + self.quote)
        inner = f"REPLACE(SUBSTR({blank}, 2, LENGTH({blank}) - 2), {doubled}, {literal(self.quote)})"
        if self.escape == "\\":
            # Both escapes at once, from the left: \\" is a backslash and then the end of the field.
            escaped = literal(r"(?s)[\x5c](.)")
            inner = f"REGEXP_REPLACE(SUBSTR({blank}, 2, LENGTH({blank}) - 2), {escaped}, {_FIRST_GROUP}, 'g')"
        unquoted = (
            f"LIST_TRANSFORM({fields}, LAMBDA x: CASE WHEN STARTS_WITH({blank}, {literal(self.quote)}) "
            f"THEN {inner} ELSE x END)"
        )
        whole = literal(f"(?s)({grammar})({d}({grammar}))*")
        return (
            f"CASE WHEN NOT CONTAINS({line}, {literal(self.quote)}) THEN {split} "
            f"WHEN REGEXP_FULL_MATCH({line}, {whole}) THEN {unquoted} END"
        )

    def field_sql(self, fields: str, i: int) -> str:
        """An expression for field `i`, from 0, of the list expression `fields`."""
        field = f"{fields}[{i + 1}]"
        return f"LTRIM({field}, ' ')" if self.trim else field

    def fields(self, line: str) -> list[str] | None:
        """The same in Python: the fields of `line`, or None if a quote is not closed."""
        if not self.quote or self.quote not in line:
            parts = line.split(self.delimiter)
        else:
            grammar = self._grammar(re.escape)
            d = re.escape(self.delimiter)
            if not re.fullmatch(f"({grammar})({d}({grammar}))*", line, re.DOTALL):
                return None
            parts = [match[1] for match in re.finditer(f"({grammar}){d}", line + self.delimiter, re.DOTALL)]
        return [self._unquoted(part) for part in parts]

    def reader_arguments(self) -> dict[str, Any]:
        """The same for Python's ``csv.reader``, for files with line breaks inside quotes."""
        return {
            "delimiter": self.delimiter,
            "quotechar": self.quote or None,
            "doublequote": self.escape == self.quote,
            "escapechar": self.escape if self.quote and self.escape != self.quote else None,
            "quoting": csv.QUOTE_MINIMAL if self.quote else csv.QUOTE_NONE,
            "skipinitialspace": self.trim,
            "strict": True,
        }

    def _grammar(self, escaped: Any) -> str:
        q, d = escaped(self.quote), escaped(self.delimiter)
        if self.escape == self.quote:
            quoted = f"{q}(?:[^{q}]|{q}{q})*{q}"
        else:
            e = escaped(self.escape)
            quoted = f"{q}(?:[^{q}{e}]|{e}.)*{q}"
        blank = " *" if self.trim else ""
        space = " " if self.trim else ""
        return f"{blank}{quoted}|{blank}(?:[^{d}{q}{space}][^{d}]*)?"

    def _unquoted(self, part: str) -> str:
        if self.trim:
            part = part.lstrip(" ")
        if self.quote and part.startswith(self.quote):
            part = part[1:-1]
            if self.escape == self.quote:
                return part.replace(self.quote * 2, self.quote)
            return re.sub(re.escape(self.escape) + "(.)", r"\1", part, flags=re.DOTALL)
        return part


def guess_dialect(head: Sequence[str], options: ReadOptions, delimiter: str | None) -> Dialect:
    """The marks under which the file's first lines agree most, unless the owner said them.

    The caller checks them on the whole file: nothing here is trusted further than that.

    Args:
        head: the first lines.
        options: what the owner said.
        delimiter: what the file's name says, if anything.
    """
    quotes = [options.quote] if options.quote is not None else ['"', ""]
    given = options.delimiter or delimiter
    delimiters = [given] if given else [d for d in _DELIMITERS if d != options.decimal]
    lines = head[:1000]
    best: tuple[float, int, int] | None = None
    found = Dialect(given or ",", quotes[0], options.escape or quotes[0], False)
    for rank, quote in enumerate(quotes):
        for mark in delimiters:
            plain = Dialect(mark, quote, options.escape or quote, False)
            dialect = Dialect(mark, quote, options.escape or quote, _blank_after(lines, plain))
            counts = Counter(-1 if (fields := dialect.fields(line)) is None else len(fields) for line in lines)
            n = len(dialect.fields(lines[0]) or ()) if lines else 0
            # Lines that agree with the first; then quotes rather than none; then more fields.
            score = (counts[n] / max(1, len(lines)) if n > 1 or given else 0.0, -rank, n)
            if best is None or score > best:
                best, found = score, dialect
    return found


def _blank_after(lines: Sequence[str], dialect: Dialect) -> bool:
    """Whether every delimiter of the first lines is followed by a blank: then the blank belongs to it."""
    mark = dialect.delimiter
    if mark.isspace():
        return False
    seen = False
    for line in lines[:50]:
        after = line.split(mark)[1:]
        if not all(part.startswith(" ") for part in after):
            return False
        seen = seen or bool(after)
    return seen
