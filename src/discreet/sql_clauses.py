"""The clauses after FROM that say how rows are grouped, and which groups are shown in which order."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from discreet.errors import RefusedError, UsageError
from discreet.query import Aggregate, Apply, Constant, GroupKey, Name, Node, OrderKey, Output, aggregates_in
from discreet.sql_expressions import convert, default_name

__all__ = ["read_groups", "read_having", "read_limit", "read_offset", "read_order"]

MOST_ROWS = 2**53


def read_groups(clause: Any, outputs: tuple[Output, ...]) -> tuple[GroupKey, ...]:
    """The grouping expressions: written out, by an output's alias or place, or ALL.

    Raises:
        UsageError: a place that is none, a key named twice.
        RefusedError: ROLLUP, CUBE, GROUPING SETS; an aggregate as a key.
    """
    if clause is None:
        return ()
    for name, value in clause.args.items():
        if value and name not in ("expressions", "all"):
            construct = name.upper().replace("_", " ")
            raise RefusedError(construct, _IN_SEVERAL_TOTALS, hint="ask for each grouping in a query of its own")
    plain = [output for output in outputs if not any(aggregates_in(output.node))]
    if clause.args.get("all"):
        return tuple(GroupKey(output.name, output.node) for output in plain)
    _refuse_rollup(clause.expressions)
    by_name = {output.name: output for output in plain}
    keys: list[GroupKey] = []
    for expression in clause.expressions:
        node = convert(expression)
        output: Output | None = None
        if isinstance(node, Constant):
            output = _at_place(node, outputs, "GROUP BY")
        elif isinstance(node, Name) and len(node.parts) == 1 and node.parts[0] in by_name:
            output = by_name[node.parts[0]]
        else:
            output = next((o for o in plain if o.node == node), None)
        key = GroupKey(output.name, output.node) if output else GroupKey(default_name(node), node)
        if isinstance(key.node, Aggregate) or any(aggregates_in(key.node)):
            raise RefusedError("GROUP BY", "an aggregate cannot be a group key", key.name)
        if key in keys:
            raise UsageError("GROUP BY", "names the same key twice", key.name)
        keys.append(key)
    return tuple(keys)


def _refuse_rollup(expressions: list[exp.Expr]) -> None:
    """ROLLUP and CUBE stand among the expressions, as calls or as nodes of their own."""
    for expression in expressions:
        name = expression.name.upper() if isinstance(expression, exp.Anonymous) else expression.key.upper()
        if name in ("ROLLUP", "CUBE", "GROUPINGSETS", "GROUPING SETS"):
            construct = name.replace("GSETS", "G SETS")
            raise RefusedError(construct, _IN_SEVERAL_TOTALS, hint="ask for each grouping in a query of its own")


_IN_SEVERAL_TOTALS = "one person would stand in every total as well as in its parts"


def _at_place(place: Constant, outputs: tuple[Output, ...], clause: str) -> Output:
    number = place.value
    if not isinstance(number, int) or isinstance(number, bool) or not 1 <= number <= len(outputs):
        raise UsageError(clause, f"a place must be from 1 to {len(outputs)}", str(number))
    return outputs[number - 1]


def read_having(clause: exp.Having | None, outputs: tuple[Output, ...]) -> Node | None:
    """HAVING: a condition on noisy values. An alias stands for the output that it names."""
    return None if clause is None else _without_aliases(convert(clause.this), outputs)


def read_order(clause: exp.Order | None, outputs: tuple[Output, ...]) -> tuple[OrderKey, ...]:
    """ORDER BY: expressions, aliases or places. Missing values are smallest unless NULLS FIRST or LAST is said.

    Raises:
        UsageError: a place that is none.
        RefusedError: ORDER BY ALL, COLLATE and the like.
    """
    if clause is None:
        return ()
    keys: list[OrderKey] = []
    for term in clause.expressions:
        known = isinstance(term, exp.Ordered) and not term.args.get("with_fill")
        if not known or isinstance(term.this, exp.Var | exp.Collate):
            raise RefusedError("ORDER BY", "takes outputs, keys and aggregates", hint="for example ORDER BY n DESC")
        node = convert(term.this)
        if isinstance(node, Constant):
            node = _at_place(node, outputs, "ORDER BY").node
        keys.append(
            OrderKey(
                _without_aliases(node, outputs),
                descending=bool(term.args.get("desc")),
                nulls_first=bool(term.args.get("nulls_first")),
            )
        )
    return tuple(keys)


def _without_aliases(node: Node, outputs: tuple[Output, ...]) -> Node:
    """The expression with each output's alias replaced by what the output is."""
    if isinstance(node, Name) and len(node.parts) == 1:
        named = [output.node for output in outputs if output.name == node.parts[0]]
        # Else by the only alias that differs in case alone, as columns are found.
        folded = [output.node for output in outputs if output.name.casefold() == node.parts[0].casefold()]
        return (named or (folded if len(folded) == 1 else [node]))[0]
    if isinstance(node, Apply):
        return Apply(node.function, tuple(_without_aliases(argument, outputs) for argument in node.arguments))
    return node


def read_limit(clause: Any) -> int | None:
    """LIMIT n, or FETCH FIRST n ROWS ONLY.

    Raises:
        UsageError: not a whole number that is written out.
    """
    if clause is None:
        return None
    options = clause.args.get("limit_options")
    if clause.args.get("expressions") or (options and (options.args.get("percent") or options.args.get("with_ties"))):
        raise RefusedError("LIMIT", "takes a number of groups only", hint="for example LIMIT 10")
    return _row_number(clause.args.get("count") if isinstance(clause, exp.Fetch) else clause.expression, "LIMIT")


def read_offset(clause: Any) -> int:
    """OFFSET n.

    Raises:
        UsageError: not a whole number that is written out.
    """
    if clause is None:
        return 0
    if clause.args.get("expressions"):
        raise RefusedError("OFFSET", "takes a number of groups only", hint="for example OFFSET 10")
    return _row_number(clause.expression, "OFFSET")


def _row_number(node: Any, clause: str) -> int:
    rule = "must be a whole number of at least 0, written out"
    if not isinstance(node, exp.Literal) or node.is_string:
        raise UsageError(clause, rule, None if node is None else node.sql()[:60])
    value = convert(node)
    number = value.value if isinstance(value, Constant) else None
    if not isinstance(number, int) or number > MOST_ROWS:
        raise UsageError(clause, rule, node.sql()[:60])
    return number
