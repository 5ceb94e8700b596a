"""From a query to its plan: the only place that decides sensitivities, scales and shares.

It sees the query, the stored schema and the request; it cannot see the data. A refusal here costs nothing.
"""

from __future__ import annotations

import dataclasses
from fractions import Fraction

from discreet.aggregates import centred_arguments, plan_aggregate
from discreet.binding import bind_condition, bind_groupable, resolved
from discreet.clauses import Clauses, aggregates_of, sort_of_kind
from discreet.errors import RefusedError, UsageError
from discreet.expressions import Expression, Field, Literal
from discreet.grouping import plan_groups
from discreet.joining import plan_joins
from discreet.measurements import Measurements
from discreet.plan import KeyColumn, Plan, PlannedOutput, Request, Unit
from discreet.privacy import PrivacyLoss, split
from discreet.query import Aggregate, Node, Output, Query, aggregates_in
from discreet.query_text import node_text
from discreet.schema import Registration, Schema
from discreet.selection import Selection, margin
from discreet.sql_expressions import default_name
from discreet.timezones import localized

__all__ = ["make_plan", "unit_of"]

LARGEST_SCALE = 2**110
"""Noise is drawn in 128-bit integers; above this scale a plan is refused."""


def make_plan(query: Query, registration: Registration, request: Request) -> Plan:
    """Decide everything about a query from public facts.

    Raises:
        UsageError: an unknown name, a wrong type, a limit or key that is not valid.
        RefusedError: the question cannot be answered privately as it stands.
    """
    aliases = ("data", query.relation)
    # The unit is bound to the private table alone, before anything is joined to it.
    unit = unit_of(request.unit, registration.schema)
    query, schema, joins = plan_joins(query, request.public, registration.schema, aliases)
    query = localized(query, request.timezone, schema, aliases)
    where = bind_condition(query.where, schema, aliases) if query.where is not None else None
    request.owner.check_allowed(where, *(ours for join in joins for ours, _ in join.on))
    groups = plan_groups(query, request, schema, aliases)
    rows, pairs = _limits(request, unit, groups.number)
    builder = Measurements(schema, unit, rows, pairs, groups.number, request, aliases)
    builder.derived = query.derived
    clauses = _clauses(query, groups.columns, builder)
    outputs = _outputs(query, groups.columns, clauses)
    having, order = clauses.having(query.having), clauses.order(query.order)
    # Choosing the groups takes one share more.
    of_selection = [Fraction(1)] if groups.chosen else []
    shares = split(request.epsilon, [*of_selection, *(share for _, share in builder.found.values())])
    selection = _selection(request, pairs, shares[0]) if groups.chosen else None
    shares = shares[len(of_selection) :]
    measurements = tuple(
        dataclasses.replace(m, epsilon=share) for (m, _), share in zip(builder.found.values(), shares, strict=True)
    )
    for scale in (*(m.scale for m in measurements), *((selection.scale,) if selection else ())):
        if scale > LARGEST_SCALE:
            raise RefusedError(
                "noise",
                "would be too large to be of any use",
                hint="raise epsilon, or lower the bounds and limits",
            )
    return Plan(
        registration=registration,
        unit=unit,
        max_contributions=rows,
        max_groups_contributed=pairs,
        where=where,
        keys=groups.columns,
        key_lists=groups.lists,
        measurements=measurements,
        outputs=outputs,
        # A delta is spent on choosing groups, and on nothing else.
        loss=PrivacyLoss(request.epsilon, request.delta if groups.chosen else Fraction(0)),
        text=query.text,
        joins=joins,
        timezone=request.timezone,
        selection=selection,
        having=having,
        order=order,
        limit=query.limit,
        offset=query.offset,
    )


def unit_of(nodes: tuple[Node, ...] | None, schema: Schema) -> Unit:
    """The privacy unit, bound to the registered columns; None: each row is its own unit.

    Raises:
        UsageError: an unknown column, a float, a column named twice.
    """
    if nodes is None:
        return Unit("one row", ())
    expressions = tuple(bind_groupable(node, schema, "privacy unit") for node in nodes)
    if len(set(expressions)) != len(expressions):
        raise UsageError("privacy unit", "names the same column twice")
    return Unit(", ".join(_unit_text(e) for e in expressions), expressions)


def _unit_text(expression: Expression) -> str:
    """Canonical wording, so that `actor` and `ACTOR` are one unit for the ledger."""
    if isinstance(expression, Field):
        plain = expression.name.replace("_", "").isalnum() and not expression.name[0].isdigit()
        return expression.name if plain else '"' + expression.name.replace('"', '""') + '"'
    if isinstance(expression, Literal):
        return repr(expression.value) if isinstance(expression.value, str) else str(expression.value)
    inner = ", ".join(_unit_text(o) for o in getattr(expression, "operands", ()))
    operator = str(getattr(expression, "operator", "")).removeprefix("to_").removeprefix("extract_")
    return f"{operator.upper()}({inner})"


def _selection(request: Request, limit: int, epsilon: Fraction) -> Selection:
    minimum = request.min_privacy_units_per_group or 1
    return Selection(limit, epsilon, request.delta, minimum, margin(epsilon, limit, request.delta))


def _limits(request: Request, unit: Unit, groups: int | None) -> tuple[int, int]:
    """C and G. At row level both are 1: a row stands in one group."""
    if unit.row_level:
        for name in ("max_contributions", "max_groups_contributed"):
            if (getattr(request, name) or 1) != 1:
                raise UsageError(name, "is always 1 at row level: each row is its own unit", getattr(request, name))
        return 1, 1
    if request.max_contributions is None:
        raise UsageError(
            "max_contributions",
            "is required with a privacy unit: it says how many rows one person may weigh, over all groups; the "
            "noise grows with it, and a person with more rows is scaled down to it",
            hint="for a log with usually under 20 rows a person: --max-contributions 20",
        )
    rows = request.max_contributions
    pairs = rows if request.max_groups_contributed is None else request.max_groups_contributed
    # More groups than there are cannot be touched: the smaller limit is the same promise with less noise.
    return rows, pairs if groups is None else min(pairs, groups)


def _clauses(query: Query, keys: tuple[KeyColumn, ...], builder: Measurements) -> Clauses:
    named = {output.node: output.name for output in query.outputs if isinstance(output.node, Aggregate)}
    asked = [(named.get(a, default_name(a)), a) for a in aggregates_of(query)]
    centred = centred_arguments(asked, builder)

    def statistic(aggregate: Aggregate) -> PlannedOutput:
        return plan_aggregate(named.get(aggregate, default_name(aggregate)), aggregate, builder, centred)

    grouped = [resolved(group.node, builder.schema, builder.aliases) for group in query.groups]

    def key_of(node: Node) -> int | None:
        node = resolved(node, builder.schema, builder.aliases)
        return grouped.index(node) if node in grouped else None

    return Clauses(key_of, [sort_of_kind(key.expression.type.kind) for key in keys], statistic, node_text)


def _outputs(query: Query, keys: tuple[KeyColumn, ...], clauses: Clauses) -> tuple[PlannedOutput, ...]:
    if not any(any(aggregates_in(output.node)) for output in query.outputs):
        raise RefusedError(
            "SELECT",
            "has no aggregate, and would show the private rows themselves",
            hint="ask for COUNT(*), SUM(x), AVG(x) or COUNT(DISTINCT unit)",
        )
    outputs = tuple(_one_output(output, keys, clauses) for output in query.outputs)
    _check_names(outputs)
    return outputs


def _check_names(outputs: tuple[PlannedOutput, ...]) -> None:
    """Refuse an output that is called as an end of another one's interval: in a row of the answer one of the two
    would be written over.

    Raises:
        UsageError: with the name that stands twice.
    """
    ends = {f"{o.name}_{end}": o.name for o in outputs if o.function != "key" for end in ("low", "high")}
    for output in outputs:
        if output.name in ends:
            rule = f"is the name of an end of the interval of {ends[output.name]!r}"
            raise UsageError("SELECT", f"output {output.name!r} {rule}", hint="choose another alias")


def _one_output(output: Output, keys: tuple[KeyColumn, ...], clauses: Clauses) -> PlannedOutput:
    node = output.node
    if isinstance(node, Aggregate):
        return dataclasses.replace(clauses.statistic(node), name=output.name)
    place = clauses.key_of(node)
    if place is not None:
        return PlannedOutput(output.name, "key", (place,), keys[place].name)
    return clauses.computed(output.name, node, f"output {output.name!r}")
