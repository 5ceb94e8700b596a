"""Common table expressions and subqueries in FROM: inlined where they keep rows as they are, else refused."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import discreet
from discreet.query import Name
from discreet.sql import parse

TABLE = pa.table(
    {
        "actor": ["p", "p", "q", "q", "r", None],
        "kind": ["A", "B", "A", "A", "B", "A"],
        "bytes": [1024, 2048, 0, 512, 4096, 99],
        "day": [1, 2, 3, 4, 5, 6],
    }
)


@pytest.fixture
def data(tmp_path: Path) -> discreet.Dataset:
    return discreet.open(
        TABLE, name="log", privacy_unit="actor", max_contributions=2, budget=10**9, ledger=tmp_path / "ledger"
    )


SAME = [
    # A query, and the same written as one SELECT.
    ("SELECT COUNT(*) AS n FROM (SELECT * FROM data) AS t", "SELECT COUNT(*) AS n FROM data"),
    ("SELECT COUNT(*) AS n FROM (SELECT kind FROM log WHERE day < 3)", "SELECT COUNT(*) AS n FROM data WHERE day < 3"),
    (
        "WITH t AS (SELECT bytes / 1024 AS kb, kind AS k FROM data WHERE day > 1) "
        "SELECT k, SUM(kb, contribution_bounds_per_row => (0, 4)) AS s FROM t WHERE t.kb > 0 GROUP BY k",
        "SELECT kind AS k, SUM(bytes / 1024, contribution_bounds_per_row => (0, 4)) AS s FROM data "
        "WHERE day > 1 AND bytes / 1024 > 0 GROUP BY kind",
    ),
    (
        "WITH a AS (SELECT *, day + 1 AS next FROM data), b AS (SELECT next AS n2, kind FROM a WHERE next < 6) "
        "SELECT COUNT(n2) AS n FROM b AS c WHERE c.n2 > 2",
        "SELECT COUNT(day + 1) AS n FROM data WHERE day + 1 < 6 AND day + 1 > 2",
    ),
    # A table expression may take the table's own name: inside it, that name means what it meant outside.
    (
        "WITH data AS (SELECT * FROM data WHERE kind = 'A') SELECT COUNT(*) AS n FROM data",
        "SELECT COUNT(*) AS n FROM data WHERE kind = 'A'",
    ),
    (
        "SELECT d.kind, COUNT(*) AS n FROM data AS d GROUP BY d.kind",
        "SELECT kind, COUNT(*) AS n FROM data GROUP BY kind",
    ),
    (
        "SELECT KB.Bytes AS b, COUNT(*) AS n FROM (SELECT BYTES FROM data) kb GROUP BY 1",
        "SELECT bytes AS b, COUNT(*) AS n FROM data GROUP BY bytes",
    ),
    (
        "SELECT COUNT(DISTINCT actor) AS n FROM (SELECT actor, day FROM data)",
        "SELECT COUNT(DISTINCT actor) AS n FROM data",
    ),
    # Renaming and swapping columns.
    (
        "SELECT AVG(day, contribution_bounds_per_row => (0, 9)) AS m "
        "FROM (SELECT bytes AS day, day AS bytes FROM data) WHERE bytes < 4 HAVING m > 0 ORDER BY m",
        "SELECT AVG(bytes, contribution_bounds_per_row => (0, 9)) AS m FROM data WHERE day < 4 HAVING m > 0 ORDER BY m",
    ),
]


@pytest.mark.parametrize(("sql", "plain"), SAME)
def test_inlined(data: discreet.Dataset, sql: str, plain: str) -> None:
    """The same plan, so the same law and the same place in the ledger, whichever way it is written."""
    keys: dict[str, Any] = {}
    if " GROUP BY " in sql:
        keys = {"bytes" if "bytes AS b" in plain else "kind": [1024, 99] if "bytes AS b" in plain else ["A", "B"]}
    name = next(iter(keys), "")
    alias = {"kind": "k" if " AS k," in plain else "kind", "bytes": "b"}.get(name, "")
    keys = {alias: keys[name]} if keys else {}
    assert data.plan(sql, epsilon=1, keys=keys).digest == data.plan(plain, epsilon=1, keys=keys).digest


def test_answers(data: discreet.Dataset) -> None:
    sql = """WITH t AS (SELECT bytes / 1024 AS kb, kind AS k FROM data WHERE day > 1)
             SELECT k, SUM(kb) AS s, COUNT(*) AS n FROM t GROUP BY k ORDER BY k DESC"""
    answer = data.query(sql, epsilon=10**6, keys={"k": ["A", "B"]}, bounds={"kb": (0, 3)})
    assert list(answer["k"]) == ["B", "A"]
    assert [round(value, 2) for value in answer["s"]] == [5.0, 0.5]  # 2 + 3 (clamped), 0 + 0.5; nobody's row left out
    assert list(answer["n"]) == [2, 2]


def test_the_unit_cannot_be_replaced(data: discreet.Dataset) -> None:
    """An alias called like the unit column is another column; the rows still belong to whom they belonged."""
    honest = data.plan("SELECT COUNT(*) AS n FROM data", epsilon=1)
    for sql in (
        "SELECT COUNT(*) AS n FROM (SELECT day AS actor FROM data)",
        "SELECT COUNT(*) AS n FROM (SELECT 1 AS one FROM data)",
        "WITH t AS (SELECT UPPER(actor) AS actor, kind FROM data) SELECT COUNT(*) AS n FROM t",
    ):
        plan = data.plan(sql, epsilon=1)
        assert plan.unit == honest.unit
        assert plan.measurements == honest.measurements
    # What is counted here are days, not people: as a count of people it would have the wrong sensitivity.
    with contextlib.suppress(discreet.RefusedError):
        plan = data.plan("SELECT COUNT(DISTINCT actor) AS n FROM (SELECT day AS actor FROM data)", epsilon=1)
        assert [m.statistic for m in plan.measurements] != ["unit_count"]
    with pytest.raises(discreet.UsageError, match="privacy_unit_column"):
        data.plan(
            "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = day) COUNT(*) AS n "
            "FROM (SELECT actor AS day FROM data)",
            epsilon=1,
        )


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("SELECT COUNT(*) FROM (SELECT kind, COUNT(*) FROM data GROUP BY kind)", "GROUP BY in a derived table"),
        ("SELECT COUNT(*) FROM (SELECT COUNT(*) AS n FROM data) t", "an aggregate in the derived table t"),
        ("WITH t AS (SELECT MAX(bytes) AS m FROM data) SELECT SUM(m) FROM t", "MAX"),
        ("SELECT COUNT(*) FROM (SELECT DISTINCT actor FROM data)", "SELECT DISTINCT in a derived table"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data LIMIT 5)", "LIMIT in a derived table"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data ORDER BY day)", "ORDER BY in a derived table"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data OFFSET 5)", "OFFSET in a derived table"),
        ("SELECT COUNT(*) FROM (SELECT *, ROW_NUMBER() OVER () AS r FROM data)", "window function"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data QUALIFY day > 1)", "QUALIFY"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data UNION ALL SELECT * FROM data)", "UNION in a derived table"),
        ("SELECT COUNT(*) FROM data UNION SELECT 1", "UNION"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data EXCEPT SELECT * FROM data)", "EXCEPT"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data INTERSECT SELECT * FROM data)", "INTERSECT"),
        ("SELECT COUNT(*) FROM data a JOIN data b ON a.day = b.day", "JOIN"),
        ("SELECT COUNT(*) FROM data, data AS b", "JOIN"),
        ("SELECT COUNT(*) FROM (SELECT * FROM data a JOIN data b USING (day))", "JOIN"),
        ("SELECT COUNT(*) FROM data CROSS JOIN UNNEST([1, 2])", "JOIN"),
        ("SELECT COUNT(*) FROM data, LATERAL (SELECT 1)", "JOIN"),
        ("WITH RECURSIVE t AS (SELECT * FROM data UNION ALL SELECT * FROM t) SELECT COUNT(*) FROM t", "RECURSIVE"),
        ("WITH t(a, b) AS (SELECT kind, day FROM data) SELECT COUNT(*) FROM t", "column aliases"),
        ("SELECT COUNT(*) FROM (SELECT * EXCLUDE (day) FROM data)", r"SELECT \* with changes"),
        ("SELECT COUNT(*) FROM (SELECT * REPLACE (1 AS day) FROM data)", r"SELECT \* with changes"),
        ("SELECT COUNT(*) FROM (VALUES (1))", "FROM"),
        ("SELECT COUNT(*) FROM read_csv('other.csv')", "FROM"),
        ("SELECT COUNT(*) FROM data TABLESAMPLE (10 PERCENT)", "FROM|sample"),
        ("SELECT COUNT(*) FROM data WHERE day IN (SELECT day FROM data)", "IN with a subquery|a subquery"),
        ("SELECT COUNT(*) FROM data WHERE day = (SELECT 1)", "subquery"),
        ("SELECT COUNT(*) FROM data WHERE EXISTS (SELECT 1 FROM data)", "EXISTS"),
        ("SELECT (SELECT COUNT(*) FROM data)", "FROM|subquery"),
        ("SELECT kind, COUNT(*) FROM data GROUP BY ROLLUP (kind)", "ROLLUP"),
        ("SELECT kind, COUNT(*) FROM data GROUP BY CUBE (kind)", "CUBE"),
        ("SELECT kind, COUNT(*) FROM data GROUP BY GROUPING SETS ((kind), ())", "GROUPING SETS"),
        ("SELECT DISTINCT kind, COUNT(*) FROM data GROUP BY kind", "SELECT DISTINCT"),
        ("SELECT COUNT(*) FROM (SELECT 1)", "has no FROM"),
        ("SELECT COUNT(*)", "has no FROM"),
    ],
)
def test_refused_by_name(data: discreet.Dataset, sql: str, construct: str) -> None:
    with pytest.raises(discreet.RefusedError, match=construct) as refused:
        data.query(sql, epsilon=1, keys={}, bounds={"bytes": (0, 1)})
    assert refused.value.rule
    assert refused.value.hint
    assert data.balance().queries == 0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT COUNT(byts) FROM (SELECT bytes FROM data) AS t", "is not a column of t.*did you mean bytes"),
        ("SELECT COUNT(actor) FROM (SELECT bytes FROM data) AS t", "is not a column of t"),
        ("SELECT COUNT(kb.x) FROM (SELECT bytes + 1 AS kb FROM data) AS t", "has no fields"),
        ("WITH t AS (SELECT 1 AS a FROM data), t AS (SELECT 2 AS a FROM data) SELECT COUNT(*) FROM t", "twice"),
        ("WITH t AS (SELECT * FROM u), u AS (SELECT * FROM data) SELECT COUNT(*) FROM t", "the table is called"),
        ("SELECT COUNT(*) FROM (SELECT day AS a, kind AS a FROM data)", "same name"),
        ("SELECT COUNT(*) FROM (SELECT * FROM elsewhere)", "the table is called"),
        ("SELECT COUNT(*) FROM 'other.csv'", "the table is called"),
    ],
)
def test_names_that_mean_nothing(data: discreet.Dataset, sql: str, words: str) -> None:
    with pytest.raises(discreet.UsageError, match=words):
        data.plan(sql, epsilon=1)


def test_table_expressions_that_would_grow_without_end(data: discreet.Dataset) -> None:
    """Each doubles the one before: refused at once, not written out."""
    steps = ["t0 AS (SELECT day AS x FROM data)"]
    steps += [f"t{i + 1} AS (SELECT x + x AS x FROM t{i})" for i in range(40)]
    with pytest.raises(discreet.UsageError, match=r"parts|nest"):
        data.plan(f"WITH {', '.join(steps)} SELECT COUNT(x) FROM t40", epsilon=1)


def test_the_query_is_over_the_registered_columns() -> None:
    query = parse("WITH t AS (SELECT a.b AS c FROM data) SELECT COUNT(t.c.d) AS n FROM t")
    assert query.relation == "data"
    (node,) = [output.node for output in query.outputs]
    assert node.argument == Name(("a", "b", "d"))  # type: ignore[union-attr]
