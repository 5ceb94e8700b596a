"""Dates and hours are read in the query's zone, on every machine; and whom the promise is about is said."""

from __future__ import annotations

import datetime as dt
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.keys import KeyText

MOMENTS = [
    "2024-03-10T14:59:59Z",  # 23:59 in Tokyo; 10:59 in New York, after the clocks went forward
    "2024-03-10T15:00:00Z",  # midnight of the 11th in Tokyo
    "2024-03-10T06:30:00Z",  # 01:30 in New York, before the clocks went forward at 02:00
    "2024-03-10T07:30:00Z",  # 03:30 in New York
    "1969-12-31T23:30:00Z",  # 1970 in Tokyo
]
TABLE = pa.table(
    {
        "u": ["p", "p", "q", "q", "r"],
        "time": pa.array([dt.datetime.fromisoformat(m) for m in MOMENTS], pa.timestamp("us", tz="UTC")),
        "bare": pa.array([dt.datetime.fromisoformat(m[:-1]) for m in MOMENTS], pa.timestamp("us")),
    }
)
TOKYO, NEW_YORK = "Asia/Tokyo", "America/New_York"


@pytest.fixture
def data(tmp_path: Path) -> discreet.Dataset:
    return discreet.open(
        TABLE, name="t", privacy_unit="u", max_contributions=5, budget=10**9, ledger=tmp_path / "ledger"
    )


def counts(data: discreet.Dataset, expression: str, keys: Any, **given: Any) -> list[int]:
    sql = f"SELECT {expression} AS k, COUNT(*) AS n FROM data GROUP BY k"
    answer = data.query(sql, epsilon=10**6, keys={"k": keys} if keys else None, fresh=True, **given)
    return list(answer["n"])


DAYS = ["2024-03-10", "2024-03-11", "1969-12-31", "1970-01-01"]


@pytest.mark.parametrize(
    ("zone", "expected"),
    [("UTC", [4, 0, 1, 0]), (TOKYO, [3, 1, 0, 1]), ("+09:00", [3, 1, 0, 1]), ("-14:30", [2, 0, 1, 0])],
)
def test_days(data: discreet.Dataset, zone: str, expected: list[int]) -> None:
    assert counts(data, "DATE(time)", DAYS, timezone=zone) == expected
    assert counts(data, "CAST(time AS DATE)", DAYS, timezone=zone) == expected
    assert counts(data, "EXTRACT(DATE FROM time)", DAYS, timezone=zone) == expected
    assert counts(data, "DATE_TRUNC(time, DAY)", DAYS, timezone=zone) == expected
    # A zone that is written out is that zone; a bare time has none.
    assert counts(data, "DATE(time AT TIME ZONE 'Asia/Tokyo')", DAYS, timezone=zone) == [3, 1, 0, 1]
    assert counts(data, "DATE(time, 'Asia/Tokyo')", DAYS, timezone=zone) == [3, 1, 0, 1]
    assert counts(data, "DATE(bare)", DAYS, timezone=zone) == [4, 0, 1, 0]


def test_hours_follow_the_clocks(data: discreet.Dataset) -> None:
    hours = counts(data, "EXTRACT(HOUR FROM time)", None, timezone=NEW_YORK)
    assert {hour: n for hour, n in enumerate(hours) if n} == {1: 1, 3: 1, 10: 1, 11: 1, 18: 1}
    months = counts(data, "DATE_TRUNC(time, MONTH)", ["1970-01-01", "2024-03-01"], timezone=TOKYO)
    assert months == [1, 4]
    assert counts(data, "EXTRACT(YEAR FROM time)", [1969, 1970], timezone=TOKYO) == [0, 1]


def test_written_times_are_of_the_zone(data: discreet.Dataset) -> None:
    def counted(where: str, zone: str) -> int:
        answer = data.query(f"SELECT COUNT(*) AS n FROM data WHERE {where}", epsilon=10**6, timezone=zone, fresh=True)
        return int(answer["n"][0])  # type: ignore[arg-type]

    for written in ("'2024-03-11'", "DATE '2024-03-11'", "'2024-03-11 00:00:00'", "TIMESTAMP '2024-03-11 00:00:00'"):
        assert counted(f"time >= {written}", TOKYO) == 1
        assert counted(f"time >= {written}", "UTC") == 0
    assert counted("time >= '2024-03-11T00:00:00+09:00'", "UTC") == 1
    assert counted("time >= '2024-03-10T15:00:00Z'", TOKYO) == 1
    assert counted("time BETWEEN '2024-03-10' AND '2024-03-10 23:59:59'", TOKYO) == 3
    assert counted("bare >= '2024-03-10 15:00:00'", TOKYO) == 1
    for unit, expected in (
        ("DATE_DIFF(DATE(time), DATE '1970-01-01', MONTH) >= 0", [4, 5]),
        ("time >= '1970-01-01'", [4, 5]),
    ):
        assert [counted(unit, zone) for zone in ("UTC", TOKYO)] == expected
    # Time that has gone by is the same everywhere; since when, is not.
    since = "DATE_DIFF(time, '1970-01-01 00:00:00', MINUTE) = {}"
    assert [counted(since.format(minutes), zone) for minutes, zone in ((-30, "UTC"), (510, TOKYO))] == [1, 1]


def test_keys_that_are_moments_say_their_zone(data: discreet.Dataset) -> None:
    sql = "SELECT time, COUNT(*) AS n FROM data GROUP BY time"
    keys: list[Any]
    for keys in (["2024-03-10T15:00:00"], [dt.datetime(2024, 3, 10, 15)], [KeyText("2024-03-10..2024-03-11 by hour")]):
        data.plan(sql, epsilon=1, keys={"time": keys})
        with pytest.raises(discreet.UsageError, match="must say their time zone"):
            data.plan(sql, epsilon=1, keys={"time": keys}, timezone=TOKYO)
    keys = ["2024-03-11T00:00:00+09:00", dt.datetime(2024, 3, 10, 6, 30, tzinfo=dt.UTC), None]
    assert list(data.query(sql, epsilon=10**6, keys={"time": keys}, timezone=TOKYO)["n"]) == [1, 1, 0]


@pytest.mark.parametrize("zone", ["Tokyo", "", "Mars/Base", "+25:00", "utc; DROP", None, 9])
def test_zones_that_are_none(data: discreet.Dataset, zone: Any) -> None:
    with pytest.raises(discreet.UsageError, match="timezone"):
        data.query("SELECT COUNT(*) AS n FROM data", epsilon=1, timezone=zone)
    assert data.balance().queries == 0  # type: ignore[union-attr]


def test_the_zone_is_told_and_part_of_the_question(data: discreet.Dataset) -> None:
    sql = "SELECT COUNT(*) AS n FROM data"
    answers = [data.query(sql, epsilon=1, timezone=zone) for zone in ("UTC", TOKYO)]
    assert [answer.report()["timezone"] for answer in answers] == ["UTC", TOKYO]
    assert str(answers[1]).endswith("time zone Asia/Tokyo")
    assert data.plan(sql, epsilon=1).digest != data.plan(sql, epsilon=1, timezone=TOKYO).digest


def test_the_machines_zone_does_not_matter(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import discreet, test_timezones as t
data = discreet.open(t.TABLE, name="t", privacy_unit="u", max_contributions=5, budget=10**9, ledger=sys.argv[1])
print(t.counts(data, "DATE(time)", t.DAYS), t.counts(data, "DATE(time)", t.DAYS, timezone=t.TOKYO))
"""
    seen = {
        subprocess.run(
            [sys.executable, "-c", program, str(tmp_path / zone.replace("/", "-"))],
            env={**os.environ, "TZ": zone},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for zone in ("UTC", "Pacific/Auckland", "America/New_York")
    }
    assert seen == {"[4, 0, 1, 0] [3, 1, 0, 1]\n"}


# --- units of several columns ---------------------------------------------------------------------------------------


def test_per_actor_and_day(tmp_path: Path) -> None:
    """u's rows of two days are two units, and every output says so; the query's zone does not move the unit's days."""
    data = discreet.open(
        TABLE, name="t", privacy_unit="u, DATE(time)", max_contributions=1, budget=10**9, ledger=tmp_path / "l"
    )
    answer = data.query("SELECT COUNT(*) AS n FROM data", epsilon=10**6)
    assert answer["n"] == (3,)  # p and q on one day each, with two rows at half the weight; r
    local = data.query("SELECT COUNT(*) AS n FROM data", epsilon=10**6, timezone=TOKYO)
    assert local["n"] == (3,)
    for text in (str(answer), repr(answer), str(answer.report())):
        assert "per u and day" in text
    assert answer.report()["privacy_unit"] == "u, DATE(time)"
    assert "per u and day" in str(data.estimate("SELECT COUNT(*) AS n FROM data", epsilon=1).report())
    # A day of the owner's own zone.
    tokyo = discreet.open(
        TABLE,
        name="t",
        privacy_unit="u, DATE(time AT TIME ZONE 'Asia/Tokyo')",
        max_contributions=1,
        budget=10**9,
        ledger=tmp_path / "l2",
    )
    assert tokyo.query("SELECT COUNT(*) AS n FROM data", epsilon=10**6)["n"] == (4,)


@pytest.mark.parametrize(
    ("unit", "promise"),
    [
        ("u", "per u"),
        ("u, bare", "per u and bare"),
        ("u, EXTRACT(YEAR FROM time)", "per u and year"),
        ("u, DATE_TRUNC(time, MONTH)", "per u and month"),
    ],
)
def test_promises(tmp_path: Path, unit: str, promise: str) -> None:
    data = discreet.open(TABLE, name="t", privacy_unit=unit, max_contributions=1, ledger=tmp_path / "l")
    assert data.plan("SELECT COUNT(*) AS n FROM data", epsilon=1).unit.promise == promise


def test_row_level_promise(tmp_path: Path) -> None:
    data = discreet.open(TABLE, name="t", row_level=True, budget=10**6, ledger=tmp_path / "l")
    answer = data.query("SELECT COUNT(*) AS n FROM data", epsilon=1)
    assert answer.report()["promise"] == "per row"
    assert "per row" in repr(answer)


def test_a_zone_that_only_python_knows_is_refused_before_the_debit(tmp_path, monkeypatch):
    """It would raise in the engine, and only where there is a row with a time."""
    import zoneinfo

    import discreet
    from discreet.errors import UsageError

    known = zoneinfo.available_timezones()
    monkeypatch.setattr(zoneinfo, "available_timezones", lambda: {*known, "Mars/Olympus"})
    file = tmp_path / "visits.csv"
    file.write_text("who,at\na,2024-01-01T10:00:00Z\n")
    data = discreet.open(file, privacy_unit="who", max_contributions=1, budget="1", ledger=tmp_path / "l.sqlite")
    for sql, zone in (
        ("SELECT COUNTIF(EXTRACT(HOUR FROM at AT TIME ZONE 'Mars/Olympus') = 3) AS n FROM data", "UTC"),
        ("SELECT COUNTIF(EXTRACT(HOUR FROM at) = 3) AS n FROM data", "Mars/Olympus"),
    ):
        with pytest.raises(UsageError, match="not known to this version of DuckDB"):
            data.query(sql, epsilon="0.5", timezone=zone)
    assert data.balance().queries == 0
    assert data.query("SELECT COUNTIF(EXTRACT(HOUR FROM at) = 3) AS n FROM data", epsilon="0.5", timezone="Asia/Tokyo")
