"""Text in another encoding than UTF-8, streamed into a private UTF-8 file.

A line that is not valid in its encoding gets a byte that is not valid in UTF-8, and so is dropped wherever
lines of a UTF-8 file are dropped: no character is ever replaced by another.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from pathlib import Path

from discreet.errors import UsageError
from discreet.sources.files import byte_chunks

__all__ = ["known_encoding", "transcode"]

_UNREADABLE = "discreet.unreadable"
# Their meaning depends on what came before, so that one record could change how the next ones are read.
_STATEFUL = ("utf_7", "hz", "iso2022", "punycode", "idna", "raw_unicode", "unicode_escape", "undefined", "mbcs", "oem")


def _mark(error: UnicodeError) -> tuple[str, int]:
    """Half a surrogate pair where bytes make no character; it becomes an invalid byte again on writing."""
    assert isinstance(error, UnicodeDecodeError)  # noqa: S101 - registered for decoding only
    return "\udc80", error.end


codecs.register_error(_UNREADABLE, _mark)


def known_encoding(name: str) -> str:
    """Python's name of an encoding.

    Raises:
        UsageError: for one that is unknown, or in which a line cannot be read on its own.
    """
    try:
        info = codecs.lookup(name)
    except LookupError:
        info = None
    if info is None or not info._is_text_encoding:
        raise UsageError("encoding", "is not known to Python", name, hint="utf-8, gb18030, latin-1, utf-16, ...")
    plain = info.name.replace("-", "_")
    if plain.startswith(_STATEFUL):
        raise UsageError("encoding", "cannot be read line by line", name, hint="convert the file to UTF-8 first")
    return "utf-8" if plain in ("utf_8", "utf_8_sig", "ascii") else info.name


def transcode(path: str, compression: str, encoding: str, target: Path) -> None:
    """Write `path`, unpacked and in UTF-8, to `target`.

    Raises:
        SourceError: if it cannot be read, or is damaged.
    """
    with target.open("wb") as file:
        for text in _texts(path, compression, encoding):
            file.write(text.encode("utf-8", "surrogateescape"))


def _texts(path: str, compression: str, encoding: str) -> Iterator[str]:
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in byte_chunks(path, compression):
        if decoder is None:
            decoder = codecs.getincrementaldecoder(_with_order(encoding, chunk))(_UNREADABLE)
            yield decoder.decode(chunk).removeprefix("\ufeff")
        else:
            yield decoder.decode(chunk)
    if decoder is not None:
        yield decoder.decode(b"", final=True)


def _with_order(encoding: str, head: bytes) -> str:
    """The byte order, where the file does not say it: little-endian, on every machine."""
    if encoding == "utf-16" and head[:2] not in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16-le"
    if encoding == "utf-32" and head[:4] not in (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE):
        return "utf-32-le"
    return encoding
