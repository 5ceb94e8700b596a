"""Queries: charged before anything is read, and what became of them.

Every function works inside the caller's writing transaction, on values already found valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from discreet.errors import BudgetError, SourceError, UsageError
from discreet.exact import decimal_text
from discreet.ledger import chain
from discreet.ledger.accounting import charged, fits, renewed, vectors_text, weight, window_at
from discreet.ledger.accounts import account_of, add, budget_in_force, cost_fields, standing_in_force, version_of
from discreet.ledger.chain import Row
from discreet.ledger.records import Caps, Kind
from discreet.ledger.refusals import check_caps, check_epsilon, same_promise, too_little
from discreet.ledger.store import Transaction
from discreet.privacy import LaplaceVector, PrivacyLoss

__all__ = ["debit", "record"]


def debit(
    entries: Transaction,
    now: datetime,
    source: str,
    loss: PrivacyLoss,
    fields: Row,
    *,
    vectors: Sequence[LaplaceVector] | None,
    version: int | None,
    caps: Caps,
) -> int:
    """Charge a query; see `Ledger.debit`.

    Args:
        fields: analyst, query, digest, unit, relation and content (the limits) of the entry.
    """
    account = account_of(entries, source)
    budget = budget_in_force(entries, account)
    if budget is None:
        raise BudgetError(
            f"budget of {account}",
            "is not set, and nothing is answered without one",
            hint="set it once, for good, with --budget (for example --budget 3)",
        )
    same_promise(account, budget, fields["unit"], fields["relation"])
    in_force = version_of(entries, source)
    if version not in (None, in_force):
        raise SourceError(source, "was registered anew while the query was planned", hint="ask again")
    standing = renewed(standing_in_force(entries, account, fields["analyst"]), window_at(budget.window, now))
    after = charged(standing, loss, weight(budget.accounting, loss, vectors))
    check_epsilon(account, budget.accounting, loss)
    check_caps(account, caps, loss, standing, after, fields["analyst"])
    if not fits(budget, after):
        raise too_little(account, budget, standing, loss)
    return add(
        entries,
        now,
        Kind.DEBIT,
        source,
        {
            **fields,
            "vectors": vectors_text(vectors),
            **cost_fields(loss),
            "version": in_force,
            "account": None if account == source else account,
            "analyst_epsilon": decimal_text(after.by_analyst.epsilon),
            "analyst_delta": str(after.by_analyst.delta),
        },
        standing=after,
    )


def record(entries: Transaction, now: datetime, entry: int, kind: Kind, content: str) -> None:
    """Note what became of a debited query; see `Ledger.record_release` and `Ledger.record_failure`."""
    debited = chain.newest(entries, "e.number = ? AND e.kind = 'debit'", entry)
    if debited is None:
        raise UsageError("ledger entry", "must be the number of a debited query", entry)
    outcome = chain.newest(entries, "e.subject = ?", entry)
    if outcome is not None:
        raise UsageError(f"ledger entry {entry}", f"is already recorded as {outcome['kind']}")
    add(entries, now, kind, debited["source"], {"subject": entry, "content": content})
