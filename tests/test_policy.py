"""What a policy may say, and how every fault in it is told: at once, by key path, with the fix."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.errors import BudgetError, PolicyError, UsageError
from discreet.ledger import Caps, Method, Window
from discreet.policy import Policy, load_policy, parse_policy
from discreet.privacy import PrivacyLoss
from discreet.query import Bounds

WHOLE = """
ledger = "books/ledger.sqlite"

[budgets.people]
epsilon = 3
delta = 1e-6
unit = "person"
max_epsilon_per_query = 0.5
max_epsilon_per_analyst = 1
budget_window = "monthly"
[budgets.people.analysts]
ann = 2.5
"bob b" = 0.000000000001

[datasets.flights]
source = "flights.csv"
format = "csv"
delimiter = ";"
null_values = ["NA"]
timezone = "America/New_York"
strict = false
privacy_unit = "tailnum"
max_contributions = 20
max_groups_contributed = 3
unknown_groups = true
budget = "people"
invariants = ["The number of flights a day is published by the airport."]

[datasets.flights.columns.delay]
type = "DOUBLE"
lower = -30.5
upper = 300

[datasets.flights.columns.day]
lower = 2013-01-01
upper = 2013-12-31

[datasets.flights.columns.carrier]
public_values = ["AA", "UA"]

[datasets.flights.columns."air port"]
public_values = 'JFK,"a,b",NULL'

[datasets.flights.columns.name]
forbidden = true

[datasets.actions]
source = "/var/log/a.jsonl"
records = "Records"
privacy_unit = ["actor", "DATE(time)"]
max_contributions = 5
[datasets.actions.budget]
epsilon = 0.1
"""
SMALL = """
[datasets.d]
source = "d.csv"
privacy_unit = "u"
max_contributions = 3
budget.epsilon = 1
"""


def parse(text: str) -> Policy:
    return parse_policy(text, Path("/home/p.toml"))


def faults(text: str) -> dict[str, UsageError]:
    with pytest.raises(PolicyError) as refused:
        parse(text)
    error = refused.value
    told = str(error)
    for fault in error.faults:
        assert str(fault) in told
    assert error.exit_code == 2
    return {fault.thing: fault for fault in error.faults}


def test_a_whole_policy() -> None:
    """Every key, as the exact value that was typed."""
    policy = parse(WHOLE)
    assert policy.ledger == "/home/books/ledger.sqlite"
    people = policy.budgets["people"]
    assert people.total == PrivacyLoss(Fraction(3), Fraction(1, 10**6))
    assert (people.window, people.unit, people.account) == (Window.MONTHLY, "person", "budget:people")
    assert people.analysts == {"ann": Fraction(5, 2), "bob b": Fraction(1, 10**12)}
    assert people.caps("ann") == Caps(Fraction(1, 2), Fraction(5, 2))
    assert people.caps("cid") == Caps(Fraction(1, 2), Fraction(1))
    flights = policy.dataset("flights")
    assert flights.budget is people
    assert flights.source == "/home/flights.csv"
    assert flights.reading == {
        "format": "csv", "delimiter": ";", "null_values": ("NA",), "timezone": "America/New_York", "strict": False,
    }  # fmt: skip
    assert (flights.privacy_unit, flights.row_level) == (("tailnum",), False)
    assert (flights.max_contributions, flights.max_groups_contributed, flights.unknown_groups) == (20, 3, True)
    assert flights.types() == {"delay": "DOUBLE"}
    assert flights.columns["delay"].bounds == Bounds(Fraction(-61, 2), Fraction(300))
    assert flights.columns["day"].dates == (datetime.date(2013, 1, 1), datetime.date(2013, 12, 31))
    assert flights.columns["carrier"].public_values == ("AA", "UA")
    assert flights.columns["air port"].public_values == ("JFK", "a,b", None)
    assert flights.columns["name"].forbidden
    assert flights.invariants == ("The number of flights a day is published by the airport.",)
    actions = policy.dataset("actions")
    assert (actions.source, actions.reading) == ("/var/log/a.jsonl", {"records": "Records"})
    assert actions.privacy_unit == ("actor", "DATE(time)")
    assert (actions.budget.total, actions.budget.account) == (PrivacyLoss(Fraction(1, 10)), "")
    assert actions.budget.caps("anybody") == Caps()


def test_how_losses_are_added_up() -> None:
    """The keys of tighter accounting; with one epsilon for all queries, that is what a query costs."""
    budget = parse(SMALL).dataset("d").budget
    assert (budget.accounting, budget.delta_for_groups, budget.epsilon_per_query) == (Method.BASIC, 0, None)
    more = (
        "budget.delta = 1e-6\nbudget.accounting = 'renyi'\nbudget.delta_for_groups = 2e-7\nbudget.default_epsilon = 0.5"
    )
    budget = parse(SMALL + more).dataset("d").budget
    assert (budget.accounting, budget.delta_for_groups) == (Method.RENYI, Fraction(1, 5_000_000))
    assert budget.usual_epsilon == Fraction(1, 2)
    more = "budget.delta = 1e-6\nbudget.accounting = 'pld'\nbudget.epsilon_per_query = 0.1"
    budget = parse(SMALL + more).dataset("d").budget
    assert (budget.accounting, budget.usual_epsilon) == (Method.PLD, Fraction(1, 10))
    budget.check_query(Fraction(1, 10))
    with pytest.raises(BudgetError, match=r"is 0\.1, no more and no less.*\(datasets\.d\.budget\.epsilon_per_query\)"):
        budget.check_query(Fraction(1, 20))


def test_row_level() -> None:
    policy = parse(SMALL.replace('privacy_unit = "u"\nmax_contributions = 3', "row_level = true"))
    assert policy.dataset("d").row_level


def test_named_analysts_are_the_only_ones_unless_all_others_have_a_share() -> None:
    budget = parse(SMALL + "[datasets.d.budget.analysts]\nann = 0.5\n").dataset("d").budget
    assert budget.caps("ann") == Caps(None, Fraction(1, 2))
    with pytest.raises(BudgetError, match=r"analyst 'bob': .*datasets\.d\.budget\.analysts.*Nothing was charged"):
        budget.caps("bob")


def test_an_unknown_data_set_is_named_with_the_near_one() -> None:
    with pytest.raises(UsageError, match=r"there are flights, actions \(got 'flight'\).*did you mean 'flights'"):
        parse(WHOLE).dataset("flight")


D = "datasets.d"
TIGHT = "[budgets.b]\nepsilon = 1\ndelta = 1e-6\naccounting = "


@pytest.mark.parametrize(
    ("more", "path", "told"),
    [
        # the file
        ("x = [", "TOML", "at"),
        ("[datasets.d]", "TOML", "overwrite|twice|declare"),
        ("x = 1979-13-01", "TOML", "at"),
        pytest.param(f"x = {'9' * 5000}", "TOML", "too long", id="many digits"),
        pytest.param(f"x = {'[' * 3000}", "TOML", "nested too deeply|at", id="many brackets"),
        ("[data_sets.e]\nsource = 'x'", "data_sets", "did you mean 'datasets'"),
        ("[datasets.'a b']", 'datasets."a b"', "letters, digits"),
        ("[datasets.raise]", "datasets.raise", "letters, digits"),
        ("[[datasets.e]]", "datasets.e", r"must be a table \(got 'a list of 1 values'\)"),
        ("[budgets.d]\nepsilon = 1", D, "called as budgets.d"),
        # data sets
        ("[datasets.e]", "datasets.e.source", "is missing"),
        ("[datasets.e]", "datasets.e.privacy_unit", "is missing.*row_level = true"),
        ("[datasets.e]", "datasets.e.budget", "is missing"),
        ("[datasets.e]\nprivacy_unit = 'u'", "datasets.e.max_contributions", "is missing"),
        ("[datasets.e]\nsource = 3", "datasets.e.source", r"text in quotes \(got 3\)"),
        ("[datasets.e]\nsource = ' '", "datasets.e.source", "text in quotes"),
        ("[datasets.e]\nsource = 'd.csv'", "datasets.e.source", "is that of datasets.d"),
        ("[datasets.e]\nprivacy_unit = []", "datasets.e.privacy_unit", "at least one"),
        ("[datasets.e]\nprivacy_unit = ['u', 3]", "datasets.e.privacy_unit", "list of texts"),
        ("[datasets.e]\nprivacy_unit = 'u'\nrow_level = true", "datasets.e.row_level", "exclude each other"),
        ("[datasets.e]\nrow_level = 1", "datasets.e.row_level", "true or false"),
        ("[datasets.e]\nrow_level = true\nmax_contributions = 5", "datasets.e.max_contributions", "always 1"),
        *((f"[datasets.e]\nmax_contributions = {bad}", "datasets.e.max_contributions", "whole number from 1")
          for bad in ("0", "-1", "2.5", "nan", "inf", "1e400")),
        ("[datasets.e]\nmax_contributions = true", "datasets.e.max_contributions", r"number.*\(got 'true'\)"),
        ("[datasets.e]\nmax_contributions = '3'", "datasets.e.max_contributions", "without quotes"),
        ("[datasets.e]\nmax_contribution = 3", "datasets.e.max_contribution", "did you mean 'max_contributions'"),
        ("[datasets.e]\nunknown_groups = true\nbudget.epsilon = 1", "datasets.e.unknown_groups",
         "datasets.e.budget.delta = 1e-6"),
        ("[datasets.e]\nbudget = 'x'", "datasets.e.budget", "there are: none"),
        ("[datasets.e]\nbudget = 3", "datasets.e.budget", r"must be a table, or the name"),
        ("[datasets.e]\ninvariants = 'x'", "datasets.e.invariants", "list of texts"),
        # reading
        ("[datasets.e]\ndelimiter = ';;'", "datasets.e.delimiter", "one character"),
        ("[datasets.e]\ndelimiter = 3", "datasets.e.delimiter", "text"),
        ("[datasets.e]\nheader = 'no'", "datasets.e.header", "true or false"),
        ("[datasets.e]\nnames = ['a', 'a']", "datasets.e.names", "differ"),
        ("[datasets.e]\nyear = 0", "datasets.e.year", "whole number"),
        ("[datasets.e]\ndecimal = ','\nthousands = ','", "datasets.e.thousands", "differ from decimal"),
        # budgets
        ("[budgets.b]", "budgets.b.epsilon", "is missing"),
        *((f"[budgets.b]\nepsilon = {bad}", "budgets.b.epsilon", "from 0.000000000001")
          for bad in ("0", "-1", "nan", "-inf", "1e400", "1e-13", "0.1234567890123", "1e99999999999999999999")[:-1]),
        ("[budgets.b]\nepsilon = 1e99999999999999999999", "budgets.b.epsilon", r"number.*got '1e9+'"),
        ("[budgets.b]\nepsilon = '1'", "budgets.b.epsilon", "without quotes"),
        ("[budgets.b]\nepsilon = true", "budgets.b.epsilon", "number"),
        *((f"[budgets.b]\nepsilon = 1\ndelta = {bad}", "budgets.b.delta", "below 0.01")
          for bad in ("-1e-6", "0.01", "1", "nan", "1e-31")),
        ("[budgets.b]\nepsilon = 1\nmax_epsilon_per_query = 2", "budgets.b.max_epsilon_per_query",
         "not be above budgets.b.epsilon"),
        ("[budgets.b]\nepsilon = 1\nmax_epsilon_per_analyst = 1.1", "budgets.b.max_epsilon_per_analyst", "above"),
        ("[budgets.b]\nepsilon = 1\nanalysts.ann = 2", "budgets.b.analysts.ann", "above"),
        ("[budgets.b]\nepsilon = 1\nanalysts = 2", "budgets.b.analysts", "must be a table"),
        ("[budgets.b]\nepsilon = 1\nbudget_window = 'month'", "budgets.b.budget_window", "did you mean 'monthly'"),
        ("[budgets.b]\nepsilon = 1\nbudget_window = 3", "budgets.b.budget_window", "must be one of never, daily"),
        ("[datasets.e.budget]\nepsilon = 1\nunit = 'x'", "datasets.e.budget.unit", "not a key"),
        # accounting
        ("[budgets.b]\nepsilon = 1\naccounting = 'reny'", "budgets.b.accounting", "basic, renyi, pld.*mean 'renyi'"),
        ("[budgets.b]\nepsilon = 1\naccounting = 3", "budgets.b.accounting", "must be one of basic, renyi, pld"),
        ("[budgets.b]\nepsilon = 1\naccounting = 'renyi'", "budgets.b.accounting", "write budgets.b.delta = 1e-6"),
        (f"{TIGHT}'renyi'\nepsilon_per_query = 0.1", "budgets.b.epsilon_per_query", "max_epsilon_per_query limits"),
        (f"{TIGHT}'pld'", "budgets.b.epsilon_per_query", "is missing"),
        (f"{TIGHT}'pld'\nepsilon_per_query = 0", "budgets.b.epsilon_per_query", "from 0.000000000001"),
        (f"{TIGHT}'pld'\nepsilon_per_query = 2", "budgets.b.epsilon_per_query", "not be above budgets.b.epsilon"),
        (f"{TIGHT}'pld'\nepsilon_per_query = 0.1\ndefault_epsilon = 0.2", "budgets.b.default_epsilon", "contradicts"),
        (f"{TIGHT}'pld'\nepsilon_per_query = 0.1\nmax_epsilon_per_query = 0.05", "budgets.b.max_epsilon_per_query",
         "contradicts budgets.b.epsilon_per_query, which is 0.1"),
        (f"{TIGHT}'renyi'\ndelta_for_groups = 1e-6", "budgets.b.delta_for_groups", "must be below budgets.b.delta"),
        (f"{TIGHT}'renyi'\ndelta_for_groups = -1", "budgets.b.delta_for_groups", "must be 0, or a number"),
        (f"{TIGHT}'renyi'\ndelta_for_groups = 1e-7\ndefault_delta = 2e-7", "budgets.b.default_delta", "part of delta"),
        (f"{TIGHT}'renyi'\ndefault_delta = 2e-7", "budgets.b.default_delta", "the part of delta for groups"),
        ("[budgets.b]\nepsilon = 1\ndelta = 1e-6\ndelta_for_groups = 1e-7", "budgets.b.delta_for_groups",
         "renyi or pld only"),
        ("[budgets.b]\nepsilon = 1\nepsilon_per_query = 0.1", "budgets.b.epsilon_per_query", "accounting = pld only"),
        (f"{TIGHT}'renyi'\n[datasets.e]\nunknown_groups = true\nbudget = 'b'", "datasets.e.unknown_groups",
         "budgets.b.delta_for_groups = 5e-7"),
        # columns
        (f"[{D}.columns.x]\ntype = 'FLOTA'", f"{D}.columns.x.type", "known are BOOLEAN"),
        (f"[{D}.columns.x]\nlower = 1", f"{D}.columns.x.upper", "is missing"),
        (f"[{D}.columns.x]\nupper = 1", f"{D}.columns.x.lower", "is missing"),
        (f"[{D}.columns.x]\nlower = 5\nupper = 1", f"{D}.columns.x.lower and upper", "above.*5 and 1"),
        (f"[{D}.columns.x]\nlower = nan\nupper = 1", f"{D}.columns.x.lower", "finite"),
        (f"[{D}.columns.x]\nlower = '0'\nupper = 1", f"{D}.columns.x.lower", "without quotes"),
        (f"[{D}.columns.x]\nlower = 0\nupper = inf", f"{D}.columns.x.upper", "finite"),
        (f"[{D}.columns.x]\nlower = 0\nupper = 2024-01-01", f"{D}.columns.x.lower", "both be numbers, or both dates"),
        (f"[{D}.columns.x]\nlower = 2024-01-02\nupper = 2024-01-01", f"{D}.columns.x.lower", "not be after"),
        (f"[{D}.columns.x]\nlower = 2024-01-01T00:00:00\nupper = 2024-01-02", f"{D}.columns.x.lower", "days"),
        (f"[{D}.columns.x]\npublic_values = []", f"{D}.columns.x.public_values", "list of values"),
        (f"[{D}.columns.x]\npublic_values = [[1]]", f"{D}.columns.x.public_values", "must be texts"),
        (f"[{D}.columns.x]\npublic_values = [inf]", f"{D}.columns.x.public_values", "finite"),
        (f"[{D}.columns.x]\npublic_values = [10:00:00]", f"{D}.columns.x.public_values", "must be texts"),
        (f"[{D}.columns.x]\npublic_values = 'a,\"b'", f"{D}.columns.x.public_values", "not closed"),
        (f"[{D}.columns.x]\npublic_values_file = 'no.csv'", f"{D}.columns.x.public_values_file", "cannot be read"),
        (f"[{D}.columns.x]\nforbidden = true\nlower = 0\nupper = 1", f"{D}.columns.x.forbidden", "exclude each other"),
        (f"[{D}.columns.x]\nforbiden = true", f"{D}.columns.x.forbiden", "did you mean 'forbidden'"),
        (f"[{D}.columns]\nx = 3", f"{D}.columns.x", "must be a table"),
    ],
)  # fmt: skip
def test_every_fault_names_its_place_and_the_fix(more: str, path: str, told: str) -> None:
    # Tables first: what follows a table's header belongs to it.
    found = faults(SMALL + more if more.startswith("[") else more + SMALL)
    assert path in found
    assert re.search(told, str(found[path]))


def test_all_faults_are_told_at_once() -> None:
    """One of each kind in one text: each is there, and nothing else is."""
    text = """
        leger = "x"
        [budgets.b]
        epsilon = 0
        delta = 2
        [datasets.d]
        source = ""
        privacy_unit = "u"
        max_contributions = 0.5
        budget = "c"
        columns.x = { lower = 3, upper = 2 }
    """
    assert sorted(faults(text)) == [
        "budgets.b.delta", "budgets.b.epsilon", "datasets.d.budget", "datasets.d.columns.x.lower and upper",
        "datasets.d.max_contributions", "datasets.d.source", "leger",
    ]  # fmt: skip


def test_many_faults_are_counted_not_all_shown() -> None:
    columns = "".join(f"[datasets.d.columns.c{i}]\nlower = 1\n" for i in range(80))
    with pytest.raises(PolicyError, match=r"has 80 faults(.|\n)*and 30 more"):
        parse(SMALL + columns)


def test_data_sets_that_share_a_budget_are_about_the_same_unit() -> None:
    """Or the budget says what their units are both called."""
    text = "[budgets.b]\nepsilon = 1\n" + "".join(
        f"[datasets.{name}]\nsource = '{name}'\nmax_contributions = 1\nprivacy_unit = '{unit}'\nbudget = 'b'\n"
        for name, unit in (("d", "actor"), ("e", "Actor "), ("f", "user"))
    )
    found = faults(text)
    assert list(found) == ["datasets.f.privacy_unit"]
    assert 'budgets.b.unit = "person"' in str(found["datasets.f.privacy_unit"])
    assert parse(text.replace("epsilon = 1", "epsilon = 1\nunit = 'person'")).budgets["b"].unit == "person"


def test_key_files(tmp_path: Path) -> None:
    """A table of one column, or one key a line; from the policy's folder."""
    (tmp_path / "carriers.csv").write_text('carrier\nAA\n"U,A"\nNULL\n', encoding="utf-8")
    (tmp_path / "lines.txt").write_text("1..3\n\n7\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    text = SMALL + "".join(
        f"[datasets.d.columns.{name}]\npublic_values_file = '{file}'\n"
        for name, file in (("a", "carriers.csv"), ("b", "lines.txt"))
    )
    (tmp_path / "p.toml").write_text(text, encoding="utf-8")
    columns = load_policy(tmp_path / "p.toml").dataset("d").columns
    assert columns["a"].public_values == ("AA", "U,A", None)
    assert columns["b"].public_values == ("1..3", "7")
    (tmp_path / "p.toml").write_text(text.replace("lines.txt", "two.csv"), encoding="utf-8")
    with pytest.raises(PolicyError, match="must have one column"):
        load_policy(tmp_path / "p.toml")


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no such file .*discreet init"):
        load_policy(tmp_path / "p.toml")
    with pytest.raises(UsageError, match="cannot be read"):
        load_policy(tmp_path)
    with pytest.raises(UsageError, match="cannot be read"):
        load_policy("a\0b")
    (tmp_path / "p.toml").write_bytes(b"x = 1\ny = '\xff'\n")
    with pytest.raises(PolicyError, match="line 2: is not UTF-8"):
        load_policy(tmp_path / "p.toml")
    (tmp_path / "p.toml").write_bytes("\ufeff".encode() + SMALL.replace("\n", "\r\n").encode())
    assert load_policy(tmp_path / "p.toml").datasets


# --- whatever is written -----------------------------------------------------------------------------------

VALUES = (
    st.none().map(lambda _: Decimal("NaN"))
    | st.booleans()
    | st.integers(-3, 10**20)
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.dates()
    | st.datetimes()
    | st.times()
)
KEYS = st.sampled_from(
    [
        "ledger",
        "budgets",
        "datasets",
        "source",
        "format",
        "delimiter",
        "names",
        "header",
        "timezone",
        "privacy_unit",
        "row_level",
        "max_contributions",
        "max_groups_contributed",
        "unknown_groups",
        "budget",
        "columns",
        "invariants",
        "epsilon",
        "delta",
        "max_epsilon_per_query",
        "analysts",
        "max_epsilon_per_analyst",
        "budget_window",
        "accounting",
        "delta_for_groups",
        "epsilon_per_query",
        "default_epsilon",
        "default_delta",
        "unit",
        "type",
        "lower",
        "upper",
        "public_values",
        "public_values_file",
        "forbidden",
        "d",
    ]
) | st.text(max_size=5)
DOCUMENTS: Any = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=6), max_leaves=25
)


def as_toml(value: Any) -> str:
    """An inline value; strings as TOML's basic ones."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{as_toml(str(k))} = {as_toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    if isinstance(value, str):
        return (
            '"' + "".join(f"\\U{ord(c):08x}" if c in '"\\' or ord(c) < 32 or ord(c) == 127 else c for c in value) + '"'
        )
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return "nan" if value.is_nan() else f"{value:e}"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def is_told(text: str) -> bool:
    """Loaded, or refused as a policy; nothing else ever happens."""
    try:
        parse(text)
    except PolicyError as error:
        assert error.faults and all(fault.thing and fault.rule for fault in error.faults)
        assert "discreet." not in str(error)
    return True


@settings(max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(budgets=DOCUMENTS, dataset=DOCUMENTS, column=DOCUMENTS, rest=DOCUMENTS)
def test_no_document_brings_a_traceback(budgets: Any, dataset: Any, column: Any, rest: Any) -> None:
    """Tables of known and unknown keys with values of all types."""
    document = {
        "budgets": {"b": budgets},
        "datasets": {"d": dataset, "e": {"source": "x", "columns": {"x": column}, "budget": "b"}},
    }
    if isinstance(rest, dict):
        document |= rest
    lines = "\n".join(f"{as_toml(str(key))} = {as_toml(value)}" for key, value in document.items())
    assert is_told(lines)


@settings(max_examples=300, deadline=None, database=None)
@given(at=st.integers(0, len(WHOLE)), length=st.integers(0, 20), text=st.text(max_size=6))
def test_no_slip_of_the_pen_brings_a_traceback(at: int, length: int, text: str) -> None:
    """A good policy with some of it cut out and something else put in."""
    text = text.encode("utf-8", "ignore").decode()
    assert is_told(WHOLE[:at] + text + WHOLE[at + length :])
