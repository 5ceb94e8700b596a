"""Where the ledger lies unless somebody names another place."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["default_path"]


def default_path() -> Path:
    """Where the ledger lies unless the caller names one: DISCREET_LEDGER, else the user's state folder."""
    if named := os.environ.get("DISCREET_LEDGER"):
        return Path(named)
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
