"""What row expressions mean: the engine against plain Python, over nasty rows, and examples of each rule by hand."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings

from discreet.binding import bind
from discreet.engines.duckdb_connection import connect
from discreet.errors import UsageError
from discreet.query import Apply, Constant, Node
from discreet.query_text import node_text
from discreet.row_rendering import render
from discreet.sql import parse_expression
from discreet.time_parts import DATE_PARTS, EXTRACTED, TIME_PARTS
from expression_oracle import UnknownError, agrees, evaluate
from expression_tables import COLUMNS, SCHEMA, bound, create_source, expressions, nasty_rows, values_of

ROWS = nasty_rows(seed=7, count=120)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connect(threads=1) as found:
        create_source(found, ROWS)
        yield found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(node=expressions(2))
def test_the_engine_agrees_with_python(connection: Any, node: Node) -> None:
    expression = bind(node, SCHEMA)
    for found, row in zip(values_of(connection, expression), ROWS, strict=True):
        try:
            meant = evaluate(expression, row)
        except UnknownError:
            continue
        assert agrees(found, meant), (render(expression).sql(dialect="duckdb"), row, found, meant)


NUMBERS = ("n", "h", "x", "d", "e", "w", "k")
MOMENTS = ("day", "t", "z")
OF_NUMBERS = ("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} // {b}", "{a} % {b}", "POW({a}, {b})")
OF_NUMBERS += (
    "{a} < {b}",
    "{a} = {b}",
    "GREATEST({a}, {b})",
    "LEAST({a}, {b})",
    "COALESCE({a}, {b})",
    "NULLIF({a}, {b})",
)
OF_NUMBERS += ("CASE WHEN {a} > {b} THEN {a} ELSE {b} END", "{a} IS DISTINCT FROM {b}", "LOG({a}, {b})")
OF_NUMBER = ("-{a}", "ABS({a})", "SIGN({a})", "FLOOR({a})", "CEIL({a})", "TRUNC({a})", "ROUND({a})", "ROUND({a}, 1)")
OF_NUMBER += ("SQRT({a})", "EXP({a})", "LN({a})", "LOG10({a})", "LOG2({a})", "BIN({a}, -10, 10, 8)", "ROUND({a}, -2)")
OF_NUMBER += (
    "{a} * 1.5",
    "{a} + 0.25",
    "{a} / 10",
    "{a} // -1",
    "{a} % -1",
    "{a} // 7",
    "{a} > 1.5",
    "{a} IN (1, 2.5)",
)
OF_NUMBER += tuple(
    f"CAST({{a}} AS {t})"
    for t in ("BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(4,2)", "DECIMAL(38,10)", "VARCHAR", "BOOLEAN")
)
OF_TEXT = ("LOWER({a})", "TRIM({a})", "SUBSTR({a}, -2)", "LEFT({a}, 2)", "RIGHT({a}, 2)", "{a} || '!'", "LENGTH({a})")
OF_TEXT += tuple(
    f"CAST({{a}} AS {t})"
    for t in (
        "BIGINT",
        "DOUBLE",
        "DECIMAL(9,2)",
        "BOOLEAN",
        "DATE",
        "TIMESTAMP",
        "TIMESTAMPTZ",
        "HUGEINT",
        "DECIMAL(38,3)",
    )
)
OF_MOMENT = tuple(f"EXTRACT({part} FROM {{a}})" for part in EXTRACTED) + tuple(
    f"DATE_TRUNC({{a}}, {part})" for part in (*DATE_PARTS, *TIME_PARTS)
)
OF_MOMENT += ("DATE({a})", "LAST_DAY({a})", "{a} AT TIME ZONE '+14:00'", "{a} AT TIME ZONE 'Asia/Shanghai'")
OF_MOMENT += ("{a} + INTERVAL 1 MONTH", "{a} - INTERVAL 1 MONTH", "{a} + INTERVAL 1 DAY", "{a} - INTERVAL 1 DAY")
OF_MOMENT += (
    "{a} + INTERVAL 9998 YEAR",
    "{a} - INTERVAL 9998 YEAR",
    "{a} - INTERVAL 1 MICROSECOND",
    "UNIX_MILLIS({a})",
)
OF_MOMENT += ("CAST({a} AS VARCHAR)", "CAST({a} AS DATE)", "CAST({a} AS TIMESTAMP)", "CAST({a} AS TIMESTAMPTZ)")
OF_MOMENTS = ("{a} - {b}", "{a} < {b}", "GREATEST({a}, {b})")
OF_MOMENTS += tuple(f"DATE_DIFF({{a}}, {{b}}, {part})" for part in (*DATE_PARTS, *TIME_PARTS))


def every_function_on_every_column() -> Iterator[str]:
    """Each function once on columns of each type; not all of them are accepted."""
    for templates, columns in ((OF_NUMBER, NUMBERS), (OF_TEXT, ("s",)), (OF_MOMENT, MOMENTS)):
        yield from (template.format(a=a) for template in templates for a in columns)
    for templates, columns in ((OF_NUMBERS, NUMBERS), (OF_MOMENTS, MOMENTS)):
        yield from (template.format(a=a, b=b) for template in templates for a in columns for b in columns)
    for unit in ("SECONDS", "MILLIS", "MICROS"):
        yield from (f"TIMESTAMP_{unit}({a})" for a in ("n", "h"))


def testevery_function_on_every_column(connection: Any) -> None:
    """One function deep, all of them: whatever the types take together is what Python says, for every nasty value."""
    seen = 0
    for text in every_function_on_every_column():
        try:
            expression = bound(text)
        except UsageError:
            continue
        seen += 1
        for found, row in zip(values_of(connection, expression), ROWS, strict=True):
            try:
                meant = evaluate(expression, row)
            except UnknownError:
                continue
            assert agrees(found, meant), (text, row, found, meant)
    assert seen > 800


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(node=expressions(3))
def test_an_expression_is_printed_as_sql_that_means_the_same(node: Node) -> None:
    assume(not _negates_a_constant(node))  # which is read as another constant
    (again,) = parse_expression(node_text(node), "the printed expression")
    assert bind(again, SCHEMA) == bind(node, SCHEMA), node_text(node)


def _negates_a_constant(node: Node) -> bool:
    if not isinstance(node, Apply):
        return False
    if node.function == "negate" and isinstance(node.arguments[0], Constant):
        return True
    return any(_negates_a_constant(argument) for argument in node.arguments)


DAY = dt.date(2024, 2, 29)  # a Thursday
TIME = dt.datetime(2024, 2, 29, 23, 30, 15, 250000)
ROW = {
    "n": 7,
    "m": 0,
    "h": 2**63,
    "x": 2.5,
    "y": -0.5,
    "d": Decimal("1.250"),
    "e": Decimal("-2.50"),
    "w": Decimal("0.1"),
    "k": Decimal(10**20),
    "s": "Doc/Readme",
    "r": "  12 ",
    "b": True,
    "c": False,
    "day": DAY,
    "end": dt.date(2024, 12, 30),
    "t": TIME,
    "z": TIME.replace(tzinfo=dt.UTC),
}
"""The row of the examples."""

EXAMPLES: list[tuple[str, Any]] = [
    # Whole numbers stay exact; what is beyond 64 bits is missing.
    ("n + 1", 8),
    ("n * 9223372036854775807", None),
    ("-n % 4", -3),
    ("MOD(-7, 4)", -3),
    ("DIV(-7, 2)", -3),
    ("-7 // 2", -3),
    ("n // m", None),
    ("n % m", None),
    ("h + 1", 2**63 + 1),
    ("h * 2", 2**64),
    # R62: a division is of doubles, and by zero it is missing.
    ("7 / 2", 3.5),
    ("n / 2", 3.5),
    ("n / m", None),
    ("x / 0", None),
    ("SAFE_DIVIDE(n, m)", None),
    ("y / 0.0 IS NULL", True),
    # Decimals are exact while 38 digits hold them.
    ("d + e", Decimal("-1.250")),
    ("d * e", Decimal("-3.12500")),
    ("d * 1.1", Decimal("1.3750")),
    ("n * 0.1", Decimal("0.7")),
    ("w * w", 0.010000000000000002),  # 20 places would be too many: doubles
    ("k + 1", 1e20),  # 39 digits would be too many
    # Doubles
    ("x + y", 2.0),
    ("EXP(1000)", float("inf")),
    ("EXP(1000) - EXP(1000)", None),
    ("EXP(1000) * 0", None),
    ("LN(0)", None),
    ("LN(-1)", None),
    ("SQRT(-1)", None),
    ("POW(2, 10)", 1024.0),
    ("2 ** 10", 1024.0),
    ("2 ^ 10", 1024.0),
    ("POW(0, -1)", None),
    ("POW(-8, 0.5)", None),
    ("LOG(EXP(2))", 2.0),
    ("LOG(8, 2)", pytest.approx(3.0)),
    ("LOG(8, 1)", None),
    ("LOG10(1000)", pytest.approx(3.0)),
    # Halves are rounded away from zero; without places the result is a whole number.
    ("ROUND(x)", 3),
    ("ROUND(-x)", -3),
    ("ROUND(e)", -3),
    ("ROUND(d, 1)", Decimal("1.3")),
    ("ROUND(1234, -2)", 1200),
    ("ROUND(1250, -2)", 1300),
    ("ROUND(x, 0)", 3.0),
    ("FLOOR(e)", -3),
    ("CEIL(e)", -2),
    ("TRUNC(e)", -2),
    ("FLOOR(n / 2) * 2", 6),
    ("FLOOR(EXP(1000))", None),
    ("SIGN(y)", -1),
    ("ABS(-9223372036854775808)", None),
    # R20: bins [0,5), [5,10], and what is beyond in the first and the last.
    *((f"BIN({v}, 0, 10, 2)", bin_) for v, bin_ in (("m", 0), ("n", 5), ("x + 2.5", 5), ("n + 3", 5), ("n - 8", 0))),
    ("BIN(n + 4, 0, 10, 2)", 5),
    ("BIN(x, 0, 10, 4)", Decimal("2.5")),
    ("BIN(w, 0, 1, 10)", Decimal("0.1")),
    ("BIN(n / 10, 0, 1, 10)", Decimal("0.7")),
    ("BIN(EXP(1000), 0, 10, 2)", 5),
    ("BIN(CAST(NULL AS DOUBLE), 0, 10, 2)", None),
    # Choices
    ("CASE WHEN n > 5 THEN 'big' ELSE 'small' END", "big"),
    ("CASE WHEN n > 50 THEN 'big' END", None),
    ("CASE n WHEN 1 THEN 'one' WHEN 7 THEN 'seven' END", "seven"),
    ("IF(c, 1, 2.5)", Decimal("2.5")),
    ("COALESCE(NULLIF(m, 0), n)", 7),
    ("IFNULL(NULLIF(m, 0), -1)", -1),
    ("GREATEST(n, x, 3)", 7.0),
    ("LEAST(n, NULLIF(m, 0))", None),
    ("GREATEST(day, '2025-01-01')", dt.date(2025, 1, 1)),
    # Conditions
    ("n BETWEEN 7 AND 8", True),
    ("n NOT BETWEEN 7 AND 8", False),
    ("n IN (1, 7)", True),
    ("n NOT IN (1, 7)", False),
    ("n > 6.5", True),
    ("day = '2024-02-29'", True),
    ("t > '2024-02-29 12:00:00'", True),
    ("z < '2024-03-01'", True),
    ("day < TIMESTAMP '2024-02-29 00:00:01'", True),
    ("NULLIF(m, 0) = 1", None),
    ("NULLIF(m, 0) IS DISTINCT FROM 1", True),
    ("NULLIF(m, 0) IS NOT DISTINCT FROM NULLIF(m, 0)", True),
    ("m IS NOT NULL", True),
    ("(n > NULLIF(m, 0)) IS TRUE", False),
    ("(n > NULLIF(m, 0)) IS NOT TRUE", True),
    ("(n > NULLIF(m, 0)) IS FALSE", False),
    ("c IS FALSE", True),
    ("NOT c", True),
    ("c AND NULLIF(m, 0) > 1", False),
    ("b OR NULLIF(m, 0) > 1", True),
    # Text
    ("LOWER(s)", "doc/readme"),
    ("UPPER(s)", "DOC/README"),
    ("TRIM(r)", "12"),
    ("LTRIM(r)", "12 "),
    ("RTRIM(r)", "  12"),
    ("TRIM(s, 'De')", "oc/Readm"),
    ("TRIM(BOTH 'D' FROM s)", "oc/Readme"),
    ("TRIM(LEADING ' ' FROM r)", "12 "),
    ("SUBSTR(s, 5)", "Readme"),
    ("SUBSTR(s, 5, 4)", "Read"),
    ("SUBSTR(s, 0, 3)", "Doc"),
    ("SUBSTR(s, -6, 4)", "Read"),
    ("SUBSTR(s, -60, 3)", "Doc"),
    ("SUBSTRING(s FROM 5 FOR 4)", "Read"),
    ("LEFT(s, 3) || '-' || RIGHT(s, 2)", "Doc-me"),
    ("CONCAT(s, NULLIF(s, 'Doc/Readme'))", None),
    ("REPLACE(s, '/', ' / ')", "Doc / Readme"),
    ("SPLIT_PART(s, '/', 1)", "Doc"),
    ("SPLIT_PART(s, '/', 2)", "Readme"),
    ("SPLIT_PART(s, '/', 3)", ""),
    ("LENGTH('年龄é')", 3),
    ("BYTE_LENGTH('年龄é')", 8),
    ("STRPOS(s, '/')", 4),
    ("INSTR(s, 'x')", 0),
    ("POSITION('Read' IN s)", 5),
    ("STARTS_WITH(s, 'Doc')", True),
    ("ENDS_WITH(s, 'Doc')", False),
    ("s LIKE 'Doc/%'", True),
    ("s LIKE 'doc/%'", False),
    ("s LIKE 'D_c%'", True),
    ("s NOT LIKE '%x%'", True),
    ("s ILIKE 'doc/%'", True),
    ("'10%' LIKE '10\\%'", True),
    ("'100' LIKE '10\\%'", False),
    ("'10%' LIKE '10!%' ESCAPE '!'", True),
    ("'100' LIKE '10!%' ESCAPE '!'", False),
    ("'a\\b' LIKE 'a!\\b' ESCAPE '!'", True),
    (r"REGEXP_CONTAINS(s, r'^[A-Z]\w+/')", True),
    (r"s ~ '(?i)readme$'", True),
    # Dates. R65: differences are days or seconds, months keep to the calendar.
    ("end - day", 305),
    ("day - '2024-01-01'", 59),
    ("t - TIMESTAMP '2024-02-29 23:30:00'", Decimal("15.250000")),
    ("day + 1", dt.date(2024, 3, 1)),
    ("day + INTERVAL 1 YEAR", dt.date(2025, 2, 28)),
    ("DATE '2024-01-31' + INTERVAL '1' MONTH = day", True),
    ("DATE_SUB(day, INTERVAL 2 WEEK)", dt.date(2024, 2, 15)),
    ("DATE_ADD(t, INTERVAL 30 MINUTE)", TIME + dt.timedelta(minutes=30)),
    ("TIMESTAMP_SUB(z, INTERVAL 1 DAY)", (TIME - dt.timedelta(days=1)).replace(tzinfo=dt.UTC)),
    ("day + INTERVAL 9000 YEAR", None),
    ("DATE_DIFF(end, day, MONTH)", 10),
    ("DATE_DIFF(DATE '2024-03-03', day, WEEK)", 1),
    ("DATE_DIFF(DATE '2024-03-03', day, ISOWEEK)", 0),
    ("DATE_DIFF('day', day, end)", 305),
    ("DATE_DIFF('week', day, DATE '2024-03-03')", 0),
    ("TIMESTAMP_DIFF(t, TIMESTAMP '2024-02-28 23:30:16', DAY)", 0),
    ("TIMESTAMP_DIFF(t, '2024-02-28T23:30:15', HOUR)", 24),
    ("DATE_TRUNC(day, MONTH)", dt.date(2024, 2, 1)),
    ("DATE_TRUNC('month', day)", dt.date(2024, 2, 1)),
    ("DATE_TRUNC(day, WEEK)", dt.date(2024, 2, 25)),
    ("DATE_TRUNC(day, WEEK(MONDAY))", dt.date(2024, 2, 26)),
    ("DATE_TRUNC(day, ISOWEEK)", dt.date(2024, 2, 26)),
    ("DATE_TRUNC('week', day)", dt.date(2024, 2, 26)),
    ("TIMESTAMP_TRUNC(t, HOUR)", dt.datetime(2024, 2, 29, 23)),
    ("DATE(t)", DAY),
    ("DATE(z, 'Asia/Shanghai')", dt.date(2024, 3, 1)),
    ("EXTRACT(DATE FROM z AT TIME ZONE '+08:00')", dt.date(2024, 3, 1)),
    ("EXTRACT(HOUR FROM z AT TIME ZONE 'Asia/Shanghai')", 7),
    ("DATETIME(z, 'America/New_York')", TIME - dt.timedelta(hours=5)),
    ("TIMESTAMP(t)", TIME.replace(tzinfo=dt.UTC)),
    ("t AT TIME ZONE 'Asia/Shanghai'", (TIME - dt.timedelta(hours=8)).replace(tzinfo=dt.UTC)),
    ("EXTRACT(DAYOFWEEK FROM day)", 5),
    ("EXTRACT(DOW FROM day)", 4),
    ("EXTRACT(ISODOW FROM day)", 4),
    ("EXTRACT(DAYOFYEAR FROM day)", 60),
    ("EXTRACT(WEEK FROM day)", 8),
    ("EXTRACT(WEEK(MONDAY) FROM end)", 1),
    ("EXTRACT(ISOWEEK FROM end)", 1),
    ("EXTRACT(ISOYEAR FROM end)", 2025),
    ("EXTRACT(SECOND FROM t)", 15),
    ("DATE_PART('week', end)", 1),
    ("YEAR(day)", 2024),
    ("QUARTER(end)", 4),
    ("LAST_DAY(day)", DAY),
    ("UNIX_SECONDS(TIMESTAMP '1969-12-31 23:59:59.5')", -1),
    ("TIMESTAMP_SECONDS(n)", dt.datetime(1970, 1, 1, 0, 0, 7, tzinfo=dt.UTC)),
    ("TIMESTAMP_MILLIS(9223372036854775807)", None),
    # Casts
    ("CAST(x AS BIGINT)", 3),
    ("CAST(x + 1 AS INT64)", 4),
    ("CAST(y AS INT)", -1),
    ("CAST(r AS INT64)", 12),
    ("SAFE_CAST(s AS DOUBLE)", None),
    ("CAST('1e3' AS BIGINT)", None),
    ("CAST('0x10' AS BIGINT)", None),
    ("CAST('1e3' AS FLOAT64)", 1000.0),
    ("CAST('nan' AS DOUBLE)", None),
    ("CAST('2.345' AS DECIMAL(5, 2))", Decimal("2.35")),
    ("CAST('12345' AS DECIMAL(5, 2))", None),
    ("n::VARCHAR", "7"),
    ("CAST(d AS STRING)", "1.250"),
    ("CAST(b AS BIGINT)", 1),
    ("CAST(b AS VARCHAR)", "true"),
    ("CAST(m AS BOOL)", False),
    ("CAST(LOWER('2024-02-29T10:00') AS DATE)", None),  # the T is a small t then
    ("CAST(CONCAT('2024-02-29', '') AS DATE)", DAY),
    ("CAST(CONCAT('2024-02-30', '') AS DATE)", None),
    ("CAST(CONCAT('2024-02-29 10:00:00+02', '') AS TIMESTAMPTZ)", dt.datetime(2024, 2, 29, 8, tzinfo=dt.UTC)),
    ("CAST(CONCAT('2024-02-29 10:00:00+02', '') AS TIMESTAMP)", None),
    ("CAST(t AS VARCHAR)", "2024-02-29 23:30:15.25"),
    ("CAST(z AS STRING)", "2024-02-29 23:30:15.25+00"),
    ("CAST(day AS TIMESTAMP)", dt.datetime(2024, 2, 29)),
    ("CAST(z AS DATE)", DAY),
    # Every function is a safe one.
    ("SAFE.LN(0)", None),
    ("SAFE_ADD(n, 1)", 8),
    ("SAFE_NEGATE(n)", -7),
]


@pytest.fixture(scope="module")
def one_row() -> Iterator[Any]:
    with connect(threads=1) as found:
        create_source(found, [tuple(ROW[name] for name in COLUMNS)])
        yield found


@pytest.mark.parametrize(("text", "value"), EXAMPLES, ids=[text for text, _ in EXAMPLES])
def test_examples(one_row: Any, text: str, value: Any) -> None:
    (found,) = values_of(one_row, bound(text))
    assert found == value and isinstance(found, bool) == isinstance(value, bool)


def test_a_date_or_time_reads_its_units_in_the_plural_and_in_any_case(one_row: Any) -> None:
    for unit in ("day", "DAYS", "Day"):
        assert values_of(one_row, bound(f"day + INTERVAL 1 {unit}")) == [dt.date(2024, 3, 1)]


def test_the_machines_zone_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """R30: what a time means does not depend on where the query runs."""
    found = []
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        try:
            with connect(threads=1) as connection:
                create_source(connection, [tuple(ROW[name] for name in COLUMNS)])
                texts = (
                    "DATE(z)",
                    "CAST(z AS VARCHAR)",
                    "DATE_TRUNC(z, DAY)",
                    "EXTRACT(HOUR FROM z)",
                    "CAST(t AS TIMESTAMPTZ)",
                )
                found.append([values_of(connection, bound(text)) for text in texts])
        finally:
            monkeypatch.undo()
            time.tzset()
    assert found[0] == found[1] == found[2]
