"""The type of each column, from every one of its values and never from a sample.

A column gets the first type that *all* its non-missing texts fit: BOOLEAN, BIGINT, HUGEINT, DOUBLE, DATE,
TIMESTAMP, TIMESTAMPTZ; else it is text. Fitting is strict, because a wrong guess here loses values without a
word, where text can still be cast by the analyst:

- true and false in any case are booleans; 0, 1, yes and no are not.
- An integer is written as the engine would write it: ``007``, ``+5``, ``1_000`` and ``0x10`` are text, and
  so is a column that holds an id of more than 38 digits. Ids never become floats: in a column of doubles a
  whole number has at most 15 digits, and ``1e5`` (a hex id?) counts only with a point or a signed exponent.
- ``nan`` and ``inf`` words are doubles, in a column that has at least one proper number too.
- Dates and times are ISO 8601.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from discreet.schema import BOOLEAN, DATE, FLOAT, HUGE, INTEGER, TEXT, TIMESTAMP, TIMESTAMPTZ, Type
from discreet.sources.cells import CellRules, number_text
from discreet.sources.sql_text import character, literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["ALL_CLASSES", "NUMBERS", "TIMES", "Finding", "infer"]

NUMBERS = ("bigint", "hugeint", "double")
TIMES = ("date", "bare", "zoned")
ALL_CLASSES = ("boolean", *NUMBERS, *TIMES)

_TYPES = {
    "boolean": BOOLEAN,
    "bigint": INTEGER,
    "hugeint": HUGE,
    "double": FLOAT,
    "date": DATE,
    "bare": TIMESTAMP,
}
_WHOLE = r"-?(0|[1-9][0-9]{0,14})"
_DECIMAL = (
    r"-?(0|[1-9][0-9]*)?\.[0-9]+([eE][+-]?[0-9]{1,3})?|-?(0|[1-9][0-9]*)\.?([eE][+-][0-9]{1,3})|-?(0|[1-9][0-9]*)\."
)
_WORD = r"[+-]?(nan|NaN|NAN|inf|Inf|INF|[iI]nfinity)"
_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[ T][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?"
_ZONE = r" ?(Z|z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)"

_SAMPLE = 2_000  # rows that rule types out before the whole column is tested; they never rule a type in
_NEAR = 0.5
_NEARLY_ALL = 0.7


@dataclass(frozen=True)
class Finding:
    """What one column's texts are.

    Attributes:
        type: the type that all of them fit.
        present: how many there are.
        mixed_zones: some are times with a zone and some without.
        near: another type that most of them fit, and how many; for the owner's eyes.
    """

    type: Type
    present: int
    mixed_zones: bool = False
    near: tuple[Type, int] | None = None


def infer(
    connection: DuckDBPyConnection,
    rows: str,
    texts: Sequence[str],
    rules: CellRules,
    classes: Sequence[Iterable[str]],
) -> list[Finding]:
    """The findings for the text expressions `texts` over the SELECT `rows`, one pass over all of it.

    Args:
        connection: the owner's.
        rows: a SELECT.
        texts: expressions over its columns, NULL where missing.
        rules: how numbers and times are written.
        classes: for each text, which of `ALL_CLASSES` may be found; empty leaves it text.
    """
    if not texts:
        return []
    possible = [tuple(name for name in ALL_CLASSES if name in set(wanted)) for wanted in classes]
    sample, size = _sample(connection, f"SELECT * FROM ({rows}) LIMIT {_SAMPLE}", texts, rules, possible)
    if size < _SAMPLE:
        return [_finding(counts) for counts in sample]  # that was all of it
    for i, counts in enumerate(sample):
        # What fewer than half of some values fit, not all values fit: that is final, not a guess. What more
        # fit is counted on, to be able to tell the owner about a few odd cells. Dates and both kinds of
        # times stay together, and so do numbers: later cells may widen one to the next.
        present = counts["present"]
        kept = {name for name in possible[i] if present == 0 or counts[name] >= present * _NEAR}
        if kept & set(TIMES) or counts.get("bare", 0) + counts.get("zoned", 0) >= max(1, present * _NEAR):
            kept |= set(TIMES)
        if kept & set(NUMBERS):
            kept |= set(NUMBERS)
        possible[i] = tuple(name for name in possible[i] if name in kept)
    # Columns of text need not be looked at again.
    open_columns = [i for i, counts in enumerate(sample) if possible[i] or not counts["present"]]
    again = _counts(connection, rows, [texts[i] for i in open_columns], rules, [possible[i] for i in open_columns])
    for i, counts in zip(open_columns, again, strict=True):
        sample[i] = counts
    return [_finding(counts) for counts in sample]


def _finding(counts: dict[str, int]) -> Finding:
    present = counts["present"]
    if not present:
        return Finding(TEXT, 0)
    zoned, bare = counts.get("zoned", 0), counts.get("bare", 0)
    if zoned and bare and zoned + bare == present:
        return Finding(TEXT, present, mixed_zones=True)
    if zoned == present:
        return Finding(TIMESTAMPTZ, present)
    for name, type_ in _TYPES.items():
        if counts.get(name) == present and not (name == "double" and counts["words"] == present):
            return Finding(type_, present)
    best = max((name for name in _TYPES if name in counts), key=lambda name: counts[name], default="")
    if best and counts[best] >= present * _NEARLY_ALL and counts[best] > counts.get("words", 0):
        return Finding(TEXT, present, near=(_TYPES[best], counts[best]))
    return Finding(TEXT, present)


def _sample(
    connection: DuckDBPyConnection,
    rows: str,
    texts: Sequence[str],
    rules: CellRules,
    classes: Sequence[Sequence[str]],
) -> tuple[list[dict[str, int]], int]:
    """As `_counts`, and how many rows there are; one expression a class, so that hundreds of columns plan fast."""
    wanted = [name for name in ALL_CLASSES if any(name in names for names in classes)]
    tests = _tests("v", rules, [*wanted, "words"] if "double" in wanted else wanted)
    totals = ["COUNT(*)", "COUNT(v)", *(f"COUNT_IF({test})" for test in tests.values())]
    listed = ", ".join(f"TRIM({text})" for text in texts)
    counted = connection.execute(
        f"SELECT i, {', '.join(totals)} FROM (SELECT UNNEST([{listed}]) AS v, UNNEST(RANGE({len(texts)})) AS i "
        f"FROM ({rows})) GROUP BY i"
    ).fetchall()
    results: list[dict[str, int]] = [dict.fromkeys(("present", *tests), 0) for _ in texts]
    for i, _, present, *found in counted:
        # Over no value at all COUNT_IF is NULL.
        results[i] = {"present": present, **{name: int(n or 0) for name, n in zip(tests, found, strict=True)}}
    for counts, names in zip(results, classes, strict=True):
        for name in tests:
            if name not in names and not (name == "words" and "double" in names):
                del counts[name]
    return results, int(counted[0][1]) if counted else 0


def _counts(
    connection: DuckDBPyConnection,
    rows: str,
    texts: Sequence[str],
    rules: CellRules,
    classes: Sequence[Sequence[str]],
) -> list[dict[str, int]]:
    """For each text: how many are present, and how many fit each class."""
    labels: list[tuple[int, str]] = []
    totals: list[str] = []
    for i, wanted in enumerate(classes):
        labels.append((i, "present"))
        totals.append(f"COUNT(t{i})")
        tests = _tests(f"t{i}", rules, [*wanted, "words"] if "double" in wanted else wanted)
        for name, test in tests.items():
            labels.append((i, name))
            totals.append(f"COUNT_IF({test})")
    results: list[dict[str, int]] = [{} for _ in texts]
    if not totals:
        return results
    columns = ", ".join(f"TRIM({text}) AS t{i}" for i, text in enumerate(texts))
    values = connection.execute(f"SELECT {', '.join(totals)} FROM (SELECT {columns} FROM ({rows}))").fetchone()
    assert values is not None  # noqa: S101 - an aggregate without groups has one row
    for (i, name), value in zip(labels, values, strict=True):
        results[i][name] = int(value or 0)  # over no rows COUNT_IF is NULL
    return results


def _tests(x: str, rules: CellRules, wanted: Sequence[str]) -> dict[str, str]:
    n = number_text(x, rules)
    shape = _number_shape(x, rules)
    whole = f"CAST(TRY_CAST({n} AS BIGINT) AS VARCHAR) = {n}{shape}"
    day = f"({_full(_DAY, x)} AND TRY_CAST({x} AS DATE) IS NOT NULL)"
    hugeint = f"CAST(TRY_CAST({n} AS HUGEINT) AS VARCHAR) = {n}{shape}"
    double = f"({_full(f'{_WHOLE}|{_DECIMAL}|{_WORD}', n)} AND TRY_CAST({n} AS DOUBLE) IS NOT NULL){shape}"
    bare = f"({_full(f'{_DAY}({_TIME})?', x)} AND TRY_CAST({x} AS TIMESTAMP) IS NOT NULL)"
    # CASE looks at the dearer test only where the cheaper one failed.
    tests = {
        "boolean": f"LOWER({x}) IN ('true', 'false')",
        "bigint": whole,
        "hugeint": f"CASE WHEN {whole} THEN TRUE ELSE {hugeint} END",
        "double": f"CASE WHEN {whole} AND STRLEN({n}) <= 15 THEN TRUE ELSE {double} END",
        "words": f"NOT ISFINITE(TRY_CAST({n} AS DOUBLE))",
        "date": day,
        "bare": f"CASE WHEN {day} THEN TRUE ELSE {bare} END",
        "zoned": f"({_full(_DAY + _TIME + _ZONE, x)} AND TRY_CAST({x} AS TIMESTAMPTZ) IS NOT NULL)",
    }
    return {name: tests[name] for name in wanted}


def _number_shape(x: str, rules: CellRules) -> str:
    """That grouping and decimal marks stand where they belong: 1,234.5 but not 1,2,3 or 12,34."""
    if not rules.thousands and rules.decimal == ".":
        return ""
    mark, group = character(rules.decimal), character(rules.thousands) if rules.thousands else ""
    whole = rf"([0-9]*|[0-9]{{1,3}}({group}[0-9]{{3}})+)" if rules.thousands else "[0-9]*"
    return f" AND {_full(rf'-?{whole}({mark}[0-9]*)?([eE][+-]?[0-9]+)?|{_WORD}', x)}"


def _full(pattern: str, x: str) -> str:
    return f"REGEXP_FULL_MATCH({x}, {literal(pattern)})"
