"""Small parts of statements, as sqlglot expressions that mean the same on every engine."""

from __future__ import annotations

from functools import cache

from sqlglot import exp

from discreet.grid import Grid
from discreet.schema import Type

__all__ = [
    "BIGINT",
    "DOUBLE",
    "HUGEINT",
    "call",
    "case",
    "cast",
    "clamp",
    "column",
    "decimal",
    "engine_type",
    "number",
    "present",
    "text",
    "try_cast",
    "whole_ends",
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


def clamp(x: exp.Expr, low: exp.Expr | None, high: exp.Expr | None) -> exp.Expr:
    """x between low and high. NULL stays NULL: no comparison with it is true (`least` and `greatest` would turn it
    into a bound)."""
    branches: list[tuple[exp.Expr, exp.Expr]] = []
    if low is not None:
        branches.append((exp.LTE(this=x.copy(), expression=low), low.copy()))
    if high is not None:
        branches.append((exp.GTE(this=x.copy(), expression=high), high.copy()))
    return case(branches, x.copy()) if branches else x


def whole_ends(grid: Grid) -> tuple[int, int]:
    """The whole numbers between which a whole number is clamped: at the bounds, or just outside."""
    lower, upper = grid.bounds.lower, grid.bounds.upper
    return lower.numerator // lower.denominator, -(-upper.numerator // upper.denominator)
