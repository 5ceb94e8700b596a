"""An answer as text: a table for people, CSV, JSON, JSON lines and Markdown for everything else."""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from itertools import zip_longest

from discreet.answer import Answer, AnswerColumn, Value, plain
from discreet.exact import decimal_text

__all__ = [
    "FORMATS",
    "as_csv",
    "as_json",
    "as_markdown",
    "as_ndjson",
    "as_table",
    "escape_markdown",
    "key_text",
    "render_csv",
    "render_markdown",
    "render_table",
    "shown_parts",
    "shown_values",
]


def as_csv(answer: Answer) -> str:
    """One line a group. A missing key is an empty field, the empty text is ``""``."""
    return render_csv(answer.names(), (row.values() for row in answer.rows()))


def render_csv(names: Iterable[str], rows: Iterable[Iterable[Value]]) -> str:
    """Lines of fields, quoted where they must be; None is an empty field, the empty text is ``""``."""
    return "".join(",".join(_csv_field(value) for value in row) + "\n" for row in (names, *rows))


def _csv_field(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = value if isinstance(value, str) else str(plain(value))
    if text == "" or any(sign in text for sign in ',"\n\r') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def as_json(answer: Answer) -> str:
    """A list with one object a group."""
    rows = [{name: plain(value) for name, value in row.items()} for row in answer.rows()]
    if not rows:
        return "[]\n"
    body = ",\n".join("  " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f"[\n{body}\n]\n"


def as_ndjson(answer: Answer) -> str:
    """One object a line."""
    rows = ({name: plain(value) for name, value in row.items()} for row in answer.rows())
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def as_markdown(answer: Answer, *, exact: bool = False) -> str:
    """A Markdown table for people."""
    return render_markdown(*_cells(answer, exact=exact))


def render_markdown(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """A Markdown table; numeric columns stand to the right."""
    lines = ["| " + " | ".join(escape_markdown(h) for h in headers) + " |"]
    lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
    lines += ["| " + " | ".join(escape_markdown(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_MARKS = re.compile(r"[\\`*\[\]<>|~&]|(?<![^\W_])_|_(?![^\W_])")
_MARKS_BUT_STARS = re.compile(_MARKS.pattern.replace("*", "", 1))


def escape_markdown(text: str) -> str:
    """Text that Markdown shows as it is: no key can become a tag, a picture or a new line."""
    # One star alone marks nothing, and COUNT(*) is easier to read so.
    marks = _MARKS if text.count("*") > 1 else _MARKS_BUT_STARS
    return marks.sub(r"\\\g<0>", _BREAKS.sub(" ", text))


def as_table(answer: Answer, *, exact: bool = False, width: int | None = None) -> str:
    """An aligned text table for people.

    Args:
        exact: numbers with all their digits, not rounded to what the noise justifies.
        width: columns of the terminal that it must fit; None for any width.
    """
    headers, rows, numeric = _cells(answer, exact=exact)
    return render_table(headers, rows, numeric, width=width)


def render_table(
    headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], *, width: int | None = None
) -> str:
    """Aligned columns under a rule; wide characters take two places.

    Where it would be wider than `width`, columns of text are folded; where that is not enough, each row becomes a list
    of its fields. Nothing is cut off.
    """
    from rich.cells import cell_len

    clean = [[_printable(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(cell_len(row[i]) for row in clean) for i in range(len(headers))]
    if width is not None and sum(widths) + 2 * (len(widths) - 1) > width:
        narrow = _narrowed(widths, numeric, width)
        if narrow is None:
            return _listed(clean, width)
        widths = narrow

    def line(row: Sequence[str]) -> Iterator[str]:
        both = zip(row, widths, strict=True)
        folded = [_folded(cell, room) if cell_len(cell) > room else [cell] for cell, room in both]
        for parts in zip_longest(*folded, fillvalue=""):
            cells = []
            for cell, room, right in zip(parts, widths, numeric, strict=True):
                space = " " * (room - cell_len(cell))
                cells.append(space + cell if right else cell + space)
            yield "  ".join(cells).rstrip()

    rule = "  ".join("─" * room for room in widths)
    return "\n".join([*line(clean[0]), rule, *(part for row in clean[1:] for part in line(row))]) + "\n"


_NARROWEST = 12  # of a column of text that is folded


def _narrowed(widths: Sequence[int], numeric: Sequence[bool], width: int) -> list[int] | None:
    """Widths with those of text made smaller, the widest first; None if they cannot be."""
    found = list(widths)
    over = sum(found) + 2 * (len(found) - 1) - width
    while over > 0:
        widest = max((i for i, number in enumerate(numeric) if not number), key=lambda i: found[i], default=None)
        if widest is None or found[widest] <= _NARROWEST:
            return None
        found[widest] -= 1
        over -= 1
    return found


def _listed(clean: Sequence[Sequence[str]], width: int) -> str:
    """Each row as a list of its fields, for narrow terminals."""
    from rich.cells import cell_len

    headers, *rows = clean
    label = max(map(cell_len, headers))
    blocks = []
    for row in rows:
        lines = []
        for header, cell in zip(headers, row, strict=True):
            first, *more = _folded(cell, max(10, width - label - 2))
            lines.append(f"{header}{' ' * (label - cell_len(header))}  {first}")
            lines += [" " * (label + 2) + part for part in more]
        blocks.append("\n".join(line.rstrip() for line in lines))
    rule = "─" * min(width, label + 12)
    return f"\n{rule}\n".join(blocks) + "\n"


def _folded(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns."""
    from io import StringIO

    from rich.console import Console
    from rich.text import Text

    console = Console(file=StringIO(), width=width, color_system=None, legacy_windows=False)
    return [line.plain.rstrip() for line in Text(text).wrap(console, width)] or [""]


def _printable(text: str) -> str:
    """Control characters would let a key move the terminal's cursor."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _cells(answer: Answer, *, exact: bool = False) -> tuple[list[str], list[list[str]], list[bool]]:
    headers: list[str] = []
    columns: list[list[str]] = []
    numeric: list[bool] = []
    level = decimal_text(answer.confidence * 100)
    for column in answer.columns:
        headers.append(column.name)
        if column.low is None or column.high is None:
            columns.append([key_text(value) for value in column.values])
            numeric.append(all(isinstance(v, int | Decimal) and not isinstance(v, bool) for v in column.values))
            continue
        parts = shown_parts(column, exact=exact)
        columns.append([value for value, _ in parts])
        headers.append(f"{level} % interval")
        columns.append([ends or "none" for _, ends in parts])
        numeric += [True, True]
    return headers, [list(row) for row in zip(*columns, strict=True)], numeric


def key_text(value: Value) -> str:
    """A key or another value that has no noise, for people; the missing one is not to be taken for a text."""
    if value is None:
        return "(missing)"
    if isinstance(value, str):
        return value if value and value != "(missing)" else f'"{value}"'
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return str(plain(value))


def shown_values(column: AnswerColumn) -> list[str]:
    """A column's values as a table shows them, each with its interval: "127 (-173 … 427)"."""
    return [f"{value} ({ends})" if ends else value for value, ends in shown_parts(column)]


def shown_parts(column: AnswerColumn, *, exact: bool = False) -> list[tuple[str, str]]:
    """A column's values and intervals as a table shows them; "" where there is no interval.

    Args:
        exact: with all digits, not rounded to what the noise justifies.
    """
    if column.low is None or column.high is None:
        return [(key_text(value), "") for value in column.values]
    if exact:
        both = zip(column.low, column.high, strict=True)
        whole = ["" if low is None or high is None else f"{_exactly(low)} … {_exactly(high)}" for low, high in both]
        return list(zip(map(_exactly, column.values), whole, strict=True))
    places, precision = _places(column), _precision(column)
    found = []
    for value, low, high in zip(column.values, column.low, column.high, strict=True):
        ends = "" if low is None or high is None else _ends(low, high, places, precision)
        found.append((_statistic(value, places, precision), ends))
    return found


def _exactly(value: Value) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, int) or abs(value) < 1e16 else repr(value)
    return key_text(value)


def _ends(low: Value, high: Value, places: int | None, precision: str) -> str:
    """An interval, rounded outwards: it covers no less than the exact one."""
    if low is None or high is None:
        return "none"
    down, up = _statistic(low, places, precision, ROUND_FLOOR), _statistic(high, places, precision, ROUND_CEILING)
    return f"{down} … {up}"


def _statistic(value: Value, places: int | None, precision: str, rounding: str = ROUND_HALF_EVEN) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec=precision)
    return key_text(value) if isinstance(value, datetime.date) else _number(value, places, rounding)


def _precision(column: AnswerColumn) -> str:
    """How exactly times are shown: to what the noise justifies."""
    ends = zip(column.low or (), column.high or (), strict=True)
    widths = [
        high - low for low, high in ends if isinstance(low, datetime.datetime) and isinstance(high, datetime.datetime)
    ]
    narrowest = min(widths, default=datetime.timedelta(0))
    if narrowest >= datetime.timedelta(minutes=20):
        return "minutes"
    return "seconds" if narrowest >= datetime.timedelta(seconds=20) else "microseconds"


def _places(column: AnswerColumn) -> int | None:
    """Decimal places that the noise justifies, negative for tens and hundreds: two significant digits of the narrowest
    interval. None where there is nothing to round by."""
    ends = zip(column.low or (), column.high or (), strict=True)
    halves = [half for low, high in ends if (half := _half(low, high)) > 0]
    if not halves:
        return None
    places = 1 - _magnitude(min(halves))
    if all(isinstance(value, int) for value in column.values):
        return min(places, 0)
    return min(12, places)


def _half(low: Value, high: Value) -> int | float:
    """Half the width of an interval; exact for whole numbers, however large."""
    if isinstance(low, int) and isinstance(high, int):
        return (high - low) // 2
    if isinstance(low, int | float) and isinstance(high, int | float):
        return high / 2 - low / 2
    return 0


def _magnitude(x: int | float) -> int:
    """The place of its first digit: 0 for 1 to 9, 2 for hundreds, -1 for tenths."""
    return len(str(x)) - 1 if isinstance(x, int) else math.floor(math.log10(x))


def _number(value: Value, places: int | None, rounding: str = ROUND_HALF_EVEN) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, int):
        if places is None or places >= 0:
            return f"{value:,}"
        step = 10**-places
        down = value // step * step
        nearest = (value + step // 2) // step * step
        up = -(-value // step) * step
        return f"{ {ROUND_FLOOR: down, ROUND_CEILING: up}.get(rounding, nearest):,}"
    number = float(str(value))
    if not math.isfinite(number) or abs(number) >= 1e15:
        return f"{number:.6g}"
    exact = Decimal(repr(number)).quantize(Decimal(1).scaleb(-(4 if places is None else places)), rounding)
    return f"{exact + 0:,f}"  # never -0


FORMATS: dict[str, Callable[[Answer], str]] = {
    "table": as_table,
    "csv": as_csv,
    "json": as_json,
    "ndjson": as_ndjson,
    "markdown": as_markdown,
}
