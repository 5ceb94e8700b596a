"""A policy against a registered source: do its columns, types, bounds and keys fit?"""

from __future__ import annotations

from collections.abc import Sequence

from discreet.errors import UsageError
from discreet.exact import decimal_text
from discreet.keys import cast_keys
from discreet.ledger import Ledger
from discreet.owner import Declared, DeclaredColumn
from discreet.plan import Unit
from discreet.planning import unit_of
from discreet.policy.declared import ColumnPolicy, DatasetPolicy, near
from discreet.query import Name, Node, names_in
from discreet.schema import Column, Kind, Registration, parse_type
from discreet.sources import Inspection, Location, check_stored, extended, inspect_source
from discreet.sql import parse_expression

__all__ = ["budget_faults", "declare", "declared_unit", "inspect_declared", "misfits"]


def inspect_declared(dataset: DatasetPolicy, location: Location, expect: Sequence[str] = ()) -> Inspection:
    """Read a data set's source, whole, as its policy says.

    Args:
        expect: further column names that are going to be asked by.

    Raises:
        SourceError: it cannot be read as one table.
        UsageError: by key path, for what the policy says of the reading and does not fit.
    """
    reading = {name: value for name, value in dataset.reading.items() if name != "format"}
    names = (*dataset.privacy_unit, *dataset.columns, *expect)
    try:
        return inspect_source(location, types=dataset.types(), expect=names, **reading)
    except UsageError as fault:
        if fault.thing == "types" and fault.value in dataset.columns:
            path, rule = dataset.columns[str(fault.value)].path, "names no column of the source"
            raise UsageError(path, rule, fault.value, fault.rule) from None
        raise UsageError(f"{dataset.path}.{fault.thing}", fault.rule, fault.value, fault.hint) from None


def misfits(dataset: DatasetPolicy, registration: Registration) -> list[UsageError]:
    """All that a data set's policy says and that does not fit its source as it is registered."""
    faults = declare(dataset, registration)[1] + _reading_faults(dataset, registration)
    try:
        declared_unit(dataset, registration)
    except UsageError as fault:
        known = registration.schema.names()
        hint = next((near(name, known) for name in dataset.privacy_unit if name not in known), "")
        rule = f"{fault.thing}: {fault.rule}"
        faults.append(UsageError(f"{dataset.path}.privacy_unit", rule, fault.value, fault.hint or hint))
    return faults


def budget_faults(dataset: DatasetPolicy, book: Ledger, source: str, unit: str) -> list[UsageError]:
    """Where a data set's budget is another than the one that is in force. Only the owner's acts change that: each fault
    says which.

    Args:
        source: what the ledger calls the source.
        unit: its privacy unit, in its canonical wording.
    """
    wanted = dataset.budget
    account, in_force = wanted.account or source, book.account(source)
    if in_force not in (source, account):
        rule = f"is {in_force.removeprefix('budget:')!r} in the ledger: a budget is shared for good"
        return [UsageError(f"{dataset.path}.budget", rule, wanted.name or None)]
    faults: list[UsageError] = []
    budget, own = book.budget(account), book.budget(source)
    where = f"{wanted.path}.unit" if wanted.unit else f"{dataset.path}.privacy_unit"
    for known in dict.fromkeys((budget, own)):
        if known is not None and known.unit != (wanted.unit or unit):
            rule = f"is {known.unit!r} in the ledger: losses about another unit cannot be added to a budget"
            faults.append(UsageError(where, rule, wanted.unit or unit))
    if budget is None:
        return faults
    for key, mine, set_ in (
        ("epsilon", wanted.total.epsilon, budget.total.epsilon),
        ("delta", wanted.total.delta, budget.total.delta),
    ):
        shown, old = decimal_text(mine, digits=30), decimal_text(set_, digits=30)
        if mine > set_:
            hint = f"`discreet budget raise {wanted.name or dataset.name}` raises it to what the policy says"
            faults.append(UsageError(f"{wanted.path}.{key}", f"is {old} in the ledger, set for good", shown, hint))
        elif mine < set_:
            hint = f"write {key} = {old}; caps per query or analyst may be as low as you like"
            faults.append(UsageError(f"{wanted.path}.{key}", f"is {old} in the ledger, never lowered", shown, hint))
    if budget.window is not wanted.window:
        rule = f"is {budget.window!s} in the ledger, set for good"
        faults.append(UsageError(f"{wanted.path}.budget_window", rule, str(wanted.window)))
    return faults


def declared_unit(dataset: DatasetPolicy, registration: Registration) -> Unit:
    """The privacy unit, bound to the source's columns.

    Raises:
        UsageError: it names an unknown column, or cannot be a unit.
    """
    if dataset.row_level:
        return unit_of(None, registration.schema)
    nodes: list[Node] = []
    for text in dataset.privacy_unit:
        plain = registration.schema.position(text) is not None
        nodes += (Name((text,)),) if plain else parse_expression(text, "privacy unit")
    for name in (str(name) for node in nodes for name in names_in(node)):
        if registration.schema.position(name) is None:
            registration = extended(registration, name) or registration
    return unit_of(tuple(nodes), registration.schema)


def declare(dataset: DatasetPolicy, registration: Registration) -> tuple[Declared, list[UsageError]]:
    """What a data set's policy says of its columns, in the terms of the registered source; and what does not fit."""
    faults: list[UsageError] = []
    columns: dict[str, DeclaredColumn] = {}
    for name, declared in dataset.columns.items():
        column = _column(registration, name)
        if column is None:
            known = registration.schema.names()
            listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
            hint = near(name, known) or f"its columns: {listed}"
            faults.append(UsageError(declared.path, "names no column of the source", name, hint))
        elif column.name in columns:
            first = columns[column.name].path
            faults.append(UsageError(declared.path, f"means the same column as {first} does", name))
        else:
            columns[column.name] = _declared_column(declared, column, faults)
    return Declared(columns, dataset.unknown_groups, dataset.path), faults


def _reading_faults(dataset: DatasetPolicy, registration: Registration) -> list[UsageError]:
    """Where a data set's policy wants its source to be read in another way than it was registered."""
    faults: list[UsageError] = []
    hint = f"discreet refresh {dataset.name} registers it anew, as the policy says"
    for name, value in dataset.reading.items():
        if name == "format":
            if value != registration.format:
                rule = f"was registered as {registration.format}"
                faults.append(UsageError(f"{dataset.path}.format", rule, value, hint))
            continue
        try:
            check_stored(registration, **{name: value})
        except UsageError as fault:
            faults.append(UsageError(f"{dataset.path}.{name}", fault.rule, fault.value, hint))
    for name, column in dataset.columns.items():
        registered = _column(registration, name)
        if registered is not None and column.type is not None and parse_type(column.type) != registered.type:
            rule = f"was registered as {registered.type}"
            faults.append(UsageError(f"{column.path}.type", rule, column.type, hint))
    return faults


def _column(registration: Registration, name: str) -> Column | None:
    """A registered column, or one for a path below a registered list or map."""
    place = registration.schema.position(name)
    if place is None:
        wider = extended(registration, name)
        if wider is None:
            return None
        registration, place = wider, wider.schema.position(name)
    return None if place is None else registration.schema.columns[place]


def _declared_column(declared: ColumnPolicy, column: Column, faults: list[UsageError]) -> DeclaredColumn:
    kind, path = column.type.kind, declared.path
    if declared.bounds is not None and not kind.is_number:
        faults.append(UsageError(f"{path}.lower", f"and upper are numbers, but the column is {kind}"))
    if declared.dates is not None and not kind.is_temporal:
        faults.append(UsageError(f"{path}.lower", f"and upper are dates, but the column is {kind}"))
    keys = None
    if declared.public_values is not None:
        where = f"{path}.public_values"
        if kind in (Kind.FLOAT, Kind.OTHER):
            hint = "declare another type" if kind is Kind.FLOAT else ""
            faults.append(UsageError(where, f"cannot be grouped by: the column is {kind}", hint=hint))
        else:
            try:
                keys = cast_keys(declared.public_values, column.type, column.name)
            except UsageError as fault:
                faults.append(UsageError(where, fault.rule, fault.value, fault.hint))
    return DeclaredColumn(path, declared.bounds, keys, declared.dates, declared.forbidden)
