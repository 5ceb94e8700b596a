"""Two listed keys are never one value to the engine: a row would count in both groups, beyond its sensitivity."""

from __future__ import annotations

import datetime
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import discreet
from discreet.errors import EngineError, UsageError
from discreet.relational import KeyTable
from discreet.schema import INTEGER, TIMESTAMP

START = pd.Timestamp("2024-01-01 10:00")
NEXT = START + pd.Timedelta(1, "ns")


@pytest.fixture
def data(tmp_path: Path) -> discreet.Dataset:
    frame = pd.DataFrame({"u": ["a", "a", "b"], "t": [START] * 3, "z": [START.tz_localize("UTC")] * 3, "x": [1, 2, 3]})
    return discreet.open(
        frame, name="visits", privacy_unit="u", max_contributions=2, budget="1000000000", ledger=tmp_path / "ledger"
    )


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("t", {"t": [START, NEXT]}),
        ("z", {"z": [START.tz_localize("UTC"), NEXT.tz_localize("UTC")]}),
        ("t, x", {("t", "x"): [(START, 1), (NEXT, 1)]}),
        ("t", pd.DataFrame({"t": [START, NEXT]})),
        ("t", pa.table({"t": pa.array([START.value, NEXT.value], pa.timestamp("ns"))})),
    ],
    ids=["list", "zoned", "combinations", "pandas", "arrow"],
)
def test_times_closer_than_a_microsecond_are_refused(data: discreet.Dataset, column: str, keys: object) -> None:
    before = data.balance()
    with pytest.raises(UsageError, match="microsecond"):
        data.query(f"SELECT {column}, COUNT(*) AS n FROM data GROUP BY {column}", epsilon=1, keys=keys)
    assert data.balance() == before


def test_a_subclass_of_a_plain_value_is_that_value(data: discreet.Dataset) -> None:
    plain = datetime.datetime(2024, 1, 1, 10)
    answer = data.query("SELECT t, COUNT(*) AS n FROM data GROUP BY t", epsilon="100000", keys={"t": [START, plain]})
    assert answer.to_dicts()[0]["t"] == plain
    assert (len(answer), answer["n"]) == (1, (3,))


def test_a_key_beyond_the_columns_width_is_refused_before_the_debit(data: discreet.Dataset) -> None:
    before = data.balance()
    with pytest.raises(UsageError, match="not a value of that type"):
        data.query("SELECT x, COUNT(*) AS n FROM data GROUP BY x", epsilon=1, keys={"x": [1, 2**70]})
    assert data.balance() == before


@pytest.mark.parametrize(
    "table",
    [
        KeyTable("keys0", (INTEGER,), ((1,), (1,))),
        KeyTable("keys0", (INTEGER,), ((None,), (None,))),
        KeyTable("keys0", (TIMESTAMP,), ((START,), (NEXT,))),
    ],
    ids=["equal", "missing", "equal after the cast"],
)
def test_the_engine_looks_again(data: discreet.Dataset, table: KeyTable) -> None:
    """A planted fault: whatever happened before, equal keys in the engine give no answer."""
    from discreet.engines.duckdb import _load_keys
    from discreet.engines.duckdb_connection import connect

    with connect() as connection, pytest.raises(EngineError, match="one and the same"):
        _load_keys(connection, table)
