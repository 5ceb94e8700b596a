"""Which engine runs the queries over a registered source."""

from __future__ import annotations

from discreet.engines.engine import Engine
from discreet.schema import Registration

__all__ = ["engine_for"]


def engine_for(registration: Registration, access: object = None) -> Engine:
    """The engine that reads sources of this format.

    Args:
        registration: of the source.
        access: what is needed beside it and is stored nowhere: a data frame itself, the address of a server.
    """
    if registration.format == "postgres":
        from discreet.engines.postgres import PostgresEngine

        if not isinstance(access, str):
            raise AssertionError("a server without its address")
        return PostgresEngine(registration, access)
    if registration.format == "spark":
        from discreet.engines.spark import SparkEngine

        return SparkEngine(registration, access)
    from discreet.engines.duckdb import DuckDBEngine

    return DuckDBEngine(registration, access)
