"""The field's reports on counts, sums, means, keys, bounds, units and budgets: one test a report, by its number.

A *probe* asks at epsilon 10^6, where noise is below 0.001 of the bounds. Reports on reading files are tested
with the sources, on the engine's exact totals with the neighbours (R48, R53, R61).
"""

from __future__ import annotations

import datetime as dt
import json
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.errors import BudgetError, DiscreetError, RefusedError, UsageError

PROBE = 10**6


@pytest.fixture
def opened(tmp_path):
    """Open a table given by its columns."""

    def make(columns, *, unit=None, rows=None, budget=10**9, name="t", **more):
        table = columns if isinstance(columns, pa.Table) else pa.table(columns)
        limits = {"privacy_unit": unit, "max_contributions": rows} if unit else {"row_level": True}
        return discreet.open(table, name=name, **limits, **more, budget=budget, ledger=tmp_path / "ledger.sqlite")

    return make


def spent(data):
    return data.balance().spent.epsilon


def test_r02_no_bounds_no_answer(opened):
    """Design 2.2: no bounds, no answer, and nothing is read or charged."""
    data = opened({"duration": [1.0, 2.0]})
    with pytest.raises(RefusedError) as caught:
        data.query("SELECT SUM(duration) AS s FROM data", epsilon=1)
    text = str(caught.value)
    assert "duration" in text
    assert "--bounds duration=0..100" in text
    assert "contribution_bounds_per_row" in text
    assert spent(data) == 0


def test_r04_a_rare_key_never_shows(opened, tmp_path):
    data = opened({"city": ["A"] * 1000 + ["Zzyx-only-me"]})
    sql = "SELECT city, COUNT(*) AS n FROM data GROUP BY city"
    with pytest.raises(RefusedError) as caught:
        data.query(sql, epsilon=PROBE)
    told = str(caught.value)
    assert all(way in told for way in ("(1)", "(2)", "(3)", "--keys"))
    answer = data.query(sql, epsilon=PROBE, keys={"city": ["A", "B"]})
    assert list(zip(answer["city"], answer["n"], strict=True)) == [("A", 1000), ("B", 0)]
    looked = data.estimate(sql, epsilon=PROBE, keys={"city": ["A", "B"]})
    history = [str(entry) for entry in data.history()]
    for text in (told, str(answer), repr(answer), json.dumps(answer.report()), str(looked), repr(data), *history):
        assert "Zzyx" not in text
    assert b"Zzyx" not in (tmp_path / "ledger.sqlite").read_bytes()


def test_r05_listed_keys_without_rows(opened):
    data = opened({"k": ["A"] * 20, "x": [1] * 20})
    sql = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM data GROUP BY k"
    answer = data.query(sql, epsilon=PROBE, keys={"k": ["A", "B", "C"]}, bounds={"x": (0, 10)})
    assert answer.to_dicts()[1].keys() == answer.to_dicts()[0].keys()
    assert list(zip(answer["k"], answer["n"], answer["s"], strict=True)) == [("A", 20, 20), ("B", 0, 0), ("C", 0, 0)]
    twice = data.query(sql, epsilon=PROBE, keys={"k": ["A", "B", "A", "B"]}, bounds={"x": (0, 10)})
    assert twice["k"] == ("A", "B")


def test_r05_empty_groups_have_the_same_noise(opened):
    """10,000 empty groups at scale 20: the mean size of the noise is 20 within 1.3.

    Its standard deviation is 20 / sqrt(10,000) = 0.2, so 6.5 of them are 1e-10 false alarms; noise that is
    absent, or has half or twice the scale, is told with a probability of 1 - 1e-400.
    """
    keys = ["A", *(f"empty {i}" for i in range(10_000))]
    data = opened({"k": ["A"] * 20})
    answer = data.query("SELECT k, COUNT(*) AS n FROM data GROUP BY k", epsilon="0.05", keys={"k": keys})
    noise = np.array(answer["n"][1:])
    assert abs(np.abs(noise).mean() - 20) < 1.3
    assert {type(n) for n in answer["n"]} == {int}


def test_r07_the_number_typed_is_the_whole_cost(opened):
    data = opened({"x": [1, 2, 3], "u": ["a", "b", "c"]}, unit="u", rows=1, budget=10)
    for number, selected in enumerate(
        ("AVG(x) AS m", "COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m", "COUNT(*), COUNT(x), AVG(x), COUNT(DISTINCT u)"), 1
    ):
        sql = f"SELECT {selected} FROM data"
        plan = data.plan(sql, epsilon=1, bounds={"x": (0, 10)})
        assert sum((m.epsilon for m in plan.measurements), Fraction(0)) == 1
        report = data.query(sql, epsilon=1, bounds={"x": (0, 10)}).report()
        assert sum(Fraction(m["epsilon"]) for m in report["measurements"]) == 1
        assert spent(data) == number


@pytest.mark.parametrize("unit", [None, "u"])
def test_r08_no_rows_and_one_row_look_alike(opened, unit):
    data = opened(
        {"x": [5.0, 7.0, None], "who": ["one", "none", "none"], "u": ["a", "b", "c"]},
        unit=unit,
        rows=1 if unit else None,
    )
    selected = "COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m" + (", COUNT(DISTINCT u) AS d" if unit else "")
    for epsilon in (1, PROBE):
        shapes = []
        for who in ("nobody", "one"):
            answer = data.query(
                f"SELECT {selected} FROM data WHERE who = '{who}'", epsilon=epsilon, bounds={"x": (2, 10)}
            )
            (row,) = answer.rows()
            assert all(math.isfinite(value) for value in row.values())
            assert all(2 <= row[name] <= 10 for name in ("m", "m_low", "m_high"))
            shapes.append({name: type(value) for name, value in row.items()})
        assert shapes[0] == shapes[1]
    empty = opened(
        {"x": pa.array([], pa.float64()), "u": pa.array([], pa.string())}, unit=unit, rows=1 if unit else None, name="e"
    )
    answer = empty.query(
        "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM data", epsilon=PROBE, bounds={"x": (2, 10)}
    )
    assert answer["n"] == (0,)
    assert answer["s"][0] == pytest.approx(0, abs=0.01)
    assert 2 <= answer["m"][0] <= 10


def test_r17_counts_are_integers_of_either_sign(opened):
    """1,000 groups that are truly 0, at epsilon 1: unbiased, so the total stays near 0.

    Its standard deviation is sqrt(1000 * 1.84) = 43; 300 of it are 7, or 3e-12 false alarms; clamped at 0 the
    total would be about +425. No negative count among the 1,000 has a probability of 0.73^1000.
    """
    data = opened({"k": ["other"]})
    answer = data.query(
        "SELECT k, COUNT(*) AS n FROM data GROUP BY k", epsilon=1, keys={"k": [f"g{i}" for i in range(1000)]}
    )
    assert {type(n) for n in answer["n"]} == {int}
    assert abs(sum(answer["n"])) < 300
    assert min(answer["n"]) < 0 < max(answer["n"])


def test_r18_means_lie_inside_their_bounds(opened):
    """One row x = 50 in each of 1,000 groups and none in 1,000 others, at epsilon 0.01."""
    data = opened({"k": list(range(1000)), "x": [50] * 1000})
    answer = data.query(
        "SELECT k, AVG(x) AS m FROM data GROUP BY k",
        epsilon="0.01",
        keys={"k": list(range(2000))},
        bounds={"x": (0, 100)},
    )
    for row in answer.rows():
        assert 0 <= row["m_low"] <= row["m"] <= row["m_high"] <= 100


def test_r21_the_missing_key_the_empty_text_and_the_text_null(opened):
    data = opened({"k": ["a", "a", None, "", "NULL"]})
    sql = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"
    answer = data.query(sql, epsilon=PROBE, keys={"k": ["a", None, ""]})
    assert list(zip(answer["k"], answer["n"], strict=True)) == [("a", 2), (None, 1), ("", 1)]
    answer = data.query(sql, epsilon=PROBE, keys={"k": ["NULL", "", None]})
    assert list(zip(answer["k"], answer["n"], strict=True)) == [("NULL", 1), ("", 1), (None, 1)]


def test_r26_the_same_question_asked_fresh_costs_again(opened, tmp_path):
    data = opened({"x": [1, 2, 3]}, budget=2, name="t")
    for _ in range(10):
        data.query("SELECT COUNT(*) FROM data", epsilon="0.1", fresh=True)
    again = opened({"x": [1, 2, 3]}, budget=2, name="t")
    for _ in range(10):
        again.query("SELECT COUNT(*) FROM data", epsilon="0.1", fresh=True)
    assert spent(data) == spent(again) == 2
    with pytest.raises(BudgetError):
        data.query("SELECT COUNT(*) FROM data", epsilon="0.1", fresh=True)
    assert data.query("SELECT COUNT(*) FROM data", epsilon="0.1").replayed


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1e400", "", "one", True, 1e-320, None, [1]])
def test_r27_what_is_no_epsilon(opened, bad):
    """Design 2.4: refused by name, and free."""
    data = opened({"x": [1]}, budget=1)
    with pytest.raises(UsageError, match="epsilon"):
        data.query("SELECT COUNT(*) FROM data", epsilon=bad)
    assert data.balance().queries == 0


def test_r50_the_sensitivities_and_the_relation(opened):
    """Add or remove one row: 10, 10 and 1; the relation is printed with each answer."""
    data = opened({"x": [1]})
    answer = data.query(
        """SELECT COUNT(*) AS n, SUM(x, contribution_bounds_per_row => (-10, 10)) AS a,
           SUM(x, contribution_bounds_per_row => (0, 10)) AS b FROM data""",
        epsilon=3,
    )
    report = answer.report()
    assert [(m["sensitivity"], m["scale"]) for m in report["measurements"]] == [("1", "1"), ("10", "10"), ("10", "10")]
    assert report["relation"] == "add or remove all rows of one privacy unit"


def test_r51_clipping_is_by_row_and_floats_do_not_overflow(opened):
    data = opened({"x": [1000] + [0] * 9})
    answer = data.query("SELECT SUM(x) AS s FROM data", epsilon=PROBE, bounds={"x": (0, 10)})
    assert answer["s"] == (10,)
    floats = opened({"x": pa.array([1e38] * 4 + [-1e38] * 7, pa.float32())}, name="floats")
    answer = floats.query("SELECT SUM(x) AS s FROM data", epsilon=PROBE, bounds={"x": (-1e38, 1e38)})
    assert answer["s"][0] == pytest.approx(-3e38, rel=1e-3)


def test_r53_limits_hold_on_the_final_keys(opened):
    """One row in each of 100 groups, then keys of an expression that merge them: still one row's weight."""
    days = [dt.date(2024, 1, 1) + dt.timedelta(days=i) for i in range(100)]
    data = opened({"u": ["zero"] * 100 + ["other"], "day": [*days, days[0]]}, unit="u", rows=1)
    answer = data.query(
        "SELECT YEAR(day) AS y, COUNT(*) AS n FROM data GROUP BY YEAR(day)", epsilon=PROBE, keys={"y": [2024]}
    )
    assert answer["n"] == (2,)  # both weigh 1
    assert data.query("SELECT COUNT(*) AS n FROM data", epsilon=PROBE)["n"] == (2,)


def test_r54_rows_without_a_unit_are_left_out(opened):
    data = opened({"u": ["a", "a", "a", None, None, None], "x": [1] * 6}, unit="u", rows=1)
    answer = data.query(
        "SELECT COUNT(*) AS n, SUM(x) AS s, COUNT(DISTINCT u) AS who FROM data", epsilon=PROBE, bounds={"x": (-10, 10)}
    )
    assert (answer["n"], answer["s"], answer["who"]) == ((1,), (1,), (1,))


def test_r56_nan_is_missing(opened):
    data = opened({"x": [1.0, 2.0, 3.0] + [math.nan] * 100})
    answer = data.query(
        "SELECT COUNT(*) AS n, COUNT(x) AS c, SUM(x) AS s, AVG(x) AS m FROM data", epsilon=PROBE, bounds={"x": (0, 10)}
    )
    assert (answer["n"], answer["c"]) == ((103,), (3,))
    assert answer["s"][0] == pytest.approx(6, abs=0.01)
    assert answer["m"][0] == pytest.approx(2, abs=0.01)


def test_r59_equal_bounds(opened):
    data = opened({"x": [1, 5, 9]})
    for call in ("SUM", "AVG"):
        with pytest.raises(UsageError) as caught:
            data.query(f"SELECT {call}(x) AS s FROM data", epsilon=1, bounds={"x": (10, 0)})
        assert "10 and 0" in str(caught.value)
    answer = data.query("SELECT SUM(x) AS s FROM data", epsilon=PROBE, bounds={"x": (5, 5)})
    assert answer["s"] == (15,)
    assert answer.report()["measurements"][0]["sensitivity"] == "5"
    answer = data.query("SELECT AVG(x) AS m FROM data", epsilon=1, bounds={"x": (5, 5)})
    assert answer["m"] == (5.0,)
    with pytest.raises(RefusedError, match="always 0"):
        data.query("SELECT SUM(x) AS s FROM data", epsilon=1, bounds={"x": (0, 0)})
    assert spent(data) == PROBE + 1


@pytest.mark.parametrize(
    "bad", [(0, math.inf), (-math.inf, 0), (math.nan, 1), (0, math.nan), ("0", "1"), (0,), 5, (True, 2)]
)
def test_r60_bounds_that_are_none(opened, bad):
    data = opened({"x": [1, 5, 9]})
    with pytest.raises(UsageError, match="bounds"):
        data.query("SELECT SUM(x) AS s FROM data", epsilon=1, bounds={"x": bad})
    assert data.balance().queries == 0


def test_r62_empty_sums_and_large_numbers(opened):
    top = 2**63 - 1
    data = opened({"x": [top, top]})
    answer = data.query("SELECT SUM(x) AS s FROM data", epsilon=10**8, bounds={"x": (0, top)})
    assert answer["s"][0] == pytest.approx(2 * top, rel=1e-6)
    answer = data.query("SELECT SUM(x) AS s FROM data WHERE x < 0", epsilon=10**8, bounds={"x": (0, 10)})
    assert answer["s"] == (0,)


def test_r64_the_reported_scale(opened):
    """Scores from 0 to 100 at epsilon 1: the noise of their sum has scale 100."""
    data = opened({"score": [50.0] * 10})
    report = data.query("SELECT SUM(score) AS s FROM data", epsilon=1, bounds={"score": (0, 100)}).report()
    assert report["measurements"][0]["scale_in_the_answer"] == 100


def test_r66_a_spent_budget_stays_spent(opened):
    data = opened({"x": [1]}, budget=1)
    data.query("SELECT COUNT(*) FROM data", epsilon=1)
    for tiny in (1e-17, "5e-324", "0.000000000000000000001", "0.000000000001"):
        with pytest.raises(DiscreetError):
            data.query("SELECT COUNT(*) FROM data", epsilon=tiny)
        assert spent(data) == 1
    assert data.balance().queries == 1


def test_r66_the_smallest_epsilon_counts(opened):
    data = opened({"x": [1]}, budget="0.000000000003")
    before = Fraction(0)
    for _ in range(3):
        data.query("SELECT COUNT(*) FROM data", epsilon="0.000000000001", fresh=True)
        assert spent(data) > before
        before = spent(data)
    with pytest.raises(BudgetError):
        data.query("SELECT COUNT(*) FROM data", epsilon="0.000000000001", fresh=True)


def test_r67_costs(opened):
    """Less noise costs more, the order of queries changes nothing, disjoint groups cost once."""
    costs = [discreet.LaplaceMechanism(scale, 1).loss(1).epsilon for scale in (1, 10, 100)]
    assert costs == sorted(costs, reverse=True)
    assert costs == [1, Fraction(1, 10), Fraction(1, 100)]

    keys = {"k": list(range(10))}
    bins = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"
    whole = "SELECT COUNT(*) AS n FROM data"
    table = {"k": list(range(10)), "u": [f"u{i % 4}" for i in range(10)]}
    for name, queries in (("one", (bins, whole)), ("other", (whole, bins))):
        data = opened(table, budget=10, name=name)
        for sql in queries:
            data.query(sql, epsilon=1, keys=keys if sql is bins else None)
        assert spent(data) == 2  # ten disjoint bins cost 1
    data = opened(table, unit="u", rows=3, budget=10, name="three")
    report = data.query(bins, epsilon=1, keys=keys).report()
    assert spent(data) == 1
    assert report["measurements"][0]["scale_in_the_answer"] == 3
