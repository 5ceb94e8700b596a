"""Row expressions and grids in an engine's words, as sqlglot expressions; total, as `expressions` promises.

The dialect is DuckDB's. What another engine says differently belongs into one quirk table, not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from discreet.bins import Bins
from discreet.grid import Grid
from discreet.row_rendering import render, render_number
from discreet.schema import Kind, Type
from discreet.statement_parts import BIGINT, DOUBLE, HUGEINT, call, case, cast, column, engine_type, number, present
from discreet.time_values import time_of

__all__ = [
    "BIGINT",
    "HUGEINT",
    "case",
    "centred",
    "centred_square",
    "column",
    "leaf_of",
    "number",
    "on_grid",
    "present",
    "render",
    "render_number",
]


_SHORT_DECIMAL = 18
"""DuckDB gives the product of two decimals of at most so many digits no more digits than that, and raises for
the row where it has more. One longer factor gives the product all 38."""


def _decimal_type(precision: int, scale: int) -> exp.DataType:
    return exp.DataType.build(f"DECIMAL({precision}, {scale})")


def _decimal_literal(value: int, type_: Type) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(str(value)), to=_decimal_type(type_.precision, type_.scale))


def _double(value: float) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(repr(value)), to=DOUBLE)


def on_grid(x: exp.Expr, type_: Type, grid: Grid) -> exp.Expr:
    """q = floor(clamp(x) / step) as an integer surely within [lowest, highest]; NULL where x is NULL or NaN.

    The value is clamped before it is scaled, so that scaling cannot overflow. On |q| <= B the sensitivity rests: where
    it does not follow from the clamp alone (`_ends_fit`), q is clamped again as an integer.
    """
    wide = max(abs(grid.lowest), abs(grid.highest)) * grid.coarseness >= 2**62
    fits = False
    if type_.kind.is_temporal:
        integer: exp.Expr = _time_integer(x, type_, grid)
    elif type_.kind is Kind.FLOAT:
        integer, fits = _float_integer(x, grid)
    else:
        integer = _exact_integer(x, type_, grid, HUGEINT if wide else BIGINT)
        fits = type_.kind is Kind.INTEGER and _ends_fit(grid, *_whole_ends(grid), lambda end: end * 10**grid.places)
    # Of a stated type: an engine gives a constant the narrowest one, in which what follows could overflow.
    clamped = integer if fits else _clamp(integer, number(grid.lowest), number(grid.highest))
    return exp.Cast(this=clamped, to=BIGINT if grid.largest < 2**62 else HUGEINT)


def _float_integer(x: exp.Expr, grid: Grid) -> tuple[exp.Expr, bool]:
    """floor(clamp(x) * factor), factor being a power of two, or NULL for NaN; and whether it surely lies on the grid.

    What lies between the bounds is asked first, as most values do; NaN is last, as it is above infinity to the engine.
    A double lies between the bounds if and only if it lies between the doubles next to them on the inside.
    """
    low, high = _inside(grid.bounds.lower, math.inf), _inside(grid.bounds.upper, -math.inf)
    factor = float(1 / grid.step)
    if low > high:  # no double lies between them
        low = high = float(grid.bounds.lower)
    inside = exp.Between(this=x.copy(), low=_double(low), high=_double(high))
    below = exp.LT(this=x.copy(), expression=_double(low))
    above = exp.LTE(this=x.copy(), expression=_double(math.inf))
    clamped = case([(inside, x.copy()), (below, _double(low)), (above, _double(high))])
    scaled = exp.Floor(this=exp.Mul(this=clamped, expression=_double(factor)))
    if _ends_fit(grid, low, high, lambda end: math.floor(end * factor)):
        return exp.Cast(this=scaled, to=BIGINT), True
    return exp.TryCast(this=scaled, to=BIGINT), False


def _inside(bound: Fraction, towards: float) -> float:
    """The double nearest to a bound that is not on its other side than `towards`."""
    nearest = float(bound)
    outside = nearest < bound if towards > 0 else nearest > bound
    return math.nextafter(nearest, towards) if outside else nearest


_End = TypeVar("_End", int, float)


def _ends_fit(grid: Grid, low: _End, high: _End, scaled: Callable[[_End], int]) -> bool:
    """Whether lowest <= q <= highest for every x between low and high.

    q is made of x by steps each of which never decreases: the product with a positive factor (rounded to the nearest
    double, which is monotone, or exact), the floor, the division of integers. So it lies between what the ends
    become, and those are computed here as the engine does, in the same arithmetic.
    """
    return grid.lowest * grid.coarseness <= scaled(low) and scaled(high) // grid.coarseness <= grid.highest


def _whole_ends(grid: Grid) -> tuple[int, int]:
    """The whole numbers between which a whole number is clamped: at the bounds, or just outside."""
    return _floor(grid.bounds.lower), -_floor(-grid.bounds.upper)


def _time_integer(x: exp.Expr, type_: Type, grid: Grid) -> exp.Expr:
    """Days or microseconds since 1970-01-01 (`time_values`), clamped as a date or time: infinite ones too."""
    ends = (time_of(bound, type_.kind) for bound in (grid.bounds.lower, grid.bounds.upper))
    low, high = (cast(exp.Literal.string(end.isoformat()), engine_type(type_)) for end in ends)
    clamped = _clamp(x, low, high)
    if type_.kind is Kind.DATE:
        day = cast(exp.Literal.string("1970-01-01"), engine_type(type_))
        return cast(exp.paren(exp.Sub(this=exp.paren(clamped), expression=day)), BIGINT)
    return call("epoch_us", clamped)


def _exact_integer(x: exp.Expr, type_: Type, grid: Grid, to: exp.DataType) -> exp.Expr:
    """floor(clamp(x) * 10^places / coarseness) for whole numbers and decimals."""
    low, high = _whole_ends(grid)
    factor = 10**grid.places
    if type_.kind is Kind.DECIMAL:
        reach = 10 ** (type_.precision - type_.scale)  # a decimal column lies strictly within +-reach
        if low >= reach or high <= -reach:
            # Every value lies beyond one bound, which the column's type cannot hold.
            beyond = number(grid.lowest if low >= reach else grid.highest)
            return case([(exp.Is(this=x, expression=exp.Null()), exp.Null())], beyond)
        low_literal = _decimal_literal(low, type_) if low > -reach else None
        high_literal = _decimal_literal(high, type_) if high < reach else None
        digits = len(str(max(abs(low), abs(high)))) + type_.scale
        if digits + grid.places + 1 > _SHORT_DECIMAL:
            digits = max(digits, _SHORT_DECIMAL + 1)
        narrow = _decimal_type(min(38, digits), type_.scale)
        clamped = exp.TryCast(this=_clamp(x, low_literal, high_literal), to=narrow)
        power = exp.Cast(this=exp.Literal.string(str(factor)), to=_decimal_type(grid.places + 1, 0))
        scaled: exp.Expr = exp.TryCast(this=exp.Mul(this=clamped, expression=power), to=to)
    else:
        scaled = exp.Cast(this=_clamp(x, number(low), number(high)), to=to)
        if factor > 1:
            scaled = exp.Mul(this=scaled, expression=number(factor))
    if grid.coarseness == 1:
        return scaled
    # Shifted to be non-negative first: integer division then rounds down on every engine.
    base = grid.lowest * grid.coarseness
    shifted = exp.paren(exp.Sub(this=scaled, expression=number(base)))
    return exp.Add(this=exp.IntDiv(this=shifted, expression=number(grid.coarseness)), expression=number(grid.lowest))


def centred(q: exp.Expr, grid: Grid) -> exp.Expr:
    """2 q - qL - qU: a value's distance from the centre of the bounds, with its sign, in half steps.

    Both parts are below 2^63 where q is below 2^62, as it is where `on_grid` gives 64 bits.
    """
    doubled = exp.Mul(this=number(2), expression=q.copy())
    return exp.paren(exp.Sub(this=doubled, expression=number(grid.lowest + grid.highest)))


def centred_square(q: exp.Expr, grid: Grid) -> exp.Expr:
    """2 r - R, r being the square of the distance from the centre as `Grid.square` has it."""
    step = grid.square_root_step
    distance: exp.Expr = exp.Abs(this=centred(q, grid))
    if step == 1:
        square: exp.Expr = exp.Mul(this=distance, expression=distance.copy())
    else:
        # i <= 2^20 and j < K <= width / 2^20 + 1: 2 i j is below 2 width + 2^21, within 64 bits for most grids.
        if 2 * grid.width + 2**21 >= 2**63:
            distance = exp.Cast(this=distance, to=HUGEINT)
        whole = exp.paren(exp.IntDiv(this=distance, expression=number(step)))
        rest = exp.paren(exp.Mod(this=distance.copy(), expression=number(step)))
        product = exp.paren(exp.Mul(this=exp.Mul(this=number(2), expression=whole.copy()), expression=rest))
        square = exp.Add(
            this=exp.Mul(this=whole, expression=whole.copy()),
            expression=exp.IntDiv(this=product, expression=number(step)),
        )
    doubled = exp.Mul(this=number(2), expression=exp.paren(square))
    return exp.Cast(this=exp.paren(exp.Sub(this=doubled, expression=number(grid.largest_square))), to=BIGINT)


def leaf_of(q: exp.Expr, bins: Bins) -> exp.Expr:
    """floor((q - qL) / size), at most the last leaf; NULL where q is NULL."""
    shifted = exp.paren(exp.Sub(this=q, expression=number(bins.grid.lowest)))
    leaf = shifted if bins.size == 1 else exp.paren(exp.IntDiv(this=shifted, expression=number(bins.size)))
    return exp.Cast(this=_clamp(leaf, None, number(bins.count - 1)), to=BIGINT)


def _floor(x: Fraction) -> int:
    return x.numerator // x.denominator


def _clamp(x: exp.Expr, low: exp.Expr | None, high: exp.Expr | None) -> exp.Expr:
    """x between low and high. NULL stays NULL: no comparison with it is true (`least` and `greatest` would turn it
    into a bound)."""
    branches: list[tuple[exp.Expr, exp.Expr]] = []
    if low is not None:
        branches.append((exp.LTE(this=x.copy(), expression=low), low.copy()))
    if high is not None:
        branches.append((exp.GTE(this=x.copy(), expression=high), high.copy()))
    return case(branches, x.copy()) if branches else x
