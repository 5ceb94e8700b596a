"""How fast the ledger is, as a file and on a PostgreSQL server: `python bench/ledger.py [FOLDER] [--json FILE]`.

Both lie on the disk that holds FOLDER, and sync. The server is the tests' own, on this host. Issue 4 asks for 10,000
debits in under 60 s with full sync, and a balance over 100,000 entries in under 50 ms.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.exact import decimal_text
from discreet.ledger import Ledger, chain
from discreet.privacy import RELATION, PrivacyLoss

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from measure.progress import steps
from measure.timing import machine
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


def measure(place: str, what: str) -> dict[str, Any]:
    """The rates of the ledger that is made at a place."""
    found: dict[str, Any] = {"store": what}
    with Ledger(place) as ledger:
        ledger.set_budget("file:/data/log.csv", PrivacyLoss(Fraction(1000)), unit="actor")
        began = time.perf_counter()
        with steps(f"{what}, 10,000 debits", 10) as done:
            for thousand in range(1, 11):
                for _ in range(1000):
                    debit(ledger)
                done(f"{thousand * 1000:,}")
        found["debits"] = time.perf_counter() - began
    fill(place, 100_000)
    began = time.perf_counter()
    with Ledger(place) as ledger:
        found["opening"] = time.perf_counter() - began
        times = []
        for _ in range(1000):
            began = time.perf_counter()
            ledger.balance("file:/data/log.csv")
            times.append(time.perf_counter() - began)
        found["balance"], found["slowest_balance"] = statistics.median(times), max(times)
        began = time.perf_counter()
        debit(ledger)
        found["one_more"] = time.perf_counter() - began
        began = time.perf_counter()
        ledger.verify()
        found["verify"] = time.perf_counter() - began
    return found


def measured(folder: str | None) -> dict[str, Any]:
    """Both stores on the disk that holds the folder."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        Path(name).chmod(0o755)  # the server runs as another user where this one is root
        found: dict[str, Any] = {"machine": machine(), "fsync": fsync_seconds(Path(name))}
        stores = [measure(str(Path(name) / "ledger"), f"SQLite {sqlite3.sqlite_version}")]
        server = new_server(name)
        try:
            server.start()
            (version,) = server.execute("SHOW server_version")[0]
            stores.append(measure(server.url(), f"PostgreSQL {version.split()[0]}, on this host"))
        finally:
            server.stop()
            shutil.rmtree(server.folder)
    return {**found, "stores": stores}


def markdown(found: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    text = [
        f"{found['machine']}; one append of 16 kB with fsync takes {found['fsync'] * 1e3:.2f} ms.",
        "",
        "| ledger | 10,000 debits, full sync | a second | balance over 100,000 debits | opening it | verifying it |",
        "|---|---|---|---|---|---|",
    ]
    for line in found["stores"]:
        rate = f"{line['debits']:.1f} s | {10_000 / line['debits']:,.0f}"
        reading = f"{line['balance'] * 1e3:.2f} ms | {line['opening'] * 1e3:.1f} ms | {line['verify']:.1f} s"
        text.append(f"| {line['store']} | {rate} | {reading} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", help="on whose disk the ledgers are to lie")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = measured(arguments.folder)
    print(markdown(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
