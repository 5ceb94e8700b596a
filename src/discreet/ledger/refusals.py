"""Values that the ledger takes, and the words in which it refuses others."""

from __future__ import annotations

import json
from fractions import Fraction

from discreet.errors import BudgetError, UsageError
from discreet.exact import decimal_text, parse_delta, parse_epsilon
from discreet.ledger.accounting import Standing, counted
from discreet.ledger.records import Accounting, Budget, Caps
from discreet.privacy import PrivacyLoss

__all__ = [
    "RAISE",
    "check_caps",
    "check_epsilon",
    "json_text",
    "minus",
    "same_promise",
    "shown",
    "too_little",
    "valid_loss",
    "valid_text",
]

RAISE = "the owner may raise it with `discreet budget raise`"
"""The way on when a budget is used up."""


def valid_loss(loss: PrivacyLoss) -> PrivacyLoss:
    """The same loss, once it is known to lie on the ledger's grid and above 0.

    Raises:
        UsageError: naming epsilon or delta and the allowed range.
    """
    return PrivacyLoss(parse_epsilon(loss.epsilon), parse_delta(loss.delta))


def valid_text(name: str, value: str) -> str:
    """A text that can be stored and read back as it is.

    Raises:
        UsageError: for one that is not Unicode text (a stray byte of the command line), or holds the character NUL,
            which not every store can hold.
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(name, "must be valid Unicode text", ascii(value)) from None
    if "\0" in value:
        raise UsageError(name, "must not hold the character NUL", ascii(value))
    return value


def json_text(name: str, value: object) -> str:
    """A value as an entry stores it.

    Raises:
        UsageError: for what is not made of plain JSON values. The value is not shown: it may be an answer.
    """
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        raise UsageError(name, "must be made of plain, finite JSON values") from None


def shown(loss: PrivacyLoss, whole: bool | None = None) -> str:
    """A loss as people read it; the delta too if `whole`, or if there is one and `whole` is not said."""
    text = f"epsilon {decimal_text(loss.epsilon)}"
    with_delta = loss.delta > 0 if whole is None else whole
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if with_delta else text


def minus(a: PrivacyLoss, b: PrivacyLoss) -> PrivacyLoss:
    """What is left of `a` once `b` is spent."""
    return PrivacyLoss(a.epsilon - b.epsilon, a.delta - b.delta)


def check_epsilon(account: str, accounting: Accounting, loss: PrivacyLoss) -> None:
    """What PLD accounting rests on: every query costs what was fixed beforehand.

    Raises:
        BudgetError: naming it. Nothing was charged.
    """
    if accounting.epsilon not in (None, loss.epsilon):
        fixed = decimal_text(accounting.epsilon)
        raise BudgetError(
            "epsilon of one query",
            f"is {fixed}, no more and no less, by the accounting of {account} (pld). Nothing was charged",
            decimal_text(loss.epsilon),
            f"ask with epsilon {fixed}",
        )


def check_caps(account: str, caps: Caps, loss: PrivacyLoss, standing: Standing, after: Standing, analyst: str) -> None:
    """The owner's limits on one query and on one analyst.

    Raises:
        BudgetError: naming the limit. Nothing was charged.
    """
    caps.check_query(loss.epsilon)
    if caps.analyst is not None and after.by_analyst.epsilon > caps.analyst:
        spent, most = standing.by_analyst.epsilon, decimal_text(caps.analyst)
        left = max(caps.analyst - spent, Fraction(0))
        when = f" in {after.window}" if after.window else ""
        raise BudgetError(
            f"share of analyst {analyst!r} of the budget of {account}",
            f"is epsilon {most}{when} by the owner's policy; spent: epsilon {decimal_text(spent)}; left: epsilon "
            f"{decimal_text(left)}; asked: epsilon {decimal_text(loss.epsilon)}. Nothing was charged",
            hint=f"ask for at most epsilon {decimal_text(left)}" if left else "the owner may allow more in the policy",
        )


def same_promise(source: str, budget: Budget, unit: str, relation: str) -> None:
    """A budget adds up losses about one unit and one relation; a sum over two would promise nothing."""
    for what, mine, given in (
        ("privacy unit", budget.unit, unit),
        ("relation", budget.relation, relation),
    ):
        if mine != given:
            raise UsageError(
                f"budget of {source}",
                f"is about the {what} {mine!r}; losses about another cannot be added to it",
                given,
                hint=f"ask with the {what} of the budget",
            )


def too_little(account: str, budget: Budget, standing: Standing, asked: PrivacyLoss) -> BudgetError:
    total, spent = budget.total, counted(budget, standing)
    left = minus(total, spent)
    whole = total.delta > 0 or asked.delta > 0
    if left.epsilon > 0 and (left.delta > 0 or asked.delta == 0):
        hint = f"ask for at most {shown(left, whole)}, or {RAISE}"
    else:
        hint = RAISE
    if standing.window:
        hint += f"; it begins anew after {standing.window} ({budget.window!s})"
    when = f" in {standing.window}" if standing.window else ""
    return BudgetError(
        f"budget of {account}",
        f"is {shown(total, whole)}{when}; spent: {shown(spent, whole)}; left: {shown(left, whole)}; "
        f"asked: {shown(asked, whole)}. Nothing was charged",
        hint=hint,
    )
