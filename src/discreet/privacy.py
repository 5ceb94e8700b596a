"""What is promised, and to whom: the privacy loss, the privacy unit, the neighbouring relation.

Definitions: Dwork and Roth, *The Algorithmic Foundations of Differential Privacy* (2014), definition 2.4
(epsilon, delta) and theorem 3.16 (basic composition: epsilons add, deltas add).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.errors import UsageError
from discreet.exact import parse_delta, parse_epsilon

__all__ = ["RELATION", "LaplaceVector", "PrivacyLoss", "parse_budget", "split"]

RELATION = "add or remove all rows of one privacy unit"
"""The one neighbouring relation in force. It is stored with every budget and printed with every answer."""


@dataclass(frozen=True)
class PrivacyLoss:
    """An (epsilon, delta) pair of exact rationals, for neighbours in the sense of `RELATION`.

    Adding two losses is basic composition (Dwork and Roth 2014, theorem 3.16): it holds for queries that are
    chosen adaptively.
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)

    def __add__(self, other: PrivacyLoss) -> PrivacyLoss:
        return PrivacyLoss(self.epsilon + other.epsilon, self.delta + other.delta)

    def covers(self, other: PrivacyLoss) -> bool:
        """Whether this budget is enough for `other`."""
        return other.epsilon <= self.epsilon and other.delta <= self.delta


@dataclass(frozen=True)
class LaplaceVector:
    """One vector of integers that meets independent discrete Laplace noise of scale sensitivity / epsilon.

    A release that is nothing but such vectors, and what is computed from them, loses less than its epsilon alone
    tells; tighter accounting makes use of it.

    Attributes:
        sensitivity: the L1 distance between neighbours is at most this; in steps of the noise, at least 1.
        epsilon: its share, above 0.
    """

    sensitivity: int
    epsilon: Fraction


def parse_budget(value: object) -> PrivacyLoss:
    """A budget: a total epsilon, or a pair (epsilon, delta).

    Raises:
        UsageError: naming the allowed range.
    """
    if isinstance(value, PrivacyLoss):
        value = (value.epsilon, value.delta)
    if isinstance(value, tuple | list):
        if len(value) != 2:
            raise UsageError("budget", "must be epsilon, or a pair (epsilon, delta)", value, "budget=(3, 1e-5)")
        return PrivacyLoss(parse_epsilon(value[0], name="budget"), parse_delta(value[1], name="the budget's delta"))
    return PrivacyLoss(parse_epsilon(value, name="budget"))


def split(epsilon: Fraction, shares: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """Divide one epsilon among measurements in proportion to their shares; the parts add up exactly.

    Args:
        epsilon: what the user typed: the whole cost of the query.
        shares: one positive rational a measurement.
    """
    total = sum(shares, Fraction(0))
    return tuple(epsilon * share / total for share in shares)
