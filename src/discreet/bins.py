"""The tree of bins that quantiles are measured by: public, decided from type and bounds alone.

The leaves divide the bounds into at most 2^16 bins (2^12 where groups are chosen from the data) of `size` grid
steps each: one a value where the values are that few, else equal ones. Each level above joins `fan` neighbours into
one node, until at most `fan` are left: for 2^16 leaves four levels of 16, 256, 4096 and 65536 nodes. The whole is
not a level of its own: it is the sum of the first.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from discreet.grid import Grid, choose_grid
from discreet.laplace.limbs import Int128Array
from discreet.query import Bounds
from discreet.schema import Kind, Type

__all__ = ["MOST_BINS", "MOST_BINS_OF_CHOSEN_GROUPS", "MOST_CELLS", "Bins", "choose_bins", "level_totals"]

MOST_BINS = 2**16
MOST_BINS_OF_CHOSEN_GROUPS = 2**12
"""Where it is not known beforehand how many groups there will be."""
MOST_CHILDREN = 16
MOST_CELLS = 2**23
"""The most leaves that one query may ask for, over all its groups: a quarter of a gigabyte of exact totals."""


@dataclass(frozen=True)
class Bins:
    """A tree of bins.

    Attributes:
        grid: the grid of the values; bin b holds the q with floor((q - lowest) / size) = b.
        size: how many grid steps a bin is wide.
        count: how many leaves. The last may be narrower; for floats it holds the upper bound too.
        fan: how many children a node has; the last of a level may have fewer.
        continuous: the values fill the steps of the grid (floats), they do not lie on it.
    """

    grid: Grid
    size: int
    count: int
    fan: int
    continuous: bool

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The number of nodes in each level, from the coarsest to the leaves."""
        sizes = [self.count]
        while sizes[0] > self.fan:
            sizes.insert(0, -(-sizes[0] // self.fan))
        return tuple(sizes)

    def ends(self, leaf: int) -> tuple[Fraction, Fraction]:
        """The least and the largest value of a bin, within the bounds."""
        bounds, step = self.grid.bounds, self.grid.step
        first = self.grid.lowest + leaf * self.size
        last = min(first + self.size, self.grid.highest + 1)
        lower, upper = first * step, (last if self.continuous else last - 1) * step
        return min(max(lower, bounds.lower), bounds.upper), min(max(upper, bounds.lower), bounds.upper)


def choose_bins(type_: Type, bounds: Bounds, thing: str, *, most: int = MOST_BINS) -> Bins:
    """The tree for values of a type between bounds, with at most so many leaves; from public facts only.

    Raises:
        RefusedError: as `choose_grid`.
    """
    grid = choose_grid(type_, bounds, thing)
    continuous = type_.kind is Kind.FLOAT
    steps = max(1, grid.width) if continuous else grid.width + 1
    size = -(-steps // most)
    count = -(-steps // size)
    return Bins(grid, size, count, _fan(count), continuous)


def _fan(count: int) -> int:
    """The smallest number of children that needs no more levels than 16 would: levels of about equal steps.

    With the same share of epsilon for each level this is within 1 % of the best shares for the error of a rank
    (computed for 101, 601, 4096 and 65536 leaves; 16 children at 601 leaves are 11 % worse).
    """
    levels = 1
    while MOST_CHILDREN**levels < count:
        levels += 1
    fan = 2
    while fan**levels < count:
        fan += 1
    return fan


def level_totals(leaves: Int128Array, bins: Bins) -> tuple[Int128Array, ...]:
    """The exact totals of all levels, coarsest first, from those of the leaves: of any number of groups, in a row.

    In hand are PRIVATE totals, and nothing here depends on them. Sums are mod 2^64: each is below
    `grid.WEIGHT` times `grid.ROWS_CEILING`, 2^56, so they are exact.
    """
    groups = len(leaves) // bins.count
    totals = leaves.low.view(np.int64).reshape(groups, bins.count)
    levels = [leaves]
    for size in reversed(bins.sizes[:-1]):
        totals = np.add.reduceat(totals, np.arange(0, size * bins.fan, bins.fan), axis=1)
        levels.insert(0, Int128Array.from_int64(np.ascontiguousarray(totals).reshape(-1)))
    return tuple(levels)
