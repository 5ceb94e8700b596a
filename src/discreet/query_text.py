"""A query's expressions as SQL text, which `discreet.sql` reads back into the same value."""

from __future__ import annotations

import datetime
from decimal import Decimal
from fractions import Fraction

from sqlglot.dialects.duckdb import DuckDB

from discreet.bounds import bounds_text
from discreet.errors import UsageError
from discreet.query import Aggregate, Apply, Bounds, Constant, Name, Node, Scalar

__all__ = ["bounds_sql", "name_text", "node_text", "number_text", "plain_or_quoted"]

_MOST_DIGITS = 1000

_INFIX = {
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "AND",
    "or": "OR",
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "divide": "/",
    "modulo": "%",
    "like": "LIKE",
    "ilike": "ILIKE",
    "is_distinct": "IS DISTINCT FROM",
    "at_time_zone": "AT TIME ZONE",
}
_AGGREGATES = {"count_distinct": "COUNT", "count_if": "COUNTIF", "quantile": "PERCENTILE_CONT"}


def name_text(name: str) -> str:
    """A name, always quoted: it is then never a keyword, and keeps its case, blanks and dots."""
    return '"' + name.replace('"', '""') + '"'


def node_text(node: Node) -> str:
    """An expression. Every operator stands in parentheses but the outermost."""
    text = _text(node)
    outer = isinstance(node, Apply) and text.startswith("(")
    return text[1:-1] if outer else text


def _text(node: Node) -> str:
    match node:
        case Name(parts):
            return ".".join(plain_or_quoted(part) for part in parts)
        case Constant(value):
            return _constant(value)
        case Aggregate():
            return _aggregate(node)
        case Apply("cast", (subject, Constant(str(type_)))):
            return f"CAST({_text(subject)} AS {type_})"
        case Apply(function, arguments):
            return _apply(function, [_text(argument) for argument in arguments])


def plain_or_quoted(name: str) -> str:
    """A column's name, quoted only where it must be."""
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain and name.upper() not in DuckDB.Tokenizer.KEYWORDS else name_text(name)


def _constant(value: Scalar) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case Decimal():
            return f"{value:f}" if abs(value.adjusted()) < 40 else str(value)
        case int():
            return str(value)
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime.datetime():
            name = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
            return f"CAST('{value.isoformat()}' AS {name})"
        case _:
            return f"CAST('{value.isoformat()}' AS DATE)"


def _apply(function: str, arguments: list[str]) -> str:
    if function in _INFIX and len(arguments) > 1:
        return "(" + f" {_INFIX[function]} ".join(arguments) + ")"
    if function.startswith("extract_"):
        return f"EXTRACT({function.removeprefix('extract_').upper()} FROM {arguments[0]})"
    match function:
        case "not":
            return f"(NOT {arguments[0]})"
        case "negate":
            return f"(- {arguments[0]})"
        case "cast":
            return f"CAST({arguments[0]} AS {arguments[1][1:-1]})"
        case "is_null":
            return f"({arguments[0]} IS NULL)"
        case "in":
            return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
        case "case":
            pairs = zip(arguments[0:-1:2], arguments[1:-1:2], strict=True)
            whens = " ".join(f"WHEN {condition} THEN {value}" for condition, value in pairs)
            return f"CASE {whens} ELSE {arguments[-1]} END"
        case _:
            return f"{function.upper()}({', '.join(arguments)})"


def _aggregate(aggregate: Aggregate) -> str:
    function = _AGGREGATES.get(aggregate.function, aggregate.function.upper())
    argument = "*" if aggregate.argument is None else node_text(aggregate.argument)
    distinct = "DISTINCT " if aggregate.function == "count_distinct" else ""
    point = "" if aggregate.point is None else f", {number_text(aggregate.point)}"
    named = "" if aggregate.bounds is None else f", contribution_bounds_per_row => {bounds_sql(aggregate.bounds)}"
    if aggregate.per_group is not None:
        named += f", contribution_bounds_per_group => {bounds_sql(aggregate.per_group)}"
    share = "" if aggregate.share == 1 else f", share => {number_text(aggregate.share)}"
    return f"{function}({distinct}{argument}{point}{named}{share})"


def bounds_sql(bounds: Bounds) -> str:
    """Declared bounds, as the value of contribution_bounds_per_row."""
    if bounds.written == "number":
        return f"({number_text(bounds.lower)}, {number_text(bounds.upper)})"
    if bounds.written == "duration":
        return f"('{number_text(bounds.lower)} seconds', '{number_text(bounds.upper)} seconds')"
    lower, upper = bounds_text(bounds)
    return f"('{lower}', '{upper}')"


def number_text(value: Fraction) -> str:
    """A number as decimal digits.

    Raises:
        UsageError: its digits never end, or are more than a statement holds.
    """
    places, rest = 0, value.denominator
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest, power = rest // prime, power + 1
        places = max(places, power)
    if rest != 1:
        raise UsageError("number", "has decimals that never end", str(value), "round it, for example to 0.333333")
    if places > _MOST_DIGITS or abs(value) >= 10**_MOST_DIGITS:
        raise UsageError("number", f"must have at most {_MOST_DIGITS} digits before and after its point")
    digits = str(abs(int(value * 10**places))).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if value < 0 else text
