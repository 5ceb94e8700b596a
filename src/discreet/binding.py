"""From names to columns, from what was written to what each engine can compute without ever raising.

Everything here is decided from the stored schema alone: a refusal costs nothing and tells nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from discreet.binding_conditions import CONDITIONS, require_boolean
from discreet.binding_numbers import NUMBERS
from discreet.binding_text import TEXTS
from discreet.binding_time import TIMES, extract
from discreet.casts import cast
from discreet.coercion import coerce, constant, is_null, shown
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression, Field, check_size, fields_in
from discreet.query import Apply, Constant, Name, Node, check_nodes
from discreet.schema import BOOLEAN, Kind, Schema

__all__ = ["FUNCTIONS", "bind", "bind_condition", "bind_groupable", "bind_number", "coerce", "resolved"]

FUNCTIONS: dict[str, Callable[[list[Expression]], Expression]] = {
    **CONDITIONS,
    **NUMBERS,
    **TEXTS,
    **TIMES,
    "cast": cast,
}
"""What a row expression may be made of, beside ``extract_PART``: typed operands to a typed operation."""

_KNOWS_NULL = frozenset(("and", "or", "not", "case", "coalesce", "cast"))


def bind(node: Node, schema: Schema, aliases: Sequence[str] = ()) -> Expression:
    """Settle the names and types of a row expression.

    Args:
        node: what the analyst wrote.
        schema: the registered columns.
        aliases: names of the relation itself, which may stand before a column (``data.action``).

    Raises:
        UsageError: an unknown column, types that do not go together, or an expression that is too large.
        RefusedError: a construct that is not a row expression.
    """
    check_nodes(node)
    expression = _bind(node, schema, aliases)
    if is_null(expression):
        raise _untyped_null()
    check_size(expression, "an expression")
    return expression


def _untyped_null() -> UsageError:
    return UsageError("NULL", "can only be asked for with IS NULL", hint="write x IS NULL or x IS NOT NULL")


def _bind(node: Node, schema: Schema, aliases: Sequence[str]) -> Expression:
    if isinstance(node, Name):
        return _column(node, schema, aliases)
    if isinstance(node, Constant):
        return constant(node.value)
    if not isinstance(node, Apply):
        raise RefusedError("an aggregate", "cannot stand in a row expression", hint="use it in SELECT only")
    operands = [_bind(argument, schema, aliases) for argument in node.arguments]
    name = node.function
    if name not in _KNOWS_NULL and any(is_null(operand) for operand in operands):
        raise _untyped_null()
    if name.startswith("extract_"):
        return extract(name, operands[0])
    return FUNCTIONS[name](operands)


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
    require_boolean([condition], thing)
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
        if not isinstance(expression, Field):
            hint = "FLOOR(x), ROUND(x) and BIN(x, 0, 100, 20) are whole numbers; or write CAST(x AS DECIMAL(18, 2))"
        raise UsageError(thing, "cannot be a floating-point column or expression", shown(expression), hint)
    return expression


def bind_number(
    node: Node, schema: Schema, thing: str, aliases: Sequence[str] = (), *, or_time: bool = False
) -> Expression:
    """The argument of SUM, AVG and the like: a number, or where it is said a date or time.

    Raises:
        UsageError: as `bind`; and if it is neither.
    """
    expression = bind(node, schema, aliases)
    if expression.type.kind.is_temporal:
        if or_time:
            return expression
        rule = f"needs a number, not {expression.type.kind}"
        hint = f"ask for AVG or MEDIAN; or subtract a date: {thing}(x - DATE '2020-01-01') is in days"
        if expression.type.kind is not Kind.DATE:
            hint = hint.replace("DATE '2020-01-01'", "TIMESTAMP '2020-01-01'").replace("in days", "in seconds")
        raise UsageError(f"{thing} of {shown(expression)}", rule, hint=hint)
    if not expression.type.kind.is_number:
        hint = "count a condition with WHERE and COUNT(*)" if expression.type == BOOLEAN else ""
        if expression.type.kind is Kind.TEXT:
            hint = "declare it with --types, for example --types amount=DOUBLE"
        raise UsageError(f"{thing} of {shown(expression)}", f"needs a number, not {expression.type.kind}", hint=hint)
    return expression


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
