"""From names to columns, from what was written to what each engine can compute without ever raising.

Everything here is decided from the stored schema alone: a refusal costs nothing and tells nothing.
"""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction

from discreet.errors import RefusedError, UsageError
from discreet.exact import parse_rational
from discreet.expressions import Expression, Field, Literal, Operation, fields_in
from discreet.query import Apply, Constant, Name, Node, Scalar
from discreet.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    HUGE,
    INTEGER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Schema,
    Type,
)

__all__ = ["bind", "bind_condition", "bind_groupable", "bind_number", "coerce", "resolved"]

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
_LARGEST_INTEGER = 2**126


def bind(node: Node, schema: Schema, aliases: Sequence[str] = ()) -> Expression:
    """Settle the names and types of a row expression.

    Args:
        node: what the analyst wrote.
        schema: the registered columns.
        aliases: names of the relation itself, which may stand before a column (``data.action``).

    Raises:
        UsageError: an unknown column, or types that do not go together.
        RefusedError: a construct that is not a row expression.
    """
    if isinstance(node, Name):
        return _column(node, schema, aliases)
    if isinstance(node, Constant):
        return _constant(node.value)
    if not isinstance(node, Apply):
        raise RefusedError("an aggregate", "cannot stand in a row expression", hint="use it in SELECT only")
    operands = [bind(argument, schema, aliases) for argument in node.arguments]
    name = node.function
    if name in _COMPARISONS:
        left, right = _comparable(operands[0], operands[1])
        return Operation(name, (left, right), BOOLEAN)
    if name.startswith("extract_"):
        return _extract(name, operands[0])
    return _FUNCTIONS[name](operands)


def resolved(node: Node, schema: Schema, aliases: Sequence[str] = ()) -> Node:
    """The expression with each column in its one canonical name, so that `a`, `A` and `data.a` are equal.

    Raises:
        UsageError: an unknown column.
    """
    if isinstance(node, Name):
        expression = _column(node, schema, aliases)
        return Name((expression.name,)) if isinstance(expression, Field) else node
    if isinstance(node, Apply):
        return Apply(node.function, tuple(resolved(argument, schema, aliases) for argument in node.arguments))
    return node


def bind_condition(node: Node, schema: Schema, aliases: Sequence[str] = (), *, thing: str = "WHERE") -> Expression:
    """A condition: of WHERE, or what `thing` names.

    Raises:
        UsageError: as `bind`; and if the expression is not true or false.
    """
    condition = bind(node, schema, aliases)
    _require_boolean([condition], thing)
    return condition


def bind_groupable(node: Node, schema: Schema, thing: str, aliases: Sequence[str] = ()) -> Expression:
    """A grouping key or a privacy unit: not a float (equal floats may print differently), not a constant.

    Raises:
        UsageError: as `bind`; and for floats, structures and constants.
    """
    expression = bind(node, schema, aliases)
    if not any(fields_in(expression)):
        raise UsageError(thing, "must name a column, not a constant")
    if expression.type.kind is Kind.FLOAT:
        hint = "declare it as text or integer with --types, for example --types id=VARCHAR"
        raise UsageError(thing, "cannot be a floating-point column", _shown(expression), hint)
    return expression


def bind_number(node: Node, schema: Schema, thing: str, aliases: Sequence[str] = ()) -> Expression:
    """The argument of SUM or AVG.

    Raises:
        UsageError: as `bind`; and if it is not a number.
    """
    expression = bind(node, schema, aliases)
    if not expression.type.kind.is_number:
        hint = "count a condition with WHERE and COUNT(*)" if expression.type == BOOLEAN else ""
        if expression.type.kind is Kind.TEXT:
            hint = "declare it with --types, for example --types amount=DOUBLE"
        raise UsageError(f"{thing} of {_shown(expression)}", f"needs a number, not {expression.type.kind}", hint=hint)
    return expression


def _shown(expression: Expression) -> str:
    return f"column {expression.name!r}" if isinstance(expression, Field) else "an expression"


def _column(name: Name, schema: Schema, aliases: Sequence[str]) -> Expression:
    candidates = [".".join(name.parts)]
    if len(name.parts) > 1 and name.parts[0] in aliases:
        candidates.append(".".join(name.parts[1:]))
    for candidate in candidates:
        position = schema.position(candidate)
        if position is not None:
            column = schema.columns[position]
            if column.type.kind is Kind.OTHER:
                hint = "name a field inside it by its path, or declare it with --types"
                raise UsageError(f"column {column.name!r}", "holds lists or structures", hint=hint)
            return Field(position, column.name, column.type)
    near = difflib.get_close_matches(candidates[-1], schema.names(), n=3)
    hint = f"did you mean {', '.join(near)}?" if near else f"the columns are {_listed(schema.names())}"
    raise UsageError("column", "is not a column of this source", candidates[-1], hint)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _constant(value: Scalar) -> Literal:
    if isinstance(value, bool):
        return Literal(value, BOOLEAN)
    if isinstance(value, int):
        if abs(value) >= _LARGEST_INTEGER:
            raise UsageError("a whole number in the query", "must be below 2^126", str(value))
        return Literal(value, INTEGER if -(2**63) <= value < 2**63 else HUGE)
    if isinstance(value, Decimal):
        digits = value.as_tuple()
        scale = max(0, -int(digits.exponent))
        return Literal(value, Type(Kind.DECIMAL, precision=max(len(digits.digits), scale, 1), scale=scale))
    if isinstance(value, str):
        return Literal(value, TEXT)
    if isinstance(value, datetime.datetime):
        return Literal(value, TIMESTAMPTZ if value.tzinfo else TIMESTAMP)
    if isinstance(value, datetime.date):
        return Literal(value, DATE)
    raise UsageError("NULL", "can only be asked for with IS NULL", hint="write x IS NULL or x IS NOT NULL")


def _comparable(left: Expression, right: Expression) -> tuple[Expression, Expression]:
    """Both sides at one type, such that the comparison is exact where it can be and never raises."""
    if isinstance(left, Literal) and not isinstance(right, Literal):
        right, left = _comparable(right, left)
        return left, right
    if isinstance(right, Literal):
        if left.type.kind.is_number and right.type.kind in (Kind.INTEGER, Kind.DECIMAL, Kind.TEXT):
            return _number_and_literal(left, right)
        return left if left.type.kind is not Kind.DATE else _date_side(left, right), coerce(
            right.value, _literal_target(left.type, right), _shown(left)
        )
    a, b = left.type, right.type
    if a == b or (a.kind is Kind.INTEGER and b.kind is Kind.INTEGER):
        return left, right
    if a.kind.is_number and b.kind.is_number:
        return _to_float(left), _to_float(right)
    if {a.kind, b.kind} == {Kind.DATE, Kind.TIMESTAMP}:
        return _to_timestamp(left), _to_timestamp(right)
    raise UsageError(
        f"{_shown(left)} and {_shown(right)}",
        f"cannot be compared: one is {a.kind}, the other {b.kind}",
        hint="declare the type of one with --types",
    )


def _literal_target(type_: Type, literal: Literal) -> Type:
    """A date is compared with a date, but with a time of day as a timestamp."""
    if type_.kind is Kind.DATE and _is_time_of_day(literal.value):
        return TIMESTAMP
    return type_


def _is_time_of_day(value: Scalar) -> bool:
    if isinstance(value, datetime.datetime):
        return True
    return isinstance(value, str) and ":" in value


def _date_side(left: Expression, right: Literal) -> Expression:
    return _to_timestamp(left) if _is_time_of_day(right.value) else left


def _number_and_literal(left: Expression, right: Literal) -> tuple[Expression, Expression]:
    number = parse_rational(f"the number beside {_shown(left)}", right.value)
    kind = left.type.kind
    if kind is Kind.INTEGER and number.denominator == 1:
        return left, _constant(int(number))
    if kind is Kind.DECIMAL:
        scaled = number * 10**left.type.scale
        if scaled.denominator == 1 and abs(scaled) < 10**left.type.precision:
            return left, Literal(_decimal(number, left.type.scale), left.type)
    # A fraction beside an integer, or more digits than a decimal has: both as doubles, which cannot raise.
    return _to_float(left), _float_literal(number, _shown(left))


def _decimal(number: Fraction, scale: int) -> Decimal:
    scaled = number * 10**scale
    return Decimal(int(scaled)).scaleb(-scale) if abs(scaled) < 10**28 else Decimal(f"{int(scaled)}e-{scale}")


def _float_literal(number: Fraction, thing: str) -> Literal:
    try:
        float(number)
    except OverflowError:
        raise UsageError(f"the number beside {thing}", "is too large for a comparison") from None
    return Literal(Decimal(repr(float(number))), FLOAT)


def _to_float(expression: Expression) -> Expression:
    if expression.type.kind is Kind.FLOAT:
        return expression
    return Operation("to_float", (expression,), FLOAT)


def _to_timestamp(expression: Expression) -> Expression:
    if expression.type.kind is Kind.TIMESTAMP:
        return expression
    return Operation("to_timestamp", (expression,), TIMESTAMP)


def coerce(value: Scalar, type_: Type, thing: str) -> Literal:
    """A constant as a literal of exactly `type_`: the text '2024-01-01' beside a date is that day.

    Raises:
        UsageError: the constant is not a value of that type.
    """
    kind = type_.kind
    try:
        match kind:
            case Kind.TEXT if isinstance(value, str):
                return Literal(value, TEXT)
            case Kind.BOOLEAN if isinstance(value, bool):
                return Literal(value, BOOLEAN)
            case Kind.BOOLEAN if isinstance(value, str) and value.lower() in ("true", "false"):
                return Literal(value.lower() == "true", BOOLEAN)
            case Kind.INTEGER if not isinstance(value, bool):
                number = parse_rational(thing, value)
                if number.denominator == 1 and abs(number) < _LARGEST_INTEGER:
                    return Literal(int(number), type_)
            case Kind.DECIMAL if not isinstance(value, bool):
                number = parse_rational(thing, value)
                if (number * 10**type_.scale).denominator == 1 and abs(number) < 10 ** (type_.precision - type_.scale):
                    return Literal(_decimal(number, type_.scale), type_)
            case Kind.DATE if isinstance(value, str):
                return Literal(datetime.date.fromisoformat(value.strip()), DATE)
            case Kind.DATE if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
                return Literal(value, DATE)
            case Kind.TIMESTAMP | Kind.TIMESTAMPTZ if isinstance(value, str | datetime.date):
                return _moment(value, type_, thing)
    except (ValueError, OverflowError) as error:
        if isinstance(error, UsageError) and error.hint:
            raise
    hints = {
        Kind.DATE: "write it as 2024-12-31",
        Kind.TIMESTAMP: "write it as 2024-12-31T23:59:59",
        Kind.TIMESTAMPTZ: "write it as 2024-12-31T23:59:59Z",
        Kind.TEXT: "write text in single quotes",
        Kind.BOOLEAN: "write true or false",
    }
    shown = value.isoformat() if isinstance(value, datetime.date) else str(value)
    raise UsageError(thing, f"is {kind}, and this is not a value of that type", shown, hints.get(kind, ""))


def _moment(value: str | datetime.date, type_: Type, thing: str) -> Literal:
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.strip())
    elif not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    if type_.kind is Kind.TIMESTAMP:
        if value.tzinfo is not None:
            hint = "write the time without a zone"
            raise UsageError(thing, "has no time zone", value.isoformat(), hint)
        return Literal(value, TIMESTAMP)
    aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return Literal(aware.astimezone(datetime.UTC), TIMESTAMPTZ)


def _require_boolean(operands: Sequence[Expression], thing: str) -> None:
    for operand in operands:
        if operand.type != BOOLEAN:
            raise UsageError(thing, f"needs conditions; {_shown(operand)} is {operand.type.kind}")


def _logical(operator: str) -> Callable[[list[Expression]], Expression]:
    def build(operands: list[Expression]) -> Expression:
        _require_boolean(operands, operator.upper())
        return Operation(operator, tuple(operands), BOOLEAN)

    return build


def _in(operands: list[Expression]) -> Expression:
    pairs = [_comparable(operands[0], value) for value in operands[1:]]
    if all(left == pairs[0][0] for left, _ in pairs):
        return Operation("in", (pairs[0][0], *(right for _, right in pairs)), BOOLEAN)
    equalities = [Operation("eq", pair, BOOLEAN) for pair in pairs]
    return Operation("or", tuple(equalities), BOOLEAN)


def _like(operands: list[Expression]) -> Expression:
    if operands[0].type != TEXT:
        raise UsageError("LIKE", f"needs text; {_shown(operands[0])} is {operands[0].type.kind}")
    return Operation("like", tuple(operands), BOOLEAN)


def _is_null(operands: list[Expression]) -> Expression:
    return Operation("is_null", tuple(operands), BOOLEAN)


_TIME_PARTS = frozenset(("extract_hour", "extract_minute"))


def _extract(name: str, operand: Expression) -> Expression:
    kind = operand.type.kind
    part = name.removeprefix("extract_").upper()
    if not kind.is_temporal or (name in _TIME_PARTS and kind is Kind.DATE):
        hint = "declare it with --types, for example --types time=TIMESTAMPTZ" if kind is Kind.TEXT else ""
        raise UsageError(f"{part} of {_shown(operand)}", f"needs a date or time, not {kind}", hint=hint)
    return Operation(name, (operand,), INTEGER)


def _date(operands: list[Expression]) -> Expression:
    kind = operands[0].type.kind
    if kind is Kind.DATE:
        return operands[0]
    if not kind.is_temporal:
        hint = "declare it with --types, for example --types time=TIMESTAMPTZ"
        raise UsageError(f"DATE of {_shown(operands[0])}", f"needs a date or time, not {kind}", hint=hint)
    return Operation("to_date", tuple(operands), DATE)


_FUNCTIONS: dict[str, Callable[[list[Expression]], Expression]] = {
    "and": _logical("and"),
    "or": _logical("or"),
    "not": _logical("not"),
    "in": _in,
    "like": _like,
    "is_null": _is_null,
    "date": _date,
}
