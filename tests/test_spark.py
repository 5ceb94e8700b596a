"""Spark as a source, on a real one: the ways in, answers, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.cli import main
from discreet.errors import RefusedError, SourceError, UsageError
from discreet.sources import identify, locate, register
from spark_session import MASTER

HUGE = "40000000"  # an epsilon at which the noise is far below one unit
KEYS = {"kind": ["A", "M", "none", None]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of 500 rows each, of 50 actors."""
    found = tmp_path / "visits"
    found.mkdir()
    for part in range(2):
        i = range(500 * part, 500 * part + 500)
        table = pa.table({
            "actor": [f"u{n % 50}" if n % 9 else None for n in i],
            "kind": [("A", "M", "D", None)[n % 4] for n in i],
            "x": [n * 7 % 101 - 20 for n in i],
            "f": [float("nan") if n % 11 == 0 else n / 7 - 60 for n in i],
        })  # fmt: skip
        pq.write_table(table, found / f"part{part}.parquet")
    return found


def opened(source: object, folder: Path, **more: Any) -> Any:
    return discreet.open(
        source,
        privacy_unit="actor",
        max_contributions=40,
        budget=(10**9, "0.001"),
        ledger=folder.parent / "ledger.db",
        **more,
    )


def test_answers_and_unknown_groups(spark: Any, folder: Path) -> None:
    frame = spark.read.parquet(str(folder))
    data = opened(frame, folder, name="visits")
    found = data.query("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind", epsilon=HUGE, keys=KEYS).to_dicts()
    named = {row["kind"]: row["n"] for row in found}
    assert named["none"] == 0
    assert named["A"] == sum(1 for n in range(0, 1000, 4) if n % 9)
    chosen = data.query("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind", epsilon=HUGE, delta="1e-6",
                        max_groups_contributed=4).to_dicts()  # fmt: skip
    assert {row["kind"] for row in chosen} == {"A", "M", "D", None}


def test_a_table_of_a_session_and_its_settings(spark: Any, folder: Path) -> None:
    before = {name: spark.conf.get(name) for name in ("spark.sql.session.timeZone", "spark.sql.caseSensitive")}
    spark.read.parquet(str(folder)).createOrReplaceTempView("visits")
    data = opened(spark, folder, table="visits")
    assert data.query("SELECT COUNT(*) AS n FROM data", epsilon=HUGE).to_dicts()[0]["n"] == 888
    assert before == {name: spark.conf.get(name) for name in before}
    assert not spark.catalog.listTables("global_temp") or {t.name for t in spark.catalog.listTables()} == {"visits"}


def test_the_command_line(spark: Any, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = f"spark:{MASTER}::parquet.{folder}"
    asked = ["--unit", "actor", "--max-contributions", "40", "--epsilon", HUGE, "--budget", "1000000000"]
    asked += ["--ledger", str(folder.parent / "ledger.db"), "--format", "csv"]
    with pytest.raises(SystemExit) as left:
        main(["query", source, "SELECT COUNT(*) AS n FROM data", *asked])
    assert left.value.code == 0
    assert capfd.readouterr().out.splitlines()[1].startswith("888")


def test_what_is_refused(spark: Any, folder: Path) -> None:
    frame = spark.read.parquet(str(folder))
    data = opened(frame, folder, name="visits")
    with pytest.raises(RefusedError, match="not supported on Spark"):
        data.query("SELECT COUNT(*) AS n FROM data WHERE REGEXP_CONTAINS(kind, 'A+')", epsilon=1)
    with pytest.raises(SourceError, match="no such table"):
        register(locate(f"spark:{MASTER}::nowhere.table"))
    with pytest.raises(SourceError, match="another master"):
        register(locate("spark:local[1]::parquet./nowhere"))
    for text in ("spark:", "spark:mesos", "spark:local", "spark:local::a b", "spark://host/x"):
        with pytest.raises(UsageError):
            identify(text)


def test_identities() -> None:
    """One budget for the same files, whoever reads them by Spark."""
    one = identify("spark:local::parquet./data/visits/").source
    assert one == identify("spark:local[2]::parquet./data/x/../visits").source
    assert one == identify("spark://host:7077::parquet./data/visits").source
    assert identify("spark://h:7077::Visits").source == identify("spark://h:7077::default.visits").source
