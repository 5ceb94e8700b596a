"""The one source of randomness: fresh keys, whole words, no state."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy import stats

from discreet.entropy import SystemEntropy


@pytest.mark.parametrize("count", [0, 1, 64, 65, 1000, 2**14])
def test_words_are_writable_uint64_of_the_asked_length(count: int) -> None:
    words = SystemEntropy().words(count)
    assert (words.shape, words.dtype) == ((count,), np.uint64)
    words[:] = 0
    assert not words.any()


@pytest.mark.parametrize("count", [8, 64, 65, 5000])
def test_no_word_comes_twice(count: int) -> None:
    """Two equal words among 10^5 have probability 3e-10."""
    entropy = SystemEntropy()
    words = np.concatenate([entropy.words(count) for _ in range(5)])
    assert len(np.unique(words)) == 5 * count


def test_every_batch_has_a_key_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were a key used twice, the keystream would repeat from the zero counter: the key must come from the system."""
    asked: list[int] = []

    def fixed(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(os, "urandom", fixed)
    first, second = SystemEntropy().words(1000), SystemEntropy().words(1000)
    assert asked == [32, 32]
    assert np.array_equal(first, second)  # so it is the key, and nothing else, that makes batches differ
    # AES-256 of the zero block under the zero key (FIPS 197's cipher; NIST's known-answer value)
    assert first[:2].tobytes().hex() == "dc95c078a2408989ad48a21492842087"


def test_short_batches_are_the_systems_own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda count: bytes(range(count)))
    assert SystemEntropy().words(2).tobytes() == bytes(range(16))


@pytest.mark.parametrize("count", [1, 2, 7, 8, 9, 63, 126, 1000])
def test_bits_fill_their_range(count: int) -> None:
    """The highest and the lowest bit are both seen as 0 and 1 in 200 draws (missed: 2^-198)."""
    draws = [SystemEntropy().bits(count) for _ in range(200)]
    assert all(0 <= x < 2**count for x in draws)
    assert {x >> (count - 1) for x in draws} == {0, 1}
    assert {x & 1 for x in draws} == {0, 1}


def byte_p_value(words: np.ndarray) -> float:
    return float(stats.chisquare(np.bincount(words.view(np.uint8), minlength=256)).pvalue)


def test_bytes_are_uniform() -> None:
    """Chi-square of 2 * 10^6 bytes, false alarm 1e-9; a stuck lowest bit, or a byte that is 3 % rarer, is seen."""
    words = SystemEntropy().words(250_000)
    assert byte_p_value(words) >= 1e-9
    assert byte_p_value(words | np.uint64(1)) < 1e-9
    rarer = words.view(np.uint8).copy()
    rarer[(rarer == 7) & (np.arange(len(rarer)) % 5 == 0)] = 8
    assert byte_p_value(rarer.view(np.uint64)) < 1e-9
