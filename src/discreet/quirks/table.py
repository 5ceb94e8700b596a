"""What an engine says differently: one value of `Quirks` an engine, and nothing about engines anywhere else above them.

Everything that a statement is made of goes through it: the operators of row expressions, the steps onto a grid, the
types, the few parts of statements that engines spell apart. `docs/engines.md` is the guide to writing one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlglot import exp

from discreet.errors import RefusedError
from discreet.expressions import Literal
from discreet.grid import Grid
from discreet.row_operands import Operands, Rule
from discreet.schema import Type

__all__ = ["Quirks", "unsupported"]


@dataclass(frozen=True)
class Quirks:
    """How one engine says what a plan needs. Every rule is total: no value of its operands' types makes it raise.

    Attributes:
        title: the engine's name, for people.
        dialect: sqlglot's name of its SQL.
        rules: of the operators in `expressions.Operation`, by name.
        families: of the operators whose name is a family, an underscore, and a part.
        literal: a constant, of exactly its type.
        known: a double where it is a number; NULL where it is NaN.
        floor_scaled: floor(x * factor) as 64 bits, of a clamped double; the factor is a power of two, and the result
            within 2^42. What is so small that the product is 0 is 0. Said to fit, or NULL where it would not.
        decimal_steps: floor(clamp(x) / 10^-places) as a whole number, of a decimal; see `rendering.on_grid`.
        days: a date as days since 1970-01-01, in 64 bits.
        microseconds: a time as microseconds since that midnight (UTC), in 64 bits.
        quotient: left / right of whole numbers, not negative / positive; in more than 64 bits if `wide`.
        to_text: a value that is no double as text, the same on every engine.
        md5: the MD5 of a text's UTF-8 bytes, as 32 hexadecimal digits.
        pair_hash: a hash of a key and several values, to choose by; see `relational_selection`.
        same: whether two values of a type are the same, NULL being the same as NULL.
        sql: a statement's text.
    """

    title: str
    dialect: str
    rules: Mapping[str, Rule]
    families: Mapping[str, Callable[[Operands, str], exp.Expr]]
    literal: Callable[[Literal], exp.Expr]
    known: Callable[[exp.Expr], exp.Expr]
    floor_scaled: Callable[[exp.Expr, float, bool], exp.Expr]
    decimal_steps: Callable[[exp.Expr, Type, Grid, bool], exp.Expr]
    days: Callable[[exp.Expr], exp.Expr]
    microseconds: Callable[[exp.Expr], exp.Expr]
    quotient: Callable[[exp.Expr, exp.Expr, bool], exp.Expr]
    to_text: Callable[[exp.Expr, Type], exp.Expr]
    md5: Callable[[exp.Expr], exp.Expr]
    pair_hash: Callable[[list[exp.Expr], list[Type], int], exp.Expr]
    same: Callable[[exp.Expr, exp.Expr, Type], exp.Expr]
    sql: Callable[[exp.Expr], str]


def unsupported(title: str, what: str, hint: str = "") -> RefusedError:
    """The refusal of what an engine cannot say for every row (R62): raised when the query is planned."""
    return RefusedError(
        what, f"is not supported on {title}: some row could make it fail, or mean another thing", hint=hint
    )
