"""Aggregate calls: from sqlglot's nodes to our own, by allow-list.

Each call takes its plain arguments by place, and by name ``contribution_bounds_per_row => (lower, upper)``
where the statistic needs bounds, and ``share => 3``: how much of the query's epsilon it takes beside the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from discreet.bounds import checked_bounds
from discreet.errors import RefusedError, UsageError
from discreet.exact import parse_rational
from discreet.query import Aggregate, Apply, Bounds, Constant, Node

__all__ = ["AGGREGATE_NAMES", "aggregate_call", "parse_share"]

Convert: TypeAlias = Callable[[exp.Expr], Node]

_COUNTS = {"COUNT": "count", "COUNTIF": "count_if", "COUNT_IF": "count_if"}
_BOUNDED = {
    "SUM": "sum",
    "AVG": "avg",
    **dict.fromkeys(("VARIANCE", "VAR_SAMP"), "var_samp"),
    **dict.fromkeys(("VAR_POP", "VARIANCE_POP"), "var_pop"),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP"), "stddev_samp"),
    "STDDEV_POP": "stddev_pop",
}
_FUNCTIONS = {**_COUNTS, **_BOUNDED}
AGGREGATE_NAMES = frozenset(_FUNCTIONS)
"""What is parsed as a plain call, so that named arguments can stand in it."""

_LARGEST_SHARE = 1_000_000


def aggregate_call(name: str, arguments: Sequence[exp.Expr], convert: Convert) -> Node:
    """The aggregate that a call asks for.

    Args:
        name: of the function, as written.
        arguments: all that stood in its parentheses.
        convert: turns a row expression into a `Node`.

    Raises:
        RefusedError: not an aggregate of the dialect, or an argument that is not known.
        UsageError: the wrong number of arguments, or a value that is not valid.
    """
    name = name.upper()
    if name not in _FUNCTIONS:
        hint = f"aggregates are {', '.join(sorted(AGGREGATE_NAMES))}"
        raise RefusedError(f"function {name}", "is not part of the dialect", hint=hint)
    plain = [e for e in arguments if not isinstance(e, exp.Kwarg | exp.PropertyEQ)]
    named = [e for e in arguments if isinstance(e, exp.Kwarg | exp.PropertyEQ)]
    bounds, share = _named(name, named, convert)
    if len(plain) != 1:
        raise UsageError(name, "takes one argument", len(plain), "for example COUNT(*) or SUM(x)")
    inner = plain[0]
    if isinstance(inner, exp.Star):
        if name != "COUNT" or any(inner.args.values()):
            raise UsageError(name, "takes a column, not *")
        return Aggregate("count", share=share)
    if isinstance(inner, exp.Distinct):
        if name != "COUNT" or len(inner.expressions) != 1:
            raise RefusedError(f"{name}(DISTINCT ...)", "only COUNT(DISTINCT column) is answered")
        return Aggregate("count_distinct", _row_expression(inner.expressions[0], name, convert), share=share)
    return Aggregate(_FUNCTIONS[name], _row_expression(inner, name, convert), bounds, share)


def _row_expression(node: exp.Expr, name: str, convert: Convert) -> Node:
    converted = convert(node)
    if _has_aggregate(converted):
        raise RefusedError(name, "an aggregate cannot stand inside another")
    return converted


def _has_aggregate(node: Node) -> bool:
    if isinstance(node, Apply):
        return any(_has_aggregate(argument) for argument in node.arguments)
    return isinstance(node, Aggregate)


def _named(name: str, named: Sequence[exp.Expr], convert: Convert) -> tuple[Bounds | None, Fraction]:
    values: dict[str, exp.Expr] = {}
    known = ("share",) if name in _COUNTS else ("share", "contribution_bounds_per_row")
    for argument in named:
        keyword = str(argument.this.name).lower()
        if keyword not in known or keyword in values:
            rule = "is given twice" if keyword in values else "is not known"
            hint = f"{name} takes share => 3"
            if name not in _COUNTS:
                hint += " and contribution_bounds_per_row => (lower, upper)"
            raise RefusedError(f"{name}, argument {keyword}", rule, hint=hint)
        values[keyword] = argument.expression
    bounds = values.get("contribution_bounds_per_row")
    share = values.get("share")
    return (
        None if bounds is None else _bounds(bounds, name, convert),
        Fraction(1) if share is None else _share(share, convert),
    )


def _share(node: exp.Expr, convert: Convert) -> Fraction:
    value = convert(node)
    if not isinstance(value, Constant) or isinstance(value.value, str):
        raise UsageError("share", "must be a number that is written out", hint="for example share => 3")
    return parse_share(value.value)


def parse_share(value: object) -> Fraction:
    """The weight of an aggregate when the query's epsilon is divided.

    Raises:
        UsageError: not a number above 0 and at most a million, with at most 6 decimal places.
    """
    rule = f"must be a number above 0 and at most {_LARGEST_SHARE}, with at most 6 decimal places"
    share = parse_rational("share", value, rule=rule)
    if not 0 < share <= _LARGEST_SHARE or (share * 10**6).denominator != 1:
        raise UsageError("share", rule, str(value))
    return share


def _bounds(node: exp.Expr, name: str, convert: Convert) -> Bounds:
    example = f"write {name}(x, contribution_bounds_per_row => (0, 50))"
    values = [convert(e) for e in node.expressions] if isinstance(node, exp.Tuple) else []
    numbers = [
        Fraction(v.value)
        for v in values
        if isinstance(v, Constant) and isinstance(v.value, int | Decimal) and not isinstance(v.value, bool)
    ]
    if len(values) != 2 or len(numbers) != 2:
        raise UsageError("contribution_bounds_per_row", "must be two numbers", hint=example)
    return checked_bounds(numbers[0], numbers[1], "contribution_bounds_per_row")
