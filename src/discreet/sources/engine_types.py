"""Columns that bear types already (Parquet, data frames): which of ours they are, and how they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from discreet.schema import FLOAT, HUGE, INTEGER, TIMESTAMP, Kind, Type, engine_type
from discreet.sources.cells import finite
from discreet.sources.sql_text import identifier, literal

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["Field", "fields", "missing", "reconciled", "value"]


@dataclass(frozen=True)
class Field:
    """A column, or a leaf inside a column of records. `engine` is the engine's own name of its type."""

    path: tuple[str, ...]
    type: Type
    engine: str = ""


def fields(names: Sequence[str], types: Sequence[DuckDBPyType]) -> Iterator[Field]:
    """All that can be asked for, records flattened to their leaves, in order."""
    for name, type_ in zip(names, types, strict=True):
        yield from _flat((name,), type_)


def value(path: Sequence[str], type_: Type) -> str:
    """An expression of type `type_` for what stands at `path`; a value that does not fit is missing. NaN stays: to
    take it out of every row here would cost as much again as to read them (`row_rendering` knows)."""
    if type_.kind is Kind.OTHER:
        return "CAST(NULL AS VARCHAR)"
    reference = identifier(path[0]) + "".join(f"[{literal(key)}]" for key in path[1:])
    typed = f"TRY_CAST({reference} AS {type_})"
    return typed if type_.kind is Kind.FLOAT else finite(typed, type_)


def missing(type_: Type) -> str:
    """An expression of type `type_` for what is not there."""
    return f"CAST(NULL AS {'VARCHAR' if type_.kind is Kind.OTHER else type_})"


_EXACT_AS_DOUBLE = frozenset(("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER", "FLOAT", "DOUBLE"))
_NOTHING = '"NULL"'
"""The engine's type of a column that says it has no values at all."""


def reconciled(found: Sequence[Field]) -> Type | None:
    """One type that holds every value of all of these exactly, for files that differ; None if there is none.

    Whole numbers widen; decimals get room for both sides; a date becomes midnight; whole numbers of up to 32
    bits become doubles. Longer ones (ids!) do not, nor does anything become text.
    """
    some = [field for field in found if field.engine != _NOTHING] or list(found)
    types = list(dict.fromkeys(field.type for field in some))
    if len(types) == 1:
        return types[0]
    kinds = {type_.kind for type_ in types}
    if kinds == {Kind.INTEGER}:
        return max(types, key=lambda type_: type_.bits)
    if kinds == {Kind.DATE, Kind.TIMESTAMP}:
        return TIMESTAMP
    if kinds == {Kind.INTEGER, Kind.FLOAT}:
        return FLOAT if all(field.engine in _EXACT_AS_DOUBLE for field in some) else None
    if kinds <= {Kind.INTEGER, Kind.DECIMAL}:
        scale = max(type_.scale for type_ in types)
        whole = max(
            19 if type_ == INTEGER else 39 if type_ == HUGE else type_.precision - type_.scale for type_ in types
        )
        return Type(Kind.DECIMAL, precision=whole + scale, scale=scale) if whole + scale <= 38 else None
    return None


def _flat(path: tuple[str, ...], type_: DuckDBPyType) -> Iterator[Field]:
    if type_.id == "struct":
        # The children of a struct are pairs of a name and a type; the stubs also allow for those of other
        # types.
        for name, child in type_.children:
            yield from _flat((*path, name), cast("DuckDBPyType", child))
    else:
        yield Field(path, engine_type(str(type_)), str(type_))
