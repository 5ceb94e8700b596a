"""Arithmetic on noisy values: HAVING, ORDER BY and outputs such as ``SUM(x) / COUNT(*)``, in Python.

A formula's slots are filled with values that have met their noise and with public keys. Nothing private is in
hand, so any function will do (Dwork and Roth 2014, proposition 2.1: post-processing keeps differential
privacy). It is total nevertheless: a formula runs after the debit, and a failure there would lose the answer.
Division by zero, logarithms of what is not positive, and numbers beyond a double are missing (None).

Whole numbers stay exact; a decimal is a rational while it is computed with; a quotient is never whole. Functions
mean what they mean in row expressions: FLOOR, CEIL, TRUNC and ROUND to no place give whole numbers.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.casts import cast_target
from discreet.coercion import coerce
from discreet.errors import RefusedError, UsageError
from discreet.formula_functions import COMPARISONS, FUNCTIONS, FormulaValue, Interval, Number, Sort
from discreet.query import Scalar
from discreet.schema import DATE, TIMESTAMP, TIMESTAMPTZ, Kind

__all__ = ["Call", "Fixed", "Formula", "Slot", "Sort", "call", "canonical_formula", "enclose", "evaluate", "fixed"]

DEEPEST = 100
"""How deep a formula may be nested: far below Python's own limit on recursion."""


@dataclass(frozen=True)
class Slot:
    """A value to be filled in: the part of the formula at `place`."""

    place: int
    sort: Sort


@dataclass(frozen=True)
class Fixed:
    """A constant."""

    value: Scalar
    sort: Sort


@dataclass(frozen=True)
class Call:
    """A function of the table below, applied."""

    function: str
    arguments: tuple[Formula, ...]
    sort: Sort
    depth: int


Formula: TypeAlias = Slot | Fixed | Call


def fixed(value: Scalar) -> Fixed:
    """A constant, with its sort."""
    return Fixed(value, _sort_of(value))


def _sort_of(value: Scalar) -> Sort:
    match value:
        case None:
            return Sort.NULL
        case bool():
            return Sort.BOOLEAN
        case int():
            return Sort.WHOLE
        case Decimal():
            return Sort.NUMBER
        case str():
            return Sort.TEXT
        case datetime.datetime():
            return Sort.TIMESTAMPTZ if value.tzinfo else Sort.TIMESTAMP
        case _:
            return Sort.DATE


def call(function: str, arguments: Sequence[Formula], thing: str) -> Call:
    """A function applied, its sorts checked.

    Args:
        function: by the name that `query.Apply` uses.
        arguments: formulas.
        thing: the clause, for errors.

    Raises:
        RefusedError: a function that is not answered on aggregates.
        UsageError: arguments of sorts that do not go together, or nested too deeply.
    """
    if function == "cast":
        return _cast(arguments, thing)
    rule = FUNCTIONS.get(function)
    if rule is None:
        raise RefusedError(
            f"{thing}, {function.upper().replace('_', ' ')}",
            "is not available between aggregates",
            hint="arithmetic, comparisons, CASE, COALESCE, CAST, the functions of numbers and text, EXTRACT, GREATEST "
            "and LEAST are; a key can be computed in GROUP BY, and anything with the answer: that is free",
        )
    depth = 1 + max((a.depth for a in arguments if isinstance(a, Call)), default=0)
    if depth > DEEPEST:
        raise UsageError(thing, f"must be nested at most {DEEPEST} deep")
    arguments = _same_kind(arguments, thing) if function in (*COMPARISONS, "in", "is_distinct") else arguments
    return Call(function, tuple(arguments), rule.sort([a.sort for a in arguments], thing), depth)


def _cast(arguments: Sequence[Formula], thing: str) -> Call:
    """CAST(x AS T), the second argument being the type's name."""
    subject, name = arguments
    target = cast_target(name.value if isinstance(name, Fixed) and isinstance(name.value, str) else "")
    match target.kind:
        case Kind.FLOAT:
            return call("to_number", [subject], thing)
        case Kind.INTEGER:
            return call("to_whole", [subject], thing)
        case Kind.DECIMAL:
            return call("round", [call("to_number", [subject], thing), fixed(target.scale)], thing)
        case Kind.BOOLEAN:
            return call("to_boolean", [subject], thing)
        case Kind.TEXT:
            return call("to_text", [subject], thing)
    raise RefusedError(f"{thing}, CAST", f"makes no {target.kind} between aggregates", hint="compute it in GROUP BY")


def _same_kind(arguments: Sequence[Formula], thing: str) -> list[Formula]:
    """Text constants beside dates and times become dates and times."""
    temporal = {Sort.DATE: DATE, Sort.TIMESTAMP: TIMESTAMP, Sort.TIMESTAMPTZ: TIMESTAMPTZ}
    target = next((temporal[a.sort] for a in arguments if a.sort in temporal), None)
    if target is None:
        return list(arguments)
    return [
        fixed(coerce(a.value, target, thing).value) if isinstance(a, Fixed) and isinstance(a.value, str) else a
        for a in arguments
    ]


def evaluate(formula: Formula, values: Sequence[FormulaValue]) -> Scalar | float:
    """The formula's value; missing (None) where it has none.

    Args:
        formula: what to compute.
        values: what fills the slots, in order.
    """
    return _plain(_value(formula, values), formula.sort)


def _plain(value: FormulaValue, sort: Sort) -> Scalar | float:
    """A number of sort NUMBER leaves as a double."""
    if value is None or not sort.is_number or sort is Sort.WHOLE:
        return None if isinstance(value, Fraction) else value
    try:
        number = float(value)  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _value(formula: Formula, values: Sequence[FormulaValue]) -> FormulaValue:
    match formula:
        case Slot(place, _):
            value = values[place]
        case Fixed(value, _):
            pass
        case Call(function, arguments, _, _):
            return FUNCTIONS[function].apply([_value(a, values) for a in arguments])
    return Fraction(value) if isinstance(value, Decimal) else value


def enclose(formula: Formula, intervals: Sequence[Interval | None]) -> tuple[int | float, int | float] | None:
    """Two numbers that surely hold the formula's value if each slot's value lies in its interval; None if there are
    no such numbers, or none that this simple interval arithmetic finds (Moore 1966, "Interval analysis").

    Args:
        formula: what is computed.
        intervals: of the slots, in order; None where a slot has none.

    Its ends are doubles: right up to their rounding.
    """
    found = _enclosure(formula, intervals)
    if found is None or formula.sort is Sort.WHOLE:
        return found  # type: ignore[return-value]
    low, high = (_plain(end, Sort.NUMBER) for end in found)
    return None if low is None or high is None else (low, high)  # type: ignore[return-value]


def _enclosure(formula: Formula, intervals: Sequence[Interval | None]) -> Interval | None:
    match formula:
        case Slot(place, _):
            return intervals[place]
        case Fixed(value, sort):
            if not sort.is_number:
                return None
            exact = Fraction(value) if isinstance(value, Decimal) else value
            return (exact, exact)  # type: ignore[return-value]
        case Call(function, arguments, _, _):
            rule = FUNCTIONS[function].enclose
            if rule is None:
                return None
            inner = [_enclosure(a, intervals) for a in arguments]
            if function == "coalesce" and inner[0] is not None:
                return inner[0]  # it has a value all over the interval, so the others are never taken
            known = [i for i in inner if i is not None]
            ends = rule(known) if len(known) == len(inner) else None
            if ends is None or not all(_finite(end) for end in ends):
                return None
            return ends[0], ends[1]  # type: ignore[return-value]


def _finite(x: Number | None) -> bool:
    return x is not None and (not isinstance(x, float) or math.isfinite(x))


def canonical_formula(formula: Formula) -> Any:
    """As plain JSON values, for digests."""
    match formula:
        case Slot(place, _):
            return ["slot", place]
        case Fixed(value, _):
            return ["constant", type(value).__name__, str(value)]
        case Call(function, arguments, _, _):
            return [function, *(canonical_formula(a) for a in arguments)]
