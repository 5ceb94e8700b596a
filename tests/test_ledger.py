"""The ledger's arithmetic, rules and memory, in one process."""

from __future__ import annotations

import math
import os
import stat
import threading
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from discreet.errors import BudgetError, DiscreetError, SourceError, UsageError
from discreet.ledger import Balance, Budget, Failure, Kind, Ledger, State, default_path
from discreet.privacy import RELATION, PrivacyLoss, split
from discreet.schema import Column, Registration, Schema, parse_type
from ledger_places import Places


def loss(epsilon: Any, delta: Any = 0) -> PrivacyLoss:
    return PrivacyLoss(Fraction(epsilon), Fraction(delta))


def debit(ledger: Ledger, cost: PrivacyLoss, source: str = "s", **more: Any) -> int:
    given: dict[str, Any] = {"unit": "actor", "query": "SELECT COUNT(*)", "digest": "d", "limits": {"c": 20}}
    return ledger.debit(source, cost, **{**given, **more})


@pytest.fixture
def ledger(place: str) -> Any:
    with Ledger(place) as opened:
        yield opened


def registration(source: str = "s", *, kind: str = "BIGINT") -> Registration:
    columns = (Column("actor", parse_type("VARCHAR")), Column("größe", parse_type(kind)))
    return Registration(source, "csv", Schema(columns), {"delimiter": ",", "header": True})


# --- exactness -----------------------------------------------------------------------------------------


def test_ten_tenths_are_one_and_the_eleventh_is_refused(ledger: Ledger) -> None:
    """Sums are exact (0.1 ten times as a float is 0.9999999999999999), and a refusal charges nothing."""
    ledger.set_budget("s", loss(1), unit="actor")
    for _ in range(10):
        debit(ledger, loss("0.1"))
    with pytest.raises(BudgetError) as refused:
        debit(ledger, loss("0.1"))
    text = str(refused.value)
    assert "budget of s" in text
    for part in ("is epsilon 1;", "spent: epsilon 1;", "left: epsilon 0;", "asked: epsilon 0.1.", "Hint:"):
        assert part in text
    assert ledger.balance("s") == Balance(loss(1), loss(1), loss(0), 10)


@pytest.mark.parametrize("tiny", [1e-17, 5e-324, "0.000000000000000000001", Fraction(1, 10**12)])
def test_r66_a_tiny_spend_after_the_budget_is_used_up_is_refused(ledger: Ledger, tiny: Any) -> None:
    """Nothing is lost in rounding: below the smallest epsilon or not, it is refused and spent stays exact."""
    ledger.set_budget("s", loss(1), unit="actor")
    debit(ledger, loss(1))
    for _ in range(3):
        with pytest.raises((BudgetError, UsageError)):
            debit(ledger, PrivacyLoss(tiny))
    assert ledger.balance("s") == Balance(loss(1), loss(1), loss(0), 1)


def test_the_smallest_epsilon_counts(ledger: Ledger) -> None:
    """A million-millionth is booked as it is, next to a large budget too."""
    ledger.set_budget("s", loss(10**9), unit="actor")
    debit(ledger, loss(Fraction(1, 10**12)))
    debit(ledger, loss(10**9 - 1))
    balance = ledger.balance("s")
    assert balance is not None
    assert balance.spent == loss(10**9 - 1 + Fraction(1, 10**12))
    assert balance.total == balance.spent + balance.left


def test_shares_add_up_to_what_was_typed(ledger: Ledger) -> None:
    """The shares of 0.1 over three measurements, which no decimal holds, cost 0.1 together; a share alone is
    off the grid and refused rather than rounded."""
    ledger.set_budget("s", loss("0.1"), unit="actor")
    shares = split(Fraction(1, 10), [Fraction(1)] * 3)
    with pytest.raises(UsageError, match="epsilon"):
        debit(ledger, PrivacyLoss(shares[0]))
    debit(ledger, PrivacyLoss(sum(shares, Fraction(0))))
    assert ledger.balance("s") == Balance(loss("0.1"), loss("0.1"), loss(0), 1)


def test_r67_the_order_of_queries_does_not_change_the_total(places: Places) -> None:
    """Composition is a sum."""
    spent = []
    for costs in (("0.3", "0.7"), ("0.7", "0.3")):
        with Ledger(places.new()) as ledger:
            ledger.set_budget("s", loss(2, "1e-6"), unit="actor")
            for cost in costs:
                debit(ledger, loss(cost, "1e-9"))
            balance = ledger.balance("s")
            assert balance is not None
            spent.append(balance.spent)
    assert spent == [loss(1, "2e-9")] * 2


def test_delta_is_a_budget_of_its_own(ledger: Ledger) -> None:
    """Deltas add up exactly, are refused when they run out, and an epsilon-only query still fits then."""
    ledger.set_budget("s", loss(10, "1e-6"), unit="actor")
    debit(ledger, loss(1, "3e-7"))
    debit(ledger, loss(1, "7e-7"))
    with pytest.raises(BudgetError, match=r"left: epsilon 8, delta 0; asked: epsilon 1, delta 0\.0{29}1\b"):
        debit(ledger, loss(1, "1e-30"))
    debit(ledger, loss(8))
    assert ledger.balance("s") == Balance(loss(10, "1e-6"), loss(10, "1e-6"), loss(0), 3)


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "1e400", "", "one", True, 1e-320, Decimal("NaN")])
@pytest.mark.parametrize("what", ["epsilon", "delta"])
def test_r27_values_that_are_no_loss_are_refused_by_name(ledger: Ledger, bad: Any, what: str) -> None:
    """For debits and budgets; the ledger does not change."""
    if (what, bad) == ("delta", 0) and bad is not True:
        bad = 1  # a delta of 0 is fine; 1 is not
    ledger.set_budget("s", loss(1), unit="actor")
    head = ledger.verify()
    cost = PrivacyLoss(bad) if what == "epsilon" else PrivacyLoss(Fraction(1), bad)
    for act in (
        lambda: debit(ledger, cost),
        lambda: ledger.raise_budget("s", cost),
        lambda: ledger.set_budget("new", cost, unit="actor"),
    ):
        with pytest.raises(UsageError, match=f"^{what}: must be"):
            act()
    assert ledger.verify() == head


# --- the rules of a budget -----------------------------------------------------------------------------


def test_without_a_budget_nothing_is_debited(ledger: Ledger) -> None:
    """And the refusal says how to set one."""
    with pytest.raises(BudgetError, match="--budget"):
        debit(ledger, loss("0.1"))
    assert (ledger.budget("s"), ledger.balance("s"), ledger.history("s")) == (None, None, ())


def test_a_budget_is_set_once_for_good(ledger: Ledger) -> None:
    """The same again changes nothing; another value names the one in force and the way to raise it."""
    ledger.set_budget("s", loss(3), unit="actor")
    ledger.set_budget("s", loss("3.0"), unit="actor")
    assert len(ledger.history("s")) == 1
    for other in (loss(4), loss(2), loss(3, "1e-6")):
        with pytest.raises(UsageError, match=r"is epsilon 3, set for good.*budget raise"):
            ledger.set_budget("s", other, unit="actor")
    assert ledger.budget("s") == Budget(loss(3), "actor", RELATION)


def test_a_budget_is_only_raised(ledger: Ledger) -> None:
    """A raise is an entry; a lower epsilon or delta is refused; the unit and what is spent stay."""
    with pytest.raises(UsageError, match="not set yet"):
        ledger.raise_budget("s", loss(1))
    ledger.set_budget("s", loss(1, "1e-6"), unit="actor")
    debit(ledger, loss(1))
    for lower in (loss("0.999999999999", "1e-6"), loss(5, "9e-7"), loss(5)):
        with pytest.raises(UsageError, match="only be raised"):
            ledger.raise_budget("s", lower)
    ledger.raise_budget("s", loss(2, "1e-6"))
    ledger.raise_budget("s", loss(2, "1e-6"))
    debit(ledger, loss(1))
    assert ledger.budget("s") == Budget(loss(2, "1e-6"), "actor", RELATION)
    assert [entry.kind for entry in ledger.history("s")] == [Kind.BUDGET, Kind.DEBIT, Kind.RAISE, Kind.DEBIT]


def test_r50_two_units_or_relations_are_never_mixed(ledger: Ledger) -> None:
    """A debit or a budget about another unit or relation is refused by name, charges nothing."""
    ledger.set_budget("s", loss(1), unit="actor")
    replace = "replace one row"
    with pytest.raises(UsageError, match="privacy unit 'actor'"):
        debit(ledger, loss("0.1"), unit="actor, DATE(time)")
    with pytest.raises(UsageError, match="relation 'add or remove"):
        debit(ledger, loss("0.1"), relation=replace)
    with pytest.raises(UsageError, match="privacy unit 'actor'"):
        ledger.set_budget("s", loss(1), unit="row")
    with pytest.raises(UsageError, match="relation 'add or remove"):
        ledger.set_budget("s", loss(1), unit="actor", relation=replace)
    assert ledger.balance("s") == Balance(loss(1), loss(0), loss(1), 0)


def test_sources_have_budgets_of_their_own(ledger: Ledger) -> None:
    """One file, many sources; names that differ in case, accents or blanks are different sources."""
    names = ["s", "S", "s ", "größe", "file:/a/b c.csv", "x'; DROP TABLE entries; --"]
    for i, name in enumerate(names, start=1):
        ledger.set_budget(name, loss(i), unit="actor")
        debit(ledger, loss(i), source=name)
    for i, name in enumerate(names, start=1):
        assert ledger.balance(name) == Balance(loss(i), loss(i), loss(0), 1)
    ledger.verify()


# --- what is remembered --------------------------------------------------------------------------------


def test_history_tells_all(ledger: Ledger) -> None:
    """Each entry with its time, cost and fields; a debit with what became of it."""
    ledger.register(registration())
    ledger.set_budget("s", loss(3), unit="actor")
    released = debit(ledger, loss("0.5", "0"), analyst="zoë", query="q1", digest="d1", limits={"m": [1, 2]})
    failed = debit(ledger, loss("0.25"), query="q2")
    open_ = debit(ledger, loss("0.25"), query="q3")
    ledger.record_failure(failed, Failure.ENGINE)
    answer = {"z": 1, "a": [None, 1.5, "é\u0000"], "n": 2**70}
    ledger.record_release(released, answer)
    register, budget, first, second, third = ledger.history("s")
    assert (register.kind, register.version, register.loss) == (Kind.REGISTER, 1, None)
    assert (budget.kind, budget.loss, budget.unit, budget.relation) == (
        Kind.BUDGET, loss(3), "actor", RELATION,
    )  # fmt: skip
    assert (first.number, first.state, first.answer) == (released, State.RELEASED, answer)
    assert first.answer is not None
    assert list(first.answer) == ["z", "a", "n"], "an answer keeps the order of its columns"
    assert (first.analyst, first.query, first.digest) == ("zoë", "q1", "d1")
    assert (first.loss, first.limits, first.version) == (loss("0.5"), {"m": [1, 2]}, 1)
    assert (second.state, second.reason, second.answer) == (State.FAILED, "the engine failed", None)
    assert (third.number, third.state, third.spent) == (open_, State.DEBITED, loss(1))
    assert datetime.fromisoformat(first.time).utcoffset() == timedelta(0)


def test_a_debit_has_one_outcome(ledger: Ledger) -> None:
    """Released or failed, once; only debits have one; failing gives nothing back."""
    ledger.set_budget("s", loss(1), unit="actor")
    first, second = debit(ledger, loss("0.5")), debit(ledger, loss("0.5"))
    ledger.record_release(first, {"n": 1})
    ledger.record_failure(second, Failure.INTERRUPTED)
    for entry in (first, second):
        with pytest.raises(UsageError, match="already recorded"):
            ledger.record_release(entry, {"n": 2})
        with pytest.raises(UsageError, match="already recorded"):
            ledger.record_failure(entry, Failure.ENGINE)
    for entry in (0, 1, 4, 99, -1):  # none, the budget, an outcome, none, none
        with pytest.raises(UsageError, match="must be the number of a debited query"):
            ledger.record_release(entry, {})
    assert ledger.balance("s") == Balance(loss(1), loss(1), loss(0), 2)


def test_a_failure_cannot_quote_an_engine(ledger: Ledger) -> None:
    """Only the fixed reasons are taken, so that no data value reaches the ledger; nor the error."""
    ledger.set_budget("s", loss(1), unit="actor")
    entry = debit(ledger, loss("0.5"))
    with pytest.raises(UsageError) as refused:
        ledger.record_failure(entry, "could not cast 'alice@example.org'")  # type: ignore[arg-type]
    assert "alice" not in str(refused.value)


def test_a_stored_answer_belongs_to_source_version_and_digest(ledger: Ledger) -> None:
    """Only a released answer, only under the same registration, the newest of several."""
    ledger.set_budget("s", loss(9), unit="actor")
    ledger.set_budget("t", loss(9), unit="actor")
    assert ledger.register(registration()) == 1
    one = debit(ledger, loss(1), digest="d")
    assert ledger.stored_answer("s", 1, "d") is None
    ledger.record_release(one, {"n": 1})
    failed = debit(ledger, loss(1), digest="d")
    ledger.record_failure(failed, Failure.LIMIT)
    stored = ledger.stored_answer("s", 1, "d")
    assert stored is not None
    assert (stored.number, stored.answer) == (one, {"n": 1})
    for other in (("t", 1, "d"), ("s", 2, "d"), ("s", 0, "d"), ("s", 1, "e")):
        assert ledger.stored_answer(*other) is None
    fresh = debit(ledger, loss(1), digest="d")
    ledger.record_release(fresh, {"n": 2})
    stored = ledger.stored_answer("s", 1, "d")
    assert stored is not None
    assert stored.answer == {"n": 2}


def test_the_newest_registration_counts(ledger: Ledger) -> None:
    """Versions count up; with first=True a second registration leaves the first in force."""
    assert (ledger.registration("s"), ledger.version("s")) == (None, 0)
    assert ledger.register(registration(), first=True) == 1
    assert ledger.register(registration(kind="DOUBLE"), first=True) == 1
    assert ledger.registration("s") == registration()
    assert ledger.register(registration(kind="DECIMAL(12,2)")) == 2
    assert ledger.registration("s") == registration(kind="DECIMAL(12,2)")
    assert ledger.register(registration("t")) == 1


def test_a_plan_from_an_older_registration_is_not_charged(ledger: Ledger) -> None:
    """Else its answer would be stored, and replayed, under a schema that it was not made from."""
    ledger.set_budget("s", loss(1), unit="actor")
    version = ledger.register(registration())
    debit(ledger, loss("0.1"), version=version)
    ledger.register(registration())
    with pytest.raises(SourceError, match="anew"):
        debit(ledger, loss("0.1"), version=version)
    assert ledger.balance("s") == Balance(loss(1), loss("0.1"), loss("0.9"), 1)


@pytest.mark.parametrize("bad", [{"x": math.nan}, {"x": Fraction(1, 2)}, {"x": object()}])
def test_what_is_not_json_is_refused(ledger: Ledger, bad: dict[str, Any]) -> None:
    """Limits before a charge, answers before a record; the error does not quote an answer."""
    ledger.set_budget("s", loss(1), unit="actor")
    with pytest.raises(UsageError, match="limits: must be made of plain"):
        debit(ledger, loss("0.1"), limits=bad)
    entry = debit(ledger, loss("0.1"))
    with pytest.raises(UsageError, match="answer: must be made of plain"):
        ledger.record_release(entry, bad)


def test_text_that_is_not_unicode_is_refused_by_name(ledger: Ledger) -> None:
    """A stray byte of a command line arrives as a lone surrogate, which no file can hold."""
    ledger.set_budget("s", loss(1), unit="actor")
    for name in ("source", "query", "digest", "analyst"):
        with pytest.raises(UsageError, match=f"^{name}: must be valid Unicode"):
            debit(ledger, loss("0.1"), **{name: "\udcff"})


# --- time, threads, places -----------------------------------------------------------------------------


def test_a_clock_that_goes_back_changes_no_order_and_no_total(place: str) -> None:
    """Order is by number; times are written as the clock said them, in UTC."""
    times = [datetime(2030, 1, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime(1999, 1, 1, tzinfo=UTC)]
    ticking = cycle(times)
    with Ledger(place, clock=lambda: next(ticking)) as ledger:
        ledger.set_budget("s", loss(1), unit="actor")
        for query in ("first", "second", "third"):
            debit(ledger, loss("0.1"), query=query)
        entries = ledger.history("s")
        assert [entry.query for entry in entries] == ["", "first", "second", "third"]
        assert [entry.time[:16] for entry in entries] == ["2029-12-31T23:00", "1999-01-01T00:00"] * 2
        assert ledger.balance("s") == Balance(loss(1), loss("0.3"), loss("0.7"), 3)
        ledger.verify()


def test_threads_share_one_ledger(ledger: Ledger) -> None:
    """Eight threads, five debits of 0.1 each, a budget of 1: ten fit."""
    ledger.set_budget("s", loss(1), unit="actor")
    results: list[str] = []

    def work() -> None:
        for _ in range(5):
            try:
                debit(ledger, loss("0.1"))
            except DiscreetError as error:
                results.append(type(error).__name__)
            else:
                results.append("paid")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["BudgetError"] * 30 + ["paid"] * 10


def test_a_closed_ledger_says_so(place: str) -> None:
    """Closing twice is fine; using it is an error that says what to do."""
    ledger = Ledger(place)
    ledger.close()
    ledger.close()
    with pytest.raises(UsageError, match="is closed"):
        ledger.balance("s")


def test_a_new_ledger_is_for_its_owner_only(tmp_path: Path) -> None:
    """Folder 0700, file and journal 0600, whatever the umask; nothing else is left in the folder."""
    path = tmp_path / "state" / "discreet" / "ledger.sqlite"
    umask = os.umask(0)
    try:
        with Ledger(path) as ledger:
            ledger.set_budget("s", loss(1), unit="actor")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert set(modes.values()) == {0o600}
    assert [file.name for file in path.parent.iterdir()] == ["ledger.sqlite"]


def test_the_default_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """DISCREET_LEDGER, else the platform's folder for state; a relative XDG path is ignored, as XDG asks."""
    monkeypatch.setenv("DISCREET_LEDGER", "/x/l.sqlite")
    assert default_path() == Path("/x/l.sqlite")
    monkeypatch.delenv("DISCREET_LEDGER")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path() == Path("/state/discreet/ledger.sqlite")
    for useless in ("", "state"):
        monkeypatch.setenv("XDG_STATE_HOME", useless)
        assert default_path() == tmp_path / ".local/state/discreet/ledger.sqlite"
    monkeypatch.setattr("sys.platform", "darwin")
    assert default_path() == tmp_path / "Library/Application Support/discreet/ledger.sqlite"


@pytest.mark.parametrize("name", ["a b?mode=memory#x%41.sqlite", "größe.sqlite", ":memory:", "-x"])
def test_odd_file_names_are_file_names(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of a path is ever an option of SQLite; a relative path holds after a change of folder."""
    monkeypatch.chdir(tmp_path)
    with Ledger(name) as ledger:
        monkeypatch.chdir("/")
        ledger.set_budget("s", loss(1), unit="actor")
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("bad", ["", "a\0b", "mysql://host/db"])
def test_what_is_no_place_is_refused(bad: str) -> None:
    """With the name of the thing; a server is not taken for a folder called "mysql:"."""
    with pytest.raises(UsageError, match=r"^ledger: must be the path of a file"):
        Ledger(bad)


# --- a random walk -------------------------------------------------------------------------------------

GRID = st.integers(1, 30).map(lambda n: Fraction(n, 10)) | st.just(Fraction(1, 10**12))
DELTAS = st.sampled_from([Fraction(0), Fraction(1, 10**7), Fraction(1, 10**30)])
SOURCES = st.sampled_from(["a", "b"])


class Walk(RuleBasedStateMachine):
    """Budgets, raises, debits, outcomes and reopenings in any order, against a model in a few dicts: spent is
    what the model says, never above the total, and no entry is ever lost or changed."""

    place: str

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger(self.place)
        self.total: dict[str, PrivacyLoss] = {}
        self.spent = {"a": loss(0), "b": loss(0)}
        self.state: dict[int, tuple[str, State]] = {}
        self.entries = {"a": 0, "b": 0}
        self.heads: list[str] = []

    def teardown(self) -> None:
        self.ledger.close()

    @rule(source=SOURCES, epsilon=GRID, delta=DELTAS)
    def set_budget(self, source: str, epsilon: Fraction, delta: Fraction) -> None:
        total = PrivacyLoss(epsilon, delta)
        if self.total.get(source, total) != total:
            with pytest.raises(UsageError):
                self.ledger.set_budget(source, total, unit="u")
            return
        self.ledger.set_budget(source, total, unit="u")
        self.entries[source] += source not in self.total
        self.total[source] = total

    @rule(source=SOURCES, epsilon=GRID, delta=DELTAS)
    def raise_budget(self, source: str, epsilon: Fraction, delta: Fraction) -> None:
        total = PrivacyLoss(epsilon, delta)
        if source not in self.total or not total.covers(self.total[source]):
            with pytest.raises(UsageError):
                self.ledger.raise_budget(source, total)
            return
        self.ledger.raise_budget(source, total)
        self.entries[source] += total != self.total[source]
        self.total[source] = total

    @rule(source=SOURCES, epsilon=GRID, delta=DELTAS)
    def debit(self, source: str, epsilon: Fraction, delta: Fraction) -> None:
        cost = PrivacyLoss(epsilon, delta)
        if source not in self.total or not self.total[source].covers(self.spent[source] + cost):
            with pytest.raises(BudgetError):
                debit(self.ledger, cost, source, unit="u")
            return
        self.state[debit(self.ledger, cost, source, unit="u")] = (source, State.DEBITED)
        self.spent[source] += cost
        self.entries[source] += 1

    @precondition(lambda self: self.state)
    @rule(data=st.data(), failed=st.booleans())
    def finish(self, data: st.DataObject, failed: bool) -> None:
        entry = data.draw(st.sampled_from(sorted(self.state)))
        source, state = self.state[entry]

        def act() -> None:
            if failed:
                self.ledger.record_failure(entry, Failure.INTERNAL)
            else:
                self.ledger.record_release(entry, {"n": entry})

        if state is State.DEBITED:
            act()
            self.state[entry] = (source, State.FAILED if failed else State.RELEASED)
        else:
            with pytest.raises(UsageError):
                act()

    @rule()
    def reopen(self) -> None:
        self.ledger.close()
        self.ledger = Ledger(self.place)

    @invariant()
    def nothing_is_lost(self) -> None:
        head = self.ledger.verify()
        for earlier in self.heads[-3:]:
            self.ledger.verify(earlier)
        self.heads.append(head)
        for source in ("a", "b"):
            history = self.ledger.history(source)
            assert len(history) == self.entries[source]
            states = {entry.number: (source, entry.state) for entry in history if entry.state}
            assert states == {n: state for n, state in self.state.items() if state[0] == source}
            balance = self.ledger.balance(source)
            assert (balance is None) == (source not in self.total)
            if balance is not None:
                assert balance.spent == self.spent[source]
                assert balance.total == self.total[source] == balance.spent + balance.left
                assert balance.total.covers(balance.spent)


def test_a_random_walk(places: Places) -> None:
    places.walk(Walk, files=15, server=4)


@pytest.mark.slow
def test_many_random_walks(places: Places) -> None:
    places.walk(Walk, files=300, server=60, steps=50)
