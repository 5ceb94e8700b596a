"""Decimal arithmetic with directed bounds: every result is an interval that surely holds the true value.

Where a decision must be exact (which integer a draw is, how wide an interval is) it is taken from such an
interval, and taken again with more digits while the interval leaves it open. The decisions that are asked
here compare rationals with ln and exp of rationals, which are transcendental (Lindemann-Weierstrass), so
they never tie and more digits always decide.

Why `decimal`: its ln and exp are correctly rounded (Python documents it), so one step outwards on either
side is a proof, and it is in the standard library. Three traps are avoided here on purpose. Unary minus on
a `Decimal` rounds to the digits of the *current* context: `copy_negate` does not. The default exponent range
is too small for exp(-10^12): the contexts below have the largest one. And nothing depends on the thread's
current context: each operation names its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

__all__ = ["Bounds", "Directed"]


@dataclass(frozen=True)
class Bounds:
    """A closed interval [low, high] that holds the true value."""

    low: Decimal
    high: Decimal

    def floor(self) -> int | None:
        """The true value's floor, or None while the interval leaves it open."""
        low = math.floor(self.low)
        return low if low == math.floor(self.high) else None

    def ceil(self) -> int | None:
        """The true value's ceiling, or None while the interval leaves it open."""
        low = math.ceil(self.low)
        return low if low == math.ceil(self.high) else None


class Directed:
    """Interval arithmetic with a given number of significant digits."""

    def __init__(self, digits: int) -> None:
        # No traps: an inexact or subnormal result is still inside the interval that it belongs to. (An
        # invalid operation would give NaN, whose floor raises: it cannot pass for a number.)
        self._down = Context(prec=digits, rounding=ROUND_FLOOR, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
        self._up = Context(prec=digits, rounding=ROUND_CEILING, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])

    def of(self, x: Fraction) -> Bounds:
        """A rational."""
        numerator, denominator = Decimal(x.numerator), Decimal(x.denominator)  # exact at any length
        return Bounds(self._down.divide(numerator, denominator), self._up.divide(numerator, denominator))

    def add(self, x: Bounds, y: Bounds) -> Bounds:
        """x + y."""
        return Bounds(self._down.add(x.low, y.low), self._up.add(x.high, y.high))

    def subtract(self, x: Bounds, y: Bounds) -> Bounds:
        """x - y."""
        return Bounds(self._down.subtract(x.low, y.high), self._up.subtract(x.high, y.low))

    def times(self, x: Bounds, y: Bounds) -> Bounds:
        """x * y for x > 0 and y of any sign."""
        low = x.low if y.low >= 0 else x.high
        high = x.high if y.high >= 0 else x.low
        return Bounds(self._down.multiply(low, y.low), self._up.multiply(high, y.high))

    def negate(self, x: Bounds) -> Bounds:
        """-x, without rounding."""
        return Bounds(x.high.copy_negate(), x.low.copy_negate())

    def ln(self, x: Bounds) -> Bounds:
        """The natural logarithm of x > 0. The function rounds to nearest: one step outwards is a bound."""
        low = self._down.ln(x.low)
        high = low if x.low == x.high else self._up.ln(x.high)
        return Bounds(self._down.next_minus(low), self._up.next_plus(high))

    def exp(self, x: Bounds) -> Bounds:
        """The exponential. The function rounds to nearest: one step outwards is a bound, and 0 is one too."""
        low = self._down.next_minus(self._down.exp(x.low))
        return Bounds(max(low, Decimal(0)), self._up.next_plus(self._up.exp(x.high)))
