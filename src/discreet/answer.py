"""What leaves: noisy values with their intervals, what they cost, and what is left. No exact total is here."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from discreet.exact import decimal_text
from discreet.plan import Measurement, Plan, PlannedOutput
from discreet.privacy import RELATION, PrivacyLoss
from discreet.query import Scalar
from discreet.schema import FLOAT, Kind, Type
from discreet.selection import Selection
from discreet.time_values import quantity_text

if TYPE_CHECKING:
    from discreet.pictures import Drawing

__all__ = ["Answer", "AnswerColumn", "Value", "describe_measurement", "details_of", "loss_texts", "plain"]

Value = Scalar | float


@dataclass(frozen=True)
class AnswerColumn:
    """One column of an answer.

    Attributes:
        name: as the query named it.
        described: what it is, in the words of SQL ("COUNT(*)").
        values: one value a group, in the order of the keys, or as the query's ORDER BY says.
        low, high: the ends of the interval, None where there is none (a quotient whose divisor may be 0, a CASE);
            no ends at all for key columns and for outputs that are neither numbers nor averages or quantiles of dates.
        type: of the values.
    """

    name: str
    described: str
    values: tuple[Value, ...]
    low: tuple[Value, ...] | None = None
    high: tuple[Value, ...] | None = None
    type: Type = FLOAT

    @property
    def is_key(self) -> bool:
        return self.low is None


@dataclass(frozen=True)
class Answer:
    """A private answer.

    Attributes:
        columns: keys and statistics, in the order of the query.
        confidence: of the intervals. They cover the noise, not the clipping.
        cost: what the release of this answer cost, once; see `charged`.
        left: what is left of the budget now; None where no ledger was asked.
        entry: the number of the ledger's entry.
        details: the plan in plain values: unit, relation, limits, measurements with their scales.
        replayed: when it was asked first (ISO 8601, UTC), if this is the stored answer given again, at no cost; ""
            for a new one.
    """

    columns: tuple[AnswerColumn, ...]
    confidence: Fraction
    cost: PrivacyLoss
    left: PrivacyLoss | None
    entry: int | None
    details: dict[str, Any] = field(repr=False)
    replayed: str = ""

    @property
    def epsilon(self) -> Fraction:
        """What the release of this answer cost, once."""
        return self.cost.epsilon

    @property
    def charged(self) -> PrivacyLoss:
        """What the ledger charged for giving it this time: its cost, or nothing if it was replayed."""
        return PrivacyLoss(Fraction(0)) if self.replayed else self.cost

    def __len__(self) -> int:
        """How many groups."""
        return len(self.columns[0].values)

    def __getitem__(self, name: str) -> tuple[Value, ...]:
        """A column's values by its name.

        Raises:
            KeyError: no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column.values
        raise KeyError(name)

    def names(self) -> tuple[str, ...]:
        """The names of a row's fields, in order; also where the answer has no row."""
        found: list[str] = []
        for column in self.columns:
            found.append(column.name)
            if column.low is not None:
                found += [f"{column.name}_low", f"{column.name}_high"]
        return tuple(found)

    def rows(self) -> Iterator[dict[str, Value]]:
        """One row a group: each statistic under its name, `<name>_low` and `<name>_high` beside it."""
        for i in range(len(self)):
            row: dict[str, Value] = {}
            for column in self.columns:
                row[column.name] = column.values[i]
                if column.low is not None and column.high is not None:
                    row[f"{column.name}_low"] = column.low[i]
                    row[f"{column.name}_high"] = column.high[i]
            yield row

    def to_dicts(self) -> list[dict[str, Value]]:
        """The rows as a list of dictionaries; keys and dates as Python values."""
        return list(self.rows())

    def to_arrow(self) -> Any:
        """The rows as a `pyarrow.Table`.

        Raises:
            UsageError: pyarrow is not installed.
        """
        from discreet.answer_tables import to_arrow

        return to_arrow(self)

    def to_pandas(self) -> Any:
        """The rows as a `pandas.DataFrame`; missing keys and intervals are missing there too.

        Raises:
            UsageError: pandas is not installed.
        """
        from discreet.answer_tables import to_pandas

        return to_pandas(self)

    def to_polars(self) -> Any:
        """The rows as a `polars.DataFrame`.

        Raises:
            UsageError: Polars is not installed.
        """
        from discreet.answer_tables import to_polars

        return to_polars(self)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Drawing:
        """The answer as a picture: bars, or lines over time, with the intervals; grey where one covers 0.

        Args:
            path: of a file that ends in .svg or .png, to be written too. Without one the picture is an SVG.

        Raises:
            UsageError: matplotlib is not installed (`pip install 'discreet[plot]'`), or another ending.
            OutputError: the file cannot be written.
        """
        from discreet.chart import chart
        from discreet.pictures import draw_chart, format_of

        drawing = draw_chart(chart(self), "svg" if path is None else format_of(path))
        if path is not None:
            drawing.save(path)
        return drawing

    def report(self) -> dict[str, Any]:
        """Everything about the answer as plain JSON values: what a reader must know to use and to check it."""
        return {
            "rows": [{name: plain(value) for name, value in row.items()} for row in self.rows()],
            "confidence": decimal_text(self.confidence),
            "intervals": "cover the noise; they do not cover what clipping to bounds and limits changed",
            "epsilon": decimal_text(self.cost.epsilon),
            "delta": decimal_text(self.cost.delta, digits=30),
            "charged": loss_texts(self.charged),
            "left": None if self.left is None else loss_texts(self.left),
            "ledger_entry": self.entry,
            "replay": {"first_asked": self.replayed} if self.replayed else None,
            **self.details,
        }

    def __str__(self) -> str:
        from discreet.formats import as_table

        table = as_table(self)
        promise, zone = self.details["promise"], self.details["timezone"]
        # What a reader would take for granted is not said: a promise per person, and UTC.
        said = [promise] if " and " in promise else []
        said += [f"time zone {zone}"] if zone != "UTC" else []
        said += [f"the stored answer of ledger entry {self.entry}, given again at no cost"] if self.replayed else []
        return (table + "\n".join(["", "; ".join(said)]) if said else table).rstrip("\n")

    def _repr_html_(self) -> str:
        """For notebooks."""
        from discreet.html import answer_html

        return answer_html(self)

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self.columns)
        promise = self.details.get("promise", "")
        again = ", replayed" if self.replayed else ""
        return f"<Answer of {len(self)} groups: {names}; epsilon {decimal_text(self.epsilon)} {promise}{again}>"


def loss_texts(loss: PrivacyLoss) -> dict[str, str]:
    """A loss as plain JSON values. Exact numbers are text."""
    return {"epsilon": decimal_text(loss.epsilon), "delta": decimal_text(loss.delta, digits=30)}


def plain(value: Value) -> Any:
    """A key or statistic as a JSON value: dates as ISO text, decimals as numbers."""
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    return value


def describe_measurement(measurement: Measurement, name: str) -> dict[str, Any]:
    """A measurement as plain JSON values. Exact numbers are text."""
    scale = measurement.scale
    described: dict[str, Any] = {
        "measured": name,
        "mechanism": "discrete Laplace",
        "sensitivity": str(measurement.sensitivity),
        "epsilon": str(measurement.epsilon),
        "scale": str(scale),
        "one_unit_is": str(measurement.unit_value),
        "scale_in_the_answer": float(scale * measurement.unit_value),
    }
    kind = Kind.FLOAT if measurement.expression is None else measurement.expression.type.kind
    if kind.is_temporal and measurement.statistic in ("centred_sum", "bins"):
        described["values_in"] = "days" if kind is Kind.DATE else "microseconds"
    if measurement.grid is not None:
        bounds = measurement.grid.bounds
        described["bounds"] = [quantity_text(bound, kind) for bound in (bounds.lower, bounds.upper)]
        described["grid_step"] = str(measurement.grid.step)
    if measurement.bins is not None:
        bins = measurement.bins
        ends = bins.grid.bounds
        described["bounds"] = [quantity_text(bound, kind) for bound in (ends.lower, ends.upper)]
        described["bin_width"] = str(bins.grid.step * bins.size)
        described["level"] = f"{measurement.level + 1} of {len(bins.sizes)}: {measurement.cells} counts a group"
    return described


_WORDS = {
    "count": "count of rows",
    "count_if": "count of rows that meet a condition",
    "sum": "sum",
    "centred_sum": "sum around the centre of the bounds",
    "centred_square": "sum of squares around the centre of the bounds",
    "unit_count": "count of units",
    "distinct_count": "count of different values",
    "bins": "counts of a tree of bins",
    "group_sum": "sum of what each unit has in a group",
    "group_count": "count of rows, of each unit in a group",
    "group_count_if": "count of rows that meet a condition, of each unit in a group",
}


_PICKED = (
    "the groups shown were picked by noisy values: each interval is about its own group, and a value that was picked "
    "for being large is likely too large"
)


def describe_selection(selection: Selection, released: int | None) -> dict[str, Any]:
    """How groups are chosen, as plain JSON values, with what the threshold comes from and how to lower it."""
    drivers = (
        f"a group is shown if its noisy number of units is at least {selection.threshold}; that comes from noise of "
        f"scale {decimal_text(selection.scale)} (max_groups_contributed {selection.limit} / epsilon "
        f"{decimal_text(selection.epsilon)}) and delta {decimal_text(selection.delta, digits=30)}"
    )
    if selection.minimum > 1:
        drivers += f", and from min_privacy_units_per_group {selection.minimum}"
    return {
        "strategy": "LAPLACE_THRESHOLD",
        "threshold": selection.threshold,
        "scale": str(selection.scale),
        "epsilon": str(selection.epsilon),
        "delta": decimal_text(selection.delta, digits=30),
        "max_groups_contributed": selection.limit,
        "min_privacy_units_per_group": selection.minimum,
        "why": drivers,
        "more_groups": "list the keys (--keys), lower max_groups_contributed, or raise epsilon or delta",
        "released_groups": released,
    }


def details_of(plan: Plan, released: int | None = None) -> dict[str, Any]:
    """A plan as plain JSON values, for reports and the ledger.

    Args:
        plan: the query's.
        released: how many groups were chosen, once they are.
    """
    from discreet import __version__
    from discreet.expressions import Field

    described = []
    for measurement in plan.measurements:
        name = _WORDS[measurement.statistic]
        if isinstance(measurement.expression, Field):
            link = "where present: " if measurement.statistic == "count" else "of "
            name += f", {link}{measurement.expression.name}"
        described.append(describe_measurement(measurement, name))
        described[-1]["share"] = str(measurement.epsilon / plan.loss.epsilon)
    return {
        "source": plan.registration.source,
        "query": plan.text,
        "privacy_unit": plan.unit.text,
        "promise": plan.unit.promise,
        "relation": RELATION,
        "timezone": plan.timezone,
        "limits": plan.limits(),
        "keys": [
            {"names": [plan.keys[column].name for column in keys.columns], "listed": len(keys.rows)}
            for keys in plan.key_lists
        ],
        "public_tables": [
            {"name": join.table.name, "join": "left" if join.left else "inner", "content": join.table.content}
            for join in plan.joins
        ],
        "picked": _PICKED if plan.having is not None or plan.limit is not None or plan.offset else None,
        "group_selection": None if plan.selection is None else describe_selection(plan.selection, released),
        "statistics": [_statistic(output) for output in plan.outputs if output.function != "key"],
        "measurements": described,
        "digest": plan.digest,
        "software": f"discreet {__version__}",
    }


def _statistic(output: PlannedOutput) -> dict[str, Any]:
    return {"name": output.name, "asked": output.described, "from_measurements": list(output.sources)}
