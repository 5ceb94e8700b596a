"""What a reader of noisy numbers must know, in sentences: those that concern the releases at hand."""

from __future__ import annotations

from collections.abc import Iterator

from discreet.deployment import Deployment
from discreet.exact import decimal_text
from discreet.ledger import Method, Window

__all__ = ["what_to_know"]


def what_to_know(seen: Deployment) -> Iterator[str]:
    """One sentence or two for each thing that the numbers do not say by themselves."""
    yield from _promise(seen)
    yield "Each number carries Laplace noise on purpose. Asked anew, the same question would give another number."
    yield (
        "An interval covers the noise, with the confidence at its head. It does not cover clipping: rows beyond what "
        "one unit may weigh, and values outside their bounds, shift an answer by an amount that nobody here knows."
    )
    yield "Grey pictures: the interval covers 0, so that the noise alone may have made the number."
    yield "Negative counts are noise around a small true count; they are kept, since cutting them off biases totals."
    details = [release.details for release in seen.releases if release.details]
    if any(one.get("group_selection") for one in details):
        yield (
            "Where groups were chosen from the data, those with few units are not shown: that one is missing tells "
            "little about it."
        )
    if any(one.get("picked") for one in details):
        yield "Where groups were picked by noisy values, one that was picked for being large is likely too large."
    zones = sorted({str(one["timezone"]) for one in details} - {"UTC"})
    if zones:
        yield f"Dates and hours are in UTC but where another time zone stands with the release ({', '.join(zones)})."
    if any(not release.is_released for release in seen.releases):
        yield "A question that failed after it was charged gave no answer; its cost stays spent."


def _promise(seen: Deployment) -> Iterator[str]:
    if seen.budget is None or seen.balance is None:
        return
    whom = " or ".join(promise.removeprefix("per ") for promise in seen.promises) or "privacy unit"
    total, budget = seen.balance.total, seen.budget
    within = "" if budget.window is Window.NEVER else f" of one window ({budget.window})"
    but = "" if seen.is_pure else f", but for a chance of at most {decimal_text(total.delta, digits=30)}"
    yield (
        f"The promise: whatever else is known, all answers{within} together change the odds of anything that could be "
        f"concluded by a factor of at most e to the power of {decimal_text(total.epsilon)}, when all rows of one "
        f"{whom} are added or removed{but}."
    )
    if budget.window is not Window.NEVER:
        yield "The budget begins anew at times: what all windows lose together has no bound."
    if budget.accounting.method is not Method.BASIC:
        yield "Costs are added up by a tighter accounting than their sum, which is proved for the same promise."
    if any(" and " in promise for promise in seen.promises):
        yield (
            "The promise is about parts of what a person does: what one person does under several units is protected "
            "one by one, not together."
        )
