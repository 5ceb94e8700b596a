"""The Python builder makes the same frozen query as the SQL; answers become typed tables."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet import agg
from discreet.answer import Answer, AnswerColumn
from discreet.answer_tables import as_parquet
from discreet.privacy import PrivacyLoss
from discreet.query_text import node_text
from discreet.schema import BOOLEAN, DATE, FLOAT, INTEGER, TEXT, TIMESTAMP, TIMESTAMPTZ, parse_type
from discreet.sql import parse

TABLE = pa.table(
    {
        "u": range(6),
        "action": ["A", "A", "M", "M", "M", None],
        "files": [1, 2, 3, 4, 5, 6],
        "capital gain": [0, 5, 10, -1, 11, 2],
        "time": pa.array([dt.datetime(2024, m, 1) for m in range(1, 7)], pa.timestamp("us")),
    }
)


@pytest.fixture
def data(tmp_path: Path) -> discreet.Dataset:
    return discreet.open(
        TABLE, name="log", privacy_unit="u", max_contributions=1, budget=(10**9, "1e-3"), ledger=tmp_path / "ledger"
    )


KEYS = {"action": ["M", "A"]}
FILES = {"bounds": (0, 50)}
MEAN = "AVG(files, contribution_bounds_per_row => (0, 50))"


def same(data: discreet.Dataset, builder: Any, sql: str, **given: Any) -> None:
    written = parse(sql)
    built = builder.query()
    assert (built.outputs, built.groups, built.where, built.having, built.order, built.limit, built.offset) == (
        written.outputs,
        written.groups,
        written.where,
        written.having,
        written.order,
        written.limit,
        written.offset,
    )
    plan = builder.plan(epsilon=1, **given)
    keys = {"keys": builder.keys} if builder.keys is not None else {}
    assert plan.digest == data.plan(sql, epsilon=1, **keys, **given).digest


def test_the_example(data: discreet.Dataset) -> None:
    question = data.select(agg.count(), agg.mean("files", bounds=(0, 50))).where("files > 1")
    question = question.group_by("action", keys=["M", "A"])
    same(data, question, f"SELECT action, COUNT(*), {MEAN} FROM data WHERE files > 1 GROUP BY action")
    answer = question.release(epsilon=10**6)
    assert list(answer["action"]) == ["M", "A"]
    assert list(answer["count"]) == [3, 1]
    assert [round(value, 2) for value in answer["avg_files"]] == [4.0, 2.0]
    assert question.estimate(epsilon=1).groups == 2


def test_everything_that_can_be_said(data: discreet.Dataset) -> None:
    question = (
        data.select(
            agg.count().alias("n"),
            agg.count("files", share=3),
            agg.count_if("files > 2 AND action = 'A'"),
            agg.count_distinct("u").alias("people"),
            agg.sum("files / 2", bounds=(0, Decimal("2.5"))),
            agg.mean("capital gain", bounds=(-1, 10)),
            agg.variance("files", **FILES),
            agg.stddev("files", **FILES),
            agg.median("files", **FILES),
            agg.quantile("files", 0.95, **FILES),
            (agg.sum("files", **FILES) / agg.count()).round(1).alias("ratio"),
            1 - agg.count_if("files > 2") / agg.count() * 100,
            "ROUND(AVG(files, contribution_bounds_per_row => (0, 50)), 2)",
        )
        .where("files < 100", "action <> 'x' OR action IS NULL")
        .group_by("action", keys=["A", "M"])
        .group_by(quarter="EXTRACT(QUARTER FROM time)")
        .having("n > 0")
        .order_by("n", descending=True)
        .order_by("action")
        .limit(3, offset=1)
    )
    sql = f"""
        SELECT action, EXTRACT(QUARTER FROM time) AS quarter,
               COUNT(*) AS n, COUNT(files, share => 3), COUNTIF(files > 2 AND action = 'A'),
               COUNT(DISTINCT u) AS people,
               SUM(files / 2, contribution_bounds_per_row => (0, 2.5)),
               AVG("capital gain", contribution_bounds_per_row => (-1, 10)),
               VAR_SAMP(files, contribution_bounds_per_row => (0, 50)),
               STDDEV(files, contribution_bounds_per_row => (0, 50)),
               MEDIAN(files, contribution_bounds_per_row => (0, 50)),
               PERCENTILE_CONT(files, 0.95, contribution_bounds_per_row => (0, 50)),
               ROUND(SUM(files, contribution_bounds_per_row => (0, 50)) / COUNT(*), 1) AS ratio,
               1 - (COUNTIF(files > 2) / COUNT(*)) * 100,
               ROUND({MEAN}, 2)
        FROM data WHERE files < 100 AND (action <> 'x' OR action IS NULL)
        GROUP BY action, quarter HAVING n > 0 ORDER BY n DESC, action LIMIT 3 OFFSET 1"""
    same(data, question, sql)
    assert parse(question.sql()) == question.query()


def test_keys_of_several_groups(data: discreet.Dataset) -> None:
    base = data.select(agg.count())
    rows = [("A", 1), (None, 6)]
    for question in (
        base.group_by("action", "files", keys=rows),
        base.group_by("action", "files", keys={("action", "files"): rows}),
        base.group_by("action", "files", keys=pd.DataFrame(rows, columns=["action", "files"])),
    ):
        answer = question.release(epsilon=10**6, fresh=True)
        assert list(zip(answer["action"], answer["files"], strict=True)) == rows
        assert list(answer["count"]) == [1, 1]
    question = base.group_by("action", keys=["A"]).group_by("files", keys=[1, 2])
    assert question.keys == {"action": ["A"], "files": [1, 2]}
    assert question.plan(epsilon=1).groups == 2
    assert base.group_by("action").release(epsilon=10**6, delta="1e-6", max_groups_contributed=1)["count"] == (2, 3)
    assert base.group_by("action").release(epsilon=10**6, keys=KEYS)["count"] == (3, 2)


def test_joins(data: discreet.Dataset) -> None:
    names = pa.table({"code": ["A", "M"], "name": ["added", "modified"]})
    question = data.select(agg.count()).join("names", "action = names.code", left=True)
    question = question.group_by("names.name", keys=["added", None])
    assert question.release(epsilon=10**6, public={"names": names})["count"] == (2, 1)


def test_frozen_and_nothing_is_shared(data: discreet.Dataset) -> None:
    first = data.select(agg.count())
    second = first.where("files > 3")
    assert first.conditions == ()
    assert second.sql() == "SELECT COUNT(*)\nFROM data\nWHERE files > 3"
    with pytest.raises(AttributeError):
        first.conditions = ("x",)  # type: ignore[misc]
    assert "pa.Table" not in repr(first)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda d: d.select(),
        lambda d: d.select(5),
        lambda d: d.select("COUNT(*), SUM(x)"),
        lambda d: d.select("COUNT(*) FROM data --"),
        lambda d: d.select(agg.count("files); DROP TABLE x; --")).sql(),
        lambda d: d.select(agg.count("files -- ")).sql(),
        lambda d: d.select(agg.sum("files) + (1")).sql(),
        lambda d: d.select(agg.count()).where("files > 1; SELECT 1"),
        lambda d: d.select(agg.count()).where("files > 1) OR (1 = 1"),
        lambda d: d.select(agg.count()).where(5),
        lambda d: d.select(agg.count()).group_by(),
        lambda d: d.select(agg.count()).limit(-1),
        lambda d: d.select(agg.count()).limit(True),
        lambda d: agg.sum(5),
        lambda d: agg.sum(""),
        lambda d: agg.sum("x", bounds=(5, 0)),
        lambda d: agg.sum("x", bounds="0..5"),
        lambda d: agg.sum("x", share="much"),
        lambda d: agg.count().alias(""),
        lambda d: agg.count() + float("nan"),
        lambda d: agg.count() * "x",
        lambda d: agg.count().round(0.5),
    ],
)
def test_what_is_not_one_expression(data: discreet.Dataset, wrong: Any) -> None:
    with pytest.raises(discreet.DiscreetError):
        wrong(data)


def test_no_aggregate_and_other_refusals_are_those_of_sql(data: discreet.Dataset) -> None:
    with pytest.raises(discreet.RefusedError, match="no aggregate"):
        data.select("files").plan(epsilon=1)
    with pytest.raises(discreet.RefusedError, match="no public list"):
        data.select(agg.count()).group_by("action").plan(epsilon=1)
    with pytest.raises(discreet.RefusedError, match="needs declared bounds"):
        data.select(agg.mean("files")).plan(epsilon=1)


@pytest.mark.parametrize(
    "text",
    [
        "CAST(x AS BIGINT)",
        "(time AT TIME ZONE 'Asia/Tokyo')",
        "DATE_TRUNC(time, 'MONTH')",
        "EXTRACT(QUARTER FROM time)",
        "CASE WHEN (x > 1) THEN 'a''b' ELSE NULL END",
        "((x + 1.50) * y) / 2",
        "PERCENTILE_CONT(x, 0.95, contribution_bounds_per_row => (-0.5, 50), share => 3)",
        "COUNTIF(x > 1)",
        'COUNT(DISTINCT "from"."a b")',
        "(NOT (x IS NULL)) AND (x IN (1, 2, -3))",
    ],
)
def test_expressions_print_as_what_they_are(text: str) -> None:
    (node,) = [output.node for output in parse(f"SELECT {text} AS x FROM data").outputs]
    printed = node_text(node)
    (again,) = [output.node for output in parse(f"SELECT {printed} AS x FROM data").outputs]
    assert again == node


# --- tables ----------------------------------------------------------------------------------------------------------

MOMENT = dt.datetime(2024, 3, 1, 12, 30, 15, 123457)
COLUMNS = (
    AnswerColumn("text", "", ("a", None, 'O\'Neil "q"\n\x00'), type=TEXT),
    AnswerColumn("flag", "", (True, None, False), type=BOOLEAN),
    AnswerColumn("day", "", (dt.date(1, 1, 1), None, dt.date(9999, 12, 31)), type=DATE),
    AnswerColumn("at", "", (MOMENT, None, dt.datetime(1900, 1, 1)), type=TIMESTAMP),
    AnswerColumn("instant", "", (MOMENT.replace(tzinfo=dt.UTC), None, MOMENT.replace(tzinfo=dt.UTC)), type=TIMESTAMPTZ),
    AnswerColumn("money", "", (Decimal("1.10"), None, Decimal("-5.00")), type=parse_type("DECIMAL(10,2)")),
    AnswerColumn("n", "COUNT(*)", (2**62 + 1, -1, 0), (2**62, -3, -2), (2**62 + 2, 1, 2), INTEGER),
    AnswerColumn("big", "SUM(x)", (2**63, 0, -(2**100)), (0, 0, 0), (1, 1, 1), INTEGER),
    AnswerColumn("mean", "AVG(x)", (0.1, None, -1e-300), (0.0, None, -1.0), (1.0, None, 1e300), FLOAT),
)


def answer_of(rows: int) -> Answer:
    def cut(column: AnswerColumn) -> AnswerColumn:
        low, high = (None if ends is None else ends[:rows] for ends in (column.low, column.high))
        return AnswerColumn(column.name, "", column.values[:rows], low, high, column.type)

    details = {"promise": "per u", "timezone": "UTC"}
    return Answer(tuple(cut(c) for c in COLUMNS), Fraction(95, 100), PrivacyLoss(Fraction(1)), None, 1, details)


def test_arrow_and_parquet_hold_exactly_what_the_rows_hold() -> None:
    answer = answer_of(3)
    expected = answer.to_dicts()
    for table in (answer.to_arrow(), pq.read_table(pa.BufferReader(as_parquet(answer)))):
        assert table.column_names == list(answer.names())
        assert table.to_pylist() == expected
    assert pl.read_parquet(as_parquet(answer)).to_dicts() == expected
    assert answer.to_polars().to_dicts() == expected


def test_pandas() -> None:
    frame = answer_of(3).to_pandas()
    assert list(frame.columns) == list(answer_of(3).names())
    assert frame["n"].dtype == "int64"
    assert frame["n"].tolist() == [2**62 + 1, -1, 0]
    assert frame["big"].tolist() == [2**63, 0, -(2**100)]
    assert frame["mean"].isna().tolist() == [False, True, False]
    assert frame["at"].tolist()[0] == pd.Timestamp(MOMENT)
    assert frame["text"].tolist()[1] is None


def test_the_types_are_the_same_without_rows() -> None:
    few, none = answer_of(1), answer_of(0)
    wide = {"big", "big_low", "big_high"}
    for table in (none.to_arrow(), pq.read_table(pa.BufferReader(as_parquet(none)))):
        assert len(table) == 0
        kept = [field for field in few.to_arrow().schema if field.name not in wide]
        assert [(f.name, f.type) for f in table.schema if f.name not in wide] == [(f.name, f.type) for f in kept]
    assert none.to_polars().schema["n"] == pl.Int64
    assert none.to_pandas().dtypes["n"] == "int64"
    assert list(none.to_pandas().columns) == list(none.names())


def test_types_of_a_real_answer(data: discreet.Dataset) -> None:
    sql = f"""SELECT action, DATE_TRUNC(time, QUARTER) AS q, COUNT(*) AS n, {MEAN} AS m,
        SUM(files, contribution_bounds_per_row => (0, 50)) / COUNT(*) AS r,
        CASE WHEN COUNT(*) > 1 THEN 'many' ELSE 'few' END AS size, COUNT(*) > 1 AS some FROM data GROUP BY action, q"""
    keys = {"action": ["A", None], "q": ["2024-01-01", "2024-04-01"]}
    table = data.query(sql, epsilon=10, keys=keys).to_arrow()
    types = {field.name: str(field.type) for field in table.schema}
    assert types["action"] == "string"
    assert types["q"] == "timestamp[us]"
    assert types["n"] == types["n_low"] == "int64"
    assert types["m"] == types["r"] == types["r_high"] == "double"
    assert types["size"] == "string"
    assert types["some"] == "bool"
    assert "size_low" not in types


def test_dates_in_dates_out(data: discreet.Dataset) -> None:
    bounds = (dt.datetime(2024, 1, 1), dt.datetime(2025, 1, 1))
    question = data.select(agg.mean("time", bounds=bounds).alias("m"), agg.median("time", bounds=bounds).alias("q"))
    sql = """SELECT AVG(time, contribution_bounds_per_row => ('2024-01-01T00:00:00', '2025-01-01T00:00:00')) AS m,
        MEDIAN(time, contribution_bounds_per_row => ('2024-01-01T00:00:00', '2025-01-01T00:00:00')) AS q FROM data"""
    same(data, question, sql)
    answer = question.release(epsilon=10)
    for table in (answer.to_arrow(), pq.read_table(pa.BufferReader(as_parquet(answer)))):
        assert {str(field.type) for field in table.schema} == {"timestamp[us]"}
        assert table.to_pylist() == answer.to_dicts()
