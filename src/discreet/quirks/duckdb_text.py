"""Operators of text in DuckDB's words. What can be built is bounded by `binding_text`; nothing here can raise."""

from __future__ import annotations

from sqlglot import exp

from discreet.patterns import like_pieces
from discreet.row_operands import Operands, Rule
from discreet.statement_parts import BIGINT, call, cast, number, text

__all__ = ["TEXT_RULES"]


def _function(name: str) -> Rule:
    return lambda x: call(name, *x.all())


def _length(name: str) -> Rule:
    return lambda x: cast(call(name, *x.all()), BIGINT)


def _cut(x: Operands) -> exp.Expr:
    # By substring(), which knows texts of plain ASCII; left() counts every character.
    return call("substring", x(0), number(1), number(x.whole(1)))


def _substr(x: Operands) -> exp.Expr:
    return call("substring", x(0), number(x.whole(1)), number(x.whole(2)))


def _concat(x: Operands) -> exp.Expr:
    """By ||, which is NULL where a part is; DuckDB's concat() leaves a missing part out."""
    whole, *rest = x.all()
    for part in rest:
        whole = exp.DPipe(this=whole, expression=part)
    return exp.paren(whole)


def _like(x: Operands) -> exp.Expr:
    pattern = str(x.literal(1))
    if "\\" not in pattern:
        return exp.paren(exp.Like(this=x(0), expression=text(pattern)))
    # DuckDB's LIKE has no escape of its own; ESCAPE raises on a bad pattern, and `patterns` has seen that it is good.
    like = exp.Like(this=x(0), expression=text(pattern))
    return exp.paren(exp.Escape(this=like, expression=text("\\")))


def _ilike(x: Operands) -> exp.Expr:
    """As a regular expression over the whole text, letters by simple case folding: linear, whatever the pattern."""
    parts = [
        ".*" if wild and sign == "%" else "." if wild else _quoted(sign)
        for sign, wild in like_pieces(str(x.literal(1)))
    ]
    return call("regexp_full_match", x(0), text("(?is)" + "".join(parts)))


def _quoted(sign: str) -> str:
    """One character as a regular expression."""
    return sign if sign.isalnum() or sign == "_" or ord(sign) > 127 else f"\\x{{{ord(sign):x}}}"


def _regexp(x: Operands) -> exp.Expr:
    return call("regexp_matches", x(0), text(str(x.literal(1))))


TEXT_RULES: dict[str, Rule] = {
    "like": _like,
    "ilike": _ilike,
    "regexp_contains": _regexp,
    "starts_with": _function("starts_with"),
    "ends_with": _function("suffix"),
    "lower": _function("lower"),
    "upper": _function("upper"),
    "trim": _function("trim"),
    "ltrim": _function("ltrim"),
    "rtrim": _function("rtrim"),
    "substr": _substr,
    "left": _cut,
    "right": lambda x: call("right", x(0), number(x.whole(1))),
    "cut": _cut,
    "concat": _concat,
    "replace": _function("replace"),
    "split_part": lambda x: call("split_part", x(0), x(1), number(x.whole(2))),
    "length": _length("length"),
    "byte_length": _length("strlen"),
    "strpos": _length("instr"),
}
