"""contribution_bounds_per_group: what a unit has in a group is clamped. (That it is exact and bounded on every engine:
`test_neighbours`, `test_conformance`.)"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import discreet
from discreet import agg
from discreet.cli import main
from discreet.errors import RefusedError, UsageError
from discreet.query_text import node_text
from discreet.sql import parse

HUGE = "40000000"  # an epsilon at which the noise is far below one unit
KEYS = {"g": ["a", "b"]}
VISITS = pd.DataFrame(
    {
        "who": [1, 1, 1, 2, 2, 3, 3, 3, 3, 4],
        "g": list("aabaababba"),
        "x": [1.0, 2, 3, 4, 5, 6, 700, 8, 9, None],
    }
)


@pytest.fixture
def visits(tmp_path: Path) -> Any:
    return discreet.open(
        VISITS, name="visits", privacy_unit="who", max_contributions=10, budget=(10**9, "0.009"), ledger=tmp_path / "l"
    )


def exactly(data: Any, text: str, **more: Any) -> list[float]:
    """The values in groups a and b."""
    answer = data.query(f"SELECT g, {text} AS v FROM visits GROUP BY g", epsilon=HUGE, keys=KEYS, **more)
    return [round(row["v"], 3) for row in answer.to_dicts()]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("SUM(x, contribution_bounds_per_group => (0, 10))", [22, 13]),
        ("SUM(x, contribution_bounds_per_group => (4, 8))", [20, 12]),  # nothing of 4, who has no value
        ("SUM(x, contribution_bounds_per_group => (0, 10), contribution_bounds_per_row => (0, 2.5))", [10.5, 10]),
        ("SUM(x, contribution_bounds_per_group => (0, 10)) FILTER (WHERE x > 4)", [15, 10]),
        ("COUNT(*, contribution_bounds_per_group => (0, 2))", [6, 3]),
        ("COUNT(x, contribution_bounds_per_group => (0, 1))", [3, 2]),
        ("COUNT(*, contribution_bounds_per_group => (2, 3))", [8, 5]),
        ("COUNTIF(x > 4, contribution_bounds_per_group => (0, 9))", [2, 3]),
        ("COUNT(*, contribution_bounds_per_group => (0, 2)) FILTER (WHERE x > 4)", [2, 2]),
        (
            "SUM(x, contribution_bounds_per_group => (0, 10)) / COUNT(x, contribution_bounds_per_group => (0, 2))",
            [4.4, 4.333],
        ),
    ],
)
def test_values(visits: Any, text: str, values: list[float]) -> None:
    assert exactly(visits, text) == [pytest.approx(value, abs=2e-3) for value in values]


def test_whoever_is_in_more_groups_weighs_less_in_each(visits: Any) -> None:
    # 1 and 3 are in both groups, 2 and 4 in one; with one group a person they count a half in each.
    text = "SUM(x, contribution_bounds_per_group => (0, 10))"
    assert exactly(visits, text, max_groups_contributed=1) == [
        pytest.approx(3 / 2 + 9 + 10 / 2, abs=1e-2),
        pytest.approx(3 / 2 + 10 / 2, abs=1e-2),
    ]
    assert exactly(visits, "COUNT(*, contribution_bounds_per_group => (0, 2))", max_groups_contributed=1) == [5, 2]


def test_bounds_of_the_column_clamp_each_value_first(visits: Any) -> None:
    text = "SUM(x, contribution_bounds_per_group => (0, 10))"
    assert exactly(visits, text, bounds={"x": (0, 2.5)}) == [pytest.approx(v, abs=2e-3) for v in (10.5, 10)]


def test_the_builder_says_the_same(visits: Any) -> None:
    terms = [
        agg.sum("x", bounds_per_group=(0, 10)).alias("s"),
        agg.count(bounds_per_group=(0, 2)).alias("n"),
        agg.count("x", bounds_per_group=(0, 1)).alias("c"),
        agg.count_if("x > 4", bounds_per_group=(0, 9)).alias("i"),
    ]
    found = visits.select(*terms).group_by("g", keys=["a", "b"]).release(epsilon=HUGE).to_dicts()
    assert [[round(row[name]) for name in ("s", "n", "c", "i")] for row in found] == [[22, 6, 3, 2], [13, 3, 2, 3]]


def test_groups_chosen_from_the_data(visits: Any) -> None:
    sql = "SELECT g, SUM(x, contribution_bounds_per_group => (0, 10)) AS s FROM visits GROUP BY g"
    answer = visits.query(sql, epsilon="4000", delta="1e-6", max_groups_contributed=2)
    assert [(row["g"], round(row["s"])) for row in answer.to_dicts()] == [("a", 22), ("b", 13)]


def test_its_cost_and_scale_come_from_the_bounds_and_the_groups(visits: Any) -> None:
    sql = "SELECT g, SUM(x, contribution_bounds_per_group => (-3, 10)) AS s FROM visits GROUP BY g"
    plan = visits.plan(sql, epsilon=1, keys=KEYS, max_groups_contributed=1)
    (measurement,) = plan.measurements
    assert measurement.sensitivity * measurement.unit_value == 10  # G times the larger bound
    assert plan.limits()["max_groups_contributed"] == 1
    other = visits.plan(sql.replace("-3", "-4"), epsilon=1, keys=KEYS, max_groups_contributed=1)
    assert plan.digest != other.digest
    assert "bounds per group -3..10" in str(visits.estimate(sql, epsilon=1, keys=KEYS))


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        (
            "AVG(x, contribution_bounds_per_group => (0, 10))",
            RefusedError,
            r"is not known.* write SUM\(x, .*/ COUNT\(x",
        ),
        ("MEDIAN(x, contribution_bounds_per_group => (0, 10))", RefusedError, "is not known"),
        ("COUNT(DISTINCT x, contribution_bounds_per_group => (0, 10))", RefusedError, "max_groups_contributed"),
        ("APPROX_COUNT_DISTINCT(x, contribution_bounds_per_group => (0, 10))", RefusedError, "is not known"),
        ("COUNT(*, contribution_bounds_per_group => (0, 0.5))", UsageError, "whole numbers"),
        ("COUNT(*, contribution_bounds_per_group => (-1, 5))", UsageError, "whole numbers"),
        ("COUNT(*, contribution_bounds_per_group => (0, 0))", UsageError, "whole numbers"),
        ("COUNT(*, contribution_bounds_per_group => (0, 1e30))", UsageError, "whole numbers"),
        ("COUNT(*, contribution_bounds_per_group => ('2024-01-01', '2024-02-01'))", UsageError, "whole numbers"),
        ("COUNT(*, contribution_bounds_per_group => (5, 1))", UsageError, "lower bound"),
        ("COUNT(*, contribution_bounds_per_group => 5)", UsageError, "must be two numbers"),
        ("SUM(x, contribution_bounds_per_group => (0, 0))", RefusedError, "is always 0"),
        ("SUM(x, contribution_bounds_per_group => (0, 1e300))", RefusedError, "1e250"),
        ("SUM(x, contribution_bounds_per_group => ('2024-01-01', '2024-02-01'))", UsageError, "must be numbers"),
        (
            "SUM(x, contribution_bounds_per_row => (0, 1), contribution_bounds_per_group => (0, 1e30))",
            RefusedError,
            "would not fit",
        ),
    ],
)
def test_what_is_refused_before_anything_is_charged(visits: Any, text: str, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        visits.query(f"SELECT g, {text} AS v FROM visits GROUP BY g", epsilon=1, keys=KEYS)
    assert visits.balance().left.epsilon == 10**9


def test_at_row_level_a_row_is_a_unit(tmp_path: Path) -> None:
    rows = discreet.open(VISITS, name="rows", row_level=True, budget=3, ledger=tmp_path / "l")
    with pytest.raises(RefusedError, match="contribution_bounds_per_row"):
        rows.query("SELECT SUM(x, contribution_bounds_per_group => (0, 10)) AS s FROM rows", epsilon=1)


def test_it_is_written_as_it_was_asked() -> None:
    text = "SUM(x, contribution_bounds_per_row => (0, 2.5), contribution_bounds_per_group => (-1, 10), share => 3)"
    (output,) = parse(f"SELECT {text} AS s FROM data").outputs
    assert node_text(output.node).replace('"', "") == text


def test_explain_tells_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("DISCREET_LEDGER", str(tmp_path / "l"))
    VISITS.to_csv(tmp_path / "visits.csv", index=False)
    sql = (
        "SELECT SUM(x, contribution_bounds_per_group => (0, 10)) AS s, "
        "COUNT(*, contribution_bounds_per_group => (0, 2)) AS n FROM visits"
    )
    command = [
        "explain",
        str(tmp_path / "visits.csv"),
        sql,
        "--unit",
        "who",
        "--max-contributions",
        "9",
        "--epsilon",
        "1",
    ]
    with pytest.raises(SystemExit) as left:
        main(command)
    told = capsys.readouterr()
    assert left.value.code == 0, told.err
    assert "bounds per group 0..10" in told.out
    assert "moves the totals by at most 10" in told.out
    assert "moves the totals by at most 2" in told.out


@pytest.mark.parametrize("number", [Fraction(1, 3), 10**6000, Fraction(1, 10**5000)], ids=["endless", "huge", "tiny"])
def test_numbers_that_no_statement_holds(number: Any) -> None:
    for make in (
        lambda: agg.sum("x", bounds_per_group=(0, number)),
        lambda: agg.sum("x", bounds=(0, number)),
        lambda: agg.count() * number,
    ):
        with pytest.raises(UsageError):
            make()
