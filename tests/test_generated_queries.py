"""Generated queries over generated nasty tables: each is refused before anything is read, or answered; what is answered
moves, with all rows of any one unit, by at most its declared sensitivity.

The queries are SQL text over the whole dialect: nested row expressions, filters, derived tables, joins with a public
table, public and chosen groups, clauses and arithmetic after the noise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

import discreet
from discreet.dataset import Dataset
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import DiscreetError
from discreet.plan import Plan
from discreet.query_text import node_text
from discreet.relational import compile_plan, needed_columns
from discreet.relational_selection import compile_selection
from discreet.schema import Kind
from expression_tables import SCHEMA, Grammar, binds, nasty_rows

POOL = nasty_rows(seed=31, count=150)
UNITS = ("ann", "bob", "Ö'; --", None)
LIMIT = 2
FOREIGN = ("Error:", "Traceback", "duckdb", "sqlglot", "LINE 1", "c0", "exp.", "object at 0x")
"""What only an engine's or Python's own text would hold."""


def column(values: Sequence[Any], kind: Any) -> pa.Array:
    match kind.kind:
        case Kind.INTEGER if kind.bits == 128:
            # Arrow has no whole numbers of that size; of 38 digits as decimals, the others are missing.
            most = 10**38
            return pa.array([None if v is None or abs(v) >= most else Decimal(v) for v in values], pa.decimal128(38, 0))
        case Kind.INTEGER:
            return pa.array(values, pa.int64())
        case Kind.FLOAT:
            return pa.array(values, pa.float64())
        case Kind.DECIMAL:
            return pa.array(values, pa.decimal128(kind.precision, kind.scale))
        case Kind.TEXT:
            return pa.array(values, pa.string())
        case Kind.BOOLEAN:
            return pa.array(values, pa.bool_())
        case Kind.DATE:
            return pa.array(values, pa.date32())
        case Kind.TIMESTAMP:
            return pa.array(values, pa.timestamp("us"))
    return pa.array(values, pa.timestamp("us", tz="UTC"))


Rows = list[tuple[str | None, int]]
"""For each row its unit, and its place in the pool."""


def table(rows: Rows) -> pa.Table:
    columns = {"who": pa.array([who for who, _ in rows], pa.string())}
    for i, one in enumerate(SCHEMA.columns):
        columns[one.name] = column([POOL[place][i] for _, place in rows], one.type)
    return pa.table(columns)


PUBLIC = pa.table(
    {"word": ["a", "A", "12", "", "it's"], "size": [1, 2, None, -4, 5], "rate": [0.5, float("nan"), 1e300, -1.0, 0.0]}
)


@dataclass(frozen=True)
class Asked:
    """One generated question."""

    sql: str
    keys: dict[str, list[Any]]
    delta: str
    row_level: bool


BOUNDS = (
    "(0, 10)",
    "(-3, 10)",
    "(5, 5)",
    "(-0.5, 1000000)",
    "(-9223372036854775808, 9223372036854775807)",
    "(0, 1e-9)",
)
TIME_BOUNDS = ("('1950-01-01', '2050-01-01')", "('0001-01-01', '9999-12-31')")
KEYS: dict[str, list[Any]] = {
    "text": ["", "a", "A", "12", None, "it's"],
    "number": [0, 1, -1, 7, 2024, None],
    "time": ["2024-02-29", "1970-01-01", None],
}


@st.composite
def questions(draw: st.DrawFn) -> Asked:
    grammar = Grammar(lambda values: draw(st.sampled_from(values)))

    def one_of(*values: Any) -> Any:
        return draw(st.sampled_from(values))

    def written(kind: str, level: int = 2) -> str:
        """An expression that the dialect accepts by itself, mostly: else a column."""
        node = getattr(grammar, kind)(level)
        if not binds(node) and one_of(True, True, True, False):
            node = getattr(grammar, kind)(0)
        return node_text(node)

    def aggregate() -> str:
        filtered = f" FILTER (WHERE {written('condition', 1)})" if one_of(True, False, False, False) else ""
        share = ", share => 2" if one_of(True, False, False, False) else ""
        match one_of("rows", "present", "if", "units", "values", "number", "number", "number", "time"):
            case "rows":
                return f"COUNT(*){filtered}"
            case "present":
                return f"COUNT({written(one_of('number', 'text', 'time', 'condition'))}{share}){filtered}"
            case "if":
                return f"COUNTIF({written('condition')}{share})"
            case "units":
                return f"COUNT(DISTINCT who){filtered}"
            case "values":
                return f"COUNT(DISTINCT {written(one_of('integer', 'text', 'time', 'condition'), 1)}){filtered}"
            case "time":
                bounds = one_of(*TIME_BOUNDS)
                function = one_of("AVG", "MEDIAN")
                return f"{function}({written('time', 1)}, contribution_bounds_per_row => {bounds}{share}){filtered}"
        bounds = f"contribution_bounds_per_row => {one_of(*BOUNDS)}{share}"
        function = one_of("SUM", "AVG", "VAR_POP", "VAR_SAMP", "STDDEV", "MEDIAN", "PERCENTILE_CONT")
        point = ", 0.9" if function == "PERCENTILE_CONT" else ""
        return f"{function}({written('number')}{point}, {bounds}){filtered}"

    def output() -> str:
        match one_of("plain", "plain", "plain", "ratio", "round"):
            case "ratio":
                return f"{aggregate()} / {aggregate()}"
            case "round":
                return f"ROUND({aggregate()}, 1)"
        return aggregate()

    keys: dict[str, list[Any]] = {}
    groups: list[str] = []
    for i in range(one_of(0, 0, 1, 1, 2)):
        kind = one_of("text", "number", "time", "condition")
        expression = written("integer" if kind == "number" else kind, 1)
        groups.append(f"{expression} AS k{i}")
        if kind in KEYS and one_of(True, True, False):
            keys[f"k{i}"] = list(draw(st.lists(st.sampled_from(KEYS[kind]), min_size=1, max_size=4, unique=True)))
    names = [f"k{i}" for i in range(len(groups))]
    outputs = [f"{output()} AS a{i}" for i in range(one_of(1, 1, 2, 3))]
    source = "data"
    match one_of("plain", "plain", "derived", "with", "join"):
        case "derived":
            source = f"(SELECT *, {written('number')} AS made FROM data WHERE {written('condition')}) AS sub"
            outputs.append(f"SUM(made, contribution_bounds_per_row => {one_of(*BOUNDS)}) AS made_sum")
        case "with":
            source = "few"
        case "join":
            source = f"data {one_of('LEFT', 'INNER')} JOIN pub ON s = pub.word"
            outputs.append(f"AVG(pub.{one_of('size', 'rate')} * x, contribution_bounds_per_row => (-9, 9)) AS joined")
    sql = f"SELECT {', '.join([*groups, *outputs])} FROM {source}"
    if source == "few":
        sql = f"WITH few AS (SELECT * FROM data WHERE {written('condition', 1)}) {sql}"
    if one_of(True, False):
        sql += f" WHERE {written('condition')}"
    if names:
        sql += f" GROUP BY {', '.join(names)}"
        sql += one_of("", "", " HAVING a0 > 0", f" ORDER BY {one_of('a0', 'k0', 'a0 DESC')}", " ORDER BY a0 LIMIT 2")
    return Asked(sql, keys, one_of("0", "1e-6"), one_of(True, False, False))


ROWS = st.lists(st.tuples(st.sampled_from(UNITS), st.integers(0, len(POOL) - 1)), max_size=8)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Dataset]:
    """The data set with a unit, and at row level; registered from other rows than those that are asked about."""
    registered = table([("ann", 0), ("bob", 1)])
    folder: Path = tmp_path_factory.mktemp("generated")
    common: dict[str, Any] = {"name": "data", "budget": ("1000000", "0.009")}
    with_unit = discreet.open(
        registered, privacy_unit="who", max_contributions=LIMIT, ledger=folder / "unit.sqlite", **common
    )
    return {
        False: with_unit,
        True: discreet.open(registered, row_level=True, ledger=folder / "row.sqlite", **common),
    }


def planned(data: Dataset, asked: Asked) -> Plan | None:
    """The plan; None if it is refused, in words."""
    groups = {} if asked.row_level else {"max_groups_contributed": LIMIT}
    try:
        return data.plan(asked.sql, epsilon="1", keys=asked.keys, delta=asked.delta, public={"pub": PUBLIC}, **groups)
    except DiscreetError as error:
        told = str(error)
        assert told and not any(text in told.replace(asked.sql, "") for text in FOREIGN), told
        return None


HASH_KEY = 7


def candidates(plan: Plan, frame: pa.Table) -> dict[tuple[Any, ...], int]:
    """Of groups chosen from the data: how many units are counted in each."""
    assert plan.selection is not None
    statement = compile_selection(plan, plan.selection.limit, HASH_KEY)
    with DuckDBEngine(plan.registration, frame).session(needed_columns(plan), plan.joins) as session:
        numbers = session.candidates(statement).to_ints()
        found = {}
        for place, number in enumerate(numbers):
            (key,) = session.keys(statement, pa.array([place]).to_numpy())
            found[key] = number
    return found


def vectors(plan: Plan, frame: pa.Table) -> list[list[int]]:
    statement = compile_plan(plan, HASH_KEY)
    return [total.to_ints() for total in DuckDBEngine(plan.registration, frame).run(statement)]


def distance(a: Sequence[int], b: Sequence[int]) -> int:
    return sum(abs(x - y) for x, y in zip(a, b, strict=True))


def check(data: Dataset, asked: Asked, rows: Rows) -> str:
    """One query, on the rows and on those without each unit: "refused" or "answered"."""
    plan = planned(data, asked)
    if plan is None:
        return "refused"
    whole = table(rows)
    whose = list(range(len(rows))) if asked.row_level else [who for who, _ in rows]
    others = {who: table([r for r, w in zip(rows, whose, strict=True) if w != who]) for who in dict.fromkeys(whose)}
    if plan.selection is not None:
        counted = candidates(plan, whole)
        for who, frame in others.items():
            without = candidates(plan, frame)
            keys = list(counted.keys() | without.keys())
            moved = distance([counted.get(k, 0) for k in keys], [without.get(k, 0) for k in keys])
            assert moved <= (0 if who is None else plan.selection.limit)
        chosen = sorted(counted, key=repr)[:3]
        if not chosen:
            return "answered"
        plan = plan.with_groups(chosen)
    totals = vectors(plan, whole)
    for who, frame in others.items():
        for measurement, a, b in zip(plan.measurements, totals, vectors(plan, frame), strict=True):
            moved = distance(a, b)
            assert moved <= (0 if who is None else measurement.sensitivity), measurement
    return "answered"


OPTIONS: dict[str, Any] = {
    "deadline": None,
    "database": None,
    # Without shrinking: through an engine it takes minutes, and a failing query of a few rows can be read.
    "phases": (Phase.generate,),
    "suppress_health_check": list(HealthCheck),
}


def test_every_generated_query_is_refused_or_keeps_its_promise(datasets: dict[bool, Dataset]) -> None:
    outcomes: Counter[str] = Counter()

    @settings(max_examples=300, **OPTIONS)
    @given(asked=questions(), rows=ROWS)
    def run(asked: Asked, rows: Rows) -> None:
        note(asked.sql)
        outcomes[check(datasets[asked.row_level], asked, rows)] += 1

    run()
    assert outcomes["answered"] > 60 and outcomes["refused"] > 20, outcomes


def test_some_generated_queries_all_the_way(datasets: dict[bool, Dataset]) -> None:
    """With debit, noise and answer: what is refused is not charged, what is answered is charged once."""
    outcomes: Counter[str] = Counter()

    @settings(max_examples=40, **OPTIONS)
    @given(asked=questions())
    def run(asked: Asked) -> None:
        data = datasets[asked.row_level]
        before = data.balance()
        plan = planned(data, asked)
        if plan is None:
            outcomes["refused"] += 1
            assert data.balance() == before
            return
        answer = data.answer(plan, confidence=Fraction(19, 20), fresh=True)
        outcomes["answered"] += 1
        assert data.balance().queries == before.queries + 1
        assert answer.columns
        assert str(answer)

    run()
    assert outcomes["answered"] > 5, outcomes


def test_a_wrong_sensitivity_is_found(datasets: dict[bool, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail: with three quarters of each sensitivity it does."""
    data = datasets[False]
    asked = Asked("SELECT COUNT(*) AS n, SUM(x, contribution_bounds_per_row => (0, 10)) AS s FROM data", {}, "0", False)
    full = [("ann", 0), ("ann", 1), ("ann", 2), ("bob", 3)]
    assert check(data, asked, full) == "answered"
    plan = data.plan(asked.sql, epsilon="1")
    wrong = replace(plan, measurements=tuple(replace(m, sensitivity=m.sensitivity * 3 // 4) for m in plan.measurements))
    monkeypatch.setattr(Dataset, "plan", lambda *_, **__: wrong)
    with pytest.raises(AssertionError):
        check(data, asked, full)
