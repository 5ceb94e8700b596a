"""The page of all releases, the notebooks' pieces and the pictures in a real browser: run by `make test-slow`."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import discreet
from discreet.deployment import deployment
from discreet.ledger import Ledger
from discreet.report_page import page_html

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --virtual-time-budget=4000"
)
MEASURE = """
<script>
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), inside = frame.contentDocument, wide = frame.clientWidth;
  const clipped = (e) => { for (let p = e; p; p = p.parentElement) if (p.classList.contains("scroll")) return true; };
  const out = [...inside.querySelectorAll("body *")].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && (box.right > wide + 1 || box.left < -1) && !clipped(e) && !e.closest(".skip");
  });
  const blank = [...inside.querySelectorAll("svg")].filter((e) => e.getBoundingClientRect().height < 5);
  const texts = [...inside.querySelectorAll("svg text")].map((e) => e.getBoundingClientRect());
  const overlapping = texts.filter((a, i) => texts.some((b, j) => j > i && a.left < b.right - 1 && b.left < a.right - 1
    && a.top < b.bottom - 4 && b.top < a.bottom - 4));
  document.title = JSON.stringify({out: out.map((e) => e.tagName + " " + e.textContent.slice(0, 40)),
    blank: blank.length, svgs: inside.querySelectorAll("svg").length, texts: texts.length,
    overlapping: overlapping.length, high: inside.documentElement.scrollHeight,
    ground: inside.defaultView.getComputedStyle(inside.body).backgroundColor});
});
</script>
"""


@pytest.fixture(scope="module")
def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    pytest.fail("no browser: `make test-slow` installs chromium where it may; else install it")


def run(browser: str, folder: Path, *more: str) -> str:
    profile = folder / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    command = [browser, *FLAGS.split(), f"--user-data-dir={profile}", *more]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=120, check=True).stdout


def measured(browser: str, folder: Path, page: str, width: int, *more: str) -> dict:
    """What a browser made of a page in a frame of that width."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)  # it would forbid the frame's reading
    frame = f'<iframe style="width:{width}px;height:3000px;border:0" srcdoc="{html.escape(page, quote=True)}"></iframe>'
    path = folder / "frame.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>-</title>{frame}{MEASURE}", encoding="utf-8")
    shown = run(browser, folder, "--dump-dom", f"--window-size={max(width, 600)},3200", *more, path.as_uri())
    title = re.search(r"<title>(.*?)</title>", shown, re.DOTALL)
    assert title is not None
    return json.loads(html.unescape(title[1]))


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    log = discreet.open(
        ROOT / "examples" / "commits.jsonl.gz",
        privacy_unit="actor",
        max_contributions=50,
        budget=(50, "1e-5"),
        ledger=folder / "l.sqlite",
    )
    bounds = {"lag_s": (0, 86400)}
    long = ["北京市海淀区中关村大街二十七号研发中心", "x" * 90, "words of a key that goes on " * 3, None, "D"]
    case = "SELECT CASE WHEN action = 'D' THEN 'D' END AS k, COUNT(*) AS n FROM commits GROUP BY 1"
    years = "SELECT YEAR(time) AS y, COUNT(*) AS n, AVG(lag_s) AS lag, MEDIAN(lag_s) AS med FROM commits GROUP BY 1"
    found = [
        log.query(case, epsilon=1, keys={"k": long}),
        log.query(years, epsilon=1, keys={"y": list(range(1995, 2025))}, bounds=bounds, analyst="ann"),
        log.query("SELECT COUNT(*) AS n FROM commits", epsilon=1),
    ]
    with Ledger(log.ledger_path) as book:
        page = page_html(deployment(book, log.registration.source))
    log.close()
    return found, page


def test_the_measuring_sees_what_is_wrong(browser, tmp_path):
    wrong = (
        '<!doctype html><body style="background:rgb(1,2,3)"><div style="width:2000px">wide</div>'
        '<svg width="200" height="50"><text x="5" y="20">one</text><text x="9" y="20">two</text></svg>'
        '<svg width="200" height="2"></svg>'
    )
    seen = measured(browser, tmp_path, wrong, 400)
    assert [text.split()[0] for text in seen["out"]] == ["DIV"]
    assert (seen["overlapping"], seen["blank"], seen["ground"]) == (1, 1, "rgb(1, 2, 3)")


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_nothing_leaves_the_page(browser, answers, tmp_path, width):
    seen = measured(browser, tmp_path, answers[1], width)
    assert seen["out"] == []
    assert seen["blank"] == 0
    assert seen["svgs"] > 90


def test_light_and_dark(browser, answers, tmp_path):
    light = measured(browser, tmp_path, answers[1], 800)
    dark = measured(browser, tmp_path, answers[1], 800, "--blink-settings=preferredColorScheme=0")
    assert light["ground"] == "rgb(255, 255, 255)"
    assert dark["ground"] == "rgb(23, 25, 28)"


def test_printed(browser, answers, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(answers[1], encoding="utf-8")
    run(browser, tmp_path, f"--print-to-pdf={tmp_path / 'page.pdf'}", "--no-pdf-header-footer", path.as_uri())
    pdf = (tmp_path / "page.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12


@pytest.mark.parametrize("width", [360, 1000])
def test_notebooks(browser, answers, tmp_path, width):
    for answer in answers[0]:
        seen = measured(browser, tmp_path, f"<!doctype html><body>{answer._repr_html_()}", width)
        assert seen["out"] == []
        assert seen["blank"] == 0


def test_pictures(browser, answers, tmp_path):
    """As the browser draws the letters, no two texts lie on each other, and none leaves the picture."""
    pictures = [answer.plot().content.decode() for answer in answers[0]]
    pictures += [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "pictures").glob("query-*.svg"))]
    for picture in pictures:
        body = picture[picture.index("<svg") :]
        wide = float(re.search(r'width="([\d.]+)pt"', body)[1]) * 96 / 72
        page = f'<!doctype html><body style="margin:0">{body}'
        seen = measured(browser, tmp_path, page, round(wide) + 1)
        assert seen["texts"] > 5
        assert seen["overlapping"] == 0
        assert seen["out"] == []
