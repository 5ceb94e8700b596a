"""CAST, which is always TRY_CAST: what each pair of types means, and which pairs are refused.

A value that has no counterpart in the target type becomes NULL. The table `MEANINGS` is the documentation too.
"""

from __future__ import annotations

from discreet.coercion import coerce, is_null, shown
from discreet.errors import UsageError
from discreet.expressions import Expression, Literal, Operation, as_read
from discreet.schema import HUGE, OTHER, Kind, Type, parse_type

__all__ = ["MEANINGS", "cast", "cast_target"]

_NUMBERS = (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)

MEANINGS: dict[tuple[Kind, Kind], str] = {
    (Kind.BOOLEAN, Kind.INTEGER): "true is 1, false is 0",
    (Kind.BOOLEAN, Kind.TEXT): "'true' or 'false'",
    (Kind.INTEGER, Kind.BOOLEAN): "0 is false, the rest is true",
    (Kind.INTEGER, Kind.INTEGER): "the same number; missing beyond the target's width",
    (Kind.INTEGER, Kind.DECIMAL): "the same number; missing if it has more digits than the target",
    (Kind.INTEGER, Kind.FLOAT): "the nearest double",
    (Kind.INTEGER, Kind.TEXT): "its decimal digits",
    (Kind.DECIMAL, Kind.INTEGER): "rounded to the nearest, halves away from zero",
    (Kind.DECIMAL, Kind.DECIMAL): "rounded to the nearest, halves away from zero; missing if it does not fit",
    (Kind.DECIMAL, Kind.FLOAT): "a nearest double",
    (Kind.DECIMAL, Kind.TEXT): "its digits, with all decimal places of the type",
    (Kind.FLOAT, Kind.INTEGER): "rounded to the nearest, halves away from zero; missing beyond the target and for "
    "infinities",
    (Kind.FLOAT, Kind.DECIMAL): "rounded to the nearest; missing if it does not fit",
    (Kind.TEXT, Kind.BOOLEAN): "'true' or 'false' in any case, blanks around; else missing",
    (Kind.TEXT, Kind.INTEGER): "a sign and up to 38 digits, blanks around; else missing",
    (Kind.TEXT, Kind.DECIMAL): "digits with a point, blanks around, rounded to the nearest, halves away from zero; "
    "else missing",
    (Kind.TEXT, Kind.FLOAT): "digits with a point and an exponent, blanks around; else missing; infinite if too large",
    (Kind.TEXT, Kind.DATE): "YYYY-MM-DD, blanks around, with or without a time of day behind it; else missing",
    (Kind.TEXT, Kind.TIMESTAMP): "YYYY-MM-DD, then a blank or T and HH:MM[:SS[.ffffff]]; a zone makes it missing",
    (Kind.TEXT, Kind.TIMESTAMPTZ): "as TIMESTAMP, with Z, UTC or an offset such as +08:00; UTC if there is none",
    (Kind.DATE, Kind.TEXT): "YYYY-MM-DD",
    (Kind.DATE, Kind.TIMESTAMP): "its midnight",
    (Kind.DATE, Kind.TIMESTAMPTZ): "its midnight in UTC",
    (Kind.TIMESTAMP, Kind.TEXT): "YYYY-MM-DD HH:MM:SS[.ffffff], the fraction without zeros at its end",
    (Kind.TIMESTAMP, Kind.DATE): "its date",
    (Kind.TIMESTAMP, Kind.TIMESTAMPTZ): "the moment when UTC shows it",
    (Kind.TIMESTAMPTZ, Kind.TEXT): "as TIMESTAMP in UTC, with +00 behind it",
    (Kind.TIMESTAMPTZ, Kind.DATE): "its date in UTC",
    (Kind.TIMESTAMPTZ, Kind.TIMESTAMP): "what UTC shows",
}
"""What CAST does for a value of the first kind to the second. Pairs that are not here are refused."""

_HINTS: dict[tuple[Kind, Kind], str] = {
    (Kind.FLOAT, Kind.TEXT): "engines print doubles differently; write CAST(CAST(x AS DECIMAL(18, 3)) AS VARCHAR)",
    **dict.fromkeys(
        [(a, b) for a in _NUMBERS for b in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)],
        "seconds since 1970 become a time with TIMESTAMP_SECONDS(x)",
    ),
    **dict.fromkeys(
        [(a, b) for a in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ) for b in _NUMBERS],
        "write EXTRACT(YEAR FROM x), UNIX_SECONDS(x) or DATE_DIFF(x, DATE '1970-01-01', DAY)",
    ),
    **dict.fromkeys([(Kind.BOOLEAN, b) for b in (Kind.DECIMAL, Kind.FLOAT)], "write CASE WHEN x THEN 1.0 ELSE 0.0 END"),
    **dict.fromkeys([(a, Kind.BOOLEAN) for a in (Kind.DECIMAL, Kind.FLOAT)], "write x <> 0"),
}


def cast_target(text: str) -> Type:
    """The type that CAST names.

    Raises:
        UsageError: an unknown type; a decimal without its digits.
    """
    name = " ".join(text.upper().split())
    if name in ("DECIMAL", "NUMERIC", "BIGNUMERIC", "BIGDECIMAL"):
        raise UsageError("CAST", "needs a decimal's digits, in all and after the point", name, "DECIMAL(18, 2)")
    if name in ("STRING", "TEXT", "VARCHAR", "CHAR") or name.startswith(("VARCHAR(", "TEXT(", "STRING(", "CHAR(")):
        if "(" in name:
            raise UsageError("CAST", "takes a text type without a length", name, "LEFT(CAST(x AS VARCHAR), 10)")
        name = "VARCHAR"
    if name == "UUID" or name.startswith("ENUM"):
        raise UsageError("CAST", "does not make this type", name, "VARCHAR holds it as text")
    return parse_type(name, thing="CAST")


def cast(operands: list[Expression]) -> Expression:
    """CAST(x AS T): the second operand is the type's name as a literal.

    Raises:
        UsageError: the pair of types has no meaning, or a constant is not a value of the type.
    """
    subject, name = operands
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        raise UsageError("CAST", "needs a type")
    target = cast_target(name.value)
    source = subject.type
    if is_null(subject):
        return Literal(None, target)
    if isinstance(subject, Literal) and source.kind is Kind.TEXT and target.kind.is_temporal:
        return coerce(subject.value, target, f"a {target} in the query")
    if source == target:
        return subject
    pair = (source.kind, target.kind)
    if pair not in MEANINGS or source == OTHER:
        rule = f"cannot make {target.kind} from {source.kind}"
        raise UsageError(f"CAST of {shown(subject)}", rule, hint=_HINTS.get(pair, ""))
    name_of = "huge" if target == HUGE else str(target.kind)
    return Operation(f"to_{name_of}", (as_read(subject),), target)
