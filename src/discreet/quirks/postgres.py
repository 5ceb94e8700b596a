"""PostgreSQL's own words (14 and newer): see `Quirks`.

What it does that the dialect does not is met in the rules: it raises for every overflow, also of doubles and for
results too small; it has no TRY_CAST; NaN is equal to itself and above everything; IS NOT DISTINCT FROM cannot
be hashed.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.grid import Grid
from discreet.quirks.keyed_hash import keyed_hash
from discreet.quirks.postgres_numbers import NUMBER_RULES, to_text
from discreet.quirks.postgres_text import TEXT_RULES
from discreet.quirks.postgres_time import TIME_FAMILIES, TIME_RULES, days, microseconds
from discreet.quirks.postgres_words import TITLE, double, let, literal, said
from discreet.quirks.spelling import conditions, words
from discreet.quirks.table import Quirks
from discreet.schema import Kind, Type
from discreet.statement_parts import clamp, number, whole_ends

__all__ = ["POSTGRES"]


def _known(x: exp.Expr) -> exp.Expr:
    return words(let([said(x)], lambda v: f"CASE WHEN {v} <> {double(float('nan'))} THEN {v} END"))


def _floor_scaled(x: exp.Expr, factor: float, fits: bool) -> exp.Expr:
    """A product that rounds to 0 raises: that is up to 2^-1075, half the least double."""

    def body(v: str) -> str:
        product = f"CAST(floor({v} * {double(factor)}) AS bigint)"
        if factor >= 1:
            return product
        least = double(2.0**-1074 / factor / 2)
        return f"CASE WHEN abs({v}) <= {least} THEN CAST(0 AS bigint) ELSE {product} END"

    return words(let([said(x)], body))


def _decimal_steps(x: exp.Expr, type_: Type, grid: Grid, wide: bool) -> exp.Expr:
    low, high = whole_ends(grid)
    steps = f"{said(clamp(x, number(low), number(high)))} * {10**grid.places}"
    return words(f"CAST(trunc({steps}) AS {'numeric' if wide else 'bigint'})")


def _quotient(left: exp.Expr, right: exp.Expr, wide: bool) -> exp.Expr:
    return words(f"div({said(left)}, {said(right)})" if wide else f"({said(left)}) / ({said(right)})")


_NOTHING = {
    Kind.BOOLEAN: "FALSE",
    Kind.TEXT: "''",
    Kind.DATE: "date '1970-01-01'",
    Kind.TIMESTAMP: "timestamp '1970-01-01'",
    Kind.TIMESTAMPTZ: "timestamp with time zone '1970-01-01 00:00:00+00'",
}


def _same(left: exp.Expr, right: exp.Expr, type_: Type) -> exp.Expr:
    """By equalities alone, which can be hashed: of what they are, and of whether they are there."""
    a, b, nothing = said(left), said(right), _NOTHING.get(type_.kind, "0")
    return words(f"({a} IS NULL) = ({b} IS NULL) AND COALESCE({a}, {nothing}) = COALESCE({b}, {nothing})")


POSTGRES: Quirks = Quirks(
    title=TITLE,
    dialect="postgres",
    rules={
        **conditions(said, different="{a} IS DISTINCT FROM {b}"),
        **NUMBER_RULES,
        **TEXT_RULES,
        **TIME_RULES,
    },
    families=TIME_FAMILIES,
    literal=literal,
    known=_known,
    floor_scaled=_floor_scaled,
    decimal_steps=_decimal_steps,
    days=days,
    microseconds=microseconds,
    quotient=_quotient,
    to_text=to_text,
    md5=lambda x: words(f"md5({said(x)})"),
    pair_hash=lambda values, types, key: keyed_hash(values, types, key, POSTGRES),
    same=_same,
    sql=said,
)
