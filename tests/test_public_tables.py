"""Joins with public tables: each private row stays one row or none, and belongs to whom it belonged."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.cli.arguments import read_public
from discreet.engines.duckdb import DuckDBEngine
from discreet.plan import Plan
from discreet.relational import compile_plan

LOG = pa.table(
    {
        "actor": ["p", "p", "q", "q", "r", None],
        "plan": ["a", "b", "a", "z", None, "a"],
        "size": [1, 2, 3, 4, 5, 6],
    }
)
PLANS = pa.table({"code": ["a", "b", "c", None, None], "price": [10, 20, 30, 40, 50], "name": list("ABCDE")})
KEYS = {"name": ["A", "B", "C", None]}


@pytest.fixture
def data(tmp_path: Path) -> discreet.Dataset:
    return discreet.open(
        LOG, name="log", privacy_unit="actor", max_contributions=3, budget=(10**9, "1e-3"), ledger=tmp_path / "ledger"
    )


def test_left_and_inner(data: discreet.Dataset) -> None:
    sql = (
        "SELECT p.name, COUNT(*) AS n, SUM(p.price) AS s FROM data {} JOIN plans AS p ON data.plan = p.code GROUP BY 1"
    )
    given: dict[str, Any] = {
        "epsilon": 10**6,
        "keys": KEYS,
        "bounds": {"p.price": (0, 100)},
        "public": {"plans": PLANS},
    }
    answer = data.query(sql.format("LEFT"), **given)
    assert list(answer["name"]) == ["A", "B", "C", None]
    assert list(answer["n"]) == [2, 1, 0, 2]  # the row of nobody is left out; a missing key meets nothing
    assert list(answer["s"]) == [20, 20, 0, 0]
    answer = data.query(sql.format(""), **given)
    assert list(answer["n"]) == [2, 1, 0, 0]
    report = answer.report()["public_tables"]
    assert [(table["name"], table["join"]) for table in report] == [("plans", "inner")]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(price) AS n FROM data JOIN plans ON plan = plans.code WHERE price > 10",
        "SELECT COUNT(plans.price) AS n FROM log AS l LEFT JOIN plans ON plans.code = l.plan WHERE PLANS.Price > 10",
        "SELECT COUNT(q.price) AS n FROM data INNER JOIN Plans q ON (q.CODE = LOWER(data.plan)) WHERE q.price > 10",
        "WITH t AS (SELECT plan AS k, actor FROM data) SELECT COUNT(p.price) AS n FROM t JOIN plans p ON t.k = p.code "
        "WHERE p.price > 10",
        "SELECT COUNT(x) AS n FROM (SELECT p.price + 1 AS x FROM data JOIN plans p ON plan = p.code) AS t WHERE x > 11",
        "SELECT COUNT(*) AS n FROM (SELECT * FROM data JOIN plans p ON plan = p.code) WHERE price > 10",
        "SELECT COUNT(*) AS n FROM data JOIN plans a ON plan = a.code "
        "JOIN plans AS b ON a.name = b.name AND a.code = b.code WHERE b.price > 10",
    ],
)
def test_ways_to_write_it(data: discreet.Dataset, sql: str) -> None:
    assert data.query(sql, epsilon=10**6, public={"plans": PLANS})["n"] == (1,)


def test_using_and_sources_of_every_kind(data: discreet.Dataset, tmp_path: Path) -> None:
    table = PLANS.rename_columns(["plan", "price", "name"]).slice(0, 3)
    pq.write_table(table, tmp_path / "plans.parquet")
    (tmp_path / "plans.csv").write_text("plan,price,name\na,10,A\nb,20,B\nc,30,C\n")
    sql = "SELECT plan, AVG(p.price) AS m FROM data JOIN plans AS p USING (plan) GROUP BY plan"
    for source in (table, table.to_pandas(), tmp_path / "plans.parquet", str(tmp_path / "plans.csv")):
        answer = data.query(
            sql,
            epsilon=10**6,
            keys={"plan": ["a", "b"]},
            bounds={"p.price": (0, 50)},
            public={"plans": source},
            fresh=True,
        )
        assert [round(value) for value in answer["m"]] == [10, 20]


def test_groups_chosen_from_a_public_column(data: discreet.Dataset) -> None:
    rows = pa.table({"actor": [str(i) for i in range(900)], "plan": ["a", "b", "z"] * 300, "size": [1] * 900})
    big = discreet.open(
        rows, name="big", privacy_unit="actor", max_contributions=1, budget=(9, "1e-3"), ledger=data.ledger_path
    )
    sql = "SELECT p.name, COUNT(*) AS n FROM data LEFT JOIN plans p ON plan = p.code GROUP BY p.name"
    answer = big.query(sql, epsilon=8, delta="1e-6", public={"plans": PLANS})
    assert list(answer["name"]) == [None, "A", "B"]


# --- what is refused, before anything is charged -------------------------------------------------------------------

TWICE = pa.table({"code": ["a", "a"], "price": [1, 2], "name": ["A", "B"]})
JOIN = "SELECT COUNT(*) AS n FROM data JOIN plans ON plan = plans.code"


@pytest.mark.parametrize(
    ("sql", "public", "words"),
    [
        (JOIN, {}, "answered for public tables only.*--public plans=FILE"),
        (JOIN, {"others": PLANS}, "the public tables are others|public tables only"),
        (JOIN, {"plans": TWICE}, "needs a key that is unique"),
        (JOIN, {"plans": LOG}, "is the private table itself"),
        (JOIN.replace("plans ON plan = plans.code", "data AS b ON data.plan = b.plan"), {}, "with itself"),
        (JOIN.replace("plans.code", "plans.price"), {"plans": PLANS}, "cannot be compared"),
        (JOIN.replace("plans.code", "plans.cod"), {"plans": PLANS}, "not a column of the public table"),
        (JOIN.replace("plans.code", "code"), {"plans": PLANS}, "takes equalities.*plans.key"),
        (JOIN.replace("= plans.code", "> plans.code"), {"plans": PLANS}, "takes equalities"),
        (JOIN + " OR TRUE", {"plans": PLANS}, "takes equalities"),
        (JOIN.replace("JOIN", "RIGHT JOIN"), {"plans": PLANS}, "LEFT or INNER only"),
        (JOIN.replace("JOIN", "FULL JOIN"), {"plans": PLANS}, "LEFT or INNER only"),
        (JOIN.replace("JOIN", "SEMI JOIN"), {"plans": PLANS}, "LEFT or INNER only"),
        ("SELECT COUNT(*) AS n FROM data NATURAL JOIN plans", {"plans": PLANS}, "LEFT or INNER only"),
        ("SELECT COUNT(*) AS n FROM data CROSS JOIN plans", {"plans": PLANS}, "LEFT or INNER only"),
        ("SELECT COUNT(*) AS n FROM data, plans", {"plans": PLANS}, "needs ON or USING"),
        (
            "SELECT COUNT(*) AS n FROM data JOIN (SELECT * FROM plans) p ON plan = p.code",
            {"plans": PLANS},
            "by its name",
        ),
        (
            "WITH t AS (SELECT * FROM data) SELECT COUNT(*) AS n FROM data JOIN t ON data.plan = t.plan",
            {},
            "table expression over private rows",
        ),
        (JOIN + " JOIN plans ON plan = plans.code", {"plans": PLANS}, "names a table twice"),
        (JOIN.replace("plans ON plan = plans.", "plans AS size ON plan = size."), {"plans": PLANS}, "takes the name"),
        (
            JOIN.replace("plans ON plan = plans.", "plans AS data ON plan = data."),
            {"plans": PLANS},
            "twice|takes the name",
        ),
        (
            "SELECT COUNT(size) AS n FROM data JOIN p ON plan = p.code",
            {"p": PLANS.append_column("size", PLANS["price"])},
            "column of several tables.*p.size or data.size",
        ),
        (
            "SELECT COUNT(p.actor) AS n FROM data JOIN p ON plan = p.code",
            {"p": PLANS},
            "not a column of the public table p",
        ),
        (
            "SELECT COUNT(*) AS n FROM plans JOIN data ON plans.code = data.plan",
            {"plans": PLANS},
            "the table is called",
        ),
    ],
)
def test_refused(data: discreet.Dataset, sql: str, public: dict[str, Any], words: str) -> None:
    with pytest.raises(discreet.DiscreetError, match=words):
        data.query(sql, epsilon=1, public=public)
    assert data.balance().queries == 0  # type: ignore[union-attr]


def test_the_private_file_under_another_name_is_not_public(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("actor,plan\np,1\nq,2\n")
    (tmp_path / "copy.csv").symlink_to(path)
    data = discreet.open(path, privacy_unit="actor", max_contributions=1, budget=1, ledger=tmp_path / "l", header=True)
    with pytest.raises(discreet.RefusedError, match="is the private table itself"):
        data.plan(JOIN.replace("code", "plan"), epsilon=1, public={"plans": tmp_path / "copy.csv"})


def test_the_unit_cannot_come_from_a_public_table(data: discreet.Dataset) -> None:
    """An `actor` of the public table is not whose row it is."""
    public = {"p": pa.table({"code": ["a", "b"], "actor": ["p", "p"]})}
    sql = "SELECT COUNT(*) AS n FROM data JOIN p ON plan = p.code"
    plan = data.plan(sql, epsilon=1, public=public)
    assert plan.unit == data.plan("SELECT COUNT(*) AS n FROM data", epsilon=1).unit
    with pytest.raises(discreet.UsageError, match="several tables"):
        data.plan(sql.replace("*", "DISTINCT actor"), epsilon=1, public=public)
    plan = data.plan(sql.replace("*", "DISTINCT data.actor"), epsilon=1, public=public)
    assert [m.statistic for m in plan.measurements] == ["unit_count"]


def test_a_table_that_changes_after_the_plan(tmp_path: Path) -> None:
    """Its key was unique when the query was planned; what is joined is checked again."""
    plans = tmp_path / "plans.csv"
    plans.write_text("code,price\na,10\nb,20\n")
    data = discreet.open(LOG, name="log", privacy_unit="actor", max_contributions=3, budget=9, ledger=tmp_path / "l")
    plan = data.plan(JOIN, epsilon=1, public={"plans": plans})
    plans.write_text("code,price\na,10\na,20\n")
    from fractions import Fraction

    with pytest.raises(discreet.EngineError, match="was changed since the query was planned"):
        data.answer(plan, confidence=Fraction(95, 100))
    with pytest.raises(discreet.RefusedError, match="unique"):
        data.plan(JOIN, epsilon=1, public={"plans": plans})


def test_content_is_part_of_the_question(data: discreet.Dataset) -> None:
    digests = {
        data.plan(JOIN.replace("JOIN", kind), epsilon=1, public={"plans": table}).digest
        for kind in ("JOIN", "LEFT JOIN")
        for table in (PLANS, PLANS.slice(0, 2))
    }
    assert len(digests) == 4
    shuffled = PLANS.take([4, 2, 0, 1, 3])
    assert data.plan(JOIN, epsilon=1, public={"plans": shuffled}).digest in digests


def test_option_of_the_command_line() -> None:
    assert read_public(["plans=a=b.csv", "x=~"]) == {"plans": "a=b.csv", "x": str(Path("~").expanduser())}
    for wrong in (["plans"], ["=x"], ["plans="], ["a=1", "a=2"]):
        with pytest.raises(discreet.UsageError, match="--public"):
            read_public(wrong)


# --- sensitivity ---------------------------------------------------------------------------------------------------


def exact(plan: Plan, frame: Any) -> list[list[int]]:
    return [total.to_ints() for total in DuckDBEngine(plan.registration, frame).run(compile_plan(plan))]


@pytest.mark.parametrize("kind", ["LEFT JOIN", "JOIN"])
@pytest.mark.parametrize("seed", range(3))
def test_neighbours_with_a_public_table(tmp_path: Path, kind: str, seed: int) -> None:
    """Through the real engine: removing any unit moves each vector by at most its sensitivity; and a public value of
    any size is clamped like any other."""
    random_ = random.Random(seed)
    rows = [(random_.choice(["p", "q", "r", None]), random_.choice(["a", "b", "z", None])) for _ in range(40)]
    public = {"p": pd.DataFrame({"code": ["a", "b", "c"], "price": [10**9, -5, 3], "name": ["x", "y", "x"]})}
    sql = (
        "SELECT COUNT(*) AS n, SUM(p.price) AS s, COUNT(DISTINCT u) AS d "
        f"FROM data {kind} p ON k = p.code GROUP BY p.name"
    )

    def totals(some: list[Any], number: int) -> tuple[Plan, list[list[int]]]:
        frame = pa.table(
            {"u": pa.array([r[0] for r in some], pa.string()), "k": pa.array([r[1] for r in some], pa.string())}
        )
        data = discreet.open(
            frame, name="t", privacy_unit="u", max_contributions=4, budget=1, ledger=tmp_path / f"l{number}"
        )
        plan = data.plan(
            sql,
            epsilon=1,
            keys={"name": ["x", "y", None]},
            bounds={"p.price": (-2, 7)},
            max_groups_contributed=1,
            public=public,
        )
        return plan, exact(plan, frame)

    plan, whole = totals(rows, 0)
    for i, unit in enumerate(("p", "q", "r", None)):
        _, without = totals([row for row in rows if row[0] != unit], i + 1)
        for measurement, a, b in zip(plan.measurements, whole, without, strict=True):
            moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
            assert moved <= measurement.sensitivity
            assert unit is not None or moved == 0


@pytest.mark.parametrize("address", ["postgresql://user@host/db::plans", "spark:local::parquet./plans"])
def test_a_table_of_a_server_is_no_public_table(tmp_path: Path, address: str) -> None:
    rows = pd.DataFrame({"who": ["a"], "plan": [1]})
    data = discreet.open(rows, name="rows", privacy_unit="who", max_contributions=1, budget=3, ledger=tmp_path / "l")
    sql = "SELECT COUNT(*) AS n FROM rows JOIN plans ON rows.plan = plans.plan"
    with pytest.raises(discreet.UsageError, match="must be a file or a data frame, not a table of a server"):
        data.query(sql, epsilon=1, public={"plans": address})
