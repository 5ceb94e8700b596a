"""Every example of the pages is run, and prints what the page says, noise aside."""

from __future__ import annotations

import gzip
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from docs_pages import LANGUAGES, ONE_SESSION, Block, blocks, commands, compare, masked, outputs

ROOT = Path(__file__).resolve().parents[1]
END = "-- end of block --"
READMES = [ROOT / "README.md", ROOT / "README.zh-CN.md"]
TRANSLATED = [(page.with_name(page.name.replace(".zh-CN", "")), page) for page in (ROOT / "docs").rglob("*.zh-CN.md")]
"""Pages and their translations, which show the same examples: those need be run only once."""
PAGES = [
    READMES[0],
    *sorted(
        page for page in (ROOT / "docs").rglob("*.md") if ".zh-CN" not in page.name and page.parent.name != "decisions"
    ),
]


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


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_example_prints_what_the_page_says(page, place):
    found = blocks(page)
    session = ONE_SESSION in page.read_text(encoding="utf-8")
    programs: list[str] = []
    for i, block in enumerate(found):
        where = f"{page.name}, line {block.line}"
        assert block.language in LANGUAGES, where
        if block.language == "console":
            for command, output in commands(block):
                got = place(["sh", "-c", command])
                assert masked(got, command) == masked(output, command), f"{where}: {command}\n{got}"
        elif block.language == "python" and session:
            programs.append(f"{block.text}\nprint({END!r}, flush=True)\n")
        elif block.language == "python":
            got = place([sys.executable, "-c", block.text])
            printed, said = compare(got, outputs(found, i))
            assert printed == said, f"{where}\n{got}"
        elif block.language == "sh":
            for line in block.text.splitlines():
                tool, target = line.partition("#")[0].split()
                assert tool == "make", where
                subprocess.run(["make", "-n", target], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    if programs:
        parts = place([sys.executable, "-c", "".join(programs)]).split(f"{END}\n")
        said_by = [(block, outputs(found, i)) for i, block in enumerate(found) if block.language == "python"]
        for (block, texts), got in zip(said_by, parts, strict=False):
            printed, said = compare(got, texts)
            assert printed == said, f"{page.name}, line {block.line}\n{got}"
        assert len(parts) == len(said_by) + 1, parts[-1]


def shown(page: Path) -> list[object]:
    """The examples of a page without noise, and without the remarks beside `make`."""
    found: list[object] = []
    for block in blocks(page):
        if block.language == "console":
            found += [(command, masked(output, command)) for command, output in commands(block)]
        elif block.language == "sh":
            found += [line.partition("#")[0] for line in block.text.splitlines()]
        else:
            found.append(block.text)
    return found


def test_both_readmes_show_the_same_examples():
    """So that what one of them shows need be run only once."""
    assert shown(READMES[0]) == shown(READMES[1])


@pytest.mark.parametrize(("page", "translation"), TRANSLATED, ids=[page.name for page, _ in TRANSLATED])
def test_a_translation_shows_the_same_examples(page, translation):
    assert shown(page) == shown(translation)


@pytest.mark.parametrize("page", READMES, ids=[page.name for page in READMES])
def test_every_link_of_a_readme_leads_somewhere(page):
    """Those between the pages of docs/ are tested by building the site."""
    links = re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8"))
    assert len(links) > 5
    for link in links:
        assert link.startswith("https://") or (ROOT / link).is_file(), link


def test_the_invented_logs_are_what_their_script_writes():
    script = runpy.run_path(str(ROOT / "examples" / "make_logs.py"))
    for name, content in script["all_logs"]().items():
        stored = (ROOT / "examples" / name).read_bytes()
        if name.endswith(".gz"):  # compressed bytes depend on the library's version
            content, stored = gzip.decompress(content), gzip.decompress(stored)
        assert content == stored, name


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


@pytest.mark.parametrize(
    ("printed", "said", "agree"),
    [
        ("[ 1 -2  0]\n", [("[-14   3   2]\n", True)], True),
        ("[ 1.5 -2.   3.e-05 ]\n", [("[-14   3   2]\n", True)], True),
        ("[ 1 -2]\n", [("[-14   3   2]\n", True)], False),
        ("[ 1 -2  0]\n", [("[-14   3   2]\n", False)], False),
        ("x 1.5\ny 2\n", [("x 1.5\n", False), ("y 3\n", True)], True),
        ("x 1.5\ny 2\n", [("x 1.5\n", False)], False),
        ("x 1.5\n", [("x 1.5\n", False), ("y 3\n", True)], False),
        ("", [], True),
        ("x\n", [], False),
    ],
)
def test_the_comparison_of_a_programs_output_sees_what_it_should(printed, said, agree):
    got, expected = compare(printed, [Block("text", text, 1, noise) for text, noise in said])
    assert (got == expected) == agree
