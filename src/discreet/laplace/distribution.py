"""The laws themselves: discrete Laplace on the integers, and Laplace on the reals.

The methods are those of scipy.stats' frozen distributions. They work on numbers and arrays, in doubles, and
keep their relative accuracy in the far tails: no tail is computed as 1 minus something close to 1. What a
plan depends on (`half_width`, `tail_quantile`) is exact. This module never imports the sampler, so that
each tests the other.

Notation: scale t, q = e^(-1/t). See Inusah and Kozubowski, "A discrete analogue of the Laplace distribution",
J. Statist. Plann. Inference 136 (2006), for the discrete law, where q is called p.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.errors import UsageError
from discreet.exact import RationalLike, parse_confidence, parse_rational
from discreet.laplace.bounds import Bounds, Directed
from discreet.laplace.scale import parse_scale

__all__ = ["DiscreteLaplace", "Laplace"]

Floats: TypeAlias = np.float64 | NDArray[np.float64]
"""A double for a number, a float64 array of the same shape for an array."""


def _doubles(x: ArrayLike) -> NDArray[np.float64]:
    return np.asarray(x).astype(np.float64)  # by way of asarray, so that Python ints past int64 pass too


def _out(x: NDArray[np.float64]) -> Floats:
    result: Floats = x[()]
    return result


@dataclass(frozen=True, init=False)
class DiscreteLaplace:
    """The law P(X = k) = (1 - q) / (1 + q) q^|k| on the integers, q = exp(-1 / scale), centred at 0.

    This is the exact law of the noise. P(X > k) = q^(k+1) / (1 + q) for k >= 0. For large scales it is close
    to the Laplace law with b = scale; `scale` is not the standard deviation.

    Args:
        scale: t, from 10^-12 to 2^128, kept as an exact rational.

    Raises:
        UsageError: for a scale out of range.
    """

    scale: Fraction

    def __init__(self, scale: RationalLike) -> None:
        object.__setattr__(self, "scale", parse_scale(scale))

    def logpmf(self, k: ArrayLike) -> Floats:
        """ln P(X = k); -inf where k is no integer."""
        x = _doubles(k)
        result = _log_tanh_half(self._rate) - np.abs(x) * self._rate
        return _out(np.where(np.isnan(x) | (x == np.floor(x)), result, -np.inf))

    def pmf(self, k: ArrayLike) -> Floats:
        """P(X = k); 0 where k is no integer."""
        return _out(np.asarray(np.exp(self.logpmf(k))))

    def sf(self, k: ArrayLike) -> Floats:
        """P(X > k)."""
        return _out(self._above(np.floor(_doubles(k))))

    def cdf(self, k: ArrayLike) -> Floats:
        """P(X <= k), which is P(X > -floor(k) - 1) by symmetry."""
        return _out(self._above(-np.floor(_doubles(k)) - 1.0))

    def isf(self, p: ArrayLike) -> Floats:
        """The smallest integer k with P(X > k) <= p, as a double. inf at 0, -inf at 1, NaN outside [0, 1]."""
        x = _doubles(p)
        with np.errstate(divide="ignore", invalid="ignore"):
            # p < P(X > -1) = 1 / (1 + q): k is the least k >= 0 with q^(k+1) <= p (1 + q).
            right = np.maximum(np.ceil(self._steps(x)) - 1.0, 0.0)
            # Else k < 0, and P(X <= k) = q^(-k) / (1 + q) >= 1 - p: the largest such -k. 1 - p is exact here.
            left = -np.floor(self._steps(1.0 - x))
            k = np.where(x < 1.0 / (1.0 + self._q), right, left)
            # Rounding can leave the result one off (for k beyond 2^53 steps of 1 do not exist, nor matter).
            k = np.where(self._above(k - 1.0) <= x, k - 1.0, k)
            k = np.where(self._above(k) > x, k + 1.0, k)
        k = np.where(x == 0.0, np.inf, np.where(x == 1.0, -np.inf, k))
        return _out(np.where((x >= 0.0) & (x <= 1.0), k, np.nan))

    def ppf(self, p: ArrayLike) -> Floats:
        """The smallest integer k with P(X <= k) >= p, a double. -inf at 0, inf at 1, NaN outside [0, 1]."""
        x = _doubles(p)
        with np.errstate(divide="ignore", invalid="ignore"):
            # P(X <= k) = P(X >= -k): the largest j = -k with P(X >= j) >= p, so that nothing is subtracted
            # from 1.
            left = -np.floor(self._steps(x))
            right = np.maximum(np.ceil(self._steps(1.0 - x)) - 1.0, 0.0)
            k = np.where(x <= self._q / (1.0 + self._q), left, right)
            k = np.where(self._above(-k) >= x, k - 1.0, k)
            k = np.where(self._above(-k - 1.0) < x, k + 1.0, k)
        k = np.where(x == 0.0, -np.inf, np.where(x == 1.0, np.inf, k))
        return _out(np.where((x >= 0.0) & (x <= 1.0), k, np.nan))

    def mean(self) -> float:
        """The expected value, 0."""
        return 0.0

    def var(self) -> float:
        """The variance, 2 q / (1 - q)^2 = 1 / (2 sinh^2(1 / (2 t)))."""
        return 2.0 * self._q / math.expm1(-self._rate) ** 2

    def std(self) -> float:
        """The standard deviation. Near 1.414 t for large t."""
        return math.sqrt(2.0) * math.exp(-self._rate / 2.0) / -math.expm1(-self._rate)

    def half_width(self, confidence: RationalLike) -> int:
        """The smallest integer k >= 0 with P(|X| > k) <= 1 - confidence, decided exactly.

        Args:
            confidence: above 0 and below 1, such as 0.95.

        Raises:
            UsageError: for a confidence out of range.
        """
        # P(|X| > k) = 2 P(X >= k + 1)
        return self.tail_quantile((1 - parse_confidence(confidence)) / 2) - 1

    def interval(self, confidence: RationalLike) -> tuple[int, int]:
        """The smallest symmetric interval (-k, k) with P(-k <= X <= k) >= confidence, decided exactly."""
        k = self.half_width(confidence)
        return -k, k

    def tail_quantile(self, p: RationalLike) -> int:
        """The smallest integer k >= 1 with P(X >= k) = q^k / (1 + q) <= p, decided exactly.

        Args:
            p: a probability above 0 and below 1.

        Raises:
            UsageError: for other p.
        """
        rule = "must be a probability above 0 and below 1"
        exact = parse_rational("p", p, rule=rule)
        if not 0 < exact < 1:
            raise UsageError("p", rule, str(p))
        # ln: k >= t (-ln p - ln(1 + q)). No tie is possible: it would make q an algebraic number.
        digits = 40 + len(str(int(self.scale)))
        while True:
            at = Directed(digits)
            q = at.exp(at.of(-1 / self.scale))
            one_and_q = at.add(Bounds(Decimal(1), Decimal(1)), q)
            inner = at.negate(at.add(at.ln(at.of(exact)), at.ln(one_and_q)))
            k = at.times(at.of(self.scale), inner).ceil()
            if k is not None:
                return max(k, 1)
            digits *= 2

    @property
    def _rate(self) -> float:
        return float(1 / self.scale)

    @property
    def _q(self) -> float:
        return math.exp(-self._rate)

    def _above(self, k: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(X > k) for whole k. On the left it is 1 - q^(-k) / (1 + q), at least 1/2: nothing cancels."""
        near = np.exp(-np.where(k >= 0.0, k + 1.0, -k) * self._rate) / (1.0 + self._q)
        return np.where(k >= 0.0, near, 1.0 - near)

    def _steps(self, p: NDArray[np.float64]) -> NDArray[np.float64]:
        """t (-ln p - ln(1 + q)): the real j with q^j / (1 + q) = p.

        As -ln(2p) - ln((1 + q) / 2), so that for large t and p near 1/2 no ln 2 is added and taken away
        again."""
        return (-np.log(2.0 * p) - math.log1p(math.expm1(-self._rate) / 2.0)) * float(self.scale)


@dataclass(frozen=True, init=False)
class Laplace:
    """The law with density exp(-|x - loc| / scale) / (2 scale) on the reals.

    Args:
        scale: b, from 10^-12 to 2^128, kept as an exact rational. The variance is 2 b^2, not b.
        loc: the centre, kept as an exact rational.

    Raises:
        UsageError: for a scale out of range, or a loc that is no finite double.
    """

    scale: Fraction
    loc: Fraction

    def __init__(self, scale: RationalLike, loc: RationalLike = 0) -> None:
        object.__setattr__(self, "scale", parse_scale(scale))
        exact = parse_rational("loc", loc)
        if abs(exact) > Fraction(np.finfo(np.float64).max):
            raise UsageError("loc", "must be a finite number that a double can hold", str(loc))
        object.__setattr__(self, "loc", exact)

    def logpdf(self, x: ArrayLike) -> Floats:
        """The logarithm of the density."""
        return _out(-np.abs(self._standard(x)) - math.log(2.0 * float(self.scale)))

    def pdf(self, x: ArrayLike) -> Floats:
        """The density, in units of 1 / x."""
        return _out(np.exp(-np.abs(self._standard(x))) / (2.0 * float(self.scale)))

    def sf(self, x: ArrayLike) -> Floats:
        """P(X > x)."""
        return _out(_above(self._standard(x)))

    def cdf(self, x: ArrayLike) -> Floats:
        """P(X <= x)."""
        return _out(_above(-self._standard(x)))

    def isf(self, p: ArrayLike) -> Floats:
        """The x with P(X > x) = p. inf at 0, -inf at 1, NaN outside [0, 1]."""
        return _out(float(self.loc) + float(self.scale) * _isf(_doubles(p)))

    def ppf(self, p: ArrayLike) -> Floats:
        """The x with P(X <= x) = p. -inf at 0, inf at 1, NaN outside [0, 1]."""
        return _out(float(self.loc) - float(self.scale) * _isf(_doubles(p)))

    def mean(self) -> float:
        """The expected value, `loc`."""
        return float(self.loc)

    def var(self) -> float:
        """The variance, 2 b^2."""
        return float(2 * self.scale**2)

    def std(self) -> float:
        """The standard deviation, 1.414 b."""
        return math.sqrt(2.0) * float(self.scale)

    def interval(self, confidence: RationalLike) -> tuple[float, float]:
        """loc -+ b ln(1 / (1 - confidence)): the symmetric interval with that probability.

        Raises:
            UsageError: for a confidence that is not above 0 and below 1.
        """
        exact = parse_confidence(confidence)
        rest = 1 - exact  # exact; as the logarithm of two integers it may be smaller than any double
        if exact < Fraction(1, 2):
            width = -math.log1p(-float(exact))
        elif float(rest) > 0.0:
            width = -math.log(float(rest))
        else:
            width = math.log(rest.denominator) - math.log(rest.numerator)
        return float(self.loc) - float(self.scale) * width, float(self.loc) + float(self.scale) * width

    def _standard(self, x: ArrayLike) -> NDArray[np.float64]:
        return np.asarray((_doubles(x) - float(self.loc)) / float(self.scale))


def _above(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """P(Z > z) for the standard Laplace law; at least 1/2 on the left, where it is 1 minus a small number."""
    tail = np.exp(-np.abs(z)) / 2.0
    return np.where(z >= 0.0, tail, 1.0 - tail)


def _isf(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """The z with P(Z > z) = p; 1 - p is exact where it is used, for p >= 1/2."""
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(p < 0.5, -np.log(2.0 * p), np.log(2.0 * (1.0 - p)))
    return np.where((p >= 0.0) & (p <= 1.0), z, np.nan)


def _log_tanh_half(rate: float) -> float:
    """ln tanh(rate / 2) = ln((1 - q) / (1 + q)) with q = e^-rate; each branch where it loses nothing."""
    q = math.exp(-rate)
    one_minus_q = math.log(-math.expm1(-rate)) if rate < 0.7 else math.log1p(-q)
    return one_minus_q - math.log1p(q)
