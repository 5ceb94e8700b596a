"""The options that say how a source is read: one list, for every command that may be the first to open one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from discreet.cli.talk import be_quiet
from discreet.errors import UsageError

__all__ = ["takes_reading"]

_FLAGS = {"format": "--source-format", "timezone": "--source-timezone", "year": "--source-year"}
"""Where the option is called otherwise than in Python, as its plain name means something else beside a query."""

_TEXTS = {
    "format": (
        "NAME",
        "What the files are, where their names do not tell: csv, jsonl, log, parquet, duckdb or sqlite.",
    ),
    "log_format": ("NAME", "Of a log: combined, common (access logs), syslog, rfc5424 or auditd."),
    "records": ("PATH", "The path of the list of records inside JSON documents: Records, data.items."),
    "table": ("TABLE", "The table of a database; or write FILE::TABLE. Default for PostgreSQL: the name in FROM."),
    "encoding": ("NAME", "Of text: gbk, gb18030, latin-1, utf-16, ... Lines that are not valid in it are left out."),
    "delimiter": ("CHARACTER", "Of a CSV file: , ; | or \\t for a tab."),
    "quote": ("CHARACTER", 'Of a CSV file: " or \' or "" for none.'),
    "escape": ("CHARACTER", "What stands before a quote inside quotes: the quote itself, or a backslash."),
    "decimal": ("CHARACTER", "The decimal mark: . or ,"),
    "thousands": ("CHARACTER", "The mark between thousands: , . ' _ or a blank."),
    "timezone": ("ZONE", "The zone of times in the source that bear none: UTC, Asia/Tokyo."),
    "year": ("YEAR", "The year of times in the source that bear none (syslog)."),
    "names": ("A,B,...", "The columns of a CSV file, in order, as one CSV line; they replace the header's."),
    "null_values": ("A,B,...", "Further texts that mean a missing value, as one CSV line: NA,-"),
}
_SWITCHES = {
    "header": ("--header/--no-header", "Whether the first line of a CSV file names the columns. Default: find out."),
    "partitions": ("--partitions/--no-partitions", "Whether folders called name=value are columns. Default: yes."),
    "strict": ("--strict/--lenient", "Refuse a source with any bad record, or leave them all out, however many."),
}


def takes_reading(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading, which it gets as the dictionary `reading`, and --quiet."""
    own = inspect.signature(command, eval_str=True)
    added = {
        name: Annotated[str | None, typer.Option(_flag(name), metavar=metavar, help=f"At the first use. {text}")]
        for name, (metavar, text) in _TEXTS.items()
    } | {
        name: Annotated[bool | None, typer.Option(flags, help=f"At the first use. {text}")]
        for name, (flags, text) in _SWITCHES.items()
    }

    @wraps(command)
    def with_reading(**arguments: Any) -> None:
        be_quiet(bool(arguments.pop("quiet")))
        written = {name: arguments.pop(f"reading_{name}") for name in added}
        command(**arguments, reading={name: _value(name, v) for name, v in written.items() if v is not None})

    kept = [parameter for parameter in own.parameters.values() if parameter.name != "reading"]
    more = [
        inspect.Parameter(f"reading_{name}", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        for name, kind in added.items()
    ]
    quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
    more.append(inspect.Parameter("quiet", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=quiet))
    with_reading.__signature__ = own.replace(parameters=[*kept, *more])  # type: ignore[attr-defined]
    with_reading.__annotations__ = {parameter.name: parameter.annotation for parameter in (*kept, *more)}
    return with_reading


def _flag(name: str) -> str:
    return _FLAGS.get(name, "--" + name.replace("_", "-"))


def _value(name: str, text: Any) -> Any:
    from discreet.keys import split_line

    if name in ("names", "null_values"):
        return [part if isinstance(part, str) else "NULL" for part in split_line(text, _flag(name))]
    if name == "year":
        if not text.isdecimal():
            raise UsageError(_flag(name), "must be a year from 1 to 9999", text)
        return int(text)
    return text
