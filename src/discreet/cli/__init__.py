"""The command line. `main` is the entry; importing it loads neither NumPy nor DuckDB, so that `--help` is quick."""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["INTERRUPTED", "interrupted", "main"]

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> None:
    """The `discreet` command. Leaves with the documented code, whatever happens: also where Ctrl-C comes while the
    command line itself is still being loaded."""
    try:
        from discreet.cli.app import main as run_command

        run_command(arguments)
    except KeyboardInterrupt:
        interrupted("discreet: interrupted.\n")
    except SystemExit as end:
        if end.code == INTERRUPTED:
            interrupted()
        raise


def interrupted(said: str = "") -> None:
    """End as Ctrl-C does, with what is to be said still.

    Not through `sys.exit`: where the interrupt came within an `exec` of text, as in the making of a data class,
    Python remembers it and at its own end kills itself with SIGINT, caught or not.
    """
    import os
    import signal
    from contextlib import suppress

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not cut this short
    for stream, text in ((sys.stdout, ""), (sys.stderr, said)):
        if stream is not None:
            with suppress(OSError, ValueError):  # closed, or its reader is gone
                stream.write(text)
                stream.flush()
    os._exit(INTERRUPTED)
