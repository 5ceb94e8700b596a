"""The auditor's tables: one table and its neighbours, in a DuckDB file that lasts as long as the audit.

All have the columns of the registered source, by place and type, and one more, the number of the row. What a unit is,
and which rows a query keeps, is asked of the very expressions that answer queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.engines.duckdb import DuckDBEngine
from discreet.engines.duckdb_connection import connect
from discreet.expressions import Field
from discreet.plan import Plan, Unit
from discreet.public_tables import load_public
from discreet.query import Scalar
from discreet.relational import Compiler, key_tables, needed_columns
from discreet.relational_joins import join_name
from discreet.rendering import render
from discreet.schema import INTEGER, Kind, Registration
from discreet.sources import attach, relation
from discreet.sources.engine_types import value
from discreet.sources.sql_text import literal

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

__all__ = ["WHOLE", "Neighbour", "Tables"]

WHOLE = "whole"
_ROW = 1_000_000
"""The place of the row's number among the columns: behind every column that there can be."""
_NUMBER = f"c{_ROW}"


@dataclass(frozen=True)
class Neighbour:
    """A table without one unit.

    Attributes:
        table: its name.
        why: what the unit is that was taken out ("the heaviest unit").
        base: the table that it was taken out of.
    """

    table: str
    why: str
    base: str = WHOLE


class Tables:
    """Variants of one table.

    Args:
        plan: of the query that is audited.
        folder: this user's own, and of this audit alone.
    """

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self._path = folder / "tables.duckdb"
        self._columns = plan.registration.schema.columns

    def registration(self, table: str) -> Registration:
        """By which the engine reads one of the tables: as it reads any DuckDB file."""
        paths = [[f"c{place}"] for place in range(len(self._columns))]
        reader: dict[str, Any] = {"path": str(self._path), "pattern": None, "endings": None, "partitions": []}
        reader |= {"table": table, "paths": paths}
        return Registration(f"audit:{table}", "duckdb", self.plan.registration.schema, reader)

    def engine(self, table: str, threads: int | None = None) -> DuckDBEngine:
        """The engine that answers queries, over one of the tables."""
        return DuckDBEngine(self.registration(table), threads=threads)

    def write(self, columns: Sequence[int], rows: Sequence[Sequence[str | None]]) -> None:
        """Make the whole table.

        Args:
            columns: the places that are filled; the others are missing everywhere.
            rows: texts, which are cast; what does not fit is missing.
        """
        with self._writing() as connection:
            types = ", ".join(f"c{place} {self._engine_type(place)}" for place in range(len(self._columns)))
            connection.execute(f"CREATE OR REPLACE TABLE tables.{WHOLE} ({types}, {_NUMBER} BIGINT)")
            texts = [[row[i] for row in rows] for i in range(len(columns))]
            names = ", ".join([f"c{place}" for place in columns] + [_NUMBER])
            casts = [f"TRY_CAST(unnest(CAST(? AS VARCHAR[])) AS {self._engine_type(place)})" for place in columns]
            selected = ", ".join([*casts, "unnest(range(?))"])
            connection.execute(f"INSERT INTO tables.{WHOLE} ({names}) SELECT {selected}", [*texts, len(rows)])

    def copy(self, registration: Registration, columns: Sequence[int]) -> None:
        """Make the whole table from a source: a copy of what a query reads of it."""
        with self._writing() as connection:
            attach(connection, registration, columns=columns)
            connection.execute(f"CREATE TEMP TABLE taken AS {relation(registration, columns)}")
            places = range(len(self._columns))
            values = [f"c{i}" if i in columns else f"CAST(NULL AS {self._engine_type(i)}) AS c{i}" for i in places]
            numbered = f"ROW_NUMBER() OVER () AS {_NUMBER}"
            connection.execute(f"CREATE TABLE tables.{WHOLE} AS SELECT {', '.join(values)}, {numbered} FROM taken")

    def kept(self) -> dict[int, int]:
        """The rows of the whole table that the query keeps: by number, with a number for their group."""
        with self._surveyed() as connection:
            return dict(connection.execute("SELECT n, g FROM kept").fetchall())

    def neighbours(self, most: int) -> list[Neighbour]:
        """Make the tables without one unit each; the first reason for which a unit is chosen counts.

        Args:
            most: how many at the most.
        """
        with self._surveyed() as connection:
            chosen: dict[int, str] = {}
            for why, query in _CHOICES:
                for (unit,) in connection.execute(query.format(limit=self.plan.max_contributions)).fetchall():
                    chosen.setdefault(unit, why)
            for place in self._needed():
                for why, condition in self._holding(place):
                    found = connection.execute(
                        f"SELECT u FROM tables.{WHOLE} AS t JOIN units ON t.{_NUMBER} = n LEFT JOIN kept USING (n) "
                        f"WHERE {condition} ORDER BY g IS NULL, u LIMIT 1"
                    ).fetchall()
                    for (unit,) in found:
                        chosen.setdefault(unit, why)
            made = []
            for i, (unit, why) in enumerate([*chosen.items()][:most]):
                gone = f"SELECT n FROM units WHERE u = {unit}"
                name = f"without{i}"
                connection.execute(
                    f"CREATE OR REPLACE TABLE tables.{name} AS SELECT * FROM tables.{WHOLE} "
                    f"WHERE {_NUMBER} NOT IN ({gone})"
                )
                made.append(Neighbour(name, why))
            if made:
                # The first unit by itself, against no row at all.
                first = f"SELECT n FROM units WHERE u = {next(iter(chosen))}"
                rows = f"SELECT * FROM tables.{WHOLE} WHERE"
                connection.execute(f"CREATE OR REPLACE TABLE tables.alone AS {rows} {_NUMBER} IN ({first})")
                connection.execute(f"CREATE OR REPLACE TABLE tables.empty AS {rows} FALSE")
                made.append(Neighbour("empty", "the only unit of a table", "alone"))
            return made

    def shuffled(self, label: str) -> str:
        """Make the whole table in another order of rows."""
        with self._writing() as connection:
            order = f"md5({_NUMBER} || {literal(label)})"
            connection.execute(f"CREATE OR REPLACE TABLE tables.shuffled AS FROM tables.{WHOLE} ORDER BY {order}")
        return "shuffled"

    def rows(self) -> int:
        """How many rows the whole table has."""
        with self._writing() as connection:
            return int(connection.execute(f"SELECT COUNT(*) FROM tables.{WHOLE}").fetchall()[0][0])

    def _needed(self) -> list[int]:
        return [place for place in needed_columns(self.plan) if place < len(self._columns)]

    def _engine_type(self, place: int) -> str:
        type_ = self._columns[place].type
        return "VARCHAR" if type_.kind is Kind.OTHER else str(type_)

    @contextmanager
    def _writing(self) -> Iterator[DuckDBPyConnection]:
        with connect() as connection:
            connection.execute(f"ATTACH {literal(str(self._path))} AS tables")
            yield connection
            connection.execute("DETACH tables")

    @contextmanager
    def _surveyed(self) -> Iterator[DuckDBPyConnection]:
        """A connection with ``units(n, u)``, the unit of each row that has one, and ``kept(n, g)``, the rows that pass
        the filter and whose keys are listed, with their groups; all by number."""
        plan = self.plan
        with self._writing() as connection:
            load_public(connection, plan.joins)
            own = [f"{value((f'c{i}',), self._columns[i].type)} AS c{i}" for i in self._needed()]
            private = f"SELECT {', '.join([*own, _NUMBER])} FROM tables.{WHOLE}"
            joined = _joined(private, plan)
            connection.execute(f"CREATE TEMP TABLE source AS {joined}")
            for table in key_tables(plan):
                columns = ", ".join(f"k{i} {type_}" for i, type_ in enumerate(table.types))
                connection.execute(f"CREATE TEMP TABLE {table.name} (i BIGINT, {columns})")
                for i, row in enumerate(table.rows):
                    casts = ", ".join(f"CAST(? AS {type_})" for type_ in table.types)
                    connection.execute(f"INSERT INTO {table.name} SELECT {i}, {casts}", [_text(cell) for cell in row])
            by_row = replace(plan, unit=Unit("one row", (Field(_ROW, "row", INTEGER),)))
            rows = Compiler(by_row).kept(matched=True).sql(dialect="duckdb")
            groups = ", ".join(f"e{i}" for i in range(len(plan.keys))) or "1"
            connection.execute(
                f"CREATE TEMP TABLE kept AS SELECT u0 AS n, DENSE_RANK() OVER (ORDER BY {groups}) AS g FROM ({rows})"
            )
            if plan.unit.row_level:
                units = f"SELECT {_NUMBER} AS n, {_NUMBER} AS u FROM tables.{WHOLE}"
            else:
                parts = [render(e).sql(dialect="duckdb") for e in plan.unit.expressions]
                names = [f"u{i}" for i in range(len(parts))]
                selected = ", ".join(f"{part} AS {name}" for part, name in zip(parts, names, strict=True))
                there = " AND ".join(f"{name} IS NOT NULL" for name in names)
                units = (
                    f"SELECT n, DENSE_RANK() OVER (ORDER BY {', '.join(names)}) AS u "
                    f"FROM (SELECT {_NUMBER} AS n, {selected} FROM ({private})) WHERE {there}"
                )
            connection.execute(f"CREATE TEMP TABLE units AS {units}")
            yield connection

    def _holding(self, place: int) -> Iterator[tuple[str, str]]:
        """What a unit's row may hold in a column, in words and as a condition."""
        column, name = f"t.c{place}", self._columns[place].name
        kind = self._columns[place].type.kind
        yield f"a unit with a missing value in {name!r}", f"{column} IS NULL"
        if kind is Kind.FLOAT:
            yield f"a unit with a NaN in {name!r}", f"isnan({column})"
            yield f"a unit with an infinity in {name!r}", f"isinf({column}) AND {column} > 0"
            yield f"a unit with a negative infinity in {name!r}", f"isinf({column}) AND {column} < 0"
        if kind.is_number or kind.is_temporal:
            for end, which in (("largest", "MAX"), ("smallest", "MIN")):
                extreme = f"(SELECT {which}(c{place}) FROM tables.{WHOLE})"
                yield f"a unit with the {end} value in {name!r}", f"{column} = {extreme}"
        if kind is Kind.TEXT:
            yield f"a unit with an empty text in {name!r}", f"{column} = ''"
            yield f"a unit with a long text in {name!r}", f"length({column}) > 1000"
            yield f"a unit with quotes in {name!r}", f"contains({column}, '''')"
            yield f"a unit with letters beyond ASCII in {name!r}", f"strlen({column}) > length({column})"


# Units of the whole table: queries that give one or a few each, the most telling first.
_PER_UNIT = "SELECT u FROM units JOIN kept USING (n) GROUP BY u"
_CHOICES = (
    ("the heaviest unit", f"{_PER_UNIT} ORDER BY COUNT(*) DESC, u LIMIT 1"),
    (
        "the only member of a group",
        "SELECT MIN(u) FROM kept JOIN units USING (n) GROUP BY g HAVING COUNT(DISTINCT u) = 1 ORDER BY 1 LIMIT 2",
    ),
    ("a unit at its limit", f"{_PER_UNIT} HAVING COUNT(*) = {{limit}} ORDER BY u LIMIT 4"),
    ("a unit just above its limit", f"{_PER_UNIT} HAVING COUNT(*) = {{limit}} + 1 ORDER BY u LIMIT 1"),
    ("a unit of twice its limit", f"{_PER_UNIT} HAVING COUNT(*) = 2 * {{limit}} ORDER BY u LIMIT 2"),
    ("the unit in most groups", f"{_PER_UNIT} ORDER BY COUNT(DISTINCT g) DESC, COUNT(*), u LIMIT 1"),
    ("the last unit", "SELECT u FROM units ORDER BY n DESC LIMIT 1"),
    ("a random unit", "SELECT u FROM (SELECT DISTINCT u FROM units) ORDER BY md5(CAST(u AS VARCHAR)), u LIMIT 3"),
    ("a unit of which no row counts", "SELECT u FROM units GROUP BY u HAVING COUNT(*) = SUM(CAST(n NOT IN "
     "(SELECT n FROM kept) AS INTEGER)) ORDER BY u LIMIT 1"),
)  # fmt: skip


def _joined(private: str, plan: Plan) -> str:
    """As `relational_joins.joined_source`, with the number of the row kept."""
    rows = private
    for i, join in enumerate(plan.joins):
        keys = ", ".join(f"{render(own).sql(dialect='duckdb')} AS j{n}" for n, (own, _) in enumerate(join.on))
        last = join.first + len(join.table.registration.schema.columns)
        theirs = "".join(f", p.c{p - join.first} AS c{p}" for p in needed_columns(plan) if join.first <= p < last)
        on = " AND ".join(f"r.j{n} = p.c{place - join.first}" for n, (_, place) in enumerate(join.on))
        ours = f"r.* EXCLUDE ({', '.join(f'j{n}' for n in range(len(join.on)))})"
        kind = "LEFT" if join.left else "INNER"
        rows = (
            f"SELECT {ours}{theirs} FROM (SELECT *, {keys} FROM ({rows})) AS r {kind} JOIN {join_name(i)} AS p ON {on}"
        )
    return rows


def _text(cell: Scalar) -> str | None:
    return None if cell is None else str(cell)
