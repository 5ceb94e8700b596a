"""Joins with public tables: the joined schema, and what the query's names mean in it.

A row of the private table meets at most one row of a public table whose key is unique, so a joined row is a function
of the private row: the privacy unit, the weights and every sensitivity are what they were.
"""

from __future__ import annotations

from collections.abc import Mapping

from discreet.binding import bind
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression, Field, Operation
from discreet.plan import PlannedJoin, PublicTable
from discreet.query import Apply, Join, Name, Node, Query, public_name, replace_all_names, replace_names
from discreet.schema import Column, Kind, Schema

__all__ = ["plan_joins"]


def plan_joins(
    query: Query, public: Mapping[str, PublicTable], schema: Schema, aliases: tuple[str, ...]
) -> tuple[Query, Schema, tuple[PlannedJoin, ...]]:
    """The query in the names of the joined schema, that schema, and the joins.

    Raises:
        RefusedError: a table that is not public; a key of another type or of floats.
        UsageError: a name that means nothing, or two things.
    """
    joins: list[PlannedJoin] = []
    wider = schema
    for join in query.joins:
        _check_alias(join, query.joins, schema, aliases)
        table = _table(join, public, aliases)
        columns = table.registration.schema.columns
        first = len(wider.columns)
        names, joined = _Names(schema, wider, query.joins, aliases), wider
        added = [Column(str(public_name(join.alias, column.name)), column.type) for column in columns]
        wider = Schema((*wider.columns, *added))
        on = tuple(
            _key(names.of_expression(node), name, join, table, (joined, wider), aliases, first)
            for node, name in join.on
        )
        joins.append(PlannedJoin(table, join.left, on, first))
    if not joins:
        return query, schema, ()
    names = _Names(schema, wider, query.joins, aliases)
    return replace_all_names(query, names.of_column), wider, tuple(joins)


def _table(join: Join, public: Mapping[str, PublicTable], aliases: tuple[str, ...]) -> PublicTable:
    if join.table.casefold() in [name.casefold() for name in aliases]:
        rule = "joins the private table with itself: one person's rows would meet other people's"
        raise RefusedError("JOIN", rule, join.table, "ask about the rows as they are, with GROUP BY")
    folded = {name.casefold(): table for name, table in public.items()}
    table = folded.get(join.table.casefold())
    if table is None:
        known = f"; the public tables are {', '.join(public)}" if public else ""
        raise RefusedError(
            f"JOIN with {join.table!r}",
            "is answered for public tables only: a row of another private table can multiply one person's rows, or "
            f"show them to others{known}",
            hint=f"if everybody may know what is in it, and its key is unique: --public {join.table}=FILE",
        )
    return table


def _key(
    ours: Node,
    name: str,
    join: Join,
    table: PublicTable,
    schemas: tuple[Schema, Schema],
    aliases: tuple[str, ...],
    first: int,
) -> tuple[Expression, int]:
    """One equality; `schemas` are those before and after the join."""
    thing = f"JOIN with {join.table!r}, key {name!r}"
    place = table.registration.schema.position(name)
    if place is None:
        known = ", ".join(table.registration.schema.names()[:12])
        raise UsageError(thing, "is not a column of the public table", name, f"its columns are {known}")
    bind(ours, schemas[0], aliases)
    theirs = public_name(join.alias, table.registration.schema.columns[place].name)
    condition = bind(Apply("eq", (ours, theirs)), schemas[1], aliases)
    if not isinstance(condition, Operation) or not isinstance(condition.operands[1], Field):
        kind = table.registration.schema.columns[place].type.kind
        raise UsageError(thing, f"is {kind}, and what it is compared with is not", hint="CAST the private side")
    if condition.operands[1].type.kind is Kind.FLOAT:
        raise UsageError(thing, "cannot be a floating-point column", hint="join on a whole number, a text or a date")
    return condition.operands[0], first + place


class _Names:
    """What a column's name means: of the private table, or of one of the public tables."""

    def __init__(self, private: Schema, joined: Schema, joins: tuple[Join, ...], aliases: tuple[str, ...]) -> None:
        self._private, self._joined, self._aliases = private, joined, aliases
        self._using = {name.casefold() for join in joins for node, name in join.on if node == Name((name,))}
        self._joins = {join.alias for join in joins}
        self._public: dict[str, list[str]] = {}
        for column in joined.columns[len(private.columns) :]:
            alias = next(join.alias for join in joins if column.name.startswith(f"{join.alias}."))
            plain = column.name.removeprefix(f"{alias}.")
            self._public.setdefault(plain.casefold(), []).append(column.name)

    def of_expression(self, node: Node) -> Node:
        return replace_names(node, self.of_column)

    def of_column(self, name: Name) -> Node:
        text = str(name)
        if len(name.parts) > 1 and name.parts[0] in self._joins:
            place = self._joined.position(text)
            if place is None:
                rule = f"is not a column of the public table {name.parts[0]}"
                raise UsageError("column", rule, ".".join(name.parts[1:]))
            return Name((self._joined.columns[place].name,))
        plain = text.removeprefix(f"{name.parts[0]}.") if name.parts[0] in self._aliases else text
        private = self._private.position(text) is not None or self._private.position(plain) is not None
        found = self._public.get(text.casefold(), [])
        if not found or (private and text.casefold() in self._using):
            return name
        if private or len(found) > 1:
            choices = [*found, *([f"data.{text}"] if private else [])]
            raise UsageError("column", "is a column of several tables", text, f"write {' or '.join(choices)}")
        return Name((found[0],))


def _check_alias(join: Join, joins: tuple[Join, ...], schema: Schema, aliases: tuple[str, ...]) -> None:
    """A public table's name must not be mistaken for a column, or for another table."""
    alias = join.alias.casefold()
    columns = [column.name.casefold() for column in schema.columns]
    others = [other.alias.casefold() for other in joins if other is not join]
    if (
        alias in [*others, *(name.casefold() for name in aliases)]
        or any(column == alias or column.startswith(f"{alias}.") for column in columns)
        or any(other.startswith(f"{alias}.") for other in others)
    ):
        rule = "takes the name of a column, or of another table"
        raise UsageError("JOIN", rule, join.alias, f"write JOIN {join.table} AS another_name")
