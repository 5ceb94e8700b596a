"""The public grid on which a value is counted: exact integers q with value about q * step.

Only integers meet noise (design, section 2, rule 1). A value x between declared bounds L and U becomes
q = floor(clamp(x) / step), an integer between `lowest` = floor(L / step) and `highest` = floor(U / step).
For whole numbers and decimals the grid holds every value exactly; for floats the step is a power of two near
the bound times 2^-40, so that one row loses at most about 10^-12 of the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import RefusedError
from discreet.exact import ceil_log2
from discreet.query import Bounds
from discreet.schema import Kind, Type

__all__ = ["ROWS_CEILING", "TOTAL_CEILING", "WEIGHT", "Grid", "choose_grid"]

WEIGHT = 2**20
"""S: what a row of a person within the limit weighs. A heavy person's rows weigh less (design, section 4)."""

ROWS_CEILING = 2**36
"""No table is assumed to hold more rows; exact totals are sized for it (design, section 2, rule 9)."""

TOTAL_CEILING = 2**126
"""Every exact total stays below this, so that 128-bit integers hold it."""

_FLOAT_BITS = 40
_SQUARE_ROOTS = 2**20
_FLOAT_EXPONENTS = (-900, 900)
_LARGEST_EXACT = 10**37
_MOST_PLACES = 18
_DECIMAL_DIGITS = 38


@dataclass(frozen=True)
class Grid:
    """A public grid.

    Attributes:
        step: the grid's step, exact.
        lowest, highest: q at the lower and the upper bound.
        bounds: what was declared.
        places, coarseness: for exact types, step = 10^-places * coarseness.
    """

    step: Fraction
    lowest: int
    highest: int
    bounds: Bounds
    places: int = 0
    coarseness: int = 1

    @property
    def largest(self) -> int:
        """B: the largest size of one value on the grid."""
        return max(abs(self.lowest), abs(self.highest))

    @property
    def width(self) -> int:
        """qU - qL: the largest size of one *centred* value 2q - qL - qU, in steps of step / 2."""
        return self.highest - self.lowest

    @property
    def square_root_step(self) -> int:
        """K: in how many half steps the distance from the centre is counted before it is squared.

        1, and the squares exact, for a width up to 2^20; else about 2^-20 of the width.
        """
        return max(1, -(-self.width // _SQUARE_ROOTS))

    def square(self, distance: int) -> int:
        """A distance from the centre, d = |2q - qL - qU|, squared on the coarser grid: about (d / K)^2.

        With d = i K + j it is i^2 + floor(2 i j / K): within 2 of (d / K)^2, never above it, exact for K = 1,
        and never decreasing in d: from d to the next, j grows by 1; or i does, from at most i^2 + 2 i to
        (i + 1)^2.
        """
        i, j = divmod(distance, self.square_root_step)
        return i * i + 2 * i * j // self.square_root_step

    @property
    def largest_square(self) -> int:
        """R: the largest square, that of either bound; at most 2^40."""
        return self.square(self.width)

    @property
    def square_unit(self) -> Fraction:
        """What one unit of a square is worth: (K step / 2)^2."""
        return (self.square_root_step * self.step / 2) ** 2


def choose_grid(type_: Type, bounds: Bounds, thing: str, beside: Bounds | None = None) -> Grid:
    """The grid for a column of that type between those bounds; from public facts only.

    Args:
        type_: of the values.
        bounds: of the values.
        thing: for errors.
        beside: further numbers that a grid of an exact type must hold.

    Raises:
        RefusedError: no grid keeps the totals within 128 bits, or the bounds are beyond a double's range.
    """
    largest = max(abs(bounds.lower), abs(bounds.upper))
    if type_.kind is Kind.FLOAT:
        # Scaling a double by a power of two is exact while exponents stay in range, so floor(x / step) is too.
        exponent = (ceil_log2(largest) if largest else 0) - _FLOAT_BITS
        if not _FLOAT_EXPONENTS[0] < exponent < _FLOAT_EXPONENTS[1]:
            raise RefusedError(thing, "bounds must be 0 or between about 1e-250 and 1e250 in size")
        return _grid(Fraction(2) ** exponent, bounds)
    if largest > _LARGEST_EXACT:
        raise RefusedError(thing, "bounds of whole numbers and decimals must be at most 10^37 in size")
    # Whole numbers and decimals: the coarsest power of ten that holds the column's values and both bounds.
    places = type_.scale if type_.kind is Kind.DECIMAL else 0
    ends = [end for one in (bounds, beside) if one is not None for end in (one.lower, one.upper)]
    while places < _MOST_PLACES and any((end * 10**places).denominator != 1 for end in ends):
        places += 1
    coarseness = 1
    # Coarser, if the totals would not fit otherwise. A centred value is at most twice as large as a value.
    while WEIGHT * 2 * (largest * 10**places / coarseness + 1) * ROWS_CEILING >= TOTAL_CEILING:
        coarseness *= 10
    if type_.kind is Kind.DECIMAL and len(str(int(largest) + 1)) + type_.scale + places + 1 > _DECIMAL_DIGITS:
        raise RefusedError(
            thing, "has more digits than decimals hold exactly", hint="declare it as DOUBLE with --types"
        )
    return _grid(Fraction(coarseness, 10**places), bounds, places, coarseness)


def _grid(step: Fraction, bounds: Bounds, places: int = 0, coarseness: int = 1) -> Grid:
    lowest, highest = (b.numerator // b.denominator for b in (bounds.lower / step, bounds.upper / step))
    return Grid(step, lowest, highest, bounds, places, coarseness)
