"""`discreet estimate`: what a query would cost, and the error to expect, without reading the data."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from discreet.cli.arguments import choose
from discreet.cli.query import MACHINE_FORMATS, Question, asked_budget, asking, destinations, planned
from discreet.cli.talk import about_estimate, about_share, warn_of_epsilon

if TYPE_CHECKING:
    from discreet.estimate import Estimate

__all__ = ["FORMATS", "look_ahead"]

FORMATS = ("table", "csv", "json", "ndjson", "markdown")


def look_ahead(question: Question, *, format: str, output: str | None, report: str | None) -> None:
    """Write the estimate of a question. It takes what `query` takes; a --budget is reckoned with, not set.

    Raises:
        DiscreetError: as `query`, but for the budget.
    """
    from discreet.estimate import estimate
    from discreet.exact import parse_confidence

    choose("--format", format, FORMATS)
    confidence = parse_confidence(question.confidence)
    with planned(question) as (dataset, plan), destinations(question, dataset, output, report) as (table, document):
        balance, who = dataset.balance(), asking(question)
        left = balance.left if balance is not None else asked_budget(question)
        found = estimate(plan, left, confidence, dataset.how_many_more(plan, who))
        share = dataset.share(who)
        warn_of_epsilon(plan.loss.epsilon)
        table.write(_rendered(found, format), machine=format in MACHINE_FORMATS)
        if document is not None:
            document.write(json.dumps(found.report(), indent=2, ensure_ascii=False) + "\n", machine=True)
    about_estimate(found)
    if share is not None:
        about_share(who, share, plan.loss.epsilon)


def _rendered(found: Estimate, format: str) -> str:
    from discreet.formats import render_csv, render_markdown

    rows = found.rows()
    match format:
        case "csv":
            names = list(dict.fromkeys(name for row in rows for name in row))
            return render_csv(names, ([row.get(name) for name in names] for row in rows))
        case "json":
            return json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
        case "ndjson":
            return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        case "markdown":
            return render_markdown(*found.cells())
    return f"{found}\n"
