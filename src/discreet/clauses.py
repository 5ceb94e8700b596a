"""HAVING, ORDER BY and outputs that compute with aggregates: planned here, from public facts.

All of it is arithmetic on noisy values and public keys (`formulas`), after the noise. What is planned here is
which aggregates must be measured for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.errors import RefusedError, UsageError
from discreet.formulas import Fixed, Formula, Slot, Sort, call, fixed
from discreet.plan import Ordering, PlannedOutput
from discreet.query import Aggregate, Apply, Constant, Name, Node, OrderKey, Query, aggregates_in
from discreet.schema import Kind

__all__ = ["Clauses", "aggregates_of", "sort_of_kind"]

_SORTS = {
    Kind.BOOLEAN: Sort.BOOLEAN,
    Kind.INTEGER: Sort.WHOLE,
    Kind.DECIMAL: Sort.NUMBER,
    Kind.FLOAT: Sort.NUMBER,
    Kind.TEXT: Sort.TEXT,
    Kind.DATE: Sort.DATE,
    Kind.TIMESTAMP: Sort.TIMESTAMP,
    Kind.TIMESTAMPTZ: Sort.TIMESTAMPTZ,
}


def sort_of_kind(kind: Kind) -> Sort:
    """What values of a column's type are in a formula."""
    return _SORTS[kind]


def aggregates_of(query: Query) -> list[Aggregate]:
    """Every aggregate of a query, wherever it stands, in order."""
    nodes = [output.node for output in query.outputs]
    nodes += [query.having] if query.having is not None else []
    nodes += [key.node for key in query.order]
    return [aggregate for node in nodes for aggregate in aggregates_in(node)]


class Clauses:
    """Plans formulas.

    Args:
        key_of: the place of the grouping column that an expression is, or None.
        sorts: of the grouping columns' values.
        statistic: plans one aggregate.
        printed: an expression in the words of SQL.
    """

    def __init__(
        self,
        key_of: Callable[[Node], int | None],
        sorts: Sequence[Sort],
        statistic: Callable[[Aggregate], PlannedOutput],
        printed: Callable[[Node], str],
    ) -> None:
        self.key_of, self._sorts, self.statistic, self._printed = key_of, sorts, statistic, printed

    def computed(self, name: str, node: Node, thing: str) -> PlannedOutput:
        """An output that computes with aggregates and keys.

        Raises:
            RefusedError: a column that is neither in an aggregate nor a key; a function that is not available.
            UsageError: sorts that do not go together.
        """
        parts: list[PlannedOutput] = []
        formula = self._formula(node, parts, thing)
        sources = sorted({source for part in parts if part.function != "key" for source in part.sources})
        return PlannedOutput(
            name,
            "computed",
            tuple(sources),
            self._printed(node),
            whole=formula.sort is Sort.WHOLE,
            parts=tuple(parts),
            formula=formula,
        )

    def having(self, node: Node | None) -> PlannedOutput | None:
        """A condition on the groups."""
        if node is None:
            return None
        planned = self.computed("having", node, "HAVING")
        if planned.formula is None or planned.formula.sort not in (Sort.BOOLEAN, Sort.NULL):
            raise UsageError("HAVING", "must be a condition", hint="for example HAVING COUNT(*) > 100")
        return planned

    def order(self, keys: Sequence[OrderKey]) -> tuple[Ordering, ...]:
        """What the groups are sorted by."""
        return tuple(
            Ordering(self.computed("order", key.node, "ORDER BY"), key.descending, key.nulls_first) for key in keys
        )

    def _formula(self, node: Node, parts: list[PlannedOutput], thing: str) -> Formula:
        match node:
            case Constant(value):
                return fixed(value)
            case Aggregate():
                part = self.statistic(node)
                plain = Sort.WHOLE if part.whole else Sort.NUMBER
                return _slot(part, plain if part.kind is None else _SORTS[part.kind], parts)
        place = self.key_of(node)
        if place is not None:
            return _slot(PlannedOutput("key", "key", (place,), self._printed(node)), self._sorts[place], parts)
        if isinstance(node, Name):
            raise RefusedError(
                f"{thing}, column {str(node)!r}",
                "must stand inside an aggregate or in GROUP BY: alone it is one person's value",
                hint=f"use an aggregate such as AVG({node}), an output's alias, or GROUP BY {node}",
            )
        if not isinstance(node, Apply):
            raise AssertionError(node)
        return call(node.function, [self._formula(a, parts, thing) for a in node.arguments], thing)


def _slot(part: PlannedOutput, sort: Sort, parts: list[PlannedOutput]) -> Slot | Fixed:
    if part not in parts:
        parts.append(part)
    return Slot(parts.index(part), sort)
