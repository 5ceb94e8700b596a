"""Groups chosen from the data: which keys may be shown, at the price of a delta.

A group's key is private where only few people have it. Each unit is counted in at most l of its groups (which ones
is decided by a hash under a key that is drawn afresh for every query, from the unit's own rows alone). To each group's
number D of units discrete Laplace noise X of scale l / epsilon is added, and the group is released if

    D + X >= tau,    tau = k + max(1, m),

m being the declared `min_privacy_units_per_group`. With q = exp(-epsilon / l) and p = 1 - (1 - delta)^(1/l), k is the
smallest integer k >= 1 with P(X >= k) = q^k / (1 + q) <= p.

**This is (epsilon, delta)-differentially private.** Let T' be T and one more unit u, which is counted in the groups of
a set U, |U| <= l; let V be those groups of U in which T counts nobody (j of them; only there can the answers of T and
T' differ in which groups they can hold at all).

(1) On all other groups the counts of T and T' differ by 1 in at most l - j places, and nowhere else, so their L1
distance is at most l, and which of them are released is post-processing of counts with Laplace noise of scale
l / epsilon: epsilon-differentially private (Dwork and Roth 2014, theorem 3.6, proposition 2.1).

(2) From T no group of V is released. From T' one is if 1 + X >= tau, that is X >= k + max(1, m) - 1, which implies
X >= k: with probability at most p. The noises are independent and j <= l, so that none is released with probability at
least (1 - p)^j >= (1 - p)^l = 1 - delta.

With E the event that no group of V is released, for each set A of answers, by (1), as what is released from the other
groups is independent of E:

    P(T' in A) <= P(T' in A, E) + P(not E) <= e^epsilon P(T in A) + delta,
    P(T in A) <= e^epsilon P(T' in A | E) = e^epsilon P(T' in A, E) / P(E),

so P(T in A) (1 - delta) <= e^epsilon P(T' in A), and with P(T in A) <= 1 this is P(T in A) <= e^epsilon P(T' in A) +
delta. (The argument is that of Korolova, Kenthapadi, Mishra, Ntoulas 2009, "Releasing search queries and clicks
privately", and Wilson et al. 2020, "Differentially private SQL with bounded user contribution", section 3.4, carried
over to the discrete law.)
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.laplace.bounds import Bounds, Directed
from discreet.laplace.limbs import Int128Array

__all__ = ["Selection", "margin", "passes"]


@dataclass(frozen=True)
class Selection:
    """How groups are chosen.

    Attributes:
        limit: l, the groups in which one unit is counted.
        epsilon: the selection's share of the query's epsilon.
        delta: the query's whole delta.
        minimum: m, the declared `min_privacy_units_per_group`; 1 if none is.
        margin: k, by `margin`.
    """

    limit: int
    epsilon: Fraction
    delta: Fraction
    minimum: int
    margin: int

    @property
    def threshold(self) -> int:
        """tau: a group is released if its noisy number of units is at least this."""
        return self.margin + max(1, self.minimum)

    @property
    def scale(self) -> Fraction:
        """Of the noise on a group's number of units."""
        return self.limit / self.epsilon

    def canonical(self) -> Any:
        """As plain JSON values."""
        return [self.limit, str(self.epsilon), str(self.delta), self.minimum, self.margin]


def margin(epsilon: Fraction, limit: int, delta: Fraction) -> int:
    """k: the smallest integer k >= 1 with q^k / (1 + q) <= p, decided exactly.

    From q^k / (1 + q) <= p:  k >= (l / epsilon) (-ln p - ln(1 + q)), where p = 1 - exp(ln(1 - delta) / l). Every step
    is an interval that holds the true value, with more digits until only one k is left. There are no ties: q is
    transcendental and p algebraic (Lindemann).

    Args:
        epsilon: the selection's share, above 0.
        limit: l.
        delta: above 0.
    """
    scale = limit / epsilon
    # Digits for the size of k, and for those that 1 - exp(...) loses next to 1.
    digits = 40 + len(str(int(scale))) + len(str(delta.denominator)) + len(str(limit))
    while True:
        at = Directed(digits)
        one = Bounds(Decimal(1), Decimal(1))
        none_of_l = at.ln(at.of(1 - delta))
        none = at.exp(at.times(at.of(Fraction(1, limit)), none_of_l))
        p = at.subtract(one, none)
        q = at.exp(at.of(-1 / scale))
        if p.low > 0:
            k = at.times(at.of(scale), at.negate(at.add(at.ln(p), at.ln(at.add(one, q))))).ceil()
            if k is not None:
                return max(k, 1)
        digits *= 2


def passes(noisy: Int128Array, selection: Selection) -> NDArray[np.bool_]:
    """Which groups are released, given their noisy numbers of units. The one comparison: at least tau."""
    size = len(noisy)
    minus = Int128Array.from_ints([-selection.threshold])
    below = Int128Array(np.repeat(minus.high, size), np.repeat(minus.low, size))
    passed: NDArray[np.bool_] = noisy.add(below).high >= 0
    return passed
