"""Numbers and types in PostgreSQL's words.

Whole numbers of 64 bits are bigint, wider ones and decimals are numeric, which never overflows at these sizes: what
does not fit the result's type is NULL, decided before it is cast. There is no TRY_CAST: a text is matched whole against
an anchored pattern, and its parts are cast.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.quirks import postgres_doubles as doubles
from discreet.quirks.postgres_words import double, fitting, let, quoted, refuse, said, to_bigint, type_name
from discreet.quirks.spelling import search, words
from discreet.row_operands import Operands, Rule
from discreet.schema import HUGE, Kind, Type

__all__ = ["NUMBER_RULES", "double_of_numeric", "to_text"]

_TERM, _FACTOR, _WIDEST = 10**37, 10**19, 10**38


def _number(x: Operands, i: int, limit: int | None = None) -> str:
    """A whole operand as numeric; NULL where one of 128 bits goes beyond the limit."""
    value = said(x(i))
    if x.operation.operands[i].type != HUGE:
        return f"CAST({value} AS numeric)"
    return value if limit is None else let([value], lambda v: f"CASE WHEN abs({v}) < {limit} THEN {v} END")


def _back(value: str, type_: Type) -> str:
    return value if type_ == HUGE else to_bigint(value)


def _arithmetic(sign: str, limit: int) -> Rule:
    def rule(x: Operands) -> exp.Expr:
        type_ = x.operation.type
        if type_.kind is Kind.INTEGER:
            return words(_back(f"{_number(x, 0, limit)} {sign} {_number(x, 1, limit)}", type_))
        if type_.kind is Kind.DECIMAL:
            return words(fitting(f"{said(x(0))} {sign} {said(x(1))}", type_))
        left, right = said(x.raw(0)), said(x.raw(1))
        if sign == "*":
            return words(doubles.multiply(left, right))
        return words(doubles.add(left, right, minus=sign == "-"))

    return rule


def _whole_division(*, remainder: bool) -> Rule:
    """DIV and MOD, towards zero; NULL by 0. By -1 the quotient may be beyond 64 bits."""

    def rule(x: Operands) -> exp.Expr:
        type_ = x.operation.type
        left, right = (_number(x, i, _WIDEST) for i in (0, 1))
        function = "mod" if remainder else "div"
        return words(
            let(
                [left, right],
                lambda a, b: f"CASE WHEN {b} = 0 THEN NULL ELSE {_back(f'{function}({a}, {b})', type_)} END",
            )
        )

    return rule


def _sized(form: str) -> Rule:
    """Unary minus and ABS: beyond 64 bits, and for what has 38 digits and more of 128 bits, NULL."""

    def rule(x: Operands) -> exp.Expr:
        type_ = x.operation.type
        if type_.kind is Kind.INTEGER:
            return words(_back(form.format(_number(x, 0, _WIDEST)), type_))
        return words(form.format(said(x.raw(0))))

    return rule


def _whole(function: str) -> Rule:
    """FLOOR, CEIL and TRUNC, to 64 bits."""

    def rule(x: Operands) -> exp.Expr:
        if x.operation.operands[0].type.kind is Kind.FLOAT:
            return words(doubles.whole(f"{function}({said(x.raw(0))})", wide=False))
        return words(to_bigint(f"{function}(CAST({said(x(0))} AS numeric))"))

    return rule


def _round_to(x: Operands) -> exp.Expr:
    type_, places = x.operation.type, x.whole(1)
    if type_.kind is Kind.INTEGER:
        return words(_back(f"trunc(round({_number(x, 0, _TERM)}, {places}))", type_))
    if type_.kind is Kind.DECIMAL:
        return words(fitting(said(x(0)), type_))
    return words(doubles.round_to(said(x.raw(0)), places))


def _above(limit: str, form: str) -> Rule:
    """A function of what lies above 0 (or from 0 on); NULL below."""
    return lambda x: words(let([said(x.raw(0))], lambda v: f"CASE WHEN {v} {limit} 0 THEN {form.format(v)} END"))


def _log2(x: Operands) -> exp.Expr:
    return words(let([said(x.raw(0))], lambda v: f"CASE WHEN {v} > 0 THEN {doubles.log2(v)} END"))


def _bin(x: Operands) -> exp.Expr:
    value, *rest = (said(operand) for operand in x.all())
    values, edges = rest[::2], rest[1::2]

    def body(v: str) -> str:
        return f"CASE WHEN {v} IS NULL THEN NULL ELSE {search(v, edges, values)} END"

    return words(let([value], body))


# --- types --------------------------------------------------------------------------------------------------------

BLANK = "[ \\t\\n\\f\\r]*"
_WHOLE = quoted(f"^{BLANK}([+-]?[0-9]{{1,38}}){BLANK}$")
_BOOLEAN = quoted(f"^{BLANK}([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]){BLANK}$")
_DECIMAL = quoted(f"^{BLANK}([+-]?)0*([0-9]{{0,38}})(?:\\.([0-9]*))?{BLANK}$")
_ANY_DECIMAL = quoted(f"^{BLANK}[+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+){BLANK}$")
_DOUBLE = quoted(f"^{BLANK}([+-]?(?:[0-9]+\\.?[0-9]*|\\.[0-9]+))(?:[eE]([+-]?)0*([0-9]+))?{BLANK}$")


def _to_boolean(x: Operands) -> exp.Expr:
    value = said(x(0))
    if x.operation.operands[0].type.kind is Kind.TEXT:
        return words(f"CAST(lower(substring({value} FROM {_BOOLEAN})) AS boolean)")
    return words(f"{value} <> 0")


def _to_whole(x: Operands) -> exp.Expr:
    """To 64 or 128 bits: halves away from zero."""
    source, type_ = x.operation.operands[0].type, x.operation.type
    match source.kind:
        case Kind.FLOAT:
            return words(doubles.whole(doubles.away(said(x.raw(0))), wide=type_ == HUGE))
        case Kind.BOOLEAN:
            value = let([said(x(0))], lambda v: f"CASE WHEN {v} THEN 1 WHEN NOT {v} THEN 0 END")
            return words(f"CAST({value} AS {type_name(type_)})")
        case Kind.TEXT:
            return words(_back(f"CAST(substring({said(x(0))} FROM {_WHOLE}) AS numeric)", type_))
        case Kind.DECIMAL:
            return words(_back(f"round({said(x(0))})", type_))
        case _:
            return words(_back(_number(x, 0), type_))


def _to_decimal(x: Operands) -> exp.Expr:
    source, type_ = x.operation.operands[0].type, x.operation.type
    match source.kind:
        case Kind.FLOAT:
            return words(_decimal_of_double(said(x.raw(0)), type_))
        case Kind.TEXT:
            return words(fitting(_decimal_of_text(said(x(0))), type_))
        case _:
            return words(fitting(f"CAST({said(x(0))} AS numeric)", type_))


def _decimal_of_text(value: str) -> str:
    """Of the digits after the point the first 40 are enough to round to 38: the rest decides nothing, as halves go away
    from zero. More than 38 digits before it fit no type."""

    def body(m: str) -> str:
        fraction = f"left(coalesce({m}[3], ''), 40)"
        return f"CAST({m}[1] || '0' || {m}[2] || '.' || {fraction} || '0' AS numeric)"

    return let(
        [value],
        lambda text: f"CASE WHEN {text} ~ {_ANY_DECIMAL} THEN {let([f'regexp_match({text}, {_DECIMAL})'], body)} END",
    )


def _decimal_of_double(value: str, type_: Type) -> str:
    """round(x * 10^scale) / 10^scale, computed in doubles, as DuckDB does."""
    if type_.precision > 18:
        raise refuse("a decimal of more than 18 digits made from a double", "CAST(x AS DECIMAL(18, 2))")
    scale, most = float(10**type_.scale), float(10**type_.precision)

    def body(v: str) -> str:
        whole = doubles.whole(doubles.away(f"{v} * {double(scale)}"), wide=False)
        unscaled = (
            f"CAST({whole} AS numeric) * 0.{'0' * (type_.scale - 1)}1" if type_.scale else f"CAST({whole} AS numeric)"
        )
        return f"CASE WHEN abs({v}) < {double(most / scale)} THEN {fitting(unscaled, type_)} END"

    return let([value], body)


def _to_float(x: Operands) -> exp.Expr:
    source = x.operation.operands[0].type
    value = said(x(0))
    if source.kind is Kind.TEXT:
        return words(_double_of_text(value))
    if source.kind is Kind.DECIMAL:
        return words(_double_of_decimal(value, source))
    return words(_double_of_huge(value) if source == HUGE else f"CAST({value} AS double precision)")


def _double_of_huge(value: str) -> str:
    """Upper half * 2^64 + lower half, in doubles: DuckDB's rounding."""

    def halves(v: str, upper: str) -> str:
        lower = f"({v} - {upper} * 18446744073709551616)"
        negative = f"-CAST(18446744073709551615 - {lower} AS double precision) - {double(1.0)}"
        other = f"CAST({lower} AS double precision) + CAST({upper} AS double precision) * {double(2.0**64)}"
        return f"CASE WHEN {upper} = -1 THEN {negative} ELSE {other} END"

    return let([value], lambda v: let([v, f"floor({v} / 18446744073709551616)"], halves))


def _double_of_decimal(value: str, source: Type) -> str:
    """The unscaled number over 10^scale where a double holds it, else whole part and fraction apart: as DuckDB does."""
    scale = double(float(10**source.scale))

    def whole(v: str) -> str:
        return f"CAST({v} AS double precision)" if source.precision <= 18 else _double_of_huge(v)

    def body(v: str) -> str:
        unscaled = f"({v} * {10**source.scale})"
        if source.scale == 0:
            return whole(v)
        parts = f"{whole(f'trunc({v})')} + {whole(f'trunc(mod({unscaled}, {10**source.scale}))')} / {scale}"
        return (
            f"CASE WHEN abs({unscaled}) <= 9007199254740992 THEN CAST({unscaled} AS double precision) / {scale} "
            f"ELSE {parts} END"
        )

    return let([value], body)


def _double_of_text(value: str) -> str:
    """A number that is written out, within what numeric reads: up to 1,000 characters and exponents of 4 digits. What
    is at least 2^1024 - 2^970 is infinite, and up to 2^-1075 it is 0: there the cast would raise."""
    largest = 2**1024 - 2**970

    def number(m: str) -> str:
        sign = f"CASE WHEN left({m}[1], 1) = '-' THEN -{double(float('inf'))} ELSE {double(float('inf'))} END"
        mantissa = f"CAST({m}[1] AS numeric)"
        exponent = f"CAST(coalesce({m}[2], '') || coalesce({m}[3], '0') AS integer)"

        def sized(x: str, e: str) -> str:
            text = f"{m}[1] || 'e' || coalesce({m}[2], '') || coalesce({m}[3], '0')"
            # The decimal exponent of the value: digits before the point, or zeros after it.
            exact = let(
                [f"abs({x}) * power(CAST(10 AS numeric), {e})"],
                lambda v: f"CASE WHEN {v} >= {largest} THEN {sign} ELSE CAST({text} AS double precision) END",
            )
            tiny = f"log(abs({x})) + {e} < -323.6"
            return (
                f"CASE WHEN {x} = 0 THEN {double(0.0)} WHEN log(abs({x})) + {e} > 309 THEN {sign} "
                f"WHEN {tiny} THEN {double(0.0)} WHEN {e} > 0 THEN {exact} "
                f"WHEN abs({x}) >= {largest} AND {e} = 0 THEN {sign} ELSE CAST({text} AS double precision) END"
            )

        huge = f"char_length(coalesce({m}[3], '')) > 5"
        far = f"CASE WHEN {mantissa} = 0 OR {m}[2] = '-' THEN {double(0.0)} ELSE {sign} END"
        return f"CASE WHEN {huge} THEN {far} ELSE {let([mantissa, exponent], sized)} END"

    return let(
        [f"regexp_match({value}, {_DOUBLE})"],
        lambda m: f"CASE WHEN char_length({m}[1]) <= 1000 THEN {number(m)} END",
    )


def double_of_numeric(name: str) -> str:
    """A numeric column, whatever it holds, as the nearest double: infinite from 2^1024 - 2^970 on, 0 up to 2^-1075."""
    infinity = double(float("inf"))
    return (
        f"(CASE WHEN {name} = 'NaN' THEN NULL WHEN {name} >= {2**1024 - 2**970} THEN {infinity} "
        f"WHEN {name} <= {-(2**1024) + 2**970} THEN -{infinity} WHEN abs({name}) <= 2.4703282292062328e-324 "
        f"THEN {double(0.0)} ELSE CAST({name} AS double precision) END)"
    )


def to_text(x: exp.Expr, type_: Type) -> exp.Expr:
    """A value as text: session settings make PostgreSQL's own casts what every engine gives."""
    value = said(x)
    match type_.kind:
        case Kind.TEXT:
            return x
        case Kind.BOOLEAN:
            return words(let([value], lambda v: f"CASE WHEN {v} THEN 'true' WHEN NOT {v} THEN 'false' END"))
        case Kind.DECIMAL if type_.precision == type_.scale:
            # Without the zero before the point.
            return words(f"replace(CAST({value} AS text), '0.', '.')" if type_.scale else f"CAST({value} AS text)")
        case _:
            return words(f"CAST({value} AS text)")


NUMBER_RULES: dict[str, Rule] = {
    "add": _arithmetic("+", _TERM),
    "subtract": _arithmetic("-", _TERM),
    "multiply": _arithmetic("*", _FACTOR),
    "divide": lambda x: words(doubles.divide(said(x.raw(0)), said(x.raw(1)))),
    "div": _whole_division(remainder=False),
    "modulo": _whole_division(remainder=True),
    "negate": _sized("-({})"),
    "abs": _sized("abs({})"),
    "sign": lambda x: words(f"CAST(sign({said(x(0))}) AS bigint)"),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "round": _to_whole,
    "round_to": _round_to,
    "exp": lambda x: words(doubles.exponential(said(x.raw(0)))),
    "ln": _above(">", "ln({})"),
    "log10": _above(">", "log({})"),
    "log2": _log2,
    "sqrt": _above(">=", "sqrt({})"),
    "pow": lambda x: words(doubles.power(said(x(0)), said(x(1)))),
    "bin": _bin,
    "to_boolean": _to_boolean,
    "to_integer": _to_whole,
    "to_huge": _to_whole,
    "to_decimal": _to_decimal,
    "to_float": _to_float,
    "to_text": lambda x: to_text(x(0), x.operation.operands[0].type),
}
