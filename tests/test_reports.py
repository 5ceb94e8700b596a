"""All releases of a data set as one document: complete, well formed, with no shadow of an exact total."""

from __future__ import annotations

import json
import re
import sqlite3
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import discreet as package
from command import Command
from discreet.deployment import Deployment, deployment
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import EngineError
from discreet.formats import escape_markdown
from discreet.ledger import Ledger, Method, Window
from discreet.privacy import PrivacyLoss
from discreet.relational import compile_plan
from discreet.reports import document, markdown, registry, statements

HOSTILE = ["<script>alert(1)</script>", "a|b", "`x`", "*y* _z_", "[l](http://e.x)", "one\ntwo", "\\", "&amp;", "~~s~~"]


def opened(tmp_path: Path, **more: Any) -> package.Dataset:
    path = tmp_path / "people.csv"
    path.write_text("u,k,x\n" + "".join(f"u{i % 40},k{i % 300},{i % 7}\n" for i in range(3000)))
    given = {"privacy_unit": "u", "max_contributions": 60, "budget": (5, "1e-4"), "ledger": tmp_path / "l"} | more
    return package.open(path, **given)


def report(data: package.Dataset) -> Deployment:
    with Ledger(data.ledger_path) as book:
        return deployment(book, data.registration.source)


def tables(text: str) -> list[list[list[str]]]:
    """The tables of a Markdown text, as a reader of Markdown sees them: rows of plain cells."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").enable("strikethrough").parse(text)
    found: list[list[list[str]]] = []
    for i, token in enumerate(tokens):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type in ("td_open", "th_open"):
            inner = tokens[i + 1].children or []
            assert all(child.type in ("text", "text_special") for child in inner), [c.type for c in inner]
            found[-1][-1].append("".join(child.content for child in inner))
    return found


def headings(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", text, re.MULTILINE)


# --- Markdown ----------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20) | st.text("*_ab|<`\\ ~[](", max_size=9)
)
def test_any_text_is_shown_as_it_is(text: str) -> None:
    """In a table's cell, but for white space."""
    assert escape_markdown("COUNT(*) of lag_s") == "COUNT(*) of lag_s"
    (((_,), (shown,)),) = tables(f"| h |\n|---|\n| x{escape_markdown(text)}x |\n")
    assert "".join(shown.split()) == "".join(f"x{text}x".split())


def test_everything_stands_in_the_markdown(tmp_path):
    data = opened(tmp_path)
    keys = {"k": [f"k{i}" for i in range(300)]}
    long = data.query("SELECT k, COUNT(*) AS n FROM data GROUP BY k", epsilon=1, keys=keys, analyst="ann")
    short = data.query("SELECT AVG(x) AS mean, COUNT(DISTINCT u) AS who FROM data WHERE x < 5", epsilon="0.5",
                       bounds={"x": (0, 6)})  # fmt: skip
    chosen = data.query("SELECT k, COUNT(*) AS n FROM data GROUP BY k", epsilon=1, delta="1e-6",
                        max_groups_contributed=2)  # fmt: skip
    found = report(data)
    text = markdown.render(found)
    assert headings(text)[:4] == ["Private releases about people.csv", "The promise", "The budget in time",
                                  "Columns of people.csv"]  # fmt: skip
    assert text.count("```sql\n") == 3
    shown = tables(text)
    assert all(len({len(row) for row in table}) == 1 for table in shown)
    (answer,) = [table for table in shown if table[0] == ["k", "n", "95 % interval"] and len(table) == 301]
    assert [row[0] for row in answer[1:]] == keys["k"]
    assert [int(row[1].replace(",", "")) for row in answer[1:]] == list(long["n"])
    assert "<details>\n<summary>All 300 groups</summary>\n\n| k | n |" in text
    assert text.count("<details>") == text.count("</details>")
    facts = {row[0]: row[1] for table in shown for row in table if len(row) == 2}
    assert facts["mean"] == "AVG(x), bounds 0..6, from noise 1, 2"
    assert facts["privacy unit"] == "u (per u)"
    assert facts["total"] == "epsilon 5, delta 0.0001"
    assert facts["spent"] == "epsilon 2.5, delta 0.000001"
    assert facts["asked by"] in ("ann", "(not named)")
    assert "a group is shown if its noisy number of units is at least" in facts["groups chosen from the data"]
    noise = [table for table in shown if table[0][-1] == "scale"]
    assert noise[0][1] == ["1", "count of rows", "", "discrete Laplace", "1", "60", "60"]
    assert noise[1][1][-2:] == ["180", "1,080"], "the larger distance from the centre, 3, times 60; over a sixth"
    assert f"{len(chosen)} passed" in text
    assert len(short) == 1
    assert text.rstrip().endswith("replaced since.")
    assert f"```text\n{found.head}\n```" in text


def test_hostile_names_and_keys_stay_text(tmp_path):
    data = opened(tmp_path)
    data.query("SELECT k AS \"<b>|k\", COUNT(*) AS n FROM data GROUP BY k -- ``` </details>", epsilon=1,
               keys={"k": HOSTILE}, analyst="<i>ann")  # fmt: skip
    text = markdown.render(report(data))
    shown = tables(text)
    (answer,) = [table for table in shown if table[0][0] == "<b>|k"]
    assert ["".join(row[0].split()) for row in answer[1:]] == ["".join(key.split()) for key in HOSTILE]
    html = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    assert "<script" not in html
    assert "<i>" not in html
    assert html.count("<h3>") == 1


def test_what_gave_no_answer_is_told(tmp_path, monkeypatch):
    data = opened(tmp_path, budget=3)
    with monkeypatch.context() as patch, pytest.raises(EngineError):
        patch.setattr(DuckDBEngine, "run", lambda *_: (_ for _ in ()).throw(EngineError("engine", "failed")))
        data.query("SELECT COUNT(*) FROM data", epsilon=1)
    with monkeypatch.context() as patch:
        patch.setattr("discreet.release.kept", lambda *_: {"rows": []})
        data.query("SELECT COUNT(*) FROM data", epsilon=1)
    with Ledger(data.ledger_path) as book:
        book.debit(
            data.registration.source, PrivacyLoss(Fraction(1)), unit="u", query="SELECT 1", digest="d", limits={}
        )
    found = report(data)
    text = markdown.render(found)
    assert "**No answer.** It failed: the engine failed. Its cost stays spent." in text
    assert "**No answer.** It was released, but stored in a form" in text
    assert "**No answer.** It was charged, and is still running, or its process died." in text
    assert "| guarantee | pure epsilon-DP |" in text
    states = [release["state"] for release in document.document(found)["releases"]]
    assert states == ["failed", "released", "debited"]
    assert len(yaml.safe_load(registry.as_yaml(found))) == 2


def test_before_anything_is_asked(tmp_path):
    data = opened(tmp_path, budget=None)
    found = report(data)
    assert "No budget is set, so nothing was answered" in markdown.render(found)
    assert document.document(found)["promise"]["total"] is None
    assert "privacy_parameters" not in registry.entry(found)["deployment"]["privacy_loss"]


# --- no shadow of exact totals -----------------------------------------------------------------------------


def test_no_exact_total_can_be_found(tmp_path):
    """At scales of 10^12 and more, no total of the engine's own, nor what it is worth, stands in a report."""
    data = opened(tmp_path, budget=1, max_contributions=4000)
    sql = "SELECT COUNT(*) AS n, SUM(x) AS total, AVG(x) AS mean, COUNT(DISTINCT k) AS kinds FROM data"
    given = {"epsilon": "0.000000000001", "bounds": {"x": (0, 1000)}}
    data.query(sql, **given)
    plan = data.plan(sql, **given)
    private = set()
    for one, total in zip(plan.measurements, DuckDBEngine(data.registration).run(compile_plan(plan)), strict=True):
        private |= {abs(number) for number in total.to_ints()}
        private |= {abs(round(number * one.unit_value)) for number in total.to_ints()}
    private = {number for number in private if number > 1000}
    assert len(private) >= 4 and 3000 in private
    found = report(data)
    for text in (markdown.render(found), document.as_json(found), registry.as_yaml(found)):
        numbers = {
            int(number) for number in re.findall(r"\d+", re.sub(r"(?<=\d),(?=\d)", "", text)) if len(number) < 60
        }
        assert not numbers & private
        assert "totals" not in text.replace("the totals", "").replace("pull totals", ""), "not even the noisy ones"


# --- JSON --------------------------------------------------------------------------------------------------


def test_the_json_is_complete_and_agrees_with_the_ledger(tmp_path):
    data = opened(tmp_path)
    first = data.query("SELECT COUNT(*) AS n FROM data", epsilon=1, analyst="ann")
    data.query("SELECT COUNT(*) AS n FROM data", epsilon="0.25", analyst="bob")
    told = json.loads(document.as_json(report(data)))
    assert told["releases"][0]["answer"]["rows"] == first.report()["rows"]
    costs = [Fraction(release["cost"]["epsilon"]) for release in told["releases"]]
    assert sum(costs) == Fraction(told["promise"]["spent"]["epsilon"]) == Fraction(5, 4)
    assert Fraction(told["promise"]["left"]["epsilon"]) == 5 - sum(costs)
    assert [step["spent"]["epsilon"] for step in told["budget_over_time"]] == ["0", "1", "1.25"]
    assert [(share["analyst"], share["epsilon"]) for share in told["by_analyst"]] == [("ann", "1"), ("bob", "0.25")]
    assert told["releases"][0]["answer"]["measurements"][0]["scale_in_the_answer"] == 60
    with Ledger(data.ledger_path) as book:
        assert told["ledger"] == {"entries": book.overview("x").entries, "head": book.verify()}
    with pytest.raises(AssertionError):
        assert told["releases"][0]["answer"]["rows"] == [], "this comparison can fail"


def test_windows_and_tighter_accounting_are_told(tmp_path):
    data = opened(tmp_path, budget=None)
    with Ledger(data.ledger_path) as book:
        source = data.registration.source
        total = PrivacyLoss(Fraction(3), Fraction(1, 10**5))
        book.set_budget(source, total, unit="u", window=Window.MONTHLY)
        book.set_accounting(source, Method.RENYI)
    for i in range(40):
        data.query(f"SELECT COUNT(*) AS n{i} FROM data", epsilon="0.05")
    found = report(data)
    text = markdown.render(found)
    assert "in each month change by a factor of at most e^3, but for a chance of 0.00001" in text
    assert "what all of them lose together has no bound" in text
    assert "a Renyi filter at order" in text
    assert re.search(r"\| sum of the losses \| epsilon 2 \|", text)
    assert re.search(r"accounting: accounting renyi, order \d", text)
    told = document.document(found)["promise"]
    assert (told["accounting"], told["variant"], told["sum_of_losses"]["epsilon"]) == ("renyi", "approximate", "2")
    assert Fraction(told["spent"]["epsilon"]) < 2
    assert "These are the totals of one window (monthly" in registry.as_yaml(found)


# --- the registry ------------------------------------------------------------------------------------------

# The registry's fields, and what some of them are limited to (schemas/deployments-schema.yaml, 2026).
FIELDS: dict[str, Any] = {
    "url_slug": str,
    "deployment": {
        "basic": {
            "name": str,
            "data_curators": list,
            "description": str,
            "intended_use": str,
            "data_product_type": {"Summary statistics", "Interactive API", "SQL queries"},
            "data_product_region": str,
            "data_product_sector": str,
            "publication_date": str,
        },
        "dp_variant": {
            "variant_name": {"Pure DP", "Approximate DP"},
            "data_domain": str,
            "unprotected_quantities": str,
        },
        "privacy_loss": {
            "privacy_unit": str,
            "privacy_unit_details": str,
            "number_of_privacy_units": int,
            "privacy_parameters": {"epsilon": float, "delta": str, "rho": float},
            "privacy_parameters_details": str,
        },
        "deployment_model": {
            "model_name": {"Central"},
            "model_name_details": str,
            "trust_assumptions": str,
            "actors": str,
            "release_type": {"One release", "Many releases"},
            "release_type_details": str,
            "data_source_type": {"Static", "Dynamic"},
            "data_source_type_details": str,
            "access_type": {"Interactive", "Non-interactive"},
            "access_type_details": str,
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": str,
            "mechanisms": str,
            "composition": str,
            "post_processing": str,
            "justification": str,
            "utility": str,
            "additional_information": str,
        },
        "administrative": {"evidence_sources": dict, "status": {"Draft"}, "registry_authors": list, "tier": int},
    },
}


def check_fields(value: Any, allowed: Any, path: str = "") -> None:
    if isinstance(allowed, dict):
        assert isinstance(value, dict), path
        for key, inner in value.items():
            assert key in allowed, f"{path}.{key}"
            check_fields(inner, allowed[key], f"{path}.{key}")
    elif isinstance(allowed, set):
        assert value in allowed, path
    else:
        assert isinstance(value, allowed), path


def test_the_registrys_fields(tmp_path):
    data = opened(tmp_path)
    data.query("SELECT SUM(x) AS s FROM data", epsilon=1, bounds={"x": (0, 6)})
    data.query("SELECT k, COUNT(*) AS n FROM data GROUP BY k", epsilon=1, delta="1e-6", max_groups_contributed=1)
    found = report(data)
    told = yaml.safe_load(registry.as_yaml(found))
    assert told == registry.entry(found)
    check_fields(told, FIELDS)
    with pytest.raises(AssertionError):
        check_fields({"deployment": {"basic": {"nom": ""}}}, FIELDS)
    deployed = told["deployment"]
    assert deployed["privacy_loss"]["privacy_parameters"] == {"epsilon": 5.0, "delta": "0.0001"}
    assert date.fromisoformat(deployed["basic"]["publication_date"]) == date.fromisoformat(found.time[:10])
    assert "x 0..6" in deployed["implementation"]["preprocessing_and_hyperparameter_tuning"]
    for one in found.releases[0].details["measurements"]:
        name, scale = one["measured"].partition(",")[0], one["scale_in_the_answer"]
        assert f"discrete Laplace on each {name}: scale {scale:,.6g}\n" in deployed["implementation"]["mechanisms"]
    assert found.head in deployed["implementation"]["additional_information"]
    assert registry.to_fill_in(told) == [
        "url_slug",
        "deployment.basic.data_curators.data_curator_name",
        "deployment.basic.data_curators.data_curator_type",
        "deployment.basic.intended_use",
        "deployment.basic.data_product_region",
        "deployment.implementation.justification",
        "deployment.administrative.registry_authors",
    ]


def test_nist_topics(tmp_path):
    topics = [topic for topic, stated in statements.evaluation(report(opened(tmp_path))) if stated]
    for word in ("Privacy parameters", "Variant", "Unit of privacy", "Composition", "Contribution limits", "Bounds",
                 "Mechanisms", "Utility and bias", "Query model", "Trust", "Implementation",
                 "Data security and access", "Data collection"):  # fmt: skip
        assert word in topics


# --- the command line --------------------------------------------------------------------------------------


def test_the_command(discreet: Command, visits: Path, tmp_path: Path) -> None:
    question = ("query", str(visits), "SELECT COUNT(*) AS n FROM data", "--unit", "who", "--max-contributions", "3")
    assert discreet(*question, "--epsilon", "1", "--budget", "3").code == 0
    visits.unlink()  # the ledger is enough
    done = discreet("report", str(visits))
    assert done.code == 0, done.err
    assert done.out.startswith("# Private releases about visits.csv\n")
    head = discreet("budget", "--verify").out.strip()
    assert head in done.out
    assert f"1 release; the ledger was checked up to entry 4, its head: {head}" in done.err
    for name, read in (("json", json.loads), ("yaml", yaml.safe_load)):
        target = tmp_path / "out" / f"report.{name}"
        target.parent.mkdir(exist_ok=True)
        assert discreet("report", str(visits), "--format", name, "-o", str(target)).code == 0
        written = target.read_text()
        assert read(written)
        again = discreet("report", str(visits), "--format", name)
        assert re.sub(r"\d\d:\d\d:\d\d", "", again.out) == re.sub(r"\d\d:\d\d:\d\d", "", written)
    assert "for the owner to fill in: url_slug, " in again.err
    assert discreet("report", str(visits), "--format", "html2").code == 2
    assert discreet("report", str(tmp_path / "other.csv")).code == 2
    assert discreet("report", str(visits), "-o", str(discreet.ledger)).code == 2
    assert discreet("report").code == 2
    assert discreet("report", str(visits), "--ledger", str(tmp_path / "none")).code == 5
    with sqlite3.connect(discreet.ledger) as connection:
        connection.execute("DROP TRIGGER no_delete")
    connection.close()
    done = discreet("report", str(visits))
    assert (done.code, done.out) == (5, "")


def test_without_pyyaml_the_hint_says_what_to_do(discreet, visits, monkeypatch):
    question = ("query", str(visits), "SELECT COUNT(*) AS n FROM data", "--row-level", "--epsilon", "1")
    assert discreet(*question, "--budget", "3").code == 0
    monkeypatch.setitem(__import__("sys").modules, "yaml", None)
    done = discreet("report", str(visits), "--format", "yaml")
    assert done.code == 2
    assert "needs PyYAML. Hint: pip install 'discreet[yaml]', or --format json" in done.error()


def test_the_page_from_the_command(discreet: Command, visits: Path, tmp_path: Path) -> None:
    asked = ["query", str(visits), "SELECT COUNT(*) AS visits FROM data", "--unit", "who", "--epsilon", "0.5"]
    assert discreet(*asked, "--max-contributions", "10", "--budget", "1").code == 0
    page, same = tmp_path / "page.html", tmp_path / "same.html"
    assert discreet("report", str(visits), "--html", "-o", str(page)).code == 0
    assert discreet("report", str(visits), "--format", "html", "-o", str(same)).code == 0
    text = page.read_text(encoding="utf-8")
    assert re.sub(r"\d\d:\d\d:\d\d", "", text) == re.sub(r"\d\d:\d\d:\d\d", "", same.read_text(encoding="utf-8"))
    assert text.startswith("<!doctype html>") and "<svg" in text and "visits" in text
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", text), "a page that needs the network"
    both = discreet("report", str(visits), "--html", "--format", "json")
    assert both.code == 2 and "--html" in both.err
