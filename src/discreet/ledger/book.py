"""The ledger as the rest of the house uses it: register, set a budget, debit, record, tell.

What each method does inside its transaction stands in `owner_acts`, `queries` and `history`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from discreet.errors import UsageError
from discreet.exact import decimal_text, parse_delta, parse_epsilon
from discreet.ledger import chain, history, owner_acts, queries
from discreet.ledger.accounting import how_many, renewed, weight, window_at
from discreet.ledger.accounts import account_of, budget_in_force, members_of, registered, standing_in_force, version_of
from discreet.ledger.chain import NoLedgerError
from discreet.ledger.checking import Check
from discreet.ledger.places import open_store
from discreet.ledger.records import Balance, Budget, Caps, Entry, Failure, Kind, Method, Overview, Share, Window
from discreet.ledger.refusals import json_text, valid_loss, valid_text
from discreet.privacy import RELATION, LaplaceVector, PrivacyLoss
from discreet.schema import Registration

__all__ = ["Ledger", "existing_ledger"]


def _now() -> datetime:
    return datetime.now(UTC)


class Ledger:
    """A ledger, opened; made if it is missing. Use it in a `with` statement, or `close` it.

    Threads may share one; a child after a fork may go on using its parent's. Every method raises LedgerError
    if the ledger cannot be read, written or trusted, and in that case has changed nothing that counts less.

    Args:
        path: of the file (``~`` is the home folder), or the address of a PostgreSQL database,
            ``postgresql://USER@HOST/DATABASE``.
        timeout: how many seconds to wait for other writers before giving up.
        clock: gives the time for new entries, with its zone.
        create: make the ledger if it is missing.

    Raises:
        LedgerError: if it is not a ledger, missing and not to be made, damaged, locked, full, read-only, out of reach,
            not durable or of a newer version.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        timeout: float = 10.0,
        clock: Callable[[], datetime] = _now,
        create: bool = True,
    ) -> None:
        if not 0 <= timeout <= 86_400:  # refuses NaN too
            raise UsageError("timeout", "must be a number of seconds from 0 to 86400", timeout)
        self._clock = clock
        self._store = open_store(path, timeout, create=create)

    @property
    def path(self) -> Path | None:
        """Where the file lies: absolute, links followed. None where the ledger is on a server."""
        return self._store.path

    @property
    def place(self) -> str:
        """How people call it: the file's path, or the address of the database without its password."""
        return self._store.place

    def close(self) -> None:
        """Let it go. Closing twice is fine."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.place!r})"

    # --- registrations ---------------------------------------------------------------------------------

    def registration(self, source: str) -> Registration | None:
        """What the owner disclosed about a source, newest version, or None."""
        found = self.registered(source)
        return None if found is None else found[0]

    def registered(self, source: str) -> tuple[Registration, int] | None:
        """`registration` and `version` of one moment, or None."""
        with self._store.reading() as entries:
            row = registered(entries, source)
        return None if row is None else (Registration.from_json(json.loads(row["content"])), int(row["version"]))

    def version(self, source: str) -> int:
        """The version of the newest registration: 1, 2, ...; 0 if there is none."""
        with self._store.reading() as entries:
            return version_of(entries, source)

    def register(self, registration: Registration, *, first: bool = False, fingerprint: str = "") -> int:
        """Store what the owner discloses about a source; the newest counts. Answers given under older
        versions are no longer replayed.

        Args:
            first: only if there is none yet. Of several processes that meet a source for the first time, one
                registers it; the others must read back what counts.
            fingerprint: of what the source holds, under a key that is not in the ledger; "" if there is none.

        Returns:
            The version in force.
        """
        source, content = (
            valid_text("source", registration.source),
            json_text("registration", registration.to_json() | ({"fingerprint": fingerprint} if fingerprint else {})),
        )
        with self._store.writing() as entries:
            return owner_acts.register(entries, self._now(), source, content, first=first)

    def fingerprints(self) -> dict[str, str]:
        """The fingerprint of each source's newest registration, where there is one. For the owner's eyes only: whether
        two are the same depends on the data."""
        with self._store.reading() as entries:
            # By the index of registrations; a later one of a source replaces the one before.
            found = {row["source"]: json.loads(row["content"]) for row in chain.rows(entries, "e.kind = 'register'")}
        return {source: str(said["fingerprint"]) for source, said in found.items() if "fingerprint" in said}

    # --- budgets ---------------------------------------------------------------------------------------

    def account(self, source: str) -> str:
        """The account that a source charges: the one it joined, else its own, which is called as the source is."""
        with self._store.reading() as entries:
            return account_of(entries, source)

    def accounts(self) -> tuple[str, ...]:
        """Every account that has a budget, in the order in which they were set."""
        with self._store.reading() as entries:
            found = chain.rows(entries, "e.kind IN ('budget', 'raise')")  # as their index has them
            return tuple(row["source"] for row in found if row["kind"] == "budget")

    def budget(self, source: str) -> Budget | None:
        """The budget in force for a source or an account, or None."""
        with self._store.reading() as entries:
            return budget_in_force(entries, account_of(entries, source))

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
        account = valid_text("source", account)
        new = Budget(valid_loss(total), valid_text("unit", unit), valid_text("relation", relation), Window(window))
        with self._store.writing() as entries:
            owner_acts.set_budget(entries, self._now(), account, new)

    def raise_budget(self, account: str, total: PrivacyLoss) -> None:
        """Raise what an account may spend in all: the owner's act, itself an entry. The total in force again
        changes nothing. What a tighter accounting made of the debits so far is reckoned anew for the new total.

        Raises:
            UsageError: if no budget is in force, or `total` is lower in epsilon or delta.
        """
        account, total = valid_text("source", account), valid_loss(total)
        with self._store.writing() as entries:
            owner_acts.raise_budget(entries, self._now(), account, total)

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
        account, method = valid_text("source", account), Method(method)
        if (epsilon_per_query is None) is (method is Method.PLD):
            raise UsageError("epsilon_per_query", "belongs to accounting 'pld', which needs it", epsilon_per_query)
        epsilon = None if epsilon_per_query is None else parse_epsilon(epsilon_per_query, name="epsilon_per_query")
        selections = parse_delta(delta_for_groups, name="delta_for_groups")
        with self._store.writing() as entries:
            owner_acts.set_accounting(entries, self._now(), account, method, selections, epsilon)

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
        source, account = valid_text("source", source), valid_text("account", account)
        dataset = valid_text("dataset", dataset)
        with self._store.writing() as entries:
            owner_acts.join(entries, self._now(), source, account, dataset)

    def governed(self, source: str) -> str | None:
        """What the owner's policy calls a source that is asked through one only; None for others."""
        with self._store.reading() as entries:
            joined = chain.newest(entries, "e.source = ? AND e.kind = 'join'", source)
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
        source, loss = valid_text("source", source), valid_loss(loss)
        if vectors is not None and sum((v.epsilon for v in vectors), Fraction(0)) > loss.epsilon:
            raise UsageError("vectors", "must not cost more than the query", decimal_text(loss.epsilon))
        fields = {
            "analyst": valid_text("analyst", analyst),
            "query": valid_text("query", query),
            "digest": valid_text("digest", digest),
            "unit": valid_text("unit", unit),
            "relation": valid_text("relation", relation),
            "content": json_text("limits", dict(limits)),
        }
        with self._store.writing() as entries:
            return queries.debit(
                entries, self._now(), source, loss, fields, vectors=vectors, version=version, caps=caps
            )

    def record_release(self, entry: int, answer: Mapping[str, Any]) -> None:
        """Store the answer of a debited query, before anyone sees it.

        Args:
            entry: what `debit` gave.
            answer: plain JSON values; noisy ones only.

        Raises:
            UsageError: if the entry is not a debit or has an outcome already.
        """
        self._record(entry, Kind.RELEASED, json_text("answer", dict(answer)))

    def record_failure(self, entry: int, reason: Failure) -> None:
        """Note that a debited query gave no answer; its cost stays spent.

        Raises:
            UsageError: if the entry is not a debit or has an outcome already, or the reason is not a Failure.
        """
        if reason not in tuple(Failure):
            raise UsageError("reason", f"must be one of: {', '.join(Failure)}")
        self._record(entry, Kind.FAILED, json_text("reason", str(reason)))

    def stored_answer(self, source: str, version: int, digest: str) -> Entry | None:
        """The newest released query with this digest under this version of the registration, or None; None too if
        that version is no longer in force. Its `answer` may be given again at no cost."""
        with self._store.reading() as entries:
            return history.stored_answer(entries, source, version, digest)

    # --- looking back ----------------------------------------------------------------------------------

    def balance(self, source: str) -> Balance | None:
        """Where the account of a source stands, or None while it has no budget. The time does not grow with the
        history."""
        with self._store.reading() as entries:
            return history.balance(entries, source, self._now())

    def how_many_more(
        self, source: str, loss: PrivacyLoss, vectors: Sequence[LaplaceVector] | None = None
    ) -> int | None:
        """About how many more queries like this one the account of a source takes; None while it has no budget. (About:
        others may ask too, and the owner may limit an analyst. A million stands for all that is more.)

        Args:
            loss, vectors: as for `debit`.
        """
        loss = valid_loss(loss)
        with self._store.reading() as entries:
            account = account_of(entries, source)
            budget = budget_in_force(entries, account)
            standing = standing_in_force(entries, account)
        if budget is None:
            return None
        if budget.accounting.epsilon not in (None, loss.epsilon):
            return 0
        standing = renewed(standing, window_at(budget.window, self._now()))
        return how_many(budget, standing, loss, weight(budget.accounting, loss, vectors))

    def shares(self, source: str) -> tuple[Share, ...]:
        """What each analyst spent of a source's account in each window: oldest window first, then by name."""
        with self._store.reading() as entries:
            return history.shares(entries, source)

    def members(self, account: str) -> tuple[str, ...]:
        """The sources that joined an account, in that order."""
        with self._store.reading() as entries:
            return members_of(entries, account)

    def history(self, source: str) -> tuple[Entry, ...]:
        """All entries of a source, oldest first; a query's outcome stands with its debit. For the name of a shared
        budget: the entries of all its sources since they joined, and its own."""
        with self._store.reading() as entries:
            return history.history(entries, source)

    def overview(self, source: str) -> Overview:
        """All that the ledger holds about a source, or a budget that sources share, at one moment."""
        with self._store.reading() as entries:
            return history.overview(entries, source, self._now())

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
        check = Check(None if head is None else head.strip().lower())
        with self._store.reading() as entries:
            self._store.check(entries)
        more = True
        while more:
            with self._store.reading() as entries:
                more = check.some(entries)
        return check.newest

    # --- inside ----------------------------------------------------------------------------------------

    def _now(self) -> datetime:
        return self._clock().astimezone(UTC)

    def _record(self, entry: int, kind: Kind, content: str) -> None:
        with self._store.writing() as entries:
            queries.record(entries, self._now(), entry, kind, content)


def existing_ledger(place: Path | str) -> Ledger | None:
    """The ledger at a place, opened, or None if there is none: looking makes none.

    Raises:
        LedgerError: as `Ledger`.
    """
    try:
        return Ledger(place, create=False)
    except NoLedgerError:
        return None
