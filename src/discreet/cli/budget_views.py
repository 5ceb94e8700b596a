"""What the ledger holds about a source or a shared budget, as a table, JSON, CSV or JSON lines."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from discreet.answer import loss_texts
from discreet.cli.output import terminal_width
from discreet.cli.talk import show_loss, show_time
from discreet.deployment import name_of
from discreet.exact import decimal_text
from discreet.formats import render_table
from discreet.stored import answer_of, is_readable

if TYPE_CHECKING:
    from discreet.ledger import Entry, Overview, Share

__all__ = ["RENDERED"]


def _as_json(identity: str, seen: Overview, _more: str) -> str:
    return json.dumps(_document(identity, seen), indent=2, ensure_ascii=False) + "\n"


def _document(identity: str, seen: Overview) -> dict[str, Any]:
    budget, balance = seen.budget, seen.balance
    document: dict[str, Any] = {"source": identity, "account": seen.account, "shared_by": list(seen.members)}
    document |= {"privacy_unit": budget and budget.unit, "relation": budget and budget.relation}
    for name in ("total", "spent", "left"):
        document[name] = loss_texts(getattr(balance, name)) if balance is not None else None
    document["queries"] = balance.queries if balance is not None else 0
    if budget is not None and balance is not None:
        document["window"] = {"begins_anew": str(budget.window), "now": balance.window}
        document["spent_in_all_windows"] = balance.in_all and loss_texts(balance.in_all)
        document["accounting"] = str(budget.accounting.method)
        document["sum_of_losses"] = balance.basic and loss_texts(balance.basic)
    document["by_analyst"] = [_share(share) for share in seen.shares]
    document["head"] = seen.head
    document["entries_in_ledger"] = seen.entries
    document["history"] = [{**_entry(entry), "answer": _answer(entry)} for entry in seen.history]
    return document


def _share(share: Share) -> dict[str, Any]:
    return {"analyst": share.analyst, "window": share.window, **loss_texts(share.spent), "queries": share.queries}


def _answer(entry: Entry) -> dict[str, Any] | None:
    """A released answer as its report: rows, intervals, mechanisms."""
    return answer_of(entry).report() if is_readable(entry) else None


def _entry(entry: Entry) -> dict[str, Any]:
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
        "source": entry.source,
        "window": entry.window,
    }


def _as_ndjson(_identity: str, seen: Overview, _more: str) -> str:
    rows = ({**_entry(entry), "answer": _answer(entry)} for entry in seen.history)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _as_csv(_identity: str, seen: Overview, _more: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for i, entry in enumerate(seen.history):
        row = _entry(entry)
        if i == 0:
            writer.writerow(row)
        row["limits"] = _settings(row["limits"])
        writer.writerow(row.values())
    return text.getvalue()


def _settings(said: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in said.items())


def _as_table(identity: str, seen: Overview, more: str) -> str:
    parts = ["\n".join(f"{name:<14}{value}" for name, value in _facts(identity, seen, more)) + "\n"]
    named = {share.analyst for share in seen.shares} - {""}
    if len(named) > 1 or any(share.window for share in seen.shares):
        rows = [[s.analyst or "(not named)", s.window, show_loss(s.spent), str(s.queries)] for s in seen.shares]
        parts.append(_columns(["analyst", "window", "spent", "queries"], rows, {"spent", "queries"}))
    rows = [_cells(entry) for entry in seen.history]
    headers = ["entry", "time (UTC)", "kind", "source", "analyst", "epsilon", "state", "query"]
    if len({entry.source for entry in seen.history}) < 2:
        rows, headers = _without(headers.index("source"), rows, headers)
    if len(named) < 2:
        rows, headers = _without(headers.index("analyst"), rows, headers)
    parts.append(_columns(headers, rows, {"entry", "epsilon"}))
    return "\n".join(parts)


def _facts(identity: str, seen: Overview, more: str) -> list[tuple[str, str]]:
    budget, balance = seen.budget, seen.balance
    facts = [("source", identity)]
    if seen.account != identity:
        facts.append(("budget", f"{name_of(seen.account)}, shared by {len(seen.members)} data sets"))
    if budget is None or balance is None:
        facts.append(("budget", "not set yet (--budget)"))
    else:
        now = f" in {balance.window} ({budget.window!s})" if balance.window else ""
        spent = f"{show_loss(balance.spent)}{now}, queries: {balance.queries}"
        if balance.basic is not None:
            spent += f" (by accounting {budget.accounting.method!s}; the sum is {show_loss(balance.basic)})"
        facts += [
            ("total", show_loss(balance.total) + now),
            ("spent", spent),
            ("left", show_loss(balance.left) + (f" ({more})" if more else "")),
        ]
        if balance.in_all is not None:
            facts.append(("in all", f"{show_loss(balance.in_all)} in all windows; that sum has no bound"))
        facts += [("privacy unit", budget.unit), ("neighbours", budget.relation)]
    return [*facts, ("head", f"{seen.head} (entry {seen.entries})")]


def _cells(entry: Entry) -> list[str]:
    said = _entry(entry)
    what = " ".join(entry.query.split()) or (f"version {entry.version}" if entry.version else entry.unit)
    if entry.kind == "accounting":
        what = _settings(entry.limits)
    state = said["state"] + (f" ({entry.reason})" if entry.reason else "")
    time = show_time(entry.time)
    return [str(entry.number), time, said["kind"], name_of(entry.source), entry.analyst, said["epsilon"], state, what]


def _without(place: int, rows: list[list[str]], headers: list[str]) -> tuple[list[list[str]], list[str]]:
    return [row[:place] + row[place + 1 :] for row in rows], headers[:place] + headers[place + 1 :]


def _columns(headers: list[str], rows: list[list[str]], numeric: set[str]) -> str:
    return render_table(headers, rows, [header in numeric for header in headers], width=terminal_width())


RENDERED: dict[str, Callable[[str, Overview, str], str]] = {
    "table": _as_table,
    "json": _as_json,
    "csv": _as_csv,
    "ndjson": _as_ndjson,
}
"""By --format: of what the ledger calls what was asked about, what it holds, and about how many more queries fit."""
