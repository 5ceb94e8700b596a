"""Which measurements a query's aggregates need, how they share epsilon; answers are right at a huge epsilon."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet.dataset import Dataset
from discreet.errors import RefusedError, UsageError

HUGE = 10**8
"""An epsilon at which an answer is exact up to its grid: at most one unit away once in e^(10^8 / limits)."""

Open = Callable[..., Dataset]


@pytest.fixture
def visits(tmp_path: Path) -> Open:
    """Opens a table with room for everything: six rows of three people, or the one given."""
    rows = {
        "who": ["a", "a", "b", "b", "c", "c"],
        "x": [1, 2, 3, 4, None, 60],
        "y": [0.5, 1.5, None, 3.5, 4.5, 5.5],
        "ok": [True, False, None, True, True, False],
    }

    def make(table: dict[str, list[Any]] | pd.DataFrame = rows, **options: Any) -> Dataset:
        frame = pd.DataFrame(table)
        if "x" in frame and frame["x"].dtype == "float64":
            frame["x"] = frame["x"].astype("Int64")
        defaults: dict[str, Any] = {"privacy_unit": "who", "max_contributions": 10}
        if options.get("row_level"):
            defaults = {}
        defaults |= {"name": "visits", "budget": 10**9, "ledger": tmp_path / "ledger.sqlite"}
        return discreet.open(frame, **(defaults | options))

    return make


def test_countif_counts_true_and_neither_false_nor_missing(visits: Open) -> None:
    answer = visits().query(
        "SELECT COUNTIF(ok) AS a, COUNT_IF(x > 1) AS b, COUNTIF(x IS NULL) AS c FROM data", epsilon=HUGE
    )
    assert (answer["a"], answer["b"], answer["c"]) == ((3,), (4,), (1,))


def test_countif_needs_a_condition(visits: Open) -> None:
    with pytest.raises(UsageError, match="COUNTIF: needs conditions; column 'x' is integer"):
        visits().plan("SELECT COUNTIF(x) FROM data", epsilon=1)


def test_average_count_and_sum_of_one_column_need_two_measurements(visits: Open) -> None:
    sql = "SELECT AVG(x) AS a, COUNT(x) AS n, SUM(x) AS s FROM data"
    plan = visits().plan(sql, epsilon=1, bounds={"x": (0, 10)})
    assert [m.statistic for m in plan.measurements] == ["centred_sum", "count"]
    assert [m.epsilon for m in plan.measurements] == [Fraction(1, 2)] * 2


def test_share_changes_the_split_and_nothing_is_lost(visits: Open) -> None:
    calls = "COUNT(*, share => 3) AS n, COUNTIF(ok, share => 0.5) AS k, COUNT(DISTINCT who, share => 2) AS u"
    plan = visits().plan(f"SELECT {calls} FROM data", epsilon="0.1")
    assert [m.epsilon for m in plan.measurements] == [Fraction(3, 55), Fraction(1, 110), Fraction(2, 55)]
    assert sum(m.epsilon for m in plan.measurements) == Fraction(1, 10)


def test_a_measurement_two_aggregates_need_takes_the_larger_share(visits: Open) -> None:
    sql = "SELECT COUNT(x) AS n, AVG(x, share => 4) AS a, COUNT(*) AS rows FROM data"
    plan = visits().plan(sql, epsilon=1, bounds={"x": (0, 10)})
    assert {m.statistic + str(m.expression is None): m.epsilon for m in plan.measurements} == {
        "countFalse": Fraction(4, 9),
        "centred_sumFalse": Fraction(4, 9),
        "countTrue": Fraction(1, 9),
    }


def test_shares_are_shown_before_and_after(visits: Open) -> None:
    data, sql = visits(), "SELECT COUNT(*, share => 3) AS n, COUNTIF(ok) AS k FROM data"
    for details in (data.estimate(sql, epsilon=1).report(), data.query(sql, epsilon=1).report()):
        assert [m["share"] for m in details["measurements"]] == ["3/4", "1/4"]


@pytest.mark.parametrize("written", ["0", "-1", "1e7", "1e-7", "'a'", "NULL", "TRUE", "who", "1 / 2"])
def test_bad_shares_are_refused_before_anything_is_charged(visits: Open, written: str) -> None:
    data = visits()
    with pytest.raises((UsageError, RefusedError)):
        data.query(f"SELECT COUNT(*, share => {written}) AS n FROM data", epsilon=1)
    balance = data.balance()
    assert balance is not None
    assert balance.left.epsilon == 10**9


@pytest.mark.parametrize(
    "call",
    [
        "COUNT(*, contribution_bounds_per_row => (0, 1))",
        "COUNT(*, share => 1, share => 2)",
        "SUM(x, limits => (0, 1))",
        "COUNT(x, ok)",
        "SUM(DISTINCT x)",
        "SUM(COUNT(x))",
        "AVG(*)",
    ],
)
def test_calls_with_what_is_not_known_are_refused(visits: Open, call: str) -> None:
    with pytest.raises((UsageError, RefusedError)):
        visits().plan(f"SELECT {call} AS s FROM data", epsilon=1, bounds={"x": (0, 1)})


def test_filter_is_a_condition_inside_and_keeps_the_columns_bounds(visits: Open) -> None:
    calls = (
        "COUNT(*) FILTER (WHERE x > 1) AS n, SUM(x) FILTER (WHERE x > 1) AS s, COUNTIF(ok) FILTER (WHERE x < 4) AS k"
    )
    calls += ", AVG(CASE WHEN ok THEN x END) AS a, MEDIAN(x) FILTER (WHERE ok) AS m"
    calls += ", COUNT(DISTINCT x) FILTER (WHERE ok) AS d"
    answer = visits().query(f"SELECT {calls} FROM data", epsilon=HUGE, bounds={"x": (0, 10)})
    row = answer.to_dicts()[0]
    assert (row["n"], row["s"], row["k"], row["m"], row["d"]) == (4, 19, 1, 2.5, 2)
    assert row["a"] == pytest.approx(2.5, abs=1e-3)  # the noise has a scale of some 1e-6


def test_r20_histograms_lose_no_row(visits: Open) -> None:
    """Bins hold their lower edge, the last its upper edge too; what lies beyond counts in the outer bins, or is asked
    for by itself. Edges must increase."""
    data = visits({"n": [0, 5, 10, -1, 11]}, row_level=True)
    answer = data.query("SELECT BIN(n, 0, 10, 2) AS bin, COUNT(*) AS n FROM data GROUP BY bin", epsilon=HUGE)
    assert dict(zip(answer["bin"], answer["n"], strict=True)) == {0: 2, 5: 3, None: 0}
    calls = "COUNTIF(n < 0) AS under, COUNTIF(n >= 0 AND n < 5) AS a, COUNTIF(n BETWEEN 5 AND 10) AS b"
    calls += ", COUNTIF(n > 10) AS over"
    assert data.query(f"SELECT {calls} FROM data", epsilon=HUGE).to_dicts()[0] | {} == {
        **{
            f"{name}{end}": count
            for name, count in zip(("under", "a", "b", "over"), (1, 1, 2, 1), strict=True)
            for end in ("", "_low", "_high")
        }
    }
    for edges in ("10, 0, 2", "0, 0, 2", "0, 10, 0"):
        with pytest.raises(UsageError):
            data.plan(f"SELECT BIN(n, {edges}) AS bin, COUNT(*) AS n FROM data GROUP BY bin", epsilon=1)
