"""Noise-free neighbours: the L1 sensitivity of every statistic, through the real engine.

For generated tables in real files and frames, and for every privacy unit in them, the exact integer vectors
with and without the unit differ by at most the declared sensitivity; constructed tables reach it. The vectors
are also those of the definition (`definition`), computed in exact Python.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from definition import Group, Question, S, field_term, totals, unit_of
from discreet.errors import RefusedError
from discreet.grid import choose_grid
from discreet.query import Bounds
from discreet.schema import parse_type
from discreet.sources import register_frame
from tables import FORMATS, ROWS, Stored, as_read, date_of, part, plan_of, questions, row, run, statistic_of, store


def distance(a: list[int], b: list[int]) -> int:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def groups_of(question: Question) -> int:
    number = 1
    for group in question.groups:
        number *= len(group.keys)
    return number


# Without shrinking: through an engine it takes minutes, and a failing table of a few rows can be read.
@settings(
    max_examples=25,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)
@given(rows=ROWS, question=questions(), format_=st.sampled_from(FORMATS))
def test_neighbours(rows, question, format_):
    with tempfile.TemporaryDirectory() as folder:
        whole = store(rows, format_, Path(folder) / "whole")
        plan = plan_of(question, whole.registration)
        vectors = run(plan, whole)
        meant = as_read(rows, format_)
        for measurement, vector in zip(plan.measurements, vectors, strict=True):
            note(f"{measurement}")
            assert len(vector) == groups_of(question) * measurement.cells
            weight = S // measurement.weight if question.unit and measurement.statistic != "distinct_count" else 1
            assert [x * weight for x in vector] == totals(meant, question, statistic_of(measurement))
        # Every unit, the rows of nobody among them: removing those changes nothing.
        whose = [unit_of(r, question) if question.unit else i for i, r in enumerate(meant)]
        for who in dict.fromkeys(whose):
            left = [r for r, w in zip(rows, whose, strict=True) if w != who]
            without = run(plan, store(left, format_, Path(folder) / "without"))
            for measurement, a, b in zip(plan.measurements, vectors, without, strict=True):
                moved = distance(a, b)
                assert moved <= measurement.sensitivity
                assert moved == 0 or who is not None


# --- the bound is reached --------------------------------------------------------------------------------

ACTOR = (field_term("actor"),)
KIND = Group(field_term("kind"), ("A", "D", None))
TEN = "contribution_bounds_per_row => (-3, 10)"
NIGHT = dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC)


def mine(**values):
    return row(**{"actor": "me", "device": 7, "kind": "A", "time": NIGHT, "n": 10, **values})


def in_years(*years: int, **values):
    return [mine(time=dt.datetime(year, 1, 1, tzinfo=dt.UTC), **values) for year in years]


REACHED = {
    # At row level one row moves one total by the bound.
    "count, row level": (Question((), (KIND,), aggregates=("COUNT(*)",)), [mine()]),
    "count of x, row level": (Question((), (KIND,), aggregates=("COUNT(n)",)), [mine(kind=None)]),
    "sum, row level": (Question((), (KIND,), aggregates=(f"SUM(n, {TEN})",)), [mine(n=2**63 - 1)]),
    "centred sum, row level": (Question((), aggregates=(f"AVG(n, {TEN})",)), [mine(n=-3)]),
    # A unit at its limit, in one group and in several.
    "count": (Question(ACTOR, (), rows=3, aggregates=("COUNT(*)",)), [mine()] * 3),
    "count, over groups": (
        Question(ACTOR, (KIND,), rows=3, aggregates=("COUNT(*)",)),
        [mine(kind=k) for k in ("A", "D", None)],
    ),
    "count of x": (Question(ACTOR, (KIND,), rows=2, aggregates=("COUNT(f)",)), [mine(f=0.5), mine(f=math.inf)]),
    "sum": (Question(ACTOR, (KIND,), rows=2, aggregates=(f"SUM(n, {TEN})",)), [mine(n=10), mine(n=99, kind="D")]),
    "sum, lower bound": (
        Question(ACTOR, (KIND,), rows=2, aggregates=("SUM(n, contribution_bounds_per_row => (-9, 2))",)),
        [mine(n=-9), mine(n=-(2**63))],
    ),
    "sum of floats": (
        Question(ACTOR, (), rows=1, aggregates=("SUM(f, contribution_bounds_per_row => (-8, 1))",)),
        [mine(f=-math.inf)],
    ),
    "sum of equal bounds": (
        Question(ACTOR, (), rows=1, aggregates=("SUM(n, contribution_bounds_per_row => (5, 5))",)),
        [mine(n=0)],
    ),
    "sum on a coarse grid": (
        Question(ACTOR, (), rows=1, aggregates=(f"SUM(h, contribution_bounds_per_row => (0, {10**37}))",)),
        [mine(h=10**38 - 2)],
    ),
    "centred sum, upper bound": (
        Question(ACTOR, (KIND,), rows=2, aggregates=(f"AVG(n, {TEN})",)),
        [mine(n=10), mine(n=77)],
    ),
    "centred sum, lower bound": (
        Question(ACTOR, (KIND,), rows=2, aggregates=(f"AVG(n, {TEN})",)),
        [mine(n=-3), mine(n=-77, kind="D")],
    ),
    # A unit above its limit: twice as many rows at half the weight; and one row too many.
    "count, cut weights": (Question(ACTOR, (KIND,), rows=2, aggregates=("COUNT(*)",)), [mine(), mine(kind="D")] * 2),
    "sum, cut weights": (Question(ACTOR, (), rows=4, aggregates=(f"SUM(n, {TEN})",)), [mine(n=50)] * 8),
    "centred sum, cut weights": (Question(ACTOR, (), rows=1, aggregates=(f"AVG(n, {TEN})",)), [mine(n=-3)] * 64),
    # Squares at either bound; conditions; a tree of bins, every level of which is reached.
    "squares, row level": (Question((), aggregates=(f"VAR_POP(n, {TEN})",)), [mine(n=11)]),
    "squares": (
        Question(ACTOR, (KIND,), rows=2, aggregates=(f"STDDEV(n, {TEN})",)),
        [mine(n=-3), mine(n=77, kind="D")],
    ),
    "squares on a coarse grid, cut weights": (
        Question(ACTOR, (), rows=2, aggregates=("VAR_POP(f, contribution_bounds_per_row => (-8, 1))",)),
        [mine(f=-math.inf), mine(f=-8.0)] * 4,
    ),
    "condition": (Question(ACTOR, (KIND,), rows=2, aggregates=("COUNTIF(flag)",)), [mine(flag=True)] * 2),
    "bins, row level": (Question((), (KIND,), aggregates=(f"MEDIAN(n, {TEN})",)), [mine()]),
    "bins": (
        Question(ACTOR, (KIND,), rows=3, aggregates=("MEDIAN(f, contribution_bounds_per_row => (0, 1))",)),
        [mine(f=0.0), mine(f=0.3, kind="D"), mine(f=math.inf)],
    ),
    "bins, cut weights": (
        Question(ACTOR, (), rows=2, aggregates=("MEDIAN(n, contribution_bounds_per_row => (-20, 1000))",)),
        [mine(n=n) for n in (-99, -20, 8, 10**6)],
    ),
    # Dates and times, before 1970 too, and beyond the bounds.
    "dates": (
        Question(
            ACTOR,
            (KIND,),
            rows=2,
            aggregates=("AVG(day, contribution_bounds_per_row => ('1950-01-01', '2050-01-01'))",),
        ),
        [mine(day=dt.date(1, 1, 1)), mine(day=dt.date(1950, 1, 1), kind="D")],
    ),
    "bins of times": (
        Question(
            ACTOR, (), rows=2, aggregates=("MEDIAN(at, contribution_bounds_per_row => ('1950-01-01', '2050-01-01'))",)
        ),
        [mine(at=dt.datetime(9999, 12, 31)), mine(at=dt.datetime(1969, 12, 31, 23, 59, 59, 999999))],
    ),
    # Different values, that nobody else has: in one group and over several; more of them than count; at row level.
    "values": (Question(ACTOR, (), rows=3, aggregates=("COUNT(DISTINCT n)",)), [mine(n=n) for n in (7, 8, 8, 9)]),
    "values, over groups": (
        Question(ACTOR, (KIND,), rows=3, aggregates=("COUNT(DISTINCT device)",)),
        [mine(kind=k, device=70) for k in ("A", "D", None)],
    ),
    "values, too many": (
        Question(ACTOR, (KIND,), rows=2, aggregates=("COUNT(DISTINCT n)",)),
        [mine(kind=k, n=n) for k in ("A", "D") for n in range(100, 140)],
    ),
    "values, row level": (Question((), (KIND,), aggregates=("COUNT(DISTINCT n)",)), [mine(n=1234)]),
    # Units in groups: all groups within the limit; a limit that cuts, reached exactly and from above.
    "units, no groups": (Question(ACTOR, (), rows=1, aggregates=("COUNT(DISTINCT actor)",)), [mine()] * 5),
    "units, never cut": (
        Question(ACTOR, (KIND,), rows=3, pairs=3, aggregates=("COUNT(DISTINCT actor)",)),
        [mine(kind=k) for k in ("A", "D", None, "A")],
    ),
    "units, at the limit": (
        Question(ACTOR, (KIND,), rows=9, pairs=2, aggregates=("COUNT(DISTINCT actor)",)),
        [mine(kind="A"), mine(kind=None), mine(kind=None)],
    ),
    "units, cut weights": (
        Question(
            ACTOR,
            (Group(field_term("device"), (1, 2, 3, 4)),),
            rows=9,
            pairs=2,
            aggregates=("COUNT(DISTINCT actor)",),
        ),
        [mine(device=i) for i in (1, 2, 3, 4)],
    ),
    # What a unit has in a group, clamped: many rows, beyond either end, in one group and in several; cut weights.
    "rows per group": (
        Question(ACTOR, (KIND,), pairs=3, aggregates=("COUNT(*, contribution_bounds_per_group => (0, 2))",)),
        [mine(kind=k) for k in ("A", "D", None)] * 5,
    ),
    "rows per group, cut weights": (
        Question(
            ACTOR,
            (Group(field_term("device"), (1, 2, 3, 4)),),
            pairs=2,
            aggregates=("COUNT(n, contribution_bounds_per_group => (0, 3))",),
        ),
        [mine(device=i) for i in (1, 2, 3, 4)] * 3,
    ),
    "condition per group": (
        Question(ACTOR, (), pairs=1, aggregates=("COUNTIF(flag, contribution_bounds_per_group => (0, 2))",)),
        [mine(flag=True)] * 9,
    ),
    "sum per group": (
        Question(ACTOR, (KIND,), pairs=1, aggregates=("SUM(n, contribution_bounds_per_group => (-3, 10))",)),
        [mine(n=2**63 - 1), mine(n=-5), mine(n=7)],
    ),
    "sum per group, lower bound": (
        Question(ACTOR, (KIND,), pairs=3, aggregates=("SUM(f, contribution_bounds_per_group => (-8, 1))",)),
        [mine(kind=k, f=-math.inf) for k in ("A", "D", None)],
    ),
    "sum per group, raised to the lower bound": (
        Question(ACTOR, (), pairs=1, aggregates=("SUM(n, contribution_bounds_per_group => (9, 9))",)),
        [mine(n=-4)],
    ),
    "sum per group, rows clamped too, cut weights": (
        Question(
            ACTOR,
            (Group(field_term("device"), (1, 2, 3, 4)),),
            pairs=2,
            aggregates=("SUM(n, contribution_bounds_per_row => (0, 6), contribution_bounds_per_group => (0, 10))",),
        ),
        [mine(device=i, n=99) for i in (1, 2, 3, 4)] * 2,
    ),
    # Units of several columns; the same person on another day is another unit and stays.
    "two columns": (
        Question((*ACTOR, field_term("device")), (KIND,), rows=2, aggregates=("COUNT(*)",)),
        [mine(kind=None), mine(kind="D")],
    ),
    "a person and a day": (
        Question((*ACTOR, date_of("time")), (KIND,), rows=2, aggregates=(f"SUM(n, {TEN})",)),
        [mine(), mine(kind="D", time=NIGHT + dt.timedelta(minutes=59))],
    ),
    # Keys of an expression: the limit is over its values (R53).
    "years": (
        Question(ACTOR, (Group(part("time", "year"), (1969, 1970, 9999)),), rows=2, aggregates=("COUNT(*)",)),
        in_years(1969, 1970, 9999, 1),  # the year 1 is not listed, and does not count: see below
    ),
}


@pytest.mark.parametrize("name", REACHED)
def test_the_bound_is_reached(name, tmp_path):
    question, rows = REACHED[name]
    others = [mine(actor="you"), mine(actor="you", kind="D", n=-4, f=1.5), mine(actor=None, n=3)]
    if len(question.unit) > 1:  # the same actor, but another unit
        others.append(mine(device=8, time=NIGHT + dt.timedelta(days=1), kind="D"))
    format_ = ("parquet", "csv", "jsonl.gz", "arrow")[len(name) % 4]
    with_unit = store([*others[:1], *rows, *others[1:]], format_, tmp_path / "with")
    plan = plan_of(question, with_unit.registration)
    vectors, without = (run(plan, t) for t in (with_unit, store(others, format_, tmp_path / "without")))
    shortfall = 2 if name == "years" else 0  # three counted rows of weight floor(2 S / 3)
    for measurement, a, b in zip(plan.measurements, vectors, without, strict=True):
        assert distance(a, b) == measurement.sensitivity - shortfall > 0


@given(n=st.integers(1, 10**6), limit=st.integers(1, 10**6), size=st.integers(0, 2**90))
def test_a_units_weights_never_exceed_the_limit(n, limit, size):
    """(1) of `sensitivity`, for the definition itself."""
    weight = S if n <= limit else (S * limit) // n
    assert n * weight * size <= S * limit * size
    assert n <= limit or (n * (weight + 1)) > S * limit  # not smaller than it must be


# --- many types and bounds at once -----------------------------------------------------------------------


def fill(kind: str, values: list) -> pa.Array:
    digits, scale = (int(part) for part in kind.removeprefix("DECIMAL(").rstrip(")").split(","))
    return pa.array(values, type=pa.decimal128(digits, scale))


def sweep(registered, frame, columns: dict[str, list], statistics: list[str]) -> int:
    """Ask all statistics over one frame, with a unit and at row level, and compare them with the definition.

    Gives how many were answered; the others were refused from the types and bounds alone.
    """
    names = list(columns)
    rows = [dict(zip(names, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    answered = 0
    for unit, limit in ((ACTOR, 2), ((), 1)):
        accepted = []
        for text in statistics:
            try:
                plan_of(Question(unit, rows=limit, aggregates=(text,)), registered)
            except RefusedError:
                continue
            accepted.append(text)
        question = Question(unit, rows=limit, aggregates=tuple(accepted))
        plan = plan_of(question, registered)
        for measurement, vector in zip(plan.measurements, run(plan, Stored(registered, frame)), strict=True):
            weight = S // measurement.weight if unit else 1
            assert [x * weight for x in vector] == totals(rows, question, statistic_of(measurement)), measurement
        answered += len(accepted)
    return answered


def bounds(low: object, high: object) -> str:
    return f"contribution_bounds_per_row => ({low}, {high})"


WIDTHS = [(1, 0), (1, 1), (4, 2), (9, 9), (10, 0), (18, 3), (19, 0), (19, 18), (27, 6)]
WIDTHS += [(38, 0), (38, 5), (38, 19), (38, 37), (38, 38)]


def test_decimals_of_many_widths():
    """Each is exact on its grid, or refused before anything is read (R48); none wraps, none raises."""
    actors = ["a", "a", "a", "b", "b", None, "c"]
    columns: dict[str, list] = {"actor": actors}
    arrays = {"actor": pa.array(actors)}
    statistics = []
    for digits, scale in WIDTHS:
        name = f"d{digits}_{scale}"
        most = Decimal((0, (9,) * digits, -scale))
        least = most.copy_negate()  # unary minus would round it to 28 digits
        step = Decimal((0, (1,), -scale))
        columns[name] = [most, least, None, step, least, most, Decimal(0)]
        arrays[name] = fill(f"DECIMAL({digits},{scale})", columns[name])
        size = 10 ** (digits - scale)
        for low, high in (
            (0, 1),
            ("-0.5", "0.25"),
            (f"{least:f}", f"{most:f}"),
            (-size, size),
            (-3 * size, 2 * size),
            (f"{step:f}", f"{most:f}"),
            ("-0.0000000000000003", "12.5"),
            (size * 10, size * 20),
            (-size * 20, -size * 10),
        ):
            statistics.append(f"({name}, {bounds(low, high)})")
    frame = pa.table(arrays)
    # A variance needs the sum around the centre too.
    parts = [["SUM" + s for s in statistics], *(["VAR_POP" + s for s in statistics[i::2]] for i in (0, 1))]
    answered = sum(sweep(register_frame(frame, "decimals"), frame, columns, part) for part in parts)
    assert answered > 250  # of 2 * 252: most widths are exact, the widest with wide bounds are refused


def test_whole_numbers_and_floats_of_many_bounds():
    actors = ["a", "a", "a", "b", "b", None, "c", "c", "b"]
    top = 2**63 - 1
    columns: dict[str, list] = {
        "actor": actors,
        "n": [top, -top - 1, None, 0, 1, 5, -1, top, 3],
        "u": [2**64 - 1, 0, None, 1, 2**63, 5, 7, 9, 2**64 - 1],
        "s": [127, -128, None, 0, 1, 5, -1, 2, 3],
        "f": [math.inf, -math.inf, math.nan, -5e-324, -1.7976931348623157e308, 1.0, 0.1, -0.0, 2.0**-1022],
        "g": [3.4028234663852886e38, -math.inf, math.nan, 0.0, 1.0, 2.0, 0.1, -1.0, 2.0**-149],
    }
    arrays = {
        "actor": pa.array(actors),
        "n": pa.array(columns["n"], type=pa.int64()),
        "u": pa.array(columns["u"], type=pa.uint64()),
        "s": pa.array(columns["s"], type=pa.int8()),
        "f": pa.array(columns["f"], type=pa.float64()),
        "g": pa.array(columns["g"], type=pa.float32()),
    }
    columns["g"] = [float(np.float32(x)) for x in columns["g"]]
    whole = [(0, 0), (0, 1), (-1, 1), ("0.5", "2.5"), (-top - 1, top), (0, top), (top, top), (-(10**37), 10**37)]
    whole += [(10**36, 2 * 10**36), ("-0.000000000000000001", "0.000000000000000001"), (-5, -5), (2**62, 2**63)]
    real = [(0, 1), ("-0.1", "0.3"), (0, "1e-250"), ("-1e250", "1e250"), ("1e249", "1e250"), ("1e-300", 1)]
    real += [("-1e-200", "1e-240"), (5, 5), (1000000000, 1000000001), ("-1e300", 1), (-1, "1e-280"), (0, "3e-12")]
    statistics = [f"{call}({name}, {bounds(*b)})" for name in "nus" for b in whole for call in ("SUM", "VAR_POP")]
    statistics += [f"{call}({name}, {bounds(*b)})" for name in "fg" for b in real for call in ("SUM", "VAR_POP")]
    frame = pa.table(arrays)
    assert sweep(register_frame(frame, "numbers"), frame, columns, statistics) > 200


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_the_widest_whole_numbers(format_, tmp_path):
    top = 2**127 - 1
    rows = [mine(h=h) for h in (top, -top - 1, top, 0, 1, -1, None)]
    stored = store(rows, format_, tmp_path / "wide")
    question = Question((), aggregates=("COUNT(h)", *(f"SUM(h, {bounds(-b, b)})" for b in (1, 2**63, 10**30, 10**37))))
    plan = plan_of(question, stored.registration)
    for measurement, vector in zip(plan.measurements, run(plan, stored), strict=True):
        assert vector == totals(rows, question, statistic_of(measurement))


def test_r48_two_of_the_largest_numbers(tmp_path):
    stored = store([mine(n=2**63 - 1), mine(n=2**63 - 1, actor="you")], "csv", tmp_path / "two")
    for unit in ((), ACTOR):
        plan = plan_of(Question(unit, aggregates=(f"SUM(n, {bounds(0, 2**63 - 1)})",)), stored.registration)
        assert [m.unit_value * v[0] for m, v in zip(plan.measurements, run(plan, stored), strict=True)] == [
            18446744073709551614
        ]


@given(
    kind=st.sampled_from(["BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(18,6)", "DECIMAL(38,0)"]),
    low=st.decimals(-(10**37), 10**37, allow_nan=False),
    high=st.decimals(-(10**37), 10**37, allow_nan=False),
)
def test_every_grid_keeps_the_totals_in_128_bits(kind, low, high):
    """Design 2.9; and exact types are exact unless that would not fit."""
    low, high = sorted((Fraction(low), Fraction(high)))
    try:
        grid = choose_grid(parse_type(kind), Bounds(low, high), "x")
    except RefusedError:
        return
    assert S * grid.largest * 2**36 < 2**126
    assert S * grid.width * 2**36 < 2**126
    assert grid.lowest * grid.step <= low < (grid.lowest + 1) * grid.step
    assert grid.highest * grid.step <= high < (grid.highest + 1) * grid.step
    size = max(abs(low), abs(high))
    if kind == "DOUBLE":
        assert size == 0 or size / 2**40 <= grid.step < size / 2**39
    elif size < 10**9:
        scale = parse_type(kind).scale
        assert (Fraction(1, 10**scale) / grid.step).denominator == 1  # every value lies on it
