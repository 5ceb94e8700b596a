"""The statistics by their definition, in exact Python: the oracle of the neighbour tests.

Written from the design (sections 4 and 5), not from the engine's statements, and slow. A row is a dictionary
from column names to values: None is missing; NaN is missing; a number is an int, a Decimal or a float.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

S = 2**20
"""What a row within its unit's limit weighs."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Term:
    """A row expression: what the analyst writes, and what it means for one row."""

    sql: str
    of: Callable[[Row], Any]


def field_term(name: str) -> Term:
    """A column as a term."""
    return Term(name, lambda row: row[name])


@dataclass(frozen=True)
class Group:
    """A grouping term and its public keys."""

    term: Term
    keys: tuple[Any, ...]


@dataclass(frozen=True)
class Statistic:
    """One vector of totals to compute: "count", "count_if", "unit_count", "distinct_count", "sum", "centred_sum",
    "centred_square" or "bins": the rows in each of `nodes` nodes a group, each of `wide` grid steps, the last perhaps
    of fewer or one more; "group_sum", "group_count" and "group_count_if" are what each unit has in a group, clamped to
    `ends`.
    """

    kind: str
    term: Term | None = None
    lower: Fraction = Fraction(0)
    upper: Fraction = Fraction(0)
    step: Fraction = Fraction(1)
    nodes: int = 1
    wide: int = 1
    ends: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class Question:
    """A query by its meaning. `unit` is empty at row level."""

    unit: tuple[Term, ...]
    groups: tuple[Group, ...] = ()
    where: Term | None = None
    rows: int = 1
    pairs: int = 1
    aggregates: tuple[str, ...] = field(default=())


def missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def on_grid(value: Any, lower: Fraction, upper: Fraction, step: Fraction) -> int:
    """floor(clamp(x) / step)."""
    if isinstance(value, dt.datetime):  # microseconds since 1970
        value = (value.replace(tzinfo=None) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)
    elif isinstance(value, dt.date):  # days
        value = (value - dt.date(1970, 1, 1)).days
    if isinstance(value, float) and math.isinf(value):
        clamped = upper if value > 0 else lower
    else:
        clamped = min(max(Fraction(value), lower), upper)
    if isinstance(value, float) and abs(clamped / step) <= Fraction(1, 2**1075):
        return 0  # what a double divided by a power of two gives, also just below 0
    return math.floor(clamped / step)


def unit_of(row: Row, question: Question) -> tuple[Any, ...] | None:
    """Whose row it is; None if it is nobody's."""
    parts = tuple(term.of(row) for term in question.unit)
    return None if any(missing(part) for part in parts) else parts


def places(question: Question) -> dict[tuple[Any, ...], int]:
    """Where each combination of listed keys stands in the vector: the last column runs fastest."""
    return {keys: i for i, keys in enumerate(product(*(group.keys for group in question.groups)))}


def totals(rows: Sequence[Row], question: Question, statistic: Statistic) -> list[int]:
    """The vector of exact integer totals over all listed groups (and the nodes of each)."""
    index = places(question)
    counted: list[tuple[Any, int, Row]] = []
    for number, row in enumerate(rows):
        if question.where is not None and question.where.of(row) is not True:
            continue
        who = unit_of(row, question) if question.unit else ("row", number)
        keys = tuple(group.term.of(row) for group in question.groups)
        if who is None or keys not in index:
            continue
        counted.append((who, index[keys], row))
    vector = [0] * len(index)
    if statistic.kind == "unit_count":
        pairs = {(who, place) for who, place, _ in counted}
        touched = Counter(who for who, _ in pairs)
        for who, place in pairs:
            vector[place] += _weight(touched[who], question.pairs)
        return vector
    if statistic.kind.startswith("group_"):
        return _group_totals(counted, question, statistic, len(index))
    if statistic.kind == "distinct_count":
        return _distinct_counts(counted, question, statistic, len(index))
    rows_of = Counter(who for who, _, _ in counted)
    vector *= statistic.nodes
    for who, place, row in counted:
        weight = 1 if not question.unit else _weight(rows_of[who], question.rows)
        if statistic.kind != "bins":
            vector[place] += weight * _value(row, statistic)
        elif statistic.term is not None and not missing(statistic.term.of(row)):
            vector[place * statistic.nodes + _node(row, statistic)] += weight
    return vector


def _group_totals(
    counted: Sequence[tuple[Any, int, Row]], question: Question, statistic: Statistic, groups: int
) -> list[int]:
    """What each unit has in a group, clamped, with the weight of its pairs; nothing where it has no value there."""
    single = Statistic(
        statistic.kind.removeprefix("group_"), statistic.term, statistic.lower, statistic.upper, statistic.step
    )
    own: dict[tuple[Any, int], list[int]] = {}
    for who, place, row in counted:
        values = own.setdefault((who, place), [])
        present = statistic.term is None or not missing(statistic.term.of(row))
        if present and (statistic.kind != "group_count_if" or _value(row, single)):
            values.append(_value(row, single))
    touched = Counter(who for who, _ in own)
    vector = [0] * groups
    for (who, place), values in own.items():
        if values:
            vector[place] += _weight(touched[who], question.pairs) * min(
                max(sum(values), statistic.ends[0]), statistic.ends[1]
            )
    return vector


def _distinct_counts(
    counted: Sequence[tuple[Any, int, Row]], question: Question, statistic: Statistic, groups: int
) -> list[int]:
    """Of each unit the first C of its different (group, x), by the md5 of an encoding; then the different x a group."""
    term = statistic.term
    if term is None:
        raise AssertionError
    own: dict[Any, dict[tuple[int, Any], str]] = {}
    for who, place, row in counted:
        x = term.of(row)
        if not missing(x):
            parts = [*(who if question.unit else ()), *(group.term.of(row) for group in question.groups), x]
            own.setdefault(who, {})[place, x] = hashed(parts, 0)
    limit = question.rows if question.unit else 1
    chosen = {pair for pairs in own.values() for pair in sorted(pairs, key=pairs.__getitem__)[:limit]}
    return [sum(1 for place, _ in chosen if place == group) for group in range(groups)]


def hashed(parts: Sequence[Any], key: int) -> str:
    """md5 in hexadecimal of the key and the parts as text, each with its length before it."""
    texts = [None if part is None else _text(part) for part in parts]
    encoded = "".join("-" if text is None else f"{len(text)}:{text}" for text in texts)
    return hashlib.md5(f"{key:032x}{encoded}".encode(), usedforsecurity=False).hexdigest()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.datetime):
        plain = value.replace(tzinfo=None).isoformat(sep=" ")
        fraction = plain.rstrip("0") if "." in plain else plain
        return fraction + ("+00" if value.tzinfo else "")
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _node(row: Row, statistic: Statistic) -> int:
    if statistic.term is None:
        raise AssertionError
    q = on_grid(statistic.term.of(row), statistic.lower, statistic.upper, statistic.step)
    return min((q - math.floor(statistic.lower / statistic.step)) // statistic.wide, statistic.nodes - 1)


def _weight(rows: int, limit: int) -> int:
    return S if rows <= limit else (S * limit) // rows


def _value(row: Row, statistic: Statistic) -> int:
    if statistic.term is None:
        return 1
    x = statistic.term.of(row)
    if missing(x):
        return 0
    if statistic.kind == "count":
        return 1
    if statistic.kind == "count_if":
        return int(x is True)
    q = on_grid(x, statistic.lower, statistic.upper, statistic.step)
    if statistic.kind == "sum":
        return q
    ends = [math.floor(bound / statistic.step) for bound in (statistic.lower, statistic.upper)]
    distance = 2 * q - ends[0] - ends[1]
    return (
        distance if statistic.kind == "centred_sum" else 2 * _square(distance, ends) - _square(ends[1] - ends[0], ends)
    )


def _square(distance: int, ends: list[int]) -> int:
    """About (d / K)^2, K being 2^-20 of the width: (i + j / K)^2 without its last term, d = i K + j."""
    k = max(1, math.ceil(Fraction(ends[1] - ends[0], 2**20)))
    i, j = divmod(abs(distance), k)
    return i**2 + math.floor(Fraction(2 * i * j, k))
