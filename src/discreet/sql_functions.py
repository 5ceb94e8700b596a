"""Functions of row expressions, by the name that is written: to our own nodes.

Names are BigQuery's, with the usual synonyms of other engines. What a function means is in `dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from discreet.errors import UsageError
from discreet.query import Apply, Constant, Node
from discreet.time_parts import DATE_PARTS, SHIFTS, TIME_PARTS

__all__ = ["FUNCTIONS", "Call", "interval_of", "part_of"]


@dataclass(frozen=True)
class Call:
    """A function call.

    Attributes:
        name: of the function, in capitals.
        arguments: what stood in its parentheses.
        convert: turns an expression into a `Node`.
    """

    name: str
    arguments: Sequence[exp.Expr]
    convert: Callable[[exp.Expr], Node]

    def node(self, place: int) -> Node:
        return self.convert(self.arguments[place])

    def nodes(self) -> tuple[Node, ...]:
        return tuple(self.convert(argument) for argument in self.arguments)

    def require(self, least: int, most: int | None) -> None:
        """
        Raises:
            UsageError: too few or too many arguments.
        """
        given = len(self.arguments)
        if given < least or (most is not None and given > most):
            wanted = str(least) if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            raise UsageError(self.name, f"takes {wanted} argument{'' if wanted == '1' else 's'}", given)


Builder: TypeAlias = Callable[[Call], Node]


def _plain(function: str, least: int, most: int | None = -1) -> Builder:
    """Arguments by place; `most` None for any number."""

    def build(call: Call) -> Node:
        call.require(least, least if most == -1 else most)
        return Apply(function, call.nodes())

    return build


def _extract(part: str) -> Builder:
    def build(call: Call) -> Node:
        call.require(1, 1)
        return Apply(f"extract_{part}", call.nodes())

    return build


_WEEKDAYS = {"SUNDAY": "WEEK", "MONDAY": "ISOWEEK"}


def part_of(node: exp.Expr, thing: str) -> str:
    """A part such as MONTH, 'month' or WEEK(MONDAY), in capitals and singular.

    Raises:
        UsageError: something else.
    """
    if isinstance(node, exp.Anonymous) and str(node.this).upper() == "WEEK" and len(node.expressions) == 1:
        day = str(node.expressions[0].name).upper()
        if day in _WEEKDAYS:
            return _WEEKDAYS[day]
        raise UsageError(thing, "knows weeks that begin on SUNDAY or MONDAY", day)
    if isinstance(node, exp.Column) and len(node.parts) == 1 and not node.this.quoted:
        return _singular(str(node.name))
    if isinstance(node, exp.Var) or (isinstance(node, exp.Literal) and node.is_string):
        return _singular(str(node.name))
    raise UsageError(thing, "takes a part such as DAY, MONTH or YEAR")


def _singular(part: str) -> str:
    part = part.strip().upper()
    return part.removesuffix("S") if part.endswith("S") else part


def _iso(part: str) -> str:
    """In PostgreSQL's and DuckDB's order, DATE_TRUNC('week', x), a week begins on Monday."""
    return "ISOWEEK" if part == "WEEK" else part


def _is_text(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _trunc(call: Call) -> Node:
    call.require(2, 2)
    first, second = call.arguments
    if _is_text(first):
        return Apply("date_trunc", (call.node(1), Constant(_iso(part_of(first, call.name)))))
    return Apply("date_trunc", (call.node(0), Constant(part_of(second, call.name))))


def _diff(call: Call) -> Node:
    call.require(3, 3)
    first, _, third = call.arguments
    if _is_text(first) and not _is_part(third):
        # DATE_DIFF('day', start, end), as DuckDB has it.
        return Apply("date_diff", (call.node(2), call.node(1), Constant(_iso(part_of(first, call.name)))))
    return Apply("date_diff", (call.node(0), call.node(1), Constant(part_of(third, call.name))))


_PARTS = frozenset((*DATE_PARTS, *TIME_PARTS, *SHIFTS))


def _is_part(node: exp.Expr) -> bool:
    try:
        return part_of(node, "") in _PARTS
    except UsageError:
        return False


def interval_of(node: exp.Expr) -> tuple[int, str]:
    """A literal interval as a number and a unit.

    Raises:
        UsageError: the number is not written out, is not whole, or has no unit.
    """
    example = "for example INTERVAL 7 DAY"
    value, unit = node.this, node.args.get("unit")
    written = str(value.this).strip() if isinstance(value, exp.Literal) else ""
    digits = written.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= 18) or not isinstance(unit, exp.Var):
        raise UsageError("INTERVAL", "takes a whole number that is written out, and a unit", hint=example)
    return int(written), _singular(str(unit.name))


def _shift(sign: int) -> Builder:
    def build(call: Call) -> Node:
        call.require(2, 3)
        if len(call.arguments) == 3:  # DATE_ADD(x, 3, DAY), as `query.sql()` prints it
            count, unit = call.node(1), part_of(call.arguments[2], call.name)
            if not isinstance(count, Constant) or not isinstance(count.value, int) or isinstance(count.value, bool):
                raise UsageError(call.name, "takes a whole number that is written out")
            return Apply("date_add", (call.node(0), Constant(sign * count.value), Constant(unit)))
        if not isinstance(call.arguments[1], exp.Interval):
            raise UsageError(call.name, "takes an interval", hint=f"{call.name}(x, INTERVAL 7 DAY)")
        number, unit = interval_of(call.arguments[1])
        return Apply("date_add", (call.node(0), Constant(sign * number), Constant(unit)))

    return build


def _date_part(call: Call) -> Node:
    call.require(2, 2)
    if not _is_text(call.arguments[0]):
        raise UsageError(call.name, "takes a part in quotes", hint=f"{call.name}('year', x)")
    return Apply(f"extract_{_iso(part_of(call.arguments[0], call.name)).lower()}", (call.node(1),))


def _date(call: Call) -> Node:
    call.require(1, 2)
    if len(call.arguments) == 1 and _is_text(call.arguments[0]):
        return Apply("cast", (call.node(0), Constant("DATE")))
    return Apply("date", call.nodes())


def _timestamp(call: Call) -> Node:
    call.require(1, 1)
    if _is_text(call.arguments[0]):
        return Apply("cast", (call.node(0), Constant("TIMESTAMPTZ")))
    return Apply("timestamp", call.nodes())


def _position(call: Call) -> Node:
    """POSITION('a' IN x) and INSTR(x, 'a') come as STRPOS(x, 'a')."""
    call.require(2, 2)
    return Apply("strpos", call.nodes())


def _negate(call: Call) -> Node:
    call.require(1, 1)
    return Apply("negate", call.nodes())


def _if(call: Call) -> Node:
    call.require(3, 3)
    return Apply("case", call.nodes())


def _regexp(call: Call) -> Node:
    call.require(2, 2)
    return Apply("regexp_contains", call.nodes())


FUNCTIONS: dict[str, Builder] = {
    # Numbers
    "ABS": _plain("abs", 1),
    "SIGN": _plain("sign", 1),
    "ROUND": _plain("round", 1, 2),
    "FLOOR": _plain("floor", 1),
    **dict.fromkeys(("CEIL", "CEILING"), _plain("ceil", 1)),
    "TRUNC": _plain("trunc", 1),
    "DIV": _plain("div", 2),
    "MOD": _plain("modulo", 2),
    "SAFE_ADD": _plain("add", 2),
    "SAFE_SUBTRACT": _plain("subtract", 2),
    "SAFE_MULTIPLY": _plain("multiply", 2),
    "SAFE_DIVIDE": _plain("divide", 2),
    "SAFE_NEGATE": _negate,
    "EXP": _plain("exp", 1),
    "LN": _plain("ln", 1),
    "LOG": _plain("log", 1, 2),
    "LOG10": _plain("log10", 1),
    "LOG2": _plain("log2", 1),
    "SQRT": _plain("sqrt", 1),
    **dict.fromkeys(("POW", "POWER"), _plain("pow", 2)),
    "BIN": _plain("bin", 4),
    # Choices
    "IF": _if,
    "COALESCE": _plain("coalesce", 1, None),
    **dict.fromkeys(("IFNULL", "NVL"), _plain("coalesce", 2)),
    "NULLIF": _plain("nullif", 2),
    "GREATEST": _plain("greatest", 1, None),
    "LEAST": _plain("least", 1, None),
    # Text
    **dict.fromkeys(("LOWER", "LCASE"), _plain("lower", 1)),
    **dict.fromkeys(("UPPER", "UCASE"), _plain("upper", 1)),
    "TRIM": _plain("trim", 1, 2),
    "LTRIM": _plain("ltrim", 1, 2),
    "RTRIM": _plain("rtrim", 1, 2),
    **dict.fromkeys(("SUBSTR", "SUBSTRING"), _plain("substr", 2, 3)),
    "LEFT": _plain("left", 2),
    "RIGHT": _plain("right", 2),
    "CONCAT": _plain("concat", 1, None),
    "REPLACE": _plain("replace", 3),
    "SPLIT_PART": _plain("split_part", 3),
    **dict.fromkeys(("LENGTH", "CHAR_LENGTH", "CHARACTER_LENGTH"), _plain("length", 1)),
    **dict.fromkeys(("BYTE_LENGTH", "OCTET_LENGTH"), _plain("byte_length", 1)),
    "STARTS_WITH": _plain("starts_with", 2),
    "ENDS_WITH": _plain("ends_with", 2),
    **dict.fromkeys(("STRPOS", "INSTR"), _position),
    **dict.fromkeys(("REGEXP_CONTAINS", "REGEXP_MATCHES"), _regexp),
    # Dates and times
    **{part: _extract(part.lower()) for part in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")},
    "DAYOFMONTH": _extract("day"),
    "DAYOFYEAR": _extract("dayofyear"),
    **dict.fromkeys(("DATE_PART", "DATEPART"), _date_part),
    "DATE": _date,
    "DATETIME": _plain("datetime", 1, 2),
    "TIMESTAMP": _timestamp,
    **dict.fromkeys(("DATE_TRUNC", "TIMESTAMP_TRUNC", "DATETIME_TRUNC"), _trunc),
    **dict.fromkeys(("DATE_DIFF", "TIMESTAMP_DIFF", "DATETIME_DIFF", "DATEDIFF"), _diff),
    **dict.fromkeys(("DATE_ADD", "TIMESTAMP_ADD", "DATETIME_ADD"), _shift(1)),
    **dict.fromkeys(("DATE_SUB", "TIMESTAMP_SUB", "DATETIME_SUB"), _shift(-1)),
    "LAST_DAY": _plain("last_day", 1),
    "UNIX_SECONDS": _plain("unix_seconds", 1),
    "UNIX_MILLIS": _plain("unix_millis", 1),
    "UNIX_MICROS": _plain("unix_micros", 1),
    "TIMESTAMP_SECONDS": _plain("timestamp_seconds", 1),
    "TIMESTAMP_MILLIS": _plain("timestamp_millis", 1),
    "TIMESTAMP_MICROS": _plain("timestamp_micros", 1),
}
"""What can be called in a row expression, beside CAST, EXTRACT and POSITION, which have a syntax of their own."""
