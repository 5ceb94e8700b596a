"""Functions of text: their types, and the bound on every text that they can build.

Lengths and places count characters (Unicode code points), from 1. Functions see the first 1,048,576 characters
of a column's value. What builds text (CONCAT, REPLACE) takes the first 1,000 characters of a part whose length
has no bound, and is refused where its result could have more than 10,000.
"""

from __future__ import annotations

from collections.abc import Callable

from discreet.coercion import is_null, shown
from discreet.errors import RefusedError, UsageError
from discreet.expressions import (
    LONGEST_BUILT_TEXT,
    LONGEST_PART,
    LONGEST_READ_TEXT,
    Expression,
    Literal,
    Operation,
    as_read,
    longest_text,
)
from discreet.patterns import BLANKS, check_like, check_pattern
from discreet.schema import BOOLEAN, INTEGER, TEXT, Kind

__all__ = ["TEXTS"]


def _require_text(operand: Expression, thing: str) -> None:
    if operand.type.kind is not Kind.TEXT:
        hint = "write CAST(x AS VARCHAR)" if not is_null(operand) else "write a text in single quotes"
        raise UsageError(thing, f"needs text; {shown(operand)} is {operand.type.kind}", hint=hint)


def _part(operand: Expression) -> Expression:
    """A part of a text that is built."""
    length = longest_text(operand)
    if length is None or length >= LONGEST_READ_TEXT:
        return Operation("cut", (operand, Literal(LONGEST_PART, INTEGER)), TEXT)
    return operand


def _built(operation: Operation, thing: str) -> Operation:
    longest = longest_text(operation)
    if longest is None or longest > LONGEST_BUILT_TEXT:
        rule = f"could build a text of more than {LONGEST_BUILT_TEXT} characters"
        raise RefusedError(thing, rule, hint="shorten the parts first: SUBSTR(x, 1, 100)")
    return operation


def _same(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        _require_text(operands[0], operator.upper())
        return Operation(operator, (as_read(operands[0]),), TEXT)

    return build


def _trim(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        thing = operator.upper()
        _require_text(operands[0], thing)
        characters = operands[1] if len(operands) > 1 else Literal(BLANKS, TEXT)
        if not isinstance(characters, Literal) or not isinstance(characters.value, str) or not characters.value:
            raise UsageError(thing, "takes the characters to cut off in quotes", hint=f"{thing}(x, '/ ')")
        return Operation(operator, (as_read(operands[0]), characters), TEXT)

    return build


def _whole_constant(operand: Expression, thing: str, low: int, example: str) -> int:
    value = operand.value if isinstance(operand, Literal) else None
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= LONGEST_READ_TEXT:
        rule = f"takes places and lengths that are written out, from {low} to {LONGEST_READ_TEXT}"
        raise UsageError(thing, rule, None if value is None else str(value), example)
    return value


def _substr(operands: list[Expression]) -> Expression:
    example = "for example SUBSTR(x, 1, 3)"
    _require_text(operands[0], "SUBSTR")
    start = _whole_constant(operands[1], "SUBSTR", -LONGEST_READ_TEXT, example)
    length = _whole_constant(operands[2], "SUBSTR", 0, example) if len(operands) > 2 else LONGEST_READ_TEXT
    if start < 0:
        # As in BigQuery: counted from the end, and from the first character where there are fewer.
        tail = Operation("right", (as_read(operands[0]), Literal(-start, INTEGER)), TEXT)
        return Operation("left", (tail, Literal(length, INTEGER)), TEXT)
    start = start or 1  # as in BigQuery, place 0 is place 1
    inside = start + length - 1 <= LONGEST_READ_TEXT  # what functions see needs no cut to be seen
    subject = operands[0] if inside else as_read(operands[0])
    return Operation("substr", (subject, Literal(start, INTEGER), Literal(length, INTEGER)), TEXT)


def _side(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        thing = operator.upper()
        _require_text(operands[0], thing)
        length = _whole_constant(operands[1], thing, 0, f"for example {thing}(x, 3)")
        subject = operands[0] if operator == "left" else as_read(operands[0])
        return Operation(operator, (subject, Literal(length, INTEGER)), TEXT)

    return build


def _concat(operands: list[Expression]) -> Expression:
    for operand in operands:
        _require_text(operand, "CONCAT")
    return _built(Operation("concat", tuple(_part(operand) for operand in operands), TEXT), "CONCAT")


def _replace(operands: list[Expression]) -> Expression:
    subject, *texts = operands
    _require_text(subject, "REPLACE")
    if not all(isinstance(text, Literal) and isinstance(text.value, str) for text in texts) or texts[0].value == "":  # type: ignore[union-attr]
        raise UsageError("REPLACE", "takes two texts in quotes, the first not empty", hint="REPLACE(x, '-', '')")
    return _built(Operation("replace", (_part(subject), *texts), TEXT), "REPLACE")


def _split_part(operands: list[Expression]) -> Expression:
    subject, separator, place = operands
    example = "for example SPLIT_PART(x, '/', 1)"
    _require_text(subject, "SPLIT_PART")
    if not isinstance(separator, Literal) or not isinstance(separator.value, str) or not separator.value:
        raise UsageError("SPLIT_PART", "takes a separator in quotes, not empty", hint=example)
    number = _whole_constant(place, "SPLIT_PART", 1, example)
    return Operation("split_part", (as_read(subject), separator, Literal(number, INTEGER)), TEXT)


def _length(operator: str, thing: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        _require_text(operands[0], thing)
        return Operation(operator, tuple(operands), INTEGER)

    return build


def _pair(operator: str, thing: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        for operand in operands:
            _require_text(operand, thing)
        return Operation(operator, tuple(operands), INTEGER if operator == "strpos" else BOOLEAN)

    return build


def _pattern(operator: str, thing: str, check: Callable[[str, str], None]) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        subject, pattern = operands
        _require_text(subject, thing)
        if not isinstance(pattern, Literal) or not isinstance(pattern.value, str):
            raise UsageError(thing, "takes a pattern that is written out in quotes")
        check(pattern.value, thing)
        return Operation(operator, (as_read(subject) if operator == "regexp_contains" else subject, pattern), BOOLEAN)

    return build


TEXTS: dict[str, Callable[[list[Expression]], Expression]] = {
    "lower": _same("lower"),
    "upper": _same("upper"),
    "trim": _trim("trim"),
    "ltrim": _trim("ltrim"),
    "rtrim": _trim("rtrim"),
    "substr": _substr,
    "left": _side("left"),
    "right": _side("right"),
    "concat": _concat,
    "replace": _replace,
    "split_part": _split_part,
    "length": _length("length", "LENGTH"),
    "byte_length": _length("byte_length", "BYTE_LENGTH"),
    "strpos": _pair("strpos", "STRPOS"),
    "starts_with": _pair("starts_with", "STARTS_WITH"),
    "ends_with": _pair("ends_with", "ENDS_WITH"),
    "like": _pattern("like", "LIKE", check_like),
    "ilike": _pattern("ilike", "ILIKE", check_like),
    "regexp_contains": _pattern("regexp_contains", "REGEXP_CONTAINS", check_pattern),
}
