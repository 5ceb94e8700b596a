"""The command line. `main` is the entry; importing it loads neither NumPy nor DuckDB, so that `--help` is quick."""

from __future__ import annotations

from discreet.cli.app import main

__all__ = ["main"]
