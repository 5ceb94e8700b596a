"""Budgets that sources share, budgets that begin anew, what each analyst may spend; and who decides it."""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from discreet.errors import BudgetError, LedgerError, UsageError
from discreet.ledger import Balance, Caps, Kind, Ledger, Share, Window, chain, sqlite_schema
from discreet.ledger.accounting import Standing, Weight, charged, counted, fits, renewed, window_at
from discreet.ledger.checking import Check
from discreet.ledger.records import Budget
from discreet.privacy import RELATION, PrivacyLoss
from ledger_places import Places, by_hand, tamper

PEOPLE = "budget:people"


def loss(epsilon: Any, delta: Any = 0) -> PrivacyLoss:
    return PrivacyLoss(Fraction(epsilon), Fraction(delta))


def debit(ledger: Ledger, cost: Any, source: str = "s", **more: Any) -> int:
    given: dict[str, Any] = {"unit": "actor", "query": "SELECT COUNT(*)", "digest": "d", "limits": {}}
    return ledger.debit(source, loss(cost), **{**given, **more})


@pytest.fixture
def ledger(place: str) -> Any:
    with Ledger(place) as opened:
        yield opened


class Clock:
    """A clock that stands where it is put."""

    def __init__(self, *when: int) -> None:
        self.now = datetime(*when, tzinfo=UTC)  # type: ignore[misc,arg-type]

    def __call__(self) -> datetime:
        return self.now


# --- shared budgets --------------------------------------------------------------------------------------


def test_sources_that_share_a_budget_are_capped_together(ledger: Ledger) -> None:
    """One total for both, whoever spends it; each has its own history, the budget has both."""
    ledger.set_budget(PEOPLE, loss(1), unit="actor")
    for source in ("s", "t"):
        ledger.join(source, PEOPLE)
        ledger.join(source, PEOPLE)
    debit(ledger, "0.6", "s")
    with pytest.raises(BudgetError, match=r"budget of budget:people: is epsilon 1; spent: epsilon 0\.6; left: epsilon"):
        debit(ledger, "0.5", "t")
    debit(ledger, "0.4", "t")
    for name in ("s", "t", PEOPLE):
        assert ledger.balance(name) == Balance(loss(1), loss(1), loss(0), 2)
        assert ledger.account(name) == PEOPLE
    assert ledger.members(PEOPLE) == ("s", "t")
    assert ledger.accounts() == (PEOPLE,)
    kinds = [entry.kind for entry in ledger.history(PEOPLE)]
    assert kinds == [Kind.BUDGET, Kind.JOIN, Kind.JOIN, Kind.DEBIT, Kind.DEBIT]
    assert [entry.source for entry in ledger.history("t")] == ["t", "t"]
    ledger.verify()


def test_a_source_brings_along_what_it_has_spent(ledger: Ledger) -> None:
    """Else a budget could be begun anew by sharing one. What does not fit is refused, and nothing changes."""
    ledger.set_budget("s", loss(2), unit="actor")
    debit(ledger, 2)
    ledger.set_budget(PEOPLE, loss(1), unit="actor")
    head = ledger.verify()
    with pytest.raises(BudgetError, match=r"is epsilon 1; .* asked: epsilon 2\."):
        ledger.join("s", PEOPLE)
    assert ledger.verify() == head
    ledger.raise_budget(PEOPLE, loss(3))
    ledger.join("s", PEOPLE)
    assert ledger.balance("s") == Balance(loss(3), loss(2), loss(1), 1)
    ledger.verify()
    with pytest.raises(BudgetError):
        debit(ledger, "1.1")


def test_an_account_is_joined_once_for_good(ledger: Ledger) -> None:
    """No leaving, no chains of budgets, none without a total, none of another unit or relation."""
    with pytest.raises(UsageError, match="not set yet"):
        ledger.join("s", PEOPLE)
    ledger.set_budget(PEOPLE, loss(1), unit="actor")
    ledger.set_budget("budget:other", loss(1), unit="actor")
    ledger.join("s", PEOPLE)
    with pytest.raises(UsageError, match="shared for good"):
        ledger.join("s", "budget:other")
    with pytest.raises(UsageError, match="cannot be part of another"):
        ledger.join(PEOPLE, "budget:other")
    with pytest.raises(UsageError, match="cannot be part of another"):
        ledger.join("t", "s")
    ledger.set_budget("rows", loss(1), unit="one row")
    with pytest.raises(UsageError, match="privacy unit 'actor'"):
        ledger.join("rows", PEOPLE)
    with pytest.raises(UsageError, match="privacy unit 'actor'"):
        debit(ledger, "0.1", unit="one row")
    with pytest.raises(UsageError, match="relation"):
        debit(ledger, "0.1", relation="replace one row")
    # A total that is set "for the source" is the shared one's: there is no second budget beside it.
    with pytest.raises(UsageError, match="set for good"):
        ledger.set_budget("s", loss(5), unit="actor")
    ledger.verify()


# --- windows ---------------------------------------------------------------------------------------------


def test_the_names_of_windows_are_in_the_order_of_time() -> None:
    """What decides whether a window is later compares texts."""
    times = [datetime(2024, 12, 29, tzinfo=UTC) + timedelta(days=days) for days in range(0, 1500, 3)]
    times = [datetime(1, 1, 1, tzinfo=UTC), datetime(999, 5, 1, tzinfo=UTC), *times, datetime(9999, 12, 31, tzinfo=UTC)]
    for window in Window:
        names = [window_at(window, time) for time in times]
        assert names == sorted(names)
    day = datetime(2024, 12, 31, 23, 59, tzinfo=UTC)
    assert {str(window): window_at(window, day) for window in Window} == {
        "never": "", "daily": "2024-12-31", "weekly": "2025-W01", "monthly": "2024-12", "quarterly": "2024-Q4",
        "yearly": "2024",
    }  # fmt: skip


def test_a_monthly_budget_begins_anew_each_month(place: str) -> None:
    """What is left is this month's; what was spent in all is told too, and shares go by month."""
    clock = Clock(2024, 5, 31, 23, 59)
    with Ledger(place, clock=clock) as ledger:
        ledger.set_budget("s", loss(1, "1e-6"), unit="actor", window=Window.MONTHLY)
        debit(ledger, 1, analyst="ann")
        with pytest.raises(BudgetError, match=r"is epsilon 1, delta .* in 2024-05;.*begins anew after 2024-05"):
            debit(ledger, "0.1")
        clock.now += timedelta(minutes=1)
        assert ledger.balance("s") == Balance(loss(1, "1e-6"), loss(0), loss(1, "1e-6"), 1, "2024-06", loss(1))
        debit(ledger, "0.25", analyst="ann")
        debit(ledger, "0.5", analyst="bob")
        debit(ledger, "0.125", analyst="ann")
        assert ledger.balance("s") == Balance(
            loss(1, "1e-6"), loss("0.875"), loss("0.125", "1e-6"), 4, "2024-06", loss("1.875")
        )
        assert ledger.shares("s") == (
            Share("2024-05", "ann", loss(1), 1),
            Share("2024-06", "ann", loss("0.375"), 2),
            Share("2024-06", "bob", loss("0.5"), 1),
        )
        ledger.verify()
        with pytest.raises(UsageError, match="budget window of s: is monthly, set for good"):
            ledger.set_budget("s", loss(1, "1e-6"), unit="actor")


def test_a_clock_that_goes_back_frees_nothing(place: str) -> None:
    """The latest window seen counts, for the budget and for each analyst, until the clock is past it."""
    clock = Clock(2024, 5, 1)
    caps = Caps(analyst=Fraction(1, 2))
    with Ledger(place, clock=clock) as ledger:
        ledger.set_budget("s", loss(1), unit="actor", window=Window.MONTHLY)
        debit(ledger, "0.5", analyst="ann", caps=caps)
        debit(ledger, "0.5", analyst="bob", caps=caps)
        for year, month in ((2024, 4), (1999, 1), (2024, 5)):
            clock.now = datetime(year, month, 1, tzinfo=UTC)
            with pytest.raises(BudgetError, match="2024-05"):
                debit(ledger, "0.1", analyst="cid", caps=caps)
        # Once forward frees the next window; back again frees neither that one nor the last one anew.
        clock.now = datetime(2024, 6, 1, tzinfo=UTC)
        debit(ledger, "0.5", analyst="ann", caps=caps)
        clock.now = datetime(2024, 5, 1, tzinfo=UTC)
        with pytest.raises(BudgetError, match=r"share of analyst 'ann'.*in 2024-06"):
            debit(ledger, "0.1", analyst="ann", caps=caps)
        debit(ledger, "0.5", analyst="bob", caps=caps)
        clock.now = datetime(2024, 6, 30, tzinfo=UTC)
        with pytest.raises(BudgetError):
            debit(ledger, "0.1", analyst="cid", caps=caps)
        assert [entry.window for entry in ledger.history("s")] == ["", *["2024-05"] * 2, *["2024-06"] * 2]
        ledger.verify()


def test_no_window_ever_holds_more_than_the_total(place: str) -> None:
    """A total that is raised holds for the window we are in; `never` sums over all time."""
    clock = Clock(2024, 1, 1)
    with Ledger(place, clock=clock) as ledger:
        ledger.set_budget("never", loss(1), unit="actor")
        ledger.set_budget("daily", loss(1), unit="actor", window=Window.DAILY)
        debit(ledger, 1, "never")
        for _ in range(3):
            debit(ledger, 1, "daily")
            with pytest.raises(BudgetError):
                debit(ledger, "0.1", "daily")
            clock.now += timedelta(days=1)
        clock.now += timedelta(days=4000)
        with pytest.raises(BudgetError):
            debit(ledger, "0.1", "never")
        ledger.raise_budget("daily", loss(2))
        debit(ledger, 2, "daily")
        assert ledger.balance("daily") == Balance(loss(2), loss(2), loss(0), 4, "2034-12-17", loss(5))
        ledger.verify()


# --- analysts --------------------------------------------------------------------------------------------


def test_an_analyst_is_held_to_a_share_and_all_to_the_total(ledger: Ledger) -> None:
    """The refusal names the analyst, the owner's value and what is left of it; nothing is charged."""
    ledger.set_budget("s", loss(1), unit="actor")
    caps = Caps(analyst=Fraction("0.5"))
    debit(ledger, "0.3", analyst="ann", caps=caps)
    with pytest.raises(BudgetError) as refused:
        debit(ledger, "0.3", analyst="ann", caps=caps)
    text = str(refused.value)
    for part in ("analyst 'ann'", "epsilon 0.5", "spent: epsilon 0.3", "left: epsilon 0.2", "asked: epsilon 0.3"):
        assert part in text
    debit(ledger, "0.2", analyst="ann", caps=caps)
    with pytest.raises(BudgetError, match="share of analyst 'ann'"):
        debit(ledger, Fraction(1, 10**12), analyst="ann", caps=caps)
    debit(ledger, "0.4", analyst="bob", caps=caps)
    with pytest.raises(BudgetError, match=r"^budget of s: is epsilon 1; spent: epsilon 0\.9"):
        debit(ledger, "0.2", analyst="cid", caps=caps)
    assert ledger.shares("s") == (Share("", "ann", loss("0.5"), 2), Share("", "bob", loss("0.4"), 1))
    ledger.verify()


def test_one_query_is_held_to_its_most(ledger: Ledger) -> None:
    ledger.set_budget("s", loss(9), unit="actor")
    caps = Caps(query=Fraction("0.5"))
    debit(ledger, "0.5", caps=caps)
    with pytest.raises(BudgetError, match=r"at most 0\.5 .*max_epsilon_per_query.*\(got '0\.500000000001'\)"):
        debit(ledger, "0.500000000001", caps=caps)
    assert ledger.balance("s") == Balance(loss(9), loss("0.5"), loss("8.5"), 1)


# --- who decides -----------------------------------------------------------------------------------------


def test_what_fits_is_decided_from_the_standing_alone() -> None:
    """The same three functions serve the debit and `verify`."""
    budget = Budget(loss(1), "u", RELATION)
    standing = Standing()
    for _ in range(10):
        standing = charged(standing, loss("0.1"), Weight())
        assert fits(budget, standing)
    assert counted(budget, standing) == loss(1)
    assert not fits(budget, charged(standing, loss(Fraction(1, 10**12)), Weight()))
    assert not fits(budget, charged(Standing(), loss("0.1", "1e-30"), Weight()))
    in_may = charged(Standing(window="2024-05"), loss(1), Weight())
    assert renewed(in_may, "2024-04") == in_may
    june = renewed(in_may, "2024-06")
    assert (june.spent, june.in_window, june.queries) == (loss(1), loss(0), 1)


@pytest.mark.parametrize(
    "where",
    [
        f"{chain.ACCOUNT} = 's' ORDER BY e.number DESC LIMIT 1",
        f"{chain.ACCOUNT} = 's' AND e.analyst = 'a' AND e.kind = 'debit' ORDER BY e.number DESC LIMIT 1",
        "e.source = 's' AND e.kind = 'join' ORDER BY e.number DESC LIMIT 1",
    ],
)
def test_a_debit_looks_up_by_index(tmp_path: Path, where: str) -> None:
    """So that its time does not grow with the history."""
    Ledger(tmp_path / "l").close()
    connection = sqlite3.connect(tmp_path / "l")
    steps = connection.execute(f"EXPLAIN QUERY PLAN {chain._SELECT} WHERE {where}").fetchall()
    connection.close()
    about = next(step[3] for step in steps if " e" in step[3])
    assert about.startswith("SEARCH e USING INDEX")


# --- older files and other hands ---------------------------------------------------------------------------

_FIRST_COLUMNS = chain._COLUMNS[: chain._COLUMNS.index("hash")]


def write_version_1(path: Path) -> str:
    """A ledger as the first version wrote it, with three tenths of a budget of 1 spent by ann."""
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in sqlite_schema.MIGRATIONS[0]:
        connection.execute(statement)
    connection.execute("PRAGMA user_version = 1")
    connection.execute("PRAGMA journal_mode = WAL")
    rows: list[dict[str, Any]] = [
        {"kind": "budget", "epsilon": "1", "delta": "0", "unit": "actor", "relation": RELATION}
    ] + [
        {"kind": "debit", "epsilon": "0.1", "delta": "0", "unit": "actor", "relation": RELATION, "analyst": "ann",
         "query": "q", "digest": "d", "content": "{}", "version": 0}
        for _ in range(3)
    ]  # fmt: skip
    last = chain.GENESIS
    for number, row in enumerate(rows, start=1):
        spent = Fraction(number - 1, 10)
        full = {"number": number, "time": "2024-05-01T00:00:00.000+00:00", "source": "s", "queries": number - 1,
                "spent_epsilon": str(float(spent)) if spent else "0", "spent_delta": "0", **row}  # fmt: skip
        last = full["hash"] = chain._hash(last, full)
        names = (*_FIRST_COLUMNS, "hash")
        values = [full.get(name) for name in names]
        connection.execute(f"INSERT INTO entries ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})", values)
    connection.close()
    return last


def test_a_ledger_of_the_first_version_goes_on(tmp_path: Path) -> None:
    """Its entries keep their hashes and count; accounts, windows and shares begin with the first new entry."""
    head = write_version_1(tmp_path / "l")
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.verify() == head
        assert ledger.balance("s") == Balance(loss(1), loss("0.3"), loss("0.7"), 3)
        debit(ledger, "0.2", analyst="ann", caps=Caps(analyst=Fraction("0.5")))
        ledger.set_budget(PEOPLE, loss(2), unit="actor")
        ledger.join("s", PEOPLE)
        debit(ledger, "0.1", analyst="ann")
        ledger.verify(head)
        assert ledger.balance("s") == Balance(loss(2), loss("0.6"), loss("1.4"), 5)
        assert ledger.shares("s") == (Share("", "ann", loss("0.1"), 1),)


@pytest.mark.parametrize(
    ("forged", "noticed"),
    [
        ({"account": None}, "charges another account"),
        ({"account": "budget:other"}, "charges another account"),
        ({"window": "2024-07"}, "does not add up"),
        ({"window_epsilon": "0"}, "does not add up"),
        ({"analyst_epsilon": "0.1"}, "its analyst"),
        ({"kind": "join", "epsilon": "0"}, "a second time"),
        ({"kind": "join", "source": "t", "epsilon": "0"}, "leaves behind"),
        ({"kind": "budget", "content": '{"window": "hourly"}'}, "cannot be read"),
        ({"kind": "budget", "content": "[]"}, "cannot be read"),
        ({"kind": "raise", "source": "nobody", "account": None, "window": None}, "does not add up"),
    ],
)
def test_a_forged_entry_with_a_right_hash_is_noticed(place: str, forged: dict[str, Any], noticed: str) -> None:
    """By verify, which adds up again; the last honest entry, repeated with one thing changed."""
    clock = Clock(2024, 5, 1)
    with Ledger(place, clock=clock) as ledger:
        ledger.set_budget("t", loss(1), unit="actor")
        debit(ledger, "0.5", "t")
        ledger.set_budget(PEOPLE, loss(9), unit="actor", window=Window.MONTHLY)
        ledger.join("s", PEOPLE)
        debit(ledger, "0.25", analyst="ann")
        ledger.verify()
    with by_hand(place) as entries:
        last = chain.newest(entries, "TRUE")
    assert last is not None
    honest = {**last, "spent_epsilon": "0.5", "window_epsilon": "0.5", "analyst_epsilon": "0.5", "queries": 2}
    for row, expected in ((honest, None), ({**honest, **forged}, noticed)):
        with by_hand(place) as entries:
            chain.append(entries, {name: value for name, value in row.items() if name not in ("number", "hash")})
            check = Check(None)
            if expected is None:
                assert check.some(entries)
            else:
                with pytest.raises(chain.Damage, match=expected):
                    check.some(entries)


def test_nothing_of_a_shared_budget_can_be_edited(place: str) -> None:
    """The account of an entry is under its hash."""
    with Ledger(place) as ledger:
        ledger.set_budget(PEOPLE, loss(9), unit="actor")
        ledger.join("s", PEOPLE)
        debit(ledger, 1)
    tamper(place, "UPDATE entries SET account = NULL WHERE kind = 'debit'")
    with pytest.raises(LedgerError, match="hash"), Ledger(place) as ledger:
        ledger.verify()


# --- a random walk -----------------------------------------------------------------------------------------

SOURCES = st.sampled_from(["a", "b", "c"])
ACCOUNTS = st.sampled_from(["a", "b", "c", "budget:x", "budget:y"])
ANALYSTS = st.sampled_from(["", "ann", "bob"])
EPSILONS = st.integers(1, 20).map(lambda n: Fraction(n, 10))


class Walk(RuleBasedStateMachine):
    """Budgets of all windows, joins, debits of several analysts under caps, on a clock that jumps both ways; the
    model keeps every debit in a list and sums it anew each time."""

    place: str

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock(2024, 3, 15)
        self.ledger = Ledger(self.place, clock=self.clock)
        self.total: dict[str, tuple[Fraction, Window]] = {}
        self.joined: dict[str, str] = {}
        self.latest: dict[str, str] = {}
        self.debits: list[tuple[str, str, str, Fraction]] = []  # account, window, analyst, epsilon

    def teardown(self) -> None:
        self.ledger.close()

    def spent(self, account: str, window: str | None = None, analyst: str | None = None) -> Fraction:
        return sum(
            (e for a, w, who, e in self.debits
             if a == account and window in (None, w) and analyst in (None, who)), Fraction(0)
        )  # fmt: skip

    def window(self, account: str) -> str:
        now = window_at(self.total[account][1], self.clock.now)
        return max(now, self.latest.get(account, "")) if now else ""

    @rule(account=ACCOUNTS, epsilon=EPSILONS, window=st.sampled_from(list(Window)))
    def set_budget(self, account: str, epsilon: Fraction, window: Window) -> None:
        target = self.joined.get(account, account)
        if self.total.get(target, (epsilon, window)) == (epsilon, window):
            self.ledger.set_budget(account, loss(epsilon), unit="u", window=window)
            self.total[target] = (epsilon, window)
        else:
            with pytest.raises(UsageError):
                self.ledger.set_budget(account, loss(epsilon), unit="u", window=window)

    @rule(source=SOURCES, account=ACCOUNTS)
    def join(self, source: str, account: str) -> None:
        now = self.joined.get(source, source)
        if account == now:
            self.ledger.join(source, account)
            return
        wrong = now != source or account in self.joined or source in self.joined.values() or account not in self.total
        brought = self.spent(source)
        if wrong:
            with pytest.raises(UsageError):
                self.ledger.join(source, account)
        elif self.spent(account, self.window(account)) + brought > self.total[account][0]:
            with pytest.raises(BudgetError):
                self.ledger.join(source, account)
        else:
            self.ledger.join(source, account)
            self.joined[source] = account
            self.latest[account] = self.window(account)
            self.debits.append((account, self.window(account), "<brought>", brought))

    @rule(source=SOURCES, epsilon=EPSILONS, analyst=ANALYSTS, cap=st.none() | EPSILONS)
    def debit(self, source: str, epsilon: Fraction, analyst: str, cap: Fraction | None) -> None:
        account = self.joined.get(source, source)
        caps = Caps(analyst=cap)
        fits = account in self.total
        if fits:
            window = self.window(account)
            fits = self.spent(account, window) + epsilon <= self.total[account][0]
            fits = fits and (cap is None or self.spent(account, window, analyst) + epsilon <= cap)
        if not fits:
            with pytest.raises(BudgetError):
                debit(self.ledger, epsilon, source, unit="u", analyst=analyst, caps=caps)
            return
        debit(self.ledger, epsilon, source, unit="u", analyst=analyst, caps=caps)
        self.latest[account] = window
        self.debits.append((account, window, analyst, epsilon))

    @rule(days=st.sampled_from([-800, -40, -7, -1, 1, 7, 40, 400]))
    def move_the_clock(self, days: int) -> None:
        self.clock.now += timedelta(days=days)

    @invariant()
    def adds_up(self) -> None:
        self.ledger.verify()
        for account, (total, _) in self.total.items():
            balance = self.ledger.balance(account)
            assert balance is not None
            if account in self.joined:
                continue
            assert balance.spent.epsilon == self.spent(account, self.window(account)) <= total
            assert balance.total.epsilon == total == (balance.spent + balance.left).epsilon
            assert (balance.in_all or balance.spent).epsilon == self.spent(account)


def test_a_random_walk(places: Places) -> None:
    places.walk(Walk, files=40, server=8)


@pytest.mark.slow
def test_many_random_walks(places: Places) -> None:
    places.walk(Walk, files=200, server=80, steps=50)
