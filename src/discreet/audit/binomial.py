"""Exact confidence bounds for a probability (Clopper and Pearson 1934, "The use of confidence or fiducial limits
illustrated in the case of the binomial").

The binomial tail is the regularised incomplete beta function: P(Bin(n, p) >= k) = I_p(k, n - k + 1) (DLMF 8.17.5).
"""

from __future__ import annotations

import math

__all__ = ["at_least", "lower_bound", "upper_bound"]

_TINY = 1e-300


def lower_bound(successes: int, trials: int, error: float) -> float:
    """The p such that so many successes or more have probability `error` under it: the true probability is above it
    with probability 1 - error at least."""
    if successes == 0:
        return 0.0
    low, high = 0.0, successes / trials
    for _ in range(200):
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (middle, high) if at_least(successes, trials, middle) < error else (low, middle)
    return low


def upper_bound(successes: int, trials: int, error: float) -> float:
    """The true probability is below it with probability 1 - error at least."""
    return 1.0 - lower_bound(trials - successes, trials, error)


def at_least(successes: int, trials: int, p: float) -> float:
    """P(Bin(trials, p) >= successes)."""
    return _incomplete_beta(p, successes, trials - successes + 1) if successes > 0 else 1.0


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b) by its continued fraction (DLMF 8.17.22), which converges quickly for x < (a + 1) / (a + b + 2);
    beyond, I_x(a, b) = 1 - I_{1-x}(b, a)."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    if x > (a + 1) / (a + b + 2):
        return 1.0 - _incomplete_beta(1.0 - x, b, a)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if front < -745:
        return 0.0
    # Lentz's method.
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1) or _TINY)
    result = d
    for m in range(1, 100_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / (1.0 + step * d or _TINY)
            c = 1.0 + step / c or _TINY
            result *= c * d
        if abs(c * d - 1.0) < 1e-14:
            break
    return math.exp(front) * result / a
