"""What is in force, as the entries of a ledger tell: registrations, accounts, budgets, what is spent of them.

Each of these reads a fixed number of entries, however long the history is, but for `debits_in_window` and
`debits_of_its_own`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime

from discreet.exact import decimal_text
from discreet.ledger import chain
from discreet.ledger.accounting import NOTHING, Standing, Weighable, renewed, standing_of, vectors_of
from discreet.ledger.chain import ACCOUNT, Row, amount
from discreet.ledger.records import Accounting, Budget, Kind
from discreet.ledger.store import Transaction
from discreet.privacy import PrivacyLoss

__all__ = [
    "account_of",
    "add",
    "budget_in_force",
    "cost_fields",
    "debits_in_window",
    "debits_of_its_own",
    "members_of",
    "registered",
    "standing_in_force",
    "version_of",
]


def registered(entries: Transaction, source: str) -> Row | None:
    """The newest registration of a source."""
    return chain.newest(entries, "e.source = ? AND e.kind = 'register'", source)


def version_of(entries: Transaction, source: str) -> int:
    """The version of that registration; 0 if there is none."""
    row = registered(entries, source)
    return 0 if row is None else int(row["version"])


def account_of(entries: Transaction, source: str) -> str:
    """The account that a source charges."""
    row = chain.newest(entries, "e.source = ? AND e.kind = 'join'", source)
    return source if row is None else row["account"] or source


def members_of(entries: Transaction, account: str) -> tuple[str, ...]:
    """The sources that joined an account, in that order."""
    return tuple(row["source"] for row in chain.rows(entries, "e.account = ? AND e.kind = 'join'", account))


def budget_in_force(entries: Transaction, account: str) -> Budget | None:
    """The budget of an account, or None."""
    # The unit, the relation and the window stand in the first of these entries, the total in the newest.
    newest = chain.newest(entries, "e.source = ? AND e.kind IN ('budget', 'raise')", account)
    if newest is None:
        return None
    first = next(chain.rows(entries, "e.source = ? AND e.kind IN ('budget', 'raise')", account))
    set_last = chain.newest(entries, "e.source = ? AND e.kind = 'accounting'", account)
    accounting = Accounting() if set_last is None else chain.accounting_of(set_last)
    return dataclasses.replace(chain.budget_of(first), total=amount(newest), accounting=accounting)


def debits_in_window(entries: Transaction, account: str, window: str) -> Iterator[Weighable]:
    """All that counts in an account's window: its debits, and those that sources brought along when they joined."""
    debits = f"{ACCOUNT} = ? AND coalesce(e.\"window\", '') = ? AND e.kind = 'debit'"
    for row in chain.rows(entries, debits, account, window):
        yield amount(row), vectors_of(row["vectors"]), 1
    joined = "e.account = ? AND coalesce(e.\"window\", '') = ? AND e.kind = 'join'"
    for row in chain.rows(entries, joined, account, window):
        yield from debits_of_its_own(entries, row["source"])


def debits_of_its_own(entries: Transaction, source: str) -> Iterator[Weighable]:
    """The debits of a source before it joined another account."""
    for row in chain.rows(entries, "e.source = ? AND e.account IS NULL AND e.kind = 'debit'", source):
        yield amount(row), vectors_of(row["vectors"]), 1


def standing_in_force(entries: Transaction, account: str, analyst: str | None = None) -> Standing:
    """What an account's newest entry carries; with what an analyst spent of it, if one is named."""
    row = chain.newest(entries, f"{ACCOUNT} = ?", account)
    standing = Standing() if row is None else dataclasses.replace(standing_of(row), by_analyst=NOTHING)
    if analyst is None:
        return standing
    debit = chain.newest(entries, f"{ACCOUNT} = ? AND e.analyst = ? AND e.kind = 'debit'", account, analyst)
    if debit is None:
        return standing
    return dataclasses.replace(standing, by_analyst=renewed(standing_of(debit), standing.window).by_analyst)


def cost_fields(loss: PrivacyLoss) -> dict[str, str]:
    """A cost as an entry stores it."""
    # Every epsilon lies on the grid of 12 decimal places, so its decimal text is exact.
    return {"epsilon": decimal_text(loss.epsilon), "delta": str(loss.delta)}


def add(
    entries: Transaction,
    now: datetime,
    kind: Kind,
    source: str,
    fields: Row,
    *,
    standing: Standing | None = None,
) -> int:
    """Add an entry, which carries the standing of its account on."""
    if "account" not in fields:
        account = account_of(entries, source)
        fields = {**fields, "account": None if account == source else account}
    if standing is None:
        standing = standing_in_force(entries, fields["account"] or source)
    row = {
        "time": now.isoformat(timespec="milliseconds"),
        "source": source,
        "kind": str(kind),
        "spent_epsilon": decimal_text(standing.spent.epsilon),
        "spent_delta": str(standing.spent.delta),
        "queries": standing.queries,
        **fields,
    }
    if standing.window:
        row["window"] = standing.window
        row["window_epsilon"] = decimal_text(standing.in_window.epsilon)
        row["window_delta"] = str(standing.in_window.delta)
    if standing.divergence:
        row["divergence"] = decimal_text(standing.divergence, digits=18)
    if standing.equal:
        row["equal_queries"] = standing.equal
    return chain.append(entries, row)
