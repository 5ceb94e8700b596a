"""Opening a source: registered if need be, with its unit, limits, budget and ledger, by hand or by a policy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from discreet.dataset import Dataset
from discreet.errors import BudgetError, PolicyError, SourceError, UsageError
from discreet.exact import parse_positive_integer
from discreet.ledger import Ledger, default_path
from discreet.ledger.places import named_place, same_ledger, shown_ledger
from discreet.policy import BudgetPolicy, DatasetPolicy, Policy, load_policy
from discreet.policy.checking import budget_faults, declare, declared_unit, inspect_declared, misfits
from discreet.privacy import parse_budget
from discreet.registry import enter, twins, twins_note

if TYPE_CHECKING:
    from discreet.schema import Registration
    from discreet.sources import Location, Reading

__all__ = ["ledger_of", "location_of", "open_source"]


def open_source(
    source: object = None,
    *,
    policy: str | os.PathLike[str] | Policy | None = None,
    privacy_unit: str | Sequence[str] | None = None,
    row_level: bool = False,
    max_contributions: object = None,
    max_groups_contributed: object = None,
    budget: object = None,
    ledger: str | os.PathLike[str] | None = None,
    name: str | None = None,
    types: Mapping[str, str] | None = None,
    expect: Sequence[str] = (),
    **reading: Unpack[Reading],
) -> Dataset:
    """Open a private source: a file, a table of a database, or a pandas, Polars or Arrow table.

    The first opening registers it: it reads the whole source once, and stores names and types in the ledger as
    the owner's disclosure. Later ones use what is stored.

    Args:
        policy: the owner's policy, a file. `source` is then the name of one of its data sets (None for its only one),
            and everything is taken from there; limits may be narrowed here, or said again.
        source: a path to a CSV, TSV, JSON or Parquet file or an access log, a folder or a pattern of such files
            (text also as .gz or .zst), ``FILE::TABLE`` for DuckDB and SQLite, ``postgresql://user@host/database`` with
            `table`, ``spark:local::parquet./folder``, a ``SparkSession`` with `table`, or a data frame.
        privacy_unit: who is protected: a column, or several expressions with commas ("actor, DATE(time)") or as
            a list.
        row_level: instead, each row is its own unit.
        max_contributions: how many rows one unit may weigh, over all groups.
        max_groups_contributed: how many groups one unit may weigh in COUNT(DISTINCT unit).
        budget: the source's total epsilon, or a pair (epsilon, delta); sets it for good the first time.
        ledger: the ledger's file, or the address of a PostgreSQL database; None for DISCREET_LEDGER, else a file in
            the user's state folder.
        name: what a data frame is called (required for one).
        types: for columns whose type is to be another than the one found, its name.
        expect: names that a CSV file's columns are going to be asked by. With the unit, they tell its header from
            a first row where everything is text.
        **reading: how the files are read, fixed at the first opening: `format`, `encoding` ("gbk"), `header`,
            `names`, `delimiter`, `quote`, `escape`, `null_values`, `decimal`, `thousands`, `timezone` and `year` of
            times that say none, `records` (the path of the list inside JSON documents, "Records"), `log_format`
            ("combined", "common", "syslog", "rfc5424", "auditd"), `table` of a database, `partitions` (whether
            folders called name=value are columns), `strict` (refuse a file with a bad record; None: with half of
            them bad). An option that means nothing for the format is refused.

    Raises:
        SourceError: the source cannot be read or registered.
        UsageError: an argument is not valid, or contradicts the policy or what is stored.
        LedgerError: the ledger cannot be used.
    """
    limits = {"max_contributions": max_contributions, "max_groups_contributed": max_groups_contributed}
    for limit, value in limits.items():
        if value is not None:
            parse_positive_integer(limit, value)
    if not isinstance(row_level, bool):
        raise UsageError("row_level", "must be True or False", row_level)
    if row_level and privacy_unit is not None:
        raise UsageError("privacy unit", "and row level exclude each other", privacy_unit)
    unit = None if privacy_unit is None else _unit_texts(privacy_unit)
    # What can be told before the source is registered is told now: a slip of the pen leaves no trace.
    if budget is not None:
        parse_budget(budget)
    if policy is not None:
        declared = policy if isinstance(policy, Policy) else load_policy(os.fspath(policy))
        _declared_there({"name": name, "types": types or None, **reading})
        asked = _asked(declared, source)
        _check_unit(asked, unit, row_level=row_level)
        dataset = _open_declared(declared, asked, Ledger(ledger_of(declared, ledger)), limits, expect)
        if budget is not None:
            dataset.set_budget(budget)
        return dataset
    if source is None:
        raise UsageError("source", "is required", hint="a file, or the name of a policy's data set with policy=")
    book = Ledger(default_path() if ledger is None else os.fspath(ledger))
    if type(source).__module__.startswith("pyspark."):
        source, name = _of_session(source, name, reading, book)
    is_path = isinstance(source, str | os.PathLike)
    if is_path:
        location = _located(source, reading, book)
        identity, known_as = location.source, name or location.name
    else:
        if not name:
            raise UsageError("name", "is required for a data frame: the ledger knows it by that", hint='name="visits"')
        identity, known_as = f"frame:{name}", name
        if reading:
            rule = "means nothing for a data frame: it bears its types already"
            raise UsageError(next(iter(reading)), rule, next(iter(reading.values())))
    governed = book.governed(identity)
    if governed is not None:
        rule = f"is asked through its owner's policy only, where it is called {governed}"
        raise UsageError("source", rule, identity, "discreet query --policy FILE (Python: policy=FILE)")
    names = (*(unit or ()), *expect)
    if is_path:
        notice = _register_file(book, location, known_as, types or {}, names, reading)
    else:
        notice = _register_frame(book, source, known_as, types or {})
    registration, version = _in_force(book, identity)
    dataset = Dataset(
        registration,
        book,
        version=version,
        name=known_as,
        unit=unit,
        row_level=row_level,
        max_contributions=max_contributions,
        max_groups_contributed=max_groups_contributed,
        access=location.address or None if is_path else source,
        notice=notice,
    )
    if privacy_unit is not None or row_level:
        dataset.unit_text()  # an unknown column is told now, not at the first query
    if budget is not None:
        dataset.set_budget(budget)
    return dataset


def _of_session(source: Any, name: str | None, reading: Reading, book: Ledger) -> tuple[object, str | None]:
    """A session's table is a frame of it, called by the table's name."""
    from discreet.sources import frame_at, is_spark_session

    if not is_spark_session(source):
        return source, name
    table = reading.pop("table", None)
    if table is None:
        raise UsageError("table", "is required with a session of Spark", hint='table="db.visits"')
    if name is not None:
        raise UsageError("name", "means nothing for a table of Spark: its budget is found by the table's", name)
    known = book.registration(f"frame:{table.lower()}")
    return frame_at(source, table, None if known is None else known.schema), table.lower()


def _in_force(book: Ledger, identity: str) -> tuple[Registration, int]:
    """What is registered, and its version, of one moment."""
    found = book.registered(identity)
    if found is None:
        raise AssertionError(identity)
    return found


def _register_file(
    book: Ledger, location: Location, name: str, types: Mapping[str, str], names: Sequence[str], reading: Reading
) -> str:
    """Register a file, if it is not yet; what is said again must agree. A notice, if it was."""
    from discreet import sources

    registration = book.registration(location.source)
    if registration is not None:
        sources.check_stored(registration, types=types, **reading)
        return ""
    made = sources.register(location, types=types, expect=names, **reading)
    enter(book, made, first=True)
    # Who registers a source without a policy is its owner.
    return "\n".join(filter(None, (_registered(name, made), twins_note(twins(book, location.source)))))


def _register_frame(book: Ledger, frame: object, name: str, types: Mapping[str, str]) -> str:
    """Register a data frame, if it is not yet. A notice, if it was.

    The stored schema wins ever after: columns are found by name, values cast to the stored types. To infer the
    types again, and to refuse others than before, would tell for free what one person's value is.
    """
    from discreet import sources

    registration = book.registration(f"frame:{name}")
    if registration is not None:
        sources.check_frame(registration, frame, types=types)
        return ""
    made = sources.register_frame(frame, name, types=types)
    book.register(made, first=True)
    return _registered(name, made)


def _registered(name: str, registration: Registration) -> str:
    read = "types from the catalogue" if registration.format in ("postgres", "spark") else "read whole, types"
    return f"registered {name}: {len(registration.schema.columns)} columns, {read} stored"


# --- by a policy -------------------------------------------------------------------------------------------


def _open_declared(
    policy: Policy, declared: DatasetPolicy, book: Ledger, limits: Mapping[str, object], expect: Sequence[str]
) -> Dataset:
    """A data set of a policy: registered if need be, checked against it, its budget set and joined."""
    narrowed = {name: _narrowed(declared, name, value) for name, value in limits.items()}
    location = location_of(declared, book=book)
    identity = location.source
    found, notice = book.registered(identity), ""
    if found is None:
        try:
            registration, version = inspect_declared(declared, location, expect).registration, 0
        except UsageError as fault:
            raise PolicyError(policy.path.name, (fault,)) from None
    else:
        registration, version = found
    faults = misfits(declared, registration)
    unit = declared.budget.unit
    if not faults:
        unit = unit or declared_unit(declared, registration).text
        faults = budget_faults(declared, book, identity, unit)
    if faults:
        raise PolicyError(policy.path.name, tuple(faults))
    # The policy fits the source. What follows is written to the ledger, once.
    if found is None:
        enter(book, registration, first=True)
        notice = _registered(declared.name, registration)
        registration, version = _in_force(book, identity)
    account = declared.budget.account or identity
    book.set_budget(account, declared.budget.total, unit=unit, window=declared.budget.window)
    _set_accounting(policy, declared.budget, book, account)
    book.join(identity, account, dataset=declared.name)
    return Dataset(
        registration,
        book,
        version=version,
        name=declared.name,
        unit=declared.privacy_unit or None,
        row_level=declared.row_level,
        max_contributions=narrowed["max_contributions"],
        max_groups_contributed=narrowed["max_groups_contributed"],
        access=location.address or None,
        notice=notice,
        declared=declared,
        policy=policy,
        owner=declare(declared, registration)[0],
    )


def location_of(declared: DatasetPolicy, source: str | None = None, *, book: Ledger | None = None) -> Location:
    """Where the source of a policy's data set is; or where `source` is, read as that data set is.

    Args:
        book: where it may be registered: then its files need not be there any more.

    Raises:
        SourceError: there is no such file, or it cannot be told what it is.
    """
    reading = dict(declared.reading)
    try:
        return _located(declared.source if source is None else source, reading, book)  # type: ignore[arg-type]
    except SourceError as error:
        raise SourceError(f"{declared.path}.source", error.rule, error.value, error.hint) from None


def _narrowed(declared: DatasetPolicy, name: str, asked: object) -> int | None:
    """A limit of the owner's, or the lower one that is asked for."""
    own: int | None = getattr(declared, name)
    if asked is None:
        return own
    number = parse_positive_integer(name, asked)
    if own is not None and number > own:
        raise UsageError(name, f"must be at most {own}, the owner's limit ({declared.path}.{name})", number)
    return number


def _set_accounting(policy: Policy, declared: BudgetPolicy, book: Ledger, account: str) -> None:
    """The policy's word on how losses are added up, in force from now on: the total that it promises stays the same.

    Raises:
        PolicyError: by that accounting more would be spent than the total.
    """
    try:
        book.set_accounting(
            account,
            declared.accounting,
            delta_for_groups=declared.delta_for_groups,
            epsilon_per_query=declared.epsilon_per_query,
        )
    except BudgetError as error:
        fault = UsageError(f"{declared.path}.accounting", error.rule, str(declared.accounting), error.hint)
        raise PolicyError(policy.path.name, (fault,)) from None


def _asked(policy: Policy, name: object) -> DatasetPolicy:
    if name is None and len(policy.datasets) == 1:
        return next(iter(policy.datasets.values()))
    if not isinstance(name, str):
        known = ", ".join(policy.datasets)
        raise UsageError("source", f"must be the name of one of the policy's data sets: {known}", name)
    return policy.dataset(name)


def ledger_of(policy: Policy, asked: str | os.PathLike[str] | None = None) -> Path | str:
    """Where the policy's ledger lies: another one would be another budget.

    Raises:
        UsageError: the policy names one, and another is asked for.
    """
    if policy.ledger is None:
        return default_path() if asked is None else named_place(asked)
    if asked is not None and not same_ledger(os.fspath(asked), policy.ledger):
        rule = f"is {shown_ledger(policy.ledger)}, by the owner's policy ({policy.path.name})"
        raise UsageError("ledger", rule, shown_ledger(os.fspath(asked)))
    return named_place(policy.ledger)


def _declared_there(given: Mapping[str, object]) -> None:
    for name, value in given.items():
        if value is not None:
            shown = ", ".join(value) if isinstance(value, Mapping) else value
            raise UsageError(name, "is declared in the policy", shown, "leave it out")


def _check_unit(declared: DatasetPolicy, unit: tuple[str, ...] | None, *, row_level: bool) -> None:
    """The unit may be said again, not replaced."""
    own = ", ".join(declared.privacy_unit) or "one row"
    if row_level and not declared.row_level:
        raise UsageError("row level", f"is not the owner's: the privacy unit is {own} ({declared.path})")
    if unit is not None and _folded(unit) != _folded(declared.privacy_unit):
        rule = f"is {own}, by the owner's policy ({declared.path}.privacy_unit)"
        raise UsageError("privacy unit", rule, ", ".join(unit))


def _folded(unit: Sequence[str]) -> list[str]:
    return [part.strip().casefold() for one in unit for part in one.split(",")]


def _located(source: Any, reading: Reading, book: Ledger | None) -> Location:
    """Where the source is, or was when it was registered; takes `format` out of the options, as it is part of that."""
    from discreet.sources import Location, Reading, identify, where_it_was

    for name in reading:
        if name not in Reading.__annotations__:
            known = ", ".join(sorted(Reading.__annotations__))
            raise UsageError("open", f"has no such option; those of reading are {known}", name)
    format_ = reading.pop("format", None)
    if reading.get("log_format") is not None:
        format_ = format_ or "log"  # the name of a log tells nothing
    for identity, called in where_it_was(source, table=reading.get("table")):
        stored = None if book is None else book.registration(identity)
        if stored is not None:  # a plan needs no more
            return Location(identity, stored.reader["path"], stored.format, called)
    return identify(source, format=format_, table=reading.get("table"))


def _unit_texts(unit: object) -> tuple[str, ...]:
    texts = (unit,) if isinstance(unit, str) else tuple(unit) if isinstance(unit, Sequence) else ()
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise UsageError("privacy unit", "must be a column name, or several with commas between", unit)
    return texts
