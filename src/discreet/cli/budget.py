"""`discreet budget`: where a source stands, and what was asked of it."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.arguments import choose
from discreet.cli.output import write_stdout
from discreet.cli.policies import dataset_named, find_policy
from discreet.cli.talk import say, show_loss, show_number
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.ledger import Entry, Ledger
    from discreet.policy import BudgetPolicy, Policy

__all__ = ["FORMATS", "opened_ledger", "raise_budget", "show_budget", "whose"]

FORMATS = ("table", "json", "csv", "ndjson")


def show_budget(
    source: str | None,
    *,
    ledger: str | None,
    policy: str | None,
    format: str,
    verify: bool = False,
    head: str | None = None,
) -> None:
    """Print total, spent, left, unit, relation, who spent what, and the history of a source, or of a budget that
    several share. Reads the ledger only. With `verify`, checks all of it first; without a source, then, it prints the
    head alone.

    Args:
        head: a hash that an earlier look printed, kept elsewhere: the ledger must still contain it.

    Raises:
        UsageError: the ledger knows no such source, or `head` is no hash.
        LedgerError: there is no ledger, it cannot be read, or verifying finds it damaged.
    """
    from discreet.cli.budget_views import RENDERED
    from discreet.opening import ledger_of

    choose("--format", format, FORMATS)
    head = None if head is None else _checked_head(head)
    verify = verify or head is not None
    if verify and source is None:
        governing = find_policy(policy)
        place = default_ledger(ledger) if governing is None else ledger_of(governing, ledger)
        with opened_ledger(_Asked(None, place), known=False) as (book, _):
            write_stdout(_verified(book, head) + "\n", machine=True)
        return
    asked = whose(source, ledger, policy)
    with opened_ledger(asked) as (book, identity):
        if verify:
            _verified(book, head)
        seen = book.overview(identity)
        more = _more(book, identity, asked.declared, seen.history)
    write_stdout(RENDERED[format](identity, seen, more), machine=format != "table")


_HASH = re.compile(r"[0-9a-f]{64}")


def _checked_head(text: str) -> str:
    head = text.strip().lower()
    if not _HASH.fullmatch(head):
        raise UsageError("--head", "must be the 64 digits that `discreet budget` prints", text)
    return head


def _verified(book: Ledger, head: str | None) -> str:
    """The head of the ledger, once all of it was checked.

    Raises:
        LedgerError: naming the first thing that is wrong.
    """
    newest = book.verify(head)
    kept = "; the given head is among them" if head is not None else ""
    say(f"verified: all entries of {book.place}, each against its hash, and all sums{kept}")
    say("keep the head elsewhere: `discreet budget --head HASH` notices a ledger that was cut, rolled back or replaced")
    return newest


def raise_budget(
    source: str | None, total: str | None, total_delta: str | None, *, ledger: str | None, policy: str | None
) -> None:
    """Give a source a higher total: the owner's act, which becomes an entry of its own. Under a policy the total is
    what is written there.

    Raises:
        UsageError: no number, a total below the one in force or not the policy's, or a source without a budget.
        LedgerError: as `show_budget`.
    """
    from discreet.exact import parse_delta, parse_epsilon
    from discreet.privacy import PrivacyLoss

    epsilon = None if total is None else parse_epsilon(total, name="budget")
    delta = None if total_delta is None else parse_delta(total_delta, name="the budget's delta")
    asked = whose(source, ledger, policy)
    declared = asked.declared
    if declared is not None:
        _check_written(declared, epsilon, delta)
    elif epsilon is None:
        raise UsageError(
            "--budget", "is required: the new total epsilon", hint=f"discreet budget raise {source} --budget 5"
        )
    with opened_ledger(asked) as (book, identity):
        old = book.budget(identity)
        kept = old.total.delta if old is not None else Fraction(0)
        wanted = PrivacyLoss(epsilon or Fraction(0), kept if delta is None else delta)
        if declared is not None:
            wanted = declared.total
            if old is not None and wanted == old.total:
                hint = f"write the new total there: {declared.path}.epsilon"
                raise UsageError("budget", f"is {show_loss(wanted)} already, as the policy says", hint=hint)
        book.raise_budget(identity, wanted)
        balance = book.balance(identity)
    if balance is not None:
        say(f"raised; total: {show_loss(balance.total)}; left: {show_loss(balance.left)}")


def _check_written(declared: BudgetPolicy, epsilon: Fraction | None, delta: Fraction | None) -> None:
    """A total that is given beside a policy must be the one that stands there."""
    from discreet.exact import decimal_text

    for key, asked, written in (("epsilon", epsilon, declared.total.epsilon), ("delta", delta, declared.total.delta)):
        if asked is not None and asked != written:
            shown = decimal_text(written, digits=30)
            hint = f"write {key} = {decimal_text(asked, digits=30)} there first"
            raise UsageError(f"{declared.path}.{key}", f"is {shown} in the policy, which counts", str(asked), hint)


@dataclass(frozen=True)
class _Asked:
    """Whose budget is meant.

    Attributes:
        source: as written; None where the policy has one budget only.
        ledger: where it lies.
        identity: what the ledger calls a data set or shared budget of the policy; None for another source.
        declared: what the policy says of its budget.
    """

    source: str | None
    ledger: Path | str
    identity: str | None = None
    declared: BudgetPolicy | None = None


def whose(source: str | None, ledger: str | None, policy: str | None) -> _Asked:
    from discreet.opening import ledger_of

    governing = find_policy(policy)
    if governing is not None:
        identity, declared = _declared(governing, source, explicit=policy is not None)
        if declared is not None:
            return _Asked(source, ledger_of(governing, ledger), identity, declared)
    if source is None:
        hint = "discreet budget SOURCE, or a policy: --policy FILE, or discreet.toml in this folder"
        raise UsageError("SOURCE", "is missing: whose budget?", hint=hint)
    return _Asked(source, default_ledger(ledger))


def default_ledger(ledger: str | None) -> Path | str:
    """Where the ledger lies without a policy."""
    from discreet.ledger import default_path
    from discreet.ledger.places import named_place

    return default_path() if ledger is None else named_place(ledger)


@contextlib.contextmanager
def opened_ledger(asked: _Asked, *, known: bool = True) -> Iterator[tuple[Ledger, str]]:
    """The ledger, and what it calls the source or the shared budget. Looking must not make an empty ledger.

    Args:
        known: whether it must know the source.
    """
    from discreet.ledger import Ledger

    with Ledger(asked.ledger, create=False) as book:
        identity = asked.identity or _identity(book, asked.source or "")
        if known and not book.version(identity) and book.budget(identity) is None:
            raise UsageError("source", "is not in this ledger", asked.source, "ask a first query with --budget")
        yield book, identity


def _declared(policy: Policy, name: str | None, *, explicit: bool) -> tuple[str | None, BudgetPolicy | None]:
    """What the ledger calls a data set or shared budget of a policy, and that budget; nothing for what is not its."""
    from discreet.opening import location_of

    if name is None:
        budgets = {dataset.budget.path: dataset for dataset in policy.datasets.values()}
        if len(budgets) > 1:
            known = ", ".join([*policy.budgets, *policy.datasets])
            raise UsageError("SOURCE", f"is missing: whose budget? The policy knows {known}")
        dataset = next(iter(budgets.values()))
        return dataset.budget.account or location_of(dataset).source, dataset.budget
    if name in policy.budgets:
        return policy.budgets[name].account, policy.budgets[name]
    found = dataset_named(policy, name)
    if found is not None:
        return location_of(found).source, found.budget
    if explicit:
        policy.dataset(name)  # refuses, with those there are
    return None, None


def _identity(book: Ledger, source: str) -> str:
    """What the ledger calls the source: the same for a file that is gone since."""
    from discreet.sources import identify, is_address

    if source.startswith(("file:", "frame:", "budget:")) and book.history(source):
        return source
    if is_address(source):
        return source if book.history(source) else identify(source).source
    return "file:" + os.path.realpath(Path(source).expanduser())


def _more(book: Ledger, identity: str, declared: BudgetPolicy | None, history: tuple[Entry, ...]) -> str:
    """About how many more queries fit: such as the newest, or of the policy's usual epsilon."""
    from discreet.exact import decimal_text
    from discreet.privacy import PrivacyLoss

    losses = [entry.loss for entry in history if entry.kind == "debit" and entry.loss is not None]
    if declared is not None and declared.usual_epsilon is not None:
        loss = PrivacyLoss(declared.usual_epsilon)
    elif losses:
        loss = losses[-1]
    else:
        return ""
    more = book.how_many_more(identity, loss)
    if more is None:
        return ""
    return (
        f"about {show_number(more)} more {'query' if more == 1 else 'queries'} of epsilon {decimal_text(loss.epsilon)}"
    )
