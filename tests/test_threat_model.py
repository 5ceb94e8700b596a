"""The page of claims: every test it names exists, every rule of the design and every field report has a test."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PAGE = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")

REPORTS = """
02 04 05 07 08 10 11 12 13 15 17 18 20 21 25 26 27 30 31 32 33 34 35 36 38 39 41 42 43 47 48 50 51 53 54 56 57 58 59 60
61 62 63 64 65 66 67 68
"""
"""The field's reports that this project was handed, by number."""


@cache
def named_in(name: str) -> dict[str, str]:
    """A test file's tests, each with its docstring."""
    tree = ast.parse((HERE / name).read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node) or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def test_every_test_that_the_page_names_exists():
    named = re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", PAGE)
    assert len(named) > 40
    for file, test in named:
        assert (HERE / file).is_file(), file
        assert not test or test in named_in(file), f"{file}::{test}"


def test_every_rule_of_the_design_has_a_test_that_names_it():
    said = "\n".join(text for path in HERE.glob("test_*.py") for text in named_in(path.name).values())
    rows = re.findall(r"\| (Design 2\.\d+) \|", PAGE)
    assert rows == [f"Design 2.{i}" for i in range(1, 11)]
    for row in rows:
        assert re.search(re.escape(row) + r"(?!\d)", said), row


def test_every_report_from_the_field_has_a_test_that_names_it():
    text = "\n".join(path.read_text(encoding="utf-8") for path in HERE.glob("test_*.py") if path != Path(__file__))
    for number in REPORTS.split():
        assert re.search(rf"\b[rR]{number}\b|_r{number}_|field_report_{int(number)}_", text), f"R{number}"


def test_the_readme_says_what_is_not_protected():
    """Design 2.10."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = readme.split("## What it does not protect")[1].split("\n## ")[0]
    for word in ("Time, memory", "Wrong declarations", "The computer", "The ledger", "Clipping", "Large epsilons"):
        assert f"*{word}" in section, word
    rows = [row.split("|")[1].strip() for row in PAGE.split("## Not protected")[1].splitlines() if row.startswith("| ")]
    for word in ("time, memory", "wrong declarations", "the computer", "the ledger", "clipping", "large epsilons"):
        assert any(row.startswith(word) for row in rows), word
