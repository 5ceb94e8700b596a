"""Tables for the neighbour tests: generated rows, and the files and frames that hold them.

One wide layout serves all tests; a test uses the columns it needs, the others are missing everywhere.
"""

from __future__ import annotations

import csv
import dataclasses
import datetime as dt
import gzip
import io
import json
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from definition import Group, Question, Row, Statistic, Term, field_term
from discreet.binding import bind
from discreet.engines.duckdb import DuckDBEngine
from discreet.expressions import Expression, Field
from discreet.plan import Measurement, Plan, Request
from discreet.planning import make_plan
from discreet.relational import compile_plan
from discreet.schema import Registration
from discreet.sources import register, register_frame
from discreet.sql import parse, parse_expression

TYPES = {
    "actor": "VARCHAR",
    "device": "BIGINT",
    "kind": "VARCHAR",
    "flag": "BOOLEAN",
    "day": "DATE",
    "at": "TIMESTAMP",
    "time": "TIMESTAMPTZ",
    "n": "BIGINT",
    "h": "HUGEINT",
    "d4": "DECIMAL(4,1)",
    "d9": "DECIMAL(9,2)",
    "d18": "DECIMAL(18,6)",
    "d38": "DECIMAL(38,0)",
    "f": "DOUBLE",
}
"""The layout: every column with its type."""

FORMATS = ("csv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "pandas", "polars", "arrow")
FRAMES = ("pandas", "polars", "arrow")

_ARROW = {
    "VARCHAR": pa.string(),
    "BIGINT": pa.int64(),
    "HUGEINT": pa.decimal128(38, 0),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", tz="UTC"),
    "DECIMAL(4,1)": pa.decimal128(4, 1),
    "DECIMAL(9,2)": pa.decimal128(9, 2),
    "DECIMAL(18,6)": pa.decimal128(18, 6),
    "DECIMAL(38,0)": pa.decimal128(38, 0),
    "DOUBLE": pa.float64(),
}


def row(**values: Any) -> dict[str, Any]:
    """A row of the layout; what is not named is missing."""
    unknown = set(values) - set(TYPES)
    assert not unknown, unknown
    return {name: values.get(name) for name in TYPES}


# --- files and frames ------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Stored:
    """Rows that lie in a file or a frame."""

    registration: Registration
    frame: object = None


def store(rows: Sequence[Row], format_: str, path: Path) -> Stored:
    """Write rows and give the registration by which they are read.

    The registration is that of the layout, made once a format from other rows: the schema is the owner's
    disclosure and does not depend on what a table holds later.
    """
    registration = _registration(format_)
    if format_ in FRAMES:
        return Stored(registration, _frame(rows, format_))
    path = path.with_name(f"{path.name}.{format_}")
    _write(rows, format_, path)
    return Stored(dataclasses.replace(registration, reader={**registration.reader, "path": str(path)}))


@cache
def _registration(format_: str) -> Registration:
    import tempfile

    plain = row(actor="a", device=1, kind='"b", c', flag=True, day=dt.date(2024, 1, 1), n=1, h=1, f=0.5)
    plain["at"] = dt.datetime(2024, 1, 1, 1)
    plain["time"] = dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC)
    plain |= {name: Decimal(1) for name in TYPES if name.startswith("d") and name[1:].isdigit()}
    if format_ in FRAMES:
        return register_frame(_frame([plain], format_), "table", types=TYPES)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"first.{format_}"
        _write([plain], format_, path)
        return register(path, types=TYPES, **({"header": True} if "csv" in format_ else {}))


def _write(rows: Sequence[Row], format_: str, path: Path) -> None:
    if format_ == "parquet":
        pq.write_table(_arrow(rows), path, row_group_size=3)
        return
    text = _csv(rows) if format_.startswith("csv") else _json_lines(rows)
    data = text.encode()
    path.write_bytes(gzip.compress(data, 1) if format_.endswith(".gz") else data)


def _csv(rows: Sequence[Row]) -> str:
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(TYPES)
    writer.writerows([["" if r[name] is None else _text(r[name]) for name in TYPES] for r in rows])
    return target.getvalue()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dt.date):
        return value.isoformat()
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _json_lines(rows: Sequence[Row]) -> str:
    lines = []
    for number, values in enumerate(rows):
        # Missing values are absent from every other line, and null in the rest.
        parts = [f'"{name}": {_json(x)}' for name, x in values.items() if x is not None or number % 2]
        lines.append("{" + ", ".join(parts) + "}\n")
    return "".join(lines)


def _json(value: Any) -> str:
    if value is None or isinstance(value, bool | int):
        return json.dumps(value)
    if isinstance(value, Decimal):
        # As a number while a double holds it: DuckDB reads a JSON number with a fraction as one.
        fractional, digits = value != value.to_integral_value(), len(value.as_tuple().digits)
        return json.dumps(f"{value:f}") if fractional and digits > 15 else f"{value:f}"
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    return json.dumps(_text(value), ensure_ascii=False)


def _arrow(rows: Sequence[Row]) -> pa.Table:
    def cell(value: Any, kind: pa.DataType) -> Any:
        return Decimal(value) if isinstance(value, int) and pa.types.is_decimal(kind) else value

    arrays = {
        name: pa.array([cell(r[name], _ARROW[kind]) for r in rows], type=_ARROW[kind]) for name, kind in TYPES.items()
    }
    return pa.table(arrays)


def _frame(rows: Sequence[Row], format_: str) -> object:
    if format_ == "pandas":
        return pd.DataFrame({name: pd.Series([r[name] for r in rows], dtype=object) for name in TYPES})
    return pl.from_arrow(_arrow(rows)) if format_ == "polars" else _arrow(rows)


def as_read(rows: Sequence[Row], format_: str) -> list[Row]:
    """What the rows mean in that format: a delimited file cannot tell an empty text from a missing one."""
    if not format_.startswith("csv"):
        return list(rows)
    return [{name: None if value == "" else value for name, value in r.items()} for r in rows]


# --- questions -------------------------------------------------------------------------------------------


def plan_of(question: Question, registration: Registration, epsilon: Fraction = Fraction(1)) -> Plan:
    """The plan that the house makes of a question."""
    names = [f"g{i}" for i in range(len(question.groups))]
    keys = [f"{g.term.sql} AS {name}" for name, g in zip(names, question.groups, strict=True)]
    sql = f"SELECT {', '.join([*keys, *question.aggregates])} FROM data"
    if question.where is not None:
        sql += f" WHERE {question.where.sql}"
    if names:
        sql += f" GROUP BY {', '.join(g.term.sql for g in question.groups)}"
    unit = parse_expression(", ".join(t.sql for t in question.unit), "unit") if question.unit else None
    request = Request(
        epsilon=epsilon,
        unit=unit,
        max_contributions=question.rows if unit else None,
        max_groups_contributed=question.pairs if unit else None,
        keys={name: list(g.keys) for name, g in zip(names, question.groups, strict=True)},
    )
    return make_plan(parse(sql), registration, request)


def run(plan: Plan, stored: Stored) -> list[list[int]]:
    """The exact totals of every measurement, through the real engine."""
    engine = DuckDBEngine(stored.registration, stored.frame)
    return [total.to_ints() for total in engine.run(compile_plan(plan))]


def statistic_of(measurement: Measurement) -> Statistic:
    """What a measurement claims to be, for the oracle."""
    term = None if measurement.expression is None else _term_of(measurement.expression)
    bins = measurement.bins
    if bins is not None:
        below = len(bins.sizes) - 1 - measurement.level
        ends, step = bins.grid.bounds, bins.grid.step
        wide = bins.size * bins.fan**below
        return Statistic("bins", term, ends.lower, ends.upper, step, measurement.cells, wide)
    ends = measurement.ends or (0, 0)
    if measurement.grid is None:
        return Statistic(measurement.statistic, term, ends=ends)
    bounds = measurement.grid.bounds
    return Statistic(measurement.statistic, term, bounds.lower, bounds.upper, measurement.grid.step, ends=ends)


def _term_of(expression: Expression) -> Term:
    if isinstance(expression, Field):
        return field_term(expression.name)
    columns = _registration("arrow").schema
    return next(t for t in COMPUTED if bind(parse_expression(t.sql, "term")[0], columns) == expression)


# --- terms -----------------------------------------------------------------------------------------------


def _known(name: str, of: Any) -> Any:
    return lambda r: None if r[name] is None or r[name] != r[name] else of(r[name])


def part(name: str, what: str) -> Term:
    """YEAR(x), MONTH(x), DAY(x), HOUR(x)."""
    return Term(f"{what.upper()}({name})", _known(name, lambda x: getattr(x, what)))


def date_of(name: str) -> Term:
    """DATE(x)."""
    return Term(f"DATE({name})", _known(name, lambda x: x.date()))


def _either(*values: bool | None) -> bool | None:
    return True if True in values else None if None in values else False


FILTERS: Mapping[str, Term] = {
    t.sql: t
    for t in (
        Term("n > 0", _known("n", lambda n: n > 0)),
        Term("NOT n <= 3", _known("n", lambda n: n > 3)),
        Term("kind IN ('A', 'é')", _known("kind", lambda k: k in ("A", "é"))),
        Term(
            "n > 0 OR kind IS NULL",
            lambda r: _either(None if r["n"] is None else r["n"] > 0, r["kind"] is None),
        ),
        Term("f < 0.5", _known("f", lambda f: f < 0.5)),
        Term("f IS NOT NULL", lambda r: r["f"] is not None and not math.isnan(r["f"])),
        Term("time >= '1970-01-01'", _known("time", lambda t: t >= dt.datetime(1970, 1, 1, tzinfo=dt.UTC))),
        Term("flag", lambda r: r["flag"]),
        Term("n BETWEEN -5 AND 5", _known("n", lambda n: -5 <= n <= 5)),
        Term("kind LIKE 'A%'", _known("kind", lambda k: k.startswith("A"))),
        Term("d9 <> 0.25", _known("d9", lambda d: d != Decimal("0.25"))),
    )
}


def _case(r: Row) -> str | None:
    return None if r["n"] is None else "more" if r["n"] > 0 else "less"


CASE = Term("CASE WHEN n > 0 THEN 'more' WHEN n <= 0 THEN 'less' END", _case)
COALESCED = Term("COALESCE(kind, 'none')", lambda r: "none" if r["kind"] is None else r["kind"])
REMAINDER = Term("MOD(device, 3)", _known("device", lambda d: abs(d) % 3 * (1 if d >= 0 else -1)))
LOWERED = Term("LOWER(actor)", _known("actor", str.lower))


def _in_64_bits(x: int) -> int | None:
    return x if -(2**63) <= x < 2**63 else None


def _quotient(r: Row) -> float | None:
    f, n = r["f"], r["n"]
    if f is None or n is None or n == 0 or math.isnan(f):
        return None
    return f / float(n)


COMPUTED = (
    Term("n + 1", _known("n", lambda n: _in_64_bits(n + 1))),
    Term("n * 3", _known("n", lambda n: _in_64_bits(n * 3))),
    Term("ABS(d9)", _known("d9", Decimal.copy_abs)),
    Term("f / n", _quotient),
    Term("LENGTH(kind)", _known("kind", len)),
    Term("d18 - d9", lambda r: None if r["d18"] is None or r["d9"] is None else Fraction(r["d18"]) - Fraction(r["d9"])),
    Term("CASE WHEN flag THEN n ELSE 0 END", lambda r: r["n"] if r["flag"] else 0),
)
"""Arguments of aggregates that are computed; the bounds clamp what they give."""

KINDS = (None, "A", "D", "é", "", "NULL", "A%", "x'; --", '"q"')
DAYS = (
    None,
    dt.date(1, 1, 1),
    dt.date(1969, 12, 31),
    dt.date(1970, 1, 1),
    dt.date(2024, 2, 29),
    dt.date(9999, 12, 31),
)
MOMENTS = (
    None,
    dt.datetime(1, 1, 1),
    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
    dt.datetime(1970, 1, 1),
    dt.datetime(2024, 2, 29, 12, 30),
    dt.datetime(2024, 12, 31, 23, 59, 59),
    dt.datetime(9999, 12, 31, 23, 59, 59, 999999),
)
INSTANTS = tuple(None if m is None else m.replace(tzinfo=dt.UTC) for m in MOMENTS)


def _decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    most = 10**digits - 1
    whole = st.one_of(st.sampled_from((0, 1, -1, most, -most, most // 2)), st.integers(-most, most))
    return whole.map(lambda i: Decimal((int(i < 0), tuple(int(c) for c in str(abs(i))), -scale)))


def _integers(most: int) -> st.SearchStrategy[int]:
    return st.one_of(st.integers(-9, 9), st.sampled_from((most, -most - 1, most - 1, 2**31)), st.integers(-most, most))


FLOATS = st.one_of(
    st.sampled_from((math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, 0.5, 1.0)),
    st.floats(-10, 10),
    st.floats(),
)

VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "actor": st.sampled_from(("a", "A", "b", "c", "é", None)),
    "device": st.sampled_from((1, 2, 2**63 - 1, -(2**63), None)),
    "kind": st.sampled_from(KINDS),
    "flag": st.sampled_from((True, False, None)),
    "day": st.sampled_from(DAYS),
    "at": st.sampled_from(MOMENTS),
    "time": st.sampled_from(INSTANTS),
    "n": st.one_of(st.none(), _integers(2**63 - 1)),
    "h": st.one_of(st.none(), _integers(10**38 - 2)),
    "d4": st.one_of(st.none(), _decimals(4, 1)),
    "d9": st.one_of(st.none(), _decimals(9, 2)),
    "d18": st.one_of(st.none(), _decimals(18, 6)),
    "d38": st.one_of(st.none(), _decimals(38, 0)),
    "f": st.one_of(st.none(), FLOATS),
}

ROWS = st.lists(st.fixed_dictionaries(dict(VALUES)), max_size=14).flatmap(
    # Some rows twice and three times.
    lambda rows: st.lists(st.sampled_from(rows), max_size=4).map(lambda more: rows + more) if rows else st.just(rows)
)
"""Tables of up to 18 rows, with repeated ones."""


def _keys(pool: Sequence[Any], least: int = 1) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(pool), min_size=least, max_size=4, unique=True).map(tuple)


def _groups(term: Term, pool: Sequence[Any]) -> st.SearchStrategy[Group]:
    return _keys(pool).map(lambda keys: Group(term, keys))


GROUPS = {
    "kind": _groups(field_term("kind"), KINDS),
    "flag": _groups(field_term("flag"), (True, False, None)),
    "day": _groups(field_term("day"), DAYS),
    "at": _groups(field_term("at"), MOMENTS),
    "time": _groups(field_term("time"), INSTANTS),
    "device": _groups(field_term("device"), (1, 2, 3, 2**63 - 1, None)),
    "d9": _groups(field_term("d9"), (Decimal("0.01"), Decimal("-9999999.99"), Decimal(0), None)),
    "YEAR(time)": _groups(part("time", "year"), (1, 1969, 1970, 2024, 9999, None)),
    "YEAR(at)": _groups(part("at", "year"), (1, 1969, 1970, 2024, 9999, None)),
    "MONTH(day)": _groups(part("day", "month"), (1, 2, 12, None)),
    "HOUR(time)": _groups(part("time", "hour"), (0, 12, 23, None)),
    "DATE(time)": _groups(date_of("time"), DAYS),
    "CASE": _groups(CASE, ("more", "less", None)),
    "COALESCE": _groups(COALESCED, ("A", "none", "NULL", "")),
    "MOD": _groups(REMAINDER, (0, 1, 2, -2, None)),
}

UNITS = (
    (field_term("actor"),),
    (field_term("device"),),
    (field_term("actor"), field_term("device")),
    (field_term("actor"), date_of("time")),
    (field_term("actor"), field_term("day"), field_term("flag")),
    (part("at", "year"),),
    (LOWERED,),
    (field_term("actor"), CASE),
    (),
)

_SUMS = {
    "n": ("(0, 10)", "(-3, 4)", "(-9223372036854775808, 9223372036854775807)", "(0.5, 2.25)", "(5, 5)", "(-7, -2)"),
    "h": ("(0, 10)", f"({-(10**37)}, {10**37})", "(-0.001, 1e30)", "(1e36, 9e36)"),
    "d4": ("(0, 10)", "(-999.9, 999.9)", "(0.05, 0.25)", "(-2000, 3000)"),
    "d9": ("(0, 10)", "(-0.005, 0.015)", "(-9999999.99, 9999999.99)", "(-1e10, 1e9)"),
    "d18": ("(0, 1)", "(-999999999999.999999, 999999999999.999999)", "(0.0000005, 7)"),
    "d38": ("(0, 100)", f"({-(10**36)}, {10**36})", f"({10**30}, {3 * 10**35})"),
    "f": ("(0, 1)", "(-0.5, 0.25)", "(-1e200, 1e200)", "(0, 1e-200)", "(-3.7, 12.9)", "(5, 5)", "(1e9, 1000000001)"),
}


_TIMES = tuple(
    f"{call}({name}, contribution_bounds_per_row => ({bounds}))"
    for call in ("AVG", "MEDIAN")
    for name in ("day", "at", "time")
    for bounds in ("'1960-01-01', '1980-06-01'", "'0001-01-01', '9999-12-31'", "'2024-02-29', '2024-02-29'")
)

_PER_GROUP = tuple(
    f"{call}, contribution_bounds_per_group => {bounds})"
    for call, bounds in (
        ("COUNT(*", "(0, 2)"),
        ("COUNT(*", "(2, 3)"),
        ("COUNT(f", "(0, 1)"),
        ("COUNT(kind", "(1, 5)"),
        ("COUNTIF(flag", "(0, 2)"),
        ("SUM(n", "(0, 10)"),
        ("SUM(n", "(-3, 4)"),
        ("SUM(n", "(5, 20)"),
        ("SUM(n", "(0.5, 2.25)"),
        ("SUM(n", "(-9223372036854775808, 9223372036854775807)"),
        ("SUM(n, contribution_bounds_per_row => (0, 4)", "(-2, 7)"),
        ("SUM(h", "(0, 10)"),
        ("SUM(d9", "(-0.005, 0.015)"),
        ("SUM(d38", "(0, 100)"),
        ("SUM(f", "(0, 1)"),
        ("SUM(f", "(-1e200, 1e100)"),
        ("SUM(f, contribution_bounds_per_row => (-1, 1)", "(-0.5, 2.25)"),
        ("SUM(n + 1", "(-2, 7)"),
    )
)
"""Of units: what each has in a group is clamped."""

DISTINCT = tuple(f"COUNT(DISTINCT {name})" for name in ("kind", "n", "d9", "day", "at", "time", "flag", "device"))


def _aggregates(with_unit: str | None, units: bool) -> st.SearchStrategy[tuple[str, ...]]:
    def sums(name: str) -> st.SearchStrategy[str]:
        bounds = st.sampled_from(_SUMS[name])
        call = st.sampled_from(("SUM", "AVG", "VAR_POP", "MEDIAN"))
        # The squares of the widest are refused: their noise is beyond what doubles hold.
        said = st.tuples(call, bounds).filter(lambda p: p != ("VAR_POP", "(-1e200, 1e200)"))
        return said.map(lambda p: f"{p[0]}({name}, contribution_bounds_per_row => {p[1]})")

    counts = st.sampled_from(
        ("COUNT(*)", "COUNT(kind)", "COUNT(f)", "COUNT(time)", "COUNT(d38)", "COUNTIF(flag)", *DISTINCT)
    )
    computed = st.tuples(st.sampled_from(("SUM", "AVG", "VAR_POP")), st.sampled_from(COMPUTED)).map(
        lambda p: f"{p[0]}({p[1].sql}, contribution_bounds_per_row => (-2, 7))"
    )
    parts: list[st.SearchStrategy[str]] = [counts, computed, st.sampled_from(_TIMES), *(sums(name) for name in _SUMS)]
    if units:
        parts.append(st.sampled_from(_PER_GROUP))
    listed = st.lists(st.one_of(parts), min_size=1, max_size=4, unique=True)
    if with_unit is None:
        return listed.map(tuple)
    return listed.map(lambda some: (*some, f"COUNT(DISTINCT {with_unit})"))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Questions over the layout."""
    unit = draw(st.sampled_from(UNITS))
    chosen = draw(st.lists(st.sampled_from(sorted(GROUPS)), max_size=2, unique=True))
    single = unit[0].sql if len(unit) == 1 else None
    return Question(
        unit=unit,
        groups=tuple(draw(GROUPS[name]) for name in chosen),
        where=draw(st.one_of(st.none(), st.sampled_from(sorted(FILTERS)).map(FILTERS.__getitem__))),
        rows=draw(st.integers(1, 5)) if unit else 1,
        pairs=draw(st.integers(1, 4)) if unit else 1,
        aggregates=draw(_aggregates(single, bool(unit))),
    )
