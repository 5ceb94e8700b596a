"""How far answers are off at equal privacy: ours beside the two plans that others use.

    python bench/accuracy.py [--data FOLDER] [--json FILE] [--rows N]

The root of the mean, over groups, of the squared error of a count, a sum and a mean: what limiting each person does
to it, which is computed from the very totals that a release would use, and the noise's variance by its law (for means:
over 200 draws of it). For every plan the best limits of a grid are taken, by the truth: what the best-informed owner
would choose.

- ours: weights. Every row of a person with N > C rows counts C / N; noise of scale C B / epsilon. Or, with
  `contribution_bounds_per_group`: in each of a person's M groups a count of at most m, a sum between m L and m U, which
  counts G / M where M > G; noise of scale G m B / epsilon. A mean is then their quotient, clamped.
- rows: C rows of each person, chosen at random (as Tumult Analytics does with MaxRowsPerID); the same scale.
- groups: at most l groups of each person, chosen at random, and in each a count of at most m, a sum between m L and m U
  (as PipelineDP, OpenDP's truncation and Google's libraries do); noise of scale l m B / epsilon.

A mean is the centre plus a noisy centred sum over a noisy count, half of epsilon for each, clamped to the bounds, for
all plans.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import duckdb
import numpy as np
from numpy.typing import NDArray

import discreet
from discreet.engines.duckdb import DuckDBEngine
from discreet.plan import Plan
from discreet.relational import compile_plan
from measure.progress import steps
from measure.tables import AuditLog, write

EPSILONS = ("0.1", "1")
LIMITS = (1, 2, 3, 5, 8, 13, 20, 35, 60, 100, 175, 300, 550, 1000)
DRAWS = 200
MARGIN = 1.02
STATISTICS = ("count", "sum", "mean")
Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Question:
    """A table, its unit, a group and a value with public bounds."""

    name: str
    relation: str
    unit: str
    group: str
    value: str
    lower: int
    upper: int


def questions(folder: Path, log: Path) -> Iterator[Question]:
    flights = f"'{folder / 'tables/nycflights13.parquet'}'"
    commits = f"read_json('{folder / 'logs/numpy_commits.jsonl.gz'}', format='newline_delimited')"
    reviews = f"'{folder / 'tables/reviews.parquet'}'"
    yield Question("flights by destination", flights, "tailnum", "dest", "arr_delay", -60, 180)
    yield Question("flights by carrier", flights, "tailnum", "carrier", "arr_delay", -60, 180)
    yield Question("commits by action", commits, "actor", "action", "lag_s / 3600", 0, 240)
    yield Question("commits by year", commits, "actor", "substr(CAST(time AS VARCHAR), 1, 4)", "lag_s / 3600", 0, 240)
    yield Question("reviews by vendor", reviews, "reviewerId", "vendorId", "rating", 1, 5)
    yield Question("generated log by action", f"'{log}'", "actor", "action", "bytes / 1024", 0, 1024)


@dataclass(frozen=True)
class Table:
    """One question's rows: unit and group as numbers from 0, and the clamped value."""

    unit: NDArray[np.int64]
    group: NDArray[np.int64]
    value: Vector
    groups: int
    file: Path

    def grouped(self, weights: Vector) -> tuple[Vector, Vector]:
        """Counts and sums of each group."""
        counts = np.bincount(self.group, weights, self.groups)
        return counts, np.bincount(self.group, weights * self.value, self.groups)


def table(question: Question, folder: Path) -> Table:
    """The rows that have a unit, a group and a value."""
    file = folder / "rows.parquet"
    value = f"CAST({question.value} AS DOUBLE)"
    duckdb.sql(
        f"""COPY (SELECT dense_rank() OVER (ORDER BY u) - 1 AS u,
        CAST(dense_rank() OVER (ORDER BY g) - 1 AS INTEGER) AS g,
        greatest({question.lower}, least({question.upper}, x)) AS x
        FROM (SELECT {question.unit} AS u, {question.group} AS g, {value} AS x FROM {question.relation})
        WHERE u IS NOT NULL AND g IS NOT NULL AND x IS NOT NULL) TO '{file}' (FORMAT parquet)"""
    )
    found = duckdb.sql(f"SELECT u, g, x FROM '{file}'").fetchnumpy()
    group = np.asarray(found["g"], dtype=np.int64)
    unit, value_ = np.asarray(found["u"], dtype=np.int64), np.asarray(found["x"], dtype=np.float64)
    return Table(unit, group, value_, int(group.max()) + 1, file)


def noise_variance(scale: float) -> float:
    return 2 * scale**2


def errors(
    truth: tuple[Vector, Vector], kept: tuple[Vector, Vector], question: Question, epsilon: float, weight: float
) -> dict[str, float]:
    """RMSE over groups of the three statistics, given what limiting left, and how many rows one person may weigh."""
    size = max(abs(question.lower), abs(question.upper))
    centre, half = (question.lower + question.upper) / 2, (question.upper - question.lower) / 2
    found = {
        "count": np.mean((kept[0] - truth[0]) ** 2) + noise_variance(weight / epsilon),
        "sum": np.mean((kept[1] - truth[1]) ** 2) + noise_variance(weight * size / epsilon),
    }
    draw = np.random.default_rng(7)  # a simulation's noise, not an answer's
    shape = (DRAWS, len(truth[0]))
    counts = kept[0] + draw.laplace(0, 2 * weight / epsilon, shape)
    centred = kept[1] - centre * kept[0] + draw.laplace(0, 2 * weight * half / epsilon, shape)
    means = np.clip(centre + centred / np.maximum(1, counts), question.lower, question.upper)
    found["mean"] = np.mean((means - truth[1] / truth[0]) ** 2)
    return {name: float(np.sqrt(value)) for name, value in found.items()}


def ours(rows: Table, question: Question, limit: int, ledgers: Path) -> tuple[Vector, Vector]:
    """Counts and sums without their noise, from the product's own plan and engine."""
    data = discreet.open(rows.file, privacy_unit="u", max_contributions=limit, ledger=ledgers / f"{limit}.sqlite")
    plan = data.plan(
        "SELECT g, COUNT(*) AS n, SUM(x) AS s FROM data GROUP BY g",
        epsilon="1",
        keys={"g": list(range(rows.groups))},
        bounds={"x": (question.lower, question.upper)},
    )
    return without_noise(plan)


def ours_per_group(rows: Table, question: Question, groups: int, m: int, ledgers: Path) -> tuple[Vector, Vector]:
    """The same, of what each person has in a group."""
    data = discreet.open(
        rows.file,
        privacy_unit="u",
        max_contributions=10**6,
        max_groups_contributed=groups,
        ledger=ledgers / f"groups-{groups}.sqlite",
    )
    low, high = min(0, m * question.lower), max(0, m * question.upper)
    plan = data.plan(
        f"SELECT g, COUNT(*, contribution_bounds_per_group => (0, {m})) AS n, "
        f"SUM(x, contribution_bounds_per_group => ({low}, {high})) AS s FROM data GROUP BY g",
        epsilon="1",
        keys={"g": list(range(rows.groups))},
        bounds={"x": (question.lower, question.upper)},
    )
    return without_noise(plan)


def without_noise(plan: Plan) -> tuple[Vector, Vector]:
    """The exact totals of a count and a sum, in the answer's units."""
    totals = DuckDBEngine(plan.registration).run(compile_plan(plan))
    found: list[Vector] = []
    for measurement, total in zip(plan.measurements, totals, strict=True):
        found.append(np.array([float(t * measurement.unit_value) for t in total.to_ints()]))
    counts, sums = found[0], found[1]
    return counts, sums


def ranks(keys: NDArray[Any], within: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place, from 0, of each element among those with the same `within`, in the order of `keys`."""
    order = np.lexsort((keys, within))
    sorted_ = within[order]
    starts = np.r_[0, np.flatnonzero(np.diff(sorted_)) + 1]
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    return place


Kept: TypeAlias = tuple[str, str, tuple[Vector, Vector], float]
"""A plan, its limits, the counts and sums that limiting left, and the weight of one person."""


def limited(rows: Table, question: Question, ledgers: Path) -> Iterator[Kept]:
    """What every plan keeps, at all limits of the grid."""
    shuffled = ranks(np.random.default_rng(1).random(len(rows.unit)), rows.unit)
    pair = rows.unit * rows.groups + rows.group
    pairs, place = np.unique(pair, return_inverse=True)
    pair_unit, pair_group = pairs // rows.groups, pairs % rows.groups
    number = np.bincount(place).astype(np.float64)
    total = np.bincount(place, rows.value)
    pair_rank = ranks(np.random.default_rng(2).random(len(pairs)), pair_unit)
    most_rows, most_groups = int(np.bincount(rows.unit).max()), int(np.bincount(pair_unit).max())
    for limit in (one for one in LIMITS if one <= max(1, most_rows)):
        yield "ours", f"C = {limit}", ours(rows, question, limit, ledgers), limit
        yield "rows", f"C = {limit}", rows.grouped((shuffled < limit).astype(np.float64)), limit
    for groups in (one for one in LIMITS if one <= 2 * most_groups):
        among = (pair_rank < groups).astype(np.float64)
        for m in (one for one in LIMITS if one <= number.max()):
            counts = np.bincount(pair_group, among * np.minimum(number, m), rows.groups)
            sums = among * np.clip(total, min(0, m * question.lower), max(0, m * question.upper))
            kept = (counts, np.bincount(pair_group, sums, rows.groups))
            yield "ours", f"G = {groups}, m = {m}", ours_per_group(rows, question, groups, m, ledgers), groups * m
            yield "groups", f"l = {groups}, m = {m}", kept, groups * m


def best(
    every: Iterable[Kept], truth: tuple[Vector, Vector], question: Question, epsilon: float
) -> dict[str, dict[str, tuple[float, str]]]:
    """For each plan and statistic the least RMSE, and the limits that give it."""
    found: dict[str, dict[str, tuple[float, str]]] = {plan: {} for plan in ("ours", "rows", "groups")}
    for plan, limits, kept, weight in every:
        for statistic, rmse in errors(truth, kept, question, epsilon, weight).items():
            if statistic not in found[plan] or rmse < found[plan][statistic][0]:
                found[plan][statistic] = (rmse, limits)
    return found


def markdown(lines: list[dict[str, Any]]) -> str:
    text = ["| question | epsilon | statistic | ours | ours / usual plan | ours / C rows |", "|" + "---|" * 6]
    for line in lines:
        shown = [f"{line['rmse']['ours']:.3g} ({line['limits']['ours']})"]
        shown += [f"**{line['rmse']['ours'] / line['rmse'][p]:.2f}** ({line['limits'][p]})" for p in ("groups", "rows")]
        text.append(f"| {line['question']} | {line['epsilon']} | {line['statistic']} | {' | '.join(shown)} |")
    halved = sum(line["rmse"]["ours"] <= line["rmse"]["groups"] / 2 for line in lines)
    ratios = [line["rmse"]["ours"] / line["rmse"]["groups"] for line in lines]
    worse = sum(ratio > MARGIN for ratio in ratios)
    within = sum(1 + 1e-9 < ratio <= MARGIN for ratio in ratios)
    text += [
        "",
        f"Of {len(lines)} lines: at most half of the usual plan's error in {halved}; worse than it by more than "
        f"{round(100 * (MARGIN - 1))} % in {worse}, by less in {within}.",
    ]
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--rows", type=int, default=500_000, help="of the generated log")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        log = write(Path(name) / "log.parquet", arguments.rows, AuditLog().rows)
        asked = list(questions(arguments.data, log))
        done = stack.enter_context(steps("accuracy", len(asked)))
        for number, question in enumerate(asked):
            folder = Path(name) / str(number)
            folder.mkdir()
            rows = table(question, folder)
            truth = rows.grouped(np.ones(len(rows.unit)))
            every = list(limited(rows, question, folder))
            for epsilon in EPSILONS:
                found = best(every, truth, question, float(epsilon))
                for statistic in STATISTICS:
                    line = {"question": question.name, "epsilon": epsilon, "statistic": statistic}
                    line["rmse"] = {plan: found[plan][statistic][0] for plan in found}
                    line["limits"] = {plan: found[plan][statistic][1] for plan in found}
                    lines.append(line)
            done(question.name)
    print(markdown(lines))
    if arguments.json:
        arguments.json.write_text(json.dumps(lines, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
