"""Values for synthetic tables: ordinary ones that a query is likely to meet, and nasty ones of each type.

They come from the query's own constants, keys and bounds, and from the types; never from a private row. All are
texts that the engine casts to the column's type; None is the missing value.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from discreet.engines.duckdb_connection import connect
from discreet.expressions import Expression, Field, Literal, Operation, fields_in
from discreet.plan import Plan
from discreet.public_tables import load_public
from discreet.query import Scalar
from discreet.relational import needed_columns
from discreet.relational_joins import join_name
from discreet.schema import Kind, Type
from discreet.time_values import time_of

__all__ = ["Pool", "Text", "needed", "pools"]

Text: TypeAlias = str | None
_MOST_HINTS = 60
_YEARS = range(1, 10_000)


@dataclass
class Pool:
    """What one column may hold.

    Attributes:
        hints: values near what the query asks about.
        ordinary: others of the type.
        low, high: the smallest and the largest of the type, infinities among them.
        odd: missing values, NaN, empty and odd texts, dates out of range.
    """

    hints: list[Text] = field(default_factory=list)
    ordinary: list[Text] = field(default_factory=list)
    low: list[Text] = field(default_factory=list)
    high: list[Text] = field(default_factory=list)
    odd: list[Text] = field(default_factory=list)

    def all(self) -> list[Text]:
        return [*self.hints, *self.ordinary, *self.low, *self.high, *self.odd]


_TEXTS = ("a", "b", "c", "ann", "bob", "10", "2024-02-29")
_ODD_TEXTS = (
    "",
    " ",
    "NULL",
    "nan",
    "%",
    "it's",
    '"q"',
    "x'; DROP TABLE t; --",
    "é",
    "e\u0301",
    "\u5e74",
    "A\nB",
    "z" * 5000,
)


def pools(plan: Plan) -> dict[int, Pool]:
    """For each column of the private table that a plan reads, by its place."""
    own = plan.registration.schema.columns
    hints: dict[int, list[Scalar]] = {}
    for expressions, values in _met(plan):
        for one in expressions:
            hints.setdefault(one.position, []).extend(values)
    joined = _keys_of_public_tables(plan)
    found: dict[int, Pool] = {}
    for place in needed(plan):
        pool = _of_type(own[place].type)
        told = dict.fromkeys(text for value in hints.get(place, ()) for text in _near(value, own[place].type))
        pool.hints = [*joined.get(place, ()), *told][:_MOST_HINTS]
        found[place] = pool
    return found


def needed(plan: Plan) -> list[int]:
    """The places of the private table's columns that a plan reads, its unit's among them."""
    return [place for place in needed_columns(plan) if place < len(plan.registration.schema.columns)]


def _met(plan: Plan) -> Iterable[tuple[Sequence[Field], Sequence[Scalar]]]:
    """Columns with the constants that they meet in the query."""
    expressions: list[Expression | None] = [plan.where, *(key.expression for key in plan.keys)]
    expressions += [m.expression for m in plan.measurements]
    for expression in expressions:
        if expression is not None:
            yield from _constants(expression)
    for keys in plan.key_lists:
        for place, column in enumerate(keys.columns):
            listed = [row[place] for row in keys.rows[:_MOST_HINTS]]
            yield tuple(fields_in(plan.keys[column].expression)), listed
    for m in plan.measurements:
        grid = m.grid or (m.bins.grid if m.bins is not None else None)
        if grid is not None and m.expression is not None:
            ends: list[Scalar] = [_exact(bound, m.expression.type) for bound in (grid.bounds.lower, grid.bounds.upper)]
            yield tuple(fields_in(m.expression)), ends


def _keys_of_public_tables(plan: Plan) -> dict[int, list[Text]]:
    """For columns that must equal a key of a joined public table, some of its keys."""
    found: dict[int, list[Text]] = {}
    if not plan.joins:
        return found
    with connect() as connection:
        load_public(connection, plan.joins)
        for i, join in enumerate(plan.joins):
            for ours, place in join.on:
                keys = f"SELECT DISTINCT CAST(c{place - join.first} AS VARCHAR) FROM {join_name(i)} ORDER BY ALL"
                texts = [text for (text,) in connection.execute(f"{keys} LIMIT {_MOST_HINTS // 2}").fetchall()]
                for column in fields_in(ours):
                    found.setdefault(column.position, []).extend(texts)
    return found


def _constants(expression: Expression) -> Iterable[tuple[Sequence[Field], Sequence[Scalar]]]:
    if not isinstance(expression, Operation):
        return
    if expression.operator in ("and", "or", "not"):
        for operand in expression.operands:
            yield from _constants(operand)
        return
    yield tuple(fields_in(expression)), list(_literals(expression))[:_MOST_HINTS]


def _literals(expression: Expression) -> Iterable[Scalar]:
    if isinstance(expression, Literal):
        yield expression.value
    elif isinstance(expression, Operation):
        for operand in expression.operands:
            yield from _literals(operand)


def _exact(number: Fraction, type_: Type) -> Scalar:
    if type_.kind.is_temporal:
        return time_of(number, type_.kind)
    return Decimal(number.numerator) / Decimal(number.denominator)


def _near(value: Scalar, type_: Type) -> Iterable[Text]:
    """A constant, and what lies just beside it, as texts of a column's type."""
    if value is None:
        yield None
        return
    if type_.kind.is_temporal:
        yield from _near_time(value)
        return
    if isinstance(value, bool):
        yield "true" if value else "false"
        return
    if isinstance(value, int | Decimal) and (type_.kind.is_number or type_.kind is Kind.TEXT):
        for beside in (0, 1, -1):
            yield f"{Decimal(value) + beside:f}"
        return
    if isinstance(value, datetime.date):
        yield value.isoformat()
        return
    text = str(value)
    yield text
    if "%" in text or "_" in text:
        yield text.replace("%", "").replace("_", "x")


def _near_time(value: Scalar) -> Iterable[Text]:
    if isinstance(value, datetime.date):
        yield value.isoformat()
        for days in (1, -1):
            try:
                yield (value + datetime.timedelta(days=days)).isoformat()
            except OverflowError:  # the first or last day that there is
                continue
    elif isinstance(value, int | Decimal) and int(value) in _YEARS:  # YEAR(time) = 2024
        for day in ("01-01", "02-28", "06-15", "12-31"):
            yield f"{int(value):04d}-{day} 12:00:00"
    elif isinstance(value, str):
        yield value


def _of_type(type_: Type) -> Pool:
    match type_.kind:
        case Kind.BOOLEAN:
            return Pool(ordinary=["true", "false"], low=["false"], high=["true"], odd=[None])
        case Kind.INTEGER:
            top = 2 ** (type_.bits - 1) - 1
            return Pool(
                ordinary=[str(i) for i in range(-3, 13)], low=[str(-top), str(-top + 1)], high=[str(top)], odd=[None]
            )
        case Kind.DECIMAL:
            most = f"{Decimal((0, (9,) * type_.precision, -type_.scale)):f}"
            step = f"{Decimal((0, (1,), -type_.scale)):f}"
            return Pool(ordinary=["0", "1", "0.5", step], low=[f"-{most}"], high=[most], odd=[None])
        case Kind.FLOAT:
            return Pool(
                ordinary=["0", "0.1", "0.5", "-1.25", "3", "7e3"],
                low=["-inf", "-1.7976931348623157e308"],
                high=["inf", "1.7976931348623157e308"],
                odd=[None, "nan", "-0.0", "5e-324"],
            )
        case Kind.TEXT:
            return Pool(ordinary=list(_TEXTS), low=[""], high=["\U0010ffff"], odd=[None, *_ODD_TEXTS])
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return Pool(
                ordinary=["1999-12-31", "2020-02-29", "2023-07-01", "2024-03-10", "2024-11-30"],
                low=["0001-01-01"],
                high=["9999-12-31"],
                odd=[None, "1969-12-31", "1970-01-01", "infinity", "-infinity", "20000-01-01"],
            )
        case _:
            return Pool(ordinary=[None], low=[None], high=[None], odd=[None])
