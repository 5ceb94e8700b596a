"""The seam between the ledger's rules and where its entries lie.

A store keeps one table, `entries`, that only grows. The rules (`chain`, `accounts`, `owner_acts`, `queries`) speak
to it in a small SQL that every store understands: SELECT and INSERT on that table, ``?`` for a value, names of
columns in double quotes where they are words of SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Rows", "Store", "Transaction"]


class Rows(Protocol):
    """What a statement gives."""

    def fetchone(self) -> Any:
        """The next row as a tuple, or None."""

    def __iter__(self) -> Iterator[Any]: ...


class Transaction(Protocol):
    """The entries as they stand within one transaction."""

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        """Run one statement."""


class Store(Protocol):
    """Where the entries of one ledger lie, for one process at a time and any number of its threads.

    Every method raises LedgerError if the place cannot be read, written or trusted; the text of what lies below
    never passes through.
    """

    @property
    def place(self) -> str:
        """How the ledger is called in what people read: a path, or an address without its password."""

    @property
    def path(self) -> Path | None:
        """The file, if it is one: absolute, links followed."""

    def reading(self) -> AbstractContextManager[Transaction]:
        """One consistent view of the entries."""

    def writing(self) -> AbstractContextManager[Transaction]:
        """The only writer: everything read here is still true when it commits. It is durable once it is left; an
        exception leaves the ledger as it was."""

    def check(self, transaction: Transaction) -> None:
        """Check what stands around the entries: the table, its indexes, what keeps entries from being changed.

        Raises:
            Damage: with what is wrong first.
        """

    def close(self) -> None:
        """Let the ledger go. Closing twice is fine."""
