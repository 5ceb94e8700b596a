"""What n queries lose together that all cost the same epsilon, exactly: the composed privacy loss distribution of n
randomised responses.

Randomised response is the worst of all epsilon-DP mechanisms: whatever an epsilon-DP mechanism shows is a function of
one bit shown by it (Kairouz, Oh and Viswanath 2015, theorem 3.2), so n of them, also when each is chosen by the
answers of those before, are dominated by n independent bits. But epsilon and n must be fixed beforehand: checked after
each query whose *epsilon* was chosen by the answers, the composed distribution promises too
little (`docs/accounting.md`).

No pair of Laplace distributions serves here: a count whose sensitivity is one step of the noise *is* randomised
response, and a rule for all queries of one epsilon must hold for that one.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from discreet.exact import EPSILON_STEP

__all__ = ["composed_epsilon"]

_DIGITS = 50
_AT = Context(prec=_DIGITS, rounding=ROUND_HALF_EVEN, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])
_SAFETY = Decimal(10) ** (-_DIGITS // 2)
# One operation errs by 5 * 10^-50 at most, relatively; n of them in a row (n below 10^15) by less than 10^-30. (Sums
# are of positive terms.) A margin of 10^-25 on the logarithm's argument covers that many times over.

_LARGE = Fraction(20)  # above it little is gained, and e^(2 epsilon) would eat the margin above

_TWO_PI = Decimal("6.2831853071795864769252867665590057683943387987502116419")

_SPREADS = 30  # standard deviations; what lies further out has a probability below 10^-190


@lru_cache(maxsize=1024)
def composed_epsilon(count: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least E such that `count` queries of `epsilon` are together (E, delta)-DP, rounded up to a multiple of 10^-12
    and at most count * epsilon.

    With q = e^-epsilon, k of n bits are wrong with probability P_k = C(n, k) q^k / (1 + q)^n, and the loss is then
    epsilon (n - 2k); under the neighbour the probability is Q_k = P_(n-k). Delta at E is the sum of (P_k - e^E Q_k)+.
    As losses fall with k, that is the largest of its partial sums A_k - e^E B_k; so E is right iff, for every k,
    E >= ln((A_k - delta) / B_k). This quotient grows with k while P_k / Q_k, the quotient of the next terms, is above
    it, and falls ever after: one walk up to its top.

    Args:
        count: n, at least 0.
        epsilon: of each, above 0.
        delta: of all, 0 or more.
    """
    most = count * epsilon
    if count == 0 or delta == 0 or epsilon > _LARGE:
        return most
    at = _AT
    q = at.exp(_decimal(-epsilon))
    whole = at.exp(at.multiply(Decimal(count), at.ln(at.add(Decimal(1), q))))  # (1 + q)^n
    allowed = at.multiply(_decimal(delta), whole)
    # Everything below is times (1 + q)^n. Start where the terms begin to matter.
    wrong = float(1 / (1 + at.exp(_decimal(epsilon))))
    start = max(0, int(count * wrong - _SPREADS * math.sqrt(count * wrong) - _SPREADS))
    choose = _choose(count, start)
    right = at.multiply(choose, at.exp(_decimal(-epsilon * start)))  # C(n, k) q^k
    flipped = at.multiply(choose, at.exp(_decimal(-epsilon * (count - start))))  # C(n, k) q^(n - k)
    growth = at.exp(_decimal(epsilon))
    sum_right, sum_flipped, best = Decimal(0), Decimal(0), Decimal("-Infinity")
    if start:
        # Up to `start` each term is at least `ratio` times the one before: they add up to a geometric series at most.
        ratio = at.divide(at.multiply(q, Decimal(count - start + 1)), Decimal(start))
        if ratio <= 1:
            return most
        sum_right = at.divide(right, at.subtract(ratio, Decimal(1)))
        if sum_right > allowed:  # the walk might have had to begin earlier
            return most
    for k in range(start, count + 1):
        sum_right, sum_flipped = at.add(sum_right, right), at.add(sum_flipped, flipped)
        quotient = at.divide(at.subtract(sum_right, allowed), sum_flipped)
        if quotient < best:
            break
        best = quotient
        if k == count:
            break
        step = at.divide(Decimal(count - k), Decimal(k + 1))
        right = at.multiply(right, at.multiply(step, q))
        flipped = at.multiply(flipped, at.multiply(step, growth))
    if best <= 1:
        return Fraction(0)
    total = at.add(at.ln(at.multiply(best, 1 + _SAFETY)), _SAFETY)
    return min(most, math.ceil(Fraction(total) / EPSILON_STEP) * EPSILON_STEP)


def _choose(n: int, k: int) -> Decimal:
    """C(n, k), to a relative 10^-30; k is at most n / 2."""
    if k < 1000:
        return _AT.plus(Decimal(math.comb(n, k)))
    return _AT.exp(_AT.subtract(_AT.subtract(_ln_factorial(n), _ln_factorial(k)), _ln_factorial(n - k)))


@lru_cache(maxsize=1024)
def _ln_factorial(n: int) -> Decimal:
    """ln n! for n >= 1000: Stirling's series, whose error is less than the first term left out, 691 / (360360 n^11)."""
    at, m = _AT, Decimal(n)
    ln_m = at.ln(m)
    total = at.subtract(at.multiply(m, ln_m), m)
    total = at.add(total, at.divide(at.add(ln_m, at.ln(_TWO_PI)), Decimal(2)))
    for power, (sign, below) in zip(
        (1, 3, 5, 7, 9), ((1, 12), (-1, 360), (1, 1260), (-1, 1680), (1, 1188)), strict=True
    ):
        total = at.add(total, at.divide(Decimal(sign), at.multiply(Decimal(below), at.power(m, Decimal(power)))))
    return total


def _decimal(x: Fraction) -> Decimal:
    return _AT.divide(Decimal(x.numerator), Decimal(x.denominator))
