"""Asking through a policy: what it declares counts, what a query says may narrow it, and nothing widens it."""

from __future__ import annotations

import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.errors import BudgetError, DiscreetError, PolicyError, RefusedError, UsageError
from discreet.ledger import Kind, Ledger
from discreet.policy import load_policy

POLICY = """
ledger = "ledger.sqlite"

[budgets.people]
epsilon = 300
max_epsilon_per_query = 100
default_epsilon = 50
unit = "aircraft"

[datasets.flights]
source = "flights.csv"
privacy_unit = "tail"
max_contributions = 80
max_groups_contributed = 3
budget = "people"
null_values = ["NA"]
[datasets.flights.columns.delay]
type = "DOUBLE"
lower = 0
upper = 100
[datasets.flights.columns.carrier]
public_values = ["U", "A", "D"]
[datasets.flights.columns.day]
lower = 2013-01-30
upper = 2013-02-02
[datasets.flights.columns.pilot]
forbidden = true

[datasets.repairs]
source = "repairs.csv"
privacy_unit = "aircraft"
max_contributions = 5
budget = "people"

[datasets.alone]
source = "alone.csv"
row_level = true
budget.epsilon = 1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = "".join(
        f"t{i % 50},{'AUD'[i % 3]},2013-0{1 + i % 2}-{i % 28 + 1:02},{'NA' if i % 7 == 0 else i % 90},p{i}\n"
        for i in range(3000)
    )
    (tmp_path / "flights.csv").write_text("tail,carrier,day,delay,pilot\n" + rows)
    (tmp_path / "repairs.csv").write_text("aircraft,cost\n" + "".join(f"t{i % 50},{i}\n" for i in range(100)))
    (tmp_path / "alone.csv").write_text("x\n1\n2\n")
    (tmp_path / "discreet.toml").write_text(POLICY)
    return tmp_path


def opened(folder: Path, name: str = "flights", **more: Any) -> discreet.Dataset:
    return discreet.open(name, policy=folder / "discreet.toml", **more)


def debits(data: discreet.Dataset) -> list[Any]:
    return [entry for entry in data.history() if entry.kind is Kind.DEBIT]


# --- what the policy says is enough ------------------------------------------------------------------------


def test_a_query_needs_nothing_else(folder: Path) -> None:
    """Unit, limits, bounds, keys, epsilon, budget and ledger come from the policy."""
    data = opened(folder)
    answer = data.query("SELECT carrier, COUNT(*) AS n, AVG(delay) AS a FROM flights GROUP BY carrier")
    assert answer["carrier"] == ("U", "A", "D")
    assert (answer.epsilon, data.ledger_path) == (50, folder / "ledger.sqlite")
    assert answer.details["limits"] == {"max_contributions": 80}
    assert answer.details["privacy_unit"] == "tail"
    assert all(m.get("bounds", ["0", "100"]) == ["0", "100"] for m in answer.details["measurements"])
    (entry,) = debits(data)
    assert (entry.unit, entry.account) == ("aircraft", "budget:people")
    assert data.query("SELECT COUNT(*) AS n FROM data")["n"][0] > 0


@pytest.mark.parametrize(
    ("grouping", "keys"),
    [
        ("day", (datetime.date(2013, 1, 30), datetime.date(2013, 1, 31), datetime.date(2013, 2, 1),
                 datetime.date(2013, 2, 2))),
        ("DATE_TRUNC(day, MONTH)", (datetime.date(2013, 1, 1), datetime.date(2013, 2, 1))),
        ("DATE_TRUNC(day, QUARTER)", (datetime.date(2013, 1, 1),)),
        ("YEAR(day)", (2013,)),
    ],
)  # fmt: skip
def test_declared_days_are_public_keys(folder: Path, grouping: str, keys: tuple[object, ...]) -> None:
    """By day, month, quarter and year; no list is needed."""
    answer = opened(folder).query(f"SELECT {grouping} AS g, COUNT(*) AS n FROM flights GROUP BY g")
    assert answer["g"] == keys


def test_data_sets_share_what_they_share(folder: Path) -> None:
    """One budget for both, whose units go by one name; the third has its own."""
    flights, repairs, alone = opened(folder), opened(folder, "repairs"), opened(folder, "alone")
    flights.query("SELECT COUNT(*) FROM flights", epsilon=100)
    repairs.query("SELECT COUNT(*) FROM repairs", epsilon=100)
    repairs.query("SELECT COUNT(*) FROM repairs WHERE cost > 5", epsilon=50)
    with pytest.raises(BudgetError, match="epsilon 300; spent: epsilon 250; left: epsilon 50; asked: epsilon 60"):
        flights.query("SELECT COUNT(*) FROM flights WHERE delay > 5", epsilon=60)
    alone.query("SELECT COUNT(*) FROM alone", epsilon=1)
    balance = alone.balance()
    assert balance is not None
    assert balance.left.epsilon == 0


def test_the_only_data_set_needs_no_name(folder: Path) -> None:
    text = POLICY[: POLICY.index("[datasets.repairs]")]
    (folder / "discreet.toml").write_text(text)
    data = discreet.open(policy=folder / "discreet.toml")
    assert data.query("SELECT COUNT(*) AS n FROM data")["n"]
    (folder / "discreet.toml").write_text(POLICY)
    with pytest.raises(UsageError, match="flights, repairs, alone"):
        discreet.open(policy=folder / "discreet.toml")


# --- narrowing, and every attempt to widen -----------------------------------------------------------------


def test_a_query_may_narrow(folder: Path) -> None:
    """Lower limits, tighter bounds, fewer keys, less epsilon; the unit again."""
    data = opened(folder, max_contributions=40)
    answer = data.query(
        'SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, privacy_unit_column = "TAIL", max_contributions = 20) '
        "carrier, SUM(delay) AS s FROM flights GROUP BY carrier",
        keys={"carrier": ["D"]},
        bounds={"delay": (10, 50)},
    )
    assert answer["carrier"] == ("D",)
    assert answer.details["limits"] == {"max_contributions": 20}
    assert answer.details["measurements"][0]["bounds"] == ["10", "50"]
    with pytest.raises(UsageError, match="at most 40, as the source was opened with"):
        data.query("SELECT COUNT(*) FROM flights", max_contributions=41)


COUNT = "SELECT COUNT(*) FROM flights"
BY = "SELECT carrier, COUNT(*) FROM flights GROUP BY carrier"


@pytest.mark.parametrize(
    ("sql", "more", "kind", "told"),
    [
        (COUNT, {"max_contributions": 81}, UsageError, r"at most 80, the owner's limit \(datasets.flights.max_con"),
        (COUNT, {"max_groups_contributed": 4}, UsageError, r"at most 3, the owner's limit \(datasets.flights.max_gr"),
        (COUNT, {"epsilon": "100.000000000001"}, BudgetError, "at most 100 by the owner's policy"),
        ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column=carrier) COUNT(*) FROM flights", {}, UsageError,
         "must be the source's privacy unit, tail"),
        ("SELECT SUM(delay) FROM flights", {"bounds": {"delay": (0, 101)}}, UsageError,
         r"within the owner's, 0\.\.100 \(datasets.flights.columns.delay\) \(got '0\.\.101'\)"),
        ("SELECT AVG(Delay, contribution_bounds_per_row => (-1, 50)) FROM flights", {}, UsageError,
         r"within the owner's, 0\.\.100"),
        ("SELECT AVG(delay) AS x FROM flights", {"bounds": {"x": (-1, 50)}}, UsageError, r"within the owner's"),
        (BY, {"keys": {"carrier": ["U", "X"]}}, UsageError, r"public values, U, A, D \(.*\) \(got 'X'\)"),
        (BY, {"keys": {"carrier": ["U", None]}}, UsageError, r"got 'NULL'"),
        ("SELECT carrier, day, COUNT(*) FROM flights GROUP BY carrier, day",
         {"keys": {("day", "carrier"): [("2013-01-30", "A"), ("2013-01-30", "B")]}}, UsageError, r"got 'B'"),
        ("SELECT day, COUNT(*) FROM flights GROUP BY day", {"keys": {"day": ["2013-02-03"]}}, UsageError,
         r"2013-01-30, .*\(got '2013-02-03'\)"),
        ("SELECT UPPER(carrier) AS u, COUNT(*) FROM flights GROUP BY u", {"delta": 1e-6}, RefusedError,
         "does not allow .datasets.flights.unknown_groups"),
    ],
)  # fmt: skip
def test_an_attempt_to_widen_names_the_owners_value(
    folder: Path, sql: str, more: dict[str, Any], kind: type[DiscreetError], told: str
) -> None:
    """Before anything is charged."""
    data = opened(folder)
    with pytest.raises(kind, match=told):
        data.query(sql, **more)
    assert debits(data) == []


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"privacy_unit": "carrier"}, r"is tail, by the owner's policy \(datasets.flights.privacy_unit\)"),
        ({"row_level": True}, "the privacy unit is tail"),
        ({"max_contributions": 81}, "at most 80, the owner's limit"),
        ({"max_groups_contributed": 4}, "at most 3, the owner's limit"),
        ({"budget": 301}, r"is epsilon 300, by the owner's policy \(budgets.people\)"),
        ({"ledger": "other.sqlite"}, "ledger.sqlite, by the owner's policy"),
        ({"types": {"delay": "BIGINT"}}, "types: is declared in the policy"),
        ({"delimiter": ";"}, "delimiter: is declared in the policy"),
        ({"max_contributions": 0}, "whole number from 1"),
    ],
)
def test_opening_does_not_widen_either(folder: Path, more: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        opened(folder, **more)
    assert not (folder / "other.sqlite").exists()


def test_opening_may_say_the_same_again(folder: Path) -> None:
    data = opened(folder, privacy_unit=" Tail", max_contributions=80, budget=300, ledger=folder / "ledger.sqlite")
    assert data.query(COUNT)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM flights WHERE pilot = 'p1'",
        "SELECT COUNT(*) FROM flights WHERE LENGTH(PILOT) > 2",
        "SELECT COUNT(pilot) FROM flights",
        "SELECT COUNTIF(pilot IS NULL) FROM flights",
        "SELECT SUM(LENGTH(pilot)) AS s FROM flights",
        "SELECT pilot, COUNT(*) FROM flights GROUP BY pilot",
        "SELECT pilot = 'p1' AS mine, COUNT(*) FROM flights GROUP BY mine",
        "SELECT carrier, COUNT(*) FROM flights GROUP BY carrier HAVING COUNT(data.pilot) > 5",
        "SELECT carrier, COUNT(*) FROM flights GROUP BY carrier ORDER BY SUM(LENGTH(pilot))",
    ],
)
def test_a_forbidden_column_may_stand_nowhere(folder: Path, sql: str) -> None:
    data = opened(folder)
    with pytest.raises(RefusedError, match=r"column 'pilot': may not be asked about.*columns\.pilot\.forbidden"):
        data.query(
            sql, bounds={"s": (0, 5)} if " AS s" in sql else {}, keys={"pilot": ["a"]} if "BY pilot" in sql else {}
        )
    assert debits(data) == []


def test_a_forbidden_unit_may_still_be_counted(folder: Path) -> None:
    (folder / "discreet.toml").write_text(POLICY + "[datasets.repairs.columns.aircraft]\nforbidden = true\n")
    data = opened(folder, "repairs")
    assert data.query("SELECT COUNT(DISTINCT aircraft) AS n FROM repairs")["n"]
    with pytest.raises(RefusedError, match="aircraft"):
        data.query("SELECT COUNT(*) FROM repairs WHERE aircraft = 't1'")


def test_a_source_with_a_policy_is_asked_through_it_only(folder: Path) -> None:
    """A path is no way around it, nor is another budget for the same source."""
    opened(folder)
    with pytest.raises(UsageError, match="through its owner's policy only, where it is called flights"):
        discreet.open(folder / "flights.csv", privacy_unit="tail", ledger=folder / "ledger.sqlite")
    opened(folder, "alone")
    with pytest.raises(UsageError, match="called alone"):
        discreet.open(folder / "alone.csv", row_level=True, budget=1, ledger=folder / "ledger.sqlite")


def test_what_was_spent_before_the_policy_counts(folder: Path) -> None:
    """A source that had a budget of its own brings its spending along."""
    (folder / "discreet.toml").write_text(POLICY.replace('unit = "aircraft"', 'unit = "tail"'))
    before = discreet.open(
        folder / "flights.csv", privacy_unit="tail", max_contributions=5, budget=250, ledger=folder / "ledger.sqlite",
        types={"delay": "DOUBLE"}, null_values=["NA"],
    )  # fmt: skip
    before.query(COUNT, epsilon=250)
    balance = opened(folder).balance()
    assert balance is not None
    assert (balance.total.epsilon, balance.spent.epsilon) == (300, 250)


# --- a policy that does not fit ----------------------------------------------------------------------------


def test_a_policy_that_does_not_fit_the_source_tells_all_and_leaves_no_trace(folder: Path) -> None:
    """Columns, types, bounds, keys and the unit, at once; nothing is registered."""
    text = POLICY.replace('privacy_unit = "tail"', 'privacy_unit = "tial"')
    text += """
[datasets.flights.columns.carier]
lower = 0
upper = 1
[datasets.flights.columns.DELAY]
[datasets.flights.columns.tail]
lower = 0
upper = 1
"""
    text = text.replace("public_values =", "lower = 2013-01-01\nupper = 2013-01-02\npublic_values =")
    text = text.replace("upper = 2013-02-02", 'upper = 2013-02-02\npublic_values = ["2013-01-32"]')
    (folder / "discreet.toml").write_text(text)
    with pytest.raises(PolicyError) as refused:
        opened(folder)
    assert {fault.thing.removeprefix("datasets.flights.") for fault in refused.value.faults} == {
        "privacy_unit", "columns.carier", "columns.DELAY", "columns.tail.lower", "columns.carrier.lower",
        "columns.day.public_values",
    }  # fmt: skip
    assert "did you mean 'carrier'?" in str(refused.value)
    with Ledger(folder / "ledger.sqlite") as ledger:
        assert ledger.accounts() == ()
        assert ledger.version(f"file:{folder / 'flights.csv'}") == 0


def test_a_policy_that_was_edited_later_is_compared_with_what_is_stored(folder: Path) -> None:
    """Types and reading are fixed at registration, budgets in the ledger; each fault says what to do."""
    opened(folder)
    for old, new, told in (
        ('type = "DOUBLE"', 'type = "VARCHAR"', r"columns.delay.type: was registered as DOUBLE.*discreet refresh fli"),
        ('null_values = ["NA"]', 'null_values = ["-"]', r"flights.null_values: was registered with.*discreet refresh"),
        (
            "epsilon = 300",
            "epsilon = 301",
            r"budgets.people.epsilon: is 300 in the ledger.*budget raise people` raises",
        ),
        ("epsilon = 300", "epsilon = 299", r"epsilon: is 300 in the ledger, never lowered.*write epsilon = 300"),
        ("epsilon = 300", "epsilon = 300\ndelta = 1e-6", r"budgets.people.delta: is 0 in the ledger, set for good"),
        (
            "epsilon = 300",
            "epsilon = 300\nbudget_window = 'daily'",
            r"budgets.people.budget_window: is never in the ledger, set for good",
        ),
        ('unit = "aircraft"', 'unit = "plane"', r"budgets.people.unit: is 'aircraft' in the ledger"),
        (
            'budget = "people"',
            "budget.epsilon = 3",
            r"flights.budget: is 'people' in the ledger: a budget is shared for good",
        ),
    ):
        (folder / "discreet.toml").write_text(POLICY.replace(old, new, 1))
        with pytest.raises((PolicyError, UsageError), match=told):
            opened(folder)
    with Ledger(folder / "ledger.sqlite") as ledger:
        ledger.raise_budget("budget:people", discreet.PrivacyLoss(Fraction(301)))
    (folder / "discreet.toml").write_text(POLICY.replace("epsilon = 300", "epsilon = 301", 1))
    assert opened(folder).query(COUNT)


def test_a_policy_may_be_loaded_once(folder: Path) -> None:
    policy = load_policy(folder / "discreet.toml")
    data = discreet.open("flights", policy=policy)
    assert data.query(COUNT, analyst="ann")
    with pytest.raises(UsageError, match="did you mean 'flights'"):
        discreet.open("flight", policy=policy)


def test_analysts_have_shares(folder: Path) -> None:
    """By name; who is not named is refused, if nothing is said about others."""
    text = POLICY.replace("epsilon = 300", "epsilon = 300\nmax_epsilon_per_analyst = 60\nanalysts = { ann = 120 }", 1)
    (folder / "discreet.toml").write_text(text)
    data = opened(folder)
    data.query(COUNT, analyst="ann")
    data.query("SELECT COUNT(*) AS n FROM flights WHERE delay > 1", analyst="ann")
    with pytest.raises(BudgetError, match=r"share of analyst 'ann' .* is epsilon 120 .*left: epsilon 20"):
        data.query("SELECT COUNT(*) AS n FROM flights WHERE delay > 2", analyst="ann")
    data.query("SELECT COUNT(*) AS n FROM flights WHERE delay > 3", analyst="bob")
    with pytest.raises(BudgetError, match=r"share of analyst 'bob' .* is epsilon 60"):
        data.query("SELECT COUNT(*) AS n FROM flights WHERE delay > 4", analyst="bob")
    (folder / "discreet.toml").write_text(text.replace("max_epsilon_per_analyst = 60\n", ""))
    with pytest.raises(BudgetError, match=r"analyst 'bob': has no share"):
        opened(folder).query(COUNT, analyst="bob")
    assert len(debits(data)) == 3
