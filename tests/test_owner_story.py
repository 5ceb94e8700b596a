"""Issue 4, "It is done when": a new user makes a policy for nycflights13.parquet with `discreet init`, spends it in
five queries, is refused the sixth with a message that says what to do, does it, and reads the report.

Real data; questions are real processes, and what a person types is typed on a real terminal.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pexpect
import pytest

from command import Command, environment
from discreet.ledger import Ledger

FIVE = (
    "SELECT COUNT(*) AS n FROM flights",
    "SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin",
    "SELECT AVG(dep_delay) AS delay FROM flights",
    "SELECT month, COUNT(DISTINCT tailnum) AS aircraft FROM flights GROUP BY month",
    "SELECT origin, AVG(distance) AS miles FROM flights GROUP BY origin",
)
SIXTH = "SELECT COUNT(*) AS n FROM flights WHERE dep_delay > 60"


@pytest.fixture
def folder(tmp_path: Path, shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "flights"
    place.mkdir()
    shutil.copy(shared_data / "tables" / "nycflights13.parquet", place)
    monkeypatch.chdir(place)
    monkeypatch.delenv("DISCREET_POLICY", raising=False)
    return place


def begin(folder: Path, ledger: Path) -> str:
    """`discreet init`, answered on a terminal. What was on the screen."""
    child = pexpect.spawn(
        sys.executable,
        ["-m", "discreet", "init", "nycflights13.parquet", "--name", "flights", "--keys", "origin=EWR,JFK,LGA",
         "--keys", "month=1..12"],
        env=environment(ledger),
        cwd=str(folder),
        encoding="utf-8",
        timeout=60,
        dimensions=(80, 160),
    )  # fmt: skip
    screen = ""

    def answer(prompt: str, text: str) -> None:
        nonlocal screen
        child.expect_exact(prompt)
        screen += child.before + prompt
        child.sendline(text)

    answer("privacy unit: ", "tailnum")
    answer("max_contributions: ", "500")
    answer("max_groups_contributed: ", "12")
    for column, bounds in (
        ("year", ""), ("month", ""), ("day", ""), ("dep_time", ""), ("sched_dep_time", ""), ("dep_delay", "-30..300"),
        ("arr_time", ""), ("sched_arr_time", ""), ("arr_delay", ""), ("flight", ""), ("air_time", ""),
        ("distance", "0..5000"), ("hour", "."),
    ):  # fmt: skip
        answer(f"{column} (BIGINT): ", bounds)
    answer("epsilon: ", "1")
    answer("delta: ", "")
    answer("default_epsilon: ", "0.2")
    child.expect(pexpect.EOF)
    screen += child.before
    child.close()
    assert child.exitstatus == 0, screen
    return screen


def test_a_new_owner_makes_a_policy_spends_it_and_reads_the_report(discreet: Command, folder: Path) -> None:
    screen = begin(folder, discreet.ledger)
    assert "336,776 records read" in screen
    assert 'next: discreet check, or discreet query "SELECT COUNT(*) AS n FROM flights"' in screen
    text = (folder / "discreet.toml").read_text(encoding="utf-8")
    assert "336" not in text  # no number of the data
    done = discreet("check")
    assert done.code == 0, done.err
    assert "flights: 19 columns; registered (version 1); no budget in force yet" in done.err

    for spent, sql in enumerate(FIVE, 1):
        done = discreet.process("query", sql, "--format", "json", cwd=folder)
        assert done.code == 0, done.err
        left = ("0.8", "0.6", "0.4", "0.2", "0")[spent - 1]
        assert f"spent: epsilon 0.2; left: epsilon {left}\n" in done.err
        assert "privacy unit: tailnum (per tailnum)" in done.err
        assert json.loads(done.out)

    estimated = discreet("estimate", SIXTH)
    assert "the budget is too small by epsilon 0.2: the query would be refused" in estimated.err
    refused = discreet.process("query", SIXTH, cwd=folder)
    assert (refused.code, refused.out) == (3, "")
    told = refused.error()
    assert "is epsilon 1; spent: epsilon 1; left: epsilon 0; asked: epsilon 0.2. Nothing was charged" in told
    assert "`discreet budget raise`" in told
    again = discreet.process("query", FIVE[0], "--format", "json", cwd=folder)
    assert again.code == 0, again.err  # what was answered is given again, free

    # What the message says to do, until it works.
    raised = discreet("budget", "raise", "flights")
    assert raised.code == 2
    assert "write the new total there: datasets.flights.budget.epsilon" in raised.error()
    assert text.count("\nepsilon = 1\n") == 1
    (folder / "discreet.toml").write_text(text.replace("\nepsilon = 1\n", "\nepsilon = 1.2\n"), encoding="utf-8")
    waiting = discreet.process("query", SIXTH, cwd=folder)
    assert waiting.code == 2
    assert "`discreet budget raise flights` raises it to what the policy says" in waiting.err
    raised = discreet("budget", "raise", "flights")
    assert (raised.code, "raised; total: epsilon 1.2; left: epsilon 0.2" in raised.err) == (0, True)
    assert discreet.process("query", SIXTH, cwd=folder).code == 0

    report = discreet("report", "flights", "--format", "json")
    assert report.code == 0, report.err
    for sql in (*FIVE, SIXTH):
        assert json.dumps(sql)[1:-1] in report.out
    assert "tailnum" in report.out
    shown = discreet("report", "flights")
    assert shown.code == 0, shown.err
    assert "1.2" in shown.out and "tailnum" in shown.out
    with Ledger(discreet.ledger) as book:
        balance = book.balance(f"file:{folder.resolve()}/nycflights13.parquet")
        book.verify()
    assert balance is not None
    assert (balance.left.epsilon, balance.queries) == (0, 6)
