"""The same question gets the stored answer, free, unless it is asked `fresh`."""

from __future__ import annotations

import datetime
import json
import random
import shutil
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet
from discreet import agg, stored
from discreet.answer import Answer, AnswerColumn
from discreet.dataset import Dataset
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import BudgetError, EngineError, UsageError
from discreet.formats import FORMATS
from discreet.laplace.limbs import Int128Array
from discreet.ledger import Caps, Entry, Kind, Ledger
from discreet.ledger.records import State
from discreet.privacy import PrivacyLoss
from discreet.release import Charge, release
from discreet.schema import Type, parse_type
from discreet.stored import answer_of, kept

SQL = "SELECT k, COUNT(*) AS n, AVG(x) AS mean, MEDIAN(x) AS middle FROM data GROUP BY k"
KEYS = {"k": ["a", None, "b"]}
BOUNDS = {"x": (0, 100)}


def write_rows(path: Path, *, without: str = "", more: int = 0) -> Path:
    rows = [(f"u{i % 9}", "ab"[i % 2] if i % 3 else "", i * 37 % 101) for i in range(200 + more)]
    path.write_text("u,k,x\n" + "".join(f"{u},{k},{x}\n" for u, k, x in rows if u != without))
    return path


@pytest.fixture
def data(tmp_path: Path) -> discreet.Dataset:
    return opened(write_rows(tmp_path / "t.csv"), tmp_path / "ledger.sqlite")


def opened(path: Path, ledger: Path, budget: object = 10) -> discreet.Dataset:
    return discreet.open(path, privacy_unit="u", max_contributions=20, budget=budget, ledger=ledger)


def ask(data: discreet.Dataset, **more: Any) -> Answer:
    return data.query(SQL, **{"epsilon": "0.5", "keys": KEYS, "bounds": BOUNDS, **more})


def spent(data: discreet.Dataset) -> Fraction:
    balance = data.balance()
    assert balance is not None
    return balance.spent.epsilon


# --- free, and the same ------------------------------------------------------------------------------------


def test_a_replay_is_the_same_answer_at_no_cost(data, monkeypatch):
    first = ask(data)
    history = data.history()
    monkeypatch.setattr(DuckDBEngine, "run", lambda *_: pytest.fail("the data was read"))
    monkeypatch.setattr(Ledger, "debit", lambda *_, **__: pytest.fail("a debit was made"))
    again = ask(data)
    assert again.columns == first.columns
    assert again.details == first.details
    assert (first.replayed, first.charged) == ("", first.cost)
    assert (again.cost, again.charged, again.entry) == (first.cost, PrivacyLoss(Fraction(0)), first.entry)
    assert again.replayed == history[-1].time
    assert again.left == first.left == PrivacyLoss(Fraction(19, 2))
    assert data.history() == history, "a replay writes nothing"
    assert all(render(again) == render(first) for render in FORMATS.values())
    assert "stored answer of ledger entry 3" in str(again)
    assert "replayed" in repr(again)
    assert "stored answer" not in str(first)
    before, after = first.report(), again.report()
    assert (before.pop("replay"), after.pop("replay")) == (None, {"first_asked": again.replayed})
    assert (before.pop("charged")["epsilon"], after.pop("charged")["epsilon"]) == ("0.5", "0")
    assert before == after


def test_fresh_is_charged_and_drawn_anew(data):
    """Three groups, three statistics with noise of scale 120 and more: equal by chance with less than 1e-14."""
    first, second = ask(data), ask(data, fresh=True)
    assert second.columns != first.columns
    assert (second.replayed, second.charged) == ("", second.cost)
    assert spent(data) == 1
    assert ask(data).columns == second.columns, "the newest answer is the one that is stored"
    assert spent(data) == 1
    with pytest.raises(UsageError, match="fresh: must be True or False"):
        ask(data, fresh=1)


def test_nothing_is_needed_but_the_ledger(tmp_path):
    """Neither what is left of the budget nor the file."""
    path = write_rows(tmp_path / "t.csv")
    first = ask(opened(path, tmp_path / "l", "0.5"))
    path.unlink()
    data = opened(path, tmp_path / "l", "0.5")
    assert ask(data).columns == first.columns
    with pytest.raises(discreet.SourceError, match="the registered file is gone"):
        ask(data, fresh=True)
    assert data.balance().queries == 1
    write_rows(path)
    with pytest.raises(BudgetError):
        ask(data, fresh=True)


def test_the_builder_replays_too(data):
    question = data.select(agg.count()).group_by("k", keys=["a", "b"])
    first = question.release(epsilon=1)
    assert question.release(epsilon=1).replayed
    assert not question.release(epsilon=1, fresh=True).replayed
    assert data.query(question.sql(), epsilon=1, keys={"k": ["a", "b"]}).replayed
    assert first.entry == 3


def test_chosen_groups_replay(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("u,k\n" + "".join(f"u{i},{'abc'[i % 3]}\n" for i in range(600)) + "v,z\n")
    data = discreet.open(path, privacy_unit="u", max_contributions=1, budget=(4, "1e-5"), ledger=tmp_path / "l")
    question = {"epsilon": 2, "delta": "1e-6"}
    sql = "SELECT k, COUNT(*) AS n FROM data GROUP BY k ORDER BY n DESC LIMIT 2"
    first = data.query(sql, **question)
    assert len(first) == 2
    again = data.query(sql, **question)
    assert (again.columns, again.details) == (first.columns, first.details)
    narrower = data.query(sql, **question, confidence="0.5")
    assert narrower["k"] == first["k"]
    assert narrower["n"] == first["n"]
    assert data.balance().queries == 1


# --- what makes another question ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more",
    [
        {"epsilon": "0.50001"},
        {"bounds": {"x": (0, 101)}},
        {"keys": {"k": ["a", None]}},
        {"keys": {"k": ["a", "b", None, "c"]}},
        {"max_contributions": 19},
        {"timezone": "Europe/Berlin"},
    ],
)
def test_another_law_of_the_answer_is_another_question(data, more):
    ask(data)
    assert not ask(data, **more).replayed
    assert data.balance().queries == 2
    assert ask(data).replayed


@pytest.mark.parametrize(
    "sql",
    [
        SQL.replace("AS n", "AS m"),
        SQL.replace("MEDIAN(x)", "PERCENTILE_CONT(x, 0.4)"),
        SQL.replace(" GROUP", " WHERE x > 3 GROUP"),
        SQL + " ORDER BY n",
        SQL + " LIMIT 1",
        SQL + " HAVING n > 0",
    ],
)
def test_another_text_is_another_question(data, sql):
    ask(data)
    assert not data.query(sql, epsilon="0.5", keys=KEYS, bounds=BOUNDS).replayed


def test_the_same_question_in_other_words_is_the_same(data):
    ask(data)
    options = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.50, max_contributions = 20)"
    other = SQL.replace("SELECT", f"select {options}").replace("FROM data", "\n from t").replace("x", "X")
    assert data.query(other, keys=KEYS, bounds={"x": (0, Decimal("100.0"))}).replayed
    assert data.balance().queries == 1


def test_a_new_version_of_the_registration_is_asked_anew(data, tmp_path):
    """The version is the owner's word. A data set that was opened before it must not give the older answer."""
    ask(data)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        ledger.register(data.registration)
    with pytest.raises(discreet.SourceError, match="registered anew"):
        ask(data)
    renewed = opened(tmp_path / "t.csv", tmp_path / "ledger.sqlite")
    assert not ask(renewed).replayed
    assert ask(renewed).replayed
    assert spent(renewed) == 1


def test_only_released_answers_replay(data, monkeypatch):
    def fail(*_):
        raise EngineError("engine", "failed")

    with monkeypatch.context() as patch, pytest.raises(EngineError):
        patch.setattr(DuckDBEngine, "run", fail)
        ask(data)
    assert not ask(data).replayed
    states = [entry.state for entry in data.history() if entry.kind is Kind.DEBIT]
    assert states == [State.FAILED, State.RELEASED]
    assert spent(data) == 1


def test_an_analysts_cap_is_not_touched(data):
    """What is released may be given to anybody whom the policy lets ask."""
    plan = data.plan(SQL, epsilon="0.5", keys=KEYS, bounds=BOUNDS)
    engine, confidence = DuckDBEngine(data.registration), Fraction(95, 100)
    with Ledger(data.ledger_path) as ledger:
        release(plan, ledger, engine, confidence, Charge(1, "ann", Caps(analyst=Fraction(1, 2))))
        again = release(plan, ledger, engine, confidence, Charge(1, "bob", Caps(analyst=Fraction(1, 100))))
        assert again.replayed
        assert [(share.analyst, share.queries) for share in ledger.shares(data.registration.source)] == [("ann", 1)]
        with pytest.raises(BudgetError, match="share of analyst 'bob'"):
            release(plan, ledger, engine, confidence, Charge(1, "bob", Caps(analyst=Fraction(1, 100))), fresh=True)


def test_answers_of_an_unknown_form_are_asked_anew(data, monkeypatch):
    """Such as those that a version before replays stored."""
    with monkeypatch.context() as patch:
        patch.setattr("discreet.release.kept", lambda answer, *_: {"rows": []})
        ask(data)
    assert not ask(data).replayed


# --- neighbours --------------------------------------------------------------------------------------------


def test_neighbours_are_charged_alike(tmp_path):
    """Two tables that differ by all rows of one unit, at one path (so with one registration); between questions the
    rows change. Which questions are charged, and what each refusal says, is the same whatever the rows are."""

    def pattern(folder: str, without: str) -> list[object]:
        rng = random.Random(7)
        path = write_rows(tmp_path / "t.csv")
        data = opened(path, tmp_path / folder, budget=3)
        found: list[object] = []
        for _ in range(30):
            write_rows(path, without=without, more=rng.randrange(50))
            try:
                answer = ask(data, epsilon=rng.choice(["0.5", "0.25"]), max_contributions=rng.randrange(15, 21),
                             fresh=rng.random() < 0.1)  # fmt: skip
                found.append((bool(answer.replayed), answer.charged, answer.left, answer.entry))
            except BudgetError as error:
                found.append(str(error))
        return found

    one = pattern("one", "")
    assert one == pattern("other", "u4")
    kinds = [entry if isinstance(entry, str) else entry[0] for entry in one]
    assert {True, False} < set(kinds), "free ones, charged ones and refusals"


# --- another confidence ------------------------------------------------------------------------------------


class Repeated:
    """An `Entropy` that says the same each time it is made."""

    def __init__(self) -> None:
        self._rng = np.random.default_rng(5)

    def words(self, count: int) -> np.ndarray:
        return self._rng.integers(0, 2**64, count, dtype=np.uint64)

    def bits(self, count: int) -> int:
        return int.from_bytes(self._rng.bytes(count // 8 + 1), "big") >> (8 - count % 8)


@pytest.mark.parametrize("order", ["", " ORDER BY n DESC LIMIT 2"])
def test_another_confidence_is_free_and_as_if_asked_at_once(tmp_path, order):
    def at(ledger: str, confidence: Fraction) -> Answer:
        data = opened(write_rows(tmp_path / "t.csv"), tmp_path / ledger)
        plan = data.plan(SQL + order, epsilon="0.5", keys=KEYS, bounds=BOUNDS)
        with Ledger(data.ledger_path) as book:
            return release(plan, book, DuckDBEngine(data.registration), confidence, Charge(1), entropy=Repeated())

    first = at("one", Fraction(95, 100))
    for confidence in (Fraction(1, 2), Fraction(99, 100)):
        again, at_once = at("one", confidence), at(f"alone {confidence.numerator}", confidence)
        assert again.replayed
        assert not at_once.replayed
        assert again.columns == at_once.columns
        assert again.confidence == confidence
        assert again["n"] == first["n"]
        assert again.columns != first.columns
    assert at("one", Fraction(95, 100)).columns == first.columns


def test_too_many_totals_are_not_kept(data, monkeypatch):
    monkeypatch.setattr(stored, "MOST_TOTALS", 10)
    first = ask(data)
    assert ask(data).columns == first.columns
    with pytest.raises(UsageError, match=r"was 0\.95 when this question was answered \(ledger entry 3\).*fresh=True"):
        ask(data, confidence="0.5")
    assert data.balance().queries == 1
    assert not ask(data, confidence="0.5", fresh=True).replayed


# --- as stored ---------------------------------------------------------------------------------------------

FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**127), 2**127),
    FINITE,
    st.text(st.characters()),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    *(
        st.datetimes(timezones=st.just(zone)).map(lambda moment: moment.replace(fold=0))
        for zone in (None, datetime.UTC, datetime.timezone(datetime.timedelta(hours=5, minutes=30)))
    ),
)
TYPES = [parse_type(name) for name in ("BOOLEAN", "BIGINT", "HUGEINT", "DOUBLE", "DECIMAL(18,3)", "VARCHAR", "DATE",
                                       "TIMESTAMP", "TIMESTAMPTZ")]  # fmt: skip


def same(one: Any, other: Any) -> bool:
    """Equal, and of one type; all signs of zero and digits of decimals too."""
    return type(one) is type(other) and repr(one) == repr(other) and one == other


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(VALUES, VALUES, VALUES), max_size=4), st.sampled_from(TYPES), st.booleans())
def test_every_value_comes_back_as_it_was(rows: list[tuple[Any, Any, Any]], type_: Type, ends: bool) -> None:
    values, low, high = (tuple(row[i] for row in rows) for i in range(3))
    column = AnswerColumn("n ü", "COUNT(*)", values, low if ends else None, high if ends else None, type_)
    cost = PrivacyLoss(Fraction(1, 3), Fraction(1, 10**9))
    answer = Answer((column,), Fraction(1, 3), cost, None, 7, {"group_selection": None, "limits": {"a": 1}})
    written = json.loads(json.dumps(kept(answer, None, [Int128Array.from_ints([-(2**127), 2**127 - 1])])))  # type: ignore[arg-type]
    assert written["totals"] == [[-(2**127), 2**127 - 1]]
    entry = Entry(7, "2024-01-01T00:00:00+00:00", Kind.DEBIT, "s", cost, loss=cost, answer=written)
    back = answer_of(entry)
    for mine, theirs in ((values, back.columns[0].values), (low, back.columns[0].low), (high, back.columns[0].high)):
        if mine is values or ends:
            assert len(mine) == len(theirs or ())
            assert all(map(same, mine, theirs or ()))
    assert (back.columns[0].type, back.columns[0].name, back.cost, back.confidence) == (
        type_, "n ü", cost, Fraction(1, 3),
    )  # fmt: skip
    assert back.details == answer.details


# --- the command line --------------------------------------------------------------------------------------

TABLE = """u,day,price,big,at,flag
a,2024-01-01,1.50,9007199254740993,2024-01-01 10:00:00.000001,true
b,2024-01-02,2.25,,2024-01-02 00:00:00,false
"""
ASK = (
    "SELECT day, price, big, at, flag, AVG(at) AS around, COUNT(*) AS n FROM data GROUP BY 1, 2, 3, 4, 5",
    "--unit", "u", "--epsilon", "0.1", "--max-contributions", "1",
    "--keys", "day=2024-01-01..2024-01-02", "--keys", "price=1.50,2.25,3.00", "--keys", "big=9007199254740993,NULL",
    "--keys", "at=2024-01-01 10:00:00.000001,NULL", "--keys", "flag=true,false",
    "--bounds", "around=2024-01-01..2024-01-03",
)  # fmt: skip


def test_every_format_is_the_same_to_the_byte(discreet, tmp_path):
    """Dates, decimals, missing keys, integers beyond doubles, microseconds; with the budget spent and the file gone."""
    path, target = tmp_path / "t.csv", tmp_path / "out" / "answer"
    path.write_text(TABLE)
    target.parent.mkdir()
    first = discreet("query", str(path), *ASK, "--types", "price=DECIMAL(9,2)", "--budget", "0.8", "--format", "csv")
    assert first.code == 0, first.err
    assert "9007199254740993" in first.out
    found = {}
    for name in (*FORMATS, "parquet"):
        done = discreet("query", str(path), *ASK, "--fresh", "--format", name, "-o", str(target))
        assert done.code == 0, done.err
        assert "replayed" not in done.err
        found[name] = target.read_bytes()
        again = discreet("query", str(path), *ASK, "--format", name, "-o", str(target))
        assert again.code == 0, again.err
        assert target.read_bytes() == found[name], name
        assert again.err.startswith("replayed: the stored answer of ledger entry ")
        if name == "parquet":
            schema = pq.read_table(target).schema
    assert [str(schema.field(name).type) for name in ("day", "price", "big", "at", "flag")] == [
        "date32[day]", "decimal128(9, 2)", "int64", "timestamp[us]", "bool",
    ]  # fmt: skip
    path.unlink()
    last = discreet.process("query", str(path), *ASK, "--format", "csv")
    assert (last.code, last.err.count("spent: nothing; left: epsilon 0.1;")) == (0, 1), last.err
    assert len(last.out.splitlines()) == 1 + 2 * 3 * 2 * 2 * 2


def test_a_replay_says_so(discreet, visits, tmp_path):
    question = ("query", str(visits), "SELECT COUNT(*) AS n FROM data", "--unit", "who", "--max-contributions", "3",
                "--epsilon", "0.5")  # fmt: skip
    report = tmp_path / "out" / "report.json"
    report.parent.mkdir()
    first = discreet(*question, "--budget", "1")
    again = discreet(*question, "--report", str(report))
    assert (first.code, again.code) == (0, 0)
    assert again.out == first.out
    assert "spent: epsilon 0.5; left: epsilon 0.5\n" in first.err
    assert "spent: nothing; left: epsilon 0.5; --fresh asks the data of today, for epsilon 0.5\n" in again.err
    document = json.loads(report.read_text())
    assert document["charged"] == {"epsilon": "0", "delta": "0"}
    assert document["epsilon"] == "0.5"
    assert document["replay"]["first_asked"].startswith("20")
    assert document["ledger_entry"] == 3
    history = json.loads(discreet("budget", str(visits), "--format", "json").out)["history"]
    assert [entry["kind"] for entry in history] == ["register", "budget", "debit"]
    assert history[2]["answer"]["rows"] == document["rows"]
    done = discreet(*question, "--fresh", "--report", str(report))
    assert "spent: epsilon 0.5; left: epsilon 0\n" in done.err
    assert json.loads(report.read_text())["replay"] is None
    done = discreet(*question, "--fresh")
    assert done.code == 3
    assert discreet(*question).code == 0


def test_a_replay_that_cannot_be_written_was_not_charged(discreet, visits, tmp_path, monkeypatch):
    question = ("query", str(visits), "SELECT COUNT(*) AS n FROM data", "--row-level", "--epsilon", "0.5")
    assert discreet(*question, "--budget", "1").code == 0
    folder = tmp_path / "out"
    folder.mkdir()
    answered = Dataset.answer

    def answer(self, *arguments, **keywords):
        shutil.rmtree(folder)
        return answered(self, *arguments, **keywords)

    monkeypatch.setattr(Dataset, "answer", answer)
    done = discreet(*question, "-o", str(folder / "a.txt"))
    assert done.code == 1
    assert "the answer was stored before, and is kept in the ledger as entry 3" in done.err


def test_no_price_decimal_is_a_float(tmp_path):
    """A Decimal key comes back as one, with its digits."""
    path = tmp_path / "t.csv"
    path.write_text("u,p\na,1.50\nb,2.5\n")
    data = discreet.open(path, privacy_unit="u", max_contributions=1, budget=1, ledger=tmp_path / "l",
                         types={"p": "DECIMAL(9,2)"})  # fmt: skip
    sql, keys = "SELECT p, COUNT(*) AS n FROM data GROUP BY p", {"p": [Decimal("1.50"), Decimal("2.5")]}
    first, again = (data.query(sql, epsilon=1, keys=keys) for _ in range(2))
    assert again.replayed
    assert all(map(same, first["p"], again["p"]))
    assert {type(value) for value in again["p"]} == {Decimal}
