"""A policy's text, to begin with: written from what the owner says and from the names and types of the columns. No
number in it comes from the data."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.errors import UsageError
from discreet.exact import decimal_text
from discreet.query import Bounds
from discreet.schema import Column, Kind
from discreet.time_values import time_of

__all__ = ["FILL_IN", "Draft", "dataset_name", "policy_text"]

FILL_IN = "# FILL IN:"
"""What marks a place that is still open."""

_DIGITS = 40  # of a bound, before and after the point: TOML's readers hold that exactly


@dataclass(frozen=True)
class Draft:
    """What is known of a data set when its policy is written. What is None or empty is left open, and marked.

    Attributes:
        name: what FROM will call it.
        source: as the policy will name it.
        columns: names and types, as registered.
        ledger: as the policy will name it; None leaves it to the environment.
        reading: how the source is read, as `discreet.open` takes it.
        unit: the privacy unit's expressions.
        row_level: instead, each row is its own unit.
        max_contributions, max_groups_contributed: the owner's limits.
        bounds: by column.
        keys: public values by column, each one line as `--keys` takes it.
        unknown_groups: whether groups may be chosen from the data.
        epsilon, delta: the budget.
        default_epsilon: of a query that does not say what it costs.
    """

    name: str
    source: str
    columns: tuple[Column, ...]
    ledger: str | None = None
    reading: Mapping[str, Any] = field(default_factory=dict)
    unit: tuple[str, ...] = ()
    row_level: bool = False
    max_contributions: int | None = None
    max_groups_contributed: int | None = None
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    unknown_groups: bool = False
    epsilon: Fraction | None = None
    delta: Fraction | None = None
    default_epsilon: Fraction | None = None

    @property
    def open_places(self) -> tuple[str, ...]:
        """The keys without which the policy is none yet."""
        unit = bool(self.unit) or self.row_level
        return tuple(
            key
            for key, known in (
                ("privacy_unit", unit),
                ("max_contributions", self.max_contributions is not None or self.row_level),
                ("epsilon", self.epsilon is not None),
            )
            if not known
        )


def dataset_name(written: str) -> str:
    """A name that a policy can give a data set, as near as may be to what a file or table is called."""
    name = re.sub(r"\W", "_", written, flags=re.ASCII).strip("_")[:60]
    if not name or name == "raise":
        return "data"
    return f"_{name}" if name[0].isdigit() else name


def policy_text(draft: Draft) -> str:
    """The policy of one data set, with a word on each key.

    Raises:
        UsageError: a bound of more digits than TOML holds, or that is neither a number nor a day.
    """
    path = f"datasets.{draft.name}"
    return "\n".join(
        [
            f"# The policy of {draft.name}: what its owner declares once, for everybody who asks. Every key of it: "
            "docs/policy.md",
            "# Nothing in here comes from the data but the names and the types of the columns. Declare what you know, "
            "not what",
            "# the data show: a limit or a bound that is read off the data costs privacy that nobody counts.",
            "# `discreet check` tells all that is missing or does not fit.",
            "",
            "# Where the budget's books are kept: another ledger would be another budget, so this one is the only one.",
            _key("ledger", draft.ledger, '"ledger.sqlite"'),
            "",
            f"[{path}]",
            f"source = {_value(draft.source)}",
            *(f"{name} = {_value(value)}" for name, value in draft.reading.items()),
            "",
            *_unit(draft),
            "",
            "# Whether groups may be chosen from the data where no values are listed. Needs a delta in the budget.",
            _key("unknown_groups", draft.unknown_groups or None, "true"),
            "# What is published exactly elsewhere, and so is not protected by what is asked here.",
            '# invariants = ["The number of rows."]',
            "",
            *_budget(draft, path),
            "",
            *_columns(draft, path),
        ]
    )


def _unit(draft: Draft) -> list[str]:
    lines = [
        "# Whose rows are protected together: a column, or a list of expressions. Or row_level = true, if each row is "
        "one person.",
    ]
    if draft.row_level:
        return [*lines, "row_level = true"]
    unit = draft.unit[0] if len(draft.unit) == 1 else list(draft.unit)
    return [
        *lines,
        _place("privacy_unit", unit or None, '"COLUMN"'),
        "# How many rows one of them may weigh, over all groups. Who has more is scaled down to it; the noise grows "
        "with it.",
        _place("max_contributions", draft.max_contributions, "ROWS"),
        "# In how many groups one of them may be counted, where units are counted. Without it: the smaller of "
        "max_contributions",
        "# and the number of groups.",
        _key("max_groups_contributed", draft.max_groups_contributed, "GROUPS"),
    ]


def _budget(draft: Draft, path: str) -> list[str]:
    return [
        f"[{path}.budget]",
        "# What all queries together may cost. The first query sets it, for good: it is raised, never lowered.",
        _place("epsilon", draft.epsilon, "NUMBER"),
        "# The chance that the promise fails; for groups chosen from the data, and for tighter accounting. 1e-6 is "
        "usual.",
        _key("delta", draft.delta, "NUMBER"),
        "# What a query costs that does not say it.",
        _key("default_epsilon", draft.default_epsilon, "NUMBER"),
        "# max_epsilon_per_query = NUMBER",
        "# max_epsilon_per_analyst = NUMBER",
        '# budget_window = "never"',
    ]


def _columns(draft: Draft, path: str) -> list[str]:
    lines = [
        "# The columns, and the types that are stored. Numbers are summed or averaged within their bounds. Groups are "
        "public by",
        "# `public_values`, or the days from `lower` to `upper`. With `forbidden = true` no query may touch a column.",
    ]
    for column in draft.columns:
        lines += ["", f"[{path}.columns.{_name(column.name)}]"]
        kind = column.type.kind
        if kind is Kind.OTHER:
            lines.append("# cannot be asked about: its type is none that queries know")
            continue
        lines.append(f"type = {_value(str(column.type))}")
        bounds = draft.bounds.get(column.name)
        if bounds is not None:
            lower, upper = (_end(end, bounds.written, column.name) for end in (bounds.lower, bounds.upper))
            lines += [f"lower = {lower}", f"upper = {upper}"]
        elif kind.is_number:
            lines += ["# lower = NUMBER", "# upper = NUMBER"]
        elif kind.is_temporal:
            lines += ["# lower = YYYY-MM-DD", "# upper = YYYY-MM-DD"]
        if column.name in draft.keys:
            lines.append(f"public_values = {_value(draft.keys[column.name])}")
        elif kind in (Kind.TEXT, Kind.INTEGER, Kind.DECIMAL):
            lines.append("# public_values = [VALUE, VALUE]")
    return [*lines, ""]


def _place(key: str, value: object, example: str) -> str:
    """A key that must be there: marked, while nothing is said."""
    return f"{FILL_IN} {key} = {example}" if value is None else f"{key} = {_value(value)}"


def _key(key: str, value: object, example: str) -> str:
    return f"# {key} = {example}" if value is None else f"{key} = {_value(value)}"


def _end(end: Fraction, written: str, name: str) -> str:
    if written == "date":
        return time_of(end, Kind.DATE).isoformat()
    if written != "number":
        raise UsageError(f"bounds of {name!r}", "must be numbers, or days without a time")
    text = decimal_text(end, digits=_DIGITS)
    if text.startswith("~") or len(text) > 2 * _DIGITS:
        raise UsageError(f"bounds of {name!r}", f"must have at most {_DIGITS} digits before and after the point")
    return text


def _value(value: object) -> str:
    """As TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Fraction):
        return decimal_text(value, digits=30)
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return _quoted(value) if isinstance(value, str) else str(value)


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)


def _quoted(text: str) -> str:
    """A basic string: quotes, backslashes and what does not print are escaped, so that no name ends its line."""
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escape(c) for c in text) + '"'


def _escape(c: str) -> str:
    return "\\" + c if c in '"\\' else f"\\U{ord(c):08x}"
