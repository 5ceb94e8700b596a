"""The statistics of the Python builder, to be put into `Dataset.select`.

    from discreet import agg
    data.select(agg.count(), agg.mean("files", bounds=(0, 50)).alias("files")).group_by("action", keys=["A", "M"])

Arguments are columns, by their plain names, or SQL row expressions (``"bytes / 1024"``). Statistics compute with each
other and with numbers: ``agg.sum("bytes", bounds=(0, 9)) / agg.count()``; that happens after the noise and costs
nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

from discreet.bounds import parse_bounds
from discreet.errors import UsageError
from discreet.exact import parse_rational
from discreet.query_text import bounds_sql, number_text

__all__ = [
    "Term",
    "count",
    "count_distinct",
    "count_if",
    "mean",
    "median",
    "quantile",
    "stddev",
    "sum",
    "variance",
]

Number = int | float | Decimal | Fraction


@dataclass(frozen=True)
class Term:
    """A statistic, or what is computed from several.

    Attributes:
        template: SQL, with {0}, {1}, ... where `columns` stand.
        columns: row expressions, as they were written.
        name: of the output; "" for the usual one.
    """

    template: tuple[str | int, ...]
    columns: tuple[str, ...] = ()
    name: str = ""

    def alias(self, name: str) -> Term:
        """The same under another name.

        Raises:
            UsageError: an empty name.
        """
        if not isinstance(name, str) or not name.strip():
            raise UsageError("alias", "must be a name", name)
        return replace(self, name=name)

    def text(self, column: Callable[[str], str]) -> str:
        """As SQL; `column` makes what was written a row expression."""
        return "".join(part if isinstance(part, str) else column(self.columns[part]) for part in self.template)

    def __add__(self, other: Term | Number) -> Term:
        return _computed(self, "+", other)

    def __radd__(self, other: Number) -> Term:
        return _computed(other, "+", self)

    def __sub__(self, other: Term | Number) -> Term:
        return _computed(self, "-", other)

    def __rsub__(self, other: Number) -> Term:
        return _computed(other, "-", self)

    def __mul__(self, other: Term | Number) -> Term:
        return _computed(self, "*", other)

    def __rmul__(self, other: Number) -> Term:
        return _computed(other, "*", self)

    def __truediv__(self, other: Term | Number) -> Term:
        return _computed(self, "/", other)

    def __rtruediv__(self, other: Number) -> Term:
        return _computed(other, "/", self)

    def __neg__(self) -> Term:
        return _computed(0, "-", self)

    def round(self, places: int = 0) -> Term:
        """Rounded to so many decimal places, halves away from zero."""
        if isinstance(places, bool) or not isinstance(places, int):
            raise UsageError("round", "takes a whole number of decimal places", places)
        return Term(("ROUND(", *self.template, f", {places})" if places else ")"), self.columns)


def _computed(left: Term | Number, sign: str, right: Term | Number) -> Term:
    parts: list[str | int] = ["("]
    columns: tuple[str, ...] = ()
    for i, side in enumerate((left, right)):
        parts += [f" {sign} "] if i else []
        if isinstance(side, Term):
            parts += [part if isinstance(part, str) else part + len(columns) for part in side.template]
            columns += side.columns
        else:
            number = parse_rational("a number beside a statistic", side)
            parts.append(f"({number_text(number)})" if number < 0 else number_text(number))
    return Term((*parts, ")"), columns)


def _call(
    function: str,
    column: str | None,
    *,
    distinct: bool = False,
    more: str = "",
    bounds: object = None,
    bounds_per_group: object = None,
    share: object = None,
) -> Term:
    if column is not None and (not isinstance(column, str) or not column.strip()):
        example = f'for example agg.{function.lower()}("files")'
        raise UsageError(function, "takes a column's name or a row expression, as text", column, example)
    named = ""
    if bounds is not None:
        named += f", contribution_bounds_per_row => {bounds_sql(parse_bounds(bounds, f'bounds of {function}'))}"
    if bounds_per_group is not None:
        pair = parse_bounds(bounds_per_group, f"bounds per group of {function}")
        named += f", contribution_bounds_per_group => {bounds_sql(pair)}"
    if share is not None:
        named += f", share => {number_text(parse_rational('share', share))}"
    argument: tuple[str | int, ...] = ("*",) if column is None else ("DISTINCT ", 0) if distinct else (0,)
    return Term((f"{function}(", *argument, f"{more}{named})"), () if column is None else (column,))


def count(column: str | None = None, *, bounds_per_group: object = None, share: object = None) -> Term:
    """COUNT(*), or COUNT(column): how many rows, or how many where it is present; with `bounds_per_group`, what each
    unit contributes to a group is clamped to them."""
    return _call("COUNT", column, bounds_per_group=bounds_per_group, share=share)


def count_if(condition: str, *, bounds_per_group: object = None, share: object = None) -> Term:
    """COUNTIF(condition): how many rows where it is true."""
    return _call("COUNTIF", condition, bounds_per_group=bounds_per_group, share=share)


def count_distinct(column: str, *, share: object = None) -> Term:
    """COUNT(DISTINCT column)."""
    return _call("COUNT", column, distinct=True, share=share)


def sum(column: str, *, bounds: object = None, bounds_per_group: object = None, share: object = None) -> Term:
    """SUM(column), each value clamped to the bounds (declared here, or for the column in `release`); with
    `bounds_per_group`, each unit's sum in a group is clamped to those."""
    return _call("SUM", column, bounds=bounds, bounds_per_group=bounds_per_group, share=share)


def mean(column: str, *, bounds: object = None, share: object = None) -> Term:
    """AVG(column), each value clamped to the bounds."""
    return _call("AVG", column, bounds=bounds, share=share)


def variance(column: str, *, bounds: object = None, share: object = None) -> Term:
    """VAR_SAMP(column), each value clamped to the bounds."""
    return _call("VAR_SAMP", column, bounds=bounds, share=share)


def stddev(column: str, *, bounds: object = None, share: object = None) -> Term:
    """STDDEV_SAMP(column), each value clamped to the bounds."""
    return _call("STDDEV_SAMP", column, bounds=bounds, share=share)


def median(column: str, *, bounds: object = None, share: object = None) -> Term:
    """MEDIAN(column), within the bounds."""
    return _call("MEDIAN", column, bounds=bounds, share=share)


def quantile(column: str, p: object, *, bounds: object = None, share: object = None) -> Term:
    """PERCENTILE_CONT(column, p), within the bounds; p from 0 to 1."""
    point = number_text(parse_rational("p", p))
    return _call("PERCENTILE_CONT", column, more=f", {point}", bounds=bounds, share=share)
