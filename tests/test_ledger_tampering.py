"""The ledger against other hands: edited, removed, cut, forged entries, and guards that are gone; on both stores."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

from discreet.errors import LedgerError
from discreet.ledger import Ledger, chain, postgres_schema, sqlite_schema
from discreet.ledger.checking import Check
from ledger_places import ONE, by_hand, debit, is_clear, tamper, write_some


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET epsilon = '0.01' WHERE number = 5",
        "UPDATE entries SET spent_epsilon = '0' WHERE number = 5",
        "UPDATE entries SET content = '{}' WHERE number = 3",
        "UPDATE entries SET analyst = NULL WHERE number = 5",
        "UPDATE entries SET time = '2000' WHERE number = 1",
        "UPDATE entries SET hash = '0' WHERE number = 5",
        "DELETE FROM entries WHERE number = 1",
        "DELETE FROM entries WHERE number = 5",
        "UPDATE entries SET number = number + 1000 WHERE number > 5",
        "UPDATE entries SET epsilon = '99999' WHERE kind = 'budget'",
        "DROP INDEX by_source",
        "ALTER TABLE entries ADD COLUMN more TEXT",
    ],
)
def test_an_edited_or_removed_entry_is_noticed(place: str, statement: str) -> None:
    """By verify, without a head kept elsewhere."""
    write_some(place, 10)
    tamper(place, statement)
    with pytest.raises(LedgerError) as error, Ledger(place) as ledger:
        ledger.verify()
    assert is_clear(error.value, place)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET query = CAST('x' AS BLOB) WHERE number = 5",
        "UPDATE entries SET query = CAST(x'ff' AS TEXT) WHERE number = 5",
        "CREATE TRIGGER t AFTER INSERT ON entries BEGIN SELECT 1; END",
    ],
)
def test_what_only_a_file_can_hold_is_noticed(tmp_path: Path, statement: str) -> None:
    """Bytes where text belongs; another trigger."""
    test_an_edited_or_removed_entry_is_noticed(str(tmp_path / "ledger"), statement)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION f()",
        "CREATE OR REPLACE FUNCTION discreet.unchanged() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
        "CREATE RULE r AS ON DELETE TO entries DO ALSO NOTHING",
        "ALTER TABLE entries ENABLE ROW LEVEL SECURITY",
        'ALTER TABLE entries ALTER COLUMN unit TYPE text COLLATE "POSIX"',
        "ALTER TABLE entries ALTER COLUMN hash DROP NOT NULL",
        "DROP TABLE IF EXISTS more; CREATE TABLE more () INHERITS (entries)",
        "UPDATE pg_index SET indisvalid = FALSE WHERE indexrelid = 'by_source'::regclass",
    ],
)
def test_what_only_a_server_can_hold_is_noticed(postgres_url: str, statement: str) -> None:
    """Functions, rules, policies, tables that add their rows, indexes that are not in use."""
    test_an_edited_or_removed_entry_is_noticed(postgres_url, statement)


def test_missing_triggers_are_noticed(place: str) -> None:
    """Without them the entries could be edited by accident."""
    write_some(place, 3)
    tamper(place, put_back=False)
    with pytest.raises(LedgerError, match="triggers"), Ledger(place) as ledger:
        ledger.verify()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET spent_epsilon = '0' WHERE number = (SELECT max(number) FROM entries)",
        "DELETE FROM entries WHERE number = (SELECT max(number) - 1 FROM entries)",
        "UPDATE entries SET spent_epsilon = '0' WHERE number = (SELECT max(number) - 1 FROM entries)",
        "UPDATE entries SET epsilon = '99999' WHERE kind = 'budget'",
    ],
)
def test_an_edit_that_would_pay_off_is_noticed_at_once(place: str, statement: str) -> None:
    """What a debit rests on is checked each time, not by verify alone: the totals of the source's newest
    entry, its budget, the end of the chain."""
    with Ledger(place) as ledger:
        for source in ("s", "t"):
            ledger.set_budget(source, ONE, unit="actor")
        for source in "s" * 9 + "st":
            debit(ledger, source)
    tamper(place, statement)
    with pytest.raises(LedgerError, match="damaged or was tampered with"), Ledger(place) as ledger:
        debit(ledger)


@pytest.mark.parametrize("cut", [1, 7, 41])
def test_a_cut_tail_is_noticed_with_a_head(place: str, cut: int) -> None:
    """Without the head, a ledger whose last entries are gone looks like an earlier one; with it, it does not.
    The head of an earlier day stays good as entries are added."""
    head = write_some(place, 20)
    with Ledger(place) as ledger:
        debit(ledger)
        later = ledger.verify(head)
        assert ledger.verify(f" {later.upper()}\n") == later
        last = ledger.history("s")[-1].number
    tamper(place, f"DELETE FROM entries WHERE number > {max(0, last - cut)}")
    with Ledger(place) as ledger:
        assert ledger.verify() != later
        with pytest.raises(LedgerError, match="cut, rolled back or replaced") as error:
            ledger.verify(later)
        assert is_clear(error.value, place)
        for nonsense in ("", "0", "x" * 64):
            with pytest.raises(LedgerError, match="cut, rolled back or replaced"):
                ledger.verify(nonsense)


def test_a_forged_chain_that_overspends_is_noticed(place: str) -> None:
    """Hashes that are right prove no sums: verify adds up again."""
    write_some(place, 2)
    for spent in ("0.1", "5000", "not a number"):
        row = {
            "time": "", "source": "s", "kind": "debit", "epsilon": "5000" if spent != "0.1" else "0.1",
            "delta": "0", "spent_epsilon": spent, "spent_delta": "0", "queries": 3,
        }  # fmt: skip
        with by_hand(place) as entries:
            chain.append(entries, row)
            with pytest.raises(chain.Damage):
                Check(None).some(entries)


# --- versions ------------------------------------------------------------------------------------------


def test_an_older_version_is_migrated(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A next version with one more column: the old entries and their hashes stay, debits go on, and the
    discreet of today refuses the ledger from then on, and leaves it alone."""
    head = write_some(place, 5)
    schema = postgres_schema if "://" in place else sqlite_schema
    with monkeypatch.context() as patch:
        more = ("ALTER TABLE entries ADD COLUMN note TEXT",)
        patch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, more))
        if "://" in place:
            patch.setitem(postgres_schema._COLUMNS, "note", 'text COLLATE "default"')
        with Ledger(place) as ledger:
            assert ledger.verify() == head
            debit(ledger)
            later = ledger.verify(head)
    with pytest.raises(LedgerError, match="newer discreet") as error:
        Ledger(place)
    assert is_clear(error.value, place)
    with by_hand(place) as entries:
        last = chain.newest(entries, "TRUE")
    assert last is not None
    assert last["hash"] == later


# --- guards --------------------------------------------------------------------------------------------

_ROW = "'', 's', 'debit', '0', '0', 0, ''"
_INTO = "time, source, kind, spent_epsilon, spent_delta, queries, hash"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET epsilon = '0' WHERE number = 3",
        "DELETE FROM entries",
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        f"INSERT INTO entries (number, {_INTO}) VALUES (2, {_ROW})",
        f"INSERT INTO entries (number, {_INTO}) VALUES (1000, {_ROW})",
        f"INSERT INTO entries (number, {_INTO}, subject) SELECT max(number) + 1, {_ROW}, 2 FROM entries",
        "INSERT INTO entries SELECT * FROM entries WHERE TRUE ON CONFLICT (number) DO UPDATE SET epsilon = '0'",
    ],
)
def test_entries_are_never_changed(place: str, statement: str) -> None:
    """Whoever opens the ledger, by whatever way: the ledger itself refuses."""
    head = write_some(place, 6)
    with pytest.raises((sqlite3.IntegrityError, psycopg.Error)) as refused, by_hand(place) as entries:
        entries.execute(statement)
    assert "entries are" in str(refused.value) or "outcomes" in str(refused.value)
    with Ledger(place) as ledger:
        assert ledger.verify() == head


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE entries",
        "TRUNCATE entries CASCADE",
        "MERGE INTO entries AS a USING entries AS b ON a.number = b.number WHEN MATCHED THEN DELETE",
        "SET session_replication_role = replica; DELETE FROM entries",
        "SET session_replication_role = replica; UPDATE entries SET epsilon = '0'",
        "SELECT 1 FROM pg_class; WITH gone AS (DELETE FROM entries RETURNING *) SELECT * FROM gone",
    ],
)
def test_entries_are_never_changed_by_the_ways_of_a_server(postgres_url: str, statement: str) -> None:
    """Not by its superuser either, unless the triggers are switched off by name."""
    head = write_some(postgres_url, 6)
    with psycopg.connect(postgres_url, options="-csearch_path=discreet") as connection:
        with pytest.raises(psycopg.errors.RaiseException, match="entries are never changed or removed"):
            connection.execute(statement)
        connection.rollback()
    with Ledger(postgres_url) as ledger:
        assert ledger.verify() == head
