"""Renyi divergences of the house's noise, and what they are worth in (epsilon, delta).

Renyi differential privacy of order a: D_a(M(x) || M(x')) <= r for neighbours x, x' (Mironov 2017, definition 4).
For one order fixed beforehand, r adds up over queries that are chosen adaptively, their own r included, and may be
compared with a limit before each (Feldman and Zrnic 2021, theorem 3.1: a Renyi filter). For several orders at once
that is not so: which order is the good one would depend on the answers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.laplace.bounds import Bounds, Directed
from discreet.privacy import LaplaceVector

__all__ = ["STEP", "best_order", "converted", "divergence", "laplace_divergence"]

STEP = Fraction(1, 10**18)
"""Divergences are rounded up to multiples of this, so that their sums stay short."""

_AT = Directed(80)
_ONE = Bounds(Decimal(1), Decimal(1))
_LEAST_NOISE_STEP = Fraction(1, 10**20)
# Orders 1 + m/16 2^k: neighbours differ by at most 1 part in 16, and the best of all is missed by 1 in 2000 at most.
_ORDERS = tuple(1 + Fraction(m, 16) * Fraction(2) ** k for k in range(-12, 48) for m in range(16, 32))


@lru_cache(maxsize=4096)
def laplace_divergence(order: Fraction, sensitivity: int, epsilon: Fraction) -> Fraction:
    """An upper bound of the Renyi divergence, in either direction, between a vector of integers with discrete
    Laplace noise of scale sensitivity / epsilon and its neighbour, whose L1 distance is at most `sensitivity`.

    One entry that moves by d. With a = epsilon / sensitivity, q = e^-a and L = order - 1,

        sum over k of P(k)^order P(k - d)^(1 - order) = A e^(L a d) + B e^(-order a d),
        A = sinh(order a) / (sinh(order a) + sinh(L a)),  B = 1 - A

    (three geometric series: below both centres, between them, above both). The logarithm of that, over L, is the
    divergence. As a function of d it is log-sum-exp of two lines, so convex, and 0 at d = 0: it grows with d, and its
    values at the parts of a distance add up to at most its value at the whole. So no way of splitting the L1 distance
    over the entries, whose noise is independent, gives more than one entry that moves by all of it, d = sensitivity:

        epsilon + ln(A + B e^(-(2 order - 1) epsilon)) / L.

    For sensitivity 1 this is randomised response, which is the worst of all epsilon-DP mechanisms (Kairouz, Oh and
    Viswanath 2015): `laplace_divergence(order, 1, epsilon)` holds for every one of them. As sensitivity grows it
    falls towards the continuous Laplace mechanism's (Mironov 2017, table II).

    Args:
        order: above 1.
        sensitivity: the L1 sensitivity in steps of the noise, at least 1.
        epsilon: above 0.

    Returns:
        A multiple of `STEP`, never more than epsilon rounded up to one.
    """
    less_one = order - 1
    # A grows with a (x coth x grows with x), so a larger a is a bound; a too small would eat the digits below.
    a = max(epsilon / sensitivity, _LEAST_NOISE_STEP)
    # sinh(order a) and sinh(L a), both times 2 e^(-order a):
    upper = _AT.subtract(_ONE, _exp(-2 * order * a))
    lower = _AT.subtract(_exp(-a), _exp(-(2 * order - 1) * a))
    falling = _exp(-(2 * order - 1) * epsilon)
    # ln(A + B falling) as a difference of two logarithms.
    mixed = _AT.subtract(_AT.ln(_AT.add(upper, _AT.times(lower, falling))), _AT.ln(_AT.add(upper, lower)))
    return _rounded_up(min(epsilon, epsilon + Fraction(mixed.high) / less_one))


def divergence(order: Fraction, vectors: Iterable[LaplaceVector]) -> Fraction:
    """The same for independent vectors that are released together: the sum (Mironov 2017, proposition 1)."""
    return sum((laplace_divergence(order, v.sensitivity, v.epsilon) for v in vectors), Fraction(0))


@lru_cache(maxsize=1024)
def converted(order: Fraction, delta: Fraction) -> Fraction:
    """What a Renyi divergence of this order must grow by to be an epsilon at this delta, rounded up.

    With L = order - 1 and the privacy loss Z, delta at epsilon is E[(1 - e^(epsilon - Z))+]. For all z,

        (1 - e^(epsilon - z))+ <= e^(L (z - epsilon)) L^L / order^order

    (the maximum over z of the left side over e^(L (z - epsilon)) is where e^(epsilon - z) = L / order), and
    E[e^(L Z)] = e^(L r). So r + c with c = (ln(1 / delta) - ln(order)) / L + ln(L / order) is enough (Canonne, Kamath
    and Steinke 2020, proposition 12).

    Args:
        order: above 1.
        delta: above 0.
    """
    less_one = order - 1
    inverse = _AT.ln(_AT.of(1 / (delta * order)))
    return _rounded_up(Fraction(inverse.high) / less_one + Fraction(_AT.ln(_AT.of(less_one / order)).high))


@lru_cache(maxsize=64)
def best_order(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The order to fix for a budget: the one that lets most queries of small epsilon fit, whose divergence is about
    order * epsilon^2 / 2. Any other would be as safe.

    Args:
        epsilon: of the budget, above 0.
        delta: the part of the budget's delta that the conversion may use, above 0.
    """
    most, inverse = float(epsilon), -math.log(delta)

    def room(order: Fraction) -> float:
        a, less_one = float(order), float(order - 1)
        return (most - (inverse - math.log(a)) / less_one - math.log1p(-1 / a)) / a

    return max(_ORDERS, key=room)


def _exp(x: Fraction) -> Bounds:
    return _AT.exp(_AT.of(x))


def _rounded_up(x: Fraction) -> Fraction:
    return math.ceil(x / STEP) * STEP
