"""The time zone of a query: in which calendar its moments are read.

A TIMESTAMPTZ is a moment; its date, its hour and its month depend on where the clock hangs. They are read in the
query's zone, which is UTC unless it says otherwise, whatever the machine's is. In another zone, a moment stands as the
local time there wherever a calendar is asked for: ``DATE(time)`` means ``DATE(time AT TIME ZONE zone)``, and DATE_TRUNC
gives a local time. A bare date or time beside a moment is one of that zone. The privacy unit is not touched: a day in
it is the owner's.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from discreet.binding import bind
from discreet.binding_time import is_zone
from discreet.errors import UsageError
from discreet.query import Aggregate, Apply, Constant, Node, Query, aggregates_in
from discreet.schema import Kind, Schema

__all__ = ["UTC", "check_zone", "has_zone", "localized"]

UTC = "UTC"

_OF_ONE_MOMENT = frozenset(("date", "datetime", "date_trunc", "last_day"))
_OF_TWO_MOMENTS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "in", "is_distinct", "date_diff"))
_CALENDAR_TYPES = ("DATE", "TIMESTAMP", "TEXT", "VARCHAR", "STRING", "DATETIME")


def check_zone(zone: object) -> str:
    """A zone's name, such as 'Europe/Berlin', or an offset, such as '+08:00'.

    Raises:
        UsageError: it is none.
    """
    if not isinstance(zone, str) or not is_zone(zone):
        hint = "write a name such as 'Europe/Berlin' or 'UTC', or an offset such as '+08:00'"
        raise UsageError("timezone", "is not a known time zone", zone, hint)
    return zone


def localized(query: Query, zone: str, schema: Schema, aliases: Sequence[str]) -> Query:
    """The query with its moments read in the zone. For UTC the query itself.

    Raises:
        UsageError: as `bind`.
    """
    if zone == UTC:
        return query
    local = _Local(zone, schema, tuple(aliases))
    return replace(
        query,
        outputs=tuple(replace(output, node=local.read(output.node)) for output in query.outputs),
        where=None if query.where is None else local.read(query.where),
        groups=tuple(replace(group, node=local.read(group.node)) for group in query.groups),
        having=None if query.having is None else local.read(query.having),
        order=tuple(replace(key, node=local.read(key.node)) for key in query.order),
        derived=tuple((name, local.read(node)) for name, node in query.derived),
    )


def has_zone(text: str) -> bool:
    """Whether a time in text says its zone. (What is no time says none.)"""
    try:
        return datetime.datetime.fromisoformat(text.strip()).tzinfo is not None
    except ValueError:
        return False


class _Local:
    def __init__(self, zone: str, schema: Schema, aliases: tuple[str, ...]) -> None:
        self._zone, self._schema, self._aliases = Constant(zone), schema, aliases

    def read(self, node: Node) -> Node:
        if isinstance(node, Aggregate) and node.argument is not None:
            return replace(node, argument=self.read(node.argument))
        if not isinstance(node, Apply):
            return node
        name, arguments = node.function, [self.read(argument) for argument in node.arguments]
        if name in _OF_TWO_MOMENTS and any(self._is_moment(argument) for argument in arguments):
            arguments = [self._bare_constant(argument) for argument in arguments]
        elif (
            (name in _OF_ONE_MOMENT and not (name in ("date", "datetime") and len(arguments) > 1))
            or name.startswith("extract_")
            or (name == "cast" and isinstance(arguments[1], Constant) and _is_calendar(arguments[1].value))
        ):
            arguments = [self._clock(arguments[0]), *arguments[1:]]
        return Apply(name, tuple(arguments))

    def _is_moment(self, node: Node) -> bool:
        if isinstance(node, Constant) or any(aggregates_in(node)):
            return False
        return bind(node, self._schema, self._aliases).type.kind is Kind.TIMESTAMPTZ

    def _clock(self, node: Node) -> Node:
        """A moment as the zone's clocks show it; everything else as it is."""
        return Apply("at_time_zone", (node, self._zone)) if self._is_moment(node) else node

    def _bare_constant(self, node: Node) -> Node:
        """A written date or time without a zone as a moment of this one."""
        if not isinstance(node, Constant):
            return node
        value = node.value
        if isinstance(value, str) and not has_zone(value):
            try:
                value = datetime.datetime.fromisoformat(value.strip())
            except ValueError:
                return node  # refused later, by name
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if isinstance(value, datetime.datetime) and value.tzinfo is None:
            return Apply("at_time_zone", (Constant(value), self._zone))
        return node


def _is_calendar(target: object) -> bool:
    return isinstance(target, str) and target.upper().startswith(_CALENDAR_TYPES) and target != "TIMESTAMPTZ"
