"""CSV and TSV files: registering them, and the rows of a registered one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError, UsageError
from discreet.schema import TEXT, Registration, Schema
from discreet.sources.cells import CellRules, present, typed
from discreet.sources.dialect import Dialect, guess_dialect
from discreet.sources.inference import ALL_CLASSES, NUMBERS, Finding, infer
from discreet.sources.inspection import Inspection, check_names, judge_bad_records, settle_types
from discreet.sources.lines import Scan, lines_sql, scan_text, text_lines
from discreet.sources.location import Location
from discreet.sources.multiline import has_broken_quotes, json_list, rows_of_lists, view_name, write_lists
from discreet.sources.options import ReadOptions
from discreet.sources.sql_text import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["inspect_delimited", "select_delimited"]


def inspect_delimited(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register a CSV or TSV file.

    Raises:
        SourceError: if the file cannot be read as one table: empty, not UTF-8, repeated names, half of its
            lines no records, a header that cannot be told from a row.
        UsageError: for options that do not fit the file.
    """
    thing = f"source {location.path!r}"
    scan = scan_text(location, encoding=options.encoding)
    dialect = guess_dialect(scan.head, options, location.delimiter)
    reader: dict[str, Any] = {
        "path": location.path,
        "compression": scan.compression,
        **dialect.to_reader(),
        "multiline": False,
        "header": None,
        "fields": len(dialect.fields(scan.head[0]) or ()),
        **_rules(options).to_reader(),
    }
    lines, records = _count(connection, reader)
    quoted = replace(dialect, quote=dialect.quote or '"', escape=dialect.escape or '"')
    if (
        options.quote != ""
        # In a file of tabs a quote is often only a quote; commas come with quoting.
        and (records < lines or (dialect.quote == "" and dialect.delimiter != "\t"))
        and has_broken_quotes(location.path, scan.compression, quoted)
    ):
        dialect = quoted
        reader.update(dialect.to_reader())
        reader["multiline"] = True
        reader["view"] = view_name(location.source)
        first = write_lists(connection, reader, reader["view"])
        reader["fields"] = len(first)
        lines, records = _count(connection, reader)
    else:
        first = dialect.fields(scan.head[0]) or []
    bad = lines - records + scan.bad_lines
    if bad:
        judge_bad_records(thing, bad, records, _first_bad(location, scan, dialect, reader), options)

    findings = _header(connection, reader, first, scan, options, thing)
    names = _names(thing, first, reader["header"] is not None, options)
    columns, notes = settle_types(thing, names, findings, options)
    notes += _other_numbers(connection, reader, names, findings)
    if reader["header"] is None:
        notes.append("no header line: columns are called " + ", ".join(names[:5]))
    reader.pop("view", None)
    registration = Registration(location.source, "csv", Schema(columns), reader)
    return Inspection(registration, records - (reader["header"] is not None), bad, tuple(notes))


def select_delimited(registration: Registration, columns: Collection[int], view: str) -> str:
    """The SELECT of a registered file's columns ``c{i}``; `view` is where `multiline` put the rows."""
    reader = registration.reader
    rules = CellRules.from_reader(reader)
    texts = _texts(reader, rules)
    parts = [f"{typed(texts[i], registration.schema.columns[i].type, rules)} AS c{i}" for i in sorted(columns)]
    return f"SELECT {', '.join(parts) or '1 AS one'} FROM ({_rows({**reader, 'view': view})})"


def _rules(options: ReadOptions) -> CellRules:
    return CellRules(
        empty=True,
        null_values=options.null_values,
        decimal=options.decimal,
        thousands=options.thousands,
        timezone=options.timezone,
    )


def _rows(reader: Mapping[str, Any], *, other_than: str | None = None, all_lines: bool = False) -> str:
    """A SELECT with one column ``f``, the list of a record's fields, for each record that has all of them.

    The header is dropped wherever it stands, so that joined files do not count it as a row.
    """
    dialect = Dialect.from_reader(reader)
    header = reader["header"] if other_than is None else other_than
    if reader["multiline"]:
        rows = rows_of_lists(reader["view"], header)
    else:
        skip = "" if header is None else f" AND line <> {literal(header)}"
        lines = lines_sql(reader["path"], reader["compression"])
        rows = f"SELECT {dialect.fields_sql('line')} AS f FROM ({lines}) WHERE line IS NOT NULL{skip}"
    return rows if all_lines else f"SELECT f FROM ({rows}) WHERE LEN(f) = {reader['fields']}"


def _texts(reader: Mapping[str, Any], rules: CellRules) -> list[str]:
    dialect = Dialect.from_reader(reader)
    return [present(dialect.field_sql("f", i), rules) for i in range(reader["fields"])]


def _count(connection: DuckDBPyConnection, reader: Mapping[str, Any]) -> tuple[int, int]:
    """How many lines are not blank, and how many of them are records (the header is one here)."""
    counted = connection.execute(
        f"SELECT COUNT(*), COUNT_IF(LEN(f) = {reader['fields']}) FROM ({_rows(reader, all_lines=True)})"
    ).fetchone()
    assert counted is not None  # noqa: S101 - an aggregate without groups has one row
    return int(counted[0]), int(counted[1])


def _header(
    connection: DuckDBPyConnection,
    reader: dict[str, Any],
    first: list[str],
    scan: Scan,
    options: ReadOptions,
    thing: str,
) -> list[Finding]:
    """Find out whether the first record is a header, set ``reader["header"]``, and infer the columns'
    types."""
    first_line = json_list(first) if reader["multiline"] else scan.head[0]
    texts = _texts(reader, _rules(options))
    classes = [ALL_CLASSES] * len(texts)

    def inferred(*, without_first: bool) -> list[Finding]:
        rows = _rows(reader, other_than=first_line if without_first else None)
        return infer(connection, rows, texts, _rules(options), classes)

    wanted = {*options.types, *options.expect}
    stripped = [name.strip() for name in first]
    header = options.header
    if header is None and wanted & set(stripped):
        header = True
    findings = inferred(without_first=header is not False)
    if header is None:
        header = _is_header(connection, first, findings, options)
        if not header:
            findings = inferred(without_first=False)
            if header is None and all(finding.type == TEXT for finding in findings):
                raise SourceError(
                    thing,
                    "it cannot be told whether its first line names the columns: everything in it is text",
                    hint="say header=True or header=False",
                )
    if header:
        reader["header"] = first_line
    return findings


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


def _names(thing: str, first: Sequence[str], header: bool, options: ReadOptions) -> list[str]:
    if options.names is not None:
        if len(options.names) != len(first):
            raise UsageError("names", f"must be {len(first)} names, one a column", list(options.names))
        return list(options.names)
    if not header:
        return [f"column{i + 1}" for i in range(len(first))]
    names = [name.strip() or f"column{i + 1}" for i, name in enumerate(first)]
    check_names(thing, names, fix="give every column a name of its own: names=['id', 'amount', 'amount_2', ...]")
    return names


def _first_bad(location: Location, scan: Scan, dialect: Dialect, reader: Mapping[str, Any]) -> str:
    """Where the first line that is no record is; for the owner."""
    fields = reader["fields"]
    if reader["multiline"]:
        return f"a record does not have {fields} fields as the first one has"
    for number, line in text_lines(location, scan.compression):
        if line:
            parts = dialect.fields(line)
            if parts is None:
                return f"line {number} has a quote that is not closed"
            if len(parts) != fields:
                return f"line {number} has {len(parts)} fields, the first line has {fields}"
    return "a line is not UTF-8, or too long"


def _other_numbers(
    connection: DuckDBPyConnection, reader: dict[str, Any], names: Sequence[str], findings: Sequence[Finding]
) -> list[str]:
    """Notes on text columns that would be numbers if commas were decimal or thousands marks."""
    rules = CellRules.from_reader(reader)
    if rules.decimal != "." or rules.thousands:
        return []
    texts = _texts(reader, rules)
    open_columns = [
        i for i, finding in enumerate(findings) if finding.type == TEXT and finding.present and finding.near is None
    ]
    # A note changes nothing, so a sample of the rows is enough for it.
    rows = f"SELECT * FROM ({_rows(reader)}) LIMIT 2000"
    notes: list[str] = []
    for other, option in (
        (replace(rules, thousands=","), "thousands=','"),
        (replace(rules, decimal=","), "decimal=','"),
    ):
        some = infer(connection, rows, [texts[i] for i in open_columns], other, [NUMBERS] * len(open_columns))
        for i, finding in zip(list(open_columns), some, strict=True):
            if finding.type != TEXT:
                notes.append(f"column {names[i]!r} is text; {option} would make it numbers")
                open_columns.remove(i)
    return notes
