"""Arithmetic of doubles in PostgreSQL's words.

PostgreSQL raises where a result is beyond the largest double, or so small that it is 0 and nothing was 0. Each
operator first looks whether its operands are of a middling size, where neither can happen; else it is told from
operands that were scaled by powers of two, which is exact, what the result would be. So they give what binary64
arithmetic gives (IEEE 754: infinities, zeros, NaN), but for the sign of a zero and for products
within one part in 2^53 of 2^-1075.
"""

from __future__ import annotations

from discreet.quirks.postgres_words import double, let

__all__ = ["add", "away", "divide", "exponential", "log2", "multiply", "power", "round_to", "whole"]

_INF = double(float("inf"))
_HALF = double(0.5)
_LARGEST = 1.7976931348623157e308


def _size(x: str) -> str:
    return f"abs({x})"


def add(left: str, right: str, *, minus: bool = False) -> str:
    """left + right, or left - right.

    The sum of halves is half the sum, rounded alike, so it tells whether the sum rounds to 2^1024 or more. Halving is
    exact for what is not tiny, and beside a tiny number (below 1) the sum of the other cannot leave the doubles.
    """
    sign = "-" if minus else "+"

    def body(a: str, b: str) -> str:
        total, half = f"{a} {sign} {b}", f"{a} * {_HALF} {sign} {b} * {_HALF}"
        safe = f"{_size(a)} < {double(8e307)} AND {_size(b)} < {double(8e307)}"
        tiny = f"{_size(a)} < {double(1.0)} OR {_size(b)} < {double(1.0)}"
        infinite = f"{_size(a)} >= {_INF} OR {_size(b)} >= {_INF}"
        return (
            f"CASE WHEN {safe} THEN {total} WHEN {tiny} OR {infinite} THEN {total} "
            f"WHEN {half} >= {double(2.0**1023)} THEN {_INF} "
            f"WHEN {half} <= {double(-(2.0**1023))} THEN -{_INF} ELSE {total} END"
        )

    return let([left, right], body)


def _middling(a: str, b: str) -> str:
    low, high = double(1e-150), double(1e150)
    return f"{_size(a)} BETWEEN {low} AND {high} AND {_size(b)} BETWEEN {low} AND {high}"


def _signed_infinity(a: str, b: str) -> str:
    return f"CASE WHEN ({a} < 0) = ({b} < 0) THEN {_INF} ELSE -{_INF} END"


def multiply(left: str, right: str) -> str:
    """left * right."""

    def body(a: str, b: str) -> str:
        product = f"{a} * {b}"
        special = f"{a} = 0 OR {b} = 0 OR {_size(a)} >= {_INF} OR {_size(b)} >= {_INF}"
        # Both at least 1: of factors scaled by 2^-513 the product is within the doubles, and 2^-1026 of what it is.
        down = f"{_size(f'({a} * {double(2.0**-513)}) * ({b} * {double(2.0**-513)})')} >= {double(0.25)}"
        # Both below 1, and one of them tiny: scaled by 2^1075 the product is at least 2^-1073. Up to 1 it rounds to 0.
        small = f"{_size(a)} >= {double(2.0**-500)} AND {_size(b)} >= {double(2.0**-500)}"
        up = f"{_size(f'({a} * {double(2.0**538)}) * ({b} * {double(2.0**537)})')} <= {double(1.0)}"
        return (
            f"CASE WHEN {_middling(a, b)} THEN {product} WHEN {special} THEN {product} "
            f"WHEN {_size(a)} >= 1 AND {_size(b)} >= 1 THEN "
            f"CASE WHEN {down} THEN {_signed_infinity(a, b)} ELSE {product} END "
            f"WHEN {_size(a)} < 1 AND {_size(b)} < 1 THEN "
            f"CASE WHEN {small} THEN {product} WHEN {up} THEN {double(0.0)} ELSE {product} END "
            f"ELSE {product} END"
        )

    return let([left, right], body)


def divide(left: str, right: str) -> str:
    """left / right; NULL for a division by 0."""

    def body(a: str, b: str) -> str:
        quotient = f"{a} / {b}"
        special = f"{a} = 0 OR {_size(a)} >= {_INF} OR {_size(b)} >= {_INF}"
        # By 1 or more: only too small can it be. As not both are middling, the scaled quotient, 2^1074 times what it
        # is, lies between 2^-1024 and 2^576.
        up = f"{_size(f'({a} * {double(2.0**537)}) / ({b} * {double(2.0**-537)})')} <= {_HALF}"
        by_large = f"CASE WHEN {_size(a)} >= 1 THEN {quotient} WHEN {up} THEN {double(0.0)} ELSE {quotient} END"
        # By less than 1: only too large. Below 2^-50 a quotient is below 2^1024; 2^500 by 2^-530 is beyond.
        down = f"{_size(f'({a} * {double(2.0**-487)}) / ({b} * {double(2.0**537)})')} >= {double(1.0)}"
        beyond = f"{_size(a)} >= {double(2.0**500)} AND {_size(b)} <= {double(2.0**-530)}"
        by_small = (
            f"CASE WHEN {_size(a)} < {double(2.0**-50)} THEN {quotient} WHEN {beyond} THEN {_signed_infinity(a, b)} "
            f"WHEN {down} THEN {_signed_infinity(a, b)} ELSE {quotient} END"
        )
        return (
            f"CASE WHEN {b} = 0 THEN NULL WHEN {_middling(a, b)} THEN {quotient} WHEN {special} THEN {quotient} "
            f"WHEN {_size(b)} >= 1 THEN {by_large} ELSE {by_small} END"
        )

    return let([left, right], body)


def exponential(value: str) -> str:
    """exp(x); from 709.7827128933841 on it is beyond the doubles, to -745.1332191019412 it is 0."""
    return let(
        [value],
        lambda x: (
            f"CASE WHEN {x} >= {double(709.7827128933841)} THEN {_INF} "
            f"WHEN {x} <= {double(-745.1332191019412)} THEN {double(0.0)} ELSE exp({x}) END"
        ),
    )


def log2(value: str) -> str:
    """The logarithm to base 2 of what is above 0: exact for powers of two."""

    def body(x: str, y: str) -> str:
        exact = f"{x} < {_INF} AND {y} BETWEEN -1074 AND 1023 AND power({double(2.0)}, round({y})) = {x}"
        return f"CASE WHEN {exact} THEN round({y}) ELSE {y} END"

    return let([value], lambda x: let([x, f"ln({x}) / {double(0.6931471805599453)}"], body))


def power(base: str, exponent: str) -> str:
    """x ^ y; NULL for 0 to a negative power and for fractional powers of negative numbers.

    Beyond e^709.78271289 it is infinite, below e^-745.1332191 it is 0: told by y * ln |x|, whose error is far less.
    """

    def body(x: str, y: str) -> str:
        undefined = f"{x} IS NULL OR {y} IS NULL OR ({x} = 0 AND {y} < 0)"
        complex_ = f"{x} < 0 AND {y} <> floor({y})"
        of_infinity = f"CASE WHEN {x} > -{_INF} THEN NULL WHEN {y} > 0 THEN {_INF} ELSE {double(0.0)} END"
        plain = f"{x} = 0 OR {y} = 0 OR {_size(x)} = 1 OR {_size(x)} >= {_INF} OR {_size(y)} >= {_INF}"
        odd = f"{x} < 0 AND {y} * {_HALF} <> floor({y} * {_HALF})"
        grows = f"({_size(x)} > 1) = ({y} > 0)"
        far = (
            f"CASE WHEN {_size(y)} > {double(1e20)} THEN CASE WHEN {grows} THEN {double(1e9)} ELSE {double(-1e9)} END "
        )
        log = f"{far} ELSE {y} * ln({_size(x)}) END"

        def sized(e: str) -> str:
            infinite = f"CASE WHEN {odd} THEN -{_INF} ELSE {_INF} END"
            return (
                f"CASE WHEN {e} > {double(709.78271289)} THEN {infinite} "
                f"WHEN {e} < {double(-745.1332191)} THEN {double(0.0)} ELSE power({x}, {y}) END"
            )

        return (
            f"CASE WHEN {undefined} THEN NULL WHEN {complex_} THEN {of_infinity} WHEN {plain} THEN power({x}, {y}) "
            f"WHEN {_size(y)} < {double(1e-300)} THEN {double(1.0)} ELSE {let([log], sized)} END"
        )

    return let([base, exponent], body)


def away(value: str) -> str:
    """The nearest whole number, halves away from zero (round() takes them to even)."""
    return let(
        [value],
        lambda x: f"CASE WHEN abs({x} - trunc({x})) >= {_HALF} THEN trunc({x}) + sign({x}) ELSE trunc({x}) END",
    )


def round_to(value: str, places: int) -> str:
    """To so many decimal places, as DuckDB does it: scaled, rounded, scaled back."""
    scale = float(10 ** abs(places))
    if places >= 0:
        return let(
            [value],
            lambda x: (
                f"CASE WHEN {_size(x)} > {double(_LARGEST / scale)} THEN {x} "
                f"ELSE {away(f'{x} * {double(scale)}')} / {double(scale)} END"
            ),
        )

    def body(x: str) -> str:
        back = let(
            [away(f"{x} / {double(scale)}")],
            lambda m: (
                f"CASE WHEN {_size(m)} > {double(_LARGEST / scale * (1 - 1e-15))} THEN {double(0.0)} "
                f"ELSE {m} * {double(scale)} END"
            ),
        )
        small = f"{_size(x)} < {double(scale / 4)}"
        return f"CASE WHEN {small} THEN {double(0.0)} WHEN {_size(x)} >= {_INF} THEN {x} ELSE {back} END"

    return let([value], body)


def whole(value: str, *, wide: bool) -> str:
    """A whole double as a whole number of 64 bits, or of 128: NULL where it does not fit.

    The cast to numeric keeps 15 digits only; so it is taken apart by powers of two, which is exact.
    """
    if not wide:
        low, high = double(-(2.0**63)), double(2.0**63)
        return let([value], lambda x: f"CASE WHEN {x} >= {low} AND {x} < {high} THEN CAST({x} AS bigint) END")

    def part(x: str) -> str:
        return f"CAST(CAST({x} AS bigint) AS numeric)"

    def lower(x: str, high: str) -> str:
        rest = f"({x} - {high} * {double(2.0**64)})"
        middle = f"trunc({rest} / {double(2.0**32)})"
        low = f"({rest} - {middle} * {double(2.0**32)})"
        return f"{part(high)} * 18446744073709551616 + {part(middle)} * 4294967296 + {part(low)}"

    def body(x: str) -> str:
        number = let([x, f"trunc({x} / {double(2.0**64)})"], lower)
        return f"CASE WHEN {x} >= {double(-(2.0**127))} AND {x} < {double(2.0**127)} THEN {number} END"

    return let([value], body)
