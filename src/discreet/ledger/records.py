"""What the ledger tells: budgets, balances, entries. Plain frozen values, without a file behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from discreet.privacy import PrivacyLoss

__all__ = ["Balance", "Budget", "Entry", "Failure", "Kind", "State"]


class Kind(StrEnum):
    """What an entry records."""

    REGISTER = "register"  # the owner's disclosure about a source; the newest counts
    BUDGET = "budget"  # the total of a source, its privacy unit and relation: once
    RAISE = "raise"  # a higher total: the owner's act
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


@dataclass(frozen=True)
class Budget:
    """What a source may spend in all, and whom that protects.

    Attributes:
        total: the most that all queries together may lose (basic composition).
        unit: the privacy unit, as the owner wrote it ("actor").
        relation: which tables are neighbours; see `discreet.privacy.RELATION`.
    """

    total: PrivacyLoss
    unit: str
    relation: str


@dataclass(frozen=True)
class Balance:
    """Where a source stands: ``total == spent + left``, exactly. `queries` counts the debits."""

    total: PrivacyLoss
    spent: PrivacyLoss
    left: PrivacyLoss
    queries: int


@dataclass(frozen=True)
class Entry:
    """One entry of a source's history; a debit together with what became of it.

    Attributes:
        number: its place in the ledger, from 1. Order is by number; clocks may go back.
        time: when, by the clock of the machine that wrote it: ISO 8601, UTC.
        kind: REGISTER, BUDGET, RAISE or DEBIT.
        source: the canonical identity of the source.
        spent: the total spent on the source once this entry was made.
        version: the version of the registration that was made (REGISTER) or in force (DEBIT; 0: none).
        loss: the cost of a DEBIT, the new total of a BUDGET or RAISE.
        analyst, query, digest, limits: as given with the DEBIT.
        unit, relation: as given with the DEBIT or BUDGET.
        state: of a DEBIT.
        answer: what was released, if it was.
        reason: why it failed, if it did: one of `Failure`.
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
