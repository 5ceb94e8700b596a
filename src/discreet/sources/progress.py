"""How far the reading of a whole source is, while its owner registers it.

For the owner alone. A query never tells: how far it is would tell how many rows there are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["Told", "count_read", "reading_bytes", "running_passes", "telling"]

Told = Callable[[str, float], None]
"""Called with the part of the work that runs, and how much of it is done, from 0 to 1."""

_EVERY = 0.1  # seconds


class _Pass:
    """How much of some files has been read, in this pass over them."""

    def __init__(self, told: Told, part: str, sizes: Mapping[str, int]) -> None:
        self._told = told
        self._part = part
        self._sizes = sizes
        self._read: dict[str, int] = {}

    def count(self, path: str, position: int) -> None:
        if position < self._read.get(path, 0):
            self._read.clear()  # another pass
        self._read[path] = position
        whole = sum(self._sizes.values())
        if path in self._sizes and whole:
            self._told(self._part, min(1.0, sum(self._read.values()) / whole))


_TOLD: ContextVar[Told | None] = ContextVar("told", default=None)
_PASS: ContextVar[_Pass | None] = ContextVar("pass", default=None)


@contextmanager
def telling(told: Told) -> Iterator[None]:
    """Whatever is registered inside tells how far it is."""
    token = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(token)


@contextmanager
def reading_bytes(part: str, sizes: Callable[[], Mapping[str, int]]) -> Iterator[None]:
    """Around passes over files, which `count_read` follows.

    Args:
        part: of the work, for people.
        sizes: gives the files' sizes in bytes, by path.
    """
    told = _TOLD.get()
    token = _PASS.set(None if told is None else _Pass(told, part, sizes()))
    try:
        yield
    finally:
        _PASS.reset(token)


def count_read(path: str, position: int) -> None:
    """A file has been read up to that byte. Told inside `reading_bytes` only, so never of a query."""
    running = _PASS.get()
    if running is not None:
        running.count(path, position)


@contextmanager
def running_passes(connection: DuckDBPyConnection) -> Iterator[None]:
    """Tell how far the engine is with each statement that runs inside, on the owner's own connection."""
    told = _TOLD.get()
    if told is None:
        yield
        return
    # The engine counts only where it may show a bar. It must not write one itself.
    connection.execute("SET enable_progress_bar_print = false")
    connection.execute("SET enable_progress_bar = true")
    ended = threading.Event()
    watching = threading.Thread(target=_watch, args=(connection, told, ended), daemon=True)
    watching.start()
    try:
        yield
    finally:
        ended.set()
        watching.join()


def _watch(connection: DuckDBPyConnection, told: Told, ended: threading.Event) -> None:
    number, last = 1, 0.0
    while not ended.wait(_EVERY):
        per_cent = connection.query_progress()  # below 0 where nothing runs, or it cannot be told
        if per_cent > 0:
            if per_cent < last:
                number += 1  # the next statement: one goes from 0 to 100
            last = per_cent
            told(f"finding types (pass {number})", min(1.0, per_cent / 100))
