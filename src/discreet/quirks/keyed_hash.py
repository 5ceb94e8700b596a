"""A hash under a key, the same on every engine: which of a unit's own things are counted is chosen by it."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from discreet.quirks.table import Quirks
from discreet.schema import TEXT, Type
from discreet.statement_parts import case, cast, engine_type

__all__ = ["keyed_hash"]


def keyed_hash(values: Sequence[exp.Expr], types: Sequence[Type], hash_key: int, quirks: Quirks) -> exp.Expr:
    """md5 of a key and an encoding of the values as text, each with its length before it.

    For choosing among a unit's own things: the choice depends on these and on the key alone.
    """
    encoded: exp.Expr = exp.Literal.string(f"{hash_key:032x}")
    for value, type_ in zip(values, types, strict=True):
        as_text = quirks.to_text(value, type_)
        length = cast(exp.Length(this=as_text.copy()), engine_type(TEXT))
        marked = exp.DPipe(this=exp.DPipe(this=length, expression=exp.Literal.string(":")), expression=as_text)
        missing = exp.Is(this=value.copy(), expression=exp.Null())
        encoded = exp.DPipe(this=encoded, expression=case([(missing, exp.Literal.string("-"))], exp.paren(marked)))
    return quirks.md5(encoded)
