"""`discreet init`: registers a source for its owner, and begins its policy."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from discreet.cli.arguments import read_bounds, read_types
from discreet.cli.output import destination
from discreet.cli.policies import FILE
from discreet.cli.talk import say, show_loss
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.ledger import Budget
    from discreet.policy.writing import Draft
    from discreet.query import Bounds
    from discreet.schema import Column, Registration
    from discreet.sources import Inspection, Location

__all__ = ["Wanted", "begin_policy"]

T = TypeVar("T")


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
    from discreet.policy.writing import policy_text

    said = _said(wanted)
    place = None if wanted.output == "-" else Path(wanted.output or FILE).expanduser()
    _check_new(place, force=wanted.force)
    location = _located(wanted)
    book_place = default_path() if wanted.ledger is None else Path(wanted.ledger).expanduser()
    registration, found, budget = _registered(book_place, location, wanted)
    _tell(registration, found)
    if budget is not None:
        say(f"it has a budget already, of {show_loss(budget.total)} for each {budget.unit}, which counts")
        said = _in_force(budget, said)
    draft = _completed(_draft(said, wanted, location, registration, place), wanted, registration)
    if sys.stdin is not None and sys.stderr is not None and sys.stdin.isatty() and sys.stderr.isatty():
        draft = _Conversation(draft, registration).held(wanted)
    text = policy_text(draft)
    _check_whole(text, draft, registration, place)
    _check_new(place, force=wanted.force)
    taken = _taken(location, book_place)
    with destination(
        "--output", None if place is None else str(place), taken, taken.__contains__, new=not wanted.force
    ) as target:
        with Ledger(book_place) as book:
            version = book.register(registration, first=True)
            if book.governed(registration.source) is None:
                book.join(registration.source, registration.source, dataset=draft.name)
            ledger_path = book.path
        target.write(text, machine=True)
    say(
        f"registered {draft.name} in {ledger_path} (version {version}); from now on it is asked by its policy only"
        + ("" if place is None else f", {place}")
    )
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
    place: Path, location: Location, wanted: Wanted
) -> tuple[Registration, Inspection | None, Budget | None]:
    """What is stored of the source, with its budget; else what is found when it is read, whole."""
    from discreet import sources
    from discreet.ledger import Ledger

    options = {name: value for name, value in wanted.reading.items() if name != "format"}
    types = read_types(wanted.types)
    if place.exists():
        with Ledger(place) as book:
            stored, budget = book.registration(location.source), book.budget(location.source)
            if book.account(location.source) != location.source:
                budget = None  # shared: its policy is another
        if stored is not None:
            sources.check_stored(stored, types=types, **options)
            return stored, None, budget
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
    said: Mapping[str, Any], wanted: Wanted, location: Location, registration: Registration, place: Path | None
) -> Draft:
    from discreet.policy.writing import Draft, dataset_name

    folder = Path.cwd() if place is None else place.resolve().parent
    return Draft(
        name=wanted.name or dataset_name(location.name),
        source=_from(folder, wanted.source),
        columns=registration.schema.columns,
        ledger=None if wanted.ledger is None else _from(folder, wanted.ledger),
        reading=dict(wanted.reading),
        **said,
    )


def _from(folder: Path, written: str) -> str:
    """A path as a policy in `folder` names it: from there, if it lies below, else absolute."""
    path = Path(os.path.abspath(os.path.expanduser(written)))  # noqa: PTH100, PTH111 - keeps links and patterns
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else str(path)


def _completed(draft: Draft, wanted: Wanted, registration: Registration) -> Draft:
    """With what the flags say of columns, checked against them."""
    from discreet.keys import split_name

    bounds: dict[str, Bounds] = {}
    for name, pair in read_bounds(wanted.bounds).items():
        column = _column(registration, name, "--bounds")
        bounds[column.name] = _fitting(column, pair)
    keys: dict[str, str] = {}
    for text in wanted.keys or ():
        name, line = split_name(text)
        column = _column(registration, name, "--keys")
        keys[column.name] = _listed(column, ",".join([*filter(None, [keys.get(column.name)]), line]))
    draft = dataclasses.replace(draft, bounds=bounds, keys=keys)
    if draft.unit:
        _check_unit(draft, registration)
    return draft


def _column(registration: Registration, name: str, option: str) -> Column:
    from discreet.policy.declared import near

    place = registration.schema.position(name)
    if place is None:
        raise UsageError(option, "names no column of the source", name, near(name, registration.schema.names()))
    return registration.schema.columns[place]


def _fitting(column: Column, bounds: Bounds) -> Bounds:
    kind = column.type.kind
    if kind.is_number and bounds.written != "number":
        raise UsageError(f"bounds of {column.name!r}", "must be two numbers, such as 0..100")
    if kind.is_temporal and bounds.written != "date":
        raise UsageError(f"bounds of {column.name!r}", "must be two days, such as 2024-01-01..2024-12-31")
    if not kind.is_number and not kind.is_temporal:
        raise UsageError(f"bounds of {column.name!r}", f"are for numbers and dates, but the column is {kind}")
    return bounds


def _listed(column: Column, line: str) -> str:
    from discreet.keys import cast_keys, split_line

    cast_keys(split_line(line, f"--keys {column.name}"), column.type, column.name)
    return line


def _check_unit(draft: Draft, registration: Registration) -> None:
    from discreet.policy import BudgetPolicy, DatasetPolicy
    from discreet.policy.checking import declared_unit
    from discreet.privacy import PrivacyLoss

    budget = BudgetPolicy("", "", PrivacyLoss(Fraction(1)))
    declared_unit(DatasetPolicy("", draft.name, draft.source, budget, privacy_unit=draft.unit), registration)


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


def _taken(location: Location, ledger: Path) -> dict[Path, str]:
    from discreet.sources.files import source_files

    taken = {Path(file.path).resolve(): "the source" for file in source_files(location.to_reader())}
    for suffix in ("", "-wal", "-shm", "-journal"):
        taken[ledger.resolve().with_name(ledger.name + suffix)] = "the ledger"
    return taken


# --- on a terminal -----------------------------------------------------------------------------------------


@dataclass
class _Conversation:
    """Questions to the owner, one after the other. Enter leaves a place open; what is refused is asked again."""

    draft: Draft
    registration: Registration

    def held(self, wanted: Wanted) -> Draft:
        """Ask all that the flags left open."""
        self._unit()
        self._limits()
        if wanted.bounds is None:
            self._bounds()
        self._budget()
        return self.draft

    def _unit(self) -> None:
        if self.draft.unit or self.draft.row_level:
            return
        say(
            'Whose rows are protected together? A column, or several with commas; "row" if each row is one person.\n'
            "Enter leaves a place open, here and below."
        )
        self._ask("privacy unit", self._unit_said)

    def _unit_said(self, text: str) -> None:
        if text.strip().casefold() == "row" and self.registration.schema.position("row") is None:
            self._set(row_level=True)
            return
        draft = dataclasses.replace(self.draft, unit=(text.strip(),))
        _check_unit(draft, self.registration)
        self.draft = draft

    def _limits(self) -> None:
        if self.draft.row_level:
            return
        who = " and ".join(self.draft.unit) or "unit"
        if self.draft.max_contributions is None:
            say(f"How many rows may one {who} weigh, over all groups? What most stay under, as far as you know.")
            self._ask_number("max_contributions")
        if self.draft.max_groups_contributed is None:
            say(f"In how many groups may one {who} be counted, where they are counted? Enter: no limit of its own.")
            self._ask_number("max_groups_contributed")

    def _ask_number(self, name: str) -> None:
        from discreet.exact import parse_positive_integer

        self._ask(name, lambda text: self._set(**{name: parse_positive_integer(name, text)}))

    def _bounds(self) -> None:
        from discreet.bounds import parse_bounds_option
        from discreet.policy.writing import policy_text

        numbers = [column for column in self.draft.columns if column.type.kind.is_number]
        if not numbers:
            return
        say(
            "Between which bounds are numbers summed or averaged? LOW..HIGH, from what you know: values outside are\n"
            "clamped. A full stop ends the list."
        )

        for column in numbers:

            def said(text: str, column: Column = column) -> None:
                bounds = _fitting(column, parse_bounds_option(f"{column.name}={text}")[1])
                draft = dataclasses.replace(self.draft, bounds={**self.draft.bounds, column.name: bounds})
                policy_text(draft)  # refuses what a policy cannot hold
                self.draft = draft

            if self._ask(f"{_printable(column.name)} ({column.type})", said, end=".") == ".":
                return

    def _budget(self) -> None:
        from discreet.exact import parse_delta, parse_epsilon

        if self.draft.epsilon is None:
            say("What may all queries together cost, for good? 3 is a usual start; it can be raised, never lowered.")
            self._ask("epsilon", lambda text: self._set(epsilon=parse_epsilon(text, name="budget")))
        if self.draft.epsilon is not None and self.draft.delta is None:
            say(
                "And at which chance may the promise fail, for groups chosen from the data? Enter: none; 1e-6 is usual."
            )
            self._ask("delta", lambda text: self._set(delta=parse_delta(text, name="the budget's delta") or None))
            self._groups()
        if self.draft.epsilon is not None and self.draft.default_epsilon is None:
            say("What does a query cost that does not say it? Enter: each has to say it.")
            self._ask("default_epsilon", self._default_said)

    def _groups(self) -> None:
        if self.draft.delta is not None:
            self._ask("May analysts let groups be chosen from the data? y or n", self._groups_said)

    def _groups_said(self, text: str) -> None:
        word = text.strip().casefold()
        if word not in ("y", "yes", "n", "no"):
            raise UsageError("answer", "must be y or n", text)
        self._set(unknown_groups=word.startswith("y"))

    def _default_said(self, text: str) -> None:
        from discreet.exact import decimal_text, parse_epsilon

        epsilon = parse_epsilon(text)
        if self.draft.epsilon is not None and epsilon > self.draft.epsilon:
            raise UsageError("epsilon", f"must not be above the budget's, {decimal_text(self.draft.epsilon)}", text)
        self._set(default_epsilon=epsilon)

    def _set(self, **values: Any) -> None:
        self.draft = dataclasses.replace(self.draft, **values)

    def _ask(self, prompt: str, answer: Callable[[str], None], end: str = "") -> str:
        """Ask until the answer is taken, or nothing or `end` is answered.

        Returns:
            What was answered.
        """
        while True:
            sys.stderr.write(f"{prompt}: ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:  # Ctrl-D: nothing was written, nothing registered
                sys.stderr.write("\n")
                raise typer.Abort
            text = line.strip()
            if text in ("", end):
                return text
            try:
                answer(text)
            except UsageError as fault:
                say(f"  {fault}")
            else:
                return text


def _printable(name: str) -> str:
    """A column's name on a terminal: no control character of it moves the cursor."""
    return "".join(c if c.isprintable() else "?" for c in name)
