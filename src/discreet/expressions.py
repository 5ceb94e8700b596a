"""Row expressions after their names and types are settled: a closed set of total, deterministic operators.

*Total* means that no row can make one raise, whatever it holds; each operator's rendering in `relational`
keeps that promise for each engine (design, section 2, rule 6). A value is NULL where it has no meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from discreet.query import Scalar
from discreet.schema import Type

__all__ = ["Expression", "Field", "Literal", "Operation", "canonical", "fields_in"]


@dataclass(frozen=True)
class Field:
    """A column of the registered relation, by its place in the schema."""

    position: int
    name: str
    type: Type


@dataclass(frozen=True)
class Literal:
    """A constant, already of the type that its context wants."""

    value: Scalar
    type: Type


@dataclass(frozen=True)
class Operation:
    """An operator on typed operands. The operators:

    ``eq ne lt le gt ge`` (operands of one type), ``and or not``, ``in`` (the first operand among the
    others), ``like`` (text, literal pattern), ``is_null``, ``extract_PART``, ``to_date``, ``to_timestamp``,
    ``to_float``.
    """

    operator: str
    operands: tuple[Expression, ...]
    type: Type


Expression: TypeAlias = Field | Literal | Operation


def fields_in(expression: Expression) -> Iterator[Field]:
    """Every column that an expression reads, in order."""
    if isinstance(expression, Field):
        yield expression
    elif isinstance(expression, Operation):
        for operand in expression.operands:
            yield from fields_in(operand)


def canonical(expression: Expression | None) -> Any:
    """The expression as plain JSON values, for digests: equal for equal expressions, else different."""
    match expression:
        case None:
            return None
        case Field(position, name, kind):
            return ["field", position, name, str(kind)]
        case Literal(value, kind):
            return ["literal", type(value).__name__, str(value), str(kind)]
        case Operation(operator, operands, kind):
            return [operator, str(kind), *(canonical(operand) for operand in operands)]
