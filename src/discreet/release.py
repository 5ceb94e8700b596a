"""Plan, debit, look, draw: the only legal order, in one place. A question that was answered before is not asked again.

A comment after each step says what is in hand, and whether it is still private.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from discreet.answer import Answer, details_of
from discreet.engines.engine import Engine
from discreet.entropy import Entropy, SystemEntropy
from discreet.errors import DiscreetError, EngineError, SourceError
from discreet.laplace.limbs import Int128Array
from discreet.laplace.mechanism import LaplaceMechanism
from discreet.ledger import Caps, Failure, Ledger
from discreet.plan import Measurement, Plan
from discreet.postprocessing import answer_columns
from discreet.relational import Statement, compile_plan, needed_columns
from discreet.relational_selection import compile_selection
from discreet.selection import Selection, passes
from discreet.stored import is_readable, kept, replayed

__all__ = ["Charge", "release"]


@dataclass(frozen=True)
class Charge:
    """What the ledger is told of a query beside its plan.

    Attributes:
        version: of the registration that the plan was made from.
        analyst: who asks.
        caps: what the owner's policy allows one query, and this analyst.
        unit: what one privacy unit is called by a budget that several data sets share; "" for the plan's wording.
    """

    version: int
    analyst: str = ""
    caps: Caps = field(default_factory=Caps)
    unit: str = ""


def release(
    plan: Plan,
    ledger: Ledger,
    engine: Engine,
    confidence: Fraction,
    charge: Charge,
    *,
    fresh: bool = False,
    tell: Callable[[str], None] | None = None,
    entropy: Entropy | None = None,
) -> Answer:
    """Answer a planned query: by its stored answer, if it was answered before, else anew.

    Whether an answer is stored follows from the ledger alone: the source, the version of its registration and the
    plan's digest. Nothing that was done to the private rows since can change it.

    Args:
        plan: complete: every sensitivity, scale and share is in it.
        ledger: where the cost is debited before the engine starts.
        engine: runs the plan's statement.
        confidence: of the intervals.
        charge: to whom, and under which limits of the owner's.
        tell: is told what is done now, whenever that changes: for people who wait.
        fresh: ask anew, and be charged, even if it was answered before.
        entropy: a scripted source, in tests only; None for the operating system's.

    Raises:
        SourceError: the source's file is gone; nothing was charged. (If it goes later, the cost stays spent.)
        BudgetError: the budget does not allow it; nothing was read or charged.
        LedgerError: the debit could not be made durable; nothing was read.
        EngineError: the engine failed; the cost stays spent.
        UsageError: a stored answer cannot be given at this confidence; nothing was read or charged.
    """
    stored = None if fresh else ledger.stored_answer(plan.registration.source, charge.version, plan.digest)
    if stored is not None and is_readable(stored):
        # In hand: an answer that was released before. To give it again is post-processing: nothing is charged,
        # nothing is read, nothing is written.
        balance = ledger.balance(plan.registration.source)
        return replayed(stored, plan, confidence, balance.left if balance else None)
    with engine.ahead():
        return _released(plan, ledger, engine, confidence, charge, tell or _silence, entropy or SystemEntropy())


def _released(
    plan: Plan,
    ledger: Ledger,
    engine: Engine,
    confidence: Fraction,
    charge: Charge,
    say: Callable[[str], None],
    source: Entropy,
) -> Answer:
    """`release`, of what is not answered yet."""
    # What can be compiled is compiled before anything is charged. (With chosen groups there are no keys yet.)
    statement = _statement(plan, source, engine) if plan.selection is None else None
    engine.check(plan.zones())
    # In hand: the plan and its statement, made from public facts, and a source that is in its place. Nothing private.
    entry = ledger.debit(
        plan.registration.source,
        plan.loss,
        unit=charge.unit or plan.unit.text,
        query=plan.text,
        digest=plan.digest,
        limits=plan.limits(),
        vectors=plan.vectors(),
        analyst=charge.analyst,
        version=charge.version,
        caps=charge.caps,
    )
    # The cost is on the disk. From here on nothing is refunded.
    say("reading the rows")
    try:
        if plan.selection is not None:
            public, totals = _choose_then_total(plan, plan.selection, engine, source)
        elif statement is not None:
            public, totals = plan, engine.run(statement)
        else:
            raise AssertionError("a statement that was not compiled")
        # In hand: the plan of a query with public keys, and exact integer totals, PRIVATE. Nothing may look at
        # them but the mechanism.
        say("adding noise")
        noisy = add_noise(plan.measurements, totals, source)
        del totals
        # In hand: noisy totals. Their release is epsilon-differentially private; all below is post-processing.
        answer = _answer(plan, public, noisy, confidence, ledger, entry)
        say("storing the answer")
        ledger.record_release(entry, kept(answer, public, noisy))
    except BaseException as error:
        # The debit stands whether or not its outcome can be written; the first error is the one to tell.
        with contextlib.suppress(DiscreetError):
            ledger.record_failure(entry, _reason(error))
        raise
    return answer


def _silence(phase: str) -> None:
    """Nobody waits."""


def _choose_then_total(
    plan: Plan, selection: Selection, engine: Engine, entropy: Entropy
) -> tuple[Plan, tuple[Int128Array, ...]]:
    """Choose the groups, then the public case: the plan with its keys, and their exact totals (PRIVATE).

    See `selection` for what the first costs, and why.
    """
    with engine.session(needed_columns(plan), plan.joins) as session:
        statement = compile_selection(plan, selection.limit, entropy.bits(128), engine.quirks)
        units = session.candidates(statement)
        # In hand: exact numbers of units, PRIVATE, of groups whose existence is private too.
        passed = choose_groups(units, selection, entropy)
        del units
        # In hand: which of the groups are released. Of the others nothing may leave, not even how many they are.
        keys = session.keys(statement, np.flatnonzero(passed))
        # In hand: released keys. Sorted, so that their order tells nothing.
        public = plan.with_groups(sorted(keys, key=lambda row: [(value is not None, value) for value in row]))
        if public.groups == 0:
            return public, tuple(Int128Array.zeros(0) for _ in plan.measurements)
        return public, session.totals(_statement(public, entropy, engine))


def _statement(plan: Plan, entropy: Entropy, engine: Engine) -> Statement:
    """The plan's statement. Which values of a unit COUNT(DISTINCT x) counts, where they are too many, is chosen by a
    key that is drawn for this query and kept nowhere."""
    chooses = any(m.statistic == "distinct_count" for m in plan.measurements)
    return compile_plan(plan, entropy.bits(128) if chooses else 0, engine.quirks)


def choose_groups(units: Int128Array, selection: Selection, entropy: Entropy) -> NDArray[np.bool_]:
    """Which groups are released, given the exact numbers of units counted in them (PRIVATE)."""
    noisy = LaplaceMechanism(selection.limit, selection.epsilon).release_limbs(units, entropy)
    # In hand: noisy numbers of units, of groups whose very existence is still private until they pass.
    return passes(noisy, selection)


def add_noise(
    measurements: tuple[Measurement, ...], totals: tuple[Int128Array, ...], entropy: Entropy
) -> tuple[Int128Array, ...]:
    """Each vector of exact totals plus discrete Laplace noise of its measurement's scale.

    The vector of measurement i has L1 sensitivity s_i (`sensitivity`), so adding independent noise of scale
    s_i / epsilon_i to each entry is epsilon_i-differentially private (Dwork and Roth 2014, theorem 3.6), and all
    together cost the sum of the epsilon_i, which is the query's epsilon exactly (theorem 3.16; `privacy.split`).
    """
    return tuple(
        LaplaceMechanism(measurement.sensitivity, measurement.epsilon).release_limbs(total, entropy)
        for measurement, total in zip(measurements, totals, strict=True)
    )


def _reason(error: BaseException) -> Failure:
    if isinstance(error, KeyboardInterrupt):
        return Failure.INTERRUPTED
    if isinstance(error, SourceError):
        return Failure.SOURCE
    if isinstance(error, EngineError):
        return Failure.ENGINE
    return Failure.INTERNAL


def _answer(
    plan: Plan, public: Plan, noisy: tuple[Int128Array, ...], confidence: Fraction, ledger: Ledger, entry: int
) -> Answer:
    balance = ledger.balance(plan.registration.source)
    return Answer(
        columns=answer_columns(public, public.group_keys(), noisy, confidence),
        confidence=confidence,
        cost=plan.loss,
        left=balance.left if balance else None,
        entry=entry,
        details=details_of(plan, None if plan.selection is None else public.groups),
    )
