"""The minimal set of measurements that a query's outputs need, with their sensitivities and shares."""

from __future__ import annotations

import dataclasses
import json
from fractions import Fraction

from discreet import sensitivity
from discreet.binding import bind, bind_number
from discreet.bins import MOST_BINS, MOST_BINS_OF_CHOSEN_GROUPS, MOST_CELLS, Bins, choose_bins
from discreet.bounds import fitted
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression, Field, Operation
from discreet.grid import ROWS_CEILING, TOTAL_CEILING, WEIGHT, Grid, choose_grid
from discreet.plan import Measurement, Request, Unit
from discreet.query import Aggregate, Apply, Bounds, Constant, Node, written_name
from discreet.schema import Schema

__all__ = ["Measurements", "aggregate_name"]

MOST_MEASUREMENTS = 200

_WIDE = 2**10
"""How far beyond the bounds of a unit's sum in a group a single value may lie, if no bounds of its own are declared."""

_SPANS = {"days_between": "day", "seconds_between": "second"}
"""What x - y of dates, and of times, is counted in."""


class Measurements:
    """The minimal set of measurements that the outputs need: each is measured once, and costs once."""

    def __init__(
        self,
        schema: Schema,
        unit: Unit,
        rows: int,
        pairs: int,
        groups: int | None,
        request: Request,
        aliases: tuple[str, ...],
    ) -> None:
        self.schema, self.unit, self.aliases = schema, unit, aliases
        self.rows, self.pairs, self.groups = rows, pairs, groups
        self.declared = {self._bounds_key(name): bounds for name, bounds in request.bounds.items()}
        self.derived: tuple[tuple[str, Node], ...] = ()
        """Columns of a derived table by their names there, by which bounds may be declared too."""
        self.owner = request.owner
        self.found: dict[str, tuple[Measurement, Fraction]] = {}

    def _bounds_key(self, name: str) -> str:
        """Bounds may be declared for a column by any accepted spelling, or for an output's alias."""
        position = self.schema.position(name)
        return name if position is None else self.schema.columns[position].name

    def add(self, measurement: Measurement, share: Fraction) -> int:
        """Its place among the measurements; asked twice, it is measured once, at the larger share."""
        self.owner.check_allowed(measurement.expression)
        key = json.dumps(measurement.canonical())
        known = self.found.get(key)
        self.found[key] = (measurement, max(share, known[1]) if known else share)
        if len(self.found) > MOST_MEASUREMENTS:
            raise UsageError("query", f"must need at most {MOST_MEASUREMENTS} measurements")
        return list(self.found).index(key)

    def count(self, expression: Expression | None, share: Fraction) -> int:
        weight = sensitivity.row_weight(row_level=self.unit.row_level)
        bound = sensitivity.of_count(self.rows, weight)
        return self.add(Measurement("count", expression, None, weight, self.rows, bound), share)

    def count_if(self, condition: Expression, share: Fraction) -> int:
        weight = sensitivity.row_weight(row_level=self.unit.row_level)
        bound = sensitivity.of_count(self.rows, weight)
        return self.add(Measurement("count_if", condition, None, weight, self.rows, bound), share)

    def sum(self, expression: Expression, grid: Grid, share: Fraction) -> int:
        weight = sensitivity.row_weight(row_level=self.unit.row_level)
        bound = sensitivity.of_sum(self.rows, weight, grid)
        return self.add(Measurement("sum", expression, grid, weight, self.rows, bound), share)

    def centred_sum(self, expression: Expression, grid: Grid, share: Fraction) -> int:
        weight = sensitivity.row_weight(row_level=self.unit.row_level)
        bound = sensitivity.of_centred_sum(self.rows, weight, grid)
        return self.add(Measurement("centred_sum", expression, grid, weight, self.rows, bound), share)

    def centred_square(self, expression: Expression, grid: Grid, share: Fraction) -> int:
        weight = sensitivity.row_weight(row_level=self.unit.row_level)
        bound = sensitivity.of_centred_square(self.rows, weight, grid)
        return self.add(Measurement("centred_square", expression, grid, weight, self.rows, bound), share)

    def bins(self, expression: Expression, bins: Bins, share: Fraction) -> tuple[int, ...]:
        """The places of the levels of a tree, coarsest first. They take equal parts of the tree's share."""
        weight = sensitivity.row_weight(row_level=self.unit.row_level)
        bound = sensitivity.of_bins(self.rows, weight)
        levels = range(len(bins.sizes))
        blank = Measurement("bins", expression, None, weight, self.rows, bound, bins=bins)
        return tuple(self.add(dataclasses.replace(blank, level=i), share / len(levels)) for i in levels)

    @property
    def _pair_weight(self) -> int:
        # Where a unit can touch no more groups than the limit, its weight is never cut (`of_unit_count`).
        return 1 if self.groups is not None and self.pairs >= self.groups else sensitivity.row_weight(row_level=False)

    def unit_count(self, share: Fraction) -> int:
        weight = self._pair_weight
        bound = sensitivity.of_unit_count(self.pairs, weight)
        return self.add(Measurement("unit_count", None, None, weight, self.pairs, bound), share)

    def group_total(
        self, statistic: str, expression: Expression | None, grid: Grid | None, ends: tuple[int, int], share: Fraction
    ) -> int:
        """Of "group_sum", "group_count" or "group_count_if"."""
        weight = self._pair_weight
        bound = sensitivity.of_group_total(self.pairs, weight, ends)
        return self.add(Measurement(statistic, expression, grid, weight, self.pairs, bound, ends=ends), share)

    def distinct_count(self, expression: Expression, share: Fraction) -> int:
        bound = sensitivity.of_distinct_count(self.rows)
        return self.add(Measurement("distinct_count", expression, None, 1, self.rows, bound), share)

    def binned(self, aggregate: Aggregate, alias: str) -> tuple[Expression, Bins]:
        """The argument of a quantile, and its tree of bins.

        Raises:
            RefusedError: groups times bins would be too many.
        """
        function = aggregate_name(aggregate)
        if aggregate.argument is None:
            raise UsageError(function, "takes a column")
        expression = bind_number(aggregate.argument, self.schema, function, self.aliases, or_time=True)
        bounds = self.bounds_of(aggregate, expression, alias)
        shown = expression.name if isinstance(expression, Field) else alias
        most = MOST_BINS_OF_CHOSEN_GROUPS if self.groups is None else MOST_BINS
        bins = choose_bins(expression.type, bounds, f"{function} of {shown!r}", most=most)
        trees = {(m.expression, m.bins) for m, _ in self.found.values() if m.bins is not None} | {(expression, bins)}
        if sum(tree.count for _, tree in trees if tree is not None) * (self.groups or 1) > MOST_CELLS:
            raise RefusedError(
                f"{function} of {shown!r}",
                f"needs {bins.count} bins in each of {self.groups or 1} groups, more than {MOST_CELLS} in all",
                hint="list fewer keys, declare narrower bounds, or ask for fewer columns' quantiles in one query",
            )
        return expression, bins

    def summand(self, aggregate: Aggregate, alias: str) -> tuple[Expression, Grid]:
        """The argument of SUM, AVG, VARIANCE or STDDEV, and its grid."""
        function = aggregate_name(aggregate)
        if aggregate.argument is None:
            raise UsageError(function, "takes a column")
        or_time = aggregate.function == "avg"
        expression = bind_number(aggregate.argument, self.schema, function, self.aliases, or_time=or_time)
        bounds = self.bounds_of(aggregate, expression, alias)
        shown = expression.name if isinstance(expression, Field) else alias
        return expression, choose_grid(expression.type, bounds, f"{function} of {shown!r}")

    def group_summand(self, aggregate: Aggregate, per_group: Bounds, alias: str) -> tuple[Expression, Grid, Bounds]:
        """The argument of SUM with bounds per group, the grid of its values, and those bounds on their scale.

        Each value is clamped to the bounds declared for it, if there are any; else to `_WIDE` times the bounds per
        group, so that exact totals cannot overflow.

        Raises:
            RefusedError: the totals would not fit 128 bits.
        """
        if aggregate.argument is None:
            raise UsageError("SUM", "takes a column")
        expression = bind_number(aggregate.argument, self.schema, "SUM", self.aliases)
        shown = expression.name if isinstance(expression, Field) else alias
        span = _SPANS.get(expression.operator, "") if isinstance(expression, Operation) else ""
        per_group = fitted(per_group, expression.type.kind, span, f"bounds per group of {shown!r}")
        declared = self._declared(aggregate, expression, alias)[0]
        wide = _WIDE * max(abs(per_group.lower), abs(per_group.upper))
        thing = f"SUM of {shown!r}"
        grid = choose_grid(expression.type, declared or Bounds(-wide, wide), thing, per_group)
        ends = max(abs(per_group.lower), abs(per_group.upper)) / grid.step
        if WEIGHT * (ends + 1) * ROWS_CEILING >= TOTAL_CEILING:
            raise RefusedError(thing, "has bounds per group whose totals would not fit", hint="declare narrower ones")
        return expression, grid, per_group

    def bounds_of(self, aggregate: Aggregate, expression: Expression, alias: str) -> Bounds:
        """Declared bounds: beside the aggregate, else for the alias, else for the column, else the owner's."""
        found, name = self._declared(aggregate, expression, alias)
        if found is not None:
            return found
        kind = expression.type.kind
        function = aggregate_name(aggregate)
        of, pair = "0..100", "(0, 100)"
        if kind.is_temporal:
            of, pair = "2020-01-01..2024-12-31", "(DATE '2020-01-01', DATE '2024-12-31')"
        raise RefusedError(
            f"{function} of {name!r}",
            "needs declared bounds: without them one person's value could be anything, and no noise would hide it",
            hint=f"add --bounds {name}={of} (the range you know it has, not the data's own minimum and maximum), "
            f"or write {function}({'x, 0.95' if function == 'PERCENTILE_CONT' else 'x'}, "
            f"contribution_bounds_per_row => {pair})",
        )

    def _declared(self, aggregate: Aggregate, expression: Expression, alias: str) -> tuple[Bounds | None, str]:
        """The bounds of single values, if any are declared; and the name by which they are asked for."""
        self.owner.check_allowed(expression)
        argument = _unfiltered(aggregate.argument)
        if argument is not None and argument != aggregate.argument:
            expression = bind(argument, self.schema, self.aliases)
        names = [alias, *(name for name, node in self.derived if node == argument)]
        names += [written_name(alias)] if aggregate.function == "quantile" else []
        names += [expression.name] if isinstance(expression, Field) else []
        declared = [self.declared[name] for name in names if name in self.declared]
        asked = aggregate.bounds or (declared[0] if declared else None)
        name = names[-1]
        kind = expression.type.kind
        if asked is not None:
            unit = _SPANS.get(expression.operator, "") if isinstance(expression, Operation) else ""
            asked = fitted(asked, kind, unit, f"bounds of {name!r}")
        return self.owner.bounds(expression, asked), name


def _unfiltered(argument: Node | None) -> Node | None:
    """x of CASE WHEN c THEN x END, which is also what FILTER makes: the bounds of x are its bounds."""
    match argument:
        case Apply("case", (_, inner, Constant(None))):
            return inner
        case _:
            return argument


def aggregate_name(aggregate: Aggregate) -> str:
    """What an aggregate is called in SQL."""
    if aggregate.function == "quantile":
        return "MEDIAN" if aggregate.point == Fraction(1, 2) else "PERCENTILE_CONT"
    return {"count_if": "COUNTIF", "count_distinct": "COUNT"}.get(aggregate.function, aggregate.function.upper())
