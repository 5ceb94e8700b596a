"""Where a ledger lies: a file, or a database on a server."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from discreet.errors import LedgerError, UsageError
from discreet.ledger.postgres_address import is_address, options_of, same_place, shown_place
from discreet.ledger.store import Store

__all__ = ["default_path", "named_place", "no_place", "open_store", "same_ledger", "shown_ledger", "state_file"]


def default_path() -> Path | str:
    """Where the ledger lies unless the caller names one: DISCREET_LEDGER (a path, or the address of a server, which is
    given as text), else a file in the user's state folder."""
    if named := os.environ.get("DISCREET_LEDGER"):
        return named if "://" in named else Path(named)
    return state_file()


def state_file() -> Path:
    """The ledger's file in the user's state folder."""
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        # The XDG specification tells programs to ignore a path that is not absolute.
        state = Path(os.environ.get("XDG_STATE_HOME", ""))
        base = state if state.is_absolute() else Path.home() / ".local" / "state"
    return base / "discreet" / "ledger.sqlite"


def named_place(named: str | os.PathLike[str]) -> Path | str:
    """The place that somebody wrote: a path (``~`` is the home folder), or an address, which stays text."""
    text = os.fspath(named)
    return text if "://" in text else Path(os.path.expanduser(text))  # noqa: PTH111 - leaves "~nobody" as it is


def open_store(place: Path | str, timeout: float, *, create: bool) -> Store:
    """The store at a place.

    Args:
        timeout: how many seconds to wait for other writers.
        create: make it if it is missing.

    Raises:
        UsageError: for what is neither a path nor an address.
        LedgerError: if it cannot be used.
    """
    text = os.fspath(place)
    if is_address(text):
        from discreet.ledger.postgres_store import PostgresStore

        return PostgresStore(options_of(text), timeout, create=create)
    if not text or "\0" in text or "://" in text:
        raise no_place("ledger", text)
    from discreet.ledger.sqlite_store import SqliteStore

    try:
        # Links are followed now, so that the file and its journal always stand side by side.
        path = Path(text).expanduser().resolve()
    except (OSError, RuntimeError):  # a circle of links; no home folder
        raise LedgerError(f"the ledger {text}", "cannot be found", hint="check the path") from None
    return SqliteStore(path, timeout, create=create)


def no_place(name: str, text: str) -> UsageError:
    """Neither a path nor an address that we know. Of an address, only the scheme is shown: it may hold a password."""
    scheme, found, _ = text.partition("://")
    rule = "must be the path of a file, or an address postgresql://USER@HOST/DATABASE"
    return UsageError(name, rule, scheme + found if found else text)


def same_ledger(one: str, other: str) -> bool:
    """Whether two places are one: the same file, links followed, or the same database."""
    if is_address(one) or is_address(other):
        return is_address(one) and is_address(other) and same_place(one, other)
    # os.path.expanduser leaves "~nobody" as it is, where pathlib's raises.
    return os.path.realpath(os.path.expanduser(one)) == os.path.realpath(os.path.expanduser(other))  # noqa: PTH111


def shown_ledger(place: str) -> str:
    """A place as people may see it: an address without its password."""
    return shown_place(options_of(place)) if is_address(place) else place
