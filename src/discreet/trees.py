"""The tree of noisy counts, made consistent. Post-processing: costs nothing.

The counts of all levels have independent noise. They are made consistent in two passes (Hay, Rastogi, Miklau,
Suciu 2010, "Boosting the accuracy of differentially private histograms through consistency", VLDB 3(1), there for
equal variances). Upwards, each node becomes the best mean of its own count and its children's sum. Downwards, each
node's children are moved to add up to it, by least squares weighted with their variances: first without, which gives
the linear estimate of least variance, whose error is known (`rank_errors`); here with the condition that no count is
negative, which keeps empty bins from looking full (the projection onto a simplex; Held, Wolfe, Crowder 1974,
"Validation of subgradient optimization", for the algorithm).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from discreet.bins import Bins
from discreet.intervals import Floats

__all__ = ["Places", "Tree", "consistent_counts", "tree_of"]

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
