"""Public keys: every way to list them, and what they do to totals and sensitivity."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
from discreet.cli.arguments import read_keys
from discreet.engines.duckdb import DuckDBEngine
from discreet.keys import cast_keys, cast_rows, parse_keys_option, split_line
from discreet.plan import Plan
from discreet.relational import compile_plan
from discreet.schema import BOOLEAN, DATE, INTEGER, TEXT, TIMESTAMP, TIMESTAMPTZ, parse_type

PROBE = 10**6

Open = Callable[..., discreet.Dataset]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    """Opens a frame; every call has a ledger of its own."""
    numbers = itertools.count()

    def open_(frame: Any, *, row_level: bool = False, limit: int | None = 100, **given: Any) -> discreet.Dataset:
        ledger = tmp_path / f"ledger{next(numbers)}"
        unit = {"row_level": True} if row_level else {"privacy_unit": "u", "max_contributions": limit}
        return discreet.open(frame, name="t", budget=10**9, ledger=ledger, **unit, **given)

    return open_


def exact(plan: Plan, frame: Any) -> list[list[int]]:
    """The exact integer totals, through the real engine; what the release path adds noise to."""
    totals = DuckDBEngine(plan.registration, frame).run(compile_plan(plan))
    return [total.to_ints() for total in totals]


# --- reading -----------------------------------------------------------------------------------------------------


def test_one_line() -> None:
    assert split_line('A,"b,c",NULL,"NULL","", d ,"say ""hi"""', "x") == ("A", "b,c", None, "NULL", "", "d", 'say "hi"')
    assert parse_keys_option("a=1,2") == ("a", ("1", "2"))
    for text in ('a="x', "a=", "=1", 'a="x"y'):
        with pytest.raises(discreet.UsageError):
            parse_keys_option(text)


@pytest.mark.parametrize(
    ("values", "type_", "expected"),
    [
        (["b", "a", "b", None, None], TEXT, ("b", "a", None)),
        (["1", 1, "1.0", Decimal("1.00")], INTEGER, (1,)),
        ([True, "false", None], BOOLEAN, (True, False, None)),
        (["1.50", Decimal("1.5"), 2], parse_type("DECIMAL(5,2)"), (Decimal("1.50"), Decimal("2.00"))),
        ([2**100], parse_type("HUGEINT"), (2**100,)),
        (["2024-01-31"], DATE, (dt.date(2024, 1, 31),)),
        (
            ["2024-01-01T01:00:00+09:00", "2023-12-31T16:00:00Z"],
            TIMESTAMPTZ,
            (dt.datetime(2023, 12, 31, 16, tzinfo=dt.UTC),),
        ),
    ],
)
def test_cast_then_deduplicated(values: list[Any], type_: Any, expected: Any) -> None:
    assert cast_keys(values, type_, "k") == expected


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("3..6", INTEGER, [3, 4, 5, 6]),
        ("0..20 by 10,99", INTEGER, [0, 10, 20, 99]),
        ("2024-01-30..2024-02-01 by day", DATE, [dt.date(2024, 1, 30), dt.date(2024, 1, 31), dt.date(2024, 2, 1)]),
        ("2024-01-01..2024-07-01 by quarter", DATE, [dt.date(2024, 1, 1), dt.date(2024, 4, 1), dt.date(2024, 7, 1)]),
        ("2024-01-01..2024-01-15 by week", DATE, [dt.date(2024, 1, d) for d in (1, 8, 15)]),
        ("2024-01-01..2024-03-01 by month", TIMESTAMP, [dt.datetime(2024, m, 1) for m in (1, 2, 3)]),
        (
            "2024-01-01T22:00..2024-01-02T00:30 by hour",
            TIMESTAMP,
            [dt.datetime(2024, 1, 1, h) for h in (22, 23)] + [dt.datetime(2024, 1, 2)],
        ),
        ("2024-01-01T00:00..2024-01-02T23:00", TIMESTAMP, [dt.datetime(2024, 1, d) for d in (1, 2)]),
        ("2024-01-01..2024-01-02", TIMESTAMPTZ, [dt.datetime(2024, 1, d, tzinfo=dt.UTC) for d in (1, 2)]),
        ("a..c", TEXT, ["a..c"]),  # text has no ranges
    ],
)
def test_ranges(text: str, type_: Any, expected: list[Any]) -> None:
    assert list(cast_keys(split_line(text, "k"), type_, "k")) == expected


@pytest.mark.parametrize(
    ("values", "type_"),
    [
        ("AB", TEXT),  # a text is not a list of its letters
        ({"A": 1}, TEXT),
        ([], TEXT),
        ([1], TEXT),
        (["x"], INTEGER),
        ([1.5], INTEGER),
        ([2**130], parse_type("HUGEINT")),
        ([float("nan")], INTEGER),
        ([object()], TEXT),
        (["\ud800"], TEXT),  # a stray byte of a command line; the engine could not take it, after the debit
        (split_line("6..3", "k"), INTEGER),
        (split_line("1..9999999999", "k"), INTEGER),
        (split_line("1..9 by 0", "k"), INTEGER),
        (split_line("2024-01-31..2024-12-31 by month", "k"), DATE),
        (split_line("2024-01-01..2024-12-31 by hour", "k"), DATE),
        (split_line("2000-01-01..2024-01-01 by minute", "k"), TIMESTAMP),
    ],
)
def test_keys_that_are_none(values: Any, type_: Any) -> None:
    with pytest.raises(discreet.UsageError, match="keys of 'k'"):
        cast_keys(values, type_, "k")


def test_combinations() -> None:
    rows = [(1, "x"), ("1", "x"), [2, None], (None, "x")]
    assert cast_rows(rows, (INTEGER, TEXT), ("a", "b")) == ((1, "x"), (2, None), (None, "x"))
    for wrong in ([(1,)], [(1, "x", 2)], ["1x"], [(1, 2)], [], 5, [5]):
        with pytest.raises(discreet.UsageError, match="keys of"):
            cast_rows(wrong, (INTEGER, TEXT), ("a", "b"))


# --- in an answer ----------------------------------------------------------------------------------------------

FOUR = pd.DataFrame({"u": range(5), "k": ["a", "a", None, "", "NULL"], "b": [1, 2, 1, 1, 2]})


def counts(answer: Any, *names: str) -> dict[Any, int]:
    columns = [answer[name] for name in names]
    keys = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    return dict(zip(keys, answer["n"], strict=True))


def test_r21_four_different_keys(opened: Open) -> None:
    data = opened(FOUR)
    sql = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"
    answer = data.query(sql, epsilon=PROBE, keys={"k": ["a", None, ""]})
    assert list(answer["k"]) == ["a", None, ""]
    assert counts(answer, "k") == {"a": 2, None: 1, "": 1}
    # The same on a command line, where a bare NULL is the missing key and a quoted one is a text.
    keys = read_keys(['k=a,NULL,"","NULL"'], None)
    assert counts(data.query(sql, epsilon=PROBE, keys=keys), "k") == {"a": 2, None: 1, "": 1, "NULL": 1}


def test_r05_every_listed_key_once_with_the_same_noise(opened: Open) -> None:
    frame = pd.DataFrame({"u": range(20), "k": ["A"] * 20, "x": [1] * 20})
    data = opened(frame)
    sql = "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM data GROUP BY k"
    plan = data.plan(sql, epsilon=1, keys={"k": ["A", "B", "C", "B"]}, bounds={"x": (0, 10)})
    assert plan.group_keys() == (("A", "B", "C"),)
    assert exact(plan, frame) == [[20 * 2**20, 0, 0], [20 * 2**20, 0, 0]]
    asked = {"keys": {"k": ["A", "B", "C"]}, "bounds": {"x": (0, 10)}}
    answers = [data.query(sql, epsilon=1, **asked, fresh=True) for _ in range(6)]
    assert all(list(answer["k"]) == ["A", "B", "C"] for answer in answers)
    # Noise of scale 2 * 100 on each: six answers of an empty group are all 0 with a chance below 1e-14.
    assert any(answer["n"][1] != 0 for answer in answers)


def test_r61_the_order_is_that_of_the_keys(opened: Open) -> None:
    rows = [(i, "xyz"[i % 3]) for i in range(30)]
    for seed in range(20):
        random.Random(seed).shuffle(rows)
        data = opened(pd.DataFrame(rows, columns=["u", "k"]))
        answer = data.query("SELECT k, COUNT(*) AS n FROM data GROUP BY k", epsilon=PROBE, keys={"k": ["z", "x", "y"]})
        assert list(answer["k"]) == ["z", "x", "y"]


def test_r67_disjoint_groups_cost_once(opened: Open) -> None:
    frame = pd.DataFrame({"u": range(10), "k": range(10)})
    sql = "SELECT k, COUNT(DISTINCT u) AS n FROM data GROUP BY k"
    plan = opened(frame, limit=1).plan(sql, epsilon=1, keys={"k": range(10)})
    assert plan.loss.epsilon == 1
    assert [m.scale * m.unit_value for m in plan.measurements] == [1]
    plan = opened(frame, limit=3).plan(sql, epsilon=1, keys={"k": range(10)})
    assert [m.scale * m.unit_value for m in plan.measurements] == [3]


def test_a_product_and_combinations(opened: Open) -> None:
    data = opened(FOUR)
    sql = "SELECT k, b, COUNT(*) AS n FROM data GROUP BY k, b"
    answer = data.query(sql, epsilon=PROBE, keys={"k": ["a", None], "b": [1, 2]})
    assert list(zip(answer["k"], answer["b"], strict=True)) == [("a", 1), ("a", 2), (None, 1), (None, 2)]
    assert list(answer["n"]) == [1, 1, 1, 0]
    rows = [(2, "NULL"), (1, None), (1, "a"), (2, "zz")]
    for given in (
        {("b", "k"): rows},
        pd.DataFrame(rows, columns=["b", "k"]),
        pl.DataFrame({"b": [r[0] for r in rows], "k": [r[1] for r in rows]}),
        pa.table({"b": [r[0] for r in rows], "k": [r[1] for r in rows]}),
    ):
        answer = data.query(sql, epsilon=PROBE, keys=given, fresh=True)
        assert list(zip(answer["b"], answer["k"], strict=True)) == rows
        assert list(answer["n"]) == [1, 1, 1, 0]
    # Combinations of two columns times a list of a third.
    sql = "SELECT b, k, u, COUNT(*) AS n FROM data GROUP BY k, b, u"
    answer = data.query(sql, epsilon=PROBE, keys={("b", "k"): rows[:2], "u": [2, 4]})
    assert counts(answer, "b", "k", "u") == {(2, "NULL", 2): 0, (2, "NULL", 4): 1, (1, None, 2): 1, (1, None, 4): 0}


def test_files(opened: Open, tmp_path: Path) -> None:
    data = opened(FOUR)
    sql = "SELECT k, b, COUNT(*) AS n FROM data GROUP BY k, b"
    table = tmp_path / "keys.csv"
    table.write_text('\ufeffb,k\n2,"NULL"\r\n\n1,NULL\n1,a\n1,""\n2,"two\nlines"\n', encoding="utf-8")
    expected = {(2, "NULL"): 1, (1, None): 1, (1, "a"): 1, (1, ""): 1, (2, "two\nlines"): 0}
    answer = data.query(sql, epsilon=PROBE, keys=read_keys(None, [str(table)]))
    assert counts(answer, "b", "k") == expected
    parquet = tmp_path / "keys.parquet"
    pq.write_table(pa.table({"b": [b for b, _ in expected], "k": [k for _, k in expected]}), parquet)
    answer = data.query(sql, epsilon=PROBE, keys=read_keys(None, [str(parquet)]), fresh=True)
    assert counts(answer, "b", "k") == expected
    single = tmp_path / "single.csv"
    single.write_text("k\na\nNULL\n")
    keys = read_keys(["b=1..2"], [str(single)])
    assert list(data.query(sql, epsilon=PROBE, keys=keys)["n"]) == [1, 1, 1, 0]


@pytest.mark.parametrize("text", ["", "k\n", "a,a\n1,2\n", "k,b\n1\n", 'k\n"x\n', "k,NULL\n1,2\n", ",b\n1,2\n"])
def test_files_that_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.csv"
    path.write_text(text)
    with pytest.raises(discreet.UsageError, match="--keys-file"):
        read_keys(None, [str(path)])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 not really")
    for name in ("none.csv", "none.parquet", "bad.parquet"):
        with pytest.raises(discreet.SourceError, match="--keys-file"):
            read_keys(None, [str(tmp_path / name)])


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "GROUP BY k"),
        ({"x": [1]}, "must name a grouping column"),
        ({"k": ["a"], "K": ["b"]}, "given twice"),
        ({"k": ["a"], ("k", "b"): [("a", 1)]}, "given twice"),
        ({("k", "k"): [("a", "a")]}, "given twice"),
        ({"k": range(1001), "b": range(1001)}, "k"),
        ({"k": [str(i) for i in range(1001)], "b": range(1001)}, "multiply"),
        ({"k": "a", "b": [1]}, "must be a list"),
        ({(): []}, "must be a dictionary"),
        ({1: [2]}, "must be a dictionary"),
        (["k", "b"], "must be a dictionary"),
    ],
)
def test_keys_refused_before_anything(opened: Open, keys: Any, words: str) -> None:
    data = opened(FOUR)
    with pytest.raises(discreet.DiscreetError, match=words):
        data.query("SELECT k, b, COUNT(*) AS n FROM data GROUP BY k, b", epsilon=1, keys=keys)
    assert data.balance().spent.epsilon == 0  # type: ignore[union-attr]


def test_keys_of_every_type_are_loaded_exactly(opened: Open) -> None:
    moment = dt.datetime(2024, 3, 1, 12, 30, 15, 123457)
    columns: dict[str, list[Any]] = {
        "big": [2**62 + 1, 2**62 + 3],
        "money": [Decimal("1.10"), Decimal("12345678901234567890.01")],
        "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31)],
        "at": [moment, dt.datetime(1900, 1, 1)],
        "instant": [moment.replace(tzinfo=dt.UTC), dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC)],
        "flag": [True, False],
        "name": ['O\'Neil \\ "q" \u0000x 年', "Ω"],
    }
    table = pa.table({"u": [1, 2], **columns})
    data = opened(table)
    for name, values in columns.items():
        for keys in (values, values[::-1], [values[1], None]):
            plan = data.plan(f"SELECT COUNT(*) AS n FROM data GROUP BY {name}", epsilon=1, keys={name: keys})
            assert exact(plan, table) == [[2**20 if key is not None else 0 for key in keys]], name
            assert plan.group_keys() == (tuple(keys),)


def test_domains_that_need_no_list(opened: Open) -> None:
    frame = pd.DataFrame(
        {
            "u": range(4),
            "t": [dt.datetime(2024, 2, 29, 23), dt.datetime(2023, 12, 1), None, dt.datetime(2024, 2, 1)],
            "ok": pd.array([True, None, False, True], dtype="boolean"),
            "x": [1, 2, 3, 4],
        }
    )
    data = opened(frame)
    answer = data.query("SELECT ok, COUNT(*) AS n FROM data GROUP BY ok", epsilon=PROBE)
    assert list(answer["ok"]) == [True, False, None]
    assert list(answer["n"]) == [2, 1, 1]
    answer = data.query("SELECT x > 2 AS large, COUNT(*) AS n FROM data GROUP BY large", epsilon=PROBE)
    assert counts(answer, "large") == {True: 2, False: 2, None: 0}
    answer = data.query("SELECT t IS NULL AS none, COUNT(*) AS n FROM data GROUP BY 1", epsilon=PROBE)
    assert counts(answer, "none") == {True: 1, False: 3}
    answer = data.query("SELECT EXTRACT(MONTH FROM t) AS m, COUNT(*) AS n FROM data GROUP BY m", epsilon=PROBE)
    assert list(answer["m"]) == [*range(1, 13), None]
    assert {k: n for k, n in counts(answer, "m").items() if n} == {2: 2, 12: 1, None: 1}
    # A list may still narrow it, and a year has no such list.
    answer = data.query("SELECT ok, COUNT(*) AS n FROM data GROUP BY ok", epsilon=PROBE, keys={"ok": [False]})
    assert counts(answer, "ok") == {False: 1}
    with pytest.raises(discreet.RefusedError, match="no public list"):
        data.query("SELECT EXTRACT(YEAR FROM t) AS y, COUNT(*) AS n FROM data GROUP BY y", epsilon=1)


# --- sensitivity --------------------------------------------------------------------------------------------------


def test_r53_limits_are_of_the_final_keys(opened: Open) -> None:
    """One row of user 0 in each of 100 years; grouped by something coarser they fall together."""
    frame = pd.DataFrame({"u": [0] * 100, "t": [dt.datetime(1900 + i, 5, 1) for i in range(100)], "k": list("aA") * 50})
    data = opened(frame, limit=10)
    plan = data.plan("SELECT EXTRACT(MONTH FROM t) AS m, COUNT(*) AS n FROM data GROUP BY m", epsilon=1)
    (totals,) = exact(plan, frame)
    # floor(S 10 / 100) for each of 100 rows, all in May: within S C.
    assert sum(totals) == totals[4] == 100 * (2**20 * 10 // 100) <= plan.measurements[0].sensitivity == 10 * 2**20
    by_year = data.plan(
        "SELECT EXTRACT(YEAR FROM t) AS y, COUNT(*) AS n FROM data GROUP BY y", epsilon=1, keys={"y": range(1900, 2000)}
    )
    (totals,) = exact(by_year, frame)
    assert set(totals) == {2**20 * 10 // 100}


def test_rows_of_keys_that_are_not_listed_do_not_weigh(opened: Open) -> None:
    """N_u counts a unit's rows after the keys are matched: here 2 of its 5."""
    frame = pa.table({"u": [0] * 5, "a": [1, 1, 2, 2, None], "b": ["x", "y", "x", "y", "x"]})
    data = opened(frame, limit=2)
    sql = "SELECT a, b, COUNT(*) AS n, COUNT(DISTINCT u) AS m FROM data GROUP BY a, b"
    plan = data.plan(sql, epsilon=1, keys={("a", "b"): [(1, "x"), (None, "x"), (3, "x")]})
    rows, units = exact(plan, frame)
    assert rows == [2**20, 2**20, 0]
    assert units == [2**20, 2**20, 0]


@pytest.mark.parametrize("seed", range(4))
def test_neighbours_with_combinations(opened: Open, seed: int) -> None:
    """Through the real engine: removing any unit moves each vector, in L1, by at most its sensitivity."""
    random_ = random.Random(seed)
    choices_a, choices_b = [1, 2, None], ["x", "y", None, ""]
    rows = [
        (
            random_.choice(["p", "q", "r", None]),
            random_.choice(choices_a),
            random_.choice(choices_b),
            random_.randint(-9, 99),
        )
        for _ in range(60)
    ]
    listed = [*random_.sample([*itertools.product(choices_a, choices_b)], 5), (7, "none")]
    sql = "SELECT COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m, COUNT(DISTINCT u) AS d FROM data GROUP BY a, b"
    columns = ["u", "a", "b", "x"]

    def totals(some: list[Any]) -> tuple[Plan, list[list[int]]]:
        table = pa.table(
            {
                name: pa.array([row[i] for row in some], t)
                for i, (name, t) in enumerate(zip(columns, TYPES, strict=True))
            }
        )
        data = opened(table, limit=4)
        plan = data.plan(sql, epsilon=1, keys={("a", "b"): listed}, bounds={"x": (-5, 50)}, max_groups_contributed=2)
        return plan, exact(plan, table)

    plan, whole = totals(rows)
    meant = [0] * len(listed)
    for row in rows:
        if row[0] is not None and row[1:3] in listed:
            meant[listed.index(row[1:3])] += 1
    assert [n > 0 for n in whole[0]] == [n > 0 for n in meant]
    for unit in ("p", "q", "r", None):
        _, without = totals([row for row in rows if row[0] != unit])
        for measurement, a, b in zip(plan.measurements, whole, without, strict=True):
            moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
            assert moved <= measurement.sensitivity
            assert unit is not None or moved == 0


TYPES = (pa.string(), pa.int64(), pa.string(), pa.int64())
