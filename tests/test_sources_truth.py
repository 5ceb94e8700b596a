"""Every set of the shared data, opened from its raw file, against truth.json: what its own SQL says of the rows
that have a unit. The table below says of each of its questions how it is asked here, or why it is not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

import discreet
from discreet.errors import RefusedError, UsageError

EPSILON = 10**8
"""So large that counts are exact but for a probability below 1e-12; the noise of sums and means shows in their
intervals."""


@dataclass(frozen=True)
class Asked:
    """One question of truth.json, asked here.

    `keys` names the grouping column; its keys are those of the true answer. `outputs` says which of the true
    answer's columns (from 0) each output must equal, in order.
    """

    sql: str
    outputs: tuple[int, ...] = (0,)
    keys: tuple[str, ...] = ()
    bounds: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Never:
    """A question, or a column of its answer, that cannot be private: MAX is one person's value."""

    sql: str
    hint: str


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of a column between bounds, right to one bin of its 2^16: the first, the second, ... of the true
    answer."""

    column: str
    view: str
    points: tuple[float, ...]
    bounds: tuple[int, int]


@dataclass(frozen=True)
class Source:
    """How one set is opened from its raw file."""

    path: str
    unit: str | None
    options: dict[str, Any] = field(default_factory=dict)
    queries: tuple[tuple[Asked | Never | Quantiles, ...], ...] = ()


MAX = Never("SELECT MAX(x) FROM data", "declare bounds")

SOURCES = {
    "apache_access": Source(
        "logs/apache_access.log",
        "ip",
        {"log_format": "combined"},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE status >= 400"),),
            (
                Asked(
                    "SELECT status AS k, COUNT(*) AS n, SUM(bytes) AS b FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                    {"b": (0, 10**8)},
                ),
            ),
            (
                Asked(
                    "SELECT DATE(time) AS k, COUNT(DISTINCT ip) AS ips, COUNT(*) AS n FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
        ),
    ),
    "cloudtrail_invictus": Source(
        "logs/cloudtrail/*.json.gz",
        "userIdentity.arn",
        {"records": "Records"},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE errorCode IS NOT NULL"),),
            (
                Asked(
                    "SELECT COUNT(DISTINCT userIdentity.arn) AS n FROM data "
                    "WHERE eventName IN ('Decrypt', 'GetSecretValue')"
                ),
            ),
            (
                Asked(
                    'SELECT eventSource AS k, COUNT(*) AS n, COUNT(DISTINCT "userIdentity.arn") AS who FROM data '
                    "GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
        ),
    ),
    "gws_invictus": Source(
        "logs/gws/*.json",
        "actor.email",
        {"records": "activities"},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE id.applicationName = 'admin'"),),
            (
                Asked(
                    "SELECT id.applicationName AS k, COUNT(*) AS n, COUNT(DISTINCT actor.email) AS who FROM data "
                    "GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
            (Asked("SELECT events[0].name AS k, COUNT(*) AS n FROM data GROUP BY k", (1,), ("k",)),),
        ),
    ),
    "zeek_dns": Source(
        "logs/zeek_dns.json.gz",
        "id.orig_h",
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE rcode_name = 'NXDOMAIN'"),),
            (
                Asked(
                    'SELECT qtype_name AS k, COUNT(*) AS n, COUNT(DISTINCT "id.orig_h") AS hosts FROM data GROUP BY k',
                    (1, 2),
                    ("k",),
                ),
            ),
            (
                Asked("SELECT COUNT(rtt) AS n FROM data", (2,)),
                Quantiles("rtt", "rtt", (0.5, 0.95), (0, 10)),
            ),
        ),
    ),
    "otrf_s3_honeybucket": Source(
        "logs/s3_honeybucket.csv",
        "Source IP",
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data"),),
            (Asked('SELECT COUNT(DISTINCT "Source IP") AS n FROM data'),),
            (Asked('SELECT "Event Name" AS k, COUNT(*) AS n FROM data GROUP BY k', (1,), ("k",)),),
        ),
    ),
    "panther_eks": Source(
        "logs/eks_audit.jsonl",
        "user.username",
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE responseStatus.code = 403"),),
            (
                Asked(
                    "SELECT verb AS k, COUNT(*) AS n, COUNT(DISTINCT user.username) AS who FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
            (
                Asked(
                    "SELECT COUNT(DISTINCT user.username) AS n FROM data "
                    "WHERE objectRef.resource = 'secrets' AND (sourceIPs[0] IS NULL OR sourceIPs[0] LIKE '%')"
                ),
            ),
        ),
    ),
    "restaurant_week": Source(
        "tables/restaurant_week.csv",
        "VisitorId",
        {},
        (
            (
                Asked(
                    "SELECT Day AS k, COUNT(*) AS n, COUNT(DISTINCT VisitorId) AS who FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
            (
                Asked(
                    'SELECT SUM("Money spent (euros)") AS s, AVG("Money spent (euros)") AS a FROM data',
                    (0, 1),
                    (),
                    {"Money spent (euros)": (0, 200)},
                ),
                MAX,
            ),
            (Quantiles('"Time spent (minutes)"', "mins", (0.5, 0.95), (0, 300)),),
        ),
    ),
    "adult": Source(
        "tables/adult.csv",
        None,
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE TRIM(\"Y\") = '>50K'"),),
            (Asked("SELECT TRIM(education) AS k, COUNT(*) AS n FROM data GROUP BY k", (1,), ("k",)),),
            (
                Asked(
                    'SELECT AVG("hours-per-week") AS a FROM data',
                    (0,),
                    (),
                    {"hours-per-week": (0, 100)},
                ),
                Quantiles("age", "age::int", (0.5,), (0, 120)),
            ),
        ),
    ),
    "pums_10000": Source(
        "tables/pums_10000.csv",
        None,
        {},
        (
            (
                Asked(
                    "SELECT AVG(income) AS a, SUM(income) AS s FROM data", (0, 1), (), {"income": (-100_000, 2_000_000)}
                ),
                MAX,
            ),
            (
                Asked(
                    "SELECT sex AS k, married AS j, COUNT(*) AS n FROM data GROUP BY k, j",
                    (2,),
                    ("k", "j"),
                ),
            ),
            (Quantiles("age", "age::int", (0.5,), (0, 120)),),
        ),
    ),
    "pums_dup": Source(
        "tables/pums_dup.csv",
        "pid",
        {},
        (
            (Asked("SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS who FROM data", (0, 1)),),
            (Asked("SELECT AVG(income) AS a FROM data", (0,), (), {"income": (-100_000, 2_000_000)}),),
            (
                Asked(
                    "SELECT educ AS k, COUNT(*) AS n, COUNT(DISTINCT pid) AS who FROM data GROUP BY k", (1, 2), ("k",)
                ),
            ),
        ),
    ),
    "pums_null": Source(
        "tables/pums_null.csv",
        "pid",
        {},
        (
            (
                Asked(
                    "SELECT COUNT(*) AS n, COUNT(DISTINCT pid) AS who, COUNTIF(pid IS NULL) AS none FROM data",
                    (0, 1, 2),
                ),
            ),
            (
                Asked(
                    "SELECT AVG(income) AS a, COUNT(income) AS n FROM data",
                    (0, 1),
                    (),
                    {"income": (-100_000, 2_000_000)},
                ),
            ),
            (Asked("SELECT COUNTIF(age IS NULL) AS a, COUNTIF(sex IS NULL) AS s FROM data", (0, 1)),),
        ),
    ),
    "nist_ma2019": Source(
        "tables/acs_ma2019.csv",
        None,
        {"null_values": ["N"]},
        (
            (Asked("SELECT PUMA AS k, COUNT(*) AS n FROM data GROUP BY k", (1,), ("k",)),),
            (
                Asked(
                    "SELECT AVG(PINCP) AS a, COUNT(*) AS n FROM data WHERE PINCP IS NOT NULL",
                    (1, 2),
                    (),
                    {"PINCP": (-100_000, 2_000_000)},
                ),
                Quantiles("PINCP", "try_cast(PINCP as double)", (0.5,), (-100_000, 2_000_000)),
            ),
            (Asked("SELECT COUNT(*) AS n FROM data WHERE AGEP >= 65"),),
        ),
    ),
    "flights": Source(
        "tables/nycflights13.parquet",
        "tailnum",
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE dep_time IS NULL"),),
            (
                Asked(
                    "SELECT carrier AS k, COUNT(*) AS n, COUNT(DISTINCT tailnum) AS planes FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
            (
                Asked("SELECT AVG(arr_delay) AS a FROM data", (0,), (), {"arr_delay": (-200, 2000)}),
                Quantiles("arr_delay", "arr_delay", (0.5, 0.95), (-200, 2000)),
            ),
        ),
    ),
    "reviews": Source(
        "tables/reviews.parquet",
        "reviewerId",
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE rating = 1"),),
            (
                Asked(
                    "SELECT vendorId AS k, COUNT(*) AS n, COUNT(DISTINCT reviewerId) AS who, AVG(rating) AS a "
                    "FROM data GROUP BY k",
                    (1, 2, 3),
                    ("k",),
                    {"rating": (0, 5)},
                ),
            ),
            (
                Asked(
                    "SELECT YEAR(date) AS k, COUNT(*) AS n, COUNT(DISTINCT reviewerId) AS who FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
        ),
    ),
    "numpy_commits": Source(
        "logs/numpy_commits.jsonl.gz",
        "actor",
        {},
        (
            (Asked("SELECT COUNT(*) AS n FROM data WHERE time >= '2024-01-01' AND time < '2025-01-01'"),),
            (
                Asked(
                    "SELECT action AS k, COUNT(*) AS n, COUNT(DISTINCT actor) AS who FROM data GROUP BY k",
                    (1, 2),
                    ("k",),
                ),
            ),
            (
                Asked(
                    "SELECT actor_domain AS k, COUNT(DISTINCT actor) AS who FROM data GROUP BY k",
                    (1,),
                    ("k",),
                ),
            ),
            (
                Never(
                    'SELECT MEDIAN(k) FROM (SELECT "commit", COUNT(*) AS k FROM data GROUP BY "commit")',
                    "",
                ),
            ),
        ),
    ),
}


@pytest.fixture(scope="module")
def truth(shared_data: Path) -> dict[str, Any]:
    return {entry["id"]: entry for entry in json.loads((shared_data / "truth.json").read_text())}


@pytest.fixture
def oracle(shared_data: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"file_search_path": str(shared_data)})
    connection.execute("SET TimeZone = 'UTC'")
    yield connection
    connection.close()


def test_every_set_and_every_question_is_here(truth: dict[str, Any]) -> None:
    assert set(SOURCES) == set(truth)
    for name, source in SOURCES.items():
        assert len(source.queries) == len(truth[name]["queries"]), name
        assert all(source.queries), name


@pytest.mark.parametrize("name", list(SOURCES))
def test_a_set_from_its_raw_file(
    name: str,
    truth: dict[str, Any],
    shared_data: Path,
    tmp_path: Path,
    oracle: duckdb.DuckDBPyConnection,
) -> None:
    source, entry = SOURCES[name], truth[name]
    most = entry["rows_per_unit_max"]
    limits = {"privacy_unit": source.unit, "max_contributions": most} if source.unit else {"row_level": True}
    data = discreet.open(
        str(shared_data / source.path), **limits, **source.options, budget=10**9, ledger=tmp_path / "ledger.sqlite"
    )
    having_a_unit = f"select * from ({entry['view']})"
    if entry["unit"]:
        having_a_unit += f" where {entry['unit']} is not null"
    oracle.execute(f"create temp table v as {having_a_unit}")
    for query, asked in zip(entry["queries"], source.queries, strict=True):
        right = oracle.execute(query["sql"]).fetchall()
        if not entry["null_unit"]:
            assert json.loads(json.dumps(right, default=str)) == query["answer"]
        for question in asked:
            if isinstance(question, Asked):
                compare(data, question, right, most)
            elif isinstance(question, Quantiles):
                compare_quantiles(data, question, oracle)
            else:
                with pytest.raises((RefusedError, UsageError)):
                    data.query(question.sql, epsilon=1)
    data.close()


def compare(data: discreet.Dataset, asked: Asked, right: list[tuple[Any, ...]], most: int) -> None:
    keys: Any = None
    if len(asked.keys) == 1:
        keys = {asked.keys[0]: [row[0] for row in right]}
    elif asked.keys:
        keys = {asked.keys: [row[: len(asked.keys)] for row in right]}
    answer = data.query(
        asked.sql,
        epsilon=EPSILON,
        keys=keys,
        bounds=asked.bounds,
        confidence="0.999999999999",
        max_groups_contributed=min(most, len(right)) if keys and most > 1 else None,
    )
    rows = list(answer.rows())
    names = [name for name in rows[0] if not name.endswith(("_low", "_high"))]
    assert len(rows) == len(right)
    for row, true in zip(rows, right, strict=True):
        key, outputs = names[: len(asked.keys)], names[len(asked.keys) :]
        assert tuple(row[name] for name in key) == tuple(true[: len(key)])
        for name, place in zip(outputs, asked.outputs, strict=True):
            expected = true[place] or 0  # SQL's sum over no values is missing, ours is 0
            largest = max(abs(other[place] or 0) for other in right)
            if isinstance(row[name], int) and largest < 10**7:
                assert row[name] == expected, (asked.sql, row)
            else:
                assert row[f"{name}_low"] <= expected <= row[f"{name}_high"], (asked.sql, row, true)
                assert abs(row[name] - expected) < 1e-4 * float(largest)


def compare_quantiles(data: discreet.Dataset, asked: Quantiles, oracle: duckdb.DuckDBPyConnection) -> None:
    low, high = asked.bounds
    outputs = ", ".join(
        f"PERCENTILE_CONT({asked.column}, {p}, contribution_bounds_per_row => ({low}, {high})) AS q{i}"
        for i, p in enumerate(asked.points)
    )
    answer = data.query(f"SELECT {outputs} FROM data", epsilon=EPSILON)
    values = [x for (x,) in oracle.execute(f"select {asked.view} x from v where x is not null order by x").fetchall()]
    for i, p in enumerate(asked.points):
        place, one_bin = p * (len(values) - 1), (high - low) / 2**16
        # quantile_cont lies between these two values.
        assert values[math.floor(place)] - one_bin <= answer[f"q{i}"][0] <= values[math.ceil(place)] + one_bin
