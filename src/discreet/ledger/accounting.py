"""Whether a debit fits: the one place that decides, for the ledger's transaction and for `verify` alike.

An account's *standing* is what its newest entry carries: what all debits so far add up to. A debit makes a new
standing (`charged`), of which a part counts against the total (`counted`); it fits if the total covers that. A
tighter accounting keeps its running state in the standing, and `counted` says what that state is worth: never more
than the sum of the losses, and never less after a debit than before it.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction
from typing import TypeAlias

from discreet.exact import EPSILON_STEP
from discreet.ledger.records import Accounting, Budget, Method, Window
from discreet.privacy import LaplaceVector, PrivacyLoss

__all__ = [
    "NOTHING",
    "Standing",
    "Weighable",
    "Weight",
    "accounting_for",
    "charged",
    "counted",
    "fits",
    "how_many",
    "renewed",
    "standing_of",
    "vectors_of",
    "vectors_text",
    "weight",
    "weight_so_far",
    "window_at",
]

NOTHING = PrivacyLoss(Fraction(0))

_MANY = 1_000_000


def window_at(window: str, time: datetime) -> str:
    """The name of the window that a time lies in, such as "2024-05"; "" where a budget never begins anew.

    Later windows of one kind have greater names, in the order of text.

    Args:
        window: one of `Window`.
        time: in UTC.
    """
    match Window(window):
        case Window.NEVER:
            return ""
        case Window.DAILY:
            return f"{time.year:04}-{time.month:02}-{time.day:02}"
        case Window.WEEKLY:
            year, week, _ = time.isocalendar()
            return f"{year:04}-W{week:02}"
        case Window.MONTHLY:
            return f"{time.year:04}-{time.month:02}"
        case Window.QUARTERLY:
            return f"{time.year:04}-Q{(time.month + 2) // 3}"
        case Window.YEARLY:
            return f"{time.year:04}"


@dataclass(frozen=True)
class Standing:
    """What an account's debits so far add up to.

    Attributes:
        spent: in all, since the account began.
        queries: how many debits that is.
        window: the newest window in which anything was debited; "" where the budget never begins anew.
        in_window: what was spent in that window; the same as `spent` where there are none.
        by_analyst: one analyst's part of `in_window`, if asked for one.
        divergence: RENYI: what the window's debits add up to, at the accounting's order.
        equal: PLD: how many of the window's debits were made under it; the others count by their sum.
    """

    spent: PrivacyLoss = NOTHING
    queries: int = 0
    window: str = ""
    in_window: PrivacyLoss = NOTHING
    by_analyst: PrivacyLoss = NOTHING
    divergence: Fraction = Fraction(0)
    equal: int = 0


@dataclass(frozen=True)
class Weight:
    """What a debit adds to the running state of a tighter accounting; nothing under basic composition."""

    divergence: Fraction = Fraction(0)
    equal: int = 0


def renewed(standing: Standing, window: str) -> Standing:
    """The standing at a time that lies in `window`. A clock that went back frees nothing: an earlier window than
    one already seen changes nothing."""
    if window <= standing.window:
        return standing
    return Standing(standing.spent, standing.queries, window)


def weight(accounting: Accounting, loss: PrivacyLoss, vectors: Sequence[LaplaceVector] | None) -> Weight:
    """What one query weighs.

    Args:
        loss: its whole cost.
        vectors: all that its answer is computed from; None where that is not known. (Any epsilon-DP mechanism loses
            at most what one vector of sensitivity 1 does; see `accounting.renyi`.)
    """
    match accounting.method:
        case Method.RENYI if accounting.order is not None:
            from discreet.accounting.renyi import divergence

            generic = (LaplaceVector(1, loss.epsilon),)
            return Weight(divergence=divergence(accounting.order, generic if vectors is None else vectors))
        case Method.PLD:
            return Weight(equal=1)
        case _:
            return Weight()


def charged(standing: Standing, loss: PrivacyLoss, added: Weight, *, queries: int = 1) -> Standing:
    """The standing once `loss` is debited in its window. (A pure sum: whether it fits is `fits`.)"""
    return dataclasses.replace(
        standing,
        spent=standing.spent + loss,
        queries=standing.queries + queries,
        in_window=standing.in_window + loss,
        by_analyst=standing.by_analyst + loss,
        divergence=standing.divergence + added.divergence,
        equal=standing.equal + added.equal,
    )


def counted(budget: Budget, standing: Standing) -> PrivacyLoss:
    """What of the budget's total is spent in the window.

    By basic composition: the sum of its losses. Else the epsilon is the smaller of the sum and of what the tighter
    accounting makes of its state; the delta is the part that the tighter accounting uses up, which is spent with the
    first query, and the sum of the queries' own.

    Why one may take the smaller of the two each time, though the epsilons are chosen by the answers: see
    `docs/accounting.md`.
    """
    basic, accounting = standing.in_window, budget.accounting
    if accounting.method is Method.BASIC or basic == NOTHING:
        return basic
    usable = budget.total.delta - accounting.selections
    return PrivacyLoss(min(basic.epsilon, _tight(accounting, standing, usable)), basic.delta + usable)


def _tight(accounting: Accounting, standing: Standing, delta: Fraction) -> Fraction:
    """The epsilon of a standing at `delta`, rounded up to the ledger's grid."""
    if accounting.order is not None:
        from discreet.accounting.renyi import converted

        epsilon = standing.divergence + converted(accounting.order, delta)
        return max(Fraction(0), math.ceil(epsilon / EPSILON_STEP) * EPSILON_STEP)
    if accounting.epsilon is not None:
        from discreet.accounting.same_epsilon import composed_epsilon

        others = standing.in_window.epsilon - standing.equal * accounting.epsilon
        return others + composed_epsilon(standing.equal, accounting.epsilon, delta)
    return standing.in_window.epsilon


def fits(budget: Budget, standing: Standing) -> bool:
    """Whether the total covers what a standing counts. The ledger debits only what leaves this true."""
    return budget.total.covers(counted(budget, standing))


def how_many(budget: Budget, standing: Standing, loss: PrivacyLoss, added: Weight) -> int:
    """How many more debits like this one fit, one after the other; a million stands for all that is more."""

    def fit(n: int) -> bool:
        many = Weight(added.divergence * n, added.equal * n)
        return fits(budget, charged(standing, PrivacyLoss(loss.epsilon * n, loss.delta * n), many, queries=n))

    low, high = 0, 1
    while high < _MANY and fit(high):
        low, high = high, 2 * high
    if high >= _MANY and fit(_MANY):
        return _MANY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fit(middle) else (low, middle)
    return low


def accounting_for(method: Method, total: PrivacyLoss, selections: Fraction, epsilon: Fraction | None) -> Accounting:
    """The accounting of a budget: for RENYI with the order that serves its total best. (Public: it depends on no
    answer, and on nothing that was asked.)"""
    if method is not Method.RENYI:
        return Accounting(method, selections, epsilon=epsilon)
    from discreet.accounting.renyi import best_order

    return Accounting(method, selections, order=best_order(total.epsilon, total.delta - selections))


Weighable: TypeAlias = tuple[PrivacyLoss, Sequence[LaplaceVector] | None, int]
"""A cost, the vectors it was for (None: not known), and how many such debits there were."""


def weight_so_far(accounting: Accounting, debits: Iterable[Weighable]) -> Weight:
    """What debits weigh that were made before an accounting was in force: the state that it begins with. Under PLD they
    count by their sum."""
    if accounting.method is not Method.RENYI:
        return Weight()
    parts = (weight(accounting, loss, vectors).divergence * count for loss, vectors, count in debits)
    return Weight(divergence=sum(parts, Fraction(0)))


def vectors_text(vectors: Sequence[LaplaceVector] | None) -> str | None:
    """As an entry stores them: JSON, exact."""
    if vectors is None:
        return None
    return json.dumps([[v.sensitivity, str(v.epsilon)] for v in vectors], separators=(",", ":"))


def vectors_of(text: str | None) -> tuple[LaplaceVector, ...] | None:
    """What `vectors_text` wrote."""
    if text is None:
        return None
    return tuple(LaplaceVector(int(sensitivity), Fraction(epsilon)) for sensitivity, epsilon in json.loads(text))


def standing_of(row: Mapping[str, str | int | None]) -> Standing:
    """The standing that an entry carries."""
    spent = PrivacyLoss(Fraction(str(row["spent_epsilon"])), Fraction(str(row["spent_delta"])))
    window = str(row["window"] or "")
    in_window, by_analyst = spent, NOTHING
    if window:
        in_window = PrivacyLoss(Fraction(str(row["window_epsilon"])), Fraction(str(row["window_delta"])))
    if row["analyst_epsilon"] is not None:
        by_analyst = PrivacyLoss(Fraction(str(row["analyst_epsilon"])), Fraction(str(row["analyst_delta"])))
    divergence, equal = Fraction(str(row["divergence"] or 0)), int(row["equal_queries"] or 0)
    return Standing(spent, int(row["queries"] or 0), window, in_window, by_analyst, divergence, equal)
