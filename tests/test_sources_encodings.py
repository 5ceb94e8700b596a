"""Text in other encodings: read by name, never guessed, and no character becomes another."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import SourceError, UsageError
from discreet.sources import inspect_source, register
from discreet.sources.transcoding import transcode
from source_rows import one, rows, types

TEXT = "姓名,城市,年龄\n张三,北京,30\n李四,上海,41\n"


@pytest.mark.parametrize(
    "encoding", ["gbk", "gb18030", "utf-16", "utf-16-be", "utf-16-le", "utf-32", "utf-8-sig", "big5hkscs"]
)
def test_r13_a_named_encoding_is_read(tmp_path: Path, encoding: str) -> None:
    text = TEXT if encoding != "big5hkscs" else TEXT.replace("张三", "張三").replace("龄", "齡")
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode(encoding))
    registration = register(path, encoding=encoding)
    assert types(registration)["城市"] == "VARCHAR"
    assert one(registration, "COUNT_IF({城市} = '北京'), COUNT_IF({城市} = '上海'), COUNT(*)") == (1, 1, 2)
    if encoding != "utf-8-sig":
        with pytest.raises(SourceError, match=r"line 1 is not UTF-8.*encoding=|fields|empty"):
            register(path)


def test_r13_latin_1_and_packed_json(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("n,name\n1,Käthe\n2,François\n".encode("latin-1"))
    assert rows(register(tmp_path / "a.csv", encoding="latin-1")) == [(1, "Käthe"), (2, "François")]
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress('{"城市":"北京"}\n{"城市":"上海"}\n'.encode("gbk")))
    assert rows(register(tmp_path / "b.jsonl.gz", encoding="gbk")) == [("上海",), ("北京",)]
    (tmp_path / "c.json").write_bytes('{"R":[{"城市":"北京"}]}'.encode("utf-16"))
    assert rows(register(tmp_path / "c.json", encoding="utf-16", records="R")) == [("北京",)]
    (tmp_path / "d.csv").write_bytes('t,n\n"北,京",1\n"x",2\n'.encode("gbk"))
    assert rows(register(tmp_path / "d.csv", encoding="gbk")) == [("x", 2), ("北,京", 1)]


def test_a_line_that_is_not_in_the_encoding_is_a_bad_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    good = TEXT.encode("gbk")
    path.write_bytes(good)
    registration = register(path, encoding="gbk")
    for bad in (b"\x81\n", b"x,\xff,1\n", b"\x81,2,3\n", b'a,\x81"\n', b"\x81"):
        path.write_bytes(good + bad)
        assert rows(registration) == [("张三", "北京", 30), ("李四", "上海", 41)]
    path.write_bytes(good + b"x,\xff,1\n" + "王五,北京,5\n".encode("gbk"))
    assert len(rows(registration)) == 3
    assert inspect_source(path, encoding="gbk").bad_records == 1
    with pytest.raises(SourceError, match="a line is not gbk"):
        register(path, encoding="gbk", strict=True)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.text(st.characters(codec="gb18030"), max_size=12), max_size=6), st.binary(max_size=12))
def test_any_bytes_change_no_other_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], junk: bytes
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    junk = junk.replace(b"\n", b"")
    kept = ["a" + line.replace("\n", "").replace("\r", "") for line in lines]
    encoded = [line.encode("gb18030") for line in kept]
    (folder / "a").write_bytes(b"\n".join([*encoded, junk, *encoded]))
    transcode(str(folder / "a"), "none", "gb18030", folder / "b")
    found = (folder / "b").read_bytes().split(b"\n")
    expected = [line.encode() for line in kept]
    assert found[: len(kept)] == expected
    assert found[len(kept) + 1 :] == expected


@pytest.mark.parametrize("name", ["klingon", "base64", "utf-7", "iso2022_jp", "hz", "punycode"])
def test_encodings_that_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text("a\n1\n")
    with pytest.raises(UsageError, match=r"^encoding: (is not known|cannot be read line by line)"):
        register(tmp_path / "a.csv", encoding=name)
