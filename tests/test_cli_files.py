"""What an answer must not be written over, and what is not read at all: told before anything is charged."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from command import environment
from discreet.ledger import Ledger

COUNT = "SELECT COUNT(*) AS n FROM data"
PAY = ("--row-level", "--epsilon", "0.1", "--budget", "1")


def charged(discreet, source: str) -> int:
    if not discreet.ledger.exists():
        return 0
    document = json.loads(discreet("budget", source, "--format", "json").out)
    return 0 if document["spent"] is None else int(document["spent"]["epsilon"] != "0")


@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize("suffix", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("way", ["itself", "soft", "hard"])
def test_the_ledger_and_its_side_files_are_not_written_over(discreet, visits, tmp_path, option, suffix, way):
    with Ledger(discreet.ledger):
        pass
    assert discreet("query", str(visits), COUNT, *PAY).code == 0
    side = discreet.ledger.with_name(discreet.ledger.name + suffix)
    place = side
    if way == "soft":
        place = tmp_path / "link.csv"
        place.symlink_to(side)
    elif way == "hard":
        place = tmp_path / "link.csv"
        if not side.exists():
            side.write_bytes(b"")
        place.hardlink_to(side)
    done = discreet("query", str(visits), COUNT, *PAY, option, str(place))
    assert done.code == 2
    assert "must not be the ledger" in done.error()
    if way == "hard":
        place.unlink()
    with Ledger(discreet.ledger) as book:
        balance = book.balance(f"file:{visits.resolve()}")
        assert balance is not None
        assert balance.queries == 1


@pytest.fixture
def many(tmp_path) -> Path:
    folder = tmp_path / "many"
    (folder / "day=1").mkdir(parents=True)
    (folder / "day=2").mkdir()
    for place in ("day=1/part.csv", "day=2/part.csv", "top.csv"):
        (folder / place).write_text("who,n\na,1\nb,2\n")
    return folder


@pytest.mark.parametrize("option", ["-o", "--report"])
@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("many", "many/day=1/part.csv"),
        ("many", "many/new.csv"),
        ("many", "many/new.json"),
        ("many", "many/day=2/new.csv"),
        ("many", "many/dangling.csv"),
        ("many", "into/new.csv"),
        ("many/*.csv", "many/new.csv"),
        ("many/*/part*.csv", "many/day=1/part2.csv"),
        ("many/**/*.csv", "many/new.csv"),
        ("many/**/*.csv", "many/day=2/new.csv"),
    ],
)
def test_no_file_of_a_folder_or_pattern(discreet, tmp_path, many, option, source, place):
    (tmp_path / "into").symlink_to(many / "day=1")
    (many / "dangling.csv").symlink_to(tmp_path / "elsewhere.csv")
    done = discreet("query", f"{tmp_path}/{source}", COUNT, *PAY, option, f"{tmp_path}/{place}")
    assert done.code == 2, done.err
    assert "must not be" in done.error()
    assert charged(discreet, f"{tmp_path}/{source}") == 0
    assert not (tmp_path / "elsewhere.csv").exists()
    assert (many / "day=1" / "part.csv").read_text().startswith("who")


@pytest.mark.parametrize("place", ["many/answer.json", "many/day=1/new.csv", "answer.csv"])
def test_beside_a_pattern_there_is_room(discreet, tmp_path, many, place):
    done = discreet("query", f"{many}/t*.csv", COUNT, *PAY, "-o", f"{tmp_path}/{place}")
    assert done.code == 0, done.err


@pytest.mark.parametrize("place", ["base.db", "base.db-wal", "base.db-journal", "link.csv"])
def test_no_database_with_a_table(discreet, tmp_path, place):
    base = tmp_path / "base.db"
    connection = sqlite3.connect(base)
    connection.executescript("CREATE TABLE t (x INTEGER); INSERT INTO t VALUES (1), (2);")
    connection.close()
    (tmp_path / "link.csv").symlink_to(base)
    before = base.read_bytes()
    done = discreet("query", f"{base}::t", COUNT, *PAY, "-o", str(tmp_path / place))
    assert done.code == 2, done.err
    assert base.read_bytes() == before
    assert charged(discreet, f"{base}::t") == 0


@pytest.mark.parametrize("place", ["keys.csv", "plans.csv"])
def test_no_file_that_the_query_reads(discreet, visits, tmp_path, place):
    (tmp_path / "keys.csv").write_text("who\na\nb\n")
    (tmp_path / "plans.csv").write_text("name,plan\na,x\nb,y\n")
    text = "SELECT who, COUNT(*) AS n FROM data GROUP BY who"
    files = ("--keys-file", str(tmp_path / "keys.csv"), "--public", f"plans={tmp_path / 'plans.csv'}")
    before = (tmp_path / place).read_text()
    done = discreet("query", str(visits), text, *PAY, *files, "-o", str(tmp_path / place))
    assert done.code == 2, done.err
    assert "must not be" in done.error()
    assert (tmp_path / place).read_text() == before
    assert charged(discreet, str(visits)) == 0


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--ledger", "{pipe}"), 5),
        (("--ledger", "/dev/zero"), 5),
        (("-o", "{pipe}"), 2),
        (("--report", "{pipe}", "-o", os.devnull), 2),
        (("--keys-file", "who={pipe}"), 1),
        (("--keys-file", "{pipe}"), 1),
        (("--keys-file", "/dev/zero"), 1),
    ],
)
def test_pipes_and_endless_files_are_refused_at_once(discreet, visits, tmp_path, arguments, code):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    words = [word.replace("{pipe}", str(pipe)) for word in arguments]
    done = discreet.process("query", str(visits), COUNT, *PAY, *words)  # times out where it hangs
    assert done.code == code, done.err
    assert "regular file" in done.error()


def test_a_pipe_that_is_open_already_is_written(discreet, visits):
    done = discreet.process("query", str(visits), COUNT, *PAY, "--format", "csv", "-o", "/dev/stdout")
    assert done.code == 0, done.err
    assert done.out.startswith("n,n_low,n_high\n")


def test_a_keys_file_has_a_largest_size(discreet, visits, tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.key_files.LARGEST_FILE", 10)
    keys = tmp_path / "keys.txt"
    keys.write_text("a\nb\n")
    text = "SELECT who, COUNT(*) AS n FROM data GROUP BY who"
    assert discreet("query", str(visits), text, *PAY, "--keys-file", f"who={keys}").code == 0
    keys.write_text("a\n" * 6)
    done = discreet("query", str(visits), text, *PAY, "--keys-file", f"who={keys}")
    assert done.code == 2
    assert "at most 10 bytes" in done.error()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) AS n, COUNT(who) AS n_low FROM data",
        "SELECT COUNT(who) AS n_high, COUNT(*) AS n FROM data",
        "SELECT who AS n_low, COUNT(*) AS n FROM data GROUP BY who",
        "SELECT COUNT(*) AS n, 2 * COUNT(*) AS n_high FROM data",
    ],
)
def test_no_output_is_called_as_an_end_of_another(discreet, visits, text):
    keys = ("--keys", "n_low=a,b") if "GROUP" in text else ()
    done = discreet("query", str(visits), text, *PAY, *keys)
    assert done.code == 2, done.err
    assert "choose another alias" in done.error()
    assert charged(discreet, str(visits)) == 0


def test_an_end_of_a_key_is_a_free_name(discreet, visits):
    text = "SELECT who, COUNT(*) AS who_low FROM data GROUP BY who"
    done = discreet("query", str(visits), text, *PAY, "--keys", "who=a,b", "--format", "csv")
    assert done.code == 0, done.err
    assert done.out.startswith("who,who_low,who_low_low,who_low_high\n")


@pytest.mark.parametrize("text", [";", ";;", "/* nothing */"])
def test_no_statement_at_all(discreet, visits, text):
    done = discreet("query", str(visits), text, *PAY)
    assert done.code == 2
    assert "must be a SELECT statement" in done.error()


# A Ctrl-C that comes while a module is loaded: at the start of it, or in an exec of text, which Python remembers.
INTERRUPT = """
import os, signal, sys, runpy
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            {act}
sys.meta_path.insert(0, Finder())
sys.argv[0] = "discreet"
{run}
"""


AS_A_MODULE = "runpy.run_module('discreet', run_name='__main__')"
AS_A_SCRIPT = "import discreet.cli as c; c.main()"
LOADED = ["discreet.cli.app", "typer", "numpy", "duckdb"]


@pytest.mark.parametrize("act", ["os.kill(os.getpid(), 2)", "exec('os.kill(os.getpid(), 2)')"])
@pytest.mark.parametrize(
    ("run", "module"),
    # As a script, discreet.cli itself is loaded before the command's own first line.
    [(AS_A_MODULE, module) for module in ["discreet.cli", *LOADED]] + [(AS_A_SCRIPT, module) for module in LOADED],
)
def test_ctrl_c_while_modules_are_loaded(discreet, visits, module, act, run):
    script = INTERRUPT.format(module=module, act=act, run=run)
    if module == "discreet.cli":
        script = script.replace(f"if name == {module!r}:", f"if name == {module!r} and not sys.meta_path.remove(self):")
    arguments = ("query", str(visits), COUNT, *PAY)
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(discreet.ledger),
        check=False,
    )
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("discreet: interrupted")
