"""The field's reports on expressions, from SQL to the answer, with a probe: at epsilon 10^6 noise is below 0.001."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

import discreet
from discreet.errors import RefusedError, UsageError

PROBE = 10**6


@pytest.fixture
def opened(tmp_path):
    """Open a table given by its columns; each row is a person, unless a unit is named."""

    def make(columns, *, unit=None, rows=None):
        limits = {"privacy_unit": unit, "max_contributions": rows} if unit else {"row_level": True}
        return discreet.open(pa.table(columns), name="t", **limits, budget=10**9, ledger=tmp_path / "ledger.sqlite")

    return make


def value(answer, name="s"):
    return answer[name][0]


def test_r62_division_by_zero_and_of_whole_numbers(opened):
    data = opened({"a": [7, 7], "b": [0, 2]})
    assert value(data.query("SELECT SUM(a / b) AS s FROM data", epsilon=PROBE, bounds={"s": (0, 10)})) == pytest.approx(
        3.5, abs=0.01
    )
    counted = data.query("SELECT COUNT(a / b) AS n, COUNT(a % b) AS m FROM data", epsilon=PROBE)
    assert (value(counted, "n"), value(counted, "m")) == (1, 1)


def test_r62_no_rows_and_the_largest_numbers(opened):
    data = opened({"a": [2**63 - 1, 2**63 - 1]})
    sql = "SELECT SUM(a + 1) AS s, COUNT(a + 1) AS n, SUM(a - 1) AS less FROM data"
    bounds = {"s": (0, 2**63 - 1), "less": (0, 2**63 - 1)}
    answer = data.query(sql, epsilon=PROBE, bounds=bounds)
    # a + 1 is beyond 64 bits: missing, as if there were no rows.
    assert value(answer, "n") == 0
    assert abs(value(answer)) < 2**63 * 1e-3
    assert value(answer, "less") == pytest.approx(2 * (2**63 - 2), rel=1e-3)


def test_r65_a_duration_is_days_between_dates(opened):
    data = opened(
        {
            "start": [dt.date(1950, 1, 1), dt.date(2024, 2, 28), None],
            "stop": [dt.date(1950, 1, 11), dt.date(2024, 3, 1), dt.date(2024, 1, 1)],
        }
    )
    sql = "SELECT AVG(stop - start) AS days, SUM(DATE_DIFF(stop, start, DAY)) AS s, COUNT(stop - start) AS n FROM data"
    answer = data.query(sql, epsilon=PROBE, bounds={"days": (0, 365), "s": (0, 365)})
    assert value(answer, "days") == pytest.approx(6, abs=0.01)
    assert value(answer) == 12
    assert value(answer, "n") == 2
    by_year = data.query(
        "SELECT YEAR(start) AS y, COUNT(*) AS n FROM data GROUP BY y", epsilon=PROBE, keys={"y": [1950, 2024, 1970]}
    )
    assert list(zip(by_year["y"], by_year["n"], strict=True)) == [(1950, 1), (2024, 1), (1970, 0)]


def test_r65_seconds_between_times(opened):
    noon = dt.datetime(1969, 12, 31, 12)
    data = opened({"a": [noon, noon], "b": [noon + dt.timedelta(seconds=1.5), noon - dt.timedelta(days=400)]})
    answer = data.query("SELECT SUM(b - a) AS s FROM data", epsilon=PROBE, bounds={"s": (-86400, 86400)})
    assert value(answer) == pytest.approx(1.5 - 86400, abs=1)  # the second is clamped


def test_r53_limits_hold_on_computed_keys(opened):
    """One person in many groups of a computed key weighs no more than the limit, whatever the key is made of."""
    hundred = list(range(100))
    data = opened(
        {
            "user": ["u"] * 100 + ["v"],
            "k": [*hundred, 1],
            "s": [f"Key{i % 3}" for i in hundred] + ["key1"],
            "t": [dt.datetime(2024, 1, 1) + dt.timedelta(days=i) for i in hundred] + [dt.datetime(2024, 1, 1)],
        },
        unit="user",
        rows=10,
    )
    for key, keys in (
        ("FLOOR(k / 10) * 10", list(range(0, 100, 10))),
        ("UPPER(s)", ["KEY0", "KEY1", "KEY2"]),
        ("DATE_TRUNC(t, MONTH)", [f"2024-0{m}-01" for m in (1, 2, 3, 4)]),
        ("BIN(k, 0, 100, 4)", [0, 25, 50, 75]),
        ("CASE WHEN k < 50 THEN 'low' ELSE 'high' END", ["low", "high"]),
        ("CAST(k AS VARCHAR)", [str(i) for i in hundred]),
        ("SUBSTR(s, 4)", ["0", "1", "2"]),
    ):
        sql = f"SELECT {key} AS g, COUNT(*) AS n FROM data GROUP BY g"
        answer = data.query(sql, epsilon=PROBE, keys={"g": keys}, max_groups_contributed=10)
        # The hundred rows of u weigh 10 together, v's row 1; each group's count is rounded.
        assert abs(sum(answer["n"]) - 11) <= len(keys) / 2 + 0.01, key


def test_r20_bins_lose_no_row(opened):
    data = opened({"x": [0.0, 5.0, 10.0, -1.0, 11.0, float("inf"), float("nan"), None]})
    answer = data.query("SELECT BIN(x, 0, 10, 2) AS bin, COUNT(*) AS n FROM data GROUP BY bin", epsilon=PROBE)
    # Bins need no list of keys; NaN is missing, and missing values have a row of their own.
    assert list(zip(answer["bin"], answer["n"], strict=True)) == [(0, 2), (5, 4), (None, 2)]
    with pytest.raises(UsageError, match="below"):
        data.query("SELECT COUNT(*) FROM data GROUP BY BIN(x, 10, 10, 2)", epsilon=PROBE)


def test_expressions_of_text_and_choice(opened):
    data = opened({"path": ["/Doc/a", "/doc/b", "/src/c", None], "size": ["12", "x", " 7 ", "1e9"]})
    sql = (
        "SELECT LOWER(SPLIT_PART(path, '/', 2)) AS part, COUNT(*) AS n, "
        "SUM(COALESCE(CAST(size AS DOUBLE), 0.5), contribution_bounds_per_row => (0, 100)) AS s FROM data GROUP BY part"
    )
    answer = data.query(sql, epsilon=PROBE, keys={"part": ["doc", "src", None]})
    assert list(zip(answer["part"], answer["n"], strict=True)) == [("doc", 2), ("src", 1), (None, 1)]
    assert answer["s"] == pytest.approx([12.5, 7, 100], abs=0.1)


def test_decimals_stay_exact(opened):
    prices = [Decimal("0.10")] * 30
    data = opened({"price": prices, "n": [3] * 30})
    answer = data.query("SELECT SUM(price * n * 1.5) AS s FROM data", epsilon=10**9, bounds={"s": (0, 1)})
    assert value(answer) == pytest.approx(13.5, abs=1e-6)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM data WHERE LOWER(n) = 'a'",
        "SELECT COUNT(*) FROM data WHERE n",
        "SELECT SUM(LOWER(s), contribution_bounds_per_row => (0, 1)) FROM data",
        "SELECT COUNT(*) FROM data WHERE REGEXP_CONTAINS(s, '(')",
        "SELECT COUNT(*) FROM data WHERE s || s || s || s || s || s || s || s || s || s || s = 'a'",
        "SELECT COUNT(*) FROM data GROUP BY SQRT(n)",
        "SELECT MAX(n) FROM data",
    ],
)
def test_a_refusal_costs_nothing(opened, sql):
    data = opened({"n": [1], "s": ["a"]})
    with pytest.raises((UsageError, RefusedError)) as caught:
        data.query(sql, epsilon=1)
    assert caught.value.hint
    assert data.balance().spent.epsilon == 0
    with pytest.raises((UsageError, RefusedError)) as again:
        data.estimate(sql, epsilon=1)
    assert str(again.value) == str(caught.value)
