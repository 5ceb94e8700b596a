"""A synthetic table shaped like a registered source, on which a query's promise is put to the test.

Units of many sizes around the limit, in one group and in all, with ordinary, extreme, odd and missing values; rows of
nobody; rows that the query leaves out; a unit that alone has a group. No private row is read for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from discreet.audit.script import Dice
from discreet.audit.tables import Tables
from discreet.audit.values import Pool, Text, needed, pools
from discreet.expressions import fields_in
from discreet.plan import Plan
from discreet.schema import Kind

__all__ = ["fill"]

_FIRST_ROWS = 2_500
_BACKGROUND = 700
_LARGEST_UNIT = 20_000
_ALONE = 77


@dataclass(frozen=True)
class _Design:
    """A unit: how many rows, of which values ("top", "bottom", "spread", "odd", "any"), in how many groups."""

    size: int
    values: str
    groups: int


def fill(tables: Tables, label: str) -> None:
    """Make the whole table of a plan.

    Args:
        tables: to be filled.
        label: the same one gives the same table.
    """
    plan, dice = tables.plan, Dice(f"table/{label}")
    columns, pool = needed(plan), pools(plan)
    first = [[_draw(dice, pool[place]) for place in columns] for _ in range(_FIRST_ROWS)]
    tables.write(columns, first)
    kept = tables.kept()
    # In hand: which of the first rows count in the query, and in which groups.
    by_group: dict[int, list[list[Text]]] = {}
    for number, group in sorted(kept.items()):
        by_group.setdefault(group, []).append(first[number])
    groups = [*by_group.values()] or [first]
    # The last group is one unit's alone, which is in all the others too.
    shared = groups[:-1] or groups
    rows = [row for group in shared for row in group[: 1 + _BACKGROUND // len(shared)]]
    rows += [row for number, row in enumerate(first) if number not in kept][: _BACKGROUND // 2]
    rows += [row for row in rows if dice.chance(12)]  # some rows twice
    if plan.unit.row_level:
        for values in ("top", "bottom", "odd", "any"):
            rows += _unit(plan, columns, pool, dice, _Design(5, values, len(shared)), shared, 0)
        rows.append(dice.choose(groups[-1]))
    else:
        for i, design in enumerate(_designs(plan.max_contributions, len(shared))):
            rows += _unit(plan, columns, pool, dice, design, shared, i)
        alone = _Design(min(max(plan.max_contributions, len(groups)), _LARGEST_UNIT), "top", len(groups))
        rows += _unit(plan, columns, pool, dice, alone, groups, _ALONE)
    tables.write(columns, rows)


def _designs(limit: int, groups: int) -> list[_Design]:
    sizes = {"one": 1, "below": limit - 1, "at": limit, "above": limit + 1, "twice": 2 * limit, "far": 10 * limit + 3}
    size = {name: max(1, min(number, _LARGEST_UNIT)) for name, number in sizes.items()}
    return [
        _Design(size["at"], "top", 1),
        _Design(size["at"], "bottom", 1),
        _Design(size["at"], "top", groups),
        _Design(size["at"], "bottom", groups),
        _Design(size["at"], "spread", groups),
        _Design(size["twice"], "top", 1),
        _Design(size["twice"], "bottom", groups),
        _Design(size["above"], "top", groups),
        _Design(size["above"], "bottom", 1),
        _Design(size["far"], "spread", groups),
        _Design(size["far"], "any", groups),
        _Design(size["below"], "any", groups),
        *(_Design(1, values, 1) for values in ("top", "bottom", "odd", "any")),
        *(_Design(3, "odd", 2) for _ in range(3)),
        *(_Design(1 + i % 4, "any", 2) for i in range(8)),
    ]


def _unit(
    plan: Plan,
    columns: Sequence[int],
    pool: dict[int, Pool],
    dice: Dice,
    design: _Design,
    groups: list[list[list[Text]]],
    number: int,
) -> list[list[Text]]:
    """The rows of one designed unit, made of rows that count in the query."""
    owners = {f.position for e in plan.unit.expressions for f in fields_in(e)}
    asked = [plan.where, *(key.expression for key in plan.keys)]
    asked += [ours for join in plan.joins for ours, _ in join.on]
    fixed = {f.position for e in asked if e is not None for f in fields_in(e)}
    arguments = {f.position for m in plan.measurements if m.expression is not None for f in fields_in(m.expression)}
    unlisted = _unlisted(plan)
    start = dice.below(len(groups))
    mine: list[list[Text]] = []
    identity: dict[int, Text] = {}
    for i in range(design.size):
        row = list(dice.choose(groups[(start + i % max(1, design.groups)) % len(groups)]))
        for at, place in enumerate(columns):
            kind = plan.registration.schema.columns[place].type.kind
            if place in owners:
                # A new person; where the query asks about the unit itself, one that it asks about.
                fresh = row[at] if place in fixed else _fresh(kind, number)
                row[at] = identity.setdefault(place, fresh)
            elif place in unlisted and design.values == "spread":
                row[at] = _value("spread", pool[place], kind, dice, i)
            elif place in arguments and place not in fixed:
                row[at] = _value(design.values, pool[place], kind, dice, i)
        mine.append(row)
    return mine


def _unlisted(plan: Plan) -> set[int]:
    """Columns of keys that are chosen from the data: a unit may have any number of them."""
    listed = {column for keys in plan.key_lists for column in keys.columns}
    keys = [key.expression for i, key in enumerate(plan.keys) if i not in listed and plan.selection is not None]
    return {f.position for e in keys for f in fields_in(e)}


def _fresh(kind: Kind, number: int) -> Text:
    match kind:
        case Kind.BOOLEAN:
            return "true" if number % 2 else "false"
        case Kind.DATE | Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            return f"19{50 + number % 50}-0{1 + number % 9}-1{number % 10}"
        case Kind.TEXT:
            return f"unit {number}"
        case _:
            return str(1_000 + number)


def _value(values: str, pool: Pool, kind: Kind, dice: Dice, i: int) -> Text:
    match values:
        case "top":
            return _end(pool, largest=True)
        case "bottom":
            return _end(pool, largest=False)
        case "odd":
            return dice.choose([*pool.odd, *pool.low, *pool.high])
        case "spread" if kind is Kind.TEXT:
            return f"value {i}"
        case "spread" if kind.is_temporal:
            return f"{1900 + i % 150:04d}-{1 + i % 12:02d}-{1 + i % 28:02d}"
        case "spread" if kind is not Kind.BOOLEAN:
            return str(i)
    return _draw(dice, pool)


def _end(pool: Pool, *, largest: bool) -> Text:
    """The largest or smallest value that the query asks about (just beyond a bound), else of the type."""
    numbers: list[tuple[Decimal, Text]] = []
    for text in pool.hints:
        try:
            numbers.append((Decimal(text or "nan"), text))
        except InvalidOperation:
            continue
    numbers = [pair for pair in numbers if pair[0].is_finite()]
    if numbers:
        return max(numbers)[1] if largest else min(numbers)[1]
    dates = sorted(text for text in pool.hints if text is not None)
    if dates and pool.low and pool.low[0] == "0001-01-01":
        return dates[-1] if largest else dates[0]
    return (pool.high if largest else pool.low)[0]


def _draw(dice: Dice, pool: Pool) -> Text:
    if pool.hints and dice.chance(65):
        return dice.choose(pool.hints)
    if dice.chance(60):
        return dice.choose(pool.ordinary)
    return dice.choose(pool.all())
