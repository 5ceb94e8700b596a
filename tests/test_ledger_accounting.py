"""Tighter accounting in the ledger: who may spend what, that nothing is forgotten, and that it never shrinks."""

from __future__ import annotations

from datetime import timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from discreet.accounting.renyi import best_order, converted, divergence
from discreet.accounting.same_epsilon import composed_epsilon
from discreet.errors import BudgetError, LedgerError, UsageError
from discreet.exact import EPSILON_STEP
from discreet.ledger import Accounting, Balance, Kind, Ledger, Method, Window, chain
from discreet.ledger.accounting import Standing, Weight, accounting_for, charged, counted, how_many, weight, window_at
from discreet.ledger.checking import Check
from discreet.ledger.records import Budget
from discreet.privacy import RELATION, LaplaceVector, PrivacyLoss
from ledger_places import Places, by_hand, tamper
from test_ledger_accounts import Clock

DELTA = Fraction(1, 10**6)
TENTH = Fraction(1, 10)
WEIGHTED = (LaplaceVector(20 * 2**20, TENTH),)


def loss(epsilon: Any, delta: Any = 0) -> PrivacyLoss:
    return PrivacyLoss(Fraction(epsilon), Fraction(delta))


def debit(ledger: Ledger, cost: PrivacyLoss, source: str = "s", **more: Any) -> int:
    given: dict[str, Any] = {"unit": "actor", "query": "SELECT COUNT(*)", "digest": "d", "limits": {}}
    return ledger.debit(source, cost, **{**given, **more})


def spend(ledger: Ledger, cost: PrivacyLoss, **more: Any) -> int:
    """Debit until it is refused; how often it was not."""
    for count in range(10_000):
        told = ledger.how_many_more("s", cost, more.get("vectors"))
        try:
            debit(ledger, cost, **more)
        except BudgetError:
            assert told == 0
            return count
        if told is None or told == 0:
            raise AssertionError("it was told that none would fit")
    raise AssertionError("no end")


@pytest.fixture
def ledger(place: str) -> Any:
    with Ledger(place) as opened:
        yield opened


# --- what fits -----------------------------------------------------------------------------------------


def test_a_hundred_queries_of_a_tenth_fit_a_renyi_budget_of_5_1(ledger: Ledger) -> None:
    """Where basic composition says 51. Nothing need be known of the queries but their epsilon."""
    ledger.set_budget("s", loss("5.1", DELTA), unit="actor")
    assert ledger.how_many_more("s", loss(TENTH)) == 51
    ledger.set_accounting("s", Method.RENYI)
    assert ledger.how_many_more("s", loss(TENTH)) == 100
    assert spend(ledger, loss(TENTH)) == 100
    balance = ledger.balance("s")
    assert balance is not None
    assert balance.basic == loss(10)
    assert balance.spent == loss("5.081201961791", DELTA)
    assert balance.total == balance.spent + balance.left
    with pytest.raises(BudgetError, match=r"is epsilon 5\.1, delta 0\.000001; spent: epsilon 5\.081201961791, delta"):
        debit(ledger, loss(TENTH))
    debit(ledger, balance.left)  # what is left is never more than what may be asked
    ledger.verify()


def test_noise_on_weighted_totals_costs_less_and_two_measurements_cost_less_than_one(ledger: Ledger) -> None:
    """103 counts of 0.1; of averages, whose two totals meet noise of half of it each, far more."""
    half = LaplaceVector(2**25, TENTH / 2)
    for source, vectors, fit in (("s", WEIGHTED, 103), ("t", (half, half), 197)):
        ledger.set_budget(source, loss("5.1", DELTA), unit="actor")
        ledger.set_accounting(source, Method.RENYI)
        assert ledger.how_many_more(source, loss(TENTH), vectors) == fit
    assert spend(ledger, loss(TENTH), vectors=WEIGHTED) == 103
    ledger.verify()


def test_a_hundred_equal_queries_fit_a_budget_of_4_9(ledger: Ledger) -> None:
    """With the epsilon of every query fixed beforehand; another epsilon is refused by name, and costs nothing."""
    ledger.set_budget("s", loss("4.9", DELTA), unit="actor")
    ledger.set_accounting("s", Method.PLD, epsilon_per_query=TENTH)
    for other in ("0.1000001", "0.05", "0.4"):
        with pytest.raises(BudgetError, match=r"^epsilon of one query: is 0\.1, no more and no less.*pld"):
            debit(ledger, loss(other))
        assert ledger.how_many_more("s", loss(other)) == 0
    assert spend(ledger, loss(TENTH)) == 105
    balance = ledger.balance("s")
    assert balance is not None
    assert (balance.basic, balance.queries) == (loss("10.5"), 105)
    assert composed_epsilon(100, TENTH, DELTA) < balance.spent.epsilon <= Fraction("4.9")
    ledger.verify()


@pytest.mark.parametrize("method", [Method.RENYI, Method.PLD])
def test_what_was_spent_before_the_switch_counts(ledger: Ledger, method: Method) -> None:
    """By the filter as if it had been in force from the first query; under PLD by its sum, since its epsilons may have
    been chosen by the answers."""
    ledger.set_budget("s", loss("5.1", DELTA), unit="actor")
    for _ in range(20):
        debit(ledger, loss(TENTH))
    ledger.set_accounting("s", method, epsilon_per_query=TENTH if method is Method.PLD else None)
    count = spend(ledger, loss(TENTH))
    if method is Method.RENYI:
        assert count == 80
    else:
        assert composed_epsilon(count, TENTH, DELTA) <= Fraction("3.1") < composed_epsilon(count + 1, TENTH, DELTA)
        assert count == 47
    ledger.verify()


def test_few_queries_cost_their_sum(ledger: Ledger) -> None:
    """Spent is the smaller of both, and so is what is refused: a budget is never worth less than by basic
    composition, whatever its accounting."""
    ledger.set_budget("s", loss(1, DELTA), unit="actor")
    ledger.set_accounting("s", Method.RENYI)
    assert ledger.balance("s") == Balance(loss(1, DELTA), loss(0), loss(1, DELTA), 0, basic=loss(0))
    debit(ledger, loss("0.25"))
    assert ledger.balance("s") == Balance(loss(1, DELTA), loss("0.25", DELTA), loss("0.75"), 1, basic=loss("0.25"))
    debit(ledger, loss("0.75"))
    with pytest.raises(BudgetError):
        debit(ledger, loss("0.000000000001"))
    ledger.verify()


# --- delta -----------------------------------------------------------------------------------------------


def test_groups_chosen_from_the_data_spend_their_own_part_of_delta(ledger: Ledger) -> None:
    """The part that the owner sets aside for them; what the accounting uses up cannot be spent twice, not even where
    basic composition would do without it."""
    ledger.set_budget("s", loss(5, DELTA), unit="actor")
    ledger.set_accounting("s", Method.RENYI, delta_for_groups=DELTA / 4)
    debit(ledger, loss(TENTH, DELTA / 8))
    balance = ledger.balance("s")
    assert balance is not None
    assert (balance.spent, balance.left.delta) == (loss(TENTH, DELTA * 7 / 8), DELTA / 8)
    with pytest.raises(
        BudgetError, match=r"left: epsilon 4\.9, delta 0\.000000125; asked: epsilon 0\.1, delta 0\.0000002"
    ):
        debit(ledger, loss(TENTH, "2e-7"))
    debit(ledger, loss(TENTH, DELTA / 8))
    assert ledger.how_many_more("s", loss(TENTH, Fraction(1, 10**12))) == 0
    # The rest converts at three quarters of the delta.
    order = best_order(Fraction(5), DELTA * 3 / 4)
    fit = (5 - converted(order, DELTA * 3 / 4)) // divergence(order, [LaplaceVector(1, TENTH)])
    assert ledger.how_many_more("s", loss(TENTH)) == fit - 2
    ledger.verify()


def test_an_accounting_that_cannot_be_is_refused_by_name(ledger: Ledger) -> None:
    """And nothing is written."""
    with pytest.raises(UsageError, match="not set yet"):
        ledger.set_accounting("s", Method.RENYI)
    ledger.set_budget("s", loss(3), unit="actor")
    ledger.set_budget("d", loss(3, DELTA), unit="actor")
    debit(ledger, loss(1, DELTA / 2), "d")
    head = ledger.verify()
    for source, method, more, said in (
        ("s", Method.RENYI, {}, "needs a delta: the budget's is 0"),
        ("d", Method.RENYI, {"delta_for_groups": DELTA}, "is for groups"),
        ("d", Method.RENYI, {"delta_for_groups": -1}, "delta_for_groups: must be"),
        ("d", Method.PLD, {}, "epsilon_per_query: belongs to"),
        ("d", Method.PLD, {"epsilon_per_query": 0}, "epsilon_per_query: must be"),
        ("d", Method.RENYI, {"epsilon_per_query": TENTH}, "epsilon_per_query: belongs to"),
    ):
        with pytest.raises(UsageError, match=said):
            ledger.set_accounting(source, method, **more)
    with pytest.raises(
        BudgetError, match=r"by renyi would leave .*delta 0\.0000015 spent of epsilon 3, delta 0\.000001"
    ):
        ledger.set_accounting("d", Method.RENYI)
    with pytest.raises(UsageError, match="must not cost more"):
        debit(ledger, loss("0.01"), vectors=WEIGHTED)
    assert ledger.verify() == head
    ledger.set_accounting("d", Method.RENYI, delta_for_groups=DELTA / 2)
    ledger.set_accounting("d", Method.RENYI, delta_for_groups=DELTA / 2)
    ledger.set_accounting("d", Method.BASIC)
    kinds = [entry.kind for entry in ledger.history("d")]
    assert kinds == [Kind.BUDGET, Kind.DEBIT, Kind.ACCOUNTING, Kind.ACCOUNTING]
    said = ledger.history("d")[2].limits
    order = str(best_order(Fraction(3), DELTA / 2))
    assert said == {"accounting": "renyi", "delta_for_groups": "1/2000000", "order": order}
    assert ledger.balance("d") == Balance(loss(3, DELTA), loss(1, DELTA / 2), loss(2, DELTA / 2), 1)
    ledger.verify()


def test_going_back_to_basic_needs_room_for_the_sum(ledger: Ledger) -> None:
    """A budget that is only kept by the filter stays under it."""
    ledger.set_budget("s", loss("5.1", DELTA), unit="actor")
    ledger.set_accounting("s", Method.RENYI)
    for _ in range(60):
        debit(ledger, loss(TENTH))
    with pytest.raises(BudgetError, match=r"by basic would leave epsilon 6, delta 0 spent of epsilon 5\.1"):
        ledger.set_accounting("s", Method.BASIC)
    ledger.raise_budget("s", loss(6, DELTA))
    ledger.set_accounting("s", Method.BASIC)
    with pytest.raises(BudgetError):
        debit(ledger, loss("0.000000000001"))
    ledger.verify()


def test_a_raise_reckons_the_divergence_anew(ledger: Ledger) -> None:
    """At the order that serves the new total; as if it had been the total from the start."""
    ledger.set_budget("s", loss(1, DELTA), unit="actor")
    ledger.set_accounting("s", Method.RENYI)
    for _ in range(10):
        debit(ledger, loss(TENTH))
    ledger.raise_budget("s", loss("5.1", DELTA))
    budget = ledger.budget("s")
    assert budget is not None
    assert budget.accounting == Accounting(Method.RENYI, order=Fraction(6))
    assert ledger.how_many_more("s", loss(TENTH)) == 90
    ledger.raise_budget("s", loss("5.1", DELTA))
    assert [entry.kind for entry in ledger.history("s")[-2:]] == [Kind.RAISE, Kind.ACCOUNTING]
    ledger.verify()


# --- accounts and windows ----------------------------------------------------------------------------------


def test_a_source_brings_its_divergence_along(ledger: Ledger) -> None:
    """A shared budget is spent as if all its sources' queries had always been its own, also after a raise."""
    ledger.set_budget("s", loss(3), unit="actor")
    for vectors in (None, WEIGHTED, None):
        debit(ledger, loss(TENTH), vectors=vectors)
    ledger.set_budget("budget:p", loss("5.1", DELTA), unit="actor")
    ledger.set_accounting("budget:p", Method.RENYI)
    ledger.join("s", "budget:p")
    assert ledger.how_many_more("s", loss(TENTH)) == 97
    for _ in range(60):
        debit(ledger, loss(TENTH))
    before = ledger.balance("s")
    ledger.raise_budget("budget:p", loss("5.2", DELTA))
    after = ledger.balance("s")
    assert before is not None
    assert after is not None
    order = best_order(Fraction("5.2"), DELTA)
    all_of_them = [LaplaceVector(1, TENTH)] * 62 + list(WEIGHTED)
    exact = divergence(order, all_of_them) + converted(order, DELTA)
    assert 0 <= after.spent.epsilon - exact < EPSILON_STEP
    assert before.basic == after.basic == loss("6.3")
    ledger.verify()


def test_a_window_begins_anew_under_every_accounting(place: str) -> None:
    """Its divergence and its count too; and a clock that goes back frees nothing."""
    clock = Clock(2024, 5, 30)
    with Ledger(place, clock=clock) as ledger:
        for method, epsilon in ((Method.RENYI, None), (Method.PLD, TENTH)):
            ledger.set_budget(method, loss("5.1", DELTA), unit="actor", window=Window.MONTHLY)
            ledger.set_accounting(method, method, epsilon_per_query=epsilon)
            first = ledger.how_many_more(method, loss(TENTH))
            assert first is not None
            for _ in range(20):
                debit(ledger, loss(TENTH), method)
            assert ledger.how_many_more(method, loss(TENTH)) == first - 20
        clock.now += timedelta(days=5)
        for method in (Method.RENYI, Method.PLD):
            assert ledger.balance(method) == Balance(
                loss("5.1", DELTA), loss(0), loss("5.1", DELTA), 20, "2024-06", loss(2), loss(0)
            )
            debit(ledger, loss(TENTH), method)
        clock.now -= timedelta(days=60)
        for method, most in ((Method.RENYI, 100), (Method.PLD, 111)):
            assert ledger.how_many_more(method, loss(TENTH)) == most - 1
        ledger.verify()


# --- nothing is forgotten, nothing shrinks -----------------------------------------------------------------

COSTS = st.tuples(
    st.sampled_from(["0.000000000001", "0.01", "0.1", "0.3", "1", "20"]).map(Fraction),
    st.sampled_from([0, Fraction(1, 10**9)]),
    st.none() | st.sampled_from([1, 3, 2**20, 2**70]),
)


@given(
    st.lists(COSTS, min_size=1, max_size=25),
    st.sampled_from([("1", "1e-6"), ("30", "1e-6"), ("0.05", "0.009"), ("1000", "1e-12")]),
    st.sampled_from([Method.RENYI, Method.PLD]),
    st.integers(1, 8),
)
@settings(max_examples=60, deadline=None)
def test_an_entry_never_lowers_what_is_spent(
    costs: list[tuple[Fraction, Any, int | None]], total: tuple[str, str], method: Method, times: int
) -> None:
    """In epsilon and in delta, whatever is debited and whichever of the two sums is the smaller before and after; and
    it never counts more than the sum, nor more than the query's own epsilon at once."""
    budget_total = loss(*total)
    epsilon = costs[0][0] if method is Method.PLD else None
    accounting = accounting_for(method, budget_total, budget_total.delta / 2, epsilon)
    budget = Budget(budget_total, "u", RELATION, accounting=accounting)
    standing, before = Standing(), loss(0)
    for cost, delta, sensitivity in costs:
        cost = costs[0][0] if method is Method.PLD else cost
        vectors = None if sensitivity is None else (LaplaceVector(sensitivity, cost),)
        for _ in range(times):
            standing = charged(standing, PrivacyLoss(cost, Fraction(delta)), weight(accounting, loss(cost), vectors))
            after = counted(budget, standing)
            assert after.covers(before)
            assert after.epsilon <= standing.in_window.epsilon
            assert after.epsilon - before.epsilon <= cost + EPSILON_STEP
            before = after


@given(st.sampled_from(list(Method)), st.integers(1, 60), st.sampled_from(["0.01", "0.1", "1"]))
@settings(max_examples=40, deadline=None)
def test_how_many_more_is_what_fits(method: Method, spent: int, epsilon: str) -> None:
    """That many fit, and one more does not."""
    budget_total, cost = loss(4, DELTA), loss(epsilon)
    fixed = cost.epsilon if method is Method.PLD else None
    budget = Budget(budget_total, "u", RELATION, accounting=accounting_for(method, budget_total, Fraction(0), fixed))
    one = weight(budget.accounting, cost, None)
    standing = Standing()
    for _ in range(spent):
        after = charged(standing, cost, one)
        if not budget_total.covers(counted(budget, after)):
            break
        standing = after
    more = how_many(budget, standing, cost, one)
    for count, fits in ((more, True), (more + 1, False)):
        many = Weight(one.divergence * count, one.equal * count)
        after = charged(standing, loss(cost.epsilon * count), many)
        assert budget_total.covers(counted(budget, after)) is fits


@pytest.mark.parametrize(
    ("forged", "noticed"),
    [
        ({}, None),
        ({"divergence": "0.02"}, "does not add up"),
        ({"divergence": None}, "does not add up"),
        ({"vectors": '[[1048576,"1/10"]]'}, "does not add up"),
        ({"vectors": '[[0,"1/10"]]'}, "cannot be read"),
        ({"vectors": "7"}, "cannot be read"),
        (
            {"kind": "accounting", "content": '{"accounting":"renyi","delta_for_groups":"1","order":"6"}'},
            "cannot be read",
        ),
        ({"kind": "accounting", "content": '{"accounting":"fair"}'}, "cannot be read"),
        ({"kind": "accounting", "source": "t", "content": '{"accounting":"basic","delta_for_groups":"0"}'}, "not set"),
        ({"equal_queries": 1}, "does not add up"),
    ],
)
def test_a_forged_state_with_a_right_hash_is_noticed(place: str, forged: dict[str, Any], noticed: str | None) -> None:
    """Verify reckons the divergence of every entry from what it says about its noise."""
    with Ledger(place) as ledger:
        ledger.set_budget("s", loss("5.1", DELTA), unit="actor")
        ledger.set_accounting("s", Method.RENYI)
        debit(ledger, loss(TENTH))
        ledger.verify()
    with by_hand(place) as entries:
        last = chain.newest(entries, "TRUE")
    assert last is not None
    both = str(2 * Fraction(last["divergence"]) * 10**18).zfill(18)
    honest = {
        **last,
        "spent_epsilon": "0.2",
        "analyst_epsilon": "0.2",
        "queries": 2,
        "divergence": f"0.{both.zfill(18)}",
    }
    row = {name: value for name, value in {**honest, **forged}.items() if name not in ("number", "hash")}
    with by_hand(place) as entries:
        chain.append(entries, row)
        check = Check(None)
        if noticed is None:
            assert check.some(entries)
        else:
            with pytest.raises(chain.Damage, match=noticed):
                check.some(entries)


def test_an_accounting_cannot_be_edited(place: str) -> None:
    """It stands under the hash, and every debit looks it up."""
    with Ledger(place) as ledger:
        ledger.set_budget("s", loss(1, DELTA), unit="actor")
        ledger.set_accounting("s", Method.RENYI)
    tamper(place, "UPDATE entries SET content = replace(content, 'renyi', 'basic') WHERE kind = 'accounting'")
    with pytest.raises(LedgerError, match="hash"), Ledger(place) as ledger:
        debit(ledger, loss(TENTH))


# --- a random walk -----------------------------------------------------------------------------------------

EPSILONS = st.sampled_from(["0.01", "0.1", "0.25", "1"]).map(Fraction)
VECTORS = st.sampled_from([None, 1, 2**20])


class Walk(RuleBasedStateMachine):
    """Debits, failures, raises, switches of accounting, a source that joins, a clock that jumps: the model keeps every
    debit and reckons anew each time, from the definitions. Spent never exceeds the total, and no entry is lost."""

    place: str

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(2024, 3, 15)
        self.ledger = Ledger(self.place, clock=self.clock)
        self.debits: list[tuple[str, PrivacyLoss, int | None]] = []
        self.own: list[tuple[PrivacyLoss, int | None]] = []
        self.joined = False
        self.latest = ""
        self.method, self.groups, self.fixed, self.since = Method.BASIC, Fraction(0), None, 0
        self.entries = 0

    @initialize(epsilon=st.sampled_from(["2", "5.1"]), window=st.sampled_from([Window.NEVER, Window.MONTHLY]))
    def begin(self, epsilon: str, window: Window) -> None:
        self.total, self.kind = loss(epsilon, DELTA), window
        self.ledger.set_budget("s", self.total, unit="actor", window=window)
        self.ledger.set_budget("t", loss(9, DELTA), unit="actor")
        self.entries = 1

    def teardown(self) -> None:
        self.ledger.close()

    def window(self) -> str:
        return max(window_at(self.kind, self.clock.now), self.latest)

    def counted(self, debits: list[tuple[PrivacyLoss, int | None]], equal: int) -> PrivacyLoss:
        """What the model says is spent: `equal` of the debits, the last ones, were made under PLD."""
        basic = sum((cost for cost, _ in debits), loss(0))
        if self.method is Method.BASIC or not debits:
            return basic
        usable = self.total.delta - self.groups
        if self.method is Method.RENYI:
            order = best_order(self.total.epsilon, usable)
            vectors = [LaplaceVector(s or 1, cost.epsilon) for cost, s in debits]
            tight = divergence(order, vectors) + converted(order, usable)
        else:
            assert self.fixed is not None
            tight = basic.epsilon - equal * self.fixed + composed_epsilon(equal, self.fixed, usable)
        return loss(min(basic.epsilon, -(-tight // EPSILON_STEP) * EPSILON_STEP), basic.delta + usable)

    def now(self) -> tuple[list[tuple[PrivacyLoss, int | None]], int]:
        window = self.window()
        debits = [(cost, s) for w, cost, s in self.debits if w == window]
        return debits, sum(1 for w, _, _ in self.debits[self.since :] if w == window)

    @rule(epsilon=EPSILONS, delta=st.sampled_from([0, DELTA / 5]), vectors=VECTORS, failed=st.booleans())
    def debit(self, epsilon: Fraction, delta: Any, vectors: int | None, failed: bool) -> None:
        cost, (debits, equal) = loss(epsilon, delta), self.now()
        allowed = self.fixed in (None, epsilon)
        after = self.counted([*debits, (cost, vectors)], equal + 1)
        given = None if vectors is None else (LaplaceVector(vectors, epsilon),)
        if allowed and self.total.covers(after):
            entry = debit(self.ledger, cost, vectors=given)
            if failed:
                self.ledger.record_release(entry, {})
            self.latest = self.window()
            self.debits.append((self.latest, cost, vectors))
            self.entries += 1
        else:
            with pytest.raises(BudgetError):
                debit(self.ledger, cost, vectors=given)

    @rule(epsilon=EPSILONS, vectors=VECTORS)
    def debit_elsewhere(self, epsilon: Fraction, vectors: int | None) -> None:
        if not self.joined and sum((c.epsilon for c, _ in self.own), epsilon) <= 9:
            given = None if vectors is None else (LaplaceVector(vectors, epsilon),)
            debit(self.ledger, loss(epsilon), "t", vectors=given)
            self.own.append((loss(epsilon), vectors))

    @rule()
    def join(self) -> None:
        if self.joined:
            return
        debits, equal = self.now()
        if not self.total.covers(self.counted(debits + self.own, equal)):
            with pytest.raises(BudgetError):
                self.ledger.join("t", "s")
            return
        self.ledger.join("t", "s")
        self.joined, self.latest = True, self.window()
        brought = [(self.latest, cost, s) for cost, s in self.own]
        self.debits[self.since : self.since] = brought
        self.since += len(brought)

    @rule(more=st.sampled_from(["0.5", "3"]))
    def raise_budget(self, more: str) -> None:
        self.latest = self.window() if self.method is Method.RENYI else self.latest
        self.total = self.total + loss(more)
        self.ledger.raise_budget("s", self.total)
        self.entries += 1 + (self.method is Method.RENYI)

    @rule(method=st.sampled_from(list(Method)), groups=st.sampled_from([0, DELTA / 2]), fixed=EPSILONS)
    def switch(self, method: Method, groups: Any, fixed: Fraction) -> None:
        before = (self.method, self.groups, self.fixed, self.since)
        new = (method, Fraction(0 if method is Method.BASIC else groups), fixed if method is Method.PLD else None)
        if new == before[:3]:
            self.ledger.set_accounting("s", method, delta_for_groups=Fraction(groups), epsilon_per_query=new[2])
            return
        self.method, self.groups, self.fixed = new
        self.since = len(self.debits)
        debits, _ = self.now()
        if self.total.covers(self.counted(debits, 0)):
            self.ledger.set_accounting("s", method, delta_for_groups=Fraction(groups), epsilon_per_query=new[2])
            self.latest = self.window()
            self.entries += 1
            return
        self.method, self.groups, self.fixed, self.since = before
        with pytest.raises(BudgetError, match="would leave"):
            self.ledger.set_accounting("s", method, delta_for_groups=Fraction(groups), epsilon_per_query=new[2])

    @rule(days=st.sampled_from([-40, 1, 40]))
    def move_the_clock(self, days: int) -> None:
        self.clock.now += timedelta(days=days)

    @invariant()
    def adds_up(self) -> None:
        self.ledger.verify()
        balance = self.ledger.balance("s")
        if balance is None:
            return
        debits, equal = self.now()
        assert balance.spent == self.counted(debits, equal)
        assert balance.total == self.total == balance.spent + balance.left
        assert balance.total.covers(balance.spent)
        assert len([entry for entry in self.ledger.history("s") if entry.source == "s"]) == self.entries


def test_a_random_walk(places: Places) -> None:
    places.walk(Walk, files=25, server=5, steps=20)


@pytest.mark.slow
def test_many_random_walks(places: Places) -> None:
    places.walk(Walk, files=100, server=40, steps=40)
