"""The ledger: what was promised, what was spent, and what was answered, for good.

An append-only log of entries in one SQLite file, which may hold many sources. A debit is on the disk before
any private row is read, and nothing is ever refunded, so that a process killed at any point leaves at least
as much spent as could have been seen. Entries form a hash chain; each carries the running totals of its
source. Why it is so: `docs/decisions/0002-append-only-ledger.md`.

What the chain cannot do: whoever can write the file can replace all of it by an older or a forged one. That
is noticed only with a head hash kept elsewhere (`Ledger.verify`).
"""

from __future__ import annotations

from discreet.ledger.book import Ledger, existing_ledger
from discreet.ledger.places import default_path
from discreet.ledger.records import (
    Accounting,
    Balance,
    Budget,
    Caps,
    Entry,
    Failure,
    Kind,
    Method,
    Overview,
    Share,
    State,
    Window,
)

__all__ = [
    "Accounting",
    "Balance",
    "Budget",
    "Caps",
    "Entry",
    "Failure",
    "Kind",
    "Ledger",
    "Method",
    "Overview",
    "Share",
    "State",
    "Window",
    "default_path",
    "existing_ledger",
]
