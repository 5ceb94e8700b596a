"""The command line, where it refuses: each in one form, with its exit code, and without a trace in the ledger."""

from __future__ import annotations

import json
import math
from pathlib import Path

import duckdb
import numpy as np
import pytest

import discreet as library
from discreet.dataset import Dataset
from discreet.engines.duckdb import DuckDBSession
from discreet.ledger import Ledger

COUNT = "SELECT COUNT(*) AS n FROM data"
SUM = "SELECT SUM(minutes) FROM data"
ROWS = ("--unit", "who", "--max-contributions", "10")
PAY = ("--epsilon", "0.1", "--budget", "1")


def entries(ledger: Path, source: Path):
    if not ledger.exists():
        return ()
    with Ledger(ledger) as book:
        return book.history(f"file:{source.resolve()}")


# --- field report R27: epsilon and delta ---------------------------------------------------------------------

BAD = ["0", "-1", "NaN", "inf", "1e400", "", "one", "True", "1e-320"]
RANGE = "must be a number from 0.000000000001 to 1000000000 with at most 12 decimal places"


@pytest.mark.parametrize("value", BAD)
def test_r27_epsilon_on_the_command_line(discreet, visits, value):
    assert discreet("query", str(visits), COUNT, *ROWS, *PAY).code == 0
    before = entries(discreet.ledger, visits)
    for command in ("query", "estimate"):
        done = discreet(command, str(visits), COUNT, *ROWS, "--epsilon", value)
        assert done.code == 2
        assert done.out == ""
        assert done.error().startswith(f"discreet: epsilon: {RANGE}")
    assert entries(discreet.ledger, visits) == before


@pytest.mark.parametrize("value", BAD)
def test_r27_budget_on_the_command_line(discreet, visits, value):
    done = discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.1", "--budget", value)
    assert done.code == 2
    assert done.error().startswith(f"discreet: budget: {RANGE}")
    assert not discreet.ledger.exists()


@pytest.mark.parametrize("value", [*BAD, "0.1", "1"])
def test_r27_delta_on_the_command_line(discreet, visits, value):
    done = discreet("query", str(visits), COUNT, *ROWS, *PAY, "--delta", value)
    if value == "0":  # no delta at all
        assert done.code == 0
        return
    assert done.code == 2
    assert done.error().startswith("discreet: delta: must be 0, or a number above 0 and below 0.01")
    assert not discreet.ledger.exists()


@pytest.mark.parametrize("value", ["0", "-1", "'NaN'", "'inf'", "1e400", "''", "'one'", "1e-320"])
def test_r27_epsilon_in_the_sql(discreet, visits, value):
    text = f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = {value}) COUNT(*) FROM data"
    done = discreet("query", str(visits), text, *ROWS, "--budget", "1")
    assert done.code == 2
    assert "epsilon" in done.error()
    assert [str(entry.kind) for entry in entries(discreet.ledger, visits)] in ([], ["register"])


@pytest.mark.parametrize(
    "value",
    [0, -1, math.nan, math.inf, "1e400", "", "one", True, 1e-320, "1e-320", np.float64("nan"), np.bool_(True), []],
)
def test_r27_in_python(discreet, visits, value):
    data = library.open(visits, privacy_unit="who", max_contributions=10, budget=1)
    before = data.history()
    for ask in (data.query, data.estimate):
        with pytest.raises(library.UsageError, match=r"^epsilon: must be a number from 0.000000000001 to 1000000000"):
            ask(COUNT, epsilon=value)
    if value != 0 or isinstance(value, bool):
        with pytest.raises(library.UsageError, match=r"^delta: must be 0, or a number above 0 and below 0.01"):
            data.query(COUNT, epsilon=0.1, delta=value)
    with pytest.raises(library.UsageError, match=r"^budget: must be"):
        library.open(visits, privacy_unit="who", budget=value)
    assert data.history() == before
    data.close()


# --- field report R61, and other questions that are not answered ---------------------------------------------


@pytest.mark.parametrize(
    "text", ["SELECT * FROM data", "SELECT who FROM data", "SELECT who, ward FROM data WHERE minutes > 1"]
)
def test_r61_no_aggregate(discreet, visits, text):
    done = discreet("query", str(visits), text, *ROWS, *PAY)
    assert done.code == 4
    assert done.out == ""
    assert "private" in done.error()
    for value in ("ann", "bob", "cid"):
        assert value not in done.err
    assert [str(entry.kind) for entry in entries(discreet.ledger, visits)] in ([], ["register"])


def test_r61_nothing_but_the_answer_shows_data(discreet, tmp_path):
    path = tmp_path / "secret.csv"
    path.write_text("who,place,amount\nzaphod,betelgeuse,31337\nford,guildford,27182\n")
    text = "SELECT place, SUM(amount) AS s FROM data GROUP BY place"
    ask = (
        str(path),
        text,
        "--unit",
        "who",
        "--max-contributions",
        "1",
        "--keys",
        "place=x,y",
        "--bounds",
        "amount=0..9",
    )
    said = ""
    for command in ("estimate", "query"):
        done = discreet(command, *ask, *PAY)
        assert done.code == 0
        said += done.out + done.err
    for bad in ("SELECT AVG(place) FROM data", "SELECT SUM(amount) FROM data", "SELECT nothing FROM data", "SELEC"):
        done = discreet("query", str(path), bad, "--unit", "who", "--max-contributions", "1", *PAY)
        assert done.code in (2, 4)
        said += done.out + done.err
    for kind in ("table", "json", "csv"):
        said += discreet("budget", str(path), "--format", kind).out
    for value in ("zaphod", "betelgeuse", "31337", "ford", "guildford", "27182"):
        assert value not in said


@pytest.mark.parametrize(
    ("text", "arguments", "words"),
    [
        ("SELECT ward, COUNT(*) FROM data GROUP BY ward", (), "--keys ward="),  # R04
        ("SELECT SUM(minutes) FROM data", (), "--bounds minutes="),  # R02
        ("SELECT AVG(minutes) FROM data", (), "--bounds minutes="),
        ("SELECT MIN(minutes) FROM data", (), "MIN"),
        ("SELECT COUNT(*) FROM data JOIN other USING (who)", (), "JOIN"),
    ],
)
def test_refusals_show_the_way(discreet, visits, text, arguments, words):
    done = discreet("query", str(visits), text, *ROWS, *PAY, *arguments)
    assert done.code == 4
    assert words in done.error()
    assert "Hint:" in done.error()
    assert [str(entry.kind) for entry in entries(discreet.ledger, visits)] in ([], ["register"])


# --- bad input of every kind ---------------------------------------------------------------------------------

USAGE = [
    (("query",), "missing argument 'SOURCE'"),
    (("query", "{v}"), "SQL: is missing"),
    (("quer",), "did you mean 'query'"),
    (("query", "{v}", COUNT, "--espilon", "1"), "--epsilon"),
    (("query", "{v}", COUNT, *ROWS, *PAY, "more"), "more"),
    (("query", "{v}", COUNT, "--epsilon"), "--epsilon"),
    (("query", "{v}", COUNT, *ROWS, "--budget", "1"), "epsilon: is required"),
    (("query", "{v}", COUNT, *PAY), "--row-level"),
    (("query", "{v}", COUNT, "--unit", "who", *PAY), "--max-contributions 20"),
    (("query", "{v}", COUNT, "--unit", "whom", "--max-contributions", "1", *PAY), "whom"),
    (("query", "{v}", COUNT, "--unit", "", "--max-contributions", "1", *PAY), "privacy unit"),
    (("query", "{v}", COUNT, "--unit", "who", "--row-level", *PAY), "exclude each other"),
    (("query", "{v}", COUNT, "--unit", "who,who", "--max-contributions", "1", *PAY), "twice"),
    *[
        (
            ("query", "{v}", COUNT, "--unit", "who", "--max-contributions", value, *PAY),
            "max_contributions: must be a whole",
        )
        for value in ("0", "-1", "1.5", "many", "", "nan", "1e99")
    ],
    (("query", "{v}", COUNT, *ROWS, *PAY, "--max-groups-contributed", "0"), "max_groups_contributed"),
    *[
        (
            ("query", "{v}", COUNT, *ROWS, *PAY, "--confidence", value),
            "confidence: must be a number above 0 and below 1",
        )
        for value in ("0", "1", "95", "nan", "")
    ],
    (("query", "{v}", COUNT, *ROWS, *PAY, "--format", "xml"), "--format: must be one of table, csv"),
    (("budget", "{v}", "--format", "xml"), "--format: must be one of table"),
    (("query", "{v}", "", *ROWS, *PAY), "query: must be a SELECT"),
    (("query", "{v}", "SELECT COUNT(* FROM data", *ROWS, *PAY), "query: is not valid SQL"),
    (("query", "{v}", f"{COUNT}; {COUNT}", *ROWS, *PAY), "exactly one statement"),
    (("query", "{v}", "SELECT COUNT(*) FROM 'visits.csv'", *ROWS, *PAY), "FROM"),
    (("query", "{v}", "SELECT COUNT(whom) FROM data", *ROWS, *PAY), "whom"),
    (("query", "{v}", COUNT, *ROWS, *PAY, "--keys", "ward=A"), "keys"),
    *[
        (("query", "{v}", "SELECT ward, COUNT(*) FROM data GROUP BY ward", *ROWS, *PAY, *keys), words)
        for keys, words in [
            (("--keys", "ward"), "--keys: must be NAME=value"),
            (("--keys", "=A"), "--keys: must be NAME=value"),
            (("--keys", "ward="), "--keys ward: lists no value"),
            (("--keys", 'ward="A'), "--keys ward: has a quote that is not closed"),
            (("--keys", "ward=A", "--keys", "who=ann"), "keys: must name a grouping column"),
            (("--keys-file", "ward="), "--keys-file: must be FILE or NAME=FILE"),
            (("--keys-file", "ward={empty}"), "--keys-file: lists no key"),
            (("--keys-file", "ward={two}"), "--keys-file two.txt, line 2: must hold one key"),
        ]
    ],
    *[
        (("query", "{v}", SUM, *ROWS, *PAY, "--bounds", bounds), words)
        for bounds, words in [
            ("minutes", "--bounds: must be NAME=LOWER..UPPER"),
            ("minutes=5", "--bounds: must be NAME=LOWER..UPPER"),
            ("=1..2", "--bounds: must be NAME=LOWER..UPPER"),
            ("minutes=10..0", "10 and 0"),  # R59
            ("minutes=0..inf", "upper: must be a finite number"),  # R60
            ("minutes=nan..1", "lower: must be a finite number"),
            ("minutes=1e400..", "upper: must be a finite number"),
        ]
    ],
    (
        ("query", "{v}", SUM, *ROWS, *PAY, "--bounds", "minutes=0..1", "--bounds", "minutes=0..2"),
        "is given twice",
    ),
    (
        ("query", "{v}", SUM, *ROWS, *PAY, "--bounds", "minutes=0..1", "--bounds", "hours=0..2"),
        "hours",
    ),
    (("query", "{v}", COUNT, *ROWS, *PAY, "--types", "minutes"), "--types: must be NAME=TYPE"),
    (("query", "{v}", COUNT, *ROWS, *PAY, "--types", "minutes=GEOMETRY"), "is not a known type"),
    (("query", "{v}", COUNT, *ROWS, *PAY, "--types", "hours=BIGINT"), "hours"),
    (("query", "{v}", COUNT, *ROWS, *PAY, "--ledger", ""), "ledger: must be the path of a file"),
    (("budget",), "SOURCE: is missing"),
    (("budget", "{v}", "{v}"), "budget: takes one source"),
    (("budget", "{v}", "--budget", "2"), "budget: takes one source"),
    (("budget", "raise", "{v}"), "--budget: is required"),
    (("noise",), "missing option '--scale'"),
    *[(("noise", "--scale", value), "scale") for value in ("0", "-1", "nan", "inf", "one", "", "1e-13", "1e39")],
    *[
        (("noise", "--scale", "1", "--size", value), "--size: must be a whole number from 1 to 1000000")
        for value in ("0", "-1", "1.5", "many", "1000001")
    ],
]


@pytest.mark.parametrize(("arguments", "words"), USAGE, ids=[" ".join(a[:1]) + " " + w for a, w in USAGE])
def test_usage_errors_exit_2(discreet, visits, tmp_path, arguments, words):
    (tmp_path / "empty.txt").write_text("\n\n")
    (tmp_path / "two.txt").write_text("A\nB,C\n")
    places = {"{v}": str(visits), "{empty}": str(tmp_path / "empty.txt"), "{two}": str(tmp_path / "two.txt")}
    for place, path in places.items():
        arguments = tuple(argument.replace(place, path) for argument in arguments)
    done = discreet(*arguments)
    assert done.code == 2, done.err
    assert done.out == ""
    assert words.lower() in done.error().lower()
    assert not {str(entry.kind) for entry in entries(discreet.ledger, visits)} - {"register"}


def test_text_that_is_not_unicode(discreet, visits):
    done = discreet.process("query", str(visits).encode(), b"SELECT COUNT(*) FROM data -- \xff", *ROWS, *PAY)
    assert done.code == 2
    assert done.error().startswith("discreet: argument: must be valid Unicode text")


def test_a_budget_is_for_good_and_of_one_unit(discreet, visits):
    assert discreet("query", str(visits), COUNT, *ROWS, *PAY).code == 0
    other = discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.1", "--budget", "2")
    assert other.code == 2
    assert "set for good" in other.error()
    unit = discreet("query", str(visits), COUNT, "--row-level", "--epsilon", "0.1")
    assert unit.code == 2
    assert "privacy unit" in unit.error()
    types = discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.1", "--types", "minutes=VARCHAR")
    assert types.code == 2
    assert "was registered as BIGINT" in types.error()


# --- exit 1: files and engine --------------------------------------------------------------------------------


def test_sources_that_cannot_be_read_exit_1(discreet, tmp_path):
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "fake.csv.gz").write_text("who\na\n")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no")
    (tmp_path / "what.xyz").write_text("who\na\n")
    (tmp_path / "latin.csv").write_bytes("who,name\na,M\u00fcller\n".encode("latin-1"))
    for name in ("missing.csv", "empty.csv", "fake.csv.gz", "broken.parquet", "what.xyz", "latin.csv", "."):
        done = discreet("query", str(tmp_path / name), COUNT, *ROWS, *PAY)
        assert done.code == 1, (name, done.err)
        done.error()
        assert "M\u00fcller" not in done.err
        assert entries(discreet.ledger, tmp_path / name) == ()


def test_keys_files_that_cannot_be_read_exit_1(discreet, visits, tmp_path):
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.txt", "bytes.txt", "."):
        text = "SELECT ward, COUNT(*) FROM data GROUP BY ward"
        done = discreet("query", str(visits), text, *ROWS, *PAY, "--keys-file", f"ward={tmp_path / name}")
        assert done.code == 1, (name, done.err)
        assert done.error().startswith("discreet: --keys-file: ")


def test_an_engine_that_fails_exits_1_and_stays_charged(discreet, visits, monkeypatch):
    def fail(self, statement):
        raise duckdb.ConversionException("Could not convert string 'ann' to INT32")

    monkeypatch.setattr(DuckDBSession, "_read_totals", fail)
    done = discreet("query", str(visits), COUNT, *ROWS, *PAY)
    assert done.code == 1
    assert "its cost stays spent" in done.error()
    assert "ann" not in done.err
    assert json.loads(discreet("budget", str(visits), "--format", "json").out)["spent"]["epsilon"] == "0.1"


def test_a_fault_of_ours_exits_1_and_shows_nothing(discreet, visits, monkeypatch):
    def fail(self, *_, **__):
        raise RuntimeError("row ('ann', 'A', 1)")

    monkeypatch.setattr(Dataset, "answer", fail)
    done = discreet("query", str(visits), COUNT, *ROWS, *PAY)
    assert done.code == 1
    assert done.err.splitlines()[-1].startswith("discreet: internal fault: ")
    assert "ann" not in done.err
    assert "Traceback" not in done.err


# --- exit 3 and 5: budget and ledger -------------------------------------------------------------------------


def test_no_budget_and_too_little_exit_3(discreet, visits):
    done = discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.1")
    assert done.code == 3
    assert "--budget" in done.error()
    assert discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.9", "--budget", "1").code == 0
    done = discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.2")
    assert done.code == 3
    assert done.out == ""
    for words in (
        "is epsilon 1",
        "spent: epsilon 0.9",
        "left: epsilon 0.1",
        "asked: epsilon 0.2",
        "Nothing was charged",
    ):
        assert words in done.error()
    assert discreet("query", str(visits), COUNT, *ROWS, "--epsilon", "0.1").code == 0
    for epsilon in ("0.000000000001", "1e-12"):  # R66
        assert discreet("query", str(visits), COUNT, *ROWS, "--epsilon", epsilon).code == 3


def test_a_ledger_that_is_none_exits_5(discreet, visits, tmp_path):
    other = tmp_path / "notes.txt"
    other.write_text("dear diary\n" * 100)
    for ledger in (other, tmp_path):
        for command in (("query", str(visits), COUNT, *ROWS, *PAY), ("budget", str(visits))):
            done = discreet(*command, "--ledger", str(ledger))
            assert done.code == 5, done.err
            done.error()
    assert other.read_text() == "dear diary\n" * 100


def test_looking_at_a_budget_makes_no_ledger(discreet, visits):
    done = discreet("budget", str(visits))
    assert done.code == 5
    assert "does not exist" in done.error()
    assert not discreet.ledger.exists()


def test_a_source_that_the_ledger_does_not_know(discreet, visits, tmp_path):
    assert discreet("query", str(visits), COUNT, *ROWS, *PAY).code == 0
    done = discreet("budget", str(tmp_path / "other.csv"))
    assert done.code == 2
    assert "is not in this ledger" in done.error()
