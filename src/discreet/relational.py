"""From a plan to statements: every statistic becomes an exact integer total, inside the engine.

Nothing is executed here. The registered relation is called ``source`` and gives columns ``c0, c1, ...`` of
the registered types; each list of public keys lies in a table ``keys{i}(i, k0, k1, ...)``.

What the statements are made of (design, section 4), with u the unit's columns, e the group keys' values, x
the aggregates' arguments:

    kept    rows of the source that pass the filter and have a unit: u, e, x, and q, the values on their grids
    heavy   the units with more than C rows among those kept rows whose keys are listed, with their weight
    units   all units with such rows, with their weight: what `heavy` is made from where units are whole numbers
    result  one row a listed group: its index, and the sums of w * q over its rows
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from sqlglot import exp

from discreet.bins import Bins
from discreet.expressions import Expression, fields_in
from discreet.plan import KeyList, Measurement, Plan, PlannedJoin
from discreet.query import Scalar
from discreet.quirks import DUCKDB, Quirks
from discreet.quirks.keyed_hash import keyed_hash
from discreet.rendering import (
    BIGINT,
    HUGEINT,
    case,
    centred,
    centred_square,
    column,
    leaf_of,
    number,
    on_grid,
    present,
    render,
    render_number,
)
from discreet.schema import INTEGER, Type
from discreet.sensitivity import row_weight
from discreet.statement_parts import all_of, cast, joined, named, select, table

__all__ = ["Compiler", "Dense", "KeyTable", "Result", "Statement", "compile_plan", "key_tables", "needed_columns"]


@dataclass(frozen=True)
class KeyTable:
    """A table of public keys to load: columns i (the key's place, from 0) and k0, k1, ... (the key, of `types`)."""

    name: str
    types: tuple[Type, ...]
    rows: tuple[tuple[Scalar, ...], ...]


@dataclass(frozen=True)
class Result:
    """One SELECT: ``g``, the place of a total, then one integer total a measurement.

    The place is the group's index (keys in row-major order); for a tree's leaves, that times the number of leaves,
    plus the leaf. Places that are not given have the total 0; there are `cells` of them. If `bins` is given, the
    measurements are the levels of that tree, coarsest first, and the one total is that of the leaves.
    """

    select: exp.Select
    measurements: tuple[int, ...]
    cells: int
    bins: Bins | None = None


@dataclass(frozen=True)
class Dense:
    """Another way to the same totals, for an engine that joins whole numbers quickly where they lie close together.

    Attributes:
        units: a SELECT of all units, ``u0``, with their weights, ``w``: to become the table ``units``.
        heavy: what the step ``heavy`` may then be instead: a SELECT from ``units``.
        results: the results by ``units``, which need no ``heavy``; in the order of the statement's.
    """

    units: exp.Select
    heavy: exp.Select
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Statement:
    """What an engine runs: load the key tables, create the steps as temporary tables in order, read the results.

    Attributes:
        keys: the tables of public keys.
        steps: named SELECTs, each to become a temporary table.
        results: what to read.
        columns: the places of the joined source's columns that are needed.
        joins: the public tables to be joined to it.
        dense: where units are whole numbers, another way, which an engine may take or leave.
    """

    keys: tuple[KeyTable, ...]
    steps: tuple[tuple[str, exp.Select], ...]
    results: tuple[Result, ...]
    columns: tuple[int, ...]
    joins: tuple[PlannedJoin, ...] = ()
    dense: Dense | None = None


def compile_plan(plan: Plan, hash_key: int = 0, quirks: Quirks = DUCKDB) -> Statement:
    """The statements of a plan.

    Args:
        plan: with public groups.
        hash_key: drawn afresh for each query. It decides which values of a unit COUNT(DISTINCT x) counts, where there
            are more than C. (Whatever it is, the sensitivity holds.)
        quirks: of the engine that will run them.
    """
    compiler = Compiler(plan, quirks)
    by_pair = tuple(i for i, m in enumerate(plan.measurements) if m.by_pair)
    apart = ("distinct_count", "bins")
    by_row = tuple(i for i, m in enumerate(plan.measurements) if not m.by_pair and m.statistic not in apart)
    trees = _trees(plan.measurements)
    by_value = tuple(i for i, m in enumerate(plan.measurements) if m.statistic == "distinct_count")
    steps: list[tuple[str, exp.Select]] = []
    results: list[Result] = []
    if (by_row or trees) and not plan.unit.row_level:
        steps.append(("heavy", compiler.heavy_units()))
    weighted = _weighted_results(compiler, by_row, trees)
    results += weighted
    if by_pair:
        measurement = plan.measurements[by_pair[0]]  # all of them have one limit and one weight
        steps.append(("pairs", compiler.pairs(by_pair)))
        if measurement.weight > 1:
            steps.append(("heavy_pairs", compiler.heavy_pairs(measurement)))
        results.append(Result(compiler.pair_totals(by_pair), by_pair, plan.groups))
    for place in by_value:
        steps += compiler.distinct_values(place, hash_key)
        results.append(Result(compiler.value_totals(place), (place,), plan.groups))
    dense = None
    if weighted and compiler.whole_units:
        compiler.all_units = True
        weighted = _weighted_results(compiler, by_row, trees)
        dense = Dense(compiler.units_weighed(), compiler.heavy_among_units(), (*weighted, *results[len(weighted) :]))
    return Statement(key_tables(plan), tuple(steps), tuple(results), needed_columns(plan), plan.joins, dense)


def _weighted_results(
    compiler: Compiler, by_row: tuple[int, ...], trees: Sequence[tuple[Bins, tuple[int, ...]]]
) -> list[Result]:
    """What is totalled over rows."""
    groups = compiler.plan.groups
    found = [Result(compiler.row_totals(by_row), by_row, groups)] if by_row else []
    for bins, places in trees:
        found.append(Result(compiler.leaf_totals(places[-1], bins), places, groups * bins.count, bins))
    return found


def _trees(measurements: Sequence[Measurement]) -> list[tuple[Bins, tuple[int, ...]]]:
    """Each tree of bins with the places of its levels, coarsest first."""
    found: dict[tuple[Any, Bins], dict[int, int]] = {}
    for place, m in enumerate(measurements):
        if m.bins is not None:
            found.setdefault((m.expression, m.bins), {})[m.level] = place
    return [(bins, tuple(levels[i] for i in range(len(levels)))) for (_, bins), levels in found.items()]


def key_tables(plan: Plan) -> tuple[KeyTable, ...]:
    """The tables of a plan's public keys."""
    return tuple(
        KeyTable(f"keys{i}", tuple(plan.keys[place].expression.type for place in keys.columns), keys.rows)
        for i, keys in enumerate(plan.key_lists)
    )


def needed_columns(plan: Plan) -> tuple[int, ...]:
    """The places of the joined source's columns that a plan reads."""
    return tuple(sorted({field.position for e in plan.expressions() for field in fields_in(e)}))


class Compiler:
    """The parts that the statements of a plan have in common."""

    def __init__(self, plan: Plan, quirks: Quirks = DUCKDB) -> None:
        self.plan, self.quirks = plan, quirks
        self.units = [f"u{i}" for i in range(len(plan.unit.expressions))]
        self.group_columns = [f"e{i}" for i in range(len(plan.keys))]
        self.unit_types = [expression.type for expression in plan.unit.expressions]
        self.group_types = [key.expression.type for key in plan.keys]
        self.all_units = False  # whether rows get their weight from `units` rather than from `heavy`

    @property
    def whole_units(self) -> bool:
        """Whether a unit is one whole number."""
        return [unit.type for unit in self.plan.unit.expressions] == [INTEGER]

    def kept(self, *, matched: bool, values: Collection[int] = ()) -> exp.Select:
        """Rows that pass the filter and have a unit, with unit and keys, and the arguments of some measurements.

        `matched` keeps only rows whose keys are all listed.
        """
        plan = self.plan
        shared = shared_values(plan.measurements, values)
        columns: list[exp.Expr] = []
        for name, expression in zip(self.units, plan.unit.expressions, strict=True):
            columns.append(named(render(expression, self.quirks), name))
        for name, key in zip(self.group_columns, plan.keys, strict=True):
            columns.append(named(render(key.expression, self.quirks), name))
        for place in values:
            argument = plan.measurements[place].expression
            if argument is not None and place not in shared:
                gridded = plan.measurements[place].grid is not None or plan.measurements[place].bins is not None
                columns.append(named((render_number if gridded else render)(argument, self.quirks), f"x{place}"))
        where = () if plan.where is None else (render(plan.where, self.quirks),)
        base = select(*(columns or [named(number(1), "one")]), of=table("source"), where=where)
        kept = [present(column(name)) for name in self.units]
        if matched:
            kept += [self._listed(i, keys) for i, keys in enumerate(plan.key_lists)]
        return select("*", of=base, called="r", where=kept)

    def heavy_units(self) -> exp.Select:
        """Units with more than C rows left after filter and key matching, and floor(S C / N), their weight."""
        limit = self.plan.max_contributions
        return self._heavy(self.kept(matched=True), limit, row_weight(row_level=False))

    def units_weighed(self) -> exp.Select:
        """All units with rows left after filter and key matching, with the weight of their rows: S, or if they are
        more than C, floor(S C / N)."""
        limit, weight = self.plan.max_contributions, row_weight(row_level=False)
        count = exp.Count(this=exp.Star())
        cut = self._quotient(weight * limit, count)
        chosen = case([(exp.GT(this=count.copy(), expression=number(limit)), cut)], number(weight))
        weight_column = named(cast(chosen, BIGINT), "w")
        return select(*self.units, weight_column, of=self.kept(matched=True), called="kept", group_by=self.units)

    def heavy_among_units(self) -> exp.Select:
        """`heavy_units`, once ``units`` is there. (A heavy unit's weight is below S: N > C.)"""
        lighter = exp.LT(this=column("w"), expression=number(row_weight(row_level=False)))
        return select(*self.units, "w", of=table("units"), where=[lighter])

    def heavy_pairs(self, measurement: Measurement) -> exp.Select:
        """Units in more than G groups, and floor(S G / M), their weight."""
        return self._heavy(select("*", of=table("pairs")), measurement.limit, measurement.weight)

    def _heavy(self, rows: exp.Select, limit: int, weight: int) -> exp.Select:
        count = exp.Count(this=exp.Star())
        cut = named(cast(self._quotient(weight * limit, count), BIGINT), "w")
        grouped = select(*self.units, cut, of=rows, called="kept", group_by=self.units)
        return grouped.having(exp.GT(this=count.copy(), expression=number(limit)), copy=False)

    def pairs(self, places: Collection[int]) -> exp.Select:
        """The distinct (unit, group) pairs among kept rows with listed keys, with the unit's own total there,
        ``s{place}``, of what is clamped by pair."""
        names = [*self.units, *self.group_columns]
        own = {i: self.plan.measurements[i] for i in places if self.plan.measurements[i].ends is not None}
        kept = self.kept(matched=True, values=list(own))
        if any(m.grid is not None for m in own.values()):
            kept = select("*", *self._clamped(own), of=kept, called="kept")
        totals = [named(_own_total(m, i), f"s{i}") for i, m in own.items()]
        return select(*names, *totals, of=kept, called="rows", group_by=names)

    def row_totals(self, places: tuple[int, ...]) -> exp.Select:
        """For each listed group: the sums of w, or of w * q, over its rows."""
        measurements = {i: self.plan.measurements[i] for i in places}
        # A row whose key is not listed is left behind when the groups are matched with the keys; here it need
        # not be filtered out. (The count of a unit's rows, `heavy_units`, does filter.)
        kept = self.kept(matched=False, values=places)
        rows = select("*", *self._clamped(measurements), of=kept, called="kept")
        weight: exp.Expr | None = None
        if self.plan.unit.row_level:
            weighted = select("*", of=rows, called="rows")
        else:
            standard = next(iter(measurements.values())).weight
            weight = column("w", "rows")
            weighted = self._weighted(rows, "heavy", standard)
        shared = shared_values(self.plan.measurements, places)
        totals = [named(_total(m, i, weight, shared, self.quirks), f"m{i}") for i, m in measurements.items()]
        return self._indexed(totals, weighted, [f"m{i}" for i in places])

    def leaf_totals(self, place: int, bins: Bins) -> exp.Select:
        """For each listed group and leaf that has rows: the sum of the weights of its rows."""
        measurement = self.plan.measurements[place]
        if measurement.expression is None:
            raise AssertionError
        value = on_grid(column(f"x{place}"), measurement.expression.type, bins.grid, self.quirks)
        leaf = leaf_of(value, bins, self.quirks)
        kept = self.kept(matched=False, values=(place,))
        rows = select("*", named(leaf, "leaf"), of=kept, called="kept")
        weight: exp.Expr = number(1)
        if not self.plan.unit.row_level:
            rows, weight = self._weighted(rows, "heavy", measurement.weight), column("w")
        total = named(exp.Sum(this=weight), f"m{place}")
        return self._indexed([total], rows, [f"m{place}"], leaves=bins.count)

    def pair_totals(self, places: tuple[int, ...]) -> exp.Select:
        """For each listed group: the sum of the weights of the units in it, or of w times their own totals, clamped."""
        measurements = {i: self.plan.measurements[i] for i in places}
        standard = measurements[places[0]].weight
        rows, weight = select("*", of=table("pairs")), None
        if standard > 1:
            rows, weight = self._weighted(rows, "heavy_pairs", standard), column("w", "rows")
        totals = [named(_pair_total(m, i, weight), f"m{i}") for i, m in measurements.items()]
        return self._indexed(totals, rows, [f"m{i}" for i in places])

    def distinct_values(self, place: int, hash_key: int) -> list[tuple[str, exp.Select]]:
        """Steps to ``values{place}``: the (group, x) pairs that some unit counts.

        In ``triples`` are the distinct (unit, group, x), x present, of rows with listed keys. Of a unit with more than
        C of them, the first C are left in the order of a keyed hash, then of group and x. No two are equal in
        that order, and it depends on the unit's own rows alone.
        """
        groups, x = self.group_columns, f"x{place}"
        names = [*self.units, *groups, x]
        kept = self.kept(matched=True, values=(place,))
        triples = select(*names, of=kept, called="kept", where=[present(column(x))], group_by=names)
        if not self.units:
            return [(f"values{place}", triples)]  # each row is a unit, with one triple
        limit = self.plan.measurements[place].limit
        crowded = select(*self.units, of=table(f"triples{place}"), group_by=self.units)
        crowded.having(exp.GT(this=exp.Count(this=exp.Star()), expression=number(limit)), copy=False)

        def own(*more: exp.Expr) -> exp.Select:
            return select(*(named(column(n, "t"), n) for n in names), *more, of=table(f"triples{place}", "t"))

        def same() -> exp.Expr:
            return all_of(exp.EQ(this=column(u, "t"), expression=column(u, f"crowded{place}")) for u in self.units)

        few = joined(own(), f"crowded{place}", same(), "ANTI")
        argument = self.plan.measurements[place].expression
        if argument is None:
            raise AssertionError
        types = [*self.unit_types, *self.group_types, argument.type]
        hashed = named(keyed_hash([column(name, "t") for name in names], types, hash_key, self.quirks), "h")
        many = joined(own(hashed), f"crowded{place}", same())
        order = exp.Order(expressions=[exp.Ordered(this=column(n), nulls_first=True) for n in ("h", *groups, x)])
        rank = exp.Window(this=exp.RowNumber(), partition_by=[column(u) for u in self.units], order=order)
        ranked = select(*groups, x, named(rank, "r"), of=many, called="many")
        within = exp.LTE(this=column("r"), expression=number(limit))
        first = select(*groups, x, of=ranked, called="ranked", where=[within])
        both = select(*groups, x, of=few, called="few").union(first, distinct=False, copy=False)
        counted = select(*groups, x, of=both, called="counted", group_by=[*groups, x])
        return [(f"triples{place}", triples), (f"crowded{place}", crowded), (f"values{place}", counted)]

    def value_totals(self, place: int) -> exp.Select:
        """For each listed group: how many values some unit counts in it."""
        total = named(exp.Count(this=exp.Star()), f"m{place}")
        return self._indexed([total], table(f"values{place}"), [f"m{place}"])

    def _weighted(self, rows: exp.Select, heavy: str, standard: int) -> exp.Select:
        """The rows with w: the weight of a heavy unit's rows, S for all others."""
        if self.all_units and heavy == "heavy":
            # A unit that is not among them has no rows with listed keys: its rows are in no listed group anyway.
            same = exp.EQ(this=column("u0", "kept"), expression=column("u0", "units"))
            every = exp.Column(this=exp.Star(), table=exp.to_identifier("kept"))
            return joined(select(every, column("w", "units"), of=rows, called="kept"), "units", same)
        on = all_of(exp.EQ(this=column(u, "kept"), expression=column(u, heavy)) for u in self.units)
        weight = exp.Coalesce(this=column("w", heavy), expressions=[number(standard)])
        star = exp.Column(this=exp.Star(), table=exp.to_identifier("kept"))
        return joined(select(star, named(weight, "w"), of=rows, called="kept"), heavy, on, "LEFT")

    def _clamped(self, measurements: Mapping[int, Measurement]) -> list[exp.Expr]:
        return [
            named(on_grid(column(f"x{i}"), m.expression.type, m.grid, self.quirks), f"q{i}")
            for i, m in measurements.items()
            if m.grid is not None and m.expression is not None
        ]

    def _indexed(
        self, totals: list[exp.Expr], rows: exp.Table | exp.Query, names: list[str], leaves: int = 0
    ) -> exp.Select:
        """The totals, called `names`, of listed groups only, each with its place instead of its keys (and its leaf)."""
        lists = self.plan.key_lists
        by, found = list(self.group_columns), []
        if leaves:
            by, found = [*by, "leaf"], [present(column("leaf"))]
        grouped = select(*by, *totals, of=rows, called="rows", where=found, group_by=by)
        index: exp.Expr = column("leaf", "totals") if leaves else number(0)
        selected = select(*names, of=grouped, called="totals")
        for i, keys in enumerate(lists):
            stride = prod(len(later.rows) for later in lists[i + 1 :]) * max(1, leaves)
            index = exp.Add(this=index, expression=exp.Mul(this=column("i", f"keys{i}"), expression=number(stride)))
            joined(selected, f"keys{i}", self._same_key("totals", i, keys))
        return selected.select(named(index, "g"), copy=False)

    def _quotient(self, whole: int, count: exp.Expr) -> exp.Expr:
        return self.quirks.quotient(number(whole), count, whole >= 2**62)

    def _same_key(self, table: str | None, list_place: int, keys: KeyList) -> exp.Expr:
        """Whether a row's key is this listed key; the missing key is equal to itself only if it is listed."""
        same: list[exp.Expr] = []
        for place, grouping in enumerate(keys.columns):
            value, listed = column(f"e{grouping}", table), column(f"k{place}", f"keys{list_place}")
            if keys.may_be_missing(place):
                same.append(self.quirks.same(value, listed, self.group_types[grouping]))
            else:
                same.append(exp.EQ(this=value, expression=listed))
        return all_of(same)

    def _listed(self, place: int, keys: KeyList) -> exp.Expr:
        """Whether a row's key is listed: a semi-join with the keys."""
        listed = table(f"keys{place}")
        if len(keys.columns) > 1:
            same = self._same_key(None, place, keys)
            return exp.Exists(this=select(number(1), of=listed, where=[same]))
        value = column(f"e{keys.columns[0]}")
        if (ends := _range(keys)) is not None:
            return exp.Between(this=value, low=number(ends[0]), high=number(ends[1]))
        # Of one column: an IN over the keys that are not NULL.
        if not keys.may_be_missing(0):
            return exp.In(this=value, query=exp.Subquery(this=select("k0", of=listed)))
        there = select("k0", of=listed, where=[present(column("k0"))])
        among = exp.In(this=value, query=exp.Subquery(this=there))
        return exp.or_(among, exp.Is(this=value.copy(), expression=exp.Null()), copy=False)


def shared_values(measurements: Sequence[Measurement], places: Collection[int]) -> dict[int, int]:
    """For each count of present values, a measurement that has them on a grid: they are present there if and only if
    they are here, and one look at each is enough."""
    gridded: dict[Expression | None, int] = {}
    for place in places:
        if measurements[place].grid is not None:
            gridded.setdefault(measurements[place].expression, place)
    counts = (p for p in places if measurements[p].statistic == "count" and measurements[p].expression in gridded)
    return {place: gridded[measurements[place].expression] for place in counts}


def _total(
    measurement: Measurement, place: int, weight: exp.Expr | None, shared: Mapping[int, int], quirks: Quirks
) -> exp.Expr:
    """The exact integer total of one measurement in one group; NULL or 0 over no rows. A weight of None is 1."""
    grid = measurement.grid
    if grid is None:
        if measurement.expression is None:
            return exp.Count(this=exp.Star()) if weight is None else exp.Sum(this=weight.copy())
        argument = column(f"q{shared[place]}" if place in shared else f"x{place}", "rows")
        if measurement.statistic != "count_if":
            return _present(argument, weight)
        return exp.Sum(this=case([(argument, number(1) if weight is None else weight.copy())], number(0)))
    value: exp.Expr = column(f"q{place}", "rows")
    size = measurement.weight * (grid.largest_square if measurement.statistic == "centred_square" else grid.largest)
    if measurement.statistic == "centred_square":
        value = centred_square(value, grid, quirks)
    elif measurement.statistic == "centred_sum" and size < 2**62:
        # The sum of w (2q - c) is 2 (sum of w q) - c (sum of w), over rows where q is present; in integers, exactly.
        # |sum of w q| <= S B 2^36 < 2^125 (`choose_grid`), so its double fits too.
        doubled = exp.Mul(this=number(2), expression=_weighted_sum(value, weight))
        counted = cast(_present(value, weight), HUGEINT)
        centre = exp.Mul(this=number(grid.lowest + grid.highest), expression=counted)
        return exp.Sub(this=doubled, expression=centre)
    elif measurement.statistic == "centred_sum":
        value, size = centred(value, grid), measurement.weight * grid.width
    if size >= 2**62:
        value = cast(value, HUGEINT)
        weight = None if weight is None else cast(weight.copy(), HUGEINT)
    return _weighted_sum(value, weight)


def _own_total(measurement: Measurement, place: int) -> exp.Expr:
    """What one unit has in one group, before it is clamped: an exact integer, at most B 2^36 < 2^106 in size
    (`choose_grid`). NULL where it has no value there."""
    if measurement.grid is not None:
        return exp.Sum(this=cast(column(f"q{place}"), HUGEINT))
    if measurement.expression is None:
        return exp.Count(this=exp.Star())
    argument = column(f"x{place}")
    counted = case([(argument, number(1))]) if measurement.statistic == "group_count_if" else argument
    count = exp.Count(this=counted)
    return case([(exp.GT(this=count, expression=number(0)), count.copy())])


def _pair_total(measurement: Measurement, place: int, weight: exp.Expr | None) -> exp.Expr:
    """The exact integer total of one measurement in one group, over (unit, group) pairs."""
    if measurement.ends is None:
        return exp.Count(this=exp.Star()) if weight is None else exp.Sum(this=weight.copy())
    low, high = measurement.ends
    own = cast(column(f"s{place}", "rows"), HUGEINT)
    below, above = (node(this=own.copy(), expression=number(end)) for node, end in ((exp.LT, low), (exp.GT, high)))
    # NULL, no value, is neither below nor above, and stays NULL.
    clamped = case([(below, _wide(low)), (above, _wide(high))], own)
    return _weighted_sum(clamped, None if weight is None else cast(weight.copy(), HUGEINT))


def _wide(value: int) -> exp.Expr:
    return cast(number(value), HUGEINT)


def _weighted_sum(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    return exp.Sum(this=value.copy() if weight is None else exp.Mul(this=weight.copy(), expression=value.copy()))


def _present(value: exp.Expr, weight: exp.Expr | None) -> exp.Expr:
    """The weights of the rows in which a value is present."""
    if weight is None:
        return exp.Count(this=value)
    return exp.Sum(this=case([(present(value), weight.copy())], number(0)))


def _range(keys: KeyList) -> tuple[int, int] | None:
    """The ends of a list of all whole numbers between them, which is quicker to match than a list; else None."""
    values = [row[0] for row in keys.rows]
    whole = [value for value in values if isinstance(value, int) and not isinstance(value, bool)]
    if len(whole) < len(values) or not whole:
        return None
    low, high = min(whole), max(whole)
    return (low, high) if high - low == len(set(whole)) - 1 else None
