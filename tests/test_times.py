"""Averages and quantiles of dates, times and durations: bounds in dates, dates in, dates out."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import discreet
from discreet.bounds import bounds_text, fitted, parse_bounds, parse_bounds_option
from discreet.cli.app import app
from discreet.errors import DiscreetError, RefusedError, UsageError
from discreet.query import Bounds
from discreet.schema import Kind
from discreet.sql import parse
from discreet.time_values import number_of, time_of

HUGE = 10**8
D = dt.date


def open_frame(table: dict[str, Any], tmp_path: Path, types: dict[str, str]) -> discreet.Dataset:
    frame = pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in table.items()})
    return discreet.open(frame, name="t", row_level=True, budget=10**9, ledger=tmp_path / "ledger", types=types)


def dates(tmp_path: Path, *days: dt.date | None) -> discreet.Dataset:
    return open_frame({"day": list(days)}, tmp_path, {"day": "DATE"})


def test_r65_the_average_of_dates_is_a_date(tmp_path: Path) -> None:
    data = dates(tmp_path, D(1950, 1, 1), D(2000, 1, 1), None)
    answer = data.query(
        "SELECT AVG(day) AS mean, MEDIAN(day) AS middle, COUNT(day) AS n FROM data",
        epsilon=HUGE,
        bounds={"day": (D(1900, 1, 1), D(2050, 1, 1))},
    )
    row = answer.to_dicts()[0]
    assert abs(row["mean"] - D(1975, 1, 1)) <= dt.timedelta(days=1)
    assert abs(row["middle"] - D(1975, 1, 1)) <= dt.timedelta(days=1)
    assert row["mean_low"] <= row["mean"] <= row["mean_high"]
    assert type(row["mean"]) is type(row["mean_low"]) is dt.date
    assert "1975-01-01" in str(answer)
    assert answer.report()["rows"][0]["mean"].startswith("197")
    assert answer.report()["measurements"][0]["bounds"] == ["1900-01-01", "2050-01-01"]


def test_r65_a_duration_between_dates_is_in_days(tmp_path: Path) -> None:
    table = {"a": [D(2020, 1, 1)] * 3, "b": [D(2020, 1, 11), D(2020, 1, 21), D(2024, 1, 1)]}
    data = open_frame(table, tmp_path, {"a": "DATE", "b": "DATE"})
    for bounds in (
        (0, 365),
        (0, dt.timedelta(days=365)),
        ("0 days", "365 days"),
        (np.timedelta64(0), np.timedelta64(365, "D")),
    ):
        sql = "SELECT AVG(b - a) AS d, MEDIAN(b - a) AS m FROM data"
        answer = data.query(sql, epsilon=HUGE, bounds={"d": bounds, "m": bounds}, fresh=True)
        assert answer["d"][0] == pytest.approx((10 + 20 + 365) / 3)
        assert answer["m"][0] == 20


def test_durations_between_times_are_in_seconds(tmp_path: Path) -> None:
    begin = dt.datetime(1969, 12, 31, 23, 59, 59)
    table = {"a": [begin] * 2, "b": [begin + dt.timedelta(seconds=1.5), begin + dt.timedelta(hours=3)]}
    data = open_frame(table, tmp_path, {"a": "TIMESTAMP", "b": "TIMESTAMP"})
    sql = "SELECT AVG(b - a, contribution_bounds_per_row => (0, '1 hour')) AS d FROM data"
    assert data.query(sql, epsilon=HUGE)["d"][0] == pytest.approx((1.5 + 3600) / 2)
    assert data.query(sql.replace("AVG", "SUM"), epsilon=HUGE)["d"][0] == pytest.approx(3601.5, abs=0.01)


@pytest.mark.parametrize("zone", [None, dt.UTC])
def test_times_before_and_after_1970(zone: dt.tzinfo | None, tmp_path: Path) -> None:
    times = [dt.datetime(1931, 3, 4, 5, 6, 7, 8, zone), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999, zone)]
    data = open_frame({"t": times}, tmp_path, {"t": "TIMESTAMPTZ" if zone else "TIMESTAMP"})
    bounds = {"t": (D(1930, 1, 1), D(1990, 1, 1))}
    answer = data.query("SELECT AVG(t) AS a, PERCENTILE_CONT(t, 0) AS first FROM data", epsilon=HUGE, bounds=bounds)
    middle = times[0] + (times[1] - times[0]) / 2
    assert abs(answer["a"][0] - middle) < dt.timedelta(hours=1)  # the noise has a scale of 9 seconds
    assert answer["a"][0].tzinfo == zone
    assert abs(answer["first"][0] - times[0]) < dt.timedelta(days=60 * 365.25 / 2**15)


def test_whatever_lies_beyond_the_bounds_is_clamped(tmp_path: Path) -> None:
    data = dates(tmp_path, D(1, 1, 1), D(9999, 12, 31), D(2020, 6, 1))
    sql = "SELECT PERCENTILE_CONT(day, 0) AS a, MEDIAN(day) AS b, PERCENTILE_CONT(day, 1) AS c FROM data"
    answer = data.query(sql, epsilon=HUGE, bounds={"day": ("2020-01-01", "2020-12-31")})
    assert answer.to_dicts()[0]["a"] == D(2020, 1, 1)
    assert answer.to_dicts()[0]["b"] == D(2020, 6, 1)
    assert answer.to_dicts()[0]["c"] == D(2020, 12, 31)


def test_infinite_dates_are_clamped_too(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "t.parquet"
    duckdb.sql(
        "SELECT * FROM (VALUES ('-infinity'::DATE, '-infinity'::TIMESTAMP), ('infinity', 'infinity'), "
        "('290000-01-01', '290000-01-01'), (NULL, NULL)) v(day, t)"
    ).write_parquet(str(path))
    data = discreet.open(path, row_level=True, budget=10**9, ledger=tmp_path / "ledger")
    bounds = {"day": (D(2000, 1, 1), D(2001, 1, 1)), "t": (D(2000, 1, 1), D(2001, 1, 1))}
    answer = data.query("SELECT AVG(day) AS d, AVG(t) AS t FROM data", epsilon=HUGE, bounds=bounds)
    assert D(2000, 1, 1) <= answer["d"][0] <= D(2001, 1, 1)
    assert dt.datetime(2000, 1, 1) <= answer["t"][0] <= dt.datetime(2001, 1, 1)


def test_noisy_dates_stay_within_their_bounds_and_sort(tmp_path: Path) -> None:
    table = {"g": ["a", "a", "b"], "day": [D(2020, 1, 1), D(2020, 1, 3), D(2021, 1, 1)]}
    data = open_frame(table, tmp_path, {"g": "VARCHAR", "day": "DATE"})
    keys = {"g": ["a", "b", "c"]}
    bounds = {"day": (D(2019, 1, 1), D(2022, 1, 1))}
    sql = "SELECT g, AVG(day) AS mean, MEDIAN(day) AS middle FROM data GROUP BY g ORDER BY AVG(day) DESC"
    noisy = data.query(sql, epsilon="0.01", keys=keys, bounds=bounds)
    for row in noisy.to_dicts():
        for name in ("mean", "middle"):
            assert D(2019, 1, 1) <= row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] <= D(2022, 1, 1)
    exact = data.query(sql + " LIMIT 1", epsilon=HUGE, keys={"g": ["a", "b"]}, bounds=bounds)
    assert (exact["g"], exact["mean"]) == (("b",), (D(2021, 1, 1),))
    having = sql.replace("ORDER BY", "HAVING AVG(day) > '2020-06-01' ORDER BY")
    assert data.query(having, epsilon=HUGE, keys={"g": ["a", "b"]}, bounds=bounds)["g"] == ("b",)
    year = data.query(
        sql.replace("AVG(day) AS mean", "EXTRACT(YEAR FROM AVG(day)) AS mean"), epsilon=HUGE, keys=keys, bounds=bounds
    )
    assert 2021 in year["mean"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("SUM(day)", "SUM of column 'day': needs a number, not date. Hint: ask for AVG or MEDIAN; or subtract a date"),
        ("STDDEV(day)", "STDDEV_SAMP of column 'day': needs a number, not date"),
        ("SUM(t)", "TIMESTAMP '2020-01-01'\\) is in seconds"),
    ],
)
def test_sums_and_spreads_of_dates_are_refused_with_what_to_write(call: str, said: str, tmp_path: Path) -> None:
    data = open_frame(
        {"day": [D(2020, 1, 1)], "t": [dt.datetime(2020, 1, 1)]}, tmp_path, {"day": "DATE", "t": "TIMESTAMP"}
    )
    with pytest.raises(UsageError, match=said):
        data.plan(f"SELECT {call} FROM data", epsilon=1, bounds={"day": (D(2019, 1, 1), D(2021, 1, 1))})
    assert data.plan(
        "SELECT SUM(day - DATE '2020-01-01', contribution_bounds_per_row => (0, 9)) AS s FROM data", epsilon=1
    )


def test_without_bounds_the_hint_shows_dates(tmp_path: Path) -> None:
    with pytest.raises(RefusedError, match=r"--bounds day=2020-01-01\.\.2024-12-31.*DATE '2020-01-01'"):
        dates(tmp_path, D(2020, 1, 1)).plan("SELECT AVG(day) FROM data", epsilon=1)


@pytest.mark.parametrize(
    ("column", "bounds"),
    [
        ("day", (0, 10)),
        ("day", (dt.timedelta(0), dt.timedelta(1))),
        ("day", ("2020-01-01T10:00", "2020-01-02T10:00")),
        ("t", (D(2020, 1, 1), dt.datetime(2020, 1, 2, tzinfo=dt.UTC))),
        ("x", (D(2020, 1, 1), D(2020, 1, 2))),
        ("x", (dt.timedelta(0), dt.timedelta(1))),
        ("x", (0, D(2020, 1, 1))),
        ("x", (1, dt.timedelta(1))),
        ("day", (D(2020, 1, 2), D(2020, 1, 1))),
        ("day", ("2020-02-30", "2020-03-01")),
        ("day", (pd.NaT, pd.Timestamp("2020-01-01"))),
        ("x", ("0", "10")),
    ],
)
def test_bounds_of_another_kind_are_refused_before_anything_is_charged(
    column: str, bounds: tuple[Any, Any], tmp_path: Path
) -> None:
    table = {"day": [D(2020, 1, 1)], "t": [dt.datetime(2020, 1, 1)], "x": [1]}
    data = open_frame(table, tmp_path, {"day": "DATE", "t": "TIMESTAMP", "x": "BIGINT"})
    with pytest.raises(UsageError):
        data.query(f"SELECT AVG({column}) AS a FROM data", epsilon=1, bounds={column: bounds})
    balance = data.balance()
    assert balance is not None
    assert balance.left.epsilon == 10**9


def test_all_ways_to_write_bounds_are_one(tmp_path: Path) -> None:
    data = dates(tmp_path, D(2020, 1, 1))
    ways: list[Any] = [
        (D(1900, 1, 1), D(2050, 1, 1)),
        ("1900-01-01", "2050-01-01"),
        (pd.Timestamp("1900-01-01"), np.datetime64("2050-01-01")),
        (np.datetime64("1900-01-01", "ns"), dt.datetime(2050, 1, 1)),
        parse_bounds_option("day=1900-01-01..2050-01-01")[1],
    ]
    digests = {data.plan("SELECT AVG(day) AS a FROM data", epsilon=1, bounds={"day": way}).digest for way in ways}
    for pair in (
        "DATE '1900-01-01', DATE '2050-01-01'",
        "'1900-01-01', '2050-01-01'",
        "CAST('1900-01-01' AS DATE), '2050-01-01'",
    ):
        sql = f"SELECT AVG(day, contribution_bounds_per_row => ({pair})) AS a FROM data"
        digests.add(data.plan(sql, epsilon=1).digest)
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("text", "ends", "written"),
    [
        ("x=1900-01-01..2050-01-01", ("1900-01-01", "2050-01-01"), "date"),
        ("x=2020-01-01..2020-01-01T06:00", ("2020-01-01T00:00:00", "2020-01-01T06:00:00"), "time"),
        ("x=2020-01-01..2020-01-01T06:00Z", ("2020-01-01T00:00:00+00:00", "2020-01-01T06:00:00+00:00"), "instant"),
        ("x=0..365 days", ("0 seconds", "31536000 seconds"), "duration"),
        ("x=-1.5 hours..90min", None, ""),
        ("x=-1.5 hours..90 minutes", ("-5400 seconds", "5400 seconds"), "duration"),
        ("x=-3..20200101", ("-3", "20200101"), "number"),
        ("x=1..2 days", None, ""),
        ("x=2020-01-01..5", None, ""),
    ],
)
def test_bounds_on_the_command_line(text: str, ends: tuple[str, str] | None, written: str) -> None:
    if ends is None:
        with pytest.raises(UsageError):
            parse_bounds_option(text)
        return
    name, bounds = parse_bounds_option(text)
    assert (name, bounds_text(bounds), bounds.written) == ("x", ends, written)


def test_bounds_survive_being_written_as_sql() -> None:
    from discreet.query_text import node_text

    for pair in (
        "(0.5, 2)",
        "('1900-01-01', '2050-01-01')",
        "('2020-01-01T10:00:00+00:00', '2020-01-02')",
        "('1.5 seconds', '2 weeks')",
    ):
        for call in ("AVG(x", "PERCENTILE_CONT(x, 0.25"):
            query = parse(f"SELECT {call}, contribution_bounds_per_row => {pair}, share => 2.5) AS a FROM data")
            text = node_text(query.outputs[0].node)
            assert parse(f"SELECT {text} AS a FROM data").outputs == query.outputs


@given(st.datetimes())
def test_times_are_numbers_and_back(moment: dt.datetime) -> None:
    for kind in (Kind.TIMESTAMP, Kind.TIMESTAMPTZ):
        back = time_of(number_of(moment), kind)
        assert isinstance(back, dt.datetime)
        assert back.replace(tzinfo=None) == moment
    assert time_of(number_of(moment.date()), Kind.DATE) == moment.date()
    assert (
        number_of(moment.date()) * 86_400 * 10**6 <= number_of(moment) < (number_of(moment.date()) + 1) * 86_400 * 10**6
    )


def test_rounding_of_dates() -> None:
    assert [time_of(0.5, Kind.DATE), time_of(-0.5, Kind.DATE), time_of(0.4, Kind.DATE)] == [
        D(1970, 1, 2),
        D(1970, 1, 1),
        D(1970, 1, 1),
    ]
    assert (time_of(0.2, Kind.DATE, up=True), time_of(0.9, Kind.DATE, up=False)) == (D(1970, 1, 2), D(1970, 1, 1))
    assert time_of(1e300, Kind.DATE) == D(9999, 12, 31)
    assert time_of(-1e300, Kind.TIMESTAMP) == dt.datetime.min


def test_fitted_bounds() -> None:
    days = Bounds(number_of(D(2020, 1, 1)), number_of(D(2020, 1, 2)), "date")  # type: ignore[arg-type]
    assert fitted(days, Kind.DATE, "", "x") == Bounds(days.lower, days.upper)
    as_times = fitted(days, Kind.TIMESTAMP, "", "x")
    assert time_of(as_times.upper, Kind.TIMESTAMP) == dt.datetime(2020, 1, 2)
    assert fitted(parse_bounds((0, dt.timedelta(hours=36)), "x"), Kind.INTEGER, "day", "x").upper == 1.5


def test_the_estimate_of_an_average_of_times_is_in_days_or_seconds(tmp_path: Path) -> None:
    table = {"day": [D(2020, 1, 1)], "t": [dt.datetime(2020, 1, 1)]}
    data = open_frame(table, tmp_path, {"day": "DATE", "t": "TIMESTAMP"})
    bounds = {name: (D(2020, 1, 1), D(2021, 1, 1)) for name in table}
    days, seconds = (
        data.estimate(f"SELECT AVG({name}) AS a FROM data", epsilon=1, bounds=bounds).statistics[0] for name in table
    )
    assert (days.measure, seconds.measure) == ("days", "seconds")
    assert seconds.by_size[1000] == pytest.approx(86_400 * days.by_size[1000], rel=1e-6)
    assert "days for 1,000 rows" in str(data.estimate("SELECT AVG(day) AS a FROM data", epsilon=1, bounds=bounds))


def test_the_command_line_takes_dates(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    (tmp_path / "t.csv").write_text("day\n1950-01-01\n2000-01-01\n")
    arguments = [
        "query",
        str(tmp_path / "t.csv"),
        "SELECT AVG(day) AS a FROM data",
        "--row-level",
        "--epsilon",
        "100000000",
    ]
    arguments += [
        "--bounds",
        "day=1900-01-01..2050-01-01",
        "--budget",
        "1000000000",
        "--ledger",
        str(tmp_path / "l"),
        "--format",
        "csv",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    value = dt.date.fromisoformat(result.stdout.splitlines()[1].split(",")[0])
    assert abs(value - D(1975, 1, 1)) <= dt.timedelta(days=1)


def test_every_refusal_is_ours(tmp_path: Path) -> None:
    data = dates(tmp_path, D(2020, 1, 1))
    for pair in (
        "(NULL, 1)",
        "(TRUE, 1)",
        "(day, day)",
        "('a', 'b')",
        "(DATE '2020-01-01')",
        "5",
        "('1 day', '2 days')",
    ):
        with pytest.raises(DiscreetError):
            data.plan(f"SELECT AVG(day, contribution_bounds_per_row => {pair}) AS a FROM data", epsilon=1)
