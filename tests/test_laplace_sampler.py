"""The public samplers: shapes, types, refusals; no seed, no shared stream, no time that grows with the scale."""

from __future__ import annotations

import ast
import inspect
import json
import math
import os
import random
import statistics
import subprocess
import sys
import threading
import time
import warnings
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import discreet.laplace
from discreet.entropy import SystemEntropy
from discreet.errors import UsageError
from discreet.laplace import (
    DiscreteLaplace,
    Int128Array,
    Laplace,
    LaplaceMechanism,
    sample_discrete_laplace,
    sample_laplace,
)
from discreet.laplace.filtered import CHUNK
from discreet.laplace.sampler import draw, draw_limbs

WIDE = 2**90  # two draws are equal with probability 2^-91: what repeats is a repeated stream


@pytest.mark.parametrize(
    "scale", [10, "0.5", Decimal("12.5"), Fraction(1, 3), 1e-12, 2**20, 2**21, 2**55, np.float32(3)]
)
def test_shapes_and_types(scale: object) -> None:
    for size, shape in ((0, (0,)), (3, (3,)), ((2, 3), (2, 3)), ((), ()), ((2, 0), (2, 0)), (np.int64(4), (4,))):
        x = sample_discrete_laplace(scale, size)  # type: ignore[call-overload]
        assert (x.shape, x.dtype) == (shape, np.int64)
        y = sample_laplace(scale, size)  # type: ignore[call-overload]
        assert (y.shape, y.dtype) == (shape, np.float64)
    assert type(sample_discrete_laplace(scale)) is int  # type: ignore[call-overload]
    assert type(sample_laplace(scale)) is float  # type: ignore[call-overload]


@pytest.mark.parametrize("scale", [2**55 + 1, 2**64, 2**90, 2**128])
def test_results_that_may_pass_int64_are_python_integers(scale: int) -> None:
    x = sample_discrete_laplace(scale, (5, 20))
    assert (x.shape, x.dtype) == ((5, 20), np.object_)
    assert all(type(value) is int for value in x.flat)
    assert type(sample_discrete_laplace(scale)) is int
    # 100 draws that all stay within 2^-6 of the scale: probability 2^-600
    assert max(abs(value) for value in x.flat) > scale >> 6


@pytest.mark.parametrize(
    "size", [-1, 2.0, 2.5, True, "3", [2, 3], (2, -1), (2, 1.0), (True,), np.array([1, 2]), math.nan]
)
@pytest.mark.parametrize("sample", [sample_discrete_laplace, sample_laplace])
def test_sizes_that_are_refused(sample: object, size: object) -> None:
    with pytest.raises(UsageError, match="size: must be None, a whole number >= 0, or a tuple"):
        sample(10, size)  # type: ignore[operator]


@pytest.mark.parametrize("scale", [0, -1, math.nan, math.inf, True, None, "ten", 9e-13, 2**128 + 1, [10], 1j])
@pytest.mark.parametrize("sample", [sample_discrete_laplace, sample_laplace])
def test_scales_that_are_refused(sample: object, scale: object) -> None:
    with pytest.raises(UsageError, match=r"scale: must be a number from .*10\^-12.* to 2\^128"):
        sample(scale)  # type: ignore[operator]


def test_the_private_draws_take_fractions_in_range_only() -> None:
    for scale in (None, 0, 10, 10.0, math.nan, Fraction(0), Fraction(1, 10**13), Fraction(2**129)):
        for function in (draw, draw_limbs):
            with pytest.raises(UsageError, match="the scale of the noise"):
                function(scale, 1, SystemEntropy())  # type: ignore[arg-type]


def test_the_centre() -> None:
    assert abs(sample_laplace(1e-12, loc="2.5") - 2.5) < 1e-9
    assert np.all(np.abs(sample_laplace(1, 50, loc=-(2**40)) + 2**40) < 100)
    for wrong in (math.nan, math.inf, True, "x", None, 10**400):
        with pytest.raises(UsageError, match="loc"):
            sample_laplace(1, loc=wrong)  # type: ignore[call-overload]


def test_chunks_join_without_a_seam() -> None:
    """Counts around the chunk: every entry is filled, and no chunk repeats another."""
    for scale in (Fraction(2**20), Fraction(2**40), Fraction(WIDE)):
        for count in (CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3):
            x = draw(scale, count, SystemEntropy())
            assert len(x) == count
            assert not np.array_equal(x[: CHUNK // 2], x[count - CHUNK // 2 :])
            assert len(draw_limbs(scale, count, SystemEntropy())) == count
    limbs = draw_limbs(Fraction(WIDE), 3 * CHUNK, SystemEntropy()).to_ints()
    assert len(set(limbs)) == len(limbs)


def test_scales_from_the_smallest_to_the_largest() -> None:
    assert not sample_discrete_laplace(1e-12, 1000).any()
    law = DiscreteLaplace(2**128)
    x = sample_discrete_laplace(2**128, 2000).astype(float)
    # |X| beyond 40 t: e^-40 each; a median off by 15 % (of t ln 2) is 6.7 standard errors
    assert np.abs(x).max() < 40 * 2.0**128
    assert np.median(np.abs(x)) == pytest.approx(float(law.isf(0.25)), rel=0.22)


# -- randomness ---------------------------------------------------------------------------------------------


def test_no_public_name_takes_a_seed() -> None:
    """Design 2.5."""
    for function in (
        sample_discrete_laplace,
        sample_laplace,
        LaplaceMechanism.__init__,
        LaplaceMechanism.release,
        DiscreteLaplace.__init__,
        Laplace.__init__,
    ):
        names = set(inspect.signature(function).parameters)
        assert not names & {"seed", "rng", "random_state", "generator", "source", "entropy", "state"}


def test_seeds_elsewhere_change_nothing() -> None:
    streams = []
    for _ in range(2):
        random.seed(1)
        np.random.seed(1)
        streams.append([*sample_discrete_laplace(WIDE, 4).tolist(), sample_discrete_laplace(WIDE)])
    assert len(set(streams[0] + streams[1])) == 10


def test_the_sampler_draws_from_the_entropy_room_only() -> None:
    """No module of the room but the textbook names another source."""
    folder = Path(discreet.laplace.__file__).parent
    for path in folder.glob("*.py"):
        text = ast.unparse(ast.parse(path.read_text()))
        if path.name != "textbook.py":
            for source in ("np.random", "numpy.random", "import random", "urandom", "secrets"):
                assert source not in text, (path.name, source)


def test_forked_children_draw_different_noise() -> None:
    """A stream set up before the fork would be repeated in each child; here every draw of all is new."""
    sample_discrete_laplace(WIDE, 100)
    results: list[int] = []
    for _ in range(4):
        read, write = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of forks beside threads
            child = os.fork()
        if child == 0:
            status = 1
            try:
                os.write(
                    write, json.dumps([*sample_discrete_laplace(WIDE, 80), sample_discrete_laplace(WIDE)]).encode()
                )
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        with os.fdopen(read, "rb") as stream:
            results += json.loads(stream.read())
        assert os.waitpid(child, 0)[1] == 0
    results += sample_discrete_laplace(WIDE, 81).tolist()
    assert len(results) == len(set(results)) == 5 * 81


def test_threads_do_not_share_a_stream_or_a_workspace() -> None:
    """Eight threads at once: no draw twice, and each thread's draws at scale 10 keep the law (6.3 standard errors)."""
    wide: list[int] = []
    means: list[float] = []
    start = threading.Barrier(8)

    def work() -> None:
        start.wait()
        means.append(float(np.abs(sample_discrete_laplace(10, 200_000)).mean()))
        wide.extend(sample_discrete_laplace(WIDE, 500).tolist())

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(wide)) == 8 * 500
    assert len(means) == 8
    assert all(abs(mean - 9.98335) < 6.3 * 10.01 / math.sqrt(200_000) for mean in means)


# -- time (R57 of the field reports)
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [10, 10**6, 10**14, 2**64, 2**128])
def test_field_report_57_a_draw_takes_no_longer_at_large_scales(scale: int) -> None:
    """100 single draws: the median is far below 10 ms (about 0.05 ms), where a loop over the scale would hang."""
    times = []
    for _ in range(100):
        begin = time.perf_counter()
        sample_discrete_laplace(scale)
        times.append(time.perf_counter() - begin)
    assert statistics.median(times) < 0.01


def test_field_report_57_the_work_does_not_depend_on_the_value() -> None:
    """A release at 0 and one at 10^15 ask for the same words: nothing loops over the answer."""

    class Counting(SystemEntropy):
        asked = 0

        def words(self, count: int) -> np.ndarray:
            type(self).asked += count
            return super().words(count)

    asked = []
    for total in (0, 10**15):
        Counting.asked = 0
        mechanism = LaplaceMechanism(10**12, "0.01")
        mechanism.release_limbs(Int128Array.from_ints([total] * 1000), entropy=Counting())
        asked.append(Counting.asked)
    # 2 words each, and the rare entry that is drawn again (more than 5 in 1000: below 10^-15)
    assert all(2000 <= count <= 2010 for count in asked)


# -- imports
# ---------------------------------------------------------------------------------------------------


def test_importing_the_room_imports_neither_the_textbook_nor_a_cipher() -> None:
    script = (
        "import sys, discreet.laplace\n"
        "bad = [m for m in sys.modules if m.startswith(('cryptography', 'scipy', 'mpmath'))]\n"
        "assert not bad and 'discreet.laplace.textbook' not in sys.modules, bad\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_sizes_and_centres_that_no_memory_holds():
    for size in (10**12, 2**70, (2**20, 2**20), (0, 2**70)):
        for sample in (sample_discrete_laplace, sample_laplace):
            with pytest.raises(UsageError, match="at most 1073741824 draws"):
                sample(2, size)
    for loc in (np.array([1, 2]), np.array([1]), np.array(["x"])):
        with pytest.raises(UsageError, match="loc"):
            sample_laplace(1, 2, loc=loc)
