"""`discreet query`: one private answer."""

from __future__ import annotations

import contextlib
import getpass
import json
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from discreet.cli.arguments import choose, keys_file_paths, read_bounds, read_keys, read_public, read_types
from discreet.cli.output import Destination, destination, terminal_width
from discreet.cli.pictures import check_picture, written
from discreet.cli.policies import governed
from discreet.cli.progress import registration_bar, spinner
from discreet.cli.talk import about_answer, say, warn_of_epsilon
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.dataset import Dataset
    from discreet.plan import Plan
    from discreet.privacy import PrivacyLoss
    from discreet.schema import Registration
    from discreet.sources import Location

__all__ = [
    "MACHINE_FORMATS",
    "Interrupted",
    "Places",
    "Question",
    "ask",
    "asked_budget",
    "asking",
    "destinations",
    "planned",
]

MACHINE_FORMATS = ("csv", "json", "ndjson")


class Places(NamedTuple):
    """Where the table goes, and the report and the picture, if they are wanted."""

    table: Destination
    document: Destination | None = None
    picture: Destination | None = None


@dataclass(frozen=True)
class Question:
    """What `query` and `estimate` have in common, as the command line wrote it."""

    source: str | None
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
    public: Sequence[str] | None = None
    timezone: str = "UTC"
    types: Sequence[str] | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    budget: str | None = None
    budget_delta: str | None = None
    ledger: str | None = None
    policy: str | None = None
    analyst: str | None = None
    confidence: str = "0.95"


class Interrupted(DiscreetError):
    """Ctrl-C (exit 130). Says whether the query was charged."""

    exit_code = 130


def ask(
    question: Question,
    *,
    format: str,
    output: str | None,
    report: str | None,
    fresh: bool = False,
    plot: str | None = None,
    exact: bool = False,
) -> Answer:
    """Answer a question, write and return the answer.

    A question that was answered before gets its stored answer, at no cost, unless `fresh`.

    Whatever can be refused or fail is met before the debit, as far as it can be known by then.
    """
    from discreet.exact import parse_confidence
    from discreet.formats import FORMATS

    choose("--format", format, (*FORMATS, "parquet"))
    if format == "parquet" and output in (None, "-") and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError("--format parquet", "is not for a terminal", hint="write to a file with -o FILE")
    if plot is not None:
        check_picture("--plot", plot)
    confidence = parse_confidence(question.confidence)
    outcome = _NOT_CHARGED
    try:
        with (
            planned(question) as (dataset, plan),
            destinations(question, dataset, output, report, plot=plot) as places,
        ):
            warn_of_epsilon(plan.loss.epsilon)
            budget = asked_budget(question)
            if budget is not None:
                dataset.set_budget(budget)
            queries = _queries(dataset)
            try:
                with spinner("charging the ledger") as tell:
                    who = asking(question)
                    answer = dataset.answer(plan, confidence=confidence, analyst=who, fresh=fresh, tell=tell)
                # In hand: a released answer, noisy and paid for, now or before. It is in the ledger too.
                outcome = _NOT_CHARGED if answer.replayed else _charged(answer.entry)
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C must not cut the message short
                raise Interrupted("interrupted", _outcome(dataset, plan, queries)) from None
            _deliver(answer, question, dataset, places, format, exact=exact)
            about_answer(answer)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        raise Interrupted("interrupted", outcome) from None
    return answer


@contextlib.contextmanager
def destinations(
    question: Question,
    dataset: Dataset,
    output: str | None,
    report: str | None,
    *,
    plot: str | None = None,
    private: bool = False,
) -> Iterator[Places]:
    """Where the table, the report and the picture go, made ready. `private`: the report is for this user's eyes alone.

    Raises:
        OutputError: one cannot be written.
        UsageError: one would be written over another, the ledger or anything that the query reads.
    """
    from discreet.sources import belongs, identify

    taken = _taken(question, dataset)
    read: list[Registration | Location] = [dataset.registration]
    read += [identify(file) for file in read_public(question.public).values()]

    def of_source(path: Path) -> bool:
        return any(belongs(one, path) for one in read)

    with contextlib.ExitStack() as stack:
        table = stack.enter_context(destination("--output", output, taken, of_source))
        document = None
        if report is not None:
            if table.path is not None:
                taken[table.path] = "the --output file"
            elif report == "-":
                raise UsageError("--report", "must be a file: the answer goes to stdout", report)
            mode = 0o600 if private else None
            document = stack.enter_context(destination("--report", report, taken, of_source, mode))
        picture = None
        if plot is not None:
            for place, what in ((table, "the --output file"), (document, "the --report file")):
                if place is not None and place.path is not None:
                    taken[place.path] = what
            picture = stack.enter_context(destination("--plot", plot, taken, of_source))
        yield Places(table, document, picture)


@contextlib.contextmanager
def planned(question: Question, *, own: bool = False) -> Iterator[tuple[Dataset, Plan]]:
    """The source, registered if need be, and the question's plan. All that the command line alone shows to be
    wrong is told first, so that a slip of the pen leaves no trace in the ledger. `own`: the source
    is one that the command itself made; no policy governs it, and its registration is not told.

    Raises:
        DiscreetError: as `discreet.open` and `Dataset.plan`; nothing was charged.
    """
    from discreet.exact import parse_delta, parse_epsilon
    from discreet.opening import open_source
    from discreet.query import names_in_query
    from discreet.sources import is_address
    from discreet.sql import parse

    query, types = parse(question.sql), read_types(question.types)
    keys, bounds = read_keys(question.keys, question.keys_file), read_bounds(question.bounds)
    public = read_public(question.public)
    if question.epsilon is not None:
        parse_epsilon(question.epsilon)
    if question.delta is not None:
        parse_delta(question.delta)
    if question.analyst is not None and not question.analyst.strip():
        raise UsageError("--analyst", "must be a name", question.analyst)
    asked_budget(question)
    reading = dict(question.reading)
    if is_address(question.source) and "::" not in question.source and query.relation != "data":
        reading.setdefault("table", query.relation)
    found = None if own else governed(question.policy, question.source, query.relation)
    with registration_bar("opening the source"):
        dataset = open_source(
            question.source if found is None else found.dataset.name,
            policy=None if found is None else found.policy,
            privacy_unit=question.unit or None,
            row_level=question.row_level,
            max_contributions=question.max_contributions,
            max_groups_contributed=question.max_groups_contributed,
            ledger=question.ledger,
            types=types,
            expect=names_in_query(query),
            **reading,
        )
    with contextlib.closing(dataset):
        if dataset.notice and not own:
            say(dataset.notice)
        plan = dataset.plan(
            question.sql,
            epsilon=question.epsilon,
            delta=question.delta,
            keys=keys,
            bounds=bounds,
            public=public,
            timezone=question.timezone,
        )
        yield dataset, plan


def asked_budget(question: Question) -> PrivacyLoss | None:
    """The total that --budget and --budget-delta say, if they do.

    Raises:
        UsageError: not valid, or a delta without an epsilon.
    """
    from discreet.privacy import parse_budget

    if question.budget is None:
        if question.budget_delta is not None:
            raise UsageError("--budget-delta", "needs --budget beside it", question.budget_delta)
        return None
    return parse_budget((question.budget, question.budget_delta or "0"))


_NOT_CHARGED = "the query was not charged"


def _charged(entry: int | None) -> str:
    return f"the query was charged (ledger entry {entry}); its cost stays spent"


def _queries(dataset: Dataset) -> int:
    """How many queries its account was ever charged for."""
    balance = dataset.balance()
    return 0 if balance is None else balance.queries


def _outcome(dataset: Dataset, plan: Plan, queries: int) -> str:
    """Whether an interrupted query was charged. The ledger itself tells: an interrupt can come between any two
    steps, and the debit is one of them.

    Args:
        queries: how many its account had been charged for before.
    """
    newer = _queries(dataset) - queries
    debits = [entry for entry in dataset.history() if entry.kind == "debit"]
    for entry in debits[len(debits) - newer :] if newer < len(debits) else debits:
        if entry.digest == plan.digest:
            return _charged(entry.number)
    return _NOT_CHARGED


def _deliver(answer: Answer, question: Question, dataset: Dataset, places: Places, format: str, *, exact: bool) -> None:
    from discreet.answer_tables import as_parquet
    from discreet.formats import FORMATS, as_markdown, as_table

    table, document, picture = places
    try:
        if format == "parquet":
            content: str | bytes = as_parquet(answer)
        elif format == "table":
            content = as_table(answer, exact=exact, width=terminal_width() if table.path is None else None)
        elif format == "markdown":
            content = as_markdown(answer, exact=exact)
        else:
            content = FORMATS[format](answer)
        table.write(content, machine=format in MACHINE_FORMATS)
        if document is not None:
            document.write(json.dumps(answer.report(), indent=2, ensure_ascii=False) + "\n", machine=True)
        if picture is not None and picture.path is not None:
            from discreet.chart import chart
            from discreet.pictures import draw_chart, format_of

            picture.write(written(draw_chart(chart(answer), format_of(picture.path))), machine=True)
    except (DiscreetError, BrokenPipeError, KeyboardInterrupt):
        from discreet.ledger.places import shown_ledger

        again = f"discreet budget {shlex.quote(question.source or dataset.name)} --format json"
        ledger = None if question.ledger is None else shown_ledger(question.ledger)
        for option, value in (("--ledger", ledger), ("--policy", question.policy)):
            if value is not None:
                again += f" {option} {shlex.quote(value)}"
        paid = "was stored before" if answer.replayed else "was charged"
        say(f"the answer {paid}, and is kept in the ledger as entry {answer.entry}: {again} shows it")
        raise


def _taken(question: Question, dataset: Dataset) -> dict[Path, str]:
    """Files that an answer must never be written over."""
    from discreet.sources import files_of

    taken: dict[Path, str] = {}
    if (ledger := dataset.ledger_path) is not None:
        taken[ledger] = "the ledger"
        taken[ledger.with_name(ledger.name + ".key")] = "the ledger's key"
        for suffix in ("-wal", "-shm", "-journal"):  # newest debits may be in the journal alone
            taken[ledger.with_name(ledger.name + suffix)] = f"the ledger's {suffix} file"
    for path in files_of(dataset.registration):
        taken[path] = f"the source's {path.name}"
    if dataset.policy is not None:
        taken[dataset.policy.path.resolve()] = "the policy"
        for column in (column for declared in dataset.policy.datasets.values() for column in declared.columns.values()):
            if column.values_file is not None:
                taken[column.values_file.resolve()] = f"the policy's {column.values_file.name}"
    for path in keys_file_paths(question.keys_file):
        taken[path.resolve()] = f"the --keys-file {path.name}"
    for name, file in read_public(question.public).items():
        for path in _public_files(file):
            taken[path] = f"a file of the public table {name}"
    return taken


def _public_files(source: str) -> list[Path]:
    from discreet.sources import identify
    from discreet.sources.files import source_files

    return [Path(file.path).resolve() for file in source_files(identify(source).to_reader())]


def asking(question: Question) -> str:
    """Who asks, for the ledger's history and for shares of the budget: --analyst, else the name of the account."""
    if question.analyst is not None:
        return question.analyst
    with contextlib.suppress(OSError, KeyError, ImportError):
        return getpass.getuser()
    return ""
