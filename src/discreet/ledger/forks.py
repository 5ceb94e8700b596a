"""Connections across a fork: none. A store lets go of its own before `os.fork` and opens a new one when it is next
used, on both sides: SQLite would believe in the child that it holds locks which only the parent has, and a server
would hear two processes on one line.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet

__all__ = ["Connected", "know"]


class Connected(Protocol):
    """What must be told of forks."""

    def before_fork(self) -> None:
        """Wait for the transaction of another thread, then let go of the connection, and let nobody open another."""

    def after_fork(self) -> None:
        """Carry on, on either side."""


_known: WeakSet[Connected] = WeakSet()
_lock = threading.Lock()
_forking: list[Connected] = []  # held, as is the lock, from before a fork until after it


def know(store: Connected) -> None:
    """Tell a store of all forks from now on. To be called before it has a connection."""
    with _lock:
        _known.add(store)


def _before_fork() -> None:
    _lock.acquire()
    _forking[:] = list(_known)
    for store in _forking:
        store.before_fork()


def _after_fork() -> None:
    for store in _forking:
        store.after_fork()
    _forking.clear()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
