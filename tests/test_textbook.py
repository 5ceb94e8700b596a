"""The published formula: right as mathematics, and its two faults shown."""

from __future__ import annotations

import ast
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from discreet.laplace import sample_laplace, textbook

SOURCES = Path(textbook.__file__).parents[1]


def test_nothing_imports_it() -> None:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert "textbook" not in (node.module or ""), path
                assert all("textbook" not in alias.name for alias in node.names), path
            elif isinstance(node, ast.Import):
                assert all("textbook" not in alias.name for alias in node.names), path


def test_it_is_marked_unsafe() -> None:
    assert (textbook.__doc__ or "").startswith("UNSAFE")
    for function in (textbook.laplace_noise, textbook.count_with_laplace):
        assert (function.__doc__ or "").startswith("UNSAFE")


def p_value(x: np.ndarray, b: float) -> float:
    return float(stats.kstest(x, stats.laplace(scale=b).cdf).pvalue)


def test_it_has_the_law_on_paper() -> None:
    """Kolmogorov-Smirnov with n = 4 * 10^5, false alarm 1e-9; the variance is 2 b^2 and b is not the deviation."""
    n = 400_000
    x = textbook.laplace_noise(3.0, n)
    assert x.shape == (n,)
    assert p_value(x, 3.0) >= 1e-9
    assert p_value(x, 3.0 / math.sqrt(2)) < 1e-9
    # the kurtosis is 6: the relative standard error of the variance is sqrt(5 / n), 6.3 of them
    assert abs(x.var() / 18.0 - 1) < 6.3 * math.sqrt(5 / n)


def test_the_count_is_an_array_of_one_around_the_number_of_rows() -> None:
    counts = np.concatenate([textbook.count_with_laplace([3, 1, 4, 1, 5], 1.0) for _ in range(2000)])
    assert counts.shape == (2000,)
    assert abs(counts.mean() - 5) < 6.3 * math.sqrt(2 / 2000)
    assert textbook.count_with_laplace("", 1e9).shape == (1,)


def test_u_of_zero_gives_infinity_and_numpy_does_draw_it() -> None:
    """With a state of the generator whose next words are 0, uniform(0, 1) is 0.0: it is not an open interval."""
    assert textbook.fault_at_zero() == -math.inf
    before = np.random.get_state()
    try:
        np.random.set_state(("MT19937", np.zeros(624, dtype=np.uint32), 0))
        assert np.random.uniform(0, 1) == 0.0
        assert textbook.laplace_noise(1.0, 1).tolist() == [-math.inf]
        assert textbook.count_with_laplace([1, 2, 3], 1.0).tolist() == [-math.inf]
    finally:
        np.random.set_state(before)


def test_ours_is_never_infinite_where_the_textbook_is() -> None:
    assert np.isfinite(sample_laplace(1, 10_000)).all()


@pytest.mark.parametrize("b", [0.5, 1.0, 2.0, 8.0])
def test_the_low_bits_tell_zero_from_one(b: float) -> None:
    found = textbook.fault_in_low_bits(b, 1000)
    assert found.only_from_zero > 0.5
    assert found.only_from_one > 0.5
    assert 0.25 <= found.example < 0.5
    assert found.only_from_zero < 1.0
    assert found.only_from_one < 1.0


def test_some_examples_are_impossible_for_a_reason_that_needs_no_search() -> None:
    """0 + noise in [1/4, 1/2) is a multiple of 2^-54; 1 + noise there, a difference of doubles in [1/2, 1],
    is a multiple of 2^-53. So every odd multiple of 2^-54 says that the answer was 0."""
    x = textbook.laplace_noise(1.0, 20_000)
    zero = x[(x >= 0.25) & (x < 0.5)]
    one = 1.0 + x
    one = one[(one >= 0.25) & (one < 0.5)]
    assert (zero * 2.0**54 % 2 == 1).sum() > 100
    assert (one * 2.0**54 % 2 == 1).sum() == 0
