"""One suite for every engine: the totals before the noise are those of the definition, bit for bit, on nasty rows.

What an engine cannot say for every row is refused when the query is planned (R62). `docs/engines.md` says what a new
engine needs to stand here.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance_engines import (
    Bench,
    DuckDBBench,
    ExpressionBench,
    PostgresBench,
    PostgresExpressions,
    SparkBench,
    SparkExpressions,
    totals_of,
)
from definition import Question, Row, S, hashed, totals, unit_of
from discreet.binding import bind
from discreet.engines.duckdb_connection import connect
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression, Operation
from discreet.plan import Plan, Request
from discreet.planning import make_plan
from discreet.query import Node
from discreet.query_text import node_text
from discreet.quirks import DUCKDB
from discreet.quirks.keyed_hash import keyed_hash
from discreet.quirks.letters import LOWER, UPPER, mapping
from discreet.relational import needed_columns
from discreet.relational_selection import check_sayable, compile_selection
from discreet.row_rendering import render
from discreet.sql import parse, parse_expression
from expression_oracle import Roughly, UnknownError, agrees, evaluate
from expression_tables import SCHEMA, bound, create_source, expressions
from tables import DAYS, ROWS, plan_of, questions, row, statistic_of
from test_expressions_meaning import every_function_on_every_column

ENGINES = ("duckdb", "postgres", "spark")


@pytest.fixture(scope="module", params=ENGINES)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    if request.param == "duckdb":
        yield DuckDBBench(tmp_path_factory.mktemp("rows"))
    elif request.param == "spark":
        yield SparkBench(request.getfixturevalue("spark"))
    else:
        with closing(PostgresBench(request.getfixturevalue("postgres_server"))) as found:
            yield found


QUICK = settings(
    max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck)
)


def checked(bench: Bench, rows: list[Row], question: Question, plan: Plan) -> list[list[int]]:
    """The totals over these rows, which are the definition's."""
    found = totals_of(bench.hold(rows), plan)
    for measurement, vector in zip(plan.measurements, found, strict=True):
        weight = S // measurement.weight if question.unit and measurement.statistic != "distinct_count" else 1
        meant = totals(rows, question, statistic_of(measurement))
        assert [x * weight for x in vector] == meant, (bench.name, measurement)
    return found


@QUICK
@given(rows=ROWS, question=questions(), data=st.data())
def test_generated_questions_over_generated_tables(
    bench: Bench, rows: list[Row], question: Question, data: st.DataObject
) -> None:
    """Bit for bit what the definition says; and one unit's rows move them by no more than the sensitivity."""
    try:
        plan = plan_of(question, bench.registration)
        check_sayable(plan)
    except RefusedError:
        return  # by types and bounds alone, or what the engine has no words for
    found = checked(bench, rows, question, plan)
    whose = [unit_of(row, question) if question.unit else i for i, row in enumerate(rows)]
    if rows:
        gone = data.draw(st.sampled_from(list(dict.fromkeys(whose))))
        left = [row for row, who in zip(rows, whose, strict=True) if who != gone]
        for measurement, a, b in zip(plan.measurements, found, totals_of(bench.hold(left), plan), strict=True):
            distance = sum(abs(x - y) for x, y in zip(a, b, strict=True))
            assert distance <= (measurement.sensitivity if gone is not None else 0), (bench.name, measurement)


# --- groups that are chosen from the data -----------------------------------------------------------------------------


def test_the_same_groups_are_picked_by_the_same_hash(bench: Bench) -> None:
    """Of a unit in more than l groups, the same ones are counted on every engine, where they hash by md5 alike.

    (DuckDB has its own, quicker hash for it; here it is told to take md5.)
    """
    rows = [row(actor=f"u{i % 7}", kind=f"g{i % 11}", day=DAYS[i % 6], flag=i % 3 == 0) for i in range(231)]
    rows += [row(actor="few", kind="only"), row(actor=None, kind="none"), row(actor="few", kind=None)]
    engine = bench.hold(rows)
    quirks = engine.quirks
    if quirks is DUCKDB:
        by_md5 = lambda values, types, key: keyed_hash(values, types, key, DUCKDB)  # noqa: E731
        quirks = dataclasses.replace(DUCKDB, pair_hash=by_md5)
    unit = parse_expression("actor", "unit")
    request = Request(Fraction(1), unit, max_contributions=99, max_groups_contributed=3, delta=Fraction(1, 10**6))
    plan = make_plan(parse("SELECT kind, day, flag, COUNT(*) FROM data GROUP BY 1, 2, 3"), bench.registration, request)
    with engine.session(needed_columns(plan)) as session:
        statement = compile_selection(plan, 3, 12345, quirks)
        counts = session.candidates(statement).to_ints()
        keys = session.keys(statement, np.arange(len(counts)))
    found = dict(zip(keys, counts, strict=True))
    # The definition, in Python: each unit's groups in the order of their hashes.
    pairs = {(r["actor"], (r["kind"], r["day"], r["flag"])) for r in rows if r["actor"] is not None}
    meant: Counter[tuple[object, ...]] = Counter()
    for who in {who for who, _ in pairs}:
        own = sorted((group for u, group in pairs if u == who), key=lambda group: hashed([who, *group], 12345))
        meant.update(own[:3])
    assert found == meant
    assert sum(counts) == 7 * 3 + 2


# --- row expressions --------------------------------------------------------------------------------------------------


def test_every_function_on_every_column(expressions_on: ExpressionBench) -> None:
    """Whatever the types take together is what Python says, or DuckDB where Python cannot tell, or is refused."""
    texts = [text for text in every_function_on_every_column() if is_bound(text)]
    refused = 0
    for start in range(0, len(texts), 40):
        said, expressions = [], []
        for text in texts[start : start + 40]:
            try:
                expressions.append(bound(text))
                render(expressions[-1], expressions_on.quirks)
                said.append(text)
            except RefusedError:
                expressions.pop()
                refused += 1
        assert_as_meant(expressions_on, said, expressions)
    assert refused <= expressions_on.refused, refused
    assert len(texts) > 1000


@QUICK
@given(nodes=st.lists(expressions(2), min_size=8, max_size=8))
def test_generated_expressions(expressions_on: ExpressionBench, nodes: list[Node]) -> None:
    said, found = [], []
    for node in nodes:
        expression = bind(node, SCHEMA)
        try:
            render(expression, expressions_on.quirks)
        except RefusedError:
            continue
        said.append(node_text(node))
        found.append(expression)
    assert_as_meant(expressions_on, said, found)


def assert_as_meant(bench: ExpressionBench, texts: list[str], expressions: list[Expression]) -> None:
    """The engine's value in every row is Python's; where Python cannot tell, DuckDB's. Only the last digits of what is
    computed by a library of logarithms and powers may differ."""
    for text, expression, found in zip(texts, expressions, bench.values(expressions), strict=True):
        of_duckdb = bench.duckdb(expression)
        rough = any(name in ROUGH for name in operators_in(expression))
        for value, other, row_ in zip(found, of_duckdb, bench.rows, strict=True):
            try:
                meant = evaluate(expression, row_)
            except UnknownError:
                meant = Roughly(other) if rough and isinstance(other, float) else other
            assert agrees(value, meant), (bench.name, text, row_, value, meant)
            assert rough or value == other, (bench.name, text, row_, value, other)


ROUGH = frozenset(("exp", "ln", "log10", "log2", "pow", "sqrt", "round_to"))


def operators_in(expression: Expression) -> Iterator[str]:
    """All operators of an expression."""
    if isinstance(expression, Operation):
        yield expression.operator
        for operand in expression.operands:
            yield from operators_in(operand)


def is_bound(text: str) -> bool:
    """Whether the dialect accepts it."""
    try:
        bound(text)
    except (UsageError, RefusedError):
        return False
    return True


@pytest.fixture(scope="module", params=("postgres", "spark"))
def expressions_on(request: pytest.FixtureRequest) -> Iterator[ExpressionBench]:
    with connect(threads=1) as duckdb:
        bench: PostgresExpressions | SparkExpressions
        if request.param == "spark":
            bench = SparkExpressions(request.getfixturevalue("spark"), duckdb)
        else:
            bench = PostgresExpressions(request.getfixturevalue("postgres_server"), duckdb)
        create_source(duckdb, bench.rows)
        with closing(bench):
            yield bench


def test_letters_change_case_as_in_duckdb() -> None:
    """The tables that other engines are given, over all of Unicode that Python and DuckDB both know."""
    letters = [chr(i) for i in range(1, 0x110000) if not 0xD800 <= i < 0xE000]
    with connect(threads=1) as duckdb:
        rows = duckdb.execute("SELECT lower(x), upper(x) FROM (SELECT unnest(?) AS x)", [letters]).fetchall()
    for name, place in ((LOWER, 0), (UPPER, 1)):
        table = dict(zip(*mapping(name), strict=True))
        differing = [c for c, row_ in zip(letters, rows, strict=True) if row_[place] != table.get(c, c)]
        known = [c for c in differing if unicodedata.category(c) != "Cn"]
        assert not known, (name, [hex(ord(c)) for c in known[:20]])
