"""The operands of an operation that is being rendered."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from discreet.expressions import Expression, Literal, Operation

__all__ = ["Operands", "Rule"]


class Operands:
    """An operation's operands, rendered once each; every call gives a fresh copy, as sqlglot's nodes have one parent.

    `x(i)` is operand i as every operator may see it; `x.raw(i)` may be NaN where `x(i)` is NULL.

    Args:
        operation: whose operands.
        clean, raw: render an expression the one way and the other.
    """

    def __init__(
        self, operation: Operation, clean: Callable[[Expression], exp.Expr], raw: Callable[[Expression], exp.Expr]
    ) -> None:
        self.operation = operation
        self._render = {"clean": clean, "raw": raw}
        self._known: dict[tuple[str, int], exp.Expr] = {}

    def __len__(self) -> int:
        return len(self.operation.operands)

    def __call__(self, i: int) -> exp.Expr:
        return self._copy("clean", i)

    def raw(self, i: int) -> exp.Expr:
        return self._copy("raw", i)

    def all(self) -> list[exp.Expr]:
        return [self(i) for i in range(len(self))]

    def literal(self, i: int) -> int | str:
        """The value of a literal operand."""
        operand = self.operation.operands[i]
        if isinstance(operand, Literal) and isinstance(operand.value, int | str):
            return operand.value
        raise AssertionError("an operand that is not literal")

    def whole(self, i: int) -> int:
        """The value of a literal whole number."""
        value = self.literal(i)
        if isinstance(value, int):
            return value
        raise AssertionError("an operand that is no whole number")

    def _copy(self, way: str, i: int) -> exp.Expr:
        if (way, i) not in self._known:
            self._known[way, i] = self._render[way](self.operation.operands[i])
        return self._known[way, i].copy()


Rule: TypeAlias = Callable[[Operands], exp.Expr]
