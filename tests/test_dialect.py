"""The catalogue and the code are one: what is listed is accepted, what is accepted is listed; and so is the page."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path

import pytest

from discreet.dialect import ENTRIES, FAMILIES
from discreet.dialect_page import page
from discreet.errors import RefusedError, UsageError
from discreet.sql import parse_expression
from discreet.sql_aggregates import AGGREGATE_NAMES
from discreet.sql_functions import FUNCTIONS
from discreet.sql_refusals import REFUSED_FUNCTIONS, REFUSED_NODES
from discreet.sql_relations import REFUSED_CLAUSES, REFUSED_INSIDE

PAGE = Path(__file__).resolve().parents[1] / "docs" / "dialect.md"
COMMAND = "python -c \"from discreet.dialect_page import page; print(page(), end='')\" > docs/dialect.md"
LISTED = [name for entry in ENTRIES for name in entry.functions]


def test_a_function_is_listed_once_if_it_is_accepted() -> None:
    assert [name for name, times in Counter(LISTED).items() if times > 1] == []
    accepted = set(FUNCTIONS) | AGGREGATE_NAMES
    assert set(LISTED) - accepted == set(), "listed, but not accepted"
    assert accepted - set(LISTED) == set(), "accepted, but not listed in discreet.dialect"


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_function_is_not_unknown_to_the_parser(name: str) -> None:
    """Whatever else is wrong with a call of columns, the function itself is known."""
    for arguments in ("a", "a, b", "a, b, c"):
        with contextlib.suppress(UsageError):
            try:
                parse_expression(f"{name}({arguments})", "the expression")
            except RefusedError as error:
                assert "is not part of the dialect" not in error.rule


def test_every_entry_says_what_it_means() -> None:
    for entry in ENTRIES:
        assert entry.family in FAMILIES
        assert entry.signature and entry.meaning.endswith((".", ":"))
        assert entry.difference == "" or entry.difference.endswith((".", ")"))
        for name in entry.functions:
            described = f"{entry.signature} {entry.meaning} {entry.difference}"
            assert name in described, name
    assert {entry.family for entry in ENTRIES} == set(FAMILIES)


def test_the_page_is_what_the_tables_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), f"write it anew: {COMMAND}"


def test_the_page_names_everything_that_is_refused() -> None:
    text = page().replace("\\|", "|")
    for table in (REFUSED_FUNCTIONS, REFUSED_NODES, REFUSED_CLAUSES, REFUSED_INSIDE):
        for construct, why, instead in table.values():
            assert construct in text and why in text and instead in text
