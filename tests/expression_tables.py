"""Nasty rows, generated row expressions, and the engine's answers, for the tests of row expressions."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from discreet.binding import bind
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression
from discreet.query import Apply, Constant, Name, Node
from discreet.row_rendering import render
from discreet.schema import Column, Kind, Schema, Type, parse_type
from discreet.sql import parse_expression

COLUMNS = {
    "n": "BIGINT",
    "m": "BIGINT",
    "h": "HUGEINT",
    "x": "DOUBLE",
    "y": "DOUBLE",
    "d": "DECIMAL(18,3)",
    "e": "DECIMAL(5,2)",
    "w": "DECIMAL(38,10)",
    "k": "DECIMAL(38,0)",
    "s": "VARCHAR",
    "r": "VARCHAR",
    "b": "BOOLEAN",
    "c": "BOOLEAN",
    "day": "DATE",
    "end": "DATE",
    "t": "TIMESTAMP",
    "z": "TIMESTAMPTZ",
}
SCHEMA = Schema(tuple(Column(name, parse_type(kind)) for name, kind in COLUMNS.items()))

UTC = dt.UTC
_INTEGERS = [0, 1, -1, 2, -2, 7, 10, -10, 59, 60, 2**31, 2**53 + 1, 2**63 - 1, -(2**63), 2**62, -(2**63) + 1, 10**18]
_HUGE = [*_INTEGERS, 2**127 - 1, -(2**127), 10**37, 10**38 - 1, -(10**38), 10**19, 2**126]
_FLOATS = [
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 0.1, 1e-300, 5e-324, -5e-324, 1e15 + 0.5, 9.3e18, -9.3e18),
    *(1.7e308, -1.7e308, 1e308, float("inf"), float("-inf"), 9223372036854775807.0, 0.3, 100.0, 1e22),
]
_TEXTS = [
    *("", " ", "a", "A", "abc", "ABC", "straße", "İ", "ǅ", "ﬁ", "ſ", "K", "年龄", "🙈🙉", "e\u0301", "a%b_c", "C:\\x"),
    *("it's", '"q"', "x;drop table t;--", "$1", "{}", "\n", "a\nb", "\t x \u00a0\u3000", "12", " 12 ", "-7", "+3"),
    *("1e5", "12.345", ".5", "5.", "1_000", "0x1F", "nan", "inf", "-Infinity", "1e999", "-1e-999", "9" * 40, "9" * 400),
    *("- 1", "true", " FALSE ", "yes", "1", "2024-02-29", "2023-02-29", "0000-01-01", "0001-01-01", "9999-12-31"),
    *("10000-01-01", "2024-2-9", "2024-02-29 10:11:12.1234567", "2024-02-29T23:59:60", "2024-02-29 24:00"),
    *("2024-02-29T10:11Z", "9999-12-31T23:59:59-14:00", "0001-01-01 00:00+14:00", "infinity", "epoch"),
    *("2024-02-29 (BC)", "x" * 5000, "é" * 999, "null", "NULL", "\x01", "\u200b", "\ufeff", "\U0010ffff", "a" * 70_000),
]
_DATES = [dt.date(1, 1, 1), dt.date(9999, 12, 31), dt.date(2024, 2, 29), dt.date(1970, 1, 1), dt.date(1969, 12, 31)]
_DATES += [dt.date(1, 1, 7), dt.date(1, 1, 6), dt.date(2023, 1, 1), dt.date(2021, 1, 3), dt.date(2026, 12, 31)]
_DATES += [dt.date(9999, 12, 1), dt.date(1, 2, 1), dt.date(2020, 12, 31), dt.date(2016, 1, 3), dt.date(1582, 10, 10)]
_TIMES = [dt.datetime.min, dt.datetime.max, dt.datetime(2024, 2, 29, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)]
_TIMES += [dt.datetime(1969, 12, 31, 23, 59, 59, 1), dt.datetime(2024, 3, 10, 2, 30), dt.datetime(2024, 11, 3, 1, 30)]
_TIMES += [dt.datetime(1, 1, 2, 0, 0), dt.datetime(9999, 12, 30, 12), dt.datetime(1900, 1, 1, 5, 6, 7)]


def _decimals(precision: int, scale: int) -> list[Decimal]:
    most = 10**precision - 1
    units = [0, 1, -1, 5, -5, 50, 1250, -1250, 1350, most, -most, most // 2, most - 5, 10 ** (precision - 1), 49]
    return [Decimal(f"{u}e-{scale}") for u in units if abs(u) <= most]


NASTY: dict[str, list[Any]] = {
    "n": _INTEGERS,
    "m": _INTEGERS,
    "h": _HUGE,
    "x": _FLOATS,
    "y": _FLOATS,
    "d": _decimals(18, 3),
    "e": _decimals(5, 2),
    "w": _decimals(38, 10),
    "k": _decimals(38, 0),
    "s": _TEXTS,
    "r": _TEXTS,
    "b": [True, False],
    "c": [True, False],
    "day": _DATES,
    "end": _DATES,
    "t": _TIMES,
    "z": [time.replace(tzinfo=UTC) for time in _TIMES],
}
"""Values of each column that have broken one engine or another. NULL is everywhere besides."""


def nasty_rows(seed: int, count: int) -> list[tuple[Any, ...]]:
    """The nasty values of all columns, thrown together; the first rows hold every one, the last is all NULL."""
    dice = random.Random(seed)
    rows = []
    for i in range(count):
        rows.append(
            tuple(
                None if dice.random() < 0.1 else values[i] if i < len(values) else dice.choice(values)
                for values in NASTY.values()
            )
        )
    return [*rows, (None,) * len(COLUMNS)]


def create_source(connection: Any, rows: Sequence[Sequence[Any]], parquet: Path | None = None) -> None:
    """A relation called `source` with the columns c0, c1, ..., as the engine's: a table, or a Parquet file's view."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [pa.string() if name == "h" else None for name in COLUMNS]
    columns = [[row[i] for row in rows] for i in range(len(COLUMNS))]
    arrays = []
    for values, name, kind in zip(columns, COLUMNS, kinds, strict=True):
        given = [None if v is None else str(v) for v in values] if kind is not None else values
        arrays.append(pa.array(given, type=kind or _arrow(SCHEMA.columns[list(COLUMNS).index(name)].type)))
    raw = pa.table(arrays, names=[f"r{i}" for i in range(len(COLUMNS))])
    casts = ", ".join(f"CAST(r{i} AS {kind}) AS c{i}" for i, kind in enumerate(COLUMNS.values()))
    connection.register("raw_rows", raw)
    if parquet is None:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE source AS SELECT {casts} FROM raw_rows")
        return
    pq.write_table(raw, parquet, row_group_size=50)
    connection.execute(f"CREATE OR REPLACE TEMP VIEW source AS SELECT {casts} FROM read_parquet('{parquet}')")


def _arrow(type_: Type) -> Any:
    import pyarrow as pa

    match type_.kind:
        case Kind.INTEGER:
            return pa.int64()
        case Kind.FLOAT:
            return pa.float64()
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.TEXT:
            return pa.string()
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.DATE:
            return pa.date32()
        case Kind.TIMESTAMP:
            return pa.timestamp("us")
        case _:
            return pa.timestamp("us", tz="UTC")


def bound(text: str) -> Expression:
    """One row expression of the layout."""
    (node,) = parse_expression(text, "the test's expression")
    return bind(node, SCHEMA)


def engine_name(type_: Type) -> str:
    """What DuckDB's typeof() says for a type of the dialect."""
    return "TIMESTAMP WITH TIME ZONE" if type_.kind is Kind.TIMESTAMPTZ else str(type_)


def values_of(connection: Any, expression: Expression) -> list[Any]:
    """The expression's value in each row of `source`, in order; checks that all are of the declared type."""
    sql = render(expression).sql(dialect="duckdb")
    found = connection.execute(f"SELECT {sql} AS v, typeof({sql}) AS t FROM source").fetchall()
    assert {kind for _, kind in found} <= {engine_name(expression.type)}, (sql, expression.type)
    return [value for value, _ in found]


def binds(node: Node) -> bool:
    """Whether the dialect accepts the expression."""
    try:
        bind(node, SCHEMA)
    except (UsageError, RefusedError):
        return False
    return True


# --- generated expressions -----------------------------------------------------------------------------------------


def _columns(*names: str) -> tuple[Node, ...]:
    return tuple(Name((name,)) for name in names)


def _constants(*values: Any) -> tuple[Node, ...]:
    return tuple(Constant(value) for value in values)


_NUMBERS = (0, 1, -1, 2, 3, 10, 60, 1000, 2**63 - 1, -(2**63), 10**30, 2**125, Decimal("0.5"), Decimal("-1.25"))
_NUMBERS += (Decimal("1e-12"), Decimal("0.1"), Decimal("1e300"), Decimal("123456789.123456789"))
_WORDS = ("", "a", "A", "%", "it's", "2024-02-29", "12", "é", "\\", "true", "x;--", "🙈")
_PARTS = ("year", "quarter", "month", "week", "isoweek", "isoyear", "day", "dayofweek", "dow", "isodow", "dayofyear")
_PARTS += ("doy", "hour", "minute", "second")
_UNITS = ("DAY", "WEEK", "ISOWEEK", "MONTH", "QUARTER", "YEAR", "ISOYEAR", "HOUR", "MINUTE", "SECOND")
_NUMBER_TYPES = ("BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(18,2)", "DECIMAL(38,10)", "DECIMAL(3,3)")
_ZONES = ("UTC", "Asia/Shanghai", "America/New_York", "Pacific/Kiritimati", "+14:00", "-03:30")


class Grammar:
    """Draws expressions. Each method gives an expression of its kind, with at most `level` functions nested in it.

    Args:
        choose: gives one of several values.
    """

    def __init__(self, choose: Callable[[Sequence[Any]], Any]) -> None:
        self._choose = choose

    def pick(self, *values: Any) -> Any:
        return self._choose(values)

    def constant(self, *values: Any) -> Node:
        return Constant(self.pick(*values))

    def any(self, level: int) -> Node:
        return getattr(self, self.pick("number", "text", "time", "condition"))(level)

    def _chosen(self, kind: str, level: int) -> Node:
        """One of several values."""

        def value() -> Node:
            return getattr(self, kind)(level)

        match self.pick("case", "case2", "coalesce", "nullif", "greatest", "least", "least3"):
            case "case":
                return Apply("case", (self.condition(level), value(), self.pick(value(), Constant(None))))
            case "case2":
                first = (self.condition(level), value(), self.condition(level))
                return Apply("case", (*first, self.pick(value(), Constant(None)), value()))
            case "least3":
                return Apply("least", (value(), value(), value()))
            case name:
                return Apply(name, (value(), value()))

    def number(self, level: int) -> Node:
        if level == 0:
            return self.pick(*_columns("n", "m", "h", "x", "y", "d", "e", "w", "k"), *_constants(*_NUMBERS))
        level -= 1
        kinds = "leaf calc calc whole sign fn log round bin length strpos part diff between unix cast choose"
        match self.pick(*kinds.split()):
            case "leaf":
                return self.number(0)
            case "calc":
                name = self.pick("add", "subtract", "multiply", "divide", "pow")
                return Apply(name, (self.number(level), self.number(level)))
            case "whole":
                return Apply(self.pick("div", "modulo"), (self.integer(level), self.integer(level)))
            case "sign":
                name = self.pick("negate", "abs", "sign", "floor", "ceil", "trunc", "round")
                return Apply(name, (self.number(level),))
            case "fn":
                return Apply(self.pick("exp", "ln", "log10", "log2", "sqrt", "log"), (self.number(level),))
            case "log":
                return Apply("log", (self.number(level), self.number(level)))
            case "round":
                return Apply("round", (self.number(level), self.constant(0, 1, 2, 5, 15, -1, -3, -18, 30)))
            case "bin":
                ends = (self.constant(0, -100), self.constant(10, 1000), self.constant(1, 2, 5, 10))
                return Apply("bin", (self.number(level), *ends))
            case "length":
                return Apply(self.pick("length", "byte_length"), (self.text(level),))
            case "strpos":
                return Apply("strpos", (self.text(level), self.text(level)))
            case "part":
                return Apply("extract_" + self.pick(*_PARTS), (self.time(level),))
            case "diff":
                return Apply("date_diff", (self.time(level), self.time(level), self.constant(*_UNITS, "MICROSECOND")))
            case "between":
                return Apply("subtract", (self.time(level), self.time(level)))
            case "unix":
                return Apply(self.pick("unix_seconds", "unix_millis", "unix_micros"), (self.time(level),))
            case "cast":
                return Apply("cast", (self.any(level), self.constant(*_NUMBER_TYPES)))
            case _:
                return self._chosen("number", level)

    def integer(self, level: int) -> Node:
        """A whole number (if the dialect agrees)."""
        if level == 0 or self.pick(True, False):
            return self.pick(*_columns("n", "m", "h"), *_constants(0, 1, -1, 7, -7, 60, 2**63 - 1, -(2**63)))
        return Apply(self.pick("floor", "ceil", "round", "trunc"), (self.number(level - 1),))

    def text(self, level: int) -> Node:
        if level == 0:
            return self.pick(*_columns("s", "r"), *_constants(*_WORDS))
        level -= 1
        match self.pick("leaf", "same", "trim", "substr", "side", "split", "concat", "replace", "cast", "?"):
            case "leaf":
                return self.text(0)
            case "same":
                return Apply(self.pick("lower", "upper", "trim", "ltrim", "rtrim"), (self.text(level),))
            case "trim":
                characters = self.constant("a", " x", "年", "\\")
                return Apply(self.pick("trim", "ltrim", "rtrim"), (self.text(level), characters))
            case "substr":
                places = (self.constant(0, 1, 2, -1, -3, 5000), self.constant(0, 1, 3, 100, 2**20))
                return Apply("substr", (self.text(level), *places[: self.pick(1, 2)]))
            case "side":
                return Apply(self.pick("left", "right"), (self.text(level), self.constant(0, 1, 3, 100, 2**20)))
            case "split":
                return Apply(
                    "split_part", (self.text(level), self.constant("a", "/", " ", "年"), self.constant(1, 2, 9))
                )
            case "concat":
                return Apply("concat", tuple(self.text(level) for _ in range(self.pick(1, 2, 3))))
            case "replace":
                texts = (self.constant("a", "it's", "  ", "é"), self.constant("", "b", "''", "abc"))
                return Apply("replace", (self.text(level), *texts))
            case "cast":
                return Apply("cast", (self.any(level), Constant("VARCHAR")))
            case _:
                return self._chosen("text", level)

    def time(self, level: int) -> Node:
        if level == 0:
            constants = (dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12), dt.datetime(1, 1, 1, tzinfo=UTC))
            return self.pick(*_columns("day", "end", "t", "z"), *_constants(*constants))
        level -= 1
        match self.pick("leaf", "cast", "to", "trunc", "add", "zone", "unix", "?"):
            case "leaf":
                return self.time(0)
            case "cast":
                subject = self.pick(self.time(level), self.text(level))
                return Apply("cast", (subject, self.constant("DATE", "TIMESTAMP", "TIMESTAMPTZ")))
            case "to":
                return Apply(self.pick("date", "datetime", "timestamp", "last_day"), (self.time(level),))
            case "trunc":
                return Apply("date_trunc", (self.time(level), self.constant(*_UNITS)))
            case "add":
                count = self.constant(1, -1, 12, -400, 3_000_000, 9998)
                unit = self.constant("DAY", "WEEK", "MONTH", "QUARTER", "YEAR", "HOUR", "SECOND", "MICROSECOND")
                return Apply("date_add", (self.time(level), count, unit))
            case "zone":
                return Apply("at_time_zone", (self.time(level), self.constant(*_ZONES)))
            case "unix":
                name = self.pick("timestamp_seconds", "timestamp_millis", "timestamp_micros")
                return Apply(name, (self.integer(level),))
            case _:
                return self._chosen("time", level)

    def condition(self, level: int) -> Node:
        if level == 0:
            return self.pick(*_columns("b", "c"), *_constants(True, False))
        level -= 1
        compared = ("eq", "ne", "lt", "le", "gt", "ge", "is_distinct")
        kinds = "leaf number text time and not null in like regexp with cast choose"
        match self.pick(*kinds.split()):
            case "leaf":
                return self.condition(0)
            case "number" | "text" | "time" as kind:
                return Apply(self.pick(*compared), (getattr(self, kind)(level), getattr(self, kind)(level)))
            case "and":
                return Apply(self.pick("and", "or"), (self.condition(level), self.condition(level)))
            case "not":
                return Apply("not", (self.condition(level),))
            case "null":
                return Apply("is_null", (self.any(level),))
            case "in":
                if self.pick(True, False):
                    return Apply("in", (self.number(level), self.constant(*_NUMBERS), self.constant(*_NUMBERS)))
                return Apply("in", (self.text(level), self.constant(*_WORDS), self.constant(*_WORDS)))
            case "like":
                pattern = self.constant("%", "a%", "_b%", "%\\%%", "%年_", "", "%" * 30)
                return Apply(self.pick("like", "ilike"), (self.text(level), pattern))
            case "regexp":
                patterns = ("a", "^[a-z]+$", r"\d{2,}", "(?i)TRUE|x", r"\bit's", "[^é]", ".*.*.*b", r"\x{5E74}")
                return Apply("regexp_contains", (self.text(level), self.constant(*patterns)))
            case "with":
                return Apply(self.pick("starts_with", "ends_with"), (self.text(level), self.text(level)))
            case "cast":
                return Apply("cast", (self.any(level), Constant("BOOLEAN")))
            case _:
                return self._chosen("condition", level)


@st.composite
def expressions(draw: Any, level: int) -> Node:
    """Row expressions of every type that the dialect accepts."""
    node: Node = Grammar(lambda values: draw(st.sampled_from(values))).any(level)
    assume(binds(node))
    return node
