"""Every example of the pages is run, and prints what the page says, noise aside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from docs_pages import LANGUAGES, Block, blocks, commands, masked

ROOT = Path(__file__).resolve().parents[1]
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
PAGES = [READMES[0], *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture
def place(tmp_path):
    """A folder with the examples in it and a ledger of its own; `discreet` is the one under test."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    program = tmp_path / "bin" / "discreet"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m discreet "$@"\n')
    program.chmod(0o755)
    settings = {
        "DISCREET_LEDGER": str(tmp_path / "ledger.sqlite"),
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
    }

    def run(command: list[str]) -> str:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            cwd=tmp_path,
            env={**os.environ, **settings},
            timeout=120,
            check=False,
        )
        return done.stdout

    return run


@pytest.mark.parametrize("page", PAGES, ids=[page.name for page in PAGES])
def test_every_example_prints_what_the_page_says(page, place):
    found = blocks(page)
    for block, after in zip(found, [*found, Block("", "", 0)][1:], strict=True):
        where = f"{page.name}, line {block.line}"
        assert block.language in LANGUAGES, where
        if block.language == "console":
            for command, output in commands(block):
                got = place(["sh", "-c", command])
                assert masked(got, command) == masked(output, command), f"{where}: {command}\n{got}"
        elif block.language == "python":
            got = place([sys.executable, "-c", block.text])
            said = after.text if after.language == "text" else ""
            assert masked(got) == masked(said), f"{where}\n{got}"
        elif block.language == "sh":
            for line in block.text.splitlines():
                tool, target = line.partition("#")[0].split()
                assert tool == "make", where
                subprocess.run(["make", "-n", target], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def test_both_readmes_show_the_same_examples():
    """So that what one of them shows need be run only once."""

    def shown(page: Path) -> list[object]:
        found: list[object] = []
        for block in blocks(page):
            if block.language == "console":
                found += [(command, masked(output, command)) for command, output in commands(block)]
            elif block.language == "sh":
                found += [line.partition("#")[0] for line in block.text.splitlines()]
            else:
                found.append(block.text)
        return found

    assert shown(READMES[0]) == shown(READMES[1])


def test_the_two_commands_stand_on_the_first_screen():
    for page in READMES:
        first = page.read_text(encoding="utf-8").splitlines()[:24]
        assert any(line.startswith("make demo") for line in first)
        assert any(line.startswith("make test") for line in first)


HEAD = "k  n  95 % interval\n─  ─  ─────────────\n"
ROW = '{"k": 1, "n": 2, "n_low": 0, "n_high": 4}\n'
CSV = "k,n,n_low,n_high\n"


@pytest.mark.parametrize(
    ("said", "printed", "agree"),
    [
        (HEAD + "A  7  1 … 9\n", "k  n   95 % interval\n─  ──  ─────────────\nA  10  -5 … 1,000\n", True),
        (HEAD + "A  7  1 … 9\n", HEAD + "B  7  1 … 9\n", False),
        (HEAD + "1  7  1 … 9\n", HEAD + "2  7  1 … 9\n", False),
        (HEAD + "A  7  1 … 9\n", HEAD, False),
        (HEAD + "A  7  1 … 9\n", HEAD + "A  ?  1 … 9\n", False),
        ("spent: epsilon 1\n", "spent: epsilon 2\n", False),
        (ROW, '{"k": 1, "n": 9, "n_low": 1, "n_high": 7}\n', True),
        (ROW, '{"k": 2, "n": 9, "n_low": 1, "n_high": 7}\n', False),
        (ROW, '{"k": 1, "n": 2.5, "n_low": 0, "n_high": 4}\n', False),
        (CSV + "A,1,0,2\n", CSV + "A,5,4,6\n", True),
        (CSV + "A,1,0,2\n", CSV + "B,5,4,6\n", False),
        ("budget of file:/home/you/a.csv: is 3\n", "budget of file:/tmp/x/a.csv: is 3\n", True),
        ("budget of file:/home/you/a.csv: is 3\n", "budget of file:/home/you/b.csv: is 3\n", False),
        ("x\nnegative counts are noise around\n", "x\n", True),
    ],
)
def test_the_comparison_sees_what_it_should(said, printed, agree):
    assert (masked(said) == masked(printed)) == agree
