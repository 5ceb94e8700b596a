"""`discreet check`: every fault of a policy, in itself, against its sources, against the ledger; it writes nothing."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as library
from command import Command
from discreet.errors import PolicyError
from discreet.ledger import Ledger, Method
from discreet.privacy import PrivacyLoss

POLICY = """
ledger = "books.sqlite"
[budgets.people]
epsilon = 3
delta = 1e-6
unit = "person"
[datasets.visits]
source = "visits.csv"
privacy_unit = "who"
max_contributions = 10
budget = "people"
columns.minutes = { lower = 0, upper = 60 }
[datasets.wards]
source = "wards.csv"
row_level = true
budget.epsilon = 1
"""
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def folder(tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "own"
    place.mkdir()
    visits.rename(place / "visits.csv")
    (place / "wards.csv").write_text("ward,beds\nA,1\n")
    (place / "discreet.toml").write_text(POLICY)
    monkeypatch.chdir(place)
    return place


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_policy_that_holds(discreet: Command, folder: Path) -> None:
    """Before anything is registered, and after; neither writes anything."""
    before = state(folder)
    done = discreet("check")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "policy: discreet.toml in this folder",
        f"ledger: {folder}/books.sqlite (not there yet)",
        "visits: reading it whole, to check what it would be registered as; nothing is stored",
        "visits: 3 columns; not registered yet: the first query does that; no budget in force yet",
        "wards: reading it whole, to check what it would be registered as; nothing is stored",
        "wards: 2 columns; not registered yet: the first query does that; no budget in force yet",
        "policy discreet.toml has no faults",
    ]
    assert state(folder) == before
    assert discreet("query", COUNT, "--epsilon", "1").code == 0
    with Ledger(folder / "books.sqlite") as book:
        head = book.verify()
    done = discreet("check", "--policy", "discreet.toml")
    assert "visits: 3 columns; registered (version 1); left of the budget: epsilon 2, delta 0.000001" in done.err
    with Ledger(folder / "books.sqlite") as book:
        assert book.verify() == head
        assert book.registered(f"file:{folder}/wards.csv") is None


def test_all_faults_at_once(discreet: Command, folder: Path) -> None:
    """Of every data set, each with its key path; exit 2."""
    text = POLICY.replace('privacy_unit = "who"', 'privacy_unit = "whom"').replace("columns.minutes", "columns.minuts")
    text += "columns.ward = { lower = 0, upper = 1 }\n"
    text += '[datasets.gone]\nsource = "gone.csv"\nrow_level = true\nbudget.epsilon = 1\n'
    text += '[datasets.pipe]\nsource = "discreet.toml"\nrow_level = true\nbudget.epsilon = 1\n'
    text += '[datasets.again]\nsource = "link.csv"\nrow_level = true\nbudget.epsilon = 1\n'
    text += '[datasets.odd]\nsource = "odd.csv"\ntimezone = "Mars/Base"\nrow_level = true\nbudget.epsilon = 1\n'
    (folder / "link.csv").symlink_to("wards.csv")
    (folder / "odd.csv").write_text("a,b\n1,2\n")
    (folder / "discreet.toml").write_text(text)
    done = discreet("check")
    assert done.code == 2
    told = done.err[done.err.index("discreet: policy") :].splitlines()
    assert told[0] == "discreet: policy discreet.toml has 7 faults; nothing was charged:"
    for place, rule in [
        ("visits.columns.minuts", "names no column of the source (got 'minuts'). Hint: did you mean 'minutes'?"),
        ("visits.privacy_unit", "whom"),
        ("wards.columns.ward.lower", "and upper are numbers, but the column is text"),
        ("gone.source", "there is no such file"),
        ("pipe.source", "its name does not say what it is"),
        ("again.source", "is that of datasets.wards too; one source has one policy"),
        ("odd.timezone", "is not a known time zone (got 'Mars/Base')"),
    ]:
        (line,) = [line for line in told if line.startswith(f"  datasets.{place}: ")]
        assert rule in line
    assert not (folder / "books.sqlite").exists()


def test_against_what_is_in_force(discreet: Command, folder: Path) -> None:
    """Types and reading as registered, budgets as set: each fault names the owner's act that changes it."""
    assert discreet("query", COUNT, "--epsilon", "1").code == 0
    text = POLICY.replace("epsilon = 3", "epsilon = 4").replace('unit = "person"', 'unit = "patient"')
    text = text.replace("delta = 1e-6", "delta = 1e-7\nbudget_window = 'daily'", 1)
    (folder / "discreet.toml").write_text(text)
    told = discreet("check").err
    assert (
        "budgets.people.epsilon: is 3 in the ledger, set for good (got '4'). Hint: `discreet budget raise people`"
        in told
    )
    assert "budgets.people.delta: is 0.000001 in the ledger, never lowered (got '0.0000001')" in told
    assert "budgets.people.unit: is 'person' in the ledger" in told
    assert "budgets.people.budget_window: is never in the ledger, set for good (got 'daily')" in told
    (folder / "discreet.toml").write_text(
        POLICY.replace("minutes = {", 'minutes = { type = "DOUBLE",').replace(
            '"visits.csv"', '"visits.csv"\nnull_values = ["-"]'
        )
    )
    told = discreet("check").err
    assert "datasets.visits.null_values: was registered without it" in told
    assert "datasets.visits.columns.minutes.type: was registered as BIGINT (got 'DOUBLE')" in told
    assert told.count("discreet refresh visits registers it anew, as the policy says") == 2
    (folder / "discreet.toml").write_text(POLICY.replace('budget = "people"', "budget.epsilon = 1"))
    assert "datasets.visits.budget: is 'people' in the ledger: a budget is shared for good" in discreet("check").err
    (folder / "visits.csv").unlink()
    (folder / "discreet.toml").write_text(POLICY)
    assert "datasets.visits.source: holds no file any more" in discreet("check").err


def test_no_policy_and_a_bad_one(discreet: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "discreet.toml").write_text(POLICY + "[datasets.x]\n")
    done = discreet("check")
    assert done.code == 2
    assert "datasets.x.source: is missing" in done.err
    monkeypatch.chdir("/")
    done = discreet("check")
    assert done.code == 2
    assert "policy: there is none here. Hint: discreet init SOURCE begins one" in done.error()
    assert "there is no such file" in discreet("check", "--policy", "none.toml").error()
    (folder / "discreet.toml").write_text(POLICY)
    (folder / "books.sqlite").write_text("no ledger\n" * 100)
    assert discreet("check", "--policy", str(folder / "discreet.toml")).code == 5


# --- accounting, by the policy -------------------------------------------------------------------------------

TIGHT = POLICY.replace("epsilon = 3", "epsilon = 5.1").replace(
    'unit = "person"', 'unit = "person"\naccounting = "renyi"'
)


def test_tighter_accounting_by_the_policy(discreet: Command, folder: Path) -> None:
    """100 queries of 0.1 in (5.1, 1e-6) where basic composition has 51; what was asked before the switch counts."""
    (folder / "discreet.toml").write_text(POLICY.replace("epsilon = 3", "epsilon = 5.1"))
    ask = ("estimate", COUNT, "--epsilon", "0.1")
    assert "about 51 like this one fit into the budget" in discreet(*ask).err
    for _ in range(2):
        assert discreet("query", COUNT, "--epsilon", "0.1", "--fresh").code == 0
    (folder / "discreet.toml").write_text(TIGHT)
    with contextlib.closing(library.open("visits", policy="discreet.toml")) as data:
        more = data.how_many_more(data.plan(COUNT, epsilon="0.1"))
    assert more is not None and more >= 98
    assert f"about {more} like this one fit into the budget" in discreet(*ask).err
    with Ledger(folder / "books.sqlite") as book:
        budget = book.budget("budget:people")
    assert budget is not None and budget.accounting.method is Method.RENYI


def test_one_epsilon_for_all_by_the_policy(discreet: Command, folder: Path) -> None:
    """pld: the analyst need not say it, and may say nothing else; 100 fit into (4.9, 1e-6)."""
    text = TIGHT.replace("5.1", "4.9").replace('"renyi"', '"pld"\nepsilon_per_query = 0.1')
    (folder / "discreet.toml").write_text(text)
    done = discreet("estimate", COUNT)
    assert "would cost: epsilon 0.1" in done.err
    assert "about 105 like this one fit" in done.err
    for verb in ("query", "estimate"):
        done = discreet(verb, COUNT, "--epsilon", "0.4")
        assert done.code == 3
        assert "is 0.1, no more and no less, by the owner's policy (budgets.people.epsilon_per_query)" in done.error()
    assert discreet("query", COUNT).code == 0
    assert "(about 104 more queries of epsilon 0.1)" in discreet("budget", "people").out


def test_groups_chosen_from_the_data_need_their_part_of_delta(discreet: Command, folder: Path) -> None:
    text = TIGHT.replace("max_contributions", "unknown_groups = true\nmax_contributions")
    (folder / "discreet.toml").write_text(
        text.replace('"renyi"', '"renyi"\ndelta_for_groups = 1e-7\ndefault_delta = 5e-8')
    )
    ask = ("query", "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--epsilon", "0.1", "--fresh")
    for _ in range(2):
        assert discreet(*ask).code == 0
    done = discreet(*ask)
    assert done.code == 3
    assert "left: epsilon" in done.error() and "delta 0;" in done.error()


def test_an_accounting_that_does_not_fit_is_a_fault_of_the_policy(folder: Path) -> None:
    """Going back to the sum, where the sum is spent already: the policy's key is named."""
    (folder / "discreet.toml").write_text(TIGHT)
    source = library.open("visits", policy="discreet.toml").registration.source
    with Ledger(folder / "books.sqlite") as book:
        for _ in range(60):
            book.debit(source, PrivacyLoss(Fraction(1, 10)), unit="person", query="q", digest="d", limits={})
    (folder / "discreet.toml").write_text(TIGHT.replace("renyi", "basic"))
    with pytest.raises(
        PolicyError, match=r"budgets\.people\.accounting: by basic would leave epsilon 6, delta 0 spent"
    ):
        library.open("visits", policy="discreet.toml")
