"""What every report says in words: the promise, how it is kept, and what it does not cover.

The topics of `evaluation` are those of NIST SP 800-226, *Guidelines for Evaluating Differential Privacy Guarantees*
(2025): what a reader needs to judge a guarantee, and to compare it with another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from discreet.deployment import Deployment, Release
from discreet.exact import decimal_text
from discreet.ledger import Method, Window
from discreet.privacy import RELATION, PrivacyLoss

__all__ = [
    "NOT_PROTECTED",
    "accounting",
    "evaluation",
    "guarantee",
    "loss_text",
    "mechanisms",
    "post_processing",
    "settings",
    "units",
]

NOT_PROTECTED: tuple[tuple[str, str], ...] = (
    ("Time and memory", "How long a query takes, and how much memory and disk it needs, depends on the data."),
    (
        "Wrong declarations",
        "The promise is about the declared privacy unit. If two persons share one, or one person has several, it is "
        "about the unit and not the person. Keys and tables that were declared public are not protected.",
    ),
    (
        "The computer",
        "Whoever can read the source's files, or the memory of the process, does not need to ask. A process that is "
        "killed may leave a spill folder with rows behind.",
    ),
    (
        "The ledger",
        "Whoever can write it, or put back an older copy, can spend twice. The head at the end of this report "
        "tells, if it is kept elsewhere.",
    ),
    ("Clipping", "Intervals cover the noise. They do not cover what limits and bounds cut off."),
    (
        "The schema",
        "Names and types of the columns were disclosed by the owner; types may have been found by reading the source.",
    ),
    (
        "Other releases",
        "What was published about the same persons by other means, or from other budgets, adds to what is lost here.",
    ),
)
"""What no answer of discreet's protects: short names, and a sentence or two each."""


def loss_text(loss: PrivacyLoss) -> str:
    """A loss in words; delta only where it is not 0."""
    text = f"epsilon {decimal_text(loss.epsilon)}"
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if loss.delta else text


def units(found: Deployment) -> str:
    """Whom the promise is about: "actor (per actor)"."""
    names = [found.budget.unit] if found.budget is not None else []
    promises = f" ({', '.join(found.promises)})" if found.promises else ""
    return (names[0] if names else "not set") + promises


def guarantee(found: Deployment) -> str:
    """The promise in one sentence."""
    if found.budget is None:
        return "No budget is set, so nothing was answered and nothing is promised."
    total = found.budget.total
    per = "" if found.budget.window is Window.NEVER else f" in each {_WINDOWS[found.budget.window]}"
    delta = decimal_text(total.delta, digits=30)
    more = f", but for a chance of {delta}" if total.delta else ""
    return (
        f"When all rows of one privacy unit are added or removed, however many they are, the odds of all answers "
        f"together{per} change by a factor of at most e^{decimal_text(total.epsilon)}{more}."
    )


_WINDOWS = {
    Window.DAILY: "day",
    Window.WEEKLY: "week",
    Window.MONTHLY: "month",
    Window.QUARTERLY: "quarter",
    Window.YEARLY: "year",
}


def accounting(found: Deployment) -> str:
    """How losses are added up."""
    basic = (
        "basic composition: the epsilons and deltas of all queries, chosen one after the other by whoever asks, add up "
        "(Dwork and Roth 2014, theorem 3.16). One query's statistics and groups share its epsilon: all groups are one "
        "vector, limited by the L1 sensitivity. No other parallel composition is claimed"
    )
    if found.budget is None or found.budget.accounting.method is Method.BASIC:
        text = basic
    elif found.budget.accounting.method is Method.RENYI:
        order = found.budget.accounting.order
        at = "" if order is None else f" at order {decimal_text(order)}"
        text = f"a Renyi filter{at}, for epsilons chosen as one goes; never more than the sum of the losses"
    else:
        epsilon = found.budget.accounting.epsilon
        of = "" if epsilon is None else f" of epsilon {decimal_text(epsilon)} each"
        text = f"the composed privacy loss of queries{of}, fixed beforehand; never more than the sum of the losses"
    if found.budget is not None and found.budget.window is not Window.NEVER:
        text += (
            f". The budget begins anew each {_WINDOWS[found.budget.window]} (UTC): what all of them lose together has "
            "no bound"
        )
    return text + ". The same question again gets its stored answer, at no cost"


def mechanisms(found: Deployment) -> list[str]:
    """Each kind of noise that any release used, once, with the smallest and the largest scale in the answer."""
    scales: dict[str, list[float]] = {}
    for release in found.released:
        for one in release.details["measurements"]:
            measured = str(one["measured"]).partition(",")[0]
            scales.setdefault(f"{one['mechanism']} on each {measured}", []).append(float(one["scale_in_the_answer"]))
        chosen = release.details["group_selection"]
        if chosen is not None:
            name = f"discrete Laplace on each group's number of units, threshold {chosen['threshold']}"
            scales.setdefault(name, []).append(float(_number(chosen["scale"])))
    return [f"{name}: scale {_range(found_scales)}" for name, found_scales in sorted(scales.items())]


def _number(text: str) -> float:
    above, _, below = text.partition("/")
    return int(above) / int(below or 1)


def _range(scales: list[float]) -> str:
    low, high = min(scales), max(scales)
    return f"{low:,.6g}" if low == high else f"{low:,.6g} to {high:,.6g}"


def post_processing(found: Deployment) -> str:
    """What is done after the noise, at no cost."""
    text = (
        "Counts are rounded to whole numbers, negative ones kept; averages and variances are quotients of noisy "
        "sums and counts, kept within the declared bounds; quantiles come from noisy trees of counts made "
        "consistent; intervals from the law of the noise. The answers stand in the order of their keys, or as "
        "ORDER BY says of noisy values"
    )
    picked = [str(release.number) for release in found.released if release.details.get("picked")]
    if picked:
        text += f". Of release {', '.join(picked)}, HAVING or LIMIT left only some groups, by their noisy values"
    return text + "."


def settings(values: Any) -> str:
    """Limits and the like: "max_contributions 50, max_groups_contributed 3"."""
    return ", ".join(f"{name} {value}" for name, value in dict(values).items())


def _all(parts: Iterable[str], none: str) -> str:
    return "; ".join(dict.fromkeys(part for part in parts if part)) or none


def _bounds(release: Release) -> str:
    found = []
    for one in release.details.get("measurements", ()):
        if "bounds" in one:
            low, high = one["bounds"]
            found.append(f"{one['measured'].rpartition(' of ')[2]} {low}..{high}")
    return ", ".join(dict.fromkeys(found))


def evaluation(found: Deployment) -> list[tuple[str, str]]:
    """What NIST SP 800-226 asks to be known of a guarantee, topic by topic, as far as the ledger knows it."""
    budget, balance = found.budget, found.balance
    total = "not set" if budget is None else loss_text(budget.total)
    spent = "nothing" if balance is None else loss_text(balance.spent)
    limits = _all((settings(release.entry.limits) for release in found.releases), "none yet")
    bounds = _all(map(_bounds, found.released), "none needed yet")
    thresholds = _all(
        (str((r.details.get("group_selection") or {}).get("why", "")) for r in found.released),
        "none: no groups were chosen from the data",
    )
    analysts = sorted({share.analyst or "(not named)" for share in found.shares})
    return [
        ("Privacy parameters", f"{total} in all; spent so far: {spent}. Every release states its own."),
        (
            "Variant",
            "pure epsilon-differential privacy"
            if found.is_pure
            else "(epsilon, delta)-differential privacy; delta is the chance that the promise in epsilon fails",
        ),
        (
            "Unit of privacy",
            f"{units(found)}. Neighbours: {RELATION} (the unbounded relation); a unit's rows in all groups are "
            f"protected "
            "together.",
        ),
        ("Composition", accounting(found) + "."),
        (
            "Contribution limits",
            f"{limits}. A unit with more rows is weighted down to the limit; of too many groups or different "
            "values a keyed hash chooses.",
        ),
        ("Bounds", f"{bounds}. Declared by the owner or the analyst before the data were read, never taken from them."),
        ("Thresholds", f"{thresholds}."),
        (
            "Other releases and invariants",
            "No statistic was released without noise. Disclosed by the owner: names and types of the columns, and the "
            "keys and tables that were declared public.",
        ),
        ("Mechanisms", _all(mechanisms(found), "none yet") + "."),
        (
            "Utility and bias",
            "Each value has an interval for its noise. Limits and bounds pull totals towards what they allow, most for "
            "units with many rows, and no interval shows it. Small groups have the largest relative error.",
        ),
        (
            "Query model",
            "Interactive: questions are answered as they are asked, from one budget for all analysts together. "
            "Asked so "
            f"far by: {', '.join(analysts) or 'nobody'}.",
        ),
        (
            "Trust",
            "Central model: the owner, who holds the data, the ledger and the computer, is trusted. Analysts and "
            "readers are not, and may work together.",
        ),
        (
            "Implementation",
            "Only integers meet noise: no floating-point noise, and no sums whose value depends on the order of "
            "rows. The noise is drawn exactly from the operating system's randomness. The cost is debited "
            "durably before the data are read. Timing is not protected.",
        ),
        (
            "Data security and access",
            "Not known to the software: who can read the source, the ledger and the machine is the owner's to state.",
        ),
        (
            "Data collection",
            "Not known to the software: how and from whom the data were collected is the owner's to state.",
        ),
    ]
