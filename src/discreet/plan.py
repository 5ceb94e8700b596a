"""The plan of a query: pure and complete before anything is read or charged.

query + stored schema + request -> measurements with their sensitivities, scales and shares, the keys, the
limits, the total cost, and a digest of all of it. A refusal made here costs nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Any

from discreet.bins import Bins
from discreet.expressions import Expression, Field, Literal, Operation, canonical, fields_in
from discreet.formulas import Formula, canonical_formula
from discreet.grid import Grid
from discreet.owner import Declared
from discreet.privacy import RELATION, LaplaceVector, PrivacyLoss
from discreet.query import Bounds, Node, Scalar
from discreet.schema import Kind, Registration
from discreet.selection import Selection

__all__ = [
    "KeyColumn",
    "KeyList",
    "Measurement",
    "Ordering",
    "Plan",
    "PlannedJoin",
    "PlannedOutput",
    "PublicTable",
    "Request",
    "Unit",
]


@dataclass(frozen=True)
class Unit:
    """Who counts as one person: the rows that share the values of these expressions.

    `expressions` is empty at row level, where each row is its own unit. Rows with a missing value in one of
    them are dropped. `text` is the canonical wording, by which the ledger tells units apart.
    """

    text: str
    expressions: tuple[Expression, ...]

    @property
    def row_level(self) -> bool:
        return not self.expressions

    @property
    def promise(self) -> str:
        """Whom the promise is about, in words: "per actor", "per actor and day", "per row"."""
        return "per " + (" and ".join(_word(e) for e in self.expressions) or "row")


def _word(expression: Expression) -> str:
    match expression:
        case Field(name=name):
            return name
        case Operation(operator="to_date"):
            return "day"
        case Operation(operator=operator) if operator.startswith(("extract_", "trunc_")):
            return operator.partition("_")[2]
    return next((f"value of {field.name}" for field in fields_in(expression)), "value")


@dataclass(frozen=True)
class PublicTable:
    """A table that everybody may know, to be joined to the private one.

    Attributes:
        name: what queries call it.
        registration: how it is read, and its columns.
        content: SHA-256 of all its values: a plan is about this very table.
        frame: the data frame itself, if it is one.
    """

    name: str
    registration: Registration
    content: str
    frame: object = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class PlannedJoin:
    """A join of the private rows with a public table, whose key must be unique: each row meets one row at most.

    Attributes:
        table: the public table.
        left: whether rows without a counterpart are kept, with its columns missing.
        on: pairs of an expression over what is joined so far and the place of the public column it must equal.
        first: the place of its first column in the joined schema.
    """

    table: PublicTable
    left: bool
    on: tuple[tuple[Expression, int], ...]
    first: int

    def canonical(self) -> Any:
        """As plain JSON values."""
        columns = [[column.name, str(column.type)] for column in self.table.registration.schema.columns]
        return [self.table.content, columns, self.left, [[canonical(e), place] for e, place in self.on], self.first]


@dataclass(frozen=True)
class Request:
    """What comes with a query: its cost, its unit and limits, its keys and bounds; all public, all exact.

    Attributes:
        epsilon, delta: the whole cost of the query.
        unit: expressions such as "actor" or "actor, DATE(time)"; None at row level.
        max_contributions: the rows one unit may weigh, over all groups; None at row level.
        max_groups_contributed: the groups one unit may weigh in COUNT(DISTINCT unit); None for the smaller of
            `max_contributions` and the number of keys.
        min_privacy_units_per_group: how many units a group chosen from the data must have at the least.
        group_selection_strategy: "PUBLIC_GROUPS", "LAPLACE_THRESHOLD", or None for what the keys need.
        keys: for each grouping column or alias, its public values; or for a tuple of them, their public
            combinations. What is listed apart is multiplied.
        bounds: for columns or aliases, their declared bounds.
        owner: what the owner's policy says of columns and groups.
        public: tables that may be joined, by name.
        timezone: in which dates and hours of moments are read.
    """

    epsilon: Fraction
    unit: tuple[Node, ...] | None
    max_contributions: int | None = None
    max_groups_contributed: int | None = None
    delta: Fraction = Fraction(0)
    min_privacy_units_per_group: int | None = None
    group_selection_strategy: str | None = None
    keys: Mapping[str | tuple[str, ...], object] = field(default_factory=dict)
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    owner: Declared = field(default_factory=Declared)
    public: Mapping[str, PublicTable] = field(default_factory=dict)
    timezone: str = "UTC"


@dataclass(frozen=True)
class KeyColumn:
    """A grouping expression and what it is called."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class KeyList:
    """Public keys of one grouping column, or public combinations of several columns' keys; each once, in order.

    Attributes:
        columns: the places of the grouping columns.
        rows: for each key, one value a column.
    """

    columns: tuple[int, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    def may_be_missing(self, place: int) -> bool:
        """Whether the missing key is listed for the column at `place` of this list."""
        return any(row[place] is None for row in self.rows)


@dataclass(frozen=True)
class Measurement:
    """One vector of exact integer totals, one total a group, that will meet noise once.

    Attributes:
        statistic: "count" (rows, or rows where `expression` is present), "count_if" (rows where it is true),
            "sum", "centred_sum", "centred_square", "unit_count", "distinct_count" (different values), "bins": the
            count of rows in each node of one level of a tree of bins, a vector of `cells` totals a group; or
            "group_sum", "group_count", "group_count_if": as those without "group_", but of what each unit contributes
            to a group, clamped to `ends`.
        expression: the argument; None for COUNT(*) and for units.
        grid: of a sum; of a "group_sum" that of single values.
        weight: S, what a row or pair within the limit weighs.
        limit: C or G.
        sensitivity: the L1 sensitivity of the vector, an exact integer; 0 only where the total is constant.
        epsilon: this measurement's share.
        bins, level: of "bins", the tree and the level, from 0 for the coarsest.
        ends: of "group_...", the least and the largest that a unit contributes to a group, in steps of the grid.
    """

    statistic: str
    expression: Expression | None
    grid: Grid | None
    weight: int
    limit: int
    sensitivity: int
    epsilon: Fraction = Fraction(0)
    bins: Bins | None = None
    level: int = 0
    ends: tuple[int, int] | None = None

    @property
    def by_pair(self) -> bool:
        """Whether distinct (unit, group) pairs are weighed, against `max_groups_contributed`; else rows are."""
        return self.statistic == "unit_count" or self.ends is not None

    @property
    def cells(self) -> int:
        """How many totals a group has."""
        return 1 if self.bins is None else self.bins.sizes[self.level]

    @property
    def scale(self) -> Fraction:
        """Of the discrete Laplace noise, in units of the integer totals."""
        return self.sensitivity / self.epsilon

    @property
    def unit_value(self) -> Fraction:
        """What one unit of the integer total is worth in the answer: 1 / S, step / S, step / (2 S), or for
        squares (K step / 2)^2 / (2 S)."""
        if self.grid is None:
            return Fraction(1, self.weight)
        if self.statistic == "centred_square":
            return self.grid.square_unit / 2 / self.weight
        step = self.grid.step / 2 if self.statistic == "centred_sum" else self.grid.step
        return step / self.weight

    def canonical(self) -> Any:
        """As plain JSON values."""
        grid = self.grid and [str(self.grid.step), self.grid.lowest, self.grid.highest]
        bins = None
        if self.bins is not None:
            leaves = self.bins.grid
            bins = [str(leaves.step), leaves.lowest, leaves.highest, self.bins.size, self.bins.sizes, self.level]
        return [
            self.statistic,
            canonical(self.expression),
            grid,
            self.weight,
            self.limit,
            self.sensitivity,
            str(self.epsilon),
            bins,
            *([] if self.ends is None else [self.ends]),
        ]


@dataclass(frozen=True)
class PlannedOutput:
    """One column of the answer: a key column, or a statistic derived from one or more measurements.

    Attributes:
        name: the column's name.
        function: "key", "count", "unit_count", "sum", "mean", "sum_from_mean", "var_samp", "var_pop",
            "stddev_samp", "stddev_pop", "quantile", "constant", or "computed" from other statistics and keys.
        sources: the key column's place, or the measurements' places (for a mean: centred sum, count; for a
            variance also the centred squares; for a quantile all levels of its tree, coarsest first).
        described: the statistic in the words of SQL, for people.
        whole: the answer is a whole number.
        constant: the value of a "constant", which no row can change.
        point: of a quantile.
        kind: of a mean or quantile of dates or times, what its numbers stand for (`time_values`).
        parts, formula: of a "computed" output, what fills the formula's slots, and the formula.
    """

    name: str
    function: str
    sources: tuple[int, ...]
    described: str
    whole: bool = False
    constant: Fraction = Fraction(0)
    point: Fraction | None = None
    kind: Kind | None = None
    parts: tuple[PlannedOutput, ...] = ()
    formula: Formula | None = None

    def canonical(self) -> Any:
        """As plain JSON values. (What it is computed from, not how it is described.)"""
        formula = None if self.formula is None else canonical_formula(self.formula)
        parts = [p.canonical() for p in self.parts]
        exact = [str(self.constant), None if self.point is None else str(self.point), self.kind and str(self.kind)]
        return [self.name, self.function, self.sources, self.whole, *exact, parts, formula]


@dataclass(frozen=True)
class Ordering:
    """One thing to sort the groups by, after the noise."""

    output: PlannedOutput
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Plan:
    """Everything about a query that is decided before the data is read.

    `having`, `order`, `limit` and `offset` choose and sort groups by their noisy values and public keys.

    Expressions read the joined schema: the registered columns, then those of the `joins`, in order.

    With a `selection` the groups are chosen from the data first. The key lists then restrict them, and the rest of the
    plan is carried out by `with_groups`.
    """

    registration: Registration
    unit: Unit
    max_contributions: int
    max_groups_contributed: int
    where: Expression | None
    keys: tuple[KeyColumn, ...]
    key_lists: tuple[KeyList, ...]
    measurements: tuple[Measurement, ...]
    outputs: tuple[PlannedOutput, ...]
    loss: PrivacyLoss
    text: str
    joins: tuple[PlannedJoin, ...] = ()
    timezone: str = "UTC"
    selection: Selection | None = None
    having: PlannedOutput | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def groups(self) -> int:
        """How many groups there are: the product of the key lists' sizes; 1 without groups. (Where groups are still
        to be chosen, nobody knows yet.)"""
        return prod(len(keys.rows) for keys in self.key_lists)

    def _repr_html_(self) -> str:
        """For notebooks."""
        from discreet.html import plan_html

        return plan_html(self)

    def with_groups(self, rows: Sequence[tuple[Scalar, ...]]) -> Plan:
        """The plan once its groups are chosen: they are public from then on."""
        return replace(self, selection=None, key_lists=(KeyList(tuple(range(len(self.keys))), tuple(rows)),))

    def group_keys(self) -> tuple[tuple[Scalar, ...], ...]:
        """For each grouping column, its value in each group: lists in row-major order, the last one fastest."""
        found: dict[int, tuple[Scalar, ...]] = {}
        if self.groups == 0:
            return ((),) * len(self.keys)
        inner = self.groups
        for keys in self.key_lists:
            inner //= len(keys.rows)
            outer = self.groups // (inner * len(keys.rows))
            for place, column in enumerate(keys.columns):
                found[column] = tuple(row[place] for row in keys.rows for _ in range(inner)) * outer
        return tuple(found[column] for column in range(len(self.keys)))

    def expressions(self) -> tuple[Expression, ...]:
        """All that is computed of single rows."""
        found = [*self.unit.expressions, *(key.expression for key in self.keys)]
        found += [m.expression for m in self.measurements if m.expression is not None]
        found += [] if self.where is None else [self.where]
        return (*found, *(ours for join in self.joins for ours, _ in join.on))

    def zones(self) -> frozenset[str]:
        """The time zones by whose clocks moments are read, but UTC."""
        return frozenset(zone for expression in self.expressions() for zone in _zones_in(expression))

    def vectors(self) -> tuple[LaplaceVector, ...]:
        """All that the answer is computed from: vectors with Laplace noise, whose epsilons add up to the query's.

        Where groups are chosen, that holds but for an event whose probability is the query's delta; see `selection`.
        """
        found = [LaplaceVector(m.sensitivity, m.epsilon) for m in self.measurements if m.sensitivity]
        if self.selection is not None:
            found.append(LaplaceVector(self.selection.limit, self.selection.epsilon))
        return tuple(found)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that fixes the law of the answer. The same digest, the same question."""
        value = {
            "source": self.registration.source,
            "columns": [[column.name, str(column.type)] for column in self.registration.schema.columns],
            "unit": [self.unit.text, [canonical(e) for e in self.unit.expressions]],
            "relation": RELATION,
            "joins": [join.canonical() for join in self.joins],
            "timezone": self.timezone,
            "limits": [self.max_contributions, self.max_groups_contributed],
            "where": canonical(self.where),
            "keys": [[k.name, canonical(k.expression)] for k in self.keys],
            "key_lists": [[k.columns, [[_key_text(v) for v in row] for row in k.rows]] for k in self.key_lists],
            "selection": self.selection and self.selection.canonical(),
            "measurements": [m.canonical() for m in self.measurements],
            "outputs": [output.canonical() for output in self.outputs],
            "having": self.having and self.having.canonical(),
            "order": [[o.output.canonical(), o.descending, o.nulls_first] for o in self.order],
            "shown": [self.limit, self.offset],
            "loss": [str(self.loss.epsilon), str(self.loss.delta)],
        }
        text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def limits(self) -> dict[str, Any]:
        """The limits in force, as plain values for the ledger and the report."""
        limits: dict[str, Any] = {"max_contributions": self.max_contributions}
        if self.selection is not None or any(m.by_pair for m in self.measurements):
            limits["max_groups_contributed"] = self.max_groups_contributed
        return limits


def _key_text(value: Scalar) -> list[str]:
    return [type(value).__name__, str(value)]


def _zones_in(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Operation):
        if expression.operator in ("at_zone", "from_zone") and isinstance(expression.operands[1], Literal):
            yield str(expression.operands[1].value)
        for operand in expression.operands:
            yield from _zones_in(operand)
