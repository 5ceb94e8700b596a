"""sqlglot's expression nodes to our own, one by one, by allow-list."""

from __future__ import annotations

import difflib
from collections.abc import Callable

from sqlglot import exp

from discreet.errors import RefusedError
from discreet.query import Aggregate, Apply, Constant, Name, Node, check_nodes
from discreet.sql_aggregates import AGGREGATE_NAMES, aggregate_call, element_of, filtered, within_group
from discreet.sql_functions import FUNCTIONS, Call
from discreet.sql_operators import OPERATORS, only
from discreet.sql_refusals import REFUSED_FUNCTIONS, REFUSED_NODES, Refusal

__all__ = ["convert", "default_name"]


def convert(node: exp.Expr) -> Node:
    """One sqlglot expression as a `Node`.

    Raises:
        RefusedError: the construct is not on the allow-list.
        UsageError: a literal or an argument is not valid, or the expression is too large.
    """
    converted = _convert(node)
    check_nodes(converted)
    return converted


def _convert(node: exp.Expr) -> Node:
    kind = type(node)
    if kind in _AGGREGATE_FORMS:
        return _AGGREGATE_FORMS[kind](node)
    if kind in REFUSED_NODES:
        raise _refusal(REFUSED_NODES[kind])
    if kind in OPERATORS:
        return OPERATORS[kind](node, _convert)
    if isinstance(node, exp.Anonymous):
        return _call(str(node.this).upper(), node)
    raise RefusedError(
        "an expression",
        "is not part of the dialect",
        _as_written(node),
        hint="docs/dialect.md lists what row expressions may use",
    )


def _within_group(node: exp.Expr) -> Node:
    only(node, "this", "expression")
    return within_group(node.this, node.expression, _convert)


def _bracket(node: exp.Expr) -> Node:
    only(node, "this", "expressions", "offset", "safe", "returns_list_for_maps")
    if not isinstance(node.this, exp.Anonymous) or str(node.this.this).upper() != "APPROX_QUANTILES":
        return OPERATORS[exp.Bracket](node, _convert)  # the element of a list in a path
    return element_of(_convert(node.this), node.expressions, _convert)


def _filter(node: exp.Expr) -> Node:
    only(node, "this", "expression")
    only(node.expression, "this")
    return filtered(_convert(node.this), _convert(node.expression.this))


_AGGREGATE_FORMS: dict[type[exp.Expr], Callable[[exp.Expr], Node]] = {
    exp.WithinGroup: _within_group,
    exp.Bracket: _bracket,
    exp.Filter: _filter,
}


def _refusal(refusal: Refusal) -> RefusedError:
    construct, why, instead = refusal
    return RefusedError(construct, f"cannot be answered privately: {why}", hint=instead)


def _as_written(node: exp.Expr) -> str:
    """In the words of SQL: a parser's own name for it means nothing to its reader."""
    text = node.sql(dialect="duckdb")
    return text if len(text) <= 60 else text[:59] + "…"


def _call(name: str, node: exp.Expr) -> Node:
    if name in FUNCTIONS:
        return FUNCTIONS[name](Call(name, node.expressions, _convert))
    if name in AGGREGATE_NAMES:
        return aggregate_call(name, node.expressions, _convert)
    if name in REFUSED_FUNCTIONS:
        raise _refusal(REFUSED_FUNCTIONS[name])
    near = difflib.get_close_matches(name, [*FUNCTIONS, *AGGREGATE_NAMES], n=2)
    hint = f"did you mean {' or '.join(near)}?" if near else "docs/dialect.md lists the functions"
    raise RefusedError(f"function {name[:60]}", "is not part of the dialect", hint=hint)


_OPERATORS = frozenset(
    (
        *("add", "subtract", "multiply", "divide", "div", "modulo", "negate", "round"),
        *("cast", "coalesce", "nullif", "at_time_zone", "date_add"),
    )
)
_BARE = frozenset(("date", "datetime", "timestamp"))


def default_name(node: Node) -> str:
    """What a column without an alias is called: ``count``, ``count_x``, ``sum_x``, ``year``, ``lower_x``, x.

    Operators on one column are called like the column, so that SUM(bytes / 1024) is ``sum_bytes``.
    """
    match node:
        case Name(parts):
            return parts[-1]
        case Aggregate(function, None):
            return function
        case Aggregate("quantile", argument, point=point) if argument is not None and point is not None:
            percent = point * 100
            kind = f"p{int(percent)}" if percent.denominator == 1 else "quantile"
            return f"{'median' if percent == 50 else kind}_{default_name(argument)}"
        case Apply("approx_quantiles", (Aggregate(_, argument), *_)) if argument is not None:
            return default_name(argument)
        case Aggregate(function, argument) if argument is not None:
            return f"{function}_{default_name(argument)}"
        case Apply("case", arguments):
            # By its values, not its conditions: SUM(CASE WHEN y THEN x END) is sum_x.
            values = dict.fromkeys(default_name(a) for a in (*arguments[1:-1:2], arguments[-1]))
            values.pop("value", None)
            return next(iter(values)) if len(values) == 1 else "case"
        case Apply(function, arguments):
            inner = dict.fromkeys(default_name(a) for a in arguments if not isinstance(a, Constant))
            if function.startswith("extract_") or function in _BARE:
                return function.removeprefix("extract_")
            if len(inner) != 1:
                return "value" if function in _OPERATORS else function
            return next(iter(inner)) if function in _OPERATORS else f"{function}_{next(iter(inner))}"
        case _:
            return "value"
