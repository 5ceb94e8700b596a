"""Units that are whole numbers: the two ways to their weights give the same totals, whichever the engine takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet.engines import duckdb as engine
from discreet.relational import Statement, compile_plan
from discreet.schema import Registration

SQL = """SELECT g, COUNT(*) AS n, COUNT(x) AS present, SUM(x) AS total, AVG(x) AS mean, MEDIAN(x) AS middle,
  COUNTIF(x > 3) AS large FROM data GROUP BY g"""
SMALL, LARGE = -(2**63), 2**63 - 1


@pytest.fixture(scope="module")
def statement(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Registration, Statement]]:
    ledger = tmp_path_factory.mktemp("ledger") / "l.sqlite"
    data = discreet.open(table([]), privacy_unit="u", max_contributions=2, name="data", ledger=ledger)
    plan = data.plan(SQL, epsilon="1", keys={"g": [0, 1]}, bounds={"x": (0, 10)})
    yield plan.registration, compile_plan(plan)


def totals(registration: Registration, frame: pd.DataFrame, statement: Statement) -> list[list[int]]:
    vectors = engine.DuckDBEngine(registration, frame).run(statement)
    return [[int(total) for total in vector.to_ints()] for vector in vectors]


def table(rows: list[tuple[int | None, int, float | None]]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "u": pd.array([u for u, _, _ in rows], dtype="Int64"),
            "g": pd.array([g for _, g, _ in rows], dtype="int64"),
            "x": pd.array([x for _, _, x in rows], dtype="Float64"),
        }
    )


units = st.one_of(st.none(), st.integers(0, 3), st.sampled_from((SMALL, SMALL + 1, -1, 2**20, 2**21, LARGE)))
values = st.one_of(st.none(), st.floats(-5, 15), st.sampled_from((float("nan"), float("inf"), -float("inf"))))


@settings(deadline=None, max_examples=40)
@given(rows=st.lists(st.tuples(units, st.integers(-1, 2), values), max_size=25))
def test_both_ways_agree(
    statement: tuple[Registration, Statement], rows: list[tuple[int | None, int, float | None]]
) -> None:
    registration, quick = statement
    assert quick.dense is not None
    slow = dataclasses.replace(quick, dense=None)
    frame = table(rows)
    assert totals(registration, frame, quick) == totals(registration, frame, slow)


@pytest.mark.parametrize(
    ("ids", "close"), [((0, 1), True), ((5, 5 + 2**20 - 1), True), ((5, 5 + 2**20), False), ((SMALL, LARGE), False)]
)
def test_units_far_apart_are_joined_by_their_hash(
    statement: tuple[Registration, Statement], ids: tuple[int, int], close: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[bool] = []
    choose = engine.DuckDBSession._choose

    def watched(self: Any, dense: Any, steps: Any, results: Any) -> Any:
        chosen = choose(self, dense, steps, results)
        taken.append(chosen[1] is dense.results)
        return chosen

    monkeypatch.setattr(engine.DuckDBSession, "_choose", watched)
    registration, compiled = statement
    found = totals(registration, table([(ids[0], 0, 1.0)] * 5 + [(ids[1], 1, 2.0)]), compiled)
    assert taken == [close]
    assert found[0] == [5 * (2 * 2**20 // 5), 2**20]
