"""Logs with one record a line in a named form: registering them, and the rows of registered ones.

Each form is a regular expression of the engine (RE2, which never backtracks) and a fixed list of columns with
fixed types; nothing is guessed but which keys an audit log has. Lines that do not have the form are bad
records. A dash means missing in access logs and in RFC 5424.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError, UsageError
from discreet.schema import INTEGER, TEXT, TIMESTAMPTZ, Column, Registration, Schema, Type
from discreet.sources.cells import CellRules, finite, typed
from discreet.sources.inference import infer
from discreet.sources.inspection import Inspection, check_declared, judge_bad_records
from discreet.sources.lines import LineFile, lines_sql, text_lines
from discreet.sources.location import Location
from discreet.sources.options import LOG_FORMATS, ReadOptions
from discreet.sources.preparing import (
    add_partitions,
    create_view,
    line_files,
    partition_places,
    partition_view,
    scan_files,
    view_name,
)
from discreet.sources.sql_text import literal, literal_list

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["attach_log", "inspect_log", "select_log"]

_QUOTED = r'"((?:[^"\\]|\\.)*)"'


@dataclass(frozen=True)
class _Form:
    """A named form of log lines.

    Attributes:
        pattern: matches a whole record.
        groups: names of the pattern's groups, in order.
        sign: the group that is never empty in a record.
        columns: name, type, and the expression over ``g.{group}`` for each column; ``{time}`` stands for the
            instant that ``g.moment`` says.
    """

    pattern: str
    groups: tuple[str, ...]
    sign: str
    columns: tuple[tuple[str, Type, str], ...]


def _dash(group: str) -> str:
    return f"NULLIF(NULLIF(g.{group}, ''), '-')"


def _access_time(group: str) -> str:
    return finite(f"TRY_STRPTIME(g.{group}, '%d/%b/%Y:%H:%M:%S %z')", TIMESTAMPTZ)


def _request(part: int) -> str:
    pattern = literal(r"^([A-Za-z_-]+) (.*?)(?: (HTTP/[0-9.]+))?$")
    return f"NULLIF(REGEXP_EXTRACT(g.request, {pattern}, {part}), '')"


_ACCESS = (
    ("ip", TEXT, "g.ip"),
    ("identity", TEXT, _dash("identity")),
    ("user", TEXT, _dash("person")),
    ("time", TIMESTAMPTZ, _access_time("moment")),
    ("method", TEXT, _request(1)),
    ("path", TEXT, _request(2)),
    ("protocol", TEXT, _request(3)),
    ("status", INTEGER, "TRY_CAST(g.status AS BIGINT)"),
    ("bytes", INTEGER, f"TRY_CAST({_dash('size')} AS BIGINT)"),
)
_COMMON = rf"(\S+) (\S+) (.+?) \[([^\]]*)\] {_QUOTED} (\d{{3}}) (\d+|-)"
_COMMON_GROUPS = ("ip", "identity", "person", "moment", "request", "status", "size")

_PRIORITY = (
    ("facility", INTEGER, "TRY_CAST(NULLIF(g.priority, '') AS BIGINT) // 8"),
    ("severity", INTEGER, "TRY_CAST(NULLIF(g.priority, '') AS BIGINT) % 8"),
)

_FORMS = {
    "common": _Form(_COMMON + r"(?: .*)?", _COMMON_GROUPS, "ip", _ACCESS),
    "combined": _Form(
        _COMMON + rf"(?: {_QUOTED} {_QUOTED})?(?: .*)?",
        (*_COMMON_GROUPS, "referer", "agent"),
        "ip",
        (*_ACCESS, ("referer", TEXT, _dash("referer")), ("user_agent", TEXT, _dash("agent"))),
    ),
    # RFC 3164 (Jan  2 03:04:05) and the same with a full time, as most daemons write it today.
    "syslog": _Form(
        r"(?:<(\d{1,3})>)?((?:[A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d)|(?:\d{4}-\d\d-\d\dT\S+)) (\S+) "
        r"([^:\[\s]+)(?:\[([^\]]*)\])?:? ?(.*)",
        ("priority", "moment", "host", "app", "process", "message"),
        "moment",
        (
            ("time", TIMESTAMPTZ, "{time}"),
            ("host", TEXT, "g.host"),
            ("app", TEXT, "g.app"),
            ("pid", TEXT, "NULLIF(g.process, '')"),
            *_PRIORITY,
            ("message", TEXT, "g.message"),
        ),
    ),
    "rfc5424": _Form(
        r"<(\d{1,3})>1 (\S+) (\S+) (\S+) (\S+) (\S+) "
        r'(-|(?:\[(?:[^\]"\\]|\\.|"(?:[^"\\]|\\.)*")*\])+)(?: (?:\x{feff})?(.*))?',
        ("priority", "moment", "host", "app", "process", "kind", "structured", "message"),
        "moment",
        (
            ("time", TIMESTAMPTZ, "{time}"),
            ("host", TEXT, _dash("host")),
            ("app", TEXT, _dash("app")),
            ("pid", TEXT, _dash("process")),
            ("msgid", TEXT, _dash("kind")),
            *_PRIORITY,
            ("structured_data", TEXT, _dash("structured")),
            ("message", TEXT, "g.message"),
        ),
    ),
    "auditd": _Form(
        r"(?:node=(\S+) )?type=(\S+) msg=audit\((\d{1,12}\.\d{1,9}):(\d{1,18})\):? ?(.*)",
        ("node", "kind", "moment", "serial", "fields"),
        "moment",
        (
            ("node", TEXT, "NULLIF(g.node, '')"),
            ("type", TEXT, "g.kind"),
            ("time", TIMESTAMPTZ, finite("TO_TIMESTAMP(TRY_CAST(g.moment AS DOUBLE))", TIMESTAMPTZ)),
            ("serial", INTEGER, "TRY_CAST(g.serial AS BIGINT)"),
        ),
    ),
}

_KEY = r"(?:^|[\s'\x1d])([A-Za-z_][A-Za-z0-9_-]*)="
_VALUE = r"""(?:^|[\s'\x1d])KEY=(?:([^\s"'\x1d]+)|"([^"]*)")"""
_MOST_KEYS = 200
# Keys whose values are whole numbers wherever they stand; all others are text, as hexadecimal ones may look
# like numbers in one file and not in the next.
_NUMBERS = frozenset(
    ("pid", "ppid", "uid", "auid", "gid", "euid", "suid", "fsuid", "egid", "sgid", "fsgid", "ouid", "ogid", "ses")
) | {"exit", "items", "item", "inode", "old-auid", "old-ses"}


def inspect_log(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register log files in the form that the owner named.

    Raises:
        SourceError: if they are empty, not UTF-8, or half of the lines do not have that form; or if the times
            have no year and the owner did not say it.
    """
    thing, view = location.thing, view_name(location.source)
    if options.log_format is None:
        known = ", ".join(LOG_FORMATS)
        raise UsageError(
            "log_format", f"is required for a log: one of {known}", hint="--log-format combined (Python: log_format=)"
        )
    form = _FORMS[options.log_format]
    reader: dict[str, Any] = {
        **location.to_reader(),
        "encoding": options.encoding or "utf-8",
        "log_format": options.log_format,
        "timezone": options.timezone or "UTC",
        "year": options.year,
        "keys": [],
        "partitions": [],
    }
    files = line_files(connection, reader, view)
    bad = sum(scan.bad_lines for scan in scan_files(thing, files, options))
    create_view(connection, view, lines_sql(files))
    counted = connection.execute(f"SELECT COUNT(*), {_yearless(form)} FROM ({_records(reader, view)})").fetchone()
    assert counted is not None  # noqa: S101 - an aggregate without groups has one row
    records = int(counted[0])
    total = connection.execute(f"SELECT COUNT(*) FROM {view} WHERE TRIM(line) <> ''").fetchone()
    bad += (int(total[0]) if total else 0) - records
    if not records:
        raise SourceError(thing, f"no line of it is a {options.log_format} record", hint="name another log_format")
    if bad:
        judge_bad_records(thing, bad, records, _first_bad(files, form), options)
    if counted[1] and options.year is None and "time" not in options.types:
        raise SourceError(thing, "its times have no year", hint="say it: --source-year 2024 (Python: year=2024)")
    columns = [Column(name, type_) for name, type_, _ in form.columns]
    if options.log_format == "auditd":
        columns += _audit_keys(connection, reader, view, columns)
    names = [column.name for column in columns]
    partitions = add_partitions(thing, names, reader, options)
    check_declared([*names, *(column.name for column in partitions)], options)
    typed_columns = [Column(column.name, options.types.get(column.name, column.type)) for column in columns]
    registration = Registration(location.source, "log", Schema((*typed_columns, *partitions)), reader)
    return Inspection(registration, records, bad)


def attach_log(connection: DuckDBPyConnection, registration: Registration) -> None:
    """Make the lines known to the connection.

    Raises:
        SourceError: if a file is gone or cannot be read.
    """
    view = view_name(registration.source)
    files = line_files(connection, registration.reader, view)
    create_view(connection, view, partition_view(registration.reader, files))


def select_log(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered source's columns ``c{i}``."""
    reader = registration.reader
    form, folders = _FORMS[reader["log_format"]], partition_places(reader)
    rules = CellRules(empty=False, timezone=reader["timezone"])
    parts = []
    for i in sorted(columns):
        column = registration.schema.columns[i]
        if i in folders:
            text, own = f"k{folders[i]}", TEXT
        elif i < len(form.columns):
            _, own, text = form.columns[i]
            text = text.replace("{time}", _time(reader))
        else:
            text, own = _audit_value(reader["keys"][i - len(form.columns)]), TEXT
        if own != column.type:
            # Declared otherwise: from its text.
            text = typed(text if own == TEXT else f"CAST({text} AS VARCHAR)", column.type, rules)
        parts.append(f"{text} AS c{i}")
    carried = "".join(f", k{k}" for k in sorted(folders.values()))
    return f"SELECT {', '.join(parts) or '1 AS one'} FROM ({_records(reader, view_name(registration.source), carried)})"


def _records(reader: Mapping[str, Any], view: str, carried: str = "") -> str:
    """A SELECT with one column ``g``, the named groups, for each line of the form."""
    form = _FORMS[reader["log_format"]]
    groups = f"REGEXP_EXTRACT(line, {literal(f'^(?:{form.pattern})$')}, {literal_list(form.groups)})"
    # Where a line does not match, all groups are empty; `sign` never is where it does.
    return f"SELECT g{carried} FROM (SELECT {groups} AS g{carried} FROM {view}) WHERE g.{form.sign} <> ''"


def _yearless(form: _Form) -> str:
    return "COUNT_IF(REGEXP_MATCHES(g.moment, '^[A-Z]'))" if form is _FORMS["syslog"] else "0"


def _time(reader: Mapping[str, Any]) -> str:
    """The instant that ``g.moment`` says: ISO 8601, or ``Jan  2 03:04:05`` in the owner's year."""
    rules = CellRules(empty=False, timezone=reader["timezone"])
    iso = typed("g.moment", TIMESTAMPTZ, rules)
    if reader["year"] is None:
        return iso
    text = f"'{reader['year']:04} ' || REGEXP_REPLACE(g.moment, ' +', ' ', 'g')"
    bare = f"CAST(TRY_STRPTIME({text}, '%Y %b %d %H:%M:%S') AS VARCHAR)"
    return f"CASE WHEN REGEXP_MATCHES(g.moment, '^[A-Z]') THEN {typed(bare, TIMESTAMPTZ, rules)} ELSE {iso} END"


def _audit_keys(
    connection: DuckDBPyConnection, reader: dict[str, Any], view: str, fixed: Sequence[Column]
) -> list[Column]:
    """The keys that the records have, the commonest first, as columns; sets ``reader["keys"]``."""
    found = connection.execute(
        f"SELECT k, COUNT(*) FROM (SELECT UNNEST(REGEXP_EXTRACT_ALL(g.fields, {literal(_KEY)}, 1)) AS k "
        f"FROM ({_records(reader, view)})) GROUP BY k"
    ).fetchall()
    taken = {column.name for column in fixed} | {"msg"}
    keys = [key for key, _ in sorted(found, key=lambda pair: (-pair[1], pair[0])) if key not in taken][:_MOST_KEYS]
    reader["keys"] = keys
    texts = [_audit_value(key) for key in keys]
    classes = [("bigint",) if key in _NUMBERS else () for key in keys]
    findings = infer(connection, _records(reader, view), texts, CellRules(empty=False), classes)
    return [Column(key, finding.type) for key, finding in zip(keys, findings, strict=True)]


def _audit_value(key: str) -> str:
    """The first value of a key in ``g.fields``; what auditd writes for "unknown" is missing."""
    plain, quoted = (
        f"NULLIF(REGEXP_EXTRACT(g.fields, {literal(_VALUE.replace('KEY', key))}, {group}), '')" for group in (1, 2)
    )
    return f"NULLIF(NULLIF(COALESCE({plain}, {quoted}), '?'), '(null)')"


def _first_bad(files: Sequence[LineFile], form: _Form) -> str:
    """Where the first line that is no record is; for the owner."""
    pattern = re.compile(form.pattern.replace(r"\x{feff}", "\ufeff"))
    for file in files:
        where = "" if len(files) == 1 else f" of {file.source!r}"
        for number, line in text_lines(file):
            if line.strip() and not pattern.fullmatch(line):
                return f"line {number}{where} does not have the form of the log"
    return "a line cannot be read, or is too long"
