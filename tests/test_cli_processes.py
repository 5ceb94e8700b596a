"""The command line as real processes: exit codes, streams, terminals, signals, and many at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pexpect
import pytest

from command import DISCREET, environment, python
from discreet.ledger import Ledger

COUNT = "SELECT COUNT(*) AS n FROM data"
ASK = (COUNT, "--unit", "who", "--max-contributions", "10", "--epsilon", "0.1")

# The whole command, but for an engine that says when it starts and then takes its time.
SLOW = (
    "import sys, time\n"
    "from discreet.engines.duckdb import DuckDBEngine\n"
    "def run(self, statement):\n"
    "    print('running', flush=True)\n"
    "    time.sleep(60)\n"
    "DuckDBEngine.run = run\n"
    "from discreet.cli import main\n"
    "main()\n"
)
# The same, but slow while the source is registered: nothing can be charged yet.
SLOW_REGISTRATION = (
    "import sys, time\n"
    "from discreet import sources\n"
    "def register(*_, **__):\n"
    "    print('running', flush=True)\n"
    "    time.sleep(60)\n"
    "sources.register = register\n"
    "from discreet.cli import main\n"
    "main()\n"
)


def spent(ledger: Path, source: Path) -> str:
    with Ledger(ledger) as book:
        balance = book.balance(f"file:{source.resolve()}")
    return "nothing" if balance is None else str(balance.spent.epsilon)


def test_every_exit_code(discreet, visits, tmp_path):
    (tmp_path / "notes.txt").write_text("no ledger\n" * 100)
    for code, arguments in [
        (0, ("query", str(visits), *ASK, "--budget", "0.1")),
        (1, ("query", str(tmp_path / "missing.csv"), *ASK)),
        (2, ("query", str(visits), *ASK, "--confidence", "2")),
        (2, ("query", str(visits), *ASK, "--no-such-option")),
        (2, ()),
        (0, ("query", str(visits), *ASK)),
        (3, ("query", str(visits), *ASK, "--fresh")),
        (4, ("query", str(visits), "SELECT who FROM data", *ASK[1:])),
        (5, ("query", str(visits), *ASK, "--ledger", str(tmp_path / "notes.txt"))),
    ]:
        done = discreet.process(*arguments)
        assert done.code == code, (arguments, done)
        if code:
            assert done.out == "" or arguments == ()
            assert arguments == () or done.error()


def test_the_installed_command(visits, tmp_path):
    command = Path(sys.executable).with_name("discreet")
    done = subprocess.run([command, "noise", "--scale", "3"], capture_output=True, text=True, check=True)
    assert str(int(done.stdout)) + "\n" == done.stdout


def test_a_path_of_any_name(discreet, tmp_path):
    folder = tmp_path / 'a b\'s "c" [x]*?'
    folder.mkdir()
    path = folder / "年 龄;--.v2.csv"
    path.write_text("who,n\na,1\nb,2\n")
    rest = ("--row-level", "--epsilon", "1000000000", "--budget", "1000000000", "--format", "csv")
    done = discreet.process("query", path.name, 'SELECT COUNT(*) AS n FROM "年 龄;--"', *rest, cwd=folder)
    assert done.out == "n,n_low,n_high\n2,2,2\n", done.err


# --- many at once --------------------------------------------------------------------------------------------


def test_twenty_processes_on_a_budget_of_ten(visits, tmp_path):
    """Issue 2: 20 processes asking 0.1 each of a budget of 1 give exactly 10 answers and 10 refusals."""
    ledger = tmp_path / "ledger.sqlite"
    command = [*DISCREET, "query", str(visits), *ASK, "--fresh", "--budget", "1", "--format", "json"]
    running = [
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(ledger),
        )
        for _ in range(20)
    ]
    outcomes = []
    for process in running:
        out, err = process.communicate(timeout=120)
        outcomes.append((process.returncode, out, err))
    assert sorted(code for code, _, _ in outcomes) == [0] * 10 + [3] * 10, outcomes
    for code, out, err in outcomes:
        if code == 0:
            assert isinstance(json.loads(out)[0]["n"], int)
        else:
            assert out == ""
            assert "left: epsilon 0;" in err
    assert spent(ledger, visits) == "1"
    with Ledger(ledger) as book:
        history = book.history(f"file:{visits.resolve()}")
        kinds = [str(entry.kind) for entry in history]
        book.verify()
    assert (kinds.count("register"), kinds.count("budget"), kinds.count("debit")) == (1, 1, 10)
    assert all(entry.answer is not None for entry in history if str(entry.kind) == "debit")


# --- interrupts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "said", "cost"),
    [
        (SLOW, "discreet: interrupted: the query was charged (ledger entry 3); its cost stays spent.", "1/10"),
        (SLOW_REGISTRATION, "discreet: interrupted: the query was not charged.", "nothing"),
    ],
    ids=["while the engine runs", "while the source is registered"],
)
def test_ctrl_c_on_a_terminal(visits, tmp_path, script, said, cost):
    ledger = tmp_path / "ledger.sqlite"
    child = pexpect.spawn(
        sys.executable,
        ["-c", script, "query", str(visits), *ASK, "--budget", "1"],
        env=environment(ledger),
        encoding="utf-8",
        timeout=60,
        dimensions=(24, 200),
    )
    child.expect_exact("running")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert said in child.before
    assert "Traceback" not in child.before
    assert spent(ledger, visits) == cost


def test_sigint_without_a_terminal(visits, tmp_path):
    ledger = tmp_path / "ledger.sqlite"
    process = python(SLOW, ["query", str(visits), *ASK, "--budget", "1"], ledger)
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert "the query was charged" in err
    with Ledger(ledger) as book:
        last = book.history(f"file:{visits.resolve()}")[-1]
    assert (str(last.state), last.reason) == ("failed", "interrupted")


def test_the_engine_hands_on_ctrl_c(tmp_path):
    """DuckDB itself makes a RuntimeError of it, which would pass for a fault."""
    text = (
        "from discreet.engines.duckdb_connection import connect\n"
        "try:\n"
        "    with connect(threads=1) as connection:\n"
        "        print('running', flush=True)\n"
        "        connection.execute('SELECT SUM(a.range * b.range) FROM range(9000000) a, range(9000000) b')\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    process = python(text, [], tmp_path / "ledger.sqlite")
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    # The statement takes hours. The signal may come before it starts; then it is Python's own.
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (out, err) == ("interrupted\n", "")


# --- terminals and streams -----------------------------------------------------------------------------------


def test_on_a_terminal_table_and_talk(visits, tmp_path):
    child = pexpect.spawn(
        sys.executable,
        ["-m", "discreet", "query", str(visits), *ASK, "--budget", "1"],
        env=environment(tmp_path / "ledger.sqlite"),
        encoding="utf-8",
        timeout=60,
        dimensions=(24, 200),
    )
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    lines = child.before.replace("\r\n", "\n").splitlines()
    assert lines[0].startswith("registered visits")
    assert lines[1].split() == ["n", "95", "%", "interval"]
    assert lines[4] == "spent: epsilon 0.1; left: epsilon 0.9"
    assert "\x1b" not in child.before  # plain text, whatever the terminal can do


def test_a_terminal_that_knows_ascii_only(discreet, visits):
    done = subprocess.run(
        [*DISCREET, "query", str(visits), *ASK, "--budget", "1"],
        capture_output=True,
        env=environment(discreet.ledger, PYTHONIOENCODING="ascii"),
        timeout=60,
        check=True,
    )
    _, rule, row = done.stdout.decode("ascii").splitlines()
    assert set(rule) == {"-", " "}
    assert ".." in row


def test_machine_formats_are_utf8_everywhere(discreet, tmp_path):
    path = tmp_path / "places.csv"
    path.write_text("who,城市\n1,北京\n2,上海\n")
    text = "SELECT 城市, COUNT(*) AS n FROM data GROUP BY 城市"
    done = subprocess.run(
        [*DISCREET, "query", str(path), text, "--row-level", "--epsilon", "1", "--budget", "1", "--format", "csv",
         "--keys", "城市=北京,上海"],
        capture_output=True,
        env=environment(discreet.ledger, PYTHONIOENCODING="ascii"),
        timeout=60,
        check=True,
    )  # fmt: skip
    assert [line.split(",")[0] for line in done.stdout.decode("utf-8").splitlines()] == ["城市", "北京", "上海"]


def test_a_reader_that_goes_away(discreet, visits):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*DISCREET, "query", str(visits), *ASK, "--budget", "1"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(discreet.ledger),
        timeout=60,
        check=False,
    )
    os.close(writing)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("the answer was charged, and is kept in the ledger as entry 3")
    assert "Traceback" not in done.stderr
    assert "BrokenPipe" not in done.stderr


def test_a_reader_that_takes_the_first_lines(discreet):
    text = f"{sys.executable} -m discreet noise --scale 5 --size 200000 | head -n 2"
    done = subprocess.run(
        ["sh", "-c", text], capture_output=True, text=True, env=environment(discreet.ledger), check=True
    )
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_stdout_says_where_the_answer_is(discreet, visits):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*DISCREET, "query", str(visits), *ASK, "--budget", "1"],
            stdout=full, stderr=subprocess.PIPE, text=True, env=environment(discreet.ledger), check=False,
        )  # fmt: skip
    assert done.returncode == 1
    kept, error = done.stderr.splitlines()[-2:]
    assert error == "discreet: stdout: cannot be written (no space left on device)."
    command = kept.partition(": ")[2].removesuffix(" shows it")
    shown = subprocess.run(
        [sys.executable, "-m", *command.split()], capture_output=True, text=True,
        env=environment(discreet.ledger), check=True,
    )  # fmt: skip
    answers = [entry["answer"] for entry in json.loads(shown.stdout)["history"] if entry["answer"]]
    assert len(answers) == 1
    assert "n" in answers[0]["rows"][0]


@pytest.mark.parametrize("descriptor", [0, 1, 2])
def test_a_closed_stream(discreet, visits, descriptor):
    text = f'exec "$@" {descriptor}>&-' if descriptor else 'exec "$@" <&-'
    done = subprocess.run(
        ["sh", "-c", text, "sh", *DISCREET, "query", str(visits), *ASK, "--budget", "1"],
        capture_output=True, text=True, env=environment(discreet.ledger), timeout=60, check=False,
    )  # fmt: skip
    if descriptor == 1:
        # There is nowhere to put the answer: told before it is paid for.
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == "discreet: stdout: is closed. Hint: write to a file with -o FILE"
        assert spent(discreet.ledger, visits) == "nothing"
    else:
        assert done.returncode == 0
        assert done.stdout.splitlines()[0].split() == ["n", "95", "%", "interval"]
    with Ledger(discreet.ledger) as book:
        book.verify()
