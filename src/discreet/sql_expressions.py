"""sqlglot's expression nodes to our own, one by one, by allow-list."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from discreet.errors import RefusedError, UsageError
from discreet.exact import parse_rational
from discreet.query import Aggregate, Apply, Constant, Name, Node
from discreet.sql_aggregates import aggregate_call

__all__ = ["convert", "default_name"]

_BINARY: dict[type[exp.Expr], str] = {
    exp.EQ: "eq",
    exp.NEQ: "ne",
    exp.LT: "lt",
    exp.LTE: "le",
    exp.GT: "gt",
    exp.GTE: "ge",
    exp.And: "and",
    exp.Or: "or",
}

_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "year",
    exp.Quarter: "quarter",
    exp.Month: "month",
    exp.Day: "day",
    exp.DayOfMonth: "day",
    exp.Hour: "hour",
    exp.Minute: "minute",
}
_EXTRACT = {"YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "DATE"}

_REFUSED: dict[type[exp.Expr], tuple[str, str, str]] = {
    exp.Window: ("a window function", "it compares one person's rows with another's", "use GROUP BY"),
    exp.Max: ("MAX", "it is one person's value", "declare bounds; for the upper end ask for a quantile"),
    exp.Min: ("MIN", "it is one person's value", "declare bounds; for the lower end ask for a quantile"),
    exp.AnyValue: ("ANY_VALUE", "it is one person's value", "use COUNT, SUM or AVG"),
    exp.IgnoreNulls: ("IGNORE NULLS", "it picks one person's value", "use COUNT, SUM or AVG"),
    exp.ArrayAgg: ("ARRAY_AGG", "it lists private values", "use COUNT, SUM or AVG"),
    exp.GroupConcat: ("STRING_AGG", "it lists private values", "use COUNT, SUM or AVG"),
    exp.Subquery: ("a subquery", "only the table itself is read", "write the condition out"),
    exp.Select: ("a subquery", "only the table itself is read", "write the condition out"),
    exp.Exists: ("EXISTS", "only the table itself is read", "write the condition out"),
    exp.Filter: ("FILTER", "it is not available yet", "use WHERE"),
    exp.Rand: ("RANDOM", "a query must give the same exact total each time", "leave it out"),
    exp.CurrentDate: ("CURRENT_DATE", "a query must mean the same every day", "write the date out"),
    exp.CurrentTimestamp: ("CURRENT_TIMESTAMP", "a query must mean the same every day", "write the time out"),
    exp.RegexpLike: ("a regular expression", "it is not available yet", "use LIKE"),
    exp.ILike: ("ILIKE", "it is not available yet", "use LIKE"),
}


def _only(node: exp.Expr, *known: str) -> None:
    """Refuse a node that carries an argument we do not read: it would be dropped in silence."""
    for name, value in node.args.items():
        if value and name not in known:
            raise RefusedError(
                node.sql()[:60] if len(node.sql()) < 60 else node.key.upper(),
                f"carries {name.replace('_', ' ')!r}, which is not part of the dialect",
            )


def convert(node: exp.Expr) -> Node:
    """One sqlglot expression as a `Node`.

    Raises:
        RefusedError: the construct is not on the allow-list.
        UsageError: a literal or a named argument is not valid.
    """
    kind = type(node)
    if kind in _REFUSED:
        construct, why, instead = _REFUSED[kind]
        raise RefusedError(construct, f"cannot be answered privately: {why}", hint=instead)
    if kind in _BINARY:
        _only(node, "this", "expression")
        return Apply(_BINARY[kind], (convert(node.this), convert(node.expression)))
    if kind in _PARTS:
        _only(node, "this")
        return Apply(f"extract_{_PARTS[kind]}", (convert(node.this),))
    handler = _HANDLERS.get(kind)
    if handler is None:
        raise RefusedError(
            _describe(node),
            "is not part of the dialect",
            hint="row expressions may use comparisons, AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL and EXTRACT",
        )
    return handler(node)


def _describe(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"function {str(node.this).upper()}"
    if isinstance(node, exp.Func):
        return f"function {node.sql_name()}"
    return f"the expression {node.key.upper()}"


def _paren(node: exp.Expr) -> Node:
    _only(node, "this")
    return convert(node.this)


def _column(node: exp.Expr) -> Node:
    parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    names = [part for part in parts if part is not None]
    _only(node, "catalog", "db", "table", "this")
    if not all(isinstance(part, exp.Identifier) for part in names):
        raise RefusedError("a column", "must be a plain name", node.sql()[:60])
    return Name(tuple(str(part.this) for part in names))


def _dot(node: exp.Expr) -> Node:
    _only(node, "this", "expression")
    left, right = convert(node.this), node.expression
    if not isinstance(left, Name) or not isinstance(right, exp.Identifier):
        raise RefusedError("a path", "must be made of plain names", node.sql()[:60])
    return Name((*left.parts, str(right.this)))


def _literal(node: exp.Expr) -> Node:
    if node.is_string:
        return Constant(str(node.this))
    exact = parse_rational("a number in the query", str(node.this))
    if exact.denominator == 1 and abs(exact) < 10**38:
        return Constant(int(exact))
    return Constant(Decimal(str(node.this)))


def _negative(node: exp.Expr) -> Node:
    _only(node, "this")
    inner = convert(node.this)
    if isinstance(inner, Constant) and isinstance(inner.value, int | Decimal) and inner.value is not True:
        # copy_negate: unary minus on a Decimal would round it to the context's precision.
        value = inner.value
        return Constant(value.copy_negate() if isinstance(value, Decimal) else -value)
    raise RefusedError("arithmetic", "is not available yet in row expressions")


def _not(node: exp.Expr) -> Node:
    _only(node, "this")
    return Apply("not", (convert(node.this),))


def _in(node: exp.Expr) -> Node:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise RefusedError("IN with a subquery", "only the table itself is read", hint="list the values")
    _only(node, "this", "expressions")
    values = tuple(convert(e) for e in node.expressions)
    if not values or not all(isinstance(v, Constant) and v.value is not None for v in values):
        raise RefusedError("IN", "takes a list of values, none of them NULL", hint="use IS NULL for missing")
    return Apply("in", (convert(node.this), *values))


def _between(node: exp.Expr) -> Node:
    _only(node, "this", "low", "high")
    subject = convert(node.this)
    low, high = convert(node.args["low"]), convert(node.args["high"])
    return Apply("and", (Apply("ge", (subject, low)), Apply("le", (subject, high))))


def _like(node: exp.Expr) -> Node:
    _only(node, "this", "expression", "negate")
    pattern = convert(node.expression)
    if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise RefusedError("LIKE", "takes a pattern that is written out", hint="for example LIKE 'doc/%'")
    like = Apply("like", (convert(node.this), pattern))
    return Apply("not", (like,)) if node.args.get("negate") else like


def _is(node: exp.Expr) -> Node:
    _only(node, "this", "expression")
    subject, other = convert(node.this), node.expression
    if isinstance(other, exp.Null):
        return Apply("is_null", (subject,))
    if isinstance(other, exp.Boolean):
        # x IS TRUE is never NULL: (x IS NOT NULL) AND x, and likewise for FALSE.
        present = Apply("not", (Apply("is_null", (subject,)),))
        return Apply("and", (present, subject if other.this else Apply("not", (subject,))))
    raise RefusedError("IS", "takes NULL, NOT NULL, TRUE or FALSE")


def _extract(node: exp.Expr) -> Node:
    _only(node, "this", "expression")
    part = str(node.this.name if hasattr(node.this, "name") else node.this).upper()
    if part not in _EXTRACT:
        raise RefusedError("EXTRACT", f"knows {', '.join(sorted(_EXTRACT))}", part)
    if part == "DATE":
        return Apply("date", (convert(node.expression),))
    return Apply(f"extract_{part.lower()}", (convert(node.expression),))


def _date(node: exp.Expr) -> Node:
    _only(node, "this")
    inner = convert(node.this)
    return _typed_constant(inner.value, "DATE") if isinstance(inner, Constant) else Apply("date", (inner,))


def _cast(node: exp.Expr) -> Node:
    _only(node, "this", "to")
    inner, target = convert(node.this), node.args["to"].sql(dialect="duckdb").upper()
    if isinstance(inner, Constant) and target in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        return _typed_constant(inner.value, target)
    if target == "DATE":
        return Apply("date", (inner,))
    raise RefusedError(f"CAST to {target}", "is not available yet", hint="declare the type with --types")


def _typed_constant(value: object, target: str) -> Node:
    try:
        if isinstance(value, str) and target == "DATE":
            return Constant(datetime.date.fromisoformat(value.strip()))
        if isinstance(value, str):
            moment = datetime.datetime.fromisoformat(value.strip())
            if moment.tzinfo is None and target == "TIMESTAMPTZ":
                moment = moment.replace(tzinfo=datetime.UTC)
            return Constant(moment.astimezone(datetime.UTC) if moment.tzinfo else moment)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"a {target} in the query", "must be written as 2024-12-31 or 2024-12-31T23:59:59", value)


def _null(node: exp.Expr) -> Node:
    return Constant(None)


def _boolean(node: exp.Expr) -> Node:
    return Constant(bool(node.this))


def _count(node: exp.Expr) -> Node:
    """COUNT, which sqlglot may hand over as its own node or as a plain call."""
    return _call(exp.Anonymous(this="COUNT", expressions=[node.this, *(node.args.get("expressions") or [])]))


def _call(node: exp.Expr) -> Node:
    return aggregate_call(str(node.this), node.expressions, convert)


_HANDLERS: dict[type[exp.Expr], Callable[[exp.Expr], Node]] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Literal: _literal,
    exp.Neg: _negative,
    exp.Not: _not,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.Is: _is,
    exp.Extract: _extract,
    exp.Date: _date,
    exp.Cast: _cast,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Count: _count,
    exp.Anonymous: _call,
}


def default_name(node: Node) -> str:
    """What a column without an alias is called: ``count``, ``count_x``, ``sum_x``, ``avg_x``, ``year``, x."""
    match node:
        case Name(parts):
            return parts[-1]
        case Aggregate(function, None):
            return function
        case Aggregate(function, argument) if argument is not None:
            return f"{function}_{default_name(argument)}"
        case Apply(function, _):
            return function.removeprefix("extract_")
        case _:
            return "value"
