"""What each engine says differently, and nothing else: a table of rules an engine."""

from __future__ import annotations

from discreet.quirks.duckdb import DUCKDB
from discreet.quirks.table import Quirks, unsupported

__all__ = ["DUCKDB", "Quirks", "quirks_of", "unsupported"]


def quirks_of(format_: str) -> Quirks:
    """Of the engine that reads sources of a format (`schema.Registration.format`)."""
    if format_ == "postgres":
        from discreet.quirks.postgres import POSTGRES

        return POSTGRES
    if format_ == "spark":
        from discreet.quirks.spark import SPARK

        return SPARK
    return DUCKDB
