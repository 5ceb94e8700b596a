"""Row expressions on a real Spark where the nasty rows of the conformance suite are too few: clocks that are set back
and forth, patterns of LIKE, texts of a million characters."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

import pytest

from discreet.engines.duckdb_connection import connect
from discreet.engines.spark_session import fresh
from discreet.errors import RefusedError
from discreet.quirks import DUCKDB, Quirks
from discreet.quirks.spark import SPARK
from discreet.row_rendering import render
from expression_tables import bound, values_of


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    """One that compiles nothing: each statement is run once, over few rows."""
    made = fresh(spark)
    made.conf.set("spark.sql.codegen.wholeStage", "false")
    made.conf.set("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    return made


@pytest.fixture
def duckdb() -> Iterator[Any]:
    with connect(threads=1) as connection:
        yield connection


def said(text: str, quirks: Quirks) -> str:
    return quirks.sql(render(bound(text), quirks))


# Set forward and back: by an hour, by half of one, by a day (Samoa left one out, Kwajalein too), in wartime.
DAYS = [dt.datetime(2024, 3, 10), dt.datetime(2024, 11, 3), dt.datetime(2024, 3, 31), dt.datetime(2024, 10, 27)]
DAYS += [dt.datetime(2024, 4, 7), dt.datetime(2024, 10, 6), dt.datetime(2011, 12, 30), dt.datetime(1993, 8, 21)]
DAYS += [dt.datetime(1969, 9, 30), dt.datetime(1945, 8, 14)]
CLOCKS = [day + dt.timedelta(minutes=20 * i - 1440) for day in DAYS for i in range(216)]
ZONES = ("America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Kwajalein")


def test_clocks_that_are_set(session: Any, duckdb: Any) -> None:
    """A time that a zone's clocks never show, or show twice, is the same moment as on DuckDB."""
    texts = [f"{column} AT TIME ZONE '{zone}'" for zone in ZONES for column in ("t", "z")]
    rows = [(i, clock.isoformat()) for i, clock in enumerate(CLOCKS)]
    clocks = session.createDataFrame(rows, "place INT, x STRING")
    named = ("place", "CAST(x AS TIMESTAMP_NTZ) AS c15", "CAST(x || '+00:00' AS TIMESTAMP) AS c16")
    clocks.selectExpr(*named).createOrReplaceTempView("clocks")
    chosen = ", ".join(f"unix_micros(CAST({said(text, SPARK)} AS TIMESTAMP))" for text in texts)
    found = [tuple(row) for row in session.sql(f"SELECT {chosen} FROM clocks ORDER BY place").collect()]
    duckdb.execute(
        "CREATE TEMP TABLE clocks AS SELECT place, x::TIMESTAMP AS c15, (x || '+00')::TIMESTAMPTZ AS c16 "
        "FROM (SELECT unnest(range(?)) AS place, unnest(?) AS x)",
        [len(CLOCKS), [clock.isoformat() for clock in CLOCKS]],
    )
    chosen = ", ".join(f"epoch_us({said(text, DUCKDB)})" for text in texts)
    assert found == duckdb.execute(f"SELECT {chosen} FROM clocks ORDER BY place").fetchall()


TEXTS = ["", "a", "ab", "aab", "abab", "a\nb", "a%b", "ba_b", "ßAB", "Σασς", "🙈a🙉b", "aXbXc", "abcabc", "xxaxxbxx"]


def test_patterns_of_like(session: Any, duckdb: Any) -> None:
    dice = random.Random(5)
    patterns = ["".join(dice.choice("%%%_aabbcXσ\n") for _ in range(dice.randint(0, 6))) for _ in range(60)]
    texts = [f"s {like} '{pattern}'" for pattern in patterns for like in ("LIKE", "ILIKE")]
    rows = session.createDataFrame(list(enumerate(TEXTS)), "place INT, c9 STRING")
    rows.createOrReplaceTempView("texts")
    chosen = ", ".join(said(text, SPARK) for text in texts)
    found = [tuple(row) for row in session.sql(f"SELECT {chosen} FROM texts ORDER BY place").collect()]
    duckdb.execute("CREATE TEMP TABLE source AS SELECT unnest(?) AS c9", [TEXTS])
    meant = [values_of(duckdb, bound(text)) for text in texts]
    assert found == list(zip(*meant, strict=True))


@pytest.mark.parametrize("pattern", ["%a%a%a%a%a%a%a%b", "%" + "a%" * 400 + "b", "_" * 900 + "%b", "%a_a_a_b%c"])
def test_no_pattern_goes_back(session: Any, pattern: str) -> None:
    """Over a million letters: a matcher that went back would not end, or use the stack up."""
    text = said(f"s LIKE '{pattern}'", SPARK)
    assert session.sql(f"SELECT {text} FROM (SELECT repeat('a', 1000000) AS c9)").collect()[0][0] is False


def test_zones_that_java_may_not_know() -> None:
    assert "'Europe/Kiev'" in said("z AT TIME ZONE 'Europe/Kyiv'", SPARK)
    with pytest.raises(RefusedError, match="is not supported on Spark"):
        said("z AT TIME ZONE 'America/Ciudad_Juarez'", SPARK)
