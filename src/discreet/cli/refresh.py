"""`discreet refresh`: the owner's word that a source is another version now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.cli.arguments import read_types
from discreet.cli.budget import default_ledger
from discreet.cli.policies import dataset_named, find_policy
from discreet.cli.progress import registration_bar
from discreet.cli.talk import say
from discreet.errors import LedgerError, PolicyError, UsageError

if TYPE_CHECKING:
    from discreet.ledger import Ledger
    from discreet.policy import DatasetPolicy, Policy
    from discreet.schema import Registration
    from discreet.sources import Inspection, Location

__all__ = ["Wanted", "refresh_source"]


@dataclass(frozen=True)
class Wanted:
    """What the command line says, as written."""

    source: str | None
    policy: str | None = None
    ledger: str | None = None
    types: Sequence[str] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)


def refresh_source(wanted: Wanted) -> None:
    """Read a registered source again, whole, and store its names and types as its next version: from now on questions
    are answered anew. What was spent stays spent.

    Raises:
        SourceError: the source cannot be read.
        UsageError: it is not registered, or an option contradicts the policy.
        PolicyError: the policy does not fit the source as it is now; nothing is stored.
        LedgerError: the ledger cannot be used.
    """
    from discreet.ledger import existing_ledger
    from discreet.ledger.places import shown_ledger
    from discreet.opening import ledger_of
    from discreet.policy.checking import inspect_declared, misfits
    from discreet.registry import fingerprint_of, twins, twins_note
    from discreet.sources import inspect_source

    types = read_types(wanted.types)
    policy, dataset = _declared(wanted)
    if policy is None and wanted.source is None:
        raise UsageError("SOURCE", "is missing: which source is another version now?", hint="discreet refresh SOURCE")
    if dataset is not None and (types or wanted.reading):
        option = next(iter(("types",) if types else wanted.reading))
        raise UsageError(option, "is declared in the policy", hint=f"write it there ({dataset.path}), then refresh")
    place = default_ledger(wanted.ledger) if policy is None or dataset is None else ledger_of(policy, wanted.ledger)
    opened = existing_ledger(place)
    if opened is None:
        name = f"the ledger {shown_ledger(str(place))}"
        raise LedgerError(name, "does not exist", hint="discreet init SOURCE makes it")
    with opened as book:
        location, stored, reading = _known(book, dataset, wanted)
        with registration_bar("registering"):
            if dataset is None:
                found = inspect_source(location, types=types, **reading)
            else:
                found = inspect_declared(dataset, location)
        registration = found.registration
        faults = [] if dataset is None else misfits(dataset, registration)
        if faults and policy is not None:
            raise PolicyError(policy.path.name, tuple(faults))
        name, before = (dataset.name if dataset else location.name), book.fingerprints().get(location.source)
        with registration_bar("registering"):
            now = fingerprint_of(book, registration)
        version = book.register(registration, fingerprint=now)
        note = twins_note(twins(book, location.source))
    _tell(found)
    for line in _changes(stored, registration) or ["names and types are as before"]:
        say(line)
    if before and now and before.partition(":")[0] == now.partition(":")[0]:
        say("the content is as before" if before == now else "the content is another than before")
    say(f"{name} is version {version} now: no answer given before is given again; what was spent stays spent")
    if note:
        say(note)


def _declared(wanted: Wanted) -> tuple[Policy | None, DatasetPolicy | None]:
    """The policy, and the data set of it that is meant; nothing for a source that is none of its."""
    policy = find_policy(wanted.policy)
    if policy is None:
        return None, None
    if wanted.source is None:
        if len(policy.datasets) > 1:
            known = ", ".join(policy.datasets)
            raise UsageError("SOURCE", f"is missing: which data set? The policy has {known}")
        return policy, next(iter(policy.datasets.values()))
    found = dataset_named(policy, wanted.source)
    if found is None and wanted.policy is not None:
        policy.dataset(wanted.source)  # refuses, with those there are
    return policy, found


def _known(
    book: Ledger, dataset: DatasetPolicy | None, wanted: Wanted
) -> tuple[Location, Registration, dict[str, Any]]:
    """Where the source is, what is registered of it, and, without a policy, how it is read: as it was, with what the
    command line says now."""
    from discreet.opening import location_of
    from discreet.sources import locate, stored_reading

    if dataset is not None:
        location = location_of(dataset)
    else:
        options = wanted.reading
        format = options.get("format") or ("log" if options.get("log_format") is not None else None)
        location = locate(str(wanted.source), format=format, table=options.get("table"))
    found = book.registered(location.source)
    if found is None:
        hint = "discreet init SOURCE registers it, and so does a first question"
        raise UsageError("source", "is not registered in this ledger", wanted.source or location.source, hint)
    reading: dict[str, Any] = {}
    if dataset is None:
        governed = book.governed(location.source)
        if governed is not None:
            hint = "discreet refresh --policy FILE, or in the folder of its policy"
            raise UsageError("source", f"is read as its owner's policy says, where it is called {governed}", hint=hint)
        more = {name: value for name, value in wanted.reading.items() if name != "format"}
        reading = stored_reading(found[0]) | more
    return location, found[0], reading


def _tell(found: Inspection) -> None:
    bad = f"; {found.bad_records:,} lines are no records, and are left out" if found.bad_records else ""
    say(f"{found.records:,} records read{bad} (told to you, the owner; kept nowhere)")
    for note in found.notes:
        say(f"note: {note}")


def _changes(before: Registration, now: Registration) -> list[str]:
    """What is another column, or of another type, than was stored."""
    old = {column.name: column.type for column in before.schema.columns}
    new = {column.name: column.type for column in now.schema.columns}
    return [
        *(f"column {name!r} is new: {type_}" for name, type_ in new.items() if name not in old),
        *(f"column {name!r} is gone" for name in old if name not in new),
        *(f"column {name!r} is {new[name]}, was {old[name]}" for name in old if name in new and new[name] != old[name]),
    ]
