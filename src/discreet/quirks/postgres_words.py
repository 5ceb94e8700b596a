"""The small words of PostgreSQL's rules: values once computed, guarded casts, constants."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from hashlib import blake2b

from sqlglot import exp

from discreet.errors import RefusedError
from discreet.expressions import Literal
from discreet.quirks.spelling import words
from discreet.quirks.table import unsupported
from discreet.schema import Kind, Type

__all__ = ["TITLE", "double", "fitting", "let", "literal", "quoted", "said", "to_bigint", "type_name"]

TITLE = "PostgreSQL"


def said(x: exp.Expr) -> str:
    """The text of an operand, or of a whole statement."""
    return str(x.this) if isinstance(x, exp.Var) else x.transform(_wider).sql(dialect="postgres")


def _wider(node: exp.Expr) -> exp.Expr:
    """Whole numbers of 128 bits are numeric. What could fail for a row is not written as TRY_CAST: there is none."""
    if isinstance(node, exp.TryCast):
        raise AssertionError("TRY_CAST")
    return exp.DataType.build("NUMERIC") if isinstance(node, exp.DataType) and node.is_type("INT128") else node


_NAME = re.compile(r"[a-z_][a-z_0-9]*(?:\.[a-z_][a-z_0-9]*)?|CAST\('[^']*' AS [a-z ]+(?:\([0-9, ]*\))?\)")


def let(values: Sequence[str], body: Callable[..., str]) -> str:
    """A text in which each value stands often and is computed once: guards repeat what they guard.

    A SELECT without a table, which OFFSET keeps the planner from writing out again. It is called after its values, so
    that inside of it those of a SELECT around it keep their names.
    """
    if all(_NAME.fullmatch(value) for value in values):
        return body(*values)
    named = ", ".join(f"{value} AS v{i}" for i, value in enumerate(values))
    name = f"v{blake2b(named.encode(), digest_size=8).hexdigest()}"
    return f"(SELECT {body(*(f'{name}.v{i}' for i in range(len(values))))} FROM (SELECT {named} OFFSET 0) AS {name})"


def quoted(text: str) -> str:
    """A text constant.

    Raises:
        RefusedError: it holds the character of code 0, which no text there can.
    """
    if "\0" in text:
        raise unsupported(TITLE, "a text with the character of code 0")
    return "'" + text.replace("'", "''") + "'"


def double(value: float) -> str:
    """A constant of double precision."""
    text = {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, repr(value))
    return f"CAST('{text}' AS double precision)"


def type_name(type_: Type) -> str:
    """A type's name."""
    match type_.kind:
        case Kind.INTEGER:
            return "bigint" if type_.bits <= 64 else "numeric"
        case Kind.DECIMAL:
            return f"numeric({type_.precision}, {type_.scale})"
        case Kind.FLOAT:
            return "double precision"
        case Kind.TEXT | Kind.OTHER:
            return "text"
        case Kind.TIMESTAMP:
            return "timestamp without time zone"
        case Kind.TIMESTAMPTZ:
            return "timestamp with time zone"
        case _:
            return type_.kind.value


def literal(constant: Literal) -> exp.Expr:
    """A constant, of exactly its type."""
    value, type_ = constant.value, constant.type
    if value is None:
        return words(f"CAST(NULL AS {type_name(type_)})")
    if isinstance(value, bool):
        return words("TRUE" if value else "FALSE")
    if isinstance(value, str):
        return exp.Var(this=f"CAST({quoted(value)} AS text)")
    if isinstance(value, int) and type_.kind is Kind.INTEGER:
        return exp.Var(this=f"CAST('{value}' AS {type_name(type_)})")
    if type_.kind is Kind.FLOAT and isinstance(value, int | Decimal):
        return exp.Var(this=double(float(value)))
    if isinstance(value, int | Decimal):
        return exp.Var(this=f"CAST('{value:f}' AS {type_name(type_)})")
    written = value.isoformat(sep=" ") if type_.kind is not Kind.DATE else value.isoformat()  # type: ignore[call-arg]
    return exp.Var(this=f"CAST('{written}' AS {type_name(type_)})")


def to_bigint(value: str) -> str:
    """A whole numeric in 64 bits; NULL beyond."""
    return let(
        [value],
        lambda v: f"CASE WHEN {v} BETWEEN -9223372036854775808 AND 9223372036854775807 THEN CAST({v} AS bigint) END",
    )


def fitting(value: str, type_: Type) -> str:
    """A numeric rounded to a decimal type, halves away from zero; NULL where it does not fit."""
    most = 10 ** (type_.precision - type_.scale)
    return let(
        [f"round({value}, {type_.scale})"],
        lambda v: f"CASE WHEN abs({v}) < {most} THEN CAST({v} AS {type_name(type_)}) END",
    )


def refuse(what: str, hint: str = "") -> RefusedError:
    """The refusal of an operator."""
    return unsupported(TITLE, what, hint)
