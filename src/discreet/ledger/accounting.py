"""Whether a debit fits: the one place that decides, for the ledger's transaction and for `verify` alike.

An account's *standing* is what its newest entry carries: what all debits so far add up to. A debit makes a new
standing (`charged`), of which a part counts against the total (`counted`); it fits if the total covers that. A
tighter accounting adds its running state to `Standing` and says in `counted` what that state is worth.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from discreet.ledger.records import Budget, Window
from discreet.privacy import PrivacyLoss

__all__ = ["NOTHING", "Standing", "charged", "counted", "fits", "renewed", "standing_of", "window_at"]

NOTHING = PrivacyLoss(Fraction(0))


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
    """

    spent: PrivacyLoss = NOTHING
    queries: int = 0
    window: str = ""
    in_window: PrivacyLoss = NOTHING
    by_analyst: PrivacyLoss = NOTHING


def renewed(standing: Standing, window: str) -> Standing:
    """The standing at a time that lies in `window`. A clock that went back frees nothing: an earlier window than
    one already seen changes nothing."""
    if window <= standing.window:
        return standing
    return dataclasses.replace(standing, window=window, in_window=NOTHING, by_analyst=NOTHING)


def charged(standing: Standing, loss: PrivacyLoss, *, queries: int = 1) -> Standing:
    """The standing once `loss` is debited in its window. (A pure sum: whether it fits is `fits`.)"""
    return dataclasses.replace(
        standing,
        spent=standing.spent + loss,
        queries=standing.queries + queries,
        in_window=standing.in_window + loss,
        by_analyst=standing.by_analyst + loss,
    )


def counted(budget: Budget, standing: Standing) -> PrivacyLoss:
    """What of the budget's total is spent: by basic composition, the sum of the window's losses."""
    return standing.in_window


def fits(budget: Budget, standing: Standing) -> bool:
    """Whether the total covers what a standing counts. The ledger debits only what leaves this true."""
    return budget.total.covers(counted(budget, standing))


def standing_of(row: Mapping[str, str | int | None]) -> Standing:
    """The standing that an entry carries."""
    spent = PrivacyLoss(Fraction(str(row["spent_epsilon"])), Fraction(str(row["spent_delta"])))
    window = str(row["window"] or "")
    in_window, by_analyst = spent, NOTHING
    if window:
        in_window = PrivacyLoss(Fraction(str(row["window_epsilon"])), Fraction(str(row["window_delta"])))
    if row["analyst_epsilon"] is not None:
        by_analyst = PrivacyLoss(Fraction(str(row["analyst_epsilon"])), Fraction(str(row["analyst_delta"])))
    return Standing(spent, int(row["queries"] or 0), window, in_window, by_analyst)
