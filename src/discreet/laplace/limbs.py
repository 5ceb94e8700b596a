"""Arrays of 128-bit integers as two NumPy arrays ("limbs"): what exact totals and noise are added up in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.errors import UsageError

__all__ = ["Int128Array", "wrap_int128"]

_WORD = 1 << 64
_LOW = _WORD - 1
_HALF = 1 << 127


def wrap_int128(value: int) -> int:
    """The integer in [-2^127, 2^127) that equals `value` mod 2^128."""
    return ((value + _HALF) & (2 * _HALF - 1)) - _HALF


@dataclass(frozen=True, eq=False)
class Int128Array:
    """A one-dimensional array of integers in [-2^127, 2^127), in two's complement.

    The value of entry i is high[i] * 2^64 + low[i]. Arithmetic is mod 2^128, as in a machine word. Values are
    never changed in place; equality of whole arrays is asked as ``a.to_ints() == b.to_ints()``.

    Args:
        high: the upper 64 bits, signed, shape (n,).
        low: the lower 64 bits, unsigned, shape (n,).
    """

    high: NDArray[np.int64]
    low: NDArray[np.uint64]

    def __post_init__(self) -> None:
        if self.high.dtype != np.int64 or self.low.dtype != np.uint64:
            raise UsageError("the limbs of an Int128Array", "must be an int64 array and a uint64 array")
        if self.high.ndim != 1 or self.high.shape != self.low.shape:
            raise UsageError("the limbs of an Int128Array", "must be two arrays of one and the same length")

    @classmethod
    def zeros(cls, count: int) -> Int128Array:
        """`count` zeros."""
        return cls(np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.uint64))

    @classmethod
    def from_ints(cls, values: Iterable[int]) -> Int128Array:
        """Python integers, each in [-2^127, 2^127).

        Raises:
            UsageError: for an integer that does not fit.
        """
        listed = list(values)
        if any(not -_HALF <= value < _HALF for value in listed):
            raise UsageError("an entry of an Int128Array", "must be from -2^127 to 2^127 - 1")
        return cls(
            np.array([value >> 64 for value in listed], dtype=np.int64),
            np.array([value & _LOW for value in listed], dtype=np.uint64),
        )

    @classmethod
    def from_int64(cls, values: NDArray[np.int64]) -> Int128Array:
        """A one-dimensional int64 array. The low limb shares its memory."""
        return cls(values >> 63, values.view(np.uint64))

    def to_ints(self) -> list[int]:
        """Python integers."""
        return [(high << 64) | low for high, low in zip(self.high.tolist(), self.low.tolist(), strict=True)]

    def fits_int64(self) -> bool:
        """Whether every entry lies in [-2^63, 2^63)."""
        return bool(np.array_equal(self.high, self.low.view(np.int64) >> 63))

    def to_int64(self) -> NDArray[np.int64]:
        """The same numbers as int64.

        Raises:
            OverflowError: if an entry does not fit. Whether one does depends on the values: ask this of
                released values only, and use `to_ints` where the values are private.
        """
        if not self.fits_int64():
            raise OverflowError("an entry does not fit int64")
        return self.low.view(np.int64).copy()

    def __len__(self) -> int:
        return len(self.low)

    def add(self, other: Int128Array) -> Int128Array:
        """Entrywise sum mod 2^128.

        Raises:
            UsageError: if the lengths differ (nothing is broadcast here).
        """
        if len(self) != len(other):
            raise UsageError("the sum of two Int128Arrays", "needs two arrays of one and the same length")
        low = self.low + other.low
        # Unsigned wrap-around is what tells the carry. The high limbs are added unsigned too: signed overflow
        # has no meaning that NumPy promises, mod 2^64 has.
        carry = (low < self.low).view(np.uint8)
        high = self.high.view(np.uint64) + other.high.view(np.uint64) + carry
        return Int128Array(high.view(np.int64), low)

    def round_shift(self, bits: int) -> Int128Array:
        """Entrywise division by 2^bits, rounded to the nearest integer, halves up: floor(x / 2^bits + 1/2).

        Args:
            bits: from 0 to 127.

        Raises:
            UsageError: for other numbers of bits.
        """
        if isinstance(bits, bool) or not 0 <= bits <= 127:
            raise UsageError("a shift of an Int128Array", "must be from 0 to 127 bits", bits)
        if bits == 0:
            return self
        # With x = 2^bits * a + r the last bit that is shifted out is 1 exactly when r >= 2^(bits-1), so
        # adding it to a rounds halves up; x + 2^(bits-1), the usual way, could overflow. a + 1 cannot, as
        # bits >= 1.
        last = self._shift(bits - 1).low & np.uint64(1)
        return self._shift(bits).add(Int128Array(np.zeros(len(self), dtype=np.int64), last))

    def _shift(self, bits: int) -> Int128Array:
        """floor(x / 2^bits) for bits from 0 to 127 (NumPy leaves shifts by 64 undefined: none is made)."""
        if bits == 0:
            return self
        if bits < 64:
            low = (self.low >> np.uint64(bits)) | (self.high.view(np.uint64) << np.uint64(64 - bits))
            return Int128Array(self.high >> bits, low)
        return Int128Array(self.high >> 63, (self.high >> (bits - 64)).view(np.uint64))
