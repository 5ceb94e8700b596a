"""How fast the ledger is, as a file and on a PostgreSQL server: `python bench/ledger.py [FOLDER]`.

Both lie on the disk that holds FOLDER, and sync. The server is the tests' own, on this host. Issue 4 asks for 10,000
debits in under 60 s with full sync, and a balance over 100,000 entries in under 50 ms.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

from discreet.exact import decimal_text
from discreet.ledger import Ledger, chain
from discreet.privacy import RELATION, PrivacyLoss

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from measure.progress import steps
from postgres_server import new_server

COST = PrivacyLoss(Fraction(1, 1000))
QUERY = "SELECT action, COUNT(*) AS n FROM data WHERE time >= '2024-01-01' GROUP BY action"


def debit(ledger: Ledger) -> int:
    return ledger.debit(
        "file:/data/log.csv",
        COST,
        unit="actor",
        query=QUERY,
        digest="0" * 64,
        limits={"max_contributions": 20, "max_groups_contributed": 3},
    )


def fsync_seconds(folder: Path) -> float:
    """The median time of one 16 kB append and fsync, the floor of any durable debit."""
    descriptor = os.open(folder / "probe", os.O_CREAT | os.O_WRONLY)
    times = []
    for _ in range(200):
        began = time.perf_counter()
        os.write(descriptor, b"x" * 16_384)
        os.fsync(descriptor)
        times.append(time.perf_counter() - began)
    os.close(descriptor)
    return statistics.median(times)


def fill(place: str, entries: int) -> None:
    """Add debits through the chain's own code, but all in one transaction."""
    with Ledger(place) as ledger, ledger._store.writing() as transaction:
        for queries in range(10_001, entries + 1):
            spent = COST.epsilon * queries
            row = {
                "time": "2026-01-01T00:00:00.000+00:00",
                "source": "file:/data/log.csv",
                "kind": "debit",
                "version": 0,
                "analyst": "",
                "query": QUERY,
                "digest": "0" * 64,
                "epsilon": decimal_text(COST.epsilon),
                "delta": "0",
                "unit": "actor",
                "relation": RELATION,
                "content": "{}",
                "spent_epsilon": decimal_text(spent),
                "spent_delta": "0",
                "queries": queries,
            }
            chain.append(transaction, row)


def measure(place: str, what: str) -> None:
    """Print the rates of the ledger that is made at a place."""
    with Ledger(place) as ledger:
        ledger.set_budget("file:/data/log.csv", PrivacyLoss(Fraction(1000)), unit="actor")
        began = time.perf_counter()
        with steps(f"{what}, 10,000 debits", 10) as done:
            for thousand in range(1, 11):
                for _ in range(1000):
                    debit(ledger)
                done(f"{thousand * 1000:,}")
        took = time.perf_counter() - began
        print(f"10,000 debits: {took:.1f} s, {10_000 / took:,.0f} a second (asked: under 60 s)")
    fill(place, 100_000)
    began = time.perf_counter()
    with Ledger(place) as ledger:
        print(f"opening, 100,000 debits: {(time.perf_counter() - began) * 1e3:.2f} ms")
        times = []
        for _ in range(1000):
            began = time.perf_counter()
            ledger.balance("file:/data/log.csv")
            times.append(time.perf_counter() - began)
        median, most = statistics.median(times) * 1e3, max(times) * 1e3
        print(f"balance: {median:.2f} ms, at most {most:.2f} ms (asked: under 50 ms)")
        began = time.perf_counter()
        debit(ledger)
        print(f"one debit more: {(time.perf_counter() - began) * 1e3:.2f} ms")
        began = time.perf_counter()
        ledger.verify()
        print(f"verify: {time.perf_counter() - began:.2f} s")


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else None) as name:
        Path(name).chmod(0o755)  # the server runs as another user where this one is root
        print(f"append and fsync: {fsync_seconds(Path(name)) * 1e3:.3f} ms")
        print(f"-- SQLite {sqlite3.sqlite_version}")
        measure(str(Path(name) / "ledger"), "SQLite")
        server = new_server(name)
        try:
            server.start()
            print(f"-- PostgreSQL {server.execute('SHOW server_version')[0][0]}, on this host")
            measure(server.url(), "PostgreSQL")
        finally:
            server.stop()
            shutil.rmtree(server.folder)


if __name__ == "__main__":
    main()
