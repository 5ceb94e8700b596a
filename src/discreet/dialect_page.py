"""``docs/dialect.md``, made from the catalogue and from the tables of what is refused.

To write it anew: ``python -c "from discreet.dialect_page import page; print(page(), end='')" > docs/dialect.md``
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from discreet.casts import MEANINGS
from discreet.dialect import ENTRIES, FAMILIES
from discreet.schema import Kind
from discreet.sql_refusals import REFUSED_FUNCTIONS, REFUSED_NODES, Refusal
from discreet.sql_relations import REFUSED_CLAUSES, REFUSED_INSIDE

__all__ = ["page"]

_INTRODUCTION = """\
# The dialect

<!-- Made by discreet.dialect_page from the tables that the code itself uses. A test holds them equal. -->

What a query can say, what it means, and where BigQuery differs. Plain SQL and BigQuery's
`SELECT WITH DIFFERENTIAL_PRIVACY` are both read. Two rules hold everywhere:

- No row can make a query fail. Where a value has no meaning (a division by zero, a text that is no number, a whole
  number beyond 64 bits) it is *missing*, that is NULL. A double that is too large is infinite, and bounds clamp it.
- Everything is decided from the registered names and types. A mistake or a refusal costs nothing and reads nothing.

An expression may nest 40 functions and operators, and have 20,000 parts when it is written out for the engine.
Functions of text see the first 1,048,576 characters of a column's value.
"""

_KIND_NAMES = {
    Kind.BOOLEAN: "BOOLEAN",
    Kind.INTEGER: "whole number",
    Kind.DECIMAL: "DECIMAL",
    Kind.FLOAT: "DOUBLE",
    Kind.TEXT: "VARCHAR",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP",
    Kind.TIMESTAMPTZ: "TIMESTAMPTZ",
}


_UNSAID = """\
## What the real questions could not say

Of the 46 questions that the tests ask of 15 real logs and tables, all are answered but for one, and for a column of two
others:
"""

_UNSAID_QUESTIONS = (
    (
        "numpy's commits: median, p95 and largest number of files a commit",
        "an aggregate of an aggregate: a commit's files are a total of rows, and one person may have many commits",
        "a table with one row a commit and its number of files",
    ),
    (
        "restaurant: money spent in the week; PUMS: mean income (each asks for the largest too)",
        "MAX: it is one person's value",
        "a quantile: PERCENTILE_CONT(x, 0.99)",
    ),
)


def page() -> str:
    """The whole page, as Markdown."""
    parts = [_INTRODUCTION]
    for family in FAMILIES:
        rows = [
            (_code(entry.signature), entry.meaning, entry.difference) for entry in ENTRIES if entry.family == family
        ]
        parts.append(f"## {family}\n\n" + _table(("write", "meaning", "difference from BigQuery"), rows))
        if family == "Types":
            parts.append(_casts())
    parts.append(_refusals())
    parts.append(_UNSAID + "\n" + _table(("question", "what cannot be said", "what to ask instead"), _UNSAID_QUESTIONS))
    return "\n".join(parts)


def _casts() -> str:
    rows = [(_KIND_NAMES[a], _KIND_NAMES[b], meaning) for (a, b), meaning in MEANINGS.items()]
    text = "What CAST does, pair by pair. A pair that is not here is refused, with a hint.\n\n"
    return text + _table(("from", "to", "the value"), rows)


def _refusals() -> str:
    merged: dict[tuple[str, str], list[str]] = {}
    inside = [(f"{name} in a derived table", why, instead) for name, why, instead in REFUSED_INSIDE.values()]
    refused: Sequence[Refusal] = (
        *REFUSED_CLAUSES.values(),
        *inside,
        *REFUSED_NODES.values(),
        *REFUSED_FUNCTIONS.values(),
    )
    for construct, why, instead in refused:
        names = merged.setdefault((why, instead), [])
        if construct not in names:
            names.append(construct)
    rows = [(", ".join(names), why, instead) for (why, instead), names in merged.items()]
    text = "## What is refused\n\nAnything that is not on this page is refused too. These are refused by name:\n\n"
    return text + _table(("construct", "why", "what to write instead"), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(_cell(text) for text in line) + " |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("\n", " ").replace("|", "\\|")


def _code(text: str) -> str:
    """Examples, of which `; ` stands between two, each in code quotes."""
    return "<br>".join(f"`` {part} ``" if "`" in part else f"`{part}`" for part in text.split("; "))
