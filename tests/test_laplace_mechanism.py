"""Calibration, accounting, release and refusals of the mechanism."""

from __future__ import annotations

import math
import pickle
from dataclasses import FrozenInstanceError
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.errors import UsageError
from discreet.laplace import DiscreteLaplace, Int128Array, LaplaceMechanism
from discreet.laplace.mechanism import LIMBS_SCALE_MAX
from discreet.privacy import PrivacyLoss, split

QUIET = 10**9  # at sensitivity 1 and this epsilon P(noise != 0) is below e^-(10^8)


class Words:
    """An entropy whose words are all `word` (and 2^63 after that: V = 1/2)."""

    def __init__(self, word: int) -> None:
        self.word = word

    def words(self, count: int) -> NDArray[np.uint64]:
        return np.full(count, self.word, dtype=np.uint64)

    def bits(self, count: int) -> int:
        raise AssertionError("no draw here needs more bits")


def test_the_scale_is_sensitivity_over_epsilon_exactly() -> None:
    assert LaplaceMechanism(1, 0.1).scale == 10
    assert LaplaceMechanism("100", Decimal("0.3")).scale == Fraction(1000, 3)
    assert LaplaceMechanism(Fraction(2, 3), 1).scale == Fraction(2, 3)
    mechanism = LaplaceMechanism(100, "1")  # R64: the sum of scores from 0 to 100 at epsilon 1
    assert (mechanism.sensitivity, mechanism.epsilon, mechanism.scale) == (100, 1, 100)
    assert LaplaceMechanism(np.int64(5), np.float64(0.5)).scale == 10


def test_shares_of_an_epsilon_are_any_fractions_and_cost_what_they_are() -> None:
    shares = split(Fraction(1, 10), [Fraction(1), Fraction(2), Fraction(4)])
    mechanisms = [LaplaceMechanism(20, share) for share in shares]
    assert sum((m.loss(20) for m in mechanisms), PrivacyLoss(Fraction(0))) == PrivacyLoss(Fraction(1, 10))
    assert LaplaceMechanism(1, Fraction(1, 7 * 10**13)).scale == 7 * 10**13


def test_the_loss_is_the_one_that_the_scale_gives() -> None:
    mechanism = LaplaceMechanism(3, "0.3")
    assert mechanism.loss(3) == PrivacyLoss(Fraction(3, 10))
    assert mechanism.loss(1) == PrivacyLoss(Fraction(1, 10))
    assert mechanism.loss(0) == PrivacyLoss(Fraction(0))
    for wrong in (-1, math.nan, True, "x"):
        with pytest.raises(UsageError, match="sensitivity"):
            mechanism.loss(wrong)


def test_neighbours_are_within_e_to_the_epsilon_and_reach_it() -> None:
    """P(x + noise = y) / P(x' + noise = y) for |x - x'| = sensitivity, from the law itself."""
    mechanism = LaplaceMechanism(3, 0.5)
    law = DiscreteLaplace(mechanism.scale)
    y = np.arange(-60, 61)
    ratio = np.asarray(law.logpmf(y) - law.logpmf(y - 3))
    assert np.abs(ratio).max() == pytest.approx(0.5, rel=1e-12)


def test_the_interval_is_the_laws() -> None:
    assert LaplaceMechanism(1, 0.1).interval(0.95) == (-30, 30) == DiscreteLaplace(10).interval("0.95")
    assert LaplaceMechanism(1, QUIET).interval(0.95) == (0, 0)


@pytest.mark.parametrize(
    ("sensitivity", "epsilon", "name"),
    [
        (0, 1, "sensitivity"),
        (-1, 1, "sensitivity"),
        (math.nan, 1, "sensitivity"),
        (math.inf, 1, "sensitivity"),
        (True, 1, "sensitivity"),
        (None, 1, "sensitivity"),
        ("all", 1, "sensitivity"),
        (1, 0, "epsilon"),
        (1, -1, "epsilon"),
        (1, math.nan, "epsilon"),
        (1, math.inf, "epsilon"),
        (1, True, "epsilon"),
        (1, None, "epsilon"),
        (1, "much", "epsilon"),
        (1, 1e-13, "epsilon"),
        (1, Decimal("0.0000000000001"), "epsilon"),
        (1, Fraction(0), "epsilon"),
        (1, Fraction(-1, 3), "epsilon"),
        (2**128, "0.5", "scale"),
        (2**90, "0.000000000001", "scale"),
        (Fraction(1, 10**4), 10**9, "scale"),
    ],
)
def test_what_cannot_be_is_refused_by_name(sensitivity: object, epsilon: object, name: str) -> None:
    with pytest.raises(UsageError, match=name):
        LaplaceMechanism(sensitivity, epsilon)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [None, 0, Fraction(0), math.nan, 1.0, Fraction(-1), Fraction(2**129)])
def test_a_scale_that_is_no_scale_never_draws(scale: object) -> None:
    """Field report R02: None, 0 and NaN never mean "no noise". The last look is at release time."""
    mechanism = LaplaceMechanism(1, 1)
    object.__setattr__(mechanism, "scale", scale)
    for release in (
        lambda: mechanism.release(5),
        lambda: mechanism.release(np.arange(3)),
        lambda: mechanism.release_limbs(Int128Array.zeros(1)),
    ):
        with pytest.raises(UsageError, match="the scale of the noise"):
            release()


def test_integers_in_integers_out() -> None:
    quiet = LaplaceMechanism(1, QUIET)
    for value in (5, -5, 0, 2**200, np.int8(5), np.uint64(2**64 - 1)):
        released = quiet.release(value)
        assert type(released) is int
        assert released == int(value)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64, np.uint64])
def test_arrays_keep_their_shape_and_come_out_as_int64(dtype: type) -> None:
    values = np.arange(6).reshape(2, 3).astype(dtype)
    released = LaplaceMechanism(1, QUIET).release(values)
    assert released.dtype == np.int64
    assert np.array_equal(released, values)
    assert LaplaceMechanism(1, QUIET).release(values[:0]).shape == (0, 3)
    assert LaplaceMechanism(1, QUIET).release(np.array(7, dtype=dtype)).shape == ()


def test_arrays_that_pass_int64_come_out_as_python_integers_and_nothing_wraps() -> None:
    quiet = LaplaceMechanism(1, QUIET)
    big = np.array([2**64 - 1, 0], dtype=np.uint64)
    assert quiet.release(big).tolist() == [2**64 - 1, 0]
    assert quiet.release(big).dtype == np.object_
    huge = np.array([2**100, -(2**100)], dtype=object)
    assert quiet.release(huge).tolist() == huge.tolist()
    assert quiet.release(np.array([1, 2], dtype=object)).dtype == np.int64
    # At the edge of int64 noise of scale 1000 passes it half of the time: 64 entries never all stay inside.
    for edge in (2**63 - 1, -(2**63)):
        released = LaplaceMechanism(1000, 1).release(np.full(64, edge))
        assert released.dtype == np.object_
        assert all(abs(x - edge) < 10**6 for x in released.tolist())
    wide = LaplaceMechanism(2**60, 1).release(np.zeros(4, dtype=np.int64))
    assert wide.dtype == np.object_


@pytest.mark.parametrize(
    "value",
    [
        1.0,
        1.5,
        math.nan,
        True,
        np.bool_(True),
        "5",
        None,
        Decimal(5),
        Fraction(5),
        [1, 2],
        np.float64(3),
        np.timedelta64(3, "s"),
        np.array([1.0]),
        np.array([True]),
        np.array(["1"]),
        np.array([1, 2.5], dtype=object),
        np.array([1, True], dtype=object),
        np.array([1, None], dtype=object),
        np.array([3], dtype="timedelta64[s]"),
    ],
    ids=repr,
)
def test_only_exact_integers_meet_noise(value: object) -> None:
    """Design 2.1: floats, booleans and text never reach a mechanism."""
    with pytest.raises(UsageError, match="the value to release") as caught:
        LaplaceMechanism(1, 1).release(value)  # type: ignore[call-overload]
    assert "2.5" not in str(caught.value)  # the kind of thing is named, never the value: it is private


def test_limbs_are_totals_plus_noise() -> None:
    totals = Int128Array.from_ints([0, 1, -(2**125), 2**125, 2**64])
    quiet = LaplaceMechanism(1, QUIET)
    assert quiet.release_limbs(totals).to_ints() == totals.to_ints()
    # m = 2^62, U = 1/2 and the sign plus: |X| = floor(10 (ln 2 + ln(2 / (1 + e^-0.1)))) = floor(7.42)
    noisy = LaplaceMechanism(1, "0.1").release_limbs(totals, entropy=Words(2**63))
    assert noisy.to_ints() == [x + 7 for x in totals.to_ints()]
    noisy = LaplaceMechanism(1, "0.1").release_limbs(totals, entropy=Words(2**63 + 1))
    assert noisy.to_ints() == [x - 7 for x in totals.to_ints()]


def test_limbs_refuse_scales_whose_noise_could_wrap() -> None:
    assert LIMBS_SCALE_MAX == 2**120
    assert len(LaplaceMechanism(2**120, 1).release_limbs(Int128Array.zeros(3))) == 3
    with pytest.raises(UsageError, match=r"2\^120"):
        LaplaceMechanism(2**121, 1).release_limbs(Int128Array.zeros(3))


def test_release_adds_noise_of_the_stated_scale() -> None:
    """mean |noise| = 9.98335 +- 0.064 (6.3 standard errors at n = 10^6, false alarm 1e-9); half and double fail."""

    def right(mechanism: LaplaceMechanism) -> bool:
        noise = mechanism.release(np.full(10**6, 10**12)) - 10**12
        limbs = mechanism.release_limbs(Int128Array.from_int64(np.full(10**6, -5))).to_int64() + 5
        return all(abs(np.abs(x).mean() - 9.98335) <= 0.064 for x in (noise, limbs))

    assert right(LaplaceMechanism(1, "0.1"))
    assert not right(LaplaceMechanism(1, "0.098"))
    assert not right(LaplaceMechanism(1, "0.102"))
    singles = [LaplaceMechanism(2**100, 1).release(0) for _ in range(50)]
    assert len(set(singles)) == 50
    assert any(x > 0 for x in singles)
    assert any(x < 0 for x in singles)


def test_it_is_frozen_equal_and_pickles() -> None:
    mechanism = LaplaceMechanism(1, "0.1")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism == LaplaceMechanism(1, 0.1)  # noqa: S301
    assert hash(mechanism) == hash(LaplaceMechanism(1, 0.1))
    with pytest.raises(FrozenInstanceError):
        mechanism.scale = Fraction(1)  # type: ignore[misc]
