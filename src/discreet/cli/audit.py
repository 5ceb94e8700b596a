"""`discreet audit`: the owner's query put to the test, on rows that are nobody's unless the owner says otherwise."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.arguments import read_types
from discreet.cli.output import write_stdout
from discreet.cli.pictures import check_picture, written
from discreet.cli.policies import split_words
from discreet.cli.progress import progress_bar
from discreet.cli.query import Question, destinations, planned
from discreet.cli.talk import say
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from discreet.audit.report import Report
    from discreet.dataset import Dataset
    from discreet.plan import Plan

__all__ = ["AuditError", "Wanted", "show_audit"]


class AuditError(DiscreetError):
    """The audit found that the query does not keep its promise (exit 4)."""

    exit_code = 4


@dataclass(frozen=True)
class Wanted:
    """What `discreet audit` takes beside a question.

    Attributes:
        words: SOURCE and SQL; SQL alone with `synthetic`.
        synthetic: no source: the columns are those of --types.
        on_real_data: work on a copy of the owner's rows.
        label: of the synthetic rows.
        report: where everything is written as JSON.
        plot: where the histograms are drawn.
        runs: of the noise, on each table.
        self_test: no question: plant faults, and see that each is caught.
    """

    words: Sequence[str] | None
    synthetic: bool = False
    on_real_data: bool = False
    label: str = ""
    report: str | None = None
    plot: str | None = None
    runs: int | None = None
    self_test: bool = False


def show_audit(question: Question, wanted: Wanted) -> None:
    """Audit a question, print what was found, and write the report.

    Raises:
        AuditError: the promise is not kept.
        DiscreetError: as `estimate`; or the report cannot be written.
    """
    if wanted.self_test:
        _test_itself(wanted)
        return
    from discreet.audit.auditor import Extent, audit

    kind = None if wanted.plot is None else check_picture("--plot", wanted.plot)
    if wanted.on_real_data and wanted.report is None:
        rule = "is required with --on-real-data: what is found there is as private as the rows, and is not printed"
        raise UsageError("--report", rule, hint="--report FILE")
    with _asked(question, wanted) as (asked, dataset, plan):
        private = wanted.on_real_data
        places = destinations(asked, dataset, None, wanted.report, plot=wanted.plot, private=private)
        with places as (table, document, plot):
            with progress_bar() as progress:
                extent = Extent(runs=wanted.runs)
                found = audit(plan, label=wanted.label, real=wanted.on_real_data, extent=extent, progress=progress)
            if document is not None:
                document.write(json.dumps(found.document(), indent=2, ensure_ascii=False) + "\n", machine=True)
            if plot is not None and kind is not None:
                from discreet.audit.picture import draw_histograms

                plot.write(written(draw_histograms(found, kind)), machine=True)
            if not wanted.on_real_data:
                table.write("\n".join(found.lines()) + "\n", machine=False)
    _end(found, wanted)


def _test_itself(wanted: Wanted) -> None:
    """Plant every fault, print which part caught it, and end with an error if one was not caught."""
    from discreet.audit.self_test import self_test

    if wanted.words or wanted.synthetic or wanted.on_real_data:
        raise UsageError("--self-test", "takes no question: it brings its own", " ".join(wanted.words or ()) or None)
    missed, faults = [], 0
    with progress_bar() as progress:
        for tried in self_test(told=progress):
            found, name = tried.found, tried.fault or "no fault"
            if tried.fault == "" and found is not None:
                raise AuditError("self-test", f"finds a fault where there is none: {found}")
            shown = "nothing found, as it should be" if not tried.fault else f"caught by {found}" if found else "MISSED"
            write_stdout(f"{name}: {shown}\n")
            faults += bool(tried.fault)
            missed += [name] if tried.fault and found is None else []
    if missed:
        raise AuditError("self-test", f"{len(missed)} of {faults} planted faults were not caught: {', '.join(missed)}")
    say(f"all {faults} planted faults were caught")


def _end(found: Report, wanted: Wanted) -> None:
    if wanted.on_real_data:
        say(f"the report was made of private rows and is as private as they are: {wanted.report}")
    if found.passed:
        say("passed: no promise was found broken; nothing was charged")
        return
    first, *others = found.findings
    more = f"; and {len(others)} more" if others else ""
    hint = f"discreet audit --label {found.label} ... makes the same rows again" if not found.real else ""
    # On real rows what was found tells about them: the report alone may say it.
    shown = "see the report" if found.real else f"{first}{more}"
    raise AuditError("audit", f"a promise is not kept: {shown}", hint=hint)


@contextlib.contextmanager
def _asked(question: Question, wanted: Wanted) -> Iterator[tuple[Question, Dataset, Plan]]:
    """What the words ask, and its plan."""
    words = list(wanted.words or ())
    if wanted.synthetic and wanted.on_real_data:
        raise UsageError("--synthetic", "and --on-real-data exclude each other")
    if wanted.on_real_data and wanted.plot is not None:
        raise UsageError("--plot", "is for synthetic rows; --on-real-data writes to --report alone", wanted.plot)
    if wanted.on_real_data and wanted.label:
        raise UsageError("--label", "names synthetic rows; --on-real-data makes none", wanted.label)
    if len(words) not in ((1,) if wanted.synthetic else (1, 2)):
        example = 'discreet audit SOURCE "SELECT ...", or discreet audit --synthetic "SELECT ..." --types NAME=TYPE'
        raise UsageError("audit", "takes a source and a query", " ".join(words) or None, example)
    if not wanted.synthetic:
        source, sql = split_words(words[0], words[1] if len(words) == 2 else None)
        asked = replace(question, source=source, sql=sql)
        with planned(asked) as (dataset, plan):
            yield asked, dataset, plan
        return
    types = read_types(question.types)
    if not types:
        hint = "discreet audit --synthetic SQL --types actor=VARCHAR --types files=BIGINT"
        raise UsageError("--synthetic", "needs the columns' types (--types)", hint=hint)
    with tempfile.TemporaryDirectory(prefix="discreet-audit-") as folder:
        # A table of these columns without a row: all that is needed to plan.
        header = io.StringIO()
        csv.writer(header).writerow(types)
        path = Path(folder) / "data.csv"
        path.write_text(header.getvalue(), encoding="utf-8")
        ledger, reading = str(Path(folder) / "ledger.sqlite"), {"header": True}
        asked = replace(question, source=str(path), sql=words[0], ledger=ledger, reading=reading)
        with planned(asked, own=True) as (dataset, plan):
            yield asked, dataset, plan
