"""Scripted words in the place of randomness: the same ones again, so that two runs can be laid side by side.

For the auditor's tables and replays only. No answer is ever drawn from it: nothing that releases imports this room.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Dice", "Script"]

_T = TypeVar("_T")
_BATCH = 4096


class Script:
    """A source of words that is a function of its label: call i of a script gives what call i of its twin gives.

    Args:
        label: names the script; words are SHAKE-256 of it and of the number of the call (FIPS 202).

    Attributes:
        calls: what was asked for, in order: ("words" or "bits", how many).
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self.calls: list[tuple[str, int]] = []

    def again(self, calls: int) -> Script:
        """A twin that stands where this script stood after its first `calls` calls."""
        twin = Script(self._label)
        twin.calls = self.calls[:calls]
        return twin

    def _digest(self, kind: str, count: int, size: int) -> bytes:
        text = f"{self._label}/{len(self.calls)}/{kind}"
        self.calls.append((kind, count))
        return hashlib.shake_256(text.encode()).digest(size)

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` words; the caller may write into the array."""
        return np.frombuffer(self._digest("words", count, 8 * count), dtype="<u8").astype(np.uint64)

    def bits(self, count: int) -> int:
        """`count` bits as a non-negative integer."""
        size = -(-count // 8)
        return int.from_bytes(self._digest("bits", count, size), "little") >> (8 * size - count)


class Dice:
    """Choices for synthetic tables, from a script."""

    def __init__(self, label: str) -> None:
        self._script = Script(label)
        self._words: list[int] = []

    def below(self, number: int) -> int:
        """A whole number from 0 to `number` - 1 (evenly enough for a table: the words have 64 bits)."""
        if not self._words:
            self._words = self._script.words(_BATCH).tolist()
        return self._words.pop() % number

    def chance(self, percent: int) -> bool:
        """True so many times in a hundred."""
        return self.below(100) < percent

    def choose(self, things: Sequence[_T]) -> _T:
        """One of them."""
        return things[self.below(len(things))]
