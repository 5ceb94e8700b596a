"""A released answer as the ledger keeps it, and back: the very values, with their types.

JSON knows neither dates nor decimals, so those are written as an object with one member that says what they are
(``{"decimal": "1.50"}``). Whole numbers are exact at any size, doubles come back bit for bit.

Beside the values the noisy totals are kept, where they are few enough: from them the intervals at another confidence
are computed, at no cost. They have met their noise: their release is what the query paid for, and all that is computed
from them is post-processing (Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from discreet.answer import Answer, AnswerColumn, Value
from discreet.errors import UsageError
from discreet.exact import decimal_text
from discreet.laplace.limbs import Int128Array
from discreet.ledger import Entry
from discreet.plan import Plan
from discreet.postprocessing import answer_columns
from discreet.privacy import PrivacyLoss
from discreet.schema import engine_type

__all__ = ["MOST_TOTALS", "answer_of", "is_readable", "kept", "replayed"]

MOST_TOTALS = 2**17
"""The most noisy totals that are kept of one answer: about 1.5 MB. (The whole tree of one quantile has 69,904.)"""


def kept(answer: Answer, public: Plan, noisy: Sequence[Int128Array]) -> dict[str, Any]:
    """What the ledger stores of an answer, as plain JSON values.

    Args:
        answer: as it is shown.
        public: its plan, with the keys of its groups.
        noisy: for each measurement, the noisy totals of all groups.
    """
    few = sum(len(total) for total in noisy) <= MOST_TOTALS
    chosen = answer.details["group_selection"] is not None
    return {
        "columns": [_column(column) for column in answer.columns],
        "confidence": str(answer.confidence),
        "details": answer.details,
        "totals": [total.to_ints() for total in noisy] if few else None,
        # Listed keys are in the plan. Those that were chosen are known only now; they are public, being released.
        "groups": [[_written(v) for v in row] for row in public.key_lists[0].rows] if few and chosen else None,
    }


def is_readable(entry: Entry) -> bool:
    """Whether an entry holds an answer in the form that `kept` writes."""
    return entry.answer is not None and "columns" in entry.answer


def answer_of(entry: Entry, *, left: PrivacyLoss | None = None) -> Answer:
    """The stored answer of a released query, as it was given.

    Args:
        entry: one that `is_readable`.
        left: of the budget, now.
    """
    answer = entry.answer or {}
    return Answer(
        columns=tuple(_read_column(column) for column in answer["columns"]),
        confidence=Fraction(answer["confidence"]),
        cost=entry.loss or PrivacyLoss(Fraction(0)),
        left=left,
        entry=entry.number,
        details=dict(answer["details"]),
        replayed=entry.time,
    )


def replayed(entry: Entry, plan: Plan, confidence: Fraction, left: PrivacyLoss | None) -> Answer:
    """The stored answer to a plan of the same digest. At another confidence its intervals are computed anew.

    Args:
        entry: one that `is_readable`.
        plan: of the question that is asked again.
        confidence: of the intervals that are wanted.
        left: of the budget, now.

    Raises:
        UsageError: the confidence is another, and the answer's totals were too many to be kept.
    """
    answer, stored = answer_of(entry, left=left), entry.answer or {}
    if answer.confidence == confidence:
        return answer
    if stored["totals"] is None:
        known = decimal_text(answer.confidence)
        raise UsageError(
            "confidence",
            f"was {known} when this question was answered (ledger entry {entry.number}), and its intervals cannot be "
            "computed anew: it rests on too many totals to keep them",
            decimal_text(confidence),
            f"confidence {known} gives the stored answer, at no cost; --fresh (Python: fresh=True) asks anew",
        )
    public = plan
    if plan.selection is not None:
        public = plan.with_groups([tuple(_read(value) for value in row) for row in stored["groups"]])
    noisy = [Int128Array.from_ints(total) for total in stored["totals"]]
    columns = answer_columns(public, public.group_keys(), noisy, confidence)
    return Answer(columns, confidence, answer.cost, left, answer.entry, answer.details, answer.replayed)


def _column(column: AnswerColumn) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": column.name,
        "described": column.described,
        "type": str(column.type),
        "values": [_written(value) for value in column.values],
    }
    if column.low is not None and column.high is not None:
        written |= {"low": [_written(v) for v in column.low], "high": [_written(v) for v in column.high]}
    return written


def _read_column(written: Mapping[str, Any]) -> AnswerColumn:
    low, high = (tuple(_read(value) for value in written[end]) if end in written else None for end in ("low", "high"))
    values = tuple(_read(value) for value in written["values"])
    return AnswerColumn(written["name"], written["described"], values, low, high, engine_type(written["type"]))


def _written(value: Value) -> Any:
    """A value as JSON; `_read` gives back an equal one of the same type."""
    match value:
        case datetime.datetime():
            return {"time": value.isoformat()}
        case datetime.date():
            return {"date": value.isoformat()}
        case Decimal():
            return {"decimal": str(value)}
        case None | bool() | int() | float() | str():
            return value
    raise AssertionError(type(value))


def _read(written: Any) -> Any:
    if not isinstance(written, dict):
        return written
    ((kind, text),) = written.items()
    match kind:
        case "time":
            return datetime.datetime.fromisoformat(text)
        case "date":
            return datetime.date.fromisoformat(text)
        case "decimal":
            return Decimal(text)
    raise AssertionError(kind)
