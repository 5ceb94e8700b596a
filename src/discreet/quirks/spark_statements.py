"""The parts of statements in Spark SQL's words (ANSI mode): steps onto grids, exact sums, hashes, constants.

Under ANSI mode overflow raises, so nothing here may overflow. There are whole numbers of 64 bits and decimals of 38
digits and nothing between them: what would need more is refused when the query is planned.
"""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from discreet.errors import RefusedError
from discreet.expressions import Literal
from discreet.grid import Grid
from discreet.quirks.spelling import words
from discreet.quirks.table import unsupported
from discreet.schema import Kind, Type
from discreet.statement_parts import whole_ends

__all__ = [
    "TITLE",
    "days",
    "decimal_steps",
    "floor_scaled",
    "known",
    "literal",
    "md5",
    "microseconds",
    "quoted",
    "quotient",
    "refuse",
    "said",
    "same",
    "to_text",
    "type_name",
]

TITLE = "Spark"
_WIDEST = 38
_LIMB = 26


def refuse(what: str, hint: str = "") -> RefusedError:
    """The refusal of an operator."""
    return unsupported(TITLE, what, hint)


def quoted(text: str) -> str:
    """A text constant, in ASCII: its escapes are Spark's own."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped.replace(chr(0), chr(92) + 'u0000')}'"


def type_name(type_: Type) -> str:
    """A type's name. Spark's TIMESTAMP is an instant."""
    match type_.kind:
        case Kind.INTEGER:
            return "BIGINT" if type_.bits <= 64 else "DECIMAL(38, 0)"
        case Kind.DECIMAL:
            return f"DECIMAL({type_.precision}, {type_.scale})"
        case Kind.FLOAT:
            return "DOUBLE"
        case Kind.TEXT | Kind.OTHER:
            return "STRING"
        case Kind.TIMESTAMP:
            return "TIMESTAMP_NTZ"
        case Kind.TIMESTAMPTZ:
            return "TIMESTAMP"
        case _:
            return type_.kind.value.upper()


# --- texts of statements ----------------------------------------------------------------------------------------------


def said(x: exp.Expr) -> str:
    """The text of an operand, or of a whole statement."""
    return str(x.this) if isinstance(x, exp.Var) else x.transform(_spelled).sql(dialect="spark")


def _spelled(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.TryCast):
        raise AssertionError("TRY_CAST")
    if isinstance(node, exp.Sum):
        return _exact_sum(node)
    if isinstance(node, exp.Window) and node.args.get("order") is None:
        # Spark numbers rows only in some order; that of a constant is any.
        node.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Null(), nulls_first=True)]))
        return node
    if isinstance(node, exp.DataType) and node.is_type("INT128"):
        return exp.DataType.build("DECIMAL(38, 0)")
    return node


def _exact_sum(node: exp.Sum) -> exp.Expr:
    """A sum of whole numbers as DECIMAL(38, 0), which never overflows.

    A term of 64 bits is t = 2^52 a + 2^26 b + c with 0 <= b, c < 2^26 and |a| <= 2^11 (arithmetic shifts round
    down). Over at most 2^36 rows each limb's sum is at most 2^62. They are put together once a group: 2^48 and 2^52 as
    decimals of 20 and 16 digits give 37, and the whole total is below 2^126 < 10^38 (design, section 2, rule 9). Terms
    that are cast to 128 bits are decimals already.
    """
    term = node.this
    text = said(term)
    if any(cast.to.is_type("INT128") for cast in term.find_all(exp.Cast)):
        return exp.Var(this=f"SUM(CAST({text} AS DECIMAL(38, 0)))")
    whole = f"CAST({text} AS BIGINT)"
    mask = 2**_LIMB - 1

    def limb(part: str, factor: int) -> str:
        return f"CAST(SUM({part}) AS DECIMAL(20, 0)) * CAST('{factor}' AS DECIMAL({len(str(factor))}, 0))"

    top = limb(f"shiftright({whole}, {2 * _LIMB})", 2 ** (2 * _LIMB))
    middle = limb(f"shiftright({whole}, {_LIMB}) & {mask}", 2**_LIMB)
    low = f"CAST(SUM({whole} & {mask}) AS DECIMAL(20, 0))"
    return exp.Var(this=f"CAST({top} + {middle} + {low} AS DECIMAL(38, 0))")


# --- values -----------------------------------------------------------------------------------------------------------


def literal(constant: Literal) -> exp.Expr:
    """A constant, of exactly its type."""
    value, type_ = constant.value, constant.type
    if value is None:
        return words(f"CAST(NULL AS {type_name(type_)})")
    if isinstance(value, bool):
        return words("TRUE" if value else "FALSE")
    if isinstance(value, str):
        return exp.Var(this=quoted(value))
    if type_.kind is Kind.FLOAT and isinstance(value, int | Decimal):
        return exp.Var(this=f"CAST('{float(value)!r}' AS DOUBLE)")
    if isinstance(value, int | Decimal):
        written = f"{value:f}" if isinstance(value, Decimal) else str(value)
        return exp.Var(this=f"CAST('{written}' AS {type_name(type_)})")
    return exp.Var(this=f"CAST('{value.isoformat()}' AS {type_name(type_)})")


def known(x: exp.Expr) -> exp.Expr:
    """A double where it is a number; NULL where it is NaN."""
    return words(f"CASE WHEN NOT isnan({said(x)}) THEN {said(x)} END")


def floor_scaled(x: exp.Expr, factor: float, fits: bool) -> exp.Expr:
    """floor(x * factor); of doubles, floor() gives 64 bits."""
    return words(f"CAST(FLOOR({said(x)} * CAST('{factor!r}' AS DOUBLE)) AS BIGINT)")


def decimal_steps(x: exp.Expr, type_: Type, grid: Grid, wide: bool) -> exp.Expr:
    """floor(clamp(x) * 10^places), places being at least the type's scale.

    The ends stand as constants of the type itself, or are left out where it cannot reach them, so that nothing is
    rounded to be compared. The clamped value has few digits; the product's type is wide enough for all of them.
    """
    low, high = whole_ends(grid)
    reach = 10 ** (type_.precision - type_.scale)
    name, value = type_name(type_), said(x)
    branches = [
        f"WHEN {value} {sign} CAST('{end}' AS {name}) THEN CAST('{end}' AS {name})"
        for sign, end in (("<=", low), (">=", high))
        if abs(end) < reach
    ]
    clamped = f"CASE {' '.join(branches)} ELSE {value} END" if branches else value
    if grid.places == 0 and type_.scale == 0:
        return words(f"CAST({clamped} AS {'DECIMAL(38, 0)' if wide else 'BIGINT'})")
    digits = min(type_.precision - type_.scale, len(str(max(abs(low), abs(high))))) + type_.scale
    if wide or grid.places < type_.scale or digits + grid.places + 2 > _WIDEST:
        raise refuse(f"{type_} between such bounds", "narrower contribution bounds")
    factor = f"CAST('{10**grid.places}' AS DECIMAL({grid.places + 1}, 0))"
    return words(f"CAST(CAST({clamped} AS DECIMAL({digits}, {type_.scale})) * {factor} AS BIGINT)")


def days(x: exp.Expr) -> exp.Expr:
    """A date as days since 1970-01-01."""
    return words(f"CAST(unix_date({said(x)}) AS BIGINT)")


def microseconds(x: exp.Expr) -> exp.Expr:
    """A time as microseconds since 1970; the session's zone is UTC."""
    return words(f"unix_micros(CAST({said(x)} AS TIMESTAMP))")


def quotient(left: exp.Expr, right: exp.Expr, wide: bool) -> exp.Expr:
    """Whole division, which gives 64 bits."""
    if wide:
        raise refuse("a grid of more than 64 bits", "narrower contribution bounds, or fewer contributions")
    return words(f"({said(left)}) DIV ({said(right)})")


def to_text(x: exp.Expr, type_: Type) -> exp.Expr:
    """A value that is no double as text, as every engine gives it."""
    value = said(x)
    match type_.kind:
        case Kind.TEXT:
            return x
        case Kind.DECIMAL if type_.precision == type_.scale:
            return words(f"regexp_replace(CAST({value} AS STRING), '^(-?)0[.]', '$1.')")
        case Kind.TIMESTAMPTZ:
            return words(f"CAST({value} AS STRING) || '+00'")
        case _:
            return words(f"CAST({value} AS STRING)")


def md5(x: exp.Expr) -> exp.Expr:
    """Of the UTF-8 bytes."""
    return words(f"md5(CAST({said(x)} AS BINARY))")


def same(left: exp.Expr, right: exp.Expr, type_: Type) -> exp.Expr:
    """Equal, NULL being equal to NULL; Spark hashes by it."""
    return words(f"{said(left)} <=> {said(right)}")
