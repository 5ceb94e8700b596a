"""`discreet refresh`, and the fingerprints that let an owner notice a copy."""

from __future__ import annotations

import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import discreet as library
from command import Command
from discreet.errors import LedgerError
from discreet.ledger import Kind, Ledger
from discreet.ledger.fingerprint_key import fingerprint_key
from discreet.sources import inspect_source, register
from discreet.sources.contents import content_fingerprint

COUNT = "SELECT COUNT(*) AS n FROM data"
ROWS = ("--unit", "who", "--max-contributions", "10")
SAID = (*ROWS, "--budget", "3", "--epsilon", "0.5")
POLICY = """
ledger = "books.sqlite"
[datasets.visits]
source = "visits.csv"
privacy_unit = "who"
max_contributions = 10
budget = { epsilon = 3, default_epsilon = 0.5 }
columns.minutes = { type = "BIGINT", lower = 0, upper = 60 }
"""


@pytest.fixture
def folder(tmp_path: Path, visits: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "own"
    place.mkdir()
    visits.rename(place / "visits.csv")
    monkeypatch.chdir(place)
    return place


def fingerprints(ledger: Path) -> dict[str, str]:
    with Ledger(ledger) as book:
        return book.fingerprints()


# --- the version is the owner's word -------------------------------------------------------------------------


def test_whether_an_answer_is_free_never_depends_on_the_rows(discreet: Command, folder: Path) -> None:
    """Issue 4. Rows may change as they like: the stored answer is given again, until the owner says that it is another
    version; then it is charged, also where nothing has changed."""
    ask = ("query", "visits.csv", COUNT, *ROWS, "--epsilon", "0.5", "--format", "csv")
    first = discreet(*ask, "--budget", "3")
    with (folder / "visits.csv").open("a") as file:
        file.write("dan,A,7\n" * 50)
    again = discreet(*ask)
    assert again.out == first.out
    assert "left: epsilon 2.5" in again.err
    done = discreet("refresh", "visits.csv")
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines() == [
        "56 records read (told to you, the owner; kept nowhere)",
        "names and types are as before",
        "the content is another than before",
        "visits is version 2 now: no answer given before is given again; what was spent stays spent",
    ]
    assert "spent: epsilon 0.5; left: epsilon 2" in discreet(*ask).err
    assert "left: epsilon 2" in discreet(*ask).err
    assert "the content is as before" in discreet("refresh", "visits.csv").err
    assert "left: epsilon 1.5" in discreet(*ask).err
    with Ledger(discreet.ledger) as book:
        history = book.history(f"file:{folder}/visits.csv")
        book.verify()
    assert [entry.version for entry in history if entry.kind is Kind.REGISTER] == [1, 2, 3]
    assert [entry.version for entry in history if entry.kind is Kind.DEBIT] == [1, 2, 3]


def test_the_schema_is_stored_anew(discreet: Command, folder: Path) -> None:
    """And what became of it is told, to the owner."""
    discreet("query", "visits.csv", COUNT, *ROWS, "--epsilon", "0.5", "--budget", "3", "--null-values", "-")
    (folder / "visits.csv").write_text("who,minutes,day\nann,-,2024-01-01\nann,1.5,2024-01-02\n")
    assert discreet("query", "visits.csv", "SELECT COUNT(day) FROM data", *ROWS, "--epsilon", "1").code == 2
    done = discreet("refresh", "visits.csv")
    assert "column 'day' is new: DATE" in done.err
    assert "column 'ward' is gone" in done.err
    assert "column 'minutes' is DOUBLE, was BIGINT" in done.err  # "-" is missing still
    assert discreet("query", "visits.csv", "SELECT COUNT(day) FROM data", *ROWS, "--epsilon", "1").code == 0
    done = discreet("refresh", "visits.csv", "--types", "day=VARCHAR", "--null-values", "1.5")
    assert "column 'day' is VARCHAR, was DATE" in done.err
    assert "column 'minutes' is VARCHAR, was DOUBLE" in done.err


@pytest.mark.parametrize(("path", "text"), [("Records", '{"Records": [%s]}'), ('$."a.b".c', '{"a.b": {"c": [%s]}}')])
def test_what_is_read_another_way_is_read_so_again(discreet: Command, folder: Path, path: str, text: str) -> None:
    """The options of registration hold, those of JSON documents and logs too."""
    (folder / "r.json").write_text(text % '{"x": 1}')
    ask = ("SELECT COUNT(*) AS n FROM data", "--row-level", "--epsilon", "0.5", "--budget", "3")
    assert discreet("query", "r.json", *ask, "--records", path).code == 0
    done = discreet("refresh", "r.json")
    assert done.code == 0, done.err
    assert "names and types are as before" in done.err
    (folder / "a.txt").write_text('1.2.3.4 - ann [10/Oct/2023:13:55:36 +0000] "GET /x HTTP/1.1" 200 23 "-" "curl"\n')
    assert discreet("query", "a.txt", *ask, "--log-format", "combined").code == 0
    done = discreet("refresh", "a.txt", "--log-format", "combined")
    assert "names and types are as before" in done.err, done.err


def test_by_the_policy(discreet: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By name, by place, or as the only one; types and reading are the policy's."""
    (folder / "discreet.toml").write_text(POLICY)
    assert "is not registered in this ledger" not in discreet("refresh").err  # there is no ledger yet
    assert discreet("refresh").code == 5
    assert discreet("query", "SELECT COUNT(*) AS n FROM visits").code == 0
    for version, words in enumerate(((), ("visits",), ("visits.csv",), ("--policy", "discreet.toml")), 2):
        done = discreet("refresh", *words)
        assert done.code == 0, done.err
        assert f"visits is version {version} now" in done.err
    assert "null_values: is declared in the policy" in discreet("refresh", "--null-values", "x").error()
    assert "types: is declared in the policy" in discreet("refresh", "--types", "who=VARCHAR").error()
    (folder / "discreet.toml").write_text(POLICY.replace("source =", 'null_values = ["-"]\nsource ='))
    assert "discreet refresh visits registers it anew" in discreet("check").err
    assert discreet("refresh", "visits").code == 0
    assert discreet("check").code == 0
    (folder / "discreet.toml").write_text(POLICY.replace("columns.minutes", "columns.minuts"))
    done = discreet("refresh")
    assert done.code == 2
    assert "columns.minuts: names no column" in done.err
    monkeypatch.chdir("/")
    done = discreet("refresh", str(folder / "visits.csv"), "--ledger", str(folder / "books.sqlite"))
    assert "is read as its owner's policy says, where it is called visits" in done.error()
    with Ledger(folder / "books.sqlite") as book:
        assert book.version(f"file:{folder}/visits.csv") == 6


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ((), 2, "SOURCE: is missing"),
        (("wards.csv",), 2, "is not registered in this ledger (got 'wards.csv'). Hint: discreet init SOURCE"),
        (("gone.csv",), 1, "there is no such file"),
        (("visits.csv", "--types", "minuts=BIGINT"), 2, "there is no such column"),
        (("visits.csv", "--records", "x"), 2, "records: means nothing for delimited text"),
    ],
)
def test_what_is_refused(discreet: Command, folder: Path, words: tuple[str, ...], code: int, told: str) -> None:
    (folder / "wards.csv").write_text("ward\nA\n")
    discreet("query", "visits.csv", COUNT, *ROWS, "--epsilon", "0.5", "--budget", "3")
    done = discreet("refresh", *words)
    assert done.code == code, done.err
    assert told in done.error()
    with Ledger(discreet.ledger) as book:
        assert book.version(f"file:{folder}/visits.csv") == 1


# --- copies --------------------------------------------------------------------------------------------------


def test_r26_a_copy_under_another_name_is_pointed_out(discreet: Command, folder: Path) -> None:
    """To its owner, by whatever command registers it; renamed, copied, or read by another pattern."""
    ask = (COUNT, *ROWS, "--epsilon", "0.5", "--budget", "3")
    assert "note:" not in discreet("query", "visits.csv", *ask).err
    shutil.copy("visits.csv", "copy.csv")
    told = f"note: the same content is registered, under another budget, as file:{folder}/visits.csv"
    assert told in discreet("query", "copy.csv", *ask).err
    assert told not in discreet("query", "copy.csv", *ask).err  # once, at registration
    (folder / "days").mkdir()
    shutil.copy("visits.csv", "days/monday.csv")
    assert (
        told.replace("visits.csv", "visits.csv, file:" + str(folder) + "/copy.csv")
        in discreet("init", "days", "-o", "days.toml").err
    )
    (folder / "other.csv").write_text("who,ward,minutes\nann,A,1\n")
    assert "note:" not in discreet("init", "other.csv", *SAID, "-o", "other.toml").err
    shutil.copy("visits.csv", "other.csv")
    assert "note:" not in discreet("query", "SELECT COUNT(*) FROM other", "--policy", "other.toml").err  # an analyst
    assert told in discreet("refresh", "other.csv", "--policy", "other.toml").err
    data = library.open(folder / "days" / "monday.csv", row_level=True, ledger=discreet.ledger)
    assert "note: the same content is registered" in data.notice
    data.close()


def test_copies_that_share_a_budget_are_fine(discreet: Command, folder: Path) -> None:
    shutil.copy("visits.csv", "copy.csv")
    text = "[budgets.people]\nepsilon = 3\ndefault_epsilon = 0.5\n" + "".join(
        f'[datasets.{name}]\nsource = "{name}.csv"\nprivacy_unit = "who"\nmax_contributions = 10\nbudget = "people"\n'
        for name in ("visits", "copy")
    )
    (folder / "discreet.toml").write_text(text)
    for name in ("visits", "copy"):
        assert discreet("query", f"SELECT COUNT(*) AS n FROM {name}").code == 0
    assert "note:" not in discreet("refresh", "copy").err
    assert len(set(fingerprints(discreet.ledger).values())) == 1
    done = discreet("check")
    assert done.code == 0 and "note:" not in done.err


def test_an_analyst_is_not_told_of_copies(discreet: Command, folder: Path) -> None:
    """Whether two files are the same depends on their rows: no question by a policy tells it; `check` does, which is
    the owner's."""
    shutil.copy("visits.csv", "copy.csv")
    discreet("query", "copy.csv", COUNT, *ROWS, "--epsilon", "0.5", "--budget", "3")
    (folder / "discreet.toml").write_text(POLICY.replace('ledger = "books.sqlite"\n', ""))
    for verb in ("query", "estimate", "query"):
        assert "note:" not in discreet(verb, "SELECT COUNT(*) AS n FROM visits").err
    assert (
        f"note: the same content is registered, under another budget, as file:{folder}/copy.csv"
        in discreet("check").err
    )


def test_what_a_fingerprint_is_of(tmp_path: Path) -> None:
    """Bytes, folder keys and table; not names nor order. And of the key."""
    key, other = b"k" * 32, b"o" * 32

    def of(name: str, key: bytes = key, **options: object) -> str:
        return content_fingerprint(register(str(tmp_path / name), **options), key)

    for folder in ("one", "two", "three/region=eu", "three/region=us", "four/region=us", "four/region=eu"):
        (tmp_path / folder).mkdir(parents=True)
    for name, text in {
        "a.csv": "u,x\na,1\n", "b.csv": "u,x\na,1\n", "c.csv": "u,x\na,2\n", "one/a.csv": "u,x\na,1\n",
        "one/b.csv": "u,x\nb,1\n", "two/z.csv": "u,x\na,1\n", "two/y.csv": "u,x\nb,1\n",
        "three/region=eu/a.csv": "u\n1\n", "three/region=us/a.csv": "u\n2\n",
        "four/region=us/a.csv": "u\n1\n", "four/region=eu/a.csv": "u\n2\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    assert of("a.csv") == of("b.csv") != of("c.csv")
    assert of("one") == of("two") != of("a.csv")
    assert of("one/*.csv") == of("one")
    assert of("three") != of("four")  # the same files, with other keys
    assert of("a.csv", other) != of("a.csv")
    assert of("a.csv", other).partition(":")[0] != of("a.csv").partition(":")[0]
    import sqlite3

    with sqlite3.connect(tmp_path / "t.sqlite") as book:
        book.execute("CREATE TABLE a (x INTEGER)")
        book.execute("CREATE TABLE b (x INTEGER)")
    book.close()
    assert of("t.sqlite", table="a") != of("t.sqlite", table="b")
    assert "1" * 64 not in of("a.csv")


def test_the_key_is_the_owners(discreet: Command, folder: Path) -> None:
    """Beside the ledger, mode 0600, never in it; lost, it is made anew, and nothing is compared by mistake."""
    ask = (COUNT, *ROWS, "--epsilon", "0.5", "--budget", "3")
    discreet("query", "visits.csv", *ask)
    place = discreet.ledger.with_name("ledger.sqlite.key")
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    key = place.read_text().strip()
    assert len(bytes.fromhex(key)) == 32
    assert key.encode() not in discreet.ledger.read_bytes()
    assert bytes.fromhex(key) not in discreet.ledger.read_bytes()
    done = discreet("query", "visits.csv", COUNT, *ROWS, "--epsilon", "1", "-o", str(place))
    assert "must not be the ledger's key" in done.error()
    place.unlink()
    done = discreet("refresh", "visits.csv")
    assert "content is" not in done.err
    assert place.read_text().strip() != key
    place.write_text("no key\n")
    done = discreet("refresh", "visits.csv")
    assert done.code == 5
    assert "is none: it must be 64 hexadecimal digits" in done.error()


def test_many_make_one_key(tmp_path: Path) -> None:
    with ThreadPoolExecutor(16) as pool:
        keys = set(pool.map(lambda _: fingerprint_key(tmp_path / "l.sqlite"), range(64)))
    assert len(keys) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["l.sqlite.key"]


def test_a_key_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"the key .*cannot be made or read"):
        fingerprint_key(tmp_path / "file" / "l.sqlite")
    (tmp_path / "l.sqlite.key").mkdir()
    with pytest.raises(LedgerError, match="cannot be made or read"):
        fingerprint_key(tmp_path / "l.sqlite")


def test_nothing_of_the_fingerprint_is_shown(discreet: Command, folder: Path) -> None:
    discreet("query", "visits.csv", COUNT, *ROWS, "--epsilon", "0.5", "--budget", "3")
    (mine,) = fingerprints(discreet.ledger).values()
    assert mine.partition(":")[2]
    for form in ("table", "json", "csv"):
        done = discreet("budget", "visits.csv", "--format", form)
        assert mine.partition(":")[2] not in done.out + done.err
    assert inspect_source("visits.csv").registration.to_json().get("fingerprint") is None
