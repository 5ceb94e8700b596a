"""Groups chosen from the data: the threshold, the comparison, the counting, and what may leave."""

from __future__ import annotations

import datetime as dt
import itertools
import random
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from mpmath import mp, mpf
from scipy.stats import binom

import discreet
from discreet.engines.duckdb import DuckDBEngine
from discreet.entropy import SystemEntropy
from discreet.laplace.limbs import Int128Array
from discreet.plan import Plan
from discreet.relational import needed_columns
from discreet.relational_selection import compile_selection
from discreet.release import choose_groups
from discreet.selection import Selection, margin, passes

# --- the threshold ---------------------------------------------------------------------------------------------

CASES = [
    ("0.01", 100, "1e-12"),
    ("1", 1, "1e-6"),
    ("1", 3, "0.009"),
    ("0.5", 20, "1e-9"),
    ("1000", 1, "1e-30"),
    ("0.000000000001", 1, "1e-6"),
    ("0.1", 2**53, "1e-6"),
    ("1000000000", 5, "1e-6"),
    ("20", 1, "0.0099"),
]


@pytest.mark.parametrize(("epsilon", "limit", "delta"), CASES)
def test_margin_against_mpmath(epsilon: str, limit: int, delta: str) -> None:
    """k is the smallest integer from 1 with q^k / (1 + q) <= p, at 200 digits of another library."""
    k = margin(Fraction(epsilon), limit, Fraction(delta))
    with mp.workdps(200):
        q = mp.exp(-mpf(epsilon) / limit)
        p = 1 - (1 - mpf(delta)) ** (mpf(1) / limit)
        assert q**k / (1 + q) <= p
        assert k == 1 or q ** (k - 1) / (1 + q) > p


def test_doubles_would_be_wrong() -> None:
    """1 - (1 - delta)^(1/l) next to 1 has two digits left in doubles: k = 315,439 there, where 315,431 is right."""
    assert margin(Fraction("0.01"), 100, Fraction("1e-12")) == 315_431
    p, q = 1 - (1 - 1e-12) ** (1 / 100), np.exp(-0.01 / 100)
    assert np.ceil(100 / 0.01 * (-np.log(p) - np.log1p(q))) == 315_439


def selection(epsilon: str = "1", limit: int = 1, delta: str = "0.009", minimum: int = 1) -> Selection:
    exact = Fraction(epsilon), Fraction(delta)
    return Selection(limit, exact[0], exact[1], minimum, margin(exact[0], limit, exact[1]))


def test_threshold_and_comparison() -> None:
    chosen = selection(minimum=7)
    assert chosen.threshold == chosen.margin + 7
    assert selection().threshold == chosen.margin + 1
    tau = chosen.threshold
    noisy = Int128Array.from_ints([tau - 1, tau, tau + 1, -1, -(2**100), 2**100, 2**64 + tau - 1, 0])
    assert passes(noisy, chosen).tolist() == [False, True, True, False, False, True, True, False]
    assert passes(Int128Array.zeros(0), chosen).tolist() == []


# --- the law of a group that one unit has -------------------------------------------------------------------------

SINGLETONS = 1_000_000


def fits(released: int, probability: float, among: int = SINGLETONS) -> bool:
    """Whether a number of releases among the singletons fits the probability: false alarms 1e-9 in all."""
    low = binom.cdf(released, among, probability)
    high = binom.sf(released - 1, among, probability)
    return min(low, high) > 0.5e-9


def power(expected: float, true: float) -> float:
    """The probability that `fits` rejects counts of another probability than the expected one."""
    low, high = binom.ppf(0.5e-9, SINGLETONS, expected), binom.isf(0.5e-9, SINGLETONS, expected)
    return float(binom.cdf(low - 1, SINGLETONS, true) + binom.sf(high + 1, SINGLETONS, true))


def q_of(chosen: Selection) -> float:
    return float(np.exp(-float(chosen.epsilon / chosen.limit)))


def singleton_probability(chosen: Selection) -> float:
    """P(1 + X >= tau) = q^(tau - 1) / (1 + q), exactly, for tau > 1."""
    with mp.workdps(60):
        q = mp.exp(-mpf(chosen.epsilon.numerator) / chosen.epsilon.denominator / chosen.limit)
        return float(q ** (chosen.threshold - 1) / (1 + q))


@pytest.mark.parametrize("chosen", [selection(), selection("4", 3), selection("0.5", 2, "0.0099")])
def test_singletons_are_released_as_often_as_the_formula_says(chosen: Selection) -> None:
    """With `>` for `>=` the probability is q times as large; with a threshold one lower, 1 / q times. Such
    counts must be rejected: they fall among the accepted ones with a probability below 1e-9 (`power`)."""
    ones = Int128Array.from_int64(np.ones(SINGLETONS, dtype=np.int64))
    probability = singleton_probability(chosen)
    assert probability <= float(chosen.delta)
    released = int(choose_groups(ones, chosen, SystemEntropy()).sum())
    assert fits(released, probability)

    assert power(probability, probability * q_of(chosen)) > 1 - 1e-9
    assert power(probability, probability / q_of(chosen)) > 1 - 1e-9
    # The wrong comparison, as a plan whose threshold is one higher: rejected whatever its draws.
    strict = Selection(chosen.limit, chosen.epsilon, chosen.delta, chosen.minimum, chosen.margin + 1)
    wrong = int(choose_groups(ones, strict, SystemEntropy()).sum())
    assert not fits(wrong, probability)
    # And the other way: tau one too low, which would break the promise.
    loose = Selection(chosen.limit, chosen.epsilon, chosen.delta, chosen.minimum, chosen.margin - 1)
    assert not fits(int(choose_groups(ones, loose, SystemEntropy()).sum()), probability)


# --- counting, through the real engine ----------------------------------------------------------------------------

Open = Callable[..., discreet.Dataset]
SQL = "SELECT k, COUNT(*) AS n FROM data GROUP BY k"


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    numbers = itertools.count()

    def open_(frame: Any, *, row_level: bool = False, limit: int | None = 5) -> discreet.Dataset:
        unit: dict[str, Any] = {"row_level": True} if row_level else {"privacy_unit": "u", "max_contributions": limit}
        ledger = tmp_path / f"ledger{next(numbers)}"
        return discreet.open(frame, name="t", budget=(10**9, "0.0099"), ledger=ledger, **unit)

    return open_


def counted(plan: Plan, frame: Any, *, hash_key: int = 5, limit: int | None = None) -> dict[tuple[Any, ...], int]:
    """The exact number of units in each candidate group."""
    assert plan.selection is not None
    statement = compile_selection(plan, plan.selection.limit if limit is None else limit, hash_key)
    with DuckDBEngine(plan.registration, frame).session(needed_columns(plan)) as session:
        units = session.candidates(statement).to_ints()
        found = {}
        for place, number in enumerate(units):
            (key,) = session.keys(statement, np.array([place]))
            assert key not in found
            found[key] = number
    return found


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    types = (pa.string(), pa.string(), pa.int64())
    return pa.table({name: pa.array([row[i] for row in rows], types[i]) for i, name in enumerate(("u", "k", "b"))})


def random_rows(seed: int) -> list[tuple[Any, ...]]:
    random_ = random.Random(seed)
    units = ["p", "q", "r", "s", None]
    return [
        (random_.choice(units), random_.choice(["x", "y", "z", "", None]), random_.choice([1, 2, None]))
        for _ in range(50)
    ]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_neighbours_of_the_counts(opened: Open, seed: int, limit: int) -> None:
    """Removing any unit lowers at most l counts, each by 1; it changes nothing else."""
    sql = "SELECT k, b, COUNT(*) AS n FROM data GROUP BY k, b"
    given: dict[str, Any] = {"epsilon": 1, "delta": "1e-6", "max_groups_contributed": limit}
    rows = random_rows(seed)
    frame = table(rows)
    plan = opened(frame, limit=100).plan(sql, **given)
    whole = counted(plan, frame)
    meant: dict[tuple[Any, ...], set[str]] = {}
    for unit, *key in rows:
        if unit is not None:
            meant.setdefault(tuple(key), set()).add(unit)
    assert set(whole) <= set(meant)
    assert all(1 <= number <= len(meant[key]) for key, number in whole.items())
    in_groups = {unit: sum(unit in units for units in meant.values()) for unit in ("p", "q", "r", "s")}
    assert sum(whole.values()) == sum(min(limit, number) for number in in_groups.values())
    for unit in ("p", "q", "r", "s", None):
        less = table([row for row in rows if row[0] != unit])
        without = counted(plan, less)
        lowered = {key for key in whole if whole[key] != without.get(key, 0)}
        assert set(without) <= set(whole)
        assert all(whole[key] - without.get(key, 0) == 1 for key in lowered)
        # Reached: exactly l, or all of the unit's groups.
        assert len(lowered) == (0 if unit is None else min(limit, in_groups[unit]))
    shuffled = rows[:]
    random.Random(0).shuffle(shuffled)
    assert counted(plan, table(shuffled)) == whole


def test_which_groups_a_unit_is_counted_in_is_drawn_afresh(opened: Open) -> None:
    """4,000 units, each in the same 4 groups, l = 1: about a thousand in each, other ones under another key.

    Each count is Binomial(4000, 1/4); outside 1000 +- 180 with probability below 1e-10.
    """
    rows = [(str(u), k, 1) for u in range(4000) for k in ("w", "x", "y", "z")]
    frame = table(rows)
    plan = opened(frame).plan(SQL, epsilon=1, delta="1e-6", max_groups_contributed=1)
    found = [counted(plan, frame, hash_key=key) for key in (1, 2)]
    for counts in found:
        assert sum(counts.values()) == 4000
        assert all(820 < number < 1180 for number in counts.values())
    assert found[0] != found[1]
    assert counted(plan, frame, hash_key=1) == found[0]


def test_a_group_in_which_nobody_is_counted_is_no_candidate(opened: Open) -> None:
    frame = table([("p", k, 1) for k in "abcdefgh"])
    plan = opened(frame).plan(SQL, epsilon=1, delta="1e-6", max_groups_contributed=2)
    assert list(counted(plan, frame).values()) == [1, 1]


def test_rows_that_do_not_count(opened: Open) -> None:
    """Rows without a unit, that fail the filter, or whose key is not among those listed."""
    frame = table([("p", "x", 1), ("p", "x", 1), ("p", "y", 2), (None, "z", 1), ("q", "x", 3), ("q", "y", 1)])
    plan = opened(frame).plan("SELECT k, COUNT(*) AS n FROM data WHERE b < 3 GROUP BY k", epsilon=1, delta="1e-6")
    assert counted(plan, frame) == {("x",): 1, ("y",): 2}
    sql = "SELECT k, b, COUNT(*) AS n FROM data GROUP BY k, b"
    plan = opened(frame).plan(sql, epsilon=1, delta="1e-6", keys={"b": [1, 3]})
    assert counted(plan, frame) == {("x", 1): 1, ("x", 3): 1, ("y", 1): 1}


def test_row_level_counts_rows_and_each_is_in_one_group(opened: Open) -> None:
    frame = table([("p", "x", 1), ("p", "x", 1), (None, "y", 2), ("p", None, 1)])
    plan = opened(frame, row_level=True).plan(SQL, epsilon=1, delta="1e-6")
    assert plan.selection is not None
    assert plan.selection.limit == 1
    assert counted(plan, frame) == {("x",): 2, ("y",): 1, (None,): 1}


def test_keys_of_every_type_come_back(opened: Open) -> None:
    moment = dt.datetime(2024, 3, 1, 12, 30, 15, 123457)
    columns: dict[str, list[Any]] = {
        "big": [2**62 + 1, -(2**63), None],
        "money": [Decimal("1.10"), Decimal("12345678901234567890.01"), None],
        "day": [dt.date(1, 1, 1), dt.date(9999, 12, 31), None],
        "at": [moment, dt.datetime(1900, 1, 1), None],
        "instant": [moment.replace(tzinfo=dt.UTC), dt.datetime(1, 1, 1, tzinfo=dt.UTC), None],
        "flag": [True, False, None],
        "name": ['O\'Neil \\ "q" \u0000x 年', "", None],
    }
    people = 400
    frame = pa.table({"u": range(3 * people), **{name: values * people for name, values in columns.items()}})
    data = opened(frame, limit=1)
    for name, values in columns.items():
        sql = f"""SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(group_selection_strategy = LAPLACE_THRESHOLD)
            {name}, COUNT(*) AS n FROM data GROUP BY {name}"""
        answer = data.query(sql, epsilon=10**6, delta="1e-6")
        expected = [None, *sorted(value for value in values if value is not None)]
        assert list(answer[name]) == expected, name
        assert list(answer["n"]) == [people] * 3


def test_dates_that_no_calendar_has_are_missing(opened: Open) -> None:
    """Python could not name them; the source has made them NULL before any group was formed."""
    days = pa.array([0, 2**31 - 10, -(2**31) + 10] * 50, pa.int32()).cast(pa.date32())
    frame = pa.table({"u": range(150), "day": days})
    answer = opened(frame).query("SELECT day, COUNT(*) AS n FROM data GROUP BY day", epsilon=10**6, delta="1e-6")
    assert counts_of(answer) == {None: 100, dt.date(1970, 1, 1): 50}


def counts_of(answer: Any) -> dict[Any, Any]:
    return dict(zip(answer.columns[0].values, answer["n"], strict=True))


# --- answers -----------------------------------------------------------------------------------------------------


def test_the_second_pass_is_the_public_case(opened: Open) -> None:
    """N_u counts rows in released groups only: here each unit has 2 such rows, within its limit, and 3 others."""
    rows = [(f"u{i}", k, 1) for i in range(1000) for k in ("x", "y", f"a{i}", f"b{i}", f"c{i}")]
    frame = table(rows)
    data = opened(frame, limit=5)
    answer = data.query(SQL, epsilon=1000, delta="1e-6", max_groups_contributed=5)
    assert list(answer["k"]) == ["x", "y"]
    data = opened(frame, limit=2)
    answer = data.query(
        "SELECT k, COUNT(*) AS n, COUNT(DISTINCT u) AS m FROM data GROUP BY k",
        epsilon=10**5,
        delta="1e-6",
        max_groups_contributed=5,
    )
    assert list(answer["n"]) == [1000, 1000]
    assert list(answer["m"]) == [1000, 1000]


def test_r04_a_key_that_only_one_person_has(opened: Open, tmp_path: Path) -> None:
    rows = [(str(i), "A", 1) for i in range(1000)] + [("1001", "Zzyx-only-me", 1)]
    frame = table(rows)
    data = opened(frame)
    with pytest.raises(discreet.RefusedError) as refused:
        data.query(SQL, epsilon=1)
    text = str(refused.value)
    assert all(way in text for way in ("--keys k=", "--keys-file", "--delta"))
    plan = data.plan(SQL, epsilon=1, delta="1e-6")
    shown = [text, repr(plan.selection), str(data.estimate(SQL, epsilon=1, delta="1e-6").report())]
    answers = [data.query(SQL, epsilon=1, delta="1e-6"), data.query(SQL, epsilon=1, keys={"k": ["A", "B"]})]
    assert list(answers[0]["k"]) == ["A"]
    assert list(answers[1]["k"]) == ["A", "B"]
    shown += [str(answer) + str(answer.report()) + repr(answer) for answer in answers]
    shown += [str(data.history())]
    data.close()
    shown += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir()]
    assert not any("Zzyx" in text for text in shown)


def test_the_whole_cost_is_what_was_typed(opened: Open) -> None:
    frame = table([(str(i), "A", 1) for i in range(100)])
    data = opened(frame)
    sql = "SELECT k, COUNT(*) AS n, AVG(b) AS m FROM data GROUP BY k"
    plan = data.plan(sql, epsilon="0.7", delta="1e-6", bounds={"b": (0, 5)})
    assert plan.selection is not None
    assert plan.selection.epsilon + sum(m.epsilon for m in plan.measurements) == Fraction("0.7")
    data.query(sql, epsilon="0.7", delta="1e-6", bounds={"b": (0, 5)})
    balance = data.balance()
    assert balance is not None
    assert (balance.spent.epsilon, balance.spent.delta, balance.queries) == (Fraction("0.7"), Fraction("1e-6"), 1)
    # Public keys need no delta, and none is spent.
    data.query(sql, epsilon=1, delta="1e-6", bounds={"b": (0, 5)}, keys={"k": ["A"]})
    assert data.balance().spent.delta == Fraction("1e-6")  # type: ignore[union-attr]


def test_debited_before_anything_is_read(tmp_path: Path) -> None:
    """A budget without a delta, or with too little of it, refuses; the engine is never asked."""
    frame = table([("p", "A", 1)])
    data = discreet.open(frame, name="t", privacy_unit="u", max_contributions=1, budget=3, ledger=tmp_path / "l")
    with pytest.raises(discreet.BudgetError, match="delta"):
        data.query(SQL, epsilon=1, delta="1e-6")
    assert data.balance().queries == 0  # type: ignore[union-attr]


def test_r68_nothing_passes_and_the_answer_says_why(opened: Open) -> None:
    frame = table([(str(i), "AB"[i % 2], 1) for i in range(100)])
    data = opened(frame, limit=100)
    answer = data.query(SQL, epsilon=1, delta="1e-6")
    assert len(answer) == 0
    assert answer.to_dicts() == []
    chosen = answer.report()["group_selection"]
    assert chosen["threshold"] > 1000
    assert chosen["released_groups"] == 0
    assert "max_groups_contributed 100 / epsilon 0.5" in chosen["why"]
    assert "--keys" in chosen["more_groups"]
    # With the limit that the data meet, both pass.
    answer = data.query(SQL, epsilon=4, delta="1e-6", max_groups_contributed=1)
    assert list(answer["k"]) == ["A", "B"]


def test_clauses_after_the_choice(opened: Open) -> None:
    rows = [(f"{k}{i}", k, 1) for k, size in (("A", 200), ("B", 400), ("C", 300)) for i in range(size)]
    data = opened(table(rows), limit=1)
    answer = data.query(f"{SQL} HAVING n > 250 ORDER BY n DESC LIMIT 1", epsilon=1000, delta="1e-6")
    assert list(answer["k"]) == ["B"]
    assert answer.report()["group_selection"]["released_groups"] == 3


@pytest.mark.parametrize(
    ("options", "given", "words"),
    [
        ("group_selection_strategy = PUBLIC_GROUPS", {"delta": "1e-6"}, "no public list"),
        ("group_selection_strategy = LAPLACE_THRESHOLD", {}, "no public list"),
        (
            "group_selection_strategy = LAPLACE_THRESHOLD",
            {"delta": "1e-6", "keys": {"k": ["A"]}},
            "all keys are public",
        ),
        ("group_selection_strategy = SOME", {"delta": "1e-6"}, "must be PUBLIC_GROUPS or"),
        ("min_privacy_units_per_group = 5", {"keys": {"k": ["A"]}}, "chosen from the data"),
        ("min_privacy_units_per_group = 0", {"delta": "1e-6"}, "must be a whole number"),
        ("delta = 1e-6", {"delta": "1e-7"}, "given twice"),
        ("delta = 0.5", {}, "delta"),
    ],
)
def test_options_refused(opened: Open, options: str, given: dict[str, Any], words: str) -> None:
    data = opened(table([("p", "A", 1)]))
    sql = SQL.replace("SELECT", f"SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS({options})")
    with pytest.raises(discreet.DiscreetError, match=words):
        data.query(sql, epsilon=1, **given)
    assert data.balance().queries == 0  # type: ignore[union-attr]


def test_options_and_limits_are_part_of_the_question(opened: Open) -> None:
    data = opened(table([("p", "A", 1)]))
    prefix = "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(min_privacy_units_per_group = 9, delta = 1e-6)"
    plans = [
        data.plan(SQL, epsilon=1, delta="1e-6"),
        data.plan(SQL, epsilon=1, delta="1e-7"),
        data.plan(SQL, epsilon=1, delta="1e-6", max_groups_contributed=2),
        data.plan(SQL.replace("SELECT", prefix), epsilon=1),
        data.plan(SQL, epsilon=1, keys={"k": ["A"]}),
    ]
    assert len({plan.digest for plan in plans}) == len(plans)
    assert plans[3].selection is not None
    assert plans[0].selection is not None
    assert plans[3].selection.threshold == plans[0].selection.threshold + 8


def test_singletons_through_the_whole_path(opened: Open) -> None:
    """100,000 people, each with a key of their own: as many groups as the formula says, at a false alarm of 1e-9."""
    people = 100_000
    frame = pd.DataFrame({"u": range(people), "k": range(people)})
    data = opened(frame, limit=1)
    plan = data.plan(SQL, epsilon=4, delta="0.009")
    assert plan.selection is not None
    answer = data.query(SQL, epsilon=4, delta="0.009")
    assert fits(len(answer), singleton_probability(plan.selection), people)
    assert list(answer["k"]) == sorted(answer["k"])  # type: ignore[type-var]
