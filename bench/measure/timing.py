"""Timing in pairs, and the peak memory of a process of its own."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Pairs", "in_pairs", "machine", "own_peak", "peak_of", "seconds"]


@dataclass(frozen=True)
class Pairs:
    """Medians over pairs of runs, ours beside the other, one after the other."""

    ours: float
    other: float
    ratio: float
    runs: int


def seconds(work: Callable[[], object]) -> float:
    """The time of one call by the clock."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def in_pairs(ours: Callable[[], object], other: Callable[[], object], runs: int) -> Pairs:
    """After one warm run of each: `runs` pairs, and the median of each pair's ratio: a machine that slows down
    slows both."""
    ours()
    other()
    pairs = [(seconds(other), seconds(ours)) for _ in range(runs)]
    return Pairs(
        statistics.median(mine for _, mine in pairs),
        statistics.median(theirs for theirs, _ in pairs),
        statistics.median(mine / theirs for theirs, mine in pairs),
        runs,
    )


def own_peak() -> int:
    """The most memory this process has held, in bytes. (Not `getrusage`: there a child starts with what its parent
    held when it was made.)"""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("this system does not tell VmHWM")


def peak_of(script: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """What a child prints as its last line of JSON."""
    done = subprocess.run(
        [sys.executable, str(script), *arguments],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **(environment or {})},
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def machine() -> str:
    """The machine, for the table's head: cores, processor, memory."""
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {model}, {memory:.0f} GiB"
