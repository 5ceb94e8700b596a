"""The chart of an answer: what is drawn of it, as plain values. Pictures and pages draw this one description."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from discreet.answer import Answer, AnswerColumn, Value
from discreet.exact import decimal_text
from discreet.formats import key_text, shown_values

__all__ = ["Chart", "Mark", "Moment", "Number", "Panel", "chart", "panels_of"]

Number: TypeAlias = float
Moment: TypeAlias = datetime.datetime

MOST_SERIES = 12
"""Of lines side by side; more are drawn as bars."""


@dataclass(frozen=True)
class Mark:
    """One group's statistic.

    Attributes:
        group: its key, as it is shown.
        value, low, high: as numbers, or as times where the panel says so; None where there is none, or where it is too
            large to be drawn.
        doubtful: whether the interval covers 0: the noise alone may have made the value.
        shown: in words, as in the table.
        at: the group's place on a time axis.
    """

    group: str
    value: Number | Moment | None
    low: Number | Moment | None
    high: Number | Moment | None
    doubtful: bool
    shown: str
    at: Moment | None = None


@dataclass(frozen=True)
class Panel:
    """One statistic; in charts over time, one statistic of one series.

    Attributes:
        name, described: as in the answer.
        series: which series of a chart over time; "" where there is only one.
        marks: one a group, in the answer's order, or in that of time.
        temporal: whether its values are dates or times.
    """

    name: str
    described: str
    series: str
    marks: tuple[Mark, ...]
    temporal: bool


@dataclass(frozen=True)
class Chart:
    """All statistics of an answer.

    Attributes:
        title: the question.
        grouped_by: the names of the keys.
        panels: statistics, or series by statistics; none if the answer has no number.
        over_time: whether groups stand on a time axis.
        level: of the intervals, in words: "95 %".
        notes: what a reader must know, in sentences.
    """

    title: str
    grouped_by: str
    panels: tuple[Panel, ...]
    over_time: bool
    level: str
    notes: tuple[str, ...]

    @property
    def columns(self) -> int:
        """How many statistics stand side by side."""
        return len({panel.name for panel in self.panels})


def chart(answer: Answer) -> Chart:
    """What is to be drawn of an answer."""
    statistics = {statistic["name"] for statistic in answer.details["statistics"]}
    keys = [column for column in answer.columns if column.name not in statistics]
    drawn = [column for column in answer.columns if column.low is not None and column.high is not None]
    time = _time_key(keys, len(answer))
    others = [key for key in keys if key is not time]
    series = _labels(others, len(answer))
    notes = [f"thin lines: {decimal_text(answer.confidence * 100)} % intervals; grey: the interval covers 0"]
    if time is not None:
        panels = [_over_time(column, time, series, one) for one in dict.fromkeys(series) for column in drawn]
        missing = [i for i, value in enumerate(time.values) if value is None]
        for i in missing:
            shown = "; ".join(f"{column.name} {shown_values(column)[i]}" for column in drawn)
            notes.append(f"{time.name} missing{', ' + series[i] if series[i] else ''}: {shown}")
    else:
        labels = _labels(keys, len(answer)) if keys else ["all rows"] * len(answer)
        panels = [_panel(column, labels) for column in drawn]
    notes.append("the intervals cover the noise, not what limits and bounds clipped")
    if answer.details.get("picked"):
        notes.append(str(answer.details["picked"]))
    return Chart(
        title=" ".join(str(answer.details["query"]).split()),
        grouped_by=", ".join(key.name for key in keys),
        panels=tuple(panels),
        over_time=time is not None,
        level=f"{decimal_text(answer.confidence * 100)} %",
        notes=tuple(notes),
    )


def panels_of(answer: Answer) -> tuple[Panel, ...]:
    """The answer's statistics, one panel each, in the order of its groups."""
    labels = [""] * len(answer)
    return tuple(
        _panel(column, labels) for column in answer.columns if column.low is not None and column.high is not None
    )


def _time_key(keys: Sequence[AnswerColumn], groups: int) -> AnswerColumn | None:
    """The key to be drawn as a time axis: the only one of dates or times, with two or more of them."""
    times = [key for key in keys if key.type.kind.is_temporal]
    if len(times) != 1 or len({value for value in times[0].values if value is not None}) < 2:
        return None
    others = [key for key in keys if key is not times[0]]
    return times[0] if len(set(_labels(others, groups))) <= MOST_SERIES else None


def _labels(keys: Sequence[AnswerColumn], groups: int) -> list[str]:
    return [" · ".join(key_text(key.values[i]) for key in keys) for i in range(groups)]


def _panel(column: AnswerColumn, labels: Sequence[str]) -> Panel:
    shown = shown_values(column)
    marks = tuple(_mark(column, i, label, shown[i]) for i, label in enumerate(labels))
    return Panel(column.name, column.described, "", marks, _temporal(column))


def _over_time(column: AnswerColumn, time: AnswerColumn, series: Sequence[str], one: str) -> Panel:
    places = [i for i, value in enumerate(time.values) if value is not None and series[i] == one]
    shown = shown_values(column)
    marks = [_mark(column, i, key_text(time.values[i]), shown[i], time.values[i]) for i in places]
    marks.sort(key=lambda mark: mark.at or datetime.datetime.min)
    return Panel(column.name, column.described, one, tuple(marks), _temporal(column))


def _mark(column: AnswerColumn, i: int, label: str, shown: str, at: Value = None) -> Mark:
    ends = (column.low or ())[i], (column.high or ())[i]
    value, low, high = (_place(v) for v in (column.values[i], *ends))
    doubtful = isinstance(low, float) and isinstance(high, float) and low <= 0 <= high
    moment = _place(at)
    return Mark(
        group=label,
        value=value,
        low=low,
        high=high,
        doubtful=doubtful,
        shown=shown,
        at=moment if isinstance(moment, datetime.datetime) else None,
    )


def _place(value: Value) -> Number | Moment | None:
    """Where a value stands on an axis."""
    if isinstance(value, datetime.datetime):
        return value.astimezone(datetime.UTC).replace(tzinfo=None) if value.tzinfo is not None else value
    if isinstance(value, datetime.date):
        return datetime.datetime.combine(value, datetime.time())
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # a whole number beyond what axes can show
            return None
        return number if math.isfinite(number) and abs(number) < _LARGEST else None
    return None


_LARGEST = 1e150


def _temporal(column: AnswerColumn) -> bool:
    return column.type.kind.is_temporal or any(isinstance(value, datetime.date) for value in column.values)
