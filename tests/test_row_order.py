"""R61: the order of the rows, of the file, and the number of threads change no exact total.

With many rows, so that several threads and row groups take part; the totals are also those of the definition,
here computed with NumPy's integers.
"""

from __future__ import annotations

import gzip
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import discreet.engines.duckdb as engine_room
from definition import S
from discreet.engines.duckdb import DuckDBEngine
from discreet.engines.duckdb_connection import connect
from discreet.plan import Request
from discreet.planning import make_plan
from discreet.relational import compile_plan
from discreet.sources import register
from discreet.sql import parse, parse_expression

ROWS, UNITS, LIMIT, PAIRS = 300_000, 20_000, 12, 3
KEYS = ["g7", "g0", "nobody", "g3", "g12"]
SQL = """SELECT k, COUNT(*) AS n, AVG(f, contribution_bounds_per_row => (-1, 2)) AS f, COUNT(DISTINCT u) AS units,
         SUM(i, contribution_bounds_per_row => (-1000000, 9223372036854775807)) AS i FROM data GROUP BY k"""


@pytest.fixture(scope="module")
def table():
    random = np.random.Generator(np.random.PCG64(1))  # data, not noise
    f = random.normal(size=ROWS)
    f[::1000] = np.nan
    f[1::1000] = np.inf
    f[2::1000] = -1e308
    return pa.table(
        {
            "u": np.sort(random.zipf(1.3, size=ROWS) % UNITS),
            "k": np.char.add("g", random.integers(0, 13, size=ROWS).astype(str)),
            "f": f,
            "i": random.integers(-(2**63), 2**63 - 1, size=ROWS),
        }
    )


def expected(table):
    u, k, f, i = (table.column(name).to_numpy(zero_copy_only=False) for name in ("u", "k", "f", "i"))
    place = np.full(ROWS, -1)
    for number, key in enumerate(KEYS):
        place[k == key] = number
    listed = place >= 0
    rows_of = np.bincount(u[listed], minlength=UNITS)
    weights = np.where(rows_of <= LIMIT, S, S * LIMIT // np.maximum(rows_of, 1))
    w = np.where(listed, weights[u], 0).astype(object)
    grid = np.floor(np.clip(f, -1, 2) * 2.0**39)  # step 2^-39: the bound 2 times 2^-40
    present = ~np.isnan(f)
    centred = np.where(present, 2 * np.where(present, grid, 0) - (2**40 - 2**39), 0).astype(np.int64).astype(object)
    clamped = np.maximum(i, -1_000_000).astype(object)
    pairs = np.unique(np.stack([u[listed], place[listed]], axis=1), axis=0)
    touched = np.bincount(pairs[:, 0], minlength=UNITS)
    pair_weights = np.where(touched <= PAIRS, S, S * PAIRS // np.maximum(touched, 1))
    found = {"count": [], "centred_sum": [], "count of f": [], "unit_count": [], "sum": []}
    for number in range(len(KEYS)):
        here = place == number
        found["count"].append(int(w[here].sum()))
        found["count of f"].append(int(w[here & present].sum()))
        found["centred_sum"].append(int((w * centred)[here].sum()))
        found["sum"].append(int((w * clamped)[here].sum()))
        found["unit_count"].append(int(pair_weights[pairs[pairs[:, 1] == number, 0]].sum()))
    return found


def totals(path, registration=None):
    registration = registration or register(path)
    request = Request(
        epsilon=1,
        unit=parse_expression("u", "unit"),
        max_contributions=LIMIT,
        max_groups_contributed=PAIRS,
        keys={"k": KEYS},
    )
    plan = make_plan(parse(SQL), registration, request)
    found = {}
    for measurement, total in zip(plan.measurements, DuckDBEngine(registration).run(compile_plan(plan)), strict=True):
        of_f = measurement.statistic == "count" and measurement.expression is not None
        found["count of f" if of_f else measurement.statistic] = total.to_ints()
    return found


def test_row_order_and_threads_change_nothing(table, tmp_path, monkeypatch):
    right = expected(table)
    assert right["count"][2] == 0 < min(right["count"][:2])
    shuffled = table.take(np.random.Generator(np.random.PCG64(2)).permutation(ROWS))
    for name, version, size in (
        ("sorted", table, 122_880),
        ("shuffled", shuffled, 5_000),
        ("backwards", table[::-1], 10**6),
    ):
        pq.write_table(version, tmp_path / f"{name}.parquet", row_group_size=size)
    for name, threads in (("sorted", 1), ("sorted", 4), ("shuffled", 1), ("shuffled", 4), ("backwards", 3)):
        monkeypatch.setattr(engine_room, "connect", partial(connect, threads=threads))
        assert totals(tmp_path / f"{name}.parquet") == right


def test_the_order_of_lines_and_of_joined_files_changes_nothing(tmp_path):
    lines = [f'{{"u": "u{i % 17}", "k": "g{i * i % 13}", "f": {i}e-3, "i": {i}}}\n' for i in range(200)]
    seen = []
    for name, text in (
        ("in order", lines),
        ("backwards", lines[::-1]),
        ("halves", lines[100:] + lines[:100]),
    ):
        path = tmp_path / f"{name}.jsonl.gz"
        # Two gzip members, as two days' files joined.
        path.write_bytes(b"".join(gzip.compress("".join(half).encode()) for half in (text[:90], text[90:])))
        seen.append(totals(path))
    assert seen[0] == seen[1] == seen[2]
    assert sum(seen[0]["unit_count"]) > 0


def test_the_order_of_the_answer_is_that_of_the_keys(tmp_path):
    """R61: whatever order the data are in, and whatever order the keys are listed in."""
    lines = [f"u{i},{k},1,1\n" for i, k in enumerate("cab" * 5 + "c" * 7 + "a")]
    path = tmp_path / "t.csv"
    path.write_text("u,k,f,i\n" + "".join(lines))
    registration = register(path)
    for keys in (["a", "b", "c", "d"], ["d", "c", "b", "a"], ["b", "d", "c", "a"]):
        for text in (lines, lines[::-1]):
            path.write_text("u,k,f,i\n" + "".join(text))
            request = Request(epsilon=1, unit=None, keys={"k": keys})
            plan = make_plan(parse("SELECT COUNT(*) AS n, k FROM data GROUP BY k"), registration, request)
            (vector,) = (t.to_ints() for t in DuckDBEngine(registration).run(compile_plan(plan)))
            assert vector == [{"a": 6, "b": 5, "c": 12, "d": 0}[key] for key in keys]
