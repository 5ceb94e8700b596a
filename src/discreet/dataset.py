"""A registered source with its unit, limits and ledger: what `discreet.open` gives, and the command line uses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.bounds import parse_bounds
from discreet.errors import UsageError
from discreet.exact import (
    decimal_text,
    parse_confidence,
    parse_delta,
    parse_epsilon,
    parse_positive_integer,
    parse_rational,
)
from discreet.ledger import Balance, Entry, Ledger
from discreet.owner import Declared
from discreet.plan import Plan, PublicTable, Request
from discreet.planning import make_plan
from discreet.privacy import PrivacyLoss, parse_budget
from discreet.query import Name, Node, Options, Query, names_in, names_in_query, written_name
from discreet.schema import Registration
from discreet.sql import parse, parse_expression
from discreet.timezones import check_zone

if TYPE_CHECKING:
    from discreet.agg import Term
    from discreet.answer import Answer
    from discreet.builder import Builder
    from discreet.estimate import Estimate
    from discreet.policy import DatasetPolicy, Policy
    from discreet.sandwich import Sandwich

__all__ = ["Dataset"]


class Dataset:
    """A private table that can be asked. Made by `discreet.open`; its `repr` shows no data.

    Attributes:
        registration: names and types of its columns, as stored at registration.
        name: what FROM calls it, beside "data".
        notice: one line, if this very opening registered the source; else "".
        policy: the owner's policy that it was opened by, if it was.
    """

    def __init__(
        self,
        registration: Registration,
        ledger: Ledger,
        *,
        version: int,
        name: str,
        unit: tuple[str, ...] | None,
        row_level: bool,
        max_contributions: object,
        max_groups_contributed: object,
        access: object = None,
        notice: str = "",
        declared: DatasetPolicy | None = None,
        policy: Policy | None = None,
        owner: Declared | None = None,
    ) -> None:
        self.registration = registration
        self.name, self.notice, self.policy = name, notice, policy
        self._ledger, self._version, self._access = ledger, version, access
        self._unit, self._row_level = unit, row_level
        self._dataset_policy, self._owner = declared, owner or Declared()
        self._limits = {
            "max_contributions": max_contributions,
            "max_groups_contributed": max_groups_contributed,
        }

    def __reduce__(self) -> NoReturn:
        """A data set is neither pickled nor copied: its ledger is open, and its frame or address private.

        Raises:
            UsageError: always.
        """
        raise UsageError("a data set", "cannot be pickled or copied", hint="open it again with discreet.open")

    def __repr__(self) -> str:
        unit = "one row" if self._row_level else ", ".join(self._unit or ()) or "not set"
        return f"<Dataset {self.name}: {len(self.registration.schema.columns)} columns, privacy unit {unit}>"

    @property
    def ledger_path(self) -> Path | None:
        """Where the ledger's file lies; None where the ledger is on a server."""
        return self._ledger.path

    def close(self) -> None:
        """Let the ledger go. Closing twice is fine."""
        self._ledger.close()

    def select(self, *terms: Term | str) -> Builder:
        """Begin a question in Python: its statistics, from `discreet.agg`, or SQL aggregates as text.

        For example ``data.select(agg.count(), agg.mean("files", bounds=(0, 50))).group_by("action", keys=["A", "M"])
        .release(epsilon=0.5)``. The groups' keys are shown before the statistics.

        Raises:
            UsageError: no statistic, or something else.
        """
        from discreet.builder import Builder, checked_terms

        return Builder(self, checked_terms(terms))

    def query(
        self,
        sql: str,
        *,
        epsilon: object = None,
        delta: object = None,
        keys: Any = None,
        bounds: Mapping[str, Any] | None = None,
        max_contributions: object = None,
        max_groups_contributed: object = None,
        public: Mapping[str, object] | None = None,
        timezone: str = "UTC",
        confidence: object = "0.95",
        analyst: str = "",
        fresh: bool = False,
    ) -> Answer:
        """A private answer. Its whole cost is debited, durably, before the data is read.

        A question that was answered before, with the same limits, bounds, keys and epsilon, gets the stored answer,
        marked as `replayed`: at no cost, and without the data being read.

        Args:
            sql: a SELECT over this one table, which is called ``data`` or by its file's name.
            epsilon: the whole cost of the query, unless its OPTIONS say it.
            delta: for groups chosen from the data, where no keys are listed: the chance that the promise fails,
                such as 1e-6. Part of the cost; not spent where all keys are public.
            keys: for each grouping column or alias, the list of its public values; None is the missing key. A
                tuple of names lists combinations: ``{("a", "b"): [(1, "x"), (2, "y")]}``, and so does a pandas,
                Polars or Arrow table with one column a grouping column. What is listed must be public.
            bounds: for each summed or averaged column (or alias), ``(lower, upper)``.
            max_contributions: rows one unit may weigh; None for what `open` said.
            max_groups_contributed: groups one unit may weigh in COUNT(DISTINCT unit).
            public: tables that everybody may know, by name (files or data frames): the query may join them, on a key
                that is unique in them.
            timezone: in which the dates and hours of moments (TIMESTAMPTZ) are read, whatever the machine's zone is.
            confidence: of the intervals.
            analyst: who asks, for the ledger's history.
            fresh: ask anew, at the whole cost, even if it was answered before.

        Raises:
            UsageError, RefusedError: the query as it stands is not answered; nothing was read or charged.
            BudgetError: too little is left; nothing was read or charged.
            EngineError: the engine failed; the cost stays spent.
        """
        plan = self.plan(
            sql,
            epsilon=epsilon,
            delta=delta,
            keys=keys,
            bounds=bounds,
            max_contributions=max_contributions,
            max_groups_contributed=max_groups_contributed,
            public=public,
            timezone=timezone,
        )
        return self.answer(plan, confidence=parse_confidence(confidence), analyst=analyst, fresh=fresh)

    def answer(
        self,
        plan: Plan,
        *,
        confidence: Fraction,
        analyst: str = "",
        fresh: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> Answer:
        """The answer to a plan that `plan` made: its stored one, unless `fresh`; else debited first, then read.

        `tell` is told what is done now, in words, whenever that changes.

        Raises:
            SourceError: the source is gone; nothing was charged.
            BudgetError, EngineError: as `query`.
        """
        from discreet.engines.choosing import engine_for
        from discreet.release import Charge, release

        if not isinstance(fresh, bool):
            raise UsageError("fresh", "must be True or False", fresh)
        charge = Charge(self._version, analyst)
        if self._dataset_policy is not None:
            budget = self._dataset_policy.budget
            charge = Charge(self._version, analyst, budget.caps(analyst), budget.unit)
        engine = engine_for(plan.registration, self._access)
        return release(plan, self._ledger, engine, confidence, charge, fresh=fresh, tell=tell)

    def estimate(
        self,
        sql: str,
        *,
        epsilon: object = None,
        delta: object = None,
        keys: Any = None,
        bounds: Mapping[str, Any] | None = None,
        max_contributions: object = None,
        max_groups_contributed: object = None,
        public: Mapping[str, object] | None = None,
        timezone: str = "UTC",
        confidence: object = "0.95",
        target: Mapping[str, object] | None = None,
    ) -> Estimate:
        """What the query of the same arguments would cost, and the error to expect. Reads no data, costs nothing.

        Args:
            target: instead of `epsilon`: for names of statistics the half-width wanted at the most. The estimate
                is that of the smallest epsilon which gives all of them; it is `cost.epsilon`.

        Raises:
            UsageError, RefusedError: as `query`; or a target cannot be reached, or not be told without the data.
        """
        from discreet.estimate import estimate
        from discreet.outlook import ANY_EPSILON, epsilon_for

        level = parse_confidence(confidence)
        if target is not None:
            if epsilon is not None or parse(sql).options.epsilon is not None:
                raise UsageError("target", "finds the epsilon, so no other can be said", hint="leave epsilon out")
            plan = self.plan(
                sql,
                epsilon=ANY_EPSILON,
                delta=delta,
                keys=keys,
                bounds=bounds,
                max_contributions=max_contributions,
                max_groups_contributed=max_groups_contributed,
                public=public,
                timezone=timezone,
            )
            epsilon = epsilon_for(plan, _mapping("target", target), level)

        plan = self.plan(
            sql,
            epsilon=epsilon,
            delta=delta,
            keys=keys,
            bounds=bounds,
            max_contributions=max_contributions,
            max_groups_contributed=max_groups_contributed,
            public=public,
            timezone=timezone,
        )
        balance = self.balance()
        left = None if balance is None else balance.left
        return estimate(plan, left, level, self.how_many_more(plan))

    def explain(
        self,
        sql: str,
        *,
        epsilon: object = None,
        delta: object = None,
        keys: Any = None,
        bounds: Mapping[str, Any] | None = None,
        max_contributions: object = None,
        max_groups_contributed: object = None,
        public: Mapping[str, object] | None = None,
        timezone: str = "UTC",
        confidence: object = "0.95",
    ) -> Sandwich:
        """The way of the query of the same arguments from rows to answer, as a picture. Reads no data, costs nothing.

        `str` of it is a picture for a terminal; `discreet.pictures.draw` makes an SVG or a PNG of it.

        Raises:
            UsageError, RefusedError: as `query`.
        """
        plan = self.plan(
            sql,
            epsilon=epsilon,
            delta=delta,
            keys=keys,
            bounds=bounds,
            max_contributions=max_contributions,
            max_groups_contributed=max_groups_contributed,
            public=public,
            timezone=timezone,
        )
        return self.sandwich(plan, confidence=parse_confidence(confidence))

    def sandwich(self, plan: Plan, *, confidence: Fraction, budget: PrivacyLoss | None = None) -> Sandwich:
        """The picture of a plan, with the ledger as it stands.

        Args:
            plan: the query's.
            confidence: of the bands.
            budget: to reckon with where none is set yet.
        """
        from discreet.sandwich import sandwich

        balance = self.balance()
        left, total = (balance.left, balance.total) if balance is not None else (budget, budget)
        return sandwich(plan, left, total, confidence, called=self.name)

    def plan(
        self,
        sql: str,
        *,
        epsilon: object = None,
        delta: object = None,
        keys: Any = None,
        bounds: Mapping[str, Any] | None = None,
        max_contributions: object = None,
        max_groups_contributed: object = None,
        public: Mapping[str, object] | None = None,
        timezone: str = "UTC",
    ) -> Plan:
        """The plan of a query, from the stored schema alone."""
        from discreet.public_tables import check_keys
        from discreet.relational_selection import check_sayable

        query = parse(sql)
        self._check_relation(query)
        options = query.options
        loss = _one_of("epsilon", epsilon, options.epsilon)
        if loss is None and self._dataset_policy is not None:
            loss = self._dataset_policy.budget.usual_epsilon
        if loss is None:
            raise UsageError("epsilon", "is required: it says how much privacy the query costs", hint="0.5 is usual")
        allowed = _one_of("delta", delta, options.delta)
        if allowed is None and self._dataset_policy is not None and self._dataset_policy.unknown_groups:
            allowed = self._dataset_policy.budget.default_delta
        rows = _one_of("max_contributions", max_contributions, options.max_contributions)
        groups = _one_of("max_groups_contributed", max_groups_contributed, options.max_groups_contributed)
        request = Request(
            epsilon=parse_epsilon(loss),
            delta=Fraction(0) if allowed is None else parse_delta(allowed),
            unit=self._unit_nodes(options),
            max_contributions=self._limit("max_contributions", rows),
            max_groups_contributed=self._limit("max_groups_contributed", groups),
            min_privacy_units_per_group=_whole("min_privacy_units_per_group", options.min_privacy_units_per_group),
            group_selection_strategy=_strategy(options.group_selection_strategy),
            keys=_keys(keys),
            bounds={
                name: parse_bounds(value, f"bounds of {name!r}") for name, value in _mapping("bounds", bounds).items()
            },
            owner=self._owner,
            public=self._public_tables(query, public),
            timezone=check_zone(timezone),
        )
        self._check_bounds(query, request)
        if self._dataset_policy is not None:
            self._dataset_policy.budget.check_query(request.epsilon)
        names = [*names_in_query(query), *self._owner.columns]
        plan = make_plan(query, self._extended(names, query.relation), request)
        check_sayable(plan)
        if plan.joins:
            check_keys(plan.joins)
        return plan

    def _public_tables(self, query: Query, public: Mapping[str, object] | None) -> dict[str, PublicTable]:
        """Those that the query joins, opened."""
        from discreet.public_tables import open_public

        wanted = {join.table.casefold() for join in query.joins}
        return {
            name: open_public(name, source, self.registration, self._access)
            for name, source in _mapping("public", public).items()
            if name.casefold() in wanted
        }

    def balance(self) -> Balance | None:
        """The budget's total, what is spent and what is left; None while there is no budget."""
        return self._ledger.balance(self.registration.source)

    def how_many_more(self, plan: Plan, analyst: str = "") -> int | None:
        """About how many more queries like this one the budget takes, and the share of an analyst who has one; None
        while there is no budget. A million stands for all that is more."""
        more = self._ledger.how_many_more(self.registration.source, plan.loss, plan.vectors())
        share = self.share(analyst) if analyst else None
        return more if more is None or share is None else min(more, share // plan.loss.epsilon)

    def share(self, analyst: str) -> Fraction | None:
        """What is left of the epsilon that the owner's policy gives one analyst; None where it gives no shares.

        Raises:
            BudgetError: it gives shares, and none to this one.
        """
        if self._dataset_policy is None:
            return None
        most = self._dataset_policy.budget.caps(analyst).analyst
        balance = self.balance()
        if most is None or balance is None:
            return most
        of_all = self._ledger.shares(self.registration.source)
        spent = (one.spent.epsilon for one in of_all if (one.window, one.analyst) == (balance.window, analyst))
        return most - sum(spent, Fraction(0))

    def history(self) -> tuple[Entry, ...]:
        """The ledger's entries of this source, oldest first."""
        return self._ledger.history(self.registration.source)

    def set_budget(self, total: object) -> None:
        """Set the source's total epsilon, or a pair (epsilon, delta), for good, for this privacy unit.

        Raises:
            UsageError: another total or another unit is in force.
        """
        if not self._row_level and self._unit is None:
            raise UsageError("budget", "belongs to a privacy unit", hint="say --unit COLUMN, or --row-level")
        loss = parse_budget(total)
        if self._dataset_policy is not None:
            own = self._dataset_policy.budget
            if loss.epsilon != own.total.epsilon or loss.delta not in (0, own.total.delta):
                rule = f"is epsilon {decimal_text(own.total.epsilon)}, by the owner's policy ({own.path})"
                raise UsageError("budget", rule, str(total))
            return
        self._ledger.set_budget(self.registration.source, loss, unit=self.unit_text())

    def unit_text(self) -> str:
        """The privacy unit in its canonical wording, by which the ledger tells units apart.

        Raises:
            UsageError: no unit was given, or it names an unknown column.
        """
        from discreet.planning import unit_of

        return unit_of(self._unit_nodes(Options()), self._extended().schema).text

    def _unit_nodes(self, options: Options) -> tuple[Node, ...] | None:
        from discreet.planning import unit_of

        declared, schema = self._unit, self._extended().schema
        if options.privacy_unit is not None:
            if self._row_level:
                raise UsageError("privacy_unit_column", "is set, but the source was opened at row level")
            written = self._nodes(options.privacy_unit, "privacy_unit_column")
            if declared is not None and unit_of(written, schema) != unit_of(self._declared(declared), schema):
                # The unit is the owner's: a query can repeat it, not replace it.
                rule = f"must be the source's privacy unit, {', '.join(declared)}"
                raise UsageError("privacy_unit_column", rule, options.privacy_unit)
            return written
        if self._row_level:
            return None
        if declared is None:
            raise UsageError(
                "privacy unit",
                "is required: which column says whose row it is?",
                hint="--unit COLUMN (Python: privacy_unit=), or --row-level (row_level=True) if each row is one person",
            )
        return self._declared(declared)

    def _declared(self, texts: tuple[str, ...]) -> tuple[Node, ...]:
        return tuple(node for text in texts for node in self._nodes(text, "privacy unit"))

    def _nodes(self, text: str, thing: str) -> tuple[Node, ...]:
        """A column's plain name (blanks and all), else a list of expressions."""
        if self.registration.schema.position(text) is not None:
            return (Name((text,)),)
        return parse_expression(text, thing)

    def _extended(self, names: Iterable[str] = (), relation: str = "data") -> Registration:
        """The registration with columns for paths below registered lists and maps of JSON (`events[0].name`):
        those of the privacy unit, then those of `names`."""
        from discreet.sources import extended

        unit = [str(name) for node in self._declared(self._unit or ()) for name in names_in(node)]
        registration = self.registration
        for name in (*unit, *sorted(set(names))):
            plain = [name, *(name.removeprefix(f"{table}.") for table in ("data", relation))]
            if all(registration.schema.position(candidate) is None for candidate in plain):
                found = (extended(registration, candidate) for candidate in dict.fromkeys(plain))
                registration = next((wider for wider in found if wider is not None), registration)
        return registration

    def _limit(self, name: str, asked: object) -> int | None:
        """The analyst may narrow the owner's limit, never widen it."""
        declared = self._limits[name]
        own = None if declared is None else parse_positive_integer(name, declared)
        if asked is None:
            return own
        number = parse_positive_integer(name, asked)
        if own is not None and number > own:
            by = "as the source was opened with"
            if self._dataset_policy is not None and getattr(self._dataset_policy, name) == own:
                by = f"the owner's limit ({self._dataset_policy.path}.{name})"
            raise UsageError(name, f"must be at most {own}, {by}", number)
        return number

    def _check_bounds(self, query: Query, request: Request) -> None:
        """Bounds of a column that this query does not use are fine; of nothing at all, they are a slip."""
        names = [output.name for output in query.outputs]
        known = {*names_in_query(query), *names, *map(written_name, names), *(name for name, _ in query.derived)}
        for name in request.bounds:
            if name not in known and self.registration.schema.position(name) is None:
                raise UsageError("bounds", "must name a column or an output of the query", name)

    def _check_relation(self, query: Query) -> None:
        if query.relation not in ("data", self.name):
            names = "data" if self.name == "data" else f"data or {self.name}"
            raise UsageError("FROM", f"the table is called {names}", query.relation)


def _one_of(name: str, argument: object, written: str | None) -> object:
    """The argument or what OPTIONS says; both only if they agree."""
    if argument is None or written is None:
        return written if argument is None else argument
    if parse_rational(name, argument) != parse_rational(name, written):
        raise UsageError(name, "is given twice, with two values", f"{argument} and {written}")
    return argument


def _whole(name: str, written: str | None) -> int | None:
    return None if written is None else parse_positive_integer(name, written)


_STRATEGIES = ("PUBLIC_GROUPS", "LAPLACE_THRESHOLD")


def _strategy(written: str | None) -> str | None:
    if written is None:
        return None
    strategy = written.strip('"').upper()
    if strategy not in _STRATEGIES:
        raise UsageError("group_selection_strategy", f"must be {' or '.join(_STRATEGIES)}", written)
    return strategy


def _keys(value: object) -> Mapping[str | tuple[str, ...], object]:
    """Listed keys by the name of their grouping column, or combinations by the names of several."""
    from discreet.key_files import is_frame, keys_of_frame

    if value is None:
        return {}
    if is_frame(value):
        names, rows = keys_of_frame(value)
        return {names: rows}
    example = 'keys={"action": ["A", "M"]}, or keys={("a", "b"): [(1, "x"), (2, "y")]}'
    if not isinstance(value, Mapping) or not all(_names_columns(name) for name in value):
        raise UsageError("keys", "must be a dictionary from column names, or a table", value, example)
    return value


def _names_columns(name: object) -> bool:
    return isinstance(name, str) or (
        isinstance(name, tuple) and bool(name) and all(isinstance(part, str) for part in name)
    )


def _mapping(name: str, value: object) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise UsageError(name, "must be a dictionary from column names", value)
    return value
