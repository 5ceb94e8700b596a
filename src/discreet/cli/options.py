"""Every option, declared once: its names, its help, its type. Commands pick from here, so that all say the same.

Numbers stay text until `discreet.exact` reads them: 0.1 must be one tenth, not a double.
"""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = [
    "Analyst",
    "AuditPlot",
    "AuditReport",
    "AuditWords",
    "Bounds",
    "Budget",
    "BudgetDelta",
    "BudgetWords",
    "Confidence",
    "DatasetName",
    "DefaultEpsilon",
    "Delta",
    "Epsilon",
    "EstimatePlot",
    "ExactDigits",
    "Force",
    "Format",
    "Fresh",
    "Head",
    "Html",
    "Keys",
    "KeysFile",
    "Label",
    "LedgerPath",
    "ListFormat",
    "MaxContributions",
    "MaxGroups",
    "OnRealData",
    "Output",
    "OwnBounds",
    "OwnKeys",
    "OwnSource",
    "Picture",
    "Plot",
    "Policy",
    "PolicyOutput",
    "Public",
    "RaisedBudget",
    "RaisedDelta",
    "RefreshedSource",
    "Report",
    "ReportFormat",
    "Reported",
    "RowLevel",
    "Runs",
    "Scale",
    "SelfTest",
    "Size",
    "Source",
    "Sql",
    "Synthetic",
    "Target",
    "Timezone",
    "Types",
    "Unit",
    "UnknownGroups",
    "Verify",
]


def _formats() -> list[str]:
    """For shells that complete words."""
    return ["table", "csv", "json", "ndjson", "markdown", "parquet"]


Source = Annotated[
    str,
    typer.Argument(
        metavar="[SOURCE]",
        help="A CSV, TSV, JSON, Parquet or log file, a folder or a pattern of such files (text also as .gz or .zst); "
        "or FILE::TABLE for DuckDB and SQLite. With a policy: the name of one of its data sets, or nothing, as FROM "
        "names it.",
    ),
]
Sql = Annotated[
    str | None,
    typer.Argument(
        metavar="SQL",
        help='A SELECT over the source, which is called "data" or by its file\'s name; with a policy, as that says.',
        show_default=False,
    ),
]
Unit = Annotated[
    list[str] | None,
    typer.Option(
        "--unit",
        metavar="COLUMN",
        help="The column that says whose row it is: the rows of one value of it are protected together. Several, "
        "with commas or by repeating: --unit actor,DATE(time).",
    ),
]
RowLevel = Annotated[
    bool,
    typer.Option("--row-level", help="Instead: each row is one person."),
]
MaxContributions = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS",
        help="How many rows one unit may weigh, over all groups. Who has more is scaled down to it. The noise "
        "grows with it.",
    ),
]
MaxGroups = Annotated[
    str | None,
    typer.Option(
        "--max-groups-contributed",
        metavar="GROUPS",
        help="How many groups one unit may weigh in COUNT(DISTINCT unit), and be counted in when groups are chosen "
        "from the data. Default: the smaller of --max-contributions and the number of keys.",
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(metavar="NUMBER", help="The whole cost of the query. Smaller is safer and noisier; 0.5 is usual."),
]
Delta = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="Lets groups with enough units be chosen from the data, where no keys are listed, for this small chance "
        "that the promise fails (usual: 1e-6). Default: 0.",
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="The source's total epsilon. Needed the first time, and set for good by it.",
    ),
]
BudgetDelta = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        help="The source's total delta, set for good beside --budget. Needed for groups chosen from the data.",
    ),
]
LedgerPath = Annotated[
    str | None,
    typer.Option(
        metavar="LEDGER",
        help="The ledger: a file, or postgresql://USER@HOST/DATABASE. Default: DISCREET_LEDGER, else a file in the "
        "user's state folder.",
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="The owner's policy, which says all else. Default: DISCREET_POLICY, else discreet.toml in this folder.",
    ),
]
Analyst = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Who asks: for the ledger's history, and for the share that a policy gives. Default: the account's name.",
    ),
]
Bounds = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=LOW..HIGH",
        help="Bounds of a summed or averaged column, or of its alias. Values outside are clamped. Repeatable.",
    ),
]
Keys = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=A,B,...",
        help="The public keys of a grouping column or alias, as one CSV line; a bare NULL is the missing key. "
        "Ranges: day=2024-01-01..2024-12-31 by day. Repeatable.",
    ),
]
KeysFile = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]FILE",
        help="Public keys from a file. NAME=FILE: a text file with one key a line, written as in --keys. FILE alone: a "
        "CSV or Parquet table with one column a grouping column; several columns list combinations. What is in it must "
        "be public.",
    ),
]
Public = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="A public table that the query may join, LEFT or INNER, on a key that is unique in it. Everybody may "
        "know what is in it. Repeatable.",
    ),
]
Timezone = Annotated[
    str,
    typer.Option(
        metavar="ZONE",
        help="In which the dates and hours of moments are read, whatever the machine's zone is: a name such as "
        "Europe/Berlin, or an offset such as +08:00.",
    ),
]
Types = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=TYPE",
        help="At the first use: the type of a column, if it is to be another than the one found. Repeatable.",
    ),
]
BudgetWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[raise] [SOURCE]",
        help='The source, or what a policy calls it or a shared budget; "raise" before it gives it a higher total.',
        show_default=False,
    ),
]
RaisedBudget = Annotated[
    str | None,
    typer.Option(
        "--budget",
        metavar="NUMBER",
        help="With raise: the new total epsilon, above the old one. Under a policy, what is written there.",
    ),
]
RaisedDelta = Annotated[
    str | None,
    typer.Option("--budget-delta", metavar="NUMBER", help="With raise: the new total delta, if it is to rise too."),
]
Fresh = Annotated[
    bool,
    typer.Option(
        "--fresh",
        help="Ask anew, at the whole cost, even if this very question was answered before. Without it the stored "
        "answer is given again, free.",
    ),
]
OwnSource = Annotated[
    str,
    typer.Argument(metavar="SOURCE", help="What `discreet query` takes: a file, a folder, a pattern, or FILE::TABLE."),
]
RefreshedSource = Annotated[
    str | None,
    typer.Argument(
        metavar="[SOURCE]",
        help="A registered source, or what a policy calls it; nothing, where the policy has one data set only.",
        show_default=False,
    ),
]
PolicyOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="The policy to begin; - for stdout. Default: discreet.toml in this folder.",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over a policy that is there already.")]
DatasetName = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="What FROM will call the data set. Default: as the file is called."),
]
OwnBounds = Annotated[
    list[str] | None,
    typer.Option(
        "--bounds",
        metavar="NAME=LOW..HIGH",
        help="Bounds of a column of numbers, or the first and last day of one of dates. Repeatable.",
    ),
]
OwnKeys = Annotated[
    list[str] | None,
    typer.Option("--keys", metavar="NAME=A,B,...", help="The public values of a column, as one CSV line. Repeatable."),
]
UnknownGroups = Annotated[
    bool,
    typer.Option("--unknown-groups", help="Let groups be chosen from the data. Needs a --budget-delta."),
]
DefaultEpsilon = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="NUMBER", help="What a query costs that does not say it."),
]
Confidence = Annotated[
    str,
    typer.Option(metavar="NUMBER", help="The confidence of the intervals."),
]
Format = Annotated[
    str,
    typer.Option(autocompletion=_formats, metavar="NAME", help="table, csv, json, ndjson, markdown or parquet."),
]
ListFormat = Annotated[
    str,
    typer.Option(metavar="NAME", help="table, json, csv or ndjson."),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write there, not to stdout."),
]
Picture = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write the picture there, as its ending says: .svg, .png or .txt. Default: as text, to stdout.",
    ),
]
Plot = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Also draw it there, with its intervals: .svg or .png (needs matplotlib: pip install 'discreet[plot]').",
    ),
]
Report = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help="Also write everything (values, mechanism, scale, unit, limits, cost) there, as one JSON document.",
    ),
]
ExactDigits = Annotated[
    bool,
    typer.Option(
        "--exact-digits",
        help="Tables with all digits, not rounded to what the noise justifies. (CSV and JSON have all.)",
    ),
]
EstimatePlot = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Also draw there how the half-widths depend on epsilon: .svg or .png (pip install 'discreet[plot]').",
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=NUMBER",
        help="Instead of --epsilon: find the smallest epsilon at which the statistic called NAME has this half-width "
        "at the most. Repeatable: then all of them.",
    ),
]
Scale = Annotated[
    str,
    typer.Option(metavar="NUMBER", help="The scale of the noise: sensitivity / epsilon."),
]
Size = Annotated[
    str,
    typer.Option(metavar="NUMBER", help="How many draws."),
]
AuditWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SOURCE] SQL",
        help='As of `query`. With --synthetic the SQL alone, over "data" with the columns of --types.',
    ),
]
Synthetic = Annotated[
    bool,
    typer.Option("--synthetic", help="Take no source: the columns are those that --types names."),
]
OnRealData = Annotated[
    bool,
    typer.Option(
        "--on-real-data",
        help="For the owner: work on a copy of the real rows, not on synthetic ones. What is found goes to --report "
        "alone, a file of mode 0600, which is as private as the rows.",
    ),
]
Label = Annotated[
    str,
    typer.Option("--label", metavar="TEXT", help="Make the synthetic rows of an earlier audit again."),
]
AuditReport = Annotated[
    str | None,
    typer.Option("--report", metavar="FILE", help="Also write everything there, as one JSON document."),
]
Reported = Annotated[
    str | None,
    typer.Argument(
        metavar="[SOURCE]", help="The source, or what a policy calls it or a shared budget.", show_default=False
    ),
]
ReportFormat = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="markdown (the default), html (one page that needs nothing else), json, or yaml (the fields "
        "of the DP deployments registry).",
    ),
]
Html = Annotated[bool, typer.Option("--html", help="The same as --format html.")]
Verify = Annotated[
    bool,
    typer.Option(
        "--verify",
        help="Check the whole ledger first: each entry's hash, and all sums. Without a source, print its head alone.",
    ),
]
Head = Annotated[
    str | None,
    typer.Option(
        metavar="HASH",
        help="Verify, and that the ledger still holds this head, which an earlier look printed and you kept elsewhere: "
        "one that was cut, rolled back or replaced does not.",
    ),
]
AuditPlot = Annotated[
    str | None,
    typer.Option(
        "--plot",
        metavar="FILE",
        help="Also draw there what the runs give on both tables: .svg or .png (pip install 'discreet[plot]').",
    ),
]
SelfTest = Annotated[
    bool,
    typer.Option("--self-test", help="Plant faults in this very program, one at a time, and see that each is caught."),
]
Runs = Annotated[
    int | None,
    typer.Option(
        "--runs",
        metavar="NUMBER",
        min=1000,
        max=100_000_000,
        help="How often the noise is drawn on each table. More see more. Default: up to 1,500,000.",
    ),
]
