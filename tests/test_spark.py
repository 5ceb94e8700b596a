"""Spark as a source, on a real one: the same answers as DuckDB, a lazy plan run once, and nothing of its own words."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.cli import main
from discreet.engines.duckdb import DuckDBEngine
from discreet.engines.engine import Engine
from discreet.engines.spark import SparkEngine, SparkQuery
from discreet.errors import EngineError, RefusedError, SourceError, UsageError
from discreet.plan import Request
from discreet.planning import make_plan
from discreet.relational import compile_plan
from discreet.sources import identify, locate, register, register_frame
from discreet.sql import parse, parse_expression
from spark_session import MASTER

HUGE = "40000000"  # an epsilon at which the noise is far below one unit
SQL = (
    "SELECT COUNT(*) AS n, SUM(x, contribution_bounds_per_row => (0, 50)) AS s, AVG(f, contribution_bounds_per_row => "
    "(-5, 5)) AS a, STDDEV(x, contribution_bounds_per_row => (0, 50)) AS d, COUNT(DISTINCT actor) AS u FROM data"
)
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


def totals(engine: Engine, registration: Any) -> list[list[int]]:
    """The exact totals of `SQL`."""
    request = Request(Fraction(1), unit=parse_expression("actor", "unit"), max_contributions=7)
    plan = make_plan(parse(SQL), registration, request)
    return [total.to_ints() for total in engine.run(compile_plan(plan, 0, engine.quirks))]


def opened(source: object, folder: Path, **more: Any) -> Any:
    return discreet.open(
        source,
        privacy_unit="actor",
        max_contributions=40,
        budget=(10**9, "0.001"),
        ledger=folder.parent / "ledger.db",
        **more,
    )


def test_totals_are_those_of_duckdb(spark: Any, folder: Path) -> None:
    """Bit for bit, over the same Parquet files: as files, as a frame of many partitions, as a table, from JSON."""
    mine = register(locate(folder))
    meant = totals(DuckDBEngine(mine), mine)
    assert sum(map(sum, meant)) != 0
    frame = spark.read.parquet(str(folder))
    # JSON has no NaN: Spark writes a text there, and the column would be one.
    frame.na.drop(subset=["kind"]).drop("f").write.json(str(folder.parent / "lines"))
    frame.createOrReplaceTempView("visits")
    for source in (frame, frame.repartition(7), spark.table("visits")):
        registration = register_frame(source, "visits")
        assert totals(SparkEngine(registration, source), registration) == meant
    location = locate(f"spark:{MASTER}::parquet.{folder}")
    registration = register(location)
    assert totals(SparkEngine(registration, location.address), registration) == meant
    lines = register(locate(f"spark:{MASTER}::json.{folder.parent / 'lines'}"))
    assert [column.name for column in lines.schema.columns] == ["actor", "kind", "x"]


def test_a_lazy_plan_is_run_once(spark: Any, folder: Path) -> None:
    """Its rows are drawn anew in each run: were it run twice, COUNT(x) and the weights would not fit together."""
    counted = spark.sparkContext.accumulator(0)

    def seen(parts: Any) -> Any:
        for row in parts:
            counted.add(1)
            yield row

    frame = spark.createDataFrame(spark.read.parquet(str(folder)).rdd.mapPartitions(seen), "actor string, kind string, "
                                  "x bigint, f double")  # fmt: skip
    registration = register_frame(frame, "visits")
    assert counted.value == 0
    totals(SparkEngine(registration, frame), registration)
    assert counted.value == 1000


def test_one_action_a_result_and_only_totals_come_back(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What weighs the units is part of each result's own statement: it is no action, and no unit reaches the driver.
    One action looks whether two keys are one; of a thousand rows of fifty actors three rows come back, a group each."""
    frame = spark.read.parquet(str(folder))
    registration = register_frame(frame, "visits")
    request = Request(
        Fraction(1),
        unit=parse_expression("actor", "unit"),
        max_contributions=7,
        keys={"kind": ["A", "M", "none", None]},
    )
    sql = SQL.replace("COUNT(DISTINCT actor)", "MEDIAN(x, contribution_bounds_per_row => (0, 50))")
    plan = make_plan(parse(sql.replace("SELECT", "SELECT kind,") + " GROUP BY kind"), registration, request)
    engine = SparkEngine(registration, frame)
    statement = compile_plan(plan, 0, engine.quirks)
    brought: list[int] = []
    real = SparkQuery._rows
    monkeypatch.setattr(
        SparkQuery, "_rows", lambda self, text: (rows := real(self, text), brought.append(len(rows)))[0]
    )
    store = spark._jsparkSession.sharedState().statusStore()
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty(60_000)
    first = store.executionsCount()
    engine.run(statement)
    bus.waitUntilEmpty(60_000)
    done = store.executionsList()
    # The others make names of statements known, and start nothing.
    actions = [n for n in range(first, done.size()) if not done.apply(n).jobs().isEmpty()]
    assert len(statement.results) == 2  # the sums and counts, and the leaves of the median's tree
    assert len(actions) == 1 + len(statement.results)
    no_key_twice, totals_, leaves = brought
    assert (no_key_twice, totals_) == (0, 3)  # "none" has no rows
    assert 3 < leaves <= 3 * 51


def test_files_that_change_meanwhile(spark: Any, folder: Path) -> None:
    """They are read in place, twice: what was read of two versions is not used."""
    registration = register(locate(f"spark:{MASTER}::parquet.{folder}"))
    request = Request(Fraction(1), unit=parse_expression("actor", "unit"), max_contributions=7)
    plan = make_plan(parse(SQL), registration, request)
    engine = SparkEngine(registration, MASTER)
    statement = compile_plan(plan, 0, engine.quirks)
    with engine.session(statement.columns) as session:
        before = session.totals(statement)
        pq.write_table(pq.read_table(folder / "part1.parquet").slice(0, 10), folder / "part2.parquet")
        with pytest.raises(EngineError, match="was changed while it was read"):
            session.totals(statement)
    assert engine.run(statement)[0].to_ints()[0] > before[0].to_ints()[0]


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
    assert not [t.name for t in spark.catalog.listTables("global_temp") if t.name != "visits"]


def test_the_command_line(spark: Any, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = f"spark:{MASTER}::parquet.{folder}"
    asked = ["--unit", "actor", "--max-contributions", "40", "--epsilon", HUGE, "--budget", "1000000000"]
    asked += ["--ledger", str(folder.parent / "ledger.db"), "--format", "csv"]
    with pytest.raises(SystemExit) as left:
        main(["query", source, "SELECT COUNT(*) AS n FROM data", *asked])
    assert left.value.code == 0
    assert capfd.readouterr().out.splitlines()[1].startswith("888")


def test_from_names_the_table_and_budget_finds_it(
    spark: Any, folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    name = f"visits_{abs(hash(folder))}"
    spark.read.parquet(str(folder)).write.saveAsTable(name)
    ledger = ["--ledger", str(tmp_path / "ledger.db")]
    asked = ["--unit", "actor", "--max-contributions", "40", "--epsilon", "1", "--budget", "3", "--format", "csv"]
    try:
        for command in (
            ["query", f"spark:{MASTER}", f"SELECT COUNT(*) AS n FROM {name}", *asked, *ledger],
            ["budget", f"spark:{MASTER}::{name}", *ledger],
        ):
            with pytest.raises(SystemExit) as left:
                main(command)
            assert left.value.code == 0, capfd.readouterr().err
    finally:
        spark.sql(f"DROP TABLE {name}")
    assert "epsilon 2" in capfd.readouterr().out


@pytest.mark.parametrize("way", ["address", "session"])
def test_one_record_changes_no_other_one_s_type(spark: Any, tmp_path: Path, way: str) -> None:
    """JSON is read by the stored schema: inferred anew, a column with one text in it would be text, and all its numbers
    missing."""
    folder = tmp_path / "log"
    folder.mkdir()
    lines = "".join(f'{{"actor":"u{i % 7}","n":{i},"deep":{{"a":1}}}}\n' for i in range(50))

    def ask() -> list[int]:
        place = {"address": (f"spark:{MASTER}::json.{folder}", {}), "session": (spark, {"table": f"json.{folder}"})}
        source, more = place[way]
        data = opened(source, folder, **more)
        sql = "SELECT COUNT(*) AS n, SUM(n, contribution_bounds_per_row => (0, 50)) AS s, COUNT(n) AS c FROM data"
        (row,) = data.query(sql, epsilon=HUGE, fresh=True).to_dicts()
        return [row["n"], row["s"], row["c"]]

    (folder / "a.json").write_text(lines)
    assert ask() == [50, 1225, 50]
    (folder / "a.json").write_text(lines + '{"actor":"x","n":"text","deep":3}\nbroken\n{"actor":"x","n":7}\n')
    assert ask() == [52, 1232, 51]


@pytest.mark.parametrize("way", ["address", "session"])
def test_one_folder_changes_no_other_one_s_key(spark: Any, tmp_path: Path, way: str) -> None:
    """The keys of folders are text, whatever they look like: inferred, one name would make all of them text."""
    folder = tmp_path / "days"

    def part(unit: str) -> None:
        (folder / f"actor={unit}").mkdir(parents=True)
        pq.write_table(pa.table({"n": pa.array([3], pa.int32())}), folder / f"actor={unit}" / "a.parquet")

    def ask() -> int:
        place = {
            "address": (f"spark:{MASTER}::parquet.{folder}", {}),
            "session": (spark, {"table": f"parquet.{folder}"}),
        }
        source, more = place[way]
        data = opened(source, folder, **more)
        sql = "SELECT SUM(n, contribution_bounds_per_row => (0, 10)) AS s FROM data"
        return data.query(sql, epsilon=HUGE, fresh=True).to_dicts()[0]["s"]

    for i in range(20):
        part(str(i))
    assert ask() == 60
    part("ann")
    assert ask() == 63


def test_a_frame_whose_types_are_others_now(spark: Any, tmp_path: Path) -> None:
    first = spark.sql("SELECT 'a' AS actor, 5L AS n, DATE'2024-01-01' AS day, true AS ok")
    opened(first, tmp_path / "x", name="t")
    values = "VALUES ('a', '5'), ('b', 'x') AS given(actor, n)"
    later = spark.sql(f"SELECT actor, n, CAST('2024-01-01' AS STRING) AS day, 1.5D AS ok FROM {values}")
    data = opened(later, tmp_path / "x", name="t")
    sql = (
        "SELECT COUNT(*) AS r, COUNT(n) AS n, SUM(n, contribution_bounds_per_row => (0, 9)) AS s, COUNT(day) AS d, "
        "COUNT(ok) AS o FROM t"
    )
    (row,) = data.query(sql, epsilon=HUGE).to_dicts()
    assert [row[name] for name in "rnsdo"] == [2, 1, 5, 2, 2]


def test_spark_has_no_say(spark: Any, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A plan that fails in one row: neither its text, nor its value, nor a cause leaves."""
    frame = spark.read.parquet(str(folder)).selectExpr("actor", "kind", "CAST(actor || 'secret' AS BIGINT) AS x", "f")
    registration = register_frame(frame, "visits")
    with pytest.raises(EngineError) as caught:
        totals(SparkEngine(registration, frame), registration)
    assert str(caught.value).startswith("engine: could not run the query")
    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None
    assert "secret" not in "".join(capfd.readouterr())


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


@pytest.mark.parametrize(("name", "more"), [("DataFrame", {"name": "t"}), ("SparkSession", {"table": "t"})])
def test_spark_connect_is_refused_before_anything_is_charged(tmp_path: Path, name: str, more: dict[str, str]) -> None:
    thing = type(name, (), {"__module__": f"pyspark.sql.connect.{name.lower()}"})()
    with pytest.raises(SourceError, match="of Spark Connect: cannot be read"):
        opened(thing, tmp_path / "x", **more)


def test_identities() -> None:
    """One budget for the same files, whoever reads them by Spark."""
    one = identify("spark:local::parquet./data/visits/").source
    assert one == identify("spark:local[2]::parquet./data/x/../visits").source
    assert one == identify("spark://host:7077::parquet./data/visits").source
    assert identify("spark://h:7077::Visits").source == identify("spark://h:7077::default.visits").source
