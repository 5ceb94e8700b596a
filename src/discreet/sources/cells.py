"""From a cell's text to a typed value, by an expression that no text can make raise.

The same expression is used when a source is registered and in every query, so a value that was seen at
registration is read in the same way later; a cell that does not parse is a missing value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.schema import Kind, Type
from discreet.sources.sql_text import literal

__all__ = ["ZONED", "CellRules", "finite", "present", "typed"]

ZONED = r"[ T]\d{1,2}:\d{2}.*(Z|z|UTC|[+-]\d{2}(:?\d{2})?)$"
"""Finds a time of day that says its zone."""

# Beyond these years date arithmetic may overflow, and Python cannot hold the value.
_FIRST, _LAST = "0001-01-01", "9999-12-31"


@dataclass(frozen=True)
class CellRules:
    """How the texts of one source are understood.

    `empty` says that an empty text is a missing value (true for delimited files, where nothing else could
    write one). The rest is as in `options.ReadOptions`.
    """

    empty: bool
    null_values: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    timezone: str | None = None

    def to_reader(self) -> dict[str, Any]:
        """As JSON values for a registration's reader; `from_reader` reads them back."""
        return {
            "empty": self.empty,
            "null_values": list(self.null_values),
            "decimal": self.decimal,
            "thousands": self.thousands,
            "timezone": self.timezone,
        }

    @staticmethod
    def from_reader(reader: Mapping[str, Any]) -> CellRules:
        """What `to_reader` made."""
        return CellRules(
            reader["empty"],
            tuple(reader["null_values"]),
            reader["decimal"],
            reader["thousands"],
            reader["timezone"],
        )


def present(text: str, rules: CellRules) -> str:
    """The expression `text`, NULL where it says "missing"."""
    if rules.empty:
        text = f"NULLIF({text}, '')"
    if rules.null_values:
        marks = ", ".join(literal(mark) for mark in rules.null_values)
        text = f"CASE WHEN {text} IN ({marks}) THEN NULL ELSE {text} END"
    return text


def number_text(text: str, rules: CellRules) -> str:
    """The expression `text` with its number rewritten as 1234.5."""
    if rules.thousands:
        text = f"REPLACE({text}, {literal(rules.thousands)}, '')"
    if rules.decimal != ".":
        text = f"REPLACE({text}, {literal(rules.decimal)}, '.')"
    return text


def typed(text: str, type_: Type, rules: CellRules) -> str:
    """An expression of type `type_` for the text expression `text` (already `present`)."""
    match type_.kind:
        case Kind.TEXT:
            return text
        case Kind.OTHER:
            return f"CAST(NULL AS {_engine_name(type_)})"
        case Kind.INTEGER | Kind.DECIMAL | Kind.FLOAT:
            return finite(f"TRY_CAST({number_text(text, rules)} AS {type_})", type_)
        case Kind.TIMESTAMPTZ if rules.timezone is not None:
            zone = literal(f" {rules.timezone}")
            trimmed = f"TRIM({text})"
            says_zone = f"REGEXP_MATCHES({trimmed}, {literal(ZONED)})"
            zoned = f"CASE WHEN {says_zone} THEN {trimmed} ELSE {trimmed} || {zone} END"
            return finite(f"TRY_CAST({zoned} AS TIMESTAMPTZ)", type_)
        case _:
            return finite(f"TRY_CAST(TRIM({text}) AS {type_})", type_)


def finite(value: str, type_: Type) -> str:
    """The typed expression `value` with what has no place in arithmetic made missing.

    NaN is missing; infinities stay, bounds clamp them. Dates and times outside the years 1 to 9999, the
    infinite ones among them, are missing.
    """
    match type_.kind:
        case Kind.FLOAT:
            return f"NULLIF({value}, CAST('nan' AS DOUBLE))"  # in DuckDB NaN equals NaN
        case Kind.DATE:
            return f"CASE WHEN {value} BETWEEN DATE '{_FIRST}' AND DATE '{_LAST}' THEN {value} END"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            zone = "+00" if type_.kind is Kind.TIMESTAMPTZ else ""
            first = f"CAST('{_FIRST} 00:00:00{zone}' AS {type_})"
            last = f"CAST('{_LAST} 23:59:59.999999{zone}' AS {type_})"
            return f"CASE WHEN {value} BETWEEN {first} AND {last} THEN {value} END"
        case _:
            return value


def _engine_name(type_: Type) -> str:
    # A column that cannot be asked about still has its place; it is always missing.
    return "VARCHAR" if type_.kind is Kind.OTHER else str(type_)
