"""All releases of a data set as one value: from the ledger alone, as of one moment."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet
from discreet.deployment import deployment, name_of
from discreet.engines.duckdb import DuckDBEngine
from discreet.errors import EngineError, LedgerError
from discreet.ledger import Kind, Ledger, Method, State
from discreet.privacy import PrivacyLoss

SQL = "SELECT k, COUNT(*) AS n, SUM(x) AS total FROM data GROUP BY k"


def opened(tmp_path: Path, budget: object = 3) -> discreet.Dataset:
    path = tmp_path / "deep" / "people.csv"
    path.parent.mkdir(exist_ok=True)
    path.write_text("u,k,x\n" + "".join(f"u{i % 9},{'ab'[i % 2]},{i}\n" for i in range(90)))
    return discreet.open(path, privacy_unit="u", max_contributions=5, budget=budget, ledger=tmp_path / "l")


def ask(data: discreet.Dataset, epsilon: object = "0.5", **more: Any) -> discreet.Answer:
    return data.query(SQL, epsilon=epsilon, keys={"k": ["a", "b"]}, bounds={"x": (0, 9)}, **more)


def test_everything_of_one_data_set(tmp_path, monkeypatch):
    data = opened(tmp_path)
    first = ask(data, analyst="ann")
    with monkeypatch.context() as patch, pytest.raises(EngineError):
        patch.setattr(DuckDBEngine, "run", lambda *_: (_ for _ in ()).throw(EngineError("engine", "failed")))
        ask(data, "0.25", analyst="bob")
    ask(data, analyst="cid")  # a replay: no trace
    with Ledger(tmp_path / "l") as book:
        source = data.registration.source
        book.raise_budget(source, PrivacyLoss(Fraction(5), Fraction(1, 10**6)))
        book.set_accounting(source, Method.RENYI)
        book.register(data.registration)
        found = deployment(book, source)
        assert found.head == book.verify()
    assert found.name == "people.csv"
    assert [(d.source, d.name, [number for number, _ in d.versions]) for d in found.datasets] == [
        (source, "people.csv", [1, 2])
    ]
    assert found.datasets[0].registration == data.registration
    assert (found.account, found.shared_by, found.is_pure, found.promises) == (source, (), False, ("per u",))
    assert [(r.number, r.entry.state, r.entry.analyst) for r in found.releases] == [
        (1, State.RELEASED, "ann"),
        (2, State.FAILED, "bob"),
    ]
    released, failed = found.releases
    assert released.answer is not None
    assert released.answer.columns == first.columns
    assert released.details["software"] == found.software == f"discreet {discreet.__version__}"
    assert failed.answer is None
    assert failed.details == {}
    assert found.released == (released,)
    assert [(s.kind, s.loss and s.loss.epsilon, s.spent.epsilon, s.total and s.total.epsilon) for s in found.steps] == [
        (Kind.BUDGET, None, 0, 3),
        (Kind.DEBIT, Fraction(1, 2), Fraction(1, 2), 3),
        (Kind.DEBIT, Fraction(1, 4), Fraction(3, 4), 3),
        (Kind.RAISE, None, Fraction(3, 4), 5),
        (Kind.ACCOUNTING, None, Fraction(3, 4), 5),
    ]
    assert found.steps[-1].says["accounting"] == "renyi"
    assert {(share.analyst, share.spent.epsilon) for share in found.shares} == {
        ("ann", Fraction(1, 2)),
        ("bob", Fraction(1, 4)),
    }
    assert found.entries == 9
    assert found.balance is not None
    assert found.balance.total.epsilon == 5


def test_before_anything_is_asked(tmp_path):
    data = discreet.open(opened(tmp_path).registration.source.removeprefix("file:"), ledger=tmp_path / "other")
    with Ledger(tmp_path / "other") as book:
        found = deployment(book, data.registration.source)
    assert (found.releases, found.steps, found.budget, found.balance) == ((), (), None, None)
    assert found.is_pure


def test_a_shared_budget_and_one_of_its_data_sets(tmp_path):
    """Of the one: its own questions, and the whole budget in time. Of the budget: all data sets."""
    (tmp_path / "one.csv").write_text("u\na\nb\n")
    (tmp_path / "two.csv").write_text("u\na\nb\n")
    (tmp_path / "discreet.toml").write_text(
        'ledger = "l"\n[budgets.people]\nepsilon = 9\nunit = "person"\n'
        + "".join(
            f'[datasets.{name}]\nsource = "{name}.csv"\nprivacy_unit = "u"\nmax_contributions = 1\nbudget = "people"\n'
            for name in ("one", "two")
        )
    )
    for name in ("one", "two", "two"):
        data = discreet.open(name, policy=tmp_path / "discreet.toml")
        data.query("SELECT COUNT(*) AS n FROM data", epsilon=1, fresh=True)
    with Ledger(tmp_path / "l") as book:
        two, people = (deployment(book, name) for name in (data.registration.source, "budget:people"))
    assert [len(found.releases) for found in (two, people)] == [2, 3]
    assert [len(found.datasets) for found in (two, people)] == [1, 2]
    assert (two.name, people.name) == ("two.csv", "people")
    assert two.account == people.account == "budget:people"
    assert len(two.shared_by) == len(people.shared_by) == 2
    assert two.steps == people.steps
    assert [step.kind for step in two.steps] == [Kind.BUDGET, Kind.JOIN, Kind.DEBIT, Kind.JOIN, Kind.DEBIT, Kind.DEBIT]
    assert two.balance == people.balance


def test_a_damaged_ledger_is_not_reported(tmp_path):
    import sqlite3

    data = opened(tmp_path)
    ask(data)
    data.close()
    with sqlite3.connect(tmp_path / "l") as connection:
        connection.execute("DROP TRIGGER no_update")
        connection.execute("UPDATE entries SET content = replace(content, 'csv', 'log') WHERE kind = 'register'")
    connection.close()
    with Ledger(tmp_path / "l") as book, pytest.raises(LedgerError, match="tampered"):
        deployment(book, data.registration.source)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("file:/a/b/c.csv", "c.csv"),
        ("file:/a/b/", "b"),
        ("file:/a/x.db::t", "x.db::t"),
        ("file:/a/*.csv", "*.csv"),
        ("frame:visits", "visits"),
        ("budget:people", "people"),
        ("odd", "odd"),
    ],
)
def test_short_names(source, name):
    assert name_of(source) == name
