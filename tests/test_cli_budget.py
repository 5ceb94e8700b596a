"""`discreet budget`: who spent what and when, the head of the chain, and what verifying finds."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import sqlite3
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

import pytest

from command import Command
from discreet.ledger import Ledger, Window
from discreet.privacy import PrivacyLoss
from discreet.schema import Registration, Schema

HASH = re.compile(r"[0-9a-f]{64}")


def ask(discreet: Command, source: Path, *more: str) -> None:
    done = discreet("query", str(source), "SELECT COUNT(*) AS n FROM data", "--row-level", "--epsilon", "0.25", *more)
    assert done.code == 0, done.err


def head_of(discreet: Command, *more: str) -> str:
    done = discreet("budget", "--verify", *more)
    assert done.code == 0, done.err
    assert HASH.fullmatch(done.out.rstrip("\n")), done.out
    return done.out.strip()


# --- the head ----------------------------------------------------------------------------------------------


def test_the_head_stands_in_every_view_and_is_told_by_verifying(discreet, visits):
    ask(discreet, visits, "--budget", "1")
    head = head_of(discreet)
    assert f"head          {head} (entry 4)\n" in discreet("budget", str(visits)).out
    document = json.loads(discreet("budget", str(visits), "--format", "json").out)
    assert (document["head"], document["entries_in_ledger"]) == (head, 4)
    done = discreet("budget", str(visits), "--verify")
    assert done.out == discreet("budget", str(visits)).out
    assert f"verified: all entries of {discreet.ledger}, each against its hash, and all sums\n" in done.err
    assert "keep the head elsewhere" in done.err
    ask(discreet, visits, "--fresh")
    newer = head_of(discreet)
    assert newer != head
    done = discreet("budget", str(visits), "--head", head.upper())
    assert done.code == 0
    assert "the given head is among them" in done.err
    assert head_of(discreet, "--head", newer) == newer


@pytest.mark.parametrize("text", ["", "0" * 63, "g" * 64, "0" * 65, "latest"])
def test_what_is_no_head(discreet, visits, text):
    ask(discreet, visits, "--budget", "1")
    done = discreet("budget", str(visits), "--head", text)
    assert done.code == 2
    assert "--head: must be the 64 digits" in done.error()


def test_a_rolled_back_ledger_is_noticed_by_its_head_alone(discreet, visits, tmp_path):
    """A copy put back forgets a debit. Its own hashes agree; the head that was kept does not."""
    ask(discreet, visits, "--budget", "1")
    copy = tmp_path / "copy.sqlite"
    shutil.copy(discreet.ledger, copy)
    ask(discreet, visits, "--fresh")
    head = head_of(discreet)
    for suffix in ("", "-wal", "-shm"):
        Path(f"{discreet.ledger}{suffix}").unlink(missing_ok=True)
    shutil.copy(copy, discreet.ledger)
    assert discreet("budget", str(visits), "--verify").code == 0
    done = discreet("budget", str(visits), "--head", head)
    assert (done.code, done.out) == (5, "")
    assert "the given head is not among its entries: it was cut, rolled back or replaced" in done.error()


def test_another_ledger_in_its_place_is_noticed(discreet, visits, tmp_path):
    ask(discreet, visits, "--budget", "1")
    head = head_of(discreet)
    ask(discreet, visits, "--budget", "1", "--ledger", str(tmp_path / "other"))
    assert discreet("budget", str(visits), "--ledger", str(tmp_path / "other"), "--head", head).code == 5


def test_an_edited_entry_is_noticed_by_verifying_alone(discreet, visits):
    """One that no other entry's balance rests on: nothing else would read it."""
    ask(discreet, visits, "--budget", "1")
    ask(discreet, visits, "--fresh")
    with sqlite3.connect(discreet.ledger) as connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("UPDATE entries SET analyst = 'nobody' WHERE number = 3")
        (guard,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'no_delete'").fetchone()
        text = guard.replace("no_delete", "no_update").replace("DELETE", "UPDATE").replace("removed", "changed")
        connection.execute(text)
    connection.close()
    done = discreet("budget", "--verify")
    assert (done.code, done.out) == (5, "")
    assert "entry 3 does not match its hash" in done.error()


def test_verifying_makes_no_ledger(discreet):
    done = discreet("budget", "--verify")
    assert done.code == 5
    assert "does not exist" in done.error()
    assert not discreet.ledger.exists()
    assert discreet("budget", "raise", "x.csv", "--budget", "2", "--verify").code == 2


# --- who and when ------------------------------------------------------------------------------------------


@pytest.fixture
def monthly(discreet, tmp_path) -> str:
    """A source whose budget begins anew every month, asked by two analysts in two months."""
    times = iter([datetime(2024, month, day, 12, tzinfo=UTC) for month, day in
                  ((4, 1), (4, 1), (4, 2), (4, 2), (4, 9), (4, 9), (5, 3), (5, 3), (5, 4))])  # fmt: skip
    source = f"file:{tmp_path / 'log.csv'}"
    discreet.ledger.parent.mkdir(parents=True, exist_ok=True)
    with Ledger(discreet.ledger, clock=lambda: next(times)) as book:
        book.register(Registration(source, "csv", Schema(()), {}))
        book.set_budget(source, PrivacyLoss(Fraction(1)), unit="who", window=Window.MONTHLY)
        for analyst, epsilon in (("ann", "1/4"), ("bob", "1/2"), ("ann", "3/4")):
            entry = book.debit(source, PrivacyLoss(Fraction(epsilon)), unit="who", query=f"SELECT {analyst}",
                               digest="d", limits={"max_contributions": 2}, analyst=analyst)  # fmt: skip
            book.record_release(entry, {"n": 1})
    return source


def test_by_analyst_and_window(discreet, monthly):
    table = discreet("budget", monthly).out
    lines = [re.split(r"  +", line) for line in table.splitlines()]
    assert ["analyst", "window", "spent", "queries"] in lines
    for row in (["ann", "2024-04", "epsilon 0.25", "1"], ["bob", "2024-04", "epsilon 0.5", "1"],
                ["ann", "2024-05", "epsilon 0.75", "1"]):  # fmt: skip
        assert row in lines
    assert re.search(r"^total +epsilon 1 in \d{4}-\d\d \(monthly\)$", table, re.MULTILINE)
    assert re.search(r"^in all +epsilon 1.5 in all windows; that sum has no bound$", table, re.MULTILINE)
    assert re.search(r"debit +ann +0\.25 +released +SELECT ann", table)
    document = json.loads(discreet("budget", monthly, "--format", "json").out)
    assert document["by_analyst"][1] == {
        "analyst": "bob", "window": "2024-04", "epsilon": "0.5", "delta": "0", "queries": 1,
    }  # fmt: skip
    assert document["spent_in_all_windows"] == {"epsilon": "1.5", "delta": "0"}
    assert document["window"]["begins_anew"] == "monthly"


def test_history_in_every_format_says_the_same(discreet, monthly):
    document = json.loads(discreet("budget", monthly, "--format", "json").out)["history"]
    lines = [json.loads(line) for line in discreet("budget", monthly, "--format", "ndjson").out.splitlines()]
    assert lines == document
    rows = list(csv.DictReader(io.StringIO(discreet("budget", monthly, "--format", "csv").out)))
    assert [row["kind"] for row in rows] == ["register", "budget", "debit", "debit", "debit"]
    for row, entry in zip(rows, document, strict=True):
        for name in ("kind", "state", "epsilon", "spent", "analyst", "query", "window", "source"):
            assert row[name] == entry[name]
    assert rows[2]["limits"] == "max_contributions=2"
    assert discreet("budget", monthly, "--format", "xml").code == 2


def test_one_analyst_needs_no_columns(discreet, visits):
    ask(discreet, visits, "--budget", "1")
    table = discreet("budget", str(visits)).out
    assert "analyst  " not in table
    assert "entry  time (UTC)            kind      epsilon  state     query\n" in table


def test_a_shared_budget_names_its_sources(discreet, tmp_path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("u\na\nb\n")
    (tmp_path / "discreet.toml").write_text(
        '[budgets.people]\nepsilon = 9\nunit = "person"\n'
        + "".join(
            f'[datasets.{name}]\nsource = "{name}.csv"\nprivacy_unit = "u"\nmax_contributions = 1\nbudget = "people"\n'
            for name in ("one", "two")
        )
    )
    monkeypatch.chdir(tmp_path)
    for name, who in (("one", "ann"), ("two", "bob")):
        question = ("query", name, "SELECT COUNT(*) FROM data", "--epsilon", "1", "--analyst", who)
        assert discreet(*question).code == 0
    table = discreet("budget", "people").out
    assert re.search(r"debit +two\.csv +bob +1 +released", table)
    one = discreet("budget", "one").out
    assert re.search(r"^budget +people, shared by 2 data sets$", one, re.MULTILINE)
    assert "two.csv" not in one
    assert "spent         epsilon 2, queries: 2\n" in one
    assert head_of(discreet) in one, "the policy tells which ledger is meant"
