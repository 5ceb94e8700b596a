"""What the ledger tells: budgets, balances, entries. Plain frozen values, without a file behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from typing import Any

from discreet.errors import BudgetError
from discreet.exact import decimal_text
from discreet.privacy import PrivacyLoss
from discreet.schema import Registration

__all__ = [
    "Accounting",
    "Balance",
    "Budget",
    "Caps",
    "Entry",
    "Failure",
    "Kind",
    "Method",
    "Overview",
    "Share",
    "State",
    "Window",
]


class Kind(StrEnum):
    """What an entry records."""

    REGISTER = "register"  # the owner's disclosure about a source; the newest counts
    BUDGET = "budget"  # the total of an account, its privacy unit and relation: once
    RAISE = "raise"  # a higher total: the owner's act
    JOIN = "join"  # by whose policy, and to which account, a source is asked from now on; what it had spent before
    ACCOUNTING = "accounting"  # how an account's losses are added up from now on: the owner's act
    DEBIT = "debit"  # a query's whole cost, before anything is read
    RELEASED = "released"  # a debited query's answer
    FAILED = "failed"  # a debited query that gave no answer; its cost stays spent


class State(StrEnum):
    """How far a debited query came."""

    DEBITED = "debited"  # charged; still running, or its process died
    RELEASED = "released"
    FAILED = "failed"


class Failure(StrEnum):
    """Why a debited query gave no answer. Fixed texts: an engine's own text may quote the data."""

    ENGINE = "the engine failed"
    SOURCE = "the source could not be read"
    LIMIT = "a time or memory limit was reached"
    INTERRUPTED = "interrupted"
    INTERNAL = "an internal fault"


class Window(StrEnum):
    """How often a budget begins anew: by the calendar, in UTC. What all windows lose together has no bound."""

    NEVER = "never"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    QUARTERLY = "quarterly"
    YEARLY = "yearly"


class Method(StrEnum):
    """How the losses of an account are added up. See `docs/accounting.md`."""

    BASIC = "basic"  # the sum of the epsilons
    RENYI = "renyi"  # a Renyi filter: for epsilons chosen as one goes, at a delta
    PLD = "pld"  # the exact composition of queries of one epsilon, fixed by the owner, at a delta


@dataclass(frozen=True)
class Accounting:
    """How the losses of an account are added up; never to more than their sum.

    Attributes:
        method: one of `Method`.
        selections: the part of the budget's delta that queries with a delta of their own (groups chosen from the
            data) may use up; the rest is the price of the tighter accounting. 0 for BASIC, where all of it is theirs.
        order: RENYI: of the divergence; fixed from the budget, so that no answer can have a say in it.
        epsilon: PLD: what every query costs.
    """

    method: Method = Method.BASIC
    selections: Fraction = Fraction(0)
    order: Fraction | None = None
    epsilon: Fraction | None = None


@dataclass(frozen=True)
class Budget:
    """What an account may spend in all, and whom that protects.

    Attributes:
        total: the most that all queries together may lose; in each window, if there are any.
        unit: the privacy unit, as the owner wrote it ("actor").
        relation: which tables are neighbours; see `discreet.privacy.RELATION`.
        window: how often the total begins anew.
        accounting: how losses are added up.
    """

    total: PrivacyLoss
    unit: str
    relation: str
    window: Window = Window.NEVER
    accounting: Accounting = Accounting()


@dataclass(frozen=True)
class Caps:
    """What the owner's policy allows one query, and the analyst who asks it; None where it says nothing.

    Attributes:
        query: the most epsilon of one query.
        analyst: the most epsilon of all this analyst's queries that charge the account (in a window).
    """

    query: Fraction | None = None
    analyst: Fraction | None = None

    def check_query(self, epsilon: Fraction) -> None:
        """Refuse a query that costs more than one may.

        Raises:
            BudgetError: naming the owner's value.
        """
        if self.query is not None and epsilon > self.query:
            most = decimal_text(self.query)
            raise BudgetError(
                "epsilon of one query",
                f"is at most {most} by the owner's policy (max_epsilon_per_query). Nothing was charged",
                decimal_text(epsilon),
                f"ask for at most epsilon {most}",
            )


@dataclass(frozen=True)
class Balance:
    """Where an account stands: ``total == spent + left``, exactly.

    Attributes:
        total, spent, left: of the window we are in, if the budget begins anew at times; else in all.
        queries: how many debits there ever were.
        window: the window's name, such as "2024-05"; "" if the budget never begins anew.
        in_all: the sum of what was spent in all windows; None if there are none.
        basic: the sum of the losses, where a tighter accounting makes `spent` less than it; else None.
    """

    total: PrivacyLoss
    spent: PrivacyLoss
    left: PrivacyLoss
    queries: int
    window: str = ""
    in_all: PrivacyLoss | None = None
    basic: PrivacyLoss | None = None


@dataclass(frozen=True)
class Share:
    """What one analyst spent of an account in one window ("" where there are none)."""

    window: str
    analyst: str
    spent: PrivacyLoss
    queries: int


@dataclass(frozen=True)
class Entry:
    """One entry of a source's history; a debit together with what became of it.

    Attributes:
        number: its place in the ledger, from 1. Order is by number; clocks may go back.
        time: when, by the clock of the machine that wrote it: ISO 8601, UTC.
        kind: REGISTER, BUDGET, RAISE, JOIN, ACCOUNTING or DEBIT.
        source: the canonical identity of the source; of a shared budget, its account.
        spent: what the account had spent in all once this entry was made: the sum of the losses.
        version: the version of the registration that was made (REGISTER) or in force (DEBIT; 0: none).
        loss: the cost of a DEBIT, the new total of a BUDGET or RAISE, what a source brings along on a JOIN.
        analyst, query, digest, limits: as given with the DEBIT. An ACCOUNTING says in `limits` what it is.
        unit, relation: as given with the DEBIT or BUDGET.
        state: of a DEBIT.
        answer: what was released, if it was.
        reason: why it failed, if it did: one of `Failure`.
        account: what is charged: the source itself, or a budget that it shares.
        window: the newest window in which the account was charged by then, "" if it has none.
    """

    number: int
    time: str
    kind: Kind
    source: str
    spent: PrivacyLoss
    version: int | None = None
    loss: PrivacyLoss | None = None
    analyst: str = ""
    query: str = ""
    digest: str = ""
    unit: str = ""
    relation: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    state: State | None = None
    answer: Mapping[str, Any] | None = None
    reason: str = ""
    account: str = ""
    window: str = ""


@dataclass(frozen=True)
class Overview:
    """All that a ledger holds about a source, or about a budget that sources share, at one moment.

    Attributes:
        time: that moment: ISO 8601, UTC.
        account: what is charged: the source itself, or a budget that it shares.
        members: the sources that joined that account; none where it is the source's own.
        registered: the newest registration of each source asked about that has one, by its name.
        budget, balance: of the account; None while it has none.
        shares: what each analyst spent of the account in each window.
        history: of what was asked about: see `Ledger.history`.
        account_history: of the account.
        head: the hash of the ledger's newest entry; keep it where a hand that can write the ledger does not reach.
        entries: how many entries the ledger has, those of other sources too.
    """

    time: str
    account: str
    members: tuple[str, ...]
    registered: Mapping[str, Registration]
    budget: Budget | None
    balance: Balance | None
    shares: tuple[Share, ...]
    history: tuple[Entry, ...]
    account_history: tuple[Entry, ...]
    head: str
    entries: int
