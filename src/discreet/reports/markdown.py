"""A deployment as Markdown, for people: complete; what is long can be folded away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from discreet.deployment import DataSet, Deployment, Release, Step, name_of
from discreet.exact import decimal_text
from discreet.formats import as_markdown, escape_markdown, render_markdown
from discreet.ledger import Kind, State
from discreet.reports.statements import (
    NOT_PROTECTED,
    accounting,
    evaluation,
    guarantee,
    loss_text,
    post_processing,
    settings,
    units,
)

__all__ = ["render"]

_LONG = 20  # rows of a table that is folded away


def render(found: Deployment) -> str:
    """The whole report."""
    parts = [
        f"# Private releases about {escape_markdown(found.name)}",
        f"Made by {found.software} on {_time(found.time)} from the ledger alone. Every statistic below is noisy: no "
        "exact total stands here.",
        "## The promise",
        guarantee(found),
        _facts(_promise(found)),
        *_over_time(found),
        *_schemas(found),
        f"## Releases: {len(found.releases)}",
    ]
    if not found.releases:
        parts.append("Nothing has been asked yet.")
    for release in found.releases:
        parts += _release(release, several=len(found.datasets) > 1)
    parts += [
        "## After the noise",
        post_processing(found),
        "## What is not protected",
        "\n".join(f"- *{what}.* {why}" for what, why in NOT_PROTECTED),
        "## What NIST SP 800-226 asks to be stated",
        _facts(evaluation(found), ("topic", "stated")),
        "## The ledger's head",
        f"```text\n{found.head}\n```",
        f"The hash of the newest of the ledger's {found.entries:,} entries, all of which were checked. Keep it "
        f"elsewhere: "
        "`discreet budget --head HASH` notices a ledger that was cut, rolled back or replaced since.",
    ]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _time(text: str) -> str:
    return text[:19].replace("T", " ") + " UTC"


def _facts(rows: Sequence[tuple[str, str]], headers: tuple[str, str] = ("", "")) -> str:
    return render_markdown(headers, rows, [False, False])


def _folded(summary: str, table: str, rows: int) -> str:
    """A table, folded away if it is long."""
    if rows <= _LONG:
        return table
    return f"<details>\n<summary>{summary}</summary>\n\n{table.rstrip()}\n\n</details>"


def _promise(found: Deployment) -> list[tuple[str, str]]:
    budget, balance = found.budget, found.balance
    rows = [("data", ", ".join(_registered(one) for one in found.datasets) or "not registered")]
    if budget is None or balance is None:
        return [*rows, ("budget", "not set")]
    now = f" in {balance.window}" if balance.window else ""
    rows += [
        ("privacy unit", units(found)),
        ("neighbours", budget.relation),
        ("guarantee", "pure epsilon-DP" if found.is_pure else "(epsilon, delta)-DP"),
        ("total", loss_text(balance.total) + (f", {budget.window!s}" if balance.window else "")),
        ("spent", loss_text(balance.spent) + now),
        ("left", loss_text(balance.left) + now),
    ]
    if balance.basic is not None:
        rows.append(("sum of the losses", loss_text(balance.basic)))
    if balance.in_all is not None:
        rows.append(("spent in all windows", f"{loss_text(balance.in_all)}; that sum has no bound"))
    rows += [
        ("accounting", accounting(found)),
        ("model", "central: the owner is trusted, analysts and readers are not"),
    ]
    if found.shared_by:
        rows.append(("budget shared by", ", ".join(map(name_of, found.shared_by))))
    return rows


def _registered(one: DataSet) -> str:
    versions = [f"version {number} registered {_time(time)}" for number, time in one.versions[-1:]]
    return one.name + (f" ({versions[0]})" if versions else "")


def _over_time(found: Deployment) -> Iterator[str]:
    if not found.steps:
        return
    yield "## The budget in time"
    rows = [_step(step, found) for step in found.steps]
    headers = ["entry", "time (UTC)", "what", "by", "cost", "spent in all", "total"]
    yield _folded(f"{len(rows)} entries", render_markdown(headers, rows, [True, *[False] * 6]), len(rows))
    if len(found.shares) > 1:
        shares = [
            [s.analyst or "(not named)", s.window or "no windows", loss_text(s.spent), str(s.queries)]
            for s in found.shares
        ]
        table = render_markdown(["analyst", "window", "spent", "queries"], shares, [False, False, False, True])
        yield "Who spent it:"
        yield _folded(f"{len(shares)} shares", table, len(shares))


_WORDS = {
    Kind.BUDGET: "the owner set the total",
    Kind.RAISE: "the owner raised the total",
    Kind.JOIN: "a data set joined",
    Kind.DEBIT: "a query",
}


def _step(step: Step, found: Deployment) -> list[str]:
    what = f"accounting: {settings(step.says)}" if step.kind is Kind.ACCOUNTING else _WORDS[step.kind]
    if step.kind in (Kind.JOIN, Kind.DEBIT) and found.shared_by:
        what += f": {name_of(step.source)}"
    if step.window:
        what += f", in {step.window}"
    cost = "" if step.loss is None else loss_text(step.loss)
    total = "" if step.total is None else loss_text(step.total)
    return [str(step.entry), step.time[:19].replace("T", " "), what, step.analyst, cost, loss_text(step.spent), total]


def _schemas(found: Deployment) -> Iterator[str]:
    for one in found.datasets:
        if one.registration is None:
            continue
        columns = one.registration.schema.columns
        yield f"## Columns of {escape_markdown(one.name)}"
        yield "As registered: the owner's disclosure. Every refusal, type and grid follows from it."
        table = render_markdown(["column", "type"], [[c.name, str(c.type)] for c in columns], [False, False])
        yield _folded(f"{len(columns)} columns", table, len(columns))


def _release(release: Release, *, several: bool) -> Iterator[str]:
    entry, details = release.entry, release.details
    yield f"### {release.number}. {_time(entry.time)}, ledger entry {entry.number}"
    yield _fenced(entry.query)
    facts = [("cost", "" if entry.loss is None else loss_text(entry.loss))]
    if several:
        facts.append(("data set", name_of(entry.source)))
    facts += [("asked by", entry.analyst or "(not named)"), ("registration", f"version {entry.version}")]
    if entry.limits:
        facts.append(("limits", settings(entry.limits)))
    facts += _declared(details)
    facts.append(("digest of the plan", entry.digest))
    yield _facts(facts)
    if release.answer is None:
        yield f"**No answer.** {_failed(release)}"
        return
    measured = details["measurements"]
    if measured:
        yield "Noise:"
        yield _noise(measured)
    answer = release.answer
    level = decimal_text(answer.confidence * 100)
    count = f"{len(answer):,} group" + ("" if len(answer) == 1 else "s")
    yield f"Answer ({count}; intervals of {level} % for the noise, not for clipping):"
    if len(answer):
        yield _folded(f"All {count}", as_markdown(answer, exact=True), len(answer))
    else:
        yield "No group was released."


def _failed(release: Release) -> str:
    match release.entry.state:
        case State.FAILED:
            return f"It failed: {release.entry.reason}. Its cost stays spent."
        case State.RELEASED:
            return "It was released, but stored in a form that this version of discreet cannot read."
        case _:
            return "It was charged, and is still running, or its process died. Its cost stays spent."


def _declared(details: Any) -> Iterator[tuple[str, str]]:
    if not details:
        return
    for keys in details["keys"]:
        yield "public keys", f"{', '.join(keys['names'])}: {keys['listed']:,} listed"
    chosen = details["group_selection"]
    if chosen is not None:
        released = chosen["released_groups"]
        yield "groups chosen from the data", f"{chosen['why']}; {released:,} passed"
    for table in details["public_tables"]:
        yield "public table", f"{table['name']} ({table['join']} join), content {table['content']}"
    yield "time zone", details["timezone"]
    for one in details["statistics"]:
        sources = ", ".join(str(i + 1) for i in one["from_measurements"])
        yield f"{one['name']}", f"{one['asked']}" + (f", from noise {sources}" if sources else ", no noise")
    if details["picked"]:
        yield "shown", details["picked"]
    yield "software", details["software"]


def _noise(measured: Sequence[Any]) -> str:
    headers = ["", "measured", "bounds", "mechanism", "epsilon", "sensitivity", "scale"]
    rows = []
    for i, one in enumerate(measured, start=1):
        level = f", level {one['level']}" if "level" in one else ""
        unit = f" {one['values_in']}" if "values_in" in one else ""
        sensitivity = Fraction(one["sensitivity"]) * Fraction(one["one_unit_is"])
        rows.append(
            [
                str(i),
                one["measured"] + level,
                " to ".join(one["bounds"]) if "bounds" in one else "",
                one["mechanism"],
                _short(Fraction(one["epsilon"])),
                _short(sensitivity) + unit,
                _short(Fraction(one["scale"]) * Fraction(one["one_unit_is"])) + unit,
            ]
        )
    return render_markdown(headers, rows, [True, False, False, False, True, True, True])


def _short(number: Fraction) -> str:
    return f"{int(number):,}" if number.denominator == 1 else f"{float(number):,.6g}"


def _fenced(query: str) -> str:
    """A query in a fence that it cannot close."""
    fence = "```"
    while fence in query:
        fence += "`"
    return f"{fence}sql\n{query}\n{fence}"
