"""`discreet estimate`: what a query would cost, and the error to expect, without reading the data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.cli.arguments import choose
from discreet.cli.output import terminal_width
from discreet.cli.pictures import check_picture, written
from discreet.cli.query import MACHINE_FORMATS, Question, asked_budget, asking, destinations, planned
from discreet.cli.talk import about_estimate, about_share, say, warn_of_epsilon
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.estimate import Estimate

__all__ = ["FORMATS", "look_ahead"]

FORMATS = ("table", "csv", "json", "ndjson", "markdown")


def look_ahead(
    question: Question,
    *,
    format: str,
    output: str | None,
    report: str | None,
    target: Sequence[str] | None = None,
    plot: str | None = None,
) -> None:
    """Write the estimate of a question. It takes what `query` takes; a --budget is reckoned with, not set.

    Args:
        target: half-widths to reach, each ``NAME=NUMBER``; the question then has no epsilon yet.
        plot: where to draw how the half-widths depend on epsilon.

    Raises:
        DiscreetError: as `query`, but for the budget.
        UsageError: a target that cannot be reached, or not be told.
    """
    from discreet.estimate import estimate
    from discreet.exact import parse_confidence

    choose("--format", format, FORMATS)
    confidence = parse_confidence(question.confidence)
    if plot is not None:
        check_picture("--plot", plot)
    if target:
        question = _aimed(question, target, confidence)
    with (
        planned(question) as (dataset, plan),
        destinations(question, dataset, output, report, plot=plot) as (table, document, picture),
    ):
        balance, who = dataset.balance(), asking(question)
        left = balance.left if balance is not None else asked_budget(question)
        found = estimate(plan, left, confidence, dataset.how_many_more(plan, who))
        share = dataset.share(who)
        warn_of_epsilon(plan.loss.epsilon)
        table.write(
            _rendered(found, format, terminal_width() if table.path is None else None),
            machine=format in MACHINE_FORMATS,
        )
        if document is not None:
            document.write(json.dumps(found.report(), indent=2, ensure_ascii=False) + "\n", machine=True)
        if picture is not None and picture.path is not None:
            from discreet.outlook import outlook
            from discreet.pictures import draw_outlook, format_of

            picture.write(written(draw_outlook(outlook(plan, confidence), format_of(picture.path))), machine=True)
    about_estimate(found)
    if share is not None:
        about_share(who, share, plan.loss.epsilon)


def _aimed(question: Question, target: Sequence[str], confidence: Fraction) -> Question:
    """The question with the smallest epsilon that reaches its targets."""
    from discreet.exact import decimal_text
    from discreet.outlook import ANY_EPSILON, epsilon_for
    from discreet.sql import parse

    if question.epsilon is not None or parse(question.sql).options.epsilon is not None:
        raise UsageError("--target", "finds the epsilon, so no other can be said", "; ".join(target), "leave it out")
    wanted = {}
    for text in target:
        name, sign, number = text.rpartition("=")
        if not sign or not name.strip():
            raise UsageError("--target", "must be NAME=HALF-WIDTH", text, "for example --target n=50")
        wanted[name.strip()] = number
    with planned(replace(question, epsilon=decimal_text(ANY_EPSILON))) as (_, plan):
        epsilon = epsilon_for(plan, wanted, confidence)
    say(f"epsilon {decimal_text(epsilon)} is the smallest that gives {' and '.join(target)}")
    return replace(question, epsilon=decimal_text(epsilon))


def _rendered(found: Estimate, format: str, width: int | None) -> str:
    from discreet.formats import render_csv, render_markdown, render_table

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
    return render_table(*found.cells(), width=width)
