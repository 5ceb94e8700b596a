"""Where answers go: files that appear whole or not at all, and are known to be writable before the debit."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from discreet.dataset import Dataset

COUNT = "SELECT COUNT(*) AS n FROM data"
ASK = (COUNT, "--unit", "who", "--max-contributions", "10", "--epsilon", "0.1", "--budget", "1")


def spent(discreet, source: Path) -> str | None:
    document = json.loads(discreet("budget", str(source), "--format", "json").out)
    return document["spent"] and document["spent"]["epsilon"]


def left_over(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.part")] + [path.name for path in folder.glob(".*.part")]


def test_a_file_holds_what_stdout_would(discreet, visits, tmp_path):
    target = tmp_path / "answer.json"
    target.write_text("old, and much longer than what is new " * 100)
    target.chmod(0o640)
    done = discreet("query", str(visits), *ASK, "--format", "json", "-o", str(target))
    assert (done.code, done.out) == (0, "")
    assert list(json.loads(target.read_text())[0]) == ["n", "n_low", "n_high"]
    assert target.stat().st_mode & 0o777 == 0o640
    assert left_over(tmp_path) == []
    fresh = tmp_path / "fresh.md"
    mask = os.umask(0o027)
    try:
        assert discreet("query", str(visits), *ASK, "--format", "markdown", "--output", str(fresh)).code == 0
    finally:
        os.umask(mask)
    assert fresh.read_text().startswith("| n |")
    assert fresh.stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed(discreet, visits, tmp_path):
    target, link = tmp_path / "answer.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    assert discreet("query", str(visits), *ASK, "--format", "csv", "-o", str(link)).code == 0
    assert link.is_symlink()
    assert target.read_text().startswith("n,n_low,n_high\n")


def test_a_dash_and_a_device_are_written_in_place(discreet, visits):
    assert discreet("query", str(visits), *ASK, "--format", "csv", "-o", "-").out.startswith("n,")
    assert discreet("query", str(visits), *ASK, "--format", "csv", "-o", os.devnull).code == 0


@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize(
    ("place", "code", "words"),
    [
        ("{tmp}/missing/answer.csv", 1, "cannot be written (no such file or directory)"),
        ("{tmp}", 1, "is a folder"),
        ("{tmp}/visits.csv/answer.csv", 1, "cannot be written (not a directory)"),
        ("{tmp}/" + "x" * 300, 1, "cannot be written (file name too long)"),
        ("", 2, "must be the path of a file"),
        ("{tmp}/visits.csv", 2, "must not be the source"),
        ("{tmp}/hard.csv", 2, "must not be the source"),
        ("{tmp}/state/ledger.sqlite", 2, "must not be the ledger"),
    ],
)
def test_places_that_cannot_be_written_are_told_before_the_debit(
    discreet, visits, tmp_path, option, place, code, words
):
    (tmp_path / "hard.csv").hardlink_to(visits)
    before = visits.read_bytes()
    done = discreet("query", str(visits), *ASK, option, place.replace("{tmp}", str(tmp_path)))
    assert done.code == code, done.err
    assert words in done.error()
    assert spent(discreet, visits) is None  # not even the budget was set
    assert visits.read_bytes() == before
    assert left_over(tmp_path) == []


def test_output_and_report_must_differ(discreet, visits, tmp_path):
    path = str(tmp_path / "both.json")
    done = discreet("query", str(visits), *ASK, "-o", path, "--report", path)
    assert done.code == 2
    assert "must not be the --output file" in done.error()
    done = discreet("query", str(visits), *ASK, "--report", "-")
    assert done.code == 2
    assert spent(discreet, visits) is None


def test_a_refused_query_leaves_the_old_file(discreet, visits, tmp_path):
    target = tmp_path / "answer.csv"
    target.write_text("old")
    done = discreet("query", str(visits), *ASK[:-2], "-o", str(target))
    assert done.code == 3
    assert target.read_text() == "old"
    assert left_over(tmp_path) == []


@pytest.mark.parametrize("option", ["-o", "--report"])
def test_a_place_that_goes_away_after_the_debit(discreet, visits, tmp_path, monkeypatch, option):
    folder = tmp_path / "results"
    folder.mkdir()
    answered = Dataset.answer

    def answer(self, *arguments, **keywords):
        shutil.rmtree(folder)
        return answered(self, *arguments, **keywords)

    monkeypatch.setattr(Dataset, "answer", answer)
    done = discreet("query", str(visits), *ASK, option, str(folder / "answer.json"))
    assert done.code == 1
    assert "could not be written (no such file or directory)" in done.error()
    again = f"discreet budget {visits} --format json shows it"
    assert f"the answer was charged, and is kept in the ledger as entry 3: {again}" in done.err
    assert json.loads(discreet(*again.split()[1:-2]).out)["history"][2]["answer"]["rows"]


def test_parquet(discreet, visits, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "answer.parquet"
    asked = ("query", str(visits), *ASK, "--format", "parquet")
    done = discreet(*asked, "-o", str(path))
    assert done.code == 0, done.err
    assert done.out == ""
    assert pq.read_table(path).column_names == ["n", "n_low", "n_high"]
    assert discreet("query", str(visits), *ASK, "--format", "xlsx", "-o", str(path)).code == 2
