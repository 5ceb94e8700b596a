"""Grids in an engine's words, as sqlglot expressions; total, as `expressions` promises.

What engines say differently stands in `quirks`, not here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from sqlglot import exp

from discreet.bins import Bins
from discreet.grid import Grid
from discreet.quirks import DUCKDB, Quirks
from discreet.row_rendering import render, render_number
from discreet.schema import Kind, Type
from discreet.statement_parts import (
    BIGINT,
    DOUBLE,
    HUGEINT,
    case,
    cast,
    clamp,
    column,
    engine_type,
    number,
    present,
    whole_ends,
)
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


def _double(value: float) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(repr(value)), to=DOUBLE)


def on_grid(x: exp.Expr, type_: Type, grid: Grid, quirks: Quirks = DUCKDB) -> exp.Expr:
    """q = floor(clamp(x) / step) as an integer surely within [lowest, highest]; NULL where x is NULL or NaN.

    The value is clamped before it is scaled, so that scaling cannot overflow. On |q| <= B the sensitivity rests: where
    it does not follow from the clamp alone (`_ends_fit`), q is clamped again as an integer.
    """
    wide = max(abs(grid.lowest), abs(grid.highest)) * grid.coarseness >= 2**62
    fits = False
    if type_.kind.is_temporal:
        integer: exp.Expr = _time_integer(x, type_, grid, quirks)
    elif type_.kind is Kind.FLOAT:
        integer, fits = _float_integer(x, grid, quirks)
    else:
        integer = _exact_integer(x, type_, grid, wide, quirks)
        fits = type_.kind is Kind.INTEGER and _ends_fit(grid, *whole_ends(grid), lambda end: end * 10**grid.places)
    # Of a stated type: an engine gives a constant the narrowest one, in which what follows could overflow.
    clamped = integer if fits else clamp(integer, number(grid.lowest), number(grid.highest))
    return exp.Cast(this=clamped, to=BIGINT if grid.largest < 2**62 else HUGEINT)


def _float_integer(x: exp.Expr, grid: Grid, quirks: Quirks) -> tuple[exp.Expr, bool]:
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
    fits = _ends_fit(grid, low, high, lambda end: math.floor(end * factor))
    return quirks.floor_scaled(clamped, factor, fits), fits


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


def _time_integer(x: exp.Expr, type_: Type, grid: Grid, quirks: Quirks) -> exp.Expr:
    """Days or microseconds since 1970-01-01 (`time_values`), clamped as a date or time: infinite ones too."""
    ends = (time_of(bound, type_.kind) for bound in (grid.bounds.lower, grid.bounds.upper))
    low, high = (cast(exp.Literal.string(end.isoformat()), engine_type(type_)) for end in ends)
    clamped = clamp(x, low, high)
    return quirks.days(clamped) if type_.kind is Kind.DATE else quirks.microseconds(clamped)


def _exact_integer(x: exp.Expr, type_: Type, grid: Grid, wide: bool, quirks: Quirks) -> exp.Expr:
    """floor(clamp(x) * 10^places / coarseness) for whole numbers and decimals."""
    low, high = whole_ends(grid)
    factor = 10**grid.places
    if type_.kind is Kind.DECIMAL:
        reach = 10 ** (type_.precision - type_.scale)  # a decimal column lies strictly within +-reach
        if low >= reach or high <= -reach:
            # Every value lies beyond one bound, which the column's type cannot hold.
            beyond = number(grid.lowest if low >= reach else grid.highest)
            return case([(exp.Is(this=x, expression=exp.Null()), exp.Null())], beyond)
        scaled = quirks.decimal_steps(x, type_, grid, wide)
    else:
        scaled = exp.Cast(this=clamp(x, number(low), number(high)), to=HUGEINT if wide else BIGINT)
        if factor > 1:
            scaled = exp.Mul(this=scaled, expression=number(factor))
    if grid.coarseness == 1:
        return scaled
    # Shifted to be non-negative first: integer division then rounds down on every engine.
    base = grid.lowest * grid.coarseness
    shifted = exp.paren(exp.Sub(this=scaled, expression=number(base)))
    return exp.Add(this=quirks.quotient(shifted, number(grid.coarseness), wide), expression=number(grid.lowest))


def centred(q: exp.Expr, grid: Grid) -> exp.Expr:
    """2 q - qL - qU: a value's distance from the centre of the bounds, with its sign, in half steps.

    Both parts are below 2^63 where q is below 2^62, as it is where `on_grid` gives 64 bits.
    """
    doubled = exp.Mul(this=number(2), expression=q.copy())
    return exp.paren(exp.Sub(this=doubled, expression=number(grid.lowest + grid.highest)))


def centred_square(q: exp.Expr, grid: Grid, quirks: Quirks = DUCKDB) -> exp.Expr:
    """2 r - R, r being the square of the distance from the centre as `Grid.square` has it."""
    step = grid.square_root_step
    distance: exp.Expr = exp.Abs(this=centred(q, grid))
    if step == 1:
        square: exp.Expr = exp.Mul(this=distance, expression=distance.copy())
    else:
        # i <= 2^20 and j < K <= width / 2^20 + 1: 2 i j is below 2 width + 2^21, within 64 bits for most grids.
        wide = 2 * grid.width + 2**21 >= 2**63
        if wide:
            distance = exp.Cast(this=distance, to=HUGEINT)
        whole = exp.paren(quirks.quotient(distance, number(step), wide))
        rest = exp.paren(exp.Mod(this=distance.copy(), expression=number(step)))
        product = exp.paren(exp.Mul(this=exp.Mul(this=number(2), expression=whole.copy()), expression=rest))
        square = exp.Add(
            this=exp.Mul(this=whole, expression=whole.copy()),
            expression=quirks.quotient(product, number(step), wide),
        )
    doubled = exp.Mul(this=number(2), expression=exp.paren(square))
    return exp.Cast(this=exp.paren(exp.Sub(this=doubled, expression=number(grid.largest_square))), to=BIGINT)


def leaf_of(q: exp.Expr, bins: Bins, quirks: Quirks = DUCKDB) -> exp.Expr:
    """floor((q - qL) / size), at most the last leaf; NULL where q is NULL."""
    shifted = exp.paren(exp.Sub(this=q, expression=number(bins.grid.lowest)))
    wide = bins.grid.largest >= 2**62
    leaf = shifted if bins.size == 1 else exp.paren(quirks.quotient(shifted, number(bins.size), wide))
    return exp.Cast(this=clamp(leaf, None, number(bins.count - 1)), to=BIGINT)
