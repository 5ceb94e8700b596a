"""Operators and constructs of row expressions: from sqlglot's nodes to our own, one by one, by allow-list."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from discreet.errors import RefusedError, UsageError
from discreet.exact import parse_rational
from discreet.query import Apply, Constant, Name, Node
from discreet.sql_functions import FUNCTIONS, Call, interval_of, part_of
from discreet.time_parts import EXTRACTED

__all__ = ["OPERATORS", "Convert", "only"]

Convert: TypeAlias = Callable[[exp.Expr], Node]
Handler: TypeAlias = Callable[[exp.Expr, Convert], Node]


def only(node: exp.Expr, *known: str) -> None:
    """Refuse a node that carries an argument we do not read: it would be dropped in silence."""
    for name, value in node.args.items():
        if value and name not in known:
            raise RefusedError(
                node.sql()[:60] if len(node.sql()) < 60 else node.key.upper(),
                f"carries {name.replace('_', ' ')!r}, which is not part of the dialect",
            )


# --- names and constants ------------------------------------------------------------------------------------------


def _paren(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this")
    return convert(node.this)


def _column(node: exp.Expr, convert: Convert) -> Node:
    parts = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    names = [part for part in parts if part is not None]
    only(node, "catalog", "db", "table", "this")
    if not all(isinstance(part, exp.Identifier) for part in names):
        raise RefusedError("a column", "must be a plain name", node.sql()[:60])
    return Name(tuple(str(part.this) for part in names))


def _dot(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "expression")
    if isinstance(node.expression, exp.Anonymous) and str(node.this.name).upper() == "SAFE":
        return convert(node.expression)  # SAFE.LN(x): every function is safe
    right = node.expression
    left = convert(node.this) if isinstance(right, exp.Identifier) and isinstance(node.this, exp.Expr) else None
    if not isinstance(left, Name):
        raise RefusedError("a path", "must be made of plain names", node.sql()[:60])
    return Name((*left.parts, str(right.this)))


def _index(node: exp.Expr, convert: Convert) -> Node:
    """`events[0]`, or BigQuery's `events[OFFSET(0)]`: the element of a list, counted from 0, is a path too."""
    only(node, "this", "expressions", "offset")
    left, places = convert(node.this), node.expressions
    place = places[0] if len(places) == 1 else None
    if isinstance(place, exp.Anonymous) and str(place.this).upper() == "OFFSET" and len(place.expressions) == 1:
        place = place.expressions[0]
    if not isinstance(left, Name) or not isinstance(place, exp.Literal) or not str(place.this).isdecimal():
        raise RefusedError(
            "an index", "must be a whole number from 0 after a column or path", node.sql()[:60], "write events[0].name"
        )
    return Name((*left.parts[:-1], f"{left.parts[-1]}[{place.this}]"))


def _literal(node: exp.Expr, convert: Convert) -> Node:
    if node.is_string:
        return Constant(str(node.this))
    exact = parse_rational("a number in the query", str(node.this))
    if exact.denominator == 1 and abs(exact) < 10**38:
        return Constant(int(exact))
    return Constant(Decimal(str(node.this)))


def _raw_string(node: exp.Expr, convert: Convert) -> Node:
    """r'a\\d': BigQuery's raw text. Backslashes mean themselves in plain texts too."""
    only(node, "this")
    return Constant(str(node.this))


def _null(node: exp.Expr, convert: Convert) -> Node:
    return Constant(None)


def _boolean(node: exp.Expr, convert: Convert) -> Node:
    return Constant(bool(node.this))


# --- arithmetic -----------------------------------------------------------------------------------------------------


def _negative(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this")
    inner = convert(node.this)
    if isinstance(inner, Constant) and isinstance(inner.value, int | Decimal) and not isinstance(inner.value, bool):
        # copy_negate: unary minus on a Decimal would round it to the context's precision.
        value = inner.value
        return Constant(value.copy_negate() if isinstance(value, Decimal) else -value)
    return Apply("negate", (inner,))


def _binary(function: str) -> Handler:
    def handle(node: exp.Expr, convert: Convert) -> Node:
        # sqlglot marks divisions by how its dialect divides; ours says what `/` means.
        only(node, "this", "expression", "typed", "safe")
        return Apply(function, (convert(node.this), convert(node.expression)))

    return handle


def _sum(function: str, sign: int) -> Handler:
    """+ and -, one side of which may be an interval."""

    def handle(node: exp.Expr, convert: Convert) -> Node:
        only(node, "this", "expression")
        left, right = node.this, node.expression
        if sign > 0 and isinstance(left, exp.Interval):
            left, right = right, left
        if isinstance(right, exp.Interval):
            count, unit = interval_of(right)
            return Apply("date_add", (convert(left), Constant(sign * count), Constant(unit)))
        return Apply(function, (convert(left), convert(right)))

    return handle


def _concat(node: exp.Expr, convert: Convert) -> Node:
    """a || b || c as one."""
    parts: list[exp.Expr] = []
    while isinstance(node, exp.DPipe):
        only(node, "this", "expression", "safe")
        parts.append(node.expression)
        node = node.this
    return Apply("concat", tuple(convert(part) for part in (node, *reversed(parts))))


def _connector(function: str) -> Handler:
    """a AND b AND c as one, so that a long chain does not nest."""

    def handle(node: exp.Expr, convert: Convert) -> Node:
        kind, parts = type(node), list[exp.Expr]()
        while isinstance(node, kind):
            only(node, "this", "expression")
            parts.append(node.expression)
            node = node.this
        return Apply(function, tuple(convert(part) for part in (node, *reversed(parts))))

    return handle


# --- conditions -----------------------------------------------------------------------------------------------------


def _not(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this")
    return Apply("not", (convert(node.this),))


def _in(node: exp.Expr, convert: Convert) -> Node:
    if node.args.get("query") or node.args.get("unnest") or node.args.get("field"):
        raise RefusedError("IN with a subquery", "only the table itself is read", hint="list the values")
    only(node, "this", "expressions")
    values = tuple(convert(e) for e in node.expressions)
    if not values or not all(isinstance(v, Constant) and v.value is not None for v in values):
        raise RefusedError("IN", "takes a list of values, none of them NULL", hint="use IS NULL for missing")
    return Apply("in", (convert(node.this), *values))


def _between(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "low", "high")
    subject = convert(node.this)
    low, high = convert(node.args["low"]), convert(node.args["high"])
    return Apply("and", (Apply("ge", (subject, low)), Apply("le", (subject, high))))


def _like(function: str) -> Handler:
    def handle(node: exp.Expr, convert: Convert) -> Node:
        only(node, "this", "expression", "negate")
        thing = function.upper()
        pattern = convert(node.expression)
        if not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
            raise RefusedError(thing, "takes a pattern that is written out", hint=f"for example {thing} 'doc/%'")
        like = Apply(function, (convert(node.this), pattern))
        return Apply("not", (like,)) if node.args.get("negate") else like

    return handle


def _escape(node: exp.Expr, convert: Convert) -> Node:
    """x LIKE pattern ESCAPE c: the pattern rewritten with the backslash, which is the sign everywhere else."""
    only(node, "this", "expression")
    sign = convert(node.expression)
    like = node.this
    if not isinstance(like, exp.Like | exp.ILike) or not isinstance(sign, Constant) or not isinstance(sign.value, str):
        raise RefusedError("ESCAPE", "stands behind LIKE and takes one sign in quotes")
    pattern = convert(like.expression)
    if len(sign.value) != 1 or not isinstance(pattern, Constant) or not isinstance(pattern.value, str):
        raise UsageError("ESCAPE", "takes one sign in quotes", sign.value, "x LIKE '10!%' ESCAPE '!'")
    like.set("expression", exp.Literal.string(_with_backslash(pattern.value, sign.value)))
    return convert(like)


def _with_backslash(pattern: str, sign: str) -> str:
    written, characters = "", iter(pattern)
    for character in characters:
        if character == sign:
            character = next(characters, "")
            if not character:
                raise UsageError("ESCAPE", "has a pattern that ends in the sign", pattern)
            written += "\\" + character
        else:
            written += "\\\\" if character == "\\" else character
    return written


def _is(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "expression")
    subject, other = convert(node.this), node.expression
    if isinstance(other, exp.Null):
        return Apply("is_null", (subject,))
    if isinstance(other, exp.Boolean):
        # x IS TRUE is never NULL: (x IS NOT NULL) AND x, and likewise for FALSE.
        present = Apply("not", (Apply("is_null", (subject,)),))
        return Apply("and", (present, subject if other.this else Apply("not", (subject,))))
    raise RefusedError("IS", "takes NULL, NOT NULL, TRUE or FALSE, or [NOT] DISTINCT FROM")


def _distinct_from(*, equal: bool) -> Handler:
    def handle(node: exp.Expr, convert: Convert) -> Node:
        only(node, "this", "expression")
        sides = [node.this, node.expression]
        nulls = [side for side in sides if isinstance(side, exp.Null)]
        if nulls:
            missing = Apply("is_null", (convert(next((s for s in sides if s not in nulls), nulls[0])),))
            return missing if equal else Apply("not", (missing,))
        differs = Apply("is_distinct", (convert(sides[0]), convert(sides[1])))
        return Apply("not", (differs,)) if equal else differs

    return handle


def _regexp(node: exp.Expr, convert: Convert) -> Node:
    """x ~ 'pattern'."""
    only(node, "this", "expression")
    return Apply("regexp_contains", (convert(node.this), convert(node.expression)))


# --- choices --------------------------------------------------------------------------------------------------------


def _case(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "ifs", "default")
    subject, default = node.args.get("this"), node.args.get("default")
    parts: list[Node] = []
    tested = convert(subject) if subject is not None else None
    for branch in node.args["ifs"]:
        only(branch, "this", "true")
        condition = convert(branch.this)
        parts += [condition if tested is None else Apply("eq", (tested, condition)), convert(branch.args["true"])]
    return Apply("case", (*parts, Constant(None) if default is None else convert(default)))


def _if(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "true", "false")
    default = node.args.get("false")
    condition, value = convert(node.this), convert(node.args["true"])
    return Apply("case", (condition, value, Constant(None) if default is None else convert(default)))


# --- types and times ------------------------------------------------------------------------------------------------


def _cast(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "to", "safe")
    inner, target = convert(node.this), node.args["to"].sql(dialect="duckdb").upper()
    if isinstance(inner, Constant) and isinstance(inner.value, str) and target in ("DATE", "TIMESTAMP", "TIMESTAMPTZ"):
        return _typed_constant(inner.value, target)
    return Apply("cast", (inner, Constant(target)))


def _typed_constant(value: str, target: str) -> Node:
    try:
        if target == "DATE":
            return Constant(datetime.date.fromisoformat(value.strip()))
        moment = datetime.datetime.fromisoformat(value.strip())
        if moment.tzinfo is None and target == "TIMESTAMPTZ":
            moment = moment.replace(tzinfo=datetime.UTC)
        return Constant(moment.astimezone(datetime.UTC) if moment.tzinfo else moment)
    except (ValueError, OverflowError):
        pass
    raise UsageError(f"a {target} in the query", "must be written as 2024-12-31 or 2024-12-31T23:59:59", value)


def _extract(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "expression")
    part = part_of(node.this, "EXTRACT")
    if part == "DATE":
        return Apply("date", (convert(node.expression),))
    if part not in EXTRACTED:
        raise RefusedError("EXTRACT", f"knows DATE, {', '.join(EXTRACTED)}", part)
    return Apply(f"extract_{part.lower()}", (convert(node.expression),))


def _at_time_zone(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "zone")
    return Apply("at_time_zone", (convert(node.this), convert(node.args["zone"])))


def _call(name: str, *places: str) -> Handler:
    """A function with a syntax of its own, as the plain function."""

    def handle(node: exp.Expr, convert: Convert) -> Node:
        only(node, *places)
        found = [node.args[place] for place in places if node.args.get(place) is not None]
        return FUNCTIONS[name](Call(name, found, convert))

    return handle


_TRIMS: Mapping[str, str] = {"": "TRIM", "BOTH": "TRIM", "LEADING": "LTRIM", "TRAILING": "RTRIM"}


def _trim(node: exp.Expr, convert: Convert) -> Node:
    only(node, "this", "expression", "position")
    name = _TRIMS[str(node.args.get("position") or "")]
    found = [e for e in (node.this, node.args.get("expression")) if e is not None]
    return FUNCTIONS[name](Call(name, found, convert))


OPERATORS: dict[type[exp.Expr], Handler] = {
    exp.Paren: _paren,
    exp.Column: _column,
    exp.Dot: _dot,
    exp.Bracket: _index,
    exp.Literal: _literal,
    exp.RawString: _raw_string,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Neg: _negative,
    exp.Add: _sum("add", 1),
    exp.Sub: _sum("subtract", -1),
    exp.Mul: _binary("multiply"),
    exp.Div: _binary("divide"),
    exp.IntDiv: _binary("div"),
    exp.Mod: _binary("modulo"),
    exp.Pow: _binary("pow"),
    exp.DPipe: _concat,
    exp.EQ: _binary("eq"),
    exp.NEQ: _binary("ne"),
    exp.LT: _binary("lt"),
    exp.LTE: _binary("le"),
    exp.GT: _binary("gt"),
    exp.GTE: _binary("ge"),
    exp.And: _connector("and"),
    exp.Or: _connector("or"),
    exp.Not: _not,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like("like"),
    exp.ILike: _like("ilike"),
    exp.Escape: _escape,
    exp.RegexpLike: _regexp,
    exp.Is: _is,
    exp.NullSafeEQ: _distinct_from(equal=True),
    exp.NullSafeNEQ: _distinct_from(equal=False),
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Extract: _extract,
    exp.AtTimeZone: _at_time_zone,
    exp.Substring: _call("SUBSTR", "this", "start", "length"),
    exp.StrPosition: _call("STRPOS", "this", "substr"),
    exp.Trim: _trim,
    exp.Abs: _call("ABS", "this"),
}
