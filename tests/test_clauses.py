"""HAVING, ORDER BY, LIMIT and outputs that compute: on noisy values only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.dataset import Dataset
from discreet.formats import FORMATS
from discreet.laplace.limbs import Int128Array
from discreet.plan import Request
from discreet.planning import make_plan
from discreet.postprocessing import answer_columns
from discreet.query import Aggregate, Apply, Bounds, Constant, Name, Output
from discreet.sql import parse
from discreet.stored import answer_of

KEYS = {"a": ["B", "A", "C", "Z"]}
BOUNDS = {"x": (0, 10)}


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    """A: 30 rows of x = 1; B: 20 of x = 4; C: 10 of x = 0; each row its own person."""
    rows = [("A", 1)] * 30 + [("B", 4)] * 20 + [("C", 0)] * 10
    path = tmp_path / "t.csv"
    path.write_text("u,a,x\n" + "".join(f"p{i},{a},{x}\n" for i, (a, x) in enumerate(rows)))
    return discreet.open(path, privacy_unit="u", max_contributions=1, budget=10**9, ledger=tmp_path / "ledger")


@pytest.fixture
def probe(data: Dataset) -> Callable[..., Any]:
    """Asks with so much epsilon that the noise is below 0.001."""

    def ask(sql: str, **given: Any) -> Any:
        return data.query(sql, epsilon=10**6, **{"keys": KEYS, "bounds": BOUNDS, **given})

    return ask


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("", ["B", "A", "C", "Z"]),  # as listed
        ("ORDER BY n DESC", ["A", "B", "C", "Z"]),
        ("ORDER BY N DESC", ["A", "B", "C", "Z"]),
        ("ORDER BY 2", ["Z", "C", "B", "A"]),
        ("ORDER BY COUNT(*) ASC", ["Z", "C", "B", "A"]),
        ("ORDER BY a", ["A", "B", "C", "Z"]),
        ("ORDER BY data.a DESC", ["Z", "C", "B", "A"]),
        ("ORDER BY AVG(x) > 5, n", ["Z", "C", "B", "A"]),  # all means are below 5 (Z's lies in the middle or near)
        ("HAVING n > 15", ["B", "A"]),
        ("HAVING COUNT(*) > 15 AND a <> 'B'", ["A"]),
        ("HAVING n BETWEEN 5 AND 25 ORDER BY n", ["C", "B"]),
        ("HAVING n > 1000", []),
        ("ORDER BY n DESC LIMIT 2", ["A", "B"]),
        ("ORDER BY n DESC LIMIT 2 OFFSET 1", ["B", "C"]),
        ("ORDER BY n DESC FETCH FIRST 1 ROWS ONLY", ["A"]),
        ("LIMIT 0", []),
        ("LIMIT 99 OFFSET 3", ["Z"]),
    ],
)
def test_rows(probe: Callable[..., Any], clauses: str, expected: list[str]) -> None:
    if "AVG" in clauses:
        expected = sorted(expected)  # only which rows, below
        answer = probe(f"SELECT a, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY a {clauses}")
        assert sorted(answer["a"]) == expected
        return
    answer = probe(f"SELECT a, COUNT(*) AS n FROM data GROUP BY a {clauses}")
    assert list(answer["a"]) == expected
    assert len(answer) == len(expected)
    for column in answer.columns[1:]:
        assert len(column.low) == len(column.high) == len(expected)
    for form in FORMATS.values():  # also without rows
        assert form(answer) or not expected
    assert FORMATS["csv"](answer).splitlines()[0] == "a,n,n_low,n_high"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ORDER BY a", [None, "A", "B"]),  # as in BigQuery: the missing key is the smallest
        ("ORDER BY a DESC", ["B", "A", None]),
        ("ORDER BY a NULLS LAST", ["A", "B", None]),
        ("ORDER BY a DESC NULLS FIRST", [None, "B", "A"]),
    ],
)
def test_order_of_the_missing_key(probe: Callable[..., Any], clauses: str, expected: list[Any]) -> None:
    answer = probe(f"SELECT a, COUNT(*) AS n FROM data GROUP BY a {clauses}", keys={"a": ["B", None, "A"]})
    assert list(answer["a"]) == expected


def test_the_ledger_holds_what_was_shown(data: Dataset, probe: Callable[..., Any]) -> None:
    answer = probe("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY n DESC LIMIT 1")
    (entry,) = [e for e in data.history() if e.answer is not None]
    assert answer_of(entry).to_dicts() == [{"a": "A", "n": 30, "n_low": 30, "n_high": 30}]
    assert answer.columns == answer_of(entry).columns


def test_clauses_are_part_of_the_question(data: Dataset) -> None:
    sql = "SELECT a, COUNT(*) AS n FROM data GROUP BY a"
    clauses = [
        "",
        "ORDER BY n",
        "ORDER BY n DESC",
        "ORDER BY n NULLS LAST",
        "ORDER BY a",
        "LIMIT 3",
        "LIMIT 3 OFFSET 1",
    ]
    clauses += ["HAVING n > 3", "HAVING n > 4", "HAVING n >= 3"]
    digests = {data.plan(f"{sql} {c}", epsilon=1, keys=KEYS).digest for c in clauses}
    assert len(digests) == len(clauses)


def test_one_measurement_however_often_it_is_named(data: Dataset) -> None:
    sql = "SELECT a, COUNT(*) AS n, AVG(x) AS m FROM data GROUP BY a HAVING COUNT(*) > 1 AND SUM(x) > 2 ORDER BY AVG(x)"
    plan = data.plan(sql, epsilon=1, keys=KEYS, bounds=BOUNDS)
    # COUNT(*), the centred sum and COUNT(x): HAVING's SUM(x) is made of the latter two.
    assert [m.statistic for m in plan.measurements] == ["count", "centred_sum", "count"]
    assert sum(m.epsilon for m in plan.measurements) == 1


def test_order_uses_what_was_released_not_the_exact_totals(data: Dataset) -> None:
    """The noisy totals alone decide: given totals that contradict the data, the order follows them."""
    plan = data.plan("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY n DESC", epsilon=1, keys=KEYS)
    noisy = (Int128Array.from_ints([n * 2**20 for n in (1, 2, 3, 4)]),)
    columns = answer_columns(plan, [KEYS["a"]], noisy, Fraction(95, 100))
    assert columns[0].values == ("Z", "C", "A", "B")
    assert columns[1].values == (4, 3, 2, 1)


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY 3", "a place must be from 1 to 2"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY 0", "a place must be from 1 to 2"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY 'n'", "a place must be from 1 to 2"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY x", "one person's value"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY y", "not a column"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY ALL", "ORDER BY"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a ORDER BY SUM(y)", "not a column"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a HAVING x > 1", "one person's value"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a HAVING n", "must be a condition"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a HAVING n > 'many'", "HAVING"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a LIMIT -1", "LIMIT"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a LIMIT 1.5", "LIMIT"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a LIMIT 10%", "LIMIT"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a LIMIT n", "LIMIT"),
        ("SELECT a, COUNT(*) AS n FROM data GROUP BY a LIMIT 1 OFFSET 'x'", "OFFSET"),
        ("SELECT a FROM data GROUP BY a ORDER BY COUNT(*)", "no aggregate"),
        ("SELECT a, x FROM data GROUP BY ALL LIMIT 5", "no public list of keys"),
    ],
)
def test_refused_before_anything(data: Dataset, sql: str, words: str) -> None:
    with pytest.raises((discreet.UsageError, discreet.RefusedError), match=words):
        data.query(sql, epsilon=1, keys=KEYS, bounds=BOUNDS)
    assert not [e for e in data.history() if e.answer is not None]


def test_an_answer_that_was_picked_says_so(data: Dataset) -> None:
    sql = "SELECT a, COUNT(*) AS n FROM data GROUP BY a"
    for clause, picked in (("", False), ("ORDER BY n", False), ("LIMIT 2", True), ("HAVING n > 3", True)):
        answer = data.query(f"{sql} {clause}", epsilon=1, keys=KEYS)
        assert bool(answer.report()["picked"]) is picked


# --- outputs that compute --------------------------------------------------------------------------------------

UNIT = (Name(("u",)),)
COUNT = Aggregate("count")
SUM = Aggregate("sum", Name(("x",)), Bounds(Fraction(0), Fraction(10)))
AVG = Aggregate("avg", Name(("x",)), Bounds(Fraction(0), Fraction(10)))


def compute(data: Dataset, node: Any, totals: list[list[int]], *, confidence: Fraction = Fraction(95, 100)) -> Any:
    """The column of an output `node`, given the noisy totals of COUNT(*), then of what else it measures."""
    query = parse("SELECT a, COUNT(*) AS n FROM data GROUP BY a")
    query = replace(query, outputs=(*query.outputs, Output("out", node)))
    request = Request(epsilon=Fraction(1), unit=UNIT, max_contributions=1, keys=KEYS)
    plan = make_plan(query, data.registration, request)
    noisy = tuple(Int128Array.from_ints([n * 2**20 for n in column]) for column in totals)
    return answer_columns(plan, [KEYS["a"]], noisy, confidence)[2], plan


def test_a_quotient_guards_its_divisor(data: Dataset) -> None:
    column, plan = compute(data, Apply("divide", (SUM, COUNT)), [[100, 0, -5, 40], [400, 10, 10, 2]])
    assert column.values == (4.0, None, -2.0, 0.05)
    assert column.described == "SUM(x, contribution_bounds_per_row => (0, 10)) / COUNT(*)"
    assert plan.outputs[2].sources == (0, 1)
    # Noise of scale 2 on the count: 0 may be the divisor of the second and third group, not of the first and last.
    assert [low is None for low in column.low] == [False, True, True, False]
    assert column.low[0] < 4.0 < column.high[0]
    assert [high is None for high in column.high] == [low is None for low in column.low]


def test_monotone_functions_keep_the_exact_interval(data: Dataset) -> None:
    column, plan = compute(data, Apply("round", (AVG, Constant(1))), [[1] * 4, [0] * 4, [1000] * 4])
    one, _ = compute(data, AVG, [[1] * 4, [0] * 4, [1000] * 4])
    assert column.low[0] == round(one.low[0], 1)
    assert column.high[0] == round(one.high[0], 1)
    assert plan.outputs[2].function == "computed"


def test_text_and_keys(data: Dataset) -> None:
    case = Apply("case", (Apply("gt", (COUNT, Constant(15))), Constant("many"), Constant("few")))
    column, _ = compute(data, case, [[20, 10, 20, 10]])
    assert column.values == ("many", "few", "many", "few")
    assert column.low is None
    column, _ = compute(data, Apply("lower", (Name(("a",)),)), [[1, 1, 1, 1]])
    assert column.values == ("b", "a", "c", "z")
    with pytest.raises(discreet.RefusedError, match="one person's value"):
        compute(data, Apply("divide", (COUNT, Name(("x",)))), [[1, 1, 1, 1]])


def test_an_interval_of_several_parts_covers_at_least_as_often_as_it_says(data: Dataset) -> None:
    """SUM(x) / COUNT(*) in 3,000 releases of scripted totals plus noise of the planned law.

    At 90 % nominal the number of misses is at most Binomial(3000, 0.1); more than 407 would have probability below
    1e-9 (exact tail). Power: an interval that covered 84 % instead would have 480 misses on average, and pass with
    probability below 1e-4.
    """
    from discreet.laplace import sample_discrete_laplace

    node = Apply("divide", (SUM, COUNT))
    draws = 3000
    query = parse("SELECT COUNT(*) AS n FROM data")
    query = replace(query, outputs=(*query.outputs, Output("out", node)))
    plan = make_plan(query, data.registration, Request(epsilon=Fraction(1), unit=UNIT, max_contributions=1))
    count, total = 100, 400
    # Each release stands where a group would.
    noisy = tuple(
        Int128Array.from_ints([exact * 2**20 + int(n) for n in sample_discrete_laplace(m.scale, draws)])
        for exact, m in zip((count, total), plan.measurements, strict=True)
    )
    column = answer_columns(plan, [], noisy, Fraction(9, 10))[1]
    assert column.low is not None
    assert column.high is not None
    ends = zip(column.low, column.high, strict=True)
    misses = sum(not low <= total / count <= high for low, high in ends)  # type: ignore[operator]
    assert misses <= 407


def test_arithmetic_in_sql(probe: Callable[..., Any]) -> None:
    answer = probe(
        """SELECT LOWER(a) AS a, SUM(x) / COUNT(*) AS r, ROUND(AVG(x), 1) AS m, -COUNT(*) * 2 AS n,
                  CASE WHEN COUNT(*) > 15 THEN 'many' ELSE 'few' END AS size,
                  SUM(x) / NULLIF(COUNT(*) - 20, 0) AS gap, COALESCE(SUM(x) / 0, 7) AS seven
           FROM data GROUP BY data.A HAVING SUM(x) / COUNT(*) > 0.5 ORDER BY SUM(x) / COUNT(*) DESC""",
        keys={"a": ["A", "B", "C"]},
    )
    rows = answer.to_dicts()
    assert [row["a"] for row in rows] == ["b", "a"]
    assert [round(row["r"], 3) for row in rows] == [4.0, 1.0]
    assert [row["m"] for row in rows] == [4.0, 1.0]
    assert [row["n"] for row in rows] == [-40, -60]
    assert [row["size"] for row in rows] == ["many", "many"]
    assert rows[0]["gap"] is None
    assert [row["seven"] for row in rows] == [7.0, 7.0]
    assert rows[0]["gap_low"] is None
    assert rows[0]["gap_high"] is None
    assert rows[0]["n_low"] == rows[0]["n_high"] == -40
    assert "size_low" not in rows[0]
    for form in ("table", "csv", "json", "ndjson", "markdown"):
        assert FORMATS[form](answer)


def test_bins_need_no_keys(tmp_path: Path) -> None:
    """R20: edges 0, 5, 10; values 0, 5, 10, -1, 11 and one missing: clamped in, and none is lost."""
    path = tmp_path / "bins.csv"
    path.write_text("x\n0\n5\n10\n-1\n11\nNA\n")
    data = discreet.open(path, row_level=True, budget=10**9, ledger=tmp_path / "l", null_values=["NA"])
    answer = data.query("SELECT BIN(x, 0, 10, 2) AS b, COUNT(*) AS n FROM data GROUP BY b", epsilon=10**6)
    assert list(answer["b"]) == [0, 5, None]
    assert list(answer["n"]) == [2, 3, 1]
    for wrong in ("BIN(x, 10, 10, 2)", "BIN(x, 0, 10, 0)", "BIN(x, 5, 0, 2)"):
        with pytest.raises(discreet.UsageError, match="BIN"):
            data.query(f"SELECT {wrong} AS b, COUNT(*) AS n FROM data GROUP BY b", epsilon=1)
