"""Columns that bear types already (Parquet, data frames): which of ours they are, and how they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from discreet.schema import Kind, Type, engine_type
from discreet.sources.cells import finite
from discreet.sources.sql_text import identifier, literal

if TYPE_CHECKING:
    from duckdb.sqltypes import DuckDBPyType

__all__ = ["Field", "fields", "value"]


@dataclass(frozen=True)
class Field:
    """A column, or a leaf inside a column of records."""

    path: tuple[str, ...]
    type: Type


def fields(names: Sequence[str], types: Sequence[DuckDBPyType]) -> Iterator[Field]:
    """All that can be asked for, records flattened to their leaves, in order."""
    for name, type_ in zip(names, types, strict=True):
        yield from _flat((name,), type_)


def value(path: Sequence[str], type_: Type) -> str:
    """An expression of type `type_` for what stands at `path`; a value that does not fit is missing."""
    if type_.kind is Kind.OTHER:
        return "CAST(NULL AS VARCHAR)"
    reference = identifier(path[0]) + "".join(f"[{literal(key)}]" for key in path[1:])
    return finite(f"TRY_CAST({reference} AS {type_})", type_)


def _flat(path: tuple[str, ...], type_: DuckDBPyType) -> Iterator[Field]:
    if type_.id == "struct":
        # The children of a struct are pairs of a name and a type; the stubs also allow for those of other
        # types.
        for name, child in type_.children:
            yield from _flat((*path, name), cast("DuckDBPyType", child))
    else:
        yield Field(path, engine_type(str(type_)))
