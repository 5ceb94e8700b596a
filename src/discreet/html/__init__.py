"""HTML: what notebooks show of answers, estimates and plans, and what pages are made of.

Everything stands in the text itself: no scripts, no fonts, no pictures from elsewhere. Every word is escaped on its way
in (`elements`): keys, names and queries may hold anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.estimate import Estimate
    from discreet.plan import Plan

__all__ = ["answer_html", "estimate_html", "plan_html"]


def answer_html(answer: Answer) -> str:
    """An answer for a notebook: its table with intervals and a small picture, its cost, what to know."""
    from discreet.html.notebooks import answer_fragment

    return answer_fragment(answer)


def estimate_html(estimate: Estimate) -> str:
    """An estimate for a notebook: what to expect of each statistic, and the cost."""
    from discreet.html.notebooks import estimate_fragment

    return estimate_fragment(estimate)


def plan_html(plan: Plan) -> str:
    """A plan for a notebook: its noise sandwich."""
    from discreet.html.notebooks import plan_fragment

    return plan_fragment(plan)
