"""The SQL front end: options, names, groups, constants; hostile texts; and that names and values are only ever that."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.binding import bind
from discreet.engines.duckdb_connection import connect
from discreet.errors import DiscreetError, RefusedError, UsageError
from discreet.query import Aggregate, Apply, Constant, Name, Node, Options, Query
from discreet.query_text import name_text, node_text
from discreet.row_rendering import render
from discreet.schema import TEXT, Column, Kind, Schema
from discreet.sql import LONGEST_TEXT, parse, parse_expression
from expression_tables import SCHEMA, bound

# --- options --------------------------------------------------------------------------------------------------------


def options(clause: str) -> Options:
    return parse(f"SELECT WITH DIFFERENTIAL_PRIVACY {clause} COUNT(*) FROM data").options


def test_options_are_read_as_they_are_written() -> None:
    assert options("OPTIONS(epsilon = 0.5)") == Options(epsilon="0.5")
    assert options("OPTIONS (epsilon=0.5, delta = 1e-6)") == Options(epsilon="0.5", delta="1e-6")
    assert options("options(EPSILON = 1, Max_Contributions = 20)") == Options(epsilon="1", max_contributions="20")
    assert options("OPTIONS(max_rows_contributed = 3)") == Options(max_contributions="3")
    assert options("OPTIONS(max_groups_contributed = 3)") == Options(max_groups_contributed="3")
    assert options("OPTIONS(privacy_unit_column = actor)") == Options(privacy_unit="actor")
    assert options('OPTIONS(privacy_unit_column = "the ""unit""")') == Options(privacy_unit='"the ""unit"""')
    assert options("OPTIONS(privacy_unit_column = `a b`)") == Options(privacy_unit='"a b"')
    assert options("OPTIONS(epsilon = 0.5,)") == Options(epsilon="0.5")
    assert options("OPTIONS()") == Options()
    assert options("") == Options()
    assert parse("SELECT COUNT(*) FROM data").options == Options()


@pytest.mark.parametrize(
    ("clause", "words"),
    [
        ("OPTIONS epsilon = 1", "parentheses"),
        ("OPTIONS(epsilon = 1, (", "no closing"),
        ("OPTIONS(epsilon)", "knows only"),
        ("OPTIONS(epsilon = )", "no value"),
        ("OPTIONS(= 1)", "knows only"),
        ("OPTIONS(epsilon = 1, epsilon = 2)", "twice"),
        ("OPTIONS(max_contributions = 1, max_rows_contributed = 2)", "twice"),
        ("OPTIONS(secret = 1)", "knows only"),
    ],
)
def test_options_that_cannot_be_read(clause: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        options(clause)


def test_a_column_may_be_called_like_the_clause() -> None:
    query = parse('SELECT COUNT("WITH") AS n FROM data WHERE "differential_privacy" = 1')
    assert query.options == Options()
    assert query.outputs[0].node == Aggregate("count", Name(("WITH",)))


# --- names, groups, constants ---------------------------------------------------------------------------------------


def outputs(select: str) -> list[str]:
    return [output.name for output in parse(f"SELECT {select} FROM data").outputs]


def test_outputs_without_an_alias_have_a_stated_name() -> None:
    assert outputs("COUNT(*), COUNT(x), SUM(x), AVG(x)") == ["count", "count_x", "sum_x", "avg_x"]
    assert outputs("COUNT(*), COUNT(*)") == ["count", "count_2"]
    assert outputs("SUM(bytes / 1024), SUM(a.b), SUM(a - b)") == ["sum_bytes", "sum_b", "sum_value"]
    assert outputs("YEAR(day), LOWER(s), FLOOR(x / 10) * 10, DATE(time)") == ["year", "lower_s", "floor_x", "date"]
    assert outputs("SUM(CASE WHEN y THEN x END), SUM(IF(y, 1, 0)), SUM(IF(y, a, b))") == [
        "sum_x",
        "sum_case",
        "sum_case_2",
    ]
    assert outputs('COUNT(*) AS "the count", SUM(x) total') == ["the count", "total"]
    with pytest.raises(UsageError, match="same name"):
        outputs("COUNT(*) AS n, SUM(x) AS n")


def groups(text: str) -> list[tuple[str, Node]]:
    return [(key.name, key.node) for key in parse(text).groups]


def test_groups_are_named_by_expression_alias_place_or_all() -> None:
    year = Apply("extract_year", (Name(("day",)),))
    both = [("a", Name(("a",))), ("y", year)]
    for by in ("a, YEAR(day)", "a, y", "1, 2", "ALL", "a, 2", "1, y"):
        assert groups(f"SELECT a, YEAR(day) AS y, COUNT(*) FROM data GROUP BY {by}") == both
    assert groups("SELECT COUNT(*) FROM data GROUP BY LOWER(s)") == [("lower_s", Apply("lower", (Name(("s",)),)))]
    for by in ("3", "0", "1.5", "TRUE"):
        with pytest.raises(UsageError, match="place"):
            groups(f"SELECT a, COUNT(*) FROM data GROUP BY {by}")
    with pytest.raises(UsageError, match="twice"):
        groups("SELECT a, COUNT(*) FROM data GROUP BY a, 1")


def node(text: str) -> Node:
    (found,) = parse_expression(text, "the expression")
    return found


def test_names_are_quoted_either_way_and_may_be_paths() -> None:
    assert node('"a ""b"""') == node('`a "b"`') == Name(('a "b"',))
    assert node("a.b.c") == Name(("a", "b", "c"))
    assert node('a."b c".d.e.f.g') == Name(("a", "b c", "d", "e", "f", "g"))
    assert node("年龄") == Name(("年龄",))
    assert node('"id.orig_h"') == Name(("id.orig_h",))
    assert node('"order"') == Name(("order",))


def test_constants_are_exact() -> None:
    assert node("0.1") == Constant(Decimal("0.1"))
    assert node("-9223372036854775808") == Constant(-(2**63))
    assert node("1e3") == Constant(1000)
    assert node("1.5e-3") == Constant(Decimal("1.5e-3"))
    assert node("'it''s'") == Constant("it's")
    assert node(r"'a\nb'") == node(r"r'a\nb'") == Constant(r"a\nb")
    assert node("TRUE") == Constant(True)
    assert node("NULL") == Constant(None)
    assert node("- 0.12345678901234567890123456789012345678") == Constant(
        Decimal("-0.12345678901234567890123456789012345678")
    )


def test_long_chains_do_not_nest() -> None:
    for operator, text in (("and", " AND "), ("or", " OR ")):
        chain = node(text.join(f"a = {i}" for i in range(500)))
        assert isinstance(chain, Apply) and chain.function == operator and len(chain.arguments) == 500
    joined = node(" || ".join("a" for _ in range(50)))
    assert isinstance(joined, Apply) and len(joined.arguments) == 50


# --- hostile texts --------------------------------------------------------------------------------------------------


def only_our_errors(text: str) -> Query | None:
    """Parses; any other error than the two of the front end fails the test. A refusal is short and says something."""
    try:
        return parse(text)
    except (UsageError, RefusedError) as error:
        assert 0 < len(str(error)) < 1_000
        assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
        return None


IN_WHERE = "SELECT COUNT(*) FROM data WHERE "
HOSTILE = [
    *("", " ", ";", "--", "/*", "/* */", "'", '"', "`", "(", ")", "SELECT", "SELECT COUNT(*) FROM", "\x00", "\ufeff"),
    *("SELECT COUNT(*) FROM data;", "SELECT COUNT(*) FROM data; DROP TABLE data", "SELECT COUNT(*) FROM data --;"),
    *("SELECT /* a */ COUNT(*) -- b\n FROM data", "SELECT 'a", "SELECT $$", "SELECT $x$ a $x$ FROM data", "SELECT 1"),
    *("SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM data", "SELECT " + "(" * 20_000),
    *("SELECT " + "-" * 9_000 + "a", "SELECT " + "a+" * 9_000 + "a FROM data", "SELECT " + "a," * 9_000),
    *(IN_WHERE + "NOT " * 9_000 + "a", IN_WHERE + " AND ".join(["a"] * 9_000), "SELECT " + "CASE WHEN a THEN " * 3_000),
    *(IN_WHERE + "a = " + "IF(b," * 2_000 + "1" + ",2)" * 2_000, IN_WHERE + "LOWER(" * 3_000 + "a" + ")" * 3_000),
    *("[" * 9_000, "{" * 9_000, "'" * 9_001, "a" * (LONGEST_TEXT + 1), "\u202e SELECT", IN_WHERE + "a = '\ud800'"),
    *("{{ jinja }}", "<html>", IN_WHERE + "a = '🙈' AND \"🙈\" = 1", "SELECT COUNT(*) FROM data\r\n\tWHERE\va = 1"),
    *("🙈", "SELECT x: COUNT(*) FROM data", "FROM data SELECT COUNT(*)", "FROM data", "TABLE data", "VALUES (1)"),
    *(IN_WHERE + "a = 1e99999", IN_WHERE + "a = 0x1", IN_WHERE + "a = 1" + "0" * 500, "SELECT .", "SELECT ..", "%"),
    *("SELECT COUNT(*) FROM data LIMIT 1e400", "SELECT COUNT(*)FROM data"),
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts(text: str) -> None:
    only_our_errors(text)


def test_nested_case_and_between_cannot_blow_up() -> None:
    """Each repeats its subject: forty of them inside each other would be 2^40 parts."""
    text = "a"
    for _ in range(40):
        text = f"CASE WHEN {text} BETWEEN 1 AND 2 THEN 1 ELSE 2 END"
    with pytest.raises(UsageError, match=r"parts|nest"):
        parse(f"SELECT COUNT(*) FROM data WHERE {text} = 1")
    text = "a"
    for _ in range(30):
        text = f"CASE {text} WHEN 1 THEN 2 WHEN 3 THEN 4 END"
    with pytest.raises(UsageError, match=r"parts|nest"):
        parse(f"SELECT COUNT(*) FROM data WHERE {text} = 1")


def test_what_would_be_too_large_for_the_engine_is_refused_by_binding() -> None:
    text = "x"
    for _ in range(20):
        text = f"COALESCE({text}, {text} / y)" if len(text) < 2_000 else f"(1 / {text})"
    with pytest.raises(UsageError, match=r"parts|nest"):
        bound(text)


def test_the_deepest_expression_is_written_and_run() -> None:
    """At the limit of nesting, from deep in the stack: neither sqlglot nor DuckDB gives up."""
    templates = ("({0} + 1)", "ABS({0})", "COALESCE({0}, 0)", "({0} / 2)", "ROUND({0}, 1)", "(-{0})")

    def deep(level: int) -> None:
        if level:
            deep(level - 1)
            return
        with connect(threads=1) as connection:
            connection.execute("CREATE TEMP TABLE source AS SELECT CAST(1 AS DOUBLE) AS c3")
            for template in templates:
                text = "x"
                for _ in range(60):
                    try:
                        sql = render(bound(template.format(text))).sql(dialect="duckdb")
                    except UsageError:
                        break
                    text = template.format(text)
                else:
                    pytest.fail("no limit was met")
                assert len(connection.execute(f"SELECT {sql} FROM source").fetchall()) == 1

    deep(200)
    assert sys.getrecursionlimit() == 1_000


def test_a_case_of_thousands_is_bound_quickly() -> None:
    branches = " ".join(f"WHEN n = {i} THEN {i}" for i in range(1_600))
    started = time.perf_counter()
    assert bound(f"CASE {branches} ELSE 0.5 END").type.kind is Kind.DECIMAL
    assert time.perf_counter() - started < 20


def test_the_largest_condition_is_written_and_run() -> None:
    """Long lists and chains, as people's tools write them."""
    with connect(threads=1) as connection:
        connection.execute("CREATE TEMP TABLE source AS SELECT CAST(1 AS BIGINT) AS c0, 'a' AS c9")
        for text in (
            f"n IN ({', '.join(map(str, range(5_000)))})",
            " OR ".join(f"n = {i}" for i in range(800)),
            " AND ".join(f"s LIKE '%{i}'" for i in range(800)),
        ):
            sql = render(bound(text)).sql(dialect="duckdb")
            assert len(connection.execute(f"SELECT {sql} FROM source").fetchall()) == 1


@settings(max_examples=400, deadline=None)
@given(text=st.text(max_size=80))
def test_any_text(text: str) -> None:
    only_our_errors(text)
    only_our_errors(f"SELECT COUNT(*) FROM data WHERE {text}")
    only_our_errors(f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({text}) COUNT(*) FROM data")


def _words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


_WORDS = _words(
    """SELECT FROM WHERE GROUP BY ORDER HAVING LIMIT WITH AS AND OR NOT IN BETWEEN LIKE IS NULL CASE WHEN THEN ELSE END
    DISTINCT FROM data COUNT SUM AVG ( ) , * + - / % || = < > <= >= <> => :: . 1 2.5 'a' "b" x y INTERVAL DAY CAST DATE
    EXTRACT YEAR OPTIONS epsilon DIFFERENTIAL_PRIVACY TRUE ESCAPE OVER FILTER UNION ALL EXISTS [ ] { } -> ? $1 ;"""
)


@settings(max_examples=400, deadline=None)
@given(words=st.lists(_WORDS, max_size=25), start=st.sampled_from(("", "SELECT ", "SELECT COUNT(*) FROM data WHERE ")))
def test_any_words_of_sql(words: list[str], start: str) -> None:
    found = only_our_errors(start + " ".join(words))
    if found is not None and found.where is not None:
        try:
            bind(found.where, SCHEMA)
        except DiscreetError as error:
            assert isinstance(error, UsageError | RefusedError)


def test_a_good_query_with_a_fault_in_it() -> None:
    """One character deleted, doubled or replaced, everywhere: only our errors, and often a query still."""
    text = (
        'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, privacy_unit_column = "u") '
        "LOWER(s) AS k, COUNT(*) AS n, "
        "SUM(CAST(x AS DOUBLE) / 2, contribution_bounds_per_row => (0, 5)) FROM data WHERE day >= '2024-01-01' AND "
        "NOT (s LIKE 'a%' OR n IN (1, 2)) GROUP BY 1 HAVING n > 3 ORDER BY n DESC LIMIT 10"
    )
    assert only_our_errors(text) is not None
    dice = random.Random(3)
    for place in range(len(text)):
        other = dice.choice("()'\",;*=x1. ")
        for broken in (text[:place] + text[place + 1 :], text[:place] + text[place] * 2 + text[place + 1 :]):
            only_our_errors(broken)
        only_our_errors(text[:place] + other + text[place + 1 :])


# --- R12: names and values are only ever names and values -------------------------------------------------------------

_NASTY_WORDS = (
    *('"; DROP TABLE t; --', "'; DROP TABLE t; --", "a'b", 'a"b', "a`b", "\\", "\\'", "$1", "$$", "--", "/*", "*/"),
    *("?", "{}", "%s", "\n", "\r\n", "\t", "🙈", "年龄", "\u202e", "c0", "source", "SELECT", "order", "x;drop"),
    *("capital-gain", " a ", "a.b", "a[0]", "NULL", "true", "1", "", "é\u0301", "\x01", "\x7f", "\ufeff"),
)
_nasty_text = st.sampled_from(_NASTY_WORDS) | st.text(
    st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=20
)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connect(threads=1) as found:
        yield found


@settings(max_examples=80, deadline=None)
@given(value=_nasty_text)
def test_a_text_is_only_ever_a_value(connection: Any, value: str) -> None:
    """Through the printed query, the parser, the binding, the rendering and the engine, it comes out as it was."""
    connection.register("texts", pa.table({"c0": [value, value + "x", None]}))
    schema = Schema((Column("s", TEXT),))
    for written in (Apply("eq", (Name(("s",)), Constant(value))), Apply("in", (Name(("s",)), Constant(value)))):
        (again,) = parse_expression(node_text(written), "the text")
        assert again == written
        sql = render(bind(again, schema)).sql(dialect="duckdb")
        assert connection.execute(f"SELECT {sql} FROM texts").fetchall() == [(True,), (False,), (None,)]
    for function in ("concat", "replace", "trim", "starts_with", "strpos", "like", "ilike"):
        arguments: tuple[Node, ...] = (Name(("s",)), Constant(value))
        if function == "replace":
            arguments = (*arguments, Constant(value))
        try:
            sql = render(bind(Apply(function, arguments), schema)).sql(dialect="duckdb")
        except UsageError:
            continue  # a pattern that ends in a backslash, an empty text to replace
        assert len(connection.execute(f"SELECT {sql} FROM texts").fetchall()) == 3


@settings(max_examples=100, deadline=None)
@given(name=_nasty_text.filter(bool), other=_nasty_text.filter(bool))
def test_a_name_is_only_ever_a_name(connection: Any, name: str, other: str) -> None:
    schema = Schema(tuple(Column(n, TEXT) for n in dict.fromkeys((name, other + "2"))))
    (found,) = parse_expression(name_text(name), "the name")
    assert found == Name((name,))
    assert schema.position(name) == 0
    sql = render(bind(Apply("lower", (found,)), schema)).sql(dialect="duckdb")
    connection.register("names", pa.table({"c0": ["A"], "c1": ["B"]}))
    assert connection.execute(f"SELECT {sql} FROM names").fetchall() == [("a",)]


def test_text_that_no_statement_can_hold_is_refused() -> None:
    schema = Schema((Column("s", TEXT),))
    for value in ("a\x00b", "\ud800"):
        with pytest.raises(UsageError, match="NUL"):
            bind(Apply("eq", (Name(("s",)), Constant(value))), schema)
    with pytest.raises(UsageError):
        parse("SELECT COUNT(*) FROM data WHERE s = 'a\x00b'")
