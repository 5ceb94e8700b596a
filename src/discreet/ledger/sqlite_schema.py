"""The table of entries in a SQLite file: how it is made, migrated, and kept from being changed."""

from __future__ import annotations

import sqlite3

from discreet.ledger.chain import Damage
from discreet.ledger.store import Transaction

__all__ = ["APPLICATION_ID", "MIGRATIONS", "check", "expected_guards"]

APPLICATION_ID = int.from_bytes(b"dscr", "big")
"""Stands in the header of the file, so that no other SQLite file is ever taken for a ledger."""

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


def check(entries: Transaction) -> None:
    """Check what stands around the entries: the file's pages, the table, its indexes and triggers.

    Raises:
        Damage: with what is wrong first.
    """
    if list(entries.execute("PRAGMA integrity_check")) != [("ok",)]:
        raise Damage("the file's pages contradict each other")
    if _guards(entries) != expected_guards():
        raise Damage("the tables, indexes or triggers of the file were changed")


def _guards(entries: Transaction) -> set[tuple[str, str, str]]:
    return set(entries.execute("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))


def expected_guards() -> set[tuple[str, str, str]]:
    """Type, name and text of all that a sound file holds: tables, indexes, triggers."""
    connection = sqlite3.connect(":memory:")
    try:
        for statement in (statement for script in MIGRATIONS for statement in script):
            connection.execute(statement)
        return _guards(connection)
    finally:
        connection.close()
