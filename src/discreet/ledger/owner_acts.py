"""What the owner does: budgets are set, raised, shared, and told how to add up. Each act is an entry.

Every function works inside the caller's writing transaction, on values already found valid.
"""

from __future__ import annotations

import dataclasses
from datetime import datetime
from fractions import Fraction

from discreet.errors import BudgetError, UsageError
from discreet.exact import decimal_text
from discreet.ledger import chain
from discreet.ledger.accounting import accounting_for, charged, counted, fits, renewed, weight_so_far, window_at
from discreet.ledger.accounts import (
    account_of,
    add,
    budget_in_force,
    cost_fields,
    debits_in_window,
    debits_of_its_own,
    members_of,
    standing_in_force,
    version_of,
)
from discreet.ledger.records import Accounting, Budget, Kind, Method, Window
from discreet.ledger.refusals import RAISE, json_text, same_promise, shown, too_little
from discreet.ledger.store import Transaction
from discreet.privacy import PrivacyLoss

__all__ = ["join", "raise_budget", "register", "set_accounting", "set_budget"]


def register(entries: Transaction, now: datetime, source: str, content: str, *, first: bool) -> int:
    """Store a registration; see `Ledger.register`. The version in force."""
    version = version_of(entries, source)
    if first and version:
        return version
    add(entries, now, Kind.REGISTER, source, {"version": version + 1, "content": content})
    return version + 1


def set_budget(entries: Transaction, now: datetime, account: str, new: Budget) -> None:
    """See `Ledger.set_budget`."""
    account = account_of(entries, account)
    old = budget_in_force(entries, account)
    if old is not None and dataclasses.replace(old, accounting=Accounting()) == new:
        return
    if old is not None:
        same_promise(account, old, new.unit, new.relation)
        if old.window is not new.window:
            raise UsageError(f"budget window of {account}", f"is {old.window!s}, set for good", str(new.window))
        raise UsageError(f"budget of {account}", f"is {shown(old.total)}, set for good", shown(new.total), RAISE)
    more = {} if new.window is Window.NEVER else {"content": json_text("window", {"window": str(new.window)})}
    add(
        entries,
        now,
        Kind.BUDGET,
        account,
        {**cost_fields(new.total), "unit": new.unit, "relation": new.relation, **more},
    )


def raise_budget(entries: Transaction, now: datetime, account: str, total: PrivacyLoss) -> None:
    """See `Ledger.raise_budget`."""
    account = account_of(entries, account)
    old = budget_in_force(entries, account)
    if old is None:
        raise UsageError(f"budget of {account}", "is not set yet", hint="set it with --budget")
    if not total.covers(old.total):
        raise UsageError(f"budget of {account}", f"is {shown(old.total)} and can only be raised", shown(total))
    if total != old.total:
        add(entries, now, Kind.RAISE, account, cost_fields(total))
        if old.accounting.method is Method.RENYI:
            accounting = accounting_for(Method.RENYI, total, old.accounting.selections, None)
            _reckon(entries, now, account, dataclasses.replace(old, total=total, accounting=accounting))


def set_accounting(
    entries: Transaction, now: datetime, account: str, method: Method, selections: Fraction, epsilon: Fraction | None
) -> None:
    """See `Ledger.set_accounting`: `selections` is its `delta_for_groups`, `epsilon` its `epsilon_per_query`."""
    account = account_of(entries, account)
    budget = budget_in_force(entries, account)
    if budget is None:
        raise UsageError(f"budget of {account}", "is not set yet", hint="set it with --budget")
    if method is Method.BASIC:
        selections = Fraction(0)
    elif selections >= budget.total.delta:
        raise UsageError(
            f"accounting of {account}",
            f"by {method!s} needs a delta: the budget's is {decimal_text(budget.total.delta, digits=30)}, and "
            f"{decimal_text(selections, digits=30)} of it is for groups",
            hint="raise the budget's delta (1e-6 is usual), or keep accounting 'basic'",
        )
    accounting = accounting_for(method, budget.total, selections, epsilon)
    if accounting != budget.accounting:
        _reckon(entries, now, account, dataclasses.replace(budget, accounting=accounting))


def _reckon(entries: Transaction, now: datetime, account: str, budget: Budget) -> None:
    """Put a budget's accounting in force: its state is reckoned from all debits of the window. O(their number)."""
    accounting = budget.accounting
    standing = renewed(standing_in_force(entries, account), window_at(budget.window, now))
    so_far = weight_so_far(accounting, debits_in_window(entries, account, standing.window))
    after = dataclasses.replace(standing, divergence=so_far.divergence, equal=so_far.equal)
    spent = counted(budget, after)
    if not fits(budget, after):
        raise BudgetError(
            f"accounting of {account}",
            f"by {accounting.method!s} would leave {shown(spent, True)} spent of {shown(budget.total, True)}",
            hint="raise the budget first, or leave more of its delta for groups",
        )
    said: dict[str, str] = {
        "accounting": str(accounting.method),
        "delta_for_groups": str(accounting.selections),
    }
    if accounting.order is not None:
        said["order"] = str(accounting.order)
    if accounting.epsilon is not None:
        said["epsilon_per_query"] = decimal_text(accounting.epsilon)
    fields = {"content": json_text("accounting", said)}
    add(entries, now, Kind.ACCOUNTING, account, fields, standing=after)


def join(entries: Transaction, now: datetime, source: str, account: str, dataset: str) -> None:
    """See `Ledger.join`."""
    more = {"content": json_text("dataset", {"dataset": dataset})} if dataset else {}
    joined = chain.newest(entries, "e.source = ? AND e.kind = 'join'", source)
    in_force = account_of(entries, source)
    if account == in_force:
        if dataset and joined is None:
            add(entries, now, Kind.JOIN, source, more)
        return
    if in_force != source:
        raise UsageError(f"budget of {source}", f"is {in_force}, shared for good", account)
    if account_of(entries, account) != account or members_of(entries, source):
        raise UsageError("a shared budget", "cannot be part of another", account)
    budget, own = budget_in_force(entries, account), budget_in_force(entries, source)
    if budget is None:
        raise UsageError(f"budget of {account}", "is not set yet", hint="set it before a source shares it")
    if own is not None:
        same_promise(account, budget, own.unit, own.relation)
    brought = standing_in_force(entries, source)
    standing = renewed(standing_in_force(entries, account), window_at(budget.window, now))
    added = weight_so_far(budget.accounting, debits_of_its_own(entries, source))
    after = charged(standing, brought.spent, added, queries=brought.queries)
    if not fits(budget, after):
        raise too_little(account, budget, standing, brought.spent)
    fields = {"account": account, **cost_fields(brought.spent), **more}
    add(entries, now, Kind.JOIN, source, fields, standing=after)
