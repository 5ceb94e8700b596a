"""`discreet budget`: where a source stands, and what was asked of it."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.arguments import choose
from discreet.cli.output import write_stdout
from discreet.cli.talk import say, show_loss
from discreet.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from discreet.ledger import Balance, Budget, Entry, Ledger

__all__ = ["FORMATS", "raise_budget", "show_budget"]

FORMATS = ("table", "json", "csv")


def show_budget(source: str, *, ledger: str | None, format: str) -> None:
    """Print total, spent, left, unit, relation and history of a source. Reads the ledger only.

    Raises:
        UsageError: the ledger knows no such source.
        LedgerError: there is no ledger, or it cannot be read.
    """
    choose("--format", format, FORMATS)
    with _known(source, ledger) as (book, identity):
        budget, balance, history = book.budget(identity), book.balance(identity), book.history(identity)
    if format == "json":
        write_stdout(
            json.dumps(_document(identity, budget, balance, history), indent=2, ensure_ascii=False) + "\n",
            machine=True,
        )
    elif format == "csv":
        write_stdout(_csv(history), machine=True)
    else:
        write_stdout(_table(identity, budget, balance, history))


def raise_budget(source: str, total: str | None, *, ledger: str | None) -> None:
    """Give a source a higher total: the owner's act, which becomes an entry of its own.

    Raises:
        UsageError: no number, a total below the one in force, or a source without a budget.
        LedgerError: as `show_budget`.
    """
    from discreet.exact import parse_epsilon
    from discreet.privacy import PrivacyLoss

    if total is None:
        raise UsageError(
            "--budget", "is required: the new total epsilon", hint=f"discreet budget raise {source} --budget 5"
        )
    epsilon = parse_epsilon(total, name="budget")
    with _known(source, ledger) as (book, identity):
        old = book.budget(identity)
        delta = old.total.delta if old is not None else Fraction(0)
        book.raise_budget(identity, PrivacyLoss(epsilon, delta))
        balance = book.balance(identity)
    if balance is not None:
        say(f"raised; total: {show_loss(balance.total)}; left: {show_loss(balance.left)}")


@contextlib.contextmanager
def _known(source: str, ledger: str | None) -> Iterator[tuple[Ledger, str]]:
    """The ledger, and what it calls the source. Looking must not make an empty ledger."""
    from discreet.ledger import Ledger, default_path

    path = default_path() if ledger is None else Path(ledger).expanduser()
    if not path.exists():
        raise LedgerError(f"the ledger {path}", "does not exist", hint="name another with --ledger or DISCREET_LEDGER")
    with Ledger(path) as book:
        identity = _identity(book, source)
        if not book.version(identity) and book.budget(identity) is None:
            raise UsageError("source", "is not in this ledger", source, "ask a first query with --budget")
        yield book, identity


def _identity(book: Ledger, source: str) -> str:
    """What the ledger calls the source: the same for a file that is gone since."""
    if source.startswith(("file:", "frame:")) and book.history(source):
        return source
    return "file:" + os.path.realpath(Path(source).expanduser())


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
    document["history"] = [{**_entry(entry), "answer": entry.answer} for entry in history]
    return document


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


def _table(identity: str, budget: Budget | None, balance: Balance | None, history: tuple[Entry, ...]) -> str:
    from discreet.formats import render_table

    lines = [f"source        {identity}"]
    if budget is None or balance is None:
        lines.append("budget        not set yet (--budget)")
    else:
        lines += [
            f"total         {show_loss(balance.total)}",
            f"spent         {show_loss(balance.spent)}, queries: {balance.queries}",
            f"left          {show_loss(balance.left)}",
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
