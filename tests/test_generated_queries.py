"""Generated questions on generated nasty tables: each is refused before anything is read, or answered; no traceback, no
engine's text; and without the noise no unit moves the totals by more than the declared sensitivity.

The questions cover the grammar (`generated_queries`). 100 of them, always the same, in every run; 300 fresh ones in the
slow run.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import DiscreetError, RefusedError, UsageError
from discreet.plan import Measurement, Plan
from discreet.relational import Statement, compile_plan, needed_columns
from discreet.relational_selection import compile_selection
from generated_queries import TYPES, Asked, Questions, Row, rows_of, table_of

WHO, DEVICE, MOMENT = (list(TYPES).index(name) for name in ("who", "device id", "z"))
BUDGET = (10**9, "0.009")

FOREIGN = re.compile(
    r"traceback|duckdb|sqlglot|pyarrow|numpy|\b\w+ Error:|\b[A-Z]\w+(Error|Exception)\b|binder|object at 0x"
    r"|\b(Apply|Constant|Name|Kind|Fraction|Decimal)[(.]|<class|NotImplemented",
    re.IGNORECASE,
)
"""What has no place in an error: the words of engines, parsers and Python."""


class Asking:
    """Data sets of one layout: one a privacy unit and limit. Each is registered once; then tables take turns in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: dict[tuple[str, int], discreet.Dataset] = {}

    def data(self, asked: Asked, frame: pa.Table) -> discreet.Dataset:
        key = (asked.unit, asked.max_contributions)
        if key not in self._opened:
            unit = {"privacy_unit": asked.unit, "max_contributions": asked.max_contributions}
            given: dict[str, Any] = unit if asked.unit else {"row_level": True}
            ledger = self._folder / f"{len(self._opened)}.sqlite"
            self._opened[key] = discreet.open(table_of([]), name="t1", budget=BUDGET, ledger=ledger, **given)
        data = self._opened[key]
        data._access = frame  # as `open` would, but for its look at the frame's schema
        return data


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asking]:
    yield Asking(tmp_path_factory.mktemp("generated"))


def units_of(rows: Sequence[Row], unit: str) -> list[Any]:
    """For each row whose it is; None if it is nobody's."""

    def one(place: int, row: Row) -> Any:
        match unit:
            case "":
                return place
            case "who":
                return row[WHO]
            case "LOWER(who)":
                return None if row[WHO] is None else row[WHO].lower()
            case '"device id"':
                return row[DEVICE]
            case _:
                assert unit == "who, DATE(z)"
                moment: dt.datetime | None = row[MOMENT]
                return None if row[WHO] is None or moment is None else (row[WHO], moment.date())

    return [one(place, row) for place, row in enumerate(rows)]


def check(asking: Asking, asked: Asked, rows: Sequence[Row], most_units: int) -> str:
    """Ask one question of one table. Returns "refused", "answered" or "chosen" (groups from the data)."""
    frame = table_of(rows)
    data = asking.data(asked, frame)
    before = data.balance()
    try:
        answer = data.query(asked.sql, **asked.given)
    except DiscreetError as error:
        assert isinstance(error, UsageError | RefusedError), repr(error)
        _check_words(error, asked, rows)
        assert data.balance() == before
        with pytest.raises(type(error)) as other:  # without a row it is the same
            asking.data(asked, frame.slice(0, 0)).query(asked.sql, **asked.given)
        assert str(other.value) == str(error)
        return "refused"
    _check_values(answer)
    plan = data.plan(asked.sql, **asked.given)
    _check_neighbours(plan, asked, rows, most_units)
    return "answered" if plan.selection is None else "chosen"


def _check_words(error: DiscreetError, asked: Asked, rows: Sequence[Row]) -> None:
    own = asked.sql.casefold() + repr(asked.given).casefold()
    for text in (error.thing, error.rule, error.hint):
        foreign = FOREIGN.search(text)
        assert foreign is None or foreign[0].casefold() in own, text
    held = {value for row in rows for value in row if isinstance(value, str) and len(value) > 5}
    assert not [value for value in held if value in str(error) and value.casefold() not in own]


def _check_values(answer: discreet.Answer) -> None:
    json.dumps(answer.report(), allow_nan=False)
    assert str(answer)
    lengths = {len(column.values) for column in answer.columns}
    assert len(lengths) == 1
    for column in answer.columns:
        for value in column.values:
            assert value is None or isinstance(value, str | int | float | dt.date) or hasattr(value, "as_tuple")
            assert not isinstance(value, float) or math.isfinite(value)
        if column.low is None or column.high is None:
            continue
        for value, low, high in zip(column.values, column.low, column.high, strict=True):
            if value is not None and low is not None and high is not None:
                assert low <= value <= high  # type: ignore[operator]


# --- neighbours -----------------------------------------------------------------------------------------------------

Totals = list[tuple[Measurement, list[int]]]


def totals_of(plan: Plan, statement: Statement, frame: pa.Table) -> Totals:
    """The exact totals of a plan with public keys, through the real engine."""
    found = DuckDBEngine(plan.registration, frame, threads=1).run(statement)
    return [(m, total.to_ints()) for m, total in zip(plan.measurements, found, strict=True)]


def candidates_of(plan: Plan, frame: pa.Table) -> dict[tuple[Any, ...], int]:
    """For each key of a plan that chooses groups, the exact number of units counted in it."""
    assert plan.selection is not None
    statement = compile_selection(plan, plan.selection.limit, 1)
    engine = DuckDBEngine(plan.registration, frame, threads=1)
    with engine.session(needed_columns(plan), plan.joins) as session:
        units = session.candidates(statement).to_ints()
        return {session.keys(statement, np.array([place]))[0]: number for place, number in enumerate(units)}


def _check_neighbours(plan: Plan, asked: Asked, rows: Sequence[Row], most_units: int) -> None:
    whose = units_of(rows, asked.unit)
    units = list(dict.fromkeys(whose))
    chosen = random.Random(len(asked.sql)).sample(units, min(most_units, len(units)))
    without = {who: table_of([row for row, w in zip(rows, whose, strict=True) if w != who]) for who in chosen}
    frame = table_of(rows)
    if plan.selection is not None:
        counts = candidates_of(plan, frame)
        for who, less in without.items():
            left = candidates_of(plan, less)
            assert set(left) <= set(counts)
            lowered = {key: number - left.get(key, 0) for key, number in counts.items()}
            assert set(lowered.values()) <= {0, 1}
            assert sum(lowered.values()) <= (0 if who is None else plan.selection.limit), who
        plan = plan.with_groups(list(counts)[:5])
        if not plan.groups:
            return
    statement = compile_plan(plan)
    whole = totals_of(plan, statement, frame)
    for who, less in without.items():
        for (measurement, a), (_, b) in zip(whole, totals_of(plan, statement, less), strict=True):
            moved = sum(abs(x - y) for x, y in zip(a, b, strict=True))
            assert moved <= (0 if who is None else measurement.sensitivity), (who, measurement)


# --- the tests ------------------------------------------------------------------------------------------------------

Ask = Callable[[Asked, list[Row]], None]


def run(ask: Ask, examples: int, *, fresh: bool) -> None:
    """So many generated questions; the same each time, or others."""
    first = random.SystemRandom().getrandbits(32) if fresh else 0
    for seed in range(first, first + examples):
        draw = random.Random(seed)
        asked = Questions(lambda values, draw=draw: draw.choice(list(values))).asked()
        try:
            ask(asked, rows_of(draw))
        except BaseException as error:
            error.add_note(f"seed {seed}: {asked!r}")
            raise


@pytest.mark.parametrize("fresh", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_each_question_is_refused_or_answered_and_no_unit_moves_it_too_far(asking: Asking, fresh: bool) -> None:
    outcomes: Counter[str] = Counter()

    def ask(asked: Asked, rows: list[Row]) -> None:
        outcomes[check(asking, asked, rows, most_units=20 if fresh else 2)] += 1

    examples = 300 if fresh else 100
    run(ask, examples, fresh=fresh)
    assert outcomes.total() >= examples
    assert outcomes["answered"] >= examples / 5
    assert outcomes["refused"] >= examples / 5
    assert outcomes["chosen"] >= 1


def test_a_sensitivity_that_is_too_small_is_noticed(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    """The neighbour check, on plans whose sensitivities are half of what they are."""
    plan_of = discreet.Dataset.plan

    def halved(self: discreet.Dataset, sql: str, **given: Any) -> Plan:
        plan = plan_of(self, sql, **given)
        return replace(plan, measurements=tuple(replace(m, sensitivity=m.sensitivity // 2) for m in plan.measurements))

    def ask(asked: Asked, rows: list[Row]) -> None:
        frame = table_of(rows)
        try:
            plan = halved(asking.data(asked, frame), asked.sql, **asked.given)
        except DiscreetError:
            return
        _check_neighbours(plan, asked, rows, 3)

    with pytest.raises(AssertionError):
        run(ask, 100, fresh=False)
