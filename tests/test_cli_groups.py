"""Groups, joins and zones from the command line."""

from __future__ import annotations

import json

import pytest

LIMITS = ("--unit", "who", "--max-contributions", "4", "--format", "json")


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"p{i},{'AB'[i % 2]},2024-01-01T{i % 24:02}:00:00Z" for i in range(400)]
    path.write_text("\n".join(["who,kind,time", *rows, "p1000,only-me,2024-01-01T00:00:00Z"]) + "\n")
    return str(path)


def rows(done):
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_groups_chosen_from_the_data(discreet, log):
    ask = ("query", log, "SELECT kind, COUNT(*) AS n FROM log GROUP BY kind", *LIMITS)
    refused = discreet(*ask, "--epsilon", "1", "--budget", "9", "--budget-delta", "1e-4")
    assert refused.code == 4
    assert all(way in refused.err for way in ("--keys kind=", "--keys-file", "--delta"))
    assert "only-me" not in refused.err + refused.out
    done = discreet(*ask, "--epsilon", "8", "--delta", "1e-6", "--budget", "9", "--budget-delta", "1e-4")
    assert [row["kind"] for row in rows(done)] == ["A", "B"]
    assert "spent: epsilon 8, delta 0.000001; left: epsilon 1, delta 0.000099" in done.err
    assert "at least 16" in done.err
    assert "max_groups_contributed 4 / epsilon 4" in done.err
    none = discreet(*ask, "--epsilon", "0.1", "--delta", "1e-6", "--max-groups-contributed", "4")
    assert rows(none) == []
    assert "no group passed" in none.err
    assert "to get groups: list the keys" in none.err
    for budget in (("--budget-delta", "1e-4"), ("--budget", "9", "--budget-delta", "1"), ("--budget", "9")):
        assert discreet(*ask, "--epsilon", "0.1", "--delta", "1e-6", *budget).code == 2


def test_a_query_needs_a_budget_with_a_delta(discreet, log):
    ask = ("query", log, "SELECT kind, COUNT(*) AS n FROM log GROUP BY kind", *LIMITS)
    done = discreet(*ask, "--epsilon", "1", "--delta", "1e-6", "--budget", "9")
    assert done.code == 3
    assert "delta" in done.err


def test_a_table_of_keys_a_public_table_and_a_zone(discreet, log, tmp_path):
    (tmp_path / "keys.csv").write_text("name,day\nalpha,2024-01-01\nalpha,2024-01-02\nNULL,2024-01-01\n")
    (tmp_path / "kinds.csv").write_text("code,name,rank\nA,alpha,1\nC,gamma,3\n")
    sql = "SELECT k.name, DATE(time) AS day, COUNT(*) AS n FROM log LEFT JOIN kinds AS k ON kind = k.code GROUP BY 1, 2"
    asked = ("query", log, sql, *LIMITS, "--epsilon", "100000", "--keys-file", str(tmp_path / "keys.csv"))
    done = discreet(*asked, "--public", f"kinds={tmp_path / 'kinds.csv'}", "--budget", "1000000")
    assert [(row["name"], row["day"], row["n"]) for row in rows(done)] == [
        ("alpha", "2024-01-01", 200),
        ("alpha", "2024-01-02", 0),
        (None, "2024-01-01", 201),
    ]
    done = discreet(*asked, "--public", f"kinds={tmp_path / 'kinds.csv'}", "--timezone", "+12:00")
    # From noon on it is the next day there. (i % 24 is the hour; A are the even ones, of whom there are counterparts.)
    early = [sum(i % 24 < 12 for i in range(start, 400, 2)) for start in (0, 1)]
    assert [row["n"] for row in rows(done)] == [early[0], 200 - early[0], early[1] + 1]
    assert "time zone +12:00" in done.err
    assert discreet(*asked).code == 4
    assert discreet(*asked, "--public", "kinds").code == 2
    assert discreet(*asked, "--public", f"kinds={tmp_path / 'kinds.csv'}", "--timezone", "Atlantis").code == 2
