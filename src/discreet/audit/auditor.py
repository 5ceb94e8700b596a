"""An audit of one query: its promise put to the test on tables of the auditor's own, part after part."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from discreet.audit import promises
from discreet.audit.freshness import repeated
from discreet.audit.replay import ANSWERED, Distance, Trace, compare, distances, follow, loss, same_totals
from discreet.audit.report import Finding, Report, Used, broken
from discreet.audit.side_channels import measure
from discreet.audit.statistics import attack
from discreet.audit.synthetic import fill
from discreet.audit.tables import WHOLE, Neighbour, Tables
from discreet.audit.values import needed
from discreet.engines.duckdb import DuckDBEngine
from discreet.entropy import SystemEntropy
from discreet.errors import RefusedError
from discreet.plan import Plan

__all__ = ["Extent", "audit"]

CONFIDENCE = Fraction(95, 100)


@dataclass(frozen=True)
class Extent:
    """How much an audit does.

    Attributes:
        neighbours: how many units are taken out, at the most.
        runs: of the noise, on each table; None for as many as take a second or a few.
        answers: how many whole answers are made on each table.
        measured: whether times are taken, and it is found out what would have been told.
        to_the_end: whether to go on after a part that found something.
    """

    neighbours: int = 30
    runs: int | None = None
    answers: int = 400
    measured: bool = True
    to_the_end: bool = True


@dataclass(frozen=True)
class _Pair:
    """Two neighbouring tables, replayed."""

    neighbour: Neighbour
    whole: Trace
    without: Trace
    moved: tuple[Distance, ...]

    @property
    def loss(self) -> Fraction:
        return loss(self.moved)


def audit(
    plan: Plan,
    *,
    label: str = "",
    real: bool = False,
    extent: Extent | None = None,
    progress: Callable[[str, float], None] = lambda part, share: None,
) -> Report:
    """Audit a query. Nothing is charged, and no ledger is written but one of the audit's own.

    Args:
        plan: of the query.
        label: of the synthetic tables; "" for fresh ones.
        real: to work on a copy of the owner's rows instead. The report is as private as they are.
        extent: how much to do.
        progress: told the part that runs, and how much of it is done, from 0 to 1.

    Raises:
        EngineError, SourceError: the audit's own tables cannot be made.
        RefusedError: the query has no measurement: there is nothing to audit.
    """
    if not plan.measurements:
        raise RefusedError("the query", "measures nothing: its answer does not depend on the data")
    label = label or f"{SystemEntropy().bits(40):010x}"
    extent = extent or Extent()
    with _folder() as folder:
        progress("tables", 0)
        tables = Tables(plan, folder)
        if not real:
            fill(tables, label)
        else:
            tables.copy(plan.registration, needed(plan))
        findings = [Finding("machinery", where, what) for where, what in _machinery(plan, tables, folder)]
        pairs: list[_Pair] = []
        if extent.to_the_end or not findings:
            for where, what, pair in _replays(plan, tables, label, real, extent.neighbours, progress):
                pairs += [] if pair is None else [pair]
                findings += [Finding("neighbours", where, text) for text in what]
                if pair is not None and pair.loss > plan.loss.epsilon:
                    text = f"the totals moved so far that epsilon is {float(pair.loss):.4g}, more than the query costs"
                    findings.append(Finding("neighbours", where, text))
                if findings and not extent.to_the_end:
                    break
        seen = times = None
        worst = max((pair for pair in pairs if pair.moved), key=lambda pair: pair.loss, default=None)
        if extent.to_the_end or not findings:
            findings += [Finding("statistics", "freshness", what) for what in repeated()]
        if worst is not None and (extent.to_the_end or not findings):
            seen = attack(
                plan,
                worst.whole,
                worst.without,
                confidence=CONFIDENCE,
                runs=extent.runs,
                answers=extent.answers,
                power=extent.measured,
                progress=lambda share: progress("statistics", share),
            )
            if not seen.passed:
                findings.append(Finding("statistics", worst.neighbour.why, broken(seen)))
        if worst is not None and extent.measured:
            progress("side channels", 0)
            times = measure(tables, worst.neighbour, CONFIDENCE)
        return Report(
            plan=plan,
            real=real,
            label=label,
            rows=tables.rows(),
            kept=len(tables.kept()),
            compared=tuple(pair.neighbour.why for pair in pairs),
            used=_used(pairs),
            loss=max((pair.loss for pair in pairs), default=Fraction(0)),
            worst="" if worst is None else worst.neighbour.why,
            seen=seen,
            times=times,
            findings=tuple(findings),
        )


@contextmanager
def _folder() -> Iterator[Path]:
    """This user's own (mode 0700), gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="discreet-audit-") as name:
        yield Path(name)


def _machinery(plan: Plan, tables: Tables, folder: Path) -> Iterator[tuple[str, str]]:
    """What does not depend on which unit is taken out."""
    for what in promises.refusals():
        yield "refusals", what
    for what in promises.engine_errors(tables):
        yield "the engine's errors", what
    if plan.selection is not None:
        for what in promises.threshold(plan.selection):
            yield "the threshold", what
    for what in promises.released_as_planned(plan, tables, folder, CONFIDENCE):
        yield "the way from plan to answer", what


def _replays(
    plan: Plan,
    tables: Tables,
    label: str,
    real: bool,
    most: int,
    progress: Callable[[str, float], None],
) -> Iterator[tuple[str, list[str], _Pair | None]]:
    """Each replay, with what it shows to be wrong."""
    whole = follow(plan, tables.engine(WHOLE), label, CONFIDENCE)
    if real:
        own = follow(plan, DuckDBEngine(plan.registration), label, CONFIDENCE)
        if not same_totals(whole, own):
            yield "the source", ["its totals are not those of a copy of its rows"], None
    for table, threads, where in (
        (tables.shuffled(label), None, "the rows in another order"),
        (WHOLE, 1, "one thread"),
        (WHOLE, 4, "four threads"),
    ):
        other = follow(plan, tables.engine(table, threads), label, CONFIDENCE, whole.groups)
        if not same_totals(whole, other):
            yield where, ["the totals are others"], None
    bases = {WHOLE: whole}
    neighbours = tables.neighbours(most)
    for i, neighbour in enumerate(neighbours):
        progress("neighbours", i / len(neighbours))
        if neighbour.base not in bases:
            bases[neighbour.base] = follow(plan, tables.engine(neighbour.base), label, CONFIDENCE)
        base = bases[neighbour.base]
        without = follow(plan, tables.engine(neighbour.table), label, CONFIDENCE, base.groups)
        what = compare(plan, base, without)
        moved = tuple(distances(plan, base, without)) if _comparable(base, without) else ()
        yield neighbour.why, what, _Pair(neighbour, base, without, moved)


def _comparable(one: Trace, other: Trace) -> bool:
    if one.outcome != ANSWERED or other.outcome != ANSWERED:
        return False
    return [len(total) for total in one.totals] == [len(total) for total in other.totals]


def _used(pairs: list[_Pair]) -> tuple[Used, ...]:
    best: dict[int, Used] = {}
    for pair in pairs:
        for i, d in enumerate(pair.moved):
            if i not in best or d.used > best[i].used:
                best[i] = Used(d.statistic, d.used, d.declared, pair.neighbour.why)
    return tuple(best[i] for i in sorted(best))
