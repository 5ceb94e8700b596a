"""The laws against scipy and against mpmath in the far tails; exact interval widths at their thresholds."""

from __future__ import annotations

import ast
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import discreet.laplace.distribution as module
from discreet.errors import UsageError
from discreet.laplace import DiscreteLaplace, Laplace

SCALES = [Fraction(1, 1000), Fraction(3, 10), 1, 2, 10, Fraction(201, 2), 12345.678, 2**20]
EXTREMES = [Fraction(1, 10**12), Fraction(1, 10**6), *SCALES, 2**45, 2**90, 2**128]


def mp(x: object) -> mpmath.mpf:
    exact = Fraction(x) if not isinstance(x, float) else Fraction(repr(x))
    return mpmath.mpf(exact.numerator) / exact.denominator


def test_it_does_not_know_the_sampler() -> None:
    tree = ast.parse(Path(module.__file__).read_text())
    names = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    names += [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    assert not [name for name in names if "sampler" in name or "filtered" in name or "exactly" in name]


@pytest.mark.parametrize("scale", [0.3, 1, 10, 100.5])
def test_discrete_agrees_with_scipy(scale: float) -> None:
    ours, theirs = DiscreteLaplace(scale), stats.dlaplace(1 / scale)
    k = np.arange(-60, 61)
    for name in ("pmf", "logpmf", "cdf"):
        np.testing.assert_allclose(getattr(ours, name)(k), getattr(theirs, name)(k), rtol=1e-11, err_msg=name)
    # scipy's own sf is 1 - cdf: right to 1e-16 only. The tails are compared with mpmath below.
    np.testing.assert_allclose(ours.sf(k), theirs.sf(k), rtol=1e-11, atol=1e-15)
    half = k + 0.5
    np.testing.assert_array_equal(ours.pmf(half), 0.0)
    np.testing.assert_allclose(ours.cdf(half), theirs.cdf(half), rtol=1e-11)
    p = np.linspace(0.001, 0.999, 777)
    np.testing.assert_array_equal(ours.ppf(p), theirs.ppf(p))
    np.testing.assert_array_equal(ours.isf(p), theirs.isf(p))
    assert ours.mean() == theirs.mean() == 0.0
    assert ours.var() == pytest.approx(theirs.var(), rel=1e-12)
    assert ours.std() == pytest.approx(theirs.std(), rel=1e-12)


@pytest.mark.parametrize(("scale", "loc"), [(0.3, 0), (1, -2.5), (10, 3), (2**40, 7)])
def test_real_agrees_with_scipy(scale: float, loc: float) -> None:
    ours, theirs = Laplace(scale, loc=loc), stats.laplace(loc=loc, scale=scale)
    x = loc + scale * np.linspace(-30, 30, 241)
    for name in ("pdf", "logpdf", "cdf", "sf"):
        np.testing.assert_allclose(getattr(ours, name)(x), getattr(theirs, name)(x), rtol=1e-12, err_msg=name)
    p = np.linspace(0.0, 1.0, 1001)
    for name in ("ppf", "isf"):
        np.testing.assert_allclose(getattr(ours, name)(p), getattr(theirs, name)(p), rtol=1e-12, atol=1e-15 * scale)
    assert ours.mean() == loc  # at scale 2^40 scipy itself says var() = 0
    assert ours.var() == pytest.approx(2 * scale**2)
    assert ours.std() == pytest.approx(math.sqrt(2) * scale)
    assert ours.interval(0.95) == pytest.approx(theirs.interval(0.95))
    assert ours.interval(0.05) == pytest.approx(theirs.interval(0.05))


@pytest.mark.parametrize("scale", EXTREMES, ids=str)
def test_discrete_far_tails_against_mpmath(scale: object) -> None:
    """Relative error 10^-12 out to probabilities of 10^-300 (the exponent, 700, carries the rounding of k / t)."""
    law = DiscreteLaplace(scale)  # type: ignore[arg-type]
    with mpmath.workdps(60):
        t = mp(scale)
        q = mpmath.exp(-1 / t)
        multiples = [0, 0.5, 1, 3, 30, 300, 650]
        ks = sorted({int(Fraction(m) * law.scale) + j for m in multiples for j in (0, 1, 2)} | {1, 2, 5})
        for k in ks:
            k = int(float(k))  # what a double holds
            expected = {
                "logpmf": (mpmath.log((1 - q) / (1 + q)) - k / t),
                "pmf": (1 - q) / (1 + q) * q**k,
                "sf": q ** (k + 1) / (1 + q),
            }
            for name, value in expected.items():
                got = float(getattr(law, name)(k))
                assert math.isclose(got, float(value), rel_tol=1e-12, abs_tol=1e-305), (name, k)
            assert math.isclose(float(law.cdf(-k - 1)), float(expected["sf"]), rel_tol=1e-12, abs_tol=1e-305)
            assert math.isclose(float(law.pmf(-k)), float(expected["pmf"]), rel_tol=1e-12, abs_tol=1e-305)
            assert math.isclose(float(law.cdf(k)), float(1 - expected["sf"]), rel_tol=1e-15)
        assert math.isclose(law.var(), float(2 * q / (1 - q) ** 2), rel_tol=1e-13, abs_tol=1e-305)
        assert math.isclose(law.var(), float(1 / (2 * mpmath.sinh(1 / (2 * t)) ** 2)), rel_tol=1e-13, abs_tol=1e-305)
        assert math.isclose(law.std(), float(mpmath.sqrt(2 * q) / (1 - q)), rel_tol=1e-13, abs_tol=1e-305)


@pytest.mark.parametrize("scale", EXTREMES, ids=str)
def test_real_far_tails_against_mpmath(scale: object) -> None:
    law = Laplace(scale)  # type: ignore[arg-type]
    with mpmath.workdps(60):
        b = mp(scale)
        for multiple in (0.0, 0.1, 1.0, 37.0, 300.0, 690.0):
            x = multiple * float(law.scale)
            tail = mpmath.exp(-mpmath.mpf(x) / b)
            assert math.isclose(float(law.sf(x)), float(tail / 2), rel_tol=1e-12)
            assert math.isclose(float(law.cdf(-x)), float(tail / 2), rel_tol=1e-12)
            assert math.isclose(float(law.pdf(-x)), float(tail / (2 * b)), rel_tol=1e-12)
            assert math.isclose(float(law.logpdf(x)), float(-x / b - mpmath.log(2 * b)), rel_tol=1e-13)
        for p in (1e-300, 1e-20, 0.01, 0.3):
            assert math.isclose(float(law.isf(p)), float(-b * mpmath.log(2 * mpmath.mpf(p))), rel_tol=1e-13)
            assert float(law.ppf(p)) == -float(law.isf(p))


@pytest.mark.parametrize("scale", [0.3, 1, 10, 100.5, 12345.678], ids=str)
def test_quantiles_invert_the_distribution(scale: float) -> None:
    """ppf(p) is the smallest k with cdf(k) >= p, isf(p) the smallest with sf(k) <= p, wherever doubles tell."""
    law = DiscreteLaplace(scale)
    k = np.unique(np.r_[np.arange(-40.0, 41.0), np.round(scale * np.linspace(-30, 300, 200))])
    tail = k[k >= 0]
    np.testing.assert_array_equal(law.isf(law.sf(tail)), tail)
    np.testing.assert_array_equal(law.ppf(law.cdf(-tail - 1)), -tail - 1)
    p = np.r_[np.logspace(-300, -0.01, 500), 0.5, 1 - np.logspace(-12, -0.4, 100)]
    for quantile, holds in (
        (law.ppf(p), lambda k: law.cdf(k) >= p),
        (law.isf(p), lambda k: law.sf(k) <= p),
    ):
        assert holds(quantile).all()
        assert not holds(quantile - 1).any()


def test_quantiles_at_the_ends_and_beyond() -> None:
    for law in (DiscreteLaplace(10), Laplace(10)):
        assert law.ppf([0.0, 1.0]).tolist() == [-math.inf, math.inf]  # type: ignore[union-attr]
        assert law.isf([0.0, 1.0]).tolist() == [math.inf, -math.inf]  # type: ignore[union-attr]
        assert np.isnan(law.ppf([-0.1, 1.1, math.nan])).all()
        assert np.isnan(law.isf([-0.1, 1.1, math.nan])).all()
        assert law.cdf([-math.inf, math.inf]).tolist() == [0.0, 1.0]  # type: ignore[union-attr]
        assert law.sf([-math.inf, math.inf]).tolist() == [1.0, 0.0]  # type: ignore[union-attr]
        assert np.isnan(law.cdf(math.nan))
    assert np.isnan(DiscreteLaplace(10).pmf(math.nan))
    assert DiscreteLaplace(1).ppf(0.5) == 0.0
    assert DiscreteLaplace(2**128).isf(0.25) == pytest.approx(2.0**128 * math.log(2))


def test_the_masses_add_up_to_the_distribution() -> None:
    law = DiscreteLaplace(3)
    k = np.arange(-1000, 1001)
    np.testing.assert_allclose(np.cumsum(law.pmf(k))[200:], law.cdf(k)[200:], rtol=1e-12)
    assert law.pmf(k).sum() == pytest.approx(1.0, abs=1e-14)
    assert (law.pmf(k) * k**2).sum() == pytest.approx(law.var())


def test_numbers_in_numbers_out_and_arrays_keep_their_shape() -> None:
    for law in (DiscreteLaplace(10), Laplace(10)):
        assert isinstance(law.cdf(3), float)
        assert law.cdf(np.zeros((2, 3))).shape == (2, 3)
        assert law.ppf(np.full((2, 1), 0.3)).shape == (2, 1)
    assert isinstance(DiscreteLaplace(10).pmf(3), float)
    assert DiscreteLaplace(2**100).sf(2**101) == pytest.approx(math.exp(-2) / 2)  # beyond int64


def tail(scale: Fraction, k: int) -> mpmath.mpf:
    """P(|X| > k)."""
    q = mpmath.exp(-1 / mp(scale))
    return 2 * q ** (k + 1) / (1 + q)


@pytest.mark.parametrize("scale", EXTREMES, ids=str)
def test_half_width_is_the_smallest(scale: object) -> None:
    law = DiscreteLaplace(scale)  # type: ignore[arg-type]
    with mpmath.workdps(120):
        for confidence in ("0.000001", "0.01", "0.5", "0.9", "0.95", "0.99", "0.999999", "0." + "9" * 50):
            k = law.half_width(confidence)
            rest = 1 - mp(Fraction(confidence))
            assert k >= 0
            assert tail(law.scale, k) <= rest
            assert k == 0 or tail(law.scale, k - 1) > rest
            assert law.interval(confidence) == (-k, k)


@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(10), Fraction(2**45), Fraction(2**128)], ids=str)
def test_half_width_is_decided_where_doubles_cannot(scale: Fraction) -> None:
    """A confidence 10^-150 to either side of a threshold moves the answer by exactly one."""
    law = DiscreteLaplace(scale)
    with mpmath.workdps(400):
        for k in (1, 2, int(2 * scale) + 3):
            nearly = Fraction(int(mpmath.floor(tail(scale, k) * mpmath.mpf(10) ** 150)), 10**150)
            assert law.half_width(1 - nearly) == k + 1  # the tail beyond k is a little above 1 - confidence
            assert law.half_width(1 - nearly - Fraction(1, 10**150)) == k


def test_tail_quantile_gives_the_threshold_for_unknown_groups() -> None:
    """Epsilon 0.01, l = 100, delta 10^-12 (design, section 6): the smallest k is 315,431. In doubles
    1 - (1 - delta)^(1/l) comes out as 9.992e-15 for 1.0000e-14, and k as 315,439."""
    with mpmath.workdps(60):
        p = 1 - (1 - mpmath.mpf(10) ** -12) ** (mpmath.mpf(1) / 100)
        below = Fraction(int(mpmath.floor(p * mpmath.mpf(10) ** 50)), 10**50)
        k = DiscreteLaplace(10_000).tail_quantile(below)
        q = mpmath.exp(-mpmath.mpf(1) / 10_000)
        assert q**k / (1 + q) <= p < q ** (k - 1) / (1 + q)
    assert k == 315_431
    doubles = 1.0 - (1.0 - 1e-12) ** 0.01
    assert math.ceil(-10_000 * (math.log(doubles) + math.log1p(math.exp(-1e-4)))) == 315_439
    assert DiscreteLaplace(10).tail_quantile(0.999) == 1
    for wrong in (0, 1, -1, 2, math.nan, True, "x"):
        with pytest.raises(UsageError):
            DiscreteLaplace(10).tail_quantile(wrong)


@given(st.fractions(min_value=Fraction(1, 1000), max_value=10**6), st.integers(1, 10**9 - 1))
def test_half_width_agrees_with_the_tail(scale: Fraction, parts: int) -> None:
    confidence = Fraction(parts, 10**9)
    law = DiscreteLaplace(scale)
    k = law.half_width(confidence)
    with mpmath.workdps(60):
        assert tail(scale, k) <= mp(1 - confidence)
        assert k == 0 or tail(scale, k - 1) > mp(1 - confidence)


@pytest.mark.parametrize("make", [DiscreteLaplace, Laplace])
def test_scales_out_of_range_are_refused_by_name(make: type) -> None:
    for wrong in (0, -1, math.nan, math.inf, True, "ten", None, 9e-13, 2**128 + 1, Decimal("NaN"), [1]):
        with pytest.raises(UsageError, match=r"scale.*10\^-12.*2\^128"):
            make(wrong)
    assert make(0.1).scale == make("0.1").scale == make(Decimal("0.1")).scale == Fraction(1, 10)


def test_confidences_and_centres_out_of_range_are_refused() -> None:
    for wrong in (0, 1, -0.1, 1.1, math.nan, True):
        for law in (DiscreteLaplace(1), Laplace(1)):
            with pytest.raises(UsageError, match="confidence"):
                law.interval(wrong)
    for wrong in (math.nan, math.inf, "x", True, 10**400):
        with pytest.raises(UsageError, match="loc"):
            Laplace(1, loc=wrong)
    low, high = Laplace(1).interval(1 - Fraction(1, 10**400))  # 1 - confidence is no double
    assert (low, high) == pytest.approx((-400 * math.log(10), 400 * math.log(10)))


def test_values_are_frozen_equal_and_pickle() -> None:
    for law in (DiscreteLaplace("0.1"), Laplace(Fraction(1, 3), loc=2)):
        assert pickle.loads(pickle.dumps(law)) == law  # noqa: S301
        assert hash(pickle.loads(pickle.dumps(law))) == hash(law)  # noqa: S301
        with pytest.raises(AttributeError):
            law.scale = Fraction(1)  # type: ignore[misc]
