"""Types: what each expression's type is, from the schema alone, and what does not go together. No row is in sight."""

from __future__ import annotations

import pytest

from discreet.binding import bind_condition, bind_groupable, bind_number
from discreet.casts import MEANINGS
from discreet.coercion import constant
from discreet.errors import RefusedError, UsageError
from discreet.expressions import LONGEST_BUILT_TEXT, LONGEST_PART, LONGEST_READ_TEXT, Literal, longest_text
from discreet.query import Apply, Constant, Name
from discreet.schema import Kind, parse_type
from discreet.sql import parse_expression
from expression_tables import COLUMNS, SCHEMA, bound

TYPES = [
    # Whole numbers
    ("n + 1", "BIGINT"),
    ("n * m", "BIGINT"),
    ("n + h", "HUGEINT"),
    ("n + 9223372036854775808", "HUGEINT"),
    ("DIV(n, 2)", "BIGINT"),
    ("h % 2", "HUGEINT"),
    ("-n", "BIGINT"),
    ("ABS(h)", "HUGEINT"),
    # Decimals: as many digits as every result has
    ("d + e", "DECIMAL(19,3)"),
    ("d - d", "DECIMAL(19,3)"),
    ("d * e", "DECIMAL(23,5)"),
    ("d + 1", "DECIMAL(19,3)"),
    ("d * 100", "DECIMAL(21,3)"),
    ("n * 1.5", "DECIMAL(21,1)"),
    ("n + d", "DECIMAL(23,3)"),
    ("d * 0.001", "DECIMAL(21,6)"),
    ("-e", "DECIMAL(5,2)"),
    ("ABS(e)", "DECIMAL(5,2)"),
    ("ROUND(d, 1)", "DECIMAL(17,1)"),
    ("ROUND(d, 5)", "DECIMAL(18,3)"),
    # ... else doubles
    ("w * w", "DOUBLE"),
    ("k + 1", "DOUBLE"),
    ("h + d", "DOUBLE"),
    ("d * x", "DOUBLE"),
    ("n / m", "DOUBLE"),
    ("SQRT(n)", "DOUBLE"),
    ("POW(n, 2)", "DOUBLE"),
    ("ROUND(x, 1)", "DOUBLE"),
    # Whole numbers of anything, which can be group keys
    ("FLOOR(x)", "BIGINT"),
    ("CEIL(w)", "BIGINT"),
    ("ROUND(d)", "BIGINT"),
    ("TRUNC(n)", "BIGINT"),
    ("FLOOR(x / 10) * 10", "BIGINT"),
    ("BIN(x, 0, 100, 10)", "BIGINT"),
    ("BIN(n, 0, 10, 4)", "DECIMAL(20,1)"),
    ("SIGN(x)", "BIGINT"),
    ("LENGTH(s)", "BIGINT"),
    # One type for all values
    ("CASE WHEN b THEN n ELSE x END", "DOUBLE"),
    ("CASE WHEN b THEN n ELSE 0.5 END", "DECIMAL(20,1)"),
    ("CASE WHEN b THEN 5 WHEN c THEN 10 ELSE 0.5 END", "DECIMAL(3,1)"),
    ("GREATEST(0.25, 1000, n)", "DECIMAL(21,2)"),
    ("CASE WHEN b THEN n END", "BIGINT"),
    ("CASE WHEN b THEN NULL ELSE 'a' END", "VARCHAR"),
    ("IF(b, day, '2024-01-01')", "DATE"),
    ("IF(b, day, '2024-01-01 10:00')", "TIMESTAMP"),
    ("IF(b, day, t)", "TIMESTAMP"),
    ("COALESCE(e, d, 0)", "DECIMAL(18,3)"),
    ("COALESCE(n, h)", "HUGEINT"),
    ("GREATEST(n, 2.5)", "DECIMAL(20,1)"),
    ("NULLIF(n, 2.5)", "BIGINT"),
    # Dates and times
    ("day - end", "BIGINT"),
    ("t - day", "DECIMAL(18,6)"),
    ("day + 1", "DATE"),
    ("1 + day", "DATE"),
    ("day + INTERVAL 1 MONTH", "DATE"),
    ("t + INTERVAL 1 HOUR", "TIMESTAMP"),
    ("DATE_TRUNC(z, MONTH)", "TIMESTAMPTZ"),
    ("DATE_TRUNC(day, MONTH)", "DATE"),
    ("z AT TIME ZONE 'UTC'", "TIMESTAMP"),
    ("t AT TIME ZONE 'UTC'", "TIMESTAMPTZ"),
    ("DATE(z)", "DATE"),
    ("LAST_DAY(t)", "DATE"),
    ("EXTRACT(YEAR FROM z)", "BIGINT"),
    ("TIMESTAMP_SECONDS(n)", "TIMESTAMPTZ"),
    ("UNIX_SECONDS(t)", "BIGINT"),
    # Casts
    ("CAST(s AS INT64)", "BIGINT"),
    ("CAST(s AS TINYINT)", "BIGINT"),
    ("CAST(s AS UINT64)", "HUGEINT"),
    ("CAST(n AS DECIMAL(10))", "DECIMAL(10,0)"),
    ("CAST(s AS FLOAT64)", "DOUBLE"),
    ("CAST(n AS STRING)", "VARCHAR"),
    ("s::DATETIME", "TIMESTAMP"),
    ("CAST(NULL AS DATE)", "DATE"),
    ("n > 1", "BOOLEAN"),
]


@pytest.mark.parametrize(("text", "name"), TYPES, ids=[text for text, _ in TYPES])
def test_types(text: str, name: str) -> None:
    assert bound(text).type == parse_type(name)


MISTAKES = [
    # the expression, what the error is about, its rule, its hint
    ("n + s", "+", "needs numbers", "CAST(x AS DOUBLE)"),
    ("b * 2", "*", "needs numbers", "CASE"),
    ("n + day + 0.5", "+", "cannot compute", "INTERVAL"),
    ("day + end", "+", "cannot compute", "INTERVAL"),
    ("day * 2", "*", "cannot compute", "INTERVAL"),
    ("t + 1", "+", "cannot compute", "INTERVAL"),
    ("t - z", "-", "cannot set", "AT TIME ZONE"),
    ("DIV(x, 2)", "DIV", "needs whole numbers", "FLOOR(x / y)"),
    ("d % 2", "MOD", "needs whole numbers", "CAST(x AS BIGINT)"),
    ("ROUND(x, n)", "ROUND", "written out", "ROUND(x, 2)"),
    ("ROUND(x, 99)", "ROUND", "-18 to 30", ""),
    ("ROUND(d, -1)", "ROUND", "0 or more", "CAST(x AS BIGINT)"),
    ("LOWER(n)", "LOWER", "needs text", "CAST(x AS VARCHAR)"),
    ("CONCAT(s, n)", "CONCAT", "needs text", "CAST(x AS VARCHAR)"),
    ("LENGTH(day)", "LENGTH", "needs text", "CAST"),
    ("n LIKE '1%'", "LIKE", "needs text", "CAST"),
    ("s LIKE '1\\'", "LIKE", "backslash", "two for one"),
    ("SUBSTR(s, n)", "SUBSTR", "written out", "SUBSTR(x, 1, 3)"),
    ("SUBSTR(s, 1, -1)", "SUBSTR", "written out", ""),
    ("LEFT(s, -1)", "LEFT", "from 0", ""),
    ("TRIM(s, r)", "TRIM", "in quotes", "TRIM"),
    ("REPLACE(s, '', 'x')", "REPLACE", "not empty", "REPLACE"),
    ("SPLIT_PART(s, '', 1)", "SPLIT_PART", "not empty", "SPLIT_PART"),
    ("SPLIT_PART(s, '/', 0)", "SPLIT_PART", "from 1", "SPLIT_PART"),
    ("REPLACE(s, r, 'x')", "REPLACE", "in quotes", "REPLACE"),
    ("EXTRACT(YEAR FROM s)", "YEAR of column 's'", "needs a date or time", "CAST(x AS TIMESTAMP)"),
    ("EXTRACT(YEAR FROM n)", "YEAR of column 'n'", "needs a date or time", "TIMESTAMP_SECONDS"),
    ("EXTRACT(HOUR FROM day)", "HOUR of column 'day'", "not a date", ""),
    ("DATE_TRUNC(day, HOUR)", "DATE_TRUNC of column 'day'", "not a date", ""),
    ("DATE_TRUNC(day, DECADE)", "DATE_TRUNC", "knows DAY", ""),
    ("DATE_DIFF(day, end, HOUR)", "DATE_DIFF", "of dates knows", ""),
    ("DATE_DIFF(t, t, MONTH)", "DATE_DIFF", "of times knows", "DATE_DIFF(DATE(x)"),
    ("day + INTERVAL 1 HOUR", "INTERVAL of HOUR", "cannot be added", "CAST(x AS TIMESTAMP)"),
    ("day + INTERVAL 1 CENTURY", "INTERVAL", "knows", ""),
    ("day + INTERVAL 9999 YEAR", "INTERVAL", "9998 years", ""),
    ("day AT TIME ZONE 'UTC'", "AT TIME ZONE", "not a date", ""),
    ("t AT TIME ZONE s", "AT TIME ZONE", "written out", "Asia/Shanghai"),
    ("t AT TIME ZONE 'Mars/Olympus'", "AT TIME ZONE", "not a known", "Europe/Berlin"),
    ("t AT TIME ZONE '+25:00'", "AT TIME ZONE", "not a known", ""),
    ("TIMESTAMP_SECONDS(x)", "TIMESTAMP_SECONDS", "whole numbers", "CAST"),
    ("BIN(x, 0, 0, 5)", "BIN", "below", "BIN(x, 0, 100, 20)"),
    ("BIN(x, 0, 10, 0)", "BIN", "1 to 1000 bins", ""),
    ("BIN(x, 0, 10, 2.5)", "BIN", "1 to 1000 bins", ""),
    ("BIN(x, 0, 1, 3)", "BIN", "decimal places", "divide evenly"),
    ("BIN(n, 0, 1, 4)", "BIN", "too narrow", ""),
    ("BIN(x, m, 1, 2)", "BIN", "written out", ""),
    ("CAST(x AS VARCHAR)", "CAST of column 'x'", "text from float", "DECIMAL(18, 3)"),
    ("CAST(n AS DATE)", "CAST of column 'n'", "date from integer", "TIMESTAMP_SECONDS"),
    ("CAST(day AS BIGINT)", "CAST of column 'day'", "integer from date", "UNIX_SECONDS"),
    ("CAST(n AS NUMERIC)", "CAST", "digits", "DECIMAL(18, 2)"),
    ("CAST(s AS VARCHAR(3))", "CAST", "without a length", "LEFT"),
    ("CAST(s AS BLOB)", "CAST", "not a known type", ""),
    ("CAST(s AS INTEGER[])", "CAST", "not a known type", ""),
    ("CAST(s AS DECIMAL(40, 2))", "CAST", "not a known type", ""),
    ("n = day", "column 'n' and column 'day'", "cannot be compared", "CAST"),
    ("t = z", "column 't' and column 'z'", "cannot be compared", "DATE(x)"),
    ("s = 1", "column 's'", "is text", "single quotes"),
    ("n = 'a'", "the number beside column 'n'", "finite number", ""),
    ("day = 'yesterday'", "column 'day'", "is date", "2024-12-31"),
    ("b = 2", "column 'b'", "is boolean", "true or false"),
    ("n = NULL", "NULL", "IS NULL", "IS NOT NULL"),
    ("NULL + 1", "NULL", "IS NULL", ""),
    ("COALESCE(NULL, NULL)", "COALESCE", "no value but NULL", "CAST(NULL AS BIGINT)"),
    ("IF(n, 1, 2)", "CASE WHEN", "needs conditions", "comparison"),
    ("NOT n", "NOT", "needs conditions", "comparison"),
    ("n AND b", "AND", "needs conditions", "comparison"),
    ("CASE WHEN b THEN n ELSE s END", "CASE: column 'n' and column 's'", "put together", "CAST"),
    ("CASE WHEN b THEN n ELSE 'x' END", "CASE", "is integer", ""),
    ("GREATEST(b, c)", "GREATEST", "needs numbers", ""),
    ("NULLIF(1, n)", "NULLIF", "begin with an expression", ""),
    ("nn + 1", "column", "not a column", "did you mean n"),
    ("n = 1" + "0" * 40, "a whole number", "", ""),
]


@pytest.mark.parametrize(("text", "thing", "rule", "hint"), MISTAKES, ids=[text for text, *_ in MISTAKES])
def test_what_does_not_go_together(text: str, thing: str, rule: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        bound(text)
    assert thing in caught.value.thing
    assert rule in caught.value.rule
    assert hint in caught.value.hint


def test_every_pair_of_types_can_be_cast_or_is_refused() -> None:
    """Each pair of column types: CAST answers as `casts.MEANINGS` says, and the rest is refused with the pair named."""
    one_of = {column.type.kind: column for column in SCHEMA.columns}
    for source, column in one_of.items():
        for target in one_of.values():
            text = f"CAST({column.name} AS {target.type})"
            if (source, target.type.kind) in MEANINGS or source is target.type.kind:
                assert bound(text).type == target.type
            else:
                with pytest.raises(UsageError, match=f"cannot make {target.type.kind} from {source}"):
                    bound(text)


def test_group_keys_and_conditions_and_summands() -> None:
    def node(text: str) -> Apply | Name | Constant:
        (found,) = parse_expression(text, "the expression")
        return found  # type: ignore[return-value]

    assert bind_groupable(node("FLOOR(x / 10) * 10"), SCHEMA, "GROUP BY").type == parse_type("BIGINT")
    with pytest.raises(UsageError, match="floating-point") as caught:
        bind_groupable(node("ROUND(x, 1)"), SCHEMA, "GROUP BY")
    assert "FLOOR" in caught.value.hint
    with pytest.raises(UsageError, match="floating-point") as caught:
        bind_groupable(node("x"), SCHEMA, "GROUP BY")
    assert "--types" in caught.value.hint
    with pytest.raises(UsageError, match="not a constant"):
        bind_groupable(node("LOWER('A')"), SCHEMA, "GROUP BY")
    with pytest.raises(UsageError, match="needs conditions"):
        bind_condition(node("n + 1"), SCHEMA)
    with pytest.raises(UsageError, match="needs a number, not text"):
        bind_number(node("LOWER(s)"), SCHEMA, "SUM")
    with pytest.raises(UsageError, match="IS NULL"):
        bind_number(node("NULL"), SCHEMA, "SUM")


def test_every_text_has_a_length_that_it_cannot_exceed() -> None:
    lengths = {
        "s": None,
        "'abc'": 3,
        "LOWER(s)": LONGEST_READ_TEXT,
        "LEFT(s, 5)": 5,
        "SUBSTR(s, 2, 7)": 7,
        "SUBSTR(s, -3)": 3,
        "RIGHT(LEFT(s, 2), 5)": 2,
        "CONCAT(s, '-', LEFT(r, 10))": LONGEST_PART + 11,
        "REPLACE(LEFT(s, 10), 'ab', 'xyz')": 20,
        "CAST(n AS VARCHAR)": 48,
        "IF(b, LEFT(s, 3), LEFT(s, 9))": 9,
    }
    assert {text: longest_text(bound(text)) for text in lengths} == lengths
    with pytest.raises(RefusedError, match=f"more than {LONGEST_BUILT_TEXT} characters") as caught:
        bound(" || ".join(["s"] * 11))
    assert "SUBSTR" in caught.value.hint
    assert longest_text(bound(" || ".join(["LEFT(s, 100)"] * 100))) == LONGEST_BUILT_TEXT


def test_a_constant_keeps_every_digit() -> None:
    import decimal

    written = decimal.Decimal("-0.00000000012345678901234567890123456789")
    assert constant(written) == Literal(written, parse_type("DECIMAL(38,38)"))
    assert constant(decimal.Decimal("1e300")).type.kind is Kind.FLOAT
    assert constant(decimal.Decimal("1e-400")) == Literal(decimal.Decimal("0.0"), parse_type("DOUBLE"))


def test_the_layout_has_every_type() -> None:
    kinds = {parse_type(name).kind for name in COLUMNS.values()}
    assert kinds == set(Kind) - {Kind.OTHER}
