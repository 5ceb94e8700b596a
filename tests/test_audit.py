"""The auditor on queries that keep their promise, on ones made wrong, and from the command line."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest

import discreet as package
from discreet.audit import replay
from discreet.audit.auditor import Extent, audit
from discreet.audit.script import Script
from discreet.audit.synthetic import fill
from discreet.audit.tables import WHOLE, Tables

ROOT = Path(__file__).resolve().parents[1]
TYPES = {
    "who": "VARCHAR",
    "kind": "VARCHAR",
    "at": "TIMESTAMP",
    "n": "BIGINT",
    "x": "DOUBLE",
    "d": "DECIMAL(9,2)",
    "flag": "BOOLEAN",
}
SMALL = Extent(neighbours=12, runs=20_000, answers=16, measured=False)
QUICK = ["--runs", "4000"]


@pytest.fixture
def data(tmp_path):
    """The columns, and no row: all that an audit on synthetic rows takes of a source."""
    path = tmp_path / "t.csv"
    path.write_text(",".join(TYPES) + "\n")
    return package.open(
        path,
        privacy_unit="who",
        max_contributions=4,
        ledger=tmp_path / "ledger",
        types=TYPES,
        header=True,
    )


QUERIES = {
    "counts": ("SELECT kind, COUNT(*), COUNT(DISTINCT who) AS who FROM data GROUP BY kind", {"kind": ["A", "B", None]}),
    "sums": (
        "SELECT SUM(x, contribution_bounds_per_row => (-3, 8)), AVG(d, contribution_bounds_per_row => (0, 10)), "
        "COUNT(DISTINCT n) FROM data WHERE YEAR(at) = 2024 AND n < 7",
        None,
    ),
    "picked": (
        "SELECT flag, COUNT(x) AS c, MEDIAN(n, contribution_bounds_per_row => (0, 15)) AS m FROM data GROUP BY flag "
        "HAVING c > 2 ORDER BY m LIMIT 1",
        {"flag": [True, False]},
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_what_keeps_its_promise_passes_and_the_bound_is_reached(name, data):
    sql, keys = QUERIES[name]
    found = audit(data.plan(sql, epsilon=1, keys=keys), label="a", extent=SMALL)
    assert found.findings == ()
    assert found.kept > 100
    assert len(found.compared) > 5
    assert {(u.statistic, u.used == u.declared) for u in found.used} == {(u.statistic, True) for u in found.used}
    assert found.loss <= 1


def test_chosen_groups_pass(data):
    plan = data.plan("SELECT kind, COUNT(*) AS n FROM data GROUP BY kind", epsilon=1, delta="1e-6")
    found = audit(plan, label="a", extent=SMALL)
    assert found.findings == ()
    assert found.used[0].statistic == "units in chosen groups"
    assert found.used[0].used == found.used[0].declared


def test_rows_that_are_units(data, tmp_path):
    rows = package.open(tmp_path / "t.csv", row_level=True, ledger=tmp_path / "ledger")
    plan = rows.plan(
        "SELECT kind, SUM(x) AS s FROM data GROUP BY kind", epsilon=1, keys={"kind": ["A", "B"]}, bounds={"x": (0, 4)}
    )
    found = audit(plan, label="a", extent=SMALL)
    assert found.findings == ()
    assert found.used[0].used == found.used[0].declared


def test_a_public_table_is_joined(data, tmp_path):
    (tmp_path / "plans.csv").write_text("code,plan,price\nA,free,0\nB,paid,5\n")
    sql = "SELECT plan, COUNT(*) AS n FROM data JOIN plans ON data.kind = plans.code GROUP BY plan"
    plan = data.plan(sql, epsilon=1, keys={"plan": ["free", "paid"]}, public={"plans": tmp_path / "plans.csv"})
    found = audit(plan, label="a", extent=SMALL)
    assert found.findings == ()
    assert found.used[0].used == found.used[0].declared


def test_a_label_gives_the_same_table_and_another_label_another(data, tmp_path):
    plan = data.plan(*QUERIES["sums"][:1], epsilon=1)

    def rows(label):
        folder = tmp_path / f"tables {label} {len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        tables = Tables(plan, folder)
        fill(tables, label)
        return replay.follow(plan, tables.engine(WHOLE), "x", package.exact.parse_confidence("0.95"))

    assert replay.same_totals(rows("one"), rows("one"))
    assert not replay.same_totals(rows("one"), rows("two"))


def test_a_script_gives_the_same_words_and_its_twin_goes_on_from_there():
    one, two = Script("a"), Script("a")
    assert one.words(5).tolist() == two.words(5).tolist()
    assert one.bits(9) == two.bits(9)
    more = one.words(3).tolist()
    assert more == one.again(2).words(3).tolist()
    assert more != Script("b").words(3).tolist()
    assert one.calls == [("words", 5), ("bits", 9), ("words", 3)]


def test_an_audit_charges_nothing_and_reads_no_row(discreet, visits, tmp_path):
    ask = [str(visits), "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--unit", "who"]
    ask += ["--max-contributions", "3", "--epsilon", "1", "--keys", "ward=A,B", *QUICK]
    done = discreet("audit", *ask, "--report", str(tmp_path / "report.json"))
    assert done.code == 0, done.err
    assert "passed" in done.err
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["passed"] is True
    assert report["this_report"] == "of synthetic rows only"
    ask += ["--label", report["table"]["label"]]
    again = discreet("audit", *ask)
    assert of_the_table(again.out) == of_the_table(done.out)
    text = (tmp_path / "report.json").read_text() + done.out
    assert not {"ann", "bob", "cid"} & set(text.replace('"', " ").split())
    assert "debit" not in discreet("budget", str(visits)).out
    visits.write_text("who,ward,minutes\n")  # no row is there any more
    assert of_the_table(discreet("audit", *ask).out) == of_the_table(done.out)


def of_the_table(out):
    """What does not depend on the runs."""
    return out.partition("statistics:")[0]


def test_real_rows_only_on_demand_and_into_a_private_report(discreet, visits, tmp_path):
    ask = [str(visits), "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "--unit", "who"]
    ask += ["--max-contributions", "3", "--epsilon", "1", "--keys", "ward=A,B", "--on-real-data", *QUICK]
    assert "--report" in discreet("audit", *ask).error()
    path = tmp_path / "report.json"
    done = discreet("audit", *ask, "--report", str(path))
    assert done.code == 0, done.err
    assert done.out == ""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    report = json.loads(path.read_text())
    assert report["table"] == {"real": True, "label": report["table"]["label"], "rows": 6, "kept": 5}
    assert "private" in report["this_report"]
    assert "private" in done.err


def test_the_page_audits_the_question_of_the_readme():
    """Its output is compared by the tests of the pages: it passes, and prints its power."""
    question = (
        "SELECT action, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors FROM commits "
        "WHERE YEAR(time) = 2024 GROUP BY action"
    )
    page = (ROOT / "docs" / "audit.md").read_text()
    assert question in (ROOT / "README.md").read_text()
    assert f'$ discreet audit examples/commits.jsonl.gz "{question}"' in page
    assert re.search(r"power: noise [\d.]+ times too small would have failed the audit with probability 0.95", page)
    assert "passed: no promise was found broken" in page


def test_the_two_histograms_are_drawn(discreet, tmp_path):
    ask = ["audit", "--synthetic", "SELECT COUNT(*) FROM data", "--types", "u=BIGINT", "--unit", "u"]
    ask += ["--max-contributions", "2", "--epsilon", "0.5", *QUICK]
    done = discreet(*ask, "--plot", str(tmp_path / "two.svg"))
    assert done.code == 0, done.err
    assert "without it" in (tmp_path / "two.svg").read_text()
    assert discreet(*ask, "--plot", str(tmp_path / "two.gif")).code == 2


def test_columns_alone(discreet):
    sql = 'SELECT SUM("a b") AS s FROM data'
    ask = ["audit", "--synthetic", sql, "--types", "a b=DOUBLE", "--types", "u=BIGINT", "--unit", "u"]
    ask += ["--max-contributions", "2", "--epsilon", "0.5", "--bounds", "a b=0..3", *QUICK]
    done = discreet(*ask)
    assert done.code == 0, done.err
    assert "all of the declared sensitivity" in done.out


def test_words_that_are_missing_are_told(discreet, visits):
    assert discreet("audit", str(visits)).code == 2
    assert discreet("audit", "--synthetic", "SELECT COUNT(*) FROM data").code == 2
    assert discreet("audit", "--synthetic", "--on-real-data", "SELECT COUNT(*) FROM data").code == 2
    assert discreet("audit", str(visits), "SELECT 1", "--on-real-data", "--label", "x").code == 2
