"""What a source's files hold, as one number under a key: so that the owner notices a copy, and nobody else can try
out what is in them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from discreet.errors import SourceError
from discreet.schema import Registration
from discreet.sources.files import sizes, source_files
from discreet.sources.progress import count_read, reading_bytes
from discreet.sources.reading import has_files

__all__ = ["content_fingerprint"]

_CHUNK = 1 << 20


def content_fingerprint(registration: Registration, key: bytes) -> str:
    """A keyed digest (BLAKE2b, RFC 7693, section 2.9) of the bytes of a source's files, with the keys that their
    folders say and the table of a database (its main file: not what waits in a journal). The same for a copy under
    other names, in whatever order; "" for what has no files.

    Args:
        registration: of the source.
        key: 32 secret bytes: without it, who can read the digest could try out contents.

    Returns:
        The key's own short digest, a colon, the digest: two are compared only under one key.

    Raises:
        SourceError: a file is gone or cannot be read.
    """
    if not has_files(registration):
        return ""
    parts = []
    with reading_bytes("fingerprint", lambda: sizes(registration.reader)):
        for file in source_files(registration.reader):
            digest = hashlib.blake2b(key=key, digest_size=32)
            try:
                with Path(file.path).open("rb") as content:
                    while chunk := content.read(_CHUNK):
                        digest.update(chunk)
                        count_read(file.path, content.tell())
            except OSError:
                # Names of single files may be private (``user=ann/log.csv``).
                raise SourceError(registration.source, "one of its files is gone or cannot be read") from None
            parts.append([digest.hexdigest(), file.keys])
    whole = json.dumps([sorted(parts), registration.reader.get("table")])
    known_by = hashlib.blake2b(key=key, digest_size=8).hexdigest()
    return f"{known_by}:{hashlib.blake2b(whole.encode(), key=key, digest_size=32).hexdigest()}"
