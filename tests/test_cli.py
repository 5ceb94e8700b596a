"""The command line, where it does what it is asked."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest

import discreet as library
from command import DISCREET

# At this epsilon the noise is below 0.001 of one row, so that the true answer shows through.
SEE = ("--epsilon", "1000000000", "--budget", "1000000000")
ROWS = ("--unit", "who", "--max-contributions", "10")
GROUPS = "SELECT ward, COUNT(*) AS n, COUNT(DISTINCT who) AS people FROM data GROUP BY ward"


def test_table_on_stdout_and_talk_on_stderr(discreet, visits):
    done = discreet("query", str(visits), GROUPS, *ROWS, "--keys", "ward=A,B,NULL", *SEE)
    assert done.code == 0
    assert done.out == (
        "ward       n  95 % interval  people  95 % interval\n"
        "─────────  ─  ─────────────  ──────  ─────────────\n"
        "A          3          3 … 3       3          3 … 3\n"
        "B          2          2 … 2       2          2 … 2\n"
        "(missing)  1          1 … 1       1          1 … 1\n"
    )
    assert done.err.splitlines() == [
        "registered visits: 3 columns, read whole, types stored",
        "warning: epsilon 1000000000 is above 10: the answer is close to exact and protects hardly anyone",
        "spent: epsilon 1000000000; left: epsilon 0",
        "privacy unit: who (per who); neighbours: add or remove all rows of one privacy unit; "
        "limits: max_contributions 10, max_groups_contributed 3; time zone UTC",
        "intervals cover the noise, not what limits and bounds clipped",
    ]


def test_registration_is_told_once(discreet, visits):
    ask = ("query", str(visits), "SELECT COUNT(*) FROM visits", *ROWS, "--epsilon", "1", "--budget", "3")
    assert "registered visits" in discreet(*ask).err
    assert "registered" not in discreet(*ask).err


def test_negative_counts_are_explained_when_there_are_some(discreet, visits):
    ask = ("query", str(visits), "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", *ROWS)
    keys = ("--keys", "ward=" + ",".join(f"k{i}" for i in range(200)))
    # Each of 200 empty groups gets noise of scale 1000: all are at least 0 with probability about 2^-200.
    done = discreet(*ask, *keys, "--epsilon", "0.01", "--budget", "1")
    assert "negative counts are noise" in done.err
    assert "warning" not in done.err
    done = discreet("query", str(visits), "SELECT COUNT(*) FROM data", *ROWS, "--epsilon", "0.99")
    # 6 people's rows at scale 10.1: negative or not, the talk says so exactly then.
    assert ("negative counts" in done.err) == (done.out.splitlines()[2].lstrip().startswith("-"))


@pytest.mark.parametrize("name", ["csv", "json", "ndjson", "markdown"])
def test_formats(discreet, visits, name):
    ask = ("query", str(visits), GROUPS, *ROWS, "--keys", "ward=A,B", *SEE, "--format", name)
    out = discreet(*ask).out
    names = ["ward", "n", "n_low", "n_high", "people", "people_low", "people_high"]
    want = [dict(zip(names, ["A", 3, 3, 3, 3, 3, 3], strict=True)), dict(zip(names, ["B"] + [2] * 6, strict=True))]
    if name == "csv":
        read = list(csv.DictReader(io.StringIO(out)))
        assert read == [{key: str(value) for key, value in row.items()} for row in want]
    elif name == "json":
        assert json.loads(out) == want
    elif name == "ndjson":
        assert [json.loads(line) for line in out.splitlines()] == want
    else:
        assert out.splitlines()[0] == "| ward | n | 95 % interval | people | 95 % interval |"
        assert out.splitlines()[2] == "| A | 3 | 3 … 3 | 3 | 3 … 3 |"


def test_sums_averages_bounds_and_report(discreet, visits, tmp_path):
    report = tmp_path / "report.json"
    text = "SELECT SUM(minutes) AS total, AVG(minutes) AS mean, COUNT(minutes) FROM data"
    ask = ("query", str(visits), text, *ROWS, *SEE, "--bounds", "minutes=0..5", "--report", str(report))
    done = discreet(*ask, "--format", "csv")
    assert done.code == 0, done.err
    row = next(csv.DictReader(io.StringIO(done.out)))
    assert float(row["total"]) == pytest.approx(20, abs=0.01)  # 6 is clamped to 5
    assert float(row["mean"]) == pytest.approx(20 / 6, abs=0.01)
    assert row["count_minutes"] == "6"
    document = json.loads(report.read_text())
    assert document["privacy_unit"] == "who"
    assert document["relation"] == "add or remove all rows of one privacy unit"
    assert document["limits"] == {"max_contributions": 10}
    assert document["epsilon"] == "1000000000"
    assert document["rows"][0]["count_minutes"] == 6
    assert {m["mechanism"] for m in document["measurements"]} == {"discrete Laplace"}
    assert all(m["sensitivity"].isdigit() and m["scale"] for m in document["measurements"])
    assert document["ledger_entry"] == 3


def test_row_level(discreet, visits):
    done = discreet("query", str(visits), "SELECT COUNT(*) AS n FROM data", "--row-level", *SEE, "--format", "csv")
    assert done.out == "n,n_low,n_high\n6,6,6\n"
    assert "privacy unit: one row" in done.err


def test_units_by_list_and_by_repeating(discreet, visits):
    text = "SELECT COUNT(*) AS n FROM data"
    rest = ("--max-contributions", "10", "--format", "csv")
    first = discreet("query", str(visits), text, "--unit", "who,ward", *rest, *SEE)
    assert first.out == "n,n_low,n_high\n5,5,5\n"  # one row has no ward, and so no unit
    assert "privacy unit: who, ward" in first.err
    again = discreet("estimate", str(visits), text, "--unit", "who", "--unit", "ward", *rest, "--epsilon", "1")
    assert "privacy unit: who, ward" in again.err


def test_keys_add_up_from_options_and_files(discreet, visits, tmp_path):
    listed = tmp_path / "keys.txt"
    listed.write_bytes(b'\xef\xbb\xbfB\r\n\r\n"x,y"\r\nNULL\r\n')
    ask = ("query", str(visits), "SELECT ward, COUNT(*) AS n FROM data GROUP BY ward", *ROWS, *SEE)
    keys = ("--keys", "ward=A", "--keys", 'ward="q ""q"""', "--keys-file", f"ward={listed}")
    rows = json.loads(discreet(*ask, *keys, "--format", "json").out)
    assert [(row["ward"], row["n"]) for row in rows] == [("A", 3), ('q "q"', 0), ("B", 2), ("x,y", 0), (None, 1)]


def test_types_are_declared_at_the_first_use(discreet, tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("who,code\na,01\nb,1\n")
    ask = ("query", str(path), "SELECT code, COUNT(*) AS n FROM data GROUP BY code", "--row-level", *SEE)
    done = discreet(*ask, "--types", "code=VARCHAR", "--keys", "code=01,1", "--format", "csv")
    assert [line.split(",")[:2] for line in done.out.splitlines()[1:]] == [["01", "1"], ["1", "1"]]


def test_options_in_the_sql(discreet, visits):
    text = (
        "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, max_contributions = 3, privacy_unit_column = who) "
        "COUNT(*) AS n FROM visits"
    )
    done = discreet("query", str(visits), text, "--unit", "who", "--budget", "0.5")
    assert done.code == 0, done.err
    assert "spent: epsilon 0.5; left: epsilon 0\n" in done.err
    assert "limits: max_contributions 3" in done.err


# --- field report R12 ----------------------------------------------------------------------------------------

ODD = ["capital-gain", 'a "b"', "order", "年龄", "it's", "x;drop", '"; DROP TABLE t; --', "a=b", "a.b"]


@pytest.fixture
def odd(tmp_path):
    path = tmp_path / "odd.csv"
    text = io.StringIO()
    csv.writer(text).writerows([ODD, range(1, len(ODD) + 1)])
    path.write_text(text.getvalue())
    return path


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def test_r12_columns_of_any_name(discreet, odd):
    sums = ", ".join(f"SUM({quoted(name)}) AS s{i}" for i, name in enumerate(ODD))
    bounds = [word for name in ODD for word in ("--bounds", f"{name}=0..10")]
    done = discreet("query", str(odd), f"SELECT {sums} FROM data", "--row-level", *SEE, *bounds, "--format", "json")
    assert done.code == 0, done.err
    row = json.loads(done.out)[0]
    assert [round(row[f"s{i}"]) for i in range(len(ODD))] == list(range(1, len(ODD) + 1))


def test_r12_columns_of_any_name_as_unit_key_and_output(discreet, odd):
    for name in ODD[:-1]:
        column = quoted(name)
        text = f"SELECT {column}, COUNT(*) FROM data GROUP BY {column}"
        done = discreet(
            "estimate", str(odd), text, "--unit", name, "--max-contributions", "1", "--epsilon", "1",
            "--keys", f"{quoted(name)}=1..3",
        )  # fmt: skip
        assert done.code == 0, (name, done.err)
        assert "COUNT(*)" in done.out


def test_r12_in_python(discreet, odd):
    data = library.open(odd, row_level=True, budget=10**9)
    sums = ", ".join(f"SUM({quoted(name)}) AS s{i}" for i, name in enumerate(ODD))
    answer = data.query(f"SELECT {sums} FROM data", epsilon=10**9, bounds=dict.fromkeys(ODD, (0, 10)))
    data.close()
    assert [round(answer[f"s{i}"][0]) for i in range(len(ODD))] == list(range(1, len(ODD) + 1))


# --- looking ahead, looking back -----------------------------------------------------------------------------


def test_estimate_reads_and_charges_nothing(discreet, visits):
    ask = (str(visits), GROUPS, *ROWS, "--keys", "ward=A,B", "--epsilon", "0.5", "--budget", "3")
    first = discreet("estimate", *ask)
    assert first.code == 0
    assert first.out.splitlines()[0].split() == ["name", "statistic", "epsilon", "scale", "95", "%", "half-width"]
    assert first.out.splitlines()[2].split() == ["n", "COUNT(*)", "0.25", "40", "±", "120"]
    assert "would cost: epsilon 0.5; would leave: epsilon 2.5" in first.err
    visits.write_bytes(b"")  # what is not there cannot be read
    assert discreet("estimate", *ask).out == first.out
    assert json.loads(discreet("budget", str(visits), "--format", "json").out)["total"] is None


def test_estimate_takes_every_argument_of_query(discreet, visits, tmp_path):
    ask = (str(visits), GROUPS, *ROWS, "--keys", "ward=A,B", "--epsilon", "0.5", "--budget", "0.4")
    files = ("-o", str(tmp_path / "out.csv"), "--report", str(tmp_path / "report.json"))
    done = discreet("estimate", *ask, "--format", "csv", "--confidence", "0.9", *files)
    assert done.code == 0, done.err
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "name,statistic,epsilon,scale,half_width"
    assert json.loads((tmp_path / "report.json").read_text())["confidence"] == "0.9"
    assert "too small by epsilon 0.1: the query would be refused" in done.err
    for name in ("json", "ndjson", "markdown"):
        assert "COUNT(*)" in discreet("estimate", *ask, "--format", name).out


def test_budget_shows_where_the_source_stands(discreet, visits):
    ask = ("query", str(visits), "SELECT COUNT(*) AS n\nFROM data", *ROWS, "--epsilon", "0.1")
    discreet(*ask, "--budget", "0.3")
    discreet(*ask, "--fresh")
    document = json.loads(discreet("budget", str(visits), "--format", "json").out)
    assert (document["total"]["epsilon"], document["spent"]["epsilon"], document["left"]["epsilon"]) == (
        "0.3",
        "0.2",
        "0.1",
    )
    assert document["privacy_unit"] == "who"
    assert document["relation"] == "add or remove all rows of one privacy unit"
    assert [entry["kind"] for entry in document["history"]] == ["register", "budget", "debit", "debit"]
    assert document["history"][2]["answer"]["rows"][0]["n_high"] >= document["history"][2]["answer"]["rows"][0]["n"]
    table = discreet("budget", str(visits)).out
    assert "left          epsilon 0.1 (about 1 more query of epsilon 0.1)\n" in table
    assert "released  SELECT COUNT(*) AS n FROM data\n" in table
    rows = list(csv.DictReader(io.StringIO(discreet("budget", str(visits), "--format", "csv").out)))
    assert [row["spent"] for row in rows] == ["0", "0", "0.1", "0.2"]
    assert rows[2]["query"].split() == ["SELECT", "COUNT(*)", "AS", "n", "FROM", "data"]


def test_raising_a_budget(discreet, visits):
    ask = ("query", str(visits), "SELECT COUNT(*) FROM data", *ROWS, "--epsilon", "0.3")
    assert discreet(*ask, "--budget", "0.3").code == 0
    refused = discreet(*ask, "--fresh")
    assert refused.code == 3
    assert "`discreet budget raise`" in refused.error()
    done = discreet("budget", "raise", str(visits), "--budget", "0.6")
    assert (done.code, done.out, done.err) == (0, "", "raised; total: epsilon 0.6; left: epsilon 0.3\n")
    assert discreet(*ask, "--fresh").code == 0
    document = json.loads(discreet("budget", str(visits), "--format", "json").out)
    assert [entry["kind"] for entry in document["history"]] == ["register", "budget", "debit", "raise", "debit"]
    for total in ("0.5", "-1", "nan", ""):
        refused = discreet("budget", "raise", str(visits), "--budget", total)
        assert refused.code == 2
        assert "budget" in refused.error()


def test_budget_of_a_file_that_is_gone(discreet, visits):
    discreet("query", str(visits), "SELECT COUNT(*) FROM data", *ROWS, "--epsilon", "0.1", "--budget", "0.3")
    visits.unlink()
    done = discreet("budget", str(visits))
    assert done.code == 0
    assert "left          epsilon 0.2" in done.out


def test_the_ledger_option_wins_over_the_environment(discreet, visits, tmp_path):
    other = tmp_path / "other.sqlite"
    ask = ("query", str(visits), "SELECT COUNT(*) FROM data", *ROWS, "--epsilon", "0.1", "--budget", "0.3")
    assert discreet(*ask, "--ledger", str(other)).code == 0
    assert other.exists()
    assert not discreet.ledger.exists()


def test_noise(discreet):
    draws = [int(line) for line in discreet("noise", "--scale", "10", "--size", "2000").out.splitlines()]
    assert len(draws) == 2000
    # |X| has mean 9.98 and deviation 10.0 at scale 10; 6.2 standard errors are a false alarm in 1e-9.
    assert abs(sum(map(abs, draws)) / 2000 - 9.98) < 6.2 * 10 / 2000**0.5
    assert len(discreet("noise", "--scale", "2.5").out.splitlines()) == 1


def test_the_main_job_on_the_example_log(discreet, request):
    path = str(request.config.rootpath / "examples" / "commits.jsonl.gz")
    ask = ("--unit", "actor", "--max-contributions", "20000", "--keys", "action=A,D,M", "--format", "csv", *SEE[:2])
    text = "SELECT action, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors FROM data GROUP BY action"
    done = discreet("query", path, text, *ask, "--budget", "1000000000")
    rows = [(r["action"], r["changes"], r["actors"]) for r in csv.DictReader(io.StringIO(done.out))]
    assert rows == [("A", "8796", "362"), ("D", "7781", "135"), ("M", "75091", "2313")]


def test_2024_of_the_example_log(discreet, request):
    path = str(request.config.rootpath / "examples" / "commits.jsonl.gz")
    text = "SELECT COUNT(*) AS n FROM commits WHERE YEAR(time) = 2024"
    done = discreet("query", path, text, "--unit", "actor", "--max-contributions", "20000", *SEE, "--format", "csv")
    assert done.out == "n,n_low,n_high\n6252,6252,6252\n"


def test_demo(discreet):
    done = discreet("demo")
    assert done.code == 0
    assert done.out.splitlines()[0].split("  ")[0] == "action"
    assert [line.split()[0] for line in done.out.splitlines()[2:]] == ["A", "M", "D"]
    for word in ("temporary ledger", "--unit actor", "spent: epsilon 1", "The noise sandwich", "stay inside"):
        assert word in done.err
    assert not discreet.ledger.exists()


# --- the front door ------------------------------------------------------------------------------------------

HEAVY = {"numpy", "duckdb", "sqlglot", "cryptography", "rich", "pandas", "pyarrow", "polars"}


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["query", "--help"], ["noise", "--help"]])
def test_help_loads_nothing_heavy(arguments):
    text = (
        "import sys\nfrom discreet.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n"
        "    print('LOADED', end.code, *sorted({m.split('.')[0] for m in sys.modules}))\n"
    )
    done = subprocess.run([sys.executable, "-c", text, *arguments], capture_output=True, text=True, check=True)
    _, code, *loaded = done.stdout.splitlines()[-1].split()
    assert code == "0"
    assert not HEAVY & set(loaded)


@pytest.mark.parametrize("argument", ["--help", "--version"])
def test_help_and_version_are_quick(argument):
    # Processor time, not time by the clock: other tests share the machine. 0.13 s were measured.
    child = os.posix_spawn(
        sys.executable,
        [*DISCREET, argument],
        os.environ,
        file_actions=[(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)],
    )
    _, status, usage = os.wait4(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert usage.ru_utime + usage.ru_stime < 0.3


def test_version(discreet):
    assert discreet.process("--version").out == f"discreet {library.__version__}\n"


def test_help_names_every_command(discreet):
    out = discreet("--help").out
    for command in ("query", "estimate", "budget", "noise", "demo"):
        assert f"\n  {command} " in out
    assert "Exit: 0 fine" in out
