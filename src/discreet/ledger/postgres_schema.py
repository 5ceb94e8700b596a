"""The table of entries in a PostgreSQL database: how it is made, migrated, and kept from being changed.

The texts are as the server itself writes them, so that `check` can compare them with what it finds.
"""

from __future__ import annotations

from discreet.ledger.chain import Damage
from discreet.ledger.store import Transaction

__all__ = ["LOCK", "LOOK", "MIGRATIONS", "SCHEMA", "TABLE", "TRIGGERS", "check", "described", "version_of"]

SCHEMA = "discreet"
"""Where the table lies in its database: one ledger for each database."""

TABLE = f"{SCHEMA}.entries"

LOCK = int.from_bytes(b"discreet", "big", signed=True)
"""The advisory lock of the one writer. (A lock on the table would need the right to change entries.)"""

_DESCRIPTION = "discreet ledger, version "

_ONLY_ADDED = "only_added"
_UNCHANGED = "unchanged"

_FUNCTIONS = {
    _UNCHANGED: "BEGIN RAISE EXCEPTION 'entries are never changed or removed'; END",
    _ONLY_ADDED: (
        "BEGIN IF NEW.number IS DISTINCT FROM (SELECT coalesce(max(number), 0) + 1 FROM discreet.entries) THEN "
        "RAISE EXCEPTION 'entries are only added at the end'; END IF; RETURN NEW; END"
    ),
}

# Bits of pg_trigger.tgtype: 1 for each row, 2 before, 4 insert, 8 delete, 16 update, 32 truncate.
TRIGGERS = {
    "no_change": ("BEFORE UPDATE OR DELETE", "ROW", _UNCHANGED, 1 | 2 | 8 | 16),
    "no_truncate": ("BEFORE TRUNCATE", "STATEMENT", _UNCHANGED, 2 | 32),
    "no_gap": ("BEFORE INSERT", "ROW", _ONLY_ADDED, 1 | 2 | 4),
}

_TEXTS = (
    "time", "source", "kind", "analyst", "query", "digest", "epsilon", "delta", "unit", "relation", "content",
    "spent_epsilon", "spent_delta", "hash", "account", "window", "window_epsilon", "window_delta", "analyst_epsilon",
    "analyst_delta", "vectors", "divergence",
)  # fmt: skip
_NUMBERS = ("number", "subject", "version", "queries", "equal_queries")
_NEVER_NULL = ("number", "time", "source", "kind", "spent_epsilon", "spent_delta", "queries", "hash")

# By bytes (collation "C"): the order of a language changes with the system's libraries, and with it what an index
# built by the old one finds.
_COLUMNS = {
    **dict.fromkeys(_TEXTS, 'text COLLATE "C"'),
    **dict.fromkeys(_NUMBERS, "bigint"),
}

_INDEXES = (
    "CREATE UNIQUE INDEX entries_pkey ON discreet.entries USING btree (number)",
    "CREATE INDEX by_source ON discreet.entries USING btree (source, number)",
    "CREATE INDEX totals ON discreet.entries USING btree (source, number)"
    " WHERE (kind = ANY (ARRAY['budget'::text, 'raise'::text]))",
    "CREATE INDEX registrations ON discreet.entries USING btree (source, number) WHERE (kind = 'register'::text)",
    "CREATE INDEX questions ON discreet.entries USING btree (source, version, digest) WHERE (kind = 'debit'::text)",
    "CREATE UNIQUE INDEX outcomes ON discreet.entries USING btree (subject) WHERE (subject IS NOT NULL)",
    "CREATE INDEX by_account ON discreet.entries USING btree (COALESCE(account, source), number)",
    "CREATE INDEX by_analyst ON discreet.entries USING btree (COALESCE(account, source), analyst, number)"
    " WHERE (kind = 'debit'::text)",
    "CREATE INDEX joins ON discreet.entries USING btree (source, number) WHERE (kind = 'join'::text)",
    "CREATE INDEX accountings ON discreet.entries USING btree (source, number) WHERE (kind = 'accounting'::text)",
)


def described(version: int) -> str:
    """The comment on the table, which says what it is. (It is the only thing that a migration changes.)"""
    return f"{_DESCRIPTION}{version}"


def _made() -> tuple[str, ...]:
    columns = ", ".join(
        f'"{name}" {kind}{" NOT NULL" if name in _NEVER_NULL else ""}' for name, kind in _COLUMNS.items()
    )
    statements = [
        f"CREATE TABLE {TABLE} ({columns}, PRIMARY KEY (number))",
        *_INDEXES[1:],
    ]
    for name, body in _FUNCTIONS.items():
        statements.append(
            f"CREATE FUNCTION {SCHEMA}.{name}() RETURNS trigger LANGUAGE plpgsql"
            f" SET search_path = pg_catalog, pg_temp AS $${body}$$"
        )
    for name, (when, each, function, _) in TRIGGERS.items():
        statements += [
            f"CREATE TRIGGER {name} {when} ON {TABLE} FOR EACH {each} EXECUTE FUNCTION {SCHEMA}.{function}()",
            # Also where a session plays a replica, which other triggers are silent for.
            f"ALTER TABLE {TABLE} ENABLE ALWAYS TRIGGER {name}",
        ]
    statements += [f"REVOKE ALL ON SCHEMA {SCHEMA} FROM PUBLIC", f"REVOKE ALL ON {TABLE} FROM PUBLIC"]
    return tuple(statements)


MIGRATIONS: tuple[tuple[str, ...], ...] = (_made(),)
"""What makes a ledger of version n one of version n + 1; the first makes a database without one a ledger of version 1.

The schema is there by then. Each runs in one transaction. Entries themselves are never rewritten: a new column must
allow NULL.
"""

# Not to_regclass: it answers from what the session remembers, and waiting for an advisory lock does not refresh that.
LOOK = (
    "SELECT c.oid IS NOT NULL, d.description, current_setting('server_encoding')"
    " FROM (SELECT 1) AS one"
    f" LEFT JOIN (pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace AND n.nspname = '{SCHEMA}')"
    " ON c.relname = 'entries'"
    " LEFT JOIN pg_description AS d ON d.objoid = c.oid AND d.classoid = 'pg_class'::regclass AND d.objsubid = 0"
)
"""Whether the table is there, the comment on it, and how the database encodes texts."""


def version_of(description: str | None) -> int | None:
    """The version that the table's comment names; None if it is not the comment of a ledger."""
    before, found, number = (description or "").partition(_DESCRIPTION)
    return int(number) if found and not before and number.isdecimal() else None


def check(entries: Transaction) -> None:
    """Check what stands around the entries: the table, its columns, indexes and triggers.

    Raises:
        Damage: with what is wrong first.
    """
    if _found(entries) != _expected():
        raise Damage("the table, its columns, indexes or triggers were changed")


_AROUND = (
    # An ordinary table that is logged, without row security, rewriting rules, parents or children.
    "SELECT 'table', relname::text, concat_ws(' ', relkind, relpersistence, relrowsecurity, relhasrules,"
    f" relispartition, (SELECT count(*) FROM pg_inherits WHERE '{TABLE}'::regclass IN (inhrelid, inhparent)))"
    f" FROM pg_class WHERE oid = '{TABLE}'::regclass",
    "SELECT 'column', a.attname::text, format_type(a.atttypid, a.atttypmod)"
    " || coalesce(' COLLATE \"' || c.collname || '\"', '') || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END"
    " FROM pg_attribute AS a LEFT JOIN pg_collation AS c ON c.oid = a.attcollation"
    f" WHERE a.attrelid = '{TABLE}'::regclass AND a.attnum > 0 AND NOT a.attisdropped",
    "SELECT 'index', c.relname::text, pg_get_indexdef(i.indexrelid)"
    " || CASE WHEN i.indisvalid AND i.indisready AND i.indislive AND i.indimmediate THEN '' ELSE ' (not in use)' END"
    f" FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid WHERE i.indrelid = '{TABLE}'::regclass",
    "SELECT 'trigger', t.tgname::text, concat_ws(' ', t.tgtype, t.tgenabled, t.tgqual IS NULL, t.tgattr::text,"
    " p.proname, p.prosrc) FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = t.tgfoid"
    f" WHERE t.tgrelid = '{TABLE}'::regclass AND NOT t.tgisinternal",
)


def _found(entries: Transaction) -> set[tuple[str, str, str]]:
    return {tuple(row) for statement in _AROUND for row in entries.execute(statement)}


def _expected() -> set[tuple[str, str, str]]:
    found = {("table", "entries", "r p f f f 0")}
    for name, kind in _COLUMNS.items():
        found.add(("column", name, kind + (" NOT NULL" if name in _NEVER_NULL else "")))
    for text in _INDEXES:
        found.add(("index", text.split(" ON ")[0].split()[-1], text))
    for name, (_, _, function, bits) in TRIGGERS.items():
        found.add(("trigger", name, f"{bits} A t  {function} {_FUNCTIONS[function]}"))
    return found
