"""Whether randomness is fresh: drawn twice, in copies of this process, and for neighbouring totals."""

from __future__ import annotations

import os
import select
import warnings
from collections.abc import Iterator
from fractions import Fraction

from discreet import entropy, release
from discreet.errors import EngineError
from discreet.laplace.limbs import Int128Array
from discreet.plan import Measurement

__all__ = ["repeated"]

_WORDS = 256
_SECONDS = 20.0


def repeated() -> Iterator[str]:
    """What is drawn twice and must not be. (256 words of 64 bits, or as many noises, agree by chance never.)"""
    if _drawn() == _drawn():
        yield "two draws in a row are the same: there is a seed"
    copies = [_in_a_copy() for _ in range(2)]
    if len({*copies, _drawn()}) < 3:
        yield "copies of the process draw the same: randomness keeps a state that a fork copies"
    # At this scale two noises agree with a probability below 10^-4.
    measurement = Measurement("count", None, None, 1, 1, 10**4, Fraction(1))
    (noise,) = release.add_noise((measurement,), (Int128Array.zeros(_WORDS),), entropy.SystemEntropy())
    if len(set(noise.to_ints())) < _WORDS // 2:
        yield "groups share their noise"


def _drawn() -> bytes:
    source = entropy.SystemEntropy()
    return source.words(_WORDS).tobytes() + source.bits(_WORDS).to_bytes(_WORDS, "little")


def _in_a_copy() -> bytes:
    """What a copy of this process draws. It draws, writes and ends at once, and runs no engine."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # other threads: none is needed in the copy
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, _drawn())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        ready, _, _ = select.select([pipe], [], [], _SECONDS)
        if not ready:
            os.kill(child, 9)
        found = pipe.read()
    os.waitpid(child, 0)
    if not found:
        raise EngineError("audit", "a copy of the process did not draw")
    return found
