"""The table of entries and its hash chain.

Entry n's hash is SHA-256 over the hash of entry n - 1 and all fields of entry n in a canonical encoding: so
an edited, removed, inserted or reordered entry breaks every hash from there on. Fields that are NULL are left
out of the encoding, so that a column that a later version adds leaves the hashes of older entries alone.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from typing import Any, TypeAlias

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
from discreet.ledger.records import Accounting, Budget, Method, Window
from discreet.privacy import PrivacyLoss

__all__ = [
    "ACCOUNT",
    "APPLICATION_ID",
    "GENESIS",
    "MIGRATIONS",
    "Check",
    "Damage",
    "Row",
    "accounting_of",
    "amount",
    "append",
    "budget_of",
    "newest",
    "rows",
]

Row: TypeAlias = dict[str, Any]

APPLICATION_ID = int.from_bytes(b"dscr", "big")
"""Stands in the header of the file, so that no other SQLite file is ever taken for a ledger."""

GENESIS = "0" * 64
"""The hash before the first entry."""

_AT_A_TIME = 5000  # entries that one step of a check reads

_COLUMNS = (
    "number",
    "time",
    "source",
    "kind",
    "subject",  # released, failed: the number of the debit
    "version",
    "analyst",
    "query",
    "digest",
    "epsilon",  # decimal text, exact
    "delta",  # a rational as text, exact
    "unit",
    "relation",
    "content",  # JSON: the registration, the limits, the answer or the reason
    "spent_epsilon",  # running totals of the account, this entry included
    "spent_delta",
    "queries",
    "hash",
    "account",  # which account the source charges; NULL: one of its own, called as the source is
    "window",  # the newest window in which the account was charged, and what was spent in it
    "window_epsilon",
    "window_delta",
    "analyst_epsilon",  # debit: what its analyst had spent in the window, this entry included
    "analyst_delta",
    "vectors",  # debit: the noisy vectors that the answer is computed from, JSON; NULL: not known
    "divergence",  # running state of the account's accounting, this entry included
    "equal_queries",
)

ACCOUNT = "coalesce(e.account, e.source)"
"""The account of an entry, in SQL: as the index by account has it."""

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE entries (
            number INTEGER PRIMARY KEY,
            time TEXT NOT NULL,
            source TEXT NOT NULL,
            kind TEXT NOT NULL,
            subject INTEGER REFERENCES entries (number),
            version INTEGER,
            analyst TEXT,
            query TEXT,
            digest TEXT,
            epsilon TEXT,
            delta TEXT,
            unit TEXT,
            relation TEXT,
            content TEXT,
            spent_epsilon TEXT NOT NULL,
            spent_delta TEXT NOT NULL,
            queries INTEGER NOT NULL,
            hash TEXT NOT NULL
        )""",
        "CREATE INDEX by_source ON entries (source, number)",
        "CREATE INDEX totals ON entries (source, number) WHERE kind IN ('budget', 'raise')",
        "CREATE INDEX registrations ON entries (source, number) WHERE kind = 'register'",
        "CREATE INDEX questions ON entries (source, version, digest) WHERE kind = 'debit'",
        "CREATE UNIQUE INDEX outcomes ON entries (subject) WHERE subject IS NOT NULL",
        """CREATE TRIGGER no_update BEFORE UPDATE ON entries
            BEGIN SELECT RAISE(ABORT, 'entries are never changed'); END""",
        """CREATE TRIGGER no_delete BEFORE DELETE ON entries
            BEGIN SELECT RAISE(ABORT, 'entries are never removed'); END""",
        # INSERT OR REPLACE removes the row in its way without asking the trigger above.
        """CREATE TRIGGER no_replace BEFORE INSERT ON entries
            WHEN NEW.number IS NOT (SELECT coalesce(max(number), 0) + 1 FROM entries)
            OR EXISTS (SELECT 1 FROM entries WHERE subject = NEW.subject)
            BEGIN SELECT RAISE(ABORT, 'entries are only added at the end'); END""",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ),
    (
        *(
            f"ALTER TABLE entries ADD COLUMN {name} TEXT"
            for name in ("account", "window", "window_epsilon", "window_delta", "analyst_epsilon", "analyst_delta")
        ),
        "CREATE INDEX by_account ON entries (coalesce(account, source), number)",
        "CREATE INDEX by_analyst ON entries (coalesce(account, source), analyst, number) WHERE kind = 'debit'",
        "CREATE INDEX joins ON entries (source, number) WHERE kind = 'join'",
    ),
    (
        "ALTER TABLE entries ADD COLUMN vectors TEXT",
        "ALTER TABLE entries ADD COLUMN divergence TEXT",
        "ALTER TABLE entries ADD COLUMN equal_queries INTEGER",
        "CREATE INDEX accountings ON entries (source, number) WHERE kind = 'accounting'",
    ),
)
"""What makes a ledger of version n one of version n + 1; the first makes an empty file a ledger of version 1.

Each runs in one transaction. Entries themselves are never rewritten: a new column must allow NULL.
"""


class Damage(Exception):
    """The entries contradict their hashes, their totals or each other. Callers see a `LedgerError`."""


def _hash(previous: str, row: Row) -> str:
    fields = {name: value for name, value in row.items() if name != "hash" and value is not None}
    text = json.dumps([previous, fields], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"discreet ledger entry\n" + text.encode("ascii")).hexdigest()


_SELECT = (
    f"SELECT {', '.join('e.' + name for name in _COLUMNS)}, p.hash"
    " FROM entries AS e LEFT JOIN entries AS p ON p.number = e.number - 1 "
)


def _checked(values: tuple[Any, ...]) -> Row:
    """A row as a dict, once its own hash is found to be right."""
    row, previous = dict(zip(_COLUMNS, values[:-1], strict=True)), values[-1]
    if row["number"] == 1 and previous is None:
        previous = GENESIS
    # Bytes where text belongs have no canonical encoding: only another hand can have put them there.
    if any(isinstance(value, bytes) for value in values) or _hash(previous, row) != row["hash"]:
        number = row["number"]  # nothing that stands in a broken file is shown, unless it is a number
        raise Damage(f"{f'entry {number}' if isinstance(number, int) else 'an entry'} does not match its hash")
    return row


def amount(row: Row) -> PrivacyLoss:
    """The cost of a debit, the new total of a budget."""
    return PrivacyLoss(Fraction(row["epsilon"]), Fraction(row["delta"]))


def rows(connection: sqlite3.Connection, where: str, *parameters: object, limit: int = -1) -> Iterator[Row]:
    """The entries that satisfy `where` (columns as ``e.name``), oldest first, each checked against its hash;
    at most `limit` unless that is negative.

    Raises:
        Damage: for one that does not match.
    """
    sql = f"{_SELECT} WHERE {where} ORDER BY e.number LIMIT ?"
    for values in connection.execute(sql, (*parameters, limit)):
        yield _checked(values)


def newest(connection: sqlite3.Connection, where: str, *parameters: object) -> Row | None:
    """The last of `rows`, in O(log n) where an index serves `where`.

    Raises:
        Damage: if it does not match its hash.
    """
    sql = f"{_SELECT} WHERE {where} ORDER BY e.number DESC LIMIT 1"
    values = connection.execute(sql, parameters).fetchone()
    return None if values is None else _checked(values)


def append(connection: sqlite3.Connection, row: Row) -> int:
    """Add an entry at the end, inside the caller's transaction, and give its number.

    Args:
        row: every field but `number` and `hash`; those left out are NULL.

    Raises:
        Damage: if the entry that is last so far does not match its hash.
    """
    last = newest(connection, "TRUE")
    number, previous = (1, GENESIS) if last is None else (last["number"] + 1, last["hash"])
    full: Row = {**row, "number": number}
    full["hash"] = _hash(previous, full)
    marks = ", ".join("?" * len(_COLUMNS))
    connection.execute(
        f"INSERT INTO entries ({', '.join(_COLUMNS)}) VALUES ({marks})", [full.get(name) for name in _COLUMNS]
    )
    return number


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

    def file(self, connection: sqlite3.Connection) -> None:
        """Check what stands around the entries: the file's pages, the table, its indexes and triggers.

        Raises:
            Damage: with what is wrong first.
        """
        if connection.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            raise Damage("the file's pages contradict each other")
        if _guards(connection) != _expected_guards():
            raise Damage("the tables, indexes or triggers of the file were changed")

    def some(self, connection: sqlite3.Connection) -> bool:
        """Check the next entries: each hash, and that the totals add up. Whether there may be more; at the
        end, the head must have been met.

        Raises:
            Damage: with what is wrong first.
        """
        before = self._count
        for row in rows(connection, "e.number > ?", before, limit=_AT_A_TIME):
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


def accounting_of(row: Row) -> Accounting:
    """What an "accounting" entry puts in force."""
    said = json.loads(row["content"])
    order, epsilon = said.get("order"), said.get("epsilon_per_query")
    return Accounting(
        Method(said["accounting"]),
        Fraction(said["delta_for_groups"]),
        order=None if order is None else Fraction(order),
        epsilon=None if epsilon is None else Fraction(epsilon),
    )


def budget_of(row: Row) -> Budget:
    """The budget that a "budget" entry sets."""
    more = json.loads(row["content"]) if row["content"] is not None else {}
    return Budget(amount(row), row["unit"], row["relation"], Window(more.get("window", Window.NEVER)))


def _window(budget: Budget, row: Row) -> str:
    return "" if budget.window is Window.NEVER else window_at(budget.window, datetime.fromisoformat(row["time"]))


def _guards(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    found = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return set(found.fetchall())


def _expected_guards() -> set[tuple[str, str, str]]:
    connection = sqlite3.connect(":memory:")
    try:
        for statement in (statement for script in MIGRATIONS for statement in script):
            connection.execute(statement)
        return _guards(connection)
    finally:
        connection.close()
