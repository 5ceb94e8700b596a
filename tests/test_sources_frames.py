"""Data frames: their types, values of every kind in columns of objects, and what is refused."""

from __future__ import annotations

import datetime
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.source_rows import without_nan

import discreet
from discreet.engines.duckdb_connection import connect
from discreet.errors import SourceError, UsageError
from discreet.schema import Registration
from discreet.sources import attach, register_frame, relation


def rows(registration: Registration, frame: object) -> list[tuple[Any, ...]]:
    with connect() as connection:
        attach(connection, registration, frame)
        return without_nan(connection.execute(relation(registration)).fetchall())


def types(registration: Registration) -> dict[str, str]:
    return {column.name: str(column.type) for column in registration.schema.columns}


DAY = datetime.datetime(2024, 1, 1)


def test_pandas() -> None:
    frame = pd.DataFrame(
        {
            "i": np.array([1, 2], dtype="int8"),
            "u": np.array([1, 2**64 - 1], dtype="uint64"),
            "f": [1.5, np.nan],
            "s": ["a", None],
            "t": pd.to_datetime(["2024-01-01", None]),
            "z": pd.to_datetime(["2024-01-01", "2024-01-02"], utc=True),
            "c": pd.Categorical(["a", "b"]),
            "n": pd.Series([1, None], dtype="Int64"),
            "b": pd.Series([True, None], dtype="boolean"),
            "h": np.array([1.5, 2.5], dtype="float16"),
            'it\'s "q"': [1, 2],
            7: [3, 4],
        }
    )
    frame.index = [5, 5]
    registration = register_frame(frame, "visits")
    assert registration.source == "frame:visits"
    assert types(registration) == {
        "i": "BIGINT",
        "u": "HUGEINT",
        "f": "DOUBLE",
        "s": "VARCHAR",
        "t": "TIMESTAMP",
        "z": "TIMESTAMPTZ",
        "c": "VARCHAR",
        "n": "BIGINT",
        "b": "BOOLEAN",
        "h": "DOUBLE",
        'it\'s "q"': "BIGINT",
        "7": "BIGINT",
    }
    first, second = rows(registration, frame)
    zone = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    assert first == (1, 1, 1.5, "a", DAY, zone, "a", 1, True, 1.5, 1, 3)
    assert second[:5] == (2, 2**64 - 1, None, None, None)
    assert second[6:9] == ("b", None, None)


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([1, 2, None], "BIGINT"),
        ([1, 2**100], "HUGEINT"),
        ([1, 2**130], "VARCHAR"),
        ([1, 2.5], "DOUBLE"),
        (["a", 1], "VARCHAR"),
        ([True, None], "BOOLEAN"),
        ([Decimal("1.25"), Decimal("10")], "DECIMAL(18,2)"),
        ([datetime.date(2024, 1, 1)], "DATE"),
        ([DAY], "TIMESTAMP"),
        ([DAY.replace(tzinfo=datetime.UTC)], "TIMESTAMPTZ"),
        ([[1], {"a": 1}], "OTHER"),
        ([None, None], "VARCHAR"),
    ],
)
def test_columns_of_objects(values: list[Any], name: str) -> None:
    frame = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    registration = register_frame(frame, "f")
    assert types(registration) == {"x": name}
    found = [row[0] for row in rows(registration, frame)]
    if name not in ("VARCHAR", "OTHER", "DOUBLE"):
        assert found == values


VALUE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.decimals(),
    st.text(st.characters(), max_size=5),
    st.binary(max_size=3),
    st.datetimes(),
    st.dates(),
    st.timedeltas(),
    st.lists(st.integers(), max_size=2),
    st.just("\ud800"),
    st.complex_numbers(),
    st.just(pd.NA),
    st.just(pd.NaT),
    st.builds(object),
)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(threads=1) as made:
        yield made


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.lists(VALUE, max_size=8), st.sampled_from([1, 2.5, "x", True, DAY, datetime.date(2024, 1, 1), Decimal("1.5")])
)
def test_no_object_makes_a_query_raise_or_changes_others(
    connection: duckdb.DuckDBPyConnection, values: list[Any], first: object
) -> None:
    registered = pd.DataFrame({"x": pd.Series([first], dtype=object)})
    registration = register_frame(registered, "f")
    attach(connection, registration, registered)
    ((expected,),) = without_nan(connection.execute(relation(registration)).fetchall())
    frame = pd.DataFrame({"x": pd.Series([*values, first], dtype=object)})
    attach(connection, registration, frame)
    found = without_nan(connection.execute(relation(registration)).fetchall())
    assert len(found) == len(values) + 1
    assert (expected,) in found
    kinds = [str(kind) for kind in connection.sql(relation(registration)).types]
    assert kinds == [types(registration)["x"]]


def test_polars_and_arrow() -> None:
    data = {"a": [1, None], "s": ["x", "y"], "f": [1.5, float("nan")], "l": [[1], [2]], "r": [{"k": 1}, {"k": 2}]}
    table = pa.table(data)
    for frame in (pl.DataFrame(data), pl.DataFrame(data).lazy(), table, table.to_batches()[0]):
        registration = register_frame(frame, "f")
        assert types(registration) == {"a": "BIGINT", "s": "VARCHAR", "f": "DOUBLE", "l": "OTHER", "r.k": "BIGINT"}
        assert rows(registration, frame) == [(1, "x", 1.5, None, 1), (None, "y", None, None, 2)]


def test_a_column_that_is_gone_is_missing() -> None:
    for make in (pd.DataFrame, pl.DataFrame):
        registration = register_frame(make({"a": [1], "b": [2]}), "f")
        assert rows(registration, make({"b": [3]})) == [(None, 3)]


def test_declared_types_win() -> None:
    frame = pd.DataFrame({"a": ["1", "x"]})
    registration = register_frame(frame, "f", types={"a": "BIGINT"})
    assert rows(registration, frame) == [(1,), (None,)]
    with pytest.raises(UsageError, match="no such column"):
        register_frame(frame, "f", types={"b": "BIGINT"})


def test_refusals() -> None:
    twice = pd.DataFrame([[1, 2]], columns=["a", "a"])
    with pytest.raises(SourceError, match=r"'a' appears twice \(positions 1 and 2\)"):
        register_frame(twice, "f")
    with pytest.raises(SourceError, match="is no pandas, Polars or Arrow table"):
        register_frame([1, 2], "f")
    with pytest.raises(SourceError, match="to_frame"):
        register_frame(pd.Series([1]), "f")
    with pytest.raises(SourceError, match="only once"):
        register_frame(pa.table({"a": [1]}).to_reader(), "f")
    with pytest.raises(UsageError, match="must not be empty"):
        register_frame(twice, " ")
    naive = pd.DataFrame({"t": pd.Series([DAY, DAY.replace(tzinfo=datetime.UTC)], dtype=object)})
    with pytest.raises(SourceError, match="times with a zone and times without"):
        register_frame(naive, "f")


def test_without_pyarrow_pandas_works_and_polars_names_the_extra() -> None:
    program = """
import sys
sys.modules["pyarrow"] = None
import pandas as pd, polars as pl
from discreet.engines.duckdb_connection import connect
from discreet.errors import SourceError
from discreet.sources import attach, register_frame, relation
from tests.source_rows import without_nan
frame = pd.DataFrame({"a": [1], "s": ["x"]})
registration = register_frame(frame, "f")
with connect() as connection:
    attach(connection, registration, frame)
    print(connection.execute(relation(registration)).fetchall())
try:
    register_frame(pl.DataFrame({"a": [1]}), "f")
except SourceError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "[(1, 'x')]" in done.stdout
    assert "discreet[frames]" in done.stdout


def test_importing_sources_imports_no_engine_and_no_frames() -> None:
    program = (
        "import sys, discreet.sources; print(sorted({'duckdb', 'pandas', 'polars', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_opening_again_tells_nothing_about_the_values(tmp_path: Path) -> None:
    """Whatever one person's value is or is missing, a registered frame opens, and others' values stay."""
    first = pd.DataFrame(
        {
            "o": pd.Series(["a", "b", "c"], dtype=object),
            "n": [1, 2, 3],
            "code": [1, 2, 3],
            "t": pd.Series([DAY] * 3, dtype=object),
            "c": pd.Categorical(["a", "b", "c"]),
        }
    )
    declared = {"code": "VARCHAR"}
    keep = {"ledger": str(tmp_path / "l"), "name": "f"}
    discreet.open(first, types=declared, **keep)
    stored = register_frame(first, "f", types=declared)
    odd: list[Any] = [1, 2.5, None, True, DAY.replace(tzinfo=datetime.UTC), [1], "x", Decimal("1.5")]
    for column in first:
        for value in odd:
            values = [*first[column].tolist()[:2], value]
            for dtype in (object, None):
                again = first.assign(**{str(column): pd.Series(values, dtype=dtype)})
                discreet.open(again, **keep)
                kept = [row for row in rows(stored, again) if row[0] in ("a", "b") or column == "o"][:2]
                assert len(kept) == 2
                if column in ("n", "code"):
                    # Also where pandas made doubles of all of them, because one is missing.
                    assert [row[1:3] for row in rows(stored, again)[:2]] == [(1, "1"), (2, "2")]
    for other in (first.iloc[:0], first.astype(object).iloc[:0], first[["n"]], first.rename(columns={"n": "N"})):
        discreet.open(other, **keep)
        assert len(rows(stored, other)) == len(other)
    with pytest.raises(UsageError, match="VARCHAR, fixed at registration"):
        discreet.open(first, types={"code": "BIGINT"}, **keep)
    with pytest.raises(UsageError, match="no such column"):
        discreet.open(first, types={"x": "BIGINT"}, **keep)


def test_records_that_became_something_else_are_missing() -> None:
    registration = register_frame(pa.table({"r": [{"k": 1}], "x": [1]}), "f")
    for column in ([1], [{"j": 1}], [None], [[1]]):
        assert rows(registration, pa.table({"r": column, "x": [2]})) == [(None, 2)]
    assert rows(registration, pa.table({"x": [2]})) == [(None, 2)]


def test_frames_that_cannot_be_read_say_why() -> None:
    for empty in (pd.DataFrame(index=range(3)), pl.DataFrame(), pa.table({})):
        with pytest.raises(SourceError, match="has no columns"):
            register_frame(empty, "f")
    for name, type_, value in (("float", pa.float16(), 1.5), ("decimal256", pa.decimal256(50, 2), Decimal("1.5"))):
        bad = pa.table({"a": [1], "b": pa.array([value], type_)})
        with pytest.raises(SourceError, match=f"'b' is .*{name}") as caught:
            register_frame(bad, "f")
        assert caught.value.__context__ is None
        registration = register_frame(pa.table({"a": [1], "b": [1.5]}), "f")
        with pytest.raises(SourceError, match="'b' is "):
            rows(registration, bad)
