"""A black-box test of a privacy loss: what many runs on two neighbours show, with certainty.

(epsilon, delta)-differential privacy says P(E) <= e^epsilon P'(E) + delta for every event E, P and P' being the laws of
the output on the two (Dwork and Roth 2014, definition 2.4). So any event gives a lower bound of the true epsilon,

    epsilon >= ln((P(E) - delta) / P'(E)).

Events are chosen on one half of the runs and counted on the other, which knows nothing of the choice. There P(E) is
bounded from below and P'(E) from above by Clopper and Pearson, each at 1 / (2 m) of the error, m being the number of
chosen events (Bonferroni). The idea is that of Ding, Wang, Wang, Zhang and Kifer 2018, "Detecting violations of
differential privacy", and of Bichsel et al. 2021, "DP-Sniper".
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit.binomial import lower_bound, upper_bound

__all__ = ["MOST_EVENTS", "Certified", "Event", "Features", "certified_bound", "certify", "choose", "examine"]

Numbers: TypeAlias = NDArray[np.float64]
Features: TypeAlias = Mapping[str, Numbers]
"""What is looked at in an output, by name: one number a run. NaN is a value like others: that of "nothing there"."""

MOST_EVENTS = 6
_THRESHOLDS = 80
_MOST_VALUES = 12


@dataclass(frozen=True)
class Event:
    """A set of outputs, and on which of the two tables it is the likelier.

    Attributes:
        feature: what is looked at.
        relation: ">=", "<", "=" or "is missing".
        value: what it is compared with.
        whole: whether it is likelier on the whole table than on the one without the unit.
    """

    feature: str
    relation: str
    value: float
    whole: bool

    def count(self, features: Features) -> int:
        """In how many runs it happened."""
        numbers = features[self.feature]
        match self.relation:
            case ">=":
                return int(np.count_nonzero(numbers >= self.value))
            case "<":
                return int(np.count_nonzero(numbers < self.value))
            case "=":
                return int(np.count_nonzero(numbers == self.value))
            case _:
                return int(np.count_nonzero(np.isnan(numbers)))

    def __str__(self) -> str:
        value = "" if self.relation == "is missing" else f" {self.value:.6g}"
        return f"{self.feature} {self.relation}{value}"


@dataclass(frozen=True)
class Certified:
    """The largest lower bound of epsilon among some events.

    Attributes:
        bound: epsilon is at least this, with probability 1 - error. At least 0.
        error: of all events together.
        event: the one that shows it; None if nothing was to be seen.
        often, seldom: in how many runs it happened, on the table where it is likelier and on the other.
        trials: the runs that were counted, on each table.
    """

    bound: float
    error: float
    event: Event | None
    often: int
    seldom: int
    trials: int


def choose(whole: Features, without: Features, delta: float, most: int = MOST_EVENTS) -> list[Event]:
    """The events that promise the largest bounds, judged by these runs alone."""
    scored: list[tuple[float, Event]] = []
    for name in whole:
        best: dict[bool, tuple[float, Event]] = {}
        for event, a, b in _candidates(name, whole[name], without[name]):
            often, seldom = (a, b) if event.whole else (b, a)
            score = _promise(often, seldom, len(whole[name]), delta)
            if event.whole not in best or score > best[event.whole][0]:
                best[event.whole] = (score, event)
        scored += best.values()
    scored.sort(key=lambda pair: -pair[0])
    return [event for score, event in scored[:most] if score > 0]


def _candidates(name: str, whole: Numbers, without: Numbers) -> Iterator[tuple[Event, int, int]]:
    """Events of one feature, with their counts on both tables, in both directions."""
    counts: list[tuple[str, float, int, int]] = []
    missing = int(np.isnan(whole).sum()), int(np.isnan(without).sum())
    if missing != (0, 0):
        counts.append(("is missing", math.nan, *missing))
    a, b = np.sort(whole[~np.isnan(whole)]), np.sort(without[~np.isnan(without)])
    both = np.concatenate([a, b])
    if both.size:
        places = np.unique(np.linspace(0, both.size - 1, _THRESHOLDS).astype(np.int64))
        values = np.unique(np.sort(both)[places])
        below_a, below_b = np.searchsorted(a, values), np.searchsorted(b, values)
        for value, x, y in zip(values.tolist(), below_a.tolist(), below_b.tolist(), strict=True):
            counts.append(("<", value, x, y))
            counts.append((">=", value, len(a) - x, len(b) - y))
        kinds, sizes = np.unique(both, return_counts=True)
        for value in kinds[np.argsort(-sizes)[:_MOST_VALUES]].tolist():
            counts.append(("=", value, int(np.count_nonzero(a == value)), int(np.count_nonzero(b == value))))
    for relation, value, x, y in counts:
        for likelier in (True, False):
            yield Event(name, relation, value, likelier), x, y


def _promise(often: int, seldom: int, trials: int, delta: float) -> float:
    """About the bound that these counts would give: with four standard deviations either way."""
    low = (often - 4 * math.sqrt(often * (1 - often / trials))) / trials - delta
    high = (seldom + 4 * math.sqrt(seldom * (1 - seldom / trials)) + 16) / trials
    return math.log(low / high) if low > 0 else -math.inf


def certified_bound(often: int, seldom: int, trials: int, delta: float, error: float) -> float:
    """The lower bound of epsilon that one event gives, with probability 1 - error at least."""
    low = lower_bound(often, trials, error / 2) - delta
    high = upper_bound(seldom, trials, error / 2)
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def certify(events: Sequence[Event], whole: Features, without: Features, delta: float, error: float) -> Certified:
    """The best bound of some events, on runs that had no part in choosing them."""
    trials = len(next(iter(whole.values())))
    best = Certified(0.0, error, None, 0, 0, trials)
    for event in events:
        a, b = event.count(whole), event.count(without)
        often, seldom = (a, b) if event.whole else (b, a)
        bound = certified_bound(often, seldom, trials, delta, error / len(events))
        if best.event is None or bound > best.bound:
            best = Certified(bound, error, event, often, seldom, trials)
    return best


def examine(whole: Features, without: Features, delta: float, errors: Sequence[float]) -> list[Certified]:
    """Choose on the first half of the runs, certify on the second, once for each error."""

    def half(features: Features, second: bool) -> Features:
        return {name: x[len(x) // 2 :] if second else x[: len(x) // 2] for name, x in features.items()}

    events = choose(half(whole, False), half(without, False), delta)
    return [certify(events, half(whole, True), half(without, True), delta, error) for error in errors]
