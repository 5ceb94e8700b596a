"""The real sets of the shared data, and the example log."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from discreet.engines.duckdb_connection import connect
from discreet.schema import Registration
from discreet.sources import attach, inspect_source, register, relation

ROOT = Path(__file__).parents[1]


def ask(registration: Registration, query: str) -> list[tuple[Any, ...]]:
    """A query over FROM data, columns by name in braces."""
    used: set[int] = set()

    def column(match: re.Match[str]) -> str:
        position = registration.schema.position(match[1])
        assert position is not None, match[1]
        used.add(position)
        return f"c{position}"

    query = re.sub(r"\{([^}]+)\}", column, query)
    with connect() as connection:
        attach(connection, registration)
        return connection.execute(query.replace("FROM data", f"FROM ({relation(registration, used)})")).fetchall()


def test_the_example_log() -> None:
    registration = register(ROOT / "examples" / "commits.jsonl.gz")
    assert {column.name: str(column.type) for column in registration.schema.columns} == {
        "repo": "VARCHAR",
        "commit": "BIGINT",
        "time": "TIMESTAMPTZ",
        "actor": "VARCHAR",
        "actor_domain": "VARCHAR",
        "committer": "VARCHAR",
        "self_committed": "BOOLEAN",
        "lag_s": "BIGINT",
        "action": "VARCHAR",
        "path": "VARCHAR",
    }
    assert ask(registration, "SELECT {action}, COUNT(*), COUNT(DISTINCT {actor}) FROM data GROUP BY 1 ORDER BY 1") == [
        ("A", 8796, 362),
        ("D", 7781, 135),
        ("M", 75091, 2313),
    ]
    assert ask(registration, "SELECT COUNT(*) FROM data WHERE YEAR({time}) = 2024") == [(6252,)]


@pytest.mark.parametrize(
    ("name", "query", "expected"),
    [
        ("tables/reviews.parquet", "SELECT COUNT(*) FROM data WHERE {rating} = 1", [(11870,)]),
        ("tables/nycflights13.parquet", "SELECT COUNT(*) FROM data WHERE {dep_time} IS NULL", [(8255,)]),
        ("logs/zeek_dns.json.gz", "SELECT COUNT({rtt}), COUNT(DISTINCT {id.orig_h}) FROM data", [(39677, 77)]),
        ("logs/s3_honeybucket.csv", "SELECT COUNT(*), COUNT(DISTINCT {Source IP}) FROM data", [(301, 224)]),
        (
            "logs/eks_audit.jsonl",
            "SELECT COUNT(*), COUNT_IF({responseStatus.code} = 403), COUNT(DISTINCT {user.username}) FROM data",
            [(270, 37, 32)],
        ),
        ("tables/restaurant_week.csv", "SELECT SUM({Money spent (euros)}) FROM data", [(88382,)]),
        (
            "tables/adult.csv",
            "SELECT COUNT_IF({Y} = '>50K'), COUNT_IF({education} = 'HS-grad') FROM data",
            [(7841, 10501)],
        ),
        ("tables/pums_10000.csv", "SELECT SUM({income}), MAX({income}) FROM data", [(309434566.0, 713000.0)]),
        ("tables/pums_null.csv", "SELECT COUNT(*), COUNT(DISTINCT {pid}), COUNT({age}) FROM data", [(1948, 980, 1832)]),
        (
            "tables/acs_ma2019.csv",
            "SELECT COUNT_IF({AGEP} >= 65), COUNT_IF({PUMA} = '25-00703') FROM data",
            [(1693, 2254)],
        ),
    ],
)
def test_real_sets(shared_data: Path, name: str, query: str, expected: list[tuple[Any, ...]]) -> None:
    assert ask(register(shared_data / name), query) == expected


def test_every_table_is_read_whole(shared_data: Path) -> None:
    rows = {row["id"]: row["rows"] for row in json.loads((shared_data / "truth.json").read_text())}
    for name, key in (
        ("pums_dup.csv", "pums_dup"),
        ("reviews.parquet", "reviews"),
        ("nycflights13.parquet", "flights"),
    ):
        inspection = inspect_source(shared_data / "tables" / name)
        assert (inspection.records, inspection.bad_records) == (rows[key], 0)


LOG = re.compile(r"(?P<ip>\S+) \S+ \S+ \[(?P<time>[^\]]+)\] \"(?P<request>.*?)\" (?P<status>\d{3}) (?P<bytes>\d+|-) .*")


def test_the_apache_log_as_csv_and_as_json_lines(shared_data: Path, tmp_path: Path) -> None:
    import csv
    from datetime import datetime

    records = []
    for line in (shared_data / "logs" / "apache_access.log").read_text().splitlines():
        match = LOG.fullmatch(line)
        assert match is not None
        record = match.groupdict()
        record["time"] = datetime.strptime(record["time"], "%d/%b/%Y:%H:%M:%S %z").isoformat()
        records.append(record)
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(records[0]))
        writer.writeheader()
        writer.writerows({**record, "bytes": record["bytes"].replace("-", "")} for record in records)
    with (tmp_path / "a.jsonl").open("w") as file:
        for record in records:
            size = None if record["bytes"] == "-" else int(record["bytes"])
            file.write(json.dumps({**record, "status": int(record["status"]), "bytes": size}) + "\n")
    for name in ("a.csv", "a.jsonl"):
        registration = register(tmp_path / name)
        assert [str(column.type) for column in registration.schema.columns] == [
            "VARCHAR",
            "TIMESTAMPTZ",
            "VARCHAR",
            "BIGINT",
            "BIGINT",
        ]
        assert ask(registration, "SELECT COUNT(*), COUNT(DISTINCT {ip}) FROM data") == [(10000, 1753)]
        assert ask(registration, "SELECT SUM({bytes}), COUNT(*) FROM data WHERE {status} = 404") == [(262219, 213)]
