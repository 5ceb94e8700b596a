"""What a query cannot say: each construct is refused by name, with the reason and what to write instead.

Only the text is looked at: no source, no schema, no ledger is in sight.
"""

from __future__ import annotations

import pytest

from discreet.errors import RefusedError, UsageError
from discreet.sql import parse, parse_expression
from discreet.sql_aggregates import AGGREGATE_NAMES
from discreet.sql_functions import FUNCTIONS
from discreet.sql_refusals import REFUSED_FUNCTIONS, REFUSED_NODES

STATEMENTS: list[tuple[str, str, str]] = [
    # the query, the construct that the error names, a word of its hint
    ("SELECT * FROM data", "SELECT *", "COUNT"),
    ("SELECT data.* FROM data", "SELECT *", "COUNT"),
    ("SELECT COUNT(*) FROM data UNION ALL SELECT 1 FROM data", "UNION", "COUNT"),
    ("SELECT COUNT(*) FROM data EXCEPT SELECT 1 FROM data", "EXCEPT", "COUNT"),
    ("SELECT DISTINCT a FROM data", "SELECT DISTINCT", "GROUP BY"),
    ("SELECT COUNT(*) FROM data QUALIFY a > 1", "QUALIFY", "COUNT"),
    ("SELECT COUNT(*) FROM data WINDOW w AS (PARTITION BY a)", "WINDOW", "COUNT"),
    ("SELECT COUNT(*) FROM data USING SAMPLE 10", "sample", "leave it out"),
    ("SELECT COUNT(*) FROM data TABLESAMPLE BERNOULLI(10)", "sample", "leave it out"),
    ("SELECT COUNT(*) FROM (SELECT * FROM data TABLESAMPLE SYSTEM (10 PERCENT)) AS t", "sample", "leave it out"),
    ("SELECT COUNT(*) FROM data GROUP BY ROLLUP (a)", "ROLLUP", "query of its own"),
    ("SELECT COUNT(*) FROM data GROUP BY CUBE (a)", "CUBE", "query of its own"),
    ("SELECT COUNT(*) FROM data GROUP BY GROUPING SETS ((a), ())", "GROUPING SETS", "query of its own"),
    ("SELECT COUNT(*) FROM data WHERE a = (SELECT 1)", "subquery", "condition"),
    ("SELECT COUNT(*) FROM data WHERE EXISTS (SELECT 1)", "EXISTS", "condition"),
    ("SELECT COUNT(*) FROM data WHERE a IN (SELECT a FROM data)", "IN with a subquery", "list"),
    ("SELECT COUNT(*) FROM data, other", "", ""),
    ("SELECT COUNT(*) FROM read_csv('other.csv')", "FROM", ""),
    ("SELECT COUNT(*)", "query", "SELECT COUNT(*) FROM data"),
    ("SELECT SUM(x) OVER () FROM data", "window function", "GROUP BY"),
    ("SELECT MAX(x) FROM data", "MAX", "quantile"),
    ("SELECT MIN(x) FROM data", "MIN", "quantile"),
    ("SELECT SUM(SUM(x)) FROM data", "SUM", ""),
    ("SELECT SUM(DISTINCT x) FROM data", "SUM(DISTINCT", ""),
    ("SELECT COUNT(*) FROM data GROUP BY COUNT(*)", "GROUP BY", ""),
    ("INSERT INTO data VALUES (1)", "query", "SELECT"),
    ("UPDATE data SET a = 1", "query", "SELECT"),
    ("DELETE FROM data", "query", "SELECT"),
    ("DROP TABLE data", "query", "SELECT"),
    ("CREATE TABLE x AS SELECT 1", "query", "SELECT"),
    ("ATTACH 'x.db'", "query", "SELECT"),
    ("PRAGMA version", "query", "SELECT"),
    ("SET threads = 1", "query", "SELECT"),
    ("COPY data TO 'x.csv'", "query", "SELECT"),
    ("EXPLAIN SELECT COUNT(*) FROM data", "query", "SELECT"),
    ("DESCRIBE data", "query", "SELECT"),
    ("SHOW TABLES", "query", "SELECT"),
]


@pytest.mark.parametrize(("text", "construct", "hint"), STATEMENTS, ids=[text for text, *_ in STATEMENTS])
def test_statements(text: str, construct: str, hint: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parse(text)
    assert construct.casefold() in caught.value.thing.casefold()
    assert hint.casefold() in caught.value.hint.casefold()


EXPRESSIONS: list[tuple[str, str, str]] = [
    ("CURRENT_DATE", "CURRENT_DATE", "write the date out"),
    ("CURRENT_TIMESTAMP", "CURRENT_TIMESTAMP", "write the time out"),
    ("CURRENT_TIMESTAMP()", "CURRENT_TIMESTAMP", "write the time out"),
    ("NOW()", "NOW", "write the time out"),
    ("RAND()", "RAND", "leave it out"),
    ("STRING_AGG(a, ',')", "STRING_AGG", "COUNT"),
    ("ARRAY_AGG(a)", "ARRAY_AGG", "COUNT"),
    ("ANY_VALUE(a)", "ANY_VALUE", "COUNT"),
    ("ROW_NUMBER() OVER ()", "window", "GROUP BY"),
    ("[1, 2]", "a list", ""),
    ("{'a': 1}", "a structure", ""),
    ("(a, b)", "a tuple", "AND"),
    ("a -> 'b'", "->", "path"),
    ("a->>'b'", "->>", "path"),
    ("?", "a parameter", "write the value out"),
    ("$1", "a parameter", "write the value out"),
    ('a COLLATE "de"', "COLLATE", "LOWER"),
    ("a SIMILAR TO 'b'", "SIMILAR TO", "LIKE"),
    ("a GLOB 'b'", "GLOB", "LIKE"),
    ("a & b", "&", ""),
    ("a | b", "|", ""),
    ("~a", "~", "NOT"),
    ("a << 1", "", ""),
    ("INTERVAL 1 DAY", "an interval alone", "add it"),
    ("a = ANY (1, 2)", "ANY", "IN"),
    ("a LIKE b", "LIKE", "LIKE 'doc/%'"),
    ("a IN (b)", "IN", "IS NULL"),
    ("a IN (NULL)", "IN", "IS NULL"),
    ("x'00'", "", ""),
    ("e'a\\n'", "byte string", "plain"),
    ("EXTRACT(EPOCH FROM a)", "EXTRACT", ""),
    ("UNKNOWN_FUNCTION(a)", "UNKNOWN_FUNCTION", ""),
    ("LENGHT(a)", "LENGHT", "LENGTH"),
    ("pg_sleep(10)", "PG_SLEEP", ""),
    ("read_text('x')", "READ_TEXT", ""),
    ("getenv('HOME')", "GETENV", ""),
    ("a.b.c.lower()", "a path", ""),
    ("a.b.c.d.e.lower()", "", ""),
    ("CAST(a AS DATE FORMAT 'YYYY')", "", ""),
    ("LOWER(a, b => 1)", "", ""),
    ("LOWER(DISTINCT a)", "DISTINCT", ""),
    ("LOWER(*)", "*", ""),
    ("x -> x + 1", "", ""),
]


@pytest.mark.parametrize(("text", "construct", "hint"), EXPRESSIONS, ids=[text for text, *_ in EXPRESSIONS])
def test_expressions(text: str, construct: str, hint: str) -> None:
    with pytest.raises((RefusedError, UsageError)) as caught:
        parse_expression(text, "the expression")
    assert construct.casefold() in caught.value.thing.casefold()
    assert hint.casefold() in caught.value.hint.casefold()


@pytest.mark.parametrize("name", sorted(REFUSED_FUNCTIONS))
def test_every_refused_function_says_why_and_what_to_write(name: str) -> None:
    construct, why, instead = REFUSED_FUNCTIONS[name]
    assert construct == name and why and instead
    if name in AGGREGATE_NAMES:
        return
    with pytest.raises(RefusedError) as caught:
        parse_expression(f"{name}(a, b)", "the expression")
    assert name in caught.value.thing and why in caught.value.rule and caught.value.hint == instead


def test_nothing_is_both_accepted_and_refused() -> None:
    assert not set(FUNCTIONS) & set(REFUSED_FUNCTIONS)
    assert not AGGREGATE_NAMES & set(REFUSED_FUNCTIONS)
    for construct, why, instead in REFUSED_NODES.values():
        assert construct and why and instead


ARGUMENTS = [
    ("LOWER()", "LOWER", "1 argument"),
    ("LOWER(a, b)", "LOWER", "1 argument"),
    ("NULLIF(a)", "NULLIF", "2 arguments"),
    ("SUBSTR(a)", "SUBSTR", "2 to 3"),
    ("COALESCE()", "COALESCE", "at least 1"),
    ("DATE_TRUNC(a)", "DATE_TRUNC", "2 arguments"),
    ("DATE_TRUNC(a, b + 1)", "DATE_TRUNC", "part"),
    ("DATE_TRUNC(a, WEEK(TUESDAY))", "DATE_TRUNC", "SUNDAY or MONDAY"),
    ("DATE_ADD(a, 3)", "DATE_ADD", "interval"),
    ("DATE_ADD(a, INTERVAL b DAY)", "INTERVAL", "whole number"),
    ("a + INTERVAL '1.5' DAY", "INTERVAL", "whole number"),
    ("a + INTERVAL '1'", "INTERVAL", "unit"),
    ("a LIKE 'b' ESCAPE 'cc'", "ESCAPE", "one sign"),
    ("a LIKE 'b!' ESCAPE '!'", "ESCAPE", "ends in the sign"),
    ("DATE 'tomorrow'", "DATE", "2024-12-31"),
    ("TIMESTAMP '2024-13-01'", "TIMESTAMP", "2024-12-31"),
]


@pytest.mark.parametrize(("text", "thing", "rule"), ARGUMENTS, ids=[text for text, *_ in ARGUMENTS])
def test_arguments(text: str, thing: str, rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_expression(text, "the expression")
    assert thing.casefold() in caught.value.thing.casefold()
    assert rule.casefold() in caught.value.rule.casefold()


@pytest.mark.parametrize(
    "text", ["SELECT COUNT(*) FROM data WHERE a = 'x", 'SELECT COUNT("a FROM data', "SELECT /* COUNT(*)"]
)
def test_what_is_not_closed_is_refused_without_the_parser_s_words(text: str) -> None:
    with pytest.raises(UsageError, match="a quote or a comment is not closed") as refused:
        parse(text)
    assert refused.value.__suppress_context__
    assert refused.value.__cause__ is None
