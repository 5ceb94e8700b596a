"""Asking by the owner's policy on the command line: found, said, narrowed, never widened, never gone around."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command import Command
from discreet.ledger import Kind, Ledger

POLICY = """
ledger = "books/ledger.sqlite"

[budgets.people]
epsilon = 300
delta = 1e-6
default_epsilon = 50
max_epsilon_per_query = 100
max_epsilon_per_analyst = 120
analysts = { ann = 250 }
unit = "aircraft"

[datasets.flights]
source = "flights.csv"
privacy_unit = "tail"
max_contributions = 80
max_groups_contributed = 3
budget = "people"
[datasets.flights.columns.delay]
type = "DOUBLE"
lower = 0
upper = 100
[datasets.flights.columns.carrier]
public_values_file = "carriers.txt"
[datasets.flights.columns.pilot]
forbidden = true

[datasets.repairs]
source = "repairs.csv"
privacy_unit = "aircraft"
max_contributions = 5
budget = "people"
"""
COUNT = "SELECT COUNT(*) AS n FROM flights"
BY = "SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, discreet: Command) -> Path:
    """The owner's folder, and we are in it. The ledger of the environment is another than the policy's."""
    place = tmp_path / "owner"
    place.mkdir()
    rows = "".join(f"t{i % 50},{'AUD'[i % 3]},{i % 90},p{i}\n" for i in range(600))
    (place / "flights.csv").write_text("tail,carrier,delay,pilot\n" + rows)
    (place / "repairs.csv").write_text("aircraft,cost\n" + "".join(f"t{i % 50},{i}\n" for i in range(100)))
    (place / "carriers.txt").write_text("U\nA\nD\n")
    (place / "discreet.toml").write_text(POLICY)
    monkeypatch.chdir(place)
    monkeypatch.delenv("DISCREET_POLICY", raising=False)
    return place


def debits(folder: Path) -> list[object]:
    ledger = folder / "books" / "ledger.sqlite"
    if not ledger.exists():
        return []
    with Ledger(ledger) as book:
        return [entry for entry in book.history("budget:people") if entry.kind is Kind.DEBIT]


# --- what is enough ----------------------------------------------------------------------------------------


def test_a_question_alone_is_enough(discreet: Command, folder: Path) -> None:
    """Issue 4: with a policy, `discreet query "SELECT ..."` needs nothing else; which policy it was is said."""
    done = discreet("query", BY, "--format", "json")
    assert done.code == 0, done.err
    assert [row["carrier"] for row in json.loads(done.out)] == ["U", "A", "D"]
    lines = done.err.splitlines()
    assert lines[0] == "policy: discreet.toml in this folder"
    assert "spent: epsilon 50; left: epsilon 250, delta 0.000001" in lines
    assert any(line.startswith("privacy unit: tail (per tail)") for line in lines)
    assert (folder / "books" / "ledger.sqlite").exists()
    assert not discreet.ledger.exists()


def test_where_the_policy_is_found(discreet: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """--policy, else DISCREET_POLICY, else discreet.toml here; each is said."""
    elsewhere = folder.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    done = discreet("query", COUNT)
    assert done.code == 2
    assert "SOURCE: is missing, and there is no policy" in done.error()
    named = str(folder / "discreet.toml")
    done = discreet("estimate", COUNT, "--policy", named)
    assert (done.code, done.err.splitlines()[0]) == (0, f"policy: {named} (--policy)")
    (elsewhere / "discreet.toml").write_text("[datasets.x]\nsource = 'no.csv'\nrow_level = true\nbudget.epsilon = 1\n")
    assert "is not in discreet.toml; there are x" in discreet("estimate", COUNT).error()
    monkeypatch.setenv("DISCREET_POLICY", named)
    done = discreet("estimate", COUNT)
    assert (done.code, done.err.splitlines()[0]) == (0, f"policy: {named} (DISCREET_POLICY)")
    monkeypatch.setenv("DISCREET_POLICY", "gone.toml")
    assert "there is no such file (got 'gone.toml')" in discreet("estimate", COUNT).error()
    monkeypatch.setenv("DISCREET_POLICY", "")
    assert "there are x" in discreet("estimate", COUNT).error()


@pytest.mark.parametrize("words", [(COUNT,), ("flights", COUNT), ("flights.csv", COUNT), ("./flights.csv", COUNT)])
def test_a_data_set_by_its_name_and_by_its_place(discreet: Command, folder: Path, words: tuple[str, ...]) -> None:
    done = discreet("estimate", *words)
    assert done.code == 0, done.err
    assert "would cost: epsilon 50; would leave: epsilon 250" in done.err
    assert "limits: max_contributions 80" in done.err


def test_from_names_the_data_set(discreet: Command, folder: Path) -> None:
    assert discreet("estimate", "SELECT COUNT(*) FROM repairs").code == 0
    assert (
        "must name one of the policy's data sets: flights, repairs"
        in discreet("estimate", "SELECT COUNT(*) FROM data").error()
    )
    assert "did you mean 'flights'?" in discreet("estimate", "SELECT COUNT(*) FROM flihgts").error()
    assert "the table is called data or flights" in discreet("estimate", "flights", "SELECT COUNT(*) FROM repairs").err
    (folder / "discreet.toml").write_text(POLICY[: POLICY.index("[datasets.repairs]")])
    assert discreet("estimate", "SELECT COUNT(*) FROM data").code == 0


def test_what_is_no_data_set_is_asked_without_the_policy(discreet: Command, folder: Path, visits: Path) -> None:
    """Unless the policy was named for it."""
    ask = ("query", str(visits), "SELECT COUNT(*) FROM visits", "--row-level", "--epsilon", "1", "--budget", "1")
    assert f"{visits} is none of its data sets, and is asked without it" in discreet(*ask).err
    done = discreet(*ask, "--policy", "discreet.toml")
    assert done.code == 2
    assert "is not in discreet.toml; there are flights, repairs" in done.error()
    assert discreet.ledger.exists()


@pytest.mark.parametrize(("words", "told"), [(("flights.csv",), "SQL: is missing"), ((), "missing argument")])
def test_a_missing_word_is_named(discreet: Command, folder: Path, words: tuple[str, ...], told: str) -> None:
    done = discreet("query", *words)
    assert done.code == 2
    assert told in done.error()


# --- narrowed, not widened -----------------------------------------------------------------------------------


def test_an_analyst_may_narrow(discreet: Command, folder: Path) -> None:
    ask = "SELECT carrier, SUM(delay) AS s, COUNT(DISTINCT tail) AS u FROM flights GROUP BY carrier"
    more = (
        "--max-contributions", "10", "--max-groups-contributed", "1", "--bounds", "delay=5..50", "--keys", "carrier=D",
        "--epsilon", "1", "--unit", "tail", "--report", "r.json",
    )  # fmt: skip
    done = discreet("query", ask, *more)
    assert done.code == 0, done.err
    report = json.loads((folder / "r.json").read_text())
    assert report["limits"] == {"max_contributions": 10, "max_groups_contributed": 1}
    assert report["measurements"][0]["bounds"] == ["5", "50"]
    assert [row["carrier"] for row in report["rows"]] == ["D"]


@pytest.mark.parametrize(
    ("sql", "more", "code", "told"),
    [
        (COUNT, ("--max-contributions", "81"), 2, r"at most 80, the owner's limit \(datasets.flights.max_contributio"),
        (COUNT, ("--max-groups-contributed", "4"), 2, r"at most 3, the owner's limit"),
        (COUNT, ("--epsilon", "101"), 3, r"at most 100 by the owner's policy \(max_epsilon_per_query\)"),
        (COUNT, ("--unit", "carrier"), 2, r"is tail, by the owner's policy \(datasets.flights.privacy_unit\)"),
        (COUNT, ("--row-level",), 2, r"the privacy unit is tail"),
        (COUNT, ("--budget", "301"), 2, r"is epsilon 300, by the owner's policy \(budgets.people\)"),
        (COUNT, ("--budget", "300", "--budget-delta", "1e-5"), 2, r"is epsilon 300.*by the owner's policy"),
        (COUNT, ("--ledger", "mine.sqlite"), 2, r"ledger.sqlite, by the owner's policy \(discreet.toml\)"),
        (COUNT, ("--types", "delay=BIGINT"), 2, "types: is declared in the policy"),
        (COUNT, ("--delimiter", ";"), 2, "delimiter: is declared in the policy"),
        ("SELECT SUM(delay) FROM flights", ("--bounds", "delay=0..101"), 2, r"owner's, 0\.\.100 \(datasets.*0\.\.101"),
        (BY, ("--keys", "carrier=U,X"), 2, r"owner's public values, U, A, D .*got 'X'"),
        ("SELECT COUNT(*) FROM flights WHERE pilot = 'p1'", (), 4, r"may not be asked about.*columns.pilot.forbidden"),
        ("SELECT tail, COUNT(*) FROM flights GROUP BY tail", ("--delta", "1e-7"), 4,
         r"the owner's policy does not allow \(datasets.flights.unknown_groups\)"),
        (COUNT, ("--analyst", " "), 2, "--analyst: must be a name"),
    ],
)  # fmt: skip
def test_every_attempt_to_widen_names_the_owners_value(
    discreet: Command, folder: Path, sql: str, more: tuple[str, ...], code: int, told: str
) -> None:
    """Before anything is charged."""
    done = discreet("query", sql, *more)
    assert done.code == code, done.err
    assert re.search(told, done.error()), done.err
    assert debits(folder) == []
    assert not (folder / "mine.sqlite").exists()


def test_the_share_of_an_analyst(discreet: Command, folder: Path) -> None:
    """By name, of the whole shared budget; told before, refused when it is used up."""
    assert discreet("query", COUNT, "--analyst", "bob", "--epsilon", "100").code == 0
    done = discreet("estimate", COUNT, "--analyst", "bob")
    assert "left of the share of analyst 'bob': epsilon 20; the query would be refused" in done.err
    assert "fit into the budget" not in done.err
    done = discreet("query", "SELECT COUNT(*) FROM repairs", "--analyst", "bob")
    assert done.code == 3
    assert "share of analyst 'bob'" in done.error() and "left: epsilon 20" in done.err
    done = discreet("estimate", COUNT, "--analyst", "ann")
    assert "left of the share of analyst 'ann': epsilon 250\n" in done.err
    assert "about 4 like this one fit into the budget" in done.err
    (folder / "discreet.toml").write_text(POLICY.replace("max_epsilon_per_analyst = 120\n", ""))
    done = discreet("query", COUNT, "--analyst", "bob")
    assert done.code == 3
    assert "analyst 'bob': has no share of the budget: budgets.people.analysts does not name this one" in done.error()


def test_who_asks_is_the_account_unless_named(discreet: Command, folder: Path) -> None:
    discreet("query", COUNT, "--analyst", "ann")
    discreet("query", COUNT, "--epsilon", "1")
    ann, other = debits(folder)
    assert (ann.analyst, other.analyst != "ann") == ("ann", True)


def test_a_window_is_named_when_it_is_spent(discreet: Command, folder: Path) -> None:
    text = POLICY.replace("epsilon = 300", 'epsilon = 60\nbudget_window = "monthly"', 1)
    for old in ("max_epsilon_per_query = 100\n", "max_epsilon_per_analyst = 120\n", "analysts = { ann = 250 }\n"):
        text = text.replace(old, "")
    (folder / "discreet.toml").write_text(text)
    assert discreet("query", COUNT).code == 0
    done = discreet("query", COUNT, "--fresh")
    assert done.code == 3
    assert re.search(r"is epsilon 60, delta 0\.000001 in \d{4}-\d\d; .*begins anew after", done.error())


def test_groups_chosen_from_the_data_where_the_owner_allows_them(discreet: Command, folder: Path) -> None:
    (folder / "discreet.toml").write_text(
        POLICY.replace("max_groups", "unknown_groups = true\nmax_groups", 1).replace(
            "delta", "default_delta = 1e-7\ndelta", 1
        )
    )
    done = discreet("query", "SELECT LOWER(carrier) AS c, COUNT(*) AS n FROM flights GROUP BY c", "--format", "csv")
    assert done.code == 0, done.err
    assert "left: epsilon 250, delta 0.0000009" in done.err


# --- not gone around -----------------------------------------------------------------------------------------


def test_a_declared_source_is_asked_by_its_policy_only(
    discreet: Command, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """From another folder, by its path and the same ledger."""
    assert discreet("query", COUNT).code == 0
    monkeypatch.chdir(tmp_path)
    ledger = ("--ledger", str(folder / "books" / "ledger.sqlite"))
    for verb in ("query", "estimate"):
        done = discreet(verb, str(folder / "flights.csv"), COUNT, "--row-level", "--epsilon", "1", *ledger)
        assert done.code == 2
        assert "asked through its owner's policy only, where it is called flights" in done.error()
    assert len(debits(folder)) == 1


def test_a_policy_with_faults_stops_every_command(discreet: Command, folder: Path, visits: Path) -> None:
    """All at once; nothing is read."""
    (folder / "discreet.toml").write_text(
        POLICY.replace("epsilon = 300", "epsilon = 0").replace('tail"', 'tail"\nx = 1')
    )
    for arguments in (
        ("query", COUNT),
        ("estimate", COUNT),
        ("budget", "flights"),
        ("query", str(visits), "SELECT COUNT(*) FROM data"),
    ):
        done = discreet(*arguments)
        assert done.code == 2
        assert "policy discreet.toml has 2 faults; nothing was charged:" in done.err
        assert "  datasets.flights.x: is not a key" in done.err
    assert not (folder / "books").exists()


# --- answers are written over nothing that is read ---------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("discreet.toml", "must not be the policy: it would be written over"),
        ("carriers.txt", "must not be the policy's carriers.txt"),
        ("books/ledger.sqlite", "must not be the ledger"),
        ("flights.csv", "must not be the source's flights.csv"),
        ("link.toml", "must not be the policy"),
        ("plans/new.csv", "must not be in the folder or of the pattern of what is read"),
        ("plans/a.csv", "must not be a file of the public table plans"),
    ],
)
def test_answers_are_written_over_nothing_that_is_read(discreet: Command, folder: Path, output: str, told: str) -> None:
    (folder / "plans").mkdir()
    (folder / "plans" / "a.csv").write_text("id,name\n1,x\n")
    (folder / "link.toml").symlink_to("discreet.toml")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = discreet("query", COUNT, "--public", "plans=plans", "-o", output)
    assert done.code == 2
    assert told in done.error()
    assert debits(folder) == []
    assert {path: path.read_bytes() for path in before} == before
    assert [path.name for path in (folder / "plans").iterdir()] == ["a.csv"]


# --- the budget ----------------------------------------------------------------------------------------------


def test_the_budget_of_a_data_set_and_of_all(discreet: Command, folder: Path) -> None:
    """By either name; with one budget, without a name. Looking makes no ledger."""
    assert "does not exist" in discreet("budget", "flights").error()
    assert not (folder / "books").exists()
    discreet("query", COUNT, "--analyst", "ann")
    discreet("query", "SELECT COUNT(*) FROM repairs", "--analyst", "ann")
    for words in (("flights",), ("people",), ("flights.csv",), ()):
        done = discreet("budget", *words)
        assert done.code == 0, done.err
        assert "spent         epsilon 100, queries: 2" in done.out
        assert "left          epsilon 200, delta 0.000001 (about 4 more queries of epsilon 50)" in done.out
    of_all, of_one = (discreet("budget", name).out for name in ("people", "repairs"))
    assert "FROM flights" in of_all and "FROM repairs" in of_all
    assert "FROM flights" not in of_one and "FROM repairs" in of_one
    assert "did you mean 'flights'?" in discreet("budget", "flight", "--policy", "discreet.toml").error()


def test_the_owner_raises_the_budget_in_the_policy(discreet: Command, folder: Path) -> None:
    """Written there first, then put in force; until then every question says how."""
    discreet("query", COUNT)
    raised = discreet("budget", "raise", "people")
    assert "budget: is epsilon 300, delta 0.000001 already, as the policy says" in raised.error()
    raised = discreet("budget", "raise", "people", "--budget", "400")
    assert "budgets.people.epsilon: is 300 in the policy, which counts" in raised.error()
    (folder / "discreet.toml").write_text(POLICY.replace("epsilon = 300", "epsilon = 400").replace("1e-6", "2e-6"))
    done = discreet("query", COUNT)
    assert done.code == 2
    assert "`discreet budget raise people` raises it to what the policy says" in done.err
    raised = discreet("budget", "raise", "flights", "--budget", "400", "--budget-delta", "2e-6")
    assert raised.code == 0, raised.err
    assert "raised; total: epsilon 400, delta 0.000002; left: epsilon 350" in raised.err
    assert discreet("query", COUNT).code == 0


def test_a_delta_is_raised_without_a_policy_too(discreet: Command, visits: Path) -> None:
    rest = ("--row-level", "--epsilon", "1", "--budget", "1")
    discreet("query", str(visits), "SELECT COUNT(*) FROM data", *rest)
    assert "--budget: is required" in discreet("budget", "raise", str(visits), "--budget-delta", "1e-6").error()
    done = discreet("budget", "raise", str(visits), "--budget", "1", "--budget-delta", "1e-6")
    assert "raised; total: epsilon 1, delta 0.000001" in done.err
