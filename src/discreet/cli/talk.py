"""What is said on stderr. Data goes to stdout, talk goes here, so that a pipe gets the data alone."""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.estimate import Estimate
    from discreet.privacy import PrivacyLoss

__all__ = [
    "about_answer",
    "about_estimate",
    "about_share",
    "be_quiet",
    "is_quiet",
    "say",
    "show_loss",
    "show_number",
    "show_time",
    "warn_of_epsilon",
]

LARGE_EPSILON = 10


class _Voice:
    """Whether there is talk at all."""

    quiet = False


def be_quiet(quiet: bool) -> None:
    """From now on say errors only; or say everything again."""
    _Voice.quiet = quiet


def is_quiet() -> bool:
    """Whether --quiet was given."""
    return _Voice.quiet


def say(text: str, *, error: bool = False) -> None:
    """One line on stderr; with --quiet, errors only. Where stderr is closed or full, nothing is said, and nothing
    fails."""
    if sys.stderr is None or (_Voice.quiet and not error):
        return
    try:
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - this is the one place that talks
    except (OSError, ValueError):
        return


def warn_of_epsilon(epsilon: Fraction) -> None:
    """A large epsilon is allowed, with a word."""
    from discreet.exact import decimal_text

    if epsilon > LARGE_EPSILON:
        say(
            f"warning: epsilon {decimal_text(epsilon)} is above {LARGE_EPSILON}: the answer is close to exact and "
            "protects hardly anyone"
        )


def about_answer(answer: Answer) -> None:
    """What it cost, what is left, whom it protects and how, and how to read the numbers."""
    left = show_loss(answer.left) if answer.left else "unknown"
    if answer.replayed:
        which = f"the stored answer of ledger entry {answer.entry}, from {show_time(answer.replayed)}"
        again = f"--fresh asks the data of today, for {show_loss(answer.cost)}"
        say(f"replayed: {which}; spent: nothing; left: {left}; {again}")
    else:
        say(f"spent: {show_loss(answer.cost)}; left: {left}")
    say(_protects(answer.details))
    say_selection(answer.details)
    if answer.details.get("picked"):
        say(str(answer.details["picked"]))
    say(_intervals())
    if any(_negative_count(column) for column in answer.columns):
        say("negative counts are noise around a small true count; they are kept, since cutting them off biases totals")


def about_estimate(estimate: Estimate) -> None:
    """What it would cost, and what it would leave."""
    from discreet.exact import decimal_text

    text = f"would cost: {show_loss(estimate.cost)}"
    if estimate.left is None:
        text += "; no budget is set yet (--budget)"
    elif estimate.left.epsilon < 0 or estimate.left.delta < 0:
        short = [f"epsilon {decimal_text(-estimate.left.epsilon)}"] if estimate.left.epsilon < 0 else []
        short += [f"delta {decimal_text(-estimate.left.delta, digits=30)}"] if estimate.left.delta < 0 else []
        text += f"; the budget is too small by {' and '.join(short)}: the query would be refused"
    else:
        text += f"; would leave: {show_loss(estimate.left)}"
    say(text)
    if estimate.more:
        say(f"about {show_number(estimate.more)} like this one fit into the budget, this one included")
    say(_protects(estimate.details))
    say_selection(estimate.details)
    say("the plan alone told this: no data was read for it, and nothing was charged")


def about_share(analyst: str, left: Fraction, cost: Fraction) -> None:
    """What one analyst may still spend, by the owner's policy."""
    from discreet.exact import decimal_text

    text = f"left of the share of analyst {analyst!r}: epsilon {decimal_text(max(left, Fraction(0)))}"
    say(text + ("; the query would be refused" if cost > left else ""))


def show_number(number: int) -> str:
    """How many queries fit: a million stands for all that is more."""
    return "a million or more" if number >= 1_000_000 else f"{number:,}"


def say_selection(details: dict[str, object]) -> None:
    """Where groups were chosen from the data: the threshold, what drove it, and how to get more."""
    chosen = details.get("group_selection")
    if not isinstance(chosen, dict):
        return
    released = chosen["released_groups"]
    if released == 0:
        say(f"no group passed: {chosen['why']}")
        say(f"to get groups: {chosen['more_groups']}")
        return
    passed = "" if released is None else f"; {released} passed"
    say(f"groups chosen from the data: {chosen['why']}{passed}; to get more: {chosen['more_groups']}")


def _protects(details: dict[str, object]) -> str:
    limits = details["limits"]
    shown = ", ".join(f"{name} {value}" for name, value in limits.items()) if isinstance(limits, dict) else ""
    promise = str(details["promise"])
    if " and " in promise:
        first = promise.removeprefix("per ").split(" and ")[0]
        promise += f": what one {first} does under two of these is protected one by one, not together"
    return (
        f"privacy unit: {details['privacy_unit']} ({promise}); neighbours: {details['relation']}; limits: {shown}; "
        f"time zone {details['timezone']}"
    )


def _intervals() -> str:
    return "intervals cover the noise, not what limits and bounds clipped"


def _negative_count(column: object) -> bool:
    described = str(getattr(column, "described", ""))
    values = getattr(column, "values", ())
    counted = described.startswith("COUNT") and getattr(column, "low", None) is not None
    return counted and any(value is not None and value < 0 for value in values)


def show_time(time: str) -> str:
    """A ledger's time to the second: "2024-05-01T10:00:00Z"."""
    return time[:19] + "Z"


def show_loss(loss: PrivacyLoss) -> str:
    """A loss in words; delta only where it is not 0."""
    from discreet.exact import decimal_text

    text = f"epsilon {decimal_text(loss.epsilon)}"
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if loss.delta > 0 else text
