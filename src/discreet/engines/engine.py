"""What the release path needs of an engine, and nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from discreet.laplace.limbs import Int128Array
from discreet.plan import PlannedJoin
from discreet.query import Scalar
from discreet.quirks import Quirks
from discreet.relational import Statement
from discreet.relational_selection import SelectionStatement

__all__ = ["Engine", "Session"]


class Session(Protocol):
    """One snapshot of the source, for all statements of one query.

    Every method raises `EngineError` with a constant text, whatever went wrong.
    """

    def totals(self, statement: Statement) -> tuple[Int128Array, ...]:
        """For each measurement, in order, the exact totals of all groups (0 where a group has no rows). Of a level of a
        tree, those of all nodes of the first group, then of the second.

        These are private: they must meet noise before anything else sees them.
        """
        ...

    def candidates(self, statement: SelectionStatement) -> Int128Array:
        """For each group in which a unit is counted, in any order, their exact number. Private, like its length."""
        ...

    def keys(self, statement: SelectionStatement, places: NDArray[np.int64]) -> tuple[tuple[Scalar, ...], ...]:
        """The keys of the candidates at those places. Ask for released groups only."""
        ...


class Engine(Protocol):
    """A seam: DuckDB, PostgreSQL and Spark stand behind it."""

    @property
    def quirks(self) -> Quirks:
        """What it says differently; statements that it is to run are compiled with them."""
        ...

    def check(self, zones: Collection[str]) -> None:
        """Refuse, before anything is charged, a source that is gone or cannot be reached, and settings and time zones
        that the engine does not know. Reads no row.

        Args:
            zones: the names of those that the plan reads times by.

        Raises:
            SourceError: it is gone.
            UsageError: the others.
        """
        ...

    def ahead(self) -> AbstractContextManager[None]:
        """Begin what takes its time and looks at nothing, for the one session that may be opened within the block.
        What was begun is gone at its end."""
        ...

    def run(self, statement: Statement) -> tuple[Int128Array, ...]:
        """The totals of one statement, in a session of its own: see `session` and `Session.totals`."""
        ...

    def session(self, columns: Collection[int], joins: Sequence[PlannedJoin] = ()) -> AbstractContextManager[Session]:
        """Open the source.

        Args:
            columns: the places of the columns, of it and of the joined tables, that will be read.
            joins: public tables to be joined to it.

        Raises:
            EngineError: with a constant text, whatever went wrong.
            SourceError: the registered file is gone.
        """
        ...
