"""No record that is appended makes a relation raise, changes its types, or changes how another record is read."""

from __future__ import annotations

import datetime
import gzip
import json
import math
import stat
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.engines.duckdb_connection import connect
from discreet.errors import SourceError, UsageError
from discreet.schema import Registration
from discreet.sources import attach, describe, extended, inspect_source, register, relation
from discreet.sources.dialect import Dialect
from discreet.sources.lines import LONGEST_LINE

QUICK = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


def rows(connection: duckdb.DuckDBPyConnection, registration: Registration) -> list[tuple[Any, ...]]:
    attach(connection, registration)
    return sorted(connection.execute(relation(registration)).fetchall(), key=repr)


HEADER = b"i,h,d,b,day,t,z,s\n"
GOOD = (
    b'1,99999999999999999999,0.5,true,2024-01-01,2024-01-01 10:00:00,2024-01-01T10:00:00+02:00,"x, ""y"""\n'
    b"-2,1,-.5,FALSE,1950-12-31,2024-01-01T10:00,2024-01-01 10:00:00.5Z,plain\n"
)
TYPES = ["BIGINT", "HUGEINT", "DOUBLE", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE", "VARCHAR"]
NASTY = st.sampled_from(
    [
        "1e999",
        "nan",
        "inf",
        "-inf",
        "infinity",
        "-infinity",
        "epoch",
        "0x1F",
        "1_000",
        "9223372036854775808",
        "-170141183460469231731687303715884105728",
        "1e-400",
        "true",
        "yes",
        "NULL",
        "\\N",
        "2024-02-30",
        "9999-12-31",
        "10000-01-01",
        "294247-01-10",
        "0000-01-01",
        "2024-01-01T24:00:00",
        "2024-01-01(BC)",
        '"',
        '""',
        '"a',
        '"a"b',
        'a"b',
        "'",
        "\\",
        "\x00",
        "\x01\x02\x03\x04",
        "\r",
        "\t",
        "\ufeff",
        "年",
        "\ud7ff",
        "1,5",
        "007",
        "#c",
        "--",
        "/*",
        "{}",
        "[]",
    ]
)
CELL = st.one_of(NASTY, st.text(max_size=8), st.integers().map(str), st.floats().map(str), st.datetimes().map(str))
RAW_LINE = st.one_of(
    st.lists(CELL, min_size=0, max_size=10).map(lambda cells: ",".join(cells).encode("utf-8", "surrogatepass")),
    st.binary(max_size=40),
).map(lambda line: line.replace(b"\n", b" "))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(threads=2) as made:
        yield made


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Registration]:
    path = tmp_path_factory.mktemp("total") / "a.csv"
    path.write_bytes(HEADER + GOOD)
    return path, register(path)


@QUICK
@given(st.lists(RAW_LINE, max_size=6), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_appended_lines_of_a_csv_file(
    csv_file: tuple[Path, Registration],
    connection: duckdb.DuckDBPyConnection,
    lines: list[bytes],
    newline: bytes,
) -> None:
    path, registration = csv_file
    path.write_bytes(HEADER + GOOD)
    expected = rows(connection, registration)
    path.write_bytes(HEADER + b"".join(line + newline for line in lines) + GOOD)
    found = rows(connection, registration)
    assert [str(kind) for kind in connection.sql(relation(registration)).types] == TYPES
    for row in expected:
        assert row in found
    # Each line alone gives what it gives among the others.
    assert len(found) == len(expected) + sum(_records(line) for line in lines)


def _records(line: bytes) -> int:
    dialect = Dialect(",", '"', '"', False)
    total = 0
    for part in line.split(b"\r"):
        try:
            text = part.decode()
        except UnicodeDecodeError:
            continue
        if text and text != HEADER.decode().strip():
            text = text.split("\x01\x02\x03\x04")[0]
            fields = dialect.fields(text)
            total += fields is not None and len(fields) == 8
    return total


JSON_VALUE = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=6),
        NASTY,
        st.just("2024-01-01T00:00:00Z"),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
JSON_LINE = st.one_of(
    st.dictionaries(st.sampled_from(["i", "d", "s", "t", "n", "b", "l", "m"]) | st.text(max_size=3), JSON_VALUE).map(
        lambda value: json.dumps(value).encode()
    ),
    JSON_VALUE.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=30),
).map(lambda line: line.replace(b"\n", b" "))
JSON_GOOD = (
    b'{"i":1,"d":0.5,"s":"x","t":"2024-01-01T00:00:00Z","n":{"a/b":{"c~d":"deep"}},"b":true,"l":[1,2]}\n'
    b'{"i":-2,"d":1,"s":"","t":"2024-01-01 00:00:00+09","n":null,"b":false}\n'
)


@pytest.fixture(scope="module")
def json_file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Registration]:
    path = tmp_path_factory.mktemp("total") / "a.jsonl"
    path.write_bytes(JSON_GOOD)
    return path, register(path)


@QUICK
@given(st.lists(JSON_LINE, max_size=6))
def test_appended_lines_of_a_json_file(
    json_file: tuple[Path, Registration], connection: duckdb.DuckDBPyConnection, lines: list[bytes]
) -> None:
    path, registration = json_file
    assert {column.name: str(column.type) for column in registration.schema.columns} == {
        "i": "BIGINT",
        "d": "DOUBLE",
        "s": "VARCHAR",
        "t": "TIMESTAMPTZ",
        "n.a/b.c~d": "VARCHAR",
        "b": "BOOLEAN",
        "l": "OTHER",
    }
    path.write_bytes(JSON_GOOD)
    expected = rows(connection, registration)
    path.write_bytes(b"".join(line + b"\n" for line in lines) + JSON_GOOD)
    found = rows(connection, registration)
    for row in expected:
        assert row in found


def test_very_long_and_very_deep_records_are_dropped_or_read_alone(tmp_path: Path) -> None:
    deep = b'{"i":' + b"[" * 50_000 + b"]" * 50_000 + b"}\n"
    long = b'{"s":"' + b"x" * (LONGEST_LINE + 10) + b'"}\n'
    huge = b'{"s":"' + b"x" * 40_000_000 + b'"}\n'
    path = tmp_path / "a.jsonl"
    path.write_bytes(JSON_GOOD)
    registration = register(path)
    path.write_bytes(deep + long + JSON_GOOD + huge + JSON_GOOD)
    with connect() as connection:
        attach(connection, registration)
        counted = connection.execute(f"SELECT COUNT(*), COUNT(c0) FROM ({relation(registration)})").fetchone()
    assert counted == (5, 4)  # the deep one is a record; its list is no integer
    assert inspect_source(path).bad_records == 2


def test_cells_that_have_no_place_in_arithmetic_are_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(HEADER + GOOD)
    registration = register(path)
    path.write_bytes(HEADER + b"x,y,nan,maybe,infinity,-infinity,10000-01-01 00:00:00Z,\n")
    with connect() as connection:
        assert rows(connection, registration) == [(None,) * 8]
        path.write_bytes(HEADER + b"1,2,-inf,true,9999-12-31,0001-01-01 00:00:00,2024-01-01 00:00,s\n")
        (row,) = rows(connection, registration)
    assert row[2] == float("-inf")
    assert row[4] == datetime.date(9999, 12, 31)
    assert row[6] == datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def test_ids_never_become_floats(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    long = "1" * 40
    path.write_text(f"n,zeros,long,hex,big,phone\n1,007,{long},1e5,12345678901234567890,+49123\n2,08,1,2e7,1,+1\n")
    types = {column.name: str(column.type) for column in register(path).schema.columns}
    assert types == {
        "n": "BIGINT",
        "zeros": "VARCHAR",
        "long": "VARCHAR",
        "hex": "VARCHAR",
        "big": "HUGEINT",
        "phone": "VARCHAR",
    }


def test_the_type_comes_from_every_row(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("n,f\n" + "1,2\n" * 50_000 + "2,2.5\n" + "x9,1\n")
    types = [str(column.type) for column in register(path).schema.columns]
    assert types == ["VARCHAR", "DOUBLE"]
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"n":1,"t":"2024-01-01"}\n' * 50_000 + '{"n":1.5,"t":"soon"}\n')
    assert [str(column.type) for column in register(lines).schema.columns] == ["DOUBLE", "VARCHAR"]


def test_line_breaks_inside_quotes_are_refused(tmp_path: Path) -> None:
    good = 'id,t\n1,"a\nb"\n2,x\n3,"q ""w"" e\r\nf"\n'
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(good.encode()))
    with pytest.raises(SourceError, match="line breaks inside quotes") as caught:
        register(path)
    assert "Parquet or JSON lines" in caught.value.hint


def test_a_quote_that_is_never_closed_swallows_nobody(tmp_path: Path) -> None:
    """Registered while every record is a line, the file is read line by line whatever comes into it."""
    path = tmp_path / "a.csv"
    lines = ["id,t", '1,"a"', "2,x", '3,"q ""w"" e"', '4,"z"']
    path.write_text("\n".join(lines) + "\n")
    registration = register(path)
    with connect() as connection:
        whole = rows(connection, registration)
    assert len(whole) == 4
    for place in range(1, len(lines) + 1):
        for damaged in ('9,"open', '"', '9,"two\nlines"'):
            path.write_text("\n".join([*lines[:place], damaged, *lines[place:]]) + "\n")
            with connect() as connection:
                assert rows(connection, registration) == whole


def test_other_dialects(tmp_path: Path) -> None:
    cases: list[tuple[str, str, dict[str, Any], list[tuple[Any, ...]]]] = [
        ("a.tsv", 'a\tb\n"x\t1\ny"\t2\n', {}, [('"x', 1), ('y"', 2)]),
        ("b.csv", "a;b\n'x;y';1\n'it''s';2\n", {"quote": "'"}, [("it's", 2), ("x;y", 1)]),
        ("c.csv", 'a,b\n"x\\"y",1\n"q\\\\",2\n', {"escape": "\\"}, [("q\\", 2), ('x"y', 1)]),
        ("d.csv", "a, b, c\n1, x, 2\n3, y, 4\n", {}, [(1, "x", 2), (3, "y", 4)]),
        ("e.csv", 'a, b\n1, "x, y"\n', {"header": True}, [(1, "x, y")]),
        ("f.csv", "﻿a|b\r\n1|2\r\n3|4\r\n", {}, [(1, 2), (3, 4)]),
        ("g.csv", "n\n1\n\n2\n", {}, [(1,), (2,)]),
        ("h.csv", 'a,b\n1,5" disk\n2,ok\n', {}, [(1, '5" disk'), (2, "ok")]),
    ]
    for name, text, options, expected in cases:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        with connect() as connection:
            assert rows(connection, register(path, **options)) == expected, name


def test_paths_that_look_like_patterns_are_one_file(tmp_path: Path) -> None:
    for name in ("a*b.csv", "a[1]b.csv", "a?b.csv", "it's.csv", "x=1.csv", "a1b.csv"):
        (tmp_path / name).write_text(f"n,t\n1,{name}\n")
    for name in ("a*b.csv", "a[1]b.csv", "a?b.csv", "it's.csv", "x=1.csv"):
        with connect() as connection:
            assert rows(connection, register(tmp_path / name)) == [(1, name)]


def test_keys_of_every_kind_and_paths_below_lists(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    record = {"": 1, "a/b": 2, "c~d": 3, "e.f": 4, "e": {"f": 5}, "0": 6, "q\"'": 7, "l": [{"n": "x"}, "y"]}
    path.write_text(json.dumps(record) + "\n")
    registration = register(path)
    with connect() as connection:
        (row,) = rows(connection, registration)
        assert sorted(value for value in row if value is not None) == [1, 2, 3, 4, 5, 6, 7]
        for name, expected in (("l[0].n", "x"), ("l[1]", "y"), ("l[2]", None)):
            wider = extended(registration, name)
            assert wider is not None
            attach(connection, wider)
            (row,) = connection.execute(relation(wider, [len(wider.schema.columns) - 1])).fetchall()
            assert row == (expected,)
    assert extended(registration, "q.x") is None
    assert extended(registration, "l.n") is not None


def test_parquet_types_and_nan(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    with connect() as connection:
        connection.execute(
            "COPY (SELECT 1::UTINYINT a, 18446744073709551615::UBIGINT b, 'nan'::FLOAT f, 1.5::DECIMAL(10,2) d, "
            "'x' s, {'p': 1, 'q': {'r': 'z'}} st, [1] l, 'infinity'::DATE dt, '2024-01-01'::TIMESTAMP_NS tn, "
            f"TIMESTAMPTZ '2024-01-01 00:00:00+00' tz, 'ab'::BLOB bl) TO '{path}'"
        )
        registration = register(path)
        assert {column.name: str(column.type) for column in registration.schema.columns} == {
            "a": "BIGINT",
            "b": "HUGEINT",
            "f": "DOUBLE",
            "d": "DECIMAL(10,2)",
            "s": "VARCHAR",
            "st.p": "BIGINT",
            "st.q.r": "VARCHAR",
            "l": "OTHER",
            "dt": "DATE",
            "tn": "TIMESTAMP",
            "tz": "TIMESTAMPTZ",
            "bl": "OTHER",
        }
        (row,) = rows(connection, registration)
    assert (row[:2], row[3:7]) == ((1, 2**64 - 1), (Decimal("1.50"), "x", 1, "z"))
    assert math.isnan(row[2])  # it stays until an expression looks at it (`row_rendering`)
    assert row[8] is None
    assert row[9] == datetime.datetime(2024, 1, 1)


def test_parquet_refusals_and_bad_text(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    bytes_ = pa.array([b"ok", b"\xff\xfe", b"z"], pa.binary())
    text = pa.Array.from_buffers(pa.string(), 3, bytes_.buffers())
    pq.write_table(pa.table({"s": text, "i": [1, 2, 3]}), tmp_path / "a.parquet")
    registration = register(tmp_path / "a.parquet")
    with connect() as connection:
        found = rows(connection, registration)
    assert len(found) == 3
    assert ("ok", 1) in found
    pq.write_table(pa.table({"s": [1], "S": [2]}), tmp_path / "b.parquet")
    with pytest.raises(SourceError, match="'s' and 'S' differ in case alone"):
        register(tmp_path / "b.parquet")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(SourceError, match="not a Parquet file"):
        register(tmp_path / "c.parquet")
    with pytest.raises(UsageError, match="delimiter"):
        register(tmp_path / "a.parquet", delimiter=",")


def test_a_registration_survives_json_and_sqlglot(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + GOOD)
    (tmp_path / "a.jsonl").write_bytes(JSON_GOOD)
    for name in ("a.csv", "a.jsonl"):
        registration = register(tmp_path / name)
        again = Registration.from_json(json.loads(json.dumps(registration.to_json())))
        assert again == registration
        with connect() as connection:
            expected = rows(connection, registration)
            text = sqlglot.parse_one(relation(registration), dialect="duckdb").sql(dialect="duckdb")
            assert sorted(connection.execute(text).fetchall(), key=repr) == expected
        assert describe(registration)[0].startswith(f"file:{tmp_path}/{name}: ")


def test_only_named_columns_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(HEADER + GOOD)
    (tmp_path / "a.jsonl").write_bytes(JSON_GOOD)
    for name in ("a.csv", "a.jsonl"):
        registration = register(tmp_path / name)
        with connect() as connection:
            attach(connection, registration)
            for columns in ([2, 0], []):
                found = connection.sql(relation(registration, columns))
                assert found.columns == [f"c{i}" for i in sorted(columns)] or not columns
                assert len(found.fetchall()) == 2


def test_the_connection_leaves_nothing_and_reaches_nowhere() -> None:
    with connect() as connection:
        (spill,) = connection.execute("SELECT CURRENT_SETTING('temp_directory')").fetchone() or ("",)
        assert stat.S_IMODE(Path(spill).stat().st_mode) == 0o700
        assert connection.execute("SELECT CURRENT_SETTING('TimeZone')").fetchone() == ("UTC",)
        for name in ("autoinstall_known_extensions", "autoload_known_extensions", "enable_progress_bar"):
            assert connection.execute(f"SELECT CURRENT_SETTING('{name}')").fetchone() == (False,)
        private = [1, 2, 3]  # a Python variable that SQL must not find
        with pytest.raises(duckdb.Error):
            connection.execute("SELECT * FROM private")
        assert private
    assert not Path(spill).exists()


LOGS = {
    "combined": b'1.1.1.1 - - [17/May/2015:10:05:03 +0200] "GET / HTTP/1.1" 200 5 "-" "agent"\n',
    "common": b'1.1.1.1 - - [17/May/2015:10:05:03 +0200] "GET / HTTP/1.1" 200 5\n',
    "syslog": b"<34>Oct 11 22:14:15 host su[1]: text\n",
    "rfc5424": b'<34>1 2003-10-11T22:14:15.003Z host su - ID47 [a k="v"] text\n',
    "auditd": b'type=SYSCALL msg=audit(1364481363.243:24287): uid=1 exe="/bin/cat" res=success\n',
}
SCRAPS = st.lists(
    st.sampled_from(
        rb"""<999>|1 |Oct 99 25:61:61 |2024-02-30T99:00:00Z |9999999-01-01T00:00:00Z|[|]|"|\|- |a=b |uid=x|uid=9e99 |
        msg=audit(|999999999999.999999999|:1)|
        type=A |99/Foo/99999:99:99:99 +9999| 200 |99999999999999999999|=|'|""".split(b"|")
    )
    | st.binary(max_size=6),
    max_size=12,
).map(lambda parts: b"".join(parts).replace(b"\n", b" ").replace(b"\r", b" "))


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Registration]]:
    found = {}
    for form, line in LOGS.items():
        path = tmp_path_factory.mktemp("log") / "a.log"
        path.write_bytes(line)
        found[form] = (path, register(path, log_format=form, **({"year": 2024} if form == "syslog" else {})))
    return found


@pytest.mark.parametrize("form", list(LOGS))
@QUICK
@given(st.lists(SCRAPS, max_size=5), st.integers(0, 60), SCRAPS)
def test_appended_lines_of_a_log(
    logs: dict[str, tuple[Path, Registration]],
    connection: duckdb.DuckDBPyConnection,
    form: str,
    scraps: list[bytes],
    at: int,
    inside: bytes,
) -> None:
    (path, registration), good = logs[form], LOGS[form]
    path.write_bytes(good)
    (expected,) = rows(connection, registration)
    # Whole lines of scraps, and a good line with scraps inside.
    broken = good[:at] + inside + good[at:]
    path.write_bytes(b"".join(scrap + b"\n" for scrap in scraps) + broken + good)
    found = rows(connection, registration)
    assert expected in found
    assert len(found) <= len(scraps) + 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Registration]:
    found = tmp_path_factory.mktemp("many")
    (found / "a.csv").write_bytes(HEADER + GOOD)
    return found, register(found)


@QUICK
@given(st.lists(RAW_LINE, max_size=4), st.lists(st.sampled_from(["i", "d", "s", "new", "i", '"x']), max_size=4))
def test_files_added_to_a_folder_change_no_other(
    folder: tuple[Path, Registration], connection: duckdb.DuckDBPyConnection, lines: list[bytes], header: list[str]
) -> None:
    path, registration = folder
    (path / "b.csv").write_bytes(b"")
    expected = rows(connection, registration)
    (path / "b.csv").write_bytes(b"\n".join([",".join(header).encode(), *lines]))
    found = rows(connection, registration)
    assert [str(kind) for kind in connection.sql(relation(registration)).types] == TYPES
    for row in expected:
        assert row in found
