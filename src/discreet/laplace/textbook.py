"""UNSAFE, for teaching only: the Laplace mechanism as it is usually published, in floating point.

Nothing that releases data may import this module (a test holds that). As mathematics on real numbers it is
right: equal in law to `Laplace`. In doubles it breaks its promise in two ways, each of which a function here
shows: `fault_at_zero` and `fault_in_low_bits`. Use `discreet.LaplaceMechanism` instead.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LowBits", "count_with_laplace", "fault_at_zero", "fault_in_low_bits", "laplace_noise"]

_ULP = 2.0**-53  # numpy.random.uniform(0, 1) gives multiples of this, from 0 to 1 - 2^-53


def _inverse(u: NDArray[np.float64], b: float) -> NDArray[np.float64]:
    """The quantile function of Laplace(0, b) at u: -b sign(u - 1/2) ln(1 - 2 |u - 1/2|)."""
    with np.errstate(divide="ignore"):  # ln 0: the first fault
        noise: NDArray[np.float64] = -b * np.sign(u - 0.5) * np.log(1.0 - 2.0 * np.abs(u - 0.5))
    return noise


def laplace_noise(b: float, size: int = 1) -> NDArray[np.float64]:
    """UNSAFE. Laplace(0, b) noise by the inverse transform of NumPy's uniform doubles.

    Args:
        b: the scale; the variance is 2 b^2.
        size: how many.

    Returns:
        a float64 array of shape (size,).
    """
    return _inverse(np.random.uniform(0.0, 1.0, size), b)


def count_with_laplace(data: Sized, epsilon: float) -> NDArray[np.float64]:
    """UNSAFE. The number of rows plus noise: adding or removing a row moves it by 1, so b = 1 / epsilon.

    Returns:
        an array of one double, as published.
    """
    return len(data) + laplace_noise(1.0 / epsilon, 1)


def fault_at_zero(b: float = 1.0) -> float:
    """The formula's value at u = 0: -infinity, since it takes ln 0.

    u = 0 does occur. ``numpy.random.uniform(0, 1)`` draws from the half-open interval [0, 1), 0 included,
    once in 2^53 draws: it does not, as is often said, keep to the open interval by itself. The output is then
    infinite whatever the data. (u = 1, the other end, is never drawn.) The smallest u above 0 is 2^-53, so
    that noise beyond b * 52 ln 2 = 36 b is otherwise never seen: the tail is cut off as well.
    """
    return float(_inverse(np.array([0.0]), b)[0])


@dataclass(frozen=True)
class LowBits:
    """How well one released double tells a true answer of 0 from a true answer of 1.

    Args:
        only_from_zero: the share of the outputs 0 + noise in [1/4, 1/2) that 1 + noise can never give.
        only_from_one: the share of the outputs 1 + noise in [5/4, 3/2) that 0 + noise can never give.
        example: an output of 0 + noise that proves that the true answer is not 1.
    """

    only_from_zero: float
    only_from_one: float
    example: float


def fault_in_low_bits(b: float = 1.0, count: int = 2000) -> LowBits:
    """The doubles that can come out as 0 + noise and as 1 + noise are different sets.

    An epsilon-private mechanism must be able to give every output from either of two neighbouring answers.
    Here the noise takes few of the doubles (one for each of 2^53 values of u, unevenly), and adding 1 rounds
    its low bits away; so the last bits of one output often name the answer. See Mironov, "On significance of
    the least significant bits for differential privacy" (CCS 2012).

    Args:
        b: the scale, from 1/2 to 8.
        count: how many outputs of either kind are looked at, at evenly spaced u: nothing is random here.
    """
    from_zero = _outputs(0.0, 0.25, 0.5, b, count)
    from_one = _outputs(1.0, 1.25, 1.5, b, count)
    impossible_from_one = np.array([not _reachable(y, 1.0, b) for y in from_zero.tolist()])
    impossible_from_zero = np.array([not _reachable(y, 0.0, b) for y in from_one.tolist()])
    return LowBits(
        only_from_zero=float(impossible_from_one.mean()),
        only_from_one=float(impossible_from_zero.mean()),
        example=float(from_zero[impossible_from_one][0]),
    )


def _cdf(x: float, b: float) -> float:
    """The u at which the formula is x, nearly."""
    return 0.5 * float(np.exp(x / b)) if x < 0 else 1.0 - 0.5 * float(np.exp(-x / b))


def _outputs(answer: float, low: float, high: float, b: float, count: int) -> NDArray[np.float64]:
    """answer + noise for `count` values of u (on NumPy's grid) whose outputs are in [low, high)."""
    u = np.linspace(_cdf(low - answer, b) + 1e-9, _cdf(high - answer, b) - 1e-9, count)
    return answer + _inverse(np.round(u / _ULP) * _ULP, b)


def _reachable(y: float, answer: float, b: float) -> bool:
    """Whether some u on NumPy's grid gives exactly `y` as answer + noise.

    The formula is monotone up to a few roundings, so only u near the quantile of y - answer can: 64 steps of
    the grid on either side are far more than the roundings of `_cdf` and of the formula (a few ulp each) can
    move it.
    """
    near = np.round(_cdf(y - answer, b) / _ULP) + np.arange(-64.0, 65.0)
    return bool(np.any(answer + _inverse(near * _ULP, b) == y))
