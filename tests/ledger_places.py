"""Places for ledgers: every test that takes `place` or `places` runs on a file and on a PostgreSQL server.

Both keep one set of rules, so that one set of tests holds for both; what is peculiar to files is in
`test_ledger_files.py`, what is peculiar to servers in `test_ledger_postgres.py`.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from discreet.ledger import Balance, Ledger, postgres_schema, sqlite_schema
from discreet.ledger.postgres_session import Entries
from discreet.ledger.store import Transaction
from discreet.privacy import PrivacyLoss
from postgres_server import PASSWORD, PostgresServer


@dataclass
class Places:
    """Empty places for ledgers, of one kind."""

    folder: Path
    server: PostgresServer | None = None
    made: list[str] = field(default_factory=list)

    def new(self) -> str:
        """A place where no ledger is yet."""
        if self.server is None:
            self.made.append(str(self.folder / f"ledger-{len(self.made)}"))
        else:
            self.made.append(self.server.url(self.server.new_database()))
        return self.made[-1]

    def drop(self) -> None:
        """Remove all databases that were made."""
        while self.server is not None and self.made:
            name = self.made.pop().rpartition("/")[2]
            self.server.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def walk(self, machine: type[RuleBasedStateMachine], *, files: int, server: int, steps: int = 30) -> None:
        """Run a state machine, each time at a new place, which it finds as its attribute `place`.

        Args:
            files, server: how many walks.
            steps: the most steps of one.
        """

        def begun() -> RuleBasedStateMachine:
            self.drop()
            return type(machine.__name__, (machine,), {"place": self.new()})()

        examples = files if self.server is None else server
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            begun,
            settings=settings(
                max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )  # fmt: skip


@pytest.fixture(params=["file", "server"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    """Files in one run, databases of a real server in the other."""
    server = request.getfixturevalue("postgres_server") if request.param == "server" else None
    found = Places(tmp_path, server)
    yield found
    found.drop()


@pytest.fixture
def place(places: Places) -> str:
    """A place where no ledger is yet."""
    return places.new()


@contextmanager
def by_hand(place: str) -> Iterator[Transaction]:
    """The entries of a ledger in a transaction of one's own, past all rules; undone at the end."""
    if "://" not in place:
        file = sqlite3.connect(place, isolation_level=None)
        file.execute("BEGIN")
        try:
            yield file
        finally:
            file.close()
        return
    import psycopg

    with psycopg.connect(place, options=f"-csearch_path={postgres_schema.SCHEMA}") as connection:
        yield Entries(connection)
        connection.rollback()


def tamper(where: str | Path, *statements: str, put_back: bool = True) -> None:
    """Edit as one who owns the place: without the triggers, which are put back afterwards."""
    place = str(where)
    if "://" not in place:
        guards = [(name, sql) for kind, name, sql in sorted(sqlite_schema.expected_guards()) if kind == "trigger"]
        off = [f"DROP TRIGGER {name}" for name, _ in guards]
        on = [sql for _, sql in guards]
        connection: Any = sqlite3.connect(place)
    else:
        import psycopg

        connection = psycopg.connect(place, options=f"-csearch_path={postgres_schema.SCHEMA}")
        off = ["ALTER TABLE entries DISABLE TRIGGER ALL"]
        on = [f"ALTER TABLE entries ENABLE ALWAYS TRIGGER {name}" for name in postgres_schema.TRIGGERS]
    for statement in (*off, *statements, *(on if put_back else ())):
        connection.execute(statement)
    connection.commit()
    connection.close()


# --- what many tests do with a ledger ------------------------------------------------------------------------

CHILD = str(Path(__file__).with_name("ledger_child.py"))
ONE = PrivacyLoss(Fraction(1))
TENTH = PrivacyLoss(Fraction(1, 10))
PLENTY = PrivacyLoss(Fraction(1000))


def start(what: str, *words: str | Path, before: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """A process of its own: see `ledger_child.py`."""
    return subprocess.Popen(
        [*before, sys.executable, CHILD, what, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def run(what: str, *words: str | Path, before: tuple[str, ...] = ()) -> tuple[list[str], int]:
    """What such a process said, and its exit code."""
    with start(what, *words, before=before) as child:
        out, _ = child.communicate(timeout=60)
        return out.splitlines(), child.returncode


def debit(ledger: Ledger, source: str = "s", **more: Any) -> int:
    """A debit of a tenth."""
    given: dict[str, Any] = {"unit": "actor", "query": "count", "digest": "d", "limits": {}}
    return ledger.debit(source, TENTH, **{**given, **more})


def balance(place: str | Path) -> Balance:
    """What a ledger, verified, says about the source "s"."""
    with Ledger(place) as ledger:
        ledger.verify()
        found = ledger.balance("s")
    assert found is not None
    return found


def write_some(place: str | Path, debits: int = 40) -> str:
    """A ledger with a history, closed; its head."""
    with Ledger(place) as ledger:
        ledger.set_budget("s", PLENTY, unit="actor")
        for i in range(debits):
            entry = debit(ledger, query=f"question {i}")
            if i % 3 == 0:
                ledger.record_release(entry, {"n": i})
        return ledger.verify()


def is_clear(error: object, place: str | Path) -> bool:
    """Names the place without its password, says what to do, and passes no text of a store's or of the house's inside
    on."""
    text, name = str(error), str(place)
    if "://" in name:
        if quote(PASSWORD, safe="") in text or PASSWORD in text:
            return False
        name = name.replace(f":{quote(PASSWORD, safe='')}@", "@")
    inside = (
        "sqlite", "psycopg", "libpq", "malformed", "disk i/o", "errno", "traceback", "entries.", "none", "fatal",
        "postgres", "relation ", "lsn", "scram",
    )  # fmt: skip
    said = text.replace(name, "").replace("PostgreSQL", "")
    return name in text and "Hint: " in text and not any(word in said.lower() for word in inside)
