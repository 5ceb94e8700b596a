"""How far the running counts of a consistent tree may be off, at each of its bins: what quantiles' intervals rest on.

F(b) is the running count at bin b, n the count of all rows. The error that decides about a quantile is that of
F(b) - p n. That of the linear estimate is known exactly. The estimate in use has no negative counts and errs less:
a bin whose count came out as 0 has, as long as it stays at 0, no error of its own. `ErrorParts` counts the noise
of the other bins only, as if it were known beforehand which they are.

Two things spoil that where counts are thin, few rows a bin. The noise that is left in empty bins was taken from full
ones, so that F is off to one side: `without_thin_counts` gives F as it is if all thin counts were nothing but noise,
and an interval has to allow for both. And where fewer rows lie beyond the quantile than the noise of a single count
may be, which bins came out as 0 tells nothing: there the linear estimate's error is what counts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from discreet.intervals import Floats
from discreet.trees import Tree

__all__ = ["ErrorParts", "deviations_out", "error_parts", "rank_error", "without_thin_counts"]

THIN = 3.0
"""Counts of fewer standard deviations than this may be noise alone."""


@dataclass(frozen=True)
class ErrorParts:
    """Of the error of F(b) - p n at each leaf b: the variance is `apart` + (`part` - p)^2 times that of the whole.

    Attributes:
        whole: the standard deviation of the whole.
        apart, part: shape (groups, leaves); single precision will do.
    """

    whole: float
    apart: NDArray[np.floating]
    part: NDArray[np.floating]

    def deviations(self, point: float) -> Floats:
        """The standard deviations for a p, shape (groups, leaves + 1): first that before the first leaf, F = 0."""
        rest = np.sqrt(self.apart + (self.part - point) ** 2)
        relative: Floats = np.concatenate([np.full((len(rest), 1), point), rest], axis=1, dtype=np.float64)
        return relative * self.whole


def error_parts(tree: Tree, full: NDArray[np.bool_]) -> ErrorParts:
    """The parts of F's error, the noise of bins that are not `full` left out.

    In a node with children c, let z_c be what they are before anything is handed down, of variances t_c, with the sums
    V over the full ones, and e the error of the node itself once settled. A full child gets z_c + (t_c / V) (e - sum of
    the full z's errors). e knows the z's by the sum of all of them only, so it is uncorrelated with z_c's error less
    t_c / V times the sum of the full ones. If the count up to b, inside child c*, has the error d + r e_c* with d
    uncorrelated with e_c*, then with a_c = 1 left of c*, r in it, 0 right of it, the count up to b inside the node has
    the error d + sum a_c (z_c's error - (t_c / V) sum) + (A / V) e, A = sum of a_c t_c: the middle part has the
    variance sum a_c^2 t_c - A^2 / V, and the new r is A / V. At a leaf, b itself included, d = 0 and r = 1. The whole's
    error e is multiplied by r - p at the end.

    Args:
        tree: shape and noise.
        full: which leaves' noise counts, shape (groups, leaves).
    """
    bins = tree.bins
    flags = [full]
    for level in range(len(bins.sizes) - 1, 0, -1):
        flags.insert(0, np.logical_or.reduceat(flags[0], tree.starts(level), axis=1))
    part, apart = np.ones(full.shape), np.zeros(full.shape)
    for level in range(len(bins.sizes) - 1, -1, -1):
        starts, parents = tree.starts(level), tree.parents(level)
        wide = bins.fan ** (len(bins.sizes) - 1 - level)

        def at_leaves(nodes: Floats, wide: int = wide) -> Floats:
            return np.repeat(nodes, wide, axis=1)[:, : bins.count]

        own = tree.joint[level] * flags[level]
        running = np.concatenate([np.zeros((len(full), 1)), np.cumsum(own, axis=1)], axis=1)
        left = at_leaves(running[:, :-1] - running[:, starts][:, parents])
        total = np.add.reduceat(own, starts, axis=1)
        inverse = at_leaves(np.divide(1.0, total, out=np.zeros_like(total), where=total > 0.0)[:, parents])
        own = at_leaves(own)
        weighed = left + part * own
        apart += np.maximum(0.0, left + part**2 * own - weighed**2 * inverse)
        part = weighed * inverse
    whole = float(tree.below[0][0])
    return ErrorParts(math.sqrt(whole), apart / whole, part)


def rank_error(tree: Tree, point: float) -> Floats:
    """The standard deviation of F(b) - p n for the linear estimate F, for each leaf b: the noise of all bins counts.

    Returns:
        One number a leaf, shape (leaves + 1,): the first is that before the first leaf, where F is 0.
    """
    parts = error_parts(tree, np.ones((1, tree.bins.count), dtype=np.bool_))
    deviations: Floats = parts.deviations(point)[0]
    return deviations


def without_thin_counts(tree: Tree, running: Floats) -> Floats:
    """F as it is if each count of fewer than `THIN` standard deviations is noise alone.

    From the top: a node's thin children become 0, and what they had goes back to the others as it was taken from all,
    in proportion to their variances. Where all are thin, nobody knows which are the full ones, and they keep their
    parts.

    Args:
        tree: shape and noise.
        running: F, shape (groups, leaves).
    """
    levels = [np.diff(running, axis=1, prepend=0.0)]
    for level in range(len(tree.bins.sizes) - 1, 0, -1):
        levels.insert(0, np.add.reduceat(levels[0], tree.starts(level), axis=1))
    settled = running[:, -1:]
    for level, counts in enumerate(levels):
        starts, parents = tree.starts(level), tree.parents(level)
        thick = counts > THIN * np.sqrt(tree.joint[level])
        weights = np.where(thick, tree.joint[level], 0.0)
        kept = np.where(thick, counts, 0.0)
        total = np.add.reduceat(weights, starts, axis=1)
        missing = settled - np.add.reduceat(kept, starts, axis=1)
        shift = np.divide(missing, total, out=np.zeros_like(total), where=total > 0.0)
        before = np.add.reduceat(counts, starts, axis=1)
        ratio = np.divide(settled, before, out=np.zeros_like(before), where=before > 0.0)
        shared = np.where(total[:, parents] > 0.0, kept + weights * shift[:, parents], counts * ratio[:, parents])
        settled = np.maximum(0.0, shared)
    full: Floats = np.cumsum(settled, axis=1)
    return full


def deviations_out(confidence: float) -> float:
    """How many standard deviations to either side hold a sum of Laplace noises with at least that probability.

    The larger of what a single Laplace variable needs, -ln(1 - c) / sqrt 2, and what a normal one needs: sums of
    many lie between the two (within 1 %, tested).
    """
    return max(-math.log(1.0 - confidence) / math.sqrt(2.0), NormalDist().inv_cdf((1.0 + confidence) / 2.0))
