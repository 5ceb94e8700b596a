"""The key under which the contents of files are fingerprinted: the owner's secret, in a file beside the ledger."""

from __future__ import annotations

import os
from pathlib import Path

from discreet.entropy import SystemEntropy
from discreet.errors import LedgerError

__all__ = ["fingerprint_key"]

_BYTES = 32


def fingerprint_key(ledger: Path) -> bytes:
    """The key that lies beside a ledger; made the first time, for its owner's eyes only (mode 0600).

    It is not in the ledger: who may read that could otherwise try out what the files hold. If the key is lost, another
    one is made, and older fingerprints are compared with nothing any more.

    Raises:
        LedgerError: it cannot be made or read, or is none.
    """
    place = ledger.with_name(ledger.name + ".key")
    try:
        if not place.exists():
            _make(place)
        text = place.read_bytes()
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise LedgerError(f"the key {place}", f"cannot be made or read ({reason})", hint="check its folder") from None
    try:
        key = bytes.fromhex(text.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != _BYTES:
        hint = "move it away: another one is made, and older fingerprints are compared no more"
        raise LedgerError(f"the key {place}", "is none: it must be 64 hexadecimal digits", hint=hint)
    return key


def _make(place: Path) -> None:
    """Whole under another name first: of several processes one makes the key, and all read the same."""
    from contextlib import suppress
    from tempfile import mkstemp  # slow to import, and rarely needed

    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = mkstemp(prefix=f".{place.name}.", suffix=".new", dir=place.parent)  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(f"{SystemEntropy().bits(8 * _BYTES):0{2 * _BYTES}x}\n")
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(name, place)
    finally:
        Path(name).unlink(missing_ok=True)
