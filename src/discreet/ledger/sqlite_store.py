"""The ledger's file: made whole or not at all, opened with care, used in transactions, its faults explained.

SQLite's own error texts never pass through here: each is translated into what happened and what to do.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from discreet.errors import LedgerError, UsageError
from discreet.ledger import chain, forks, sqlite_schema
from discreet.ledger.chain import OWNER_CHECK, NoLedgerError
from discreet.ledger.store import Transaction

__all__ = ["SqliteStore"]

_LONGEST_JOURNAL = 4_000_000  # bytes


class SqliteStore:
    """One connection to one ledger file, for one process at a time and any number of its threads.

    Args:
        path: the file.
        timeout: seconds to wait for other writers.
        create: make it (with its folder) if it is missing.
    """

    def __init__(self, path: Path, timeout: float, *, create: bool) -> None:
        self.path = path
        self.timeout = timeout
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._identity: tuple[int, int] | None = None
        self._pid = os.getpid()
        self._closed = False
        # Known to forks before it has a connection, which the lock then keeps from them.
        forks.know(self)
        with self._lock, self._explained():
            if not path.exists():
                if not create:
                    raise NoLedgerError(f"the ledger {path}")
                _create(path)
            self._connection = self._open()

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def check(self, transaction: Transaction) -> None:
        """The file's pages, the table, its indexes and triggers. Raises Damage."""
        sqlite_schema.check(transaction)

    def close(self) -> None:
        """Let the file go. Closing twice is fine."""
        with self._lock:
            self._closed = True
            self._disconnect()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One consistent view of the entries."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The only writer: everything read here is still true when it commits. On the disk once it is left;
        an exception leaves the ledger as it was."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
        self._empty_journal()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._explained():
            connection = self._current()
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    try:
                        connection.execute("ROLLBACK")
                    except sqlite3.Error:  # the connection is of no more use; closing it rolls back
                        self._disconnect()
                raise

    def _empty_journal(self) -> None:
        """Move what has gathered in the journal into the file.

        SQLite would do so by itself, but while others write; before its version 3.51.3 that can lose what
        they commit at that instant (https://www.sqlite.org/wal.html#walresetbug). TRUNCATE keeps writers out
        meanwhile. What was committed is safe whether this works or not, so its faults are left to the next
        transaction.
        """
        with self._lock, suppress(sqlite3.Error, OSError):
            journal = self.path.with_name(self.path.name + "-wal")
            if self._connection is not None and journal.stat().st_size > _LONGEST_JOURNAL:
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _current(self) -> sqlite3.Connection:
        if self._closed:
            raise UsageError(self._thing, "is closed", hint="open it again")
        if self._connection is not None and self._pid != os.getpid():
            # Forked behind Python's back: even a new connection here would trust locks that nobody holds.
            raise LedgerError(self._thing, "was opened before this process was forked", hint="open it after the fork")
        if self._connection is None:
            self._connection = self._open()
        elif self._identity != self._stat():
            raise LedgerError(
                self._thing,
                "was moved, replaced or deleted while it was in use",
                hint="put the same file back; " + OWNER_CHECK,
            )
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()

    @property
    def _thing(self) -> str:
        return f"the ledger {self.path}"

    def _stat(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _open(self) -> sqlite3.Connection:
        """A connection to a file that is a sound ledger, as far as its newest entry tells."""
        identity = self._stat()
        if identity is None or (self._identity is not None and identity != self._identity):
            raise LedgerError(
                self._thing,
                "was moved, replaced or deleted since it was first opened",
                hint="put the same file back; " + OWNER_CHECK,
            )
        if self.path.is_dir():
            raise LedgerError(self._thing, "is a folder", hint="name a file")
        if not self.path.is_file():  # opening a pipe would wait for whoever opens its other end
            raise LedgerError(self._thing, "is not a regular file", hint="name another file")
        self._look_before()
        effective = os.access in os.supports_effective_ids
        for place, what in ((self.path, "the file"), (self.path.parent, "its folder")):
            if not os.access(place, os.R_OK | os.W_OK, effective_ids=effective):
                raise LedgerError(
                    self._thing,
                    f"{what} may not be read and written by this user, or lies on a read-only file system",
                    hint="give this user the right to write the file and its folder, or name another ledger",
                )
        connection = self._connect("mode=rw")
        try:
            if connection.execute("PRAGMA journal_mode = WAL").fetchone() != ("wal",):
                raise self._bad_file_system()
            for setting in (
                "synchronous = FULL",  # when a commit returns it is on the disk, not in the system's cache
                "fullfsync = ON",  # macOS: through the drive's cache too
                "checkpoint_fullfsync = ON",
                "wal_autocheckpoint = 0",  # see _empty_journal
                "cell_size_check = ON",
                "trusted_schema = OFF",
            ):
                connection.execute(f"PRAGMA {setting}")
            _migrate(connection)
            self._check_version(connection)
            chain.newest(connection, "TRUE")
        except BaseException:
            connection.close()
            raise
        self._identity, self._pid = identity, os.getpid()
        return connection

    def _connect(self, options: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?{options}",
            uri=True,
            timeout=self.timeout,
            isolation_level=None,  # transactions begin and end where this module says
            check_same_thread=False,  # self._lock lets in one thread at a time
        )

    def _look_before(self) -> None:
        """Refuse what is not a ledger without leaving a mark on it.

        Through SQLite and not `open`: closing any descriptor of a file drops all POSIX locks that this
        process has on it, those of another store too (https://www.sqlite.org/howtocorrupt.html, 2.2).
        """
        connection = self._connect("mode=ro&immutable=1")
        try:
            if connection.execute("PRAGMA page_count").fetchone() == (0,):
                raise LedgerError(
                    self._thing,
                    "is empty; a ledger never is",
                    hint=f"if it is a new file, delete it; if it held a ledger, {OWNER_CHECK}",
                )
            if connection.execute("PRAGMA application_id").fetchone() != (sqlite_schema.APPLICATION_ID,):
                raise self._not_a_ledger()
            self._check_version(connection)
        finally:
            connection.close()

    def _check_version(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        known = len(sqlite_schema.MIGRATIONS)
        if version > known:
            raise chain.newer(self._thing, version, known)

    def _not_a_ledger(self) -> LedgerError:
        return LedgerError(
            self._thing,
            "is not a discreet ledger, or its first bytes were destroyed",
            hint=f"name another file; it was left as it is. If it held a ledger, {OWNER_CHECK}",
        )

    def _bad_file_system(self) -> LedgerError:
        return LedgerError(
            self._thing,
            "lies on a file system whose locks or shared memory do not work, as on many network drives",
            hint="keep the ledger on a local disk (--ledger, or DISCREET_LEDGER)",
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Faults of the file, the disk and the chain as `LedgerError`."""
        try:
            yield
        except chain.Damage as damage:
            raise LedgerError(self._thing, f"is damaged or was tampered with: {damage}", hint=OWNER_CHECK) from None
        except UnicodeDecodeError:  # so broken that even SQLite's message about it is not text
            raise LedgerError(self._thing, "is damaged or was tampered with", hint=OWNER_CHECK) from None
        except sqlite3.Error as error:
            raise self._explain(error) from None
        except OSError as error:
            raise LedgerError(
                self._thing,
                "cannot be reached or made",
                error.strerror,
                hint="check the path, its folder's rights and the free space, or name another ledger",
            ) from None

    def _explain(self, error: sqlite3.Error) -> LedgerError:
        code = getattr(error, "sqlite_errorcode", None)
        if code in _LOCKING:
            return self._bad_file_system()
        if code == sqlite3.SQLITE_IOERR_SHMSIZE:
            code = sqlite3.SQLITE_FULL
        match None if code is None else code & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                rule = f"stayed locked by another process for more than {self.timeout:g} seconds"
                hint = "nothing was charged; try again, or find the process that holds it"
            case sqlite3.SQLITE_FULL:
                rule = "cannot grow: the disk, a quota or a file-size limit is full"
                hint = "make room; nothing can be asked until the ledger can be written"
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
                rule = "cannot be opened for writing"
                hint = "check that this user may write the file and its folder, or name another ledger"
            case sqlite3.SQLITE_NOTADB:
                return self._not_a_ledger()
            case sqlite3.SQLITE_IOERR:
                rule = "could not be read or written: the disk reports a fault"
                hint = "check the disk and its free space; a charge that was being written may count"
            case None | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR | sqlite3.SQLITE_CONSTRAINT:
                # None: text that is not UTF-8. ERROR: a table or column is gone. CONSTRAINT: a guard said no.
                rule, hint = "is damaged or was tampered with", OWNER_CHECK
            case _:
                rule = f"cannot be used (SQLite code {code})"
                hint = "try again; if it stays so, keep the file and name another ledger"
        return LedgerError(self._thing, rule, hint=hint)

    # Around a fork: wait for the transaction of another thread, go without a connection, carry on.

    def before_fork(self) -> None:
        """See `forks.Connected`."""
        self._lock.acquire()
        self._disconnect()

    def after_fork(self) -> None:
        """See `forks.Connected`."""
        self._lock.release()


_LOCKING = frozenset(
    (
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOLFS,
        sqlite3.SQLITE_IOERR_LOCK,
        sqlite3.SQLITE_IOERR_RDLOCK,
        sqlite3.SQLITE_IOERR_UNLOCK,
        sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMLOCK,
        sqlite3.SQLITE_IOERR_SHMMAP,
    )
)


def _create(path: Path) -> None:
    """Make a new ledger whole under another name, then give it its own: nobody sees half a ledger, and of
    several processes that make it at once one wins and the others use what it made.

    Raises:
        LedgerError: if a former ledger of that name left its journal behind.
        OSError, sqlite3.Error: as they come.
    """
    from tempfile import mkstemp  # slow to import, and rarely needed

    folder = path.parent
    new_folders = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # A journal without its ledger: the ledger was deleted, and its last debits are in there. SQLite would
    # play it into the new file.
    journal = path.with_name(path.name + "-wal")
    if journal.exists() and not path.exists():
        raise LedgerError(
            f"the ledger {path}",
            "is gone, but its journal is still there",
            journal.name,
            hint="put the ledger back; only if it was meant to go, delete the journal too",
        )
    descriptor, name = mkstemp(prefix=f".{path.name}.", suffix=".new", dir=folder)  # mode 0600
    os.close(descriptor)
    try:
        connection = sqlite3.connect(name, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA fullfsync = ON")
            _migrate(connection)
            connection.execute("PRAGMA journal_mode = WAL")  # kept in the file
        finally:
            connection.close()
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            Path(name + suffix).unlink(missing_ok=True)
    for place in (folder, *(place.parent for place in new_folders)):
        _sync_folder(place)


def _sync_folder(folder: Path) -> None:
    """Put a folder's list of names on the disk, without which a power cut could lose a new file."""
    if os.name == "nt":  # Windows has no such call, and needs none
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring an older or empty file to this version, in one transaction. A newer one is left alone."""
    if connection.execute("PRAGMA user_version").fetchone()[0] >= len(sqlite_schema.MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Again, now that no other process can be doing the same.
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        for statement in (statement for script in sqlite_schema.MIGRATIONS[version:] for statement in script):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {max(version, len(sqlite_schema.MIGRATIONS))}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
