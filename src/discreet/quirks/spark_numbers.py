"""Numbers and types in Spark SQL's words (ANSI mode, where overflow, invalid casts and divisions by 0 raise).

Whole numbers of 64 bits are BIGINT, wider ones DECIMAL(38, 0), which end at 10^38 and not at 2^127: what could lie
between is refused. Decimals keep their scale, as `allowPrecisionLoss` is off (`engines.spark_session`). Arithmetic of
doubles is IEEE 754's and never raises but for the division by 0.
"""

from __future__ import annotations

from sqlglot import exp

from discreet.quirks.spark_statements import quoted, refuse, said, to_text, type_name
from discreet.quirks.spark_words import BLANK, LONG_ZERO, double, fitting, let, within
from discreet.quirks.spelling import search, words
from discreet.row_operands import Operands, Rule
from discreet.schema import HUGE, Kind, Type

__all__ = ["NUMBER_RULES"]

_TRY = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}
_WIDTH = {"+": 37, "-": 37, "*": 19}
_INF = double(float("inf"))


def _arithmetic(sign: str) -> Rule:
    """Terms of 37 digits add up to 38 at most, and factors of 19 digits multiply to 38 at most."""

    def rule(x: Operands) -> exp.Expr:
        type_ = x.operation.type
        if type_.kind is Kind.FLOAT:
            return words(f"{said(x.raw(0))} {sign} {said(x.raw(1))}")
        left, right = (_limited(x, i, _WIDTH[sign]) if type_ == HUGE else said(x(i)) for i in (0, 1))
        value = f"{_TRY[sign]}({left}, {right})"
        return words(value if type_.kind is Kind.INTEGER and type_ != HUGE else fitting(value, type_))

    return rule


def _limited(x: Operands, i: int, digits: int) -> str:
    """A whole operand as a decimal; NULL where one of 128 bits has more digits."""
    return f"try_cast({said(x(i))} AS DECIMAL({max(digits, 19)}, 0))"


def _divide(x: Operands) -> exp.Expr:
    return words(f"try_divide({said(x.raw(0))}, {said(x.raw(1))})")


def _div(x: Operands) -> exp.Expr:
    """Towards zero. The least number by -1 is beyond 64 bits."""
    if x.operation.type == HUGE:
        raise refuse("DIV of whole numbers of 128 bits")

    def body(a: str, b: str) -> str:
        return (
            f"CASE WHEN {b} = 0 THEN NULL WHEN {b} = -1 THEN try_subtract({LONG_ZERO}, {a}) "
            f"WHEN {b} IS NOT NULL THEN {a} DIV {b} END"
        )

    return words(let([said(x(0)), said(x(1))], body))


def _modulo(x: Operands) -> exp.Expr:
    type_ = x.operation.type
    left, right = (f"CAST({said(x(i))} AS {type_name(type_)})" for i in (0, 1))
    return words(fitting(f"try_mod({left}, {right})", type_))


def _opposite(value: str, type_: Type) -> str:
    """The number with the other sign: of decimals, Spark's unary minus and abs() round to 34 digits."""
    return fitting(f"try_subtract({LONG_ZERO}, {value})", type_)


def _negate(x: Operands) -> exp.Expr:
    type_ = x.operation.type
    return words(f"-({said(x.raw(0))})" if type_.kind is Kind.FLOAT else _opposite(said(x(0)), type_))


def _absolute(x: Operands) -> exp.Expr:
    type_ = x.operation.type
    if type_.kind is Kind.FLOAT:
        return words(f"abs({said(x.raw(0))})")
    return words(let([said(x(0))], lambda v: f"CASE WHEN {v} < 0 THEN {_opposite(v, type_)} ELSE {v} END"))


def _whole(function: str) -> Rule:
    """FLOOR, CEIL and TRUNC, to 64 bits. A cast to BIGINT cuts the fraction off."""

    def rule(x: Operands) -> exp.Expr:
        kind = x.operation.operands[0].type.kind

        def said_(v: str) -> str:
            return v if function == "trunc" else f"{function}({v})"

        if kind is Kind.FLOAT:
            return words(let([said(x.raw(0))], lambda v: f"CASE WHEN {within(v)} THEN CAST({said_(v)} AS BIGINT) END"))
        if kind is Kind.DECIMAL:
            if function == "trunc":
                body = lambda v: f"try_cast(CASE WHEN {v} < 0 THEN ceil({v}) ELSE floor({v}) END AS BIGINT)"  # noqa: E731
                return words(let([said(x(0))], body))
            return words(f"try_cast({said_(said(x(0)))} AS BIGINT)")
        return words(f"try_cast({said(x(0))} AS BIGINT)")

    return rule


def _round_to(x: Operands) -> exp.Expr:
    type_, places = x.operation.type, x.whole(1)
    if type_.kind is Kind.DECIMAL:
        return words(fitting(said(x(0)), type_))
    if type_.kind is Kind.INTEGER:
        if places >= 0:
            return words(_limited(x, 0, 37) if type_ == HUGE else said(x(0)))
        if places < -37:
            return words(let([said(x(0))], lambda v: f"CASE WHEN {v} IS NOT NULL THEN {_zero(type_)} END"))
        return words(fitting(f"round({_limited(x, 0, 37)}, {places})", type_))
    scale = float(10 ** abs(places))
    largest = double(1.7976931348623157e308 / scale)
    if places >= 0:
        scaled = f"round({{v}} * {double(scale)}) / {double(scale)}"
        text = f"CASE WHEN abs({{v}}) > {largest} THEN {{v}} ELSE {scaled} END"
    else:
        back = f"round({{v}} / {double(scale)}) * {double(scale)}"
        text = (
            f"CASE WHEN abs({{v}}) >= {_INF} THEN {{v}} WHEN abs({{v}}) < {double(scale / 4)} THEN {double(0.0)} "
            f"WHEN abs({back}) >= {_INF} THEN {double(0.0)} ELSE {back} END"
        )
    return words(let([said(x.raw(0))], lambda v: text.format(v=v)))


def _zero(type_: Type) -> str:
    return f"CAST('0' AS {type_name(type_)})"


def _above(limit: str, form: str) -> Rule:
    """A function of what lies above 0 (or from 0 on); NULL below."""
    return lambda x: words(let([said(x.raw(0))], lambda v: f"CASE WHEN {v} {limit} 0 THEN {form.format(v)} END"))


def _log2(x: Operands) -> exp.Expr:
    """Exact for powers of two."""

    def rounded(v: str, y: str) -> str:
        exact = f"{v} < {_INF} AND {y} BETWEEN -1074 AND 1023 AND power({double(2.0)}, round({y})) = {v}"
        return f"CASE WHEN {exact} THEN round({y}) ELSE {y} END"

    def body(v: str) -> str:
        return f"CASE WHEN {v} > 0 THEN {let([v, f'ln({v}) / {double(0.6931471805599453)}'], rounded)} END"

    return words(let([said(x.raw(0))], body))


def _power(x: Operands) -> exp.Expr:
    """x ^ y; NULL for 0 to a negative power and for fractional powers of negative numbers.

    Of 1 and -1 to an infinite power Java makes NaN; C and IEEE 754 make it 1.
    """

    def body(a: str, b: str) -> str:
        return (
            f"CASE WHEN {a} = 0 AND {b} < 0 THEN NULL WHEN abs({a}) = 1 AND abs({b}) >= {_INF} THEN {double(1.0)} "
            f"WHEN NOT isnan(power({a}, {b})) THEN power({a}, {b}) END"
        )

    return words(let([said(x(0)), said(x(1))], body))


def _bin(x: Operands) -> exp.Expr:
    value, *rest = (said(operand) for operand in x.all())
    values, edges = rest[::2], rest[1::2]
    return words(let([value], lambda v: f"CASE WHEN {v} IS NULL THEN NULL ELSE {search(v, edges, values)} END"))


def _in(x: Operands) -> exp.Expr:
    """Of doubles, adding 0 makes -0 and 0 one: a long list is looked up by hash."""
    values = [said(operand) for operand in x.all()]
    if x.operation.operands[0].type.kind is Kind.FLOAT:
        values = [f"({value} + {double(0.0)})" for value in values]
    return words(f"{values[0]} IN ({', '.join(values[1:])})")


# --- types ------------------------------------------------------------------------------------------------------------

_WHOLE = quoted(f"\\A{BLANK}([+-]?+[0-9]{{1,38}}+){BLANK}\\z")
_BOOLEAN = quoted(f"\\A{BLANK}([Tt][Rr][Uu][Ee]|[Ff][Aa][Ll][Ss][Ee]){BLANK}\\z")
_DECIMAL = quoted(f"\\A{BLANK}([+-]?+)(?=\\.?+[0-9])0*+([0-9]{{0,38}}+)(?:\\.([0-9]{{0,40}}+)[0-9]*+)?+{BLANK}\\z")
_DOUBLE = quoted(f"\\A{BLANK}([+-]?+(?:[0-9]++(?:\\.[0-9]*+)?+|\\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+){BLANK}\\z")


def _matched(value: str, pattern: str, type_: str) -> str:
    """What does not match gives '', which is no value of any of these types."""
    return f"try_cast(regexp_extract({value}, {pattern}, 1) AS {type_})"


def _to_boolean(x: Operands) -> exp.Expr:
    value = said(x(0))
    if x.operation.operands[0].type.kind is Kind.TEXT:
        return words(_matched(value, _BOOLEAN, "BOOLEAN"))
    return words(f"{value} <> 0")


def _to_whole(x: Operands) -> exp.Expr:
    """To 64 or 128 bits: halves away from zero, as round() takes them."""
    source, type_ = x.operation.operands[0].type, x.operation.type
    name = type_name(type_)
    match source.kind:
        case Kind.FLOAT if type_ == HUGE:
            raise refuse("a whole number of 128 bits made from a double", "CAST(x AS BIGINT)")
        case Kind.FLOAT:
            return words(
                let([f"round({said(x.raw(0))})"], lambda v: f"CASE WHEN {within(v)} THEN CAST({v} AS BIGINT) END")
            )
        case Kind.TEXT:
            return words(_matched(said(x(0)), _WHOLE, name))
        case Kind.DECIMAL:
            return words(f"try_cast(round({said(x(0))}, 0) AS {name})")
        case Kind.BOOLEAN:
            return words(f"CAST({said(x(0))} AS {name})")
        case _:
            return words(f"try_cast({said(x(0))} AS {name})")


def _to_decimal(x: Operands) -> exp.Expr:
    source, type_ = x.operation.operands[0].type, x.operation.type
    match source.kind:
        case Kind.FLOAT:
            return words(_decimal_of_double(said(x.raw(0)), type_))
        case Kind.TEXT:
            return words(_decimal_of_text(said(x(0)), type_))
        case _:
            return words(fitting(said(x(0)), type_))


def _decimal_of_text(value: str, type_: Type) -> str:
    """Of the digits after the point the first 40 are enough to round to 38: the rest decides nothing, as halves go away
    from zero. More than 38 digits before it fit no type."""

    def body(v: str) -> str:
        digits = f"regexp_replace({v}, {_DECIMAL}, '$10$2.$30')"  # there are three groups: $10 is the first, and a 0
        return f"CASE WHEN {v} RLIKE {_DECIMAL} THEN {fitting(digits, type_)} END"

    return let([value], body)


def _decimal_of_double(value: str, type_: Type) -> str:
    """round(x * 10^scale) / 10^scale, computed in doubles, as DuckDB does."""
    if type_.precision > 18:
        raise refuse("a decimal of more than 18 digits made from a double", "CAST(x AS DECIMAL(18, 2))")
    scale, most = float(10**type_.scale), float(10**type_.precision)

    def sized(w: str) -> str:
        unit = f"CAST('{1 / 10**type_.scale:.{type_.scale}f}' AS DECIMAL({max(type_.scale, 1)}, {type_.scale}))"
        unscaled = f"CAST(CAST({w} AS BIGINT) AS DECIMAL(18, 0))"
        exact = f"{unscaled} * {unit}" if type_.scale else unscaled
        return f"CASE WHEN abs({w}) < {double(most)} THEN {fitting(exact, type_)} END"

    def body(v: str) -> str:
        whole = let([f"round({v} * {double(scale)})"], sized)
        return f"CASE WHEN abs({v}) < {double(most / scale)} THEN {whole} END"

    return let([value], body)


def _to_float(x: Operands) -> exp.Expr:
    source = x.operation.operands[0].type
    value = said(x(0))
    if source.kind is Kind.TEXT:
        return words(_matched(value, _DOUBLE, "DOUBLE"))
    if source.kind is Kind.DECIMAL:
        return words(_double_of_decimal(value, source))
    return words(_double_of_huge(value) if source == HUGE else f"CAST({value} AS DOUBLE)")


_2_64 = "CAST('18446744073709551616' AS DECIMAL(20, 0))"


def _double_of_huge(value: str) -> str:
    """Upper half * 2^64 + lower half, in doubles: DuckDB's rounding. The halves are those of the floor."""

    def halves(upper: str, lower: str) -> str:
        negative = f"-CAST(CAST('18446744073709551615' AS DECIMAL(20, 0)) - {lower} AS DOUBLE) - {double(1.0)}"
        other = f"CAST({lower} AS DOUBLE) + CAST({upper} AS DOUBLE) * {double(2.0**64)}"
        return f"CASE WHEN {upper} = -1 THEN {negative} ELSE {other} END"

    def body(v: str, rest: str) -> str:
        down = f"CASE WHEN {rest} < 0 THEN 1 ELSE 0 END"
        return let(
            [f"CAST({v} DIV {_2_64} - {down} AS BIGINT)", f"{rest} + {_2_64} * {down}"],
            halves,
        )

    def known(v: str) -> str:
        rest = f"CAST({v} % {_2_64} AS DECIMAL(20, 0))"
        return f"CASE WHEN {v} IS NOT NULL THEN {let([v, rest], body)} END"

    return let([f"CAST({value} AS DECIMAL(38, 0))"], known)


def _double_of_decimal(value: str, source: Type) -> str:
    """The unscaled number over 10^scale where a double holds it, else whole part and fraction apart: as DuckDB does.

    The unscaled number is the text without its point.
    """
    scale = double(float(10**source.scale))
    if source.scale == 0:
        return f"CAST({value} AS DOUBLE)" if source.precision <= 18 else _double_of_huge(value)

    def whole(v: str) -> str:
        return f"CAST({v} AS DOUBLE)" if source.precision <= 18 else _double_of_huge(v)

    def body(v: str, unscaled: str) -> str:
        power = f"CAST('{10**source.scale}' AS DECIMAL(38, 0))"
        fraction = f"CAST({unscaled} % {power} AS DECIMAL(38, 0))"
        integer = f"CASE WHEN {v} < 0 THEN ceil({v}) ELSE floor({v}) END"
        return (
            f"CASE WHEN {unscaled} BETWEEN -{2**53} AND {2**53} THEN CAST({unscaled} AS DOUBLE) / {scale} "
            f"ELSE {whole(f'({integer})')} + {whole(f'({fraction})')} / {scale} END"
        )

    digits = "CAST(replace(CAST({} AS STRING), '.', '') AS DECIMAL(38, 0))"
    return let([value], lambda v: let([v, digits.format(v)], body))


NUMBER_RULES: dict[str, Rule] = {
    "in": _in,
    "add": _arithmetic("+"),
    "subtract": _arithmetic("-"),
    "multiply": _arithmetic("*"),
    "divide": _divide,
    "div": _div,
    "modulo": _modulo,
    "negate": _negate,
    "abs": _absolute,
    "sign": lambda x: words(f"CAST(sign({said(x(0))}) AS BIGINT)"),
    "floor": _whole("floor"),
    "ceil": _whole("ceil"),
    "trunc": _whole("trunc"),
    "round": _to_whole,
    "round_to": _round_to,
    "exp": lambda x: words(f"exp({said(x.raw(0))})"),
    "ln": _above(">", "ln({})"),
    "log10": _above(">", "log10({})"),
    "log2": _log2,
    "sqrt": _above(">=", "sqrt({})"),
    "pow": _power,
    "bin": _bin,
    "to_boolean": _to_boolean,
    "to_integer": _to_whole,
    "to_huge": _to_whole,
    "to_decimal": _to_decimal,
    "to_float": _to_float,
    "to_text": lambda x: to_text(x(0), x.operation.operands[0].type),
}
