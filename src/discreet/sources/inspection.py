"""What registering a source found out, for its owner's eyes only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from discreet.errors import SourceError, UsageError
from discreet.schema import Column, Registration, Type
from discreet.sources.inference import Finding
from discreet.sources.options import ReadOptions

__all__ = ["Inspection", "check_names", "judge_bad_records", "settle_types"]


@dataclass(frozen=True)
class Inspection:
    """A registration, and what was seen while it was made.

    Only `registration` is the owner's disclosure. The rest depends on private records and must not reach
    an analyst: show it when the owner asks.

    Attributes:
        registration: to be stored.
        records: how many records were read.
        bad_records: how many lines are no records; they are left out of every statistic.
        notes: what the owner may want to change, one sentence each.
    """

    registration: Registration
    records: int
    bad_records: int = 0
    notes: tuple[str, ...] = ()


def check_names(thing: str, names: Sequence[str], *, fix: str) -> None:
    """Refuse names that are the same, or the same but for case.

    Raises:
        SourceError: naming the column and both positions.
    """
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        first = seen.setdefault(name.casefold(), i)
        if first != i:
            twice = (
                f"column {name!r} appears twice (positions {first + 1} and {i + 1})"
                if names[first] == name
                else f"columns {names[first]!r} and {name!r} differ in case alone (positions {first + 1} and {i + 1})"
            )
            raise SourceError(thing, twice, hint=fix)


def judge_bad_records(thing: str, bad: int, records: int, first: str, options: ReadOptions) -> None:
    """Refuse a file by its bad records, as `ReadOptions.strict` says.

    Raises:
        SourceError: with `first`, which says where the first bad record is and what is wrong with it.
    """
    if bad and (options.strict or (options.strict is None and bad >= records)):
        hint = "--lenient leaves bad records out (Python: strict=False)" if options.strict is None else ""
        raise SourceError(thing, first, hint=hint)


def settle_types(
    thing: str,
    names: Sequence[str],
    findings: Sequence[Finding],
    options: ReadOptions,
    *,
    others: Sequence[Column] = (),
) -> tuple[tuple[Column, ...], list[str]]:
    """The columns with their final types, and notes about those where the owner may want another.

    `others` are columns of the source whose types are settled already.

    Raises:
        UsageError: if a type is declared for a column that does not exist.
        SourceError: for a column of times with and without a zone, unless the owner said how to read it.
    """
    from discreet.schema import TIMESTAMP, TIMESTAMPTZ

    check_declared([*names, *(column.name for column in others)], options)
    columns: list[Column] = []
    notes: list[str] = []
    for name, finding in zip(names, findings, strict=True):
        type_: Type = options.types.get(name, finding.type)
        if name not in options.types:
            if finding.mixed_zones:
                if options.timezone is None:
                    raise SourceError(
                        thing,
                        f"column {name!r} holds times with a zone and times without one",
                        hint="say the zone of those without: --source-timezone UTC (Python: timezone=); or keep it as "
                        f"text: --types {name}=VARCHAR (Python: types=)",
                    )
                type_ = TIMESTAMPTZ
            elif type_ == TIMESTAMP and options.timezone is not None:
                type_ = TIMESTAMPTZ
            if finding.near is not None:
                near, count = finding.near
                notes.append(
                    f"column {name!r} is text, but {count} of its {finding.present} values are {near}: "
                    f"--types {name}={near} (Python: types=) makes the others missing, --null-values names them"
                )
        columns.append(Column(name, type_))
    return tuple(columns), notes


def check_declared(names: Sequence[str], options: ReadOptions) -> None:
    """Refuse a declared type for a column that does not exist.

    Raises:
        UsageError: with the names that do.
    """
    for name in options.types:
        if name not in names:
            shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
            raise UsageError("types", f"there is no such column; there are {shown}", name)
