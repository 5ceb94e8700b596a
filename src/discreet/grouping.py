"""The groups of a query: its grouping expressions, and where their keys come from."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from discreet.binding import bind_groupable
from discreet.domains import public_domain
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Field
from discreet.keys import MOST_KEYS, cast_keys, cast_rows
from discreet.plan import KeyColumn, KeyList, Request
from discreet.query import Query, Scalar
from discreet.schema import Kind, Schema
from discreet.timezones import UTC, has_zone

__all__ = ["Groups", "plan_groups"]


@dataclass(frozen=True)
class Groups:
    """The groups of a query.

    Attributes:
        columns: the grouping columns.
        lists: their public keys.
        chosen: whether the groups are chosen from the data, among those that the lists allow.
    """

    columns: tuple[KeyColumn, ...]
    lists: tuple[KeyList, ...]
    chosen: bool

    @property
    def number(self) -> int | None:
        """How many groups there are; None where that is not known before they are chosen."""
        return None if self.chosen else prod(len(keys.rows) for keys in self.lists)


def plan_groups(query: Query, request: Request, schema: Schema, aliases: Sequence[str]) -> Groups:
    """The grouping columns, the lists of their public keys in the order of the columns, and whether the groups are
    to be chosen from the data.

    A list may be of one column's keys or of combinations; what is listed apart is multiplied. Where none is given,
    the owner's counts. An expression that can only have a few values, which everybody knows, needs no list. Where
    groups are chosen, lists restrict them.

    Raises:
        UsageError: keys that are not valid, or that name no grouping column.
        RefusedError: a grouping column without public keys, and no delta to choose groups with.
    """
    columns: list[KeyColumn] = []
    for group in query.groups:
        expression = bind_groupable(group.node, schema, f"GROUP BY {group.name}", aliases)
        request.owner.check_allowed(expression)
        columns.append(KeyColumn(group.name, expression))
    lists: dict[int, KeyList] = {}
    for names, values in request.keys.items():
        listed = (names,) if isinstance(names, str) else tuple(names)
        places = tuple(_place(name, columns, schema) for name in listed)
        taken = [place for found in lists.values() for place in found.columns]
        for i, place in enumerate(places):
            if place in taken or place in places[:i]:
                raise UsageError(f"keys of {columns[place].name!r}", "are given twice")
        types = [columns[place].expression.type for place in places]
        _check_zones(values, [columns[place] for place in places], request.timezone)
        rows: tuple[tuple[Scalar, ...], ...]
        if isinstance(names, str):
            rows = tuple((value,) for value in cast_keys(values, types[0], columns[places[0]].name))
        else:
            rows = cast_rows(values, types, [columns[place].name for place in places])
        for i, place in enumerate(places):
            request.owner.check_keys(columns[place].expression, (row[i] for row in rows))
        lists[min(places)] = KeyList(places, rows)
    known = {place for found in lists.values() for place in found.columns}
    for place, column in enumerate(columns):
        own = None if place in known else request.owner.keys(column.expression)
        if own is not None:
            lists[place] = KeyList((place,), tuple((key,) for key in own))
            known.add(place)
    domains = {place: public_domain(column.expression) for place, column in enumerate(columns) if place not in known}
    chosen = _are_chosen(columns, domains, request)
    for place, domain in domains.items():
        if domain is not None and not chosen:
            lists[place] = KeyList((place,), tuple((value,) for value in domain))
    ordered = tuple(lists[place] for place in sorted(lists))
    groups = prod(len(keys.rows) for keys in ordered)
    if groups > MOST_KEYS:
        raise UsageError("keys", f"of all grouping columns must multiply to at most {MOST_KEYS} groups", groups)
    return Groups(tuple(columns), ordered, chosen)


def _check_zones(values: object, columns: Sequence[KeyColumn], zone: str) -> None:
    """In another zone than UTC, a moment among the keys must say its own: a bare one would be read in UTC.

    Raises:
        UsageError: one does not.
    """
    if zone == UTC or not isinstance(values, Iterable):
        return
    values = list(values)
    for i, column in enumerate(columns):
        if column.expression.type.kind is not Kind.TIMESTAMPTZ:
            continue
        for row in values:
            value = row[i] if len(columns) > 1 and isinstance(row, Sequence) and i < len(row) else row
            texts = value.split(" by ")[0].split("..") if isinstance(value, str) else []
            bare = isinstance(value, datetime.date) and getattr(value, "tzinfo", None) is None
            if bare or any(not has_zone(text) for text in texts):
                hint = "write it as 2024-12-31T23:59:59+09:00, or group by DATE_TRUNC"
                raise UsageError(f"keys of {column.name!r}", "must say their time zone", str(value), hint)


def _are_chosen(
    columns: Sequence[KeyColumn], domains: Mapping[int, tuple[Scalar, ...] | None], request: Request
) -> bool:
    """Whether the groups are chosen from the data; `domains` are those of the columns without a list."""
    strategy, minimum = request.group_selection_strategy, request.min_privacy_units_per_group
    unknown = [columns[place] for place, domain in domains.items() if domain is None]
    if strategy == "LAPLACE_THRESHOLD" and not domains:
        rule = "chooses groups from the data, but here all keys are public" if columns else "needs a GROUP BY"
        raise UsageError("group_selection_strategy LAPLACE_THRESHOLD", rule, hint="leave it out")
    chosen = bool(unknown) or strategy == "LAPLACE_THRESHOLD"
    if chosen and (strategy == "PUBLIC_GROUPS" or request.delta == 0):
        raise _unknown_keys((unknown or list(columns))[0], request)
    if chosen:
        request.owner.check_chosen((unknown or list(columns))[0].name)
    if minimum is not None and not chosen:
        rule = "is for groups chosen from the data; here all groups are public, and each is shown"
        raise UsageError("min_privacy_units_per_group", rule, minimum, "leave it out")
    return chosen


def _place(name: str, columns: Sequence[KeyColumn], schema: Schema) -> int:
    """The grouping column of that name: by its alias, else by the column it is."""
    for place, column in enumerate(columns):
        if column.name == name:
            return place
    position = schema.position(name)
    for place, column in enumerate(columns):
        if isinstance(column.expression, Field) and column.expression.position == position:
            return place
    grouped = ", ".join(column.name for column in columns) or "nothing"
    raise UsageError("keys", f"must name a grouping column; this query groups by {grouped}", name)


def _unknown_keys(column: KeyColumn, request: Request) -> RefusedError:
    third = "let groups with enough people be chosen from the data, for a small chance of failure: --delta 1e-6"
    if request.group_selection_strategy == "PUBLIC_GROUPS":
        third += " and group_selection_strategy LAPLACE_THRESHOLD, or none"
    return RefusedError(
        f"GROUP BY {column.name}",
        "has no public list of keys, and a key that only one person has would give that person away",
        hint=f"(1) list the keys: --keys {column.name}=A,B,C; (2) put them into a file: --keys-file FILE; (3) {third}",
    )
