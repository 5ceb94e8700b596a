"""Spark SQL's own words (Spark 4, ANSI mode): see `Quirks`.

Every operator means the same for every value as on DuckDB, or is refused when the query is planned.
"""

from __future__ import annotations

from discreet.quirks.keyed_hash import keyed_hash
from discreet.quirks.spark_numbers import NUMBER_RULES
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
    said,
    same,
    to_text,
)
from discreet.quirks.spark_text import TEXT_RULES
from discreet.quirks.spark_time import TIME_FAMILIES, TIME_RULES
from discreet.quirks.spelling import conditions
from discreet.quirks.table import Quirks

__all__ = ["SPARK"]

SPARK: Quirks = Quirks(
    title=TITLE,
    dialect="spark",
    rules={
        **conditions(said, different="NOT ({a} <=> {b})"),
        **NUMBER_RULES,
        **TEXT_RULES,
        **TIME_RULES,
    },
    families=TIME_FAMILIES,
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
