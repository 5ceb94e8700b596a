"""Operators of text in Spark SQL's words.

Texts are UTF-8, compared byte by byte (collation UTF8_BINARY), and counted in characters. Letters change case by tables
of our own: Java's functions know mappings to several letters and look at the letters around.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.patterns import like_pieces
from discreet.quirks.letters import FOLD, LOWER, UPPER, fold, mapping
from discreet.quirks.spark_statements import quoted, refuse, said
from discreet.quirks.spark_words import let
from discreet.quirks.spelling import words
from discreet.row_operands import Operands, Rule

__all__ = ["TEXT_RULES"]


def _function(name: str) -> Rule:
    return lambda x: words(f"{name}({', '.join(said(operand) for operand in x.all())})")


def _counted(name: str) -> Rule:
    return lambda x: words(f"CAST({name}({', '.join(said(operand) for operand in x.all())}) AS BIGINT)")


def _cased(value: str, name: str) -> str:
    """By a table; plain ASCII, which most texts are, by the function."""
    quick = "upper" if name == UPPER else "lower"
    before, after = (quoted(text) for text in mapping(name))

    def body(text: str) -> str:
        table = f"translate({text}, {before}, {after})"
        return f"CASE WHEN octet_length({text}) = length({text}) THEN {quick}({text}) ELSE {table} END"

    return let([value], body)


def _pattern(pieces: list[tuple[str, bool]]) -> str:
    """LIKE as a regular expression of Java's that never goes back over a %.

    Each part between two % is found at the first place where it stands, in a group that is not tried again: what
    follows a % can begin no later than there. The last part stands at the end. Time is the pattern's length times the
    text's.
    """
    parts = [""]
    for sign, wild in pieces:
        if wild and sign == "%":
            parts.append("")
        else:
            parts[-1] += "." if wild else f"\\x{{{ord(sign):x}}}"
    first, *others = parts
    if not others:
        return f"(?s)\\A{first}\\z"
    *inner, last = others
    found = "".join(f"(?>.*?{part})" for part in inner if part)
    return f"(?s)\\A{first}{found}{f'.*{last}' if last else '.*+'}\\z"


def _like(x: Operands) -> exp.Expr:
    return words(f"{said(x(0))} RLIKE {quoted(_pattern(like_pieces(str(x.literal(1)))))}")


def _ilike(x: Operands) -> exp.Expr:
    pieces: list[tuple[str, bool]] = []
    for sign, wild in like_pieces(str(x.literal(1))):
        pieces += [(sign, True)] if wild else [(letter, False) for letter in fold(sign)]
    return words(f"{_cased(said(x(0)), FOLD)} RLIKE {quoted(_pattern(pieces))}")


def _regexp(x: Operands) -> exp.Expr:
    raise refuse("REGEXP_CONTAINS", "write LIKE or ILIKE, which take % and _")


def _trim(side: str) -> Rule:
    return lambda x: words(f"trim({side} {said(x(1))} FROM {said(x(0))})")


def _cut(x: Operands) -> exp.Expr:
    return words(f"substring({said(x(0))}, 1, {x.whole(1)})")


TEXT_RULES: dict[str, Rule] = {
    "like": _like,
    "ilike": _ilike,
    "regexp_contains": _regexp,
    "starts_with": _function("startswith"),
    "ends_with": _function("endswith"),
    "lower": lambda x: words(_cased(said(x(0)), LOWER)),
    "upper": lambda x: words(_cased(said(x(0)), UPPER)),
    "trim": _trim("BOTH"),
    "ltrim": _trim("LEADING"),
    "rtrim": _trim("TRAILING"),
    "substr": lambda x: words(f"substring({said(x(0))}, {x.whole(1)}, {x.whole(2)})"),
    "left": _cut,
    "cut": _cut,
    "right": lambda x: words(f"right({said(x(0))}, {x.whole(1)})"),
    "replace": _function("replace"),
    "split_part": lambda x: words(f"split_part({said(x(0))}, {said(x(1))}, {x.whole(2)})"),
    "length": _counted("length"),
    "byte_length": _counted("octet_length"),
    "strpos": _counted("instr"),
}
