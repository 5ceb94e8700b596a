"""Directed bounds hold the true value, in any thread's decimal context."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.laplace.bounds import Bounds, Directed

fractions = st.fractions(min_value=Fraction(1, 10**15), max_value=10**40)
digits = st.integers(5, 60)


def holds(bounds: Bounds, true: Fraction, ulps: int, n: int) -> bool:
    """Whether the true value is inside, and the interval no wider than `ulps` units of the nth digit."""
    low, high = Fraction(bounds.low), Fraction(bounds.high)
    return low <= true <= high and high - low <= ulps * abs(true) * Fraction(10, 10**n)


def mp(x: Fraction | Decimal) -> mpmath.mpf:
    exact = Fraction(x)
    return mpmath.mpf(exact.numerator) / exact.denominator


@given(fractions, fractions, digits)
def test_every_operation_holds_the_true_value(x: Fraction, y: Fraction, n: int) -> None:
    at = Directed(n)
    a, b = at.of(x), at.of(y)
    assert holds(a, x, 2, n)
    assert holds(at.add(a, b), x + y, 6, n)
    assert holds(at.times(a, b), x * y, 9, n)
    assert holds(at.times(a, at.negate(b)), -x * y, 9, n)
    difference = at.subtract(a, b)
    assert Fraction(difference.low) <= x - y <= Fraction(difference.high)
    with mpmath.workdps(100):
        ln = at.ln(a)
        if a.low == 1:  # x = 1 or nearly: the bound below 0 has an exponent that no Fraction can hold
            assert ln.low < 0 < ln.high
        else:
            assert mp(ln.low) <= mpmath.log(mp(x)) <= mp(ln.high)
        exp = at.exp(at.of(-x % 700 - 700))
        assert mp(exp.low) <= mpmath.exp(mp(-x % 700 - 700)) <= mp(exp.high)


def test_exponents_far_below_the_default_range() -> None:
    """exp(-10^12) = 5.6e-434294481904: neither 0 nor an error; and the next logarithm leads back."""
    at = Directed(40)
    q = at.exp(at.of(Fraction(-(10**12))))
    assert Decimal(0) < q.low < q.high
    back = at.ln(q)
    assert back.low <= -(10**12) <= back.high
    assert back.high - back.low < Decimal("1e-20")


def test_nothing_depends_on_the_current_context() -> None:
    """Unary minus would round to the context's digits; a trapping, three-digit context changes nothing here."""
    at = Directed(50)
    before = at.negate(at.ln(at.of(Fraction(2, 3))))
    traps = [decimal.Inexact, decimal.Rounded, decimal.Overflow, decimal.Underflow]
    with decimal.localcontext(decimal.Context(prec=3, Emin=-5, Emax=5, traps=traps)):
        assert at.negate(at.ln(at.of(Fraction(2, 3)))) == before
        assert len(before.low.as_tuple().digits) == 50


@pytest.mark.parametrize(
    ("low", "high", "floor", "ceil"),
    [
        ("2.1", "2.9", 2, 3),
        ("1.9", "2.1", None, None),
        ("2", "2", 2, 2),
        ("-0.5", "-0.1", -1, 0),
        ("2", "2.5", 2, None),
    ],
)
def test_floor_and_ceiling_are_told_only_when_sure(low: str, high: str, floor: int | None, ceil: int | None) -> None:
    bounds = Bounds(Decimal(low), Decimal(high))
    assert bounds.floor() == floor
    assert bounds.ceil() == ceil


def test_floors_of_tiny_numbers_are_quick() -> None:
    """ln 1 steps outwards to -10^-(10^18): its floor must not build that power."""
    tiny = Directed(30).ln(Bounds(Decimal(1), Decimal(1)))
    assert (math.floor(tiny.low), math.floor(tiny.high)) == (-1, 0)
    assert tiny.floor() is None


def test_not_a_number_cannot_pass_for_one() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Bounds(Decimal("NaN"), Decimal("NaN")).floor()
