"""Int128Array against Python's integers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import UsageError
from discreet.laplace import Int128Array
from discreet.laplace.limbs import wrap_int128

LOW, HIGH = -(2**127), 2**127 - 1
corners = st.sampled_from([0, 1, -1, 2**63, -(2**63), 2**63 - 1, 2**64, 2**64 - 1, -(2**64), LOW, HIGH, LOW + 1])
ints = st.one_of(corners, st.integers(LOW, HIGH), st.integers(-(2**65), 2**65))
lists = st.lists(ints, max_size=20)
pairs = st.lists(st.tuples(ints, ints), max_size=20)


def wrapped(value: int) -> int:
    return (value + 2**127) % 2**128 - 2**127


@given(lists)
def test_there_and_back(values: list[int]) -> None:
    array = Int128Array.from_ints(values)
    assert array.to_ints() == values
    assert len(array) == len(values)


@given(pairs)
def test_add_is_addition_mod_2_to_the_128(both: list[tuple[int, int]]) -> None:
    left, right = Int128Array.from_ints(x for x, _ in both), Int128Array.from_ints(y for _, y in both)
    before = left.to_ints(), right.to_ints()
    assert left.add(right).to_ints() == [wrapped(x + y) for x, y in both]
    assert (left.to_ints(), right.to_ints()) == before


@given(lists, st.integers(0, 127))
def test_round_shift_rounds_to_nearest_halves_up(values: list[int], bits: int) -> None:
    half = 1 << bits >> 1
    expected = [(x + half) >> bits for x in values]
    assert Int128Array.from_ints(values).round_shift(bits).to_ints() == expected


@given(ints, st.integers(1, 127), st.integers(-1, 1))
def test_round_shift_at_the_halves(x: int, bits: int, step: int) -> None:
    value = ((x >> bits) << bits) + (1 << (bits - 1)) + step
    if LOW <= value <= HIGH:
        assert Int128Array.from_ints([value]).round_shift(bits).to_ints() == [(value + (1 << (bits - 1))) >> bits]


@given(st.integers(-(2**300), 2**300))
def test_wrap_is_a_homomorphism_into_the_range(value: int) -> None:
    assert wrap_int128(value) == wrapped(value)
    assert LOW <= wrap_int128(value) <= HIGH


@given(lists)
def test_int64_when_it_fits(values: list[int]) -> None:
    array = Int128Array.from_ints(values)
    if all(-(2**63) <= x < 2**63 for x in values):
        assert array.fits_int64()
        assert array.to_int64().tolist() == values
        assert Int128Array.from_int64(array.to_int64()).to_ints() == values
    else:
        assert not array.fits_int64()
        with pytest.raises(OverflowError):
            array.to_int64()


def test_zeros_and_what_is_refused() -> None:
    assert Int128Array.zeros(3).to_ints() == [0, 0, 0]
    assert Int128Array.zeros(0).add(Int128Array.zeros(0)).round_shift(5).to_ints() == []
    for value in (HIGH + 1, LOW - 1):
        with pytest.raises(UsageError, match="128"):
            Int128Array.from_ints([value])
    for bits in (-1, 128, True):
        with pytest.raises(UsageError, match="0 to 127"):
            Int128Array.zeros(1).round_shift(bits)
    with pytest.raises(UsageError, match="length"):
        Int128Array.zeros(1).add(Int128Array.zeros(2))
    with pytest.raises(UsageError, match="int64"):
        Int128Array(np.zeros(1), np.zeros(1))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="length"):
        Int128Array(np.zeros(1, np.int64), np.zeros(2, np.uint64))


def test_it_pickles() -> None:
    values = [LOW, -1, 0, HIGH]
    assert pickle.loads(pickle.dumps(Int128Array.from_ints(values))).to_ints() == values  # noqa: S301
