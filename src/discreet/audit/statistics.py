"""Many runs of noise and post-processing on two neighbouring tables, and what can be certified from them.

The exact totals of both are known from a replay. Noise is drawn by the very functions that answer, from the operating
system's randomness.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet import postprocessing, release
from discreet.audit import events
from discreet.audit.events import Certified, Features
from discreet.audit.replay import Key, Trace
from discreet.entropy import Entropy, SystemEntropy
from discreet.laplace.limbs import Int128Array
from discreet.laplace.sampler import draw_limbs
from discreet.plan import Measurement, Plan
from discreet.selection import Selection

__all__ = ["FAIL", "Cells", "Statistics", "attack", "cells_of"]

FAIL = 1e-6
"""An audit fails if the bound at this error rate is above the claim: once in a million audits without a reason."""

SHOWN = 0.05
Numbers: TypeAlias = NDArray[np.float64]

_DRAWS = 40_000_000
_BATCH = 2_000_000
_MOST_CELLS = 48
_MOST_FEATURES = 6
_ANSWERS = 400
_SECONDS = 5.0
_POWER_DRAWS = 100_000
_FACTORS = (1.02, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.4, 1.5, 1.75, 2.0, 3.0, 5.0, 10.0)


@dataclass(frozen=True)
class Cells:
    """Entries of one vector of totals on both tables: those that differ, the most telling ones, and a few others.

    Attributes:
        measurement: of the vector.
        whole, without: the exact totals. Private.
        moved: whole - without, in each.
    """

    measurement: Measurement
    whole: tuple[int, ...]
    without: tuple[int, ...]

    @property
    def moved(self) -> tuple[int, ...]:
        return tuple(a - b for a, b in zip(self.whole, self.without, strict=True))


@dataclass(frozen=True)
class Statistics:
    """What the runs show.

    Attributes:
        claimed: the query's epsilon.
        delta: its delta.
        shown: the certified lower bound at 95 %.
        failing: the same at an error rate of 10^-6.
        runs: on each table; half of them for choosing events.
        factor: a privacy loss so many times that of this pair would have been told with probability 0.95; None if no
            factor up to 10 would.
        answers: whole answers that were looked at, on each table.
        histogram: the edges of bins, and how many runs fell into each on the whole table and on the other: of the
            noisy total that moved most, in the answer's units.
        drawn: what the histogram shows.
    """

    claimed: float
    delta: float
    shown: Certified
    failing: Certified
    runs: int
    factor: float | None
    answers: int
    histogram: tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]]
    drawn: str

    @property
    def passed(self) -> bool:
        return self.failing.bound <= self.claimed


def cells_of(plan: Plan, whole: Trace, without: Trace) -> list[Cells]:
    """What is drawn again and again."""
    share = max(4, _MOST_CELLS // max(1, len(plan.measurements)))
    cells = []
    for m, a, b in zip(plan.measurements, whole.totals, without.totals, strict=True):
        differ = np.flatnonzero((a.high != b.high) | (a.low != b.low))
        # Of a tree's many nodes few differ; the first ones stand for those that do not.
        places = np.union1d(differ, np.arange(min(8, len(a))))
        x, y = (Int128Array(v.high[places], v.low[places]).to_ints() for v in (a, b))
        order = sorted(range(len(places)), key=lambda i: -abs(x[i] - y[i]))
        moved = [i for i in order if x[i] != y[i]][:share]
        chosen = moved + [i for i in order if x[i] == y[i]][:2]
        cells.append(Cells(m, tuple(x[i] for i in chosen), tuple(y[i] for i in chosen)))
    return cells


def attack(
    plan: Plan,
    whole: Trace,
    without: Trace,
    *,
    confidence: Fraction,
    runs: int | None = None,
    answers: int = _ANSWERS,
    power: bool = True,
    progress: Callable[[float], None] = lambda share: None,
) -> Statistics:
    """Try to tell two neighbours apart.

    Args:
        plan: of the query.
        whole, without: replays of it on both.
        confidence: of the answers' intervals.
        runs: on each table; None for as many as take a second or a few.
        answers: how many whole answers are made on each table.
        power: whether to find out what would have been told.
        progress: told how much is done.
    """
    cells = cells_of(plan, whole, without)
    groups = _telling_groups(whole, without) if plan.selection is not None else []
    width = sum(len(c.whole) for c in cells) + len(groups)
    runs = runs or max(4_000, min(1_500_000, _DRAWS // max(1, width)))
    delta = float(plan.loss.delta)
    one = _vectors(plan, cells, groups, whole, runs, True, lambda share: progress(share * 0.3))
    other = _vectors(plan, cells, groups, without, runs, False, lambda share: progress(0.3 + share * 0.3))
    errors = (SHOWN / 2, FAIL / 2)
    found = [events.examine(one, other, delta, errors)]
    progress(0.6)
    if answers:
        # Intervals of means take long: as many answers as fit into some seconds.
        start = time.perf_counter()
        _answers(plan, whole, confidence, 2)
        answers = max(16, min(answers, int(_SECONDS * 2 / (time.perf_counter() - start))))
        shown = [_answers(plan, trace, confidence, answers) for trace in (whole, without)]
        names = [name for name in shown[0] if name in shown[1]]
        both = [{name: features[name] for name in names} for features in shown]
        found.append(events.examine(both[0], both[1], delta, errors))
    progress(0.8)
    # Two tests: each at half the error, the better bound counts.
    best = [max(pair, key=lambda certified: certified.bound) for pair in zip(*found, strict=True)]
    factor = _power(cells, runs // 2, float(plan.loss.epsilon), delta) if power else None
    histogram, drawn = _histogram(cells, one, other)
    return Statistics(float(plan.loss.epsilon), delta, best[0], best[1], runs, factor, answers, histogram, drawn)


# --- noisy vectors ---------------------------------------------------------------------------------------------


def _vectors(
    plan: Plan,
    cells: Sequence[Cells],
    groups: Sequence[Key],
    trace: Trace,
    runs: int,
    is_whole: bool,
    progress: Callable[[float], None],
) -> Features:
    """Features of many runs of the noise."""
    parts: list[dict[str, Numbers]] = []
    width = max(1, sum(len(c.whole) for c in cells))
    batch = max(1, min(runs, _BATCH // width))
    for start in range(0, runs, batch):
        parts.append(_batch(plan, cells, groups, trace, min(batch, runs - start), is_whole))
        progress(start / runs)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _batch(
    plan: Plan, cells: Sequence[Cells], groups: Sequence[Key], trace: Trace, runs: int, is_whole: bool
) -> dict[str, Numbers]:
    entropy = SystemEntropy()
    found: dict[str, Numbers] = {}
    if plan.selection is not None:
        found |= _released(plan.selection, groups, trace, runs, entropy)
    totals = [_tiled(c.whole if is_whole else c.without, runs) for c in cells]
    noisy = release.add_noise(tuple(c.measurement for c in cells), tuple(totals), entropy)
    ratio = np.zeros(runs)
    for number, (c, vector) in enumerate(zip(cells, noisy, strict=True)):
        name = f"{c.measurement.statistic} {number + 1}"
        from_whole = _as_doubles(vector.add(_tiled([-x for x in c.whole], runs))).reshape(runs, -1)
        moved = np.array([float(x) for x in c.moved])
        scale = float(c.measurement.scale)
        # The logarithm of the ratio of the likelihoods, but for a constant: |y - x'| - |y - x|, over the scale.
        ratio += ((np.abs(from_whole + moved) - np.abs(from_whole)) / scale).sum(axis=1)
        low = vector.low.reshape(runs, -1)
        for i in range(min(_MOST_FEATURES, len(c.whole))):
            if c.moved[i]:
                found[f"noisy total {i + 1} of {name}, from the exact one"] = from_whole[:, i]
                found[f"lowest set bit of total {i + 1} of {name}"] = _lowest_bit(low[:, i])
            for j in range(i):
                found[f"difference of totals {j + 1} and {i + 1} of {name}"] = from_whole[:, j] - from_whole[:, i]
    found["likelihood ratio"] = ratio
    return found


def _tiled(values: Sequence[int], runs: int) -> Int128Array:
    one = Int128Array.from_ints(values)
    return Int128Array(np.tile(one.high, runs), np.tile(one.low, runs))


def _as_doubles(x: Int128Array) -> Numbers:
    doubles: Numbers = x.high.astype(np.float64) * 2.0**64 + x.low.astype(np.float64)
    # Near 0 the two parts would cancel: there the lower one tells, with its sign.
    small = x.high == (x.low.view(np.int64) >> 63)
    doubles[small] = x.low.view(np.int64)[small].astype(np.float64)
    return doubles


def _lowest_bit(low: NDArray[np.uint64]) -> Numbers:
    bit = low & (~low + np.uint64(1))
    found: Numbers = np.where(bit == 0, 64.0, np.log2(np.maximum(bit, np.uint64(1)).astype(np.float64)))
    return found


def _telling_groups(whole: Trace, without: Trace) -> list[Key]:
    """Candidate groups whose numbers of units differ; those that only one table has first."""
    keys = {*whole.units, *without.units}
    differ = [key for key in keys if whole.units.get(key, 0) != without.units.get(key, 0)]
    return sorted(differ, key=lambda key: (key in whole.units and key in without.units, str(key)))[:_MOST_FEATURES]


def _released(
    selection: Selection, groups: Sequence[Key], trace: Trace, runs: int, entropy: Entropy
) -> dict[str, Numbers]:
    """Which of some candidate groups are released; one that nobody is in is none."""
    there = [key for key in groups if key in trace.units]
    passed = release.choose_groups(_tiled([trace.units[key] for key in there], runs), selection, entropy)
    table = passed.reshape(runs, len(there)).astype(np.float64)
    found = {f"the group {_shown(key)} is released": np.zeros(runs) for key in groups}
    found |= {f"the group {_shown(key)} is released": table[:, i] for i, key in enumerate(there)}
    found["groups of the unit that are released"] = np.sum(list(found.values()), axis=0) if found else np.zeros(runs)
    return found


def _shown(key: Sequence[object]) -> str:
    return ", ".join("NULL" if part is None else str(part)[:40] for part in key)


# --- whole answers ---------------------------------------------------------------------------------------------


def _answers(plan: Plan, trace: Trace, confidence: Fraction, answers: int) -> Features:
    """Features of whole answers: values, what is missing, the rows and their order, how the run ends."""
    public = plan if plan.selection is None else plan.with_groups(trace.groups)
    rows: list[dict[str, float]] = []
    for _ in range(answers):
        found: dict[str, float] = {"the run fails": 0.0}
        try:
            noisy = release.add_noise(plan.measurements, trace.totals, SystemEntropy())
            columns = postprocessing.answer_columns(public, public.group_keys(), noisy, confidence)
        except Exception:  # noqa: BLE001 - a run that fails is an output like others
            rows.append({"the run fails": 1.0})
            continue
        found["the number of rows"] = float(len(columns[0].values))
        order = tuple(c.values for c, output in zip(columns, plan.outputs, strict=True) if output.function == "key")
        found["the keys and their order"] = float(hash(order) % 2**31)
        for column, output in zip(columns, plan.outputs, strict=True):
            if output.function == "key":
                continue
            for i, value in enumerate(column.values[:_MOST_FEATURES]):
                number = float(value) if isinstance(value, int | float) and value is not None else math.nan
                found[f"{column.name} in row {i + 1}"] = number
                found[f"lowest set bit of {column.name} in row {i + 1}"] = _lowest_bit_of(number)
        rows.append(found)
    names = {name for row in rows for name in row}
    return {name: np.array([row.get(name, math.nan) for row in rows]) for name in sorted(names)}


def _lowest_bit_of(number: float) -> float:
    if not math.isfinite(number) or number == 0:
        return math.nan
    mantissa, exponent = math.frexp(number)
    whole = int(mantissa * 2**53)
    return float((whole & -whole).bit_length() - 54 + exponent)


# --- power -----------------------------------------------------------------------------------------------------


def _power(cells: Sequence[Cells], trials: int, claimed: float, delta: float) -> float | None:
    """The smallest factor f of a list such that noise f times too small would have failed the audit with probability
    0.95: by simulation of the likelihood ratio, which is the best statistic there is (Neyman and Pearson 1933)."""
    return next((f for f in _FACTORS if _would_fail(_ratios(cells, f), trials, claimed, delta)), None)


def _ratios(cells: Sequence[Cells], factor: float) -> Numbers:
    """Logarithms of the ratio of the likelihoods, drawn on the whole table with noise that is too small."""
    ratio, entropy = np.zeros(_POWER_DRAWS), SystemEntropy()
    for c in cells:
        moved = np.array([float(x) for x in c.moved])
        scale = c.measurement.scale / Fraction(factor)
        noise = _as_doubles(draw_limbs(scale, _POWER_DRAWS * len(moved), entropy)).reshape(_POWER_DRAWS, -1)
        ratio += ((np.abs(noise + moved) - np.abs(noise)) / float(scale)).sum(axis=1)
    return ratio


def _would_fail(ratios: Numbers, trials: int, claimed: float, delta: float) -> bool:
    """Whether some threshold's counts give a failing bound even where both are 2.24 standard deviations on the wrong
    side: with probability 0.975 each they are not, so that with probability 0.95 the audit fails.

    With L = ln(P / P'), P'(L >= t) is the mean of e^-L over what P draws, where L >= t: no second sample is needed.
    """
    ordered = np.sort(ratios)[::-1]
    after = np.cumsum(np.exp(-ordered)) / len(ordered)
    for share in np.linspace(0.01, 0.99, 60):
        # Up to the last of the values that are equal to it: a threshold cannot part them.
        last = np.searchsorted(-ordered, -ordered[int(share * len(ordered))], side="right") - 1
        p, q = (last + 1) / len(ordered), min(1.0, float(after[last]))
        often = max(0.0, trials * p - 2.24 * math.sqrt(trials * p * (1 - p)))
        seldom = min(float(trials), trials * q + 2.24 * math.sqrt(trials * q * (1 - q)))
        # About Clopper and Pearson's bounds first: they take long.
        rough = math.log(max(often - 4 * math.sqrt(often), 1e-9) / (seldom + 4 * math.sqrt(seldom) + 1))
        counts = math.floor(often), math.ceil(seldom)
        error = FAIL / 2 / events.MOST_EVENTS
        if rough > claimed and events.certified_bound(*counts, trials, delta, error) > claimed:
            return True
    return False


# --- the picture -----------------------------------------------------------------------------------------------


def _histogram(
    cells: Sequence[Cells], whole: Features, without: Features
) -> tuple[tuple[tuple[float, ...], tuple[int, ...], tuple[int, ...]], str]:
    """Of the noisy total that moved most, relative to its noise."""
    moved = [
        (abs(x) / c.measurement.scale, k, i)
        for k, c in enumerate(cells)
        for i, x in enumerate(c.moved[:_MOST_FEATURES])
    ]
    if not moved or max(moved)[0] == 0:
        return ((), (), ()), ""
    _, k, i = max(moved)
    c = cells[k]
    name = f"noisy total {i + 1} of {c.measurement.statistic} {k + 1}, from the exact one"
    unit = float(c.measurement.unit_value)
    a, b = whole[name] * unit, without[name] * unit
    ends = np.quantile(np.concatenate([a, b]), [0.003, 0.997])
    edges = np.linspace(ends[0], ends[1], 33)
    counts = [tuple(int(n) for n in np.histogram(x, edges)[0]) for x in (a, b)]
    return (tuple(edges.tolist()), counts[0], counts[1]), f"{c.measurement.statistic}, less its exact value"
