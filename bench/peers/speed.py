"""How long the same grouped counts, sums and means take in other libraries; runs in their own environment.

    python bench/peers/speed.py LIBRARY row|user|groups FILE [--runs N]

LIBRARY is opendp, pydp, diffprivlib or tumult. Prints one line of JSON: the median of the runs after a warm one, and
the peak memory; or what it cannot do. FILE is the Parquet file of `bench/speed.py`. Nothing of `discreet` is imported
here.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

GROUPS = 100
LOWER, UPPER = 0.0, 100.0
EPSILON = 0.1
ROWS_PER_USER = 200
GROUPS_PER_USER = 5


def opendp(level: str, file: Path) -> Callable[[], object]:
    """OpenDP's Polars interface. At user level at most 200 rows of a user are kept; or, as the usual plan does, at most
    5 groups of a user and 40 rows in each."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    rows = pl.scan_parquet(file).select(pl.len()).collect().item()
    keys = pl.DataFrame({"grp": list(range(GROUPS))}, schema={"grp": pl.Int32}).lazy()
    unit = dp.unit_of(contributions=1) if level == "row" else dp.unit_of(contributions=1, identifier="user_id")
    amount = pl.col("amount").fill_nan(0.0).fill_null(0.0).dp

    def work() -> object:
        context = dp.Context.compositor(
            data=pl.scan_parquet(file),
            privacy_unit=unit,
            privacy_loss=dp.loss_of(epsilon=EPSILON),
            split_evenly_over=1,
            margins=[
                dp.polars.Margin(max_length=rows),
                dp.polars.Margin(by=["grp"], max_length=rows, max_groups=GROUPS),
            ],
        )
        query = context.query()
        if level == "user":
            query = query.truncate_per_group(ROWS_PER_USER)
        if level == "groups":
            few = ROWS_PER_USER // GROUPS_PER_USER
            # Which groups are kept costs nothing more or less; a sample of them fails with the Polars that it installs.
            query = query.truncate_num_groups(GROUPS_PER_USER, by=["grp"], keep="first")
            query = query.truncate_per_group(few, by=["grp"])
        statistics_ = (
            dp.len().alias("n"),
            amount.sum((LOWER, UPPER)).alias("total"),
            amount.mean((LOWER, UPPER)).alias("mean"),
        )
        return query.group_by("grp").agg(*statistics_).with_keys(keys).release().collect()

    return work


def columns(file: Path) -> tuple[Any, Any]:
    import pyarrow.parquet as pq

    table = pq.read_table(file, columns=["grp", "amount"])
    return table["grp"].to_numpy(), table["amount"].to_numpy()


def parts(file: Path) -> list[Any]:
    """Each group's amounts."""
    import numpy as np

    group, amount = columns(file)
    order = np.argsort(group, kind="stable")
    return np.split(amount[order], np.searchsorted(group[order], np.arange(1, GROUPS)))


def pydp(level: str, file: Path) -> Callable[[], object]:
    """PyDP's bounded algorithms, one object a group and statistic. (Row level: it does not bound users by itself.)"""
    if level != "row":
        raise NotImplementedError("PyDP leaves it to its caller to bound what one user contributes")
    from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count

    def work() -> object:
        found = []
        for values in parts(file):
            total = BoundedSum(epsilon=EPSILON / 3, lower_bound=LOWER, upper_bound=UPPER, dtype="float")
            mean = BoundedMean(epsilon=EPSILON / 3, lower_bound=LOWER, upper_bound=UPPER, dtype="float")
            number = Count(epsilon=EPSILON / 3, dtype="float")
            found.append([one.quick_result(values) for one in (number, total, mean)])
        return found

    return work


def diffprivlib(level: str, file: Path) -> Callable[[], object]:
    """diffprivlib's tools, one call a group and statistic; row level only."""
    if level != "row":
        raise NotImplementedError("diffprivlib knows rows only")
    from diffprivlib import tools

    def work() -> object:
        found = []
        bounds = (LOWER, UPPER)
        for values in parts(file):
            number = tools.count_nonzero(values + 1, epsilon=EPSILON / 3)
            total = tools.sum(values, epsilon=EPSILON / 3, bounds=bounds)
            found.append((number, total, tools.mean(values, epsilon=EPSILON / 3, bounds=bounds)))
        return found

    return work


def tumult(level: str, file: Path) -> Callable[[], object]:
    """Named, as it could not be installed where this was written: so its query is not written either."""
    import tmlt.analytics  # noqa: F401

    raise NotImplementedError("installed, but its query is not written yet")


LIBRARIES = {"tumult": tumult, "opendp": opendp, "pydp": pydp, "diffprivlib": diffprivlib}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("library", choices=LIBRARIES)
    parser.add_argument("level", choices=("row", "user", "groups"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        work = LIBRARIES[arguments.library](arguments.level, arguments.file)
        work()
    except (ImportError, NotImplementedError) as error:
        missing = "not installed: no release for this Python" if isinstance(error, ModuleNotFoundError) else str(error)
        print(json.dumps({"cannot": missing}))
        return
    times = []
    for _ in range(arguments.runs):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (peak,) = (int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
    print(json.dumps({"seconds": statistics.median(times), "peak": peak, "python": sys.version.split()[0]}))


if __name__ == "__main__":
    main()
