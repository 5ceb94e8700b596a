"""What notebooks show, and the page of all releases: whole, escaped, readable by everybody, and without a network."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from html.parser import HTMLParser
from itertools import pairwise

import pytest

import discreet
from discreet.answer import Answer
from discreet.deployment import deployment
from discreet.formats import as_table
from discreet.html.answers import MOST_ROWS
from discreet.html.styles import COLOURS, DARK
from discreet.ledger import Ledger
from discreet.report_page import page_html
from test_chart import NASTY, around, made

VOID = {"meta", "br", "hr"}
NAMES = """html head meta title style body a header nav main section article footer h1 h2 h3 p ul ol li dl dt dd
div span strong pre code figure figcaption table caption thead tbody tr th td svg g rect line path polyline polygon"""
ALLOWED = set(NAMES.split())


@dataclass
class Node:
    name: str
    attributes: dict[str, str]
    children: list[Node | str] = field(default_factory=list)

    def all(self, name: str = "") -> list[Node]:
        found = [self] if name in ("", self.name) else []
        return found + [node for child in self.children if isinstance(child, Node) for node in child.all(name)]

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)


class Tree(HTMLParser):
    """A strict reader: every element is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root], "an element is not closed"

    def handle_starttag(self, tag, attrs):
        assert tag in ALLOWED, tag
        assert len(attrs) == len({name for name, _ in attrs}), attrs
        node = Node(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(node)
        if tag not in VOID:
            self._open.append(node)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self._open[-1].name == tag, f"</{tag}> in <{self._open[-1].name}>"
        self._open.pop()

    def handle_data(self, data):
        self._open[-1].children.append(data)


def check(root: Node) -> None:
    """What must hold of every piece: nothing runs, nothing is fetched, tables and pictures can be read out."""
    for node in root.all():
        for name, value in node.attributes.items():
            assert not name.startswith("on"), node
            assert name not in ("src", "srcset", "srcdoc", "action", "xlink:href"), node
            assert name != "href" or value.startswith("#"), node
            assert "url(" not in value, node
    assert not any("url(" in style.text or "@import" in style.text or "</" in style.text for style in root.all("style"))
    for table in root.all("table"):
        heads = table.all("thead")[0].all("th")
        assert all(head.attributes["scope"] == "col" for head in heads)
        for row in table.all("tbody")[0].all("tr"):
            assert len([*row.all("th"), *row.all("td")]) == len(heads)
            assert all(head.attributes["scope"] == "row" for head in row.all("th"))
    for region in root.all("div"):
        if region.attributes.get("class") == "scroll":
            assert region.attributes["tabindex"] == "0"  # a keyboard can scroll it
            assert region.attributes["role"] == "region"
            assert region.attributes["aria-label"]
    for svg in root.all("svg"):
        assert svg.attributes["aria-hidden"] == "true"  # its numbers stand beside it
        assert not svg.text.strip()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("html")
    path = folder / "visits <b>.csv"
    rows = (f"p{i},{'ABC'[i % 3]},{i},2024-01-0{i % 9 + 1}\n" for i in range(60))
    path.write_text("who,ward,minutes,day\n" + "".join(rows))
    ledger = folder / "l.sqlite"
    opened = discreet.open(path, privacy_unit="who", max_contributions=2, budget=(50, "1e-5"), ledger=ledger)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def report(data):
    """A page over answers of every kind, a failed query among them."""
    keys = {"ward": ["A", "B", "C", None, "<script>alert(1)</script>"]}
    bounds = {"minutes": (0, 60), "day": ("2024-01-01", "2024-02-01")}
    first = "SELECT ward, COUNT(*) AS n, AVG(minutes) AS m FROM data GROUP BY ward"
    data.query(first, epsilon=1, keys=keys, bounds=bounds, analyst="<i>ann</i>")
    chosen = "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward HAVING n > 1"
    data.query(chosen, epsilon=1, delta="1e-6", timezone="Asia/Tokyo")
    data.query("SELECT AVG(day) AS d, MEDIAN(minutes) AS m FROM data", epsilon=1, bounds=bounds)

    def interrupted(*_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("discreet.engines.duckdb.DuckDBEngine.run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            data.query("SELECT COUNT(*) AS lost FROM data", epsilon=1)
    with Ledger(data.ledger_path) as book:
        return page_html(deployment(book, data.registration.source))


def test_the_page(report):
    root = Tree(report).root
    check(root)
    assert report.startswith('<!doctype html>\n<html lang="en">')
    ids = Counter(node.attributes["id"] for node in root.all() if "id" in node.attributes)
    assert set(ids.values()) == {1}
    for link in root.all("a"):
        assert link.attributes["href"][1:] in ids
    for node in root.all():
        assert node.attributes.get("aria-labelledby", "glance") in ids
    for landmark in ("header", "nav", "main", "footer", "h1"):
        assert len(root.all(landmark)) == 1
    levels = [int(node.name[1]) for node in root.all() if re.fullmatch(r"h\d", node.name)]
    assert all(later - earlier <= 1 for earlier, later in pairwise(levels))
    policy = next(m.attributes["content"] for m in root.all("meta") if "http-equiv" in m.attributes)
    assert "default-src 'none'" in policy
    assert "viewport" in {m.attributes.get("name") for m in root.all("meta")}
    style = root.all("style")[0].text
    assert "@media print" in style
    assert "prefers-color-scheme:dark" in style
    main = root.all("main")[0].text
    for words in (
        "epsilon 4",
        "epsilon 46",
        "<i>ann</i>",
        "visits <b>.csv",
        "no answer: interrupted",
        "Asia/Tokyo",
        "chosen from the data",
    ):
        assert words in root.text, words
    assert "<script>alert(1)</script>" in main  # as text
    assert len(root.all("article")) == 4
    assert len(root.all("tbody")[0].all("tr")) == 5  # the budget: set, and four debits


def test_the_page_shows_the_answers_as_they_were_given(data, report):
    """Each number of each stored answer stands in the page as in the table of the command line."""
    root = Tree(report).root
    with Ledger(data.ledger_path) as book:
        seen = deployment(book, data.registration.source)
    articles = root.all("article")
    for release, article in zip(seen.releases, articles, strict=True):
        if release.answer is None:
            continue
        cells = [
            cell.text for row in article.all("tbody")[0].all("tr") for cell in row.all() if cell.name in ("th", "td")
        ]
        words = " ".join(cell for cell in cells if cell)
        said = " ".join(re.split(r"  +", " ".join(as_table(release.answer).splitlines()[2:])))
        assert re.sub(r"\s+", " ", words).strip() == re.sub(r"\s+", " ", said).strip()


def test_an_empty_ledger_makes_a_page_too(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("who\nann\n")
    opened = discreet.open(path, privacy_unit="who", ledger=tmp_path / "l")
    with Ledger(opened.ledger_path) as book:
        root = Tree(page_html(deployment(book, opened.registration.source))).root
    opened.close()
    check(root)
    assert "No question was charged yet." in root.text


def test_notebooks(data):
    keys = {"ward": ["A", "B", '"><img onerror=alert(1)>']}
    sql = 'SELECT ward, COUNT(*) AS n, AVG(minutes) AS "m & <b>" FROM data GROUP BY ward'
    answer = data.query(sql, epsilon=2, keys=keys, bounds={"minutes": (0, 60)})
    estimate = data.estimate(sql, epsilon=2, keys=keys, bounds={"minutes": (0, 60)})
    plan = data.plan(sql, epsilon=2, keys=keys, bounds={"minutes": (0, 60)})
    for shown, words in (
        (answer, ("m & <b>", '"><img onerror=alert(1)>', "Spent: epsilon 2", "per who")),
        (estimate, ("Would cost: epsilon 2", "± 9", "no data was read")),
        (plan, ("noise of scale b = 3 rows", "one who weighs at most 2 rows", "costs 1/3 of epsilon")),
    ):
        root = Tree(shown._repr_html_()).root
        check(root)
        assert [child.name for child in root.children] == ["div"]
        for said in words:
            assert said in root.text, said
        # The style touches nothing outside of the piece.
        rules = re.sub(r"@media[^{]*\{", "", root.all("style")[0].text)
        selectors = [part.strip(" }") for rule in re.findall(r"([^{}]+)\{", rules) for part in rule.split(",")]
        assert all(".discreet" in selector for selector in selectors if selector), selectors
    assert len(Tree(answer._repr_html_()).root.all("svg")) == 6


def test_nasty_keys_come_back_as_text():
    answer = made({"k": NASTY}, {"x": around([float(i) for i in range(len(NASTY))], 1.5)})
    root = Tree(_with_details(answer)._repr_html_()).root
    check(root)
    heads = [head.text for head in root.all("tbody")[0].all("th")]
    assert heads[1] == NASTY[1]
    assert heads[2:4] == ["(missing)", '""']
    assert heads[7] == "tab\\x09here\\x1b[31m"
    assert heads[9] == NASTY[9]


@pytest.mark.parametrize(
    "values", [[0.0], [1e308, -1e308], [5e-324], [None, None], [10**400, 1], [float(i) for i in range(MOST_ROWS + 7)]]
)
def test_odd_values(values):
    low = [None if v is None else v - abs(v) // 2 - 1 for v in values]
    high = [None if v is None else v + abs(v) // 2 + 1 for v in values]
    root = Tree(_with_details(made({"k": list(range(len(values)))}, {"x": (values, low, high)}))._repr_html_()).root
    check(root)
    numbers = re.findall(r"[-\d.e]*(?:nan|inf)[-\d.e]*", " ".join(p.attributes.get("d", "") for p in root.all("path")))
    assert numbers == []
    if len(values) > MOST_ROWS:
        assert "7 more groups are not shown here" in root.text


def _with_details(answer: Answer) -> Answer:
    return Answer(answer.columns, Fraction(95, 100), answer.cost, None, 1, {**answer.details, "picked": None})


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("colours", [COLOURS, DARK], ids=["light", "dark"])
def test_contrast(colours):
    """WCAG 2.2: 4.5 for text (1.4.3), 3 for what pictures are made of (1.4.11)."""

    def contrast(one: str, other: str) -> float:
        a, b = sorted((luminance(colours[one]), luminance(colours[other])))
        return (b + 0.05) / (a + 0.05)

    for ground in ("paper", "band", "bread"):
        for text in ("ink", "quiet"):
            assert contrast(text, ground) >= 4.5, (text, ground)
    for text in ("noise", "mark", "grey"):
        assert contrast(text, "paper") >= 4.5, text
    assert contrast("crust", "paper") >= 3
