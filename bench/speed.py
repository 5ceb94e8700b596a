"""How fast whole private queries are, beside the same GROUP BY in plain DuckDB.

    python bench/speed.py [--rows N] [--runs N] [--folder FOLDER] [--json FILE] [--only-curve]

A query is all of `data.query(...)`: SQL, plan, durable debit, DuckDB, noise, answer, ledger; warm. Ratios are the
medians of pairs of runs, one after the other. Peak memory is that of a process that does nothing else. Then the curve
over sizes, noise and selection of a million groups, and the command from a cold start. `--rows 100000000` makes the
large curve, under a limit of 2 GB for DuckDB (`make bench-large`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

import discreet
from measure.progress import steps
from measure.tables import Rare, Users, write
from measure.timing import in_pairs, machine, own_peak, peak_of, seconds

ROWS = 10**7
STATISTICS = "COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean"
NUMBERS = count()
PEERS = (
    ("opendp", "user"),
    ("opendp", "groups"),
    ("opendp", "row"),
    ("pydp", "row"),
    ("diffprivlib", "row"),
    ("tumult", "user"),
)

LEVELS = {
    "row": "row level",
    "user": "user level, at most 200 rows of a user",
    "usual": "the usual plan (5 groups of a user), without noise",
    "groups": "user level, at most 5 groups of a user and 40 rows in each",
}

Done = Callable[[str], None]
"""Called when a step is done, with its name."""


@dataclass(frozen=True)
class Case:
    """A private query and its raw counterpart; `most` is the ratio that issue 7 asks for, where it names one."""

    name: str
    table: str
    sql: str
    raw: str
    unit: Mapping[str, Any]
    options: Mapping[str, Any] = field(default_factory=dict)
    most: float | None = None


KEYS = {"grp": list(range(100))}
BOUNDS = {"amount": (0, 100)}
USER = {"privacy_unit": "user_id", "max_contributions": 200}
CASES = (
    Case(
        "row level, 100 known groups, 3 statistics",
        "users",
        f"SELECT grp, {STATISTICS} FROM data GROUP BY grp",
        f"SELECT grp, {STATISTICS} FROM data GROUP BY grp",
        {"row_level": True},
        {"keys": KEYS, "bounds": BOUNDS},
        2,
    ),
    Case(
        "user level, 100 known groups, 3 statistics",
        "users",
        f"SELECT grp, {STATISTICS} FROM data GROUP BY grp",
        f"SELECT grp, {STATISTICS} FROM data GROUP BY grp",
        USER,
        {"keys": KEYS, "bounds": BOUNDS},
        6,
    ),
    Case(
        "user level, 3 keys (2,800 groups), 3 statistics",
        "users",
        f"SELECT grp, day, device, {STATISTICS} FROM data GROUP BY grp, day, device",
        f"SELECT grp, day, device, {STATISTICS} FROM data GROUP BY grp, day, device",
        USER,
        {"keys": {**KEYS, "day": list(range(7)), "device": list(range(4))}, "bounds": BOUNDS},
    ),
    Case(
        "user level, median and 3 quantiles",
        "users",
        "SELECT MEDIAN(amount) AS p50, PERCENTILE_CONT(amount, 0.05) AS p5, PERCENTILE_CONT(amount, 0.95) AS p95, "
        "PERCENTILE_CONT(amount, 0.99) AS p99 FROM data",
        "SELECT quantile_cont(amount, [0.05, 0.5, 0.95, 0.99]) FROM data",
        USER,
        {"bounds": BOUNDS},
    ),
    Case(
        "user level, COUNT(DISTINCT user_id), 100 groups",
        "users",
        "SELECT grp, COUNT(DISTINCT user_id) AS n FROM data GROUP BY grp",
        "SELECT grp, COUNT(DISTINCT user_id) AS n FROM data GROUP BY grp",
        USER,
        {"keys": KEYS},
    ),
    Case(
        "user level, 100,000 unknown groups, 3 statistics",
        "rare",
        f"SELECT grp, {STATISTICS} FROM data GROUP BY grp",
        f"SELECT grp, {STATISTICS} FROM data GROUP BY grp",
        USER,
        {"bounds": BOUNDS, "delta": "1e-6", "max_groups_contributed": 20},
        12,
    ),
)
TABLES: dict[str, Callable[[], Users | Rare]] = {"users": Users, "rare": Rare}


def private(case: Case, file: Path, folder: Path) -> Callable[[], object]:
    """The whole query; each call with noise of its own."""
    data = discreet.open(file, **case.unit, budget=("1000000", "0.009"), ledger=folder / f"{next(NUMBERS)}.sqlite")
    return lambda: data.query(case.sql, epsilon="0.1", fresh=True, **case.options)


def raw(case: Case, file: Path) -> Callable[[], object]:
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    statement = case.raw.replace("FROM data", f"FROM '{file}'")
    return lambda: connection.execute(statement).fetchnumpy()


def peak(case: Case, file: Path, which: str) -> int:
    """Of one query in a process of its own."""
    place = str(CASES.index(case))
    return int(peak_of(Path(__file__), "--peak", which, "--case", place, "--file", str(file))["peak"])


def sizes(largest: int) -> list[int]:
    return [10**power for power in range(5, 10) if 10**power <= largest]


def curve(folder: Path, largest: int, runs: int, done: Done) -> list[dict[str, Any]]:
    """Row and user level over sizes, each in a process of its own."""
    found = []
    for size in sizes(largest):
        file = write(folder / f"users-{size}.parquet", size, Users().rows)
        for case in CASES[:2]:
            place = str(CASES.index(case))
            line = peak_of(Path(__file__), "--once", str(runs), "--case", place, "--file", str(file))
            found.append({"rows": size, "case": case.name, **line})
            done(f"{size:,} rows, {case.name}")
    return found


def usual_plan(file: Path) -> Callable[[], object]:
    """What bounding costs by itself as it is usually done, without any noise: totals of each user in each group, five
    groups of a user, by chance, and the three statistics of what is kept."""
    connection = duckdb.connect()
    connection.execute("SET enable_progress_bar = false")
    statement = f"""
        SELECT grp, sum(n), sum(least(greatest(total, 0), 4000)), sum(total) / sum(n) FROM (
          SELECT grp, n, total FROM (
            SELECT user_id, grp, least(count(*), 40) AS n, sum(least(greatest(amount, 0), 100)) AS total
            FROM '{file}' GROUP BY user_id, grp
          ) QUALIFY row_number() OVER (PARTITION BY user_id ORDER BY hash(user_id, grp)) <= 5
        ) GROUP BY grp"""
    return lambda: connection.execute(statement).fetchnumpy()


def peers(file: Path, runs: int, done: Done) -> list[dict[str, Any]]:
    """The first two cases by other libraries, in their own environment (`make bench-peers`). Those that are not there,
    or cannot say it, are named."""
    python = Path(__file__).parents[1] / ".bench-peers" / "bin" / "python"
    found: list[dict[str, Any]] = [peak_of(Path(__file__), "--usual", str(runs), "--file", str(file))]
    done("DuckDB, the usual plan")
    for library, level in PEERS:
        line: dict[str, Any] = {"library": library, "level": level}
        if not python.exists():
            found.append({**line, "cannot": "not installed: make bench-peers"})
            continue
        script = Path(__file__).parent / "peers" / "speed.py"
        command = [str(python), str(script), library, level, str(file), "--runs", str(runs)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        printed = ended.stdout.splitlines()
        found.append({**line, **(json.loads(printed[-1]) if printed else {"cannot": f"exit {ended.returncode}"})})
        done(f"{library}, {level} level")
    return found


def noise_of_many(groups: int, runs: int) -> float:
    """Choosing among `groups` groups and adding noise to three totals of each."""
    from discreet.entropy import SystemEntropy
    from discreet.laplace.limbs import Int128Array
    from discreet.laplace.mechanism import LaplaceMechanism
    from discreet.release import choose_groups
    from discreet.selection import Selection, margin

    epsilon, delta = Fraction(1, 4), Fraction(1, 10**6)
    selection = Selection(20, epsilon, delta, 1, margin(epsilon, 20, delta))
    units = Int128Array.from_int64(np.arange(groups, dtype=np.int64) % 1000)
    mechanism = LaplaceMechanism(200 * 2**20, Fraction(1, 4))

    def work() -> None:
        choose_groups(units, selection, SystemEntropy())
        for _ in range(3):
            mechanism.release_limbs(units, SystemEntropy())

    return statistics.median(seconds(work) for _ in range(runs))


def cold(folder: Path, runs: int) -> dict[str, float]:
    """The command from a cold start: help, and a query of a file of about 1 MB."""
    file = folder / "cold.csv"
    Users().rows(np.arange(38_000, dtype=np.uint64)).to_pandas().to_csv(file, index=False)
    command = [sys.executable, "-m", "discreet"]
    query = [*command, "query", str(file), "SELECT COUNT(*) AS n FROM data", "--unit", "user_id", "--epsilon", "0.01"]
    query += ["--max-contributions", "20", "--budget", "1000", "--fresh"]
    environment = {**os.environ, "DISCREET_LEDGER": str(folder / "cold.sqlite")}

    def run(arguments: list[str]) -> float:
        return statistics.median(
            seconds(lambda: subprocess.run(arguments, env=environment, check=True, capture_output=True))
            for _ in range(runs)
        )

    run(query)  # the first registers the file
    imports = "import discreet, duckdb, sqlglot, numpy, discreet.opening, discreet.release"
    return {
        "help": run([*command, "--help"]),
        "imports": run([sys.executable, "-c", imports]),
        "query": run(query),
        "megabytes": file.stat().st_size / 1e6,
    }


def measured(folder: Path, rows: int, runs: int, done: Done) -> dict[str, Any]:
    lines = []
    for case in CASES:
        file = write(folder / f"{case.table}-{rows}.parquet", rows, TABLES[case.table]().rows)
        with tempfile.TemporaryDirectory() as ledgers:
            pairs = in_pairs(private(case, file, Path(ledgers)), raw(case, file), runs)
        peaks = {"ours": peak(case, file, "ours"), "raw": peak(case, file, "raw")}
        lines.append({"case": case.name, **asdict(pairs), "most": case.most, "peak": peaks})
        done(f"{case.name}: {pairs.ratio:.1f} times")
    return {"rows": rows, "machine": machine(), "duckdb": duckdb.__version__, "cases": lines}


def markdown(found: Mapping[str, Any]) -> str:
    """The tables."""
    text = [f"{found['rows']:,} rows of Parquet; {found['machine']}; DuckDB {found['duckdb']}."]
    if "cases" in found:
        text += _queries(found)
    text += ["", "| rows | query | times raw | seconds | peak memory |", "|---|---|---|---|---|"]
    for line in found["curve"]:
        peak = f"{line['peak'] / 2**20:,.0f} MiB"
        text.append(f"| {line['rows']:,} | {line['case']} | {line['ratio']:.1f} | {line['ours']:.2f} | {peak} |")
    return "\n".join(text)


def _queries(found: Mapping[str, Any]) -> list[str]:
    text = [
        "",
        "| query | times raw DuckDB | asked | seconds | raw | peak memory | raw |",
        "|---|---|---|---|---|---|---|",
    ]
    for line in found["cases"]:
        asked = f"{line['most']:g}" if line["most"] else ""
        mib = " | ".join(f"{line['peak'][which] / 2**20:,.0f} MiB" for which in ("ours", "raw"))
        times = f"**{line['ratio']:.1f}** | {asked} | {line['ours']:.2f} | {line['other']:.3f}"
        text.append(f"| {line['case']} | {times} | {mib} |")
    cases, raw_seconds = found["cases"], found["cases"][0]["other"]
    text += [
        "",
        "| other ways | times raw DuckDB | ours is faster by | seconds | peak memory |",
        "|---|---|---|---|---|",
    ]
    for line in found["peers"]:
        name = f"{line['library']}, {LEVELS[line['level']]}"
        if "cannot" in line:
            text.append(f"| {name} | {line['cannot']} | | | |")
            continue
        ours = cases[0 if line["level"] == "row" else 1]["ours"]
        ratios = f"{line['seconds'] / raw_seconds:.0f} | **{line['seconds'] / ours:.0f}**"
        text.append(f"| {name} | {ratios} | {line['seconds']:.2f} | {line['peak'] / 2**20:,.0f} MiB |")
    cold_ = found["cold"]
    return [
        *text,
        "",
        f"Noise and selection of 1,000,000 groups: {found['noise']:.2f} s. Cold start: `--help` {cold_['help']:.2f} s;",
        f"a query of a file of {cold_['megabytes']:.1f} MB {cold_['query']:.2f} s, of which imports "
        f"{cold_['imports']:.2f} s.",
    ]


def child(arguments: argparse.Namespace) -> None:
    """One case in a process of its own."""
    if arguments.usual:
        work = usual_plan(arguments.file)
        work()
        times = [seconds(work) for _ in range(arguments.usual)]
        line = {"library": "DuckDB", "level": "usual", "seconds": statistics.median(times), "peak": own_peak()}
        print(json.dumps(line))
        return
    case = CASES[arguments.case]
    with tempfile.TemporaryDirectory() as folder:
        if arguments.peak == "raw":
            raw(case, arguments.file)()
            print(json.dumps({"peak": own_peak()}))
            return
        work = private(case, arguments.file, Path(folder))
        if arguments.peak:
            work()
            print(json.dumps({"peak": own_peak()}))
            return
        pairs = in_pairs(work, raw(case, arguments.file), arguments.once)
        print(json.dumps({**asdict(pairs), "peak": own_peak()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "discreet-bench")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only-curve", action="store_true", help="row and user level over sizes, and nothing else")
    for hidden, kind in (("--peak", str), ("--once", int), ("--usual", int), ("--case", int), ("--file", Path)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.file:
        child(arguments)
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    if arguments.only_curve:
        with steps("speed", 2 * len(sizes(arguments.rows))) as done:
            lines = curve(arguments.folder, arguments.rows, arguments.runs, done)
        found = {"rows": arguments.rows, "machine": machine(), "duckdb": duckdb.__version__, "curve": lines}
        told(found, arguments.json)
        return
    with steps("speed", len(CASES) + 2 * len(sizes(arguments.rows)) + len(PEERS) + 3) as done:
        found = measured(arguments.folder, min(arguments.rows, ROWS), arguments.runs, done)
        found["curve"] = curve(arguments.folder, arguments.rows, arguments.runs, done)
        found["peers"] = peers(arguments.folder / f"users-{found['rows']}.parquet", arguments.runs, done)
        found["noise"] = noise_of_many(1_000_000, arguments.runs)
        done("noise")
        found["cold"] = cold(arguments.folder, arguments.runs)
        done("cold start")
    told(found, arguments.json)


def told(found: dict[str, Any], file: Path | None) -> None:
    print(markdown(found))
    if file:
        file.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
