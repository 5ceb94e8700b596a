"""Intervals: how often they hold the exact value, how wide they are, and the tails that they are made of.

Totals are made up, the engine is left out; the noise is the real one.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import discreet
from discreet.estimate import estimate as estimate_ahead
from discreet.estimators import estimate_output
from discreet.grid import WEIGHT
from discreet.intervals import pair_quantile, pair_tail
from discreet.laplace.distribution import DiscreteLaplace
from discreet.laplace.limbs import Int128Array
from noise_runs import runs_of

RUNS, LEAST, WIDEST = 6_000, 0.93, 3.0
"""Intervals that cover 95 % or more are seen to cover less than 93 % of 6,000 runs with a probability below 1e-11
(7.1 standard deviations of the binomial); ones that cover 91 % pass with a probability below 1e-7."""

ASKED = {
    "n": ("COUNT(*)", None),
    "who": ("COUNT(DISTINCT u)", None),
    "s": ("SUM(x)", (-5, 40)),
    "fs": ("SUM(f)", (-1, 3)),
    "m": ("AVG(x)", (-5, 40)),
    "sm": ("SUM(x), AVG(x)", (-5, 40)),
    "fsm": ("SUM(f), AVG(f)", (-1, 3)),
    "dsm": ("SUM(d), AVG(d)", ("1.98", "2.02")),  # few steps: noise of one step or less shows its discreteness
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    frame = pd.DataFrame({"u": ["a"], "x": [1], "f": [0.5], "d": [Decimal(2)]})
    folder = tmp_path_factory.mktemp("coverage")
    return {
        unit: discreet.open(
            frame,
            types={"d": "DECIMAL(4,2)"},
            name=f"t{unit}",
            **(
                {"privacy_unit": "u", "max_contributions": 4, "max_groups_contributed": 1}
                if unit
                else {"row_level": True}
            ),
            ledger=folder / "ledger.sqlite",
        )
        for unit in (True, False)
    }


def planned(opened, name, epsilon, *, unit):
    text, bounds = ASKED[name]
    column = name[0] if name[0] in "fd" else "x"
    sql = f"SELECT {', '.join(f'{call} AS c{i}' for i, call in enumerate(text.split(', ')))} FROM data"
    return opened[unit].plan(sql, epsilon=epsilon, bounds={column: tuple(map(Decimal, bounds))} if bounds else None)


def made_up(plan, rows, mean):
    """Totals of `rows` rows of that mean, and each output's exact value."""
    totals = []
    for m in plan.measurements:
        if m.statistic in ("count", "unit_count"):
            totals.append(rows * m.weight)
        else:
            step = m.grid.step
            centre = step * (m.grid.lowest + m.grid.highest) / 2 if m.statistic == "centred_sum" else 0
            totals.append(int(rows * (mean - centre) / m.unit_value))
            assert totals[-1] * m.unit_value == rows * (mean - centre)
    right = {"count": rows, "unit_count": rows, "sum": rows * mean, "sum_from_mean": rows * mean, "mean": mean}
    return tuple(Int128Array.from_ints([t]) for t in totals), {o.name: float(right[o.function]) for o in plan.outputs}


CASES = [
    (name, unit, epsilon)
    for name in ASKED
    for unit in (True, False)
    for epsilon in ("0.02", "1", "7.5", "31")
    if unit or name != "who"
]


@pytest.mark.parametrize(("name", "unit", "epsilon"), CASES)
def test_intervals_cover(opened, name, unit, epsilon):
    """At scales from far above the total to below one unit of it, where the noise is visibly discrete."""
    plan = planned(opened, name, epsilon, unit=unit)
    totals, right = made_up(plan, 3000, Fraction(2))
    for output, runs in runs_of(plan, totals, RUNS).items():
        assert runs.coverage(right[output]) >= LEAST, output
        grid = plan.measurements[0].grid
        slack = float(4 * max(1, abs(grid.lowest + grid.highest)) * grid.step if grid else 4)
        ends = np.quantile(runs.values, [0.025, 0.975])
        slack = slack / 3000 if output == "c0" and name == "m" else slack
        assert np.mean(runs.high - runs.low) <= WIDEST * (ends[1] - ends[0]) + slack, output


@pytest.mark.parametrize("epsilon", ["0.9", "2", "4", "6", "9", "20"])
def test_a_sum_beside_a_mean_allows_for_whole_noise(opened, epsilon):
    """Exactly: the probability that discrete noise of few units stays within the interval, by adding it up.

    The continuous law alone gave 93.3 % at epsilon 6.
    """
    plan = planned(opened, "dsm", epsilon, unit=False)
    totals, _ = made_up(plan, 3000, Fraction(2))
    estimate = estimate_output(plan.outputs[0], plan.measurements, totals, Fraction(95, 100))
    width = estimate.high[0] - estimate.values[0]
    assert width == pytest.approx(told_beforehand(plan))
    first, second = plan.measurements
    k = np.arange(-400, 401)
    weights = np.outer(DiscreteLaplace(first.scale).pmf(k), DiscreteLaplace(second.scale).pmf(k))
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    error = np.abs(np.add.outer(k * float(first.unit_value), k * 2.0 * float(second.unit_value)))
    assert weights[error <= width + 1e-9].sum() >= 0.95


def told_beforehand(plan):
    """The half-width that `estimate` tells beforehand."""
    return estimate_ahead(plan, None, Fraction(95, 100)).statistics[0].half_width


@pytest.mark.parametrize("name", sorted(ASKED))
def test_the_check_rejects_intervals_that_are_too_short(opened, name):
    """Noise 1.3 times as large as the plan says: a 95 % interval then covers 90 % at most."""
    plan = planned(opened, name, "0.5", unit=True)
    totals, right = made_up(plan, 3000, Fraction(2))
    covered = [r.coverage(right[o]) for o, r in runs_of(plan, totals, RUNS, noise=Fraction(13, 10)).items()]
    assert min(covered) < LEAST


def test_means_of_few_rows(opened):
    """Where the noisy count may be near 0 or below, the interval is wide, never wrong."""
    for rows in (0, 1, 5, 40):
        for mean in (Fraction(-5), Fraction(3), Fraction(40)):
            plan = planned(opened, "m", "0.3", unit=True)
            totals, right = made_up(plan, rows, mean)
            for output, runs in runs_of(plan, totals, RUNS).items():
                assert rows == 0 or runs.coverage(right[output]) >= LEAST
                assert -5 <= runs.low.min() <= runs.values.min()
                assert runs.values.max() <= runs.high.max() <= 40


def test_r18_means_have_no_bias(opened):
    """10,000 rows at epsilon 1: the average of 6,000 releases is within 0.1 of the mean, far from the centre too.

    One release has a standard deviation of about 0.05, their average 0.0007.
    """
    plan = planned(opened, "m", "1", unit=True)
    for mean in (Fraction(-4), Fraction(17), Fraction(39)):
        totals, _ = made_up(plan, 10_000, mean)
        (runs,) = runs_of(plan, totals, RUNS).values()
        assert abs(runs.values.mean() - float(mean)) < 0.1


def test_weights_do_not_show_in_the_scale(opened):
    """The reported scale is in the answer's units: C / epsilon for a count, C B / epsilon for a sum."""
    plan = planned(opened, "n", 2, unit=True)
    assert [m.scale * m.unit_value for m in plan.measurements] == [2]
    plan = planned(opened, "s", 2, unit=True)
    assert [m.scale * m.unit_value for m in plan.measurements] == [4 * 40 / Fraction(2)]
    assert plan.measurements[0].weight == WEIGHT


# --- tails -----------------------------------------------------------------------------------------------


def exact_tail(z, a, b):
    """P(|X + Y| > z), by partial fractions at 80 digits."""
    with mpmath.workdps(80):
        z, a, b = mpmath.mpf(z), mpmath.mpf(a), mpmath.mpf(b)
        if b == 0:
            return mpmath.exp(-z / a)
        if a == b:
            return mpmath.exp(-z / a) * (1 + z / (2 * a))
        return (a**2 * mpmath.exp(-z / a) - b**2 * mpmath.exp(-z / b)) / (a**2 - b**2)


@settings(max_examples=500, deadline=None)
@given(a=st.floats(1e-9, 1e9), ratio=st.floats(0, 1), size=st.floats(0, 500))
@example(a=1.0, ratio=1.0, size=10.0)
@example(a=1.0, ratio=1.0 - 2**-53, size=10.0)
@example(a=3.0, ratio=1.0 - 1e-9, size=400.0)
@example(a=3.0, ratio=1.0 - 1e-4, size=1e-3)
@example(a=1e9, ratio=0.0, size=3.0)
@example(a=1.0, ratio=1e-300, size=3.0)
@example(a=1.0, ratio=0.999, size=0.0)
def test_the_tail_of_two_noises(a, ratio, size):
    b, z = a * ratio, a * size
    right = exact_tail(z, a, b)
    for found in (pair_tail(z, a, b), pair_tail(z, b, a)):
        assert abs(float(found) - right) <= right * (1e-13 + 1e-15 * size)


@pytest.mark.parametrize(("a", "b"), [(1.0, 0.5), (1.0, 1.0), (2.0, 0.01), (1.0, 0.999999)])
@pytest.mark.parametrize("z", [0.0, 0.3, 2.0, 12.0])
def test_the_tail_of_two_noises_by_integration(z, a, b):
    """The formula of the test above, against the integral of Y's density times X's tail."""

    def outside(y):
        upper = lambda t: mpmath.exp(-t / a) / 2 if t >= 0 else 1 - mpmath.exp(t / a) / 2  # noqa: E731
        return (upper(z - y) + upper(z + y)) * mpmath.exp(-abs(y) / b) / (2 * b)

    with mpmath.workdps(20):
        found = mpmath.quad(outside, [-60 * b, -z, 0, z, 60 * b] if z else [-60 * b, 0, 60 * b])
    assert float(found) == pytest.approx(float(exact_tail(z, a, b)), rel=1e-9)


@settings(max_examples=200, deadline=None)
@given(a=st.floats(1e-9, 1e9), ratio=st.floats(0, 1), confidence=st.floats(0.01, 1 - 1e-9))
def test_the_quantile_of_two_noises_inverts_the_tail(a, ratio, confidence):
    z = pair_quantile(a, a * ratio, confidence)
    assert float(exact_tail(z, a, a * ratio)) == pytest.approx(1 - confidence, rel=1e-9)
