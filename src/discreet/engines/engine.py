"""What the release path needs of an engine, and nothing else."""

from __future__ import annotations

from typing import Protocol

from discreet.laplace.limbs import Int128Array
from discreet.relational import Statement

__all__ = ["Engine"]


class Engine(Protocol):
    """A seam: DuckDB stands behind it, and other engines will."""

    def run(self, statement: Statement) -> tuple[Int128Array, ...]:
        """Run a statement on one snapshot of the source.

        Returns:
            For each measurement, in order, the exact totals of all groups (0 where a group has no rows).
            These are private: they must meet noise before anything else sees them.

        Raises:
            EngineError: with a constant text, whatever went wrong.
        """
        ...
