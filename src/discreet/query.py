"""What an analyst asks, as a frozen value: the same whether it was written as SQL or in Python.

Names are still names here: nothing has been looked up in a schema, nothing has been read.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from typing import TypeAlias

from discreet.errors import UsageError

__all__ = [
    "Aggregate",
    "Apply",
    "Bounds",
    "Constant",
    "GroupKey",
    "Join",
    "Name",
    "Node",
    "Options",
    "OrderKey",
    "Output",
    "Query",
    "Scalar",
    "aggregates_in",
    "check_nodes",
    "checked",
    "names_in",
    "names_in_query",
    "public_name",
    "replace_all_names",
    "replace_names",
    "written_name",
]

Scalar: TypeAlias = None | bool | int | Decimal | str | datetime.date | datetime.datetime
"""A constant that may stand in a query or among the public keys. There are no floats: 0.1 is a Decimal."""


@dataclass(frozen=True)
class Name:
    """A column, by name or by path (`userIdentity.arn` is two parts)."""

    parts: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True)
class Constant:
    """A literal value."""

    value: Scalar


@dataclass(frozen=True)
class Apply:
    """A function or operator of the allow-list applied to row expressions ("eq", "and", "extract", ...)."""

    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True)
class Bounds:
    """Declared, public bounds of an aggregate's whole argument: lower <= upper, exact.

    Attributes:
        lower, upper: the ends.
        written: what they were written as: "number"; "date", in days since 1970-01-01; "time" (without a zone) or
            "instant" (with one), in microseconds since that midnight; "duration", in seconds.
    """

    lower: Fraction
    upper: Fraction
    written: str = "number"


@dataclass(frozen=True)
class Aggregate:
    """A statistic over the rows of a group.

    Attributes:
        function: "count", "count_if" (the argument is a condition), "count_distinct", "sum", "avg", "var_samp",
            "var_pop", "stddev_samp", "stddev_pop", or "quantile".
        argument: the row expression; None for COUNT(*).
        bounds: declared beside the aggregate, if they were.
        share: the weight of this aggregate when the query's epsilon is divided.
        point: of a quantile, p from 0 to 1.
        per_group: bounds of what one unit contributes to one group, in place of bounds of single values: for a sum, of
            the unit's sum there; for a count, of its number of rows.
    """

    function: str
    argument: Node | None = None
    bounds: Bounds | None = None
    share: Fraction = Fraction(1)
    point: Fraction | None = None
    per_group: Bounds | None = None


Node: TypeAlias = Name | Constant | Apply | Aggregate


@dataclass(frozen=True)
class Output:
    """One column of the answer."""

    name: str
    node: Node


@dataclass(frozen=True)
class GroupKey:
    """One grouping expression and what it is called."""

    name: str
    node: Node


@dataclass(frozen=True)
class OrderKey:
    """One term of ORDER BY: an output, a grouping expression, an aggregate, or arithmetic between them."""

    node: Node
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Options:
    """What the OPTIONS clause said, as it was written; None where it said nothing."""

    epsilon: str | None = None
    delta: str | None = None
    privacy_unit: str | None = None
    max_contributions: str | None = None
    max_groups_contributed: str | None = None
    min_privacy_units_per_group: str | None = None
    group_selection_strategy: str | None = None


@dataclass(frozen=True)
class Join:
    """A join with a public table: each row meets at most one of its rows.

    Attributes:
        table: the public table's name.
        alias: what stands before its columns.
        left: whether rows without a counterpart are kept.
        on: pairs of an expression over the rows and the column of the public table that it must equal.
    """

    table: str
    alias: str
    left: bool
    on: tuple[tuple[Node, str], ...]


def public_name(alias: str, column: str) -> Name:
    """A column of a joined public table. (A table may not be joined under a name that begins a registered column's.)"""
    return Name((alias, column))


@dataclass(frozen=True)
class Query:
    """A question over one private relation.

    Attributes:
        relation: the name in FROM.
        outputs: the columns of the answer, in order: group keys and aggregates.
        where: the filter, a boolean row expression.
        groups: the grouping expressions, in order.
        having: a condition on the *noisy* values of a group.
        order: by which noisy values and keys the groups are sorted; empty for the order of the keys as listed.
        limit, offset: how many of the sorted groups are kept, and how many are left out before them.
        joins: joins with public tables, in order.
        derived: columns of a derived table by their names there, for whoever declares bounds by them.
        options: what the query itself says of budget and limits.
        text: what the analyst wrote, for the ledger's history.
    """

    relation: str
    outputs: tuple[Output, ...]
    where: Node | None = None
    groups: tuple[GroupKey, ...] = ()
    having: Node | None = None
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int = 0
    joins: tuple[Join, ...] = ()
    derived: tuple[tuple[str, Node], ...] = ()
    options: Options = field(default_factory=Options)
    text: str = ""


MOST_NODES = 20_000
"""How many parts an expression may have, one that stands in it twice counted twice."""

DEEPEST_NODE = 60
"""How deep the parts of an expression may nest."""


def check_nodes(node: Node, thing: str = "query") -> None:
    """Refuse an expression that is too large to work with; in linear time, though parts may be shared.

    Raises:
        UsageError: it nests too deeply or has too many parts.
    """
    known: dict[int, tuple[int, int]] = {}

    def measure(part: Node, level: int) -> tuple[int, int]:
        """The number of parts and the depth."""
        if id(part) in known:
            return known[id(part)]
        inner: tuple[Node, ...] = ()
        if isinstance(part, Apply):
            inner = part.arguments
        elif isinstance(part, Aggregate) and part.argument is not None:
            inner = (part.argument,)
        if level > DEEPEST_NODE:
            raise UsageError(thing, f"must not nest more than {DEEPEST_NODE} functions and operators")
        measured = [measure(argument, level + 1) for argument in inner]
        size = 1 + sum(count for count, _ in measured)
        deep = 1 + max((depth for _, depth in measured), default=0)
        if size > MOST_NODES:
            raise UsageError(thing, f"must not have more than {MOST_NODES} parts in one expression")
        if deep > DEEPEST_NODE:
            raise UsageError(thing, f"must not nest more than {DEEPEST_NODE} functions and operators")
        known[id(part)] = (size, deep)
        return known[id(part)]

    measure(node, 1)


def checked(query: Query) -> Query:
    """The query itself, if no expression in it is too large.

    Raises:
        UsageError: one is.
    """
    for node in _nodes_of(query):
        check_nodes(node)
    return query


def _nodes_of(query: Query) -> list[Node]:
    nodes = [output.node for output in query.outputs] + [group.node for group in query.groups]
    nodes += [node for node in (query.where, query.having) if node is not None]
    nodes += [node for join in query.joins for node, _ in join.on]
    return nodes + [key.node for key in query.order]


def written_name(name: str) -> str:
    """The alias that an output was given: APPROX_QUANTILES(x, n) AS a has the columns a_q0, a_q1, ..."""
    return re.sub(r"_q\d+$", "", name)


def replace_names(node: Node, column: Callable[[Name], Node]) -> Node:
    """The expression with every column replaced."""
    match node:
        case Name():
            return column(node)
        case Apply(function, arguments):
            return Apply(function, tuple(replace_names(argument, column) for argument in arguments))
        case Aggregate(argument=argument) if argument is not None:
            return replace(node, argument=replace_names(argument, column))
    return node


def replace_all_names(query: Query, column: Callable[[Name], Node]) -> Query:
    """The query with every column replaced, but for those of its joins."""
    return replace(
        query,
        outputs=tuple(replace(output, node=replace_names(output.node, column)) for output in query.outputs),
        where=None if query.where is None else replace_names(query.where, column),
        groups=tuple(replace(group, node=replace_names(group.node, column)) for group in query.groups),
        having=None if query.having is None else replace_names(query.having, column),
        order=tuple(replace(key, node=replace_names(key.node, column)) for key in query.order),
        derived=tuple((name, replace_names(node, column)) for name, node in query.derived),
    )


def aggregates_in(node: Node) -> Iterator[Aggregate]:
    """Every aggregate inside an expression, in order."""
    if isinstance(node, Aggregate):
        yield node
    elif isinstance(node, Apply):
        for argument in node.arguments:
            yield from aggregates_in(argument)


def names_in_query(query: Query) -> tuple[str, ...]:
    """Every column a query names, as it is written there; each once."""
    return tuple(dict.fromkeys(str(name) for node in _nodes_of(query) for name in names_in(node)))


def names_in(node: Node) -> Iterator[Name]:
    """Every column an expression names, in order."""
    match node:
        case Name():
            yield node
        case Apply():
            for argument in node.arguments:
                yield from names_in(argument)
        case Aggregate() if node.argument is not None:
            yield from names_in(node.argument)
