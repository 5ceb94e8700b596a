"""The tools that intervals are made of: quantiles of the noise, and of sums of several noises.

The noise of one total is discrete Laplace, and its quantiles are exact. A statistic made of several totals
has a weighted sum of independent noises for its error. There the discrete law X is replaced by the Laplace law L
of the same scale, rounded to whole numbers: P(|X| >= k) = 2 q^k / (1 + q) <= q^(k - 1/2) = P(|round(L)| >= k), as
2 sqrt(q) <= 1 + q. So |X| is no larger than |L| + 1/2 in the sense of probabilities, and an interval that is
half a unit wider for each noise is honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.laplace.distribution import DiscreteLaplace
from discreet.plan import Measurement

__all__ = ["Floats", "furthest", "half_width", "pair_quantile", "pair_tail", "triple_quantile", "triple_tail"]

Floats = NDArray[np.float64]


def half_width(measurement: Measurement, confidence: Fraction, *, whole: bool) -> int | float:
    """k such that the answer is within k of the exact (weighted, clamped) total with that confidence.

    The noise X has P(|X| <= k) >= confidence exactly. A whole answer is rounded after the noise: it is then
    within floor(k v + 1/2) of a whole total, v being the value of one unit.
    """
    exact = DiscreteLaplace(measurement.scale).half_width(confidence) * measurement.unit_value
    return math.floor(exact + Fraction(1, 2)) if whole else float(exact)


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


def triple_tail(z: Floats | float, a: Floats | float, b: Floats | float, c: Floats | float) -> Floats:
    """P(|X + Y + Z| > z), or slightly more, for independent Laplace X, Y, Z of scales a, b, c >= 0, not all 0.

    By partial fractions of the characteristic function, with scales s_1, s_2, s_3 that are all different,

        P = sum over i of s_i^4 e^(-z / s_i) / prod over j != i of (s_i^2 - s_j^2).

    Scales within 1 % of each other, where digits would be lost, are spread apart upwards, and very small ones
    raised: a sum of symmetric unimodal variables only gets wider by that (Birnbaum 1948, "On random variables
    with comparable peakedness").
    """
    z, a, b, c = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (z, a, b, c)))
    small, middle, large = np.sort(np.stack([a, b, c]), axis=0)
    small = np.maximum(small, large * 1e-6)
    middle = np.maximum(middle, small * 1.01)
    large = np.maximum(large, middle * 1.01)
    scales = np.stack([small, middle, large]) / large
    z = z / large
    tail: Floats = np.zeros_like(z)
    for i, j, k in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):
        s, t, u = scales[i], scales[j], scales[k]
        tail = tail + s**4 * np.exp(-z / s) / ((s - t) * (s + t) * (s - u) * (s + u))
    return np.clip(tail, 0.0, 1.0)


def pair_quantile(a: float, b: float, confidence: float) -> float:
    """The z with P(|X + Y| <= z) = confidence for independent Laplace X and Y of scales a and b."""
    return _quantile(lambda z: pair_tail(z, a, b), a + b, confidence)


def triple_quantile(a: float, b: float, c: float, confidence: float) -> float:
    """The z with P(|X + Y + Z| <= z) at least the confidence, for independent Laplace X, Y, Z; see `triple_tail`."""
    return _quantile(lambda z: triple_tail(z, a, b, c), a + b + c, confidence)


def _quantile(tail: Callable[[Floats], Floats], size: float, confidence: float) -> float:
    """The z where `tail` falls to 1 - confidence, from above; `size` is that of the noise."""
    rest = 1.0 - confidence
    low, high = 0.0, size * (2.0 - 2.0 * math.log(rest))
    while tail(np.array([high]))[0] > rest:
        high *= 2.0
    while math.nextafter(low, high) < high:  # until no double lies between the two
        points = np.linspace(low, high, _PARTS + 1)
        # `low` is above the answer's tail and `high` is not, whatever rounding makes of them here.
        ends = np.flatnonzero(tail(points[1:-1]) <= rest)
        first = int(ends[0]) + 1 if len(ends) else _PARTS
        low, high = float(points[first - 1]), float(points[first])
    return high


_PARTS = 32
"""Parts that a quantile's range is cut into at a time: a call on 31 points takes little longer than one on a single."""

_SCAN = 64
_HALVINGS = 40
"""2^-46 of the way: less than the rounding of what is printed, and outwards."""

_AT_ONCE = 2**14
"""Points asked about in one call, about: few groups are asked about many points at once, many about one at a time."""


def furthest(inside: Callable[[Floats], NDArray[np.bool_]], start: Floats, ends: tuple[float, float]) -> Floats:
    """For each group the points furthest from `start` towards either of `ends` that are inside (`start` if none is).

    First a scan for the outermost inside point of an even grid, then again within the cell between it and its outer
    neighbour, ever finer, ending outside: the interval is never too short by the search.

    Args:
        inside: told points in an array whose last axis is the groups, says which are inside.
        start: of each group.
        ends: the limits.

    Returns:
        The points, shape (2, groups).
    """
    way = np.asarray(ends)[:, None] - start
    inner = np.zeros_like(way)
    grid = np.linspace(0.0, 1.0, _SCAN + 1)[1:, None, None]
    together = max(1, _AT_ONCE // max(1, way.size))
    for first in range(0, _SCAN, together):
        steps = grid[first : first + together]
        inner = np.maximum(inner, np.max(np.where(inside(start + steps * way), steps, 0.0), axis=0))
    width = np.minimum(inner + 1.0 / _SCAN, 1.0) - inner
    bits = min(5, max(1, (together // 8).bit_length() - 1))  # so many halvings in one call
    marks = np.arange(1, 2**bits)[:, None, None]
    for _ in range(-(-_HALVINGS // bits)):
        width = width / 2**bits
        here = inside(start + (inner + marks * width) * way)
        inner = inner + np.max(np.where(here, marks, 0), axis=0) * width
    return start + (inner + width) * way
