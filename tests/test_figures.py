"""Each figure that the chapter on the Laplace mechanism names is computed; each picture is what the script draws."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "pictures"
CHAPTERS = [DOCS / "laplace.md", DOCS / "laplace.zh-CN.md"]
MARKED = [page for page in sorted(DOCS.rglob("*.md")) if "<!--=" in page.read_text(encoding="utf-8")]

MARK = re.compile(r"(?P<shown>\S+)(?P<unit>(?:[ \u00a0]%)?(?: b)?)<!--= (?P<expression>[^\n]+?) -->")
NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[ \u00a0]?%)?(?![A-Za-z0-9_⁰¹²³⁴⁵⁶⁷⁸⁹⁻])"
)

CHOSEN = {"95%", "0.1", "0.3", "0.5", "0.01", "3.16"}
"""Figures that are no results: a confidence, epsilons, an allowance, where a picture is, the number of a theorem."""


@cache
def names() -> dict[str, object]:
    sys.path.insert(0, str(DOCS))
    try:
        import figures
    finally:
        sys.path.remove(str(DOCS))
    return {name: getattr(figures, name) for name in figures.__all__}


@cache
def computed(expression: str) -> object:
    return eval(expression, {"__builtins__": {"float": float}}, names())  # noqa: S307 - our own pages


def agrees(shown: str, unit: str, value: object) -> bool:
    """Whether a figure is the value, rounded to as many places as it shows. True stands for a figure whose own
    expression compares."""
    if isinstance(value, bool):
        return value
    text = re.sub(r"^[^\d-]*|%$", "", shown).replace(",", "")
    step = Fraction(1, 10 ** len(text.partition(".")[2]))
    exact = Fraction(value) * (100 if "%" in shown + unit else 1)
    return abs(Fraction(text) - exact) <= step / 2


def marks(page: Path) -> list[re.Match[str]]:
    text = page.read_text(encoding="utf-8")
    found = list(MARK.finditer(text))
    assert len(found) == text.count("<!--="), f"{page.name}: a mark that stands behind no figure"
    return found


def prose(text: str) -> str:
    """A page without its examples, formulas, headings, addresses and marked figures."""
    text = MARK.sub("", text)
    text = re.sub(r"^## Sources.*|^## 参考.*", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^```.*?^```$|^\$\$.*?^\$\$$|^#.*?$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`|\$[^$]*\$|\]\([^)]*\)|\b(19|20)\d\d\b", "", text)


def needs_a_mark(number: str) -> bool:
    """Figures with a point, a per cent sign or more than three digits are somebody's computation."""
    return "." in number or "%" in number or len(number.replace(",", "")) > 3


@pytest.mark.parametrize("page", MARKED, ids=[page.name for page in MARKED])
def test_each_figure_is_the_computed_one(page):
    found = marks(page)
    assert len(found) > (25 if page in CHAPTERS else 0)
    for mark in found:
        value = computed(mark["expression"])
        assert agrees(mark["shown"], mark["unit"], value), f"{page.name}: {mark[0]}: {value}"


@pytest.mark.parametrize("page", CHAPTERS, ids=[page.name for page in CHAPTERS])
def test_no_figure_is_without_a_computation(page):
    found = NUMBER.findall(prose(page.read_text(encoding="utf-8")))
    found = [re.sub(r"\s", "", number) for number in found if needs_a_mark(number)]
    assert set(found) <= CHOSEN


def test_both_chapters_name_the_same_figures():
    here, there = ([mark["expression"] for mark in marks(page)] for page in CHAPTERS)
    assert here == there


@pytest.mark.parametrize(
    ("shown", "unit", "value", "agree"),
    [
        ("4.22", "", 4.2247, True),
        ("4.22", "", 4.2251, False),
        ("4.2", "", 4.2251, True),
        ("63", " %", 0.632, True),
        ("63", " %", 0.64, False),
        ("22,026", "", 22026.47, True),
        ("22,027", "", 22026.47, False),
        ("标准差是1.41", "", 1.4142, True),
        ("约63%", "", 0.632, True),
        ("anything", "", False, False),
    ],
)
def test_the_comparison_of_figures_sees_what_it_should(shown, unit, value, agree):
    assert agrees(shown, unit, value) == agree


@cache
def drawn() -> dict[str, str]:
    """The pictures, drawn anew in a process of their own."""
    code = "import json, make_pictures as m; print(json.dumps(m.all_pictures()))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=DOCS, capture_output=True, text=True, check=True, timeout=120
    )
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_the_pictures_are_what_the_script_draws():
    """Byte for byte: nothing in them is random, and `make docs` leaves them as they are."""
    assert {path.name: path.read_text(encoding="utf-8") for path in PICTURES.glob("laplace-*.svg")} == drawn()


@pytest.mark.parametrize("page", CHAPTERS, ids=[page.name for page in CHAPTERS])
def test_each_picture_is_shown_and_told_in_words(page):
    shown = re.findall(r"!\[([^\]]+)\]\(pictures/([^)]+)\)", page.read_text(encoding="utf-8"))
    language = ".zh-CN" if ".zh-CN" in page.name else ""
    mine = {name for name in drawn() if (".zh-CN" in name) == bool(language)}
    assert {name for _, name in shown if name.startswith("laplace-")} == mine
    assert all(len(words) > 10 for words, _ in shown)


def test_the_look_for_figures_sees_them():
    text = "A 1.5 and 2,000 or 20 % in 2018 of `3.5`, $$not$$ 12 and 3.25<!--= x -->.\n\n```text\n4.5\n```\n中文2.75。"
    assert [number for number in NUMBER.findall(prose(text)) if needs_a_mark(number)] == [
        "1.5",
        "2,000",
        "20 %",
        "2.75",
    ]
