"""From TOML text to a `Policy`, or to all its faults at once."""

from __future__ import annotations

import datetime
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any

from discreet.bounds import checked_bounds
from discreet.errors import PolicyError, SourceError, UsageError
from discreet.exact import decimal_text, parse_delta, parse_epsilon, parse_rational
from discreet.keys import split_line
from discreet.ledger.places import no_place
from discreet.ledger.postgres_address import holds_password, is_address
from discreet.ledger.records import Method, Window
from discreet.policy.declared import BudgetPolicy, ColumnPolicy, DatasetPolicy, Policy, near
from discreet.policy.tables import Faults, Table, flag, number, text, texts, whole
from discreet.privacy import PrivacyLoss
from discreet.query import Bounds
from discreet.schema import parse_type
from discreet.sources.options import Reading, read_options

__all__ = ["load_policy", "parse_policy"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_RESERVED = ("raise",)  # `discreet budget raise` would be two things


def load_policy(path: Path | str) -> Policy:
    """The policy in a file.

    Raises:
        PolicyError: with every fault of the file.
        UsageError: there is no such file, or it cannot be read.
    """
    place = Path(path).expanduser()
    try:
        if place.exists() and not place.is_file():  # a pipe would be waited for, a device has no end
            raise UsageError("policy", "is not a regular file", str(path))
        content = place.read_bytes()
    except FileNotFoundError:
        raise UsageError("policy", "there is no such file", str(path), "write one with discreet init SOURCE") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "not a path").lower()
        raise UsageError("policy", f"cannot be read ({reason})", str(path)) from None
    try:
        written = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise PolicyError(place.name, (UsageError(f"line {line}", "is not UTF-8 text"),)) from None
    return parse_policy(written, place)


def parse_policy(written: str, path: Path) -> Policy:
    """The policy that a TOML text declares.

    Args:
        written: the text.
        path: of its file: relative paths in it start from that folder.

    Raises:
        PolicyError: with every fault of the text.
    """
    try:
        document = tomllib.loads(written.replace("\r\n", "\n"), parse_float=_decimal)
    except tomllib.TOMLDecodeError as error:
        raise PolicyError(path.name, (UsageError("TOML", str(error)[:1].lower() + str(error)[1:]),)) from None
    except (ValueError, RecursionError):  # a number of thousands of digits; thousands of brackets
        fault = UsageError("TOML", "holds a number that is too long, or is nested too deeply")
        raise PolicyError(path.name, (fault,)) from None
    faults = Faults()
    policy = _policy(Table("", document, faults), Path(os.path.abspath(path)))  # noqa: PTH100 - keeps links
    if faults.found:
        raise PolicyError(path.name, tuple(faults.found))
    return policy


def _decimal(written: str) -> object:
    try:
        return Decimal(written)
    except InvalidOperation:  # an exponent beyond all bounds
        return written


def _policy(table: Table, path: Path) -> Policy:
    ledger = table.take("ledger", lambda at, value: _ledger(at, path.parent, text(at, value)))
    budgets = {}
    for name, below in table.tables("budgets"):
        _check_name(below.path, name, table.faults)
        budgets[name] = _budget(below, name)
    table.require("datasets", "it says what may be asked about", "write [datasets.NAME] and its keys below")
    datasets: dict[str, DatasetPolicy] = {}
    for name, below in table.tables("datasets"):
        _check_name(below.path, name, table.faults)
        if name in budgets:
            table.faults.note(below.path, f"is called as budgets.{name} is: commands could not tell them apart")
        datasets[name] = _dataset(below, name, path.parent, budgets)
    if "datasets" in table and not datasets:
        table.faults.note("datasets", "names none", hint="write [datasets.NAME] and its keys below")
    table.finish()
    _check_sources(datasets, table.faults)
    _check_shared(datasets, table.faults)
    return Policy(path, ledger, datasets, budgets)


def _check_name(path: str, name: str, faults: Faults) -> None:
    if not _NAME.fullmatch(name) or name in _RESERVED:
        faults.note(path, "must be called by letters, digits and _, so that FROM can name it", name)


def _place(folder: Path, written: str) -> str:
    """A path of the policy, from its folder; an address of a server as it is."""
    # os.path.expanduser leaves "~nobody" as it is, where pathlib's raises.
    return written if "://" in written else str(folder / os.path.expanduser(written))  # noqa: PTH111


def _ledger(at: str, folder: Path, written: str) -> str:
    """The ledger's place; an address without a password, since more people read a policy than may know one."""
    if "://" in written and not is_address(written):
        raise no_place(at, written)
    if is_address(written) and holds_password(written):
        raise UsageError(at, "must not hold a password", hint="keep it in a password file (PGPASSFILE)")
    return _place(folder, written)


# --- budgets -----------------------------------------------------------------------------------------------


def _budget(table: Table, name: str) -> BudgetPolicy:
    table.require("epsilon", "it is the total that all queries together may cost", "3 is a usual start")
    epsilon = table.take("epsilon", _epsilon)
    delta = table.take("delta", lambda at, value: parse_delta(number(at, value), name=at)) or Fraction(0)

    def within(at: str, value: object) -> Fraction:
        cap = _epsilon(at, value)
        if epsilon is not None and cap > epsilon:
            raise UsageError(at, f"must not be above {table.at('epsilon')}", str(value), "it would limit nothing")
        return cap

    query = table.take("max_epsilon_per_query", within)
    usual = table.take("default_epsilon", within)
    if usual is not None and query is not None and usual > query:
        rule = f"must not be above {table.at('max_epsilon_per_query')}"
        table.faults.note(table.at("default_epsilon"), rule, decimal_text(usual))
    usual_delta = table.take("default_delta", lambda at, value: _default_delta(at, value, delta, table.at("delta")))
    analyst = table.take("max_epsilon_per_analyst", within)
    analysts = {}
    listed = table.raw("analysts")
    if listed is not None:
        below = Table(table.at("analysts"), listed, table.faults)
        for who in below.names():
            cap = below.take(who, within)
            if cap is not None:
                analysts[who] = cap
    window = table.take("budget_window", _window) or Window.NEVER
    method = table.take("accounting", _method) or Method.BASIC
    selections = table.take("delta_for_groups", lambda at, value: parse_delta(number(at, value), name=at))
    each = table.take("epsilon_per_query", within)
    _check_accounting(table, method, delta, selections, each)
    _check_each(table, each, query, usual)
    if method is not Method.BASIC and usual_delta is not None and usual_delta > (selections or 0):
        rule = f"must not be above {table.at('delta_for_groups')}, the part of delta for groups"
        table.faults.note(table.at("default_delta"), rule, decimal_text(usual_delta, digits=30))
    # The name of one unit matters between data sets: one of its own has nobody to agree with.
    unit = table.take("unit", text) if name else None
    table.finish()
    return BudgetPolicy(
        table.path,
        name,
        PrivacyLoss(epsilon or Fraction(1), delta),
        window,
        unit or "",
        usual,
        usual_delta,
        query,
        analyst,
        analysts,
        method,
        selections or Fraction(0),
        each,
    )


def _check_accounting(
    table: Table, method: Method, delta: Fraction, selections: Fraction | None, each: Fraction | None
) -> None:
    """What a tighter accounting rests on."""
    if method is Method.BASIC:
        for key, value in (("delta_for_groups", selections), ("epsilon_per_query", each)):
            if value is not None:
                kinds = "renyi or pld" if key == "delta_for_groups" else "pld"
                rule = f"means something with accounting = {kinds} only"
                table.faults.note(table.at(key), rule, decimal_text(value, digits=30))
        return
    if delta == 0:
        rule = "needs a delta: the chance that its promise fails"
        table.faults.note(table.at("accounting"), rule, str(method), f"write {table.at('delta')} = 1e-6")
    elif selections is not None and selections >= delta:
        rule = f"must be below {table.at('delta')}: what is left of it is the accounting's"
        table.faults.note(table.at("delta_for_groups"), rule, decimal_text(selections, digits=30))
    if method is Method.PLD and "epsilon_per_query" not in table:
        table.require("epsilon_per_query", "accounting = pld rests on one epsilon for all queries", "0.1, for example")
    if method is Method.RENYI and each is not None:
        rule = "means something with accounting = pld only: renyi holds for every choice of epsilons"
        table.faults.note(table.at("epsilon_per_query"), rule, decimal_text(each), "max_epsilon_per_query limits them")


def _check_each(table: Table, each: Fraction | None, most: Fraction | None, usual: Fraction | None) -> None:
    """Where every query costs the same, nothing else may be said of what one costs."""
    if each is None:
        return
    for key, value, clash in (
        ("max_epsilon_per_query", most, most is not None and most < each),
        ("default_epsilon", usual, usual not in (None, each)),
    ):
        if clash and value is not None:
            rule = f"contradicts {table.at('epsilon_per_query')}, which is {decimal_text(each)}"
            table.faults.note(table.at(key), rule, decimal_text(value), "leave it out")


def _method(at: str, value: object) -> Method:
    if not isinstance(value, str) or value not in tuple(Method):
        hint = near(value, [str(one) for one in Method]) if isinstance(value, str) else ""
        raise UsageError(at, f"must be one of {', '.join(Method)}", str(value), hint)
    return Method(value)


def _default_delta(at: str, value: object, total: Fraction, path: str) -> Fraction:
    found = parse_delta(number(at, value), name=at)
    if found > total:
        raise UsageError(at, f"must not be above {path}", str(value))
    return found


def _epsilon(at: str, value: object) -> Fraction:
    return parse_epsilon(number(at, value), name=at)


def _window(at: str, value: object) -> Window:
    if not isinstance(value, str) or value not in tuple(Window):
        hint = near(value, [str(one) for one in Window]) if isinstance(value, str) else ""
        raise UsageError(at, f"must be one of {', '.join(Window)}", str(value), hint)
    return Window(value)


def _budget_of(table: Table, budgets: Mapping[str, BudgetPolicy]) -> BudgetPolicy | None:
    """A data set's own budget, a table, or the name of a shared one."""
    hint = f"write [{table.at('budget')}] with epsilon = 3 below, or the name of one of [budgets.NAME]"
    table.require("budget", "nothing is answered without one", hint)
    value = table.raw("budget")
    if value is None:
        return None
    if isinstance(value, dict):
        return _budget(Table(table.at("budget"), value, table.faults), "")
    if not isinstance(value, str):
        table.faults.note(table.at("budget"), "must be a table, or the name of a shared budget", value, hint)
    elif value not in budgets:
        known = ", ".join(budgets) or "none"
        rule = f"must name one of the shared budgets; there are: {known}"
        table.faults.note(table.at("budget"), rule, value, near(value, budgets) or hint)
    else:
        return budgets[value]
    return None


# --- data sets ---------------------------------------------------------------------------------------------

_MISSING = BudgetPolicy("", "", PrivacyLoss(Fraction(1)))  # stands where a fault was noted; such a policy is refused


def _dataset(table: Table, name: str, folder: Path, budgets: Mapping[str, BudgetPolicy]) -> DatasetPolicy:
    table.require("source", "it names the file or table", 'source = "log.csv"')
    source = table.take("source", lambda at, value: _place(folder, text(at, value)))
    reading = _reading(table)
    unit, row_level = table.take("privacy_unit", _unit), table.take("row_level", flag) or False
    rows = table.take("max_contributions", whole)
    groups = table.take("max_groups_contributed", whole)
    _check_unit(table, unit, rows, groups, row_level=row_level)
    unknown_groups = table.take("unknown_groups", flag) or False
    budget = _budget_of(table, budgets)
    if unknown_groups and budget is not None and budget.total.delta == 0:
        rule = "needs a delta: a group that only one person has could be shown with that probability"
        table.faults.note(table.at("unknown_groups"), rule, True, f"{budget.path}.delta = 1e-6")
    elif (
        unknown_groups and budget is not None and budget.accounting is not Method.BASIC and not budget.delta_for_groups
    ):
        rule = f"needs a part of the delta, as accounting = {budget.accounting!s} takes what is left of it"
        table.faults.note(table.at("unknown_groups"), rule, True, f"{budget.path}.delta_for_groups = 5e-7, say")
    columns = {column: _column(below, folder) for column, below in table.tables("columns")}
    invariants = table.take("invariants", texts) or ()
    table.finish()
    return DatasetPolicy(
        path=table.path,
        name=name,
        source=source or "",
        budget=budget or _MISSING,
        reading=reading,
        privacy_unit=unit or (),
        max_contributions=rows,
        max_groups_contributed=groups,
        unknown_groups=unknown_groups,
        columns=columns,
        invariants=invariants,
    )


def _unit(at: str, value: object) -> tuple[str, ...]:
    found = (value,) if isinstance(value, str) else texts(at, value)
    for one in found:
        text(at, one)
    if not found:
        raise UsageError(at, "must name at least one column", hint='privacy_unit = "actor", or row_level = true')
    return found


def _check_unit(
    table: Table, unit: tuple[str, ...] | None, rows: int | None, groups: int | None, *, row_level: bool
) -> None:
    if row_level and unit:
        table.faults.note(table.at("row_level"), "and privacy_unit exclude each other", True, "leave one of them out")
    elif row_level:
        for key, value in (("max_contributions", rows), ("max_groups_contributed", groups)):
            if value not in (None, 1):
                table.faults.note(table.at(key), "is always 1 at row level: each row is its own unit", value)
    elif "privacy_unit" not in table:
        hint = 'privacy_unit = "actor", or row_level = true if each row is one person'
        table.faults.note(table.at("privacy_unit"), "is missing: it says whose row it is", hint=hint)
    else:
        why = "it says how many rows one privacy unit may weigh, over all groups"
        table.require("max_contributions", why, "what most stay under, from what you know, not from the data")


def _reading(table: Table) -> dict[str, Any]:
    """How the source is read: every option that `discreet.open` takes for it."""
    found: dict[str, Any] = {}
    for name, kind in Reading.__annotations__.items():
        value = table.take(name, _READ[_plain_kind(str(getattr(kind, "__forward_arg__", kind)))])
        if value is None:
            continue
        if name == "format":
            found[name] = value
            continue
        with table.faults.noting():
            try:
                read_options(**{name: value})
            except UsageError as fault:
                raise UsageError(table.at(name), fault.rule, fault.value, fault.hint) from None
            found[name] = value
    options = {name: value for name, value in found.items() if name != "format"}
    try:
        read_options(**options)
    except UsageError as fault:  # two that do not go together
        table.faults.note(table.at(fault.thing), fault.rule, fault.value, fault.hint)
    return found


def _plain_kind(annotation: str) -> str:
    for kind in ("bool", "int", "Sequence", "str"):
        if kind in annotation:
            return kind
    raise AssertionError(annotation)


def _any_text(at: str, value: object) -> str:
    """A text, blank or empty ones too: a delimiter may be a blank, a quote none."""
    if not isinstance(value, str):
        return text(at, value)
    return value


_READ: dict[str, Callable[[str, Any], Any]] = {
    "bool": flag,
    "int": whole,
    "Sequence": texts,
    "str": _any_text,
}


# --- columns -----------------------------------------------------------------------------------------------


def _column(table: Table, folder: Path) -> ColumnPolicy:
    kind = table.take("type", _type)
    lower, upper = table.take("lower", _bound), table.take("upper", _bound)
    bounds: Bounds | None = None
    dates: tuple[Any, Any] | None = None
    if ("lower" in table) != ("upper" in table):
        missing = "upper" if "lower" in table else "lower"
        table.require(missing, "bounds are two", f"{missing} = 100: what you know, not what the data show")
    elif lower is not None and upper is not None:
        with table.faults.noting():
            if isinstance(lower, Fraction) and isinstance(upper, Fraction):
                bounds = checked_bounds(lower, upper, f"{table.at('lower')} and upper")
            elif isinstance(lower, datetime.date) and isinstance(upper, datetime.date):
                dates = _dates(lower, upper, table.at("lower"))
            else:
                raise UsageError(table.at("lower"), "and upper must both be numbers, or both dates")
    forbidden = table.take("forbidden", flag) or False
    values = table.take("public_values", _values)
    place = table.take("public_values_file", lambda at, value: Path(_place(folder, text(at, value))))
    listed = None if place is None else table.take("public_values_file", lambda at, _: _values_file(at, place))
    if "public_values" in table and "public_values_file" in table:
        table.faults.note(table.at("public_values_file"), "and public_values exclude each other")
    if forbidden and len(table.names()) > 1 + ("type" in table):
        rule = "and what else is said of the column exclude each other: nobody could use it"
        table.faults.note(table.at("forbidden"), rule, True, "leave one of them out")
    table.finish()
    return ColumnPolicy(table.path, kind, bounds, dates, values or listed, forbidden, place)


def _type(at: str, value: object) -> str:
    written = text(at, value)
    parse_type(written, thing=at)
    return written


def _bound(at: str, value: object) -> Fraction | datetime.date:
    if isinstance(value, datetime.date):
        return value
    if isinstance(value, str):
        raise UsageError(at, "must be a number or a date, without quotes", value)
    return parse_rational(at, number(at, value))


def _dates(lower: datetime.date, upper: datetime.date, at: str) -> tuple[datetime.date, datetime.date]:
    first, last = (day.date() if isinstance(day, datetime.datetime) else day for day in (lower, upper))
    if isinstance(lower, datetime.datetime) or isinstance(upper, datetime.datetime):
        raise UsageError(at, "and upper must be days, without a time", str(lower), f"for example {first}")
    if first > last:
        raise UsageError(at, "the first day must not be after the last", f"{first} and {last}")
    return first, last


def _values(at: str, value: object) -> tuple[object, ...]:
    """A list, or one line as `--keys` takes it, which may hold ranges and a bare NULL."""
    if isinstance(value, str):
        return split_line(value, at)
    if not isinstance(value, list) or not value:
        hint = 'public_values = ["A", "B"], or a text as --keys takes it: "A,B,NULL", "2024-01-01..2024-12-31 by day"'
        raise UsageError(at, "must be a list of values, or a text that lists them", None, hint)
    for one in value:
        if not isinstance(one, bool | int | str | Decimal | datetime.date):
            raise UsageError(at, "must be texts, whole numbers, decimals, dates, times, true or false", str(one))
        if isinstance(one, Decimal) and not one.is_finite():
            raise UsageError(at, "must be finite numbers", str(one))
    return tuple(value)


def _values_file(at: str, file: Path) -> tuple[object, ...]:
    """The only column of a CSV or Parquet file; of any other file, one key a line."""
    from discreet.key_files import read_keys_list, read_keys_table

    try:
        if file.suffix.lower() not in (".csv", ".parquet", ".pq"):
            return read_keys_list(file, at)
        names, rows = read_keys_table(file, at)
    except SourceError as error:
        raise UsageError(at, error.rule, error.value, error.hint) from None
    if len(names) != 1:
        raise UsageError(at, "must have one column", f"{file.name} has {len(names)}", "combinations: --keys-file")
    return tuple(row[0] for row in rows)


# --- what must hold between data sets ------------------------------------------------------------------------


def _check_sources(datasets: Mapping[str, DatasetPolicy], faults: Faults) -> None:
    seen: dict[tuple[str, object], str] = {}
    for dataset in datasets.values():
        first = seen.setdefault((dataset.source, dataset.reading.get("table")), dataset.path)
        if first != dataset.path and dataset.source:
            faults.note(f"{dataset.path}.source", f"is that of {first} too; one source has one policy", dataset.source)


def _check_shared(datasets: Mapping[str, DatasetPolicy], faults: Faults) -> None:
    """Losses add up only if they are about the same persons."""
    first: dict[str, DatasetPolicy] = {}
    for dataset in datasets.values():
        budget = dataset.budget
        if not budget.name or budget.unit:
            continue
        other = first.setdefault(budget.name, dataset)
        if _folded(other.privacy_unit) != _folded(dataset.privacy_unit):
            units = [", ".join(one.privacy_unit) or "one row" for one in (other, dataset)]
            faults.note(
                f"{dataset.path}.privacy_unit",
                f"differs from {other.path}.privacy_unit, {units[0]!r}, and both share {budget.path}",
                units[1],
                f'if both mean the same persons, name them: {budget.path}.unit = "person"',
            )


def _folded(unit: tuple[str, ...]) -> list[str]:
    return [part.strip().casefold() for one in unit for part in one.split(",")]
