"""Replays: a query on two neighbouring tables under one script of randomness, laid side by side.

Everything but the exact totals must be the same: how the run ends, the statements, the calls for randomness, the noise
itself, the shape of the answer. And the totals may differ, in L1, by the declared sensitivity at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from discreet.answer import AnswerColumn, Value
from discreet.audit.script import Script
from discreet.engines.engine import Engine
from discreet.laplace.limbs import Int128Array
from discreet.laplace.sampler import draw_limbs
from discreet.plan import Plan
from discreet.postprocessing import answer_columns
from discreet.query import Scalar
from discreet.relational import Statement, compile_plan, needed_columns
from discreet.relational_selection import SelectionStatement, compile_selection
from discreet.release import add_noise, choose_groups

__all__ = ["ANSWERED", "Distance", "Key", "Trace", "compare", "distances", "follow", "loss", "same_totals", "told"]

ANSWERED = "answered"
_MOST_KEYS = 400
"""So many candidate groups are told apart by their keys; of more, only the counts are compared."""

Key = tuple[Scalar, ...]


@dataclass
class Trace:
    """All that a run did.

    Attributes:
        outcome: "answered", or the error with everything that is chained to it.
        statements: what the engine was given, as text.
        calls: for randomness.
        totals: of each measurement, exact. PRIVATE, as is what follows.
        noisy: the same with their noise.
        planned: the noise that the planned scale gives under the same script.
        answer: the columns.
        groups: of a query that chooses its groups: the candidates.
        units: their numbers of units, by key; by rank where there are too many.
    """

    outcome: str = ANSWERED
    statements: tuple[str, ...] = ()
    calls: tuple[tuple[str, int], ...] = ()
    totals: tuple[Int128Array, ...] = ()
    noisy: tuple[Int128Array, ...] = ()
    planned: tuple[Int128Array, ...] = ()
    answer: tuple[AnswerColumn, ...] = ()
    groups: tuple[Key, ...] = ()
    units: dict[Key, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Distance:
    """How far one vector of exact totals moved between two neighbours.

    Attributes:
        statistic: what was measured.
        used: the L1 distance.
        declared: the sensitivity.
        scale: of the noise.
    """

    statistic: str
    used: int
    declared: int
    scale: Fraction


def follow(plan: Plan, engine: Engine, label: str, confidence: Fraction, groups: Sequence[Key] | None = None) -> Trace:
    """Run a query as `release` does, but for the ledger, and keep everything.

    Args:
        plan: of the query.
        engine: over one of the tables.
        label: of the script of randomness.
        confidence: of the intervals.
        groups: of a query that chooses its groups: those to go on with; None for all candidates.
    """
    trace = Trace()
    try:
        _follow(plan, engine, label, confidence, groups, trace)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is how the run ended, and is judged
        trace.outcome = told(error)
    return trace


def _follow(
    plan: Plan, engine: Engine, label: str, confidence: Fraction, groups: Sequence[Key] | None, trace: Trace
) -> None:
    script = Script(label)
    if plan.selection is None:
        statement = _statement(plan, script, engine)
        trace.statements = _texts(statement)
        trace.totals = engine.run(statement)
        public = plan
    else:
        with engine.session(needed_columns(plan), plan.joins) as session:
            chosen = compile_selection(plan, plan.selection.limit, script.bits(128), engine.quirks)
            units = session.candidates(chosen)
            numbers = units.to_ints()
            if len(numbers) <= _MOST_KEYS:
                keys = [session.keys(chosen, np.array([i]))[0] for i in range(len(numbers))]
                trace.units = dict(zip(keys, numbers, strict=True))
            else:
                keys = list(session.keys(chosen, np.arange(_MOST_KEYS)))
                trace.units = {(rank,): number for rank, number in enumerate(sorted(numbers, reverse=True))}
            trace.groups = tuple(sorted(keys, key=lambda row: [(value is not None, value) for value in row]))
            choose_groups(units, plan.selection, script)
            public = plan.with_groups(trace.groups if groups is None else groups)
            trace.statements = _texts(chosen)
            # How many candidates there are is private, and so is how much randomness they take: what follows is laid
            # side by side under a script of its own.
            script = Script(f"{label}/released groups")
            if public.groups:
                statement = _statement(public, script, engine)
                trace.statements += _texts(statement)
                trace.totals = session.totals(statement)
            else:
                trace.totals = tuple(Int128Array.zeros(0) for _ in plan.measurements)
    before = len(script.calls)
    trace.noisy = add_noise(plan.measurements, trace.totals, script)
    twin = script.again(before)
    trace.planned = tuple(
        draw_limbs(Fraction(m.sensitivity) / m.epsilon, len(total), twin)
        for m, total in zip(plan.measurements, trace.totals, strict=True)
    )
    trace.calls = tuple(script.calls)
    trace.answer = answer_columns(public, public.group_keys(), trace.noisy, confidence)


def _statement(plan: Plan, script: Script, engine: Engine) -> Statement:
    chooses = any(m.statistic == "distinct_count" for m in plan.measurements)
    return compile_plan(plan, script.bits(128) if chooses else 0, engine.quirks)


def _texts(statement: Statement | SelectionStatement) -> tuple[str, ...]:
    texts = [f"{table.name}: {table.types} {table.rows}" for table in statement.keys]
    texts += [f"{name}: {select.sql(dialect='duckdb')}" for name, select in statement.steps]
    if isinstance(statement, Statement):
        texts += [f"{r.measurements} {r.cells}: {r.select.sql(dialect='duckdb')}" for r in statement.results]
        texts.append(f"columns {statement.columns}")
    return tuple(texts)


def told(error: BaseException) -> str:
    """An error and all that hangs on it: whoever catches it can read that too."""
    parts = [f"{type(error).__name__}: {error}"]
    for name, other in (("cause", error.__cause__), ("context", error.__context__)):
        if other is not None and other is not error:
            parts.append(f"{name} {told(other)}")
    return "; ".join(parts)


def distances(plan: Plan, whole: Trace, without: Trace) -> list[Distance]:
    """The L1 distances of all exact vectors."""
    found = []
    if plan.selection is not None:
        keys = {*whole.units, *without.units}
        moved = sum(abs(whole.units.get(key, 0) - without.units.get(key, 0)) for key in keys)
        found.append(Distance("units in chosen groups", moved, plan.selection.limit, plan.selection.scale))
    for m, a, b in zip(plan.measurements, whole.totals, without.totals, strict=True):
        moved = sum(abs(x) for x in _differing(_minus(a, b)))
        found.append(Distance(m.statistic, moved, m.sensitivity, m.scale))
    return found


def loss(moved: Sequence[Distance]) -> Fraction:
    """The largest privacy loss that the totals of a pair allow: the sum of distance / scale."""
    return sum((Fraction(d.used) / d.scale for d in moved), Fraction(0))


def compare(plan: Plan, whole: Trace, without: Trace) -> list[str]:
    """What differs between two replays and must not, in words; or is not as planned in one of them."""
    if whole.outcome != without.outcome:
        return [f"the runs end differently: {whole.outcome!r} and {without.outcome!r}"]
    if whole.outcome != ANSWERED:
        return [f"the query fails: {whole.outcome}"]
    faults: list[str] = []
    if whole.statements != without.statements:
        faults.append("the engine was given different statements")
    if whole.calls != without.calls:
        faults.append("randomness was asked for differently")
    lengths = [len(total) for total in whole.totals]
    if lengths != [len(total) for total in without.totals]:
        return [*faults, "the vectors of totals have different lengths: which groups there are depends on the data"]
    for d in distances(plan, whole, without):
        if d.used > d.declared:
            faults.append(
                f"{d.statistic}: the totals moved by {d.used}, more than the declared sensitivity {d.declared}"
            )
    for i, m in enumerate(plan.measurements):
        noises = [_minus(trace.noisy[i], trace.totals[i]) for trace in (whole, without)]
        if not _equal(*noises):
            faults.append(f"{m.statistic}: the noise differs, though the randomness was the same")
        if not all(_equal(noise, trace.planned[i]) for noise, trace in zip(noises, (whole, without), strict=True)):
            faults.append(f"{m.statistic}: the noise is not that of the planned scale {m.scale}")
    if _shape(plan, whole) != _shape(plan, without):
        faults.append("the answers have different shapes: their names, their number of rows or the order of their keys")
    elif plan.selection is None and not _in_order(plan, whole):
        faults.append("the keys are not in the order in which they were listed")
    return faults


def _minus(a: Int128Array, b: Int128Array) -> Int128Array:
    """Entrywise, mod 2^128."""
    ones = Int128Array(np.zeros(len(b), dtype=np.int64), np.ones(len(b), dtype=np.uint64))
    return a.add(Int128Array(~b.high, ~b.low).add(ones))


def _differing(difference: Int128Array) -> list[int]:
    """The entries that are not 0."""
    there = (difference.high != 0) | (difference.low != 0)
    return Int128Array(difference.high[there], difference.low[there]).to_ints()


def _equal(a: Int128Array, b: Int128Array) -> bool:
    return np.array_equal(a.high, b.high) and np.array_equal(a.low, b.low)


def _picks(plan: Plan) -> bool:
    """Whether noisy values decide which rows are shown, and in what order."""
    return plan.having is not None or bool(plan.order) or plan.limit is not None or bool(plan.offset)


def _shape(plan: Plan, trace: Trace) -> object:
    names = [(column.name, column.type) for column in trace.answer]
    return names if _picks(plan) else (names, _shown_keys(plan, trace), len(trace.answer[0].values))


def _shown_keys(plan: Plan, trace: Trace) -> list[tuple[int, tuple[Value, ...]]]:
    """The key columns of an answer, each with the place of its grouping."""
    pairs = zip(trace.answer, plan.outputs, strict=True)
    return [(output.sources[0], column.values) for column, output in pairs if output.function == "key"]


def _in_order(plan: Plan, trace: Trace) -> bool:
    """Whether the keys shown are those listed, in that order."""
    listed = plan.group_keys()
    return _picks(plan) or all(values == listed[place] for place, values in _shown_keys(plan, trace))


def same_totals(one: Trace, other: Trace) -> bool:
    """Whether two runs gave the same exact totals."""
    if one.outcome != ANSWERED or other.outcome != ANSWERED:
        return one.outcome == other.outcome
    if one.units != other.units or len(one.totals) != len(other.totals):
        return False
    return all(_equal(a, b) for a, b in zip(one.totals, other.totals, strict=True))
