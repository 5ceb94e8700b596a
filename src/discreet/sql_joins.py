"""Joins with public tables: by their words. Whether the table is public and its key unique is told later."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from sqlglot import exp

from discreet.errors import RefusedError
from discreet.query import Join, Name, Node
from discreet.sql_expressions import convert

__all__ = ["read_join"]

_MULTIPLIES = "a row of another table can multiply one person's rows, or show them to others"
_PUBLIC_INSTEAD = "LEFT JOIN or JOIN a public table on its key: --public NAME=FILE"


def read_join(join: exp.Join, inside: str, expressions: Collection[str], resolve: Callable[[Node], Node]) -> Join:
    """One JOIN.

    Args:
        join: as parsed.
        inside: what it stands in, if not in the outermost SELECT.
        expressions: the names of table expressions, which cannot be joined.
        resolve: makes an expression over what is joined so far one over the registered table's columns.

    Raises:
        RefusedError: any other join than LEFT or INNER, on equal keys, with a table by its name.
    """
    construct = f"JOIN{inside}"
    known = {"this", "side", "kind", "on", "using"}
    side, kind = join.args.get("side") or "", join.args.get("kind") or ""
    if {name for name, value in join.args.items() if value} - known or (side, kind) not in (
        ("", ""),
        ("", "INNER"),
        ("LEFT", ""),
        ("LEFT", "OUTER"),
    ):
        raise RefusedError(construct, "is LEFT or INNER only: " + _MULTIPLIES, hint=_PUBLIC_INSTEAD)
    table = join.this
    plain = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
    if not plain or {k for k, v in table.args.items() if v and k not in ("this", "alias")}:
        raise RefusedError(construct, "takes a public table by its name: " + _MULTIPLIES, hint=_PUBLIC_INSTEAD)
    name = str(table.name)
    alias = str(table.alias) or name
    if name.casefold() in expressions:
        rule = "a table expression over private rows cannot be joined: " + _MULTIPLIES
        raise RefusedError(construct, rule, hint=_PUBLIC_INSTEAD)
    using, on = join.args.get("using"), join.args.get("on")
    if using:
        columns = [str(column.name) for column in using]
        return Join(name, alias, side == "LEFT", tuple((resolve(Name((column,))), column) for column in columns))
    if on is None:
        raise RefusedError(construct, "needs ON or USING: " + _MULTIPLIES, hint=_PUBLIC_INSTEAD)
    conditions = list(on.flatten()) if isinstance(on, exp.And) else [on]
    pairs = [_pair(condition, alias, construct, resolve) for condition in conditions]
    return Join(name, alias, side == "LEFT", tuple(pairs))


def _pair(condition: Any, alias: str, construct: str, resolve: Callable[[Node], Node]) -> tuple[Node, str]:
    """``expression = alias.column``, either way round."""
    hint = f"write ON data.x = {alias}.key, with AND between several"
    while isinstance(condition, exp.Paren):
        condition = condition.this
    if not isinstance(condition, exp.EQ):
        raise RefusedError(f"{construct}, ON", "takes equalities with the public table's key", hint=hint)
    left, right = convert(condition.this), convert(condition.expression)
    for ours, theirs in ((left, right), (right, left)):
        if isinstance(theirs, Name) and len(theirs.parts) == 2 and theirs.parts[0].casefold() == alias.casefold():
            return resolve(ours), theirs.parts[1]
    raise RefusedError(f"{construct}, ON", "takes equalities with the public table's key", hint=hint)
