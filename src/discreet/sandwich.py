"""The noise sandwich of a query: what its picture shows, as plain words and numbers.

Bread: exact totals that nobody sees. Filling: Laplace noise, drawn to scale. Bread: the answer. It is made of the plan
and the ledger's balance alone; text, pictures and pages all draw this one description.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from discreet.estimate import Estimate, Expected, estimate, units_of_time
from discreet.exact import decimal_text
from discreet.intervals import half_width
from discreet.laplace.distribution import DiscreteLaplace
from discreet.numerals import number_text, share_text
from discreet.plan import Measurement, Plan, PlannedOutput
from discreet.privacy import PrivacyLoss
from discreet.time_values import quantity_text

__all__ = ["COUNTED", "Layer", "Noise", "Sandwich", "axis_reach", "sandwich"]


@dataclass(frozen=True)
class Noise:
    """The noise on one exact total of a group.

    Attributes:
        measured: what the total is ("count of rows").
        sensitivity: by how much one unit can move all groups' totals together, in `measure`.
        epsilon: this total's part of the query's epsilon.
        share: the same, as a part of the whole.
        scale: b = sensitivity / epsilon, in `measure`.
        band: the noise is within this of 0 with the picture's confidence, in `measure`.
        step: the noise is a multiple of this, in `measure`; so fine that it looks like a curve, or not.
        measure: what all that is counted in: "rows", "units", "days"; "" for the answer's own numbers.
        copies: how many totals of this kind a group has (levels of a tree of bins).
        same_as: the statistic further up whose noise this is; it is drawn once, and paid for once.
    """

    measured: str
    sensitivity: float
    epsilon: Fraction
    share: Fraction
    scale: float
    band: float
    step: float
    measure: str
    copies: int = 1
    same_as: str = ""


@dataclass(frozen=True)
class Layer:
    """One statistic, from left to right.

    Attributes:
        name, asked: as in the query.
        share: what its noise costs, as a part of the whole.
        weighs: what one unit can do to its totals, in words.
        noises: on its exact totals, the one that matters most first; none for a constant.
        becomes: how the answer is made of the noisy totals, and what form it has.
        width: its half-width, in words; none for the choice of groups.
        drawn: the noise whose curve is drawn; None where it would be none of its own.
    """

    name: str
    asked: str
    share: Fraction
    weighs: tuple[str, ...]
    noises: tuple[Noise, ...]
    becomes: str
    width: tuple[str, ...]
    drawn: Noise | None = None

    @property
    def costs(self) -> str:
        """What its noise costs, in words."""
        shared = [noise.same_as for noise in self.noises if noise.same_as]
        text = share_text(self.share) if self.share else "nothing"
        return f"{text} of epsilon" + (f", shared with {shared[0]}" if shared else "")


@dataclass(frozen=True)
class Sandwich:
    """A query's way from rows to answer.

    Attributes:
        source: what the source is called.
        query: the question as it was written.
        rows: the rows that are asked about, and who counts as one person, in short lines.
        limits: how much one person may weigh.
        totals: what is in the closed box.
        layers: one a statistic; where groups are chosen from the data, that choice comes first.
        confidence: of the bands and half-widths.
        cost: of the whole query.
        before, after: what is left of the budget; None where there is none yet.
        total: of the budget.
        notes: what the picture cannot show.
    """

    source: str
    query: str
    rows: tuple[str, ...]
    limits: tuple[str, ...]
    totals: tuple[str, ...]
    layers: tuple[Layer, ...]
    confidence: Fraction
    cost: PrivacyLoss
    before: PrivacyLoss | None
    after: PrivacyLoss | None
    total: PrivacyLoss | None
    notes: tuple[str, ...]

    @property
    def enough(self) -> bool:
        """Whether the budget allows the query; True while there is none."""
        return self.after is None or (self.after.epsilon >= 0 and self.after.delta >= 0)

    @property
    def level(self) -> str:
        """The confidence in words: "95 %"."""
        return f"{decimal_text(self.confidence * 100)} %"

    def __str__(self) -> str:
        from discreet.sandwich_text import draw_text

        return draw_text(self)


def sandwich(
    plan: Plan, left: PrivacyLoss | None, total: PrivacyLoss | None, confidence: Fraction, *, called: str = ""
) -> Sandwich:
    """Describe a plan. Reads no data.

    Args:
        plan: the query's.
        left: what is left of the budget now, if there is one.
        total: of that budget.
        confidence: of the bands.
        called: the source's short name.
    """
    ahead = estimate(plan, left, confidence)
    return Sandwich(
        source=called or plan.registration.source.rpartition("/")[2],
        query=" ".join(plan.text.split()),
        rows=_rows(plan),
        limits=_limits(plan),
        totals=_totals(plan),
        layers=_layers(plan, ahead),
        confidence=confidence,
        cost=plan.loss,
        before=left,
        after=ahead.left,
        total=total,
        notes=_notes(plan),
    )


def axis_reach(layers: tuple[Layer, ...]) -> tuple[float, ...]:
    """For each layer, how far its axis reaches to either side, so that curves can be compared by eye.

    All counts stand on one axis, but for those that would be a needle there.
    """
    own = [_BEYOND * layer.drawn.band if layer.drawn is not None else 0.0 for layer in layers]
    counts = [layer.drawn is not None and layer.drawn.measure in COUNTED for layer in layers]
    widest = max((reach for reach, count in zip(own, counts, strict=True) if count), default=0.0)
    found = []
    for reach, count in zip(own, counts, strict=True):
        found.append(widest if count and widest <= _NEEDLE * reach else reach)
    return tuple(reach or 1.0 for reach in found)


COUNTED = ("rows", "units", "values")
"""Measures of noise that is on a count."""

_BEYOND = 2.2  # the axis goes on beyond the band
_NEEDLE = 40.0


def _rows(plan: Plan) -> tuple[str, ...]:
    columns = len(plan.registration.schema.columns)
    lines = [f"{columns} column{'s' if columns != 1 else ''}, by the stored schema"]
    for join in plan.joins:
        lines.append(f"joined with the public table {join.table.name}")
    if plan.where is not None:
        lines.append("those that meet the WHERE")
    lines.append(f"one person is one {_who(plan)}")
    lines.append("neighbours: all rows of one person more or fewer")
    return tuple(lines)


def _who(plan: Plan) -> str:
    return plan.unit.promise.removeprefix("per ")


def _limits(plan: Plan) -> tuple[str, ...]:
    who = _who(plan)
    if plan.unit.row_level:
        return ("each row counts once, as one person",)
    rows = plan.max_contributions
    lines = [f"one {who} weighs at most {number_text(rows)} row{'s' if rows != 1 else ''} in all groups together"]
    if "max_groups_contributed" in plan.limits():
        groups = plan.max_groups_contributed
        lines.append(f"and is counted in at most {number_text(groups)} group{'s' if groups != 1 else ''}")
    lines.append("who has more is scaled down to that")
    return tuple(lines)


def _totals(plan: Plan) -> tuple[str, ...]:
    if plan.selection is not None:
        return ("exact whole numbers", "for every group in the data", "nobody ever sees them")
    cells = sum(m.cells for m in plan.measurements) * plan.groups
    many = f"{number_text(cells)} exact whole number{'s' if cells != 1 else ''}"
    groups = f"in {number_text(plan.groups)} public groups" if plan.keys else "over all rows"
    return (many, groups, "nobody ever sees them")


def _notes(plan: Plan) -> tuple[str, ...]:
    notes = ["the intervals cover the noise, not what limits and bounds clip"]
    if plan.having is not None or plan.limit is not None or plan.offset:
        notes.append("groups are picked by noisy values: one that is picked for being large is likely too large")
    if plan.timezone != "UTC":
        notes.append(f"time zone {plan.timezone}")
    return tuple(notes)


def _layers(plan: Plan, ahead: Estimate) -> tuple[Layer, ...]:
    layers = [] if plan.selection is None else [_choice(plan, ahead.confidence)]
    names = [m["measured"] for m in ahead.details["measurements"]]
    seen: dict[int, str] = {}
    outputs = [output for output in plan.outputs if output.function != "key"]
    for output, expected in zip(outputs, ahead.statistics, strict=True):
        layers.append(_layer(output, expected, plan, names, seen, ahead.confidence))
        for place in output.sources:
            seen.setdefault(place, output.name)
    return tuple(layers)


def _choice(plan: Plan, confidence: Fraction) -> Layer:
    """The choice of groups, which is a noisy count of its own."""
    selection = plan.selection
    if selection is None:
        raise AssertionError
    share = selection.epsilon / plan.loss.epsilon
    noise = Noise(
        measured="count of units",
        sensitivity=float(selection.limit),
        epsilon=selection.epsilon,
        share=share,
        scale=float(selection.scale),
        band=float(DiscreteLaplace(selection.scale).half_width(confidence)),
        step=1.0,
        measure="units",
    )
    groups = f"{number_text(selection.limit)} group{'s' if selection.limit != 1 else ''}"
    return Layer(
        name="(groups)",
        asked="which groups are shown",
        share=share,
        weighs=(f"one {_who(plan)} is counted in at most {groups}",),
        noises=(noise,),
        becomes=f"shown if the noisy number of units is at least {number_text(selection.threshold)}; a group that "
        f"holds one unit only is shown with a chance of at most delta {decimal_text(selection.delta, digits=30)}",
        width=(),
        drawn=noise,
    )


def _layer(
    output: PlannedOutput,
    expected: Expected,
    plan: Plan,
    names: list[str],
    seen: dict[int, str],
    confidence: Fraction,
) -> Layer:
    per_unit, measure = units_of_time(output.kind)
    noises: list[Noise] = []
    for place in output.sources if output.function != "constant" else ():
        found = _noise(plan, place, names[place], per_unit, measure, seen.get(place, ""), confidence)
        previous = noises[-1] if noises else None
        if previous is not None and plan.measurements[place].bins is not None:
            # The levels of a tree have one sensitivity, and shares of nearly one size: one curve stands for them all.
            noises[-1] = _joined(previous, found)
        else:
            noises.append(found)
    share = sum((noise.share for noise in noises), Fraction(0))
    return Layer(
        name=output.name,
        asked=expected.described,
        share=share,
        weighs=_weighs(output, plan, noises),
        noises=tuple(noises),
        becomes=_becomes(output, noises),
        width=_width(expected),
        drawn=noises[0] if noises and output.function != "computed" else None,
    )


def _noise(
    plan: Plan, place: int, name: str, per_unit: float, measure: str, same_as: str, confidence: Fraction
) -> Noise:
    m = plan.measurements[place]
    rows = {"unit_count": "units", "count": "rows", "count_if": "rows", "bins": "rows", "distinct_count": "values"}
    rows |= {"group_count": "rows", "group_count_if": "rows"}
    in_rows = m.statistic in rows
    factor = float(m.unit_value) * (1.0 if in_rows else per_unit)
    return Noise(
        measured=name,
        sensitivity=m.sensitivity * factor,
        epsilon=m.epsilon,
        share=m.epsilon / plan.loss.epsilon,
        scale=float(m.scale) * factor,
        band=half_width(m, confidence, whole=False) * factor / float(m.unit_value),
        step=factor,
        measure=rows.get(m.statistic, measure),
        same_as=same_as,
    )


def _joined(first: Noise, second: Noise) -> Noise:
    """Two levels of one tree; the wider noise is drawn."""
    wide = first if first.scale >= second.scale else second
    return Noise(
        measured=first.measured,
        sensitivity=wide.sensitivity,
        epsilon=first.epsilon + second.epsilon,
        share=first.share + second.share,
        scale=wide.scale,
        band=wide.band,
        step=wide.step,
        measure=wide.measure,
        copies=first.copies + 1,
        same_as=first.same_as,
    )


def _weighs(output: PlannedOutput, plan: Plan, noises: list[Noise]) -> tuple[str, ...]:
    if not noises:
        return ("nothing: no row can change it",) if output.function == "constant" else ("as its parts do",)
    first = noises[0]
    moved = f"{number_text(first.sensitivity)} {first.measure}".strip()
    lines = [f"moves the totals by at most {moved}"]
    bounds = _bounds(plan.measurements[output.sources[0]])
    if bounds:
        lines.append(f"values are clamped to {bounds}")
    if first.copies > 1:
        lines.append(f"in each of {first.copies} levels of a tree of bins")
    return tuple(lines)


def _bounds(measurement: Measurement) -> str:
    grid = measurement.grid or (measurement.bins and measurement.bins.grid)
    if not grid or measurement.expression is None:
        return ""
    kind = measurement.expression.type.kind
    ends = [grid.bounds.lower, grid.bounds.upper]
    if kind.is_temporal:
        return " … ".join(quantity_text(end, kind) for end in ends)
    return " … ".join(number_text(int(end) if end.denominator == 1 else float(end)) for end in ends)


_BECOMES = {
    "count": "the noisy total",
    "unit_count": "the noisy total",
    "sum": "the noisy total",
    "mean": "noisy sum / noisy count, within the bounds",
    "sum_from_mean": "noisy sum + centre × noisy count",
    "var_samp": "from noisy squares, sum and count",
    "var_pop": "from noisy squares, sum and count",
    "stddev_samp": "the root of a noisy variance",
    "stddev_pop": "the root of a noisy variance",
    "quantile": "where the noisy counts reach the rank",
    "constant": "the constant itself",
    "computed": "computed from noisy statistics",
}


def _becomes(output: PlannedOutput, noises: list[Noise]) -> str:
    text = _BECOMES[output.function]
    if output.whole and noises:
        text += ", a whole number"
    return text


def _width(expected: Expected) -> tuple[str, ...]:
    if expected.half_width is not None:
        return (f"± {number_text(expected.half_width)}",)
    if not expected.by_size:
        return ("depends on its parts",)
    measure = expected.measure
    if measure == "of the rows":
        return tuple(f"± {100 * width:.3g} % {measure} for {n:,}" for n, width in expected.by_size.items())
    unit = f" {measure}" if measure else ""
    return tuple(f"± {number_text(width, 3)}{unit} for {n:,} rows" for n, width in expected.by_size.items())
