"""Many noisy answers of one plan over the same exact totals, to measure intervals by."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.dataset import Dataset
from discreet.engines.duckdb import DuckDBEngine
from discreet.entropy import SystemEntropy
from discreet.estimators import estimate_output
from discreet.laplace.limbs import Int128Array
from discreet.plan import Plan
from discreet.relational import compile_plan
from discreet.release import add_noise


@dataclass(frozen=True)
class Runs:
    """Noisy values of one output, with their intervals, over many runs."""

    values: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def coverage(self, truth: float) -> float:
        """How many of the intervals hold the truth."""
        slack = 1e-9 * max(1.0, abs(truth))
        return float(np.mean((self.low <= truth + slack) & (truth - slack <= self.high)))

    def relative_width(self, level: float = 0.95) -> float:
        """The mean width of the intervals over the width of the central `level` of the values."""
        tail = (1.0 - level) / 2.0
        ends = np.quantile(self.values, [tail, 1.0 - tail])
        return float(np.mean(self.high - self.low) / (ends[1] - ends[0]))


def exact_totals(data: Dataset, plan: Plan, frame: object = None) -> tuple[Int128Array, ...]:
    """The private totals, as the engine gives them."""
    return DuckDBEngine(data.registration, frame).run(compile_plan(plan))


def runs_of(
    plan: Plan, totals: tuple[Int128Array, ...], runs: int, *, noise: Fraction = Fraction(1)
) -> dict[str, Runs]:
    """`runs` noisy answers of a plan of one group, at 95 %: the group is repeated, so that one call draws all noise.

    `noise` other than 1 draws noise of that many times the scale that the plan says: a wrong implementation.
    """
    assert plan.groups == 1
    repeated = tuple(Int128Array(np.tile(total.high, runs), np.tile(total.low, runs)) for total in totals)
    drawn = tuple(replace(m, epsilon=m.epsilon / noise) for m in plan.measurements)
    noisy = add_noise(drawn, repeated, SystemEntropy())
    found = {}
    for output in plan.outputs:
        estimate = estimate_output(output, plan.measurements, noisy, Fraction(95, 100))
        found[output.name] = Runs(
            *(np.array(x, dtype=np.float64) for x in (estimate.values, estimate.low, estimate.high))
        )
    return found
