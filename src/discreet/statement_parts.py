"""Small parts of statements, as sqlglot expressions in DuckDB's words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from sqlglot import exp

from discreet.schema import TEXT, Type

__all__ = [
    "BIGINT",
    "DOUBLE",
    "HUGEINT",
    "call",
    "case",
    "cast",
    "column",
    "decimal",
    "engine_type",
    "keyed_hash",
    "number",
    "present",
    "text",
    "try_cast",
]


def column(name: str, table: str | None = None) -> exp.Column:
    """A column of one of our own tables."""
    return exp.column(name, table=table)


def number(value: int) -> exp.Expr:
    """An integer constant."""
    literal = exp.Literal.number(str(abs(value)))
    return exp.paren(exp.Neg(this=literal)) if value < 0 else literal


def text(value: str) -> exp.Expr:
    """A text constant, whatever it holds."""
    return exp.Literal.string(value)


@cache
def _built(name: str) -> exp.DataType:
    return exp.DataType.build(name, dialect="duckdb")


def engine_type(type_: Type | str) -> exp.DataType:
    """A type in the engine's words."""
    return _built(str(type_)).copy()


BIGINT = exp.DataType.build("BIGINT")
HUGEINT = exp.DataType.build("INT128")
DOUBLE = exp.DataType.build("DOUBLE")


def decimal(precision: int, scale: int) -> exp.DataType:
    """DECIMAL(precision, scale)."""
    return engine_type(f"DECIMAL({precision}, {scale})")


def cast(x: exp.Expr, to: exp.DataType) -> exp.Expr:
    """CAST, for what every value survives."""
    return exp.Cast(this=x, to=to.copy())


def try_cast(x: exp.Expr, to: exp.DataType) -> exp.Expr:
    """TRY_CAST: NULL where a value has no counterpart."""
    return exp.TryCast(this=x, to=to.copy())


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A function of the engine, by its own name."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def case(branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None = None) -> exp.Case:
    """CASE WHEN condition THEN value ... ELSE default END; NULL without a default."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=default)


def present(x: exp.Expr) -> exp.Expr:
    """x IS NOT NULL."""
    return exp.Not(this=exp.Is(this=x, expression=exp.Null()))


def keyed_hash(values: Sequence[exp.Expr], hash_key: int) -> exp.Expr:
    """md5 of a key and an encoding of the values as text, each with its length before it.

    For choosing among a unit's own things: the choice depends on these and on the key alone.
    """
    encoded: exp.Expr = exp.Literal.string(f"{hash_key:032x}")
    for value in values:
        as_text = cast(value, engine_type(TEXT))
        length = cast(exp.Length(this=as_text.copy()), engine_type(TEXT))
        marked = exp.DPipe(this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=as_text)
        missing = exp.Is(this=value.copy(), expression=exp.Null())
        encoded = exp.DPipe(this=encoded, expression=case([(missing, exp.Literal.string("-"))], exp.paren(marked)))
    return exp.MD5(this=encoded)
