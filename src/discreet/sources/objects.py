"""Python objects in a data frame's column: one type for all of them, and each as text for the engine to
cast."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from discreet.errors import SourceError
from discreet.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    HUGE,
    INTEGER,
    OTHER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Type,
)

__all__ = ["column_texts", "column_type"]


def column_texts(values: Iterable[Any]) -> list[str | None]:
    """Each value as text that the engine can cast to the column's type; None for what has no such text."""
    return [_text(value) for value in values]


def column_type(values: Iterable[Any], thing: str) -> Type:
    """The type that all values fit. Different kinds together are text.

    Raises:
        SourceError: for times with and without a zone in one column.
    """
    kinds: set[str] = set()
    widest = 0
    decimals: list[Decimal] = []
    for raw in values:
        value = _plain(raw)
        kind = _kind(value)
        if kind:
            kinds.add(kind)
        if kind == "integer":
            widest = max(widest, value.bit_length() if value >= 0 else (~value).bit_length())
        elif kind == "decimal":
            decimals.append(value)
    if kinds == {"zoned", "bare"}:
        raise SourceError(thing, "holds times with a zone and times without one", hint="convert them first")
    if not kinds:
        return TEXT
    if kinds == {"other"}:
        return OTHER
    if kinds == {"integer"}:
        return INTEGER if widest < 64 else HUGE if widest < 126 else TEXT
    if kinds <= {"integer", "float"}:
        return FLOAT
    if kinds == {"decimal"}:
        return _decimal(decimals)
    simple = {"text": TEXT, "boolean": BOOLEAN, "date": DATE, "bare": TIMESTAMP, "zoned": TIMESTAMPTZ}
    return simple.get(next(iter(kinds)), TEXT) if len(kinds) == 1 else TEXT


def _plain(value: Any) -> Any:
    """A Python value for a NumPy one; None for pandas' marks of a missing value."""
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if type(value).__module__ == "numpy" and hasattr(value, "item"):
        value = value.item()
    return value


def _kind(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "" if math.isnan(value) else "float"
        case Decimal():
            return "decimal" if value.is_finite() else ""
        case str():
            return "text"
        case datetime.datetime():
            return "bare" if value.tzinfo is None else "zoned"
        case datetime.date():
            return "date"
    return "other"


def _text(raw: Any) -> str | None:
    value = _plain(raw)
    match _kind(value):
        case "" | "other":
            return None
        case "boolean":
            return "true" if value else "false"
        case "integer":
            return str(value) if abs(value) < 10**1000 else None
        case "decimal":
            return f"{value:f}" if abs(value.adjusted()) < 1000 else None
        case "float":
            return repr(value)
        case "bare" | "date":
            return str(value.isoformat())
        case "zoned":
            try:
                return str(value.astimezone(datetime.UTC).isoformat())
            except (OverflowError, ValueError):
                return None
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return None  # half of a surrogate pair: no text
    return str(value)


def _decimal(values: Sequence[Decimal]) -> Type:
    scale = max(max(0, -int(value.as_tuple().exponent)) for value in values)
    whole = max(max(1, value.adjusted() + 1) for value in values)
    if whole + scale > 38:
        return TEXT
    return Type(Kind.DECIMAL, precision=max(18, whole + scale), scale=scale)
