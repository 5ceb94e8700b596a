"""JSON: registering files of one object a line, or of documents with records inside, and the rows of
registered ones.

A column is a *path*, kept as an RFC 6901 pointer, so that any key works, in its exact case. Objects are
flattened to the paths of their leaves, called ``outer.inner``; lists cannot be asked about as a whole. An
object with very many keys (labels, annotations) is not flattened: what lies below it, or in a list, can be
asked for by name all the same, as text, whether or not it was seen at registration (`below`).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.errors import SourceError
from discreet.schema import BOOLEAN, FLOAT, OTHER, TEXT, Column, Registration, Schema, Type
from discreet.sources.cells import CellRules, present, typed
from discreet.sources.inference import NUMBERS, TIMES, Finding, infer
from discreet.sources.inspection import Inspection, judge_bad_records, settle_types
from discreet.sources.lines import LineFile, lines_sql, text_lines
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.preparing import (
    add_partitions,
    create_view,
    line_files,
    partition_places,
    partition_view,
    scan_files,
    view_name,
    write_documents,
)
from discreet.sources.sql_text import literal_list

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["attach_json", "below", "inspect_json", "select_json"]

_MANY_KEYS = 200  # an object with more distinct keys over all records is a map, not a record
_DEEPEST = 20

_NUMBER_KINDS = {"UBIGINT", "BIGINT", "HUGEINT", "UHUGEINT", "DOUBLE"}


@dataclass
class _Node:
    """What stands at one path over all records: the kinds of values, and the keys below."""

    kinds: set[str] = field(default_factory=set)
    keys: dict[str, _Node] = field(default_factory=dict)

    def add(self, structure: Any) -> None:
        """Take in one record's structure, as DuckDB's json_structure gives it."""
        pending = [(self, structure, 0)]
        while pending:
            node, value, depth = pending.pop()
            if isinstance(value, dict) and depth < _DEEPEST:
                node.kinds.add("object")
                pending.extend((node.keys.setdefault(key, _Node()), v, depth + 1) for key, v in value.items())
            elif isinstance(value, str):
                node.kinds.add(value)
            else:
                node.kinds.add("list")


def inspect_json(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register files of one JSON object a line, or of JSON documents.

    Documents are read where the owner named the path of the records, and where the lines are no objects but the
    whole is JSON: a list of objects, or objects over many lines.

    Raises:
        SourceError: if the files cannot be read so: empty, not UTF-8, half of the records no objects; or one
            document with a list inside that looks like the records.
        UsageError: for options that do not fit the files.
    """
    thing, view = location.thing, view_name(location.source)
    rules = CellRules(empty=False, null_values=options.null_values, timezone=options.timezone)
    reader: dict[str, Any] = {
        **location.to_reader(),
        "encoding": options.encoding or "utf-8",
        "records": None if options.records is None else list(options.records),
        "partitions": [],
        **rules.to_reader(),
    }
    structures, bad = _read(connection, thing, view, reader, options)
    paths = _Paths.of(structures)
    nodes = paths.nodes
    folders = [column.name for column in add_partitions(thing, list(nodes), reader, options)]
    notes = [f"{name!r} has more than {_MANY_KEYS} keys: ask for them as {name}.key, as text" for name in paths.maps]
    for name in options.types:
        if name not in nodes and name not in folders:
            # A key that no record has yet is missing everywhere.
            paths.pointers[name], nodes[name] = _pointer(name.split(".")), _Node()
            notes.append(f"column {name!r} was declared, but no record has it")
    partitions = add_partitions(thing, list(nodes), reader, options)
    findings = _types(connection, view, paths.pointers, nodes, rules)
    columns, more = settle_types(thing, list(nodes), findings, options, others=partitions)
    reader["pointers"] = [*paths.pointers.values(), *([None] * len(partitions))]
    registration = Registration(location.source, "jsonl", Schema((*columns, *partitions)), reader)
    return Inspection(registration, sum(structures.values()), bad, (*notes, *more))


def _read(
    connection: DuckDBPyConnection, thing: str, view: str, reader: dict[str, Any], options: ReadOptions
) -> tuple[Counter[str], int]:
    """Make the records known as `view`, one a line, and tell their structures and how many are none; decides
    whether they are lines or lie inside documents."""
    files = lines = line_files(connection, reader, view)
    bad = sum(scan.bad_lines for scan in scan_files(thing, files, options))
    structures = Counter[str]()
    if options.records is None:
        create_view(connection, view, lines_sql(files))
        structures, not_objects = _structures(connection, view)
        bad += not_objects
    if not structures or bad > sum(structures.values()):
        path = options.records or ()
        lines, elsewhere = write_documents(connection, files, path, view)
        create_view(connection, view, lines_sql(lines))
        inside, not_objects = _structures(connection, view)
        if options.records is not None or sum(inside.values()) > elsewhere + not_objects:
            reader["records"] = list(path)
            structures, bad = inside, elsewhere + not_objects
        else:
            create_view(connection, view, lines_sql(files))
            lines = files
    if not structures:
        _nothing(thing, options)
    if bad:
        judge_bad_records(thing, bad, sum(structures.values()), _first_bad(lines, reader), options)
    if options.records is None:
        _refuse_wrapped(thing, structures, len(files))
    return structures, bad


@dataclass
class _Paths:
    """The columns that records have: by name, the pointer to each and what stands there; and which are maps."""

    pointers: dict[str, str] = field(default_factory=dict)
    nodes: dict[str, _Node] = field(default_factory=dict)
    maps: list[str] = field(default_factory=list)

    @staticmethod
    def of(structures: Iterable[str]) -> _Paths:
        """From the records' distinct structures."""
        root = _Node()
        for structure in structures:
            # A record nested too deep for Python has no paths of its own here; it is read like any other.
            with contextlib.suppress(RecursionError):
                root.add(json.loads(structure))
        found = _Paths()
        for path, node in _leaves(root, ()):
            pointer = _pointer(path)
            name = ".".join(path)
            if name in found.nodes:  # a key with a dot in it, and the path that is spelt the same
                name = pointer
            found.pointers[name], found.nodes[name] = pointer, node
            if "object" in node.kinds:
                found.maps.append(name)
        return found


def attach_json(connection: DuckDBPyConnection, registration: Registration) -> None:
    """Make the lines known to the connection, one record each.

    Raises:
        SourceError: if a file is gone or cannot be read.
    """
    reader, view = registration.reader, view_name(registration.source)
    files = line_files(connection, reader, view)
    if reader["records"] is not None:
        files, _ = write_documents(connection, files, reader["records"], view)
    create_view(connection, view, partition_view(reader, files))


def select_json(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered source's columns ``c{i}``. Only the paths that are asked for are looked up."""
    reader, view = registration.reader, view_name(registration.source)
    rules, folders = CellRules.from_reader(reader), partition_places(reader)
    wanted = [i for i in sorted(columns) if i not in folders]
    keys = [i for i in sorted(columns) if i in folders]
    if not columns:
        return f"SELECT 1 AS one FROM ({_objects(view)})"
    types = [column.type for column in registration.schema.columns]
    parts = [f"{typed(present(f'e[{k + 1}]', rules), types[i], rules)} AS c{i}" for k, i in enumerate(wanted)]
    parts += [f"{typed(f'k{folders[i]}', types[i], CellRules(empty=False))} AS c{i}" for i in keys]
    pointers = literal_list(reader["pointers"][i] for i in wanted)
    carried = "".join(f", k{folders[i]}" for i in keys)
    found = f"SELECT JSON_EXTRACT_STRING(j, {pointers}) AS e{carried} FROM ({_objects(view, carried)})"
    return f"SELECT {', '.join(parts)} FROM ({found})"


def below(registration: Registration, name: str) -> Registration | None:
    """The registration with one more column, of text, for a path under a registered map or list.

    ``annotations.k/a`` is the key ``k/a`` of ``annotations``; ``events[0].name`` is the name of the first
    event. The type is always text, whatever the data hold, so that nothing about them shows. None if there
    is no such map or list.
    """
    schema = registration.schema
    for i, column in enumerate(schema.columns):
        rest = name[len(column.name) :]
        if column.type != OTHER or not name.startswith(column.name) or rest[:1] not in ("[", "."):
            continue
        pointer = registration.reader["pointers"][i]
        if pointer is None:
            continue
        while match := re.match(r"\[(\d{1,6})\]", rest):
            pointer += f"/{match[1]}"
            rest = rest[match.end() :]
        if rest.startswith("."):
            # Below a list the rest is a path; below a map it is one key, dots and all (k8s.io/name).
            keys = rest[1:].split(".") if pointer != registration.reader["pointers"][i] else [rest[1:]]
            pointer += _pointer(keys)
        elif rest:
            continue
        reader = {**registration.reader, "pointers": [*registration.reader["pointers"], pointer]}
        added = Schema((*schema.columns, Column(name, TEXT)))
        return Registration(registration.source, registration.format, added, reader)
    return None


def _objects(view: str, carried: str = "") -> str:
    """A SELECT with one column ``j``, for each line that is a JSON object, and the columns `carried` along."""
    # Valid JSON that starts with a brace is an object; TRY_CAST has looked at the rest of it.
    return (
        f"SELECT j{carried} FROM (SELECT TRY_CAST(line AS JSON) AS j{carried} FROM {view} "
        "WHERE STARTS_WITH(LTRIM(line, ' \t'), '{')) WHERE j IS NOT NULL"
    )


def _structures(connection: DuckDBPyConnection, view: str) -> tuple[Counter[str], int]:
    """The distinct structures of the objects with their numbers, the commonest first, and how many lines are
    none."""
    counted = connection.execute(
        "SELECT s, COUNT(*) FROM (SELECT CASE WHEN STARTS_WITH(LTRIM(line, ' \t'), '{') "
        f"THEN JSON_STRUCTURE(TRY_CAST(line AS JSON)) END AS s FROM {view} "
        "WHERE LTRIM(line, ' \t') <> '') GROUP BY s"
    ).fetchall()
    bad = sum(count for structure, count in counted if structure is None)
    found = [(str(structure), int(count)) for structure, count in counted if structure is not None]
    # The order of the columns must not depend on which thread was first.
    return Counter(dict(sorted(found, key=lambda pair: (-pair[1], pair[0])))), bad


def _nothing(thing: str, options: ReadOptions) -> NoReturn:
    if options.records is not None:
        shown = ".".join(options.records) or "$"
        raise SourceError(thing, f"no list of objects stands at {shown!r}", hint="records= names the path of the list")
    raise SourceError(thing, "no line of it is a JSON object, nor is the whole a list of objects")


def _refuse_wrapped(thing: str, structures: Counter[str], files: int) -> None:
    """Refuse files that are one object each with a list of objects in it: that list is the table.

    Raises:
        SourceError: with the way to say so.
    """
    if sum(structures.values()) != files:
        return
    lists: set[str] = set()
    for structure in structures:
        with contextlib.suppress(RecursionError):
            lists |= {
                key
                for key, value in json.loads(structure).items()
                if isinstance(value, list) and value and isinstance(value[0], dict)
            }
    if len(lists) == 1:
        raise SourceError(
            thing,
            "is one JSON document with a list of objects inside",
            hint=f"--records {next(iter(lists))} reads the list, --records '$' the document as one record "
            "(Python: records=)",
        )


def _leaves(node: _Node, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Node]]:
    for key, child in node.keys.items():
        here = (*path, key)
        if "object" in child.kinds and len(child.keys) <= _MANY_KEYS:
            if child.kinds - {"object", "NULL", "JSON", "list"}:
                yield here, _Node(child.kinds - {"object"})  # sometimes a plain value stands here
            yield from _leaves(child, here)
        else:
            yield here, child


def _types(
    connection: DuckDBPyConnection,
    view: str,
    names: Mapping[str, str],
    nodes: Mapping[str, _Node],
    rules: CellRules,
) -> list[Finding]:
    """The types of the leaves: by JSON's own kinds, numbers and times by every value."""
    findings: dict[str, Finding] = {}
    classes: dict[str, tuple[str, ...]] = {}
    for name, node in nodes.items():
        kinds = node.kinds - {"NULL"}
        plain = kinds - {"object", "list", "JSON"}
        if kinds and not plain:
            findings[name] = Finding(OTHER, 0)
        elif plain == kinds and plain <= _NUMBER_KINDS and plain:
            classes[name] = NUMBERS
        elif plain == kinds == {"BOOLEAN"}:
            findings[name] = Finding(BOOLEAN, 0)
        elif plain == kinds == {"VARCHAR"}:
            classes[name] = TIMES
        else:
            findings[name] = Finding(TEXT, 0)
    pointers = literal_list(names[name] for name in classes)
    rows = f"SELECT JSON_EXTRACT_STRING(j, {pointers}) AS e FROM ({_objects(view)})"
    # An empty text says no time, and must not make a column of times text.
    texts = [f"NULLIF({present(f'e[{k + 1}]', rules)}, '')" for k in range(len(classes))]
    inferred = infer(connection, rows, texts, rules, list(classes.values())) if classes else []
    for name, finding in zip(classes, inferred, strict=True):
        if classes[name] == NUMBERS and finding.type == TEXT and "DOUBLE" in nodes[name].kinds:
            # JSON says that these are numbers, so they are, even where an integer among them is long.
            finding = Finding(_number(finding), finding.present)
        findings[name] = finding
    return [findings[name] for name in names]


def _number(finding: Finding) -> Type:
    # Integers of more than 38 digits are the one exception: ids, which a double would merge.
    return TEXT if finding.near is not None and finding.near[0] != FLOAT else FLOAT


def _pointer(path: Collection[str]) -> str:
    return "".join("/" + key.replace("~", "~0").replace("/", "~1") for key in path)


def _first_bad(files: Sequence[LineFile], reader: Mapping[str, Any]) -> str:
    """Where the first line that is no object is; for the owner."""
    for file in files:
        for number, line in text_lines(file):
            if line.strip():
                try:
                    if isinstance(json.loads(line), dict):
                        continue
                except (ValueError, RecursionError):
                    pass
                where = "" if len(files) == 1 else f" of {file.source!r}"
                what = "line" if reader["records"] is None else "record"
                return f"{what} {number}{where} is not a JSON object"
    if reader["records"] is not None:
        return "something that is not a JSON object stands among the records"
    return f"a line is not {'UTF-8' if reader['encoding'] == 'utf-8' else reader['encoding']}, or too long"
