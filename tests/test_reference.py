"""The pages of docs/reference/ are what the code says today."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def made() -> ModuleType:
    sys.path.insert(0, str(DOCS))
    try:
        import make_reference
    finally:
        sys.path.remove(str(DOCS))
    return make_reference


@pytest.mark.parametrize("name", ["cli.md", "python.md", "errors.md"])
def test_the_page_is_what_the_code_says(name, made):
    """If this fails, the code says something new: `make docs` writes it down (or python docs/make_reference.py)."""
    assert (DOCS / "reference" / name).read_text(encoding="utf-8") == made.pages()[name]


def test_there_are_no_other_pages(made):
    assert {path.name for path in (DOCS / "reference").iterdir()} == set(made.pages())


def test_every_command_and_option_is_there(made):
    """By another way than the page is made: from the help texts themselves."""
    from typer.testing import CliRunner

    from discreet.cli.app import app

    def listed(*command: str) -> str:
        return CliRunner().invoke(app, [*command, "--help"], terminal_width=200).output

    page = made.command_line()
    commands = re.findall(r"^  (\w[\w-]*)  ", listed().partition("Commands:")[2], flags=re.MULTILINE)
    assert len(commands) >= 6
    for command in commands:
        assert f"## discreet {command}\n" in page
        for option in re.findall(r"^  (?:-\w, )?(--[\w-]+)", listed(command), flags=re.MULTILINE):
            section = page.partition(f"## discreet {command}\n")[2].partition("\n## ")[0]
            assert option == "--help" or re.search(rf"{option}\b", section), f"{command} {option}"


def test_every_public_name_and_argument_is_there(made):
    import inspect

    import discreet

    page = made.python() + made.error_page()
    for name in discreet.__all__:
        assert name == "__version__" or f"### {name}" in page or f"`{name}`" in page, name
    for name in ("open", "count", "sum", "mean", "sample_laplace"):
        section = page.partition(f"### {name}\n")[2].partition("\n### ")[0]
        for parameter in inspect.signature(getattr(discreet, name)).parameters.values():
            assert f"- `{parameter}`:" in section or f"`{parameter.name}`:" in section or "**" in str(parameter)


def test_the_readmes_tell_the_same_exit_codes(made):
    for name in ("README.md", "README.zh-CN.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert {int(code) for code in re.findall(r"^\| (\d+) \|", text, flags=re.MULTILINE)} == set(made.EXIT_CODES), (
            name
        )


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("a * b_c <= [1]", r"a \* b\_c \<= \[1\]"),
        ("``x*y`` and `a_b`", "`x*y` and `a_b`"),
        ("see\n\n    x * y\n\nand *", "see\n\n    x * y\n\nand \\*"),
    ],
)
def test_plain_text_means_itself(text, markdown, made):
    assert made._prose(text) == markdown
