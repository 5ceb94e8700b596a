"""What a policy declares, as frozen values. Each knows its key path, by which errors name it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.errors import BudgetError, UsageError
from discreet.exact import decimal_text
from discreet.ledger.records import Caps, Method, Window
from discreet.privacy import PrivacyLoss
from discreet.query import Bounds

__all__ = ["BudgetPolicy", "ColumnPolicy", "DatasetPolicy", "Policy", "near"]


@dataclass(frozen=True)
class ColumnPolicy:
    """What is declared about one column.

    Attributes:
        path: "datasets.flights.columns.delay".
        type: the name of its type, if it is declared.
        bounds: of numbers.
        dates: the first and last day, of dates and times.
        public_values: its public keys; None where nothing is said.
        values_file: where they were read from, if from a file.
        forbidden: whether analysts may not touch it. (The privacy unit may still be counted.)
    """

    path: str
    type: str | None = None
    bounds: Bounds | None = None
    dates: tuple[Any, Any] | None = None
    public_values: Sequence[object] | None = None
    forbidden: bool = False
    values_file: Path | None = None


@dataclass(frozen=True)
class BudgetPolicy:
    """A budget: of one data set, or shared by several.

    Attributes:
        path: "budgets.people" or "datasets.flights.budget".
        name: of a shared budget; "" for one of a data set's own.
        total: the most that may be lost; in each window, if there are any.
        window: how often it begins anew.
        unit: what one privacy unit is called where several data sets share the budget; "" for the wording of
            their own `privacy_unit`.
        default_epsilon, default_delta: of a query that does not say what it costs.
        max_epsilon_per_query: of one query.
        max_epsilon_per_analyst: of each analyst who is not named in `analysts`.
        analysts: the most epsilon of single analysts, by name.
        accounting: how losses are added up; see `docs/accounting.md`.
        delta_for_groups: RENYI, PLD: the part of delta for groups chosen from the data; the rest is the accounting's.
        epsilon_per_query: PLD: what every query costs.
    """

    path: str
    name: str
    total: PrivacyLoss
    window: Window = Window.NEVER
    unit: str = ""
    default_epsilon: Fraction | None = None
    default_delta: Fraction | None = None
    max_epsilon_per_query: Fraction | None = None
    max_epsilon_per_analyst: Fraction | None = None
    analysts: Mapping[str, Fraction] = field(default_factory=dict)
    accounting: Method = Method.BASIC
    delta_for_groups: Fraction = Fraction(0)
    epsilon_per_query: Fraction | None = None

    @property
    def usual_epsilon(self) -> Fraction | None:
        """What a query costs that does not say it."""
        return self.default_epsilon if self.epsilon_per_query is None else self.epsilon_per_query

    @property
    def account(self) -> str:
        """What the ledger calls a shared budget; "" for one of a data set's own."""
        return f"budget:{self.name}" if self.name else ""

    def check_query(self, epsilon: Fraction) -> None:
        """Refuse a query that costs more than one may, or something else than each must.

        Raises:
            BudgetError: naming the owner's value.
        """
        Caps(self.max_epsilon_per_query).check_query(epsilon)
        if self.epsilon_per_query not in (None, epsilon):
            fixed = decimal_text(self.epsilon_per_query)
            raise BudgetError(
                "epsilon of one query",
                f"is {fixed}, no more and no less, by the owner's policy ({self.path}.epsilon_per_query). Nothing was "
                "charged",
                decimal_text(epsilon),
                f"leave --epsilon out, or ask with epsilon {fixed}",
            )

    def caps(self, analyst: str) -> Caps:
        """What one query of this analyst, and all of them, may cost.

        Raises:
            BudgetError: if the policy names analysts, not this one, and says nothing about others.
        """
        most = self.analysts.get(analyst, self.max_epsilon_per_analyst)
        if most is None and self.analysts:
            raise BudgetError(
                f"analyst {analyst!r}",
                f"has no share of the budget: {self.path}.analysts does not name this one. Nothing was charged",
                hint=f"the owner may add the name, or {self.path}.max_epsilon_per_analyst for all others",
            )
        return Caps(self.max_epsilon_per_query, most)


@dataclass(frozen=True)
class DatasetPolicy:
    """One data set.

    Attributes:
        path: "datasets.flights".
        name: what FROM calls it.
        source: as `discreet.open` takes it; relative paths made absolute from the policy's folder.
        reading: how the source is read, as `discreet.open` takes it.
        privacy_unit: expressions; empty at row level.
        max_contributions, max_groups_contributed: the owner's limits; None where nothing is said.
        unknown_groups: whether groups may be chosen from the data, at a delta.
        budget: what it charges.
        columns: by name, as written.
        invariants: what is published exactly elsewhere, in the owner's words.
    """

    path: str
    name: str
    source: str
    budget: BudgetPolicy
    reading: Mapping[str, Any] = field(default_factory=dict)
    privacy_unit: tuple[str, ...] = ()
    max_contributions: int | None = None
    max_groups_contributed: int | None = None
    unknown_groups: bool = False
    columns: Mapping[str, ColumnPolicy] = field(default_factory=dict)
    invariants: tuple[str, ...] = ()

    @property
    def row_level(self) -> bool:
        return not self.privacy_unit

    def types(self) -> dict[str, str]:
        """The declared types by column name."""
        return {name: column.type for name, column in self.columns.items() if column.type is not None}


@dataclass(frozen=True)
class Policy:
    """A whole policy.

    Attributes:
        path: of the file.
        ledger: the ledger's place, absolute; None where the policy leaves it open.
        datasets, budgets: by name.
    """

    path: Path
    ledger: str | None
    datasets: Mapping[str, DatasetPolicy]
    budgets: Mapping[str, BudgetPolicy]

    def dataset(self, name: str) -> DatasetPolicy:
        """A data set by its name.

        Raises:
            UsageError: there is none of that name; names those there are.
        """
        if name not in self.datasets:
            known = ", ".join(self.datasets)
            raise UsageError(
                "data set", f"is not in {self.path.name}; there are {known}", name, near(name, self.datasets)
            )
        return self.datasets[name]


def near(name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    """A hint with the known name that is closest, if one is close."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""
