"""The ledger against crashes, races, full disks, broken and foreign files: real SQLite, real processes."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from discreet.errors import BudgetError, DiscreetError, LedgerError
from discreet.ledger import Ledger, sqlite_schema
from ledger_places import PLENTY, TENTH, balance, debit, is_clear, run, write_some


def call(command: list[str]) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


# --- the disk ------------------------------------------------------------------------------------------


def test_a_commit_is_on_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Full sync, write-ahead, and no checkpoint beside another writer, on every connection that writes."""
    seen: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def spy(*arguments: Any, **options: Any) -> sqlite3.Connection:
        seen.append(connect(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr("sqlite3.connect", spy)
    with Ledger(path):
        for setting, value in (("synchronous", 2), ("journal_mode", "wal"), ("wal_autocheckpoint", 0)):
            assert seen[-1].execute(f"PRAGMA {setting}").fetchone() == (value,)


def test_the_journal_stays_short(path: Path) -> None:
    """Although SQLite's own checkpoints are off, and another reader keeps the file open."""
    with Ledger(path), Ledger(path) as ledger:
        ledger.set_budget("s", PLENTY, unit="actor")
        longest = 0
        for _ in range(600):
            debit(ledger)
            longest = max(longest, path.with_name("ledger-wal").stat().st_size)
    assert 1_000_000 < longest < 5_000_000
    assert balance(path).queries == 600


# --- disks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["limit", "disk"])
def test_a_full_disk(path: Path, how: str) -> None:
    """Debits and releases fail with a clear error, reading goes on, nothing acknowledged is lost, and once
    there is room all works again. On a small disk where this user may mount one (in a namespace of its own),
    else under a limit on the size of files."""
    path.parent.joinpath("disk").mkdir()
    place, before = path, ()
    if how == "disk":
        place = path.parent / "disk" / "ledger"
        mount = f"mount -t tmpfs -o size=400k tmpfs {place.parent}"
        alone = ("unshare", "--mount", "sh", "-c")
        if shutil.which("unshare") and call([*alone, mount]) == 0:
            before = (*alone, f'{mount} && exec "$@"', "sh")
        else:
            how = "limit"
    lines, code = run("full", place, how, before=before)
    assert code == 0
    first, second, paid, again = lines
    for line in (first, second):
        assert "cannot grow: the disk, a quota or a file-size limit is full" in line or "fault" in line
        assert is_clear(line, place)
    assert paid.split()[3] == paid.split()[1], "what failed was not booked, what was acknowledged is"
    assert again == "again"


@contextmanager
def open_to_all() -> Iterator[Path]:
    """A folder that a user without rights reaches; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "folder"
        Path(name).chmod(0o755)
        folder.mkdir()
        yield folder
        folder.chmod(0o755)


@pytest.mark.parametrize(
    ("file_mode", "folder_mode", "journal"),
    [
        (0o444, 0o777, False),
        (0o666, 0o555, False),
        (0o000, 0o777, False),
        (0o444, 0o777, True),
        (None, 0o555, False),
    ],
)
def test_a_read_only_file_or_folder(file_mode: int | None, folder_mode: int, journal: bool) -> None:
    """A ledger that cannot be written is refused when it is opened, before anything is read or charged; and a
    missing one that cannot be made. (As another user than root, who may write everything.)"""
    with open_to_all() as folder:
        path = folder / "ledger"
        if file_mode is not None:
            write_some(path, 3)
            path.chmod(file_mode)
        if journal:
            path.with_name("ledger-wal").touch(mode=0o444)
        folder.chmod(folder_mode)
        before = path.read_bytes() if file_mode == 0o444 else b""
        lines, code = run("unprivileged", path)
        assert code == 0
        assert len(lines) == 1
        assert lines[0].startswith("error")
        assert is_clear(lines[0], path), lines
        if before:
            assert path.read_bytes() == before


def test_another_user_with_rights_may_write() -> None:
    """The control of the test above: with rights, the same process pays."""
    with open_to_all() as folder:
        path = folder / "ledger"
        write_some(path, 3)
        path.chmod(0o666)
        folder.chmod(0o777)
        assert run("unprivileged", path) == (["paid"], 0)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (sqlite3.SQLITE_PROTOCOL, "locks or shared memory do not work"),
        (sqlite3.SQLITE_IOERR_LOCK, "locks or shared memory do not work"),
        (sqlite3.SQLITE_IOERR_SHMMAP, "locks or shared memory do not work"),
        (sqlite3.SQLITE_BUSY_RECOVERY, "locked by another process"),
        (sqlite3.SQLITE_FULL, "cannot grow"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "cannot grow"),
        (sqlite3.SQLITE_IOERR_FSYNC, "reports a fault"),
        (sqlite3.SQLITE_READONLY_DBMOVED, "cannot be opened for writing"),
        (sqlite3.SQLITE_CANTOPEN, "cannot be opened for writing"),
        (sqlite3.SQLITE_CORRUPT_VTAB, "damaged"),
        (sqlite3.SQLITE_NOTADB, "is not a discreet ledger"),
        (sqlite3.SQLITE_NOMEM, "cannot be used"),
        (None, "damaged"),
    ],
)
@pytest.mark.parametrize("statement", ["PRAGMA journal_mode", "BEGIN IMMEDIATE", "INSERT", "COMMIT"])
def test_every_fault_of_sqlite_is_explained(
    path: Path, monkeypatch: pytest.MonkeyPatch, code: int | None, said: str, statement: str
) -> None:
    """Whatever fails, wherever: a LedgerError with what to do; SQLite's text and the chained exception that
    would show it are gone; and the ledger works on afterwards, with nothing charged."""
    write_some(path, 1)
    broken = [True]

    class Faulty(sqlite3.Connection):
        def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:  # type: ignore[override]
            if broken[0] and sql.startswith(statement):
                error = sqlite3.OperationalError("database disk image is malformed")
                if code is not None:
                    error.sqlite_errorcode = code
                raise error
            return super().execute(sql, *arguments)

    connect = sqlite3.connect
    monkeypatch.setattr("sqlite3.connect", lambda *a, **k: connect(*a, **{**k, "factory": Faulty}))
    with pytest.raises(LedgerError, match=said) as error, Ledger(path) as ledger:
        debit(ledger)
    assert error.value.__suppress_context__
    assert is_clear(str(error.value).replace("SQLite code", "code"), path)
    broken[0] = False
    assert balance(path).queries == 1


# --- files that are not, or no longer, what they were ------------------------------------------------


def make_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE entries (number INTEGER)")
    connection.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("time,actor\n2024-01-01,a\n" * 400),
        lambda path: path.write_bytes(os.urandom(50_000)),
        lambda path: path.write_bytes(b"SQLite format 3\0"),
        make_database,
    ],
    ids=["empty", "csv", "noise", "magic alone", "another database"],
)
def test_a_file_that_is_no_ledger_is_refused_and_left_alone(path: Path, make: Callable[[Path], Any]) -> None:
    """Byte for byte, and without a journal beside it. An empty file is not taken for a new ledger: it may be
    what is left of one."""
    make(path)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match=r"is empty|is not a discreet ledger") as error:
        Ledger(path)
    assert is_clear(error.value, path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["ledger"]


def test_a_folder_is_refused(tmp_path: Path) -> None:
    """And so is a path through a file, and a circle of links."""
    file, circle = tmp_path / "file", tmp_path / "circle"
    file.touch()
    circle.symlink_to(circle)
    for bad in (tmp_path, file / "ledger", circle):
        with pytest.raises(LedgerError) as error:
            Ledger(bad)
        assert is_clear(error.value, bad)


def test_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    """It says which versions, and to upgrade."""
    write_some(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    known = len(sqlite_schema.MIGRATIONS)
    with pytest.raises(LedgerError, match=rf"newer discreet \(ledger version 99; this one knows {known}\)") as error:
        Ledger(path)
    assert is_clear(error.value, path)
    assert path.read_bytes() == before


def test_entries_are_never_changed_through_sqlite(path: Path) -> None:
    """UPDATE, DELETE and the ways around them are refused by the file itself, whoever opens it."""
    head = write_some(path)
    connection = sqlite3.connect(path)
    columns = "number, time, source, kind, spent_epsilon, spent_delta, queries, hash"
    row = "'', 's', 'debit', '0', '0', 0, ''"
    for statement in (
        "UPDATE entries SET epsilon = '0' WHERE number = 3",
        "UPDATE OR REPLACE entries SET number = 2 WHERE number = 3",
        "DELETE FROM entries",
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        f"INSERT OR REPLACE INTO entries ({columns}) VALUES (2, {row})",
        f"INSERT INTO entries ({columns}) VALUES (1000, {row})",
        f"REPLACE INTO entries ({columns}, subject) SELECT max(number) + 1, {row}, 2 FROM entries",
        "INSERT INTO entries SELECT * FROM entries WHERE TRUE ON CONFLICT DO UPDATE SET epsilon = '0'",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="entries are"):
            connection.execute(statement)
        connection.rollback()
    connection.close()
    with Ledger(path) as ledger:
        assert ledger.verify() == head


def test_a_copy_put_back_is_noticed_with_a_head(path: Path) -> None:
    """A backup restored forgets what was spent since."""
    write_some(path, 5)
    copy = path.read_bytes()
    with Ledger(path) as ledger:
        debit(ledger)
        head = ledger.verify()
    path.write_bytes(copy)
    with Ledger(path) as ledger, pytest.raises(LedgerError, match="rolled back"):
        ledger.verify(head)


def test_a_truncated_file_is_noticed(path: Path) -> None:
    """Cut anywhere, also within a page: on opening or by verify, never as an empty or shorter ledger."""
    write_some(path, 60)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 2048), len(whole) - 1, 15, 99, 100]:
        path.write_bytes(whole[:length])
        with pytest.raises(LedgerError) as error, Ledger(path) as ledger:
            ledger.verify()
        assert is_clear(error.value, path)


def test_flipped_bytes_are_noticed_or_harmless(path: Path) -> None:
    """300 single bytes changed at random places that are in use: a clear error, or the ledger says exactly
    what it said before (of 65,000 such changes, 1 in 300 was of no meaning: a counter in the header). So 250
    of 300 are noticed but for a chance far below 1e-30."""
    write_some(path, 60)
    with Ledger(path) as ledger:
        truth = (ledger.verify(), ledger.history("s"), ledger.balance("s"), ledger.budget("s"))
    whole = path.read_bytes()
    used = [place for place, byte in enumerate(whole) if byte]
    noticed = 0
    for place in random.choices(used, k=300):
        flipped = bytearray(whole)
        flipped[place] ^= random.randrange(1, 256)
        path.write_bytes(flipped)
        for leftover in ("ledger-wal", "ledger-shm", "ledger-journal"):
            path.with_name(leftover).unlink(missing_ok=True)
        try:
            with Ledger(path) as ledger:
                now = (ledger.verify(), ledger.history("s"), ledger.balance("s"), ledger.budget("s"))
        except LedgerError as error:
            assert is_clear(error, path), error
            noticed += 1
        else:
            assert now == truth, f"byte {place}"
    assert noticed >= 250


def test_a_ledger_that_is_replaced_while_in_use_is_noticed(path: Path) -> None:
    """Else debits would go to a file that nobody will read again."""
    write_some(path, 3)
    other = path.with_name("other")
    write_some(other, 1)
    for act in (lambda: path.rename(path.with_name("moved")), lambda: other.rename(path)):
        with Ledger(path) as ledger:
            act()
            with pytest.raises(LedgerError, match="moved, replaced or deleted") as error:
                debit(ledger)
            assert is_clear(error.value, path)
        if path.with_name("moved").exists():
            path.with_name("moved").rename(path)


def test_a_deleted_ledger_with_a_journal_is_not_begun_anew(path: Path) -> None:
    """The journal holds its last debits, and SQLite would play it into the new file."""
    write_some(path, 3)
    path.unlink()
    path.with_name("ledger-wal").write_bytes(b"x" * 100)
    with pytest.raises(LedgerError, match="is gone, but its journal") as error:
        Ledger(path)
    assert is_clear(error.value, path)
    assert not path.exists()


def test_a_link_leads_to_the_ledger(path: Path) -> None:
    """One ledger under two names has one journal; a link to nowhere makes the ledger where it points."""
    link = path.with_name("link")
    link.symlink_to(path)
    with Ledger(link) as one, Ledger(path) as two:
        one.set_budget("s", TENTH, unit="actor")
        debit(two)
        with pytest.raises(BudgetError):
            debit(one)
    assert link.is_symlink()
    assert path.is_file()


def test_every_error_is_discreets_own(path: Path) -> None:
    """A last net: opening whatever stands in /dev and /proc gives our errors, not others'."""
    for place in ("/dev/null", "/proc/self/mem", "/dev/full", "/proc/nothing/ledger"):
        with pytest.raises(DiscreetError):
            Ledger(place)
