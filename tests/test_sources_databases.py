"""Tables of DuckDB and SQLite files: read-only, typed once, whatever a cell holds later."""

from __future__ import annotations

import datetime
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

import discreet
from discreet.engines.duckdb_connection import connect
from discreet.errors import SourceError, UsageError
from discreet.sources import attach, inspect_source, locate, register, relation
from source_rows import one, rows, types


def duck(path: Path, *statements: str) -> Path:
    connection = duckdb.connect(str(path))
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


def lite(path: Path, *statements: str, data: tuple[str, list[tuple[Any, ...]]] | None = None) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    if data:
        connection.executemany(*data)
    connection.commit()
    connection.close()
    return path


def test_a_table_of_a_duckdb_file(tmp_path: Path) -> None:
    path = duck(
        tmp_path / "a.duckdb",
        'CREATE TABLE visits(id INTEGER, "a ""b""" VARCHAR, d DECIMAL(10,2), r STRUCT(k INTEGER), l INTEGER[], '
        "f FLOAT, h HUGEINT, t TIMESTAMPTZ, e ENUM('x', 'y'), g INTEGER GENERATED ALWAYS AS (1 // id))",
        "INSERT INTO visits VALUES (1, 'x', 1.25, {'k': 2}, [1], 'nan', 170141183460469231731687303715884105727, "
        "'2024-01-01 00:00:00+00', 'y')",
        "CREATE VIEW v AS SELECT 1 // id FROM visits",
        "CREATE SCHEMA s",
        'CREATE TABLE s."other t"(x INTEGER)',
    )
    with pytest.raises(SourceError, match=r"say which table: there are visits, s\.other t\..*FILE::TABLE"):
        register(path)
    for name in ("v", "Visits", "none"):
        with pytest.raises(SourceError, match="there is no such table"):
            register(f"{path}::{name}")
    inspection = inspect_source(f"{path}::visits")
    registration = inspection.registration
    assert registration.source == f"file:{path}::visits"
    assert inspection.notes == ("column 'g' is computed in the database, and left out",)
    assert types(registration) == {
        "id": "BIGINT",
        'a "b"': "VARCHAR",
        "d": "DECIMAL(10,2)",
        "r.k": "BIGINT",
        "l": "OTHER",
        "f": "DOUBLE",
        "h": "HUGEINT",
        "t": "TIMESTAMPTZ",
        "e": "VARCHAR",
    }
    assert rows(registration)[0][3:7] == (2, None, None, 2**127 - 1)
    assert register(path, table="main.visits").schema == registration.schema
    assert rows(register(f"{path}::s.other t")) == []


def test_a_duckdb_table_that_changes_later(tmp_path: Path) -> None:
    path = duck(tmp_path / "a.duckdb", "CREATE TABLE t(a INTEGER, b INTEGER)", "INSERT INTO t VALUES (1, 2)")
    registration = register(f"{path}::t")
    duck(path, "DROP TABLE t", "CREATE TABLE t(a VARCHAR, c INTEGER)", "INSERT INTO t VALUES ('7', 1), ('x', 2)")
    assert rows(registration) == [(7, None), (None, None)]
    duck(path, "DROP TABLE t")
    with pytest.raises(SourceError, match="the registered table is gone") as caught:
        rows(registration)
    assert caught.value.__context__ is None  # the engine's own text may quote the data
    (tmp_path / "b.duckdb").write_bytes(b"no")
    with pytest.raises(SourceError, match="cannot be opened as a DuckDB file") as caught:
        register(f"{tmp_path / 'b.duckdb'}::t")
    assert caught.value.__context__ is None


def test_a_table_of_a_sqlite_file(tmp_path: Path) -> None:
    path = lite(
        tmp_path / "a.sqlite",
        'CREATE TABLE t(i INTEGER, r REAL, s TEXT, "q ""x""" TEXT, m, b BOOLEAN, day DATE, at DATETIME, raw BLOB, big, '
        "g INTEGER GENERATED ALWAYS AS (abs(i)))",
        "CREATE VIEW v AS SELECT abs(i) FROM t",
        data=(
            'INSERT INTO t(i, r, s, "q ""x""", m, b, day, at, raw, big) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)',
            [
                (1, 1.5, 'a\n"b",\x01\x02\x03\x04', "007", 1, 1, "2024-01-01", "2024-01-01 10:00:00", b"\x00", 2**62),
                (-5, 1e300, "", None, "x", 0, "1950-12-31", "2024-01-01 10:00:00.5", None, 1.5),
                (None, None, None, "é", None, None, None, None, None, None),
            ],
        ),
    )
    with pytest.raises(SourceError, match="say which table: there are t"):
        register(path)
    registration = register(f"{path}::t")
    assert types(registration) == {
        "i": "BIGINT",
        "r": "DOUBLE",
        "s": "VARCHAR",
        'q "x"': "VARCHAR",
        "m": "VARCHAR",
        "b": "BOOLEAN",
        "day": "DATE",
        "at": "TIMESTAMP",
        "raw": "OTHER",
        "big": "VARCHAR",  # ids never become floats
    }
    first = next(row for row in rows(registration) if row[0] == 1)
    assert first == (
        1,
        1.5,
        'a\n"b",\x01\x02\x03\x04',
        "007",
        "1",
        True,
        datetime.date(2024, 1, 1),
        datetime.datetime(2024, 1, 1, 10),
        None,
        str(2**62),
    )
    # Only what is asked for is copied.
    with connect() as connection:
        attach(connection, registration, columns=[3, 0])
        found = connection.execute(relation(registration, [3, 0])).fetchall()
        assert sorted(found, key=repr) == [(-5, None), (1, "007"), (None, "é")]
        attach(connection, registration, columns=[])
        assert len(connection.execute(relation(registration, [])).fetchall()) == 3


def test_any_cell_of_sqlite_is_read_or_missing(tmp_path: Path) -> None:
    path = lite(tmp_path / "a.db", "CREATE TABLE t(a)", "INSERT INTO t VALUES (1)")
    registration = register(f"{path}::t")
    assert types(registration) == {"a": "BIGINT"}
    nasty = [(None,), ("x",), (b"\xff",), (1e999,), (2**63 - 1,), (1.5,), ("\x00",), ("9" * 50,), ("é" * 3,)]
    lite(path, "INSERT INTO t VALUES (CAST(x'ff' AS TEXT))", data=("INSERT INTO t VALUES (?)", nasty))
    assert one(registration, "COUNT(*), COUNT({a}), MAX({a})") == (11, 3, 2**63 - 1)  # 1.5 rounds to 2
    lite(path, "DROP TABLE t", "CREATE TABLE t(b)", "INSERT INTO t VALUES (3)")
    assert rows(registration) == [(None,)]
    lite(path, "DROP TABLE t")
    with pytest.raises(SourceError, match="its table is gone"):
        rows(registration)


def test_files_that_are_no_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_text("no database at all, but long enough to be looked at")
    with pytest.raises(SourceError, match="cannot be read as a SQLite file"):
        register(f"{path}::t")
    lite(tmp_path / "b.db", "CREATE VIRTUAL TABLE t USING fts5(x)")
    with pytest.raises(SourceError, match="there is no such table"):
        register(f"{tmp_path / 'b.db'}::t")
    with pytest.raises(UsageError, match="table: is said twice"):
        locate(f"{path}::t", table="u")
    with pytest.raises(UsageError, match="table: is for DuckDB and SQLite"):
        locate(tmp_path / "b.db", format="csv", table="t")


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_both_answer_queries(tmp_path: Path, kind: str) -> None:
    statements = (
        "CREATE TABLE visits(who INTEGER, city TEXT)",
        "INSERT INTO visits VALUES (1, 'A'), (1, 'B'), (2, 'A')",
    )
    path = (duck if kind == "duckdb" else lite)(tmp_path / f"a.{kind}", *statements)
    data = discreet.open(
        f"{path}::visits", privacy_unit="who", max_contributions=5, budget=10**8, ledger=tmp_path / "ledger"
    )
    answer = data.query(
        "SELECT city, COUNT(*) AS n FROM visits GROUP BY city", epsilon=10**7, keys={"city": ["A", "B"]}
    )
    assert answer["n"] == (2, 1)
    again = discreet.open(path, table="visits", privacy_unit="who", max_contributions=5, ledger=tmp_path / "ledger")
    assert again.notice == ""
    again.close()
    data.close()
