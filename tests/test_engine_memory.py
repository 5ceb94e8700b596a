"""DISCREET_MEMORY_LIMIT: the engine keeps to it, and a wrong one is refused before the debit."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from discreet.engines.duckdb_connection import connect
from discreet.errors import UsageError

VISITS = "who,minutes\n" + "".join(f"p{i % 50},{i % 60}\n" for i in range(500))


def test_the_engine_keeps_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DISCREET_MEMORY_LIMIT", "512MB")
    with connect() as connection:
        assert connection.execute("SELECT current_setting('memory_limit')").fetchall() == [("488.2 MiB",)]


@pytest.mark.parametrize("limit", ["lots", "0GB", "-1GB", "2", "80%", "1GB; DROP TABLE t", "1e9"])
def test_a_wrong_one_is_refused_before_the_debit(limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "visits.csv"
    file.write_text(VISITS)
    data = discreet.open(file, privacy_unit="who", max_contributions=5, budget="1", ledger=tmp_path / "l.sqlite")
    monkeypatch.setenv("DISCREET_MEMORY_LIMIT", limit)
    with pytest.raises(UsageError, match=r"^DISCREET_MEMORY_LIMIT: must be a size such as 2GB or 512MB"):
        data.query("SELECT COUNT(*) AS n FROM data", epsilon="0.5")
    monkeypatch.setenv("DISCREET_MEMORY_LIMIT", "1GB")
    assert data.query("SELECT COUNT(*) AS n FROM data", epsilon="0.5").left.epsilon == Fraction(1, 2)
