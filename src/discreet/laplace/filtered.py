"""The filter: floor(t (c - ln U)) for arrays of random words, in doubles where that is proved right.

See `sampler` for the law. Here is the arithmetic only.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from discreet.entropy import Entropy
from discreet.laplace.bounds import Bounds, Directed
from discreet.laplace.exactly import exact_magnitude

__all__ = ["CHUNK", "FAR", "FILTER_MAX", "Filter", "Workspace", "magnitudes", "make_filter"]

CHUNK = 1 << 14
"""Words handled at a time: four arrays of 128 KiB stay in the second-level cache (2^11 took half as long
again, 2^16 a tenth more)."""

FILTER_MAX = 1 << 20
"""The largest scale that the filter takes: the guard below is then at most 2^-18."""

FAR = 1 << 27
"""Magnitudes from here on are handed back apart, as Python integers of any size. At scale 2^20 one is met
with probability e^-128; the fast path, which has at least 43 bits of U left, never gives one (44.4 * 2^20 <
FAR)."""

_SHORT = np.uint64(1 << 44)
"""Words below this have m < 2^43 (m is the word without its lowest bit) and are always decided exactly."""


@dataclass(frozen=True)
class Filter:
    """What the fast path needs to know about one scale.

    Args:
        scale: t, at most `FILTER_MAX`.
        centred: whether c = ln(2 / (1 + e^(-1/t))), as for |X|; else c = 0, as for a geometric.
        factor: -t, as the nearest double.
        constant: K = t (c + 63 ln 2), as the nearest double.
        guard: E, the bound on the whole error; derived in `magnitudes`.
    """

    scale: Fraction
    centred: bool
    factor: float
    constant: float
    guard: float


@lru_cache(maxsize=128)
def make_filter(scale: Fraction, centred: bool) -> Filter:
    """The filter for a scale from `SCALE_MIN` to `FILTER_MAX`. Cached: scales are public and few."""
    at = Directed(60)
    two, one = Bounds(Decimal(2), Decimal(2)), Bounds(Decimal(1), Decimal(1))
    inner = at.ln(at.of(Fraction(2**63)))
    if centred:
        q = at.exp(at.of(-1 / scale))
        inner = at.add(inner, at.subtract(at.ln(two), at.ln(at.add(one, q))))
    constant = at.times(at.of(scale), inner)
    # The two ends differ in the 57th digit or so: either is K to far less than half an ulp.
    return Filter(scale, centred, -float(scale), float(constant.low), float(scale) * 2.0**-38)


@dataclass(frozen=True)
class Workspace:
    """Scratch arrays, allocated once a batch. Never shared between calls: threads do not meet here."""

    bits: NDArray[np.uint64]
    value: NDArray[np.float64]
    whole: NDArray[np.float64]

    @classmethod
    def of(cls, size: int) -> Workspace:
        """Room for `size` words."""
        return cls(np.empty(size, np.uint64), np.empty(size), np.empty(size))


def magnitudes(
    filter_: Filter, words: NDArray[np.uint64], space: Workspace, entropy: Entropy
) -> tuple[NDArray[np.float64], dict[int, int]]:
    """floor(t (c - ln U)) where bits 1 to 63 of each word are the first 63 bits of a uniform U. Bit 0 is not
    looked at: it is the caller's fair sign.

    Args:
        filter_: the scale's constants.
        words: uniform words, shape (n,); not changed.
        space: room for at least n.
        entropy: where the rare draw that 63 bits do not decide gets more.

    Returns:
        the magnitudes, whole numbers below `FAR` as doubles, in a view of `space` (it holds until the next
        call); and those from `FAR` on, by index, exactly (their place in the array holds 0).

    The proof. Let m be the 63 bits, so that V = 2^63 U lies in [m, m + 1); we want floor(y) for
    y = t (c + 63 ln 2) - t ln V, at every V of the cell. Computed is y' = K - a * log(M) in doubles, where M
    is m rounded to a double, a is t rounded, K is rounded. Suppose m >= 2^43. Then y' differs from y by at
    most t times the sum of these, in units of 2^-52:

        cell          0 <= ln V - ln m <= 1/m <= 2^-43                                       512
        M             relative error 2^-53 in m is 2^-53 in ln m                               0.5
        log           256 ulp assumed (NumPy documents 4); ln M < 43.67 < 64: ulp <= 2^-47  8192
        a             relative error 2^-53, times ln M < 44                                   22
        the product   relative error 2^-53 of a value below 44 t                              22
        K             relative error 2^-53 of a value below 44.4 t (c <= ln 2)                22.2
        the sum       relative error 2^-53 of a value below 44.4 t                            22.2

    together below 8793 * 2^-52 t < 0.54 * 2^-38 t. With E = 2^-38 t the rest, 0.46 E, is for the terms of
    second order and for the rounding of E and 1 - E (1 - E is off by at most 2^-54, which is less than 0.46 E
    if t >= 2^-14; below that y' < 0.003 and the upper test has nothing to do). So if the fraction of y' is in
    (E, 1 - E), no integer lies between y' and any y of the cell: floor(y') is right for all of them.

    y' - floor(y') is exact for y' >= 0. If y' < 0 (y >= 0, so |y'| <= E) the floor is -1 and the difference
    is within 2^-53 of 1 - |y'|: for c = 0, t > 2^19 it fails the upper test; for c > 0, y >= t c > 100 E, so
    it cannot be.

    How often the test fails: 2^-20 for m < 2^43, and about 2^-37 t for a fraction near an integer.
    """
    count = len(words)
    bits, value, whole = space.bits[:count], space.value[:count], space.whole[:count]
    np.right_shift(words, np.uint64(1), out=bits)
    short = bool(words.min() < _SHORT)
    if short:  # decided exactly below; meanwhile keep ln 0 out of the arithmetic
        np.maximum(bits, _SHORT >> np.uint64(1), out=bits)
    np.copyto(value, bits.view(np.int64), casting="unsafe")  # m < 2^63: signed is the faster conversion
    np.log(value, out=value)
    np.multiply(value, filter_.factor, out=value)
    np.add(value, filter_.constant, out=value)
    np.floor(value, out=whole)
    np.subtract(value, whole, out=value)
    far: dict[int, int] = {}
    # Asked in the positive, so that a NaN (there is none) would count as undecided.
    low, high = filter_.guard, 1.0 - filter_.guard
    if not short and value.min() > low and value.max() < high:
        return whole, far
    undecided = np.flatnonzero((words < _SHORT) | ~((value > low) & (value < high)))
    for index in undecided.tolist():
        exact = exact_magnitude(filter_.scale, filter_.centred, int(words[index]) >> 1, 63, entropy)
        whole[index] = exact if exact < FAR else 0
        if exact >= FAR:
            far[index] = exact
    return whole, far
