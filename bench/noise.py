"""How fast the exact noise is, beside NumPy's (neither exact nor secure) and OpenDP's (if installed).

    python bench/noise.py [--json FILE] [--draws N]

Prints a Markdown table. Ours and NumPy's runs are interleaved, on one thread, and the ratio of each pair is
taken, so that a machine that slows down slows both; figures are medians of 5 pairs. Then: how often a draw
takes the slow path, and whether the time of a single draw tells its magnitude.

Exit 1 if a ratio is above its limit (0.7 at scale 10, 2 at 2^40), or if the rank correlation of time and
magnitude is above 0.1 in absolute value over 20,000 single draws: for independent pairs its standard error is
0.007, so the gate is 14 of them from 0, loose on purpose. It does not look
for the slow path, which is met once in 10^5 to 10^6 draws and does show in the time of a single draw: timing
is not protected (design, section 2, rule 10).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is imported: one thread each

import numpy as np  # noqa: E402
from scipy import stats  # noqa: E402

from discreet.entropy import SystemEntropy  # noqa: E402
from discreet.laplace import filtered, sample_discrete_laplace, sampler  # noqa: E402
from measure.progress import steps  # noqa: E402

LIMITS = {Fraction(10): 0.7, Fraction(2**40): 2.0}
SCALES = [Fraction(10), Fraction(2**20), Fraction(2**40)]
WIDE = [Fraction(2**64), Fraction(2**90), Fraction(2**120)]
RUNS = 5
SINGLE = 20_000
MOST_CORRELATION = 0.1


def seconds(work: Callable[[], object]) -> float:
    """The time of one call."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def name(scale: Fraction) -> str:
    """2^40 for a power of two from 2^10 on."""
    whole = int(scale)
    return f"2^{whole.bit_length() - 1}" if whole >= 1024 and whole & (whole - 1) == 0 else str(whole)


def beside_numpy(scale: Fraction, draws: int) -> dict[str, Any]:
    """Ours and `Generator.laplace`, interleaved."""
    generator = np.random.default_rng()
    sample_discrete_laplace(scale, 1000)
    ours, theirs = [], []
    for _ in range(RUNS):
        theirs.append(seconds(lambda: generator.laplace(0.0, float(scale), draws)))
        ours.append(seconds(lambda: sample_discrete_laplace(scale, draws)))
    return {
        "scale": name(scale),
        "ratio": statistics.median(a / b for a, b in zip(ours, theirs, strict=True)),
        "ours_ns": statistics.median(ours) / draws * 1e9,
        "numpy_ns": statistics.median(theirs) / draws * 1e9,
        "limit": LIMITS.get(scale),
    }


def limbs(scale: Fraction, draws: int) -> dict[str, Any]:
    """128-bit noise, as a release draws it."""
    times = [seconds(lambda: sampler.draw_limbs(scale, draws, SystemEntropy())) for _ in range(RUNS)]
    return {"scale": name(scale), "ours_ns": statistics.median(times) / draws * 1e9}


def opendp(draws: int) -> dict[str, Any]:
    """OpenDP's discrete Laplace at scale 10, if it is there."""
    try:
        dp = importlib.import_module("opendp.prelude")
    except ImportError:
        return {"installed": False}
    dp.enable_features("contrib")
    measure = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64"), scale=10.0)
    zeros = [0] * draws
    return {"installed": True, "ns": seconds(lambda: measure(zeros)) / draws * 1e9, "draws": draws}


def slow_path(scale: Fraction, draws: int) -> dict[str, Any]:
    """How many draws doubles left open, against what the proof expects: 2^-20 + 2^-37 t, t <= 2^20; and how
    many low parts had to be decided (2^-19)."""
    counts = {"magnitude": 0, "keep": 0}
    spent = {"magnitude": 0.0, "keep": 0.0}

    def counting(kind: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*args: Any) -> Any:
            counts[kind] += 1
            begin = time.perf_counter()
            result = function(*args)
            spent[kind] += time.perf_counter() - begin
            return result

        return wrapped

    before = filtered.exact_magnitude, sampler.exact_keep
    filtered.exact_magnitude = counting("magnitude", before[0])
    sampler.exact_keep = counting("keep", before[1])
    try:
        sample_discrete_laplace(scale, draws)
    finally:
        filtered.exact_magnitude, sampler.exact_keep = before
    t = scale
    while t > 2**20:
        t /= 2
    called = sum(counts.values())
    return {
        "scale": name(scale),
        "draws": draws,
        "magnitudes": counts["magnitude"] / draws,
        "expected": 2.0**-20 + float(t) * 2.0**-37,
        "keeps": counts["keep"] / draws,
        "microseconds": sum(spent.values()) / called * 1e6 if called else None,
    }


def correlation(scale: Fraction) -> dict[str, Any]:
    """Spearman's rank correlation of |X| and the time of a single draw."""
    for _ in range(1000):
        sample_discrete_laplace(scale)
    times, sizes = np.empty(SINGLE), np.empty(SINGLE)
    for index in range(SINGLE):
        begin = time.perf_counter_ns()
        value = sample_discrete_laplace(scale)
        times[index] = time.perf_counter_ns() - begin
        sizes[index] = abs(value)
    return {
        "scale": name(scale),
        "rho": float(stats.spearmanr(times, sizes).statistic),
        "microseconds": float(np.median(times)) / 1000,
    }


def measure(draws: int) -> dict[str, Any]:
    """Everything."""
    parts: dict[str, Callable[[], Any]] = {
        "speed": lambda: [beside_numpy(scale, draws) for scale in SCALES],
        "limbs": lambda: [limbs(scale, draws // 10) for scale in WIDE],
        "opendp": lambda: opendp(1_000_000),
        "slow_path": lambda: [slow_path(scale, draws) for scale in SCALES],
        "single": lambda: [correlation(scale) for scale in (Fraction(10), Fraction(2**40))],
    }
    found: dict[str, Any] = {"numpy": np.__version__, "draws": draws, "runs": RUNS}
    with steps("noise", len(parts)) as done:
        for part, work in parts.items():
            found[part] = work()
            done(part)
    return found


def markdown(found: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [
        f"{found['draws']:,} draws a run, median of {found['runs']}, one thread, NumPy {found['numpy']}.",
        "",
        "| scale | ours / NumPy's | limit | ours, ns a draw | NumPy's `laplace`, ns a draw |",
        "|---|---|---|---|---|",
    ]
    for row in found["speed"]:
        limit = "" if row["limit"] is None else f"{row['limit']}"
        lines.append(
            f"| {row['scale']} | {row['ratio']:.2f} | {limit} | {row['ours_ns']:.1f} | {row['numpy_ns']:.1f} |"
        )
    lines += ["", "| 128-bit noise, scale | ns a draw |", "|---|---|"]
    lines += [f"| {row['scale']} | {row['ours_ns']:.1f} |" for row in found["limbs"]]
    theirs = found["opendp"]
    if theirs["installed"]:
        lines += ["", f"OpenDP, {theirs['draws']:,} draws at scale 10: {theirs['ns']:,.0f} ns a draw."]
    else:
        lines += ["", "OpenDP is not installed (`pip install opendp` to see it beside)."]
    lines += [
        "",
        "| scale | draws decided exactly | expected | low parts decided exactly | microseconds each |",
        "|---|---|---|---|---|",
    ]
    for row in found["slow_path"]:
        each = "" if row["microseconds"] is None else f"{row['microseconds']:.0f}"
        rates = f"{row['magnitudes']:.1e} | {row['expected']:.1e} | {row['keeps']:.1e}"
        lines.append(f"| {row['scale']} | {rates} | {each} |")
    lines += ["", "| single draws, scale | rank correlation of time and magnitude | microseconds |", "|---|---|---|"]
    lines += [f"| {row['scale']} | {row['rho']:+.3f} | {row['microseconds']:.0f} |" for row in found["single"]]
    return "\n".join(lines)


def failures(found: dict[str, Any]) -> list[str]:
    """What is over its limit."""
    over = [
        f"scale {row['scale']}: {row['ratio']:.2f} times NumPy's time, the limit is {row['limit']}"
        for row in found["speed"]
        if row["limit"] is not None and row["ratio"] > row["limit"]
    ]
    over += [
        f"scale {row['scale']}: time and magnitude correlate ({row['rho']:+.3f})"
        for row in found["single"]
        if abs(row["rho"]) > MOST_CORRELATION
    ]
    return over


def main() -> int:
    parser = argparse.ArgumentParser(description="Measure the noise.")
    parser.add_argument("--json", type=Path, help="write the figures to this file as well")
    parser.add_argument("--draws", type=int, default=10_000_000, help="draws a run (10^7)")
    options = parser.parse_args()
    found = measure(options.draws)
    print(markdown(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n")
    over = failures(found)
    for line in over:
        print(line, file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
