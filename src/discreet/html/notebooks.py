"""What notebooks show: one piece of HTML that brings its style along and touches nothing else."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from discreet.answer import Answer
from discreet.exact import decimal_text
from discreet.html.answers import answer_table, plain_table
from discreet.html.charts import curve
from discreet.html.elements import Child, Html, element
from discreet.html.styles import fragment_style
from discreet.numerals import number_text
from discreet.privacy import PrivacyLoss
from discreet.sandwich import axis_reach, sandwich

if TYPE_CHECKING:
    from discreet.estimate import Estimate
    from discreet.plan import Plan

__all__ = ["answer_fragment", "estimate_fragment", "loss_words", "plan_fragment"]


def _fragment(*children: Child) -> Html:
    style = element("style", Html(fragment_style()))
    return element("div", style, children, class_="discreet")


def loss_words(loss: PrivacyLoss | None) -> str:
    """A loss in words; delta only where it is not 0."""
    if loss is None:
        return "not known"
    text = f"epsilon {decimal_text(loss.epsilon)}"
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if loss.delta else text


def answer_fragment(answer: Answer) -> Html:
    """See `discreet.html.answer_html`."""
    if answer.replayed:
        cost = f"The stored answer of ledger entry {answer.entry}, given again at no cost."
    else:
        cost = f"Spent: {loss_words(answer.cost)}."
    left = "" if answer.left is None else f" Left: {loss_words(answer.left)}."
    promise = f"The promise is {answer.details['promise']}."
    reading = "Intervals cover the noise, not what limits and bounds clipped; grey: the interval covers 0."
    picked = answer.details.get("picked")
    return _fragment(
        answer_table(answer, "the answer"),
        element("p", cost + left),
        element("p", f"{promise} {reading}", class_="quiet"),
        element("p", str(picked), class_="quiet") if picked else None,
    )


def estimate_fragment(estimate: Estimate) -> Html:
    """See `discreet.html.estimate_html`."""
    headers, rows, numeric = estimate.cells()
    if estimate.left is None:
        left = "No budget is set yet."
    elif estimate.left.epsilon < 0 or estimate.left.delta < 0:
        left = "The budget is too small: the query would be refused."
    else:
        left = f"Would leave: {loss_words(estimate.left)}."
    return _fragment(
        plain_table(headers, rows, numeric, "what to expect"),
        element("p", f"Would cost: {loss_words(estimate.cost)}. {left}"),
        _sandwich(estimate.plan, estimate.confidence),
        element("p", "The plan alone told this: no data was read for it, and nothing was charged.", class_="quiet"),
    )


def plan_fragment(plan: Plan) -> Html:
    """See `discreet.html.plan_html`."""
    return _fragment(
        element("p", element("strong", "A plan"), f": {' '.join(plan.text.split())}"),
        _sandwich(plan, Fraction(95, 100)),
        element("p", f"It costs {loss_words(plan.loss)}. Nothing was read, nothing was charged.", class_="quiet"),
    )


def _sandwich(plan: Plan | None, confidence: Fraction) -> Html | None:
    """Bread, noise, bread: three slices beside each other for each statistic."""
    if plan is None:
        return None
    picture = sandwich(plan, None, None, confidence)
    slices = []
    for layer, reach in zip(picture.layers, axis_reach(picture.layers), strict=True):
        noise = layer.drawn
        law = None
        if noise is not None:
            measure = f" {noise.measure}" if noise.measure else ""
            law = [
                curve(noise, reach),
                element(
                    "div",
                    f"noise of scale b = {number_text(noise.scale)}{measure}; {picture.level} of it within "
                    f"± {number_text(noise.band, 3)}",
                ),
            ]
        weighs = [element("div", text) for text in (layer.asked, *layer.weighs, f"costs {layer.costs}")]
        becomes = [element("div", text) for text in (layer.becomes, *layer.width)]
        slices.append(
            element(
                "div",
                element("div", element("strong", layer.name), weighs, class_="slice"),
                element("div", law or "no noise of its own", style="flex:1 1 14rem"),
                element("div", becomes, class_="slice"),
                class_="flow",
                role="group",
                aria_label=f"{layer.name}: from rows to answer",
            )
        )
    who = [element("div", line) for line in (*picture.rows, *picture.limits)]
    return element("div", element("div", who, class_="quiet"), slices)
