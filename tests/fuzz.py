"""A fuzzer over all that people and files can hand in: `python tests/fuzz.py TARGET SECONDS`.

Targets: `sql`, `policy`, `keys`, `log`. Guided by coverage (atheris, libFuzzer). Whatever comes in, nothing may go out
but an error of the house's own: anything else is a crash, and the exit code is not 0. A question that is refused must
cost nothing.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import atheris
import sqlglot  # noqa: F401 - not instrumented: that alone takes minutes

with atheris.instrument_imports(include=["discreet"]):
    import discreet
    from discreet.engines.duckdb import DuckDBEngine
    from discreet.errors import DiscreetError
    from discreet.key_files import read_keys_list, read_keys_table
    from discreet.keys import parse_keys_option
    from discreet.policy.reading import parse_policy
    from discreet.relational import compile_plan
    from discreet.sources import register

ROOT = Path(__file__).resolve().parents[1]
FOLDER = Path(tempfile.mkdtemp(prefix="fuzz-"))
OPTIONS = {"keys": {"k": ["a", "b"]}, "bounds": {"x": (0, 9)}}

SQL = (
    "SELECT k, COUNT(*) AS n, SUM(x) AS s, AVG(x) AS m FROM data GROUP BY k HAVING n > 3 ORDER BY m DESC LIMIT 2",
    "SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 0.5, max_contributions = 2) COUNT(DISTINCT u) FROM data",
    "SELECT MEDIAN(x, contribution_bounds_per_row => (0, 1)) FROM data WHERE t >= '2024-01-01' AND k LIKE 'a%'",
    "SELECT COUNT(*) FILTER (WHERE x > 0.5) / COUNT(*), STDDEV(x) FROM (SELECT x FROM data WHERE NOT x IS NULL) d",
    "SELECT CASE WHEN x BETWEEN 1 AND 2 THEN UPPER(k) ELSE CONCAT(k, 'z') END AS c, COUNT(*) FROM data GROUP BY 1",
    "SELECT DATE_TRUNC('month', t) AS m, COUNTIF(x IN (1, 2)) FROM data GROUP BY m",
)
POLICY = """
ledger = "l.sqlite"
[datasets.log]
source = "log.csv"
privacy_unit = "actor, DATE(time)"
max_contributions = 20
[datasets.log.budget]
epsilon = 3
delta = 1e-6
window = "month"
[datasets.log.columns]
files = { bounds = [0, 50] }
action = { values = ["A", "M"] }
"""
LOG = '1.2.3.4 - ann [10/Oct/2024:13:55:36 +0000] "GET /a?b=c HTTP/1.1" 200 2326 "-" "curl/8"\n'
SEEDS = {
    "sql": [text.encode() for text in SQL],
    "policy": [POLICY.encode()],
    "keys": [b'A\nM\nNULL\n"a, b"\n', b"k,l\n1,x\n2,y\n", "k\n北京\n".encode(), b"2024-01-01..2024-12-31 by day\n"],
    "log": [LOG.encode() * 2, b"\xff\xfe" + LOG.encode(), b"\n\n" + LOG.encode()[:40]],
}


def sql(data: bytes) -> None:
    text = data.decode("utf-8", "ignore")
    try:
        plan = TABLE.plan(text, epsilon=1, **OPTIONS)
    except DiscreetError as refusal:
        told = str(refusal)
        before = len(TABLE.history())
        try:
            TABLE.query(text, epsilon=1, **OPTIONS)
        except DiscreetError as again:
            assert str(again) == told
        else:
            raise AssertionError("refused by its plan, and answered")
        assert len(TABLE.history()) == before, "a refused question was charged"
        return
    if plan.selection is None and plan.groups * sum(m.cells for m in plan.measurements) < 10**5:
        DuckDBEngine(TABLE.registration).run(compile_plan(plan))


def policy(data: bytes) -> None:
    try:
        parse_policy(data.decode("utf-8", "ignore"), FOLDER / "policy.toml")
    except DiscreetError as fault:
        str(fault)


def keys(data: bytes) -> None:
    path = FOLDER / "keys.csv"
    path.write_bytes(data)
    for read in (read_keys_list, read_keys_table, lambda _: parse_keys_option("k=" + data.decode("utf-8", "ignore"))):
        try:
            read(path)
        except DiscreetError as fault:
            str(fault)


def log(data: bytes) -> None:
    """Bytes after the lines of a log: in a query of what was registered before, and registered anew."""
    path = FOLDER / "access.log"
    path.write_bytes(LOG.encode() * 3 + data)
    engine = DuckDBEngine(LINES.registration)
    engine.run(LINE_COUNT)
    try:
        register(path, log_format="combined")
    except DiscreetError as fault:
        str(fault)


def _table() -> discreet.Dataset:
    path = FOLDER / "data.csv"
    path.write_text("u,k,x,t\n" + "".join(f"u{i},{'ab'[i % 2]},{i % 7}.5,2024-0{i % 9 + 1}-01\n" for i in range(40)))
    return discreet.open(path, privacy_unit="u", max_contributions=3, budget=1000, ledger=FOLDER / "data.sqlite")


def main(target: str, seconds: int) -> None:
    corpus = FOLDER / "corpus"
    corpus.mkdir()
    for i, seed in enumerate(SEEDS[target]):
        (corpus / str(i)).write_bytes(seed)
    if target == "sql":
        for i, path in enumerate(sorted((ROOT / "docs").glob("*.md"))):
            (corpus / f"page{i}").write_bytes(path.read_bytes()[:1500])
    options = [f"-max_total_time={seconds}", "-max_len=2000", "-timeout=60", "-rss_limit_mb=4000"]
    options.append("-print_final_stats=1")
    os.chdir(FOLDER)  # what libFuzzer writes of a crash
    targets = {"sql": sql, "policy": policy, "keys": keys, "log": log}
    atheris.Setup([sys.argv[0], *options, str(corpus)], targets[target])
    atheris.Fuzz()


if __name__ == "__main__":
    TABLE = _table()
    if sys.argv[1] == "log":
        lines = FOLDER / "access.log"
        lines.write_text(LOG * 3)
        LINES = discreet.open(lines, log_format="combined", row_level=True, budget=1, ledger=FOLDER / "lines.sqlite")
        LINE_COUNT = compile_plan(LINES.plan("SELECT COUNT(*) AS n, COUNT(DISTINCT status) AS s FROM data", epsilon=1))
    main(sys.argv[1], int(sys.argv[2]))
