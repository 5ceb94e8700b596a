"""JSON lines: registering a file, and the rows of a registered one.

A column is a *path*, kept as an RFC 6901 pointer, so that any key works, in its exact case. Objects are
flattened to the paths of their leaves, called ``outer.inner``; lists cannot be asked about as a whole. An
object with very many keys (labels, annotations) is not flattened: what lies below it, or in a list, can be
asked for by name all the same, as text, whether or not it was seen at registration (`below`).
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from discreet.errors import SourceError
from discreet.schema import BOOLEAN, FLOAT, OTHER, TEXT, Column, Registration, Schema, Type
from discreet.sources.cells import CellRules, present, typed
from discreet.sources.inference import NUMBERS, TIMES, Finding, infer
from discreet.sources.inspection import Inspection, judge_bad_records, settle_types
from discreet.sources.lines import lines_sql, scan_text, text_lines
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.sql_text import literal_list

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["below", "inspect_json_lines", "select_json_lines"]

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


def inspect_json_lines(connection: DuckDBPyConnection, location: Location, options: ReadOptions) -> Inspection:
    """Register a file of one JSON object a line.

    Raises:
        SourceError: if the file cannot be read so: empty, not UTF-8, half of its lines no objects.
        UsageError: for options that do not fit the file.
    """
    thing = f"source {location.path!r}"
    scan = scan_text(location, encoding=options.encoding)
    rules = CellRules(empty=False, null_values=options.null_values, timezone=options.timezone)
    reader: dict[str, Any] = {"path": location.path, "compression": scan.compression, **rules.to_reader()}

    structures, bad = _structures(connection, reader)
    records = sum(count for _, count in structures)
    bad += scan.bad_lines
    if bad:
        if not records:
            raise SourceError(
                thing,
                "no line of it is a JSON object",
                hint="one document over many lines, or a list of records, cannot be read yet",
            )
        judge_bad_records(thing, bad, records, _first_bad(location, scan.compression), options)

    root = _Node()
    for structure, _ in structures:
        # A record nested too deep for Python has no paths of its own here; it is read like any other.
        with contextlib.suppress(RecursionError):
            root.add(json.loads(structure))
    names: dict[str, str] = {}
    nodes: dict[str, _Node] = {}
    maps: list[str] = []
    for path, node in _leaves(root, ()):
        pointer = _pointer(path)
        name = ".".join(path)
        if name in names:  # a key with a dot in it, and the path that is spelt the same
            name = pointer
        names[name], nodes[name] = pointer, node
        if "object" in node.kinds:
            maps.append(name)
    findings = _types(connection, reader, names, nodes, rules)
    columns, notes = settle_types(thing, list(names), findings, options)
    reader["pointers"] = list(names.values())
    notes += [f"{name!r} has more than {_MANY_KEYS} keys: ask for them as {name}.key, as text" for name in maps]
    registration = Registration(location.source, "jsonl", Schema(columns), reader)
    return Inspection(registration, records, bad, tuple(notes))


def select_json_lines(registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered file's columns ``c{i}``. Only the paths that are asked for are looked up."""
    reader = registration.reader
    rules = CellRules.from_reader(reader)
    wanted = sorted(columns)
    if not wanted:
        return f"SELECT 1 AS one FROM ({_objects(reader)})"
    parts = [
        f"{typed(present(f'e[{k + 1}]', rules), registration.schema.columns[i].type, rules)} AS c{i}"
        for k, i in enumerate(wanted)
    ]
    pointers = literal_list(reader["pointers"][i] for i in wanted)
    found = f"SELECT JSON_EXTRACT_STRING(j, {pointers}) AS e FROM ({_objects(reader)})"
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


def _objects(reader: Mapping[str, Any]) -> str:
    """A SELECT with one column ``j``, for each line that is a JSON object."""
    lines = lines_sql(reader["path"], reader["compression"])
    # Valid JSON that starts with a brace is an object; TRY_CAST has looked at the rest of it.
    return (
        f"SELECT j FROM (SELECT TRY_CAST(line AS JSON) AS j FROM ({lines}) "
        "WHERE STARTS_WITH(LTRIM(line, ' \t'), '{')) WHERE j IS NOT NULL"
    )


def _structures(connection: DuckDBPyConnection, reader: Mapping[str, Any]) -> tuple[list[tuple[str, int]], int]:
    """The distinct structures of the objects with their numbers, the commonest first, and how many lines are
    none."""
    lines = lines_sql(reader["path"], reader["compression"])
    counted = connection.execute(
        "SELECT s, COUNT(*) FROM (SELECT CASE WHEN STARTS_WITH(LTRIM(line, ' \t'), '{') "
        f"THEN JSON_STRUCTURE(TRY_CAST(line AS JSON)) END AS s FROM ({lines}) "
        "WHERE LTRIM(line, ' \t') <> '') GROUP BY s"
    ).fetchall()
    bad = sum(count for structure, count in counted if structure is None)
    found = [(str(structure), int(count)) for structure, count in counted if structure is not None]
    # The order of the columns must not depend on which thread was first.
    return sorted(found, key=lambda pair: (-pair[1], pair[0])), bad


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
    reader: Mapping[str, Any],
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
    rows = f"SELECT JSON_EXTRACT_STRING(j, {pointers}) AS e FROM ({_objects(reader)})"
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


def _first_bad(location: Location, compression: str) -> str:
    """Where the first line that is no object is; for the owner."""
    for number, line in text_lines(location, compression):
        if line.strip():
            try:
                if isinstance(json.loads(line), dict):
                    continue
            except (ValueError, RecursionError):
                pass
            return f"line {number} is not a JSON object"
    return "a line is not UTF-8, or too long"
