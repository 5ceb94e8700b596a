"""The ledger as the rest of the house uses it: register, set a budget, debit, record, tell."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from sqlite3 import Connection
from types import TracebackType
from typing import Any, Self

from discreet.errors import BudgetError, LedgerError, SourceError, UsageError
from discreet.exact import decimal_text, parse_delta, parse_epsilon
from discreet.ledger import chain
from discreet.ledger.accounting import (
    NOTHING,
    Standing,
    Weighable,
    accounting_for,
    charged,
    counted,
    fits,
    how_many,
    renewed,
    standing_of,
    vectors_of,
    vectors_text,
    weight,
    weight_so_far,
    window_at,
)
from discreet.ledger.chain import ACCOUNT, Row, amount
from discreet.ledger.records import (
    Accounting,
    Balance,
    Budget,
    Caps,
    Entry,
    Failure,
    Kind,
    Method,
    Share,
    State,
    Window,
)
from discreet.ledger.store import Store
from discreet.privacy import RELATION, LaplaceVector, PrivacyLoss
from discreet.schema import Registration

__all__ = ["Ledger", "default_path"]

_RAISE = "the owner may raise it with `discreet budget raise`"


def default_path() -> Path:
    """Where the ledger lies unless the caller names one: DISCREET_LEDGER, else the user's state folder."""
    if named := os.environ.get("DISCREET_LEDGER"):
        return Path(named)
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        # The XDG specification tells programs to ignore a path that is not absolute.
        state = Path(os.environ.get("XDG_STATE_HOME", ""))
        base = state if state.is_absolute() else Path.home() / ".local" / "state"
    return base / "discreet" / "ledger.sqlite"


def _now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """A ledger file, opened; made if it is missing. Use it in a `with` statement, or `close` it.

    Threads may share one; a child after a fork may go on using its parent's. Every method raises LedgerError
    if the file cannot be read, written or trusted, and in that case has changed nothing that counts less.

    Args:
        path: the file. ``~`` is the home folder.
        timeout: how many seconds to wait for other writers before giving up.
        clock: gives the time for new entries, with its zone.

    Raises:
        LedgerError: if the file is not a ledger, damaged, locked, full, read-only or of a newer version.
    """

    def __init__(self, path: Path | str, *, timeout: float = 10.0, clock: Callable[[], datetime] = _now) -> None:
        text = os.fspath(path)
        if not text or "\0" in text or "://" in text:
            raise UsageError("ledger", "must be the path of a file", text)
        if not 0 <= timeout <= 86_400:  # refuses NaN too
            raise UsageError("timeout", "must be a number of seconds from 0 to 86400", timeout)
        self._clock = clock
        try:
            # Links are followed now, so that the file and its journal always stand side by side.
            place = Path(text).expanduser().resolve()
        except (OSError, RuntimeError):  # a circle of links; no home folder
            raise LedgerError(f"the ledger {text}", "cannot be found", hint="check the path") from None
        self._store = Store(place, timeout)

    @property
    def path(self) -> Path:
        """Where the file lies: absolute, links followed."""
        return self._store.path

    def close(self) -> None:
        """Let the file go. Closing twice is fine."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    # --- registrations ---------------------------------------------------------------------------------

    def registration(self, source: str) -> Registration | None:
        """What the owner disclosed about a source, newest version, or None."""
        found = self.registered(source)
        return None if found is None else found[0]

    def registered(self, source: str) -> tuple[Registration, int] | None:
        """`registration` and `version` of one moment, or None."""
        with self._store.reading() as connection:
            row = _registered(connection, source)
        return None if row is None else (Registration.from_json(json.loads(row["content"])), int(row["version"]))

    def version(self, source: str) -> int:
        """The version of the newest registration: 1, 2, ...; 0 if there is none."""
        with self._store.reading() as connection:
            return _version(connection, source)

    def register(self, registration: Registration, *, first: bool = False) -> int:
        """Store what the owner discloses about a source; the newest counts. Answers given under older
        versions are no longer replayed.

        Args:
            first: only if there is none yet. Of several processes that meet a source for the first time, one
                registers it; the others must read back what counts.

        Returns:
            The version in force.
        """
        source, content = _text("source", registration.source), _json("registration", registration.to_json())
        with self._store.writing() as connection:
            version = _version(connection, source)
            if first and version:
                return version
            self._append(connection, Kind.REGISTER, source, {"version": version + 1, "content": content})
            return version + 1

    # --- budgets ---------------------------------------------------------------------------------------

    def account(self, source: str) -> str:
        """The account that a source charges: the one it joined, else its own, which is called as the source is."""
        with self._store.reading() as connection:
            return _account(connection, source)

    def accounts(self) -> tuple[str, ...]:
        """Every account that has a budget, in the order in which they were set."""
        with self._store.reading() as connection:
            found = chain.rows(connection, "e.kind IN ('budget', 'raise')")  # as their index has them
            return tuple(row["source"] for row in found if row["kind"] == "budget")

    def budget(self, source: str) -> Budget | None:
        """The budget in force for a source or an account, or None."""
        with self._store.reading() as connection:
            return _budget(connection, _account(connection, source))

    def set_budget(
        self,
        account: str,
        total: PrivacyLoss,
        *,
        unit: str,
        relation: str = RELATION,
        window: Window = Window.NEVER,
    ) -> None:
        """Set what an account may spend in all, and whom that protects: once, for good. Setting what is in
        force already changes nothing.

        Args:
            account: a source, or the name of a budget that sources share.
            total: in all; in each window, if there are any.
            unit, relation: whom the loss is about.
            window: how often the total begins anew.

        Raises:
            UsageError: if another total, unit, relation or window is in force, or `total` is not a budget.
        """
        account = _text("source", account)
        new = Budget(_loss(total), _text("unit", unit), _text("relation", relation), Window(window))
        with self._store.writing() as connection:
            account = _account(connection, account)
            old = _budget(connection, account)
            if old is not None and dataclasses.replace(old, accounting=Accounting()) == new:
                return
            if old is not None:
                _same_promise(account, old, new.unit, new.relation)
                if old.window is not new.window:
                    raise UsageError(f"budget window of {account}", f"is {old.window!s}, set for good", str(new.window))
                raise UsageError(
                    f"budget of {account}", f"is {_show(old.total)}, set for good", _show(new.total), _RAISE
                )
            more = {} if window is Window.NEVER else {"content": _json("window", {"window": str(window)})}
            self._append(
                connection,
                Kind.BUDGET,
                account,
                {**_amount(new.total), "unit": new.unit, "relation": new.relation, **more},
            )

    def raise_budget(self, account: str, total: PrivacyLoss) -> None:
        """Raise what an account may spend in all: the owner's act, itself an entry. The total in force again
        changes nothing. What a tighter accounting made of the debits so far is reckoned anew for the new total.

        Raises:
            UsageError: if no budget is in force, or `total` is lower in epsilon or delta.
        """
        account, total = _text("source", account), _loss(total)
        with self._store.writing() as connection:
            account = _account(connection, account)
            old = _budget(connection, account)
            if old is None:
                raise UsageError(f"budget of {account}", "is not set yet", hint="set it with --budget")
            if not total.covers(old.total):
                raise UsageError(f"budget of {account}", f"is {_show(old.total)} and can only be raised", _show(total))
            if total != old.total:
                self._append(connection, Kind.RAISE, account, _amount(total))
                if old.accounting.method is Method.RENYI:
                    accounting = accounting_for(Method.RENYI, total, old.accounting.selections, None)
                    self._reckon(connection, account, dataclasses.replace(old, total=total, accounting=accounting))

    def set_accounting(
        self,
        account: str,
        method: Method,
        *,
        delta_for_groups: Fraction = Fraction(0),
        epsilon_per_query: Fraction | None = None,
    ) -> None:
        """Set how the losses of an account are added up from now on, those so far included: the owner's act, itself
        an entry. What is in force again changes nothing.

        Args:
            account: a source, or the name of a budget that sources share.
            method: one of `Method`.
            delta_for_groups: RENYI, PLD: the part of the budget's delta that queries with a delta of their own may
                use up. What is left of it is the price of the tighter accounting.
            epsilon_per_query: PLD: what every query costs from now on, no more and no less.

        Raises:
            UsageError: if no budget is in force, it has no delta, `delta_for_groups` is not below it or less than
                what is spent of it, or the method and `epsilon_per_query` do not go together.
            BudgetError: if by the new accounting more would be spent than the total.
        """
        account, method = _text("source", account), Method(method)
        if (epsilon_per_query is None) is (method is Method.PLD):
            raise UsageError("epsilon_per_query", "belongs to accounting 'pld', which needs it", epsilon_per_query)
        epsilon = None if epsilon_per_query is None else parse_epsilon(epsilon_per_query, name="epsilon_per_query")
        selections = parse_delta(delta_for_groups, name="delta_for_groups")
        with self._store.writing() as connection:
            account = _account(connection, account)
            budget = _budget(connection, account)
            if budget is None:
                raise UsageError(f"budget of {account}", "is not set yet", hint="set it with --budget")
            if method is Method.BASIC:
                selections = Fraction(0)
            elif selections >= budget.total.delta:
                raise UsageError(
                    f"accounting of {account}",
                    f"by {method!s} needs a delta: the budget's is {decimal_text(budget.total.delta, digits=30)}, and "
                    f"{decimal_text(selections, digits=30)} of it is for groups",
                    hint="raise the budget's delta (1e-6 is usual), or keep accounting 'basic'",
                )
            accounting = accounting_for(method, budget.total, selections, epsilon)
            if accounting != budget.accounting:
                self._reckon(connection, account, dataclasses.replace(budget, accounting=accounting))

    def _reckon(self, connection: Connection, account: str, budget: Budget) -> None:
        """Put a budget's accounting in force: its state is reckoned from all debits of the window. O(their number)."""
        now, accounting = self._now(), budget.accounting
        standing = renewed(_standing(connection, account), self._window(budget, now))
        so_far = weight_so_far(accounting, _debits_in_window(connection, account, standing.window))
        after = dataclasses.replace(standing, divergence=so_far.divergence, equal=so_far.equal)
        spent = counted(budget, after)
        if not fits(budget, after):
            raise BudgetError(
                f"accounting of {account}",
                f"by {accounting.method!s} would leave {_show(spent, True)} spent of {_show(budget.total, True)}",
                hint="raise the budget first, or leave more of its delta for groups",
            )
        said: dict[str, str] = {
            "accounting": str(accounting.method),
            "delta_for_groups": str(accounting.selections),
        }
        if accounting.order is not None:
            said["order"] = str(accounting.order)
        if accounting.epsilon is not None:
            said["epsilon_per_query"] = decimal_text(accounting.epsilon)
        fields = {"content": _json("accounting", said)}
        self._append(connection, Kind.ACCOUNTING, account, fields, standing=after, time=now)

    def join(self, source: str, account: str, *, dataset: str = "") -> None:
        """Let a source charge an account that it may share with others: the owner's act, once, for good. What the
        source has spent on its own account comes along. Joining again changes nothing.

        Args:
            source: the source.
            account: a shared budget's, or the source's own.
            dataset: what the owner's policy calls the source. From then on it is asked through a policy only.

        Raises:
            UsageError: if the source charges another account by now, the account has no budget, or the two are
                about different units or relations.
            BudgetError: if the account cannot take what the source has spent.
        """
        source, account = _text("source", source), _text("account", account)
        more = {"content": _json("dataset", {"dataset": _text("dataset", dataset)})} if dataset else {}
        with self._store.writing() as connection:
            joined = chain.newest(connection, "e.source = ? AND e.kind = 'join'", source)
            in_force = _account(connection, source)
            if account == in_force:
                if dataset and joined is None:
                    self._append(connection, Kind.JOIN, source, more)
                return
            if in_force != source:
                raise UsageError(f"budget of {source}", f"is {in_force}, shared for good", account)
            if _account(connection, account) != account or _members(connection, source):
                raise UsageError("a shared budget", "cannot be part of another", account)
            budget, own = _budget(connection, account), _budget(connection, source)
            if budget is None:
                raise UsageError(f"budget of {account}", "is not set yet", hint="set it before a source shares it")
            if own is not None:
                _same_promise(account, budget, own.unit, own.relation)
            brought = _standing(connection, source)
            now = self._now()
            standing = renewed(_standing(connection, account), self._window(budget, now))
            added = weight_so_far(budget.accounting, _debits_of_its_own(connection, source))
            after = charged(standing, brought.spent, added, queries=brought.queries)
            if not fits(budget, after):
                raise _too_little(account, budget, standing, brought.spent)
            fields = {"account": account, **_amount(brought.spent), **more}
            self._append(connection, Kind.JOIN, source, fields, standing=after, time=now)

    def governed(self, source: str) -> str | None:
        """What the owner's policy calls a source that is asked through one only; None for others."""
        with self._store.reading() as connection:
            joined = chain.newest(connection, "e.source = ? AND e.kind = 'join'", source)
        if joined is None or joined["content"] is None:
            return None
        return str(json.loads(joined["content"])["dataset"])

    # --- queries ---------------------------------------------------------------------------------------

    def debit(
        self,
        source: str,
        loss: PrivacyLoss,
        *,
        unit: str,
        query: str,
        digest: str,
        limits: Mapping[str, Any],
        vectors: Sequence[LaplaceVector] | None = None,
        analyst: str = "",
        relation: str = RELATION,
        version: int | None = None,
        caps: Caps = Caps(),  # noqa: B008 - a frozen value
    ) -> int:
        """Charge a query's whole cost, before anything is read. When this returns, the charge is on the disk,
        and it is never refunded.

        Args:
            unit, relation: whom the loss is about; those of the budget.
            query: in its canonical form.
            digest: of the plan: the same question has the same digest.
            limits: what bounds the sensitivity, as plain JSON values.
            vectors: all that the answer is computed from; None where that is more than noisy vectors.
            version: of the registration that the plan was made from; None: the newest.
            caps: what the owner's policy allows this query and this analyst.

        Returns:
            The number of the entry, for `record_release` or `record_failure`.

        Raises:
            BudgetError: if there is no budget, too little is left, or a cap is reached. Nothing is charged.
            UsageError: if the budget is about another unit or relation, or a value is not valid.
            SourceError: if the source was registered anew since `version`.
        """
        source, loss = _text("source", source), _loss(loss)
        if vectors is not None and sum((v.epsilon for v in vectors), Fraction(0)) > loss.epsilon:
            raise UsageError("vectors", "must not cost more than the query", decimal_text(loss.epsilon))
        fields = {
            "analyst": _text("analyst", analyst),
            "query": _text("query", query),
            "digest": _text("digest", digest),
            "unit": _text("unit", unit),
            "relation": _text("relation", relation),
            "content": _json("limits", dict(limits)),
            "vectors": vectors_text(vectors),
        }
        with self._store.writing() as connection:
            account = _account(connection, source)
            budget = _budget(connection, account)
            if budget is None:
                raise BudgetError(
                    f"budget of {account}",
                    "is not set, and nothing is answered without one",
                    hint="set it once, for good, with --budget (for example --budget 3)",
                )
            _same_promise(account, budget, unit, relation)
            in_force = _version(connection, source)
            if version not in (None, in_force):
                raise SourceError(source, "was registered anew while the query was planned", hint="ask again")
            now = self._now()
            standing = renewed(_standing(connection, account, analyst), self._window(budget, now))
            after = charged(standing, loss, weight(budget.accounting, loss, vectors))
            _check_epsilon(account, budget.accounting, loss)
            _check_caps(account, caps, loss, standing, after, analyst)
            if not fits(budget, after):
                raise _too_little(account, budget, standing, loss)
            return self._append(
                connection,
                Kind.DEBIT,
                source,
                {
                    **fields,
                    **_amount(loss),
                    "version": in_force,
                    "account": None if account == source else account,
                    "analyst_epsilon": decimal_text(after.by_analyst.epsilon),
                    "analyst_delta": str(after.by_analyst.delta),
                },
                standing=after,
                time=now,
            )

    def record_release(self, entry: int, answer: Mapping[str, Any]) -> None:
        """Store the answer of a debited query, before anyone sees it.

        Args:
            entry: what `debit` gave.
            answer: plain JSON values; noisy ones only.

        Raises:
            UsageError: if the entry is not a debit or has an outcome already.
        """
        self._record(entry, Kind.RELEASED, _json("answer", dict(answer)))

    def record_failure(self, entry: int, reason: Failure) -> None:
        """Note that a debited query gave no answer; its cost stays spent.

        Raises:
            UsageError: if the entry is not a debit or has an outcome already, or the reason is not a Failure.
        """
        if reason not in tuple(Failure):
            raise UsageError("reason", f"must be one of: {', '.join(Failure)}")
        self._record(entry, Kind.FAILED, _json("reason", str(reason)))

    def stored_answer(self, source: str, version: int, digest: str) -> Entry | None:
        """The newest released query with this digest under this version of the registration, or None. Its
        `answer` may be given again at no cost."""
        with self._store.reading() as connection:
            outcome = chain.newest(
                connection,
                "e.kind = 'released' AND e.subject IN (SELECT number FROM entries"
                " WHERE kind = 'debit' AND source = ? AND version = ? AND digest = ?)",
                source,
                version,
                digest,
            )
            debit = outcome and chain.newest(connection, "e.number = ?", outcome["subject"])
        return None if outcome is None or debit is None else _entry(debit, outcome)

    # --- looking back ----------------------------------------------------------------------------------

    def balance(self, source: str) -> Balance | None:
        """Where the account of a source stands, or None while it has no budget. The time does not grow with the
        history."""
        with self._store.reading() as connection:
            account = _account(connection, source)
            budget = _budget(connection, account)
            standing = _standing(connection, account)
        if budget is None:
            return None
        standing = renewed(standing, self._window(budget))
        spent = counted(budget, standing)
        return Balance(
            total=budget.total,
            spent=spent,
            left=_minus(budget.total, spent),
            queries=standing.queries,
            window=standing.window,
            in_all=None if budget.window is Window.NEVER else standing.spent,
            basic=None if budget.accounting.method is Method.BASIC else standing.in_window,
        )

    def how_many_more(
        self, source: str, loss: PrivacyLoss, vectors: Sequence[LaplaceVector] | None = None
    ) -> int | None:
        """About how many more queries like this one the account of a source takes; None while it has no budget. (About:
        others may ask too, and the owner may limit an analyst. A million stands for all that is more.)

        Args:
            loss, vectors: as for `debit`.
        """
        loss = _loss(loss)
        with self._store.reading() as connection:
            account = _account(connection, source)
            budget = _budget(connection, account)
            standing = _standing(connection, account)
        if budget is None:
            return None
        if budget.accounting.epsilon not in (None, loss.epsilon):
            return 0
        standing = renewed(standing, self._window(budget))
        return how_many(budget, standing, loss, weight(budget.accounting, loss, vectors))

    def shares(self, source: str) -> tuple[Share, ...]:
        """What each analyst spent of a source's account in each window: oldest window first, then by name."""
        with self._store.reading() as connection:
            account = _account(connection, source)
            found: dict[tuple[str, str], Share] = {}
            for row in chain.rows(connection, f"{ACCOUNT} = ? AND e.kind = 'debit'", account):
                who = (row["window"] or "", row["analyst"] or "")
                share = found.get(who, Share(*who, NOTHING, 0))
                found[who] = Share(*who, share.spent + amount(row), share.queries + 1)
        return tuple(found[who] for who in sorted(found))

    def members(self, account: str) -> tuple[str, ...]:
        """The sources that joined an account, in that order."""
        with self._store.reading() as connection:
            return _members(connection, account)

    def history(self, source: str) -> tuple[Entry, ...]:
        """All entries of a source, oldest first; a query's outcome stands with its debit. For the name of a shared
        budget: the entries of all its sources since they joined, and its own."""
        with self._store.reading() as connection:
            found = list(chain.rows(connection, f"e.source = ? OR {ACCOUNT} = ?", source, source))
        outcomes = {row["subject"]: row for row in found if row["subject"] is not None}
        return tuple(_entry(row, outcomes.get(row["number"])) for row in found if row["subject"] is None)

    def verify(self, head: str | None = None) -> str:
        """Check every entry against its hash and every running total; reads the whole file.

        Args:
            head: what `verify` gave earlier, kept where a hand that can write the ledger does not reach. With
                it, a ledger that was cut, rolled back or replaced is noticed too; without it, only one whose
                entries contradict each other.

        Returns:
            The hash of the newest entry.

        Raises:
            LedgerError: naming the first thing that is wrong.
        """
        check = chain.Check(None if head is None else head.strip().lower())
        with self._store.reading() as connection:
            check.file(connection)
        more = True
        while more:
            with self._store.reading() as connection:
                more = check.some(connection)
        return check.newest

    # --- inside ----------------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC)

    def _window(self, budget: Budget, now: datetime | None = None) -> str:
        """The window we are in, by the clock alone."""
        return "" if budget.window is Window.NEVER else window_at(budget.window, now or self._now())

    def _append(
        self,
        connection: Connection,
        kind: Kind,
        source: str,
        fields: Row,
        *,
        standing: Standing | None = None,
        time: datetime | None = None,
    ) -> int:
        """Add an entry, which carries the standing of its account on."""
        if "account" not in fields:
            account = _account(connection, source)
            fields = {**fields, "account": None if account == source else account}
        if standing is None:
            standing = _standing(connection, fields["account"] or source)
        row = {
            "time": (time or self._now()).isoformat(timespec="milliseconds"),
            "source": source,
            "kind": str(kind),
            "spent_epsilon": decimal_text(standing.spent.epsilon),
            "spent_delta": str(standing.spent.delta),
            "queries": standing.queries,
            **fields,
        }
        if standing.window:
            row["window"] = standing.window
            row["window_epsilon"] = decimal_text(standing.in_window.epsilon)
            row["window_delta"] = str(standing.in_window.delta)
        if standing.divergence:
            row["divergence"] = decimal_text(standing.divergence, digits=18)
        if standing.equal:
            row["equal_queries"] = standing.equal
        return chain.append(connection, row)

    def _record(self, entry: int, kind: Kind, content: str) -> None:
        with self._store.writing() as connection:
            debit = chain.newest(connection, "e.number = ? AND e.kind = 'debit'", entry)
            if debit is None:
                raise UsageError("ledger entry", "must be the number of a debited query", entry)
            outcome = chain.newest(connection, "e.subject = ?", entry)
            if outcome is not None:
                raise UsageError(f"ledger entry {entry}", f"is already recorded as {outcome['kind']}")
            self._append(connection, kind, debit["source"], {"subject": entry, "content": content})


def _registered(connection: Connection, source: str) -> Row | None:
    return chain.newest(connection, "e.source = ? AND e.kind = 'register'", source)


def _version(connection: Connection, source: str) -> int:
    row = _registered(connection, source)
    return 0 if row is None else int(row["version"])


def _account(connection: Connection, source: str) -> str:
    row = chain.newest(connection, "e.source = ? AND e.kind = 'join'", source)
    return source if row is None else row["account"] or source


def _members(connection: Connection, account: str) -> tuple[str, ...]:
    return tuple(row["source"] for row in chain.rows(connection, "e.account = ? AND e.kind = 'join'", account))


def _budget(connection: Connection, account: str) -> Budget | None:
    # The unit, the relation and the window stand in the first of these entries, the total in the newest.
    newest = chain.newest(connection, "e.source = ? AND e.kind IN ('budget', 'raise')", account)
    if newest is None:
        return None
    first = next(chain.rows(connection, "e.source = ? AND e.kind IN ('budget', 'raise')", account))
    set_last = chain.newest(connection, "e.source = ? AND e.kind = 'accounting'", account)
    accounting = Accounting() if set_last is None else chain.accounting_of(set_last)
    return dataclasses.replace(chain.budget_of(first), total=amount(newest), accounting=accounting)


def _debits_in_window(connection: Connection, account: str, window: str) -> Iterator[Weighable]:
    """All that counts in an account's window: its debits, and those that sources brought along when they joined."""
    debits = f"{ACCOUNT} = ? AND coalesce(e.\"window\", '') = ? AND e.kind = 'debit'"
    for row in chain.rows(connection, debits, account, window):
        yield amount(row), vectors_of(row["vectors"]), 1
    joined = "e.account = ? AND coalesce(e.\"window\", '') = ? AND e.kind = 'join'"
    for row in chain.rows(connection, joined, account, window):
        yield from _debits_of_its_own(connection, row["source"])


def _debits_of_its_own(connection: Connection, source: str) -> Iterator[Weighable]:
    """The debits of a source before it joined another account."""
    for row in chain.rows(connection, "e.source = ? AND e.account IS NULL AND e.kind = 'debit'", source):
        yield amount(row), vectors_of(row["vectors"]), 1


def _standing(connection: Connection, account: str, analyst: str | None = None) -> Standing:
    """What an account's newest entry carries; with what an analyst spent of it, if one is named."""
    row = chain.newest(connection, f"{ACCOUNT} = ?", account)
    standing = Standing() if row is None else dataclasses.replace(standing_of(row), by_analyst=NOTHING)
    if analyst is None:
        return standing
    debit = chain.newest(connection, f"{ACCOUNT} = ? AND e.analyst = ? AND e.kind = 'debit'", account, analyst)
    if debit is None:
        return standing
    return dataclasses.replace(standing, by_analyst=renewed(standing_of(debit), standing.window).by_analyst)


def _check_epsilon(account: str, accounting: Accounting, loss: PrivacyLoss) -> None:
    """What PLD accounting rests on: every query costs what was fixed beforehand.

    Raises:
        BudgetError: naming it. Nothing was charged.
    """
    if accounting.epsilon not in (None, loss.epsilon):
        fixed = decimal_text(accounting.epsilon)
        raise BudgetError(
            "epsilon of one query",
            f"is {fixed}, no more and no less, by the accounting of {account} (pld). Nothing was charged",
            decimal_text(loss.epsilon),
            f"ask with epsilon {fixed}",
        )


def _check_caps(account: str, caps: Caps, loss: PrivacyLoss, standing: Standing, after: Standing, analyst: str) -> None:
    """The owner's limits on one query and on one analyst.

    Raises:
        BudgetError: naming the limit. Nothing was charged.
    """
    caps.check_query(loss.epsilon)
    if caps.analyst is not None and after.by_analyst.epsilon > caps.analyst:
        spent, most = standing.by_analyst.epsilon, decimal_text(caps.analyst)
        left = max(caps.analyst - spent, Fraction(0))
        when = f" in {after.window}" if after.window else ""
        raise BudgetError(
            f"share of analyst {analyst!r} of the budget of {account}",
            f"is epsilon {most}{when} by the owner's policy; spent: epsilon {decimal_text(spent)}; left: epsilon "
            f"{decimal_text(left)}; asked: epsilon {decimal_text(loss.epsilon)}. Nothing was charged",
            hint=f"ask for at most epsilon {decimal_text(left)}" if left else "the owner may allow more in the policy",
        )


def _amount(loss: PrivacyLoss) -> dict[str, str]:
    # Every epsilon lies on the grid of 12 decimal places, so its decimal text is exact.
    return {"epsilon": decimal_text(loss.epsilon), "delta": str(loss.delta)}


def _entry(row: Row, outcome: Row | None) -> Entry:
    kind = Kind(row["kind"])
    debit = kind is Kind.DEBIT
    state = None
    if debit:
        state = State.DEBITED if outcome is None else State(outcome["kind"])
    return Entry(
        number=row["number"],
        time=row["time"],
        kind=kind,
        source=row["source"],
        spent=standing_of(row).spent,
        version=row["version"],
        loss=None if row["epsilon"] is None else amount(row),
        analyst=row["analyst"] or "",
        query=row["query"] or "",
        digest=row["digest"] or "",
        unit=row["unit"] or "",
        relation=row["relation"] or "",
        limits=json.loads(row["content"]) if debit or kind is Kind.ACCOUNTING else {},
        state=state,
        answer=json.loads(outcome["content"]) if outcome and state is State.RELEASED else None,
        reason=json.loads(outcome["content"]) if outcome and state is State.FAILED else "",
        account=row["account"] or row["source"],
        window=row["window"] or "",
    )


def _same_promise(source: str, budget: Budget, unit: str, relation: str) -> None:
    """A budget adds up losses about one unit and one relation; a sum over two would promise nothing."""
    for what, mine, given in (
        ("privacy unit", budget.unit, unit),
        ("relation", budget.relation, relation),
    ):
        if mine != given:
            raise UsageError(
                f"budget of {source}",
                f"is about the {what} {mine!r}; losses about another cannot be added to it",
                given,
                hint=f"ask with the {what} of the budget",
            )


def _too_little(account: str, budget: Budget, standing: Standing, asked: PrivacyLoss) -> BudgetError:
    total, spent = budget.total, counted(budget, standing)
    left = _minus(total, spent)
    whole = total.delta > 0 or asked.delta > 0
    if left.epsilon > 0 and (left.delta > 0 or asked.delta == 0):
        hint = f"ask for at most {_show(left, whole)}, or {_RAISE}"
    else:
        hint = _RAISE
    if standing.window:
        hint += f"; it begins anew after {standing.window} ({budget.window!s})"
    when = f" in {standing.window}" if standing.window else ""
    return BudgetError(
        f"budget of {account}",
        f"is {_show(total, whole)}{when}; spent: {_show(spent, whole)}; left: {_show(left, whole)}; "
        f"asked: {_show(asked, whole)}. Nothing was charged",
        hint=hint,
    )


def _minus(a: PrivacyLoss, b: PrivacyLoss) -> PrivacyLoss:
    return PrivacyLoss(a.epsilon - b.epsilon, a.delta - b.delta)


def _show(loss: PrivacyLoss, whole: bool | None = None) -> str:
    text = f"epsilon {decimal_text(loss.epsilon)}"
    with_delta = loss.delta > 0 if whole is None else whole
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if with_delta else text


def _loss(loss: PrivacyLoss) -> PrivacyLoss:
    """The same loss, once it is known to lie on the ledger's grid and above 0.

    Raises:
        UsageError: naming epsilon or delta and the allowed range.
    """
    return PrivacyLoss(parse_epsilon(loss.epsilon), parse_delta(loss.delta))


def _text(name: str, value: str) -> str:
    """A text that can be stored and read back as it is.

    Raises:
        UsageError: for one that is not Unicode text (a stray byte of the command line).
    """
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise UsageError(name, "must be valid Unicode text", ascii(value)) from None
    return value


def _json(name: str, value: object) -> str:
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError):
        raise UsageError(name, "must be made of plain, finite JSON values") from None
