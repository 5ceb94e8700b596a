"""What moves on stderr while work takes a while; on a terminal only."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from discreet.cli.talk import is_quiet

__all__ = ["progress_bar", "registration_bar", "spinner"]

_AFTER = 1.0  # seconds: what is quicker needs no spinner
_TURNS = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PLAIN_TURNS = "|/-\\"
_BAR = 20  # characters


@contextlib.contextmanager
def spinner(phase: str) -> Iterator[Callable[[str], None]]:
    """While private rows are read: a sign that turns, the phase and the time, once a second is over. Gives a function
    that tells the next phase.

    No rows and no per cent: how far the work is would tell how many rows there are. Nothing where stderr is no
    terminal, or with --quiet. It neither hides the cursor nor uses colours, so that nothing is left behind however it
    ends.
    """
    if not _shown():
        yield lambda phase: None
        return
    with _turning(_Moment(phase)) as now:

        def tell(phase: str) -> None:
            now.phase = phase

        yield tell


@contextlib.contextmanager
def registration_bar(phase: str) -> Iterator[None]:
    """The spinner, with a bar while a source is read to be registered: its owner may see how much there is of it. What
    is registered already is opened without one."""
    if not _shown():
        yield
        return
    from discreet.sources.progress import telling

    with _turning(_Moment(phase)) as now:

        def told(part: str, share: float) -> None:
            now.phase, now.share = f"{phase}, {part}", share

        with telling(told):
            yield


def _shown() -> bool:
    return sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not is_quiet()


@dataclass
class _Moment:
    """What the line says now; `share` from 0 to 1 draws a bar."""

    phase: str
    share: float | None = None


@contextlib.contextmanager
def _turning(now: _Moment) -> Iterator[_Moment]:
    ended = threading.Event()
    turning = threading.Thread(target=_turn, args=(now, ended), daemon=True)
    turning.start()
    try:
        yield now
    finally:
        ended.set()
        turning.join()


def _turn(now: _Moment, ended: threading.Event) -> None:
    """Write and rewrite one line until it is over, then take it away."""
    from discreet.cli.output import can_show

    pretty = can_show(sys.stderr.encoding or "ascii")
    signs, full, empty = (_TURNS, "━", "╌") if pretty else (_PLAIN_TURNS, "#", "-")
    start = time.monotonic()
    if ended.wait(_AFTER):
        return
    turn = 0
    while not ended.wait(0.1):
        turn += 1
        share, bar = now.share, ""
        room = _columns() - 1
        if share is not None:
            per_cent = int(share * 100)
            done = per_cent * _BAR // 100
            bar = f"  {full * done}{empty * (_BAR - done)} {per_cent:3} %"
        sign, seconds = signs[turn % len(signs)], f": {time.monotonic() - start:.0f} s"
        # One line: a longer one would not be taken away. Without the bar, and then without the end of the phase.
        lines = (f"{sign} {now.phase}{bar}{seconds}", f"{sign} {now.phase}{seconds}")
        _put("\r\x1b[K" + next((line for line in lines if len(line) <= room), f"{sign} {now.phase}"[: max(1, room)]))
    _put("\r\x1b[K")


def _columns() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


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
