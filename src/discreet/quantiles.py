"""Quantiles from a tree of noisy counts: consistency, crossings, intervals. Post-processing: costs nothing.

The counts of all levels have independent noise. They are made consistent in two passes (Hay, Rastogi, Miklau,
Suciu 2010, "Boosting the accuracy of differentially private histograms through consistency", VLDB 3(1), there for
equal variances). Upwards, each node becomes the best mean of its own count and its children's sum. Downwards, each
node's children are moved to add up to it, by least squares weighted with their variances: first without, which gives
the linear estimate of least variance, whose error is known (`rank_error`); here with the condition that no count is
negative, which keeps empty bins from looking full (the projection onto a simplex; Held, Wolfe, Crowder 1974,
"Validation of subgradient optimization", for the algorithm).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.bins import Bins
from discreet.intervals import Floats

__all__ = [
    "Tree",
    "consistent_counts",
    "deviations_out",
    "quantile_with_interval",
    "rank_error",
    "running_counts",
    "tree_of",
]

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Tree:
    """The shape of a tree with the noise of its levels: all that does not depend on the counts.

    Attributes:
        bins: the tree.
        own: for each level, the variance of a node's noise.
        joint: for each level, the variance of each node once its children have been heard.
        below: for each level but the last, the variance of the sum of each node's children; and first, that of
            the whole.
    """

    bins: Bins
    own: tuple[float, ...]
    joint: tuple[Floats, ...]
    below: tuple[Floats, ...]

    def starts(self, level: int) -> Places:
        """Where the children of each node of the level above stand; the whole is above level 0."""
        if level == 0:
            return np.zeros(1, dtype=np.intp)
        return np.arange(0, self.bins.sizes[level], self.bins.fan, dtype=np.intp)

    def parents(self, level: int) -> Places:
        """The parent of each node of a level."""
        nodes = np.arange(self.bins.sizes[level], dtype=np.intp)
        return np.zeros_like(nodes) if level == 0 else nodes // self.bins.fan


def tree_of(bins: Bins, variances: Sequence[float]) -> Tree:
    """A tree.

    Args:
        bins: its shape.
        variances: of the noise of each level's counts, coarsest first.
    """
    tree = Tree(bins, tuple(variances), (), ())
    joint = [np.full(bins.sizes[-1], variances[-1])]
    below: list[Floats] = []
    for level in range(len(bins.sizes) - 1, -1, -1):
        below.insert(0, np.add.reduceat(joint[0], tree.starts(level)))
        if level > 0:
            joint.insert(0, 1.0 / (1.0 / variances[level - 1] + 1.0 / below[0]))
    return Tree(bins, tree.own, tuple(joint), tuple(below))


def consistent_counts(tree: Tree, counts: Sequence[Floats]) -> Floats:
    """Counts of the leaves that are never negative and agree best with those of all levels.

    Args:
        tree: shape and noise.
        counts: for each level the noisy counts, shape (groups, nodes).
    """
    heard = [counts[-1]]
    for level in range(len(counts) - 1, 0, -1):
        children = np.add.reduceat(heard[0], tree.starts(level), axis=1)
        trust = tree.below[level] / (tree.own[level - 1] + tree.below[level])
        heard.insert(0, trust * counts[level - 1] + (1.0 - trust) * children)
    settled: Floats = np.maximum(0.0, heard[0].sum(axis=1, keepdims=True))  # the whole
    for level, nodes in enumerate(heard):
        fan = tree.bins.fan if level else nodes.shape[1]
        settled = _shared_out(settled, nodes, tree.joint[level], fan)
    return settled


def _shared_out(parents: Floats, children: Floats, variances: Floats, fan: int) -> Floats:
    """The non-negative counts u that add up to their parents and minimise sum (u - z)^2 / t.

    They are u = max(0, z + t m) with one m for each parent. With the children of a parent in falling order of z / t,
    the first k stay above 0, k being the largest with z_k / t_k + m_k > 0, m_k = (parent - sum of the first k z) /
    (sum of the first k t); and m = m_k.

    Args:
        parents: settled counts, shape (groups, parents).
        children: z, shape (groups, nodes).
        variances: t of the nodes.
        fan: how many children a parent has; the last may have fewer.
    """
    groups, nodes = children.shape
    spare = parents.shape[1] * fan - nodes
    z = np.pad(children, ((0, 0), (0, spare)), constant_values=-np.inf).reshape(-1, fan)
    t = np.tile(np.pad(variances, (0, spare), constant_values=1.0).reshape(-1, fan), (groups, 1))
    order = np.argsort(-z / t, axis=1)
    sums, weights = (np.cumsum(np.take_along_axis(x, order, axis=1), axis=1) for x in (z, t))
    shifts = (parents.reshape(-1, 1) - sums) / weights
    with np.errstate(invalid="ignore"):  # behind the last child, -inf + inf is not above 0
        above = np.take_along_axis(z / t, order, axis=1) + shifts > 0.0
    kept = np.maximum(above.sum(axis=1, keepdims=True), 1) - 1
    shared = np.maximum(0.0, z + t * np.take_along_axis(shifts, kept, axis=1))
    return shared.reshape(groups, nodes + spare)[:, :nodes]


def rank_error(tree: Tree, point: float) -> Floats:
    """The standard deviation of F(b) - p F(last), F being the running sum of the linear estimate, for each leaf b.

    In a node with children c, let z_c be what they are before anything is handed down, of variances t_c with sum V,
    and e the error of the node itself once settled. Child c gets z_c + (t_c / V) (e - sum of the z's errors); what is
    subtracted there makes the rest of the z's errors uncorrelated with their sum, so with e. If the count up to b,
    inside child c*, has the error d + r e_c* with d uncorrelated with e_c*, then with a_c = 1 left of c*, r in it, 0
    right of it, the count up to b inside the node has the error d + sum a_c (z_c's error - (t_c / V) sum) + (A / V) e,
    A = sum of a_c t_c: the middle part has the variance sum a_c^2 t_c - A^2 / V, and the new r is A / V. At a leaf,
    b itself included, d = 0 and r = 1. The whole's error e has variance V and is multiplied by r - p at the end.

    Returns:
        One number a leaf, shape (leaves + 1,): the first is that before the first leaf, where F is 0.
    """
    bins = tree.bins
    leaves = np.arange(bins.count, dtype=np.intp)
    part, apart = np.ones(bins.count), np.zeros(bins.count)
    for level in range(len(bins.sizes) - 1, -1, -1):
        node = leaves // bins.fan ** (len(bins.sizes) - 1 - level)
        parent = tree.parents(level)[node]
        running = np.concatenate([[0.0], np.cumsum(tree.joint[level])])
        left = running[node] - running[tree.starts(level)[parent]]
        own, total = tree.joint[level][node], tree.below[level][parent]
        weighed = left + part * own
        apart += np.maximum(0.0, left + part**2 * own - weighed**2 / total)
        part = weighed / total
    whole = float(tree.below[0][0])
    deviations: Floats = np.sqrt(apart + (part - point) ** 2 * whole)
    return np.concatenate([[point * math.sqrt(whole)], deviations])


def deviations_out(confidence: float) -> float:
    """How many standard deviations to either side hold a sum of Laplace noises with at least that probability.

    The larger of what a single Laplace variable needs, -ln(1 - c) / sqrt 2, and what a normal one needs: sums of
    many lie between the two (within 1 %, tested).
    """
    return max(-math.log(1.0 - confidence) / math.sqrt(2.0), NormalDist().inv_cdf((1.0 + confidence) / 2.0))


def running_counts(tree: Tree, counts: Sequence[Floats]) -> Floats:
    """F: for each group and leaf, how many rows lie in it or before it, by `consistent_counts`.

    Args:
        tree: shape and noise.
        counts: for each level the noisy counts, shape (groups, nodes).
    """
    groups, at_once = len(counts[0]), max(1, _AT_ONCE // tree.bins.count)
    running = np.empty((groups, tree.bins.count))
    for i in range(0, groups, at_once):
        some = consistent_counts(tree, [level[i : i + at_once] for level in counts])
        np.cumsum(some, axis=1, out=running[i : i + at_once])
    return running


_AT_ONCE = 2**20
"""How many leaves are worked on at a time, to spare memory."""


def quantile_with_interval(
    tree: Tree, running: Floats, point: Fraction, confidence: float
) -> tuple[Floats, Floats, Floats]:
    """The p-quantile of each group, as PERCENTILE_CONT has it, and its interval.

    With F the running counts, n its end rounded and r = p (n - 1), the value lies the fraction r - floor(r) of the way
    from the row of rank floor(r) to the next; the row of rank i is where F crosses i + 1/2. F never decreases, and
    neither does the value with p. Without noise all this is exact to one bin. A group that looks empty gets
    L + p (U - L).

    The interval: the bin of the exact value has F(b) >= p n - p, and F(b - 1) <= p n + 1 - p, for the exact F and n.
    The interval reaches from the first bin that meets the first condition, with an allowance of z standard deviations
    of the noisy left side (`rank_error`, `deviations_out`), to the last that meets the second. This is approximate: the
    standard deviation is that of the linear estimate, before negative counts are raised to 0, moving rows from full
    bins to empty ones. Coverage is measured in the tests; where all rows share the outermost of many bins, and p is
    near 1, all misses fall on one side and a nominal 95 % came out at 93 to 94 %.

    Args:
        tree: shape and noise.
        running: by `running_counts`, shape (groups, leaves).
        point: p, from 0 to 1.
        confidence: of the interval.
    """
    p = float(point)
    allowed = deviations_out(confidence) * rank_error(tree, p)
    at_once = max(1, _AT_ONCE // tree.bins.count)
    starts = range(0, len(running), at_once)
    pieces = [_quantiles_of(running[i : i + at_once], p, allowed, tree.bins) for i in starts]
    empty = np.zeros(0)
    values, low, high = (np.concatenate([empty, *(piece[i] for piece in pieces)]) for i in range(3))
    return values, low, high


def _quantiles_of(running: Floats, p: float, allowed: Floats, bins: Bins) -> tuple[Floats, Floats, Floats]:
    ends = _Ends(bins)
    total = running[:, -1]
    rows = np.maximum(1.0, np.round(total))
    rank = p * (rows - 1.0)
    whole = np.minimum(np.floor(rank), np.maximum(rows - 2.0, 0.0))
    first = _crossing(running, whole + 0.5, ends)
    second = _crossing(running, np.minimum(whole + 1.5, rows - 0.5), ends)
    values = first + (rank - whole) * (second - first)
    lower, upper = float(bins.grid.bounds.lower), float(bins.grid.bounds.upper)
    values = np.where(total < 0.5, lower + p * (upper - lower), values)
    target = p * total[:, None]
    low = _first_true(running - target >= -(allowed[1:] + p))
    before = np.concatenate([np.zeros((len(running), 1)), running[:, :-1]], axis=1)
    high = _last_true(before - target <= allowed[:-1] + (1.0 - p))
    return values, np.minimum(ends.lower(low), values), np.maximum(ends.upper(high), values)


def _crossing(running: Floats, target: Floats, ends: _Ends) -> Floats:
    """The value where each group's running count crosses the target, straight through the bin where it does."""
    leaf = _first_true(running >= target[:, None])
    groups = np.arange(len(running))
    above = running[groups, leaf]
    before = np.where(leaf > 0, running[groups, np.maximum(leaf - 1, 0)], 0.0)
    rise = above - before
    part = np.divide(target - before, rise, out=np.full(len(running), 0.5), where=rise > 0.0)
    lower = ends.lower(leaf)
    crossing: Floats = lower + np.clip(part, 0.0, 1.0) * (ends.upper(leaf) - lower)
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
