"""A process of its own for the ledger's tests: `python ledger_child.py WHAT LEDGER ...`.

Lines on stdout say how far it came; the test that started it judges.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import sqlite3
import sys
import tempfile  # noqa: F401  (needed for a new ledger, and out of reach once rights are given up)
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg

from discreet.errors import BudgetError, LedgerError
from discreet.ledger import Caps, Ledger, postgres_schema
from discreet.privacy import PrivacyLoss

TENTH = PrivacyLoss(Fraction(1, 10))
ONE = PrivacyLoss(Fraction(1))
PLENTY = PrivacyLoss(Fraction(1000))


def debit(ledger: Ledger, query: str = "count", **more: Any) -> int:
    return ledger.debit("s", TENTH, unit="actor", query=query, digest="d", limits={"max_contributions": 1}, **more)


def say(*words: object) -> None:
    print(*words, flush=True)


def at_once(count: int, act: Callable[[int], str]) -> list[str]:
    """What `count` forks of this process say that all act at the same moment, in order of text."""
    gate_read, gate_write = os.pipe()
    said_read, said_write = os.pipe()
    for number in range(count):
        if os.fork() == 0:
            os.close(gate_write)
            os.read(gate_read, 1)  # until the gate is closed on the other side: the starting gun
            os.write(said_write, f"{act(number)}\n".encode())
            os._exit(0)
    os.close(gate_read)
    os.close(said_write)
    os.close(gate_write)
    with os.fdopen(said_read) as said:
        return sorted(said.read().splitlines())


def race(path: str, budget: str) -> None:
    """Twenty debit at the same time; `budget` "set": each also sets the budget, in a new ledger."""

    def act(_: int) -> str:
        with Ledger(path, timeout=60) as ledger:
            if budget == "set":
                ledger.set_budget("s", ONE, unit="actor")
            try:
                debit(ledger)
            except BudgetError:
                return "refused"
            return "paid"

    say(json.dumps(at_once(20, act)))


def race_shares(path: str) -> None:
    """Ten of each of two analysts debit at the same time; each may spend three tenths."""

    def act(number: int) -> str:
        analyst = ("ann", "bob")[number % 2]
        with Ledger(path, timeout=60) as ledger:
            try:
                debit(ledger, analyst=analyst, caps=Caps(analyst=Fraction(3, 10)))
            except BudgetError:
                return f"refused {analyst}"
            return f"paid {analyst}"

    say(json.dumps(at_once(20, act)))


def die(path: str, step: int) -> None:
    """Debit and release, but SIGKILL itself at step number `step`: there is one before every statement (or round trip
    to the server), one after every COMMIT, one before every close."""
    left = step

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

    class Line(psycopg.Connection[Any]):
        def execute(self, sql: Any, *parameters: Any, **more: Any) -> psycopg.Cursor[Any]:
            one_step()
            cursor = super().execute(sql, *parameters, **more)
            if "COMMIT" in str(sql):
                one_step()
            return cursor

        def close(self) -> None:
            one_step()
            super().close()

    psycopg.connect = Line.connect
    with Ledger(path) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
        entry = debit(ledger)
        say("debited", entry)
        ledger.record_release(entry, {"n": 12})
        say("released", entry)
    say("closed")


def die_each() -> None:
    """For every line of stdin, a step and a place: `die` there, in a fork. What that one said, and its exit code."""
    for line in sys.stdin:
        step, path = line.rstrip("\n").split(" ", maxsplit=1)
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(write_end, sys.stdout.fileno())
            die(path, int(step))
            os._exit(0)
        os.close(write_end)
        with os.fdopen(read_end) as said:
            lines = said.read().splitlines()
        say(json.dumps([lines, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])]))


def toil(path: str) -> None:
    """Debit until killed, saying each entry once it is charged; or until the ledger is out of reach."""
    with Ledger(path) as ledger:
        try:
            while True:
                say(debit(ledger))
        except LedgerError as error:
            say("error", error)


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
    if "://" in path:
        server = psycopg.connect(path)
        server.execute("SELECT pg_advisory_xact_lock(%s)", [postgres_schema.LOCK])
        say("held")
        sys.stdin.readline()
        server.close()
        return
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
