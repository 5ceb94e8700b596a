"""Looking back: entries with what became of them, stored answers, balances, who spent what."""

from __future__ import annotations

import json
from datetime import datetime

from discreet.ledger import chain
from discreet.ledger.accounting import NOTHING, counted, renewed, standing_of, window_at
from discreet.ledger.accounts import (
    account_of,
    budget_in_force,
    members_of,
    registered,
    standing_in_force,
    version_of,
)
from discreet.ledger.chain import ACCOUNT, GENESIS, Row, amount
from discreet.ledger.records import Balance, Entry, Kind, Method, Overview, Share, State, Window
from discreet.ledger.refusals import minus
from discreet.ledger.store import Transaction
from discreet.schema import Registration

__all__ = ["balance", "history", "overview", "shares", "stored_answer"]


def stored_answer(entries: Transaction, source: str, version: int, digest: str) -> Entry | None:
    """See `Ledger.stored_answer`."""
    if version_of(entries, source) != version:
        return None
    outcome = chain.newest(
        entries,
        "e.kind = 'released' AND e.subject IN (SELECT number FROM entries"
        " WHERE kind = 'debit' AND source = ? AND version = ? AND digest = ?)",
        source,
        version,
        digest,
    )
    debit = outcome and chain.newest(entries, "e.number = ?", outcome["subject"])
    return None if outcome is None or debit is None else _entry(debit, outcome)


def balance(entries: Transaction, source: str, now: datetime) -> Balance | None:
    """See `Ledger.balance`."""
    account = account_of(entries, source)
    budget = budget_in_force(entries, account)
    if budget is None:
        return None
    standing = renewed(standing_in_force(entries, account), window_at(budget.window, now))
    spent = counted(budget, standing)
    return Balance(
        total=budget.total,
        spent=spent,
        left=minus(budget.total, spent),
        queries=standing.queries,
        window=standing.window,
        in_all=None if budget.window is Window.NEVER else standing.spent,
        basic=None if budget.accounting.method is Method.BASIC else standing.in_window,
    )


def shares(entries: Transaction, source: str) -> tuple[Share, ...]:
    """See `Ledger.shares`."""
    account = account_of(entries, source)
    found: dict[tuple[str, str], Share] = {}
    for row in chain.rows(entries, f"{ACCOUNT} = ? AND e.kind = 'debit'", account):
        who = (row["window"] or "", row["analyst"] or "")
        share = found.get(who, Share(*who, NOTHING, 0))
        found[who] = Share(*who, share.spent + amount(row), share.queries + 1)
    return tuple(found[who] for who in sorted(found))


def history(entries: Transaction, source: str) -> tuple[Entry, ...]:
    """See `Ledger.history`."""
    found = list(chain.rows(entries, f"e.source = ? OR {ACCOUNT} = ?", source, source))
    outcomes = {row["subject"]: row for row in found if row["subject"] is not None}
    return tuple(_entry(row, outcomes.get(row["number"])) for row in found if row["subject"] is None)


def overview(entries: Transaction, source: str, now: datetime) -> Overview:
    """See `Ledger.overview`."""
    account = account_of(entries, source)
    mine = history(entries, source)
    members = members_of(entries, account)
    newest = {
        name: registered(entries, name) for name in dict.fromkeys((source, *(members if source == account else ())))
    }
    last = chain.newest(entries, "TRUE")
    return Overview(
        time=now.isoformat(timespec="seconds"),
        account=account,
        members=members,
        registered={name: Registration.from_json(json.loads(row["content"])) for name, row in newest.items() if row},
        budget=budget_in_force(entries, account),
        balance=balance(entries, source, now),
        shares=shares(entries, source),
        history=mine,
        account_history=mine if account == source else history(entries, account),
        head=GENESIS if last is None else last["hash"],
        entries=0 if last is None else last["number"],
    )


def _entry(row: Row, outcome: Row | None) -> Entry:
    kind = Kind(row["kind"])
    debit = kind is Kind.DEBIT
    state = None
    if debit:
        state = State.DEBITED if outcome is None else State(outcome["kind"])
    return Entry(
        number=row["number"],
        time=row["time"],
        kind=kind,
        source=row["source"],
        spent=standing_of(row).spent,
        version=row["version"],
        loss=None if row["epsilon"] is None else amount(row),
        analyst=row["analyst"] or "",
        query=row["query"] or "",
        digest=row["digest"] or "",
        unit=row["unit"] or "",
        relation=row["relation"] or "",
        limits=json.loads(row["content"]) if debit or kind is Kind.ACCOUNTING else {},
        state=state,
        answer=json.loads(outcome["content"]) if outcome and state is State.RELEASED else None,
        reason=json.loads(outcome["content"]) if outcome and state is State.FAILED else "",
        account=row["account"] or row["source"],
        window=row["window"] or "",
    )
