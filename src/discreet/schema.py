"""The types and names of a source, fixed once at registration and stored as the owner's disclosure.

Everything an analyst is told before the data is read (refusals, grids, types, estimates) comes from here,
never from the data at query time (design, section 2, rule 8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

from discreet.errors import UsageError

__all__ = ["Column", "Kind", "Registration", "Schema", "Type", "parse_type"]


class Kind(StrEnum):
    """The families of values that the dialect tells apart."""

    BOOLEAN = "boolean"
    INTEGER = "integer"
    DECIMAL = "decimal"
    FLOAT = "float"
    TEXT = "text"
    DATE = "date"
    TIMESTAMP = "timestamp"  # without a zone
    TIMESTAMPTZ = "timestamptz"  # an instant
    OTHER = "other"  # lists, structs, blobs, intervals, ...: may be present, cannot be asked about

    @property
    def is_number(self) -> bool:
        return self in (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT)

    @property
    def is_temporal(self) -> bool:
        return self in (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


@dataclass(frozen=True)
class Type:
    """A column's type.

    `bits` is the width of an INTEGER (64 or 128; smaller ones are widened) or FLOAT (64); `precision` and
    `scale` are those of a DECIMAL (digits in all, digits after the point).
    """

    kind: Kind
    bits: int = 0
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        """The name that `--types` takes, which is also the DuckDB name."""
        match self.kind:
            case Kind.INTEGER:
                return "BIGINT" if self.bits <= 64 else "HUGEINT"
            case Kind.DECIMAL:
                return f"DECIMAL({self.precision},{self.scale})"
            case Kind.FLOAT:
                return "DOUBLE"
            case Kind.TEXT:
                return "VARCHAR"
            case _:
                return self.kind.name


BOOLEAN = Type(Kind.BOOLEAN)
INTEGER = Type(Kind.INTEGER, bits=64)
HUGE = Type(Kind.INTEGER, bits=128)
FLOAT = Type(Kind.FLOAT, bits=64)
TEXT = Type(Kind.TEXT)
DATE = Type(Kind.DATE)
TIMESTAMP = Type(Kind.TIMESTAMP)
TIMESTAMPTZ = Type(Kind.TIMESTAMPTZ)
OTHER = Type(Kind.OTHER)

_NAMES: dict[str, Type] = {
    **dict.fromkeys(("BOOLEAN", "BOOL"), BOOLEAN),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "INT8", "INT16", "INT32", "INT64", "LONG"), INTEGER
    ),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UINT8", "UINT16", "UINT32"), INTEGER),
    **dict.fromkeys(("HUGEINT", "UBIGINT", "UINT64", "INT128"), HUGE),
    **dict.fromkeys(("DOUBLE", "FLOAT", "REAL", "FLOAT8", "FLOAT4", "FLOAT32", "FLOAT64"), FLOAT),
    **dict.fromkeys(("VARCHAR", "TEXT", "STRING", "CHAR", "UUID", "ENUM"), TEXT),
    "DATE": DATE,
    **dict.fromkeys(
        ("TIMESTAMP", "DATETIME", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_US"), TIMESTAMP
    ),
    **dict.fromkeys(("TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), TIMESTAMPTZ),
}
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC)(?:\(\s*(\d{1,2})\s*(?:,\s*(\d{1,2})\s*)?\))?")


def parse_type(name: str, *, thing: str = "type") -> Type:
    """A type by the name a person or an engine gives it (`BIGINT`, `INT64`, `DECIMAL(12,2)`, `VARCHAR`, ...).

    Raises:
        UsageError: for an unknown name, with the known ones.
    """
    text = " ".join(name.upper().split())
    if text in _NAMES:
        return _NAMES[text]
    if match := _DECIMAL.fullmatch(text):
        precision, scale = int(match[1] or 18), int(match[2] or (0 if match[1] else 3))
        if 1 <= precision <= 38 and scale <= precision:
            return Type(Kind.DECIMAL, precision=precision, scale=scale)
    known = "BOOLEAN, BIGINT, HUGEINT, DOUBLE, DECIMAL(p,s), VARCHAR, DATE, TIMESTAMP, TIMESTAMPTZ"
    raise UsageError(thing, f"is not a known type; known are {known}", name)


def engine_type(name: str) -> Type:
    """The type of an engine's column; what the dialect cannot ask about is OTHER."""
    if name.upper().startswith("ENUM("):
        return TEXT
    try:
        return parse_type(name)
    except UsageError:
        return OTHER


@dataclass(frozen=True)
class Column:
    """One column of a registered source. `name` is exact, as the file has it."""

    name: str
    type: Type


@dataclass(frozen=True)
class Schema:
    """The columns of a source, in its order. Column i is called ``c{i}`` inside every statement."""

    columns: tuple[Column, ...]

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {column.name: i for i, column in enumerate(self.columns)}

    def position(self, name: str) -> int | None:
        """Where a column stands: by its exact name, else by the only name that differs in case alone."""
        if name in self._positions:
            return self._positions[name]
        folded = [i for i, column in enumerate(self.columns) if column.name.casefold() == name.casefold()]
        return folded[0] if len(folded) == 1 else None

    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Registration:
    """The owner's disclosure about one source: what it is, how it is read, what its columns are.

    Attributes:
        source: the canonical identity, by which ledger and budget are found ("file:/data/log.csv",
            "frame:visits").
        format: "csv", "jsonl", "parquet" or "frame".
        schema: names and types.
        reader: how the file is read (delimiter, quote, header, the path of each column, ...); JSON values
            only. Fixed here so that no record can change how the others are read.
    """

    source: str
    format: str
    schema: Schema
    reader: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values; `from_json` reads it back."""
        return {
            "source": self.source,
            "format": self.format,
            "columns": [[column.name, str(column.type)] for column in self.schema.columns],
            "reader": dict(self.reader),
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Registration:
        """What `to_json` made."""
        columns = tuple(Column(name, engine_type(kind)) for name, kind in value["columns"])
        return Registration(value["source"], value["format"], Schema(columns), dict(value["reader"]))
