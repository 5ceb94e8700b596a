"""`discreet estimate`: what a query would cost, and the error to expect, without reading the data."""

from __future__ import annotations

import json

from discreet.cli.arguments import choose
from discreet.cli.output import write_stdout
from discreet.cli.query import Question, planned
from discreet.cli.talk import about_estimate, warn_of_epsilon

__all__ = ["FORMATS", "look_ahead"]

FORMATS = ("table", "json")


def look_ahead(question: Question, *, format: str) -> None:
    """Print the estimate of a question. A --budget is reckoned with, not set."""
    from discreet.estimate import estimate
    from discreet.exact import parse_confidence, parse_epsilon
    from discreet.privacy import PrivacyLoss

    choose("--format", format, FORMATS)
    confidence = parse_confidence(question.confidence)
    with planned(question) as (dataset, plan):
        balance = dataset.balance()
    left = None
    if balance is not None:
        left = balance.left
    elif question.budget is not None:
        left = PrivacyLoss(parse_epsilon(question.budget, name="budget"))
    found = estimate(plan, left, confidence)
    warn_of_epsilon(plan.loss.epsilon)
    if format == "json":
        write_stdout(json.dumps(found.report(), indent=2, ensure_ascii=False) + "\n", machine=True)
    else:
        write_stdout(str(found))
    about_estimate(found)
