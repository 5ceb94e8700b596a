"""Every figure that the chapter on the Laplace mechanism names, computed.

A figure on the page is followed by an invisible mark, ``4.22<!--= gaussian_sd(1) -->``, whose expression is evaluated
with the names of this module; `tests/test_figures.py` compares. The pictures take their values from here too.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from dp_accounting.pld import privacy_loss_distribution
from scipy import optimize, stats

from discreet.accounting.renyi import best_order, converted, laplace_divergence
from discreet.accounting.same_epsilon import composed_epsilon
from discreet.laplace import DiscreteLaplace, Laplace, LaplaceMechanism, textbook

__all__ = [
    "DiscreteLaplace",
    "Laplace",
    "LaplaceMechanism",
    "best_choice",
    "clipped_mean",
    "composed",
    "delivered_epsilon",
    "discrete_mean_size",
    "furthest",
    "gaussian_sd",
    "gaussian_wins_from",
    "laplace_sd",
    "laplace_tight_sd",
    "low_bits",
    "math",
    "outside",
    "renyi",
    "wrong_guess",
]


def outside(widths: float) -> float:
    """P(|X| > widths * b) of Laplace(0, b)."""
    return 2 * float(Laplace(1).sf(widths))


def laplace_sd(count: int, epsilon: float = 1) -> float:
    """The standard deviation of each of `count` counts of the same persons, by the L1 sensitivity alone."""
    return Laplace(LaplaceMechanism(count, epsilon).scale).std()


@cache
def laplace_tight_sd(count: int, epsilon: float = 1, delta: float = 1e-6) -> float:
    """The same with a delta: the least noise with which `count` independent Laplace mechanisms of sensitivity 1 are
    together (epsilon, delta)-DP, by their composed privacy loss distribution (dp-accounting)."""

    def excess(b: float) -> float:
        one = privacy_loss_distribution.from_laplace_mechanism(b, value_discretization_interval=1e-3)
        return one.self_compose(count).get_epsilon_for_delta(delta) - epsilon

    return Laplace(repr(optimize.brentq(excess, 0.5, count + 1, xtol=1e-4))).std()


@cache
def gaussian_sd(count: int, epsilon: float = 1, delta: float = 1e-6) -> float:
    """The least standard deviation of Gaussian noise on `count` counts of the same persons, whose L2 sensitivity is
    sqrt(count) (Balle and Wang 2018, theorem 8: the analytic Gaussian mechanism)."""
    moved = math.sqrt(count)

    def excess(sd: float) -> float:
        a, c = moved / (2 * sd), epsilon * sd / moved
        return float(stats.norm.cdf(a - c) - math.exp(epsilon) * stats.norm.cdf(-a - c)) - delta

    return float(optimize.brentq(excess, 0.1 * moved, 100 * moved))


def gaussian_wins_from() -> int:
    """The least number of counts for which the Gaussian needs less noise than Laplace, tightly composed."""
    return next(count for count in range(1, 100) if gaussian_sd(count) < laplace_tight_sd(count))


def delivered_epsilon(moved: float, scale: float) -> float:
    """What noise of a scale really promises if one person moves the answer by `moved`."""
    return float(LaplaceMechanism(1, repr(1 / scale)).loss(repr(moved)).epsilon)


def wrong_guess(moved: float, scale: float) -> float:
    """How often an observer errs who guesses from the noisy answer which of two answers, `moved` apart, is behind it,
    both being equally likely: the noise must reach beyond the middle."""
    return float(Laplace(scale).sf(moved / 2))


def furthest() -> float:
    """The largest finite |noise| of the formula in doubles, for b = 1: at the smallest u above 0."""
    smallest = 2.0**-53
    return abs(math.log(1 - 2 * abs(smallest - 0.5)))


def clipped_mean(scale: int) -> float:
    """The mean of max(0, noise), an empty group's count that is cut off at 0: the sum of P(X >= k) over k >= 1."""
    law = DiscreteLaplace(scale)
    return float(law.sf(range(100 * scale)).sum())


def low_bits() -> textbook.LowBits:
    """The shares of the formula's outputs that name the answer behind them."""
    return textbook.fault_in_low_bits()


def discrete_mean_size(scale: int) -> float:
    """The mean of |X|: the sum of P(|X| >= k) over k >= 1."""
    return 2 * clipped_mean(scale)


def composed(count: int, epsilon: str, delta: str = "0.000001") -> float:
    """What `count` queries of one epsilon are worth together, by the house's own accounting."""
    return float(composed_epsilon(count, Fraction(epsilon), Fraction(delta)))


def renyi(count: int, epsilon: str, budget: str, delta: str = "0.000001") -> float:
    """The same by the Renyi filter, at the order that serves a budget."""
    order = best_order(Fraction(budget), Fraction(delta))
    return float(count * laplace_divergence(order, 1, Fraction(epsilon)) + converted(order, Fraction(delta)))


def best_choice(scores: tuple[int, ...], epsilon: float) -> float:
    """How often the exponential mechanism takes the best of several, whose scores one person moves by at most 1."""
    weights = [math.exp(epsilon * (score - max(scores)) / 2) for score in scores]
    return max(weights) / sum(weights)
