"""`make docs`: the folder docs/ becomes a site that can be read without a network; a broken link is a failure."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"

FETCHED = {"audio", "embed", "iframe", "img", "link", "object", "script", "source", "video"}
"""What a browser loads by itself. (A link that one may click is no fetch.)"""


def build(source: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """As `make docs` does."""
    command = "-m sphinx --fail-on-warning --keep-going --quiet --builder html"
    assert command in (ROOT / "Makefile").read_text(encoding="utf-8")
    return subprocess.run(
        [sys.executable, *command.split(), str(source), str(site)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    place = tmp_path_factory.mktemp("site")
    done = build(DOCS, place)
    assert done.returncode == 0, done.stderr
    return place


class Fetches(HTMLParser):
    """The addresses that a page makes the browser load."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in FETCHED:
            self.found += [value for name, value in attrs if name in ("src", "href", "data", "srcset") and value]


def fetches(html: str) -> list[str]:
    parser = Fetches()
    parser.feed(html)
    return parser.found


def test_every_page_is_built(site):
    for page in DOCS.rglob("*.md"):
        assert (site / page.relative_to(DOCS)).with_suffix(".html").is_file(), page


def test_nothing_is_fetched_from_elsewhere(site):
    pages = sorted(site.rglob("*.html"))
    assert pages
    for page in pages:
        for address in fetches(page.read_text(encoding="utf-8")):
            assert not re.match(r"\w+:|//", address), f"{page.name}: {address}"
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        assert "@import" not in text, sheet.name
        for address in re.findall(r"url\(\s*['\"]?([^'\")]*)", text):
            assert not re.match(r"(?!data:)\w+:|//", address), f"{sheet.name}: {address}"


def test_the_look_at_fetches_sees_them():
    html = '<a href="https://a"></a><script src="https://b"></script><link href="//c"><img src="d.svg">'
    assert fetches(html) == ["https://b", "//c", "d.svg"]


def test_broken_links_fail(tmp_path):
    source = tmp_path / "docs"
    (source / "_static").mkdir(parents=True)
    for name in ("conf.py", "_static/site.css"):
        shutil.copy(DOCS / name, source / name)
    links = "[x](other.md) [x](other.md#b) [x](missing.md) [x](other.md#missing) ![x](missing.svg)"
    (source / "index.md").write_text(f"# A\n\n{links}\n\n:::{{toctree}}\nother\n:::\n")
    (source / "other.md").write_text("# B\n")
    done = build(source, tmp_path / "site")
    assert done.returncode != 0
    assert done.stderr.count("WARNING") == 3, done.stderr
