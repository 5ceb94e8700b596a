"""Generated tables. Row i is a function of the seed and of i alone, so that any slice can be made by itself, in any
order, and true answers stay exact.

Random words are SplitMix64's (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators", section 4),
whose n-th word is a function of n: here n counts rows and the draws within one. (No noise is drawn here: a benchmark's
table has a seed, an answer never.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

__all__ = ["AuditLog", "Rare", "Users", "write"]

SLICE = 1_000_000
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_DRAWS = 16  # words a row may take


def words(seed: int, rows: NDArray[np.uint64], draw: int) -> NDArray[np.uint64]:
    """One 64-bit word for each row."""
    with np.errstate(over="ignore"):
        counter = rows * np.uint64(_DRAWS) + np.uint64(draw) + np.uint64(seed) * np.uint64(2**40)
        z = (counter + np.uint64(1)) * _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def uniform(seed: int, rows: NDArray[np.uint64], draw: int) -> NDArray[np.float64]:
    """Uniform on (0, 1): multiples of 2^-53, moved by half of one."""
    return ((words(seed, rows, draw) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def zipf(u: NDArray[np.float64], number: int) -> NDArray[np.int64]:
    """0, 1, ..., number - 1, the k-th with a probability of about 1 / ((k + 1) ln number)."""
    return np.minimum(np.exp(u * np.log(number + 1.0)).astype(np.int64) - 1, number - 1)


@dataclass(frozen=True)
class Users:
    """The table of issue 7: user_id (Zipf-like rows a user), grp (uniform), amount in [0, 100].

    An amount is a multiple of 2^-20, so that sums of doubles are exact too. `day` and `device` serve as further keys.
    """

    seed: int = 1
    users: int = 100_000
    groups: int = 100

    def rows(self, i: NDArray[np.uint64]) -> pa.Table:
        return pa.table(
            {
                "user_id": zipf(uniform(self.seed, i, 0), self.users),
                "grp": (words(self.seed, i, 1) % np.uint64(self.groups)).astype(np.int32),
                "amount": (words(self.seed, i, 2) % np.uint64(100 * 2**20 + 1)).astype(np.float64) * 2.0**-20,
                "day": (words(self.seed, i, 3) % np.uint64(7)).astype(np.int32),
                "device": (words(self.seed, i, 4) % np.uint64(4)).astype(np.int32),
            }
        )


@dataclass(frozen=True)
class Rare:
    """As `Users`, with 10^5 groups, most of them rare: Zipf-like rows a group too."""

    seed: int = 2
    users: int = 100_000
    groups: int = 100_000

    def rows(self, i: NDArray[np.uint64]) -> pa.Table:
        group = zipf(uniform(self.seed, i, 1), self.groups)
        # Ranks are scattered over the numbers, by a permutation: 99,991 is prime.
        spread = (group * 99_991) % self.groups
        amount = (words(self.seed, i, 2) % np.uint64(100 * 2**20 + 1)).astype(np.float64) * 2.0**-20
        return pa.table({"user_id": zipf(uniform(self.seed, i, 0), self.users), "grp": spread, "amount": amount})


@dataclass(frozen=True)
class AuditLog:
    """An audit log shaped like real ones.

    Actors weigh exp(1.6 Z); 2 % of them are service accounts, with a weight of 20 * Pareto(0.9) capped at 200.
    Actions have Zipf shares. Of the resources a third are touched by one actor only. Times come in bursts: most
    events lie within some minutes after one of a few thousand moments. `user` is a record, as in nested logs.
    """

    seed: int = 3
    actors: int = 20_000
    actions: int = 60
    resources: int = 30_000
    bursts: int = 5_000

    @cached_property
    def _shares(self) -> NDArray[np.float64]:
        """The actors' cumulated shares of all events."""
        from scipy.special import ndtri

        actor = np.arange(self.actors, dtype=np.uint64)
        weight = np.exp(1.6 * ndtri(uniform(self.seed + 1000, actor, 0)))
        pareto = uniform(self.seed + 1000, actor, 1) ** (-1 / 0.9)
        weight = np.where(actor % np.uint64(50) == 0, np.minimum(20 * pareto, 200.0), weight)
        return np.cumsum(weight) / weight.sum()

    def rows(self, i: NDArray[np.uint64]) -> pa.Table:
        actor = np.searchsorted(self._shares, uniform(self.seed, i, 0)).astype(np.int64)
        name = np.char.add(np.where(actor % 50 == 0, "svc-", "user-"), actor.astype(str))
        shared = self.resources - self.resources // 3
        common = zipf(uniform(self.seed, i, 2), shared)
        private = shared + actor % (self.resources // 3)
        resource = np.where((uniform(self.seed, i, 3) < 0.2) & (actor < self.resources // 3), private, common)
        burst = words(self.seed, i, 4) % np.uint64(self.bursts)
        begin = words(self.seed + 2000, burst, 0) % np.uint64(365 * 86_400)
        after = (-300.0 * np.log(uniform(self.seed, i, 5))).astype(np.int64)
        calm = (words(self.seed, i, 6) % np.uint64(365 * 86_400)).astype(np.int64)
        second = np.where(uniform(self.seed, i, 7) < 0.7, begin.astype(np.int64) + after, calm)
        time = np.datetime64("2025-01-01", "s") + second.astype("timedelta64[s]")
        user = pa.StructArray.from_arrays([pa.array(name), pa.array(actor % 50 == 0)], ["arn", "service"])
        return pa.table(
            {
                "user": user,
                "actor": pa.array(name),
                "action": zipf(uniform(self.seed, i, 1), self.actions).astype(np.int32),
                "resource": resource,
                "bytes": (words(self.seed, i, 8) % np.uint64(2**20)).astype(np.int64),
                "time": pa.array(time.astype("datetime64[us]")),
            }
        )


def slices(number: int) -> Iterator[NDArray[np.uint64]]:
    for start in range(0, number, SLICE):
        yield np.arange(start, min(start + SLICE, number), dtype=np.uint64)


def write(path: Path, number: int, rows: Callable[[NDArray[np.uint64]], pa.Table]) -> Path:
    """A Parquet file of the first `number` rows, made slice by slice; kept if it is there."""
    if not path.exists():
        part = path.with_suffix(".part")
        writer: pq.ParquetWriter | None = None
        for i in slices(number):
            table = rows(i)
            writer = writer or pq.ParquetWriter(part, table.schema)
            writer.write_table(table, row_group_size=SLICE // 8)
        if writer is not None:
            writer.close()
        part.rename(path)
    return path
