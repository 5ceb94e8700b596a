"""docs/policy.md: its whole policy is loaded, checked and asked by; every key of a policy stands on the page."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command import Command
from discreet.errors import PolicyError
from discreet.policy import load_policy, parse_policy
from docs_pages import blocks

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "policy.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, discreet: Command) -> Path:
    """The page's policy beside the examples that it names."""
    (whole,) = [block.text for block in blocks(PAGE) if block.language == "toml"]
    place = tmp_path / "page"
    place.mkdir()
    (place / "discreet.toml").write_text(whole, encoding="utf-8")
    (place / "examples").symlink_to(ROOT / "examples")
    (place / "departments.txt").write_text("cardiology\ndermatology\noncology\nsurgery\n")
    monkeypatch.chdir(place)
    return place


def test_the_whole_policy_holds_and_answers(discreet: Command, folder: Path) -> None:
    """`check` finds no fault in it, and each of its data sets is asked by it, with nothing else said."""
    done = discreet("check")
    assert done.code == 0, done.err
    assert done.err.splitlines()[-1] == "policy discreet.toml has no faults"
    asked = ("query", "--format", "json", "--analyst", "ann")
    done = discreet(*asked, "SELECT action, COUNT(*) AS n, AVG(lag_s) AS lag FROM commits GROUP BY action")
    assert done.code == 0, done.err
    assert [row["action"] for row in json.loads(done.out)] == ["A", "M", "D"]
    done = discreet(*asked, "SELECT department, AVG(minutes) AS m FROM visits GROUP BY department")
    assert done.code == 0, done.err
    assert [row["department"] for row in json.loads(done.out)] == ["cardiology", "dermatology", "oncology", "surgery"]
    assert discreet(*asked, "SELECT COUNT(*) AS n FROM commits WHERE committer = 'x'").code == 4
    done = discreet("query", "SELECT COUNT(*) AS n FROM commits", "--analyst", "bob b", "--epsilon", "0.6")
    assert done.code == 3
    assert "share of analyst 'bob b'" in done.error()
    assert discreet("check").code == 0


def known_keys() -> dict[str, set[str]]:
    """What each table of a policy takes: as its own fault on an unknown key lists it."""
    name = "zzzzzzzzzzzz"
    text = f"""
        {name} = 1
        [budgets.b]
        epsilon = 1
        {name} = 1
        [datasets.d]
        source = "d.csv"
        row_level = true
        budget = "b"
        {name} = 1
        [datasets.d.columns.c]
        {name} = 1
    """
    with pytest.raises(PolicyError) as refused:
        parse_policy(text, Path("/p.toml"))
    found = {}
    for fault in refused.value.faults:
        table = fault.thing.removesuffix(name).rstrip(".")
        found[table] = set(fault.hint.removeprefix("known here: ").split(", "))
    return found


def test_every_key_stands_on_the_page() -> None:
    """In the first cell of a row of its table; and the page names none that a policy would refuse."""
    tables = known_keys()
    assert set(tables) == {"", "budgets.b", "datasets.d", "datasets.d.columns.c"}
    text = PAGE.read_text(encoding="utf-8")
    parts = dict(re.findall(r"^##+ (.+?)\n(.*?)(?=^##|\Z)", text, re.DOTALL | re.MULTILINE))
    for table, heading in (
        ("budgets.b", "A budget"),
        ("datasets.d", "A data set"),
        ("datasets.d.columns.c", "A column"),
    ):
        cells = [row.split("|")[1] for row in parts[heading].splitlines() if row.startswith("| `")]
        said = {key for cell in cells for key in re.findall(r"`([a-z_]+)`", cell)}
        assert said | {"columns"} == tables[table] | {"columns"}, table
    assert tables[""] == {"ledger", "budgets", "datasets"}
    assert all(f"`{key}" in parts["What may be said"] for key in ("ledger", "[budgets.", "[datasets."))


def test_the_page_shows_most_of_them_in_use(folder: Path) -> None:
    """Each budget key, each column key; of reading, some."""
    text = (folder / "discreet.toml").read_text(encoding="utf-8")
    used = set(re.findall(r"^([a-z_]+) =", text, re.MULTILINE))
    tables = known_keys()
    for table in ("budgets.b", "datasets.d.columns.c"):
        assert tables[table] <= used, tables[table] - used
    assert len(load_policy("discreet.toml").datasets) == 2
