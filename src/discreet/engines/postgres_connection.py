"""A connection to PostgreSQL that only reads, and whose answers depend on the data alone.

psycopg is imported when the first connection is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from discreet.errors import SourceError

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["OLDEST", "SETTINGS", "connect", "psycopg_or_hint"]

OLDEST = 14
"""The oldest server: since this one the epoch of a time is an exact number, and numeric knows infinities."""

_LONGEST = "3600s"

SETTINGS = {
    # Nobody's functions and operators but the server's own: names in another schema cannot stand in for them.
    "search_path": "pg_catalog",
    "TimeZone": "UTC",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "postgres",
    "extra_float_digits": "1",
    "standard_conforming_strings": "on",
    # A table whose rows are chosen by policies of its own is refused, rather than read through them.
    "row_security": "off",
}
"""Of every session."""


def psycopg_or_hint() -> None:
    """
    Raises:
        SourceError: psycopg is not installed.
    """
    try:
        import psycopg  # noqa: F401
    except ImportError:
        raise SourceError("PostgreSQL", "is read through psycopg", hint="pip install 'discreet[postgres]'") from None


@contextmanager
def connect(address: str, shown: str) -> Iterator[Connection]:
    """One read-only transaction that sees one snapshot; rolled back at the end of the block.

    - statements end after an hour, unless the role, the database or the address says another time;
    - its zone is UTC, dates are written as ISO has them, texts have no escapes.

    Args:
        address: how libpq takes it. It may hold a password, and is never shown.
        shown: the source, for errors.

    Raises:
        SourceError: no connection, with a constant text: the server's own may say more than a stranger may know.
        psycopg.Error: from within the block.
    """
    psycopg_or_hint()
    import psycopg

    connection = None
    with suppress(psycopg.Error, OSError, UnicodeError):
        connection = psycopg.connect(address, connect_timeout=30, application_name="discreet", client_encoding="utf8")
    if connection is None:
        raise SourceError(
            shown,
            "cannot be reached: no server there, no such database, or it does not let this user in",
            hint="check host, port, database, user and password (PGPASSWORD or ~/.pgpass keep it out of the command)",
        )
    try:
        connection.read_only = True
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for name, value in SETTINGS.items():
            connection.execute("SELECT set_config(%s, %s, true)", [name, value])
        connection.execute(
            "SELECT set_config('statement_timeout', %s, true) WHERE current_setting('statement_timeout') = '0'",
            [_LONGEST],
        )
        yield connection
    finally:
        connection.close()
