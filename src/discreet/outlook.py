"""How the error of a query depends on its epsilon, from its plan alone; and back: the epsilon that an error needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.errors import UsageError
from discreet.estimate import Expected, expect
from discreet.exact import EPSILON_MAX, EPSILON_STEP, decimal_text, parse_rational
from discreet.laplace.scale import SCALE_MAX
from discreet.plan import Plan, PlannedOutput
from discreet.privacy import PrivacyLoss

__all__ = ["ANY_EPSILON", "COUNTS", "Curve", "Line", "Outlook", "at_epsilon", "epsilon_for", "outlook"]

ANY_EPSILON = Fraction(1, 1000)
"""What a query is planned with whose epsilon is still to be found. Shares do not depend on it."""

COUNTS = (10, 100, 1_000, 10_000)
"""Counts for which the relative error is told."""

_POINTS = 33
_AROUND = 32  # from a 32nd of the chosen epsilon to 32 times it


@dataclass(frozen=True)
class Line:
    """One line of a picture: a value for each epsilon, None where the noise would be beyond what is drawn.

    Attributes:
        label: "" where the picture has only one.
        values: one an epsilon.
        chosen: at the chosen one.
    """

    label: str
    values: tuple[float | None, ...]
    chosen: float | None


@dataclass(frozen=True)
class Curve:
    """One statistic.

    Attributes:
        name, described: as in the query.
        measure: of the half-widths, as in `Expected`; "" for the answer's own numbers.
        widths: its half-width; for what depends on the group's size one line for each of a few sizes.
        relative: of a count, the half-width as a part of counts of `COUNTS`.
    """

    name: str
    described: str
    measure: str
    widths: tuple[Line, ...]
    relative: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Outlook:
    """A query's half-widths against its epsilon.

    Attributes:
        query: as written.
        epsilons: from small to large.
        chosen: the one it was planned with.
        curves: one a statistic; none for what is computed from others.
        confidence: of the half-widths.
    """

    query: str
    epsilons: tuple[Fraction, ...]
    chosen: Fraction
    curves: tuple[Curve, ...]
    confidence: Fraction


def at_epsilon(plan: Plan, epsilon: Fraction) -> Plan:
    """The measurements and statistics of a plan as they would be at another epsilon, with the same shares.

    (Of a choice of groups nothing is told: its threshold would be another.)
    """
    factor = epsilon / plan.loss.epsilon
    measurements = tuple(replace(m, epsilon=m.epsilon * factor) for m in plan.measurements)
    return replace(plan, measurements=measurements, loss=PrivacyLoss(epsilon, plan.loss.delta))


def outlook(plan: Plan, confidence: Fraction) -> Outlook:
    """What to draw of a plan."""
    chosen = plan.loss.epsilon
    epsilons = _around(chosen)
    plans = [at_epsilon(plan, epsilon) for epsilon in epsilons]
    curves = [
        _curve(output, plan, plans, confidence)
        for output in plan.outputs
        if output.function not in ("key", "computed", "constant")
    ]
    return Outlook(" ".join(plan.text.split()), epsilons, chosen, tuple(curves), confidence)


def _around(chosen: Fraction) -> tuple[Fraction, ...]:
    steps = [Fraction(repr(_AROUND ** (2 * i / (_POINTS - 1) - 1))) for i in range(_POINTS)]
    rounded = {Fraction(round(chosen * step / EPSILON_STEP)) * EPSILON_STEP for step in steps}
    return tuple(sorted(e for e in rounded | {chosen} if EPSILON_STEP <= e <= EPSILON_MAX))


def _curve(output: PlannedOutput, plan: Plan, plans: list[Plan], confidence: Fraction) -> Curve:
    now = expect(output, plan, confidence)
    found = [_expected(output, one, confidence) for one in plans]
    if now.half_width is not None:
        lines = [Line("", tuple(None if e is None else _float(e.half_width) for e in found), float(now.half_width))]
    else:
        lines = [
            Line(f"{size:,} rows", tuple(None if e is None else e.by_size[size] for e in found), width)
            for size, width in now.by_size.items()
        ]
    relative: list[Line] = []
    if output.function in ("count", "unit_count"):
        only = lines[0]
        for count in COUNTS:
            values = tuple(None if value is None else value / count for value in only.values)
            relative.append(Line(f"count {count:,}", values, float(only.chosen or 0) / count))
    return Curve(now.name, now.described, now.measure, tuple(lines), tuple(relative))


def _float(width: float | None) -> float | None:
    return None if width is None else float(width)


def _expected(output: PlannedOutput, plan: Plan, confidence: Fraction) -> Expected | None:
    """None where the noise would be larger than any that can be drawn."""
    if any(m.scale > SCALE_MAX for m in plan.measurements):
        return None
    return expect(output, plan, confidence)


def epsilon_for(plan: Plan, targets: Mapping[str, object], confidence: Fraction) -> Fraction:
    """The smallest epsilon, on its grid of 12 decimal places, at which each named statistic has the half-width that is
    wanted, at the most, as `estimate` tells it.

    Half-widths never grow with epsilon, so that halving finds it.

    Args:
        plan: the query's, at any epsilon.
        targets: the half-width for each name.
        confidence: of the half-widths.

    Raises:
        UsageError: an unknown name; a half-width that depends on how large a group is, or that no epsilon reaches.
    """
    needed = [_epsilon_for(plan, name, wanted, confidence) for name, wanted in targets.items()]
    if not needed:
        raise UsageError("target", "must name a statistic")
    return max(needed)


def _epsilon_for(plan: Plan, name: str, wanted: object, confidence: Fraction) -> Fraction:
    thing = f"target {name!r}"
    target = parse_rational(thing, wanted, rule="must be a half-width, a number of at least 0")
    if target < 0:
        raise UsageError(thing, "must be a half-width, a number of at least 0", str(wanted))
    outputs = {output.name: output for output in plan.outputs if output.function != "key"}
    if name not in outputs:
        raise UsageError("target", f"must name a statistic of the query: {', '.join(outputs)}", name)
    output = outputs[name]
    now = expect(output, plan, confidence)
    if output.function == "constant":
        raise UsageError(thing, "has no noise: no row can change it, at any epsilon")
    if now.half_width is None:
        if now.by_size:
            why = f"has no one half-width: it depends on how many rows a group has ({now.formula})"
            raise UsageError(thing, why, hint="`discreet estimate` tells and draws it (--plot) for several sizes")
        raise UsageError(thing, "has no half-width of its own: it is computed from several; set targets for those")

    def reached(steps: int) -> bool:
        found = _expected(output, at_epsilon(plan, steps * EPSILON_STEP), confidence)
        return found is not None and found.half_width is not None and Fraction(found.half_width) <= target

    low, high = 0, int(EPSILON_MAX / EPSILON_STEP)
    if not reached(high):
        rule = f"cannot be reached, not even at epsilon {decimal_text(EPSILON_MAX)}"
        raise UsageError(thing, rule, str(wanted), "for statistics that are no whole numbers the noise is never 0")
    while high - low > 1:
        middle = (low + high) // 2
        if reached(middle):
            high = middle
        else:
            low = middle
    return high * EPSILON_STEP
