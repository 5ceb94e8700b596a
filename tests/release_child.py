"""A process of its own for the tests of the release path: `python release_child.py WHAT FOLDER ...`.

It loads everything once and forks for each experiment, before any engine has started threads. What it finds
goes to stdout, one JSON line each; the test that started it judges.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb  # noqa: F401  (loaded before the forks)
import numpy as np
from numpy.typing import NDArray

import discreet
import discreet.dataset
import discreet.engines.duckdb
import discreet.formats
import discreet.postprocessing
import discreet.release
from discreet.entropy import SystemEntropy
from discreet.errors import BudgetError
from discreet.ledger import Ledger

SQL = "SELECT COUNT(*) AS n FROM data"


def opened(folder: str, name: str, budget: object = 1000) -> discreet.Dataset:
    return discreet.open(
        Path(folder) / "t.csv", privacy_unit="u", max_contributions=3, budget=budget, ledger=Path(folder) / name
    )


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str) -> None:
    setattr(owner, name, lambda *_, **__: die())


def after(owner: Any, name: str) -> None:
    real = getattr(owner, name)

    def run(*arguments: Any, **options: Any) -> None:
        real(*arguments, **options)
        die()

    setattr(owner, name, run)


class Mortal(SystemEntropy):
    """Dies once random words have been drawn, before anybody has them."""

    def words(self, count: int) -> NDArray[np.uint64]:
        super().words(count)
        die()
        raise AssertionError


STEPS: dict[str, Callable[[], None]] = {
    "before the debit": lambda: before(Ledger, "debit"),
    "after the debit": lambda: after(Ledger, "debit"),
    "before the engine": lambda: before(discreet.engines.duckdb.DuckDBEngine, "run"),
    "while the engine runs": lambda: before(discreet.engines.duckdb, "_totals"),
    "after the engine": lambda: after(discreet.engines.duckdb.DuckDBEngine, "run"),
    "while noise is drawn": lambda: setattr(discreet.release, "SystemEntropy", Mortal),
    "after the noise": lambda: after(discreet.release, "add_noise"),
    "before the record": lambda: before(Ledger, "record_release"),
    "after the record": lambda: after(Ledger, "record_release"),
    "after the answer": lambda: None,
}


def steps(folder: str) -> None:
    """For each step: fork, ask, be killed there; then what was seen and what is spent."""
    opened(folder, "first.sqlite")  # registered once, without a query
    for number, (step, arm) in enumerate(STEPS.items()):
        name = f"{number}.sqlite"
        opened(folder, name).ledger_path.stat()
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            data = opened(folder, name)
            arm()
            answer = data.query(SQL, epsilon="0.5")
            os.write(write_end, str(answer["n"][0]).encode())
            die()
        os.close(write_end)
        _, status = os.waitpid(pid, 0)
        seen = os.read(read_end, 100).decode()
        os.close(read_end)
        data = opened(folder, name)
        balance, history = data.balance(), data.history()
        assert balance is not None
        print(
            json.dumps(
                {
                    "step": step,
                    "killed": os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL,
                    "seen": seen,
                    "spent": str(balance.spent.epsilon),
                    "states": [str(entry.state) for entry in history if entry.state is not None],
                }
            ),
            flush=True,
        )


def any_time(folder: str, rounds: str) -> None:
    """Killed at any moment while asking again and again: answers seen, and the number of debits."""
    data = opened(folder, "any.sqlite")
    for _ in range(int(rounds)):
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            data = opened(folder, "any.sqlite")
            while True:
                data.query(SQL, epsilon="0.5", fresh=True)
                os.write(write_end, b"x")
        os.close(write_end)
        os.read(read_end, 1)  # it is under way
        time.sleep(random.uniform(0, 0.2))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        seen = 1
        while more := os.read(read_end, 1000):
            seen += len(more)
        os.close(read_end)
        balance = data.balance()
        assert balance is not None
        print(json.dumps({"seen": seen, "debits": balance.queries, "spent": str(balance.spent.epsilon)}), flush=True)


def race(folder: str, processes: str) -> None:
    """Many processes ask at once, a tenth of the budget each."""
    opened(folder, "race.sqlite", budget=1)
    gate_read, gate_write = os.pipe()
    pids = []
    for _ in range(int(processes)):
        pid = os.fork()
        if pid == 0:
            os.close(gate_write)
            data = opened(folder, "race.sqlite", budget=1)
            os.read(gate_read, 1)  # until the gate is closed on the other side
            try:
                data.query(SQL, epsilon="0.1", fresh=True)
            except BudgetError:
                os._exit(3)
            os._exit(0)
        pids.append(pid)
    os.close(gate_read)
    os.close(gate_write)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    data = opened(folder, "race.sqlite", budget=1)
    balance = data.balance()
    assert balance is not None
    print(json.dumps({"codes": sorted(codes), "spent": str(balance.spent.epsilon)}), flush=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
