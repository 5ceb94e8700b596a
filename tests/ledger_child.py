"""A process of its own for the ledger's tests: `python ledger_child.py WHAT LEDGER ...`.

Lines on stdout say how far it came; the test that started it judges.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sqlite3
import sys
import tempfile  # noqa: F401  (needed for a new ledger, and out of reach once rights are given up)
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.errors import BudgetError, LedgerError
from discreet.ledger import Caps, Ledger
from discreet.privacy import PrivacyLoss

TENTH = PrivacyLoss(Fraction(1, 10))
ONE = PrivacyLoss(Fraction(1))
PLENTY = PrivacyLoss(Fraction(1000))


def debit(ledger: Ledger, query: str = "count", **more: Any) -> int:
    return ledger.debit("s", TENTH, unit="actor", query=query, digest="d", limits={"max_contributions": 1}, **more)


def say(*words: object) -> None:
    print(*words, flush=True)


def race(path: str, budget: str) -> None:
    """One of many that debit at the same time; `budget` "set": each also sets the budget, in a new file."""
    say("ready")
    sys.stdin.readline()  # the starting gun
    with Ledger(path) as ledger:
        if budget == "set":
            ledger.set_budget("s", ONE, unit="actor")
        try:
            debit(ledger)
        except BudgetError:
            say("refused")
        else:
            say("paid")


def race_shares(path: str, analyst: str) -> None:
    """One of many that debit at the same time; each analyst may spend three tenths."""
    say("ready")
    sys.stdin.readline()  # the starting gun
    with Ledger(path) as ledger:
        try:
            debit(ledger, analyst=analyst, caps=Caps(analyst=Fraction(3, 10)))
        except BudgetError:
            say("refused", analyst)
        else:
            say("paid", analyst)


def die(path: str, step: str) -> None:
    """Debit and release, but SIGKILL itself at step number `step`: there is one before every statement, one
    after every COMMIT, one before every close."""
    left = int(step)

    def one_step() -> None:
        nonlocal left
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left -= 1

    class Mortal(sqlite3.Connection):
        def execute(self, sql: str, *parameters: Any) -> sqlite3.Cursor:  # type: ignore[override]
            one_step()
            cursor = super().execute(sql, *parameters)
            if sql == "COMMIT":
                one_step()
            return cursor

        def close(self) -> None:
            one_step()
            super().close()

    connect = sqlite3.connect
    sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "factory": Mortal})  # type: ignore[assignment]
    with Ledger(path) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
        entry = debit(ledger)
        say("debited", entry)
        ledger.record_release(entry, {"n": 12})
        say("released", entry)
    say("closed")


def toil(path: str) -> None:
    """Debit until killed, saying each entry once it is charged."""
    with Ledger(path) as ledger:
        while True:
            say(debit(ledger))


def full(path: str, how: str) -> None:
    """Run out of room, then get room again. `how`: a limit on the size of files, or a small disk."""
    ballast = Path(path).with_name("ballast")
    with Ledger(path) as ledger:
        ledger.set_budget("s", PLENTY, unit="actor")
        first = debit(ledger)
        if how == "limit":
            size = Path(path + "-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10_000, resource.RLIM_INFINITY))
        else:
            with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 4096)
        paid = 1
        try:
            while paid < 5000:
                debit(ledger)
                paid += 1
        except LedgerError as error:
            say("error", error)
        try:
            ledger.record_release(first, {"long": "x" * 100_000})
        except LedgerError as error:
            say("error", error)
        balance = ledger.balance("s")  # reading still works
        say("paid", paid, "booked", balance and balance.queries)
        if how == "limit":
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        else:
            ballast.unlink()
        debit(ledger)
        ledger.record_release(first, {"long": "x" * 100_000})
        ledger.verify()
        say("again")


def unprivileged(path: str) -> None:
    """Use the ledger as a user who is not root (root may write everything)."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    try:
        with Ledger(path) as ledger:
            debit(ledger)
    except LedgerError as error:
        say("error", error)
    else:
        say("paid")


def hold(path: str) -> None:
    """Hold the writer's lock until told to go on, as a stuck process would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    say("held")
    sys.stdin.readline()
    connection.execute("ROLLBACK")


def fork(path: str) -> None:
    """Debit on both sides of a fork with one Ledger, the parent closing it before the child's last debit."""
    ledger = Ledger(path)
    ledger.set_budget("s", ONE, unit="actor")
    debit(ledger, "before")
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        debit(ledger, "child")
        os.read(read_end, 1)
        debit(ledger, "child, after the parent closed")
        os._exit(0)
    debit(ledger, "parent")
    ledger.close()
    os.write(write_end, b"x")
    say("child", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
