"""The pictures of two queries to the example log, as `discreet` itself draws them: docs/pictures/query-*.svg.

Run by `make docs`. The bytes are the same each time. Only the answer's picture has noise in it; here, and nowhere else,
that comes from a written-down key, so that the page shows the same noise as the last time.
"""

from __future__ import annotations

import hashlib
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.chart import chart
from discreet.engines.duckdb import DuckDBEngine
from discreet.ledger import Ledger
from discreet.outlook import outlook
from discreet.pictures import draw_chart, draw_outlook, draw_sandwich
from discreet.plan import Plan
from discreet.release import Charge, release

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / "docs" / "pictures"
LOG = ROOT / "examples" / "commits.jsonl.gz"

DEMO = (
    "SELECT action, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors FROM commits "
    "WHERE YEAR(time) = 2024 GROUP BY action"
)
ACTIONS = {"action": ["A", "M", "D"]}
YEARS = (
    "SELECT YEAR(time) AS year, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors, AVG(lag_s) AS lag "
    "FROM commits GROUP BY YEAR(time)"
)
TWELVE = {"year": list(range(2013, 2025))}
SECONDS = {"lag_s": (0, 86400)}


class Written:
    """Words that follow from a number: noise for a page that looks the same each time. Nothing private is asked."""

    def __init__(self, number: int) -> None:
        self._number, self._calls = number, 0

    def _bytes(self, count: int) -> bytes:
        self._calls += 1
        return hashlib.shake_256(f"{self._number}/{self._calls}".encode()).digest(count)

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.frombuffer(self._bytes(8 * count), dtype=np.uint64).copy()

    def bits(self, count: int) -> int:
        size = -(-count // 8)
        return int.from_bytes(self._bytes(size), "little") >> (8 * size - count)


def all_pictures() -> dict[str, bytes]:
    """Every picture, by the name of its file."""
    level = Fraction(95, 100)
    with tempfile.TemporaryDirectory() as folder:
        ledger = Path(folder) / "ledger.sqlite"
        log = discreet.open(LOG, privacy_unit="actor", max_contributions=50, budget=3, ledger=ledger)
        demo = log.explain(DEMO, epsilon=1, keys=ACTIONS)
        years = log.explain(YEARS, epsilon=1, keys=TWELVE, bounds=SECONDS)
        plan = log.plan(YEARS, epsilon=1, keys=TWELVE, bounds=SECONDS)
        with Ledger(ledger) as book:
            engine = DuckDBEngine(plan.registration, None)
            answer = release(plan, book, engine, level, Charge(version_of(book, plan)), entropy=Written(2024))
        log.close()
    drawings = {
        "query-demo-explain.svg": draw_sandwich(demo, "svg"),
        "query-years-explain.svg": draw_sandwich(years, "svg"),
        "query-years-estimate.svg": draw_outlook(outlook(plan, level), "svg"),
        "query-years-answer.svg": draw_chart(chart(answer), "svg"),
    }
    return {name: drawing.content for name, drawing in drawings.items()}


def version_of(book: Ledger, plan: Plan) -> int:
    """Which registration the plan was made from."""
    found = book.registered(plan.registration.source)
    if found is None:
        raise AssertionError
    return found[1]


def main() -> None:
    """Write them all."""
    PLACE.mkdir(exist_ok=True)
    for name, content in all_pictures().items():
        (PLACE / name).write_bytes(content)


if __name__ == "__main__":
    main()
