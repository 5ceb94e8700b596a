"""Where answers go: stdout, or a file that appears whole or not at all.

A destination is made ready *before* the query is paid for: an answer that cannot be written is money lost.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from discreet.errors import OutputError, UsageError

__all__ = [
    "Destination",
    "FileDestination",
    "StdoutDestination",
    "can_show",
    "destination",
    "terminal_width",
    "write_stdout",
]


class StdoutDestination:
    """Standard output. UTF-8 for machine formats; for people, what their terminal can show."""

    path = None

    def __init__(self) -> None:
        if sys.stdout is None or sys.stdout.closed:
            raise OutputError("stdout", "is closed", hint="write to a file with -o FILE")

    def write(self, text: str | bytes, *, machine: bool) -> None:
        """Write all of it.

        Raises:
            OutputError: the disk behind it is full, or the like. A reader that went away is BrokenPipeError.
        """
        write_stdout(text, machine=machine)


def terminal_width() -> int | None:
    """The columns of the terminal that stdout is; None if it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return max(20, shutil.get_terminal_size().columns)


def write_stdout(text: str | bytes, *, machine: bool = False) -> None:
    """Write to stdout and flush. Bytes go as they are.

    Raises:
        OutputError: it cannot be written. A reader that went away is BrokenPipeError.
    """
    stream = sys.stdout
    try:
        if isinstance(text, bytes) or (machine and hasattr(stream, "buffer")):
            stream.flush()
            stream.buffer.write(_bytes(text))
            stream.buffer.flush()
        else:
            encoding = getattr(stream, "encoding", None) or "utf-8"
            # A terminal without a sign gets another, or an escape; an answer never fails on it.
            if not can_show(encoding):
                text = text.translate(_PLAIN)
            stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
            stream.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError("stdout", f"cannot be written ({_reason(error)})") from None


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


class FileDestination:
    """A file that is written beside its place and moved there when it is whole.

    With `new`, nothing that has come to lie there is written over.

    Making one creates the new file (empty, under a passing name), so that a folder without permission, a full
    table of inodes or a read-only disk is told before anything is charged. `mode` is that of the file; None for what
    it has, or for what new files have.
    """

    def __init__(self, option: str, path: Path, *, mode: int | None = None, new: bool = False) -> None:
        self._name, self._new = str(path), new
        self._option = option
        self._temporary: Path | None = None
        self._path = path
        try:
            path = self._path = path.expanduser()
            if path.is_dir():
                raise OutputError(option, "is a folder; name a file in it", self._name)
            if path.exists() and not os.access(path, os.W_OK):
                raise OutputError(option, "cannot be written (permission denied)", self._name)
            if path.exists() and not path.is_file():
                if not _can_be_written_in_place(path):
                    rule = "must be a regular file, or one that is not there yet"
                    raise UsageError(option, rule, self._name, "for a pipe: -o - (stdout), or -o /dev/stdout")
                return  # a device: there is no "beside", it is written in place
            path = self._path = path.resolve()
            handle, name = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
            os.close(handle)
            self._temporary = Path(name)
            usual = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
            self._temporary.chmod(usual if mode is None else mode)
        except (OSError, RuntimeError) as error:
            raise OutputError(option, f"cannot be written ({_reason(error)})", self._name) from None

    @property
    def path(self) -> Path:
        """Where the file will be: absolute, links followed."""
        return self._path

    def write(self, text: str | bytes, *, machine: bool) -> None:
        """Write all of it, text as UTF-8, and put it in place.

        Raises:
            OutputError: the disk is full, or the place is gone since it was made ready.
        """
        try:
            if self._temporary is None:
                self._path.write_bytes(_bytes(text))
                return
            with self._temporary.open("wb") as file:
                file.write(_bytes(text))
                file.flush()
                os.fsync(file.fileno())
            if self._new:
                os.link(self._temporary, self._path)  # refuses where anything has come to lie since
                self.discard()
            else:
                self._temporary.replace(self._path)
            self._temporary = None
        except OSError as error:
            raise OutputError(self._option, f"could not be written ({_reason(error)})", self._name) from None

    def discard(self) -> None:
        """Take the passing file away, if it was not put in place."""
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                self._temporary.unlink()


Destination = StdoutDestination | FileDestination


@contextlib.contextmanager
def destination(
    option: str,
    path: str | None,
    taken: dict[Path, str],
    of_source: Callable[[Path], bool],
    mode: int | None = None,
    *,
    new: bool = False,
) -> Iterator[Destination]:
    """A destination made ready: a file, or stdout for None or "-".

    Args:
        option: its name, for errors.
        path: what the user wrote.
        taken: files that must not be written over, under the names to tell them by.
        of_source: whether a file would be, or become, one of those that are read.
        new: never write over a file.

    Raises:
        OutputError: it cannot be written.
        UsageError: it is one of the taken files or would be of the source, is a named pipe, or has no name.
    """
    if path is None or path == "-":
        yield StdoutDestination()
        return
    if not path.strip():
        raise UsageError(option, "must be the path of a file", path)
    ready = FileDestination(option, Path(path), mode=mode, new=new)
    try:
        for other, what in taken.items():
            if ready.path == other or (ready.path.exists() and other.exists() and ready.path.samefile(other)):
                raise UsageError(option, f"must not be {what}: it would be written over", path)
        written = Path(path).expanduser()
        # A link counts by what it leads to, and by where it lies itself.
        if of_source(ready.path) or of_source(written.parent.resolve() / written.name):
            rule = "must not be in the folder or of the pattern of what is read: the answer would be read as data"
            raise UsageError(option, rule, path, "write it to another folder")
        yield ready
    finally:
        ready.discard()


def _can_be_written_in_place(path: Path) -> bool:
    """Whether something that is neither file nor folder can be opened without waiting: devices, and the pipes behind
    /dev/stdout and /dev/fd, which are open already. A named pipe waits for its reader, perhaps for ever."""
    kind, place = path.stat().st_mode, path.absolute()
    open_already = str(place) in ("/dev/stdout", "/dev/stderr") or str(place.parent) in ("/dev/fd", "/proc/self/fd")
    return stat.S_ISCHR(kind) or (stat.S_ISFIFO(kind) and open_already)


_SIGNS = "─…±│╭▁█▒▼×"
_PLAIN = str.maketrans(
    {"─": "-", "…": "..", "±": "+-", "×": "x", "▼": "v", "▶": ">", "│": "|", "·": "."}
    | dict.fromkeys("╭╮╰╯├┤┼", "+")
    | dict(zip("▁▂▃▄▅▆▇█▒", "___ooo###", strict=True))
)


def can_show(encoding: str) -> bool:
    """Whether text in that encoding can hold the signs that tables and boxes are drawn with."""
    try:
        _SIGNS.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or "unknown reason").lower()
