"""From a source's files to files that the engine can cut into lines, in a folder only its connection uses."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError
from discreet.schema import INTEGER, TEXT, Column, Type
from discreet.sources.documents import records
from discreet.sources.files import SourceFile, byte_chunks, check_name, compression_of, partition_names, source_files
from discreet.sources.inspection import check_names
from discreet.sources.lines import LineFile, Scan, lines_sql, scan_text
from discreet.sources.options import ReadOptions
from discreet.sources.transcoding import transcode

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = [
    "add_partitions",
    "create_view",
    "line_files",
    "partition_places",
    "partition_view",
    "presence_notes",
    "scan_files",
    "temp_folder",
    "view_name",
    "write_documents",
]


def view_name(source: str) -> str:
    """The name under which a prepared source is known to its connection."""
    return "source_" + hashlib.sha256(source.encode()).hexdigest()[:16]


def create_view(connection: DuckDBPyConnection, view: str, select: str) -> None:
    """Make `select` known to its connection as `view`."""
    connection.execute(f"CREATE OR REPLACE TEMPORARY VIEW {view} AS {select}")


def temp_folder(connection: DuckDBPyConnection, view: str) -> Path:
    """A folder for a source's prepared files: private, and removed with the connection."""
    setting = connection.execute("SELECT CURRENT_SETTING('temp_directory')").fetchone()
    assert setting is not None  # noqa: S101 - a SELECT without FROM has one row
    folder = Path(setting[0]) / view
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def line_files(connection: DuckDBPyConnection, reader: Mapping[str, Any], view: str) -> list[LineFile]:
    """The source's files as they are now, in UTF-8: packed ones as they are, others transcoded.

    Raises:
        SourceError: if a file is gone or cannot be read.
    """
    found: list[LineFile] = []
    encoding = reader["encoding"]
    for i, file in enumerate(source_files(reader)):
        compression = compression_of(file.path)
        if encoding == "utf-8":
            found.append(LineFile(file.path, compression, dict(file.keys), file.path))
            continue
        target = temp_folder(connection, view) / f"{i}.txt"
        transcode(file.path, compression, encoding, target)
        found.append(LineFile(str(target), "none", dict(file.keys), file.path))
    return found


def write_documents(
    connection: DuckDBPyConnection, files: Sequence[LineFile], path: Sequence[str], view: str
) -> tuple[list[LineFile], int]:
    """Write the records inside JSON documents as lines, a file for each; also how many places hold none."""
    written: list[LineFile] = []
    bad = 0
    folder = temp_folder(connection, view)
    for i, file in enumerate(files):
        target = folder / f"{i}.jsonl"
        with target.open("wb") as lines:
            for record in records(_texts(file), path):
                try:
                    line = None if record is None else record.encode() + b"\n"
                except UnicodeEncodeError:
                    line = None  # it was not UTF-8
                if line is None:
                    bad += 1
                else:
                    lines.write(line)
        written.append(LineFile(str(target), "none", file.keys, file.source))
    return written, bad


def _texts(file: LineFile) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    for chunk in byte_chunks(file.path, file.compression):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)


def scan_files(thing: str, files: Sequence[LineFile], options: ReadOptions) -> list[Scan]:
    """Read every file once, as bytes.

    Raises:
        SourceError: if all of them are empty; or if one is damaged, something else than its name says, or,
            without an encoding that the owner named, not UTF-8.
    """
    scans = []
    for file in files:
        check_name(file.source)
        scans.append(scan_text(file, lenient=options.encoding is not None))
    if all(scan.empty for scan in scans):
        what = "the file is empty" if len(files) == 1 else "all files are empty"
        raise SourceError(thing, what, hint="a CSV file needs at least its header line")
    return scans


def partition_places(reader: Mapping[str, Any]) -> dict[int, int]:
    """For each column that is a folder key, its place in the schema and the number k of its ``k{k}``."""
    return {place: k for k, (place, _) in enumerate(reader["partitions"])}


def partition_view(reader: Mapping[str, Any], files: Sequence[LineFile]) -> str:
    """The SELECT of the files' lines with the registered folder keys."""
    return lines_sql(files, [name for _, name in reader["partitions"]])


def add_partitions(
    thing: str, inside: Sequence[str], reader: dict[str, Any], options: ReadOptions
) -> tuple[Column, ...]:
    """The columns of the folders' keys, which stand behind those `inside` the files; sets
    ``reader["partitions"]``.

    A key is text, so that 01 and 1 stay apart, unless all of them are plain whole numbers.

    Raises:
        SourceError: for a folder key that is a column of the files too: neither may win in silence.
    """
    files: list[SourceFile] = [] if options.partitions is False else source_files(reader)
    names = partition_names(files)
    if options.partitions is True and not names:
        raise SourceError(thing, "has no folders called name=value", hint="leave partitions out")
    folded = {name.casefold(): name for name in inside}
    for name in names:
        if name.casefold() in folded:
            raise SourceError(
                thing,
                f"column {folded[name.casefold()]!r} stands in the files and in the names of their folders",
                hint="--no-partitions takes the one in the files (Python: partitions=False)",
            )
    check_names(thing, names, fix="rename the folders")
    reader["partitions"] = [[len(inside) + k, name] for k, name in enumerate(names)]
    added = []
    for name in names:
        values = {value for file in files for key, value in file.keys if key == name and value is not None}
        type_: Type = INTEGER if values and all(_is_plain_integer(value) for value in values) else TEXT
        added.append(Column(name, options.types.get(name, type_)))
    return tuple(added)


def _is_plain_integer(text: str) -> bool:
    try:
        return str(int(text)) == text and abs(int(text)) < 2**63
    except ValueError:
        return False


def presence_notes(names: Sequence[str], present: Mapping[str, int], files: int) -> list[str]:
    """For the owner: the columns that some files do not have."""
    return [
        f"column {name!r} is present in {present[name]} of {files} files; it is missing in the others"
        for name in names
        if present[name] < files
    ]
