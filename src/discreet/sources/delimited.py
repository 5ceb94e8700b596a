"""Registering CSV and TSV sources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError, UsageError
from discreet.schema import TEXT, Registration, Schema
from discreet.sources.cells import CellRules, present
from discreet.sources.delimited_rows import Key, Layout, cells_sql, column_keys
from discreet.sources.dialect import Dialect, guess_dialect
from discreet.sources.inference import ALL_CLASSES, NUMBERS, Finding, infer
from discreet.sources.inspection import Inspection, check_names, judge_bad_records, settle_types
from discreet.sources.lines import LineFile, Scan, text_lines
from discreet.sources.location import Location
from discreet.sources.multiline import has_broken_quotes
from discreet.sources.options import ReadOptions
from discreet.sources.preparing import add_partitions, line_files, presence_notes, scan_files, view_name
from discreet.sources.sql_text import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["inspect_delimited"]


@dataclass(frozen=True)
class _File:
    """One file that is not empty: its first line as it stands, and the fields of it."""

    file: LineFile
    line: str
    first: tuple[str, ...]


@dataclass(frozen=True)
class _Counts:
    """Of a file: lines that are not blank, those that are records, and those that repeat the first."""

    lines: int
    records: int
    repeats: int


def inspect_delimited(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register CSV or TSV files.

    Raises:
        SourceError: if they cannot be read as one table: empty, not UTF-8, repeated names, line breaks inside
            quotes, half of the lines no records, a header that cannot be told from a row.
        UsageError: for options that do not fit the files.
    """
    thing, view, rules = location.thing, view_name(location.source), _rules(options)
    reader: dict[str, Any] = {
        **location.to_reader(),
        "encoding": options.encoding or "utf-8",
        "partitions": [],
        **rules.to_reader(),
    }
    files = line_files(connection, reader, view)
    scans = scan_files(thing, files, options)
    head = next(scan.head for scan in scans if not scan.empty)
    dialect = guess_dialect(head, options, location.delimiter)
    reader.update(dialect.to_reader())
    known = _split_heads(files, scans, dialect)
    counts = _count(connection, known, reader)
    quoted = replace(dialect, quote=dialect.quote or '"', escape=dialect.escape or '"')
    if (
        options.quote != ""
        # In a file of tabs a quote is often only a quote; commas come with quoting.
        and (counts.records < counts.lines or (dialect.quote == "" and dialect.delimiter != "\t"))
        and any(has_broken_quotes(file, quoted) for file in files)
    ):
        raise SourceError(
            thing,
            "has line breaks inside quotes: one quote that is never closed would swallow the records of others",
            hint="export it as Parquet or JSON lines, or with the line breaks replaced",
        )
    bad = counts.lines - counts.records + sum(scan.bad_lines for scan in scans)
    if bad:
        judge_bad_records(thing, bad, counts.records, _first_bad(files, known, dialect, reader), options)

    header, findings = _header(connection, reader, known, options, thing)
    reader["header"] = header
    keys = _columns(known, header=header)
    reader["columns"] = [list(key) for key in keys]
    names = _names(thing, keys, options, header=header)
    layouts = _layouts(known, keys, header=header)
    present_in = {name: sum(len(x.files) for x in layouts if x.places[i] is not None) for i, name in enumerate(names)}
    if findings is None:
        findings = _infer(connection, layouts, reader, len(names), rules)
    partitions = add_partitions(thing, names, reader, options)
    columns, notes = settle_types(thing, names, findings, options, others=partitions)
    notes += presence_notes(names, present_in, len(known))
    notes += _other_numbers(connection, reader, layouts, names, findings)
    if not header:
        notes.append("no header line: columns are called " + ", ".join(names[:5]))
    registration = Registration(location.source, "csv", Schema((*columns, *partitions)), reader)
    return Inspection(registration, counts.records - (counts.repeats if header else 0), bad, tuple(notes))


def _rules(options: ReadOptions) -> CellRules:
    return CellRules(
        empty=True,
        null_values=options.null_values,
        decimal=options.decimal,
        thousands=options.thousands,
        timezone=options.timezone,
    )


def _split_heads(files: Sequence[LineFile], scans: Sequence[Scan], dialect: Dialect) -> list[_File]:
    return [
        _File(file, scan.head[0], tuple(dialect.fields(scan.head[0]) or ()))
        for file, scan in zip(files, scans, strict=True)
        if not scan.empty
    ]


def _count(connection: DuckDBPyConnection, files: Sequence[_File], reader: Mapping[str, Any]) -> _Counts:
    """Over all files, each against its own first line, which is one of its records here."""
    totals = [0, 0, 0]
    for group in _by_first_line(files).values():
        layout = Layout(None, 0, (), tuple(file.file for file in group))
        rows = cells_sql([layout], reader, 0, raw=True)
        counted = connection.execute(
            f"SELECT COUNT(*), COUNT_IF(LEN(f) = {len(group[0].first)}), COUNT_IF(line = {literal(group[0].line)}) "
            f"FROM ({rows})"
        ).fetchone()
        assert counted is not None  # noqa: S101 - an aggregate without groups has one row
        totals = [total + int(more) for total, more in zip(totals, counted, strict=True)]
    return _Counts(*totals)


def _by_first_line(files: Sequence[_File]) -> dict[str, list[_File]]:
    groups: dict[str, list[_File]] = {}
    for file in files:
        groups.setdefault(file.line, []).append(file)
    return groups


def _header(
    connection: DuckDBPyConnection,
    reader: Mapping[str, Any],
    files: Sequence[_File],
    options: ReadOptions,
    thing: str,
) -> tuple[bool, list[Finding] | None]:
    """Whether the first lines are headers; and the columns' types, if they were found on the way.

    Raises:
        SourceError: if it cannot be told.
    """
    named = {name.strip() for file in files for name in file.first}
    if options.header is not None:
        return options.header, None
    if {*options.types, *options.expect} & named:
        return True, None
    first = files[0]
    layouts = _layouts([first], column_keys(first.first), header=True)
    below = _infer(connection, layouts, reader, len(first.first), _rules(options))
    header = _is_header(connection, first.first, below, options)
    alone = len(files) == 1
    if header is not None:
        return header, below if header and alone else None
    if not alone and all(file.line == first.line for file in files):
        return True, None
    findings = _infer(connection, _layouts([first], (), header=False), reader, len(first.first), _rules(options))
    if any(finding.type != TEXT for finding in findings):
        return False, findings if alone else None
    raise SourceError(
        thing,
        "it cannot be told whether its first line names the columns: everything in it is text",
        hint="--header if it does, --no-header if not (Python: header=True or header=False)",
    )


def _infer(
    connection: DuckDBPyConnection,
    layouts: Sequence[Layout],
    reader: Mapping[str, Any],
    columns: int,
    rules: CellRules,
) -> list[Finding]:
    texts = [present(f"t{i}", rules) for i in range(columns)]
    return infer(connection, cells_sql(layouts, reader, columns), texts, rules, [ALL_CLASSES] * columns)


def _is_header(
    connection: DuckDBPyConnection,
    first: Sequence[str],
    findings: Sequence[Finding],
    options: ReadOptions,
) -> bool | None:
    """Whether the first record does not fit the columns below it; None if all of them are text."""
    rules = _rules(options)
    listed = "[" + ", ".join(literal(text) for text in first) + "]"
    texts = [present(f"f[{i + 1}]", rules) for i in range(len(first))]
    cells = infer(connection, f"SELECT {listed} AS f", texts, rules, [ALL_CLASSES] * len(first))
    telling = False
    for cell, finding in zip(cells, findings, strict=True):
        type_ = finding.near[0] if finding.near else finding.type
        if type_ != TEXT or finding.mixed_zones:
            telling = telling or cell.present > 0
            if cell.present and cell.type == TEXT:
                return True
    return False if telling else None


def _columns(files: Sequence[_File], *, header: bool) -> list[Key]:
    """All columns of all files, in order of their first appearance."""
    if not header:
        return [("", i) for i in range(len(files[0].first))]
    return list(dict.fromkeys(key for file in files for key in column_keys(file.first)))


def _layouts(files: Sequence[_File], keys: Sequence[Key], *, header: bool) -> list[Layout]:
    if not header:
        count = len(files[0].first)
        return [Layout(None, count, tuple(range(count)), tuple(file.file for file in files))]
    layouts = []
    for line, group in _by_first_line(files).items():
        own = column_keys(group[0].first)
        places = tuple(own.index(key) if key in own else None for key in keys)
        layouts.append(Layout(line, len(own), places, tuple(file.file for file in group)))
    return layouts


def _names(thing: str, keys: Sequence[Key], options: ReadOptions, *, header: bool) -> list[str]:
    if options.names is not None:
        if len(options.names) != len(keys):
            raise UsageError("names", f"must be {len(keys)} names, one a column", list(options.names))
        return list(options.names)
    if not header:
        return [f"column{i + 1}" for i in range(len(keys))]
    names = [name or f"column{i + 1}" for i, (name, _) in enumerate(keys)]
    check_names(thing, names, fix="give every column a name of its own: --names id,amount,amount_2 (Python: names=)")
    return names


def _first_bad(files: Sequence[LineFile], known: Sequence[_File], dialect: Dialect, reader: Mapping[str, Any]) -> str:
    """Where the first line that is no record is; for the owner."""
    for file, first in ((file, found.first) for file in files for found in known if found.file == file):
        where = "" if len(files) == 1 else f" of {file.source!r}"
        for number, line in text_lines(file):
            if line:
                parts = dialect.fields(line)
                if parts is None:
                    return f"line {number}{where} has a quote that is not closed"
                if len(parts) != len(first):
                    return f"line {number}{where} has {len(parts)} fields, the first line has {len(first)}"
    return f"a line is not {'UTF-8' if reader['encoding'] == 'utf-8' else reader['encoding']}, or too long"


def _other_numbers(
    connection: DuckDBPyConnection,
    reader: Mapping[str, Any],
    layouts: Sequence[Layout],
    names: Sequence[str],
    findings: Sequence[Finding],
) -> list[str]:
    """Notes on text columns that would be numbers if commas were decimal or thousands marks."""
    rules = CellRules.from_reader(reader)
    if rules.decimal != "." or rules.thousands:
        return []
    open_columns = [
        i for i, finding in enumerate(findings) if finding.type == TEXT and finding.present and finding.near is None
    ]
    # A note changes nothing, so a sample of the rows is enough for it.
    rows = cells_sql(layouts, reader, len(names), limit=2000)
    notes: list[str] = []
    for other, option in (
        (replace(rules, thousands=","), "--thousands ','"),
        (replace(rules, decimal=","), "--decimal ','"),
    ):
        texts = [present(f"t{i}", rules) for i in open_columns]
        some = infer(connection, rows, texts, other, [NUMBERS] * len(open_columns))
        for i, finding in zip(list(open_columns), some, strict=True):
            if finding.type != TEXT:
                notes.append(f"column {names[i]!r} is text; {option} would make it numbers")
                open_columns.remove(i)
    return notes
