"""`discreet explain`: the way of a query from rows to answer in one picture, without reading the data."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from discreet.cli.output import can_show, terminal_width
from discreet.cli.pictures import check_picture, written
from discreet.cli.query import Question, asked_budget, destinations, planned
from discreet.cli.talk import say, warn_of_epsilon

if TYPE_CHECKING:
    from discreet.sandwich import Sandwich

__all__ = ["draw_sandwich"]


def draw_sandwich(question: Question, *, output: str | None) -> None:
    """Draw the noise sandwich of a question. It takes what `query` takes; a --budget is reckoned with, not set.

    Raises:
        DiscreetError: as `query`, but for the budget.
        UsageError: `output` has no ending of a picture, or the drawing package is not installed.
    """
    from discreet.exact import parse_confidence

    kind = check_picture("--output", output, text=True)
    confidence = parse_confidence(question.confidence)
    with planned(question) as (dataset, plan), destinations(question, dataset, output, None) as places:
        picture = dataset.sandwich(plan, confidence=confidence, budget=asked_budget(question))
        warn_of_epsilon(plan.loss.epsilon)
        place = places.table
        place.write(_drawn(picture, kind, to_stdout=place.path is None), machine=place.path is not None)
    say("the plan alone told this: no data was read for it, and nothing was charged")


def _drawn(picture: Sandwich, kind: str, *, to_stdout: bool) -> str | bytes:
    if kind == "text":
        from discreet.sandwich_text import draw_text, without_signs

        if to_stdout and not can_show(getattr(sys.stdout, "encoding", None) or "utf-8"):
            picture = without_signs(picture)
        return draw_text(picture, min((terminal_width() if to_stdout else None) or 80, 100)) + "\n"
    from discreet.pictures import draw_sandwich as draw

    return written(draw(picture, kind))
