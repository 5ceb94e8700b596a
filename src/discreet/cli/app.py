"""The command line's table of commands, and its one exit.

Each command says which options it takes (`options`) and hands over to a module of its own, which is loaded
when the command runs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from discreet import __version__
from discreet.cli import options as o
from discreet.cli.examples import epilog
from discreet.cli.faults import run
from discreet.cli.reading import takes_reading
from discreet.errors import UsageError

__all__ = ["app", "main"]

app = typer.Typer(
    name="discreet",
    help="Private answers about tables and logs, from a budget that cannot be overspent.",
    epilog="Data goes to stdout, talk to stderr. Exit: 0 fine, 1 engine or input/output, 2 usage or policy, 3 budget, "
    "4 cannot be answered privately, 5 ledger, 130 interrupted.",
    rich_markup_mode=None,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"discreet {__version__}")  # noqa: T201 - the answer of --version
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())  # noqa: T201 - the answer of no command at all
        raise typer.Exit(2)


@app.command(epilog=epilog("query"))
@takes_reading
def query(
    source: o.Source,
    sql: o.Sql = None,
    unit: o.Unit = None,
    row_level: o.RowLevel = False,
    epsilon: o.Epsilon = None,
    max_contributions: o.MaxContributions = None,
    max_groups_contributed: o.MaxGroups = None,
    bounds: o.Bounds = None,
    keys: o.Keys = None,
    keys_file: o.KeysFile = None,
    public: o.Public = None,
    timezone: o.Timezone = "UTC",
    delta: o.Delta = None,
    budget: o.Budget = None,
    budget_delta: o.BudgetDelta = None,
    ledger: o.LedgerPath = None,
    policy: o.Policy = None,
    analyst: o.Analyst = None,
    types: o.Types = None,
    confidence: o.Confidence = "0.95",
    fresh: o.Fresh = False,
    format: o.Format = "table",
    output: o.Output = None,
    report: o.Report = None,
    plot: o.Plot = None,
    exact_digits: o.ExactDigits = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Answer a question about a source, with noise, and charge it to the source's budget."""
    from discreet.cli.policies import split_words
    from discreet.cli.query import Question, ask

    source_, sql = split_words(source, sql)
    question = Question(
        source=source_,
        sql=sql,
        unit=unit,
        row_level=row_level,
        epsilon=epsilon,
        delta=delta,
        max_contributions=max_contributions,
        max_groups_contributed=max_groups_contributed,
        bounds=bounds,
        keys=keys,
        keys_file=keys_file,
        public=public,
        timezone=timezone,
        types=types,
        reading=reading,
        budget=budget,
        budget_delta=budget_delta,
        ledger=ledger,
        policy=policy,
        analyst=analyst,
        confidence=confidence,
    )
    ask(question, fresh=fresh, format=format, output=output, report=report, plot=plot, exact=exact_digits)


@app.command(epilog=epilog("estimate"))
@takes_reading
def estimate(
    source: o.Source,
    sql: o.Sql = None,
    unit: o.Unit = None,
    row_level: o.RowLevel = False,
    epsilon: o.Epsilon = None,
    max_contributions: o.MaxContributions = None,
    max_groups_contributed: o.MaxGroups = None,
    bounds: o.Bounds = None,
    keys: o.Keys = None,
    keys_file: o.KeysFile = None,
    public: o.Public = None,
    timezone: o.Timezone = "UTC",
    delta: o.Delta = None,
    budget: o.Budget = None,
    budget_delta: o.BudgetDelta = None,
    ledger: o.LedgerPath = None,
    policy: o.Policy = None,
    analyst: o.Analyst = None,
    types: o.Types = None,
    confidence: o.Confidence = "0.95",
    format: o.Format = "table",
    output: o.Output = None,
    report: o.Report = None,
    target: o.Target = None,
    plot: o.EstimatePlot = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Tell what a query would cost, and the error to expect. Reads no data, costs nothing."""
    from discreet.cli.estimate import look_ahead
    from discreet.cli.policies import split_words
    from discreet.cli.query import Question

    source_, sql = split_words(source, sql)
    question = Question(
        source=source_,
        sql=sql,
        unit=unit,
        row_level=row_level,
        epsilon=epsilon,
        delta=delta,
        max_contributions=max_contributions,
        max_groups_contributed=max_groups_contributed,
        bounds=bounds,
        keys=keys,
        keys_file=keys_file,
        public=public,
        timezone=timezone,
        types=types,
        reading=reading,
        budget=budget,
        budget_delta=budget_delta,
        ledger=ledger,
        policy=policy,
        analyst=analyst,
        confidence=confidence,
    )
    look_ahead(question, format=format, output=output, report=report, target=target, plot=plot)


@app.command(epilog=epilog("explain"))
@takes_reading
def explain(
    source: o.Source,
    sql: o.Sql = None,
    unit: o.Unit = None,
    row_level: o.RowLevel = False,
    epsilon: o.Epsilon = None,
    max_contributions: o.MaxContributions = None,
    max_groups_contributed: o.MaxGroups = None,
    bounds: o.Bounds = None,
    keys: o.Keys = None,
    keys_file: o.KeysFile = None,
    public: o.Public = None,
    timezone: o.Timezone = "UTC",
    delta: o.Delta = None,
    budget: o.Budget = None,
    budget_delta: o.BudgetDelta = None,
    ledger: o.LedgerPath = None,
    policy: o.Policy = None,
    analyst: o.Analyst = None,
    types: o.Types = None,
    confidence: o.Confidence = "0.95",
    output: o.Picture = None,
    *,
    reading: dict[str, Any],
) -> None:
    """Draw the way of a query from rows to answer: limits, noise to scale, cost. Reads no data, costs nothing."""
    from discreet.cli.explain import draw_sandwich
    from discreet.cli.policies import split_words
    from discreet.cli.query import Question

    source_, sql = split_words(source, sql)
    question = Question(
        source=source_,
        sql=sql,
        unit=unit,
        row_level=row_level,
        epsilon=epsilon,
        delta=delta,
        max_contributions=max_contributions,
        max_groups_contributed=max_groups_contributed,
        bounds=bounds,
        keys=keys,
        keys_file=keys_file,
        public=public,
        timezone=timezone,
        types=types,
        reading=reading,
        budget=budget,
        budget_delta=budget_delta,
        ledger=ledger,
        policy=policy,
        analyst=analyst,
        confidence=confidence,
    )
    draw_sandwich(question, output=output)


@app.command(epilog=epilog("audit"))
@takes_reading
def audit(
    words: o.AuditWords = None,
    synthetic: o.Synthetic = False,
    on_real_data: o.OnRealData = False,
    label: o.Label = "",
    unit: o.Unit = None,
    row_level: o.RowLevel = False,
    epsilon: o.Epsilon = None,
    max_contributions: o.MaxContributions = None,
    max_groups_contributed: o.MaxGroups = None,
    bounds: o.Bounds = None,
    keys: o.Keys = None,
    keys_file: o.KeysFile = None,
    public: o.Public = None,
    timezone: o.Timezone = "UTC",
    delta: o.Delta = None,
    ledger: o.LedgerPath = None,
    policy: o.Policy = None,
    types: o.Types = None,
    report: o.AuditReport = None,
    plot: o.AuditPlot = None,
    runs: o.Runs = None,
    self_test: o.SelfTest = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Attack a query of your own and report what could be found out. Charges nothing."""
    from discreet.cli.audit import Wanted, show_audit
    from discreet.cli.query import Question

    question = Question(
        source=None,
        sql="",
        unit=unit,
        row_level=row_level,
        epsilon=epsilon,
        delta=delta,
        max_contributions=max_contributions,
        max_groups_contributed=max_groups_contributed,
        bounds=bounds,
        keys=keys,
        keys_file=keys_file,
        public=public,
        timezone=timezone,
        types=types,
        reading=reading,
        ledger=ledger,
        policy=policy,
    )
    show_audit(question, Wanted(words, synthetic, on_real_data, label, report, plot, runs, self_test))


@app.command(epilog=epilog("budget"))
def budget(
    words: o.BudgetWords = None,
    total: o.RaisedBudget = None,
    total_delta: o.RaisedDelta = None,
    ledger: o.LedgerPath = None,
    policy: o.Policy = None,
    format: o.ListFormat = "table",
    verify: o.Verify = False,
    head: o.Head = None,
) -> None:
    """Show a source's budget: total, spent, left, who spent it, and every query so far. Or raise it, or verify the
    ledger."""
    from discreet.cli.budget import raise_budget, show_budget

    match words or []:
        case ["raise", *rest] if len(rest) < 2 and not verify and head is None:
            raise_budget(next(iter(rest), None), total, total_delta, ledger=ledger, policy=policy)
        case [*rest] if len(rest) < 2 and total is None and total_delta is None:
            show_budget(next(iter(rest), None), ledger=ledger, policy=policy, format=format, verify=verify, head=head)
        case _:
            example = "discreet budget SOURCE, or discreet budget raise SOURCE --budget 5"
            raise UsageError("budget", "takes one source", " ".join(words or []), example)


@app.command(epilog=epilog("init"))
@takes_reading
def init(
    source: o.OwnSource,
    output: o.PolicyOutput = None,
    force: o.Force = False,
    name: o.DatasetName = None,
    unit: o.Unit = None,
    row_level: o.RowLevel = False,
    max_contributions: o.MaxContributions = None,
    max_groups_contributed: o.MaxGroups = None,
    bounds: o.OwnBounds = None,
    keys: o.OwnKeys = None,
    unknown_groups: o.UnknownGroups = False,
    budget: o.Budget = None,
    budget_delta: o.BudgetDelta = None,
    epsilon: o.DefaultEpsilon = None,
    ledger: o.LedgerPath = None,
    types: o.Types = None,
    *,
    reading: dict[str, Any],
) -> None:
    """For the owner: register a source, and begin its policy from the names and types of its columns."""
    from discreet.cli.init import Wanted, begin_policy

    wanted = Wanted(
        source=source,
        output=output,
        force=force,
        name=name,
        unit=unit,
        row_level=row_level,
        max_contributions=max_contributions,
        max_groups_contributed=max_groups_contributed,
        bounds=bounds,
        keys=keys,
        unknown_groups=unknown_groups,
        budget=budget,
        budget_delta=budget_delta,
        epsilon=epsilon,
        ledger=ledger,
        types=types,
        reading=reading,
    )
    begin_policy(wanted)


@app.command(epilog=epilog("check"))
def check(policy: o.Policy = None) -> None:
    """For the owner: tell every fault of a policy, in itself, against its sources and against the ledger."""
    from discreet.cli.check import check_policy

    check_policy(policy)


@app.command(epilog=epilog("refresh"))
@takes_reading
def refresh(
    source: o.RefreshedSource = None,
    policy: o.Policy = None,
    ledger: o.LedgerPath = None,
    types: o.Types = None,
    *,
    reading: dict[str, Any],
) -> None:
    """For the owner: a source is another version now. Reads it again, whole; what was spent stays spent."""
    from discreet.cli.refresh import Wanted, refresh_source

    refresh_source(Wanted(source, policy, ledger, types, reading))


@app.command(epilog=epilog("report"))
def report(
    source: o.Reported = None,
    ledger: o.LedgerPath = None,
    policy: o.Policy = None,
    format: o.ReportFormat = None,
    html: o.Html = False,
    output: o.Output = None,
) -> None:
    """Write all releases of a source as one document: what was promised, asked, answered and spent. Reads the ledger
    only."""
    from discreet.cli.report import write_report

    write_report(source, ledger=ledger, policy=policy, format=format, html=html, output=output)


@app.command(epilog=epilog("noise"))
def noise(scale: o.Scale, size: o.Size = "1") -> None:
    """Draw discrete Laplace noise, to look at. Reads nothing, costs nothing."""
    from discreet.cli.noise import show_noise

    show_noise(scale, size)


@app.command(epilog=epilog("demo"))
def demo() -> None:
    """Run the main job on the example log."""
    from discreet.cli.demo import show_demo

    show_demo()


def main(arguments: Sequence[str] | None = None) -> None:
    """The `discreet` command. Leaves through `sys.exit` with the documented code, whatever happens."""
    for descriptor in (0, 1, 2):
        # A standard stream that the caller closed: its number must not go to the ledger's file.
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.exit(run(app, list(sys.argv[1:] if arguments is None else arguments)))
