"""The picture of an answer: `answer.plot()` and `discreet query --plot`."""

from __future__ import annotations

import datetime
import json
import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as package
from discreet.answer import Answer, AnswerColumn
from discreet.chart import chart
from discreet.errors import OutputError, UsageError
from discreet.pictures import draw_chart, fonts
from discreet.pictures.bars import MOST_BARS
from discreet.pictures.canvas import Palette
from discreet.privacy import PrivacyLoss
from discreet.schema import FLOAT, parse_type

SVG = "{http://www.w3.org/2000/svg}"
NASTY = [
    "北京市海淀区中关村大街二十七号研发中心",
    '<b>bold</b> & $x^2$ "q"',
    None,
    "",
    "a key that is very long indeed, longer than anybody would like to read beside a bar at all " * 3,
    "مرحبا",
    "🙂",
    "tab\there\x1b[31m",
    "(missing)",
    "]]><script>alert(1)</script>",
]


def made(keys, statistics, **more) -> Answer:
    """An answer that no query gave: any values, with their ends."""
    columns = [AnswerColumn(name, name, tuple(values), type=more.get(name, FLOAT)) for name, values in keys.items()]
    for name, (values, low, high) in statistics.items():
        described = f"SUM({name})"
        columns.append(AnswerColumn(name, described, tuple(values), tuple(low), tuple(high), more.get(name, FLOAT)))
    details = {
        "statistics": [{"name": name} for name in statistics],
        "query": "SELECT k, SUM(x) AS x FROM data GROUP BY k",
        "timezone": "UTC",
        "promise": "per who",
    }
    return Answer(tuple(columns), Fraction(95, 100), PrivacyLoss(Fraction(1)), None, 3, details)


def around(values, half):
    return values, [v - half for v in values], [v + half for v in values]


def drawn(answer: Answer, format: str = "svg") -> bytes:
    return draw_chart(chart(answer), format).content


def words(svg: bytes) -> list[tuple[float, float, float, str, str]]:
    """x, y, size, anchor and text of each text of an SVG."""
    found = []
    for text in ET.fromstring(svg).iter(f"{SVG}text"):  # noqa: S314 - our own
        style = text.get("style")
        size = float(re.search(r"([\d.]+)px", style).group(1))
        anchor = re.search(r"text-anchor: (\w+)", style).group(1)
        found.append((float(text.get("x")), float(text.get("y")), size, anchor, text.text or ""))
    return found


def extents(svg: bytes) -> list[tuple[float, float, float, float, str]]:
    """Left, top, right and bottom of each text, by the widths of the letters."""
    found = []
    for x, y, size, anchor, text in words(svg):
        wide = fonts.width(text, size)
        left = x - {"start": 0, "middle": wide / 2, "end": wide}[anchor]
        found.append((left, y - 0.75 * size, left + wide, y + 0.2 * size, text))
    return found


@pytest.mark.parametrize("groups", [1, 3, 30, 90])
@pytest.mark.parametrize("statistics", [1, 3, 6])
def test_no_text_overlaps_another_and_none_is_cut_off(groups, statistics):
    keys = (NASTY + [f"group {i}" for i in range(groups)])[:groups] if groups > 3 else ["short"] * groups
    sizes = [-3.0, 1e17, 2e-9, 5.0, -1e-300, 123456789.0]
    answer = made(
        {"k": keys},
        {f"s{j}": around([sizes[j] * (i + 1) for i in range(groups)], abs(sizes[j]) * 2) for j in range(statistics)},
    )
    svg = drawn(answer)
    root = ET.fromstring(svg)  # noqa: S314
    wide, high = (float(root.get(side).removesuffix("pt")) for side in ("width", "height"))
    boxes = extents(svg)
    for left, top, right, bottom, text in boxes:
        assert left >= 0, text
        assert right <= wide, text
        assert top >= 0, text
        assert bottom <= high, text
    for i, (left, top, right, bottom, text) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            apart = other[0] >= right or other[2] <= left or other[1] >= bottom or other[3] <= top
            assert apart, (text, other[4])


def test_keys_are_text_and_never_markup():
    answer = made({"k": NASTY}, {"x": around([float(i) for i in range(len(NASTY))], 1.0)})
    svg = drawn(answer)
    texts = [text for *_, text in words(svg)]  # it parses, so nothing broke out of its place
    assert '<b>bold</b> & $x^2$ "q"' in texts
    assert "(missing)" in texts  # NULL
    assert '"(missing)"' in texts  # the text
    assert '""' in texts
    assert "北京市海淀区中关村大街二十七号研发中心" in texts
    assert "tab\\x09here\\x1b[31m" in texts
    assert b"<script" not in svg
    drawing = draw_chart(chart(answer), "png")  # the letters that no font has do not make it fail
    assert drawing.content.startswith(b"\x89PNG")


def bars(svg: bytes, color: str) -> int:
    """How many bars are filled with a colour."""
    return sum(f"fill: {color}" in (path.get("style") or "") for path in ET.fromstring(svg).iter(f"{SVG}path"))  # noqa: S314


def test_grey_where_the_interval_covers_0():
    answer = made({"k": list("abcde")}, {"x": around([-5.0, -1.0, 0.0, 1.0, 5.0], 1.0)})
    assert [mark.doubtful for mark in chart(answer).panels[0].marks] == [False, True, True, True, False]
    svg = drawn(answer)
    assert bars(svg, Palette.GREYED) >= 3
    assert bars(svg, Palette.NOISE) >= 2
    assert "grey: the interval covers 0" in " ".join(text for *_, text in words(svg))


DATE = parse_type("DATE")


def test_dates_stand_on_an_axis():
    days = [datetime.date(2024, 1, 1) + datetime.timedelta(days=i) for i in (40, 0, 10, 20, 30)]
    answer = made({"day": [*days, None]}, {"n": around([1.0, 2.0, 30.0, 4.0, 5.0, 6.0], 2.0)}, day=DATE)
    picture = chart(answer)
    assert picture.over_time
    marks = picture.panels[0].marks
    assert [mark.value for mark in marks] == [2.0, 30.0, 4.0, 5.0, 1.0]  # by time
    assert any(note.startswith("day missing: n 6") for note in picture.notes)
    texts = [text for *_, text in words(drawn(answer))]
    assert any(re.fullmatch(r"2024-0[12]-\d\d", text) for text in texts)


def test_series_stand_apart_up_to_a_dozen():
    days = [datetime.date(2024, 1, d) for d in (1, 2)]

    def answer(series: int) -> Answer:
        keys = {"day": days * series, "k": [f"k{i}" for i in range(series) for _ in days]}
        return made(keys, {"n": around([1.0] * 2 * series, 2.0)}, day=DATE)

    assert [panel.series for panel in chart(answer(3)).panels] == ["k0", "k1", "k2"]
    assert chart(answer(12)).over_time
    many = chart(answer(13))
    assert not many.over_time
    assert many.panels[0].marks[0].group == "2024-01-01 · k0"
    assert b"<svg" in drawn(answer(3))


def test_odd_answers_are_drawn():
    none = made({"k": []}, {"x": ([], [], [])})
    assert "nothing to draw" in " ".join(text for *_, text in words(drawn(none)))
    for answer in (
        made({}, {"x": around([-12345678901234.0], 5.0)}),
        made({"k": ["a", "b"]}, {"x": ([None, None], [None, None], [None, None])}),
        made({"k": ["a", "b"]}, {"x": ([10**400, 1], [10**399, 0], [10**401, 2])}),
        made({"k": ["a", "b"]}, {"x": ([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])}),
        made({"k": ["a"]}, {"x": ([1e308], [-1.7e308], [1.7e308])}),
        made({"k": ["a"]}, {"x": ([5e-324], [-5e-324], [1e-323])}),
        made(
            {"k": ["a", "b"]},
            {"x": ([datetime.date(2024, 1, 1), None], [datetime.date.min, None], [datetime.date.max, None])},
            x=DATE,
        ),
        made({"d": [datetime.date.min, datetime.date.max]}, {"x": around([1.0, 2.0], 1.0)}, d=DATE),
    ):
        assert b"<svg" in drawn(answer)
        assert drawn(answer, "png").startswith(b"\x89PNG")
    assert drawn(made({"k": ["a"]}, {"x": around([1.0], 2.0)})) == drawn(made({"k": ["a"]}, {"x": around([1.0], 2.0)}))


def test_many_groups_are_cut_and_it_says_so():
    groups = MOST_BARS + 50
    svg = drawn(made({"k": [f"g{i}" for i in range(groups)]}, {"x": around([1.0] * groups, 2.0)}))
    texts = [text for *_, text in words(svg)]
    assert f"g{MOST_BARS - 1}" in texts
    assert f"g{MOST_BARS}" not in texts
    assert "the first 200 groups are drawn; 50 more are in the table" in texts


def test_the_places_of_texts_do_not_depend_on_installed_fonts(monkeypatch):
    answer = made({"k": NASTY}, {"x": around([float(i) for i in range(len(NASTY))], 1.0)})
    here = words(drawn(answer))
    monkeypatch.setattr(fonts, "SVG_FAMILIES", ("DejaVu Sans",))
    assert words(drawn(answer)) == here


SQL = "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward"
ASK = ("--unit", "who", "--max-contributions", "10", "--epsilon", "0.5", "--keys", "ward=A,B,NULL", "--budget", "1")


def test_query_plot(discreet, visits, tmp_path):
    target = tmp_path / "answer.svg"
    done = discreet("query", str(visits), SQL, *ASK, "--format", "json", "--plot", str(target))
    assert done.code == 0, done.err
    shown = next(mark for *_, mark in words(target.read_bytes()) if mark == "(missing)")
    assert shown
    label = ET.fromstring(target.read_bytes()).get("aria-label")  # noqa: S314
    row = json.loads(done.out)[0]
    assert f"A: {row['n']:,} (" in label


@pytest.mark.parametrize(
    ("place", "code", "said"),
    [
        ("x.pdf", 2, "must name a file that ends in .svg or .png"),
        ("-", 2, "must name a file that ends in .svg or .png"),
        ("{tmp}/missing/x.svg", 1, "cannot be written (no such file or directory)"),
        ("{tmp}/out.svg", 2, "must not be the --output file"),
    ],
)
def test_a_place_that_cannot_be_drawn_to_is_told_before_the_debit(discreet, visits, tmp_path, place, code, said):
    place = place.replace("{tmp}", str(tmp_path))
    done = discreet("query", str(visits), SQL, *ASK, "-o", str(tmp_path / "out.svg"), "--plot", place)
    assert done.code == code
    assert said in done.error()
    assert "debit" not in discreet("budget", str(visits)).out


def test_answer_plot(visits, tmp_path):
    data = package.open(visits, privacy_unit="who", max_contributions=10, budget=1, ledger=tmp_path / "l")
    answer = data.query(SQL, epsilon=1, keys={"ward": ["A", "B", None]})
    drawing = answer.plot()
    assert drawing._repr_svg_().startswith("<?xml")
    assert drawing._repr_png_() is None
    assert answer.plot(tmp_path / "a.png").content == (tmp_path / "a.png").read_bytes()
    with pytest.raises(UsageError, match="ends in"):
        answer.plot(tmp_path / "a.jpeg")
    with pytest.raises(OutputError, match="cannot be written"):
        answer.plot(tmp_path / "nowhere" / "a.svg")
    assert Path(tmp_path / "a.png").stat().st_size > 1000
    data.close()
