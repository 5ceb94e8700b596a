"""Where a source is and what kind of file it is, found out from its name alone."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from discreet.errors import SourceError, UsageError

__all__ = ["COMPRESSIONS", "Location", "locate"]

_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
COMPRESSIONS = {".gz": "gzip"}
_NAMED_FORMATS = ("csv", "jsonl", "parquet")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class Location:
    """A source's canonical identity, and how it is to be read.

    Attributes:
        source: by which the registration, the ledger and the budget are found: ``file:`` and the real path
            (links resolved), or the absolute pattern of a glob.
        path: the same without the prefix.
        format: "csv", "jsonl" or "parquet".
        compression: "none" or "gzip".
        name: what the source is called in FROM: the file's name up to its first dot.
        delimiter: what the name says about the delimiter (a tab for .tsv), or None.
    """

    source: str
    path: str
    format: str
    compression: str
    name: str
    delimiter: str | None = None


def locate(source: str | os.PathLike[str], *, format: str | None = None) -> Location:
    """Identity and format of a source. Reads the folder, never the file.

    Args:
        source: a path, absolute or relative.
        format: "csv", "jsonl" or "parquet", where the name does not tell.

    Raises:
        SourceError: if there is no such file, or it cannot be told what it is.
        UsageError: for an unknown `format`.
    """
    text = os.fspath(source)
    if format is not None and format not in _NAMED_FORMATS:
        raise UsageError("format", f"must be one of {', '.join(_NAMED_FORMATS)}", format)
    if not text:
        raise UsageError("source", "must be the path of a file", text)
    path = Path(text).expanduser()
    if not path.exists():
        if _GLOB.search(text):
            raise SourceError("source", "patterns of several files cannot be read yet", text)
        raise SourceError("source", "there is no such file", text, hint="check the path")
    path = path.resolve()
    if path.is_dir():
        raise SourceError("source", "is a folder; only single files can be read yet", text)
    if not path.is_file():
        # A pipe or a device can be read only once; registration and every query each read the source.
        raise SourceError("source", "must be a regular file: it is read again for every query", text)
    endings = [ending.lower() for ending in path.suffixes]
    compression = "none"
    if endings and endings[-1] in COMPRESSIONS:
        compression = COMPRESSIONS[endings.pop()]
    ending = endings[-1] if endings else ""
    kind = format or _FORMATS.get(ending)
    if kind is None:
        known = ", ".join(sorted(_FORMATS))
        raise SourceError(
            "source",
            f"its name does not say what it is; known endings are {known}, each also with .gz",
            text,
            hint="say it: format='csv', 'jsonl' or 'parquet'",
        )
    if kind == "parquet" and compression != "none":
        raise SourceError(
            "source", "Parquet files are compressed inside; unpack this one", text, hint="gunzip it first"
        )
    delimiter = "\t" if ending in (".tsv", ".tab") else None
    return Location(f"file:{path}", str(path), kind, compression, path.name.split(".")[0] or "data", delimiter)
