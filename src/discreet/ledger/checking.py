"""Verifying a ledger: every hash, every sum, and that no debit went beyond its budget."""

from __future__ import annotations

import dataclasses
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from typing import TypeAlias

from discreet.ledger.accounting import (
    NOTHING,
    Standing,
    Weighable,
    charged,
    fits,
    renewed,
    standing_of,
    vectors_of,
    weight,
    weight_so_far,
    window_at,
)
from discreet.ledger.chain import GENESIS, Damage, Row, accounting_of, amount, budget_of, rows
from discreet.ledger.records import Budget, Window
from discreet.ledger.store import Transaction
from discreet.privacy import PrivacyLoss

__all__ = ["Check"]

_AT_A_TIME = 5000  # entries that one step of a check reads


class Check:
    """A check of the whole ledger, some entries at a time: entries never change, so it needs no lasting view,
    which would keep the journal from being emptied.

    Args:
        head: a hash that the chain must contain, if any.
    """

    def __init__(self, head: str | None) -> None:
        self.newest = GENESIS
        self._head = head
        self._found = head in (None, GENESIS)
        self._count = 0
        self._budgets: dict[str, Budget] = {}
        self._accounts: dict[str, str] = {}
        self._standing: defaultdict[str, Standing] = defaultdict(Standing)
        self._shares: defaultdict[tuple[str, str], Standing] = defaultdict(Standing)
        self._debits: defaultdict[str, Counter[_Debit]] = defaultdict(Counter)  # of each account, in all
        self._in_window: defaultdict[str, Counter[_Debit]] = defaultdict(Counter)  # and in its window

    def some(self, entries: Transaction) -> bool:
        """Check the next entries: each hash, and that the totals add up. Whether there may be more; at the
        end, the head must have been met.

        Raises:
            Damage: with what is wrong first.
        """
        before = self._count
        for row in rows(entries, "e.number > ?", before, limit=_AT_A_TIME):
            try:
                self._one(row)
            except (AttributeError, TypeError, ValueError, ZeroDivisionError):
                raise Damage(f"entry {row['number']} holds what cannot be read") from None
        if self._count == before and not self._found:
            raise Damage("the given head is not among its entries: it was cut, rolled back or replaced")
        return self._count > before

    def _one(self, row: Row) -> None:
        self._count += 1
        if row["number"] != self._count:
            raise Damage(f"entry {self._count} is missing")
        source, account = row["source"], row["account"] or row["source"]
        if row["kind"] == "join":
            if self._accounts.get(source, source) != source:
                raise Damage(f"entry {self._count} moves a source to another account a second time")
            self._accounts[source] = account
        elif account != self._accounts.get(source, source):
            raise Damage(f"entry {self._count} charges another account than its source's")
        standing = self._standing[account]
        match row["kind"]:
            case "budget":
                self._budgets[account] = budget_of(row)
            case "raise" if account in self._budgets:
                self._budgets[account] = dataclasses.replace(self._budgets[account], total=amount(row))
            case "accounting":
                standing = self._reckoned(row, account)
            case "debit":
                debit = row["epsilon"], row["delta"], row["vectors"]
                standing = self._charged(row, account, Counter({debit: 1}))
                self._check_share(row, account)
            case "join" if account != source:
                if amount(row) != self._standing[source].spent:
                    raise Damage(f"entry {self._count} leaves behind what its source had spent")
                standing = self._charged(row, account, self._debits[source])
        if dataclasses.replace(standing_of(row), by_analyst=NOTHING) != standing:
            raise Damage(f"entry {self._count} does not add up with those before it")
        self._standing[account] = standing
        self.newest = row["hash"]
        self._found = self._found or self.newest == self._head

    def _charged(self, row: Row, account: str, debits: Counter[_Debit]) -> Standing:
        """The account's standing after a debit, or after those that a source brings along."""
        budget = self._budgets.get(account)
        if budget is None:
            raise Damage(f"entry {self._count} spends more than its budget")
        standing = self._renewed(row, account, budget)
        accounting = budget.accounting
        if row["kind"] == "join":
            added = weight_so_far(accounting, _weighable(debits))
        else:
            added = weight(accounting, amount(row), vectors_of(row["vectors"]))
            if accounting.epsilon not in (None, amount(row).epsilon):
                raise Damage(f"entry {self._count} costs another epsilon than its account allows")
        standing = charged(standing, amount(row), added, queries=debits.total())
        standing = dataclasses.replace(standing, by_analyst=NOTHING)
        if not fits(budget, standing):
            raise Damage(f"entry {self._count} spends more than its budget")
        self._debits[account] += debits
        self._in_window[account] += debits
        return standing

    def _reckoned(self, row: Row, account: str) -> Standing:
        """The account's standing once another accounting is in force."""
        budget = self._budgets.get(account)
        if budget is None:
            raise Damage(f"entry {self._count} is about a budget that is not set")
        budget = self._budgets[account] = dataclasses.replace(budget, accounting=accounting_of(row))
        standing = self._renewed(row, account, budget)
        added = weight_so_far(budget.accounting, _weighable(self._in_window[account]))
        standing = dataclasses.replace(standing, divergence=added.divergence, equal=added.equal)
        if not fits(budget, standing):
            raise Damage(f"entry {self._count} leaves more spent than its budget")
        return standing

    def _renewed(self, row: Row, account: str, budget: Budget) -> Standing:
        before = self._standing[account]
        standing = renewed(before, _window(budget, row))
        if standing is not before:
            self._in_window[account].clear()
        return standing

    def _check_share(self, row: Row, account: str) -> None:
        """What the debit's analyst has spent in the window. (Entries of version 1 do not say.)"""
        who, found = (account, row["analyst"] or ""), standing_of(row)
        if row["analyst_epsilon"] is not None:
            before = renewed(self._shares[who], found.window)
            if found.by_analyst != before.by_analyst + amount(row):
                raise Damage(f"entry {self._count} does not add up with those of its analyst")
        self._shares[who] = found


_Debit: TypeAlias = tuple[str, str, str | None]  # epsilon, delta and vectors, as stored


def _weighable(debits: Counter[_Debit]) -> Iterator[Weighable]:
    for (epsilon, delta, vectors), count in debits.items():
        yield PrivacyLoss(Fraction(epsilon), Fraction(delta)), vectors_of(vectors), count


def _window(budget: Budget, row: Row) -> str:
    return "" if budget.window is Window.NEVER else window_at(budget.window, datetime.fromisoformat(row["time"]))
