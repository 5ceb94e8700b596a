"""Times: reported, never a fault, as what a query takes depends on the data (README, what it does not protect)."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from fractions import Fraction

from discreet import release
from discreet.audit.replay import follow
from discreet.audit.tables import Neighbour, Tables
from discreet.entropy import SystemEntropy
from discreet.laplace.limbs import Int128Array

__all__ = ["Times", "measure"]

_REPEATS = 15
_CELLS = 4_000


@dataclass(frozen=True)
class Times:
    """Medians, in milliseconds.

    Attributes:
        noise: of adding noise to totals of 0, of about 2^60 and of about 2^120, as many of each.
        query: of the whole query on a table and on it without one unit.
    """

    noise: tuple[float, ...]
    query: tuple[float, ...]

    def lines(self) -> list[str]:
        noise = ", ".join(f"{t:.3f} ms" for t in self.noise)
        query = ", ".join(f"{t:.1f} ms" for t in self.query)
        return [
            f"  noise on {_CELLS:,} totals of size 0, 2^60, 2^120: {noise}",
            f"  the whole query with and without the unit: {query}",
        ]


def measure(tables: Tables, neighbour: Neighbour, confidence: Fraction, repeats: int = _REPEATS) -> Times:
    """Run both kinds in turn, so that what the machine does besides falls on all alike."""
    measurement = tables.plan.measurements[0]
    sizes = [
        Int128Array.from_ints([2**bits * (i % 7 + 1) if bits else 0 for i in range(_CELLS)]) for bits in (0, 60, 120)
    ]
    noise: list[list[float]] = [[] for _ in sizes]
    query: list[list[float]] = [[], []]
    for _ in range(repeats):
        for found, totals in zip(noise, sizes, strict=True):
            start = time.perf_counter()
            release.add_noise((measurement,), (totals,), SystemEntropy())
            found.append(time.perf_counter() - start)
    for _ in range(max(1, repeats // 3)):
        for found, table in zip(query, (neighbour.base, neighbour.table), strict=True):
            start = time.perf_counter()
            follow(tables.plan, tables.engine(table), "times", confidence)
            found.append(time.perf_counter() - start)
    return Times(*(tuple(1e3 * statistics.median(times) for times in kind) for kind in (noise, query)))
