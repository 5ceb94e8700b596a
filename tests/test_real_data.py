"""Real logs and tables, at an epsilon that lets their true answers be seen (issue 2, section 4 and "done when").

All limits are above the largest unit's rows and all bounds hold every value, so that nothing is clipped.
"""

from __future__ import annotations

import csv
import datetime as dt
import json
import re

import duckdb
import pytest

import discreet

EPSILON = 10**8
"""So large that every count below is exact with a probability of at least 1 - 1e-12: its noise has a scale of
at most 10^4 rows / (EPSILON / 4), 4e-4, and half a row is 1250 times that."""


def opened(path, tmp_path, unit, rows, **more):
    limits = {"privacy_unit": unit, "max_contributions": rows} if unit else {"row_level": True}
    return discreet.open(path, **limits, **more, budget=10**9, ledger=tmp_path / "ledger.sqlite")


def truth(sql, **paths):
    return duckdb.sql(sql.format(**paths)).fetchall()


def rows_of(answer, *names):
    return list(zip(*(answer[name] for name in names), strict=True))


# --- the audit log of commits ----------------------------------------------------------------------------


@pytest.fixture
def commits(shared_data, tmp_path):
    return opened(shared_data / "logs" / "numpy_commits.jsonl.gz", tmp_path, "actor", 10_000)


def test_commits_by_action(commits):
    answer = commits.query(
        "SELECT action, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors FROM data GROUP BY action",
        epsilon=EPSILON,
        keys={"action": ["A", "D", "M"]},
    )
    assert rows_of(answer, "action", "changes", "actors") == [("A", 8796, 362), ("D", 7781, 135), ("M", 75091, 2313)]


def test_commits_of_one_year(commits):
    for where in ("YEAR(time) = 2024", "time >= '2024-01-01' AND time < '2025-01-01'"):
        answer = commits.query(f"SELECT COUNT(*) AS n FROM data WHERE {where}", epsilon=EPSILON)
        assert answer["n"] == (6252,)


def test_commits_of_every_year(commits, shared_data):
    years = range(2001, 2028)
    answer = commits.query(
        "SELECT YEAR(time) AS year, COUNT(*) AS n, COUNT(DISTINCT actor) AS who FROM data GROUP BY year",
        epsilon=EPSILON,
        keys={"year": list(years)},
    )
    right = truth(
        """SET TimeZone = 'UTC'; SELECT year(time::TIMESTAMPTZ) AS y, count(*), count(DISTINCT actor)
           FROM read_json('{log}', format = 'newline_delimited', columns = {{time: 'VARCHAR', actor: 'VARCHAR'}})
           GROUP BY y ORDER BY y""",
        log=shared_data / "logs" / "numpy_commits.jsonl.gz",
    )
    assert [row for row in rows_of(answer, "year", "n", "who") if row[1]] == right
    assert sum(answer["n"]) == 91_668


def test_commits_by_actor_and_day(shared_data, tmp_path):
    """The unit is an actor's day: as many rows, more units."""
    data = opened(shared_data / "logs" / "numpy_commits.jsonl.gz", tmp_path, "actor, DATE(time)", 10_000)
    answer = data.query("SELECT COUNT(*) AS n, COUNT(lag_s) AS lags FROM data", epsilon=EPSILON)
    assert rows_of(answer, "n", "lags")[0][0] == 91_668
    assert "DATE(time)" in answer.report()["privacy_unit"]


# --- an access log as CSV and as JSON lines --------------------------------------------------------------

LOG = re.compile(
    r'(?P<ip>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+)? ?.*?" (?P<status>\d{3}) (?P<bytes>\d+|-) .*'
)


def access_log(shared_data, tmp_path, format_):
    records = []
    for line in (shared_data / "logs" / "apache_access.log").read_text().splitlines():
        record = LOG.fullmatch(line).groupdict()
        record["time"] = dt.datetime.strptime(record["time"], "%d/%b/%Y:%H:%M:%S %z").isoformat()
        record["status"] = int(record["status"])
        record["bytes"] = None if record["bytes"] == "-" else int(record["bytes"])
        records.append(record)
    path = tmp_path / f"access.{format_}"
    if format_ == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(records[0]))
            writer.writeheader()
            writer.writerows(records)
    else:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


@pytest.mark.parametrize("format_", ["csv", "jsonl"])
def test_the_access_log(shared_data, tmp_path, format_):
    """Against truth.json: failures, bytes per status, visitors per day."""
    data = opened(access_log(shared_data, tmp_path, format_), tmp_path, "ip", 500)
    asked = {entry["id"]: entry for entry in json.loads((shared_data / "truth.json").read_text())}["apache_access"]
    failed, by_status, by_day = (query["answer"] for query in asked["queries"])
    assert data.query("SELECT COUNT(*) AS n FROM data WHERE status >= 400", epsilon=EPSILON)["n"] == tuple(failed[0])

    statuses = [status for status, *_ in by_status] + [418]
    answer = data.query(
        "SELECT status, COUNT(*) AS n, SUM(bytes) AS bytes FROM data GROUP BY status",
        epsilon=EPSILON,
        keys={"status": statuses},
        bounds={"bytes": (0, 70_000_000)},
    )
    # The scale of the sum is 500 * 7e7 / (EPSILON / 2) = 700 bytes: within 25,000 but for 1e-15.
    for got, right in zip(rows_of(answer, "status", "n", "bytes"), [*by_status, [418, 0, 0]], strict=True):
        assert got[:2] == tuple(right[:2])
        assert abs(got[2] - (right[2] or 0)) < 25_000

    answer = data.query(
        "SELECT DATE(time) AS day, COUNT(DISTINCT ip) AS ips, COUNT(*) AS n FROM data GROUP BY DATE(time)",
        epsilon=EPSILON,
        keys={"day": [day for day, *_ in by_day]},
    )
    assert [(day.isoformat(), ips, n) for day, ips, n in rows_of(answer, "day", "ips", "n")] == [
        tuple(row) for row in by_day
    ]


# --- tables ----------------------------------------------------------------------------------------------


def test_reviews_by_vendor(shared_data, tmp_path):
    """578,805 rows of 400,141 reviewers, against the same SQL without privacy."""
    path = shared_data / "tables" / "reviews.parquet"
    data = opened(path, tmp_path, "reviewerId", 1000)
    answer = data.query(
        """SELECT vendorId, COUNT(*) AS n, SUM(rating) AS stars, AVG(rating) AS mean, COUNT(DISTINCT reviewerId) AS who
           FROM data GROUP BY vendorId""",
        epsilon=EPSILON,
        keys={"vendorId": list(range(248))},
        bounds={"rating": (0, 5)},
    )
    right = truth(
        """SELECT vendorId, count(*), sum(rating), avg(rating), count(DISTINCT reviewerId) FROM '{path}'
           GROUP BY ALL ORDER BY vendorId""",
        path=path,
    )
    assert sum(row[1] for row in right) == 578_805
    got = rows_of(answer, "vendorId", "n", "stars", "mean", "who")
    assert [row[:3] + row[4:] for row in got[:247]] == [row[:3] + row[4:] for row in right]
    assert [row[3] for row in got[:247]] == pytest.approx([row[3] for row in right], abs=1e-3)
    assert got[247][:3] == (247, 0, 0)  # no such vendor


FLIGHTS = """SELECT carrier, COUNT(*) AS n, AVG(arr_delay) AS delay FROM data GROUP BY carrier"""


@pytest.mark.parametrize(("unit", "united"), [("tailnum", 57_979), (None, 58_665)])
def test_flights_by_carrier(shared_data, tmp_path, unit, united):
    """Rows without a tail number have no unit, and drop out; at row level they count."""
    path = shared_data / "tables" / "nycflights13.parquet"
    where = "WHERE tailnum IS NOT NULL" if unit else ""
    right = truth(
        f"SELECT carrier, count(*), avg(arr_delay) FROM '{{path}}' {where} GROUP BY ALL ORDER BY carrier", path=path
    )
    answer = opened(path, tmp_path, unit, 600).query(
        FLIGHTS,
        epsilon=EPSILON,
        keys={"carrier": [carrier for carrier, *_ in right]},
        bounds={"arr_delay": (-100, 1300)},
    )
    got = rows_of(answer, "carrier", "n", "delay")
    assert [row[:2] for row in got] == [row[:2] for row in right]
    assert dict(row[:2] for row in got)["UA"] == united
    # OO has 29 delays: the error of its mean has a scale of 600 * 700 / (EPSILON / 3) / 29, 4e-4.
    assert [row[2] for row in got] == pytest.approx([row[2] for row in right], abs=0.02)


def test_intervals_hold_the_truth(commits):
    """At an epsilon one would use: of three actions and two statistics, all lie in intervals of 99.9999999 %.

    Each interval misses with a probability of 1e-9, on top of what weights cut: nothing here.
    """
    answer = commits.query(
        "SELECT action, COUNT(*) AS n, COUNT(DISTINCT actor) AS who FROM data GROUP BY action",
        epsilon=1,
        keys={"action": ["A", "D", "M"]},
        confidence="0.999999999",
    )
    for row, n, who in zip(answer.rows(), (8796, 7781, 75091), (362, 135, 2313), strict=True):
        assert row["n_low"] <= n <= row["n_high"]
        assert row["who_low"] <= who <= row["who_high"]
