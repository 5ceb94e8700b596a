"""An answer as text: a table for people, CSV, JSON, JSON lines and Markdown for everything else."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

from discreet.answer import Answer, AnswerColumn, Value, plain
from discreet.exact import decimal_text

__all__ = [
    "FORMATS",
    "as_csv",
    "as_json",
    "as_markdown",
    "as_ndjson",
    "as_table",
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
    body = ",\n".join("  " + json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows)
    return f"[\n{body}\n]\n"


def as_ndjson(answer: Answer) -> str:
    """One object a line."""
    rows = ({name: plain(value) for name, value in row.items()} for row in answer.rows())
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def as_markdown(answer: Answer) -> str:
    """A Markdown table for people."""
    return render_markdown(*_cells(answer))


def render_markdown(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """A Markdown table; numeric columns stand to the right."""
    lines = ["| " + " | ".join(_escaped(h) for h in headers) + " |"]
    lines.append("|" + "|".join("---:" if right else "---" for right in numeric) + "|")
    lines += ["| " + " | ".join(_escaped(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("\r", " ")


def as_table(answer: Answer) -> str:
    """An aligned text table for people."""
    headers, rows, numeric = _cells(answer)
    return render_table(headers, rows, numeric)


def render_table(headers: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool]) -> str:
    """Aligned columns under a rule; wide characters take two places."""
    from rich.cells import cell_len

    clean = [[_printable(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(cell_len(row[i]) for row in clean) for i in range(len(headers))]

    def line(row: Sequence[str]) -> str:
        cells = []
        for cell, width, right in zip(row, widths, numeric, strict=True):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if right else cell + space)
        return "  ".join(cells).rstrip()

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([line(clean[0]), rule, *(line(row) for row in clean[1:])]) + "\n"


def _printable(text: str) -> str:
    """Control characters would let a key move the terminal's cursor."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _cells(answer: Answer) -> tuple[list[str], list[list[str]], list[bool]]:
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
        places, shown = _places(column), _precision(column)
        columns.append([_statistic(value, places, shown) for value in column.values])
        headers.append(f"{level} % interval")
        columns.append([_ends(low, high, places, shown) for low, high in zip(column.low, column.high, strict=True)])
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


def shown_parts(column: AnswerColumn) -> list[tuple[str, str]]:
    """A column's values and intervals as a table shows them; "" where there is no interval."""
    if column.low is None or column.high is None:
        return [(key_text(value), "") for value in column.values]
    places, precision = _places(column), _precision(column)
    found = []
    for value, low, high in zip(column.values, column.low, column.high, strict=True):
        ends = "" if low is None or high is None else _ends(low, high, places, precision)
        found.append((_statistic(value, places, precision), ends))
    return found


def _ends(low: Value, high: Value, places: int, precision: str) -> str:
    if low is None or high is None:
        return "none"
    return f"{_statistic(low, places, precision)} … {_statistic(high, places, precision)}"


def _statistic(value: Value, places: int, precision: str) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec=precision)
    return key_text(value) if isinstance(value, datetime.date) else _number(value, places)


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


def _places(column: AnswerColumn) -> int:
    """Decimal places that the noise justifies: two significant digits of the narrowest interval."""
    if column.low is None or column.high is None or all(isinstance(v, int) for v in column.values):
        return 0
    ends = zip(column.low, column.high, strict=True)
    widths = [
        high / 2 - low / 2 for low, high in ends if isinstance(low, int | float) and isinstance(high, int | float)
    ]
    halves = [half for half in widths if half > 0]
    if not halves:
        return 4
    return max(0, min(12, 1 - math.floor(math.log10(min(halves)))))


def _number(value: Value, places: int) -> str:
    if value is None:
        return "(missing)"
    if isinstance(value, int):
        return f"{value:,}"
    number = float(str(value))
    if abs(number) >= 1e15:
        return f"{number:.6g}"
    text = f"{number:,.{places}f}"
    return text.replace("-", "", 1) if float(text.replace(",", "")) == 0 and text.startswith("-") else text


FORMATS: dict[str, Callable[[Answer], str]] = {
    "table": as_table,
    "csv": as_csv,
    "json": as_json,
    "ndjson": as_ndjson,
    "markdown": as_markdown,
}
