"""Manners at a terminal: the spinner, Ctrl-C, widths, colours, quiet, digits, examples in the help, completion."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pexpect
import pytest
from rich.cells import cell_len

from command import DISCREET, environment
from discreet.cli.app import app
from discreet.cli.examples import EXAMPLES
from discreet.formats import as_csv, as_table, render_table
from test_chart import made

ROOT = Path(__file__).resolve().parents[1]
COUNT = "SELECT COUNT(*) AS n FROM data"
ASK = ("--unit", "who", "--max-contributions", "10", "--epsilon", "0.5", "--budget", "3")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

# A command whose engine takes a while, as it would over many rows.
SLOW = """
import sys, time
from discreet.engines.duckdb import DuckDBEngine
from discreet.cli import main
real = DuckDBEngine.run
def run(self, statement):
    time.sleep(float({seconds}))
    return real(self, statement)
DuckDBEngine.run = run
main(sys.argv[1:])
"""


def terminal(ledger: Path, *arguments: str, code: str | None = None, columns: int = 80, **more: str):
    """`discreet` on a terminal of its own; stdout and stderr are both that terminal."""
    command = DISCREET if code is None else [sys.executable, "-c", code]
    # The size is the terminal's own, whatever the tests run in says of theirs.
    outside = {name: value for name, value in environment(ledger).items() if name not in ("COLUMNS", "LINES")}
    return pexpect.spawn(
        command[0],
        [*command[1:], *arguments],
        env={**outside, "TERM": "xterm-256color", **more},
        dimensions=(40, columns),
        encoding="utf-8",
        timeout=60,
    )


def all_of(child) -> str:
    child.logfile_read = log = io.StringIO()
    child.expect(pexpect.EOF)
    child.close()
    return log.getvalue()


def test_a_spinner_turns_after_a_second(visits, tmp_path):
    child = terminal(tmp_path / "l", "query", str(visits), COUNT, *ASK, code=SLOW.format(seconds=2.6))
    shown = all_of(child)
    assert child.exitstatus == 0, shown
    turns = re.findall(r"\r\x1b\[K(\S) ([a-z ]+): (\d+) s", shown)
    assert ("reading the rows", "2") in {(phase, seconds) for _, phase, seconds in turns}
    assert len({sign for sign, *_ in turns}) > 3  # it turns
    assert all(int(seconds) >= 1 for *_, seconds in turns)  # not before a second is over
    assert not re.search(r"\d+ *%.*reading|rows? *\d", " ".join(phase for _, phase, _ in turns))
    # It is taken away before the answer is shown, and leaves the cursor alone.
    assert shown.rindex("reading the rows") < shown.rindex("\r\x1b[K") < shown.index("95 % interval")
    assert "\x1b[?25l" not in shown


@pytest.mark.parametrize("way", ["quick", "quiet", "dumb"])
def test_where_no_spinner_belongs(visits, tmp_path, way):
    code = SLOW.format(seconds=0 if way == "quick" else 1.8)
    more = {"TERM": "dumb"} if way == "dumb" else {}
    quiet = ["--quiet"] if way == "quiet" else []
    shown = all_of(terminal(tmp_path / "l", "query", str(visits), COUNT, *ASK, *quiet, code=code, **more))
    assert "95 % interval" in shown
    assert "reading the rows" not in shown
    assert ("spent:" in shown) is (way != "quiet")


def test_none_when_piped(visits, tmp_path):
    code = SLOW.format(seconds=1.8)
    command = [sys.executable, "-c", code, "query", str(visits), COUNT, *ASK]
    done = subprocess.run(
        command, env=environment(tmp_path / "l"), capture_output=True, encoding="utf-8", timeout=60, check=True
    )
    assert "reading" not in done.stderr
    assert "\r" not in done.stderr + done.stdout
    assert "\x1b" not in done.stderr + done.stdout


def test_ctrl_c_under_the_spinner(visits, tmp_path):
    """The ledger is right, it says what was charged, and the terminal is as before."""
    ledger = tmp_path / "l"
    child = terminal(ledger, "query", str(visits), COUNT, *ASK, code=SLOW.format(seconds=60))
    child.logfile_read = log = io.StringIO()
    child.expect("reading the rows: [12] s")
    child.sendintr()
    child.expect("the query was charged \\(ledger entry 3\\); its cost stays spent")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert ESCAPES.sub("", log.getvalue()).rstrip().splitlines()[-1].startswith("discreet: interrupted")
    done = subprocess.run(
        [*DISCREET, "budget", str(visits), "--format", "json"],
        env=environment(ledger),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    document = json.loads(done.stdout)
    assert document["spent"]["epsilon"] == "0.5"
    assert [entry["state"] for entry in document["history"] if entry["kind"] == "debit"] == ["failed"]


def test_no_colours(visits, tmp_path):
    """There are none at all, so NO_COLOR (https://no-color.org) is kept by itself; nor in help and errors."""
    for arguments, more in (
        (("query", str(visits), COUNT, *ASK), {}),
        (("query", str(visits), "SELECT MAX(minutes) FROM data", *ASK), {}),
        (("explain", str(visits), COUNT, *ASK), {"NO_COLOR": "1"}),
        (("--help",), {"FORCE_COLOR": "1"}),
    ):
        shown = all_of(terminal(tmp_path / "l", *arguments, **more))
        assert not re.search(r"\x1b\[[0-9;]*m", shown), arguments


LONG = "a ward with a name that is longer than any terminal is wide " * 2


@pytest.mark.parametrize("columns", [40, 80])
def test_tables_fit_the_terminal(tmp_path, columns):
    path = tmp_path / "visits.csv"
    path.write_text(f"who,ward,minutes\nann,{LONG},1\nbob,B,2\n")
    sql = 'SELECT ward, COUNT(*) AS n, AVG(minutes) AS "average minutes" FROM data GROUP BY ward'
    ask = (*ASK, "--bounds", "minutes=0..60", "--keys", f'ward="{LONG}",B')
    ledger = tmp_path / "l"
    for arguments in (["query", str(path), sql, *ask], ["estimate", str(path), sql, *ask], ["budget", str(path)]):
        quiet = [] if arguments[0] == "budget" else ["-q"]
        shown = ESCAPES.sub("", all_of(terminal(ledger, *arguments, *quiet, columns=columns))).replace("\r", "")
        table = shown.partition("\n\n")[2] if arguments[0] == "budget" else shown
        assert max(map(cell_len, table.splitlines())) <= columns, shown
        assert "…" not in re.sub(r"[-\d,.]+ … [-\d,.]+", "", shown)  # nothing is cut off
        assert re.search("average.*minutes", shown, re.DOTALL)
    # Piped, a table has a line a group, however long.
    done = subprocess.run(
        [*DISCREET, "query", str(path), sql, *ask],
        env=environment(ledger, COLUMNS="40"),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=True,
    )
    assert len(done.stdout.splitlines()) == 4


def test_folded_tables_keep_every_word():
    headers, numeric = ["key", "n"], [False, True]
    rows = [["北京市海淀区中关村大街二十七号", "1"], ["words that are to be folded", "2,000"], ["x" * 50, "3"]]
    for width in range(20, 60):
        table = render_table(headers, rows, numeric, width=width)
        assert max(map(cell_len, table.splitlines())) <= width
        text = re.sub(r"[\s\d,]", "", table)
        for word in ("北京市海淀区中关村大街二十七号", "wordsthataretobefolded", "x" * 50):
            assert word in text.replace("key", "")


def interval(text: str) -> tuple[Decimal, Decimal]:
    low, high = text.split(" … ")
    return Decimal(low.replace(",", "")), Decimal(high.replace(",", ""))


@pytest.mark.parametrize(
    ("value", "half", "shown", "ends"),
    [
        (2032, 300, "2,030", "1,730 … 2,340"),
        (2032, 18, "2,032", "2,014 … 2,050"),
        (-5, 123456, "0", "-130,000 … 130,000"),
        (149999, 12345, "150,000", "137,000 … 163,000"),
        (10**30 + 7, 10**28, "1,000,000,000,000,000,000,000,000,000,000", None),
        (21072.515, 1347.2, "21,100", "19,700 … 22,500"),
        (0.123456, 0.0123, "0.123", "0.111 … 0.136"),
        (-0.0004, 0.3, "0.00", "-0.31 … 0.30"),
        (5.0, 0.0, "5.0000", "5.0000 … 5.0000"),
    ],
)
def test_digits_are_those_that_the_noise_justifies(value, half, shown, ends):
    answer = made({}, {"x": ([value], [value - half], [value + half])})
    row = re.split(r"  +", as_table(answer).splitlines()[2].strip())
    assert row[0] == shown
    if ends is not None:
        assert row[1] == ends
    # Rounded outwards: the interval shown covers the exact one.
    low, high = interval(row[1])
    assert low <= Decimal(value) - Decimal(half)
    assert high >= Decimal(value) + Decimal(half)
    whole = re.split(r"  +", as_table(answer, exact=True).splitlines()[2].strip())
    assert Decimal(whole[0].replace(",", "")) == Decimal(str(value))
    assert as_csv(answer).splitlines()[1].split(",")[0] == str(value)  # machines get all digits


def test_the_narrowest_interval_decides_for_a_column():
    answer = made({"k": ["a", "b"]}, {"x": ([1234, 98765], [1200, 90000], [1268, 107530])})
    rows = [re.split(r"  +", line.strip()) for line in as_table(answer).splitlines()[2:]]
    assert [row[1] for row in rows] == ["1,234", "98,765"]


def test_exact_digits_on_the_command_line(discreet, tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("who\n" + "".join(f"p{i}\n" for i in range(300)))
    ask = ("query", str(path), COUNT, "--unit", "who", "--max-contributions", "1000", "--epsilon", "1", "--budget", "9")
    rounded = discreet(*ask)
    exact = discreet(*ask, "--exact-digits")  # the same answer, given again
    value = int(json.loads(discreet(*ask, "--format", "json").out)[0]["n"])
    shown = [int(re.split(r"  +", done.out.splitlines()[2].strip())[0].replace(",", "")) for done in (rounded, exact)]
    assert shown[1] == value
    assert shown[0] % 100 == 0
    assert abs(shown[0] - value) <= 50


def test_quiet(discreet, visits):
    done = discreet("query", str(visits), COUNT, *ASK, "--quiet")
    assert (done.code, done.err) == (0, "")
    assert "95 % interval" in done.out
    for command in ("estimate", "explain"):
        done = discreet(command, str(visits), COUNT, *ASK, "-q")
        assert (done.code, done.err) == (0, "")
    refused = discreet("query", str(visits), "SELECT MAX(minutes) FROM data", *ASK, "-q")
    assert refused.code == 4
    assert "MAX" in refused.error()  # errors are said
    assert "spent:" in discreet("query", str(visits), COUNT, *ASK, "--fresh").err  # and it is not kept for the next one


def shown_examples(command: str, discreet) -> list[str]:
    """The examples as the help shows them."""
    lines = discreet(command, "--help").out.splitlines()
    return [line.strip() for line in lines[lines.index("  Examples:") + 1 :] if line.strip()]


def test_every_command_shows_examples_that_run(discreet, monkeypatch, tmp_path):
    registered = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert registered == set(EXAMPLES), "each command has its examples in cli/examples.py"
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for command in EXAMPLES:
        assert shown_examples(command, discreet) == list(EXAMPLES[command])
    for command, examples in EXAMPLES.items():
        if command == "demo":  # which has tests of its own
            continue
        if command == "init":  # the owner of a policy begins with a ledger of its own
            monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "owner.sqlite"))
        for example in examples:
            name, *arguments = shlex.split(example)
            assert name == "discreet"
            assert arguments[0] == command
            done = discreet(*arguments)
            assert done.code == 0, (example, done.err)
    assert (tmp_path / "explain.svg").is_file()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(tmp_path, shell):
    """The shell's own way of asking gets the commands and the options' values; without loading the engines."""
    asked = {
        "bash": {"COMP_WORDS": "discreet ex", "COMP_CWORD": "1"},
        "zsh": {"_TYPER_COMPLETE_ARGS": "discreet ex"},
        "fish": {"_TYPER_COMPLETE_ARGS": "discreet ex", "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }[shell]
    settings = environment(tmp_path / "l", _DISCREET_COMPLETE=f"complete_{shell}", **asked)
    code = "import sys; from discreet.cli import main\ntry: main([])\nfinally: print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=settings, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert "explain" in done.stdout
    assert not {"numpy", "duckdb", "sqlglot"} & set(done.stderr.split())
    if shell == "bash":
        settings |= {"COMP_WORDS": "discreet query --format ", "COMP_CWORD": "3"}
        done = subprocess.run(DISCREET, env=settings, capture_output=True, encoding="utf-8", timeout=60, check=False)
        assert done.stdout.split() == ["table", "csv", "json", "ndjson", "markdown", "parquet"]


def test_completion_in_a_real_bash(tmp_path):
    """Tab, in a real shell with the script that --show-completion prints."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "discreet"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m discreet "$@"\n')
    program.chmod(0o755)
    settings = {**environment(tmp_path / "l"), "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PS1": "$ "}
    show = ["bash", "-c", "discreet --show-completion; true"]  # which shell it is, the command sees from its parent
    script = subprocess.run(show, env=settings, capture_output=True, encoding="utf-8", timeout=60, check=True).stdout
    assert "complete -o default -F" in script
    (tmp_path / "completion").write_text(script)
    options = ["--norc", "--noprofile"]
    shell = pexpect.spawn("bash", options, env=settings, encoding="utf-8", timeout=60, dimensions=(24, 100))
    shell.sendline(f"source {tmp_path}/completion; echo rea''dy")
    shell.expect("ready")
    shell.send("discreet expl\t")
    shell.expect("discreet explain")
    shell.close(force=True)


def test_help_is_quick(tmp_path):
    """Well under what people notice; the machine that runs the tests may be busy, so the best of five counts."""
    best = 10.0
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([*DISCREET, "--help"], env=environment(tmp_path / "l"), capture_output=True, check=True)
        best = min(best, time.perf_counter() - start)
    assert best < 1.0
