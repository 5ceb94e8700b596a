"""`discreet budget`: where a source stands, and what was asked of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.cli.arguments import choose
from discreet.cli.output import write_stdout
from discreet.cli.talk import show_loss
from discreet.errors import LedgerError, UsageError

if TYPE_CHECKING:
    from discreet.ledger import Balance, Budget, Entry, Ledger

__all__ = ["FORMATS", "show_budget"]

FORMATS = ("table", "json", "csv")


def show_budget(source: str, *, ledger: str | None, format: str) -> None:
    """Print total, spent, left, unit, relation and history of a source. Reads the ledger only.

    Raises:
        UsageError: the ledger knows no such source.
        LedgerError: there is no ledger, or it cannot be read.
    """
    from discreet.ledger import Ledger, default_path

    choose("--format", format, FORMATS)
    path = default_path() if ledger is None else Path(ledger).expanduser()
    if not path.exists():
        # Looking must not make an empty ledger.
        raise LedgerError(f"the ledger {path}", "does not exist", hint="name another with --ledger or DISCREET_LEDGER")
    with Ledger(path) as book:
        identity = _identity(book, source)
        budget, balance, history = book.budget(identity), book.balance(identity), book.history(identity)
    if not history:
        raise UsageError("source", "is not in this ledger", source, "ask a first query with --budget")
    if format == "json":
        write_stdout(
            json.dumps(_document(identity, budget, balance, history), indent=2, ensure_ascii=False) + "\n",
            machine=True,
        )
    elif format == "csv":
        write_stdout(_csv(history), machine=True)
    else:
        write_stdout(_table(identity, budget, balance, history))


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
