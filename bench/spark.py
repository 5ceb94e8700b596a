"""How fast a private query is on Spark, beside Spark's own GROUP BY of the same Parquet file in the same session.

    python bench/spark.py [--rows N] [--runs N] [--folder FOLDER] [--json FILE]

A local session with two threads. A query is all of `data.query(...)`, warm; ratios are the medians of pairs of runs,
one after the other.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import discreet
from discreet.engines.spark_session import session_at
from measure.progress import steps
from measure.tables import Users, write
from measure.timing import in_pairs, machine
from speed import BOUNDS, KEYS, STATISTICS, USER

MASTER = "local[2]"
ASKED = 8
SQL = f"SELECT grp, {STATISTICS} FROM data GROUP BY grp"
CASES: dict[str, dict[str, Any]] = {
    "row level, 100 known groups, 3 statistics": {"row_level": True},
    "user level, 100 known groups, 3 statistics": USER,
}


def plain(file: Path) -> Callable[[], object]:
    session = session_at(MASTER)
    statement = SQL.replace("FROM data", f"FROM parquet.`{file}`")
    return lambda: session.sql(statement).collect()


def private(file: Path, unit: Mapping[str, Any], folder: Path) -> Callable[[], object]:
    """The whole query; each call with noise of its own."""
    source = f"spark:{MASTER}::parquet.{file}"
    data = discreet.open(source, **unit, budget=("1000000", "0.009"), ledger=folder / "ledger.sqlite")
    return lambda: data.query(SQL, epsilon="0.1", fresh=True, keys=KEYS, bounds=BOUNDS)


def measured(folder: Path, rows: int, runs: int) -> dict[str, Any]:
    file = write(folder / f"users-{rows}.parquet", rows, Users().rows)
    lines = []
    with steps("spark", len(CASES)) as done:
        for name, unit in CASES.items():
            with tempfile.TemporaryDirectory() as ledgers:
                pairs = in_pairs(private(file, unit, Path(ledgers)), plain(file), runs)
            lines.append({"case": name, **asdict(pairs)})
            done(f"{name}: {pairs.ratio:.1f} times")
    return {"rows": rows, "machine": machine(), "spark": session_at(MASTER).version, "cases": lines}


def markdown(found: Mapping[str, Any]) -> str:
    """The figures as Markdown."""
    text = [
        f"{found['rows']:,} rows of Parquet; {found['machine']}; Spark {found['spark']}, two threads.",
        "",
        "| query | times plain Spark | asked | seconds | plain |",
        "|---|---|---|---|---|",
    ]
    for line in found["cases"]:
        text.append(
            f"| {line['case']} | **{line['ratio']:.1f}** | {ASKED} | {line['ours']:.2f} | {line['other']:.2f} |"
        )
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "discreet-bench")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    found = measured(arguments.folder, arguments.rows, arguments.runs)
    print(markdown(found))
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
