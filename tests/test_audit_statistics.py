"""What the auditor certifies from runs: its bounds, what it sees, and what it would have seen."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.audit import events
from discreet.audit.binomial import at_least, lower_bound, upper_bound
from discreet.audit.replay import Trace
from discreet.audit.statistics import FAIL, attack
from discreet.laplace import sample_discrete_laplace
from discreet.laplace.limbs import Int128Array
from discreet.plan import Measurement, Plan, PlannedOutput, Unit
from discreet.privacy import PrivacyLoss
from discreet.schema import Registration, Schema
from discreet.selection import Selection, margin


@pytest.mark.parametrize("trials", [1, 7, 100, 3_000, 750_000])
@pytest.mark.parametrize("error", [0.025, 1e-7])
def test_bounds_are_those_of_clopper_and_pearson(trials, error):
    for k in sorted({0, 1, trials // 50, trials // 3, trials // 2, trials - 1, trials}):
        low = stats.beta.ppf(error, k, trials - k + 1) if k else 0.0
        high = stats.beta.ppf(1 - error, k + 1, trials - k) if k < trials else 1.0
        assert lower_bound(k, trials, error) == pytest.approx(low, rel=1e-7)
        assert upper_bound(k, trials, error) == pytest.approx(high, rel=1e-7)
    for p in (1e-6, 0.02, 0.5, 0.97):
        for k in {1, trials // 2, trials}:
            assert at_least(k, trials, p) == pytest.approx(stats.binom.sf(k - 1, trials, p), rel=1e-8, abs=1e-300)


def laplace(scale, runs, at=0):
    return {"x": (sample_discrete_laplace(scale, runs) + at).astype(float)}


def test_what_is_private_is_not_accused():
    """50 tests of a mechanism that reaches its claim, at an error of 1e-6 each: 5e-5 false alarms."""
    for _ in range(50):
        (found,) = events.examine(laplace(10, 20_000), laplace(10, 20_000, at=10), 0.0, [FAIL])
        assert found.bound <= 1.0


def test_most_of_the_claim_is_certified():
    """At scale 10 and distance 10 epsilon is 1. With 300,000 runs to count, the likeliest event's bound has a standard
    deviation of 0.004 around 0.985 at 95 %: 0.9 is 20 of them away."""
    (found,) = events.examine(laplace(10, 600_000), laplace(10, 600_000, at=10), 0.0, [0.05])
    assert 0.9 < found.bound <= 1.0
    assert found.event is not None


@pytest.mark.parametrize(
    ("whole", "without"),
    [
        ({"x": np.zeros(4000)}, {"x": np.ones(4000)}),
        ({"x": np.full(4000, math.nan)}, {"x": np.ones(4000)}),
        ({"x": np.r_[np.full(2000, math.nan), np.zeros(2000)][np.arange(4000) % 2 * 2000]}, {"x": np.zeros(4000)}),
        ({"x": np.arange(4000) % 2 * 1.0, "y": np.zeros(4000)}, {"x": np.arange(4000) % 2 * 1.0, "y": np.ones(4000)}),
    ],
)
def test_gross_leaks_are_certified(whole, without):
    (found,) = events.examine(whole, without, 0.0, [FAIL])
    assert found.bound > 4


def test_a_delta_is_taken_off():
    """An event of probability 0.004 on one table alone is within a delta of 0.005, and beyond one of 0.001."""
    rng = np.random.default_rng(1)
    whole, without = {"x": (rng.random(400_000) < 0.004) * 1.0}, {"x": np.zeros(400_000)}
    assert events.examine(whole, without, 0.005, [FAIL])[0].bound == 0.0
    assert events.examine(whole, without, 0.001, [FAIL])[0].bound > 3


# --- of a plan -------------------------------------------------------------------------------------------


def one_count(scale_error=1, selection=None, units=None):
    """A plan that claims epsilon 1 for a count of sensitivity 4, and what a replay would give; the noise that it gets
    is too small by a factor."""
    m = Measurement("count", None, None, 1, 4, 4, Fraction(scale_error))
    plan = Plan(
        registration=Registration("audit:test", "duckdb", Schema(()), {}),
        unit=Unit("one row", ()),
        max_contributions=4,
        max_groups_contributed=4,
        where=None,
        keys=(),
        key_lists=(),
        measurements=(m,),
        outputs=(PlannedOutput("n", "count", (0,), "COUNT(*)", whole=True),),
        loss=PrivacyLoss(Fraction(1), Fraction(0) if selection is None else selection.delta),
        text="",
        selection=selection,
    )
    groups = ((),) if selection is not None else ()
    return plan, *(
        Trace(totals=(Int128Array.from_ints([n]),), units=dict(u), groups=groups)
        for n, u in ((100, (units or ({}, {}))[0]), (96, (units or ({}, {}))[1]))
    )


def run(plan, whole, without, **options):
    options = {"answers": 0, "power": False, **options}
    return attack(plan, whole, without, confidence=Fraction(95, 100), **options)


def test_an_honest_count_passes_and_its_power_is_what_it_says():
    """The factor that it names is then planted: 20 audits must fail, of which each may miss with probability 0.05;
    more than 8 misses have a probability of 1e-6."""
    found = run(*one_count(), runs=200_000, power=True)
    assert found.passed
    assert 0.9 < found.shown.bound <= 1
    assert found.factor is not None and found.factor <= 1.2
    wrong = one_count(Fraction(found.factor))
    missed = sum(run(*wrong, runs=200_000).passed for _ in range(20))
    assert missed <= 8


def test_a_halved_scale_is_told_by_the_runs_alone():
    found = run(*one_count(2), runs=40_000)
    assert not found.passed
    assert found.failing.bound > 1.5


def test_a_threshold_that_is_too_low_is_told_by_the_runs_alone(monkeypatch):
    """A single unit's group passes with a probability of delta at the right threshold, and of 0.0075 e at one that is
    one lower (epsilon 1 a group)."""
    delta = Fraction(75, 10_000)
    right = Selection(1, Fraction(1), delta, 1, margin(Fraction(1), 1, delta))
    units = ({("only me",): 1}, {})
    found = run(*one_count(selection=right, units=units), runs=400_000)
    assert found.passed
    low = Selection(1, Fraction(1), delta, 1, right.margin - 2)
    found = run(*one_count(selection=low, units=units), runs=400_000)
    assert not found.passed
    assert "only me" in str(found.failing.event) or "groups" in str(found.failing.event)
