"""The bar while a source is registered: it is true, it is the owner's, and a query never moves it."""

from __future__ import annotations

import gzip
import re
import shutil
from pathlib import Path

import duckdb
import pytest

import discreet
from discreet.sources.progress import telling
from test_manners import ASK, COUNT, all_of, terminal

ROWS = 3_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Large enough for a registration of more than a second (of about 130 MB)."""
    path = tmp_path_factory.mktemp("large") / "large.csv"
    duckdb.sql(
        f"COPY (SELECT range AS id, 'u' || (range % 1000) AS who, DATE '2024-01-01' + (range % 365)::INT AS day, "
        f"(range * 7919 % 100003) / 7 AS amount FROM range({ROWS})) TO '{path}' (HEADER)"
    )
    yield path
    path.unlink()


def test_what_is_told_is_how_far_it_is(large: Path, tmp_path: Path) -> None:
    told: list[tuple[str, float]] = []
    with telling(lambda part, share: told.append((part, share))):
        data = discreet.open(large, privacy_unit="who", max_contributions=5, budget=3, ledger=tmp_path / "l")
        registered = len(told)
        # In hand: a registered source. From here on rows are private.
        data.query(COUNT, epsilon=1)
        discreet.open(large, privacy_unit="who", max_contributions=5, ledger=tmp_path / "l").query(COUNT, epsilon=1)
    assert len(told) == registered
    parts = {part: [share for one, share in told if one == part] for part, _ in told}
    passes = sorted(part for part in parts if part.startswith("finding types"))
    assert passes == [f"finding types (pass {n})" for n in range(1, len(passes) + 1)] != []
    assert set(parts) == {"reading", *passes, "fingerprint"}
    assert all(0 < share <= 1 for _, share in told)
    size = large.stat().st_size
    for part in ("reading", "fingerprint"):
        rounds = "".join("|" if b < a else "." for a, b in zip(parts[part], parts[part][1:], strict=False)).split("|")
        assert max(parts[part]) == 1
        assert all(len(one) + 1 == pytest.approx(size / 2**20, abs=2) for one in rounds if len(one) > 2)
    assert len({share for part in passes for share in parts[part]}) > 3
    assert all(parts[part] == sorted(parts[part]) for part in passes)


def test_packed_files_are_measured_as_they_lie(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(b"id,x\n" + b"1,2\n" * 300_000, 1))
    told: list[float] = []
    with telling(lambda part, share: told.append(share) if part == "reading" else None):
        discreet.open(str(tmp_path / "*.csv.gz"), row_level=True, budget=3, ledger=tmp_path / "l")
    assert told[-1] == 1
    assert any(0 < share < 0.9 for share in told)


def test_a_file_that_goes_away_meanwhile(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "a.csv").write_text("id,x\n1,2\n")
    with (
        telling(lambda part, share: shutil.rmtree(folder, ignore_errors=True)),
        pytest.raises(discreet.SourceError, match="days"),
    ):
        discreet.open(folder, row_level=True, budget=3, ledger=tmp_path / "l")


def test_the_bar_at_a_terminal(large: Path, tmp_path: Path) -> None:
    shown = all_of(terminal(tmp_path / "l", "query", str(large), COUNT, *ASK))
    bars = re.findall(
        r"\r\x1b\[K\S opening the source, finding types \(pass \d\)  (━*)(╌*) +(\d+) %: [1-9]\d* s", shown
    )
    assert bars, shown
    assert all(len(full) + len(empty) == 20 and len(full) == int(share) // 5 for full, empty, share in bars)
    assert not re.search(r"(charging|reading the rows)[^\r]*%", shown)
    assert "95 % interval" in shown


@pytest.mark.parametrize("way", ["--quiet", "dumb"])
def test_where_no_bar_belongs(large: Path, tmp_path: Path, way: str) -> None:
    quiet, more = (["--quiet"], {}) if way == "--quiet" else ([], {"TERM": "dumb"})
    shown = all_of(terminal(tmp_path / "l", "query", str(large), COUNT, *ASK, *quiet, **more))
    assert "finding types" not in shown
    assert "95 % interval" in shown


@pytest.mark.parametrize("columns", [20, 45])
def test_a_narrow_terminal_keeps_one_line(large: Path, tmp_path: Path, columns: int) -> None:
    """A line that wraps would not be taken away, and fill the screen ten times a second."""
    shown = all_of(terminal(tmp_path / "l", "query", str(large), COUNT, *ASK, columns=columns))
    lines = re.findall(r"\r\x1b\[K([^\r\n]+)", shown)
    turning = [line for line in lines if "opening" in line]
    assert turning
    assert all(len(line) < columns for line in turning)
    assert any("finding" in line for line in turning) is (columns == 45)
