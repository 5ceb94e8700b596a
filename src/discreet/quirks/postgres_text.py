"""Operators of text in PostgreSQL's words.

Texts are compared byte by byte (collation "C", which `sources.postgres` gives every column), and letters change case by
tables of our own: what the server's locale would make of them is another thing on another server.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.patterns import like_pieces
from discreet.quirks.letters import FOLD, LOWER, UPPER, fold, mapping
from discreet.quirks.postgres_words import let, quoted, refuse, said
from discreet.quirks.spelling import words
from discreet.row_operands import Operands, Rule

__all__ = ["TEXT_RULES"]


def _function(name: str) -> Rule:
    return lambda x: words(f"{name}({', '.join(said(operand) for operand in x.all())})")


def _counted(name: str) -> Rule:
    return lambda x: words(f"CAST({name}({', '.join(said(operand) for operand in x.all())}) AS bigint)")


def _cased(value: str, name: str) -> str:
    """By a table; plain ASCII, which most texts are, by the function that knows no other letters."""
    quick = f'{"upper" if name == UPPER else "lower"}({{}} COLLATE "C")'
    letters = [quoted(text) for text in mapping(name)]

    def body(text: str) -> str:
        table = f"translate({text}, {letters[0]}, {letters[1]})"
        return f"CASE WHEN octet_length({text}) = char_length({text}) THEN {quick.format(text)} ELSE {table} END"

    return let([value], body)


def _like(x: Operands) -> exp.Expr:
    """PostgreSQL's LIKE gives up at the first % that finds nothing: it never goes back over it."""
    return words(f"{said(x(0))} LIKE {quoted(str(x.literal(1)))}")


def _ilike(x: Operands) -> exp.Expr:
    pattern = ""
    for sign, wild in like_pieces(str(x.literal(1))):
        pattern += sign if wild else "".join(f"\\{letter}" if letter in "\\%_" else letter for letter in fold(sign))
    return words(f"{_cased(said(x(0)), FOLD)} LIKE {quoted(pattern)}")


def _regexp(x: Operands) -> exp.Expr:
    raise refuse("REGEXP_CONTAINS", "write LIKE or ILIKE, which take % and _")


def _ends_with(x: Operands) -> exp.Expr:
    return words(let([said(x(0)), said(x(1))], lambda a, b: f"right({a}, char_length({b})) = {b}"))


def _cut(x: Operands) -> exp.Expr:
    return words(f"substr({said(x(0))}, 1, {x.whole(1)})")


TEXT_RULES: dict[str, Rule] = {
    "like": _like,
    "ilike": _ilike,
    "regexp_contains": _regexp,
    "starts_with": _function("starts_with"),
    "ends_with": _ends_with,
    "lower": lambda x: words(_cased(said(x(0)), LOWER)),
    "upper": lambda x: words(_cased(said(x(0)), UPPER)),
    "trim": _function("btrim"),
    "ltrim": _function("ltrim"),
    "rtrim": _function("rtrim"),
    "substr": lambda x: words(f"substr({said(x(0))}, {x.whole(1)}, {x.whole(2)})"),
    "left": _cut,
    "cut": _cut,
    "right": lambda x: words(f"right({said(x(0))}, {x.whole(1)})"),
    "replace": _function("replace"),
    "split_part": lambda x: words(f"split_part({said(x(0))}, {said(x(1))}, {x.whole(2)})"),
    "length": _counted("char_length"),
    "byte_length": _counted("octet_length"),
    "strpos": _counted("strpos"),
}
