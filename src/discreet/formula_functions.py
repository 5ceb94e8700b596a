"""The functions of formulas on noisy values: their sorts, their values, intervals for them. See `formulas`.

Every one is total: where a function has no value, or none that a double can hold, its value is missing (None).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.errors import UsageError
from discreet.formula_texts import TEXT_FUNCTIONS
from discreet.query import Scalar

__all__ = ["COMPARISONS", "FUNCTIONS", "FormulaValue", "Interval", "Number", "Sort"]

Number: TypeAlias = int | float | Fraction
FormulaValue: TypeAlias = Scalar | float | Fraction
Interval: TypeAlias = tuple[Number, Number]

_BEYOND_DOUBLES = 2**1024


class Sort(StrEnum):
    """What a formula's value is."""

    WHOLE = "a whole number"
    NUMBER = "a number"
    TEXT = "text"
    BOOLEAN = "a condition"
    DATE = "a date"
    TIMESTAMP = "a time"
    TIMESTAMPTZ = "a time with a zone"
    NULL = "NULL"

    @property
    def is_number(self) -> bool:
        return self in (Sort.WHOLE, Sort.NUMBER)


@dataclass(frozen=True)
class _Function:
    """A function's rule of sorts, its value, and an interval for it from intervals of its arguments."""

    sort: Callable[[list[Sort], str], Sort]
    apply: Callable[[list[Any]], FormulaValue]
    enclose: Callable[[list[Interval]], tuple[Number | None, Number | None] | None] | None = None


def _numbers(least: int, most: int, *, whole: bool) -> Callable[[list[Sort], str], Sort]:
    """`least` to `most` numbers to a number, which is whole if `whole` and they all are."""

    def sort(sorts: list[Sort], thing: str) -> Sort:
        _arity(sorts, least, most, thing)
        for given in sorts:
            if not given.is_number and given is not Sort.NULL:
                raise UsageError(thing, f"computes with {given}, where a number is needed")
        return Sort.WHOLE if whole and all(s in (Sort.WHOLE, Sort.NULL) for s in sorts) else Sort.NUMBER

    return sort


def _rounds(sorts: list[Sort], thing: str) -> Sort:
    """To a whole number, or to given decimal places."""
    found = _numbers(1, 2, whole=True)(sorts, thing)
    return found if len(sorts) == 2 else Sort.WHOLE


def _made(result: Sort, *of: Sort) -> Callable[[list[Sort], str], Sort]:
    """CAST from some sorts."""

    def sort(sorts: list[Sort], thing: str) -> Sort:
        if sorts[0] not in (*of, Sort.NULL):
            raise UsageError(f"{thing}, CAST", f"cannot make {result} from {sorts[0]}")
        return result

    return sort


def _arity(sorts: list[Sort], least: int, most: int, thing: str) -> None:
    if not least <= len(sorts) <= most:
        raise UsageError(thing, "has a function with too few or too many arguments", len(sorts))


def _conditions(least: int, most: int) -> Callable[[list[Sort], str], Sort]:
    def sort(sorts: list[Sort], thing: str) -> Sort:
        _arity(sorts, least, most, thing)
        for given in sorts:
            if given not in (Sort.BOOLEAN, Sort.NULL):
                raise UsageError(thing, f"has {given} where a condition is needed")
        return Sort.BOOLEAN

    return sort


def _one_sort(sorts: list[Sort], thing: str) -> Sort:
    """What the values of all these sorts are together."""
    found = {s for s in sorts if s is not Sort.NULL}
    if not found:
        return Sort.NULL
    if len(found) == 1:
        return found.pop()
    if all(s.is_number for s in found):
        return Sort.NUMBER
    raise UsageError(thing, f"puts together {' and '.join(sorted(found))}")


def _compares(sorts: list[Sort], thing: str) -> Sort:
    _one_sort(sorts, thing)
    return Sort.BOOLEAN


def _chooses(least: int, most: int) -> Callable[[list[Sort], str], Sort]:
    def sort(sorts: list[Sort], thing: str) -> Sort:
        _arity(sorts, least, most, thing)
        return _one_sort(sorts, thing)

    return sort


def _case_sort(sorts: list[Sort], thing: str) -> Sort:
    _conditions(1, 1000)(sorts[0:-1:2], thing)
    return _one_sort([*sorts[1:-1:2], sorts[-1]], thing)


def _texts(sorts: list[Sort], thing: str) -> Sort:
    for given in sorts:
        if given not in (Sort.TEXT, Sort.NULL):
            raise UsageError(thing, f"has {given} where text is needed")
    return Sort.TEXT


_OF_SHAPES = {"text": Sort.TEXT, "whole": Sort.WHOLE, "condition": Sort.BOOLEAN}


def _shaped(shapes: Sequence[Sequence[str]], result: str) -> Callable[[list[Sort], str], Sort]:
    """Arguments of one of the shapes to a result."""

    def sort(sorts: list[Sort], thing: str) -> Sort:
        _arity(sorts, min(map(len, shapes)), max(map(len, shapes)), thing)
        shape = next(shape for shape in shapes if len(shape) == len(sorts))
        for given, wanted in zip(sorts, shape, strict=True):
            if given not in (_OF_SHAPES[wanted], Sort.NULL):
                raise UsageError(thing, f"has {given} where {_OF_SHAPES[wanted]} is needed")
        return _OF_SHAPES[result]

    return sort


def _strict(function: Callable[..., Any]) -> Callable[[list[Any]], FormulaValue]:
    """Missing if an argument is; and missing where the function has no (finite) value."""

    def apply(values: list[Any]) -> FormulaValue:
        if any(value is None for value in values):
            return None
        try:
            result = function(*values)
        except (OverflowError, ZeroDivisionError, ValueError):
            return None
        return _sized(result)

    return apply


def _sized(result: Any) -> FormulaValue:
    """Missing beyond a double's range; a rational of very many digits goes on as a double."""
    if isinstance(result, float):
        return result if math.isfinite(result) else None
    if isinstance(result, int) and abs(result) >= _BEYOND_DOUBLES:
        return None
    if isinstance(result, Fraction) and max(result.numerator.bit_length(), result.denominator.bit_length()) > 4096:
        return None if abs(result) >= _BEYOND_DOUBLES else float(result)
    return result  # type: ignore[no-any-return]


def _divide(a: Number, b: Number) -> Number:
    return a / b if isinstance(a, float) or isinstance(b, float) else Fraction(a) / b


def _size(x: Number) -> Number:
    return x if x >= 0 else -x


def _modulo(a: Number, b: Number) -> Number:
    """The remainder with the dividend's sign, as in SQL."""
    if b == 0:
        raise ZeroDivisionError
    if isinstance(a, float) or isinstance(b, float):
        return math.fmod(a, b)
    size, by = Fraction(_size(a)), Fraction(_size(b))
    rest = size % by if a >= 0 else -(size % by)
    return int(rest) if isinstance(a, int) and isinstance(b, int) else rest


def _round(x: Number, places: int = 0) -> Number:
    """To the nearest, halves away from zero, exactly."""
    if abs(places) > 400:
        raise OverflowError
    factor = Fraction(10) ** int(places)
    exact = Fraction(x) * factor
    rounded = math.floor(abs(exact) + Fraction(1, 2)) / factor
    rounded = rounded if exact >= 0 else -rounded
    return int(rounded) if isinstance(x, int) or places == 0 else rounded


def _round_to(x: Number, places: Number) -> Number:
    return _round(x, int(places)) if isinstance(x, int) else Fraction(_round(x, int(places)))


def _quotient(a: Number, b: Number) -> Number:
    """Division rounded towards zero."""
    return math.trunc(Fraction(a) / Fraction(b))


def _log(x: Number, base: Number | None = None) -> float:
    return math.log(x) if base is None else math.log(x) / math.log(base)


def _sign(x: Number) -> int:
    return (x > 0) - (x < 0)


def _and(values: list[Any]) -> bool | None:
    if any(value is False for value in values):
        return False
    return None if any(value is None for value in values) else True


def _or(values: list[Any]) -> bool | None:
    if any(value is True for value in values):
        return True
    return None if any(value is None for value in values) else False


def _in(values: list[Any]) -> bool | None:
    if values[0] is None:
        return None
    if values[0] in [value for value in values[1:] if value is not None]:
        return True
    return None if None in values[1:] else False


def _case(values: list[Any]) -> FormulaValue:
    for condition, value in zip(values[0:-1:2], values[1:-1:2], strict=True):
        if condition is True:
            return value  # type: ignore[no-any-return]
    return values[-1]  # type: ignore[no-any-return]


def _coalesce(values: list[Any]) -> FormulaValue:
    return next((value for value in values if value is not None), None)


def _nullif(values: list[Any]) -> FormulaValue:
    return None if values[0] == values[1] else values[0]


def _extract(part: str) -> _Function:
    def sort(sorts: list[Sort], thing: str) -> Sort:
        if sorts[0] not in (Sort.DATE, Sort.TIMESTAMP, Sort.TIMESTAMPTZ):
            raise UsageError(thing, f"takes the {part} of {sorts[0]}")
        return Sort.WHOLE

    def apply(moment: Any) -> int:
        found = _PARTS.get(part)
        return int(getattr(moment, part, 0)) if found is None else found(moment)

    return _Function(sort, _strict(apply))


_PARTS: dict[str, Callable[[Any], int]] = {
    "quarter": lambda x: (x.month + 2) // 3,
    "dayofyear": lambda x: x.timetuple().tm_yday,
    "dayofweek": lambda x: x.isoweekday() % 7 + 1,
    "dow": lambda x: x.isoweekday() % 7,
    "isodow": lambda x: x.isoweekday(),
    "week": lambda x: (x.timetuple().tm_yday + 6 - x.isoweekday() % 7) // 7,
    "isoweek": lambda x: x.isocalendar()[1],
    "isoyear": lambda x: x.isocalendar()[0],
}


def _monotone(function: Callable[[Number], Number]) -> Callable[[list[Interval]], Any]:
    total = _strict(function)
    return lambda i: (total([i[0][0]]), total([i[0][1]]))


def _corners(function: Callable[[Number, Number], Number]) -> Callable[[list[Interval]], Any]:
    """For what is monotone in each argument (products, and quotients by what is not 0)."""
    total = _strict(function)

    def enclose_(i: list[Interval]) -> Any:
        found: list[Any] = [total([a, b]) for a in i[0] for b in i[1]]
        return None if None in found else (min(found), max(found))

    return enclose_


def _quotient_interval(i: list[Interval]) -> Any:
    return None if i[1][0] <= 0 <= i[1][1] else _corners(_divide)(i)


def _rounded_interval(i: list[Interval]) -> Any:
    if len(i) == 2 and i[1][0] != i[1][1]:
        return None
    places = int(i[1][0]) if len(i) == 2 else 0
    return _monotone(lambda x: _round(x, places))(i[:1])


def _abs_interval(i: list[Interval]) -> Any:
    low, high = i[0]
    return (0 if low <= 0 <= high else min(_size(low), _size(high)), max(_size(low), _size(high)))


def _nullif_interval(i: list[Interval]) -> Any:
    apart = i[0][1] < i[1][0] or i[1][1] < i[0][0]
    return i[0] if apart else None


def _written(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


_NUMERIC = (Sort.WHOLE, Sort.NUMBER)

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}

_MANY = 1000

FUNCTIONS: dict[str, _Function] = {
    **{name: _Function(_compares, _strict(f)) for name, f in COMPARISONS.items()},
    **{f"extract_{p}": _extract(p) for p in ("year", "month", "day", "hour", "minute", "second", *_PARTS)},
    "and": _Function(_conditions(1, _MANY), _and),
    "or": _Function(_conditions(1, _MANY), _or),
    "not": _Function(_conditions(1, 1), _strict(lambda a: not a)),
    "is_null": _Function(lambda sorts, thing: Sort.BOOLEAN, lambda values: values[0] is None),
    "in": _Function(_compares, _in),
    "is_distinct": _Function(_compares, lambda values: values[0] != values[1]),
    **{name: _Function(_shaped(*rule[:2]), _strict(rule[2])) for name, rule in TEXT_FUNCTIONS.items()},
    "concat": _Function(_texts, _strict(lambda *texts: "".join(texts))),
    "add": _Function(
        _numbers(2, 2, whole=True), _strict(lambda a, b: a + b), lambda i: (i[0][0] + i[1][0], i[0][1] + i[1][1])
    ),
    "subtract": _Function(
        _numbers(2, 2, whole=True), _strict(lambda a, b: a - b), lambda i: (i[0][0] - i[1][1], i[0][1] - i[1][0])
    ),
    "multiply": _Function(_numbers(2, 2, whole=True), _strict(lambda a, b: a * b), _corners(lambda a, b: a * b)),
    "divide": _Function(_numbers(2, 2, whole=False), _strict(_divide), _quotient_interval),
    "modulo": _Function(_numbers(2, 2, whole=True), _strict(_modulo)),
    "negate": _Function(_numbers(1, 1, whole=True), _strict(lambda a: -a), lambda i: (-i[0][1], -i[0][0])),
    "abs": _Function(_numbers(1, 1, whole=True), _strict(abs), _abs_interval),
    "div": _Function(_numbers(2, 2, whole=True), _strict(_quotient)),
    "sign": _Function(_rounds, _strict(_sign), _monotone(_sign)),
    "round": _Function(_rounds, lambda v: _strict(_round if len(v) == 1 else _round_to)(v), _rounded_interval),
    "floor": _Function(_rounds, _strict(math.floor), _monotone(math.floor)),
    "ceil": _Function(_rounds, _strict(math.ceil), _monotone(math.ceil)),
    "trunc": _Function(_rounds, _strict(math.trunc), _monotone(math.trunc)),
    "sqrt": _Function(_numbers(1, 1, whole=False), _strict(math.sqrt), _monotone(math.sqrt)),
    "ln": _Function(_numbers(1, 1, whole=False), _strict(math.log), _monotone(math.log)),
    "log": _Function(_numbers(1, 2, whole=False), _strict(_log)),
    "log10": _Function(_numbers(1, 1, whole=False), _strict(math.log10), _monotone(math.log10)),
    "log2": _Function(_numbers(1, 1, whole=False), _strict(math.log2), _monotone(math.log2)),
    "pow": _Function(_numbers(2, 2, whole=False), _strict(math.pow)),
    "exp": _Function(_numbers(1, 1, whole=False), _strict(math.exp), _monotone(math.exp)),
    "to_number": _Function(_made(Sort.NUMBER, *_NUMERIC), _strict(lambda x: x), lambda i: i[0]),
    "to_whole": _Function(_made(Sort.WHOLE, *_NUMERIC, Sort.BOOLEAN), _strict(_round), _monotone(_round)),
    "to_boolean": _Function(_made(Sort.BOOLEAN, Sort.WHOLE, Sort.BOOLEAN), _strict(lambda x: x != 0)),
    "to_text": _Function(_made(Sort.TEXT, Sort.WHOLE, Sort.BOOLEAN, Sort.TEXT, Sort.DATE), _strict(_written)),
    "case": _Function(_case_sort, _case),
    "coalesce": _Function(_chooses(1, _MANY), _coalesce, lambda i: i[0]),
    "nullif": _Function(_chooses(2, 2), _nullif, _nullif_interval),
    "greatest": _Function(
        _numbers(1, _MANY, whole=True),
        _strict(max),
        lambda i: (max(low for low, _ in i), max(high for _, high in i)),
    ),
    "least": _Function(
        _numbers(1, _MANY, whole=True),
        _strict(min),
        lambda i: (min(low for low, _ in i), min(high for _, high in i)),
    ),
}
