"""What several test modules share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import Command
from ledger_places import place, places
from postgres_server import postgres_server, postgres_url
from spark_session import spark

__all__ = ["place", "places", "postgres_server", "postgres_url", "spark"]

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real logs and tables: DISCREET_SHARED_DATA, else `shared/data` beside the repository.

    They are too large for the repository, so whoever has only that skips these tests and is told so. In CI, where
    they lie beside it, a skipped proof would be none: there their absence is a failure.
    """
    named = os.environ.get("DISCREET_SHARED_DATA")
    candidates = [Path(named)] if named else [ROOT.parent / "shared" / "data", ROOT.parents[1] / "shared" / "data"]
    for candidate in candidates:
        if candidate.is_dir():
            return candidate
    missing = "the folder of real data is missing: set DISCREET_SHARED_DATA"
    if named or os.environ.get("CI"):
        pytest.fail(missing)
    pytest.skip(missing)


@pytest.fixture(scope="session", autouse=True)
def no_ledger_but_the_tests_own(tmp_path_factory) -> Iterator[None]:
    """A test that names no ledger must not write to that of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DISCREET_LEDGER", raising=False)
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def discreet(tmp_path, capfd, monkeypatch) -> Command:
    """The command line, with an empty ledger of its own."""
    ledger = tmp_path / "state" / "ledger.sqlite"
    monkeypatch.setenv("DISCREET_LEDGER", str(ledger))
    return Command(ledger, capfd)


@pytest.fixture
def visits(tmp_path) -> Path:
    """Three persons with 1, 2 and 3 visits; 'minutes' holds 1 to 6."""
    path = tmp_path / "visits.csv"
    path.write_text("who,ward,minutes\nann,A,1\nbob,A,2\nbob,B,3\ncid,A,4\ncid,B,5\ncid,,6\n")
    return path
