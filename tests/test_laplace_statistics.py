"""Fresh samples against the law: each check with its false-alarm rate and its power, and each run on samplers
made wrong both ways, which it must reject.

False alarms. A right sampler fails a check with probability at most 1e-9 (`ALARM`); about sixty are made in a
run, so a red run by chance is a matter of 1e-7. Nothing is retried. Where the statistic is nearly normal the
limit is 6.3 standard errors: the normal tail there is 3e-10, which leaves a factor 3 for the skewness of a
sum of 10^6 terms (it multiplies the tail by about exp(skew z^3 / 6), at most 1.4 here).

Power. A scale that is 2 % off is missed with probability below 1e-9; `test_the_power_is_what_is_claimed`
computes that from n.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from discreet.entropy import SystemEntropy
from discreet.laplace import DiscreteLaplace, Laplace, sample_discrete_laplace, sample_laplace
from discreet.laplace.sampler import draw, draw_limbs

ALARM = 1e-9
LIMIT = 6.3
N = 1_000_000
BINS = 48

SCALES = [
    Fraction(3, 10),
    Fraction(1),
    Fraction(10),
    Fraction(201, 2),
    Fraction(12345678, 1000),
    Fraction(2**20),
    2**20 + Fraction(1, 3),
    Fraction(2**45),
    Fraction(2**90),
    Fraction(2**128),
]


def draws(scale: Fraction, count: int = N) -> NDArray[np.float64]:
    """Fresh draws as doubles, by the limbs where the result is wide (at 2^128, where limbs wrap, by Python ints)."""
    if scale > 2**120:
        return draw(scale, count, SystemEntropy()).astype(np.float64)
    limbs = draw_limbs(scale, count, SystemEntropy())
    if limbs.fits_int64():
        return limbs.to_int64().astype(np.float64)
    return limbs.high * 2.0**64 + limbs.low


# -- the checks: each gives the reasons to reject, none for a right sampler -------------------------------


def magnitude_score(x: NDArray[np.float64], scale: Fraction) -> float:
    """How many standard errors mean |X| is above E|X| = 2 q / (1 - q^2) = 1 / sinh(1 / t)."""
    q, rest = math.exp(-1 / scale), -math.expm1(-1 / scale)
    expected = 2 * q / (rest * (1 + q))
    variance = 2 * q / rest**2 - expected**2
    return (np.abs(x).mean() - expected) / math.sqrt(variance / len(x))


def sign_score(x: NDArray[np.float64]) -> float:
    """How many standard errors the positive draws are above half of those that are not 0."""
    positive, negative = np.count_nonzero(x > 0), np.count_nonzero(x < 0)
    return (positive - negative) / math.sqrt(positive + negative)


def edges(scale: Fraction) -> NDArray[np.float64]:
    """Integers that cut the law into at most `BINS` bins of nearly equal probability, none below 1e-3."""
    law = DiscreteLaplace(scale)
    cuts = np.unique(law.ppf(np.arange(1, BINS) / BINS))
    while (low := np.diff(law.cdf(np.r_[-np.inf, cuts, np.inf]))).min() < 1e-3:
        cuts = np.delete(cuts, min(int(low.argmin()), len(cuts) - 1))
    return cuts


def probabilities(scale: Fraction, cuts: NDArray[np.float64]) -> NDArray[np.float64]:
    """P of (-inf, c1], (c1, c2], ..., (cn, inf)."""
    return np.diff(np.r_[0.0, DiscreteLaplace(scale).cdf(cuts), 1.0])


def bins_p_value(x: NDArray[np.float64], scale: Fraction) -> float:
    """Pearson's chi-square of binned draws. Each bin expects 1000 or more."""
    cuts = edges(scale)
    counts = np.bincount(np.searchsorted(cuts, x), minlength=len(cuts) + 1)
    return float(stats.chisquare(counts, probabilities(scale, cuts) * len(x)).pvalue)


def reasons(x: NDArray[np.float64], scale: Fraction) -> list[str]:
    """Which checks reject these draws for this scale."""
    found = []
    if not abs(magnitude_score(x, scale)) <= LIMIT:
        found.append("magnitude")
    if not abs(sign_score(x)) <= LIMIT:
        found.append("sign")
    if not bins_p_value(x, scale) >= ALARM:
        found.append("bins")
    return found


# -- the right sampler, and samplers made wrong ------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_sampler_has_the_law(scale: Fraction) -> None:
    assert reasons(draws(scale), scale) == []


@pytest.mark.parametrize("scale", SCALES, ids=str)
@pytest.mark.parametrize("off", [Fraction(98, 100), Fraction(102, 100)], ids=["2 % low", "2 % high"])
def test_a_scale_two_percent_off_is_rejected(scale: Fraction, off: Fraction) -> None:
    """Power: see `test_the_power_is_what_is_claimed`. Both checks of the scale must see it."""
    wrong = draws(min(scale * off, Fraction(2**128)))
    assumed = scale if scale * off <= 2**128 else scale / off
    assert {"magnitude", "bins"} <= set(reasons(wrong, assumed))


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_the_power_is_what_is_claimed(scale: Fraction) -> None:
    """P(a 2 % error is missed) from the normal law of mean |X| and the noncentral chi-square of the bins."""
    for off in (Fraction(98, 100), Fraction(102, 100)):
        right, wrong = DiscreteLaplace(scale), DiscreteLaplace(min(scale * off, Fraction(2**128)))
        if scale * off > 2**128:
            right = DiscreteLaplace(scale / off)
        mean = [1 / math.sinh(float(1 / law.scale)) for law in (right, wrong)]
        error = [math.sqrt((law.var() - m**2) / N) for law, m in zip((right, wrong), mean, strict=True)]
        distance = abs(mean[1] - mean[0]) - LIMIT * error[0]
        assert stats.norm.sf(distance / error[1]) < ALARM

        cuts = edges(right.scale)
        p, p_wrong = probabilities(right.scale, cuts), probabilities(wrong.scale, cuts)
        critical = stats.chi2.isf(ALARM, len(cuts))
        assert stats.ncx2.cdf(critical, len(cuts), N * float(((p_wrong - p) ** 2 / p).sum())) < ALARM


@pytest.mark.parametrize("up", [True, False])
def test_a_sign_one_percent_off_is_rejected(up: bool) -> None:
    """P(plus) = 0.51 or 0.49 is 20 standard errors away at n = 10^6: missed with probability below 1e-40."""
    x = np.abs(draws(Fraction(2**45)))
    minus = np.random.default_rng().random(N) < (0.49 if up else 0.51)
    assert "sign" in reasons(np.where(minus, -x, x), Fraction(2**45))


@pytest.mark.parametrize("step", [1, -1])
def test_magnitudes_one_off_are_rejected(step: int) -> None:
    """`>` where `>=` is right moves |X| by one: at scale 10 that is 100 standard errors."""
    x = draws(Fraction(10))
    wrong = np.sign(x) * np.maximum(np.abs(x) + step, 0)
    assert {"magnitude", "bins"} <= set(reasons(wrong, Fraction(10)))


def low_bits_p_value(low: NDArray[np.int64], bits: int) -> float:
    """Chi-square of uniformity of X mod 2^bits. For t >= 2^40 the law's own departure is below 2^-30."""
    counts = np.bincount(low & (2**bits - 1), minlength=2**bits)
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize("exponent", [40, 45, 64, 84, 90, 108])
def test_low_bits_are_uniform(exponent: int) -> None:
    """Large scales: the 8 lowest bits of X, and 8 in the middle of L, false alarm 1e-9 each."""
    limbs = draw_limbs(Fraction(2) ** exponent, 200_000, SystemEntropy())
    low = limbs.low.view(np.int64)
    assert low_bits_p_value(low, 8) >= ALARM
    assert low_bits_p_value(low >> 9, 8) >= ALARM
    assert low_bits_p_value(low & ~1, 8) < ALARM  # a lowest bit that is stuck is seen
    assert low_bits_p_value(low | 1, 8) < ALARM


def neighbours_score(x: NDArray[np.float64]) -> float:
    """Lag-one correlation of the signs and of whether |X| is above its median, in standard errors (the larger)."""
    size = np.abs(x)
    scores = []
    for s in (np.where(x > 0, 1.0, -1.0), np.where(size > np.median(size), 1.0, -1.0)):
        scores.append(abs(float(np.corrcoef(s[1:], s[:-1])[0, 1])) * math.sqrt(len(x)))
    return max(scores)


@pytest.mark.parametrize("scale", [Fraction(10), Fraction(2**45), Fraction(2**90)], ids=str)
def test_neighbouring_draws_are_independent(scale: Fraction) -> None:
    """... and a sampler that repeats one draw in seventy (14 standard errors) is seen."""
    x = draws(scale)
    assert neighbours_score(x) <= LIMIT
    again = x.copy()
    again[100::70] = again[99:-1:70]
    assert neighbours_score(again) > LIMIT


def test_the_smallest_scales_give_zero() -> None:
    """P(X != 0) is below e^-999 at 1/1000: a draw that is not 0 is a fault."""
    for scale in (Fraction(1, 10**12), Fraction(1, 10**6), Fraction(1, 1000)):
        assert not draws(scale, 100_000).any()
        assert DiscreteLaplace(scale).sf(0) == 0.0 or DiscreteLaplace(scale).sf(0) < 1e-300


# -- R64 of the field reports ------------------------------------------------------------------------------


def field_report(x: NDArray[np.float64]) -> list[str]:
    """A million draws at scale 10: mean |X| 9.983 +- 0.064, deviation 14.136 +- 0.100, mean 0 +- 0.090.

    These are 6.3 standard errors (0.01001, 0.0158, 0.01414): 1e-9 false alarms. The report's own limits,
    0.05, 0.08 and 0.07, would fail about once in a million runs."""
    found = []
    if not abs(np.abs(x).mean() - 9.98335) <= 0.064:
        found.append("mean of |noise|")
    if not abs(x.std() - 14.13625) <= 0.100:
        found.append("deviation")
    if not abs(x.mean()) <= 0.090:
        found.append("mean")
    return found


def test_field_report_64_scale_is_not_the_deviation() -> None:
    x = sample_discrete_laplace(10, 1_000_000)
    assert field_report(x) == []
    assert np.isfinite(sample_laplace(10, 1_000_000)).all()
    assert "mean" in field_report(x + 1)
    assert {"mean of |noise|", "deviation"} <= set(field_report(sample_discrete_laplace(9.8, 1_000_000)))
    assert {"mean of |noise|", "deviation"} <= set(field_report(sample_discrete_laplace(10.2, 1_000_000)))
    assert "deviation" in field_report(sample_discrete_laplace(10 / math.sqrt(2), 1_000_000))


# -- the real law, and NumPy's
# --------------------------------------------------------------------------------


def kolmogorov_distance(x: NDArray[np.float64], law: Laplace) -> float:
    """sup |F_n - F|."""
    f = law.cdf(np.sort(x))
    n = len(x)
    steps = np.arange(n + 1) / n
    return float(max((f - steps[:-1]).max(), (steps[1:] - f).max()))


KS_N = 4_000_000
KS_LIMIT = math.sqrt(math.log(2 / ALARM) / (2 * KS_N)) + 2.0**-41
"""The Dvoretzky-Kiefer-Wolfowitz bound with Massart's constant, plus what the grid may add: 0.00164."""


def test_sample_laplace_has_the_real_law_at_the_grids_precision() -> None:
    """Kolmogorov-Smirnov with a bound that holds for every n. A scale 2 % off moves F by 0.0036: it is missed
    only if the sample strays by 0.0020 the other way, with probability at most 2 exp(-2 n 0.0020^2) =
    3e-14."""
    assert kolmogorov_distance(sample_laplace(3, KS_N, loc=5), Laplace(3, loc=5)) <= KS_LIMIT
    assert kolmogorov_distance(sample_laplace(0.98, KS_N), Laplace(1)) > KS_LIMIT
    assert kolmogorov_distance(sample_laplace(1.02, KS_N), Laplace(1)) > KS_LIMIT


def two_sample_p_value(x: NDArray[np.float64], y: NDArray[np.float64], scale: float) -> float:
    """Chi-square of homogeneity over 48 bins of equal probability. A 2 % difference has a noncentrality of
    about 200 per 10^6: at 4 * 10^6 the statistic is 800 +- 58 above its mean where 90 is the limit."""
    cuts = Laplace(scale).ppf(np.arange(1, BINS) / BINS)
    table = [np.bincount(np.searchsorted(cuts, z), minlength=BINS) for z in (x, y)]
    return float(stats.chi2_contingency(table).pvalue)


def test_sample_laplace_is_equal_in_law_to_numpys() -> None:
    theirs = np.random.default_rng().laplace(0, 7, KS_N)
    assert two_sample_p_value(sample_laplace(7, KS_N), theirs, 7) >= ALARM
    assert two_sample_p_value(sample_laplace(7 * 0.98, KS_N), theirs, 7) < ALARM
    assert two_sample_p_value(sample_laplace(7 * 1.02, KS_N), theirs, 7) < ALARM


@pytest.mark.parametrize("scale", [1e-12, 0.3, 1, 3, 2**64, 2**128])
def test_sample_laplace_stays_on_its_grid(scale: float) -> None:
    grid = 2.0 ** (math.floor(math.log2(scale)) - 40)
    x = sample_laplace(scale, 1000)
    assert np.array_equal(x, np.round(x / grid) * grid)
    odd = (x / grid) % 2 == 1
    assert 300 < odd.sum() < 700  # the grid is not coarser: 12 standard errors
    assert scale * 2.0**-41 < grid <= scale * 2.0**-40
