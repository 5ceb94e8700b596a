"""The only room that names a source of randomness: the operating system's, stretched by AES-256-CTR.

Every call to `words` takes a fresh 256-bit key from `os.urandom` and gives the keystream of AES-256 in
counter mode under it (NIST SP 800-38A, section 6.5; the same construction as the CTR generator of SP
800-90A without its state). No state outlives a call, so that a fork, a snapshot or a copied process cannot
repeat noise. There is no seed.
"""

from __future__ import annotations

import os
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Entropy", "SystemEntropy"]


class Entropy(Protocol):
    """A source of independent uniform 64-bit words. A seam for tests, which script it; never public."""

    def words(self, count: int) -> NDArray[np.uint64]:
        """`count` fresh uniform words; the caller may write into the array."""
        ...

    def bits(self, count: int) -> int:
        """`count` fresh uniform bits as a non-negative integer."""
        ...


class SystemEntropy:
    """`os.urandom`, stretched by AES-256-CTR for batches."""

    def words(self, count: int) -> NDArray[np.uint64]:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

        buffer = np.zeros(count, dtype=np.uint64)
        if count <= 64:  # a short read of the system's own generator is as quick as a cipher's set-up
            buffer[:] = np.frombuffer(os.urandom(8 * count), dtype=np.uint64)
            return buffer
        # A fresh key for each batch: with a fixed all-zero counter block no (key, counter) pair repeats.
        cipher = Cipher(algorithms.AES(os.urandom(32)), modes.CTR(bytes(16))).encryptor()
        view = buffer.data.cast("B")
        cipher.update_into(view, view)
        return buffer

    def bits(self, count: int) -> int:
        size = -(-count // 8)
        return int.from_bytes(os.urandom(size), "little") >> (8 * size - count)
