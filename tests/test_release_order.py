"""Plan, debit, look, draw: the only legal order, whatever goes wrong in between (design, sections 2 and 10)."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import pickle
import re
import signal
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet
import discreet.engines.duckdb as engine_room
import release_child
from discreet.engines.duckdb import DuckDBEngine
from discreet.entropy import SystemEntropy
from discreet.errors import BudgetError, DiscreetError, EngineError, RefusedError, SourceError, UsageError
from discreet.laplace.limbs import Int128Array
from discreet.ledger import Failure, Ledger
from discreet.ledger.records import Kind, State
from discreet.relational import compile_plan
from discreet.release import Charge, add_noise, release
from discreet.stored import answer_of

HALF = Fraction(1, 2)
SQL = """SELECT k, COUNT(*) AS n, COUNT(x) AS present, SUM(x) AS total, AVG(x) AS mean, COUNT(DISTINCT u) AS who
         FROM data GROUP BY k"""
KEYS = {"k": ["a", "b"]}
BOUNDS = {"x": (0, 1000)}


def write_rows(path: Path) -> Path:
    cells = [("" if i % 5 == 0 else i * 37 % 1009) for i in range(3000)]
    path.write_text("u,k,x\n" + "".join(f"u{i % 7},{'abb'[i % 3]},{x}\n" for i, x in enumerate(cells)))
    return path


@pytest.fixture
def data(tmp_path):
    return discreet.open(
        write_rows(tmp_path / "t.csv"),
        privacy_unit="u",
        max_contributions=5,
        max_groups_contributed=1,
        budget=100,
        ledger=tmp_path / "ledger.sqlite",
    )


def ask(data, epsilon="0.5"):
    return data.query(SQL, epsilon=epsilon, keys=KEYS, bounds=BOUNDS)


def plan_of(data, epsilon="0.5"):
    return data.plan(SQL, epsilon=epsilon, keys=KEYS, bounds=BOUNDS)


def debits(data):
    return [entry for entry in data.history() if entry.kind is Kind.DEBIT]


def in_another_process(path: Path, source: str) -> str:
    """What a process that shares nothing with this one sees as spent."""
    code = (
        "import sys; from discreet.ledger import Ledger; print(Ledger(sys.argv[1]).balance(sys.argv[2]).spent.epsilon)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, path, source], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


# --- the order -------------------------------------------------------------------------------------------


class Watch:
    """The real parts, each telling when it is used."""

    def __init__(self, data):
        self.events: list[str] = []
        self.data = data
        self.real = Ledger(data.ledger_path)
        self.engine = DuckDBEngine(data.registration)
        self.quirks = self.engine.quirks
        self.entropy = SystemEntropy()
        self.fail: BaseException | None = None

    def stored_answer(self, *arguments):
        self.events.append("asked before?")
        return self.real.stored_answer(*arguments)

    def debit(self, *arguments, **options):
        self.events.append("debit")
        entry = self.real.debit(*arguments, **options)
        self.events.append("debited")
        return entry

    def ahead(self):
        return self.engine.ahead()

    def check(self, zones):
        self.engine.check(zones)

    def run(self, statement):
        self.events.append("engine")
        self.seen_outside = in_another_process(self.data.ledger_path, self.data.registration.source)
        if self.fail is not None:
            raise self.fail
        return self.engine.run(statement)

    def words(self, count):
        self.events.append("noise")
        return self.entropy.words(count)

    def bits(self, count):
        self.events.append("noise")
        return self.entropy.bits(count)

    def record_release(self, entry, answer):
        self.events.append("record")
        self.real.record_release(entry, answer)
        self.recorded = answer

    def record_failure(self, entry, reason):
        self.events.append("failure")
        self.real.record_failure(entry, reason)

    def balance(self, source):
        return self.real.balance(source)


def test_plan_debit_engine_noise_record_return(data):
    """Design 2.3: plan, debit, look, draw."""
    watch = Watch(data)
    plan = plan_of(data)
    assert watch.events == []
    answer = release(plan, watch, watch, Fraction(95, 100), Charge(1), entropy=watch)
    first_use = list(dict.fromkeys(watch.events))
    assert first_use == ["asked before?", "debit", "debited", "engine", "noise", "record"]
    # Nothing of one step follows the next step's first.
    assert watch.events.count("engine") == 1
    assert set(watch.events[4:-1]) == {"noise"}
    assert watch.seen_outside == "1/2"
    entry = data.history()[-1]
    assert (entry.state, entry.answer) == (State.RELEASED, watch.recorded)
    assert answer_of(entry).columns == answer.columns


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (EngineError("engine", "failed"), Failure.ENGINE),
        (SourceError("source", "gone"), Failure.SOURCE),
        (KeyboardInterrupt(), Failure.INTERRUPTED),
    ],
)
def test_what_fails_after_the_debit_is_not_refunded(data, error, reason):
    watch = Watch(data)
    watch.fail = error
    with pytest.raises(type(error)) as caught:
        release(plan_of(data), watch, watch, Fraction(95, 100), Charge(1), entropy=watch)
    assert caught.value is error
    assert watch.events == ["asked before?", "debit", "debited", "engine", "failure"]
    (entry,) = debits(data)
    assert (entry.state, entry.reason) == (State.FAILED, reason)
    assert data.balance().spent.epsilon == HALF


def test_an_interrupt_from_the_keyboard(data, monkeypatch):
    real = DuckDBEngine.run
    # A shell's background jobs ignore this signal from the start.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    def run(self, statement):
        totals = real(self, statement)
        signal.raise_signal(signal.SIGINT)
        return totals

    monkeypatch.setattr(DuckDBEngine, "run", run)
    try:
        with pytest.raises(KeyboardInterrupt):
            ask(data)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [entry.reason for entry in debits(data)] == [Failure.INTERRUPTED]
    monkeypatch.undo()
    ask(data)  # and the next query is as good as ever
    assert data.balance().spent.epsilon == 1


def test_a_debit_that_fails_starts_nothing(data, monkeypatch):
    monkeypatch.setattr(DuckDBEngine, "run", lambda *_: pytest.fail("the engine was started"))
    before = data.history()
    with pytest.raises(BudgetError):
        ask(data, epsilon=101)
    assert data.history() == before


# --- failures tell nothing -------------------------------------------------------------------------------


def test_an_engines_failure_has_one_constant_text(tmp_path):
    """Two broken files, two faults; the same words, none of the engine's own and none of the data."""
    texts = set()
    for name, damage in (("a", slice(0, 400)), ("b", slice(0, -9))):
        path = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"u": ["secret-17", "secret-18"], "x": [12345, 67890]}), path)
        data = discreet.open(path, row_level=True, budget=1, ledger=tmp_path / f"{name}.sqlite")
        path.write_bytes(path.read_bytes()[damage])
        with pytest.raises(EngineError) as caught:
            data.query("SELECT SUM(x, contribution_bounds_per_row => (0, 9)) AS s FROM data", epsilon="0.5")
        error = caught.value
        texts.add((str(error), repr(error)))
        assert error.__cause__ is None
        assert error.__context__ is None
        assert [entry.reason for entry in debits(data)] == [Failure.ENGINE]
        assert data.balance().spent.epsilon == HALF
    assert len(texts) == 1
    assert not any(word in str(texts).lower() for word in ("secret", "parquet", "duckdb", "thrift", str(tmp_path)))


def test_a_lazy_frame_that_fails_tells_nothing(tmp_path):
    path = write_rows(tmp_path / "t.csv")
    lazy = pl.scan_csv(path, infer_schema=False).with_columns(pl.col("x").str.to_integer(strict=True).alias("y"))
    data = discreet.open(lazy.filter(pl.col("x") != ""), name="t", row_level=True, budget=1, ledger=tmp_path / "l")
    path.write_text("u,k,x\nu1,a,secret17\n")
    with pytest.raises(SourceError) as caught:
        data.query("SELECT COUNT(*) AS n, COUNT(y) AS m FROM data", epsilon="0.5")
    assert "secret" not in f"{caught.value} {caught.value!r}"
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert [entry.reason for entry in debits(data)] == [Failure.SOURCE]


def test_a_file_that_goes_costs_nothing_before_the_debit_and_all_after_it(data, tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    debit = Ledger.debit

    def then_gone(self, *arguments, **options):
        entry = debit(self, *arguments, **options)
        path.unlink()
        return entry

    with monkeypatch.context() as patch, pytest.raises(SourceError, match="gone"):
        patch.setattr(Ledger, "debit", then_gone)
        ask(data)
    assert data.balance().spent.epsilon == HALF
    with pytest.raises(SourceError, match="gone"):
        ask(data)
    assert data.balance().spent.epsilon == HALF


def test_a_file_replaced_while_it_is_read(tmp_path, monkeypatch):
    """Weights taken from one version of a table would bound nothing in the next: no answer is given."""
    path = tmp_path / "t.parquet"
    few, many = (pa.table({"u": ["one"] * rows}) for rows in (2, 2000))
    pq.write_table(few, path)
    data = discreet.open(path, privacy_unit="u", max_contributions=2, budget=1, ledger=tmp_path / "l")
    real = engine_room._totals

    def totals(*arguments):
        pq.write_table(many, tmp_path / "new.parquet")
        (tmp_path / "new.parquet").rename(path)
        return real(*arguments)

    monkeypatch.setattr(engine_room, "_totals", totals)
    with pytest.raises(EngineError, match="changed while it was read"):
        data.query("SELECT COUNT(*) AS n FROM data", epsilon="0.5")
    assert data.balance().spent.epsilon == HALF
    monkeypatch.undo()
    assert len(data.query("SELECT COUNT(*) AS n FROM data", epsilon="0.5")) == 1


REFUSED = [
    ("SELECT x FROM data", {}),
    ("SELECT * FROM data", {}),
    ("SELECT MAX(x) FROM data", {}),
    ("SELECT SUM(x) FROM data", {}),
    ("SELECT AVG(nothing) FROM data", {}),
    ("SELECT STRING_AGG(k, ',') FROM data", {}),
    ("SELECT k, COUNT(*) FROM data GROUP BY k", {}),
    ("SELECT COUNT(*) FROM elsewhere", {}),
    ("SELECT COUNT(*) FROM data WHERE x", {}),
    ("SELECT COUNT(*) FROM data WHERE x = 'text'", {}),
    ("SELECT COUNT(*) FROM data WHERE random() < 0.5", {}),
    ("SELECT COUNT(*) FROM data; SELECT 1", {}),
    ("SELECT COUNT(*", {}),
    ("SELECT COUNT(*) FROM data", {"epsilon": 0}),
    ("SELECT COUNT(*) FROM data", {"epsilon": float("nan")}),
    ("SELECT COUNT(*) FROM data", {"epsilon": "1e-17"}),
    ("SELECT COUNT(*) FROM data", {"confidence": 1}),
    ("SELECT COUNT(*) FROM data", {"max_contributions": 6}),
    ("SELECT COUNT(*) FROM data", {"keys": {"k": ["a"]}}),
    ("SELECT k, COUNT(*) FROM data GROUP BY k", {"keys": {"k": []}}),
    ("SELECT SUM(x) FROM data", {"bounds": {"x": (10, 0)}}),
    ("SELECT SUM(x) FROM data", {"bounds": {"x": (0, float("inf"))}}),
    ("SELECT SUM(x) FROM data", {"bounds": {"x": ("0", "1")}}),
    ("SELECT SUM(x) FROM data", {"bounds": {"x": (0, 0)}}),
    ("SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(privacy_unit_column = x) COUNT(*) FROM data", {}),
]


def test_an_analyst_without_a_valid_name_is_refused_before_the_debit(data):
    before = data.history()
    with pytest.raises(UsageError, match="analyst"):
        data.query("SELECT COUNT(*) FROM data", epsilon=HALF, analyst="\udcff")
    assert data.history() == before


def test_refusals_cost_nothing_and_never_open_the_source(data, tmp_path, monkeypatch):
    (tmp_path / "t.csv").rename(tmp_path / "away.csv")
    monkeypatch.setattr(DuckDBEngine, "run", lambda *_: pytest.fail("the engine was started"))
    before = data.history()
    for sql, options in REFUSED:
        with pytest.raises((UsageError, RefusedError)):
            pytest.fail(f"answered: {sql} {data.query(sql, **{'epsilon': HALF, **options})}")
    assert data.history() == before
    assert data.balance().queries == 0
    with pytest.raises(SourceError, match="gone"):
        data.query("SELECT COUNT(*) FROM data", epsilon=HALF)
    assert data.history() == before
    # Looking ahead needs no data either.
    estimate = data.estimate(SQL, epsilon=HALF, keys=KEYS, bounds=BOUNDS)
    assert estimate.cost.epsilon == HALF
    assert "mean" in str(estimate)
    assert plan_of(data).digest == plan_of(data).digest
    assert data.history() == before


def test_refusals_are_the_same_whatever_the_rows(data, tmp_path):
    """Design 2.8: the refusal of each query is one text, decided from the schema."""

    def told():
        texts = []
        for sql, options in REFUSED:
            with pytest.raises(DiscreetError) as caught:
                data.query(sql, **{"epsilon": HALF, **options})
            texts.append((type(caught.value), str(caught.value)))
        return texts

    full = told()
    (tmp_path / "t.csv").write_text("u,k,x\n")
    assert told() == full
    (tmp_path / "t.csv").write_bytes(b"\xff\x00 not a table")
    assert told() == full


# --- sudden ends -----------------------------------------------------------------------------------------


def child(what: str, folder: Path, *more: str) -> list[dict]:
    done = subprocess.run(
        [sys.executable, release_child.__file__, what, folder, *more],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_killed_between_any_two_steps(tmp_path):
    write_rows(tmp_path / "t.csv")
    found = {report.pop("step"): report for report in child("steps", tmp_path)}
    assert list(found) == list(release_child.STEPS)
    for step, report in found.items():
        assert report["killed"], step
        early = step == "before the debit"
        late = step in ("after the record", "after the answer")
        assert report["spent"] == ("0" if early else "1/2"), step
        assert report["states"] == ([] if early else ["released"] if late else ["debited"]), step
        # Whatever was seen is paid for.
        assert bool(report["seen"]) == (step == "after the answer")


def test_killed_at_any_moment(tmp_path):
    write_rows(tmp_path / "t.csv")
    seen = 0
    for report in child("any_time", tmp_path, "6"):
        seen += report["seen"]
        assert Fraction(report["spent"]) == Fraction(report["debits"], 2)
        assert seen <= report["debits"]


def test_twenty_processes_on_one_budget(tmp_path):
    write_rows(tmp_path / "t.csv")
    (report,) = child("race", tmp_path, "20")
    assert report == {"codes": [0] * 10 + [3] * 10, "spent": "1"}


@pytest.mark.parametrize(("budget", "answers"), [(1, 2), ("0.9", 1)])
def test_two_queries_at_once(tmp_path, monkeypatch, budget, answers):
    """In two threads over one data set, both inside the engine at the same time where the budget allows it."""
    data = discreet.open(
        write_rows(tmp_path / "t.csv"), privacy_unit="u", max_contributions=5, budget=budget, ledger=tmp_path / "l"
    )
    together, real = threading.Barrier(answers), DuckDBEngine.run

    def run(self, statement):
        together.wait(timeout=30)
        return real(self, statement)

    monkeypatch.setattr(DuckDBEngine, "run", run)
    found: list[object] = []

    def one():
        try:
            found.append(data.query(SQL, epsilon="0.5", keys=KEYS, bounds=BOUNDS, fresh=True)["n"])
        except BudgetError as error:
            found.append(error)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(found) == 2
    assert sum(isinstance(result, tuple) for result in found) == answers
    assert data.balance().spent.epsilon == answers * HALF


# --- the noise -------------------------------------------------------------------------------------------


def test_every_measurement_meets_noise_of_its_scale(data):
    """For each measurement the mean size of 10^6 noises is its scale, within 0.7 %.

    The mean of |X| over n draws has standard deviation t / sqrt(n), 0.1 % of the scale t: 7 of them are 3e-12
    false alarms a measurement; a scale that is 2 % off is told with a probability of 1 - 1e-38.
    """
    plan = plan_of(data)
    assert [m.statistic for m in plan.measurements] == ["count", "count", "centred_sum", "unit_count"]
    assert sum(m.epsilon for m in plan.measurements) == HALF
    zeros = Int128Array.zeros(10**6)
    for measurement, noisy in zip(
        plan.measurements, add_noise(plan.measurements, (zeros,) * 4, SystemEntropy()), strict=True
    ):
        size = np.abs(noisy.high.astype(np.float64) * 2.0**64 + noisy.low.astype(np.float64))
        scale = measurement.sensitivity / measurement.epsilon
        assert abs(size.mean() / float(scale) - 1) < 0.007
        assert abs((noisy.high < 0).mean() - 0.5) < 0.0035  # 7 standard deviations of a fair sign


def test_no_exact_total_can_be_reached_from_an_answer(data, tmp_path):
    """Design 2.7: neither by attributes, nor in what is printed, pickled or stored.

    At this epsilon every noise has a scale of at least 10^12 rows or units, so that any one number of the answer
    is one of the private ones with a probability of at most 1e-12; some 500 pairs are compared: 5e-10 false alarms.
    Searched are the engine's totals, and the same divided by the weight, where they have four digits or more.
    """
    epsilon = "0.000000000001"
    answer = ask(data, epsilon)
    plan = plan_of(data, epsilon)
    private = set()
    for measurement, total in zip(
        plan.measurements, DuckDBEngine(data.registration).run(compile_plan(plan)), strict=True
    ):
        assert measurement.scale / measurement.weight > 10**12
        private |= set(total.to_ints())
        private |= {round(total * measurement.unit_value) for total in total.to_ints()}
    private = {number for number in private if abs(number) > 1000}
    assert len(private) >= 7
    assert max(private) in list(everything_in({"kept": [(max(private),)]}))  # it can find them
    for holder in (answer, pickle.loads(pickle.dumps(answer)), dataclasses.asdict(answer)):  # noqa: S301
        found = list(everything_in(holder))
        assert len(found) > 100
        assert not any(isinstance(value, Int128Array | np.ndarray) for value in found)
        assert not {value for value in found if isinstance(value, int | float | Fraction)} & private
    stored = json.dumps([entry.answer for entry in data.history()])
    ledger = data.ledger_path.read_bytes().decode("latin-1")
    for text in (str(answer), repr(answer), json.dumps(answer.report()), stored, ledger):
        assert not set(re.findall(r"\d+", text.replace(",", ""))) & {str(abs(number)) for number in private}


def everything_in(value: object, depth: int = 12):
    """Every value that attributes, items and elements lead to."""
    yield value
    if depth == 0 or value is None or isinstance(value, str | bytes | int | float | Fraction):
        return
    inner: list[object] = []
    if isinstance(value, dict):
        inner += [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        inner += list(value)
    inner += list(getattr(value, "__dict__", {}).values())
    for name in getattr(type(value), "__slots__", ()):
        with contextlib.suppress(AttributeError):
            inner.append(getattr(value, name))
    for thing in inner:
        yield from everything_in(thing, depth - 1)
