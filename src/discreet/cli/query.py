"""`discreet query`: one private answer."""

from __future__ import annotations

import contextlib
import getpass
import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.arguments import choose, read_bounds, read_keys, read_types
from discreet.cli.output import Destination, destination
from discreet.cli.talk import about_answer, say, warn_of_epsilon
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.dataset import Dataset
    from discreet.plan import Plan

__all__ = ["Interrupted", "Question", "ask", "planned"]

MACHINE_FORMATS = ("csv", "json", "ndjson")


@dataclass(frozen=True)
class Question:
    """What `query` and `estimate` have in common, as the command line wrote it."""

    source: str
    sql: str
    unit: Sequence[str] | None = None
    row_level: bool = False
    epsilon: str | None = None
    delta: str | None = None
    max_contributions: str | None = None
    max_groups_contributed: str | None = None
    bounds: Sequence[str] | None = None
    keys: Sequence[str] | None = None
    keys_file: Sequence[str] | None = None
    types: Sequence[str] | None = None
    budget: str | None = None
    ledger: str | None = None
    confidence: str = "0.95"


class Interrupted(DiscreetError):
    """Ctrl-C (exit 130). Says whether the query was charged."""

    exit_code = 130


def ask(question: Question, *, format: str, output: str | None, report: str | None) -> Answer:
    """Answer a question, write and return the answer.

    Whatever can be refused or fail is met before the debit, as far as it can be known by then.
    """
    from discreet.exact import parse_confidence
    from discreet.formats import FORMATS

    choose("--format", format, tuple(FORMATS))
    confidence = parse_confidence(question.confidence)
    with contextlib.ExitStack() as stack:
        dataset, plan = stack.enter_context(planned(question))
        taken = _taken(dataset)
        table = stack.enter_context(destination("--output", output, taken))
        document = None
        if report is not None:
            if table.path is not None:
                taken["the --output file"] = table.path
            elif report == "-":
                raise UsageError("--report", "must be a file: the answer goes to stdout", report)
            document = stack.enter_context(destination("--report", report, taken))
        warn_of_epsilon(plan.loss.epsilon)
        if question.budget is not None:
            dataset.set_budget(question.budget)
        answer = _charged(dataset, plan, confidence)
        # In hand: a released answer, noisy and paid for. It is in the ledger too.
        _deliver(answer, question, table, document, format)
    about_answer(answer)
    return answer


@contextlib.contextmanager
def planned(question: Question) -> Iterator[tuple[Dataset, Plan]]:
    """The source, registered if need be, and the question's plan. All that the command line alone shows to be
    wrong is told first, so that a slip of the pen leaves no trace in the ledger.

    Raises:
        DiscreetError: as `discreet.open` and `Dataset.plan`; nothing was charged.
    """
    from discreet.dataset import open_source
    from discreet.exact import parse_delta, parse_epsilon
    from discreet.query import names_in_query
    from discreet.sql import parse

    query, types = parse(question.sql), read_types(question.types)
    keys, bounds = read_keys(question.keys, question.keys_file), read_bounds(question.bounds)
    if question.epsilon is not None:
        parse_epsilon(question.epsilon)
    if question.delta is not None:
        parse_delta(question.delta)
    if question.budget is not None:
        parse_epsilon(question.budget, name="budget")
    dataset = open_source(
        question.source,
        privacy_unit=question.unit or None,
        row_level=question.row_level,
        max_contributions=question.max_contributions,
        max_groups_contributed=question.max_groups_contributed,
        ledger=question.ledger,
        types=types,
        expect=names_in_query(query),
    )
    with contextlib.closing(dataset):
        if dataset.notice:
            say(dataset.notice)
        yield (
            dataset,
            dataset.plan(question.sql, epsilon=question.epsilon, delta=question.delta, keys=keys, bounds=bounds),
        )


def _charged(dataset: Dataset, plan: Plan, confidence: Fraction) -> Answer:
    """Debit and answer; a Ctrl-C is told together with whether it was charged."""
    before = max((entry.number for entry in dataset.history()), default=0)
    try:
        return dataset.answer(plan, confidence=confidence, analyst=_user())
    except KeyboardInterrupt:
        charged = [e for e in dataset.history() if e.number > before and e.digest == plan.digest]
        if charged:
            raise Interrupted("interrupted", "the query was charged; its cost stays spent") from None
        raise Interrupted("interrupted", "the query was not charged") from None


def _deliver(
    answer: Answer,
    question: Question,
    table: Destination,
    document: Destination | None,
    format: str,
) -> None:
    from discreet.formats import FORMATS

    try:
        table.write(FORMATS[format](answer), machine=format in MACHINE_FORMATS)
        if document is not None:
            document.write(json.dumps(answer.report(), indent=2, ensure_ascii=False) + "\n", machine=True)
    except (DiscreetError, BrokenPipeError, KeyboardInterrupt):
        again = f"discreet budget {shlex.quote(question.source)} --format json"
        if question.ledger is not None:
            again += f" --ledger {shlex.quote(question.ledger)}"
        say(f"the answer was charged, and is kept in the ledger as entry {answer.entry}: {again} shows it")
        raise


def _taken(dataset: Dataset) -> dict[str, Path]:
    """Files that an answer must never be written over."""
    taken = {"the ledger": dataset.ledger_path}
    source = dataset.registration.source
    if source.startswith("file:"):
        taken["the source"] = Path(source.removeprefix("file:"))
    return taken


def _user() -> str:
    """The name of the account that asks, for the ledger's history."""
    with contextlib.suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
