"""An in-memory DuckDB connection whose answers depend on the data alone, and that leaves nothing behind.

DuckDB is imported when the first connection is made, so that ``discreet --help`` stays quick.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from discreet.errors import UsageError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["OpenedAhead", "check_zones", "connect", "memory_limit_in_force"]

_Result = TypeVar("_Result")

_SIZE = re.compile(r"[1-9][0-9]{0,6}(\.[0-9]+)? ?([KMGT]i?B)", re.IGNORECASE)


def memory_limit_in_force() -> str | None:
    """How much memory the engine may take, as DISCREET_MEMORY_LIMIT says ("2GB"); what does not fit is spilled to disk.

    Raises:
        UsageError: it says something else than a size.
    """
    named = os.environ.get("DISCREET_MEMORY_LIMIT")
    if named and not _SIZE.fullmatch(named):
        raise UsageError("DISCREET_MEMORY_LIMIT", "must be a size such as 2GB or 512MB", named)
    return named or None


def check_zones(names: Collection[str]) -> None:
    """Refuse a time zone that Python knows and the engine does not: it would raise, but only where there are rows.

    Raises:
        UsageError: naming it.
    """
    named = {name for name in names if name[0] not in "+-"}
    if unknown := sorted(named - _zones()) if named else []:
        rule = "is not known to this version of DuckDB. Nothing was charged"
        raise UsageError("time zone", rule, unknown[0], "write an offset such as '+08:00', or install a newer DuckDB")


@cache
def _zones() -> frozenset[str]:
    with connect() as connection:
        return frozenset(name for (name,) in connection.execute("SELECT name FROM pg_timezone_names()").fetchall())


@dataclass(frozen=True)
class _Opened:
    connection: DuckDBPyConnection
    stack: ExitStack

    def close(self) -> None:
        self.stack.close()


@contextmanager
def connect(*, threads: int | None = None, memory_limit: str | None = None) -> Iterator[DuckDBPyConnection]:
    """A connection for one piece of work; closed, and its spill folder removed, at the end of the block.

    - the session's zone is UTC, whatever the machine says;
    - no extension is installed or loaded by a query (nothing is ever downloaded), no secret is read;
    - names in SQL never mean Python variables of the caller;
    - no progress bar: its length would tell how many rows there are;
    - rows that do not fit into memory spill to a folder only this user can enter.

    Args:
        threads: at most so many threads; None leaves it to DuckDB (all cores).
        memory_limit: such as ``"1GB"``; None for `memory_limit_in_force`, else DuckDB's own (80 % of the machine's).

    Raises:
        OSError: if no temporary folder can be made.
        KeyboardInterrupt: on Ctrl-C, also while the engine runs.
    """
    opened = _open(threads, memory_limit)
    try:
        with _interruptible():
            yield opened.connection
    finally:
        opened.close()


class OpenedAhead:
    """A connection as `connect` makes it, opened and closed by a thread while its user does something else: the two
    take as long as a small query. It is empty until it is lent, so opening it looks at nothing.

    Within its block `lend` may be called once. At the block's end the connection is closed, whether lent or not. Where
    no thread can be started (at the interpreter's end, or under a limit) all is done in turn.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads
        self._thread: ThreadPoolExecutor | None = ThreadPoolExecutor(1, thread_name_prefix="discreet-duckdb")
        self._opening = self._begun(_open, threads, None)

    def __enter__(self) -> OpenedAhead:
        return self

    def __exit__(self, *error: object) -> None:
        opening, self._opening = self._opening, None
        if opening is not None and opening.exception() is None:
            opening.result().close()
        if self._thread is not None:
            self._thread.shutdown()

    @contextmanager
    def lend(self) -> Iterator[DuckDBPyConnection]:
        """The connection. At the end of this block it begins to be closed."""
        opened = _open(self._threads, None) if self._opening is None else self._opening.result()
        self._opening = None
        try:
            with _interruptible():
                yield opened.connection
        finally:
            if self._begun(opened.close) is None:
                opened.close()

    def _begun(self, work: Callable[..., _Result], *arguments: Any) -> Future[_Result] | None:
        try:
            return None if self._thread is None else self._thread.submit(work, *arguments)
        except RuntimeError:  # no thread can be started; what it left in the queue is never to run
            self._thread = None
            return None


def _open(threads: int | None, memory_limit: str | None) -> _Opened:
    import duckdb

    config: dict[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allow_community_extensions": False,
        "allow_persistent_secrets": False,
        "python_enable_replacements": False,
        # Nothing here depends on the order of rows; keeping it would only cost memory.
        "preserve_insertion_order": False,
    }
    if threads is not None:
        config["threads"] = threads
    if (limit := memory_limit or memory_limit_in_force()) is not None:
        config["memory_limit"] = limit
    with ExitStack() as stack:
        # mkdtemp makes the folder with mode 0700. A process that is killed leaves it behind, empty or with
        # spilled rows; the README says so.
        spill = tempfile.mkdtemp(prefix="discreet-")
        stack.callback(shutil.rmtree, spill, ignore_errors=True)
        connection = stack.enter_context(duckdb.connect(":memory:", config=config | {"temp_directory": spill}))
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET TimeZone = 'UTC'")
        # Without it a filter may be pushed into Parquet statistics that leave NaN out.
        connection.execute("SET parquet_can_have_nan = true")
        return _Opened(connection, stack.pop_all())


@contextmanager
def _interruptible() -> Iterator[None]:
    """What DuckDB makes of Ctrl-C is handed on as what it is."""
    try:
        yield
    except RuntimeError as error:
        if type(error) is RuntimeError and str(error) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise
