"""Exact samples of the discrete Laplace law, at the speed of one logarithm.

The textbook inverse transform, -b sign ln(1 - 2|u - 1/2|), is right for real numbers and wrong in doubles:
it can give infinity, and its low bits tell inputs apart (`discreet.laplace.textbook` shows both). Here it is
made exact by a *filter*, as in exact geometry: compute in doubles with a proved error bound; if every real
number that the random bits stand for gives the same integer, that integer is exact (`filtered`); else decide
that one draw with as many bits and digits as it takes (`exactly`).

The law, for scale t (any rational) and q = e^(-1/t): P(X = k) = (1 - q) / (1 + q) q^|k|. The source of
randomness is `discreet.entropy`; nothing here has a seed.

Small scales, t <= 2^20
    P(|X| >= k) = 2 q^k / (1 + q) for k >= 1, and 1 for k = 0. With U uniform on (0, 1) and
    c = ln(2 / (1 + q)), the integer N = floor(t (c - ln U)) has N >= k iff ln U <= c - k/t iff
    U <= 2 q^k / (1 + q), which is at most 1 for k >= 1; and N >= 0 always, as c >= 0. So N is distributed as
    |X|, and a fair sign makes it X (0 is 0 under either sign).

Large scales, t > 2^20
    Take a fair sign and a geometric G, P(G = j) = (1 - q) q^j, and draw again when they are (minus, 0). The
    pair (+, j) for j >= 0 and the pair (-, j) for j >= 1 are kept with probability proportional to q^j, and
    each integer k is met by exactly one of them: the law of sign * G is proportional to q^|k|, which is X's.
    With s such that t / 2^s is in (2^19, 2^20], write G = 2^s H + L with 0 <= L < 2^s:
    P(H = h, L = l) = (1 - q) (q^(2^s))^h q^l is a product, so H and L are independent, H is geometric with
    scale t / 2^s and P(L = l) is proportional to q^l. H = floor(-(t / 2^s) ln U) by the same filter
    (P(H >= h) = P(U <= e^(-h 2^s / t))). L is uniform on s bits, kept with probability e^(-L/t), exactly.
    An entry that is not kept is drawn again whole: each attempt has the law of (sign, H, uniform L), and
    given that L is kept and the pair is not (minus, 0) it has the law above.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import SupportsIndex, TypeAlias, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from discreet.entropy import Entropy, SystemEntropy
from discreet.errors import UsageError
from discreet.exact import RationalLike, ceil_log2, floor_log2, parse_rational
from discreet.laplace.exactly import exact_keep
from discreet.laplace.filtered import CHUNK, FILTER_MAX, Filter, Workspace, magnitudes, make_filter
from discreet.laplace.limbs import Int128Array, wrap_int128
from discreet.laplace.scale import check_scale, parse_scale

__all__ = ["INT64_SCALE", "draw", "draw_limbs", "sample_discrete_laplace", "sample_laplace"]

Integers: TypeAlias = NDArray[np.int64] | NDArray[np.object_]
Size: TypeAlias = SupportsIndex | tuple[SupportsIndex, ...]

INT64_SCALE = Fraction(2**55)
"""Up to this scale results are int64: one that does not fit has a probability below 2 e^-256."""

_FILTER_BITS = 20  # FILTER_MAX = 2^20
_DOUBTFUL = np.uint64(1 << 45)
"""With V's first bit at the top of a word, V < 2^-19 iff the word is below this."""

_INT64 = range(-(2**63), 2**63)


@overload
def sample_discrete_laplace(scale: RationalLike, size: None = None) -> int: ...
@overload
def sample_discrete_laplace(scale: RationalLike, size: Size) -> Integers: ...
def sample_discrete_laplace(scale: RationalLike, size: Size | None = None) -> int | Integers:
    """Draw integers X with P(X = k) = (1 - q) / (1 + q) q^|k|, q = exp(-1 / scale): exactly, at any scale.

    This is a sampler, not a mechanism: it knows no sensitivity. To release a number use `LaplaceMechanism`.

    Args:
        scale: t, from 10^-12 to 2^128; a float means the decimal that was typed. The standard deviation is
            about 1.414 t (for large t), not t.
        size: None for one Python int; an int or a tuple for an array of that shape.

    Returns:
        an int, or an int64 array; for scales above 2^55, whose draws may pass int64, an object array of
        Python ints (below, such a draw has a probability under 2 e^-256 and would make the array an object
        array).

    Raises:
        UsageError: for a scale out of range or a size that is not None, a whole number >= 0 or a tuple of
            them.
    """
    exact_scale = parse_scale(scale)
    shape = _parse_size(size)
    values = draw(exact_scale, 1 if shape is None else math.prod(shape), SystemEntropy())
    return int(values[0]) if shape is None else values.reshape(shape)


@overload
def sample_laplace(scale: RationalLike, size: None = None, loc: RationalLike = 0) -> float: ...
@overload
def sample_laplace(scale: RationalLike, size: Size, loc: RationalLike = 0) -> NDArray[np.float64]: ...
def sample_laplace(scale: RationalLike, size: Size | None = None, loc: RationalLike = 0) -> float | NDArray[np.float64]:
    """Draw doubles from the Laplace law with density exp(-|x - loc| / scale) / (2 scale), on a grid.

    The draw is ``loc + g * X`` with g = 2^(floor(log2 scale) - 40), a power of two from scale * 2^-41 (not
    reached) to scale * 2^-40, and X an exact discrete Laplace integer of scale ``scale / g``. For loc = 0
    nothing is rounded: every draw is a multiple of g. The CDF differs from the real law's by less than 2^-41
    everywhere.

    This is a sampler, not a mechanism: adding its draws to a private float is not private, because the sum is
    rounded. To release a number reduce it to an integer and use `LaplaceMechanism`.

    Args:
        scale: b, from 10^-12 to 2^128; a float means the decimal that was typed. The variance is 2 b^2.
        size: None for one float; an int or a tuple for a float64 array of that shape.
        loc: the centre, rounded to a double.

    Raises:
        UsageError: for a scale out of range, a loc that is no finite double, or a size as in
            `sample_discrete_laplace`.
    """
    exact_scale = parse_scale(scale)
    shape = _parse_size(size)
    centre = _parse_loc(loc)
    # 10^-12 > 2^-40, so g is from 2^-80 to 2^88: an exact double; X < 2^53 but for a probability below
    # e^-4096.
    grid = Fraction(2) ** (floor_log2(exact_scale) - 40)
    values = draw(exact_scale / grid, 1 if shape is None else math.prod(shape), SystemEntropy())
    result = values.astype(np.float64)
    result *= float(grid)
    result += centre
    return float(result[0]) if shape is None else result.reshape(shape)


def draw(scale: Fraction, count: int, entropy: Entropy) -> Integers:
    """`count` exact draws from a given source: int64, or Python ints as `sample_discrete_laplace` says.

    Raises:
        UsageError: if the scale is not a `Fraction` in range.
    """
    check_scale(scale)
    if scale > INT64_SCALE:
        exact = np.empty(count, dtype=np.object_)
        plan = _plan(scale)
        for start, parts in _chunks(plan, count, entropy):
            exact[start : start + len(parts.h)] = parts.ints(plan.shift)
        return exact
    out = np.empty(count, dtype=np.int64)
    far: dict[int, int] = {}
    if scale <= FILTER_MAX:
        _draw_small(make_filter(scale, True), out, far, entropy)
    else:
        plan = _plan(scale)
        for start, parts in _chunks(plan, count, entropy):
            parts.write_int64(plan.shift, out[start : start + len(parts.h)])
            far.update((start + index, parts.exact(index, plan.shift)) for index in parts.far)
    if all(value in _INT64 for value in far.values()):
        for index, value in far.items():
            out[index] = value
        return out
    wide = out.astype(np.object_)
    for index, value in far.items():
        wide[index] = value
    return wide


def draw_limbs(scale: Fraction, count: int, entropy: Entropy) -> Int128Array:
    """`count` exact draws mod 2^128, for the release path.

    Wrapping around is private by design: x -> x mod 2^128 is a homomorphism of groups, so
    (total mod 2^128 + noise mod 2^128) mod 2^128 = (total + noise) mod 2^128, a function of the exact noisy
    answer (post-processing). It is a matter of use only, and `LaplaceMechanism` keeps it out of sight.

    Raises:
        UsageError: if the scale is not a `Fraction` in range.
    """
    check_scale(scale)
    if scale <= INT64_SCALE:
        values = draw(scale, count, entropy)
        if _is_int64(values):
            return Int128Array.from_int64(values)
        return Int128Array.from_ints(wrap_int128(value) for value in values.tolist())
    high = np.empty(count, dtype=np.int64)
    low = np.empty(count, dtype=np.uint64)
    plan = _plan(scale)
    for start, parts in _chunks(plan, count, entropy):
        stop = start + len(parts.h)
        parts.write_limbs(plan.shift, high[start:stop], low[start:stop])
    return Int128Array(high, low)


def _draw_small(filter_: Filter, out: NDArray[np.int64], far: dict[int, int], entropy: Entropy) -> None:
    """Fill `out` with draws of a scale that the filter takes; draws from `FAR` on go to `far`, by index."""
    space = Workspace.of(min(len(out), CHUNK))
    for start in range(0, len(out), CHUNK):
        target = out[start : start + CHUNK]
        words = entropy.words(len(target))
        whole, tail = magnitudes(filter_, words, space, entropy)
        for index, value in tail.items():
            far[start + index] = -value if words[index] & np.uint64(1) else value
        # A word's lowest bit becomes the sign bit of a double that is >= 0; -0.0 converts to 0.
        np.left_shift(words, np.uint64(63), out=words)
        signed = whole.view(np.uint64)
        np.bitwise_or(signed, words, out=signed)
        np.copyto(target, whole, casting="unsafe")


@dataclass(frozen=True)
class _Plan:
    """A large scale t, taken apart: t / 2^shift in (2^19, 2^20] is the scale of H, L has `shift` bits."""

    scale: Fraction
    shift: int
    filter: Filter


def _plan(scale: Fraction) -> _Plan:
    shift = ceil_log2(scale) - _FILTER_BITS
    return _Plan(scale, shift, make_filter(scale / 2**shift, False))


@dataclass(frozen=True)
class _Parts:
    """Signs, H and L of some draws, shape (n,) each; value = (-1)^minus (2^s h + 2^64 l_high + l_low).

    `far` holds, by index, the H that are `FAR` or more (h is 0 there). `rejected` lists the entries that must
    be drawn again.
    """

    minus: NDArray[np.uint64]
    h: NDArray[np.int64]
    l_high: NDArray[np.uint64]
    l_low: NDArray[np.uint64]
    far: dict[int, int]
    rejected: NDArray[np.intp]

    def exact(self, index: int, shift: int) -> int:
        """One draw as a Python int."""
        h = self.far.get(index, int(self.h[index]))
        value = (h << shift) + (int(self.l_high[index]) << 64) + int(self.l_low[index])
        return -value if self.minus[index] else value

    def ints(self, shift: int) -> list[int]:
        """All draws as Python ints."""
        return [self.exact(index, shift) for index in range(len(self.h))]

    def write_int64(self, shift: int, out: NDArray[np.int64]) -> None:
        """All draws, for shift <= 35; entries in `far` are wrong here."""
        np.left_shift(self.h, shift, out=out)  # h < 2^27: below 2^62
        np.bitwise_or(out, self.l_low.view(np.int64), out=out)
        sign = self.minus.view(np.int64)
        np.bitwise_xor(out, -sign, out=out)  # -x = ~x + 1
        np.add(out, sign, out=out)

    def write_limbs(self, shift: int, high: NDArray[np.int64], low: NDArray[np.uint64]) -> None:
        """All draws mod 2^128, for shift >= 1."""
        h = self.h.view(np.uint64)
        if shift < 64:
            upper = h >> np.uint64(64 - shift)
            lower = (h << np.uint64(shift)) | self.l_low
        else:
            upper = (h << np.uint64(shift - 64)) | self.l_high
            lower = self.l_low
        mask = np.uint64(0) - self.minus
        np.add(lower ^ mask, self.minus, out=low)  # -x = ~x + 1; the carry goes up iff the sum wraps to 0
        upper = (upper ^ mask) + (low < self.minus)
        high[:] = upper.view(np.int64)
        for index in self.far:
            value = wrap_int128(self.exact(index, shift))
            high[index], low[index] = value >> 64, value & (2**64 - 1)

    def replace(self, where: NDArray[np.intp], other: _Parts) -> None:
        """Put `other`'s entries at the places `where`."""
        self.minus[where], self.h[where] = other.minus, other.h
        self.l_high[where], self.l_low[where] = other.l_high, other.l_low
        for position, index in enumerate(where.tolist()):
            self.far.pop(index, None)
            if position in other.far:
                self.far[index] = other.far[position]


def _chunks(plan: _Plan, count: int, entropy: Entropy) -> Iterator[tuple[int, _Parts]]:
    """Draws of a large scale, at most `CHUNK` at a time, each chunk with the index where it starts."""
    space = Workspace.of(min(count, CHUNK))
    for start in range(0, count, CHUNK):
        parts = _attempt(plan, min(CHUNK, count - start), space, entropy)
        again = parts.rejected
        while again.size:  # about one entry in 2^20 the first time
            other = _attempt(plan, again.size, space, entropy)
            parts.replace(again, other)
            again = again[other.rejected]
        yield start, parts


def _attempt(plan: _Plan, count: int, space: Workspace, entropy: Entropy) -> _Parts:
    """One attempt at each of `count` draws: 2 words each, 3 if L has more than 44 bits."""
    first = entropy.words(count)
    whole, far = magnitudes(plan.filter, first, space, entropy)
    h = whole.astype(np.int64)
    minus = first & np.uint64(1)
    l_high, l_low, v, v_bits = _split_words(plan.shift, count, entropy)

    rejected = []
    # L is kept iff V >= 1 - e^(-L/t); V is uniform, the v_bits (20 or more) at the top of v are its first
    # bits. 1 - e^(-L/t) <= L/t < 2^shift / t < 2^-19, so V >= 2^-19 is kept surely. The others, one in 2^19,
    # are decided.
    if v.min() < _DOUBTFUL:
        for index in np.flatnonzero(v < _DOUBTFUL).tolist():
            offset = (int(l_high[index]) << 64) + int(l_low[index])
            prefix = int(v[index]) >> (64 - v_bits)
            if not exact_keep(offset, plan.scale, prefix, v_bits, entropy):
                rejected.append(index)
    if h.min() == 0:  # (minus, 0) is not kept; see the head of this module
        zero = (h == 0) & (l_high == 0) & (l_low == 0) & (minus == 1)
        rejected.extend(index for index in np.flatnonzero(zero).tolist() if index not in far)
    return _Parts(minus, h, l_high, l_low, far, np.array(sorted(set(rejected)), dtype=np.intp))


def _split_words(
    shift: int, count: int, entropy: Entropy
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64], int]:
    """L, uniform on `shift` bits (1 to 108), as two limbs; V's first bits at the top of a word; how many they
    are.

    L and V are made of different bits of one word (shift <= 44) or of two.
    """
    first = entropy.words(count)
    if shift <= 44:
        v, v_bits = first << np.uint64(shift), 64 - shift
        return np.zeros(count, np.uint64), first >> np.uint64(64 - shift), v, v_bits
    second = entropy.words(count)
    if shift <= 64:
        return np.zeros(count, np.uint64), first >> np.uint64(64 - shift), second, 64
    rest = shift - 64  # 1 to 44
    l_high = first >> np.uint64(64 - rest)
    l_low = (first << np.uint64(rest)) | (second >> np.uint64(64 - rest))
    return l_high, l_low, second << np.uint64(rest), 64 - rest


def _is_int64(values: Integers) -> TypeGuard[NDArray[np.int64]]:
    return values.dtype == np.int64


SIZE_MAX = 2**30
"""The most draws of one call: 8 GiB of them."""


def _parse_size(size: object) -> tuple[int, ...] | None:
    """None, or the shape that was asked for."""
    if size is None:
        return None
    parts = size if isinstance(size, tuple) else (size,)
    shape = []
    for part in parts:
        whole = isinstance(part, SupportsIndex) and not isinstance(part, bool | np.bool_ | np.ndarray)
        if not whole or part.__index__() < 0:
            raise UsageError("size", "must be None, a whole number >= 0, or a tuple of them", repr(size))
        shape.append(part.__index__())
    if math.prod(shape) > SIZE_MAX or max(shape, default=0) > SIZE_MAX:
        raise UsageError("size", f"must be at most {SIZE_MAX} draws in all (2^30)", repr(size), "draw them in parts")
    return tuple(shape)


def _parse_loc(loc: object) -> float:
    rule = "must be a finite number that a double can hold"
    if isinstance(loc, np.ndarray) and loc.ndim > 0:
        raise UsageError("loc", f"{rule}, not an array", f"{loc.ndim} dimensions")
    exact = parse_rational("loc", loc, rule=rule)
    try:
        return float(exact)
    except OverflowError:
        raise UsageError("loc", rule, str(loc)) from None
