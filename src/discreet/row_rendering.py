"""Row expressions in an engine's words, as sqlglot expressions; total, as `expressions` promises.

What engines say differently stands in `quirks`. A double may be NaN between the operators of arithmetic, which all
pass it on: `x.raw(i)` is that, `x(i)` is the value that every other operator sees.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.expressions import Expression, Field, Literal
from discreet.quirks import DUCKDB, Quirks
from discreet.row_operands import Operands
from discreet.schema import FLOAT, Kind
from discreet.statement_parts import cast, column, engine_type

__all__ = ["render", "render_number"]


def render(expression: Expression, quirks: Quirks = DUCKDB) -> exp.Expr:
    """A row expression in the engine's words, of exactly its type; never NaN.

    Raises:
        RefusedError: the engine cannot say it so that no row can fail.
    """
    rows = _Rows(quirks)
    if isinstance(expression, Literal) and expression.type.kind is Kind.INTEGER:
        return cast(rows.raw(expression), engine_type(expression.type))
    return rows.clean(expression)


def render_number(expression: Expression, quirks: Quirks = DUCKDB) -> exp.Expr:
    """The same, but a double may be NaN: for what tells NaN from numbers itself (`rendering.on_grid`).

    Raises:
        RefusedError: as `render`.
    """
    return _Rows(quirks).raw(expression) if expression.type == FLOAT else render(expression, quirks)


class _Rows:
    def __init__(self, quirks: Quirks) -> None:
        self._quirks = quirks

    def clean(self, expression: Expression) -> exp.Expr:
        raw = self.raw(expression)
        return self._quirks.known(raw) if _may_be_nan(expression) else raw

    def raw(self, expression: Expression) -> exp.Expr:
        if isinstance(expression, Field):
            return column(f"c{expression.position}")
        if isinstance(expression, Literal):
            return self._quirks.literal(expression)
        name = expression.operator
        operands = Operands(expression, self.clean, self.raw)
        if name in self._quirks.rules:
            return self._quirks.rules[name](operands)
        family, _, part = name.partition("_")
        return self._quirks.families[family](operands, part)


_NAN_SOURCES = frozenset(("add", "subtract", "multiply", "divide"))
_NAN_PASSES = frozenset(("negate", "abs", "exp", "ln", "log10", "log2", "sqrt", "round_to"))


def _may_be_nan(expression: Expression) -> bool:
    if expression.type != FLOAT or isinstance(expression, Literal):
        return False
    if isinstance(expression, Field):
        return True  # sources leave NaN where it stands
    operator, operands = expression.operator, expression.operands
    if operator == "case":
        return any(_may_be_nan(value) for value in (*operands[1:-1:2], operands[-1]))
    return operator in _NAN_SOURCES or (operator in _NAN_PASSES and _may_be_nan(operands[0]))
