"""Spark SQL's own words (Spark 4, ANSI mode): see `Quirks`.

Only operators that mean the same for every value are here; all others are refused when the query is planned.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from discreet.quirks.keyed_hash import keyed_hash
from discreet.quirks.spark_statements import (
    TITLE,
    days,
    decimal_steps,
    floor_scaled,
    known,
    literal,
    md5,
    microseconds,
    quotient,
    refuse,
    said,
    same,
    to_text,
)
from discreet.quirks.spelling import conditions
from discreet.quirks.table import Quirks
from discreet.row_operands import Operands, Rule

__all__ = ["SPARK"]


class _Rules(dict[str, Rule]):
    """What is not here is refused."""

    def __missing__(self, operator: str) -> Rule:
        raise refuse(operator.removeprefix("to_").upper().replace("_", " "))


class _Families(dict[str, Callable[[Operands, str], exp.Expr]]):
    def __missing__(self, family: str) -> Callable[[Operands, str], exp.Expr]:
        raise refuse(family.upper())


SPARK: Quirks = Quirks(
    title=TITLE,
    dialect="spark",
    rules=_Rules(conditions(said, different="NOT ({a} <=> {b})")),
    families=_Families(),
    literal=literal,
    known=known,
    floor_scaled=floor_scaled,
    decimal_steps=decimal_steps,
    days=days,
    microseconds=microseconds,
    quotient=quotient,
    to_text=to_text,
    md5=md5,
    pair_hash=lambda values, types, key: keyed_hash(values, types, key, SPARK),
    same=same,
    sql=said,
)
