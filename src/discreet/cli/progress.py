"""A bar on stderr for work that takes a while; on a terminal only."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator

__all__ = ["progress_bar"]


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """Gives a function to tell the part that runs, and how much of it is done, from 0 to 1.

    For work on rows that are nobody's: elsewhere the length of a bar would tell how many rows there are.
    """
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda part, share: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        yield lambda part, share: bar.update(task, description=part, completed=share)
