"""Many files as one source: patterns, folders, keys in folder names, files that differ and files that come later."""

from __future__ import annotations

import gzip
import itertools
from pathlib import Path

import pytest

from discreet.engines.duckdb_connection import connect
from discreet.errors import SourceError, UsageError
from discreet.sources import attach, inspect_source, locate, register, relation
from source_rows import one, rows, types

A, B, C = "id,x\n1,5\n", "id,x,y\n2,6,7\n", "x,id\n9,3\n"


def lay(folder: Path, **files: str | bytes) -> Path:
    for name, data in files.items():
        path = folder / name.replace("__", "/").replace("_DOT_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return folder


@pytest.mark.parametrize("order", list(itertools.permutations((A, B, C))))
def test_r36_columns_are_joined_by_name_whatever_the_order(tmp_path: Path, order: tuple[str, ...]) -> None:
    for i, text in enumerate(order):
        (tmp_path / f"{i}.csv").write_text(text)
    inspection = inspect_source(tmp_path / "*.csv")
    registration = inspection.registration
    assert types(registration) == {"id": "BIGINT", "x": "BIGINT", "y": "BIGINT"}
    assert inspection.notes == ("column 'y' is present in 1 of 3 files; it is missing in the others",)
    assert one(registration, "SUM({id}), SUM({x}), SUM({y}), COUNT({y}), COUNT(*)") == (6, 20, 7, 1, 3)


def test_new_files_count_and_types_stay(tmp_path: Path) -> None:
    lay(tmp_path, a_DOT_csv=A, b_DOT_csv=B)
    registration = register(tmp_path / "*.csv")
    (tmp_path / "c.csv").write_text("y,id,z\nmany,4,8\n")
    (tmp_path / "d.csv.gz").write_bytes(gzip.compress(b"id,x\n5,1\n"))
    assert one(registration, "SUM({id}), SUM({y}), COUNT({y})") == (7, 7, 1)
    everything = register(tmp_path)
    assert one(everything, "SUM({id})") == (12,)
    assert types(everything)["y"] == "VARCHAR"


def test_r35c_an_empty_or_header_only_file_adds_nothing(tmp_path: Path) -> None:
    lay(tmp_path, a_DOT_csv="id,x\n1,5\n", b_DOT_csv="id,x\n", c_DOT_csv="", d_DOT_csv="\n\n")
    registration = register(tmp_path / "*.csv")
    assert types(registration) == {"id": "BIGINT", "x": "BIGINT"}
    assert rows(registration) == [(1, 5)]
    lay(tmp_path / "none", a_DOT_csv="", b_DOT_csv="")
    with pytest.raises(SourceError, match="all files are empty"):
        register(tmp_path / "none")


def test_a_registered_pattern_that_matches_nothing_any_more_has_no_rows(tmp_path: Path) -> None:
    """The last file may be one person's: its going may not turn an answer into an error."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    lay(tmp_path, a_DOT_csv=A, b_DOT_jsonl='{"id":1,"x":2}\n')
    pq.write_table(pa.table({"id": [1], "x": [2]}), tmp_path / "c.parquet")
    for ending in ("csv", "jsonl", "parquet"):
        registration = register(tmp_path / f"*.{ending}")
        (tmp_path / next(tmp_path.glob(f"*.{ending}")).name).unlink()
        assert rows(registration) == []
        with connect() as connection:
            attach(connection, registration)
            assert [str(kind) for kind in connection.sql(relation(registration)).types] == ["BIGINT", "BIGINT"]


def test_a_damaged_file_among_many_is_not_named(tmp_path: Path) -> None:
    lay(tmp_path, user__ann_DOT_csv=A)
    registration = register(tmp_path)
    (tmp_path / "user" / "bob.csv.gz").write_bytes(gzip.compress(b"id,x\n1,1\n" * 1000)[:-30])
    with pytest.raises(SourceError) as caught:
        rows(registration)
    assert "bob" not in str(caught.value)
    with pytest.raises(SourceError, match=r"bob\.csv\.gz.*cut short or damaged"):
        register(tmp_path)


@pytest.mark.parametrize("data", [b"id,x\n1\xff,2\n", "id,x\n1,2\n".encode("utf-16")])
def test_a_file_in_another_encoding_is_named_to_the_owner(tmp_path: Path, data: bytes) -> None:
    lay(tmp_path, a_DOT_csv=A, b_DOT_csv=data)
    with pytest.raises(SourceError, match=r"b\.csv.*line [12] is not UTF-8"):
        register(tmp_path)


def test_files_without_headers(tmp_path: Path) -> None:
    lay(tmp_path, a_DOT_csv="1,a\n2,b\n", b_DOT_csv="3,c\n")
    assert rows(register(tmp_path)) == [(1, "a"), (2, "b"), (3, "c")]


def test_text_files_with_one_header_in_common_have_it(tmp_path: Path) -> None:
    lay(tmp_path, a_DOT_csv="name,city\nAda,Rome\n", b_DOT_csv="name,city\nBob,Oslo\n")
    assert rows(register(tmp_path)) == [("Ada", "Rome"), ("Bob", "Oslo")]


def test_line_breaks_in_quotes_in_one_of_the_files(tmp_path: Path) -> None:
    lay(tmp_path, a_DOT_csv="id,t\n1,x\n", b_DOT_csv='t,id\n"a\nb",2\n"c\r\nd",3\n')
    with pytest.raises(SourceError, match="line breaks inside quotes"):
        register(tmp_path)


def test_a_csv_file_whose_header_changed_is_read_by_its_new_header(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,x,x2\n1,5,6\n")
    registration = register(path)
    path.write_text('"x", id ,new\n5,1,9\nid,x\n')
    assert rows(registration) == [(1, 5, None)]


def test_what_is_one_source_and_what_is_not(tmp_path: Path) -> None:
    lay(tmp_path, a_DOT_csv=A, b_DOT_jsonl='{"a":1}\n', _SUCCESS="", _tmp__x_DOT_csv=A, sub__c_DOT_csv=A, README="hi")
    with pytest.raises(SourceError, match="csv and jsonl files"):
        locate(tmp_path)
    assert one(register(tmp_path / "**" / "*.csv"), "COUNT(*)") == (3,)
    assert one(register(tmp_path / "sub"), "COUNT(*)") == (1,)
    (tmp_path / "b.jsonl").unlink()
    assert one(register(tmp_path), "COUNT(*)") == (2,)  # what an underscore marks is no data
    assert locate(tmp_path).source == f"file:{tmp_path}"
    assert locate(tmp_path / "." / "*.csv").source == f"file:{tmp_path}/*.csv"
    with pytest.raises(SourceError, match="no file matches"):
        locate(tmp_path / "*.tsv")
    lay(tmp_path / "delta", _delta_log__0_DOT_json="{}", a_DOT_parquet=b"PAR1")
    with pytest.raises(SourceError, match="Delta table"):
        locate(tmp_path / "delta")


def test_r38_folder_keys_stay_what_they_are(tmp_path: Path) -> None:
    for i, folder in enumerate(["region=01", "region=1", "region=__HIVE_DEFAULT_PARTITION__", "region=NULL"]):
        lay(tmp_path / folder, a_DOT_csv=f"id\n{i}\n")
    registration = register(tmp_path)
    assert types(registration) == {"id": "BIGINT", "region": "VARCHAR"}
    assert rows(registration) == [(0, "01"), (1, "1"), (2, None), (3, "NULL")]
    lay(tmp_path / "region=a%2Fb%FF", a_DOT_csv="id\n4\n")
    lay(tmp_path / "other=x", a_DOT_csv="id\n5\n")
    assert rows(registration)[4:] == [(4, "a/b\ufffd"), (5, None)]


def test_r38_plain_numbers_in_folder_names_are_numbers(tmp_path: Path) -> None:
    for year, month in (("2024", "1"), ("2024", "12"), ("2025", "2")):
        lay(tmp_path / f"year={year}" / f"month={month}", a_DOT_jsonl='{"n":1}\n')
    registration = register(tmp_path)
    assert types(registration) == {"n": "BIGINT", "year": "BIGINT", "month": "BIGINT"}
    lay(tmp_path / "year=soon", a_DOT_jsonl='{"n":2}\n')
    assert rows(registration) == [(1, 2024, 1), (1, 2024, 12), (1, 2025, 2), (2, None, None)]
    assert types(register(tmp_path, types={"year": "VARCHAR"}))["year"] == "VARCHAR"


def test_r38_a_key_that_is_a_column_too_is_refused_with_the_way_to_choose(tmp_path: Path) -> None:
    lay(tmp_path / "region=eu", a_DOT_csv="id,region\n1,us\n")
    with pytest.raises(SourceError, match=r"'region' stands in the files and in the names of.*partitions=False"):
        register(tmp_path)
    assert rows(register(tmp_path, partitions=False)) == [(1, "us")]
    with pytest.raises(SourceError, match="no folders called name=value"):
        register(tmp_path / "region=eu", partitions=True)


def test_r38_in_parquet_files(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for folder in ("k=01", "k=NULL", "k=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / folder).mkdir()
        pq.write_table(pa.table({"n": [len(folder)]}), tmp_path / folder / "a.parquet")
    registration = register(tmp_path)
    assert rows(registration) == [(28, None), (4, "01"), (6, "NULL")]
    assert rows(registration, [1]) == [("01",), ("NULL",), (None,)]
    pq.write_table(pa.table({"k": ["x"]}), tmp_path / "k=01" / "b.parquet")
    with pytest.raises(SourceError, match="'k' stands in the files"):
        register(tmp_path)


def test_parquet_files_of_different_types(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    def two(first: object, second: object) -> Path:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        for name, values in (("a", first), ("b", second)):
            if values is not None:
                pq.write_table(pa.table({"x": values}), folder / f"{name}.parquet")
        return folder

    big = 2**60 + 1
    cases = [
        (pa.array([1], pa.int8()), pa.array([big]), "BIGINT", [1, big]),
        (pa.array([1], pa.int32()), pa.array([1.5]), "DOUBLE", [1.0, 1.5]),
        (pa.array([big]), pa.array([2**63], pa.uint64()), "HUGEINT", [big, 2**63]),
        (pa.nulls(1), pa.array(["a"]), "VARCHAR", [None, "a"]),
    ]
    for first, second, name, values in cases:
        registration = register(two(first, second))
        assert types(registration) == {"x": name}
        assert sorted((row[0] for row in rows(registration)), key=str) == sorted(values, key=str)
    for first, second in ((pa.array([big]), pa.array([1.5])), (pa.array([1]), pa.array(["a"]))):
        folder = two(first, second)
        with pytest.raises(SourceError, match=r"no one type holds exactly: BIGINT, (DOUBLE|VARCHAR).*types="):
            register(folder)
        assert types(register(folder, types={"x": "VARCHAR"})) == {"x": "VARCHAR"}
    decimals = register(two(pa.array([1]), pa.array([1.25]).cast(pa.decimal128(10, 2))))
    assert types(decimals) == {"x": "DECIMAL(21,2)"}


def test_a_parquet_file_that_later_has_other_columns_and_types(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    big = 2**60 + 1
    pq.write_table(pa.table({"x": [big], "y": ["a"], "r": [{"k": 1, "l": 2}]}), tmp_path / "a.parquet")
    registration = register(tmp_path / "*.parquet")
    assert types(registration) == {"x": "BIGINT", "y": "VARCHAR", "r.k": "BIGINT", "r.l": "BIGINT"}
    pq.write_table(pa.table({"x": [1.5], "z": [1], "r": [{"k": "7"}]}), tmp_path / "b.parquet")
    pq.write_table(pa.table({"x": ["12"], "r": [3]}), tmp_path / "c.parquet")
    # No file changes how another is read: the large integer does not pass through a double.
    assert set(rows(registration)) == {(big, "a", 1, 2), (2, None, 7, None), (12, None, None, None)}
    single = tmp_path / "one.parquet"
    pq.write_table(pa.table({"x": [1], "y": [2]}), single)
    alone = register(single)
    pq.write_table(pa.table({"y": [3]}), single)
    assert rows(alone) == [(None, 3)]


def test_zstd(tmp_path: Path) -> None:
    import pyarrow as pa

    for name, data in (("a.csv.zst", b"id,t\n1,x\n2,\xff\n3,z\n4,w\n"), ("b.jsonl.zst", b'{"id":1,"t":"x"}\n')):
        with pa.CompressedOutputStream(str(tmp_path / name), "zstd") as file:
            file.write(data)
    with pytest.raises(SourceError, match="line 3 is not UTF-8"):
        register(tmp_path / "a.csv.zst")
    inspection = inspect_source(tmp_path / "a.csv.zst", encoding="utf-8")
    assert (inspection.records, inspection.bad_records) == (3, 1)
    assert rows(inspection.registration) == [(1, "x"), (3, "z"), (4, "w")]
    assert rows(register(tmp_path / "b.jsonl.zst")) == [(1, "x")]
    packed = (tmp_path / "a.csv.zst").read_bytes()
    (tmp_path / "c.csv.zst").write_bytes(packed[:-9])
    with pytest.raises(SourceError, match=r"damaged|cannot be read"):
        register(tmp_path / "c.csv.zst", encoding="utf-8")
    (tmp_path / "d.csv.zst").write_text(A)
    with pytest.raises(SourceError, match="is not zstd"):
        register(tmp_path / "d.csv.zst")


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    lay(tmp_path, a_DOT_jsonl='{"a":1}\n', a_DOT_csv=A)
    for name, option in (
        ("a.parquet", {"encoding": "gbk"}),
        ("a.parquet", {"null_values": ["NA"]}),
        ("a.jsonl", {"decimal": ","}),
        ("a.jsonl", {"header": True}),
        ("a.csv", {"records": "Records"}),
        ("a.csv", {"table": "t"}),
        ("a.csv", {"year": 2024}),
    ):
        with pytest.raises(UsageError, match=f"^{next(iter(option))}: (means nothing for|is for)"):
            register(tmp_path / name, **option)
