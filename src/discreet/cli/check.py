"""`discreet check`: does a policy hold, and does it fit its sources and the ledger? Writes nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from discreet.cli.policies import FILE, find_policy
from discreet.cli.progress import registration_bar
from discreet.cli.talk import say, show_loss
from discreet.errors import PolicyError, SourceError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from discreet.ledger import Ledger
    from discreet.policy import DatasetPolicy
    from discreet.schema import Registration
    from discreet.sources import Location

__all__ = ["check_policy"]


def check_policy(option: str | None) -> None:
    """Tell every fault of a policy at once, by its key path and with the fix: in itself, against its sources as they
    are registered (or, where one is not yet, as it is now), and against the budgets in force.

    Raises:
        UsageError: there is no policy.
        PolicyError: it has faults.
        LedgerError: its ledger cannot be read.
    """
    from discreet.ledger.places import shown_ledger
    from discreet.opening import ledger_of

    policy = find_policy(option)
    if policy is None:
        hint = f"discreet init SOURCE begins one; or name it by --policy, DISCREET_POLICY, or as {FILE} in this folder"
        raise UsageError("policy", "there is none here", hint=hint)
    place = ledger_of(policy)
    faults: list[UsageError] = []
    seen: dict[str, DatasetPolicy] = {}
    with _looked_at(place) as book:
        say(f"ledger: {shown_ledger(str(place))}" + ("" if book is not None else " (not there yet)"))
        for dataset in policy.datasets.values():
            faults += _faults(dataset, book, seen)
    if faults:
        raise PolicyError(policy.path.name, tuple(faults))
    say(f"policy {policy.path.name} has no faults")


@contextlib.contextmanager
def _looked_at(place: Path | str) -> Iterator[Ledger | None]:
    """The ledger, if there is one: looking makes none."""
    from discreet.ledger import existing_ledger

    opened = existing_ledger(place)
    if opened is None:
        yield None
        return
    with opened as book:
        yield book


def _faults(dataset: DatasetPolicy, book: Ledger | None, seen: dict[str, DatasetPolicy]) -> list[UsageError]:
    from discreet.opening import location_of
    from discreet.policy.checking import budget_faults, declared_unit, misfits
    from discreet.registry import twins, twins_note

    try:
        location = location_of(dataset, book=book)
        first = seen.setdefault(location.source, dataset)
        if first is not dataset:
            rule = f"is that of {first.path} too; one source has one policy"
            return [UsageError(f"{dataset.path}.source", rule, dataset.source)]
        registration, version = _as_it_stands(dataset, location, book)
    except SourceError as error:
        return [UsageError(f"{dataset.path}.source", error.rule, error.value, error.hint)]
    except UsageError as error:
        return [error]
    faults = misfits(dataset, registration)
    if book is not None and not faults:
        unit = dataset.budget.unit or declared_unit(dataset, registration).text
        faults = budget_faults(dataset, book, location.source, unit)
    if not faults:
        known = f"registered (version {version})" if version else "not registered yet: the first query does that"
        balance = None if book is None else book.balance(location.source)
        left = "no budget in force yet" if balance is None else f"left of the budget: {show_loss(balance.left)}"
        say(f"{dataset.name}: {len(registration.schema.columns)} columns; {known}; {left}")
        note = "" if book is None else twins_note(twins(book, location.source))
        if note:
            say(f"  {note}")
    return faults


def _as_it_stands(dataset: DatasetPolicy, location: Location, book: Ledger | None) -> tuple[Registration, int]:
    """What is registered, with its version; else what registering would find (version 0): the source is read, and
    nothing stored."""
    from discreet.policy.checking import inspect_declared
    from discreet.sources import files_of, has_files

    found = None if book is None else book.registered(location.source)
    if found is not None:
        if has_files(found[0]) and not files_of(found[0]):
            raise SourceError("source", "holds no file any more", location.source, "put it back")
        return found
    say(f"{dataset.name}: reading it whole, to check what it would be registered as; nothing is stored")
    with registration_bar("reading"):
        return inspect_declared(dataset, location).registration, 0
