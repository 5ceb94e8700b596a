"""Row expressions after their names and types are settled: a closed set of total, deterministic operators.

*Total* means that no row can make one raise, whatever it holds; each operator's rendering in `rendering`
keeps that promise for each engine (design, section 2, rule 6). A value is NULL where it has no meaning.

What the values of each kind are:

- INTEGER of 64 bits, or of 128 bits within what the operator says; a result beyond is NULL;
- DECIMAL(p, s), exact; an operator's result type holds every result of its operands' types;
- FLOAT: NULL, finite, or infinite. Never NaN: what has no value is NULL. Bounds clamp infinities later;
- TEXT: every operator that builds text has a bound on the length of its result, `longest_text`;
- DATE, TIMESTAMP, TIMESTAMPTZ: in the years 1 to 9999, in UTC; beyond is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.errors import UsageError
from discreet.query import Scalar
from discreet.schema import INTEGER, TEXT, Kind, Type

__all__ = [
    "DEEPEST",
    "LARGEST",
    "LONGEST_BUILT_TEXT",
    "LONGEST_PART",
    "LONGEST_READ_TEXT",
    "Expression",
    "Field",
    "Literal",
    "Operation",
    "as_read",
    "canonical",
    "check_size",
    "depth",
    "fields_in",
    "longest_text",
    "rendered_size",
]

DEEPEST = 40
"""How deep operators may nest: engines and our own code recurse along an expression."""

LARGEST = 20_000
"""How many parts an expression may have once it is written out for an engine (`rendered_size`)."""

LONGEST_READ_TEXT = 2**20
"""Functions of text see so many characters of a column's value, and no more."""

LONGEST_PART = 1_000
"""Of a column's value, so many characters go into a text that is built (CONCAT, REPLACE)."""

LONGEST_BUILT_TEXT = 10_000
"""No text that is built may be able to be longer, in characters."""


@dataclass(frozen=True)
class Field:
    """A column of the registered relation, by its place in the schema."""

    position: int
    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant, already of the type that its context wants; None is NULL."""

    value: Scalar
    type: Type


@dataclass(frozen=True)
class Operation:
    """An operator on typed operands. Operands that are said to be literal are `Literal`s.

    Conditions (BOOLEAN): ``eq ne lt le gt ge is_distinct`` (two operands of one type), ``and or`` (any
    number), ``not``, ``in`` (the first among the others), ``is_null``; on text ``like``, ``ilike``,
    ``regexp_contains`` (second operand literal), ``starts_with``, ``ends_with``.

    Any type: ``case`` (condition, value, condition, value, ..., default), ``coalesce``, ``nullif``,
    ``greatest``, ``least`` (operands of one type, which is the result's).

    Numbers (the operands are of the result's type): ``add subtract multiply``, ``divide`` (FLOAT), ``div``,
    ``modulo`` (INTEGER), ``negate``, ``abs``, ``sign`` (to INTEGER), ``floor ceil trunc round`` (to INTEGER),
    ``round_to`` (second operand: literal places), ``exp ln log10 log2 sqrt`` and ``pow`` (FLOAT); ``bin`` (the
    value, then literal edges with the bins' values between them, see `binding_numbers`).

    Text: ``lower upper trim ltrim rtrim`` (second operand: literal characters), ``substr`` (literal start and
    length), ``left right`` (literal length), ``split_part`` (literal separator and place), ``concat``, ``replace``
    (literals), ``cut`` (literal length); to INTEGER ``length byte_length strpos``.

    Time: ``extract_PART``, ``trunc_PART``, ``diff_PART`` (first minus second), ``shift_UNIT`` (second operand: a
    literal count), ``days_between``, ``seconds_between``, ``last_day``, ``at_zone`` (TIMESTAMPTZ to local
    TIMESTAMP, literal zone), ``from_zone``, ``unix_UNIT``, ``from_unix_UNIT``.

    Types: ``to_TYPE`` from each type that `casts` allows: ``to_boolean to_integer to_huge to_decimal to_float
    to_text to_date to_timestamp to_timestamptz``.
    """

    operator: str
    operands: tuple[Expression, ...]
    type: Type


Expression: TypeAlias = Field | Literal | Operation


def fields_in(expression: Expression) -> Iterator[Field]:
    """Every column that an expression reads, in order."""
    if isinstance(expression, Field):
        yield expression
    elif isinstance(expression, Operation):
        for operand in expression.operands:
            yield from fields_in(operand)


def canonical(expression: Expression | None) -> Any:
    """The expression as plain JSON values, for digests: equal for equal expressions, else different."""
    match expression:
        case None:
            return None
        case Field(position, name, kind):
            return ["field", position, name, str(kind)]
        case Literal(value, kind):
            return ["literal", type(value).__name__, str(value), str(kind)]
        case Operation(operator, operands, kind):
            return [operator, str(kind), *(canonical(operand) for operand in operands)]


def depth(expression: Expression) -> int:
    """How many operators nest."""
    if isinstance(expression, Operation):
        return 1 + max((depth(operand) for operand in expression.operands), default=0)
    return 0


_COPIES = {
    # How often an operand can stand in the text that an operator is rendered to, where it is more than once.
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge", "is_distinct", "is_null", "in"), 2),
    **dict.fromkeys(("coalesce", "greatest", "least", "sign"), 3),
    **dict.fromkeys(("div", "modulo", "nullif"), 4),
    **dict.fromkeys(("divide", "ln", "log10", "log2", "sqrt", "pow"), 3),
    **dict.fromkeys(("floor", "ceil", "trunc", "round", "round_to", "abs"), 2),
    **dict.fromkeys(("at_zone", "from_zone", "last_day"), 2),
}
_COPIES_BY_PREFIX = {"shift_": 2, "trunc_": 2, "extract_": 2, "diff_": 2, "from_unix_": 2, "to_": 3}


def _copies(operator: str) -> int:
    if operator in _COPIES:
        return _COPIES[operator]
    return next((copies for prefix, copies in _COPIES_BY_PREFIX.items() if operator.startswith(prefix)), 1)


def rendered_size(expression: Expression) -> int:
    """An upper estimate of the parts of an expression when it is written out: guards repeat their operands."""
    if not isinstance(expression, Operation):
        return 1
    inner = sum(rendered_size(operand) for operand in expression.operands)
    if expression.operator == "bin":
        # The value stands once beside every inner edge.
        return len(expression.operands) + len(expression.operands) // 2 * rendered_size(expression.operands[0])
    return 1 + _copies(expression.operator) * inner


def check_size(expression: Expression, thing: str) -> None:
    """
    Raises:
        UsageError: the expression nests too deeply or is too large.
    """
    if depth(expression) > DEEPEST:
        raise UsageError(thing, f"must not nest more than {DEEPEST} operators", hint="ask for less in one query")
    if rendered_size(expression) > LARGEST:
        rule = f"must not have more than {LARGEST} parts when it is written out for the engine"
        raise UsageError(thing, rule, hint="split CASE, COALESCE and divisions that stand inside each other")


def as_read(expression: Expression) -> Expression:
    """A column's text as functions see it: its first `LONGEST_READ_TEXT` characters."""
    if isinstance(expression, Field) and expression.type == TEXT:
        return Operation("cut", (expression, Literal(LONGEST_READ_TEXT, INTEGER)), TEXT)
    return expression


_SAME_LENGTH = frozenset(("lower", "upper", "trim", "ltrim", "rtrim", "split_part", "nullif"))


def longest_text(expression: Expression) -> int | None:
    """The most characters (code points) that a TEXT expression's value can have; None for a column's own."""
    match expression:
        case Field():
            return None
        case Literal(value, _):
            return len(value) if isinstance(value, str) else 0
        case Operation(operator, operands, _):
            return _longest(operator, operands)


def _longest(operator: str, operands: tuple[Expression, ...]) -> int | None:
    match operator:
        case "cut" | "left" | "right":
            return min(_number(operands[1]), _or_much(longest_text(operands[0])))
        case "substr":
            return min(_number(operands[2]), _or_much(longest_text(operands[0])))
        case "concat":
            return sum(_or_much(longest_text(operand)) for operand in operands)
        case "replace":
            old, new = longest_text(operands[1]) or 1, longest_text(operands[2]) or 0
            return max(1, -(-new // old)) * _or_much(longest_text(operands[0]))
        case "to_text":
            # Numbers have at most 40 characters, dates and times fewer; a text keeps its length.
            return longest_text(operands[0]) if operands[0].type.kind is Kind.TEXT else 48
        case _ if operator in _SAME_LENGTH:
            return longest_text(operands[0])
        case "case":
            values = [*operands[1:-1:2], operands[-1]]
        case _:  # coalesce, greatest, least: one of them
            values = list(operands)
    lengths = [longest_text(value) for value in values]
    return None if None in lengths else max(length for length in lengths if length is not None)


def _or_much(length: int | None) -> int:
    return LONGEST_READ_TEXT if length is None else length


def _number(expression: Expression) -> int:
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return expression.value
    raise AssertionError("a length that is not literal")
