"""The statements that count units in groups, for choosing groups (`selection`). Nothing is executed here.

unit_groups   the distinct (unit, group) pairs of rows that pass the filter, have a unit, and whose keys are
              listed where keys are listed
crowded       the units in more than l groups
counted       of these, the groups of the first l pairs in the order of a keyed hash, then of the key
candidates    one row a group in which a unit is counted: its place i, its keys, and d, the number of its units
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from discreet.plan import Plan
from discreet.quirks import DUCKDB, Quirks, quirks_of
from discreet.relational import Compiler, KeyTable, compile_plan, key_tables, needed_columns
from discreet.relational_joins import joined_source
from discreet.schema import Type
from discreet.statement_parts import all_of, column, joined, named, number, select, table

__all__ = ["SelectionStatement", "check_sayable", "compile_selection"]


@dataclass(frozen=True)
class SelectionStatement:
    """What an engine runs: load the key tables, create the steps as temporary tables in order.

    The last one, ``candidates``, has columns i (from 0), one ``e{n}`` a grouping column, and d.

    Attributes:
        keys: the tables of listed keys.
        steps: named SELECTs.
        types: of the grouping columns.
    """

    keys: tuple[KeyTable, ...]
    steps: tuple[tuple[str, exp.Expr], ...]
    types: tuple[Type, ...]


def compile_selection(plan: Plan, limit: int, hash_key: int, quirks: Quirks = DUCKDB) -> SelectionStatement:
    """The statements.

    Args:
        plan: with the groups still to be chosen.
        limit: l.
        hash_key: drawn afresh for each query. It decides in which l of its groups a unit is counted.
        quirks: of the engine that will run them.
    """
    compiler = Compiler(plan, quirks)
    types = tuple(key.expression.type for key in plan.keys)
    units, groups = compiler.units, compiler.group_columns
    kept = select("*", of=compiler.kept(matched=True), called="kept")
    number_of_units = named(exp.Count(this=exp.Star()), "d")
    steps: list[tuple[str, exp.Expr]] = []
    if not units:
        # Each row is a unit, in one group: there is nothing to limit.
        candidates = select(*groups, number_of_units, of=kept, called="kept", group_by=groups)
    else:
        names = [*units, *groups]
        steps.append(("unit_groups", select(*names, of=kept, called="kept", group_by=names)))
        crowded = select(*units, of=table("unit_groups"), group_by=units)
        crowded.having(exp.GT(this=exp.Count(this=exp.Star()), expression=number(limit)), copy=False)
        steps.append(("crowded", crowded))
        steps.append(("counted", _counted(compiler, limit, hash_key)))
        among = exp.Exists(this=select(number(1), of=table("crowded"), where=[_crowded(compiler)]))
        others = select(*groups, of=table("unit_groups", "p"), where=[exp.Not(this=among)])
        pairs = others.union(select(*groups, of=table("counted")), distinct=False, copy=False)
        candidates = select(*groups, number_of_units, of=pairs, called="pairs", group_by=groups)
    place = named(exp.Sub(this=exp.Window(this=exp.RowNumber()), expression=number(1)), "i")
    steps.append(("candidates", select(place, "*", of=candidates, called="counted")))
    return SelectionStatement(key_tables(plan), tuple(steps), types)


def check_sayable(plan: Plan) -> None:
    """Refuse what the source's engine cannot say for every row, before anything is charged (R62).

    Raises:
        RefusedError: naming it.
    """
    quirks = quirks_of(plan.registration.format)
    if quirks is DUCKDB:
        return
    if plan.selection is not None:
        compile_selection(plan, plan.selection.limit, 0, quirks)
        plan = plan.with_groups(())
    compile_plan(plan, 0, quirks)
    joined_source("", plan.joins, needed_columns(plan), quirks)


def _counted(compiler: Compiler, limit: int, hash_key: int) -> exp.Select:
    """The groups in which crowded units are counted. Which those are depends on the unit's own pairs alone."""
    units, groups = compiler.units, compiler.group_columns
    own = [named(column(name, "p"), name) for name in (*units, *groups)]
    values: list[exp.Expr] = [column(name, "p") for name in (*units, *groups)]
    # Only that each of a unit's groups is as likely to be counted as the others rests on the hash, not privacy.
    hash_ = compiler.quirks.pair_hash(values, [*compiler.unit_types, *compiler.group_types], hash_key)
    pairs = joined(select(*own, named(hash_, "h"), of=table("unit_groups", "p")), "crowded", _crowded(compiler))
    order = [exp.Ordered(this=column(name), nulls_first=True) for name in ("h", *groups)]
    rank = exp.Window(this=exp.RowNumber(), partition_by=[column(u) for u in units], order=exp.Order(expressions=order))
    ranked = select(*groups, named(rank, "r"), of=pairs, called="pairs")
    first = exp.LTE(this=column("r"), expression=number(limit))
    return select(*groups, of=ranked, called="ranked", where=[first])


def _crowded(compiler: Compiler) -> exp.Expr:
    """Whether a pair's unit is this crowded one."""
    return all_of(exp.EQ(this=column(u, "p"), expression=column(u, "crowded")) for u in compiler.units)
