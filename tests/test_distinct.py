"""COUNT(DISTINCT x): which values count, where a unit has more of them than it may, and what the answer says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet
from definition import hashed
from discreet.engines.duckdb import DuckDBEngine
from discreet.relational import compile_plan

HUGE = 10**8


def open_frame(table: dict[str, Any], tmp_path: Path, **options: Any) -> tuple[discreet.Dataset, pd.DataFrame]:
    frame = pd.DataFrame(table)
    defaults: dict[str, Any] = {} if options.get("row_level") else {"privacy_unit": "who", "max_contributions": 10}
    defaults |= {"name": "t", "budget": 10**9, "ledger": tmp_path / "ledger"}
    return discreet.open(frame, **(defaults | options)), frame


TABLE = {
    "who": ["a", "a", "a", "b", "b", "c", None],
    "g": ["x", "x", "y", "x", "y", "z", "x"],
    "v": ["1", "2", "1", "1", None, "9", "7"],
    "n": [1, 1, 2, 3, 3, 4, 5],
}


def test_values_are_counted_once_a_group_and_missing_ones_never(tmp_path: Path) -> None:
    data, _ = open_frame(TABLE, tmp_path)
    answer = data.query(
        "SELECT g, COUNT(DISTINCT v) AS v, COUNT(DISTINCT n) AS n, APPROX_COUNT_DISTINCT(n % 2) AS p "
        "FROM data GROUP BY g",
        epsilon=HUGE,
        keys={"g": ["x", "y", "none"]},
    )
    assert answer["v"] == (2, 1, 0)
    assert answer["n"] == (2, 2, 0)
    assert answer["p"] == (1, 2, 0)


def test_at_row_level_every_row_counts(tmp_path: Path) -> None:
    data, _ = open_frame(TABLE, tmp_path, row_level=True)
    plan = data.plan("SELECT COUNT(DISTINCT v) AS v FROM data", epsilon=1)
    assert (plan.measurements[0].sensitivity, plan.measurements[0].weight) == (1, 1)
    assert data.query("SELECT COUNT(DISTINCT v) AS v FROM data", epsilon=HUGE)["v"] == (4,)


def test_of_too_many_values_a_keyed_hash_chooses(tmp_path: Path) -> None:
    """One person with 1,000 values and a limit of 10: the ten with the smallest md5, and others under another key."""
    table = {"who": ["a"] * 1000 + ["b"], "v": [f"v{i}" for i in range(1000)] + ["v0"]}
    data, frame = open_frame(table, tmp_path)
    plan = data.plan("SELECT COUNT(DISTINCT v) AS n FROM data", epsilon=1)
    assert plan.measurements[0].sensitivity == 10
    engine = DuckDBEngine(data.registration, frame)
    for key in (0, 1, 2**128 - 1):
        hashes = {v: hashed(["a", v], key) for v in table["v"][:1000]}
        first = sorted(hashes, key=hashes.__getitem__)[:10]
        assert engine.run(compile_plan(plan, key))[0].to_ints() == [len({*first, "v0"})]


def test_each_query_draws_a_key_of_its_own(tmp_path: Path) -> None:
    """The one value that person b has is among a's chosen ones in 1 of 2 runs: 40 runs that all agree have
    probability 2^-39."""
    table = {"who": ["a", "a", "b"], "v": ["p", "q", "p"]}
    data, _ = open_frame(table, tmp_path, max_contributions=1)
    sql = "SELECT COUNT(DISTINCT v) AS n FROM data"
    found = {data.query(sql, epsilon=1000, fresh=True)["n"][0] for _ in range(40)}
    assert found == {1, 2}


@pytest.mark.parametrize("threads", [1, 4])
def test_order_of_rows_changes_nothing(threads: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"who": rng.integers(0, 20, 600), "g": rng.integers(0, 3, 600), "v": rng.integers(0, 90, 600)})
    found = []
    for turn in range(3):
        shuffled = rows.sample(frac=1.0, random_state=turn)
        data = discreet.open(
            shuffled, name=f"t{turn}", privacy_unit="who", max_contributions=4, budget=1, ledger=tmp_path / "ledger"
        )
        sql = "SELECT g, COUNT(DISTINCT v) AS n FROM data GROUP BY g"
        plan = data.plan(sql, epsilon=1, keys={"g": [0, 1, 2]})
        found.append(DuckDBEngine(data.registration, shuffled).run(compile_plan(plan, 5))[0].to_ints())
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("argument", ["f", "1", "*", "f + 1"])
def test_floats_and_constants_are_refused(argument: str, tmp_path: Path) -> None:
    data, _ = open_frame({"who": ["a"], "f": [0.5]}, tmp_path)
    with pytest.raises(discreet.DiscreetError):
        data.plan(f"SELECT COUNT(DISTINCT {argument}) AS n FROM data", epsilon=1)


def test_the_privacy_unit_itself_is_counted_as_units(tmp_path: Path) -> None:
    data, _ = open_frame(TABLE, tmp_path)
    assert data.plan("SELECT COUNT(DISTINCT who) FROM data", epsilon=1).measurements[0].statistic == "unit_count"
    report = data.query("SELECT COUNT(DISTINCT v) AS n FROM data", epsilon=1).report()
    assert report["measurements"][0]["measured"] == "count of different values, of v"
    assert data.estimate("SELECT COUNT(DISTINCT v) AS n FROM data", epsilon=1).statistics[0].half_width == 30


@pytest.mark.parametrize(
    ("key", "keys"),
    [
        ("YEAR(t)", [2000]),
        ("UPPER(k)", ["K"]),
        ("n * 0", [0]),
        ("BIN(n, 0, 100, 1)", None),
        ("CASE WHEN n > 0 THEN 1 END", [1]),
    ],
)
def test_limits_are_applied_on_the_final_keys(key: str, keys: list[Any] | None, tmp_path: Path) -> None:
    """R53: one row in each of 100 groups, then keys by which all of them are one: cut to the limit."""
    table = {
        "who": [0] * 100,
        "n": range(100),
        "k": ["K", "k"] * 50,
        "t": pd.date_range("2000-01-01", periods=100, freq="D"),
    }
    data, frame = open_frame(table, tmp_path, max_contributions=1)
    given = {} if keys is None else {"keys": {"g": keys}}
    sql = f"SELECT {key} AS g, COUNT(*) AS n, COUNT(DISTINCT who) AS u, COUNT(DISTINCT n) AS d FROM data GROUP BY g"
    plan = data.plan(sql, epsilon=1, **given)
    rows, units, values = (t.to_ints() for t in DuckDBEngine(data.registration, frame).run(compile_plan(plan)))
    assert 0.9 < sum(rows) / 2**20 <= 1
    assert (sum(units) / plan.measurements[1].weight, sum(values)) == (1, 1)
