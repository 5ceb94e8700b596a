"""FROM and WITH: derived tables that keep rows as they are, inlined into the one query over the registered table.

A common table expression or a subquery in FROM may choose, compute and rename columns, and filter rows. It then means
the same as one SELECT in which its expressions and conditions are written out, and that is what becomes of it. The
privacy unit is not among its columns: it is bound to the registered table and stays there, whatever a column of a
derived table is called.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from discreet.errors import RefusedError, UsageError
from discreet.query import Join, Name, Node, aggregates_in, check_nodes, public_name, replace_names
from discreet.sql_expressions import convert, default_name
from discreet.sql_joins import read_join

__all__ = ["REFUSED_CLAUSES", "REFUSED_INSIDE", "Relation", "check_clauses", "read_from"]

_PRIVATE_INSTEAD = "ask for COUNT, SUM or AVG over the rows of the table itself"
REFUSED_CLAUSES: dict[str, tuple[str, str, str]] = {
    "laterals": ("LATERAL", "it can multiply one person's rows", _PRIVATE_INSTEAD),
    "with_": ("WITH", "it stands at the beginning of a query only", "put it before the outermost SELECT"),
    "qualify": ("QUALIFY", "window functions compare private rows", _PRIVATE_INSTEAD),
    "windows": ("WINDOW", "window functions compare private rows", _PRIVATE_INSTEAD),
    "distinct": ("SELECT DISTINCT", "the distinct values are private rows", "use GROUP BY with --keys"),
    "sample": ("a sample", "the sampling would need its own privacy proof", "leave it out"),
    "pivots": ("PIVOT", "its columns come from the data", "use GROUP BY with --keys"),
    "into": ("INTO", "a query writes nothing", "use -o FILE"),
    "locks": ("FOR UPDATE", "a query writes nothing", "leave it out"),
}
_TOTAL_AS_ROW = "a total of several people's rows would be treated as a row of its own"
REFUSED_INSIDE: dict[str, tuple[str, str, str]] = {
    "group": ("GROUP BY", _TOTAL_AS_ROW, "group in the outermost SELECT"),
    "having": ("HAVING", _TOTAL_AS_ROW, "use the outermost SELECT's"),
    "order": ("ORDER BY", "the order of private rows means nothing outside", "sort in the outermost SELECT"),
    "limit": ("LIMIT", "which rows it keeps depends on other people's rows", "filter with WHERE"),
    "offset": ("OFFSET", "which rows it keeps depends on other people's rows", "filter with WHERE"),
}
_IGNORED = {"kind", "hint", "match", "operation_modifiers"}


def check_clauses(select: exp.Expr, read: set[str], inside: str = "") -> None:
    """Refuse what stands in a SELECT beside the parts that are read.

    Args:
        select: the SELECT.
        read: the names of the arguments that are read.
        inside: what the SELECT stands in, if it is not the outermost.

    Raises:
        RefusedError: naming the construct, why, and what to write instead.
    """
    if not isinstance(select, exp.Select):
        if isinstance(select, exp.SetOperation):
            construct = f"{select.key.upper()}{inside}"
            raise RefusedError(construct, "one person could stand in both parts", hint=_PRIVATE_INSTEAD)
        raise RefusedError("query", "only SELECT is answered", hint='for example "SELECT COUNT(*) FROM data"')
    known = {**REFUSED_CLAUSES, **REFUSED_INSIDE}
    for name, value in select.args.items():
        if not value or name in read or name in _IGNORED:
            continue
        if name in known:
            construct, why, instead = known[name]
            raise RefusedError(f"{construct}{inside}", why, hint=instead)
        raise RefusedError(f"{name.strip('_').upper()}{inside}", "is not part of the dialect", hint=_PRIVATE_INSTEAD)


@dataclass(frozen=True)
class Relation:
    """What FROM gives to the clauses of a SELECT.

    Attributes:
        table: the registered table at the bottom, by the name that was written.
        names: what may stand before a column here.
        columns: the columns that are computed or renamed, over the registered table's own.
        below: where other columns come from; None: they are the registered table's.
        closed: whether there are no others.
        where: the conditions of the derived tables.
        joins: with public tables.
        hidden: how many of them are inside the derived table, where their names end.
    """

    table: str
    names: tuple[str, ...] = ()
    columns: tuple[tuple[str, Node], ...] = ()
    below: Relation | None = None
    closed: bool = False
    where: tuple[Node, ...] = ()
    joins: tuple[Join, ...] = ()
    hidden: int = 0

    def resolve(self, node: Node) -> Node:
        """The expression over the registered table's own columns.

        Raises:
            UsageError: a column that the derived table does not have; an expression that grows too large.
        """
        return replace_names(node, lambda name: self._column(name.parts))

    def _column(self, parts: tuple[str, ...]) -> Node:
        visible = {join.alias.casefold(): join.alias for join in self.joins[self.hidden :]}
        if len(parts) > 1 and parts[0].casefold() in visible:
            return public_name(visible[parts[0].casefold()], ".".join(parts[1:]))
        if len(parts) > 1 and parts[0].casefold() in [name.casefold() for name in self.names]:
            parts = parts[1:]
        found = _lookup(self.columns, parts[0])
        if found is None:
            if self.closed:
                raise self._unknown(parts)
            return Name(parts) if self.below is None else self.below.resolve(Name(parts))
        if len(parts) == 1:
            return found
        if not isinstance(found, Name):
            raise UsageError("column", "has no fields: it is computed", ".".join(parts))
        return Name((*found.parts, *parts[1:]))

    def _unknown(self, parts: tuple[str, ...]) -> UsageError:
        known = [name for name, _ in self.columns]
        near = difflib.get_close_matches(parts[0], known, n=3)
        where = self.names[0] if self.names else "the derived table"
        hint = f"did you mean {', '.join(near)}?" if near else f"it has {', '.join(known[:12]) or 'none'}"
        return UsageError("column", f"is not a column of {where}", ".".join(parts), hint)


def _lookup(columns: tuple[tuple[str, Node], ...], name: str) -> Node | None:
    """By the exact name, else by the only one that differs in case alone."""
    exact = [node for known, node in columns if known == name]
    folded = [node for known, node in columns if known.casefold() == name.casefold()]
    found = exact or (folded if len(folded) == 1 else [])
    return found[0] if found else None


def read_from(select: exp.Expr, inside: str = "", visible: Mapping[str, Relation] | None = None) -> Relation:
    """The relation that a SELECT reads, public tables joined to it.

    Args:
        select: with its FROM, and WITH if it is the outermost.
        inside: what the SELECT stands in, if it is not the outermost.
        visible: the common table expressions that it may name.

    Raises:
        RefusedError: anything that is not one table with its rows as they are.
        UsageError: a name that means nothing.
    """
    relation, known = _first_table(select, inside, dict(visible or {}))
    for join in select.args.get("joins") or ():
        added = read_join(join, inside, known, relation.resolve)
        taken = [*relation.names, *(earlier.alias for earlier in relation.joins)]
        if added.alias.casefold() in [name.casefold() for name in taken]:
            raise UsageError("JOIN", "names a table twice", added.alias, "write JOIN table AS another_name")
        relation = replace(relation, joins=(*relation.joins, added))
    return relation


def _first_table(select: exp.Expr, inside: str, known: dict[str, Relation]) -> tuple[Relation, dict[str, Relation]]:
    """The table that FROM begins with, and the table expressions by name."""
    outside = set(known)
    clause = select.args.get("with_")
    if clause:
        if clause.args.get("recursive"):
            raise RefusedError("WITH RECURSIVE", "it can multiply one person's rows", hint=_PRIVATE_INSTEAD)
        for one in clause.expressions:
            name = _alias(one.args.get("alias"))
            if name.casefold() in known and name.casefold() not in outside:
                raise UsageError("WITH", "names a table twice", name)
            # A table expression sees those before it; its own name means what it meant outside.
            known[name.casefold()] = _derived(one.this, name, f" in the table expression {name}", known)
    from_ = select.args.get("from_")
    table = from_.this if from_ else None
    if table is None:
        raise RefusedError(f"query{inside}", "has no FROM", hint='for example "SELECT COUNT(*) FROM data"')
    if isinstance(table, exp.Subquery):
        extra = {k for k, v in table.args.items() if v and k not in ("this", "alias")}
        if extra:
            raise RefusedError(f"a subquery in FROM{inside}", "must stand alone", hint=_PRIVATE_INSTEAD)
        alias = _alias(table.args.get("alias"))
        where = f" in the derived table {alias}" if alias else " in a derived table"
        return _derived(table.this, alias, where, known), known
    extra = {k for k, v in table.args.items() if v and k not in ("this", "alias")}
    if "sample" in extra or isinstance(table, exp.TableSample):
        construct, why, instead = REFUSED_CLAUSES["sample"]
        raise RefusedError(f"{construct}{inside}", f"cannot be answered privately: {why}", hint=instead)
    if not isinstance(table, exp.Table) or extra or not isinstance(table.this, exp.Identifier):
        raise RefusedError(
            f"FROM{inside}", "must name the one registered table", hint="call it data, or by its file's name"
        )
    name, alias = str(table.name), _alias(table.args.get("alias"))
    expression = known.get(name.casefold())
    if expression is not None:
        return replace(expression, names=(alias,) if alias else expression.names), known
    return Relation(name, (alias,) if alias else ()), known


def _alias(alias: Any) -> str:
    if alias is None:
        return ""
    if not isinstance(alias, exp.TableAlias) or alias.args.get("columns"):
        raise RefusedError("a list of column aliases", "is not part of the dialect", hint="write SELECT x AS name")
    return str(alias.this.name) if alias.this else ""


def _derived(select: exp.Expr, alias: str, inside: str, visible: Mapping[str, Relation]) -> Relation:
    """A SELECT that keeps rows as they are: some columns, a filter."""
    check_clauses(select, {"expressions", "from_", "joins", "where"}, inside)
    below = read_from(select, inside, visible)
    columns: list[tuple[str, Node]] = []
    closed = True
    for expression in select.expressions:
        if isinstance(expression, exp.Star) or (
            isinstance(expression, exp.Column) and isinstance(expression.this, exp.Star)
        ):
            star = expression if isinstance(expression, exp.Star) else expression.this
            if any(star.args.values()):
                what = f"SELECT * with changes{inside}"
                raise RefusedError(what, "is not part of the dialect", hint="list the columns")
            closed = below.closed
            columns += [pair for pair in below.columns if pair[0] not in dict(columns)]
            continue
        aliased = isinstance(expression, exp.Alias)
        written = convert(expression.this if aliased else expression)
        if any(aggregates_in(written)):
            raise RefusedError(f"an aggregate{inside}", _TOTAL_AS_ROW, hint="aggregate in the outermost SELECT")
        name = str(expression.alias) if aliased else default_name(written)
        if name in [known for known, _ in columns if known == name and aliased]:
            raise UsageError("SELECT", "gives two columns the same name", name, "choose another alias")
        columns.append((name, _resolved(below, written)))
    where = select.args.get("where")
    conditions = below.where if where is None else (*below.where, _resolved(below, convert(where.this)))
    names = (alias,) if alias else ()
    return Relation(
        below.table, names, tuple(columns), None if closed else below, closed, conditions, below.joins, len(below.joins)
    )


def _resolved(relation: Relation, node: Node) -> Node:
    resolved = relation.resolve(node)
    check_nodes(resolved)
    return resolved
