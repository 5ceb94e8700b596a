"""Look ahead: what a query will cost and how far its answers will be off. Reads no data, charges nothing."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.answer import details_of
from discreet.estimators import quantile_rank_error
from discreet.exact import decimal_text
from discreet.intervals import half_width, pair_quantile, triple_quantile
from discreet.moments import variance_error
from discreet.plan import Plan, PlannedOutput
from discreet.privacy import PrivacyLoss
from discreet.schema import Kind
from discreet.time_values import SECOND

if TYPE_CHECKING:
    from discreet.pictures import Drawing

__all__ = ["Estimate", "Expected", "estimate", "expect", "units_of_time"]

EXAMPLE_SIZES = (100, 1_000, 10_000)
"""Group sizes for which the error of an average is told: it shrinks as the group grows."""


@dataclass(frozen=True)
class Expected:
    """What to expect of one statistic.

    Attributes:
        name, described: as in the query.
        epsilon: the share of the query's epsilon that its measurements take.
        scale: of the Laplace noise on the total, in the answer's units (for an average, of the sum around the
            centre of the bounds); None for an output computed from several statistics.
        half_width: the answer is within this of the exact value, with the given confidence; None for an
            statistic whose error depends on the group's size, and for a computed output.
        by_size: for what depends on the group's size, the half-width for groups of `EXAMPLE_SIZES` rows.
        formula: how that depends on the size n.
        measure: what half-widths are in, if not in the answer's units: "days" or "seconds" for averages of dates and
            times; "of the rows" for a quantile: the answer lies between the exact quantiles p - h and p + h.
    """

    name: str
    described: str
    epsilon: Fraction
    scale: float | None
    half_width: int | float | None
    by_size: dict[int, float] = field(default_factory=dict)
    formula: str = ""
    measure: str = ""


@dataclass(frozen=True)
class Estimate:
    """The cost of a query and the error to expect, from its plan alone.

    Attributes:
        cost: what the query will cost, whole.
        left: what would be left of the budget; None while there is no budget.
        confidence: of the half-widths.
        groups: how many groups there will be; None where they are chosen from the data.
        statistics: one a statistic.
        details: the plan in plain values.
        plan: of the query.
        more: about how many queries like this one the budget takes, this one included; None while there is none.
    """

    cost: PrivacyLoss
    left: PrivacyLoss | None
    confidence: Fraction
    groups: int | None
    statistics: tuple[Expected, ...]
    details: dict[str, Any] = field(repr=False)
    more: int | None = None
    plan: Plan | None = field(default=None, repr=False, compare=False)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Drawing:
        """A picture of how the half-widths depend on epsilon, with this one marked.

        Args:
            path: of a file that ends in .svg or .png, to be written too. Without one the picture is an SVG.

        Raises:
            UsageError: matplotlib is not installed (`pip install 'discreet[plot]'`), or another ending.
            OutputError: the file cannot be written.
        """
        from discreet.outlook import outlook
        from discreet.pictures import draw_outlook, format_of

        if self.plan is None:
            raise AssertionError
        drawing = draw_outlook(outlook(self.plan, self.confidence), "svg" if path is None else format_of(path))
        if path is not None:
            drawing.save(path)
        return drawing

    def report(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "epsilon": decimal_text(self.cost.epsilon),
            "delta": decimal_text(self.cost.delta, digits=30),
            "left_after": None if self.left is None else decimal_text(self.left.epsilon),
            "queries_like_this_that_fit": self.more,
            "confidence": decimal_text(self.confidence),
            "groups": self.groups,
            "expected": [
                {
                    "name": s.name,
                    "asked": s.described,
                    "epsilon": str(s.epsilon),
                    "scale": s.scale,
                    "half_width": s.half_width,
                    "half_width_by_group_size": {str(n): w for n, w in s.by_size.items()},
                    "formula": s.formula,
                    "measure": s.measure,
                }
                for s in self.statistics
            ],
            **self.details,
        }

    def rows(self) -> list[dict[str, Any]]:
        """One row a statistic, as plain JSON values."""
        return [
            {
                "name": s.name,
                "statistic": s.described,
                "epsilon": decimal_text(s.epsilon),
                "scale": s.scale,
                "half_width": s.half_width,
                **{f"half_width_for_{n}_rows": width for n, width in s.by_size.items()},
            }
            for s in self.statistics
        ]

    def cells(self) -> tuple[list[str], list[list[str]], list[bool]]:
        """Headers, rows and whether each column is of numbers, for people."""
        rows = []
        for s in self.statistics:
            shown = f"± {s.half_width:,.6g}" if s.half_width is not None else _sizes(s.by_size, s.measure)
            scale = "" if s.scale is None else f"{s.scale:,.6g}"
            if isinstance(s.half_width, int):
                shown = f"± {s.half_width:,}"
            rows.append([s.name, s.described, decimal_text(s.epsilon), scale, shown])
        headers = ["name", "statistic", "epsilon", "scale", f"{decimal_text(self.confidence * 100)} % half-width"]
        return headers, rows, [False, False, True, True, False]

    def _repr_html_(self) -> str:
        """For notebooks."""
        from discreet.html import estimate_html

        return estimate_html(self)

    def __str__(self) -> str:
        from discreet.formats import render_table

        return render_table(*self.cells()).rstrip("\n")


_ROWS = "of the rows"
_TIMES: dict[Kind | None, tuple[float, str]] = {
    Kind.DATE: (1.0, "days"),
    Kind.TIMESTAMP: (1.0 / SECOND, "seconds"),
    Kind.TIMESTAMPTZ: (1.0 / SECOND, "seconds"),
}


def units_of_time(kind: Kind | None) -> tuple[float, str]:
    """For averages and quantiles of dates and times: what one step of their numbers (a day; a microsecond) is in the
    unit that people read, and that unit's name. For all others 1 and ""."""
    return _TIMES.get(kind, (1.0, ""))


def _sizes(by_size: dict[int, float], measure: str) -> str:
    if not by_size:
        return "computed after the noise; depends on its parts"
    if measure == _ROWS:
        return ", ".join(f"± {100 * width:.3g} % {measure} for {n:,}" for n, width in by_size.items())
    if measure:
        return ", ".join(f"± {width:,.3g} {measure} for {n:,} rows" for n, width in by_size.items())
    return ", ".join(f"± {width:,.3g} for {n:,} rows" for n, width in by_size.items())


def estimate(plan: Plan, left: PrivacyLoss | None, confidence: Fraction, more: int | None = None) -> Estimate:
    """What to expect of a plan.

    Args:
        plan: the plan.
        left: what is left of the budget before the query, if there is one.
        confidence: of the half-widths.
        more: how many such queries the budget takes.
    """
    after = None
    if left is not None:
        after = PrivacyLoss(left.epsilon - plan.loss.epsilon, left.delta - plan.loss.delta)
    groups = plan.groups if plan.selection is None else None
    statistics = tuple(expect(o, plan, confidence) for o in plan.outputs if o.function != "key")
    return Estimate(plan.loss, after, confidence, groups, statistics, details_of(plan), more, plan)


def expect(output: PlannedOutput, plan: Plan, confidence: Fraction) -> Expected:
    """What to expect of one statistic of a plan."""
    measurements = [plan.measurements[i] for i in output.sources]
    epsilon = sum((m.epsilon for m in measurements), Fraction(0))
    if output.function == "computed":
        return Expected(output.name, output.described, epsilon, None, None)
    first = measurements[0]
    of_one, measure = units_of_time(output.kind)
    scale = float(first.scale * first.unit_value) * of_one
    by_size: dict[int, float] = {}
    formula = ""
    width: int | float | None
    if output.function == "constant":
        width = 0
    elif output.function == "mean" and first.grid is not None:
        # By `moments.mean_with_interval`: |s - m k| is at most the quantile of |X + m Y|, largest at a bound,
        # where |m| is half the range. Divided by n, to first order, it is the half-width of the mean.
        b = float(measurements[1].scale * measurements[1].unit_value)
        half_range = float(first.grid.step * first.grid.width / 2) * of_one
        quantile = pair_quantile(scale, half_range * b, float(confidence))
        by_size = {n: min(quantile / n, 2 * half_range) for n in EXAMPLE_SIZES}
        width, formula = None, f"at most {quantile:.6g} / n for n rows"
    elif output.function in ("var_samp", "var_pop", "stddev_samp", "stddev_pop") and first.grid is not None:
        # By `moments.variance_error`; a standard deviation d is off by the variance's error over 2 d.
        quantile = triple_quantile(*variance_error(measurements), float(confidence))
        full = float(first.grid.step * first.grid.width)
        width, formula = None, f"at most {quantile:.6g} / n for n rows"
        by_size = {n: min(quantile / n, full**2 / 4) for n in EXAMPLE_SIZES}
        if output.function.startswith("stddev"):
            typical = full / 4
            formula = f"about {quantile:.6g} / (2 d n) for n rows and a deviation d; shown for d = {typical:.6g}"
            by_size = {n: min(quantile / (2 * typical * n), full / 2) for n in EXAMPLE_SIZES}
    elif output.function == "sum_from_mean" and first.grid is not None:
        b = float(measurements[1].scale * measurements[1].unit_value)
        centre = abs(float(first.grid.step * (first.grid.lowest + first.grid.highest) / 2))
        half_units = float(first.unit_value) / 2 + centre * float(measurements[1].unit_value) / 2
        width = pair_quantile(scale, centre * b, float(confidence)) + half_units
    elif output.function == "quantile":
        # By `quantiles.quantile_with_interval`: the rank of the answer is off by z standard deviations at most.
        reach = quantile_rank_error(output.point, measurements, float(confidence))
        by_size = {n: min(1.0, reach / n) for n in EXAMPLE_SIZES}
        width, formula, measure = None, f"at most {reach:.6g} / n for n rows", _ROWS
    else:
        width = half_width(first, confidence, whole=output.whole)
    return Expected(output.name, output.described, epsilon, scale, width, by_size, formula, measure)
