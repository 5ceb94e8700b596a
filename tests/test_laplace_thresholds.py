"""The sampler's law where it can go wrong, without chance: at its thresholds, through a scripted source.

For a script of random bits the draw is a function of a real number U (its bits are the script). The oracle
here computes that function with mpmath at 700 bits, from the definition of the law (U <= P(|X| >= k)), and
shares no code with the sampler. If they agree just below, at and just above the thresholds, the thresholds
are where they must be, and that is the law.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from discreet.laplace.exactly import exact_keep, exact_magnitude
from discreet.laplace.filtered import FAR, make_filter
from discreet.laplace.sampler import _split_words, draw, draw_limbs

SMALL = [
    Fraction(1, 10**6),
    Fraction(1, 1000),
    Fraction(3, 10),
    Fraction(1),
    Fraction(2),
    Fraction(10),
    Fraction(201, 2),
    Fraction(12345678, 1000),
    Fraction(2**20),
]
LARGE = [2**20 + Fraction(1, 3), Fraction(2**45), Fraction(2**90)]
EXTREME = [Fraction(1, 10**12), Fraction(2**64 + 1), Fraction(2**84), Fraction(2**128)]
TAIL = 320  # scripted bits after a word's 63


class Scripted:
    """An `Entropy` that says what it is told. `words` gives the arrays in order; `bits` gives the bits of
    `tail`, from its start for each new draw (a request for `restart` bits begins one), then ones for ever."""

    def __init__(self, *arrays: object, tail: int = 0, length: int = TAIL, restart: int = 63) -> None:
        self.arrays = [np.array(array, dtype=np.uint64) for array in arrays]
        self.tail, self.length, self.restart = tail, length, restart
        self.position = 0
        self.requests: list[int] = []

    def words(self, count: int) -> NDArray[np.uint64]:
        array = self.arrays.pop(0)
        assert len(array) == count
        return array

    def bits(self, count: int) -> int:
        if count == self.restart:
            self.position = 0
        self.requests.append(count)
        past = max(0, self.position + count - self.length)  # how many of them lie behind the tail: ones
        endless = (self.tail << past) | ((1 << past) - 1)
        behind = max(0, self.length - self.position - count)
        self.position += count
        return (endless >> behind) & ((1 << count) - 1)


def _mp(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def oracle(scale: Fraction, centred: bool, u: mpmath.mpf) -> int:
    """The largest k >= 0 with u <= P(N >= k): 2 q^k / (1 + q) for |X| (k >= 1), q^k for a geometric."""
    rate = 1 / _mp(scale)
    front = 2 / (1 + mpmath.exp(-rate)) if centred else mpmath.mpf(1)
    k = max(0, int(mpmath.nint((mpmath.log(front) - mpmath.log(u)) / rate)))
    while k > 0 and not u <= front * mpmath.exp(-k * rate):
        k -= 1
    while u <= front * mpmath.exp(-(k + 1) * rate):
        k += 1
    return k


def real(m: int, tail: int) -> mpmath.mpf:
    """The U whose first 63 bits are m, whose next are the tail's, and then (nearly) ones for ever."""
    return (mpmath.mpf(((m << TAIL) | tail) + 1) - mpmath.mpf(2) ** -200) / mpmath.mpf(2) ** (63 + TAIL)


def threshold(scale: Fraction, centred: bool, k: int) -> mpmath.mpf:
    """2^63 P(N >= k)."""
    rate = 1 / _mp(scale)
    front = 2 / (1 + mpmath.exp(-rate)) if centred else mpmath.mpf(1)
    return mpmath.mpf(2) ** 63 * front * mpmath.exp(-k * rate)


def sampled_k(scale: Fraction, rng: random.Random, count: int) -> list[int]:
    """Small k, k all along the range that 63 bits reach, and k around m = 2^43, where the fast path ends."""
    last = int(43 * scale) + 2
    around = [int(scale * Fraction(13863, 1000)) + j for j in (-1, 0, 1, 2)]  # ln 2^20 = 13.863
    spread = [rng.randrange(1, last + 1) for _ in range(count)]
    return sorted({k for k in [1, 2, 3, 4, 5, 7, last - 1, last, *around, *spread] if k >= 1})


def threshold_words(scale: Fraction, centred: bool, rng: random.Random, count: int) -> list[int]:
    """m just below, at and just above the thresholds of sampled k, and m at random over all magnitudes."""
    ms = {0, 1, 2, 2**43 - 1, 2**43, 2**43 + 1, 2**62, 2**63 - 1}
    for k in sampled_k(scale, rng, count):
        at = int(mpmath.floor(threshold(scale, centred, k)))
        ms.update(m for m in range(at - 2, at + 3) if 0 <= m < 2**63)
    ms.update(rng.getrandbits(63) for _ in range(4 * count))
    ms.update(rng.getrandbits(rng.randrange(1, 64)) % 2**63 for _ in range(count))
    return sorted(ms)


TAILS = [0, (1 << TAIL) - 1, random.Random(7).getrandbits(TAIL)]


def check_small(scale: Fraction, count: int = 40) -> int:
    """|X| and its sign against the oracle, for every sampled word and three different tails of bits."""
    rng = random.Random(f"small {scale}")
    checked = 0
    with mpmath.workprec(700):
        ms = threshold_words(scale, True, rng, count)
        for tail in TAILS:
            expected = [oracle(scale, True, real(m, tail)) for m in ms]
            signs = [rng.getrandbits(1) for _ in ms]
            words = [2 * m + sign for m, sign in zip(ms, signs, strict=True)]
            got = draw(scale, len(words), Scripted(words, tail=tail)).tolist()
            assert got == [-k if sign else k for k, sign in zip(expected, signs, strict=True)]
            checked += len(ms)
    return checked


def check_large(scale: Fraction, count: int = 40) -> int:
    """X = +-(2^s H + L) against the oracle's H, for L at its ends and in the middle, V above 2^-19 (kept)."""
    shift = 0
    while scale / 2**shift > 2**20:
        shift += 1
    top = scale / 2**shift
    assert 2**19 < top <= 2**20
    rng = random.Random(f"large {scale}")
    checked = 0
    with mpmath.workprec(700):
        ms = threshold_words(top, False, rng, count)
        for tail in TAILS:
            h = [oracle(top, False, real(m, tail)) for m in ms]
            low = [rng.choice([1, 2**shift - 1, rng.getrandbits(shift) | 1]) for _ in ms]
            signs = [rng.getrandbits(1) for _ in ms]
            first = [2 * m + sign for m, sign in zip(ms, signs, strict=True)]
            arrays = words_for(low, shift, rng)
            expected = [(-1) ** sign * ((h_ << shift) + low_) for h_, low_, sign in zip(h, low, signs, strict=True)]
            assert draw(scale, len(ms), Scripted(first, *arrays, tail=tail)).tolist() == expected
            limbs = draw_limbs(scale, len(ms), Scripted(first, *arrays, tail=tail)).to_ints()
            assert limbs == [(x + 2**127) % 2**128 - 2**127 for x in expected]
            checked += len(ms)
    return checked


def words_for(low: list[int], shift: int, rng: random.Random, v: int | None = None) -> list[list[int]]:
    """The words that say L = low and V >= 1/2 (or V's first bits: v), as the sampler documents its layout."""

    def choose(bits: int) -> int:
        return rng.getrandbits(bits) | 1 << (bits - 1) if v is None else v

    if shift <= 44:
        return [[x << (64 - shift) | choose(64 - shift) for x in low]]
    if shift <= 64:
        return [[x << (64 - shift) | rng.getrandbits(64 - shift) for x in low], [choose(64) for _ in low]]
    both = [x << (128 - shift) | choose(128 - shift) for x in low]
    return [[x >> 64 for x in both], [x & (2**64 - 1) for x in both]]


@pytest.mark.parametrize("scale", SMALL, ids=str)
def test_small_scales_at_their_thresholds(scale: Fraction) -> None:
    assert check_small(scale) > 500


@pytest.mark.parametrize("scale", LARGE, ids=str)
def test_large_scales_at_their_thresholds(scale: Fraction) -> None:
    assert check_large(scale) > 500


@pytest.mark.parametrize("scale", EXTREME, ids=str)
def test_extreme_scales_at_their_thresholds(scale: Fraction) -> None:
    assert (check_small if scale <= 2**20 else check_large)(scale, 10) > 100


def test_the_law_holds_with_numpys_cpu_features_switched_off() -> None:
    """Another log, another rounding: the same integers. (The baseline cannot be switched off.)"""
    from numpy._core import _multiarray_umath as umath

    found = [name for name in umath.__cpu_dispatch__ if umath.__cpu_features__[name]]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    if found:
        environment["NPY_DISABLE_CPU_FEATURES"] = ",".join(found)
    script = (
        "import test_laplace_thresholds as law\n"
        "from numpy._core import _multiarray_umath as umath\n"
        "assert not any(umath.__cpu_features__[name] for name in umath.__cpu_dispatch__)\n"
        "print(sum(map(law.check_small, law.SMALL)), sum(map(law.check_large, law.LARGE)))\n"
    )
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    small, large = map(int, run.stdout.split())
    assert small > 500 * len(SMALL)
    assert large > 500 * len(LARGE)


@pytest.mark.parametrize("scale", [Fraction(3, 10), Fraction(10), Fraction(2**20)], ids=str)
def test_a_threshold_inside_a_words_cell_is_found_to_a_hundred_bits(scale: Fraction) -> None:
    """The word at a threshold T_k says only that V is within 1 of it. With further bits just below and just
    above T_k (from the 100th on) the draw must be k and k - 1: the exact path must ask twice, and know."""
    rng = random.Random(1)
    with mpmath.workprec(700):
        for k in (1, 2, 3, int(scale) + 5):
            at = threshold(scale, True, k)
            m = int(mpmath.floor(at))
            if not 2**40 < m < 2**63 - 1:
                continue
            fraction = int(mpmath.floor((at - m) * mpmath.mpf(2) ** 100))
            for step, expected in ((-1, k), (1, k - 1)):
                tail = (fraction + step) << (TAIL - 100) | rng.getrandbits(TAIL - 100)
                source = Scripted([2 * m], tail=tail)
                assert draw(scale, 1, source).tolist() == [expected]
                assert source.requests == [63, 126]


@pytest.mark.parametrize("scale", [Fraction(10), Fraction(2**20)], ids=str)
def test_sure_words_ask_for_no_further_bits_and_short_ones_are_decided_exactly(scale: Fraction) -> None:
    """m = 0 has no logarithm and must ask; a long word far from a threshold must not."""
    with mpmath.workprec(700):
        between = (threshold(scale, True, 2) + threshold(scale, True, 3)) / 2
        sure = Scripted([2 * int(between)])
        assert draw(scale, 1, sure).tolist() == [2]
        assert sure.requests == []
        for zeros in (0, 5, 62, 63, 200):  # zeros after the word's 63, then a one
            tail = 1 << (TAIL - 1 - zeros)
            source = Scripted([1], tail=tail)
            assert draw(scale, 1, source).tolist() == [-oracle(scale, True, real(0, tail))]
            assert source.requests[0] == 63


def test_the_tail_is_complete_past_the_fast_paths_largest_magnitude() -> None:
    """U below 2^-2000: magnitudes from FAR on, in all three forms of result."""
    length = 4000
    tail = 1 << (length - 2000)
    with mpmath.workprec(700):
        u = (mpmath.mpf(tail) + mpmath.mpf("0.5")) / mpmath.mpf(2) ** (63 + length)
        small = oracle(Fraction(2**20), True, u)
        assert small > FAR
        assert draw(Fraction(2**20), 2, Scripted([1, 2**63], tail=tail, length=length)).tolist() == [
            -small,
            oracle(Fraction(2**20), True, mpmath.mpf("0.5")),
        ]
        for scale, shift in ((Fraction(2**40), 20), (Fraction(2**55), 35), (Fraction(2**90), 70)):
            h = oracle(scale / 2**shift, False, u)
            exact = -((h << shift) + 3)
            arrays = words_for([3, 3], shift, random.Random(2))
            source = Scripted([1, 2**63], *arrays, tail=tail, length=length)
            got = draw(scale, 2, source)
            assert got.tolist()[0] == exact
            assert got.dtype == (np.int64 if scale <= 2**40 else np.object_)
            source = Scripted([1, 2**63], *arrays, tail=tail, length=length)
            assert draw_limbs(scale, 2, source).to_ints() == [(x + 2**127) % 2**128 - 2**127 for x in got.tolist()]


@pytest.mark.parametrize("scale", [2**20 + Fraction(1, 3), Fraction(2**90)], ids=str)
def test_minus_zero_is_drawn_again_and_plus_zero_is_not(scale: Fraction) -> None:
    shift = 1 if scale < 2**21 else 70
    rng = random.Random(3)
    ends = [2**64 - 2, 2**64 - 1]  # m = 2^63 - 1, H = 0; signs plus and minus
    zero = words_for([0, 0], shift, rng)
    again = words_for([1], shift, rng)
    source = Scripted(ends, *zero, [2**64 - 1], *words_for([0], shift, rng), [2**64 - 1], *again)
    assert draw(scale, 2, source).tolist() == [0, -1]
    assert source.arrays == []
    source = Scripted(ends, *zero, [2**64 - 1], *again)
    assert draw_limbs(scale, 2, source).to_ints() == [0, -1]


@pytest.mark.parametrize("scale", [2**20 + Fraction(1, 3), Fraction(2**45), Fraction(2**82), Fraction(2**90)], ids=str)
def test_a_low_part_that_is_not_kept_is_drawn_again_whole(scale: Fraction) -> None:
    """V = 0.000... refuses every L > 0 and keeps L = 0; the entry is then made of fresh words only."""
    shift = 0
    while scale / 2**shift > 2**20:
        shift += 1
    rng = random.Random(4)
    low = [2**shift - 1, 0, 2**shift - 1]
    first = [2**64 - 2, 2**64 - 2, 2**64 - 1]
    refused = words_for(low, shift, rng, v=0)
    fresh = words_for([1, 1], shift, rng)
    # zeros as far as they are asked for: below 1 - exp(-L/t), about 2^-20
    source = Scripted(first, *refused, [2**64 - 1, 2**64 - 2], *fresh, tail=0, length=10**6, restart=-1)
    assert draw(scale, 3, source).tolist() == [-1, 0, 1]
    assert source.arrays == []


@pytest.mark.parametrize("exponent", [84, 90, 120, 128])
def test_negative_limbs_carry_into_the_high_limb(exponent: int) -> None:
    """-x for an x whose low limb is 0, which chance meets once in 2^64 draws."""
    shift = exponent - 20
    rng = random.Random(11)
    for low in {0, 1, 2**shift - 1, (1 << 64) % 2**shift, (2**shift - 1) >> 64 << 64}:
        for m in (2**40, 2**61, 2**63 - 2**45):
            for sign in (0, 1):
                with mpmath.workprec(700):
                    h = oracle(Fraction(2**20), False, real(m, 1 << (TAIL - 1)))
                value = (-1) ** sign * ((h << shift) + low)
                arrays = words_for([low], shift, rng)
                source = Scripted([2 * m + sign], *arrays, tail=1 << (TAIL - 1))
                got = draw_limbs(Fraction(2**exponent), 1, source).to_ints()
                assert got == [(value + 2**127) % 2**128 - 2**127]


@pytest.mark.parametrize("exponent", [21, 45, 62, 63, 64, 83, 84, 100, 127])
def test_the_largest_low_parts_are_refused_up_to_their_threshold(exponent: int) -> None:
    """Just above a power of two t / 2^s is nearly 2^19, and 1 - exp(-L/t) for the largest L nearly 2^-19: the
    surely kept V begin there and not below. (A V between 2^-20 and 2^-19 that is kept unasked shows here.)"""
    scale = Fraction(2**exponent + 1)
    shift = exponent - 19
    v_bits = 64 if 44 < shift <= 64 else (64 if shift <= 44 else 128) - shift
    low = 2**shift - 1
    rng = random.Random(10)
    with mpmath.workprec(900):
        at = -mpmath.expm1(-low / _mp(scale)) * mpmath.mpf(2) ** v_bits
        m = int(mpmath.floor(at))
        fraction = int(mpmath.floor((at - m) * mpmath.mpf(2) ** 300))
    assert 2 ** (v_bits - 20) <= m < 2 ** (v_bits - 19)
    for step, kept in ((-1, False), (1, True)):
        tail = (fraction + step) << (TAIL - 300)
        arrays = words_for([low], shift, rng, v=m)
        fresh = [[2**64 - 2], *words_for([1], shift, rng)]  # H = 0, plus, L = 1: what is drawn if L is refused
        source = Scripted([2**64 - 2], *arrays, *fresh, tail=tail, restart=v_bits)
        assert draw(scale, 1, source).tolist() == [low if kept else 1]
    if m > 2 ** (v_bits - 20):
        source = Scripted([2**64 - 2], *words_for([low], shift, rng, v=m - 1), *fresh, restart=v_bits)
        assert draw(scale, 1, source).tolist() == [1]
        assert source.requests == []


def test_keep_is_bernoulli_exp_at_its_threshold() -> None:
    """exact_keep(offset, scale) is True iff V >= 1 - exp(-offset/scale), for V beside that threshold."""
    rng = random.Random(5)
    cases = [(1, Fraction(2**21)), (12345, Fraction(2**40)), (2**70 - 1, Fraction(2**90)), (1, Fraction(2**128))]
    with mpmath.workprec(900):
        for offset, scale in cases:
            refuse = -mpmath.expm1(-offset / _mp(scale))
            for bits in (20, 44, 64):
                at = refuse * mpmath.mpf(2) ** bits
                m = int(mpmath.floor(at))
                assert exact_keep(offset, scale, m + 1, bits, Scripted())
                assert m == 0 or not exact_keep(offset, scale, m - 1, bits, Scripted())
                fraction = int(mpmath.floor((at - m) * mpmath.mpf(2) ** 300))
                for step, kept in ((-1, False), (1, True)):
                    tail = (fraction + step) << (TAIL - 300) | rng.getrandbits(TAIL - 300)
                    source = Scripted(tail=tail, restart=bits)
                    assert exact_keep(offset, scale, m, bits, source) is kept
                    assert sum(source.requests) >= 250
        assert exact_keep(0, Fraction(2**30), 0, 20, Scripted())


def test_low_parts_and_their_coins_use_disjoint_bits_in_order() -> None:
    """L's bits, then V's: together they are the words, so L is uniform and V independent of it."""
    rng = np.random.default_rng(6)
    for shift in range(1, 109):
        words = [rng.integers(0, 2**64, 50, dtype=np.uint64) for _ in range(1 if shift <= 44 else 2)]
        l_high, l_low, v, v_bits = _split_words(shift, 50, Scripted(*words))
        assert v_bits >= 20
        for i in range(50):
            low = (int(l_high[i]) << 64) + int(l_low[i])
            assert low < 2**shift
            coin = int(v[i]) >> (64 - v_bits)
            if 44 < shift <= 64:
                assert low == int(words[0][i]) >> (64 - shift)
                assert coin == int(words[1][i])
            else:
                joined = int(words[0][i]) if shift <= 44 else (int(words[0][i]) << 64) + int(words[1][i])
                assert (low << v_bits) + coin == joined


def test_the_constants_are_the_nearest_doubles_and_the_guard_is_what_the_proof_needs() -> None:
    with mpmath.workprec(700):
        for scale in SMALL:
            t = _mp(scale)
            c = mpmath.log(2 / (1 + mpmath.exp(-1 / t)))
            made = make_filter(scale, True)
            assert made.constant == float(t * (c + 63 * mpmath.log(2)))
            assert made.factor == -float(scale)
            assert made.guard >= 8793 * 2.0**-52 * float(scale)


def test_the_filters_error_is_within_its_guard() -> None:
    """The doubles that the fast path compares, against mpmath: the measured error is far below the guard."""
    rng = random.Random(8)
    with mpmath.workprec(300):
        for scale in SMALL:
            made = make_filter(scale, True)
            t = _mp(scale)
            c = mpmath.log(2 / (1 + mpmath.exp(-1 / t)))
            ms = [rng.randrange(2**43, 2**63) >> rng.randrange(0, 20) for _ in range(200)]
            ms = [max(m, 2**43) for m in ms]
            logs = np.log(np.array(ms, dtype=np.int64).astype(np.float64))
            computed = logs * made.factor + made.constant
            for m, y in zip(ms, computed.tolist(), strict=True):
                for end in (m, m + 1):
                    true = t * (c + 63 * mpmath.log(2) - mpmath.log(end))
                    assert abs(true - mpmath.mpf(y)) < made.guard


def test_the_exact_path_alone_gives_the_law() -> None:
    """What the fast path decides, the exact path decides alike: it is the same function."""
    rng = random.Random(9)
    with mpmath.workprec(700):
        for scale in SMALL:
            for m in rng.sample(threshold_words(scale, True, rng, 5), 15):
                tail = rng.getrandbits(TAIL)
                got = exact_magnitude(scale, True, m, 63, Scripted(tail=tail))
                assert got == oracle(scale, True, real(m, tail))
