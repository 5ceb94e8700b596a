"""Speaking to a PostgreSQL server on one connection: several statements in one round trip, and no wait without end."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from discreet.ledger.store import Rows

if TYPE_CHECKING:
    import psycopg

__all__ = ["Entries", "bounded", "broken", "last", "run"]

_GRACE = 3.0  # seconds that a server has to stop what it was asked to stop


class Entries:
    """A connection as the rules speak to it: ``?`` for a value."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        return self._connection.execute(_translated(sql), parameters)


@lru_cache(maxsize=200)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


def run(connection: psycopg.Connection[Any], statements: Sequence[str]) -> psycopg.Cursor[Any]:
    """Run statements in one round trip; the cursor stands at the last one's result."""
    cursor = connection.execute("; ".join(statements).encode(), prepare=False)
    while cursor.nextset():
        pass
    return cursor


def last(connection: psycopg.Connection[Any], statements: Sequence[str]) -> Any:
    """The first row of the last of these statements."""
    return run(connection, statements).fetchone()


@contextmanager
def bounded(connection: psycopg.Connection[Any], seconds: float) -> Iterator[None]:
    """Cut short what takes longer: first by asking the server to stop, then by hanging up. A server that is frozen, or
    waits for a standby that is gone, does not look at its own limits."""
    import psycopg

    done = threading.Event()

    def cut_short() -> None:
        with suppress(psycopg.Error):
            connection.cancel_safe(timeout=_GRACE)
        if not done.wait(_GRACE):
            with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as line:
                line.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, cut_short)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        done.set()
        timer.cancel()


def broken(connection: psycopg.Connection[Any]) -> bool:
    return connection.closed or connection.broken
