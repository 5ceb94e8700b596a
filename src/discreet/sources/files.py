"""The files of a source: which there are now, and their bytes.

The set of files is found anew for every query, so that a new daily file counts; names and types stay as they
were registered.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import gzip
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import unquote

from discreet.errors import SourceError
from discreet.sources.progress import count_read

__all__ = [
    "COMPRESSIONS",
    "SourceFile",
    "byte_chunks",
    "check_name",
    "compression_of",
    "is_among",
    "matching",
    "partition_names",
    "sizes",
    "source_files",
]

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}

_CHUNK = 1 << 20
_MAGICS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_MISSING = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SourceFile:
    """One file, and the keys that its folders say (``region=eu/day=1``); None is the missing key."""

    path: str
    keys: tuple[tuple[str, str | None], ...] = ()


def source_files(reader: Mapping[str, Any]) -> list[SourceFile]:
    """The files of a source as they are now, by path. There may be none where a pattern is registered.

    Raises:
        SourceError: if the registered file or folder itself is gone.
    """
    path = Path(reader["path"])
    if reader["pattern"] is None:
        if not path.is_file():
            raise _gone(reader["path"], "file")
        return [SourceFile(str(path))]
    if not path.is_dir():
        raise _gone(reader["path"], "folder")
    endings = reader["endings"]
    found = []
    for file in matching(str(path), reader["pattern"]):
        if endings is None or _known_ending(file, endings):
            found.append(SourceFile(file, _keys(Path(file).relative_to(path).parts[:-1])))
    return found


def sizes(reader: Mapping[str, Any]) -> dict[str, int]:
    """The sizes of a source's files in bytes, by path; of those that are still there."""
    found = {}
    for file in source_files(reader):
        with contextlib.suppress(OSError):
            found[file.path] = Path(file.path).stat().st_size
    return found


def matching(root: str, pattern: str) -> list[str]:
    """The regular files below `root` that match, sorted; of a whole folder, without its hidden ones."""
    names = glob.glob(pattern, root_dir=root, recursive=True)  # noqa: PTH207 - Path.glob reads hidden files too
    if pattern == "**/*":
        # A name that starts with an underscore marks what is not data (_SUCCESS, _temporary).
        names = [name for name in names if not any(part.startswith("_") for part in Path(name).parts)]
    return sorted(str(Path(root, name)) for name in names if Path(root, name).is_file())


def is_among(reader: Mapping[str, Any], path: Path, suffixes: Sequence[str] = ()) -> bool:
    """Whether a path is that of a file of a source, or a new file there would be one.

    In a whole folder everything counts, whatever its ending.

    Args:
        reader: of the source.
        path: absolute, the links of its folder followed.
        suffixes: what is put behind the name of the source's one file to name those that lie beside it.
    """
    root, pattern = Path(reader["path"]), reader["pattern"]
    if pattern is None:
        return path in (root, *(root.with_name(root.name + suffix) for suffix in suffixes))
    *folders, name = pattern.split("/")
    if name == "**":
        folders, name = [*folders, name], "*"
    if pattern == "**/*":
        if path.is_relative_to(root):
            return True
    elif not fnmatch.fnmatchcase(path.name, name):
        return False
    # Folders may be links to elsewhere: compared is what they are, not how they are called.
    places = glob.glob("/".join([*folders, ""]), root_dir=root, recursive=True) if folders else []  # noqa: PTH207
    if set(folders) <= {"**"}:
        places.append(".")
    return any(Path(root, place).resolve() == path.parent for place in places)


def partition_names(files: Sequence[SourceFile]) -> list[str]:
    """The names of all folder keys, in order of their first appearance."""
    return list(dict.fromkeys(name for file in files for name, _ in file.keys))


def compression_of(path: str) -> str:
    """ "none", "gzip" or "zstd": what its name says (.gz, .zst), if its first bytes agree.

    The bytes alone decide nothing: they may be a person's, the first record of a text file.

    Raises:
        SourceError: if it cannot be opened.
    """
    packed = _packed(_head(path))
    return packed if packed == COMPRESSIONS.get(Path(path).suffix.lower()) else "none"


def _head(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(4)
    except OSError as error:
        raise SourceError(f"source {path!r}", f"cannot be opened: {error.strerror}") from None


def _packed(head: bytes) -> str:
    return next((name for magic, name in _MAGICS.items() if head.startswith(magic)), "none")


def check_name(path: str) -> None:
    """Refuse a text file that is something else than its name says; for registration.

    Raises:
        SourceError: for a plain file called .gz or .zst, a packed file or a Parquet file called otherwise.
    """
    ending, head = Path(path).suffix.lower(), _head(path)
    said, packed = COMPRESSIONS.get(ending), _packed(head)
    if said is None and packed != "none":
        right = next(ending for ending, name in COMPRESSIONS.items() if name == packed)
        raise SourceError(
            f"source {path!r}", f"is {packed}, which its name does not say", hint=f"rename it to *{right}"
        )
    if said is not None and head and said != packed:
        raise SourceError(
            f"source {path!r}", f"is not {said}, whatever its name says", hint=f"rename it without {ending}"
        )
    if head == b"PAR1":
        raise SourceError(
            f"source {path!r}",
            "is a Parquet file, whatever its name says",
            hint="--source-format parquet (Python: format=)",
        )


def byte_chunks(path: str, compression: str) -> Iterator[bytes]:
    """The unpacked bytes of a file.

    Raises:
        SourceError: if it cannot be read, or is damaged.
    """
    thing = f"source {path!r}"
    try:
        with Path(path).open("rb") as raw:
            file = raw
            if compression == "gzip":
                file = cast("Any", gzip.GzipFile(fileobj=raw))
            elif compression == "zstd":
                file = cast("Any", _zstd(raw, thing))
            while chunk := file.read(_CHUNK):
                count_read(path, raw.tell())
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise SourceError(
            thing, "the gzip file is cut short or damaged: it is not read in part", hint="fetch it again"
        ) from None
    except OSError as error:
        raise SourceError(thing, f"cannot be read: {error.strerror or 'it is damaged'}") from None


def _zstd(raw: IO[bytes], thing: str) -> Any:
    """An unpacking reader, by whichever module is there. (The engine needs none of them.)"""
    for module in ("compression.zstd", "backports.zstd"):
        try:
            return _Damaged(import_module(module).ZstdFile(raw), import_module(module).ZstdError)
        except ImportError:
            continue
    try:
        import pyarrow as pa

        return _Damaged(pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), "zstd"), pa.ArrowException)
    except ImportError:
        pass
    raise SourceError(
        thing, "registering a .zst file needs a module that unpacks it", hint="pip install 'discreet[zstd]'"
    )


class _Damaged:
    """A reader whose module's own error becomes an OSError."""

    def __init__(self, file: Any, error: type[Exception]) -> None:
        self._file, self._error = file, error

    def read(self, size: int) -> bytes:
        try:
            return bytes(self._file.read(size))
        except self._error:
            raise OSError from None


def _known_ending(path: str, endings: Sequence[str]) -> bool:
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if suffixes and suffixes[-1] in COMPRESSIONS:
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in endings


def _keys(folders: Sequence[str]) -> tuple[tuple[str, str | None], ...]:
    keys: dict[str, str | None] = {}
    for folder in folders:
        name, equals, text = folder.partition("=")
        if equals and name:
            value = unquote(text, errors="replace")
            keys[unquote(name, errors="replace")] = None if text == _MISSING else value
    return tuple(keys.items())


def _gone(path: str, what: str) -> SourceError:
    return SourceError(f"source {path!r}", f"the registered {what} is gone", hint="register it again, or put it back")
