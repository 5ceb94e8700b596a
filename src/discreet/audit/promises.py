"""What the auditor asks of the machinery itself, whatever the query: refusals, constant errors, the threshold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from sqlglot import exp

from discreet import exact, release
from discreet.audit.replay import ANSWERED, follow, told
from discreet.audit.script import Script
from discreet.audit.tables import WHOLE, Tables
from discreet.errors import DiscreetError, EngineError, UsageError
from discreet.laplace.limbs import Int128Array
from discreet.laplace.mechanism import LaplaceMechanism
from discreet.laplace.sampler import draw_limbs
from discreet.ledger import Ledger
from discreet.plan import Plan
from discreet.privacy import parse_budget
from discreet.relational import Statement
from discreet.selection import Selection

__all__ = ["engine_errors", "refusals", "released_as_planned", "threshold"]

_NO_LOSS = (-1, "-0.5", 0, "0", float("nan"), float("inf"), "1e-17", True, "one", None)


def refusals() -> Iterator[str]:
    """Costs and limits that must be refused, wherever they come in."""
    asked: tuple[tuple[str, Callable[[Any], object]], ...] = (
        ("epsilon", exact.parse_epsilon),
        ("budget", parse_budget),
        ("the mechanism's epsilon", lambda value: LaplaceMechanism(1, value)),
        ("sensitivity", lambda value: LaplaceMechanism(value, 1)),
        ("max_contributions", lambda value: exact.parse_positive_integer("max_contributions", value)),
    )
    for name, take in asked:
        for value in _NO_LOSS:
            try:
                take(value)
            except UsageError:
                continue
            yield f"{name} {value!r} is accepted"


def engine_errors(tables: Tables) -> Iterator[str]:
    """Statements that fail on what a row holds: all must come out as one constant text, with nothing chained to it."""
    joined = exp.Concat(expressions=[exp.Cast(this=exp.column("c0"), to=exp.DataType.build("VARCHAR"))])
    telling = exp.func("coalesce", joined, exp.Literal.string("a private value"))
    failing = (
        exp.select(exp.Cast(this=telling, to=exp.DataType.build("TINYINT"))).from_("source"),
        exp.select(exp.func("error", telling.copy())).from_("source"),
        exp.select("no_such_column").from_("source"),
    )
    texts = set()
    for select in failing:
        statement = Statement((), (("fails", select),), (), (0,), tables.plan.joins)
        try:
            tables.engine(WHOLE).run(statement)
        except Exception as error:  # noqa: BLE001 - whatever comes out is judged
            texts.add(told(error))
            if not isinstance(error, EngineError):
                yield f"an engine's own error comes out: {type(error).__name__}"
        else:
            yield "a statement that must fail does not"
    if len(texts) > 1:
        yield "the text of an engine's error depends on what went wrong"


def threshold(selection: Selection) -> Iterator[str]:
    """Groups whose noisy number of units is just below, at and just above tau: released from tau on, and only then."""
    for label in ("a", "b", "c", "d"):
        noise = draw_limbs(Fraction(selection.limit) / selection.epsilon, 3, Script(label)).to_ints()
        units = [selection.threshold + beside - x for beside, x in zip((-1, 0, 1), noise, strict=True)]
        passed = release.choose_groups(Int128Array.from_ints(units), selection, Script(label))
        if not np.array_equal(passed, [False, True, True]):
            yield "groups are not released from the threshold on, and only from there"
            return


def released_as_planned(plan: Plan, tables: Tables, folder: Path, confidence: Fraction) -> Iterator[str]:
    """The whole way, ledger and all, under a script: it must give what the auditor's own steps give.

    The ledger is a new one in the audit's folder; nobody's budget is charged.
    """
    trace = follow(plan, tables.engine(WHOLE), "whole way", confidence)
    if trace.outcome != ANSWERED or plan.selection is not None:
        return
    ledger = Ledger(folder / "ledger.sqlite")
    source = plan.registration.source
    ledger.register(plan.registration, first=True)
    ledger.set_budget(source, plan.loss, unit=plan.unit.text)
    try:
        charge = release.Charge(1)
        answer = release.release(plan, ledger, tables.engine(WHOLE), confidence, charge, entropy=Script("whole way"))
        if answer.columns != trace.answer:
            yield "the answer is not what its plan, totals and noise give"
        balance = ledger.balance(source)
        if balance is None or balance.spent.epsilon != plan.loss.epsilon:
            yield "the ledger was not charged what the query costs"
    except DiscreetError as error:
        yield f"it ends before the answer: {told(error)}"
    finally:
        ledger.close()
