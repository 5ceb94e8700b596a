"""Tables of PostgreSQL databases: where one is, what the catalogue says of its columns, and its rows as a SELECT.

No row is read when a table is registered: the catalogue knows the types. Views are left out, and tables with row
security: their expressions are the owner's own SQL, in which one record may raise.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from discreet.casts import MEANINGS
from discreet.engines.postgres_connection import OLDEST, connect, psycopg_or_hint
from discreet.errors import SourceError, UsageError
from discreet.expressions import Expression, Field, Operation
from discreet.quirks.postgres import POSTGRES
from discreet.quirks.postgres_numbers import double_of_numeric
from discreet.quirks.postgres_words import fitting, quoted, to_bigint, type_name
from discreet.row_rendering import render
from discreet.schema import (
    BOOLEAN,
    DATE,
    FLOAT,
    HUGE,
    INTEGER,
    OTHER,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    Registration,
    Schema,
    Type,
)
from discreet.sources.inference import Finding
from discreet.sources.inspection import Inspection, check_names, settle_types
from discreet.sources.location import Location
from discreet.sources.options import ReadOptions
from discreet.sources.sql_text import identifier

if TYPE_CHECKING:
    from psycopg import Connection

__all__ = ["check_table", "identify_postgres", "inspect_postgres", "select_postgres"]

_SCHEME = re.compile(r"postgres(?:ql)?://", re.IGNORECASE)
_LOCAL = ("", "localhost", "127.0.0.1", "::1")


def identify_postgres(text: str, table: str | None) -> Location:
    """Identity of a table: host, port, database, schema and name. Connects to nothing.

    Whoever asks, with whatever password, the table and its budget are the same; so is this host under each of its
    names. (A host with two names in the network has two budgets: the owner's policy should name one.)

    Args:
        text: ``postgresql://user@host:port/database``, also with ``::schema.table`` behind it.
        table: the table's name, with its schema unless that is ``public``.

    Raises:
        SourceError: psycopg is not installed.
        UsageError: the address cannot be understood. It is not shown: it may hold a password.
    """
    psycopg_or_hint()
    import psycopg
    from psycopg.conninfo import conninfo_to_dict
    from psycopg.pq import Conninfo

    text = _SCHEME.sub("postgresql://", text, count=1)
    address, parted, after = text.rpartition("::")
    if parted and "]" not in after and "@" not in after and "/" not in after:  # else it is part of an IPv6 address
        if table is not None and table != after:
            raise UsageError("table", "is said twice, differently", f"{after} and {table}")
        text, table = address, after
    given: Mapping[str, Any] | None = None
    with suppress(psycopg.Error):
        given = conninfo_to_dict(text)
    if given is None or "service" in given:
        raise UsageError(
            "source", "is not an address that PostgreSQL's client understands", hint="postgresql://user@host/database"
        )
    usual = {option.keyword.decode(): option.val for option in Conninfo.get_defaults()}

    def part(name: str) -> str:
        said = given.get(name) if given is not None else None
        if said:
            return str(said)
        known = usual.get(name)
        return known.decode() if known else ""

    host = (part("host") or part("hostaddr")).lower()
    if host in _LOCAL or host.startswith(("/", "@")):  # a socket is this host too
        host = "localhost"
    database = part("dbname") or part("user")
    if table is not None and not all(table.split(".")):
        raise UsageError("table", "must be a table's name, with or without its schema", table, "public.visits")
    full = None if table is None else table if "." in table else f"public.{table}"
    identity = f"postgresql://{quote(host, safe='')}:{part('port') or '5432'}/{quote(database, safe='')}"
    identity += "" if full is None else f"/{quote(full, safe='.')}"
    name = "data" if full is None else full.split(".", 1)[1]
    return Location(identity, "", "postgres", name, table=full, address=text)


# --- the catalogue ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Column:
    """A column as the catalogue has it: its type's name (of a domain, that which it is made of) and size."""

    name: str
    engine: str
    modifier: int
    category: str

    @property
    def type(self) -> Type:
        """Ours; OTHER also for numeric without digits, which may hold anything."""
        if self.engine == "numeric":
            return self._decimal()
        if self.category == "E":
            return TEXT
        return _TYPES.get(self.engine, OTHER)

    def _decimal(self) -> Type:
        if self.modifier < 4:
            return OTHER
        precision, scale = (self.modifier - 4) >> 16 & 0xFFFF, ((self.modifier - 4 & 0x7FF) ^ 1024) - 1024
        if scale < 0:
            precision, scale = precision - scale, 0
        precision = max(precision, scale)
        return Type(Kind.DECIMAL, precision=precision, scale=scale) if precision <= 38 else OTHER


_TYPES = {
    "bool": BOOLEAN,
    **dict.fromkeys(("int2", "int4", "int8"), INTEGER),
    **dict.fromkeys(("float4", "float8"), FLOAT),
    **dict.fromkeys(("text", "varchar", "bpchar", "name", "citext", "uuid"), TEXT),
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
}

_COLUMNS = """
WITH RECURSIVE typed AS (
  SELECT a.attnum, a.attname, a.atttypid AS type, a.atttypmod AS modifier
  FROM pg_attribute AS a
  WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated <> 'v'
  UNION ALL
  SELECT d.attnum, d.attname, t.typbasetype, t.typtypmod
  FROM typed AS d JOIN pg_type AS t ON t.oid = d.type
  WHERE t.typtype = 'd'
)
SELECT d.attname, t.typname, d.modifier, t.typcategory
FROM typed AS d JOIN pg_type AS t ON t.oid = d.type
WHERE t.typtype <> 'd'
ORDER BY d.attnum
"""

_TABLES = """
SELECT n.nspname || '.' || c.relname
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
  AND n.nspname NOT LIKE 'pg\\_toast%' AND has_table_privilege(c.oid, 'SELECT')
ORDER BY n.nspname <> 'public', 1 LIMIT 21
"""

_TABLE = """
SELECT c.oid, c.relkind::text, has_table_privilege(c.oid, 'SELECT'), row_security_active(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s
"""


def _columns(connection: Connection, thing: str, table: str) -> list[_Column]:
    """The columns of a table that may be read.

    Raises:
        SourceError: it is gone, is no table, or may not be read; the server is too old, or its texts are not Unicode.
    """
    version, encoding = _one(
        connection, "SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')"
    )
    if version < OLDEST * 10_000:
        raise SourceError(thing, f"needs PostgreSQL {OLDEST} or newer")
    if encoding != "UTF8":
        raise SourceError(thing, "its database must hold texts as UTF8", encoding)
    found = connection.execute(_TABLE, table.split(".", 1)).fetchone()
    if found is None:
        raise SourceError(thing, "there is no such table", table, hint=_hint(connection))
    oid, kind, readable, row_security = found
    if kind not in ("r", "p", "m"):
        raise SourceError(
            thing, "is a view or a foreign table, in whose expressions one row could fail", table, "name its table"
        )
    if not readable:
        raise SourceError(thing, "may not be read by this user", table, "the owner grants SELECT on it")
    if row_security:
        raise SourceError(
            thing, "has row security, whose policies choose rows by expressions of their own", table, "use another role"
        )
    return [_Column(*row) for row in connection.execute(_COLUMNS, [oid]).fetchall()]


def _hint(connection: Connection) -> str:
    tables = [str(name).removeprefix("public.") for (name,) in connection.execute(_TABLES).fetchall()]
    more = ", ..." if len(tables) > 20 else ""
    return f"there are {', '.join(tables[:20])}{more}" if tables else "there are none that this user may read"


def _one(connection: Connection, text: str) -> tuple[Any, ...]:
    found = connection.execute(text.encode()).fetchone()
    if found is None:
        raise AssertionError
    return found


# --- registering and reading ------------------------------------------------------------------------------------------


def inspect_postgres(location: Location, options: ReadOptions) -> Inspection:
    """Register a table: the catalogue's names and types. No row is read.

    Raises:
        SourceError: no connection, no such table, or one that may not be read.
        UsageError: a declared type of what is not there, or that cannot be made of what is.
    """
    if location.table is None:
        with connect(location.address, location.thing) as connection:
            hint = _hint(connection)
        raise SourceError(
            location.thing, "is a database; say which table", hint=f"--table TABLE (Python: table=); {hint}"
        )
    with connect(location.address, location.thing) as connection:
        found = _columns(connection, location.thing, location.table)
    check_names(location.thing, [column.name for column in found], fix="rename one of them")
    by_name = {column.name: column for column in found}
    paths = [[column.name] for column in found]
    declared = [name for name in options.types if name not in by_name]
    inside = {name: path for name in declared if (path := _json_path(name, by_name)) is not None}
    paths += inside.values()
    shown = [column.name for column in found] + list(inside)
    findings = [Finding(column.type, 0) for column in found] + [Finding(options.types[name], 0) for name in inside]
    columns, notes = settle_types(location.thing, shown, findings, options)
    for column, path in zip(columns, paths, strict=True):
        native = by_name[path[0]]
        if len(path) == 1 and column.type != native.type and _converted(native, column.type) is None:
            rule = f"is {native.engine} in the database, which cannot be read as {column.type}"
            raise UsageError(f"type of {column.name!r}", rule)
        if native.type == OTHER and len(path) == 1 and native.engine in ("numeric", "jsonb"):
            example = f"--types {column.name}=DECIMAL(18,2)" if native.engine == "numeric" else ""
            example = example or f"--types {column.name}.user.id=VARCHAR names a path in it"
            notes.append(
                f"column {column.name!r} is {native.engine}, and must be given a type to be asked about: {example}"
            )
    reader = {"table": location.table, "paths": paths}
    return Inspection(Registration(location.source, "postgres", Schema(columns), reader), 0, 0, tuple(notes))


def check_table(connection: Connection, registration: Registration) -> None:
    """See that a registered table is there and may be read. No row is read.

    Raises:
        SourceError: it is not.
    """
    _columns(connection, registration.source, registration.reader["table"])


def _json_path(name: str, columns: Mapping[str, _Column]) -> list[str] | None:
    """A column and a path in it: ``payload.user.id``."""
    parts = name.split(".")
    for i in range(1, len(parts)):
        column = columns.get(".".join(parts[:i]))
        if column is not None and column.engine == "jsonb" and all(parts):
            return [column.name, *parts[i:]]
    return None


def select_postgres(connection: Connection, registration: Registration, columns: Collection[int]) -> str:
    """The SELECT of a registered table's columns ``c{i}``, with their types. Total: what does not fit is NULL.

    The catalogue is read again: a column that is gone, or that became what its type cannot be made of, is missing.

    Raises:
        SourceError: the table is gone, or may not be read any more.
    """
    reader = registration.reader
    there = {column.name: column for column in _columns(connection, registration.source, reader["table"])}
    chosen = []
    for i in sorted(columns):
        type_, path = registration.schema.columns[i].type, reader["paths"][i]
        column = there.get(path[0])
        value = None
        if column is not None and len(path) == 1:
            value = _converted(column, type_)
        elif column is not None and column.engine == "jsonb":
            parts = ", ".join(quoted(part) for part in path[1:])
            text = f'(({identifier(column.name)} #>> ARRAY[{parts}]) COLLATE "C")'
            value = _cast(text, TEXT, type_)
        chosen.append(f"{value or f'CAST(NULL AS {type_name(type_)})'} AS c{i}")
    schema, table = reader["table"].split(".", 1)
    return f"SELECT {', '.join(chosen) or '1 AS one'} FROM {identifier(schema)}.{identifier(table)}"


def _converted(column: _Column, type_: Type) -> str | None:
    """A column's value as a value of ours; None if its type cannot be made one."""
    name = identifier(column.name)
    if column.engine == "numeric" and column.type == OTHER:
        return _of_numeric(name, type_)
    native = column.type
    match native.kind:
        case Kind.OTHER:
            return None
        case Kind.INTEGER:
            value = f"CAST({name} AS bigint)"
        case Kind.FLOAT:
            value = f"CAST({name} AS double precision)"
        case Kind.DECIMAL:
            value = fitting(name, native)
        case Kind.TEXT:
            value = f'CAST({name} AS text) COLLATE "C"'
        case Kind.DATE:
            value = f"CASE WHEN {name} BETWEEN date '0001-01-01' AND date '9999-12-31' THEN {name} END"
        case Kind.TIMESTAMP | Kind.TIMESTAMPTZ:
            zone = "+00" if native.kind is Kind.TIMESTAMPTZ else ""
            ends = [f"CAST('{end}{zone}' AS {type_name(native)})" for end in _ENDS]
            value = f"CASE WHEN {name} BETWEEN {ends[0]} AND {ends[1]} THEN {name} END"
        case _:
            value = name
    return _cast(f"({value})", native, type_)


_ENDS = ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999")


def _cast(value: str, source: Type, target: Type) -> str | None:
    """A value of one type of ours as another one, by the rules of CAST; None if there is no such rule."""
    if source == target:
        return value
    if (source.kind, target.kind) not in MEANINGS:
        return None
    inner: Expression = Field(0, "x", source)
    name = "huge" if target == HUGE else str(target.kind)
    said = POSTGRES.sql(render(Operation(f"to_{name}", (inner,), target), POSTGRES))
    # The rule names its operand c0; it is computed once.
    return f"(SELECT {said} FROM (SELECT {value} AS c0 OFFSET 0) AS cast_value)"


def _of_numeric(name: str, type_: Type) -> str | None:
    """Of numeric without digits: NaN and infinities too."""
    match type_.kind:
        case Kind.DECIMAL:
            return fitting(name, type_)
        case Kind.INTEGER if type_ == HUGE:
            low, high = -(2**127), 2**127 - 1
            return f"(CASE WHEN round({name}) BETWEEN {low} AND {high} THEN round({name}) END)"
        case Kind.INTEGER:
            return to_bigint(f"round({name})")
        case Kind.FLOAT:
            return double_of_numeric(name)
        case _:
            return None
