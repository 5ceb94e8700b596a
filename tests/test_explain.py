"""`discreet explain`: the picture of a query tells its plan, is drawn to scale, and needs no data."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

import discreet as package
from command import environment
from discreet.laplace import Laplace
from discreet.pictures import draw_sandwich, fonts
from discreet.pictures.canvas import Palette
from discreet.sandwich import axis_reach
from discreet.sandwich_text import draw_text

DEMO = (
    "SELECT action, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors FROM commits "
    "WHERE YEAR(time) = 2024 GROUP BY action"
)
KEYS = {"action": ["A", "M", "D"]}
SVG = "{http://www.w3.org/2000/svg}"
EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "commits.jsonl.gz"
COUNT = "SELECT COUNT(*) AS n FROM data"
ASK = ("--unit", "who", "--max-contributions", "10", "--epsilon", "0.5")

MANY = (
    "SELECT YEAR(time) AS y, AVG(lag_s) AS lag, COUNT(lag_s) AS n, MEDIAN(lag_s) AS med, STDDEV(lag_s) AS sd, "
    "SUM(lag_s) / COUNT(*) AS q, AVG(DATE(time)) AS day FROM commits GROUP BY YEAR(time) HAVING n > 10 LIMIT 3"
)


@pytest.fixture(scope="module")
def commits(tmp_path_factory):
    ledger = tmp_path_factory.mktemp("explain") / "ledger.sqlite"
    data = package.open(EXAMPLES, privacy_unit="actor", max_contributions=50, budget=(3, "1e-5"), ledger=ledger)
    yield data
    data.close()


@pytest.fixture(scope="module")
def demo(commits):
    return commits.explain(DEMO, epsilon=1, keys=KEYS)


@pytest.fixture(scope="module")
def many(commits):
    bounds = {"lag_s": (0, 86400), "day": ("2000-01-01", "2030-01-01")}
    return commits.explain(MANY, epsilon=1, delta="1e-6", bounds=bounds, timezone="Europe/Berlin")


def test_the_demos_sandwich(demo):
    changes, actors = demo.layers
    assert (changes.drawn.sensitivity, changes.drawn.scale, changes.share) == (50, 100, Fraction(1, 2))
    assert (actors.drawn.sensitivity, actors.drawn.scale, actors.drawn.band) == (3, 6, 18)
    # The law itself, not the planner: 95 % of a Laplace variable of scale 100 is within 100 ln 20.
    assert changes.drawn.band == pytest.approx(100 * np.log(20), abs=0.01)
    assert (changes.width, actors.width) == (("± 300",), ("± 18",))
    assert (demo.before.epsilon, demo.cost.epsilon, demo.after.epsilon, demo.total.epsilon) == (3, 1, 2, 3)
    assert demo.enough


def test_shares_of_totals_that_are_paid_for_add_up(many):
    paid = [noise.share for layer in many.layers for noise in layer.noises if not noise.same_as]
    assert sum(paid) == 1
    assert [layer.name for layer in many.layers] == ["(groups)", "lag", "n", "med", "sd", "q", "day"]
    assert "shared with lag" in many.layers[2].costs


def test_the_budget_that_is_too_small(commits):
    picture = commits.explain(COUNT, epsilon=4)
    assert not picture.enough
    assert "too small: the query would be refused" in str(picture)
    assert b"too small" in draw_sandwich(picture, "svg").content


@pytest.mark.parametrize("width", [10, 60, 80, 100, 133])
def test_text_fits_and_tells(demo, many, width):
    for picture in (demo, many):
        lines = draw_text(picture, width).splitlines()
        assert max(map(cell_len, lines)) <= max(width, 60)
        for above, below in pairwise(lines):  # boxes are closed: what stands at the edge goes on below
            if above.endswith("│") and above.startswith("│"):
                assert below[-1] in "│╯", lines
    text = draw_text(demo, 80)
    assert "one person is one actor" in " ".join(re.sub("[│▶]", " ", draw_text(demo, 250)).split())
    for words in ("50 / 0.5 = 100 rows", "3 / 0.5 = 6 units", "± 300", "± 18", "epsilon 2"):
        assert words in text
    assert "at least" in draw_text(many, 80)  # the threshold of chosen groups
    assert "time zone Europe/Berlin" in draw_text(many, 80)


def curves(svg: bytes) -> list[np.ndarray]:
    """The points of the curves of an SVG, found by their colour."""
    found = []
    for path in ET.fromstring(svg).iter(f"{SVG}path"):  # noqa: S314 - our own
        if f"stroke: {Palette.NOISE}" in path.get("style", "") and "fill: none" in path.get("style", ""):
            points = re.findall(r"[ML] ([-\d.]+) ([-\d.]+)", path.get("d", ""))
            found.append(np.array(points, dtype=float))
    return found


def test_curves_are_drawn_to_scale(demo):
    drawn = curves(draw_sandwich(demo, "svg").content)
    assert len(drawn) == 2
    for points, layer, reach in zip(drawn, demo.layers, axis_reach(demo.layers), strict=True):
        x, y = points.T
        half = (x.max() - x.min()) / 2
        noise = (x - x.min() - half) / half * reach
        height = (y.max() - y) / (y.max() - y.min())
        law = Laplace(str(layer.drawn.scale))
        assert np.abs(height - (law.pdf(noise) - law.pdf(reach)) / (law.pdf(0) - law.pdf(reach))).max() < 0.02
    # Both count, so both stand on one axis: the needle is as narrow as it is.
    assert len(set(axis_reach(demo.layers))) == 1


def test_svg_holds_its_texts_and_is_the_same_everywhere(demo, tmp_path):
    svg = draw_sandwich(demo, "svg").content
    root = ET.fromstring(svg)  # noqa: S314
    texts = [text.text for text in root.iter(f"{SVG}text")]
    for words in ("changes", "COUNT(*)", "± 300", "b = sensitivity / epsilon = 3 / 0.5 = 6 units", "= the answer"):
        assert words in texts
    assert root.get("role") == "img"
    assert "Laplace noise of scale 100" in root.get("aria-label")
    assert root.find(f"{SVG}title").text == root.get("aria-label")
    names = rb'"http://(www\.w3\.org|creativecommons\.org|purl\.org)/[^"]*"'  # of vocabularies; nothing is fetched
    assert b"http" not in re.sub(names, b"", svg)
    # Another process, with other settings of matplotlib's, another time zone, another day.
    settings = tmp_path / "matplotlibrc"
    settings.write_text("font.family: serif\nsvg.fonttype: path\nlines.linewidth: 9\ntimezone: Asia/Tokyo\n")
    code = "import sys; from discreet.cli import main; main(sys.argv[1:])"
    target = tmp_path / "again.svg"
    options = "--unit actor --max-contributions 50 --epsilon 1 --keys action=A,M,D --budget 3 --budget-delta 1e-5"
    subprocess.run(
        [sys.executable, "-c", code, "explain", str(EXAMPLES), DEMO, *options.split(), "-o", str(target)],
        env=environment(tmp_path / "l.sqlite", MATPLOTLIBRC=str(settings), PYTHONHASHSEED="7"),
        check=True,
        capture_output=True,
        timeout=120,
    )
    assert target.read_bytes() == svg


def test_png(demo, many):
    for picture in (demo, many):
        drawing = draw_sandwich(picture, "png")
        assert drawing.content.startswith(b"\x89PNG\r\n")
        assert drawing.missing == frozenset()
        wide, high = (int.from_bytes(drawing.content[i : i + 4], "big") for i in (16, 20))
        assert wide == 2000
        assert 600 < high < 6000


def test_no_text_leaves_its_box(many):
    """By the widths that the pictures are laid out with: no line is wider than its column."""
    root = ET.fromstring(draw_sandwich(many, "svg").content)  # noqa: S314
    wide = float(root.get("width").removesuffix("pt"))
    for text in root.iter(f"{SVG}text"):
        size = float(re.search(r"font-size: ([\d.]+)px|font: \D*([\d.]+)px", text.get("style")).group(1) or 10)
        x = float(text.get("x"))
        length = fonts.width(text.text, size)
        assert x >= 0
        assert x + length * (0.5 if "middle" in text.get("style") else 1) <= wide


def test_explain_and_estimate_need_no_data(discreet, visits, tmp_path, monkeypatch):
    """The source is moved away after registration; nothing may open an engine either."""
    assert discreet("query", str(visits), COUNT, *ASK, "--budget", "3").code == 0
    before = [discreet(name, str(visits), COUNT, *ASK).out for name in ("explain", "estimate")]
    visits.rename(tmp_path / "away.csv")
    monkeypatch.setattr("discreet.engines.duckdb_connection.connect", lambda *_, **__: pytest.fail("an engine opened"))
    after = [discreet(name, str(visits), COUNT, *ASK) for name in ("explain", "estimate")]
    assert [done.code for done in after] == [0, 0], after
    assert [done.out for done in after] == before
    assert all("no data was read" in done.err for done in after)
    assert "left before: epsilon 2.5" in before[0]
    target = tmp_path / "explain.svg"
    assert discreet("explain", str(visits), COUNT, *ASK, "-o", str(target)).code == 0
    assert b"<svg" in target.read_bytes()
    # A query does need it, and says so before it is charged.
    refused = discreet("query", str(visits), COUNT, *ASK, "--fresh")
    assert refused.code == 1
    assert "gone" in refused.error()
    assert "epsilon 2.5" in discreet("budget", str(visits)).out
    # A file that never was registered is an error as before.
    assert "no such file" in discreet("estimate", str(tmp_path / "other.csv"), COUNT, *ASK).error()


@pytest.mark.parametrize("name", ["visits.db::visits", "folder", "folder/*.csv"])
def test_other_kinds_of_sources_that_are_gone(discreet, tmp_path, name):
    import sqlite3

    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.csv").write_text("who,x\nann,1\n")
    with sqlite3.connect(tmp_path / "visits.db") as connection:
        connection.execute("CREATE TABLE visits (who TEXT, x INTEGER)")
        connection.execute("INSERT INTO visits VALUES ('ann', 1)")
    connection.close()
    source = str(tmp_path / name)
    before = discreet("estimate", source, COUNT, *ASK)
    assert before.code == 0, before.err
    for place in ("visits.db", "folder"):
        (tmp_path / place).rename(tmp_path / f"away-{place}")
    assert discreet("estimate", source, COUNT, *ASK).out == before.out
    explained = discreet("explain", source, COUNT, *ASK)
    assert explained.code == 0, explained.err
    assert "no budget is set yet" in explained.out


@pytest.mark.parametrize("place", ["x.pdf", "x", "x.svg.gz", ""])
def test_endings_that_are_no_picture(discreet, visits, tmp_path, place):
    done = discreet("explain", str(visits), COUNT, *ASK, "-o", str(tmp_path / place) if place else "")
    assert done.code == 2
    assert "ends in .svg, .png or .txt" in done.error()
    assert not discreet.ledger.exists()


def test_as_text_to_a_file(discreet, visits, tmp_path):
    shown = discreet("explain", str(visits), COUNT, *ASK).out
    target = tmp_path / "explain.txt"
    done = discreet("explain", str(visits), COUNT, *ASK, "-o", str(target))
    assert (done.code, done.out) == (0, "")
    assert target.read_text(encoding="utf-8") == shown


def test_where_matplotlib_is_missing(visits, tmp_path):
    code = "import sys; sys.modules['matplotlib'] = None; from discreet.cli import main; main(sys.argv[1:])"

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, "explain", str(visits), COUNT, *ASK, *more]
        settings = environment(tmp_path / "l.sqlite")
        return subprocess.run(command, env=settings, capture_output=True, encoding="utf-8", timeout=60, check=False)

    done = run("-o", str(tmp_path / "x.svg"))
    assert done.returncode == 2
    assert done.stderr == "discreet: picture: needs the package matplotlib. Hint: pip install 'discreet[plot]'\n"
    assert not (tmp_path / "l.sqlite").exists()  # told before the source is registered
    assert run().returncode == 0  # as text it needs none


def test_a_terminal_without_the_signs(visits, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "discreet", "explain", str(visits), COUNT, *ASK],
        env=environment(tmp_path / "l.sqlite", PYTHONIOENCODING="ascii"),
        capture_output=True,
        timeout=60,
        check=True,
    )
    text = done.stdout.decode("ascii")
    assert "\\u" not in text
    assert "+- 60" in text
    assert max(map(len, text.splitlines())) <= 80


CHINESE = "SELECT 部门, COUNT(*) AS 人数 FROM data GROUP BY 部门"


@pytest.fixture
def offices(tmp_path):
    path = tmp_path / "人员.csv"
    path.write_text("人,部门\n甲,财务\n乙,研发\n", encoding="utf-8")
    data = package.open(path, privacy_unit="人", max_contributions=1, ledger=tmp_path / "l")
    yield data.explain(CHINESE, epsilon=1, keys={"部门": ["财务", "研发"]})
    data.close()


def test_chinese(offices, tmp_path, monkeypatch):
    svg = draw_sandwich(offices, "svg").content.decode()
    assert "人数" in svg
    assert max(map(cell_len, draw_text(offices, 80).splitlines())) <= 80
    # No font for it: code points, and a word about it; never empty boxes.
    monkeypatch.setattr(fonts, "_candidates", lambda: ())
    drawing = draw_sandwich(offices, "png")
    assert drawing.missing >= set("人数部门")
    assert fonts.shown("人数 x", drawing.missing) == "\\u4eba\\u6570 x"
    # A font that has two of the signs is found and used for them.
    monkeypatch.undo()
    monkeypatch.setattr(fonts, "_LIKELY", (made_font(tmp_path, "人数"),))
    monkeypatch.setattr(fonts, "_candidates", lambda: fonts._LIKELY)
    found, missing = fonts.families("人数部 x")
    assert found == ("DejaVu Sans", "Two Signs")
    assert missing == {"部"}
    assert not draw_sandwich(offices, "png").missing & set("人数")


def made_font(folder: Path, signs: str) -> str:
    """A font that has nothing but squares for the given signs, installed for this process."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from matplotlib.font_manager import fontManager

    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for point in ((0, 900), (900, 900), (900, 0)):
        pen.lineTo(point)
    pen.closePath()
    square = pen.glyph()
    names = [".notdef", *(f"uni{ord(sign):04X}" for sign in signs)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord(sign): name for sign, name in zip(signs, names[1:], strict=True)})
    builder.setupGlyf(dict.fromkeys(names, square))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (1000, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": "Two Signs", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    path = folder / "two.ttf"
    builder.save(path)
    fontManager.addfont(path)
    return "Two Signs"


def test_the_pages_pictures_are_what_the_script_draws():
    """Another process draws them anew; the bytes are those in the repository."""
    docs = EXAMPLES.parents[1] / "docs"
    code = "import sys, make_query_pictures as m; [sys.stdout.buffer.write(b) for b in m.all_pictures().values()]"
    done = subprocess.run([sys.executable, "-c", code], cwd=docs, capture_output=True, check=True, timeout=120)
    names = ("demo-explain", "years-explain", "years-estimate", "years-answer")
    kept = b"".join((docs / "pictures" / f"query-{name}.svg").read_bytes() for name in names)
    assert done.stdout == kept, "make docs draws them anew"
    page = (docs / "pictures.md").read_text(encoding="utf-8")
    assert all(f"pictures/query-{name}.svg" in page for name in names)
