"""Quantiles from the running counts of a consistent tree: values and intervals. Post-processing: costs nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.bins import Bins
from discreet.intervals import Floats
from discreet.rank_errors import ErrorParts, deviations_out, error_parts, rank_error, without_thin_counts
from discreet.trees import Places, Tree, consistent_counts

__all__ = ["RunningCounts", "quantile_with_interval", "running_counts"]

_AT_ONCE = 2**20
"""How many leaves are worked on at a time, to spare memory."""


@dataclass(frozen=True)
class RunningCounts:
    """For each group and leaf, how many rows lie in it or before it; shapes (groups, leaves).

    Attributes:
        likely: F, by `consistent_counts`: what quantiles are read off.
        full: F if thin counts are nothing but noise (`rank_errors`).
        errors: what is known of F's error.
    """

    likely: Floats
    full: Floats
    errors: ErrorParts


def running_counts(tree: Tree, counts: Sequence[Floats]) -> RunningCounts:
    """The running counts from noisy ones.

    Args:
        tree: shape and noise.
        counts: for each level the noisy counts, shape (groups, nodes).
    """
    shape = (len(counts[0]), tree.bins.count)
    likely, full = np.empty(shape), np.empty(shape)
    errors = ErrorParts(math.sqrt(tree.below[0][0]), np.empty(shape, np.float32), np.empty(shape, np.float32))
    at_once = max(1, _AT_ONCE // tree.bins.count)
    for i in range(0, shape[0], at_once):
        some = slice(i, i + at_once)
        leaves = consistent_counts(tree, [level[some] for level in counts])
        np.cumsum(leaves, axis=1, out=likely[some])
        full[some] = without_thin_counts(tree, likely[some])
        found = error_parts(tree, leaves > 0.0)
        errors.apart[some], errors.part[some] = found.apart, found.part
    return RunningCounts(likely, full, errors)


def quantile_with_interval(
    tree: Tree, running: RunningCounts, point: Fraction, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """The p-quantile of each group, as PERCENTILE_CONT has it, and its interval.

    With F the running counts, n its end rounded and r = p (n - 1), the value lies the fraction r - floor(r) of the way
    from the row of rank floor(r) to the next; the row of rank i is where F crosses i + 1/2. F never decreases, and
    neither does the value with p. Without noise all this is exact to one bin. A group that looks empty gets
    L + p (U - L).

    The interval: the bin of the exact value has F(b) >= p n - p, and F(b - 1) <= p n + 1 - p, for the exact F and n.
    The interval reaches from the first bin that meets the first condition, with an allowance of z standard deviations
    of the noisy left side (`rank_errors`, `deviations_out`), to the last that meets the second. As only one bin is
    asked about, each condition needs to hold at that bin alone; but each must hold whether thin counts are rows or
    noise. The standard deviations are approximate, as they take the bins that came out as 0 for known; where fewer
    than z deviations of a single count's noise lie on one side of the quantile, those of the linear estimate take
    their place. Coverage is measured in the tests.

    Args:
        tree: shape and noise.
        running: by `running_counts`.
        point: p, from 0 to 1.
        confidence: of the interval.
    """
    groups, at_once = len(running.likely), max(1, _AT_ONCE // tree.bins.count)
    values, low, high = np.empty(groups), np.empty(groups), np.empty(groups)
    search = _Search(tree, float(point), confidence)
    for i in range(0, groups, at_once):
        some = slice(i, i + at_once)
        errors = ErrorParts(running.errors.whole, running.errors.apart[some], running.errors.part[some])
        part = RunningCounts(running.likely[some], running.full[some], errors)
        values[some] = found = search.values(part.likely)
        lowest, highest = search.ends(part)
        low[some], high[some] = np.minimum(lowest, found), np.maximum(highest, found)
    return values, low, high


class _Search:
    """For one p-quantile of some groups."""

    def __init__(self, tree: Tree, p: float, confidence: float) -> None:
        self._tree, self._p = tree, p
        self._ends = _Ends(tree.bins)
        self._z = deviations_out(confidence)
        self._linear = rank_error(tree, p)

    def values(self, running: Floats) -> Floats:
        p, total = self._p, running[:, -1]
        rows = np.maximum(1.0, np.round(total))
        rank = p * (rows - 1.0)
        whole = np.minimum(np.floor(rank), np.maximum(rows - 2.0, 0.0))
        first = self._crossing(running, whole + 0.5)
        second = self._crossing(running, np.minimum(whole + 1.5, rows - 0.5))
        values = first + (rank - whole) * (second - first)
        bounds = self._tree.bins.grid.bounds
        lower, upper = float(bounds.lower), float(bounds.upper)
        return np.where(total < 0.5, lower + p * (upper - lower), values)

    def ends(self, running: RunningCounts) -> tuple[Floats, Floats]:
        p = self._p
        total = running.likely[:, -1:]
        # Too few rows on one side to tell full bins from empty ones.
        lost = min(p, 1.0 - p) * total < self._z * math.sqrt(self._tree.own[0])
        allowed = self._z * np.where(lost, self._linear, running.errors.deviations(p))
        target = p * total
        most, least = np.maximum(running.likely, running.full), np.minimum(running.likely, running.full)
        low = _first_true(most - target >= -(allowed[:, 1:] + p))
        before = np.concatenate([np.zeros_like(total), least[:, :-1]], axis=1)
        high = _last_true(before - target <= allowed[:, :-1] + (1.0 - p))
        return self._ends.lower(low), self._ends.upper(high)

    def _crossing(self, running: Floats, target: Floats) -> Floats:
        """The value where each group's running count crosses the target, straight through the bin where it does."""
        leaf = _first_true(running >= target[:, None])
        groups = np.arange(len(running))
        above = running[groups, leaf]
        before = np.where(leaf > 0, running[groups, np.maximum(leaf - 1, 0)], 0.0)
        rise = above - before
        part = np.divide(target - before, rise, out=np.full(len(running), 0.5), where=rise > 0.0)
        lower = self._ends.lower(leaf)
        crossing: Floats = lower + np.clip(part, 0.0, 1.0) * (self._ends.upper(leaf) - lower)
        return crossing


def _first_true(condition: NDArray[np.bool_]) -> Places:
    """The first column that is true; the last column if none is."""
    first: Places = condition.argmax(axis=1)
    return np.where(condition.any(axis=1), first, condition.shape[1] - 1)


def _last_true(condition: NDArray[np.bool_]) -> Places:
    """The last column that is true; the first if none is."""
    last: Places = condition.shape[1] - 1 - condition[:, ::-1].argmax(axis=1)
    return np.where(condition.any(axis=1), last, 0)


class _Ends:
    """The least and largest values of bins, as doubles."""

    def __init__(self, bins: Bins) -> None:
        self._bins = bins

    def lower(self, leaves: Places) -> Floats:
        return np.array([float(self._bins.ends(leaf)[0]) for leaf in leaves.tolist()])

    def upper(self, leaves: Places) -> Floats:
        return np.array([float(self._bins.ends(leaf)[1]) for leaf in leaves.tolist()])
