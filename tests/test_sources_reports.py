"""The field's reports on reading, types, nulls, names and empty data (FIELD_REPORTS.md), one test each or more."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from discreet.engines.duckdb_connection import connect
from discreet.errors import DiscreetError, SourceError, UsageError
from discreet.schema import Registration
from discreet.sources import attach, describe, extended, inspect_source, locate, register, relation


def rows(registration: Registration, columns: list[int] | None = None) -> list[tuple[Any, ...]]:
    with connect() as connection:
        attach(connection, registration)
        return connection.execute(relation(registration, columns)).fetchall()


def one(registration: Registration, aggregate: str) -> Any:
    """An aggregate over the relation, columns by their c{i} names."""
    with connect() as connection:
        attach(connection, registration)
        return connection.execute(f"SELECT {aggregate} FROM ({relation(registration)})").fetchone()


def column_types(registration: Registration) -> dict[str, str]:
    return {column.name: str(column.type) for column in registration.schema.columns}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to(name: str, data: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return to


def test_r08_no_rows_have_the_same_columns_and_types(write: Any) -> None:
    path = write("a.csv", "id,x\n1,2.5\n")
    registration = register(path)
    path.write_text("id,x\n")
    assert rows(registration) == []
    with connect() as connection:
        attach(connection, registration)
        types = [str(kind) for kind in connection.sql(relation(registration)).types]
    assert types == ["BIGINT", "DOUBLE"]


def test_r10_a_later_odd_cell_is_missing(write: Any) -> None:
    data = "v\n" + "".join(f"{i % 7}\n" for i in range(20_600))
    path = write("a.csv", data)
    registration = register(path)
    assert one(registration, "COUNT(*), COUNT_IF(c0 >= 0)") == (20_600, 20_600)
    path.write_text(data + "n/a\n")
    assert one(registration, "COUNT(*), COUNT_IF(c0 >= 0)") == (20_601, 20_600)


def test_r10_at_registration_the_odd_cell_makes_text_and_the_owner_is_told(write: Any) -> None:
    path = write("a.csv", "v\n" + "1\n" * 20_600 + "n/a\n")
    inspection = inspect_source(path)
    assert column_types(inspection.registration) == {"v": "VARCHAR"}
    assert "--types v=BIGINT" in inspection.notes[0]
    declared = register(path, types={"v": "BIGINT"})
    assert one(declared, "COUNT(*), COUNT(c0)") == (20_601, 20_600)


def test_r11_null_values_quoted_or_not(write: Any) -> None:
    path = write("a.csv", 'id,v\n1,NA\n2,"NA"\n3,\n4,""\n5,5\n')
    registration = register(path, null_values=["NA", ""])
    assert column_types(registration)["v"] == "BIGINT"
    assert one(registration, "COUNT(*), COUNT(c1), SUM(c1)") == (5, 1, 5)


def test_r12_names_are_only_ever_names(write: Any) -> None:
    header = 'capital-gain,"a ""b""",order,年龄,it\'s,x;drop,"""; DROP TABLE t; --"'
    registration = register(write("a.csv", header + "\n1,2,3,4,5,6,7\n"))
    names = ["capital-gain", 'a "b"', "order", "年龄", "it's", "x;drop", '"; DROP TABLE t; --']
    assert list(registration.schema.names()) == names
    assert rows(registration) == [(1, 2, 3, 4, 5, 6, 7)]


def test_r13_another_encoding_is_named_and_never_guessed(write: Any) -> None:
    text = "姓名,城市,年龄\n张三,北京,30\n李四,上海,41\n"
    with pytest.raises(SourceError, match=r"line 1 is not UTF-8.*encoding="):
        register(write("gbk.csv", text.encode("gbk")))
    with pytest.raises(SourceError, match=r"line 1 is not UTF-8.*--encoding utf-16"):
        register(write("wide.csv", text.encode("utf-16")))
    with pytest.raises(SourceError, match="line 3 is not UTF-8"):
        register(write("late.csv", b"a,b\n1,2\n\xff,3\n"))
    lenient = inspect_source(write("some.csv", b"a,b\n1,x\n\xff,y\n3,z\n4,w\n"), encoding="utf-8")
    assert rows(lenient.registration, [0]) == [(1,), (3,), (4,)]


def test_r13_the_line_number_is_right_across_chunks(write: Any) -> None:
    good = b"12345678,abc\n" * 200_000  # 2.6 MB: several chunks
    with pytest.raises(SourceError, match="line 200002 is not UTF-8"):
        register(write("a.csv", b"a,b\n" + good + b"1,\xe5\xbc\n" + good))


def test_r15_a_late_key_exists(write: Any) -> None:
    registration = register(write("a.jsonl", '{"a":1}\n' * 20_600 + '{"a":1,"b":7,"c":{"d":1}}\n' * 5))
    assert column_types(registration) == {"a": "BIGINT", "b": "BIGINT", "c.d": "BIGINT"}
    assert one(registration, "COUNT(*), SUM(c1)") == (20_605, 35)


MIXED = "ts\n2024-03-10 23:30:00\n2024-03-11T00:30:00+09:00\n"


def test_r30_times_with_and_without_a_zone_are_refused_with_both_ways_on(write: Any) -> None:
    path = write("a.csv", MIXED)
    with pytest.raises(SourceError, match=r"'ts' holds times with a zone.*--source-timezone UTC.*types="):
        register(path)
    assert column_types(register(path, types={"ts": "VARCHAR"})) == {"ts": "VARCHAR"}
    with pytest.raises(UsageError, match="timezone: is not a known time zone"):
        register(path, timezone="Mars/Olympus")


def test_r30_with_a_zone_the_result_does_not_depend_on_the_machine(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    for zone in ("UTC", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        registration = register(write("a.csv", MIXED), timezone="Asia/Tokyo")
        assert column_types(registration) == {"ts": "TIMESTAMPTZ"}
        seen.append([row[0] for row in rows_as_text(registration)])
    assert seen[0] == seen[1] == ["2024-03-10 14:30:00+00", "2024-03-10 15:30:00+00"]


def rows_as_text(registration: Registration) -> list[tuple[str]]:
    with connect() as connection:
        attach(connection, registration)
        return connection.execute(f"SELECT CAST(c0 AS VARCHAR) FROM ({relation(registration)})").fetchall()


def test_r31_repeated_names_are_refused_with_positions(write: Any) -> None:
    path = write("a.csv", "id,amount,amount\n1,10,1000\n")
    with pytest.raises(SourceError, match=r"'amount' appears twice \(positions 2 and 3\).*names="):
        register(path)
    registration = register(path, names=["id", "net", "gross"])
    assert registration.schema.names() == ("id", "net", "gross")
    assert rows(registration) == [(1, 10, 1000)]
    with pytest.raises(SourceError, match=r"'User' and 'user' differ in case alone"):
        register(write("b.csv", "User,user\n1,2\n"))


def test_r32_a_header_is_not_guessed_where_all_is_text(write: Any) -> None:
    path = write("a.csv", "red\nblue\nred\n")
    with pytest.raises(SourceError, match=r"header=True or header=False"):
        register(path)
    assert one(register(path, header=False), "COUNT(*)") == (3,)
    assert one(register(path, header=True), "COUNT(*)") == (1,)
    blank = register(write("b.csv", "id,,x\n1,2,3\n"))
    assert blank.schema.names() == ("id", "column2", "x")
    assert register(write("c.csv", "name,city\nAda,Rome\n"), expect=["city"]).schema.names() == ("name", "city")


def test_r32_without_a_header_nothing_is_lost(write: Any) -> None:
    assert rows(register(write("a.csv", "1,2\n3,4\n"))) == [(1, 2), (3, 4)]
    assert rows(register(write("b.csv", "1\n1\n1\n"))) == [(1,)] * 3


def test_r33_a_ragged_file_is_refused_with_its_line_or_its_bad_lines_dropped(write: Any) -> None:
    path = write("a.csv", "id,v\n1,2\n2,3,4\n3\n")
    with pytest.raises(SourceError, match="line 3 has 3 fields, the first line has 2"):
        register(path)
    inspection = inspect_source(path, strict=False)
    assert inspection.registration.schema.names() == ("id", "v")
    assert (inspection.records, inspection.bad_records) == (1, 2)
    assert rows(inspection.registration) == [(1, 2)]


def test_r34_decimal_and_thousands_marks(write: Any) -> None:
    semicolons = write("a.csv", "id;v\n1;1,5\n2;2,25\n")
    plain = inspect_source(semicolons)
    assert column_types(plain.registration)["v"] == "VARCHAR"
    assert any("--decimal ','" in note for note in plain.notes)
    assert one(register(semicolons, decimal=","), "SUM(c1)") == (3.75,)
    quoted = write("b.csv", 'id,v\n1,"1,234"\n2,"5,678"\n')
    plain = inspect_source(quoted)
    assert column_types(plain.registration)["v"] == "VARCHAR"
    assert any("--thousands ','" in note for note in plain.notes)
    assert one(register(quoted, thousands=","), "SUM(c1)") == (6912,)


def test_r35_empty_files(write: Any) -> None:
    header_only = write("a.csv", "id,amount\n")
    registration = register(header_only, types={"amount": "BIGINT"})
    assert one(registration, "COUNT(*), SUM(c1)") == (0, None)
    assert column_types(registration) == {"id": "VARCHAR", "amount": "BIGINT"}
    for data in ("", "\n\n", " \n"):
        for name in ("b.csv", "b.jsonl"):
            with pytest.raises(SourceError, match="the file is empty"):
                register(write(name, data))
    with pytest.raises(SourceError, match="the file is empty"):
        register(write("b.csv.gz", gzip.compress(b"")))


def test_r39_gzip(write: Any) -> None:
    joined = write("a.csv.gz", gzip.compress(b"a\n1\n") + gzip.compress(b"2\n"))
    assert rows(register(joined)) == [(1,), (2,)]
    lines = b"".join(b'{"a":"%s"}\n' % os.urandom(20).hex().encode() for _ in range(2_000))
    with pytest.raises(SourceError, match="cut short or damaged"):
        register(write("b.jsonl.gz", gzip.compress(lines)[:-4000]))
    with pytest.raises(SourceError, match="is not gzip"):
        register(write("c.csv.gz", "a\n1\n"))
    with pytest.raises(SourceError, match=r"is gzip, which its name does not say. Hint: rename it to \*\.gz"):
        register(write("d.csv", gzip.compress(b"a\n1\n")))


def test_the_first_bytes_of_a_text_file_are_a_record_s(write: Any) -> None:
    # Else whoever stands in the first line could make every later query fail.
    registration = register(write("a.jsonl", '{"a":1}\n'))
    for magic in (b"\x1f\x8b", b"\x28\xb5\x2f\xfd"):
        write("a.jsonl", magic + b'\n{"a":2}\n')
        assert rows(registration) == [(2,)]


def test_r41_keys_that_differ_in_case_alone(write: Any) -> None:
    assert rows(register(write("a.jsonl", '{"x":1,"X":2}\n'))) == [(1, 2)]
    nested = register(write("b.jsonl", '{"outer":{"x":1,"X":2}}\n'))
    assert nested.schema.names() == ("outer.x", "outer.X")
    assert rows(nested) == [(1, 2)]


def test_r42_bad_lines_are_left_out_and_only_the_owner_sees_how_many(write: Any) -> None:
    text = '{"a":1}\n{"a":2\n{"a":3}\n'
    path = write("a.jsonl", text)
    inspection = inspect_source(path)
    assert inspection.bad_records == 1
    assert rows(inspection.registration) == [(1,), (3,)]
    assert describe(inspection.registration)[0].endswith(": JSON lines, 1 column")
    other = register(write("a.jsonl", '{"a":1}\n{"a":3}\n'))
    assert json.dumps(other.to_json()) == json.dumps(inspection.registration.to_json())
    with pytest.raises(SourceError, match="line 2 is not a JSON object"):
        register(write("a.jsonl", text), strict=True)
    twice = register(write("b.jsonl", '{"user":1,"user":2}\n{"user":3}\n'))
    assert one(twice, "COUNT(*), COUNT(c0)") == (2, 2)


def test_r43_paths_work_before_and_after_a_map_grows(write: Any) -> None:
    events = (
        '{"verb":"get","objectRef":{"name":"p1"},"annotations":{"k/a":"x"}}\n'
        '{"verb":"get"}\n{"verb":"get","objectRef":null,"annotations":{}}\n'
    )
    few = register(write("a.jsonl", events))
    at = few.schema.position("objectRef.name")
    assert at is not None
    assert sorted(rows(few, [at]), key=str) == [("p1",), (None,), (None,)]
    assert few.schema.position("annotations.k/a") is not None
    many = register(write("b.jsonl", events + "".join(f'{{"annotations":{{"k{i}":"1"}}}}\n' for i in range(300))))
    assert many.schema.position("annotations.k/a") is None
    wider = extended(many, "annotations.k/a")
    assert wider is not None
    last = len(wider.schema.columns) - 1
    for registration, position in ((few, few.schema.position("annotations.k/a")), (wider, last)):
        assert position is not None
        assert [row for row in rows(registration, [position]) if row[0] is not None] == [("x",)]


def test_r54_missing_units_stay_missing(write: Any) -> None:
    registration = register(write("a.csv", "u,x\na,1\na,2\n,3\n,4\n"), header=True)
    assert one(registration, "COUNT(*), COUNT(c0)") == (4, 2)


@pytest.mark.parametrize(
    ("name", "data"),
    [("a.csv", b"u,x\nzebra,1\n\xff,2\n"), ("a.csv", b"u,x\nzebra,1\nzebra,1,1\nzebra,2,2\n"), ("a.jsonl", b"zebra\n")],
)
def test_refusals_show_no_data_and_no_engine_text(write: Any, name: str, data: bytes) -> None:
    with pytest.raises(DiscreetError) as caught:
        register(write(name, data))
    assert "zebra" not in str(caught.value)
    assert "duckdb" not in str(caught.value).lower()


def test_an_absent_or_unknown_source_is_refused(tmp_path: Path, write: Any) -> None:
    with pytest.raises(SourceError, match="no such file"):
        locate(tmp_path / "none.csv")
    with pytest.raises(SourceError, match="known endings"):
        locate(write("a.txt", "x"))
    assert locate(write("a.txt", "x"), format="csv").format == "csv"
    with pytest.raises(UsageError, match="there is no such column; there are a, b"):
        register(write("a.csv", "a,b\n1,2\n"), types={"c": "BIGINT"})


def test_the_identity_is_the_real_path(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("log.csv", "a\n1\n")
    (tmp_path / "link.csv").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    assert locate("link.csv").source == locate(path).source == f"file:{path.resolve()}"
    assert locate("log.csv").name == "log"
