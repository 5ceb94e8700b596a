"""The ledger in a PostgreSQL database, for several hosts.

What a file's locks and fsync are for SQLite is asked of the server here, in every transaction and not once: one writer
at a time (an advisory lock that ends with the transaction), a commit that waits for the disk (and for the standbys that
the server waits for), a table that is logged, a limit on every wait. Everything is said within the transaction, so that
a pooler in between changes nothing.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from discreet.errors import LedgerError, UsageError
from discreet.ledger import chain, forks, postgres_faults, postgres_schema
from discreet.ledger.chain import OWNER_CHECK, NoLedgerError
from discreet.ledger.postgres_address import connection_options, shown_place
from discreet.ledger.postgres_schema import LOCK, SCHEMA, TABLE
from discreet.ledger.postgres_session import Entries, bounded, broken, last, run
from discreet.ledger.store import Transaction

if TYPE_CHECKING:
    import psycopg

__all__ = ["PostgresStore"]

_ANSWER_WITHIN = 30.0  # seconds for one statement, beside what it waits for locks
_IDLE_AT_MOST = 60.0  # seconds without a statement, after which the server ends a transaction that holds the lock

_NEWEST = f"SELECT number, hash FROM {TABLE} ORDER BY number DESC LIMIT 1"

# What the server promises now, and whether what we saw last is still there: see `_look`.
_STATE = (
    "SELECT pg_backend_pid(), current_setting('fsync'), current_setting('full_page_writes'),"
    " current_setting('synchronous_commit'),"
    f" (SELECT relkind::text || relpersistence::text FROM pg_class WHERE oid = to_regclass('{TABLE}')),"
    f" (SELECT hash FROM {TABLE} WHERE number = %d), number, hash"
    f" FROM (SELECT 1) AS one LEFT JOIN ({_NEWEST}) AS e ON TRUE"
)


class PostgresStore:
    """One connection to one database, for one process at a time and any number of its threads.

    Args:
        options: the address, by libpq's names.
        timeout: seconds to wait for other writers.
        create: make the table if it is missing.
    """

    path = None

    def __init__(self, options: Mapping[str, str], timeout: float, *, create: bool) -> None:
        self.place = shown_place(options)
        self._options = connection_options(options, timeout)
        self._timeout = timeout
        self._lock = threading.RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._pid = os.getpid()
        self._closed = False
        self._seen: tuple[int, str] | None = None  # the newest entry that this process has seen, and its hash
        self._cut_short = False  # the server warned while it committed
        # Known to forks before it has a connection, which the lock then keeps from them.
        forks.know(self)
        with self._lock, self._explained():
            self._open(create=create)

    def close(self) -> None:
        """Let the server go. Closing twice is fine."""
        with self._lock:
            self._closed = True
            self._disconnect()

    def check(self, transaction: Transaction) -> None:
        """The table, its columns, indexes and triggers. Raises Damage."""
        postgres_schema.check(transaction)

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """One consistent view of the entries."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY") as entries:
            yield entries

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """The only writer: everything read here is still true when it commits. Durable once it is left; an exception
        leaves the ledger as it was."""
        # Not REPEATABLE READ: that would fix the view when the lock is asked for, before it is ours.
        begin = "BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE"
        with self._transaction(begin, f"SELECT pg_advisory_xact_lock({LOCK})") as entries:
            yield entries

    @contextmanager
    def _transaction(self, begin: str, *more: str) -> Iterator[Transaction]:
        with self._lock, self._explained():
            connection = self._begin(begin, *more)
            try:
                yield Entries(connection)
                self._commit(connection)
            except BaseException:
                self._rollback(connection)
                raise

    def _begin(self, begin: str, *more: str) -> psycopg.Connection[Any]:
        """Start a transaction in one round trip, and check what the ledger rests on."""
        import psycopg

        fresh = self._connection is None
        connection = self._current()
        try:
            state = self._state(connection, begin, *more)
        except psycopg.Error:
            # A connection may have ended while it was idle: the server was restarted, a firewall forgot it. Nothing
            # has been asked on it, so that a new one changes nothing.
            if fresh or not broken(connection):
                self._rollback(connection)
                raise
            self._disconnect()
            connection = self._current()
            state = self._state(connection, begin, *more)
        except BaseException:
            self._rollback(connection)
            raise
        try:
            self._look(connection, state)
        except BaseException:
            self._rollback(connection)
            raise
        return connection

    def _state(self, connection: psycopg.Connection[Any], *begin: str) -> tuple[Any, ...]:
        seen = self._seen[0] if self._seen else 0
        with bounded(connection, self._timeout + 2 * _ANSWER_WITHIN):
            return tuple(last(connection, [*begin[:1], *self._settings(), *begin[1:], _STATE % seen]))

    def _settings(self) -> tuple[str, ...]:
        """What holds for the transaction only, whatever the server, the database or the user say."""
        wait = max(1, round(self._timeout * 1000))  # 0 would be without end
        return (
            "SET LOCAL synchronous_commit = on",
            f"SET LOCAL lock_timeout = {wait}",
            f"SET LOCAL statement_timeout = {wait + round(_ANSWER_WITHIN * 1000)}",
            f"SET LOCAL idle_in_transaction_session_timeout = {round(_IDLE_AT_MOST * 1000)}",
            # Nobody's temporary table is taken for ours; rows that a policy hides are an error, not a shorter ledger.
            f"SET LOCAL search_path = {SCHEMA}, pg_temp",
            "SET LOCAL row_security = off",
        )

    def _look(self, connection: psycopg.Connection[Any], state: tuple[Any, ...]) -> None:
        """Refuse a server that may lose what it confirms, and a ledger that goes back behind what this process saw: a
        standby that lagged and took over, a backup put back.

        Raises:
            LedgerError: naming it.
        """
        session, fsync, full_pages, commit, table, seen, number, newest = state
        if session != connection.info.backend_pid:
            # A pooler stands in between. A statement that we prepared in one session may be another's in the next.
            connection.prepare_threshold = None
        for setting, value, wanted in (
            ("fsync", fsync, "on"),
            ("full_page_writes", full_pages, "on"),
            ("synchronous_commit", commit, "on"),
        ):
            if value != wanted:
                raise postgres_faults.not_durable(self._thing, f"its setting {setting} is {value}")
        if table != "rp":
            raise postgres_faults.not_durable(self._thing, "its table is not an ordinary one that is logged")
        if self._seen is not None and seen != self._seen[1]:
            raise LedgerError(
                self._thing,
                "went back behind entries that this process has seen: it was rolled back, replaced, or a standby "
                "that lagged took over",
                hint="nothing was charged; " + OWNER_CHECK,
            )
        if number is not None:
            self._seen = number, newest

    def _commit(self, connection: psycopg.Connection[Any]) -> None:
        import psycopg

        self._cut_short = False
        try:
            with bounded(connection, _ANSWER_WITHIN):  # the server's own limits do not reach a commit
                cursor = connection.execute(f"{_NEWEST}; COMMIT".encode(), prepare=False)
            seen = cursor.fetchone()
            cursor.nextset()
        except psycopg.Error:
            if broken(connection):
                raise postgres_faults.unknown_outcome(self._thing) from None
            raise
        # The server commits, and only warns, where it is told to stop waiting for its standby.
        if cursor.statusmessage != "COMMIT" or self._cut_short:
            raise postgres_faults.unknown_outcome(self._thing)
        self._seen = seen or self._seen

    def _rollback(self, connection: psycopg.Connection[Any]) -> None:
        import psycopg
        from psycopg.pq import TransactionStatus

        if connection.info.transaction_status == TransactionStatus.IDLE:
            return
        try:
            connection.execute("ROLLBACK", prepare=False)
        except psycopg.Error:  # the connection is of no more use; without it the server rolls back
            self._disconnect()

    def _current(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise UsageError(self._thing, "is closed", hint="open it again")
        if self._connection is not None and self._pid != os.getpid():
            # Forked behind Python's back: two processes would speak on one line.
            raise LedgerError(self._thing, "was opened before this process was forked", hint="open it after the fork")
        if self._connection is None or self._connection.closed:
            self._open(create=False)
        assert self._connection is not None  # noqa: S101 - for the type checker
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    @property
    def _thing(self) -> str:
        return f"the ledger {self.place}"

    def _open(self, *, create: bool) -> None:
        """A connection to a database that holds a sound ledger, as far as its newest entry tells."""
        connection = self._connect()
        try:
            self._make(connection, create=create)
            # Named in full first: a schema without rights would only make the table look gone.
            run(connection, ["BEGIN READ ONLY", *self._settings(), f"SELECT number FROM {TABLE} LIMIT 0"])
            chain.newest(Entries(connection), "TRUE")
            connection.execute("ROLLBACK", prepare=False)
        except BaseException:
            connection.close()
            raise
        self._connection, self._pid = connection, os.getpid()

    def _connect(self) -> psycopg.Connection[Any]:
        import psycopg
        from psycopg.conninfo import make_conninfo

        fault = None
        try:
            connection = psycopg.connect(make_conninfo(**self._options), autocommit=True)
        except psycopg.Error as error:
            # Raised below, where this exception, which holds the whole address, is no longer around.
            fault = postgres_faults.refused(self._thing, by_password=_password_was_sent(error))
        if fault is not None:
            raise fault
        connection.add_notice_handler(self._notice)
        return connection

    def _notice(self, diagnostic: Any) -> None:
        self._cut_short = self._cut_short or diagnostic.severity_nonlocalized == "WARNING"

    def _make(self, connection: psycopg.Connection[Any], *, create: bool) -> None:
        """Make the table if there is none, or bring an older one to this version, in one transaction: of several at
        once one does so, and the others find it done. A newer one is left alone."""
        known = len(postgres_schema.MIGRATIONS)
        if self._version(connection, create=create) == known:
            return
        last(connection, ["BEGIN ISOLATION LEVEL READ COMMITTED, READ WRITE", *self._settings(),
                           f"SELECT pg_advisory_xact_lock({LOCK})"])  # fmt: skip
        try:
            version = self._version(connection, create=create)
            if last(connection, [f"SELECT count(*) FROM pg_namespace WHERE nspname = '{SCHEMA}'"]) == (0,):
                connection.execute(f"CREATE SCHEMA {SCHEMA}".encode(), prepare=False)
            for statement in (text for script in postgres_schema.MIGRATIONS[version:] for text in script):
                connection.execute(statement.encode(), prepare=False)
            if version < known:
                text = f"COMMENT ON TABLE {TABLE} IS '{postgres_schema.described(known)}'"
                connection.execute(text.encode(), prepare=False)
            self._commit(connection)
        except BaseException:
            self._rollback(connection)
            raise

    def _version(self, connection: psycopg.Connection[Any], *, create: bool) -> int:
        """Of the ledger that is there; 0 if there is none and one may be made.

        Raises:
            LedgerError: there is none, and none is to be made; it is of a newer version, or no ledger.
        """
        there, description, encoding = last(connection, [postgres_schema.LOOK])
        if encoding != "UTF8":
            raise LedgerError(
                self._thing, f"lies in a database of encoding {encoding}", hint="make the database with encoding UTF8"
            )
        if not there:
            if not create:
                raise NoLedgerError(self._thing)
            return 0
        version = postgres_schema.version_of(description)
        if version is None:
            raise postgres_faults.not_a_ledger(self._thing)
        known = len(postgres_schema.MIGRATIONS)
        if version > known:
            raise chain.newer(self._thing, version, known)
        return version

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Faults of the server, the connection and the chain as `LedgerError`."""
        import psycopg

        try:
            yield
        except chain.Damage as damage:
            raise LedgerError(self._thing, f"is damaged or was tampered with: {damage}", hint=OWNER_CHECK) from None
        except psycopg.Error as error:
            if self._connection is not None and broken(self._connection):
                self._disconnect()
                raise postgres_faults.lost(self._thing) from None
            limit = self._timeout + _ANSWER_WITHIN
            raise postgres_faults.explain(self._thing, error, waited=self._timeout, answer_within=limit) from None

    # Around a fork: wait for the transaction of another thread, go without a connection, carry on.

    def before_fork(self) -> None:
        """See `forks.Connected`."""
        self._lock.acquire()
        self._disconnect()

    def after_fork(self) -> None:
        """See `forks.Connected`."""
        self._lock.release()


def _password_was_sent(error: psycopg.Error) -> bool:
    with suppress(AttributeError):  # no connection was begun
        return bool(error.pgconn.used_password)  # type: ignore[union-attr]
    return False
