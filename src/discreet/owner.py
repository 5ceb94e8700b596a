"""What the owner declares about columns, as planning takes it: used where the query says nothing, and narrowed, but
never widened, by what it says.

All of it is public, and none of it comes from the data.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression, Field, Operation, fields_in
from discreet.query import Bounds, Scalar
from discreet.schema import Kind
from discreet.time_values import DAY, number_of, quantity_text

__all__ = ["Declared", "DeclaredColumn"]

_SHOWN = 5  # values in an error


@dataclass(frozen=True)
class DeclaredColumn:
    """What is declared about one column.

    Attributes:
        path: where, for errors ("datasets.flights.columns.delay").
        bounds: of its values.
        keys: its public values, of the column's type.
        dates: the first and the last day that are asked about.
        forbidden: whether no query may touch it.
    """

    path: str
    bounds: Bounds | None = None
    keys: tuple[Scalar, ...] | None = None
    dates: tuple[datetime.date, datetime.date] | None = None
    forbidden: bool = False


@dataclass(frozen=True)
class Declared:
    """What is declared about a source.

    Attributes:
        columns: by their names in the stored schema.
        unknown_groups: whether groups may be chosen from the data.
        path: where, for errors ("datasets.flights").
    """

    columns: Mapping[str, DeclaredColumn] = field(default_factory=dict)
    unknown_groups: bool = True
    path: str = ""

    def check_allowed(self, *expressions: Expression | None) -> None:
        """Refuse a forbidden column, wherever it stands.

        Raises:
            RefusedError: naming it.
        """
        for expression in expressions:
            for column in fields_in(expression) if expression is not None else ():
                declared = self.columns.get(column.name)
                if declared is not None and declared.forbidden:
                    raise RefusedError(
                        f"column {column.name!r}",
                        f"may not be asked about: the owner's policy forbids it ({declared.path}.forbidden)",
                        hint="leave the column out",
                    )

    def bounds(self, expression: Expression, asked: Bounds | None) -> Bounds | None:
        """The bounds in force for an aggregate's argument: those asked for, within the owner's; else the owner's.

        Raises:
            UsageError: asked for are wider ones.
        """
        declared = self.columns.get(expression.name) if isinstance(expression, Field) else None
        own = None if declared is None else declared.bounds or _bounds_of_dates(declared, expression)
        if declared is None or own is None or asked is None:
            return own if asked is None else asked
        if asked.lower < own.lower or asked.upper > own.upper:
            raise UsageError(
                f"bounds of {getattr(expression, 'name', '')!r}",
                f"must lie within the owner's, {_span(own, expression)} ({declared.path})",
                _span(asked, expression),
                "leave them out to take the owner's",
            )
        return asked

    def keys(self, expression: Expression) -> tuple[Scalar, ...] | None:
        """The public keys of a grouping expression: of a column, its declared values; of the days, months, quarters
        and years of one with declared dates, all in that range. None where nothing is declared."""
        if isinstance(expression, Field) and expression.name in self.columns:
            declared = self.columns[expression.name]
            if declared.keys is not None:
                return declared.keys
        return self._dates(expression)

    def check_keys(self, expression: Expression, keys: Iterable[Scalar]) -> None:
        """Refuse keys that the owner did not list, where there is a list.

        Raises:
            UsageError: naming the first, and the owner's.
        """
        own = self.keys(expression)
        if own is None:
            return
        known = set(own)
        for key in keys:
            if key not in known:
                name = next(fields_in(expression)).name
                path = self.columns[name].path
                rule = f"must be among the owner's public values, {_listed(own)} ({path})"
                raise UsageError(f"keys of {name!r}", rule, _text(key), "leave --keys out to take them all")

    def check_chosen(self, group: str) -> None:
        """Refuse groups chosen from the data, if the owner does not allow them.

        Raises:
            RefusedError: naming the grouping.
        """
        if not self.unknown_groups:
            raise RefusedError(
                f"GROUP BY {group}",
                "needs groups chosen from the data, which the owner's policy does not allow "
                f"({self.path}.unknown_groups)",
                hint=f"list the keys: --keys {group}=A,B,C",
            )

    def _dates(self, expression: Expression) -> tuple[Scalar, ...] | None:
        if isinstance(expression, Operation) and expression.operator == "extract_year":
            days = self._days(expression.operands[0])
            return None if days is None else tuple(range(days[0].year, days[-1].year + 1))
        if isinstance(expression, Operation) and expression.operator in _MONTHS and expression.type.kind is Kind.DATE:
            months = _MONTHS[expression.operator]
            days = self._days(expression.operands[0])
            return None if days is None else tuple(dict.fromkeys(_first(day, months) for day in days))
        days = self._days(expression)
        return None if days is None or expression.type.kind is not Kind.DATE else tuple(days)

    def _days(self, expression: Expression) -> Sequence[datetime.date] | None:
        """Every day of the column that a date expression is made of, if its dates are declared."""
        if isinstance(expression, Operation) and expression.operator == "to_date":
            expression = expression.operands[0]
        if not isinstance(expression, Field) or expression.name not in self.columns:
            return None
        dates = self.columns[expression.name].dates
        if dates is None:
            return None
        return [dates[0] + datetime.timedelta(days=i) for i in range((dates[1] - dates[0]).days + 1)]


_MONTHS = {"trunc_month": 1, "trunc_quarter": 3, "trunc_year": 12}


def _first(day: datetime.date, months: int) -> datetime.date:
    return datetime.date(day.year, (day.month - 1) // months * months + 1, 1)


def _span(bounds: Bounds, expression: Expression) -> str:
    kind = expression.type.kind
    return f"{quantity_text(bounds.lower, kind)}..{quantity_text(bounds.upper, kind)}"


def _bounds_of_dates(declared: DeclaredColumn, expression: Expression) -> Bounds | None:
    """Declared first and last days as bounds; of times, from the first midnight to the one after the last day."""
    kind = expression.type.kind
    if declared.dates is None or not kind.is_temporal:
        return None
    first, last = (Fraction(number_of(day)) for day in declared.dates)
    return Bounds(first, last) if kind is Kind.DATE else Bounds(first * DAY, (last + 1) * DAY)


def _listed(keys: Sequence[Scalar]) -> str:
    shown = ", ".join(_text(key) for key in keys[:_SHOWN])
    return shown if len(keys) <= _SHOWN else f"{shown}, ... ({len(keys)} in all)"


def _text(key: Scalar) -> str:
    return "NULL" if key is None else str(key)
