"""Numbers at the boundary: from what a person wrote to an exact rational, or a refusal by name.

A float means the decimal that was typed: ``Fraction(repr(x))``, so that 0.1 is one tenth and ten of them
are 1. ``True``, NaN and infinities are never numbers here.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import SupportsIndex, TypeAlias

from discreet.errors import UsageError

__all__ = [
    "EPSILON_MAX",
    "EPSILON_STEP",
    "RationalLike",
    "ceil_log2",
    "decimal_text",
    "floor_log2",
    "parse_confidence",
    "parse_delta",
    "parse_epsilon",
    "parse_positive_integer",
    "parse_rational",
]

RationalLike: TypeAlias = int | float | str | Decimal | Fraction

EPSILON_STEP = Fraction(1, 10**12)
"""The smallest epsilon, and the grid on which every epsilon lies: the ledger's sums stay short and exact."""

EPSILON_MAX = Fraction(10**9)
"""The largest epsilon accepted. Far above anything private; large ones are of use for tests only."""

_LONGEST_NUMBER = 200  # characters; longer text is refused before it is converted
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)


def parse_rational(name: str, value: object, *, rule: str = "must be a finite number") -> Fraction:
    """What the caller wrote, as an exact rational.

    Args:
        name: the thing's name, for the error.
        value: an int, a float (taken as the decimal that was typed), a ``Decimal``, a ``Fraction``, a NumPy
            number, or decimal text.
        rule: what the error says must hold.

    Raises:
        UsageError: for booleans, NaN, infinities, other types and text that is not a decimal number.
    """
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        raise UsageError(name, f"{rule}; true and false are not numbers", value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise UsageError(name, rule, str(value))
        return parse_rational(name, str(value), rule=rule)
    if isinstance(value, int | SupportsIndex):  # in this order: a protocol takes long to ask
        return Fraction(value.__index__())
    if isinstance(value, float):
        return parse_rational(name, repr(float(value)), rule=rule)
    if hasattr(value, "dtype") and getattr(value, "shape", None) == ():
        # A NumPy scalar that is neither an integer nor a double (float32): str gives its shortest decimal.
        return parse_rational(name, str(value), rule=rule)
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            raise UsageError(name, rule, value)
        return Fraction(text)
    raise UsageError(name, rule, value)


def parse_epsilon(value: object, *, name: str = "epsilon") -> Fraction:
    """An epsilon: above 0, at most 10^9, at most 12 decimal places.

    Raises:
        UsageError: naming the allowed range, for everything else (NaN, infinities, 0, negatives, booleans).
    """
    rule = "must be a number from 0.000000000001 to 1000000000 with at most 12 decimal places"
    epsilon = parse_rational(name, value, rule=rule)
    if not EPSILON_STEP <= epsilon <= EPSILON_MAX or (epsilon / EPSILON_STEP).denominator != 1:
        raise UsageError(name, rule, value)
    return epsilon


def parse_delta(value: object, *, name: str = "delta") -> Fraction:
    """A delta: 0, or above 0 and below 1/100 (a delta above that promises nothing).

    Raises:
        UsageError: naming the allowed range.
    """
    rule = "must be 0, or a number above 0 and below 0.01 with at most 30 decimal places (usual: 1e-6)"
    delta = parse_rational(name, value, rule=rule)
    if not 0 <= delta < Fraction(1, 100) or (delta * 10**30).denominator != 1:
        raise UsageError(name, rule, value)
    return delta


def parse_confidence(value: object, *, name: str = "confidence") -> Fraction:
    """A confidence level strictly between 0 and 1.

    Raises:
        UsageError: naming the allowed range.
    """
    rule = "must be a number above 0 and below 1, such as 0.95"
    confidence = parse_rational(name, value, rule=rule)
    if not 0 < confidence < 1:
        raise UsageError(name, rule, value)
    return confidence


def parse_positive_integer(name: str, value: object, *, most: int = 2**53) -> int:
    """A whole number from 1 to `most`.

    Raises:
        UsageError: naming the allowed range.
    """
    rule = f"must be a whole number from 1 to {most}"
    number = parse_rational(name, value, rule=rule)
    if number.denominator != 1 or not 1 <= number <= most:
        raise UsageError(name, rule, value)
    return int(number)


def floor_log2(x: Fraction) -> int:
    """The largest integer e with 2^e <= x, exactly, for x > 0."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    # 2^(e-1) < x < 2^(e+1): one comparison decides.
    return e if Fraction(2) ** e <= x else e - 1


def ceil_log2(x: Fraction) -> int:
    """The smallest integer e with x <= 2^e, exactly, for x > 0."""
    e = floor_log2(x)
    return e if Fraction(2) ** e == x else e + 1


def decimal_text(x: Fraction, *, digits: int = 12) -> str:
    """A rational as plain decimal text: exact if it has at most `digits` decimal places, else about `digits`
    significant digits after a leading "~"."""
    scaled = x * 10**digits
    if scaled.denominator == 1:
        whole, part = divmod(abs(int(scaled)), 10**digits)
        text = f"{whole}.{part:0{digits}d}".rstrip("0").rstrip(".")
        return ("-" if x < 0 else "") + text
    return f"~{float(x):.6g}"
