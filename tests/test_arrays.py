"""`discreet.count`, `sum` and `mean` of values in hand: exact totals, sensitivities, containers, refusals."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from definition import missing, on_grid
from discreet import arrays
from discreet.errors import UsageError

PROBE = 10**9

INTEGERS = st.one_of(st.integers(-20, 20), st.sampled_from((2**63 - 1, -(2**63), 2**32, -1)))
FLOATS = st.one_of(st.floats(), st.floats(-10, 10), st.sampled_from((math.nan, math.inf, -math.inf, -5e-324)))
MIXED = st.one_of(INTEGERS, FLOATS, st.none(), st.decimals(allow_nan=True), st.fractions(), st.booleans())
BOUNDS = [(0, 10), (-3, 4), (5, 5), ("-0.5", "0.25"), (-(2**63), 2**63 - 1), (-1e30, 1e30), (2, "2.5")]


def declared(bounds):
    return tuple(Decimal(bound) if isinstance(bound, str) else bound for bound in bounds)


def exact(values, bounds, column):
    """The room's own totals and its grid."""
    found, grid, _ = arrays._numbers(column, declared(bounds), "sum")
    return arrays._totals(found, grid), grid


def right(values, grid):
    def number(value):
        return Fraction(value) if isinstance(value, Decimal) and value.is_finite() else value

    present = [v for v in values if not missing(v) and not (isinstance(v, Decimal) and v.is_nan())]
    present = [float(v) if isinstance(v, Decimal) and v.is_infinite() else number(v) for v in present]
    ends = grid.bounds
    return sum(on_grid(v, ends.lower, ends.upper, grid.step) for v in present), len(present)


@given(values=st.lists(INTEGERS), bounds=st.sampled_from(BOUNDS))
def test_totals_of_integers(values, bounds):
    total, grid = exact(values, bounds, np.array(values, dtype=np.int64))
    assert total == right(values, grid)
    small = [v for v in values if abs(v) < 100]
    for dtype in (np.int8, np.int32):
        assert exact(small, bounds, np.array(small, dtype=dtype)) == (right(small, grid), grid)
    large = [min(abs(v) * 2, 2**64 - 1) for v in values]
    assert exact(large, bounds, np.array(large, dtype=np.uint64)) == (right(large, grid), grid)


@given(values=st.lists(FLOATS), bounds=st.sampled_from(BOUNDS))
def test_totals_of_floats(values, bounds):
    total, grid = exact(values, bounds, np.array(values, dtype=np.float64))
    assert total == right(values, grid)


@given(values=st.lists(MIXED), bounds=st.sampled_from(BOUNDS))
def test_totals_of_lists(values, bounds):
    """Exact for any numbers that Python has, of any size."""
    total, grid = exact(values, bounds, values)
    # As fractions: a list is counted exactly, also where a double's quotient would be 0.
    finite = [Fraction(v) if isinstance(v, float) and math.isfinite(v) else v for v in values]
    assert total == right(finite, grid)


def test_one_value_moves_the_total_by_the_sensitivity_and_no_more():
    values = [math.inf, -math.inf, 3.0, -2.5, math.nan, 1e300, None]
    for bounds in ((0, 10), (-3, 4), (-7, -2)):
        answer = discreet.sum(values, bounds=bounds, epsilon=1)
        (whole, _), grid = exact(values, bounds, values)
        moves = []
        for i in range(len(values)):
            (left, _), _ = exact(values, bounds, values[:i] + values[i + 1 :])
            moves.append(abs(whole - left))
        assert max(moves) * grid.step == answer.scale == max(abs(b) for b in bounds)
    assert discreet.count(values, epsilon=2).scale == Fraction(1, 2)
    # Half of epsilon for the sum around the centre, which one value moves by half the range.
    assert discreet.mean(values, bounds=(0, 10), epsilon=1).scale == 10


def containers(values, dtype):
    yield list(values)
    yield tuple(values)
    yield np.array(values, dtype=dtype)
    yield pd.Series(values, dtype=dtype)
    yield pl.Series(values)
    yield pa.array(values)
    yield pa.chunked_array([values[:2], values[2:]])


def test_every_container_gives_the_same():
    for values, dtype in (([1, 5, 200, -4, 5], np.int64), ([1.0, 5.0, 200.0, -4.0, 5.0], np.float64)):
        for column in containers(values, dtype):
            assert discreet.count(column, epsilon=PROBE).value == 5
            assert discreet.sum(column, bounds=(0, 10), epsilon=PROBE).value == pytest.approx(21, abs=1e-4)
            assert discreet.mean(column, bounds=(0, 10), epsilon=PROBE).value == pytest.approx(4.2, abs=1e-4)
    whole = discreet.sum(np.array([1, 5]), bounds=(0, 10), epsilon=PROBE)
    assert isinstance(whole.value, int)


def test_missing_values_are_left_out():
    for column in (
        [1.0, None, math.nan, 3.0],
        pd.Series([1.0, None, math.nan, 3.0]),
        pd.Series([1, None, None, 3], dtype="Int64"),
        pl.Series([1.0, None, math.nan, 3.0]),
        pa.array([1, None, None, 3]),
    ):
        assert discreet.count(column, epsilon=PROBE).value == 2
        assert discreet.mean(column, bounds=(0, 10), epsilon=PROBE).value == pytest.approx(2, abs=1e-4)
    assert discreet.count(["a", None, dt.date(2024, 1, 1)], epsilon=PROBE).value == 2
    assert discreet.count(np.array(["2024-01-01", "NaT"], dtype="M8[D]"), epsilon=PROBE).value == 1


def test_no_values():
    for empty in ([], np.array([]), pl.Series([], dtype=pl.Float64)):
        assert discreet.count(empty, epsilon=PROBE).value == 0
        assert discreet.sum(empty, bounds=(0, 10), epsilon=PROBE).value == pytest.approx(0, abs=1e-4)
        assert 2 <= discreet.mean(empty, bounds=(2, 10), epsilon=1).value <= 10


def test_intervals_and_words():
    answer = discreet.mean([1, 2, 3] * 1000, bounds=(0, 10), epsilon="0.5")
    low, high = answer.interval(0.95)
    wider = answer.interval("0.999")
    assert 0 <= wider[0] <= low <= answer.value <= high <= wider[1] <= 10
    assert answer.epsilon == Fraction(1, 2)
    assert "epsilon 0.5" in repr(answer)
    assert repr(answer).startswith("mean ")
    assert repr(pickle.loads(pickle.dumps(answer))) == repr(answer)  # noqa: S301
    for call in (discreet.count, discreet.sum, discreet.mean):
        assert "ebits no ledger" in call.__doc__


def test_equal_bounds():
    assert discreet.mean([1, 2], bounds=(5, 5), epsilon=1).value == 5
    assert discreet.sum([1, 2], bounds=(5, 5), epsilon=PROBE).value == pytest.approx(10, abs=1e-4)
    with pytest.raises(UsageError, match="always 0"):
        discreet.sum([1, 2], bounds=(0, 0), epsilon=1)


@pytest.mark.parametrize("call", [discreet.sum, discreet.mean])
def test_no_bounds_no_answer(call):
    with pytest.raises(UsageError) as caught:
        call([1, 2, 3], epsilon=1)
    assert "bounds=(0, 120)" in str(caught.value)
    for bad in ((1, 0), (0, math.inf), (math.nan, 1), ("0", "1"), (0,), 7):
        with pytest.raises(UsageError, match="bounds"):
            call([1, 2, 3], bounds=bad, epsilon=1)


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "", None, 1e-13])
def test_what_is_no_epsilon(epsilon):
    with pytest.raises(UsageError, match="epsilon"):
        discreet.count([1], epsilon=epsilon)


@pytest.mark.parametrize("values", [None, "text", {"a": 1}, {1, 2}, np.zeros((2, 2)), pd.DataFrame({"x": [1]}), 7])
def test_what_is_no_column(values):
    with pytest.raises(UsageError, match="values"):
        discreet.count(values, epsilon=1)


def test_only_numbers_are_summed():
    """A declared type of something else is refused; nothing that stands in a column without one is."""
    typed = (
        np.array(["a"]),
        np.array(["2024-01-01"], dtype="M8[D]"),
        pd.Series(["a"], dtype="string"),
        pd.Series(["a"], dtype="category"),
        pd.Series([dt.datetime(2024, 1, 1)]),
        pl.Series(["a"]),
        pl.Series([dt.date(2024, 1, 1)]),
        pa.array(["a"]),
        pa.chunked_array([["a"]]),
    )
    for column in typed:
        for values in (column, column[:0]):
            with pytest.raises(UsageError, match="numbers"):
                discreet.sum(values, bounds=(0, 1), epsilon=1)
    for odd in ("a", dt.date(2024, 1, 1), 1j, [1], object(), b"", None):
        for column in ([3, odd, 4], pd.Series([3, odd, 4], dtype=object), np.array([3, odd, 4], dtype=object)):
            assert discreet.sum(column, bounds=(0, 9), epsilon=PROBE).value == pytest.approx(7, abs=1e-4)
            assert discreet.mean(column, bounds=(0, 9), epsilon=PROBE).value == pytest.approx(3.5, abs=1e-4)


def test_numbers_of_every_declared_type_are_summed():
    for column in (
        pd.Series([3, 4], dtype="Int8"),
        pd.Series([3, 4], dtype="Float32"),
        pd.Series([3, 4], dtype="int64[pyarrow]"),
        pl.Series([3, 4], dtype=pl.UInt8),
        pl.Series([Decimal(3), Decimal(4)]),
        pa.array([Decimal(3), Decimal(4)]),
        pa.array([3.0, 4.0], pa.float32()),
        pa.chunked_array([[3], [4]]),
    ):
        assert discreet.sum(column, bounds=(0, 9), epsilon=PROBE).value == pytest.approx(7, abs=1e-4)


def test_masked_values_are_missing():
    for dtype in (np.int64, np.float64, object):
        column = np.ma.masked_array(np.array([3, 999, 4], dtype=dtype), mask=[False, True, False])
        assert discreet.count(column, epsilon=PROBE).value == 2
        assert discreet.sum(column, bounds=(0, 1000), epsilon=PROBE).value == pytest.approx(7, abs=1e-2)
        assert discreet.mean(column, bounds=(0, 1000), epsilon=PROBE).value == pytest.approx(3.5, abs=1e-2)
    assert discreet.count(np.ma.masked_array([1, 2], mask=True), epsilon=PROBE).value == 0
