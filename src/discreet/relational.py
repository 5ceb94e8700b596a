"""From a plan to statements: every statistic becomes an exact integer total, inside the engine.

Nothing is executed here. The registered relation is called ``source`` and gives columns ``c0, c1, ...`` of
the registered types; the public keys of grouping column i lie in a table ``keys{i}(i, k)``.

What the statements are made of (design, section 4), with u the unit's columns, e the group keys' values, x
the aggregates' arguments:

    kept    rows of the source that pass the filter and have a unit: u, e, x, and q, the values on their grids
    heavy   the units with more than C rows among those kept rows whose keys are listed, with their weight
    result  one row a listed group: its index, and the sums of w * q over its rows
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import prod

from sqlglot import exp

from discreet.expressions import Expression, Field, Literal, Operation, fields_in
from discreet.grid import Grid
from discreet.plan import KeyColumn, Measurement, Plan
from discreet.query import Scalar
from discreet.schema import Kind, Type

__all__ = ["KeyTable", "Result", "Statement", "compile_plan"]


@dataclass(frozen=True)
class KeyTable:
    """A table of public keys to load: columns i (the key's place, from 0) and k (the key, of `type`)."""

    name: str
    type: Type
    values: tuple[Scalar, ...]


@dataclass(frozen=True)
class Result:
    """One SELECT: ``g``, the group's index (keys in row-major order), then one integer total a measurement."""

    select: exp.Select
    measurements: tuple[int, ...]


@dataclass(frozen=True)
class Statement:
    """What an engine runs: load the key tables, create the steps as temporary tables in order, read the results.

    Attributes:
        keys: the tables of public keys.
        steps: named SELECTs, each to become a temporary table.
        results: what to read.
        groups: how many groups the answer has.
        columns: the places of the source's columns that are needed.
    """

    keys: tuple[KeyTable, ...]
    steps: tuple[tuple[str, exp.Select], ...]
    results: tuple[Result, ...]
    groups: int
    columns: tuple[int, ...]


def compile_plan(plan: Plan) -> Statement:
    """The statements of a plan."""
    compiler = _Compiler(plan)
    by_row = tuple(i for i, m in enumerate(plan.measurements) if m.statistic != "unit_count")
    by_unit = tuple(i for i, m in enumerate(plan.measurements) if m.statistic == "unit_count")
    steps: list[tuple[str, exp.Select]] = []
    results: list[Result] = []
    if by_row:
        if not plan.unit.row_level:
            steps.append(("heavy", compiler.heavy_units()))
        results.append(Result(compiler.row_totals(by_row), by_row))
    if by_unit:
        measurement = plan.measurements[by_unit[0]]
        steps.append(("pairs", compiler.pairs()))
        if measurement.weight > 1:
            steps.append(("heavy_pairs", compiler.heavy_pairs(measurement)))
        results.append(Result(compiler.unit_totals(measurement), by_unit))
    tables = tuple(KeyTable(f"keys{i}", key.expression.type, key.values) for i, key in enumerate(plan.keys))
    return Statement(tables, tuple(steps), tuple(results), plan.groups, _needed(plan))


def _needed(plan: Plan) -> tuple[int, ...]:
    expressions = [*plan.unit.expressions, *(key.expression for key in plan.keys)]
    expressions += [m.expression for m in plan.measurements if m.expression is not None]
    if plan.where is not None:
        expressions.append(plan.where)
    return tuple(sorted({field.position for e in expressions for field in fields_in(e)}))


class _Compiler:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.units = [f"u{i}" for i in range(len(plan.unit.expressions))]
        self.group_columns = [f"e{i}" for i in range(len(plan.keys))]

    def kept(self, *, matched: bool, values: bool) -> exp.Select:
        """Rows that pass the filter and have a unit, with unit and keys, and with the values if asked.

        `matched` keeps only rows whose keys are all listed.
        """
        plan = self.plan
        columns: list[exp.Expr] = []
        for name, expression in zip(self.units, plan.unit.expressions, strict=True):
            columns.append(exp.alias_(render(expression), name))
        for name, key in zip(self.group_columns, plan.keys, strict=True):
            columns.append(exp.alias_(render(key.expression), name))
        if values:
            columns += [
                exp.alias_(render(m.expression), f"x{i}")
                for i, m in enumerate(plan.measurements)
                if m.expression is not None
            ]
        base = exp.select(*(columns or [exp.alias_(number(1), "one")])).from_("source")
        if plan.where is not None:
            base = base.where(render(plan.where))
        rows = exp.select("*").from_(base.subquery("r"))
        for name in self.units:
            rows = rows.where(_present(column(name)))
        if matched:
            for i, key in enumerate(plan.keys):
                rows = rows.where(_listed(i, key))
        return rows

    def heavy_units(self) -> exp.Select:
        """Units with more than C rows left after filter and key matching, and floor(S C / N), their weight."""
        limit = self.plan.max_contributions
        weight = next(m.weight for m in self.plan.measurements if m.statistic != "unit_count")
        return self._heavy(self.kept(matched=True, values=False), limit, weight)

    def heavy_pairs(self, measurement: Measurement) -> exp.Select:
        """Units in more than G groups, and floor(S G / M), their weight."""
        return self._heavy(exp.select("*").from_("pairs"), measurement.limit, measurement.weight)

    def _heavy(self, rows: exp.Select, limit: int, weight: int) -> exp.Select:
        count = exp.Count(this=exp.Star())
        cut = exp.Cast(this=exp.IntDiv(this=number(weight * limit), expression=count), to=_BIGINT)
        grouped = exp.select(*self.units, exp.alias_(cut, "w")).from_(rows.subquery("kept"))
        return grouped.group_by(*self.units).having(exp.GT(this=count.copy(), expression=number(limit)))

    def pairs(self) -> exp.Select:
        """The distinct (unit, group) pairs among kept rows with listed keys."""
        names = [*self.units, *self.group_columns]
        kept = self.kept(matched=True, values=False).subquery("kept")
        return exp.select(*names).from_(kept).group_by(*names)

    def row_totals(self, places: tuple[int, ...]) -> exp.Select:
        """For each listed group: the sums of w, or of w * q, over its rows."""
        measurements = {i: self.plan.measurements[i] for i in places}
        # A row whose key is not listed is left behind when the groups are matched with the keys; here it need
        # not be filtered out. (The count of a unit's rows, `heavy_units`, does filter.)
        rows = exp.select("*", *self._clamped(measurements)).from_(
            self.kept(matched=False, values=True).subquery("kept")
        )
        if self.plan.unit.row_level:
            weight: exp.Expr = number(1)
            weighted = exp.select("*").from_(rows.subquery("rows"))
        else:
            standard = next(iter(measurements.values())).weight
            weight = column("w", "rows")
            weighted = self._weighted(rows, "heavy", standard)
        totals = [exp.alias_(_total(m, i, weight), f"m{i}") for i, m in measurements.items()]
        grouped = exp.select(*self.group_columns, *totals).from_(weighted.subquery("rows"))
        return self._indexed(grouped, [f"m{i}" for i in places])

    def unit_totals(self, measurement: Measurement) -> exp.Select:
        """For each listed group: the sum of the weights of the units in it."""
        rows = exp.select("*").from_("pairs")
        if measurement.weight == 1:
            total: exp.Expr = exp.Count(this=exp.Star())
            weighted = rows
        else:
            total = exp.Sum(this=column("w", "rows"))
            weighted = self._weighted(rows, "heavy_pairs", measurement.weight)
        place = self.plan.measurements.index(measurement)
        grouped = exp.select(*self.group_columns, exp.alias_(total, f"m{place}"))
        return self._indexed(grouped.from_(weighted.subquery("rows")), [f"m{place}"])

    def _weighted(self, rows: exp.Select, heavy: str, standard: int) -> exp.Select:
        """The rows with w: the weight of a heavy unit's rows, S for all others."""
        on = exp.and_(*(exp.EQ(this=column(u, "kept"), expression=column(u, heavy)) for u in self.units))
        weight = exp.Coalesce(this=column("w", heavy), expressions=[number(standard)])
        star = exp.Column(this=exp.Star(), table=exp.to_identifier("kept"))
        return (
            exp.select(star, exp.alias_(weight, "w")).from_(rows.subquery("kept")).join(heavy, on=on, join_type="left")
        )

    def _clamped(self, measurements: Mapping[int, Measurement]) -> list[exp.Expr]:
        return [
            exp.alias_(on_grid(column(f"x{i}"), m.expression.type, m.grid), f"q{i}")
            for i, m in measurements.items()
            if m.grid is not None and m.expression is not None
        ]

    def _indexed(self, grouped: exp.Select, totals: list[str]) -> exp.Select:
        """The grouped totals of listed groups only, each with its group's index in place of its keys."""
        keys = self.plan.keys
        if not keys:
            return exp.select(exp.alias_(number(0), "g"), *totals).from_(grouped.subquery("totals"))
        grouped = grouped.group_by(*self.group_columns)
        index: exp.Expr = number(0)
        selected = exp.select(*totals).from_(grouped.subquery("totals"))
        for i, key in enumerate(keys):
            stride = prod(len(later.values) for later in keys[i + 1 :])
            index = exp.Add(this=index, expression=exp.Mul(this=column("i", f"keys{i}"), expression=number(stride)))
            selected = selected.join(f"keys{i}", on=_same_key(column(f"e{i}", "totals"), i, key))
        return selected.select(exp.alias_(index, "g"))


def _total(measurement: Measurement, place: int, weight: exp.Expr) -> exp.Expr:
    """The exact integer total of one measurement in one group; NULL only over no rows."""
    if measurement.grid is None:
        if measurement.expression is None:
            return exp.Sum(this=weight)
        return exp.Sum(this=_case([(_present(column(f"x{place}", "rows")), weight)], number(0)))
    value: exp.Expr = column(f"q{place}", "rows")
    size = measurement.grid.largest
    if measurement.statistic == "centred_sum":
        # 2 q - qL - qU: the value's distance from the centre of the bounds, in half steps.
        centre = measurement.grid.lowest + measurement.grid.highest
        value = exp.paren(exp.Sub(this=exp.Mul(this=number(2), expression=value), expression=number(centre)))
        size = 2 * size
    if measurement.weight * size >= 2**62:
        value, weight = (exp.Cast(this=side, to=_HUGEINT) for side in (value, weight))
    return exp.Sum(this=exp.Mul(this=weight, expression=value))


def on_grid(x: exp.Expr, type_: Type, grid: Grid) -> exp.Expr:
    """q = floor(clamp(x) / step) as an integer surely within [lowest, highest]; NULL where x is NULL.

    The value is clamped before it is scaled, so that scaling cannot overflow, and again as an integer at the
    end: whatever rounding happened between, |q| <= B, on which the sensitivity rests.
    """
    wide = max(abs(grid.lowest), abs(grid.highest)) * grid.coarseness >= 2**62
    if type_.kind is Kind.FLOAT:
        low, high = (_double(float(b)) for b in (grid.bounds.lower, grid.bounds.upper))
        factor = _double(float(1 / grid.step))
        scaled = exp.Floor(this=exp.Mul(this=_clamp(x, low, high), expression=factor))
        integer: exp.Expr = exp.TryCast(this=scaled, to=_BIGINT)
    else:
        integer = _exact_integer(x, type_, grid, _HUGEINT if wide else _BIGINT)
    return _clamp(integer, number(grid.lowest), number(grid.highest))


def _exact_integer(x: exp.Expr, type_: Type, grid: Grid, to: exp.DataType) -> exp.Expr:
    """floor(clamp(x) * 10^places / coarseness) for whole numbers and decimals."""
    low, high = _floor(grid.bounds.lower), -_floor(-grid.bounds.upper)
    factor = 10**grid.places
    if type_.kind is Kind.DECIMAL:
        reach = 10 ** (type_.precision - type_.scale)  # a decimal column lies strictly within +-reach
        low_literal = _decimal_literal(low, type_) if low > -reach else None
        high_literal = _decimal_literal(high, type_) if high < reach else None
        digits = len(str(max(abs(low), abs(high))))
        narrow = _decimal_type(min(38, digits + type_.scale), type_.scale)
        clamped = exp.TryCast(this=_clamp(x, low_literal, high_literal), to=narrow)
        power = exp.Cast(this=exp.Literal.string(str(factor)), to=_decimal_type(grid.places + 1, 0))
        scaled: exp.Expr = exp.TryCast(this=exp.Mul(this=clamped, expression=power), to=to)
    else:
        scaled = exp.Cast(this=_clamp(x, number(low), number(high)), to=to)
        if factor > 1:
            scaled = exp.Mul(this=scaled, expression=number(factor))
    if grid.coarseness == 1:
        return scaled
    # Shifted to be non-negative first: integer division then rounds down on every engine.
    base = grid.lowest * grid.coarseness
    shifted = exp.paren(exp.Sub(this=scaled, expression=number(base)))
    return exp.Add(this=exp.IntDiv(this=shifted, expression=number(grid.coarseness)), expression=number(grid.lowest))


def _floor(x: object) -> int:
    return x.numerator // x.denominator  # type: ignore[attr-defined,no-any-return]


def _clamp(x: exp.Expr, low: exp.Expr | None, high: exp.Expr | None) -> exp.Expr:
    """x between low and high; NULL stays NULL (`least` and `greatest` would turn it into a bound)."""
    branches: list[tuple[exp.Expr, exp.Expr]] = [(exp.Is(this=x.copy(), expression=exp.Null()), exp.Null())]
    if low is not None:
        branches.append((exp.LTE(this=x.copy(), expression=low), low.copy()))
    if high is not None:
        branches.append((exp.GTE(this=x.copy(), expression=high), high.copy()))
    return _case(branches, x.copy())


def _case(branches: list[tuple[exp.Expr, exp.Expr]], default: exp.Expr) -> exp.Case:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=default)


def _present(x: exp.Expr) -> exp.Expr:
    return exp.Not(this=exp.Is(this=x, expression=exp.Null()))


def _same_key(value: exp.Expr, place: int, key: KeyColumn) -> exp.Expr:
    """Whether a row's key is this listed key; the missing key is equal to itself only if it is listed."""
    listed = column("k", f"keys{place}")
    if None in key.values:
        return exp.NullSafeEQ(this=value, expression=listed)
    return exp.EQ(this=value, expression=listed)


def _listed(place: int, key: KeyColumn) -> exp.Expr:
    """Whether a row's key is listed. Written as an IN over the keys that are not NULL: a semi-join."""
    value = column(f"e{place}")
    keys = exp.select("k").from_(f"keys{place}")
    if None not in key.values:
        return exp.In(this=value, query=keys.subquery())
    present = exp.In(this=value, query=keys.where(_present(column("k"))).subquery())
    return exp.or_(present, exp.Is(this=value.copy(), expression=exp.Null()))


def column(name: str, table: str | None = None) -> exp.Column:
    """A column of one of our own tables."""
    return exp.column(name, table=table)


def number(value: int) -> exp.Expr:
    """An integer constant."""
    literal = exp.Literal.number(str(abs(value)))
    return exp.paren(exp.Neg(this=literal)) if value < 0 else literal


_BIGINT = exp.DataType.build("BIGINT")
_HUGEINT = exp.DataType.build("INT128")
_DOUBLE = exp.DataType.build("DOUBLE")


def _decimal_type(precision: int, scale: int) -> exp.DataType:
    return exp.DataType.build(f"DECIMAL({precision}, {scale})")


def _decimal_literal(value: int, type_: Type) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(str(value)), to=_decimal_type(type_.precision, type_.scale))


def _double(value: float) -> exp.Expr:
    return exp.Cast(this=exp.Literal.string(repr(value)), to=_DOUBLE)


_COMPARISONS: dict[str, Callable[..., exp.Expr]] = {
    "eq": exp.EQ,
    "ne": exp.NEQ,
    "lt": exp.LT,
    "le": exp.LTE,
    "gt": exp.GT,
    "ge": exp.GTE,
}


def render(expression: Expression) -> exp.Expr:
    """A row expression in the engine's words; total, as `expressions` promises."""
    if isinstance(expression, Field):
        return column(f"c{expression.position}")
    if isinstance(expression, Literal):
        return _literal(expression)
    return _operation(expression)


def _operation(operation: Operation) -> exp.Expr:
    operands = [render(operand) for operand in operation.operands]
    name = operation.operator
    if name in _COMPARISONS:
        return exp.paren(_COMPARISONS[name](this=operands[0], expression=operands[1]))
    if name.startswith("extract_"):
        part = exp.Var(this=name.removeprefix("extract_").upper())
        return exp.Cast(this=exp.Extract(this=part, expression=operands[0]), to=_BIGINT)
    match name:
        case "and":
            return exp.paren(exp.and_(*operands))
        case "or":
            return exp.paren(exp.or_(*operands))
        case "not":
            return exp.paren(exp.Not(this=exp.paren(operands[0])))
        case "in":
            return exp.paren(exp.In(this=operands[0], expressions=operands[1:]))
        case "like":
            return exp.paren(exp.Like(this=operands[0], expression=operands[1]))
        case "is_null":
            return exp.paren(exp.Is(this=operands[0], expression=exp.Null()))
        case "to_date":
            return exp.TryCast(this=operands[0], to=exp.DataType.build("DATE"))
        case "to_timestamp":
            return exp.TryCast(this=operands[0], to=exp.DataType.build("TIMESTAMP"))
        case "to_float":
            return exp.TryCast(this=operands[0], to=_DOUBLE)
        case _:
            raise AssertionError(f"no rendering for {name}")


def _literal(literal: Literal) -> exp.Expr:
    value, kind = literal.value, literal.type.kind
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if kind is Kind.INTEGER and isinstance(value, int):
        return number(value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime.datetime):
        text, name = value.isoformat(sep=" "), "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
    elif isinstance(value, datetime.date):
        text, name = value.isoformat(), "DATE"
    elif isinstance(value, Decimal):
        text, name = f"{value:f}", str(literal.type)
    else:
        raise AssertionError("a literal without a rendering")
    return exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(name, dialect="duckdb"))
