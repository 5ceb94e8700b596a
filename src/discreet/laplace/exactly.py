"""The draws that double precision cannot decide, decided exactly.

A random word is a *prefix* of a uniform real number U: m with n bits says that U lies in [m, m + 1) 2^-n, and
the bits after it are drawn only when somebody needs to know them. Each function here brackets the quantity
with directed bounds over the whole cell; if the cell straddles a threshold it draws as many further bits as
it has (so the length doubles), and looks again.

Termination: every threshold is e^r or a rational function of e^r with r a rational other than 0, so
transcendental (Lindemann-Weierstrass) and in particular no dyadic rational; a cell that shrinks on U leaves
it behind with probability 1, and each extra bit halves the chance that one more is needed. These are
`while` loops, not recursion.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.entropy import Entropy
from discreet.laplace.bounds import Bounds, Directed

__all__ = ["exact_keep", "exact_magnitude"]

_ONE = Bounds(Decimal(1), Decimal(1))
_TWO = Bounds(Decimal(2), Decimal(2))
_ZERO = Decimal(0)


def _digits(length: int, scale: Fraction) -> int:
    """Digits enough that rounding is finer than a cell of `length` bits, also after a multiplication by t."""
    # log10(2) < 0.302; magnitudes add the digits of t. Too few would be slow, never wrong.
    return 25 + (302 * length) // 1000 + len(str(int(scale) + 1))


def exact_magnitude(scale: Fraction, centred: bool, prefix: int, length: int, entropy: Entropy) -> int:
    """floor(t (c - ln U)), where the first `length` bits of U are `prefix` and the rest are drawn as needed.

    Args:
        scale: t > 0.
        centred: True for the magnitude of a discrete Laplace variable, c = ln(2 / (1 + e^(-1/t))); False for
            a geometric variable, c = 0.
        prefix: m, with U in [m, m + 1) 2^-length.
        length: how many bits of U are known.
        entropy: where further bits come from.

    Returns:
        an integer >= 0 of any size: the tail is complete.
    """
    while True:
        # For m = 0 the cell reaches down to U = 0, where the value has no upper bound: it needs more bits.
        value = _magnitude_bounds(scale, centred, prefix, length).floor() if prefix else None
        if value is not None:
            return value
        prefix = (prefix << length) | entropy.bits(length)
        length *= 2


def _magnitude_bounds(scale: Fraction, centred: bool, prefix: int, length: int) -> Bounds:
    """t (c - ln U) = t (c + length ln 2 - ln V) over all V = 2^length U in [m, m + 1], for m = prefix > 0."""
    at = Directed(_digits(length, scale))
    m = Decimal(prefix)  # exact at any length
    ln_m = at.ln(Bounds(m, m))
    # ln(m + 1) <= ln m + 1 / m: one logarithm bounds both ends, and the slack, 1 / (2 m^2), goes faster than
    # the cell.
    ln_v = Bounds(ln_m.low, at.add(ln_m, at.of(Fraction(1, prefix))).high)
    value = at.times(at.of(scale), at.subtract(_offset(scale, centred, length), ln_v))
    # The true value is >= 0, as U <= 1 and c >= 0. The cell that ends at U = 1 may say -10^-digits: without
    # this cut it would stay open for ever, since its true lower bound 0 is itself an integer.
    return Bounds(max(value.low, _ZERO), max(value.high, _ZERO))


@lru_cache(maxsize=64)
def _offset(scale: Fraction, centred: bool, length: int) -> Bounds:
    """c + length ln 2. Cached: it costs more than the rest, and depends on no drawn bit, only on how many."""
    at = Directed(_digits(length, scale))
    ln_two = at.ln(_TWO)
    offset = at.times(Bounds(Decimal(length), Decimal(length)), ln_two)
    if centred:
        q = at.exp(at.of(-1 / scale))
        offset = at.add(offset, at.subtract(ln_two, at.ln(at.add(_ONE, q))))
    return offset


def exact_keep(offset: int, scale: Fraction, prefix: int, length: int, entropy: Entropy) -> bool:
    """A Bernoulli draw: True with probability exp(-offset / scale), exactly.

    True iff V >= 1 - exp(-offset / scale), where the first `length` bits of the uniform V are `prefix`.

    Args:
        offset: a whole number >= 0.
        scale: t > 0.
        prefix: m, with V in [m, m + 1) 2^-length.
        length: how many bits of V are known.
        entropy: where further bits come from.
    """
    if offset == 0:
        return True  # exp(0) = 1 is the one threshold that is rational: V >= 0 always holds
    while True:
        at = Directed(_digits(length, Fraction(1)))
        refuse = at.subtract(_ONE, at.exp(at.of(-offset / scale)))
        cell = at.of(Fraction(prefix, 1 << length)), at.of(Fraction(prefix + 1, 1 << length))
        if cell[0].low >= refuse.high:
            return True
        if cell[1].high <= refuse.low:
            return False
        prefix = (prefix << length) | entropy.bits(length)
        length *= 2
