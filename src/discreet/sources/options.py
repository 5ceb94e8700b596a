"""What the owner may say about how a file is read; checked as far as it can be without the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

from discreet.errors import UsageError
from discreet.schema import Kind, Type, parse_type
from discreet.sources.documents import parse_records_path
from discreet.sources.transcoding import known_encoding

__all__ = ["LOG_FORMATS", "ReadOptions", "Reading", "read_options"]

LOG_FORMATS = ("combined", "common", "syslog", "rfc5424", "auditd")

_TEXT = frozenset(("encoding", "strict", "null_values", "timezone", "partitions"))
_ALLOWED: dict[str, frozenset[str]] = {
    "csv": _TEXT | {"header", "names", "delimiter", "quote", "escape", "decimal", "thousands"},
    "jsonl": _TEXT | {"records"},
    "log": _TEXT - {"null_values"} | {"log_format", "year"},
    "parquet": frozenset(("partitions",)),
    "duckdb": frozenset(("table",)),
    "sqlite": frozenset(("table", "null_values", "timezone")),
    "postgres": frozenset(("table",)),
    "spark": frozenset(("table",)),
    "frame": frozenset(),
}
_SHOWN = {
    "csv": "delimited text",
    "jsonl": "JSON",
    "log": "log files",
    "parquet": "Parquet files",
    "duckdb": "DuckDB files",
    "sqlite": "SQLite files",
    "postgres": "PostgreSQL databases",
    "spark": "Spark",
    "frame": "data frames",
}


@dataclass(frozen=True)
class ReadOptions:
    """The owner's words about reading, frozen.

    Attributes:
        types: types declared by exact column name; they win over what the file looks like.
        header: whether a CSV file's first record names the columns; None finds out, or asks.
        names: column names in order; they replace the header's.
        delimiter, quote: of a CSV file; None finds out. `quote` may be "" for none.
        escape: what stands before a quote inside quotes: the quote itself, or a backslash.
        null_values: further texts that mean a missing value (empty cells always do).
        decimal, thousands: how numbers are written.
        timezone: the zone of times that bear none.
        year: the year of times that bear none (syslog of RFC 3164).
        encoding: of a text file. None means UTF-8 and refuses a file that is not; a name, "utf-8" too, drops
            lines that are not valid in it.
        records: the path of the list of records inside JSON documents (`documents.parse_records_path`).
        log_format: one of `LOG_FORMATS`.
        table: of a database.
        partitions: whether folders called ``name=value`` are columns; None: where there are some.
        strict: True refuses a file with any bad record; False drops them; None drops them unless they are
            half the file or more, which rather means that the file is something else.
        expect: column names the caller is going to use; they tell a header from a first row.
        given: the options that the owner named, as plain JSON values.
    """

    types: Mapping[str, Type] = field(default_factory=dict)
    header: bool | None = None
    names: tuple[str, ...] | None = None
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    null_values: tuple[str, ...] = ()
    decimal: str = "."
    thousands: str = ""
    timezone: str | None = None
    year: int | None = None
    encoding: str | None = None
    records: tuple[str, ...] | None = None
    log_format: str | None = None
    table: str | None = None
    partitions: bool | None = None
    strict: bool | None = None
    expect: tuple[str, ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def check_format(self, format: str) -> None:
        """Refuse an option that means nothing for a format: it would be ignored in silence.

        Raises:
            UsageError: naming it.
        """
        for name, value in self.given.items():
            if name not in _ALLOWED[format]:
                fitting = " and ".join(_SHOWN[other] for other, names in _ALLOWED.items() if name in names)
                raise UsageError(name, f"means nothing for {_SHOWN[format]}; it is for {fitting}", value)


class Reading(TypedDict, total=False):
    """The options of reading that an owner may name when a source is opened; of `ReadOptions`, and `format`."""

    format: str | None
    header: bool | None
    names: Sequence[str] | None
    delimiter: str | None
    quote: str | None
    escape: str | None
    null_values: Sequence[str] | None
    decimal: str | None
    thousands: str | None
    timezone: str | None
    year: int | None
    encoding: str | None
    records: str | None
    log_format: str | None
    table: str | None
    partitions: bool | None
    strict: bool | None


def read_options(
    *,
    types: Mapping[str, str] | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    escape: str | None = None,
    null_values: Sequence[str] | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    timezone: str | None = None,
    year: int | None = None,
    encoding: str | None = None,
    records: str | None = None,
    log_format: str | None = None,
    table: str | None = None,
    partitions: bool | None = None,
    strict: bool | None = None,
    expect: Sequence[str] = (),
) -> ReadOptions:
    """The options, checked. The meaning of each is that of `ReadOptions`; None says nothing.

    Raises:
        UsageError: for a value that cannot be meant, by the option's name.
    """
    declared = {name: parse_type(text, thing=f"type of {name!r}") for name, text in (types or {}).items()}
    for name, type_ in declared.items():
        if type_.kind is Kind.OTHER:
            raise UsageError(f"type of {name!r}", "must be one that can be asked about", str(type_))
    for name, flag in (("header", header), ("partitions", partitions), ("strict", strict)):
        if flag is not None and not isinstance(flag, bool):
            raise UsageError(name, "must be True or False", flag)
    if delimiter == "\\t":
        delimiter = "\t"  # as a shell has it
    if delimiter is not None and (len(delimiter) != 1 or delimiter in "\r\n\"'\\"):
        raise UsageError("delimiter", "must be one character, and no quote, backslash or line break", delimiter)
    if quote is not None and quote not in ("", '"', "'"):
        raise UsageError("quote", "must be a double quote, a single quote, or empty for none", quote)
    if escape is not None and escape not in ("\\", quote or '"'):
        raise UsageError("escape", "must be a backslash, or the quote itself", escape)
    if decimal not in (None, ".", ","):
        raise UsageError("decimal", "must be '.' or ','", decimal)
    if thousands not in (None, "", ",", ".", "'", " ", "_", "\u00a0", "\u202f", "\u2019"):
        raise UsageError("thousands", "must be one of , . ' _ or a space", thousands)
    if thousands and thousands == (decimal or "."):
        raise UsageError(
            "thousands",
            "must differ from decimal",
            thousands,
            hint="give both, for example --decimal ',' (Python: decimal=)",
        )
    if isinstance(null_values, str):
        raise UsageError("null_values", "must be a list of texts", null_values, hint="null_values=['NA']")
    if isinstance(names, str):
        raise UsageError("names", "must be a list of names", names, hint="names=['id', 'amount']")
    if names is not None and len(set(names)) < len(names):
        raise UsageError("names", "must differ from each other", list(names))
    if year is not None and (isinstance(year, bool) or not isinstance(year, int) or not 1 <= year <= 9999):
        raise UsageError("year", "must be a year from 1 to 9999", year)
    if log_format is not None and log_format not in LOG_FORMATS:
        raise UsageError("log_format", f"must be one of {', '.join(LOG_FORMATS)}", log_format)
    settled: dict[str, Any] = {
        "header": header,
        "names": None if names is None else list(names),
        "delimiter": delimiter,
        "quote": quote,
        "escape": escape,
        "null_values": None if null_values is None else list(dict.fromkeys(null_values)),
        "decimal": decimal,
        "thousands": thousands,
        "timezone": timezone,
        "year": year,
        "encoding": None if encoding is None else known_encoding(encoding),
        "records": None if records is None else list(parse_records_path(records)),
        "log_format": log_format,
        "table": table,
        "partitions": partitions,
        "strict": strict,
    }
    return ReadOptions(
        types=declared,
        header=header,
        names=None if names is None else tuple(names),
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        null_values=tuple(settled["null_values"] or ()),
        decimal=decimal or ".",
        thousands=thousands or "",
        timezone=timezone,
        year=year,
        encoding=settled["encoding"],
        records=None if settled["records"] is None else tuple(settled["records"]),
        log_format=log_format,
        table=table,
        partitions=partitions,
        strict=strict,
        expect=tuple(expect),
        given={name: value for name, value in settled.items() if value is not None},
    )
