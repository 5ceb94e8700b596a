"""From one aggregate to the measurements that it needs, and to how its answer is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TypeAlias

from discreet.binding import bind, bind_condition, bind_groupable
from discreet.errors import RefusedError
from discreet.exact import decimal_text
from discreet.expressions import Expression, Field
from discreet.grid import Grid
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
