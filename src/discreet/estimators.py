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
from functools import partial
from typing import TypeAlias

import numpy as np

from discreet.intervals import Floats, half_width, pair_quantile
from discreet.laplace.limbs import Int128Array
from discreet.moments import Moments, mean_with_interval, variance_with_interval
from discreet.plan import Measurement, PlannedOutput
from discreet.quantiles import RunningCounts, quantile_with_interval, running_counts
from discreet.rank_errors import deviations_out, rank_error
from discreet.trees import Tree, tree_of

__all__ = ["Estimate", "KnownTrees", "estimate_output", "quantile_rank_error"]


@dataclass(frozen=True)
class Estimate:
    """One statistic over all groups: the values and the ends of their intervals."""

    values: tuple[int | float, ...]
    low: tuple[int | float, ...]
    high: tuple[int | float, ...]


def estimate_output(
    output: PlannedOutput,
    planned: Sequence[Measurement],
    noisy: Sequence[Int128Array],
    confidence: Fraction,
    known: KnownTrees | None = None,
) -> Estimate:
    """The values and intervals of one planned statistic.

    Args:
        output: which statistic.
        planned: the measurements of its plan.
        noisy: for each of them, the noisy totals of all groups.
        confidence: of the intervals, such as 95/100.
        known: what was computed for other quantiles of the same noisy totals; added to.
    """
    measurements = [planned[i] for i in output.sources]
    totals = [noisy[i] for i in output.sources]
    match output.function:
        case "count" | "unit_count" | "sum":
            return _total(measurements[0], totals[0], confidence, whole=output.whole)
        case "mean":
            return _moments(measurements, totals, partial(mean_with_interval, confidence=float(confidence)))
        case "var_samp" | "var_pop" | "stddev_samp" | "stddev_pop":
            sample = output.function.endswith("samp")
            variance = partial(variance_with_interval, confidence=float(confidence), sample=sample)
            return _moments(measurements, totals, variance, root=output.function.startswith("stddev"))
        case "sum_from_mean":
            return _sum_from_mean(measurements, totals, confidence, whole=output.whole)
        case "quantile":
            return _quantile(output, measurements, totals, float(confidence), {} if known is None else known)
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


def _moments(
    measurements: Sequence[Measurement],
    totals: Sequence[Int128Array],
    compute: Callable[[Moments], tuple[Floats, Floats, Floats]],
    *,
    root: bool = False,
) -> Estimate:
    reals = [_reals(t, m) for t, m in zip(totals, measurements, strict=True)]
    columns = compute(Moments.of(measurements, reals))
    values, low, high = (tuple((np.sqrt(column) if root else column).tolist()) for column in columns)
    return Estimate(values, low, high)


KnownTrees: TypeAlias = dict[tuple[int, ...], RunningCounts]
"""For trees that have been made consistent, by the places of their levels: `quantiles.running_counts`."""


def _quantile(
    output: PlannedOutput,
    levels: Sequence[Measurement],
    totals: Sequence[Int128Array],
    confidence: float,
    known: KnownTrees,
) -> Estimate:
    if output.point is None:
        raise AssertionError
    tree = _tree(levels)
    running = known.get(output.sources)
    if running is None:
        doubles = [_doubles(total) * float(m.unit_value) for total, m in zip(totals, levels, strict=True)]
        counts = [level.reshape(-1, m.cells) for level, m in zip(doubles, levels, strict=True)]
        running = known[output.sources] = running_counts(tree, counts)
    columns = quantile_with_interval(tree, running, output.point, confidence)
    values, low, high = (tuple(column.tolist()) for column in columns)
    return Estimate(values, low, high)


def _tree(levels: Sequence[Measurement]) -> Tree:
    bins = levels[0].bins
    if bins is None:
        raise AssertionError
    # The variance of the discrete noise is below 2 t^2, that of the Laplace law of its scale.
    return tree_of(bins, [2.0 * float(m.scale * m.unit_value) ** 2 for m in levels])


def quantile_rank_error(point: Fraction | None, levels: Sequence[Measurement], confidence: float) -> float:
    """By how many rows the rank of a quantile is off at most, with that confidence, wherever it lies."""
    return deviations_out(confidence) * float(np.max(rank_error(_tree(levels), float(point or 0)))) + 1.0


def _doubles(total: Int128Array) -> Floats:
    """Noisy totals as the nearest doubles."""
    exact = total.to_int64() if total.fits_int64() else total.to_ints()
    return np.array(exact, dtype=np.float64)


def _sum_from_mean(
    measurements: Sequence[Measurement], totals: Sequence[Int128Array], confidence: Fraction, *, whole: bool
) -> Estimate:
    """The sum from the centred sum s and the count n of the same rows: s + c n, c being the centre.

    Its noise is X + c Y, the sum of two independent Laplace variables of scales a and |c| b, rounded to whole
    units: half a unit for each makes up for that (see `intervals`).
    """
    grid = measurements[0].grid
    if grid is None:
        raise AssertionError
    centre = grid.step * (grid.lowest + grid.highest) / 2
    a, b = (float(m.scale * m.unit_value) for m in measurements)
    unit_a, unit_b = (float(m.unit_value) for m in measurements)
    width = pair_quantile(a, abs(float(centre)) * b, float(confidence)) + (unit_a + abs(float(centre)) * unit_b) / 2.0
    first, second = measurements[0].unit_value, centre * measurements[1].unit_value
    # Over one denominator, as reducing a fraction for every group takes long.
    d = math.lcm(first.denominator, second.denominator)
    of_first, of_second = int(first * d), int(second * d)
    exact = [s * of_first + n * of_second for s, n in zip(totals[0].to_ints(), totals[1].to_ints(), strict=True)]
    values: tuple[int | float, ...]
    if whole:
        values = tuple((2 * x + d) // (2 * d) for x in exact)
        width = math.floor(width + 0.5)
    else:
        values = tuple(_ratio(x, d) for x in exact)
    return Estimate(values, tuple(v - width for v in values), tuple(v + width for v in values))
