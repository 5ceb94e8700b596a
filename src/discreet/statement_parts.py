"""Small parts of statements, as sqlglot expressions that mean the same on every engine.

A part is taken as it is, not copied, by what it is put into (sqlglot's own building methods copy all they are given,
time after time, which takes longer than everything else): one that is needed twice is copied by whoever needs it.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from sqlglot import exp

from discreet.grid import Grid
from discreet.schema import Type

__all__ = [
    "BIGINT",
    "DOUBLE",
    "HUGEINT",
    "all_of",
    "call",
    "case",
    "cast",
    "clamp",
    "column",
    "decimal",
    "engine_type",
    "joined",
    "named",
    "number",
    "present",
    "select",
    "table",
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


def named(x: exp.Expr, name: str) -> exp.Expr:
    """x AS name."""
    return exp.Alias(this=x, alias=exp.to_identifier(name))


def table(name: str, called: str | None = None) -> exp.Table:
    """One of our own tables."""
    alias = None if called is None else exp.TableAlias(this=exp.to_identifier(called))
    return exp.Table(this=exp.to_identifier(name), alias=alias)


def all_of(conditions: Iterable[exp.Expr]) -> exp.Expr:
    """All of them."""
    return exp.and_(*conditions, copy=False)


def select(
    *columns: exp.Expr | str,
    of: exp.Table | exp.Query,
    called: str | None = None,
    where: Iterable[exp.Expr] = (),
    group_by: Iterable[str] = (),
) -> exp.Select:
    """SELECT columns FROM of AS called WHERE all of the conditions GROUP BY these columns.

    Args:
        columns: expressions, or names of columns; "*" for all.
        of: a table, or a query, which is then to be called something.
        called: the query's name.
        where: conditions; none for all rows.
        group_by: names of columns; none for no grouping.
    """
    alias = None if called is None else exp.TableAlias(this=exp.to_identifier(called))
    source = of if isinstance(of, exp.Table) else exp.Subquery(this=of, alias=alias)
    made = exp.Select().select(*(_selected(c) if isinstance(c, str) else c for c in columns), copy=False)
    made.from_(source, copy=False)
    conditions, groups = list(where), [column(name) for name in group_by]
    if conditions:
        made.where(*conditions, copy=False)
    if groups:
        made.group_by(*groups, copy=False)
    return made


def _selected(name: str) -> exp.Expr:
    return exp.Star() if name == "*" else column(name)


def joined(rows: exp.Select, other: str, on: exp.Expr, how: str = "") -> exp.Select:
    """The rows with their counterparts in another table of ours; `how` is "LEFT", "ANTI" or, for an inner join, ""."""
    kind = {"kind": how} if how == "ANTI" else {"side": how} if how else {}
    rows.append("joins", exp.Join(this=table(other), on=on, **kind))
    return rows
