"""From noisy totals to the rows of an answer: estimates, computed outputs, HAVING, ORDER BY, LIMIT.

Everything in hand has met its noise, or is public; nothing here can cost privacy (Dwork and Roth 2014,
proposition 2.1).

Which groups HAVING and LIMIT leave depends on the noise too: the largest of many noisy values is likely to be
one whose noise was large. Each interval is about its own group, not about the groups that were chosen.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.answer import AnswerColumn, Value
from discreet.estimators import Estimate, KnownTrees, estimate_output
from discreet.formula_functions import FormulaValue, Sort
from discreet.formulas import enclose, evaluate
from discreet.laplace.limbs import Int128Array
from discreet.plan import Ordering, Plan, PlannedOutput
from discreet.schema import BOOLEAN, DATE, FLOAT, INTEGER, TEXT, TIMESTAMP, TIMESTAMPTZ, Kind, Type
from discreet.time_values import time_of

__all__ = ["answer_columns"]


def answer_columns(
    plan: Plan, keys: Sequence[Sequence[Value]], noisy: Sequence[Int128Array], confidence: Fraction
) -> tuple[AnswerColumn, ...]:
    """The columns of the answer.

    Args:
        plan: the query's.
        keys: for each grouping column, its value in each group.
        noisy: for each measurement, the noisy totals of all groups.
        confidence: of the intervals.
    """
    groups = plan.groups
    after = _AfterNoise(plan, keys, noisy, groups)
    columns = [after.column(output, confidence) for output in plan.outputs]
    rows = list(range(groups))
    if plan.having is not None:
        kept = after.values(plan.having, confidence)
        rows = [i for i in rows if kept[i] is True]
    # Sorted by the last term first: Python's sort is stable, so the first term decides, and equals keep the order of
    # their keys.
    for ordering in reversed(plan.order):
        rows = _sorted(rows, after.values(ordering.output, confidence), ordering)
    rows = rows[plan.offset :] if plan.limit is None else rows[plan.offset : plan.offset + plan.limit]
    return tuple(_chosen(column, rows) for column in columns) if rows != list(range(groups)) else tuple(columns)


_TYPES = {
    Sort.WHOLE: INTEGER,
    Sort.NUMBER: FLOAT,
    Sort.TEXT: TEXT,
    Sort.BOOLEAN: BOOLEAN,
    Sort.DATE: DATE,
    Sort.TIMESTAMP: TIMESTAMP,
    Sort.TIMESTAMPTZ: TIMESTAMPTZ,
    Sort.NULL: TEXT,
}


def _type_of(output: PlannedOutput) -> Type:
    if output.kind is not None:
        return Type(output.kind)
    return INTEGER if output.whole else FLOAT


def _sorted(rows: list[int], values: Sequence[Value], ordering: Ordering) -> list[int]:
    missing = [i for i in rows if values[i] is None]
    present = [i for i in rows if values[i] is not None]
    present.sort(key=lambda i: values[i], reverse=ordering.descending)  # type: ignore[arg-type,return-value]
    return missing + present if ordering.nulls_first else present + missing


def _chosen(column: AnswerColumn, rows: Sequence[int]) -> AnswerColumn:
    low, high = (None if ends is None else tuple(ends[i] for i in rows) for ends in (column.low, column.high))
    return replace(column, values=tuple(column.values[i] for i in rows), low=low, high=high)


class _AfterNoise:
    """Estimates of one answer, each made once."""

    def __init__(self, plan: Plan, keys: Sequence[Sequence[Value]], noisy: Sequence[Int128Array], groups: int) -> None:
        self._plan, self._keys, self._noisy, self._groups = plan, keys, noisy, groups
        self._made: dict[tuple[object, ...], Estimate] = {}
        self._trees: KnownTrees = {}

    def estimate(self, output: PlannedOutput, confidence: Fraction) -> Estimate:
        key = (output.function, output.sources, output.whole, output.constant, output.point, confidence)
        if key not in self._made:
            measurements = self._plan.measurements
            self._made[key] = estimate_output(output, measurements, self._noisy, confidence, self._trees)
        return self._made[key]

    def column(self, output: PlannedOutput, confidence: Fraction) -> AnswerColumn:
        if output.function == "key":
            type_ = self._plan.keys[output.sources[0]].expression.type
            return AnswerColumn(output.name, output.described, tuple(self._keys[output.sources[0]]), type=type_)
        if output.function != "computed":
            found = self.estimate(output, confidence)
            values = self.values(output, confidence)
            ends = (_as_times(found.low, output.kind, up=False), _as_times(found.high, output.kind, up=True))
            return AnswerColumn(output.name, output.described, values, *ends, type=_type_of(output))
        values = self.values(output, confidence)
        if output.formula is None:
            raise AssertionError
        type_ = _TYPES[output.formula.sort]
        if not output.formula.sort.is_number or not output.sources:
            return AnswerColumn(output.name, output.described, values, type=type_)
        low, high = self._ends(output, confidence, values)
        return AnswerColumn(output.name, output.described, values, low, high, type_)

    def values(self, output: PlannedOutput, confidence: Fraction) -> tuple[Value, ...]:
        if output.function == "key":
            return tuple(self._keys[output.sources[0]])
        if output.function != "computed":
            return _as_times(self.estimate(output, confidence).values, output.kind)
        if output.formula is None:
            raise AssertionError
        filled: list[Sequence[FormulaValue]] = [self.values(part, confidence) for part in output.parts]
        return tuple(evaluate(output.formula, [part[i] for part in filled]) for i in range(self._groups))

    def _ends(
        self, output: PlannedOutput, confidence: Fraction, values: Sequence[Value]
    ) -> tuple[tuple[int | float | None, ...], tuple[int | float | None, ...]]:
        """Interval arithmetic on the parts' intervals, each at a confidence such that all m of them hold at once.

        By Boole's inequality m intervals of confidence 1 - (1 - c) / m all hold with probability c at least, however
        they depend on each other; where they do, the exact value lies in what the formula makes of them. So the
        interval covers at least as often as it says, and is wider than it need be.
        """
        if output.formula is None:
            raise AssertionError
        uncertain = sum(1 for part in output.parts if part.function != "key")
        each = 1 - (1 - confidence) / uncertain
        ends: list[Sequence[object]] = []
        for part in output.parts:
            if part.function == "key":
                ends.append([_point(value) for value in self._keys[part.sources[0]]])
            else:
                found = self.estimate(part, each)
                if part.kind is not None:
                    ends.append([None] * self._groups)  # interval arithmetic is for numbers
                    continue
                ends.append(list(zip(found.low, found.high, strict=True)))
        intervals = [
            None if values[i] is None else enclose(output.formula, [part[i] for part in ends])  # type: ignore[misc]
            for i in range(self._groups)
        ]
        return tuple(i and i[0] for i in intervals), tuple(i and i[1] for i in intervals)


def _as_times(
    numbers: tuple[int | float, ...], kind: Kind | None, *, up: bool | None = None
) -> tuple[int | float | datetime.date, ...]:
    """The dates or times that numbers stand for, if they do; the ends of intervals are rounded outwards."""
    return numbers if kind is None else tuple(time_of(number, kind, up=up) for number in numbers)


def _point(value: Value) -> tuple[Value, Value] | None:
    return (value, value) if isinstance(value, int | float | Fraction) and not isinstance(value, bool) else None
