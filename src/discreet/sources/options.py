"""What the owner may say about how a file is read; checked as far as it can be without the file."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from discreet.errors import UsageError
from discreet.schema import Kind, Type, parse_type

__all__ = ["ReadOptions", "read_options"]


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
        encoding: of a text file. None means UTF-8 and refuses a file that is not; "utf-8" drops such lines.
        strict: True refuses a file with any bad record; False drops them; None drops them unless they are
            half the file or more, which rather means that the file is something else.
        expect: column names the caller is going to use; they tell a header from a first row.
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
    encoding: str | None = None
    strict: bool | None = None
    expect: tuple[str, ...] = ()


def read_options(
    *,
    types: Mapping[str, str] | None = None,
    header: bool | None = None,
    names: Sequence[str] | None = None,
    delimiter: str | None = None,
    quote: str | None = None,
    escape: str | None = None,
    null_values: Sequence[str] = (),
    decimal: str = ".",
    thousands: str = "",
    timezone: str | None = None,
    encoding: str | None = None,
    strict: bool | None = None,
    expect: Sequence[str] = (),
) -> ReadOptions:
    """The options, checked. The meaning of each is that of `ReadOptions`.

    Raises:
        UsageError: for a value that cannot be meant, by the option's name.
    """
    declared = {name: parse_type(text, thing=f"type of {name!r}") for name, text in (types or {}).items()}
    for name, type_ in declared.items():
        if type_.kind is Kind.OTHER:
            raise UsageError(f"type of {name!r}", "must be one that can be asked about", str(type_))
    if delimiter is not None and (len(delimiter) != 1 or delimiter in "\r\n\"'\\"):
        raise UsageError("delimiter", "must be one character, and no quote, backslash or line break", delimiter)
    if quote is not None and quote not in ("", '"', "'"):
        raise UsageError("quote", "must be a double quote, a single quote, or empty for none", quote)
    if escape is not None and escape not in ("\\", quote or '"'):
        raise UsageError("escape", "must be a backslash, or the quote itself", escape)
    if decimal not in (".", ","):
        raise UsageError("decimal", "must be '.' or ','", decimal)
    if thousands not in ("", ",", ".", "'", " ", "_", "\u00a0", "\u202f", "\u2019"):
        raise UsageError("thousands", "must be one of , . ' _ or a space", thousands)
    if thousands == decimal:
        raise UsageError("thousands", "must differ from decimal", thousands, hint="give both, e.g. decimal=','")
    if isinstance(null_values, str):
        raise UsageError("null_values", "must be a list of texts", null_values, hint="null_values=['NA']")
    if names is not None and len(set(names)) < len(names):
        raise UsageError("names", "must differ from each other", list(names))
    if encoding is not None:
        try:
            encoding = codecs.lookup(encoding).name
        except LookupError:
            raise UsageError(
                "encoding", "is not known to Python", encoding, hint="utf-8, gb18030, latin-1, utf-16, ..."
            ) from None
    return ReadOptions(
        types=declared,
        header=header,
        names=None if names is None else tuple(names),
        delimiter=delimiter,
        quote=quote,
        escape=escape,
        null_values=tuple(dict.fromkeys(null_values)),
        decimal=decimal,
        thousands=thousands,
        timezone=timezone,
        encoding=encoding,
        strict=strict,
        expect=tuple(expect),
    )
