"""A query in Python, step by step. It is the same frozen query as the SQL that it prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from discreet.agg import Term
from discreet.errors import UsageError
from discreet.key_files import is_frame
from discreet.query import Query
from discreet.query_text import name_text, plain_or_quoted
from discreet.sql import parse, parse_expression
from discreet.sql_expressions import default_name

if TYPE_CHECKING:
    from discreet.answer import Answer
    from discreet.estimate import Estimate
    from discreet.plan import Plan

__all__ = ["Builder", "checked_terms"]


@dataclass(frozen=True)
class Builder:
    """A question that is being put together. Each method gives a new one; nothing is read before `release`.

    Columns stand by their plain names, everything else as SQL expressions. Begin with `Dataset.select`: the data set
    itself is what is asked in the end.
    """

    dataset: Any = field(repr=False)
    terms: tuple[Term | str, ...]
    groups: tuple[tuple[str, str], ...] = ()
    keys: Mapping[Any, Any] | None = None
    joins: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    shown: tuple[int | None, int] = (None, 0)

    def where(self, *conditions: str) -> Builder:
        """Only rows that meet all conditions, such as ``"files > 3"``."""
        texts = tuple(_expression(condition, "where") for condition in conditions)
        return replace(self, conditions=(*self.conditions, *texts))

    def join(self, table: str, on: str, *, left: bool = False) -> Builder:
        """Join a public table, to be given to `release` as ``public={table: file or frame}``.

        Args:
            table: its name.
            on: equalities with its key, such as ``"data.plan = plans.code"``.
            left: keep rows without a counterpart.
        """
        kind = "LEFT JOIN" if left else "JOIN"
        return replace(self, joins=(*self.joins, f"{kind} {name_text(table)} ON {_expression(on, 'join')}"))

    def group_by(self, *groups: str, keys: Any = None, **named: str) -> Builder:
        """One row a group.

        Args:
            groups: columns or expressions.
            keys: the public keys: of one group the list of its keys; of several a dictionary, or a table of their
                combinations. None: they are known (months, conditions), declared by the owner, or chosen from the
                data with a delta.
            named: expressions under names of their own: ``day="DATE(time)"``.
        """
        added = tuple(("", self._row(group, "group_by")) for group in groups)
        added += tuple((name, self._row(group, "group_by")) for name, group in named.items())
        if not added:
            raise UsageError("group_by", "takes at least one column", hint='for example group_by("action", keys=["A"])')
        if keys is not None and not isinstance(keys, Mapping) and not is_frame(keys):
            names = tuple(name or default_name(parse_expression(text, "group_by")[0]) for name, text in added)
            keys = {names[0] if len(names) == 1 else names: keys}
        if is_frame(keys) or not self.keys:
            together = keys if keys is not None else self.keys
        else:
            together = {**self.keys, **(keys or {})}
        return replace(self, groups=(*self.groups, *added), keys=together)

    def having(self, *conditions: str) -> Builder:
        """Only groups whose *noisy* values meet all conditions, such as ``"n > 100"``."""
        return replace(self, filters=(*self.filters, *(_expression(c, "having") for c in conditions)))

    def order_by(self, *terms: str, descending: bool = False) -> Builder:
        """Sort the groups by noisy values or keys; without it they stand in the order of the keys."""
        direction = " DESC" if descending else ""
        return replace(self, order=(*self.order, *(f"{self._row(term, 'order_by')}{direction}" for term in terms)))

    def limit(self, number: int, *, offset: int = 0) -> Builder:
        """Only so many groups, after leaving out `offset`."""
        for name, value in (("limit", number), ("offset", offset)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise UsageError(name, "must be a whole number of at least 0", value)
        return replace(self, shown=(number, offset))

    def sql(self) -> str:
        """The question as SQL."""
        columns = [text + (f" AS {name_text(name)}" if name else "") for name, text in self.groups]
        for term in self.terms:
            if isinstance(term, str):
                columns.append(term)
                continue
            text = term.text(lambda column: self._row(column, "select"))
            # What is computed stands in parentheses, which the outermost does not need.
            text = text[1:-1] if term.template[0] == "(" else text
            columns.append(text + (f" AS {name_text(term.name)}" if term.name else ""))
        lines = [f"SELECT {', '.join(columns)}", "FROM data", *self.joins]
        lines += [f"WHERE {_all_of(self.conditions)}"] if self.conditions else []
        lines += [f"GROUP BY {', '.join(str(i + 1) for i in range(len(self.groups)))}"] if self.groups else []
        lines += [f"HAVING {_all_of(self.filters)}"] if self.filters else []
        lines += [f"ORDER BY {', '.join(self.order)}"] if self.order else []
        number, offset = self.shown
        lines += [] if number is None else [f"LIMIT {number}" + (f" OFFSET {offset}" if offset else "")]
        return "\n".join(lines)

    def query(self) -> Query:
        """The question as the frozen value that planning takes: the one that the SQL means."""
        return parse(self.sql())

    def plan(self, **given: Any) -> Plan:
        """See `Dataset.plan`."""
        plan: Plan = self.dataset.plan(self.sql(), **self._with_keys(given))
        return plan

    def estimate(self, **given: Any) -> Estimate:
        """What it would cost, and the error to expect. Reads no data. See `Dataset.estimate`."""
        estimate: Estimate = self.dataset.estimate(self.sql(), **self._with_keys(given))
        return estimate

    def release(self, **given: Any) -> Answer:
        """The private answer: debited first, then read. Takes what `Dataset.query` takes: epsilon, delta, bounds, ...

        Raises:
            UsageError, RefusedError, BudgetError, EngineError: as `Dataset.query`.
        """
        answer: Answer = self.dataset.query(self.sql(), **self._with_keys(given))
        return answer

    def _with_keys(self, given: dict[str, Any]) -> dict[str, Any]:
        if self.keys is None or "keys" in given:
            return given
        return {**given, "keys": self.keys}

    def _row(self, text: str, thing: str) -> str:
        """A column by its plain name, blanks and all; else an expression."""
        if isinstance(text, str) and self.dataset.registration.schema.position(text) is not None:
            return plain_or_quoted(text)
        return _expression(text, thing)


def checked_terms(terms: Sequence[Term | str]) -> tuple[Term | str, ...]:
    """The statistics of a question.

    Raises:
        UsageError: there is none, or something else.
    """
    example = 'for example data.select(agg.count(), agg.mean("files", bounds=(0, 50)))'
    if not terms:
        raise UsageError("select", "takes at least one statistic", hint=example)
    checked: list[Term | str] = []
    for term in terms:
        if isinstance(term, Term):
            checked.append(term)
        elif isinstance(term, str):
            checked.append(_expression(term, "select"))
        else:
            raise UsageError("select", "takes statistics of discreet.agg, or SQL as text", term, example)
    return tuple(checked)


def _expression(text: str, thing: str) -> str:
    """One SQL expression, which can be put between others.

    Raises:
        UsageError: it is none, or several.
    """
    if not isinstance(text, str):
        raise UsageError(thing, "takes columns and SQL expressions, as text", text)
    found = parse_expression(text, thing)
    # What leaves its parentheses, or hides what follows in a comment, means something else when they are put round it.
    if len(found) != 1 or parse_expression(f"({text})", thing) != found:
        raise UsageError(thing, "takes one expression at a time, without comments", text)
    return text.strip()


def _all_of(conditions: Sequence[str]) -> str:
    return conditions[0] if len(conditions) == 1 else " AND ".join(f"({condition})" for condition in conditions)
