"""The connection that is opened while a query is compiled and debited: one a query, and nothing of it is left."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

import discreet
from discreet.engines.duckdb import DuckDBEngine
from discreet.engines.duckdb_connection import OpenedAhead
from discreet.errors import BudgetError, EngineError, UsageError


@pytest.fixture
def private_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of this test alone."""
    found = tmp_path / "temp"
    found.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(found))
    return found


@pytest.fixture
def visits_data(visits: Path, tmp_path: Path) -> Any:
    ledger = tmp_path / "ledger.sqlite"
    return discreet.open(visits, privacy_unit="who", max_contributions=3, budget=(1, "0.009"), ledger=ledger)


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("discreet-duckdb")]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every connection that is made."""
    made: list[Any] = []
    real = duckdb.connect

    def connect(*arguments: Any, **options: Any) -> Any:
        made.append(real(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(duckdb, "connect", connect)
    return made


def is_closed(connection: Any) -> bool:
    try:
        connection.execute("SELECT 1")
    except duckdb.ConnectionException:
        return True
    return False


QUERY = "SELECT COUNT(*) AS n FROM data"


def test_one_connection_a_query_and_none_is_left(visits_data: Any, private_temp: Path, opened: list[Any]) -> None:
    visits_data.query(QUERY, epsilon="0.1")
    assert len(opened) == 1
    assert is_closed(opened[0])
    visits_data.query("SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", epsilon="0.1", delta="0.001")
    assert len(opened) == 2
    assert is_closed(opened[1])
    assert threads() == []
    assert list(private_temp.iterdir()) == []


def test_a_replay_and_a_refusal_open_none(visits_data: Any, opened: list[Any]) -> None:
    visits_data.query(QUERY, epsilon="0.1")
    assert visits_data.query(QUERY, epsilon="0.1").replayed
    with pytest.raises(UsageError):
        visits_data.query("SELECT COUNT(nothing) AS n FROM data", epsilon="0.1")
    assert len(opened) == 1


def test_it_is_closed_when_the_budget_refuses(visits_data: Any, private_temp: Path, opened: list[Any]) -> None:
    with pytest.raises(BudgetError):
        visits_data.query(QUERY, epsilon=2)
    assert [is_closed(connection) for connection in opened] == [True]
    assert threads() == []
    assert list(private_temp.iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, RuntimeError("Query interrupted")])
def test_it_is_closed_when_the_reading_fails(
    visits_data: Any, private_temp: Path, opened: list[Any], monkeypatch: pytest.MonkeyPatch, error: Any
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr("discreet.engines.duckdb.attach", fail)
    with pytest.raises(EngineError if error is MemoryError else KeyboardInterrupt):
        visits_data.query(QUERY, epsilon="0.1")
    assert [is_closed(connection) for connection in opened] == [True]
    assert threads() == []
    assert list(private_temp.iterdir()) == []


def test_no_folder_to_spill_into_is_the_engine_s_failure(
    visits_data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told once the cost is on the disk, as any failure of the engine, without its text."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(EngineError, match="could not run the query") as caught:
        visits_data.query(QUERY, epsilon="0.1")
    assert caught.value.__cause__ is None
    assert threads() == []


def test_a_second_session_opens_its_own(visits_data: Any, opened: list[Any]) -> None:
    engine = DuckDBEngine(visits_data.registration)
    with engine.ahead(), engine.session([0]), engine.session([0]):
        assert len(opened) == 2
    assert [is_closed(connection) for connection in opened] == [True, True]
    with engine.session([0]):
        assert len(opened) == 3


def test_queries_of_several_threads_have_one_each(visits_data: Any, private_temp: Path, opened: list[Any]) -> None:
    failed: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(3):
                visits_data.query(QUERY, epsilon="0.01", fresh=True)
        except BaseException as error:  # noqa: BLE001 - told by the assertion below
            failed.append(error)

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert failed == []
    assert len(opened) == 12
    assert all(is_closed(connection) for connection in opened)
    assert threads() == []
    assert list(private_temp.iterdir()) == []


def test_where_no_thread_can_be_started_all_is_done_in_turn(
    visits_data: Any, private_temp: Path, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        visits_data.query(QUERY, epsilon="0.1")
    assert [is_closed(connection) for connection in opened] == [True]
    assert list(private_temp.iterdir()) == []


def test_a_query_while_the_interpreter_ends(visits: Path, tmp_path: Path) -> None:
    """Then no thread can be started any more."""
    script = f"""
import atexit, discreet
data = discreet.open({str(visits)!r}, privacy_unit="who", max_contributions=3, budget=1,
                     ledger={str(tmp_path / "ledger.sqlite")!r})
atexit.register(lambda: print(data.query({QUERY!r}, epsilon="0.1").cost.epsilon))
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("1/10\n", "", 0)
    assert list(tmp_path.glob("discreet-*")) == []


def test_it_is_empty_until_it_is_lent() -> None:
    with OpenedAhead() as ahead, ahead.lend() as connection:
        assert connection.execute("SELECT count(*) FROM duckdb_tables()").fetchone() == (0,)
        assert connection.execute("SELECT current_setting('TimeZone')").fetchone() == ("UTC",)
        assert connection.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchone() == (0,)
