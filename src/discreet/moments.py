"""Averages, variances and standard deviations from noisy sums, with their intervals.

Notation: c is the centre of the bounds, W their range, n the exact (weighted) number of rows, m the exact mean
of x - c, v the exact variance; s and k are the noisy sum of x - c and the noisy count, with noises X of scale a
and Y of scale b, all in the answer's units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.grid import Grid
from discreet.intervals import Floats, furthest, pair_tail, triple_tail
from discreet.plan import Measurement

__all__ = ["Moments", "mean_with_interval", "variance_error", "variance_with_interval"]

_NUISANCE = 0.05
"""The part of 1 - confidence that goes to each of the unknowns that a variance's interval must allow for."""


@dataclass(frozen=True)
class Moments:
    """Noisy sums of all groups, in the answer's units, and the scales of their noises.

    Attributes:
        grid: of the values.
        sums: of x - c.
        counts: of the rows.
        squares: of (x - c)^2 - half_square; None for an average.
        scales: of the noises of sums, counts and squares.
        units: what one unit of each total is worth.
        half_square: half of the largest square on the grid.
    """

    grid: Grid
    sums: Floats
    counts: Floats
    squares: Floats
    scales: tuple[float, ...]
    units: tuple[float, ...]

    @staticmethod
    def of(measurements: Sequence[Measurement], totals: Sequence[Floats]) -> Moments:
        """From the measurements in the order centred sum, count[, centred square], and their noisy totals."""
        grid = measurements[0].grid
        if grid is None:
            raise AssertionError
        return Moments(
            grid,
            totals[0],
            totals[1],
            totals[-1],
            tuple(float(m.scale * m.unit_value) for m in measurements),
            tuple(float(m.unit_value) for m in measurements),
        )

    @property
    def centre(self) -> float:
        """c"""
        return float(self.grid.step * (self.grid.lowest + self.grid.highest) / 2)

    @property
    def reach(self) -> float:
        """W / 2: how far x can be from c."""
        return float(self.grid.step * self.grid.width / 2)

    @property
    def half_square(self) -> float:
        return float(self.grid.largest_square * self.grid.square_unit / 2)


def mean_with_interval(moments: Moments, confidence: float) -> tuple[Floats, Floats, Floats]:
    """c + s / max(1, k), clamped to the bounds, and the ends of its interval, by Fieller's argument.

    As the exact centred sum is m times the exact count,

        s - m k = X - m Y,

    X and Y being independent Laplace variables. The interval holds the c + m between the bounds for which the
    left side is not further out than the noise on the right is with probability `confidence` (Fieller 1954,
    "Some problems in interval estimation"). Nothing is approximated but the discreteness (see `intervals`).
    """
    low, high = float(moments.grid.bounds.lower), float(moments.grid.bounds.upper)
    values = np.clip(moments.centre + moments.sums / np.maximum(1.0, moments.counts), low, high)
    ends = _mean_ends(moments, values - moments.centre, (low - moments.centre, high - moments.centre), confidence)
    return values, np.clip(moments.centre + ends[0], low, high), np.clip(moments.centre + ends[1], low, high)


def _mean_ends(
    moments: Moments, start: Floats, limits: tuple[float, float], confidence: float
) -> tuple[Floats, Floats]:
    (a, b, *_), (unit_a, unit_b, *_) = moments.scales, moments.units

    def inside(mean: Floats) -> NDArray[np.bool_]:
        size = np.abs(mean)
        distance = np.abs(moments.sums - mean * moments.counts) - (unit_a + size * unit_b) / 2.0
        return pair_tail(np.maximum(distance, 0.0), a, size * b) >= 1.0 - confidence

    low, high = furthest(inside, start, limits)
    return low, high


def variance_with_interval(moments: Moments, confidence: float, *, sample: bool) -> tuple[Floats, Floats, Floats]:
    """The variance, population's or sample's, between 0 and its largest possible value, with its interval.

    With t the noisy sum of (x - c)^2 - h, h = `half_square`, and its noise Z: the exact mean of that is
    v + m^2 - h, so the estimate of v is h + t / k - (s / k)^2, and for the true m and v

        t - 2 m s + (m^2 + h - v) k = Z - 2 m X + (m^2 + h - v) Y,

    a sum of three independent Laplace variables. v is inside if the left side is not further out than the
    noise on the right is, for some m in a confidence interval of m of its own (Berger and Boos 1994, "P values
    maximized over a confidence set for the nuisance parameter"): `_NUISANCE` of the error probability goes to
    that set, as much to the count where n / (n - 1) is asked, the rest to the noise. The left side moves little
    with m, as it is a square with its minimum at the estimate.
    """
    rest = 1.0 - confidence
    reach, half = moments.reach, moments.half_square
    counts = np.maximum(1.0, moments.counts)
    largest = reach**2
    means = np.clip(moments.sums / counts, -reach, reach)
    values = np.clip(half + moments.squares / counts - (moments.sums / counts) ** 2, 0.0, largest)
    lowest, highest = _mean_ends(moments, means, (-reach, reach), 1.0 - _NUISANCE * rest)
    left = rest * (1.0 - _NUISANCE * (2.0 if sample else 1.0))
    widest = np.maximum(np.abs(lowest), np.abs(highest))
    nearest = np.where(lowest * highest <= 0.0, 0.0, np.minimum(np.abs(lowest), np.abs(highest)))
    # The left side without v: a square in m, so its extremes are at the ends or where it is flat.
    flat = np.divide(moments.sums, moments.counts, out=means.copy(), where=moments.counts != 0.0)
    curve = [
        moments.squares - 2.0 * m * moments.sums + m**2 * moments.counts
        for m in (lowest, highest, np.clip(flat, lowest, highest))
    ]
    bottom, top = np.minimum.reduce(curve), np.maximum.reduce(curve)
    (a, b, z), (unit_a, unit_b, unit_z) = moments.scales, moments.units

    def inside(variance: Floats) -> NDArray[np.bool_]:
        shift = (half - variance) * moments.counts
        distance = np.maximum(bottom + shift, -(top + shift))
        factor = np.maximum(np.abs(nearest**2 + half - variance), np.abs(widest**2 + half - variance))
        distance -= (unit_z + 2.0 * widest * unit_a + factor * unit_b) / 2.0
        return triple_tail(np.maximum(distance, 0.0), z, 2.0 * widest * a, factor * b) >= left

    low, high = furthest(inside, values, (0.0, largest))
    if not sample:
        return values, low, high
    # n / (n - 1) falls with n; two rows at least, or there is no variance to speak of.
    margin = b * -math.log(_NUISANCE * rest) + unit_b / 2.0
    return (
        values * _correction(moments.counts),
        low * _correction(moments.counts + margin),
        high * _correction(moments.counts - margin),
    )


def _correction(counts: Floats) -> Floats:
    """n / (n - 1), n taken as 2 at least."""
    n = np.maximum(2.0, counts)
    return n / (n - 1.0)


def variance_error(measurements: Sequence[Measurement]) -> tuple[float, float, float]:
    """The scales of Z - 2 m X + (m^2 + h - v) Y at its widest: all values at one of the bounds, m = W / 2, v = 0.

    A variance of n rows is off by that sum divided by n, to first order.
    """
    empty = np.zeros(0)
    moments = Moments.of(measurements, (empty, empty, empty))
    a, b, z = moments.scales
    return z, 2.0 * moments.reach * a, (moments.reach**2 + moments.half_square) * b
