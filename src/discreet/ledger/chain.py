"""The table of entries and its hash chain.

Entry n's hash is SHA-256 over the hash of entry n - 1 and all fields of entry n in a canonical encoding: so
an edited, removed, inserted or reordered entry breaks every hash from there on. Fields that are NULL are left
out of the encoding, so that a column that a later version adds leaves the hashes of older entries alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.errors import LedgerError
from discreet.ledger.records import Accounting, Budget, Method, Window
from discreet.ledger.store import Transaction
from discreet.privacy import PrivacyLoss

__all__ = [
    "ACCOUNT",
    "GENESIS",
    "OWNER_CHECK",
    "Damage",
    "NoLedgerError",
    "Row",
    "accounting_of",
    "amount",
    "append",
    "budget_of",
    "newer",
    "newest",
    "rows",
]

Row: TypeAlias = dict[str, Any]

GENESIS = "0" * 64
"""The hash before the first entry."""

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


OWNER_CHECK = (
    "answer nothing more from it, keep it, and let the owner compare it with a copy; an older copy put in its place "
    "forgets what was spent since"
)
"""What to do with a ledger that cannot be trusted."""


class NoLedgerError(LedgerError):
    """There is none, and none is to be made."""

    def __init__(self, thing: str) -> None:
        hint = "a first query makes it; or name another with --ledger or DISCREET_LEDGER"
        super().__init__(thing, "does not exist", hint=hint)


def newer(thing: str, version: int, known: int) -> LedgerError:
    """It is of a version that this discreet does not know."""
    return LedgerError(
        thing,
        f"was written by a newer discreet (ledger version {version}; this one knows {known})",
        hint="upgrade discreet, here and wherever else this ledger is used",
    )


class Damage(Exception):
    """The entries contradict their hashes, their totals or each other. Callers see a `LedgerError`."""


def _hash(previous: str, row: Row) -> str:
    fields = {name: value for name, value in row.items() if name != "hash" and value is not None}
    text = json.dumps([previous, fields], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(b"discreet ledger entry\n" + text.encode("ascii")).hexdigest()


_SELECT = (
    "SELECT " + ", ".join(f'e."{name}"' for name in _COLUMNS) + ", p.hash"
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


def rows(entries: Transaction, where: str, *parameters: object, limit: int | None = None) -> Iterator[Row]:
    """The entries that satisfy `where` (columns as ``e.name``), oldest first, each checked against its hash;
    at most `limit` of them.

    Raises:
        Damage: for one that does not match.
    """
    sql = f"{_SELECT} WHERE {where} ORDER BY e.number" + ("" if limit is None else f" LIMIT {limit:d}")
    for values in entries.execute(sql, parameters):
        yield _checked(values)


def newest(entries: Transaction, where: str, *parameters: object) -> Row | None:
    """The last of `rows`, in O(log n) where an index serves `where`.

    Raises:
        Damage: if it does not match its hash.
    """
    sql = f"{_SELECT} WHERE {where} ORDER BY e.number DESC LIMIT 1"
    values = entries.execute(sql, parameters).fetchone()
    return None if values is None else _checked(values)


def append(entries: Transaction, row: Row) -> int:
    """Add an entry at the end, inside the caller's transaction, and give its number.

    Args:
        row: every field but `number` and `hash`; those left out are NULL.

    Raises:
        Damage: if the entry that is last so far does not match its hash.
    """
    last = newest(entries, "TRUE")
    number, previous = (1, GENESIS) if last is None else (last["number"] + 1, last["hash"])
    full: Row = {**row, "number": number}
    full["hash"] = _hash(previous, full)
    columns, marks = ", ".join(f'"{name}"' for name in _COLUMNS), ", ".join("?" * len(_COLUMNS))
    entries.execute(f"INSERT INTO entries ({columns}) VALUES ({marks})", [full.get(name) for name in _COLUMNS])
    return number


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
