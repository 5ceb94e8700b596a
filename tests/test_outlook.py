"""`estimate --target` finds the smallest epsilon exactly; `estimate --plot` draws what `estimate` tells."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as package
from discreet.errors import UsageError
from discreet.exact import EPSILON_STEP, decimal_text
from discreet.outlook import COUNTS, outlook

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "commits.jsonl.gz"
SQL = (
    "SELECT action, COUNT(*) AS n, COUNT(DISTINCT actor) AS actors, AVG(lag_s) AS lag, MEDIAN(lag_s) AS med, "
    "SUM(lag_s) / COUNT(*) AS q, SUM(lag_s) AS s FROM commits GROUP BY action"
)
KNOWN = {"keys": {"action": ["A", "M", "D"]}, "bounds": {"lag_s": (0, 86400)}}


@pytest.fixture(scope="module")
def commits(tmp_path_factory):
    ledger = tmp_path_factory.mktemp("outlook") / "ledger.sqlite"
    data = package.open(EXAMPLES, privacy_unit="actor", max_contributions=50, budget=3, ledger=ledger)
    yield data
    data.close()


def width(commits, sql: str, name: str, epsilon: Fraction, **given) -> Fraction:
    """The half-width that the estimate tells at this very epsilon: the plan is made anew."""
    found = commits.estimate(sql, epsilon=epsilon, **given)
    return Fraction(next(s.half_width for s in found.statistics if s.name == name))


@pytest.mark.parametrize("wanted", ["0", "1", "2", "50", "300", "299", "12345", "1000000"])
@pytest.mark.parametrize("name", ["n", "actors"])
def test_the_target_is_reached_and_no_smaller_epsilon_reaches_it(commits, name, wanted):
    epsilon = commits.estimate(SQL, target={name: wanted}, **KNOWN).cost.epsilon
    assert (epsilon / EPSILON_STEP).denominator == 1
    assert width(commits, SQL, name, epsilon, **KNOWN) <= int(wanted)
    assert width(commits, SQL, name, epsilon - EPSILON_STEP, **KNOWN) > int(wanted)


@pytest.mark.parametrize("wanted", ["1e5", "123456.789", "5e8"])
def test_of_a_sum(commits, wanted):
    epsilon = commits.estimate(SQL, target={"s": wanted}, **KNOWN).cost.epsilon
    assert width(commits, SQL, "s", epsilon, **KNOWN) <= Fraction(wanted)
    assert width(commits, SQL, "s", epsilon - EPSILON_STEP, **KNOWN) > Fraction(wanted)


def test_of_one_count_by_hand(commits):
    """One count, limit 50: b = 50 / epsilon in rows, and about b ln 20 is the half-width."""
    epsilon = commits.estimate("SELECT COUNT(*) AS n FROM commits", target={"n": 50}).cost.epsilon
    # Rounded to a whole number, a half-width below 50.5 is 50.
    assert float(epsilon) == pytest.approx(50 * 2.995732273554 / 50.5, rel=2e-3)
    estimate = commits.estimate("SELECT COUNT(*) AS n FROM commits", target={"n": 50}, confidence="0.5")
    assert float(estimate.cost.epsilon) == pytest.approx(50 * 0.693147180560 / 50.5, rel=2e-3)


def test_several_targets_are_all_reached(commits):
    both = commits.estimate(SQL, target={"n": 500, "actors": 5}, **KNOWN).cost.epsilon
    apart = [commits.estimate(SQL, target={name: w}, **KNOWN).cost.epsilon for name, w in (("n", 500), ("actors", 5))]
    assert both == max(apart)


def test_with_groups_chosen_from_the_data(commits):
    sql = "SELECT action, COUNT(*) AS n FROM commits GROUP BY action"
    epsilon = commits.estimate(sql, target={"n": 100}, delta="1e-6").cost.epsilon
    assert width(commits, sql, "n", epsilon, delta="1e-6") <= 100
    assert width(commits, sql, "n", epsilon - EPSILON_STEP, delta="1e-6") > 100


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"lag": 60}, "depends on how many rows a group has"),
        ({"med": 60}, "depends on how many rows a group has"),
        ({"q": 60}, "computed from several"),
        ({"nothing": 60}, "must name a statistic of the query: n, actors, lag, med, q, s"),
        ({"action": 60}, "must name a statistic"),
        ({"n": -1}, "half-width"),
        ({"n": "nan"}, "half-width"),
        ({"n": True}, "half-width"),
        ({"s": 0}, "cannot be reached"),
        ({}, "must name a statistic"),
        ("n=50", "must be a dictionary"),
    ],
)
def test_targets_that_cannot_be_told(commits, target, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        commits.estimate(SQL, target=target, **KNOWN)


def test_a_target_stands_in_for_the_epsilon(commits):
    with pytest.raises(UsageError, match="leave epsilon out"):
        commits.estimate(SQL, target={"n": 50}, epsilon=1, **KNOWN)
    written = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1) COUNT(*) AS n FROM commits"
    with pytest.raises(UsageError, match="leave epsilon out"):
        commits.estimate(written, target={"n": 50})


ASK = ("--unit", "who", "--max-contributions", "10")


def test_on_the_command_line(discreet, visits):
    done = discreet("estimate", str(visits), "SELECT COUNT(*) AS n FROM data", *ASK, "--target", "n=50")
    assert done.code == 0, done.err
    epsilon = re.search(r"^epsilon (\S+) is the smallest that gives n=50$", done.err, re.MULTILINE).group(1)
    assert f"would cost: epsilon {epsilon}" in done.err
    assert "± 50" in done.out
    below = decimal_text(Fraction(epsilon) - EPSILON_STEP)
    assert "± 51" in discreet("estimate", str(visits), "SELECT COUNT(*) AS n FROM data", *ASK, "--epsilon", below).out
    for wrong, words in (
        (("n",), "NAME=HALF-WIDTH"),
        (("=5",), "NAME=HALF-WIDTH"),
        (("n=50", "--epsilon", "1"), "leave it out"),
    ):
        done = discreet("estimate", str(visits), "SELECT COUNT(*) AS n FROM data", *ASK, "--target", *wrong)
        assert done.code == 2
        assert words in done.error()


def test_the_outlook_is_what_the_estimate_tells(commits):
    plan = commits.plan(SQL, epsilon=1, **KNOWN)
    picture = outlook(plan, Fraction(95, 100))
    assert picture.chosen in picture.epsilons
    assert [curve.name for curve in picture.curves] == ["n", "actors", "lag", "med", "s"]  # q is computed
    for epsilon in (picture.epsilons[0], picture.epsilons[20], Fraction(1)):
        at = picture.epsilons.index(epsilon)
        told = {s.name: s for s in commits.estimate(SQL, epsilon=epsilon, **KNOWN).statistics}
        for curve in picture.curves:
            if told[curve.name].half_width is not None:
                assert curve.widths[0].values[at] == told[curve.name].half_width
            else:
                assert [line.values[at] for line in curve.widths] == list(told[curve.name].by_size.values())
    counts = picture.curves[0]
    assert [line.chosen for line in counts.relative] == [counts.widths[0].chosen / count for count in COUNTS]
    for curve in picture.curves:  # a larger epsilon is never noisier
        for line in curve.widths:
            assert list(line.values) == sorted(line.values, reverse=True)


def test_drawn(commits, discreet, visits, tmp_path):
    estimate = commits.estimate(SQL, epsilon=1, **KNOWN)
    assert estimate.plot(tmp_path / "e.png").content == (tmp_path / "e.png").read_bytes()
    drawing = estimate.plot()
    root = ET.fromstring(drawing.content)  # noqa: S314 - our own
    texts = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    for words in ("n: COUNT(*)", "± 749", "count 10", "± 7,490 %", "count 10,000", "epsilon", "1,000 rows"):
        assert words in texts
    assert estimate.plot().content == drawing.content
    for place, code in (("plot.svg", 0), ("plot.png", 0), ("plot.jpg", 2), ("", 2)):
        target = str(tmp_path / place) if place else ""
        done = discreet(
            "estimate", str(visits), "SELECT COUNT(*) FROM data", *ASK, "--epsilon", "0.5", "--plot", target
        )
        assert done.code == code, done.err
        assert (tmp_path / place).is_file() is (code == 0)


@pytest.mark.parametrize("epsilon", ["0.000000000001", "1000000000"])
def test_at_the_ends_of_epsilon(commits, epsilon):
    picture = outlook(commits.plan(SQL, epsilon=epsilon, **KNOWN), Fraction(95, 100))
    assert all(EPSILON_STEP <= e <= 10**9 for e in picture.epsilons)
    assert b"<svg" in commits.estimate(SQL, epsilon=epsilon, **KNOWN).plot().content
