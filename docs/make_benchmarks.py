"""docs/benchmarks.md and the tables of the READMEs, from what `make bench` measured (`bench/measured/*.json`).

A test holds the pages equal to what this makes: no figure in them is written by hand.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
MEASURED = ROOT / "bench" / "measured"
READMES = {"README.md": "en", "README.zh-CN.md": "zh"}
START, END = "<!-- benchmark: made by docs/make_benchmarks.py -->", "<!-- /benchmark -->"

HEAD = """# Benchmarks

Made by `make bench` (`bench/`), on the machine that each table names. Ratios come first: seconds differ from machine to
machine, and other work on it moves both sides alike. Each is the median of the ratios of runs made one after the other.

"""
PARTS = (
    (
        "speed",
        "Whole queries beside the raw GROUP BY",
        "`data.query(...)` from SQL to answer, with its durable debit, over a table of 10^5 users whose rows are as "
        "uneven as in life; DuckDB's own GROUP BY over the same file beside it. The other libraries run in their own "
        "environment (`make bench-peers`), in the same run.",
    ),
    ("large", "Up to 10^8 rows, DuckDB limited to 2 GB", "`make bench-large`."),
    (
        "spark",
        "Spark",
        "The same question on Spark, beside Spark's own GROUP BY in the same session, on this one machine.",
    ),
    (
        "accuracy",
        "Error at equal privacy",
        "Root-mean-square error over groups, with the best limits for each plan. *Ours* weighs rows, or persons' "
        "groups (with bounds per group), as [concepts](concepts.md) describes; the *usual plan* keeps l groups of a "
        "person and m rows in each; *C rows* keeps C rows of a person, as OpenDP's `truncate_per_group` does.",
    ),
    ("noise", "The noise", "One thread."),
    ("ledger", "The ledger", "Debits are synced to the disk, one after the other."),
)


def measured(part: str) -> Any:
    """What was measured; None if it was not."""
    file = MEASURED / f"{part}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


def page() -> str:
    """docs/benchmarks.md."""
    text = [HEAD.rstrip()]
    for part, title, about in PARTS:
        found = measured(part)
        if found is not None:
            text += ["", f"## {title}", "", about, "", _bench(part).markdown(found)]
    return "\n".join(text) + "\n"


def main_table(language: str) -> str:
    """The table of the READMEs: what a question costs in time, beside the same question without privacy."""
    found = measured("speed")
    first, second, *_ = found["cases"]
    users = next(case for case in found["cases"] if "unknown" in case["case"])
    peers = {(line["library"], line["level"]): line for line in found["peers"] if "seconds" in line}
    words = WORDS[language]
    head = words["head"].format(rows=f"{found['rows']:,}", machine=found["machine"], duckdb=found["duckdb"])
    text = [head, "", words["columns"], "|---|---|---|---|"]
    lines: list[tuple[str, float, float, int]] = [(words["raw"], 1, first["other"], first["peak"]["raw"])]
    for level, case in (("row", first), ("user", second), ("unknown", users)):
        lines.append((f"{words['ours']}{words[', ']}{words[level]}", case["ratio"], case["ours"], case["peak"]["ours"]))
    for (library, level), line in peers.items():
        lines.append(
            (
                f"{NAMES[library]}{words[', ']}{words[level]}",
                line["seconds"] / first["other"],
                line["seconds"],
                line["peak"],
            )
        )
    for name, ratio, seconds, peak in lines:
        text.append(
            f"| {name} | {ratio:.{0 if ratio >= 15 or ratio == 1 else 1}f} | {seconds:.2f} | {peak / 2**20:,.0f} MiB |"
        )
    return "\n".join([*text, "", words["more"]])


NAMES = {"DuckDB": "DuckDB", "opendp": "OpenDP 0.16", "pydp": "PyDP 1.1.5", "diffprivlib": "diffprivlib 0.6.6"}
WORDS = {
    "en": {
        "head": "COUNT, SUM and AVG in 100 groups over {rows} rows of Parquet; the unknown groups are 100,000, of "
        "another table. {machine}; DuckDB {duckdb}.",
        "columns": "| | times plain DuckDB | seconds | peak memory |",
        ", ": ", ",
        "raw": "DuckDB, not private",
        "ours": "**discreet**",
        "usual": "the usual plan (5 groups of a user), without noise",
        "row": "row level",
        "user": "user level, at most 200 rows of a user",
        "groups": "user level, at most 5 groups of a user",
        "unknown": "user level, unknown groups (beside their own plain GROUP BY)",
        "more": "More, and errors beside those of other plans: [benchmarks](docs/benchmarks.md).",
    },
    "zh": {
        "head": "{rows} 行 Parquet 上 100 个分组的 COUNT、SUM 和 AVG；“未知分组”是另一张表的 100,000 个分组。"
        "{machine}；DuckDB {duckdb}。",
        "columns": "| | 普通 DuckDB 的倍数 | 秒 | 内存峰值 |",
        ", ": "，",
        "raw": "DuckDB，无隐私",
        "ours": "**discreet**",
        "usual": "常用的限制方案（每个用户 5 个分组），不加噪声",
        "row": "行级",
        "user": "用户级，每个用户至多 200 行",
        "groups": "用户级，每个用户至多 5 个分组",
        "unknown": "用户级，未知分组（与它自己的普通 GROUP BY 相比）",
        "more": "更多内容，包括与其他方案的误差比较：[基准测试](docs/benchmarks.md)（英文）。",
    },
}


def readme(name: str) -> str:
    """A README with its table made anew."""
    text = (ROOT / name).read_text(encoding="utf-8")
    table = f"{START}\n\n{main_table(READMES[name])}\n\n{END}"
    return re.sub(f"{re.escape(START)}.*?{re.escape(END)}", lambda _: table, text, flags=re.DOTALL)


def made() -> Mapping[Path, str]:
    """Every page, by its place."""
    pages = {ROOT / "docs" / "benchmarks.md": page()}
    return pages | {ROOT / name: readme(name) for name in READMES}


def _bench(part: str) -> Any:
    bench = str(ROOT / "bench")
    if bench not in sys.path:
        sys.path.insert(0, bench)
    return importlib.import_module({"large": "speed"}.get(part, part))


def main() -> None:
    for place, text in made().items():
        place.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
