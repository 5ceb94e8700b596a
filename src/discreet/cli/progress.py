"""What moves on stderr while work takes a while; on a terminal only."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator

from discreet.cli.talk import is_quiet

__all__ = ["progress_bar", "spinner"]

_AFTER = 1.0  # seconds: what is quicker needs no spinner
_TURNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_TURNS = "|/-\\"


@contextlib.contextmanager
def spinner(phase: str) -> Iterator[Callable[[str], None]]:
    """While private rows are read: a sign that turns, the phase and the time, once a second is over. Gives a function
    that tells the next phase.

    No rows and no per cent: how far the work is would tell how many rows there are. Nothing where stderr is no
    terminal, or with --quiet. It neither hides the cursor nor uses colours, so that nothing is left behind however it
    ends.
    """
    if sys.stderr is None or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb" or is_quiet():
        yield lambda phase: None
        return
    now = [phase]
    ended = threading.Event()
    turning = threading.Thread(target=_turn, args=(now, ended), daemon=True)
    turning.start()
    try:
        yield lambda phase: now.__setitem__(0, phase)
    finally:
        ended.set()
        turning.join()


def _turn(now: list[str], ended: threading.Event) -> None:
    """Write and rewrite one line until it is over, then take it away."""
    from discreet.cli.output import can_show

    signs = _TURNS if can_show(sys.stderr.encoding or "ascii") else _PLAIN_TURNS
    start = time.monotonic()
    if ended.wait(_AFTER):
        return
    turn = 0
    while not ended.wait(0.1):
        turn += 1
        _put(f"\r\x1b[K{signs[turn % len(signs)]} {now[0]}: {time.monotonic() - start:.0f} s")
    _put("\r\x1b[K")


def _put(text: str) -> None:
    with contextlib.suppress(OSError, ValueError):  # the terminal is gone
        sys.stderr.write(text)
        sys.stderr.flush()


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Gives a function to tell the part that runs, and how much of it is done, from 0 to 1.

    For work on rows that are nobody's: elsewhere the length of a bar would tell how many rows there are.
    """
    if sys.stderr is None or not sys.stderr.isatty() or is_quiet():
        yield lambda part, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda part, share: bar.update(task, description=part, completed=share)
