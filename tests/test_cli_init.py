"""`discreet init`: what the owner is asked and told, and what the policy is made of."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path

import pexpect
import pytest

from command import Command, environment
from discreet.errors import PolicyError
from discreet.ledger import Kind, Ledger
from discreet.policy import load_policy
from discreet.policy.checking import misfits
from discreet.policy.writing import FILL_IN, dataset_name
from discreet.sources import inspect_source, locate

ASK = "SELECT COUNT(*) AS n FROM visits"
SAID = (
    "--unit", "who", "--max-contributions", "10", "--bounds", "minutes=0..60", "--keys", "ward=A,B,NULL",
    "--budget", "3", "--epsilon", "0.5",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder with visits.csv, and we are in it."""
    place = tmp_path / "own"
    place.mkdir()
    visits.rename(place / "visits.csv")
    monkeypatch.chdir(place)
    return place


# --- what is written -----------------------------------------------------------------------------------------


def test_flags_make_a_whole_policy(discreet: Command, folder: Path) -> None:
    """And with it a query needs nothing else."""
    done = discreet("init", "visits.csv", *SAID, "--max-groups-contributed", "2")
    assert (done.code, done.out) == (0, ""), done.err
    known = f"registered visits in {discreet.ledger} (version 1); from now on it is asked by its policy only"
    assert done.err.splitlines() == [
        f"file:{folder}/visits.csv: delimited text (comma, with header), 3 columns",
        "  who: VARCHAR", "  ward: VARCHAR", "  minutes: BIGINT",
        "6 records read (told to you, the owner; kept nowhere)",
        f"{known}, discreet.toml",
        'next: discreet check, or discreet query "SELECT COUNT(*) AS n FROM visits"',
    ]  # fmt: skip
    policy = load_policy("discreet.toml")
    assert policy.ledger == str(discreet.ledger)  # another one would be another budget
    declared = policy.dataset("visits")
    assert (declared.source, declared.privacy_unit) == (str(folder / "visits.csv"), ("who",))
    assert (declared.max_contributions, declared.max_groups_contributed) == (10, 2)
    assert declared.types() == {"who": "VARCHAR", "ward": "VARCHAR", "minutes": "BIGINT"}
    assert (declared.budget.total.epsilon, declared.budget.default_epsilon) == (3, 0.5)
    done = discreet("query", "SELECT ward, AVG(minutes) AS m FROM visits GROUP BY ward", "--format", "json")
    assert [row["ward"] for row in json.loads(done.out)] == ["A", "B", None]
    assert "registered" not in done.err
    assert "spent: epsilon 0.5; left: epsilon 2.5" in done.err


def test_no_number_comes_from_the_data(discreet: Command, folder: Path, tmp_path: Path) -> None:
    """Issue 4. Two files of one schema and other values, other counts, other keys: the policies are the same, byte by
    byte, whole or left open."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "visits.csv").write_text("who,ward,minutes\n" + "".join(f"p{i},W{i},{i * 7}\n" for i in range(500)))
    written = []
    for place in (folder, other):
        for more in ((), SAID):
            done = discreet("init", "visits.csv", "-o", "-", *more, "--ledger", str(place / "books"))
            assert done.code == 0, done.err
            written.append(done.out)
            os.chdir(place)
        os.chdir(other)
    assert written[0] == written[2]
    assert written[1] == written[3]
    assert written[0] != written[1]


def test_places_to_fill_in_are_marked_and_told(discreet: Command, folder: Path) -> None:
    """Without a terminal nobody is asked; the policy says what is missing, and is none before."""
    done = discreet.process("init", "visits.csv", cwd=folder, stdin=None)
    assert done.code == 0, done.err
    assert done.err.splitlines()[-1] == "to fill in: privacy_unit, max_contributions, epsilon; then: discreet check"
    text = Path("discreet.toml").read_text()
    assert [line for line in text.splitlines() if line.startswith(FILL_IN)] == [
        f'{FILL_IN} privacy_unit = "COLUMN"', f"{FILL_IN} max_contributions = ROWS", f"{FILL_IN} epsilon = NUMBER",
    ]  # fmt: skip
    with pytest.raises(PolicyError) as refused:
        load_policy("discreet.toml")
    assert {fault.thing for fault in refused.value.faults} == {
        "datasets.visits.privacy_unit", "datasets.visits.budget.epsilon",
    }  # fmt: skip
    for place, value in (('"COLUMN"', '"who"'), ("ROWS", "10"), ("NUMBER", "3")):
        text = text.replace(place, value)
    Path("discreet.toml").write_text(text.replace(FILL_IN + " ", ""))
    assert discreet("query", ASK, "--epsilon", "1").code == 0


def test_every_key_that_is_commented_out_is_one_that_a_policy_knows(discreet: Command, folder: Path) -> None:
    """With the marks and the comment signs taken off, and values put in."""
    (folder / "all.csv").write_text("u,i,x,d,t\na,1,1.5,2024-01-01,2024-01-01 10:00:00\n")
    discreet("init", "all.csv")
    text = Path("discreet.toml").read_text()
    for mark in (FILL_IN + " ", "# "):
        text = "\n".join(
            line.removeprefix(mark) if " = " in line.split("`")[0] and "." not in line.split(" = ")[0] else line
            for line in text.splitlines()
        )
    for place, value in (
        ('"COLUMN"', '"u"'), ("ROWS", "10"), ("GROUPS", "3"), ("delta = NUMBER", "delta = 1e-6"),
        ("lower = NUMBER", "lower = 0"), ("NUMBER", "3"), ("YYYY-MM-DD", "2024-01-01"), ("[VALUE, VALUE]", '["1"]'),
    ):  # fmt: skip
        text = text.replace(place, value)
    Path("discreet.toml").write_text(text)
    policy = load_policy("discreet.toml")
    declared = policy.dataset("all")
    assert policy.ledger and declared.invariants and declared.unknown_groups and declared.max_groups_contributed == 3
    budget = declared.budget
    assert budget.total.delta and budget.default_epsilon and budget.max_epsilon_per_query
    assert budget.max_epsilon_per_analyst and str(budget.window) == "never"
    columns = declared.columns
    assert columns["d"].dates and columns["t"].dates and columns["x"].bounds and columns["i"].bounds
    assert columns["u"].public_values and columns["i"].public_values


NAMES = [
    "capital-gain",
    'a "b"',
    "年龄",
    "it's",
    "x;drop",
    "a.b",
    "# x = 1",
    "[datasets.y]",
    "tab\there",
    " lead",
    "e\u0301",
]


def test_columns_of_any_name(discreet: Command, folder: Path) -> None:
    """A name is only ever a name: it ends no line, opens no table."""
    lines = [",".join('"' + name.replace('"', '""') + '"' for name in NAMES), ",".join("1" for _ in NAMES)]
    (folder / "odd.csv").write_text("\n".join(lines) + "\n")
    bounds = [word for name in NAMES for word in ("--bounds", f"{name}=0..5")]
    done = discreet("init", "odd.csv", "--row-level", "--budget", "1", *bounds)
    assert done.code == 0, done.err
    declared = load_policy("discreet.toml").dataset("odd")
    assert list(declared.columns) == [name.strip() if name == " lead" else name for name in NAMES]
    assert all(column.bounds is not None for column in declared.columns.values())
    assert discreet("query", "SELECT COUNT(*) AS n FROM odd", "--epsilon", "1").code == 0


@pytest.mark.parametrize(
    ("written", "name"),
    [("log", "log"), ("my-log", "my_log"), ("2024", "_2024"), ("年龄", "data"), ("raise", "data"), ("a b", "a_b"),
     ("x" * 99, "x" * 60), ("é_1", "_1"), ("_", "data")],
)  # fmt: skip
def test_the_name_of_a_data_set(written: str, name: str) -> None:
    assert dataset_name(written) == name


# --- every kind of source ------------------------------------------------------------------------------------


def small_sources(place: Path) -> dict[str, tuple[Path | str, dict[str, object]]]:
    """One of each kind, with types that are easily lost: times, decimals, booleans, lists, folder keys."""
    import sqlite3

    import duckdb

    (place / "a.csv").write_text("u;x;t;ok\nann;1,5;2024-01-01 10:00:00;true\nbob;2,25;2024-01-02 10:00:00;false\n")
    (place / "b.jsonl").write_text(
        '{"u": "ann", "n": {"x": 1.5, "t": "2024-01-01T10:00:00Z"}, "l": [1, 2], "d": "2024-01-01"}\n{"u": "bob"}\n'
    )
    (place / "c.json").write_text('{"Records": [{"u": "ann", "a.b": 1}, {"u": "bob", "A": true}]}')
    (place / "d.log").write_text('1.2.3.4 - ann [10/Oct/2023:13:55:36 +0000] "GET /x HTTP/1.1" 200 23 "-" "curl"\n' * 2)
    for region in ("region=01", "region=NULL"):
        (place / "e" / region).mkdir(parents=True)
        (place / "e" / region / "part.csv").write_text("u,x\nann,1\n")
    with duckdb.connect() as engine:
        rows = "SELECT 'ann' AS u, 1.25::DECIMAL(8,2) AS x, TIMESTAMPTZ '2024-01-01 10:00:00+00' AS t, "
        rows += "DATE '2024-01-01' AS d, 5::HUGEINT AS h, [1, 2] AS l, {'a': 1} AS s"
        engine.execute(f"COPY ({rows}) TO '{place / 'f.parquet'}'")
    with duckdb.connect(str(place / "g.duckdb")) as engine:
        engine.execute(f"CREATE TABLE g AS {rows}")
    with sqlite3.connect(place / "h.sqlite") as book:
        book.execute("CREATE TABLE visits (u TEXT, x INTEGER, y REAL)")
        book.execute("INSERT INTO visits VALUES ('ann', 1, 2.5)")
    book.close()
    return {
        "csv": (place / "a.csv", {"delimiter": ";", "decimal": ","}),
        "json": (place / "b.jsonl", {}),
        "records": (place / "c.json", {"records": "Records"}),
        "log": (place / "d.log", {"log_format": "combined"}),
        "folder": (place / "e", {}),
        "pattern": (f"{place}/e/*/*.csv", {"null_values": "NA"}),
        "parquet": (place / "f.parquet", {}),
        "duckdb": (f"{place}/g.duckdb::g", {}),
        "sqlite": (place / "h.sqlite", {"table": "visits"}),
    }


def test_the_policy_registers_what_init_registered(
    discreet: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each kind of file: read anew by the policy alone, in a ledger that knows nothing, the schema is the same."""
    for name, (source, reading) in small_sources(tmp_path).items():
        folder = tmp_path / f"of {name}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        flags = [word for option, value in reading.items() for word in (f"--{option.replace('_', '-')}", str(value))]
        done = discreet("init", str(source), "--row-level", "--budget", "1", "--name", "s", *flags)
        assert done.code == 0, (name, done.err)
        with Ledger(discreet.ledger) as book:
            format, table = ("log" if "log_format" in reading else None), reading.get("table")
            first = book.registration(locate(source, format=format, table=table).source)
        text, count = re.subn('(?m)^ledger = ".*"$', 'ledger = "new.sqlite"', Path("discreet.toml").read_text())
        assert count == 1
        Path("discreet.toml").write_text(text)
        done = discreet("query", "SELECT COUNT(*) AS n FROM s", "--epsilon", "1")
        assert done.code == 0, (name, done.err)
        assert first is not None
        with Ledger(folder / "new.sqlite") as book:
            again = book.registration(first.source)
        assert again is not None
        assert again.schema == first.schema, name


def test_what_the_owner_alone_is_told(discreet: Command, folder: Path) -> None:
    """R36, R42: bad records and notes, at registration; no analyst ever sees them."""
    (folder / "days").mkdir()
    for name, text in (("a", "id,x\n1,5\n2,3,4\n"), ("b", "id,x,y\n2,6,7\n"), ("c", "x,id\n9,3\n")):
        (folder / "days" / f"{name}.csv").write_text(text)
    done = discreet("init", "days", "--row-level", "--budget", "1", "--epsilon", "0.1")
    assert "3 records read; 1 lines are no records, and are left out" in done.err
    assert "note: column 'y' is present in 1 of 3 files" in done.err
    text = Path("discreet.toml").read_text()
    assert "records" not in text and "1 of 3" not in text
    for verb in ("query", "estimate"):
        later = discreet(verb, "SELECT COUNT(*) AS n FROM days")
        assert later.code == 0
        assert "no records" not in later.err and "of 3" not in later.err


# --- what is refused -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--unit", "whom"), "did you mean 'who'|whom"),
        (("--unit", "who", "--row-level"), "exclude each other"),
        (("--max-contributions", "0"), "max_contributions: must be a whole number from 1"),
        (("--bounds", "minuts=0..5"), "--bounds: names no column of the source (got 'minuts'). Hint: did you mean 'm"),
        (("--bounds", "ward=0..5"), "are for numbers and dates, but the column is text"),
        (("--bounds", "minutes=2024-01-01..2024-01-02"), "must be two numbers"),
        (("--bounds", "minutes=5..0"), "lower bound must not be above"),
        (("--bounds", f"minutes=0..1{'0' * 90}"), "at most 40 digits"),
        (("--keys", "wart=A"), "--keys: names no column of the source (got 'wart')"),
        (("--keys", "minutes=A"), "keys of 'minutes'"),
        (("--budget", "0"), "budget: must be a number from"),
        (("--budget-delta", "1e-6"), "--budget-delta: needs --budget"),
        (("--name", "a b"), "--name: must be letters, digits and _"),
        (("--types", "minutes=GEOMETRY"), "is not a known type"),
        (("-o", "visits.csv"), "is there already"),
        (("-o", "visits.csv", "--force"), "must not be the source"),
        (("-o", "."), "--output"),
        (("--row-level", "--budget", "1", "--unknown-groups"), "unknown_groups"),
        (("--row-level", "--budget", "1", "--epsilon", "2"), "default_epsilon"),
    ],
)  # fmt: skip
def test_a_slip_of_the_pen_writes_nothing(discreet: Command, folder: Path, more: tuple[str, ...], told: str) -> None:
    """No policy, no registration; what is there stays as it is."""
    before = {path: path.read_bytes() for path in folder.iterdir()}
    done = discreet("init", "visits.csv", *more)
    assert done.code == 2, done.err
    assert any(one in done.err for one in told.split("|")), done.err
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert not discreet.ledger.exists()


def test_a_policy_is_never_written_over_without_force(discreet: Command, folder: Path) -> None:
    Path("discreet.toml").write_text("mine\n")
    done = discreet("init", "visits.csv")
    assert done.code == 2
    assert "is there already, and is not written over (got 'discreet.toml'). Hint: write to another with -o" in done.err
    assert Path("discreet.toml").read_text() == "mine\n"
    assert discreet("init", "visits.csv", "-o", "new.toml").code == 0
    assert discreet("init", "visits.csv", *SAID, "--force").code == 0
    assert load_policy("discreet.toml").datasets


def test_a_policy_that_cannot_be_written_registers_nothing(discreet: Command, folder: Path) -> None:
    done = discreet("init", "visits.csv", "-o", "none/p.toml")
    assert done.code == 1
    assert "--output: cannot be written" in done.error()
    assert not discreet.ledger.exists()


def test_a_source_that_is_registered_keeps_its_schema(discreet: Command, folder: Path) -> None:
    """And its budget: what is in force is filled in, and what was spent counts."""
    ask = ("query", "visits.csv", "SELECT COUNT(*) AS n FROM data", "--unit", "who", "--max-contributions", "9")
    discreet(*ask, "--budget", "2", "--epsilon", "1")
    (folder / "visits.csv").write_text("who,ward,minutes\nann,A,a text\n")
    done = discreet("init", "visits.csv", "--max-contributions", "9")
    assert done.code == 0, done.err
    assert "it is registered already: the stored types are used" in done.err
    assert "it has a budget already, of epsilon 2 for each who, which counts" in done.err
    assert "  minutes: BIGINT" in done.err
    assert "spent: epsilon 0.5; left: epsilon 0.5" in discreet("query", ASK, "--epsilon", "0.5").err
    done = discreet(*ask, "--epsilon", "0.1", "--policy", "discreet.toml")
    assert done.code == 0
    os.chdir("/")
    done = discreet(
        "query", str(folder / "visits.csv"), "SELECT COUNT(*) AS n FROM data", "--row-level", "--epsilon", "1"
    )
    assert "through its owner's policy only, where it is called visits" in done.error()


def test_from_init_on_the_source_is_asked_by_its_policy_only(discreet: Command, folder: Path) -> None:
    """Also before the first question: nobody can give it another budget in between."""
    discreet("init", "visits.csv", "-o", "p.toml")
    done = discreet("query", "visits.csv", ASK, "--row-level", "--epsilon", "1", "--budget", "100")
    assert done.code == 2
    assert "is asked through its owner's policy only, where it is called visits" in done.error()
    with Ledger(discreet.ledger) as book:
        kinds = [entry.kind for entry in book.history(f"file:{folder}/visits.csv")]
    assert kinds == [Kind.REGISTER, Kind.JOIN]


# --- on a terminal -------------------------------------------------------------------------------------------


def talk(folder: Path, ledger: Path, *arguments: str) -> pexpect.spawn:
    return pexpect.spawn(
        sys.executable,
        ["-m", "discreet", "init", *arguments],
        env=environment(ledger),
        cwd=str(folder),
        encoding="utf-8",
        timeout=60,
        dimensions=(60, 160),
    )


def test_the_owner_is_asked(discreet: Command, folder: Path) -> None:
    """Unit, limits, bounds, budget; a wrong answer is told and asked again; Enter leaves a place open."""
    child = talk(folder, discreet.ledger, "visits.csv")
    for prompt, answers in [
        ("privacy unit: ", [("whom", "unknown column|whom"), ("who", None)]),
        ("max_contributions: ", [("many", "must be a whole number from 1"), ("10", None)]),
        ("max_groups_contributed: ", [("", None)]),
        ("minutes (BIGINT): ", [("0", "must be NAME=LOWER..UPPER"), ("9..1", "must not be above"), ("0..60", None)]),
        ("epsilon: ", [("0", "must be a number from"), ("3", None)]),
        ("delta: ", [("1", "must be 0, or a number"), ("1e-6", None)]),
        ("chosen from the data? y or n: ", [("perhaps", "must be y or n"), ("y", None)]),
        ("default_epsilon: ", [("4", "must not be above the budget's, 3"), ("0.5", None)]),
    ]:
        for answer, refusal in answers:
            child.expect_exact(prompt)
            child.sendline(answer)
            if refusal is not None:
                child.expect(refusal.replace(".", r"\."))
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.before
    assert "next: discreet check" in child.before
    declared = load_policy(folder / "discreet.toml").dataset("visits")
    assert (declared.privacy_unit, declared.max_contributions, declared.unknown_groups) == (("who",), 10, True)
    assert declared.max_groups_contributed is None
    bounds = declared.columns["minutes"].bounds
    assert bounds is not None and (bounds.lower, bounds.upper) == (0, 60)
    assert (declared.budget.total.epsilon, float(declared.budget.total.delta)) == (3, 1e-6)
    assert discreet("query", ASK).code == 0


@pytest.mark.parametrize("end", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_who_leaves_the_conversation_leaves_nothing_behind(discreet: Command, folder: Path, end: str) -> None:
    child = talk(folder, discreet.ledger, "visits.csv")
    child.expect_exact("privacy unit: ")
    child.sendline("who")
    child.expect_exact("max_contributions: ")
    child.send(end)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 130
    assert "discreet: interrupted." in child.before
    assert [path.name for path in folder.iterdir()] == ["visits.csv"]
    assert not discreet.ledger.exists()


def test_flags_are_not_asked_again_and_rows_may_be_the_unit(discreet: Command, folder: Path) -> None:
    child = talk(folder, discreet.ledger, "visits.csv", "--bounds", "minutes=0..5", "--budget", "1", "--epsilon", "1")
    child.expect_exact("privacy unit: ")
    child.sendline("row")
    child.expect_exact("delta: ")  # no limits at row level, no bounds, no budget
    child.sendline("")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    document = tomllib.loads((folder / "discreet.toml").read_text())["datasets"]["visits"]
    assert (document["row_level"], document["budget"]) == (True, {"epsilon": 1, "default_epsilon": 1})
    assert "max_contributions" not in document


def test_a_full_stop_ends_the_list_of_bounds(discreet: Command, folder: Path) -> None:
    (folder / "wide.csv").write_text(",".join(f"c{i}" for i in range(40)) + "\n" + ",".join("1" * 40) + "\n")
    child = talk(folder, discreet.ledger, "wide.csv", "--row-level", "--budget", "1")
    for name, answer in (("c0", "0..1"), ("c1", ""), ("c2", ".")):
        child.expect_exact(f"{name} (BIGINT): ")
        child.sendline(answer)
    child.expect_exact("delta: ")
    child.sendline("0")
    child.expect_exact("default_epsilon: ")
    child.sendline("")
    child.expect(pexpect.EOF)
    child.close()
    columns = load_policy(folder / "discreet.toml").dataset("wide").columns
    assert [name for name, column in columns.items() if column.bounds is not None] == ["c0"]


def test_real_data_makes_a_policy(discreet: Command, shared_data: Path, tmp_path: Path) -> None:
    """Nested logs, long names, hundreds of columns: what is written is a policy, and fits what was registered."""
    for name, more in (
        ("logs/okta_system.jsonl", {}),
        ("logs/cloudtrail", {"records": "Records"}),
        ("tables/adult.csv", {"null_values": ["?"]}),
    ):
        flags = [
            w for k, v in more.items() for w in (f"--{k.replace('_', '-')}", v if isinstance(v, str) else ",".join(v))
        ]
        out = tmp_path / f"{Path(name).stem}.toml"
        ask = ("init", str(shared_data / name), "--row-level", "--budget", "1", "-o", str(out), *flags)
        done = discreet(*ask)
        assert done.code == 0, done.err
        (declared,) = load_policy(out).datasets.values()
        assert misfits(declared, inspect_source(shared_data / name, **more).registration) == []
