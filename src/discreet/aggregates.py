"""From one aggregate to the measurements that it needs, and to how its answer is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from discreet.binding import bind, bind_condition, bind_groupable
from discreet.bounds import bounds_text
from discreet.errors import RefusedError, UsageError
from discreet.exact import decimal_text
from discreet.expressions import Expression, Field
from discreet.grid import ROWS_CEILING, Grid
from discreet.measurements import Measurements, aggregate_name
from discreet.plan import PlannedOutput
from discreet.query import Aggregate, Bounds
from discreet.schema import Kind
from discreet.time_values import quantity_text

__all__ = ["Summand", "centred_arguments", "plan_aggregate"]

Summand: TypeAlias = tuple[Expression, Grid]

_WIDEST_SPREAD = Fraction(10) ** 100
"""Squares are then at most 10^200; times 2^63 rows of one unit, over an epsilon of 10^-12, still below 10^308."""

_SPREADS = ("var_samp", "var_pop", "stddev_samp", "stddev_pop")


def centred_arguments(asked: Iterable[tuple[str, Aggregate]], builder: Measurements) -> frozenset[Summand]:
    """The arguments, with their grids, whose sum around the centre of the bounds some aggregate needs.

    A plain sum of the same argument is then derived from it and the count, and costs nothing more.

    Args:
        asked: names and aggregates of the whole query.
        builder: knows schema and bounds.
    """
    functions = {"avg", *_SPREADS}
    asked = ((name, node) for name, node in asked if node.per_group is None)
    return frozenset(builder.summand(node, name) for name, node in asked if node.function in functions)


def plan_aggregate(name: str, node: Aggregate, builder: Measurements, centred: frozenset[Summand]) -> PlannedOutput:
    """One aggregate as a planned output; what it needs is added to the builder's measurements.

    Args:
        name: of the output.
        node: the aggregate.
        builder: collects the measurements.
        centred: of the whole query, by `centred_arguments`.

    Raises:
        UsageError, RefusedError: the aggregate as it stands is not answered.
    """
    if node.per_group is not None:
        return _group_total(name, node, node.per_group, builder)
    if node.function in ("sum", "avg", *_SPREADS):
        return _moment(name, node, builder, centred)
    if node.function == "quantile":
        return _quantile(name, node, builder)
    return _count(name, node, builder)


def _quantile(name: str, node: Aggregate, builder: Measurements) -> PlannedOutput:
    expression, bins = builder.binned(node, name)
    shown = expression.name if isinstance(expression, Field) else "expression"
    bounds, point = bins.grid.bounds, node.point
    if point is None:
        raise AssertionError
    call = f"MEDIAN({shown})" if point == Fraction(1, 2) else f"PERCENTILE_CONT({shown}, {decimal_text(point)})"
    described = f"{call}, bounds {_span(expression, bounds)}"
    kind = _time_kind(expression)
    if bounds.lower == bounds.upper:
        count = builder.count(expression, node.share)
        return PlannedOutput(name, "constant", (count,), described, constant=bounds.lower, kind=kind)
    places = builder.bins(expression, bins, node.share)
    return PlannedOutput(name, "quantile", places, described, point=point, kind=kind)


def _span(expression: Expression, bounds: Bounds) -> str:
    kind = expression.type.kind
    return f"{quantity_text(bounds.lower, kind)}..{quantity_text(bounds.upper, kind)}"


def _time_kind(expression: Expression) -> Kind | None:
    return expression.type.kind if expression.type.kind.is_temporal else None


def _count(name: str, node: Aggregate, builder: Measurements) -> PlannedOutput:
    if node.argument is None:
        return PlannedOutput(name, "count", (builder.count(None, node.share),), "COUNT(*)", whole=True)
    if node.function == "count_if":
        condition = bind_condition(node.argument, builder.schema, builder.aliases, thing="COUNTIF")
        shown = condition.name if isinstance(condition, Field) else "condition"
        place = builder.count_if(condition, node.share)
        return PlannedOutput(name, "count", (place,), f"COUNTIF({shown})", whole=True)
    if node.function == "count":
        expression = bind(node.argument, builder.schema, builder.aliases)
        shown = expression.name if isinstance(expression, Field) else "expression"
        place = builder.count(expression, node.share)
        return PlannedOutput(name, "count", (place,), f"COUNT({shown})", whole=True)
    expression = bind_groupable(node.argument, builder.schema, "COUNT(DISTINCT ...)", builder.aliases)
    shown = expression.name if isinstance(expression, Field) else "expression"
    if builder.unit.expressions == (expression,):
        place = builder.unit_count(node.share)
        return PlannedOutput(name, "unit_count", (place,), f"COUNT(DISTINCT {shown})", whole=True)
    place = builder.distinct_count(expression, node.share)
    return PlannedOutput(name, "count", (place,), f"COUNT(DISTINCT {shown})", whole=True)


def _group_total(name: str, node: Aggregate, per_group: Bounds, builder: Measurements) -> PlannedOutput:
    """SUM or COUNT of what each unit contributes to a group, clamped."""
    function = aggregate_name(node)
    if builder.unit.row_level:
        rule = "has no bounds per group at row level, where each row is a unit of its own"
        hint = "" if node.function != "sum" else "write contribution_bounds_per_row"
        raise RefusedError(function, rule, hint=hint or "leave them out")
    if node.function == "sum":
        expression, grid, bounds = builder.group_summand(node, per_group, name)
        shown = expression.name if isinstance(expression, Field) else "expression"
        low, high = (end.numerator // end.denominator for end in (bounds.lower / grid.step, bounds.upper / grid.step))
        if low == high == 0:
            raise RefusedError(f"SUM of {shown!r}", "is always 0 between these bounds", hint="declare wider bounds")
        place = builder.group_total("group_sum", expression, grid, (low, high), node.share)
        whole = expression.type.kind is Kind.INTEGER and grid.step.denominator == 1
        described = f"SUM({shown}), bounds per group {_span(expression, bounds)}"
        return PlannedOutput(name, "sum", (place,), described, whole)
    ends = _count_ends(per_group, function)
    condition: Expression | None = None
    call = "COUNT(*)"
    if node.argument is not None:
        argument = node.argument
        if node.function == "count_if":
            condition = bind_condition(argument, builder.schema, builder.aliases, thing="COUNTIF")
        else:
            condition = bind(argument, builder.schema, builder.aliases)
        fallback = "condition" if node.function == "count_if" else "expression"
        call = f"{function}({condition.name if isinstance(condition, Field) else fallback})"
    place = builder.group_total(f"group_{node.function}", condition, None, ends, node.share)
    return PlannedOutput(name, "count", (place,), f"{call}, bounds per group {ends[0]}..{ends[1]}", whole=True)


def _count_ends(bounds: Bounds, function: str) -> tuple[int, int]:
    whole = bounds.written == "number" and bounds.lower.denominator == bounds.upper.denominator == 1
    if not whole or bounds.lower < 0 or not 1 <= bounds.upper <= ROWS_CEILING:
        rule = f"of {function} must be whole numbers, the lower from 0 and the upper from 1 to {ROWS_CEILING}"
        raise UsageError("contribution_bounds_per_group", rule, "..".join(bounds_text(bounds)), "for example (0, 5)")
    return int(bounds.lower), int(bounds.upper)


def _moment(name: str, node: Aggregate, builder: Measurements, centred: frozenset[Summand]) -> PlannedOutput:
    expression, grid = builder.summand(node, name)
    function = aggregate_name(node)
    shown = expression.name if isinstance(expression, Field) else "expression"
    bounds = grid.bounds
    described = f"{function}({shown}), bounds {_span(expression, bounds)}"
    kind = _time_kind(expression)
    whole = expression.type.kind is Kind.INTEGER and grid.step.denominator == 1
    if node.function != "sum" and grid.width == 0:
        # Equal bounds: the mean is the bound and nothing varies, whatever the rows. The rows are counted, to have
        # a cost to name.
        count = builder.count(expression, node.share)
        constant = bounds.lower if node.function == "avg" else Fraction(0)
        return PlannedOutput(name, "constant", (count,), described, constant=constant, kind=kind)
    if grid.largest == 0:
        raise RefusedError(f"{function} of {shown!r}", "is always 0 between these bounds", hint="declare wider bounds")
    if grid.width > 0 and (expression, grid) in centred:
        sources = (builder.centred_sum(expression, grid, node.share), builder.count(expression, node.share))
        if node.function == "avg":
            return PlannedOutput(name, "mean", sources, described, kind=kind)
        if node.function in _SPREADS:
            if bounds.upper - bounds.lower > _WIDEST_SPREAD:
                rule = "has bounds whose squares, with their noise, are beyond what doubles hold"
                hint = "declare bounds that are at most 1e100 apart, or divide the values by a constant"
                raise RefusedError(f"{function} of {shown!r}", rule, hint=hint)
            squares = builder.centred_square(expression, grid, node.share)
            return PlannedOutput(name, node.function, (*sources, squares), described)
        return PlannedOutput(name, "sum_from_mean", sources, described, whole)
    return PlannedOutput(name, "sum", (builder.sum(expression, grid, node.share),), described, whole)
