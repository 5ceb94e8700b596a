"""All releases about one data set as one frozen value, read from the ledger alone: what `discreet report` shows.

Nothing in it is private: questions, noisy answers as they were released, costs, and what the owner declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.answer import Answer
from discreet.ledger import Balance, Budget, Entry, Kind, Ledger, Method, Overview, Share, State
from discreet.privacy import PrivacyLoss
from discreet.schema import Registration
from discreet.stored import answer_of, is_readable

__all__ = ["DataSet", "Deployment", "Release", "Step", "deployment", "name_of"]


@dataclass(frozen=True)
class DataSet:
    """One registered source.

    Attributes:
        source: what the ledger calls it.
        name: its short name: of a file without its folders.
        registration: names and types of its columns, as disclosed by the owner; None if another data set's report
            only names it.
        versions: the number of each registration, and when it was made. The data count as changed when the owner says
            so, by registering them anew.
    """

    source: str
    name: str
    registration: Registration | None
    versions: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Release:
    """One question that was charged, and what became of it.

    Attributes:
        number: its place among them, from 1.
        entry: its entry in the ledger: when, who, what, for how much, how far it came.
        answer: as it was released, noisy values with their intervals; None if it failed, is still running, or was
            stored by a version of discreet whose answers cannot be read.
    """

    number: int
    entry: Entry
    answer: Answer | None

    @property
    def details(self) -> Mapping[str, Any]:
        """The plan in plain values: unit, relation, limits, mechanisms with their scales; empty without an answer."""
        return {} if self.answer is None else self.answer.details

    @property
    def is_released(self) -> bool:
        return self.entry.state is State.RELEASED


@dataclass(frozen=True)
class Step:
    """One step of a budget in time.

    Attributes:
        entry: the number of the ledger's entry.
        time: ISO 8601, UTC.
        kind: what happened: BUDGET, RAISE, JOIN, ACCOUNTING or DEBIT.
        source: of a shared budget, whose doing it was.
        analyst: of a DEBIT.
        loss: what a DEBIT cost or a JOIN brought along; None for the others.
        spent: the sum of all losses so far, in all windows.
        total: the total in force after it.
        window: the window that is charged, "" if there are none.
        says: of an ACCOUNTING, what was set.
    """

    entry: int
    time: str
    kind: Kind
    source: str
    analyst: str
    loss: PrivacyLoss | None
    spent: PrivacyLoss
    total: PrivacyLoss | None
    window: str
    says: Mapping[str, Any]


@dataclass(frozen=True)
class Deployment:
    """All releases about a data set, or about the data sets that share a budget.

    Attributes:
        name: short, for titles.
        time: when this was put together: ISO 8601, UTC.
        software: the version of discreet that did.
        datasets: what was asked about; several where a shared budget was asked for by its name.
        account: what the ledger calls the budget.
        shared_by: the sources that share it; none where it is the data set's own.
        budget: total, privacy unit, relation, window and accounting; None while it is not set.
        balance: what is spent and left of it.
        shares: what each analyst spent in each window.
        releases: all questions that were charged, oldest first, failed ones too.
        steps: the budget in time.
        head: the hash of the ledger's newest entry. Every entry up to it was checked (`Ledger.verify`).
        entries: how many entries the ledger has.
    """

    name: str
    time: str
    software: str
    datasets: tuple[DataSet, ...]
    account: str
    shared_by: tuple[str, ...]
    budget: Budget | None
    balance: Balance | None
    shares: tuple[Share, ...]
    releases: tuple[Release, ...]
    steps: tuple[Step, ...]
    head: str
    entries: int

    @property
    def is_pure(self) -> bool:
        """Whether the promise is pure epsilon-DP: no delta in the budget, basic composition."""
        if self.budget is None:
            return True
        return self.budget.total.delta == 0 and self.budget.accounting.method is Method.BASIC

    @property
    def promises(self) -> tuple[str, ...]:
        """Whom the releases are about, in words: "per actor"."""
        return tuple(dict.fromkeys(str(r.details["promise"]) for r in self.releases if "promise" in r.details))

    @property
    def released(self) -> tuple[Release, ...]:
        """The releases that have an answer."""
        return tuple(release for release in self.releases if release.answer is not None)


def deployment(ledger: Ledger, source: str) -> Deployment:
    """Read everything about a source, or a shared budget, and check the ledger on the way.

    Args:
        source: what the ledger calls it.

    Raises:
        LedgerError: the ledger cannot be read, or its entries contradict each other.
    """
    from discreet import __version__

    ledger.verify()
    seen = ledger.overview(source)
    asked = tuple(_dataset(name, seen) for name in seen.registered)
    debits = [entry for entry in seen.history if entry.kind is Kind.DEBIT]
    releases = (Release(i, e, answer_of(e) if is_readable(e) else None) for i, e in enumerate(debits, start=1))
    return Deployment(
        name=name_of(source),
        time=seen.time,
        software=f"discreet {__version__}",
        datasets=asked,
        account=seen.account,
        shared_by=seen.members if seen.account.startswith("budget:") else (),
        budget=seen.budget,
        balance=seen.balance,
        shares=seen.shares,
        releases=tuple(releases),
        steps=tuple(_steps(seen)),
        head=seen.head,
        entries=seen.entries,
    )


def name_of(source: str) -> str:
    """A short name: of a file its own, without the folders."""
    kind, _, rest = source.partition(":")
    return rest.rstrip("/").rpartition("/")[2] or rest if kind == "file" else rest or source


def _dataset(source: str, seen: Overview) -> DataSet:
    versions = tuple(
        (entry.version or 0, entry.time)
        for entry in (*seen.history, *seen.account_history)
        if entry.kind is Kind.REGISTER and entry.source == source
    )
    return DataSet(source, name_of(source), seen.registered[source], tuple(dict.fromkeys(versions)))


def _steps(seen: Overview) -> Iterator[Step]:
    total: PrivacyLoss | None = None
    for entry in seen.account_history:
        if entry.kind is Kind.REGISTER:
            continue
        sets = entry.kind in (Kind.BUDGET, Kind.RAISE)
        # What a source did before it joined stands in its own account.
        if entry.account != seen.account or (entry.kind is Kind.JOIN and entry.source == seen.account):
            continue
        total = entry.loss if sets else total
        cost = entry.loss if entry.kind in (Kind.DEBIT, Kind.JOIN) else None
        says = entry.limits if entry.kind is Kind.ACCOUNTING else {}
        yield Step(
            entry.number,
            entry.time,
            entry.kind,
            entry.source,
            entry.analyst,
            cost,
            entry.spent,
            total,
            entry.window,
            {name: value for name, value in says.items() if value != "0"},
        )
