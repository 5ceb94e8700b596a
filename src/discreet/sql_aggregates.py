"""Aggregate calls: from sqlglot's nodes to our own, by allow-list.

Each call takes its plain arguments by place, and by name ``contribution_bounds_per_row => (lower, upper)`` where the
statistic needs bounds, ``contribution_bounds_per_group => (lower, upper)`` for sums and counts, and ``share => 3``: how
much of the query's epsilon it takes beside the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from sqlglot import exp

from discreet.bounds import parse_bounds
from discreet.errors import RefusedError, UsageError
from discreet.exact import decimal_text, parse_rational
from discreet.query import Aggregate, Apply, Bounds, Constant, Node

__all__ = [
    "AGGREGATE_NAMES",
    "aggregate_call",
    "element_of",
    "filtered",
    "parse_share",
    "quantile_columns",
    "within_group",
]

Convert: TypeAlias = Callable[[exp.Expr], Node]

_COUNTS = {
    "COUNT": "count",
    "COUNTIF": "count_if",
    "COUNT_IF": "count_if",
    "APPROX_COUNT_DISTINCT": "count_distinct",
}
_BOUNDED = {
    "SUM": "sum",
    "AVG": "avg",
    **dict.fromkeys(("VARIANCE", "VAR_SAMP"), "var_samp"),
    **dict.fromkeys(("VAR_POP", "VARIANCE_POP"), "var_pop"),
    **dict.fromkeys(("STDDEV", "STDDEV_SAMP"), "stddev_samp"),
    "STDDEV_POP": "stddev_pop",
}
_QUANTILES = ("MEDIAN", "PERCENTILE_CONT", "QUANTILE_CONT", "APPROX_QUANTILES")
_FUNCTIONS = {**_COUNTS, **_BOUNDED, **dict.fromkeys(_QUANTILES, "quantile")}
AGGREGATE_NAMES = frozenset(_FUNCTIONS)
"""What is parsed as a plain call, so that named arguments can stand in it."""

_PER_ROW, _PER_GROUP = "contribution_bounds_per_row", "contribution_bounds_per_group"
_PER_GROUP_TOO = ("COUNT", "COUNTIF", "COUNT_IF", "SUM")
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
    bounds, per_group, share = _named(name, named, convert)
    if name in _QUANTILES:
        return _quantile(name, plain, bounds, share, convert)
    if len(plain) != 1:
        raise UsageError(name, "takes one argument", len(plain), "for example COUNT(*) or SUM(x)")
    inner = plain[0]
    if isinstance(inner, exp.Star):
        if name != "COUNT" or any(inner.args.values()):
            raise UsageError(name, "takes a column, not *")
        return Aggregate("count", share=share, per_group=per_group)
    if isinstance(inner, exp.Distinct):
        if name != "COUNT" or len(inner.expressions) != 1:
            raise RefusedError(f"{name}(DISTINCT ...)", "only COUNT(DISTINCT column) is answered")
        if per_group is not None:
            hint = "what one unit counts is limited by max_contributions and max_groups_contributed"
            raise RefusedError("COUNT(DISTINCT ...), argument contribution_bounds_per_group", "is not known", hint=hint)
        return Aggregate("count_distinct", _row_expression(inner.expressions[0], name, convert), share=share)
    return Aggregate(_FUNCTIONS[name], _row_expression(inner, name, convert), bounds, share, per_group=per_group)


MOST_QUANTILES = 1000


def _quantile(name: str, plain: Sequence[exp.Expr], bounds: Bounds | None, share: Fraction, convert: Convert) -> Node:
    """MEDIAN(x), PERCENTILE_CONT(x, p), QUANTILE_CONT(x, p); APPROX_QUANTILES(x, n), as an `Apply` around its median.

    APPROX_QUANTILES is an array of n + 1 values: it stands in SELECT alone, as columns (`quantile_columns`), or with
    an [OFFSET(i)] behind it (`element_of`).
    """
    if any(isinstance(e, exp.Distinct) for e in plain):
        raise RefusedError(f"{name}(DISTINCT ...)", "only COUNT(DISTINCT column) is answered")
    example = {
        "MEDIAN": "MEDIAN(x)",
        "APPROX_QUANTILES": "APPROX_QUANTILES(x, 4)",
    }.get(name, f"{name}(x, 0.95)")
    if len(plain) != (1 if name == "MEDIAN" else 2):
        rule = "takes one argument" if name == "MEDIAN" else "takes two arguments"
        raise UsageError(name, rule, len(plain), f"for example {example}")
    argument = _row_expression(plain[0], name, convert)
    if name == "MEDIAN":
        return Aggregate("quantile", argument, bounds, share, Fraction(1, 2))
    number = _number(plain[1], name, example, convert)
    if name == "APPROX_QUANTILES":
        if number.denominator != 1 or not 1 <= number <= MOST_QUANTILES:
            rule = f"takes a whole number of quantiles from 1 to {MOST_QUANTILES}"
            raise UsageError(name, rule, decimal_text(number), f"for example {example}")
        median = Aggregate("quantile", argument, bounds, share, Fraction(1, 2))
        return Apply("approx_quantiles", (median, Constant(int(number))))
    return Aggregate("quantile", argument, bounds, share, _checked_point(number, name))


def _checked_point(p: Fraction, name: str) -> Fraction:
    rule = "p must be a number from 0 to 1, with at most 12 decimal places"
    if not 0 <= p <= 1 or (p * 10**12).denominator != 1:
        raise UsageError(name, rule, decimal_text(p), "0.5 is the median")
    return p


def within_group(call: exp.Expr, order: exp.Expr, convert: Convert) -> Node:
    """PERCENTILE_CONT(p) WITHIN GROUP (ORDER BY x).

    Raises:
        RefusedError, UsageError: another function, or more than one expression to order by.
    """
    name = str(call.this).upper() if isinstance(call, exp.Anonymous) else ""
    if name not in ("PERCENTILE_CONT", "QUANTILE_CONT"):
        hint = "write PERCENTILE_CONT(0.95) WITHIN GROUP (ORDER BY x)"
        raise RefusedError("WITHIN GROUP", "belongs to PERCENTILE_CONT", hint=hint)
    terms = order.expressions
    if len(terms) != 1 or not isinstance(terms[0], exp.Ordered):
        raise UsageError(name, "orders by one expression", len(terms))
    found = aggregate_call(name, [terms[0].this, *call.expressions], convert)
    if not isinstance(found, Aggregate) or found.point is None:
        raise AssertionError
    descending = bool(terms[0].args.get("desc"))
    return replace(found, point=1 - found.point) if descending else found


def quantile_columns(name: str, node: Node) -> list[tuple[str, Node]] | None:
    """The columns of APPROX_QUANTILES(x, n) called `name`: `name`_q0 to `name`_qn. None for anything else."""
    match node:
        case Apply("approx_quantiles", (Aggregate() as median, Constant(int() as number))):
            points = [Fraction(i, number) for i in range(number + 1)]
            return [(f"{name}_q{i}", replace(median, point=point)) for i, point in enumerate(points)]
        case _:
            return None


def element_of(node: Node, index: Sequence[exp.Expr], convert: Convert) -> Node:
    """One of the values of APPROX_QUANTILES(x, n): [OFFSET(i)] counts from 0, [ORDINAL(i)] from 1.

    Raises:
        RefusedError, UsageError: another array, or a place it does not have.
    """
    hint = "write APPROX_QUANTILES(x, 100)[OFFSET(95)], or PERCENTILE_CONT(x, 0.95)"
    match node, list(index):
        case Apply("approx_quantiles", (Aggregate() as median, Constant(int() as number))), [exp.Anonymous() as call]:
            word = str(call.this).upper()
            if word in ("OFFSET", "ORDINAL") and len(call.expressions) == 1:
                place = _number(call.expressions[0], word, hint, convert) - (1 if word == "ORDINAL" else 0)
                if place.denominator != 1 or not 0 <= place <= number:
                    raise UsageError(word, f"must be one of the {number + 1} quantiles", decimal_text(place), hint)
                return replace(median, point=place / number)
    raise RefusedError("an element of an array", "is taken from APPROX_QUANTILES only", hint=hint)


def filtered(node: Node, condition: Node) -> Node:
    """An aggregate over the rows that meet a condition: COUNT(*) FILTER (WHERE c) is COUNTIF(c), and
    SUM(x) FILTER (WHERE c) is SUM(CASE WHEN c THEN x END).

    Raises:
        RefusedError: what is filtered is not one aggregate.
    """
    match node:
        case Aggregate("count", None):
            return replace(node, function="count_if", argument=condition)
        case Aggregate("count_if", argument) if argument is not None:
            return replace(node, argument=Apply("and", (argument, condition)))
        case Aggregate(_, argument) if argument is not None:
            return replace(node, argument=Apply("case", (condition, argument, Constant(None))))
        case Apply("approx_quantiles", (Aggregate() as median, number)):
            return Apply("approx_quantiles", (filtered(median, condition), number))
    raise RefusedError("FILTER", "belongs to an aggregate", hint="for example COUNT(*) FILTER (WHERE x > 0)")


def _number(node: exp.Expr, name: str, example: str, convert: Convert) -> Fraction:
    value = convert(node)
    if not isinstance(value, Constant) or isinstance(value.value, bool | str | None):
        raise UsageError(name, "takes a number that is written out", hint=f"for example {example}")
    return parse_rational(name, value.value)


def _row_expression(node: exp.Expr, name: str, convert: Convert) -> Node:
    converted = convert(node)
    if _has_aggregate(converted):
        raise RefusedError(name, "an aggregate cannot stand inside another")
    return converted


def _has_aggregate(node: Node) -> bool:
    if isinstance(node, Apply):
        return any(_has_aggregate(argument) for argument in node.arguments)
    return isinstance(node, Aggregate)


def _named(name: str, named: Sequence[exp.Expr], convert: Convert) -> tuple[Bounds | None, Bounds | None, Fraction]:
    """The bounds of single values, those of what a unit contributes to a group, and the share."""
    values: dict[str, exp.Expr] = {}
    known = ["share"]
    known += [] if name in _COUNTS else [_PER_ROW]
    known += [_PER_GROUP] if name in _PER_GROUP_TOO else []
    for argument in named:
        keyword = str(argument.this.name).lower()
        if keyword not in known or keyword in values:
            rule = "is given twice" if keyword in values else "is not known"
            hint = f"{name} takes share => 3"
            hint += "".join(f" and {one} => (lower, upper)" for one in known[1:])
            if keyword == _PER_GROUP and name == "AVG":
                hint = f"write SUM(x, {_PER_GROUP} => (0, 100)) / COUNT(x, {_PER_GROUP} => (0, 5))"
            raise RefusedError(f"{name}, argument {keyword}", rule, hint=hint)
        values[keyword] = argument.expression
    bounds, per_group = values.get(_PER_ROW), values.get(_PER_GROUP)
    share = values.get("share")
    return (
        None if bounds is None else _bounds(bounds, name, _PER_ROW, convert),
        None if per_group is None else _bounds(per_group, name, _PER_GROUP, convert),
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


def _bounds(node: exp.Expr, name: str, keyword: str, convert: Convert) -> Bounds:
    example = f"write {name}(x, {keyword} => (0, 50))"
    values = [convert(e) for e in node.expressions] if isinstance(node, exp.Tuple) else []
    ends = [v.value for v in values if isinstance(v, Constant) and v.value is not None]
    if len(values) != 2 or len(ends) != 2:
        kinds = "two numbers" if keyword == _PER_GROUP else "two numbers or two dates"
        raise UsageError(keyword, f"must be {kinds}", hint=example)
    return parse_bounds(ends, keyword, example)
