"""Writing rules as SQL text: operands in, text out, as one node that is written as it stands."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sqlglot import exp

from discreet.row_operands import Operands, Rule

__all__ = ["any_of", "conditions", "infix", "words"]

_ATOM = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:\.[A-Za-z_][A-Za-z_0-9]*)?|[A-Za-z_]+\([^()]*\)|\([^()]*\)")


def words(text: str) -> exp.Expr:
    """SQL text of one value, as a node. In parentheses, unless it is one name or one call."""
    return exp.Var(this=text if _ATOM.fullmatch(text) else f"({text})")


def infix(operator: str, said: Callable[[exp.Expr], str]) -> Rule:
    """left OPERATOR right."""
    return lambda x: words(f"{said(x(0))} {operator} {said(x(1))}")


def any_of(operator: str, said: Callable[[exp.Expr], str]) -> Rule:
    """All operands, with the operator between them."""
    return lambda x: words(f" {operator} ".join(said(operand) for operand in x.all()))


def conditions(said: Callable[[exp.Expr], str], different: str) -> dict[str, Rule]:
    """The operators that every engine spells alike; `different` joins two values that IS DISTINCT compares."""

    def case(x: Operands) -> exp.Expr:
        last = len(x) - 1
        pairs = ((x(i), x.raw(i + 1)) for i in range(0, last, 2))
        branches = " ".join(f"WHEN {said(condition)} THEN {said(value)}" for condition, value in pairs)
        return words(f"CASE {branches} ELSE {said(x.raw(last))} END")

    def extreme(function: str) -> Rule:
        def rule(x: Operands) -> exp.Expr:
            values = [said(operand) for operand in x.all()]
            known = " AND ".join(f"{value} IS NOT NULL" for value in values)
            return words(f"CASE WHEN {known} THEN {function}({', '.join(values)}) END")

        return rule

    def among(x: Operands) -> exp.Expr:
        value, *others = (said(operand) for operand in x.all())
        return words(f"{value} IN ({', '.join(others)})")

    return {
        "eq": infix("=", said),
        "ne": infix("<>", said),
        "lt": infix("<", said),
        "le": infix("<=", said),
        "gt": infix(">", said),
        "ge": infix(">=", said),
        "is_distinct": lambda x: words(different.format(a=said(x(0)), b=said(x(1)))),
        "and": any_of("AND", said),
        "or": any_of("OR", said),
        "not": lambda x: words(f"NOT {said(x(0))}"),
        "in": among,
        "is_null": lambda x: words(f"{said(x(0))} IS NULL"),
        "case": case,
        "coalesce": lambda x: words(f"COALESCE({', '.join(said(operand) for operand in x.all())})"),
        "nullif": lambda x: words(f"CASE WHEN {said(x(1))} = {said(x(2))} THEN NULL ELSE {said(x(0))} END"),
        "greatest": extreme("GREATEST"),
        "least": extreme("LEAST"),
        "concat": any_of("||", said),
    }


def search(value: str, edges: Sequence[str], values: Sequence[str]) -> str:
    """The value of the bin in which `value` lies, by halving; bin i begins at edge i, the first one has none.

    Args:
        value: a name.
        edges: of bins 1, 2, ...
        values: of bins 0, 1, ...
    """
    if not edges:
        return values[0]
    middle = (len(edges) + 1) // 2
    below = search(value, edges[: middle - 1], values[:middle])
    above = search(value, edges[middle:], values[middle:])
    return f"CASE WHEN {value} < {edges[middle - 1]} THEN {below} ELSE {above} END"
