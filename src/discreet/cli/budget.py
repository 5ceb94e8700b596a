"""`discreet budget`: where a source stands, and what was asked of it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.arguments import choose
from discreet.cli.output import write_stdout
from discreet.cli.policies import dataset_named, find_policy
from discreet.cli.talk import say, show_loss, show_number
from discreet.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from discreet.ledger import Balance, Budget, Entry, Ledger
    from discreet.policy import BudgetPolicy, Policy

__all__ = ["FORMATS", "raise_budget", "show_budget"]

FORMATS = ("table", "json", "csv")


def show_budget(source: str | None, *, ledger: str | None, policy: str | None, format: str) -> None:
    """Print total, spent, left, unit, relation and history of a source, or of a budget that several share. Reads the
    ledger only.

    Raises:
        UsageError: the ledger knows no such source.
        LedgerError: there is no ledger, or it cannot be read.
    """
    choose("--format", format, FORMATS)
    asked = _asked(source, ledger, policy)
    with _opened(asked) as (book, identity):
        budget, balance, history = book.budget(identity), book.balance(identity), book.history(identity)
        more = _more(book, identity, asked.declared, history)
    if format == "json":
        write_stdout(
            json.dumps(_document(identity, budget, balance, history), indent=2, ensure_ascii=False) + "\n",
            machine=True,
        )
    elif format == "csv":
        write_stdout(_csv(history), machine=True)
    else:
        write_stdout(_table(identity, budget, balance, history, more))


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
    asked = _asked(source, ledger, policy)
    declared = asked.declared
    if declared is not None:
        _check_written(declared, epsilon, delta)
    elif epsilon is None:
        raise UsageError(
            "--budget", "is required: the new total epsilon", hint=f"discreet budget raise {source} --budget 5"
        )
    with _opened(asked) as (book, identity):
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
    ledger: Path
    identity: str | None = None
    declared: BudgetPolicy | None = None


def _asked(source: str | None, ledger: str | None, policy: str | None) -> _Asked:
    from discreet.ledger import default_path
    from discreet.opening import ledger_of

    governing = find_policy(policy)
    if governing is not None:
        identity, declared = _declared(governing, source, explicit=policy is not None)
        if declared is not None:
            return _Asked(source, ledger_of(governing, ledger), identity, declared)
    if source is None:
        hint = "discreet budget SOURCE, or a policy: --policy FILE, or discreet.toml in this folder"
        raise UsageError("SOURCE", "is missing: whose budget?", hint=hint)
    return _Asked(source, default_path() if ledger is None else Path(ledger).expanduser())


@contextlib.contextmanager
def _opened(asked: _Asked) -> Iterator[tuple[Ledger, str]]:
    """The ledger, and what it calls the source or the shared budget. Looking must not make an empty ledger."""
    from discreet.ledger import Ledger

    if not asked.ledger.exists():
        hint = "a first query makes it; or name another with --ledger or DISCREET_LEDGER"
        raise LedgerError(f"the ledger {asked.ledger}", "does not exist", hint=hint)
    with Ledger(asked.ledger) as book:
        identity = asked.identity or _identity(book, asked.source or "")
        if not book.version(identity) and book.budget(identity) is None:
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
    if source.startswith(("file:", "frame:", "budget:")) and book.history(source):
        return source
    return "file:" + os.path.realpath(Path(source).expanduser())


def _more(book: Ledger, identity: str, declared: BudgetPolicy | None, history: tuple[Entry, ...]) -> str:
    """About how many more queries fit: such as the newest, or of the policy's usual epsilon."""
    from discreet.exact import decimal_text
    from discreet.privacy import PrivacyLoss

    losses = [entry.loss for entry in history if entry.kind == "debit" and entry.loss is not None]
    if declared is not None and declared.default_epsilon is not None:
        loss = PrivacyLoss(declared.default_epsilon)
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


def _document(
    identity: str, budget: Budget | None, balance: Balance | None, history: tuple[Entry, ...]
) -> dict[str, Any]:
    from discreet.exact import decimal_text

    document: dict[str, Any] = {"source": identity, "privacy_unit": None, "relation": None, "queries": 0}
    if budget is not None:
        document |= {"privacy_unit": budget.unit, "relation": budget.relation}
    for name in ("total", "spent", "left"):
        loss = getattr(balance, name, None)
        document[name] = loss and {
            "epsilon": decimal_text(loss.epsilon),
            "delta": decimal_text(loss.delta, digits=30),
        }
    document["queries"] = balance.queries if balance is not None else 0
    document["history"] = [{**_entry(entry), "answer": _answer(entry)} for entry in history]
    return document


def _answer(entry: Entry) -> dict[str, Any] | None:
    """A released answer as its report: rows, intervals, mechanisms."""
    from discreet.stored import answer_of, is_readable

    return answer_of(entry).report() if is_readable(entry) else None


def _entry(entry: Entry) -> dict[str, Any]:
    from discreet.exact import decimal_text

    return {
        "entry": entry.number,
        "time": entry.time,
        "kind": str(entry.kind),
        "state": str(entry.state or ""),
        "epsilon": "" if entry.loss is None else decimal_text(entry.loss.epsilon),
        "delta": "" if entry.loss is None else decimal_text(entry.loss.delta, digits=30),
        "spent": decimal_text(entry.spent.epsilon),
        "analyst": entry.analyst,
        "query": entry.query,
        "limits": dict(entry.limits),
        "reason": entry.reason,
    }


def _csv(history: tuple[Entry, ...]) -> str:
    import csv
    import io

    text = io.StringIO()
    rows = [_entry(entry) for entry in history]
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows[0])
    for row in rows:
        row["limits"] = " ".join(f"{name}={value}" for name, value in row["limits"].items())
        writer.writerow(row.values())
    return text.getvalue()


def _table(identity: str, budget: Budget | None, balance: Balance | None, history: tuple[Entry, ...], more: str) -> str:
    from discreet.formats import render_table

    lines = [f"source        {identity}"]
    if budget is None or balance is None:
        lines.append("budget        not set yet (--budget)")
    else:
        lines += [
            f"total         {show_loss(balance.total)}",
            f"spent         {show_loss(balance.spent)}, queries: {balance.queries}",
            f"left          {show_loss(balance.left)}" + (f" ({more})" if more else ""),
            f"privacy unit  {budget.unit}",
            f"neighbours    {budget.relation}",
        ]
    rows = []
    for entry in history:
        cells = _entry(entry)
        what = " ".join(entry.query.split()) or (f"version {entry.version}" if entry.version else entry.unit)
        state = cells["state"] + (f" ({entry.reason})" if entry.reason else "")
        rows.append([str(entry.number), entry.time[:19] + "Z", cells["kind"], cells["epsilon"], state, what])
    headers = ["entry", "time (UTC)", "kind", "epsilon", "state", "query"]
    return "\n".join(lines) + "\n\n" + render_table(headers, rows, [True, False, False, True, False, False])
