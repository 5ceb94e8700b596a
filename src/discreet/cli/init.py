"""`discreet init`: registers a source for its owner, and begins its policy."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from discreet.cli.arguments import read_bounds, read_types
from discreet.cli.conversation import Conversation, check_unit, fitting
from discreet.cli.output import destination
from discreet.cli.policies import FILE
from discreet.cli.progress import registration_bar
from discreet.cli.talk import say, show_loss
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.ledger import Budget
    from discreet.policy.writing import Draft
    from discreet.query import Bounds
    from discreet.schema import Column, Registration
    from discreet.sources import Inspection, Location

__all__ = ["Wanted", "begin_policy"]


@dataclass(frozen=True)
class Wanted:
    """What the command line says, as written."""

    source: str
    output: str | None = None
    force: bool = False
    name: str | None = None
    unit: Sequence[str] | None = None
    row_level: bool = False
    max_contributions: str | None = None
    max_groups_contributed: str | None = None
    bounds: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    unknown_groups: bool = False
    budget: str | None = None
    budget_delta: str | None = None
    epsilon: str | None = None
    ledger: str | None = None
    types: Sequence[str] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)


def begin_policy(wanted: Wanted) -> None:
    """Register a source, tell its owner what was found, and write a policy from its names and types, with what the
    flags say and, on a terminal, what is answered.

    Raises:
        SourceError: the source cannot be read.
        UsageError: a flag is not valid or does not fit the source, or the policy's file is there already.
    """
    from discreet.ledger import Ledger, default_path
    from discreet.ledger.places import named_place
    from discreet.policy.writing import policy_text
    from discreet.registry import enter, twins, twins_note

    said = _said(wanted)
    place = None if wanted.output == "-" else Path(wanted.output or FILE).expanduser()
    _check_new(place, force=wanted.force)
    location = _located(wanted)
    book_place = default_path() if wanted.ledger is None else named_place(wanted.ledger)
    registration, found, budget = _registered(book_place, location, wanted)
    _tell(registration, found)
    if budget is not None:
        say(f"it has a budget already, of {show_loss(budget.total)} for each {budget.unit}, which counts")
        said = _in_force(budget, said)
    draft = _completed(_draft(said, wanted, location, registration, place, book_place), wanted, registration)
    if sys.stdin is not None and sys.stderr is not None and sys.stdin.isatty() and sys.stderr.isatty():
        draft = Conversation(draft, registration).held(with_bounds=wanted.bounds is None)
    text = policy_text(draft)
    _check_whole(text, draft, registration, place)
    _check_new(place, force=wanted.force)
    taken = _taken(location, book_place)
    with destination(
        "--output", None if place is None else str(place), taken, taken.__contains__, new=not wanted.force
    ) as target:
        with Ledger(book_place) as book:
            with registration_bar("registering"):
                version = enter(book, registration, first=True)
            if book.governed(registration.source) is None:
                book.join(registration.source, registration.source, dataset=draft.name)
            ledger_path, note = book.place, twins_note(twins(book, registration.source))
        target.write(text, machine=True)
    say(
        f"registered {draft.name} in {ledger_path} (version {version}); from now on it is asked by its policy only"
        + ("" if place is None else f", {place}")
    )
    if note:
        say(note)
    check = "discreet check" + ("" if place in (None, Path(FILE)) else f" --policy {place}")
    if draft.open_places:
        say(f"to fill in: {', '.join(draft.open_places)}; then: {check}")
    else:
        say(f'next: {check}, or discreet query "SELECT COUNT(*) AS n FROM {draft.name}"')


# --- before anything is read -------------------------------------------------------------------------------


def _said(wanted: Wanted) -> dict[str, Any]:
    """The flags' values, as far as they can be checked without the source."""
    from discreet.exact import parse_delta, parse_epsilon, parse_positive_integer
    from discreet.policy.writing import dataset_name

    if wanted.row_level and wanted.unit:
        raise UsageError("--unit", "and --row-level exclude each other", ", ".join(wanted.unit))
    if wanted.name is not None and dataset_name(wanted.name) != wanted.name:
        raise UsageError("--name", "must be letters, digits and _, so that FROM can name it", wanted.name)
    if wanted.budget is None and wanted.budget_delta is not None:
        raise UsageError("--budget-delta", "needs --budget beside it", wanted.budget_delta)
    read_types(wanted.types)
    said: dict[str, Any] = {"row_level": wanted.row_level, "unit": tuple(wanted.unit or ())}
    for name in ("max_contributions", "max_groups_contributed"):
        value = getattr(wanted, name)
        if value is not None:
            said[name] = parse_positive_integer(name, value)
    if wanted.budget is not None:
        said["epsilon"] = parse_epsilon(wanted.budget, name="budget")
    if wanted.budget_delta is not None:
        said["delta"] = parse_delta(wanted.budget_delta, name="the budget's delta")
    if wanted.epsilon is not None:
        said["default_epsilon"] = parse_epsilon(wanted.epsilon)
    said["unknown_groups"] = wanted.unknown_groups
    return said


def _check_new(place: Path | None, *, force: bool) -> None:
    if place is not None and place.exists() and not force:
        hint = "write to another with -o FILE, or over it with --force; -o - shows the policy only"
        raise UsageError("--output", "is there already, and is not written over", str(place), hint)


def _located(wanted: Wanted) -> Location:
    from discreet.sources import locate

    reading = wanted.reading
    log = "log" if reading.get("log_format") is not None else None
    return locate(wanted.source, format=reading.get("format") or log, table=reading.get("table"))


# --- what is found -----------------------------------------------------------------------------------------


def _registered(
    place: Path | str, location: Location, wanted: Wanted
) -> tuple[Registration, Inspection | None, Budget | None]:
    """What is stored of the source, with its budget; else what is found when it is read, whole."""
    from discreet import sources
    from discreet.ledger import existing_ledger

    options = {name: value for name, value in wanted.reading.items() if name != "format"}
    types = read_types(wanted.types)
    if (opened := existing_ledger(place)) is not None:
        with opened as book:
            stored, budget = book.registration(location.source), book.budget(location.source)
            if book.account(location.source) != location.source:
                budget = None  # shared: its policy is another
        if stored is not None:
            sources.check_stored(stored, types=types, **options)
            return stored, None, budget
    with registration_bar("registering"):
        found = sources.inspect_source(location, types=types, expect=tuple(wanted.unit or ()), **options)
    return found.registration, found, None


def _in_force(budget: Budget, said: Mapping[str, Any]) -> dict[str, Any]:
    """What the ledger knows of the source's budget, where nothing else is said."""
    filled = {"epsilon": budget.total.epsilon, "delta": budget.total.delta or None, **said}
    if not said["unit"] and not said["row_level"]:
        filled |= {"row_level": True} if budget.unit == "one row" else {"unit": (budget.unit,)}
    return filled


def _tell(registration: Registration, found: Inspection | None) -> None:
    """What the owner may see: also what depends on single records."""
    from discreet.sources import describe

    for line in describe(registration):
        say(line)
    if found is None:
        say("it is registered already: the stored types are used (discreet refresh registers it anew)")
        return
    bad = f"; {found.bad_records:,} lines are no records, and are left out" if found.bad_records else ""
    say(f"{found.records:,} records read{bad} (told to you, the owner; kept nowhere)")
    for note in found.notes:
        say(f"note: {note}")


# --- the draft ---------------------------------------------------------------------------------------------


def _draft(
    said: Mapping[str, Any],
    wanted: Wanted,
    location: Location,
    registration: Registration,
    place: Path | None,
    ledger: Path | str,
) -> Draft:
    from discreet.policy.writing import Draft, dataset_name

    folder = Path.cwd() if place is None else place.resolve().parent
    return Draft(
        name=wanted.name or dataset_name(location.name),
        source=_from(folder, wanted.source),
        columns=registration.schema.columns,
        ledger=None if "://" in str(ledger) else _from(folder, str(ledger)),  # an address may hold a password
        reading=dict(wanted.reading),
        **said,
    )


def _from(folder: Path, written: str) -> str:
    """A path as a policy in `folder` names it: from there, if it lies below, else absolute. An address stays as it is.

    Raises:
        UsageError: an address with a password, which must not stand in a policy.
    """
    if "://" in written:
        if urlsplit(written).password is not None:
            rule = "must hold no password: it would stand in the policy"
            raise UsageError(
                "SOURCE", rule, hint="leave it out of the address; PGPASSWORD or a password file may say it"
            )
        return written
    path = Path(os.path.abspath(os.path.expanduser(written)))  # noqa: PTH100, PTH111 - keeps links and patterns
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _completed(draft: Draft, wanted: Wanted, registration: Registration) -> Draft:
    """With what the flags say of columns, checked against them."""
    from discreet.keys import split_name

    bounds: dict[str, Bounds] = {}
    for name, pair in read_bounds(wanted.bounds).items():
        column = _column(registration, name, "--bounds")
        bounds[column.name] = fitting(column, pair)
    keys: dict[str, str] = {}
    for text in wanted.keys or ():
        name, line = split_name(text)
        column = _column(registration, name, "--keys")
        keys[column.name] = _listed(column, ",".join([*filter(None, [keys.get(column.name)]), line]))
    draft = dataclasses.replace(draft, bounds=bounds, keys=keys)
    if draft.unit:
        check_unit(draft, registration)
    return draft


def _column(registration: Registration, name: str, option: str) -> Column:
    from discreet.policy.declared import near

    place = registration.schema.position(name)
    if place is None:
        raise UsageError(option, "names no column of the source", name, near(name, registration.schema.names()))
    return registration.schema.columns[place]


def _listed(column: Column, line: str) -> str:
    from discreet.keys import cast_keys, split_line

    cast_keys(split_line(line, f"--keys {column.name}"), column.type, column.name)
    return line


def _check_whole(text: str, draft: Draft, registration: Registration, place: Path | None) -> None:
    """A policy with nothing left open must be one that holds.

    Raises:
        PolicyError: with all its faults.
    """
    from discreet.errors import PolicyError
    from discreet.policy import parse_policy
    from discreet.policy.checking import misfits

    if draft.open_places:
        return
    path = place or Path(FILE)
    faults = misfits(parse_policy(text, path).dataset(draft.name), registration)
    if faults:
        raise PolicyError(path.name, tuple(faults))


def _taken(location: Location, ledger: Path | str) -> dict[Path, str]:
    from discreet.sources.files import source_files

    taken = {Path(file.path).resolve(): "the source" for file in source_files(location.to_reader())}
    if isinstance(ledger, Path):
        for suffix in ("", "-wal", "-shm", "-journal", ".key"):
            taken[ledger.resolve().with_name(ledger.name + suffix)] = "the ledger"
    return taken
