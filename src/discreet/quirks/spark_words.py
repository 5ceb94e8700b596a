"""The small words of Spark's rules: values computed once, constants, what a text must be to be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from hashlib import blake2b

from discreet.quirks.spark_statements import type_name
from discreet.schema import Type

__all__ = ["BLANK", "LONG_ZERO", "double", "fitting", "let", "within"]

_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*|CAST\('[^']*' AS [A-Z_]+(?:\([0-9, ]*\))?\)")

BLANK = "[ \\t\\n\\f\\r]*+"
"""Blanks around a number or a time, in Java's regular expressions. All repetitions there are possessive, so that the
matcher never goes back."""

LONG_ZERO = "CAST('0' AS BIGINT)"


def let(values: Sequence[str], body: Callable[..., str]) -> str:
    """A text in which each value stands often and is computed once: guards repeat what they guard.

    By lambdas over arrays of one value. They are called after their values, so that inside of one those around it keep
    their names.
    """
    names = [
        value if _NAME.fullmatch(value) else f"v{blake2b(f'{i} {value}'.encode(), digest_size=8).hexdigest()}"
        for i, value in enumerate(values)
    ]
    text = body(*names)
    for name, value in zip(reversed(names), reversed(values), strict=True):
        if name != value:
            text = f"element_at(transform(array({value}), {name} -> {text}), 1)"
    return text


def double(value: float) -> str:
    """A constant of type DOUBLE."""
    text = {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, repr(value))
    return f"CAST('{text}' AS DOUBLE)"


def within(value: str) -> str:
    """Whether a double, rounded to a whole number, is one of 64 bits: the cast takes 2^63 for 2^63 - 1."""
    return f"{value} >= {double(-(2.0**63))} AND {value} < {double(2.0**63)}"


def fitting(value: str, type_: Type) -> str:
    """A number as the result's type, halves away from zero; NULL beyond."""
    return f"try_cast({value} AS {type_name(type_)})"
