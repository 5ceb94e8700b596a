"""From noisy totals to what was asked, with intervals: post-processing, which costs nothing.

Everything here works on totals that have met their noise; nothing private is in hand (Dwork and Roth 2014,
proposition 2.1: post-processing keeps differential privacy). Intervals come from the exact law of the noise.
They cover the noise, not the clipping: values beyond the bounds, or rows beyond the limits, shift an answer
by an amount that the interval does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.laplace.distribution import DiscreteLaplace
from discreet.laplace.limbs import Int128Array
from discreet.plan import Measurement, PlannedOutput

__all__ = ["Estimate", "estimate_output", "half_width", "pair_quantile", "pair_tail"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """One statistic over all groups: the values and the ends of their intervals."""

    values: tuple[int | float, ...]
    low: tuple[int | float, ...]
    high: tuple[int | float, ...]


def half_width(measurement: Measurement, confidence: Fraction, *, whole: bool) -> int | float:
    """k such that the answer is within k of the exact (weighted, clamped) total with that confidence.

    The noise X has P(|X| <= k) >= confidence exactly. A whole answer is rounded after the noise: it is then
    within floor(k v + 1/2) of a whole total, v being the value of one unit.
    """
    exact = DiscreteLaplace(measurement.scale).half_width(confidence) * measurement.unit_value
    return math.floor(exact + Fraction(1, 2)) if whole else float(exact)


def estimate_output(
    output: PlannedOutput,
    planned: Sequence[Measurement],
    noisy: Sequence[Int128Array],
    confidence: Fraction,
) -> Estimate:
    """The values and intervals of one planned statistic.

    Args:
        output: which statistic.
        planned: the measurements of its plan.
        noisy: for each of them, the noisy totals of all groups.
        confidence: of the intervals, such as 95/100.
    """
    measurements = [planned[i] for i in output.sources]
    totals = [noisy[i] for i in output.sources]
    match output.function:
        case "count" | "unit_count" | "sum":
            return _total(measurements[0], totals[0], confidence, whole=output.whole)
        case "mean":
            return _mean(measurements, totals, confidence)
        case "sum_from_mean":
            return _sum_from_mean(measurements, totals, confidence, whole=output.whole)
        case "constant":
            constant = (float(output.constant),) * len(totals[0])
            return Estimate(constant, constant, constant)
        case _:
            raise AssertionError(output.function)


def _total(measurement: Measurement, total: Int128Array, confidence: Fraction, *, whole: bool) -> Estimate:
    width = half_width(measurement, confidence, whole=whole)
    value = measurement.unit_value
    values: tuple[int | float, ...]
    if whole:
        # floor(total * value + 1/2), in integers.
        n, d = value.numerator, value.denominator
        values = tuple((2 * t * n + d) // (2 * d) for t in total.to_ints())
    else:
        values = tuple(_reals(total, measurement).tolist())
    return Estimate(values, tuple(v - width for v in values), tuple(v + width for v in values))


def _reals(total: Int128Array, measurement: Measurement) -> Floats:
    """Noisy totals in the answer's units, as doubles."""
    n, d = measurement.unit_value.numerator, measurement.unit_value.denominator
    # An integer over an integer is the nearest double, at any size that a double can hold.
    return np.array([_ratio(t * n, d) for t in total.to_ints()], dtype=np.float64)


def _ratio(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator
    except OverflowError:  # beyond 1e308: the largest double, with the sign
        return math.copysign(np.finfo(np.float64).max, numerator)


def _mean(measurements: Sequence[Measurement], totals: Sequence[Int128Array], confidence: Fraction) -> Estimate:
    """centre + sum / max(1, count), clamped to the bounds; the interval by Fieller's argument.

    With s and n the noisy centred sum and count, m the exact mean and c the centre, the exact centred sum is
    (m - c) times the exact count, so

        s - (m - c) n = X - (m - c) Y,

    X and Y being the two noises, independent Laplace variables. The interval holds the m between the bounds
    for which the left side is not further out than the noise on the right is with probability `confidence`
    (Fieller 1954, "Some problems in interval estimation"); its coverage is exact up to the grid.
    """
    grid = measurements[0].grid
    if grid is None:
        raise AssertionError
    low, high = float(grid.bounds.lower), float(grid.bounds.upper)
    centre = float(grid.step * (grid.lowest + grid.highest) / 2)
    sums, counts = (_reals(t, m) for t, m in zip(totals, measurements, strict=True))
    a, b = (float(m.scale * m.unit_value) for m in measurements)
    values = np.clip(centre + sums / np.maximum(1.0, counts), low, high)

    def inside(mean: Floats) -> NDArray[np.bool_]:
        distance = mean - centre
        return pair_tail(np.abs(sums - distance * counts), a, np.abs(distance) * b) >= float(1 - confidence)

    return Estimate(
        tuple(values.tolist()),
        tuple(_furthest(inside, values, low).tolist()),
        tuple(_furthest(inside, values, high).tolist()),
    )


_SCAN = 64
_HALVINGS = 60


def _furthest(inside: Callable[[Floats], NDArray[np.bool_]], start: Floats, end: float) -> Floats:
    """For each group the point furthest from `start` towards `end` that is inside (`start` if none is).

    First a scan for the outermost inside point of an even grid, then halving between it and its outer
    neighbour, ending outside: the interval is never too short by the search.
    """
    steps = np.linspace(0.0, 1.0, _SCAN + 1)
    outermost = np.zeros(len(start))
    for step in steps[1:]:
        outermost = np.where(inside(start + step * (end - start)), step, outermost)
    inner, outer = outermost, np.minimum(outermost + 1.0 / _SCAN, 1.0)
    for _ in range(_HALVINGS):
        middle = (inner + outer) / 2.0
        here = inside(start + middle * (end - start))
        inner, outer = np.where(here, middle, inner), np.where(here, outer, middle)
    return start + outer * (end - start)


def _sum_from_mean(
    measurements: Sequence[Measurement], totals: Sequence[Int128Array], confidence: Fraction, *, whole: bool
) -> Estimate:
    """The sum from the centred sum s and the count n of the same rows: s + c n, c being the centre.

    Its noise is X + c Y, the sum of two independent Laplace variables of scales a and |c| b.
    """
    grid = measurements[0].grid
    if grid is None:
        raise AssertionError
    centre = grid.step * (grid.lowest + grid.highest) / 2
    a, b = (float(m.scale * m.unit_value) for m in measurements)
    width = pair_quantile(a, abs(float(centre)) * b, float(confidence))
    first, second = measurements[0].unit_value, centre * measurements[1].unit_value
    exact = [s * first + n * second for s, n in zip(totals[0].to_ints(), totals[1].to_ints(), strict=True)]
    values: tuple[int | float, ...]
    if whole:
        values = tuple(math.floor(x + Fraction(1, 2)) for x in exact)
        width = math.floor(width + 0.5)
    else:
        values = tuple(_ratio(x.numerator, x.denominator) for x in exact)
    return Estimate(values, tuple(v - width for v in values), tuple(v + width for v in values))


def pair_tail(z: Floats | float, a: Floats | float, b: Floats | float) -> Floats:
    """P(|X + Y| > z) for independent Laplace X and Y of scales a > 0 and b >= 0, and z >= 0.

    For a > b, by partial fractions of the characteristic function 1 / ((1 + a^2 w^2)(1 + b^2 w^2)),

        P = (a^2 e^(-z/a) - b^2 e^(-z/b)) / (a^2 - b^2),

    the first part being that of a Laplace variable of scale a. It is written here as
    e^(-z/a) (1 + (z / a) (b / (a + b)) f(z (a - b) / (a b))) with f(y) = (1 - e^-y) / y, which loses no digits
    where a and b are near each other, and is symmetric in them.
    """
    z, a, b = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (z, a, b)))
    large, small = np.maximum(a, b), np.minimum(a, b)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        y = z * (large - small) / large / small
        f = np.where(y > 1e-8, -np.expm1(-y) / y, 1.0)
    f = np.where((small == 0.0) | ~np.isfinite(y), 0.0, f)
    tail: Floats = np.exp(-z / large) * (1.0 + z / large * (small / (large + small)) * f)
    return tail


def pair_quantile(a: float, b: float, confidence: float) -> float:
    """The z with P(|X + Y| <= z) = confidence for independent Laplace X and Y of scales a and b."""
    low, high = 0.0, (a + b) * (2.0 - 2.0 * math.log(1.0 - confidence))
    while float(pair_tail(high, a, b)) > 1.0 - confidence:
        high *= 2.0
    for _ in range(200):
        middle = (low + high) / 2.0
        if float(pair_tail(middle, a, b)) > 1.0 - confidence:
            low = middle
        else:
            high = middle
    return high
