"""Records inside JSON documents: lists under a path, top-level lists, objects over many lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import SourceError, UsageError
from discreet.sources import inspect_source, register
from discreet.sources.documents import parse_records_path, records
from discreet.sources.lines import LONGEST_LINE
from source_rows import one, rows, types


def pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
RECORD = st.dictionaries(st.text(max_size=4), VALUE, max_size=4)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.lists(RECORD, max_size=4),
    st.dictionaries(st.text(max_size=3).filter(lambda key: key != "Records"), VALUE, max_size=3),
    st.sampled_from([None, 1, "\t"]),
    st.integers(1, 40),
    st.booleans(),
)
def test_records_are_found_in_any_document(
    items: list[Any], others: dict[str, Any], indent: Any, size: int, ascii_only: bool
) -> None:
    document = json.dumps({**others, "Records": items}, indent=indent, ensure_ascii=ascii_only)
    found = list(records(pieces(document, size), ("Records",)))
    assert [json.loads(record or "") for record in found] == items
    assert all("\n" not in (record or "") for record in found)
    # As a list, and one after the other.
    for text in (json.dumps(items, indent=indent), "\n".join(json.dumps(item, indent=indent) for item in items)):
        assert [json.loads(record or "") for record in records(pieces(text, size), ())] == items


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.text(st.sampled_from('{}[]",:\\ab1 \n'), max_size=60), st.integers(1, 70), st.sampled_from([(), ("a",)]))
def test_any_text_comes_to_an_end(text: str, size: int, path: tuple[str, ...]) -> None:
    whole = list(records([text], path))
    assert len(whole) <= len(text)
    assert list(records(pieces(text, size), path))[:1] == whole[:1] or size < len(text)


def test_a_bad_record_is_left_out_alone() -> None:
    text = '{"Records":[{"a":1},{"a":nope,"b":"}"},{"a":2},7,{"a":[1,2},{"a":3}]}'
    found = list(records([text], ("Records",)))
    assert found[0] == '{"a":1}'
    assert '{"a":2}' in found
    assert None in found
    deep = "[" * 100_000 + "]" * 100_000
    assert list(records([f'[{{"a":{deep}}},{{"a":1}}]'], ()))[1] == '{"a":1}'
    long = "x" * (LONGEST_LINE + 1)
    assert list(records(pieces(f'[{{"a":"{long}"}},{{"a":1}}]', 1 << 20), ())) == [None, '{"a":1}']
    endless = '{"a":"' + "x" * (2 * LONGEST_LINE)
    assert list(records(pieces("[" + endless, 1 << 20), ())) == [None]


def test_numbers_and_keys_stay_as_they_are_written() -> None:
    text = '{"R":[{"n":1.10,"b":12345678901234567890123,"e":1e400,"n":2}]}'
    assert list(records([text], ("R",))) == ['{"n":1.10,"b":12345678901234567890123,"e":1e400,"n":2}']


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("Records", ("Records",)),
        ("$.data.items[*]", ("data", "items")),
        ('"a.b".c', ("a.b", "c")),
        ("$", ()),
        ("$[*]", ()),
        ("a[*].b", ("a", "b")),
    ],
)
def test_paths(text: str, keys: tuple[str, ...]) -> None:
    assert parse_records_path(text) == keys


@pytest.mark.parametrize("text", ["", " ", "a..b", "[", "a[0]"])
def test_paths_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match=r"^records: "):
        parse_records_path(text)


def test_files_of_wrapped_records(tmp_path: Path) -> None:
    events = [[{"id": 1, "who": {"arn": "x"}}, {"id": 2}], [{"id": 3}], []]
    for i, some in enumerate(events):
        (tmp_path / f"{i}.json.gz").write_bytes(gzip.compress(json.dumps({"v": 1, "Records": some}).encode()))
    with pytest.raises(SourceError, match=r"one JSON document with a list of objects.*--records Records"):
        register(tmp_path / "[01].json.gz")
    registration = register(tmp_path / "*.json.gz", records="Records")
    assert types(registration) == {"id": "BIGINT", "who.arn": "VARCHAR"}
    assert rows(registration) == [(1, "x"), (2, None), (3, None)]
    # Later: a file that is no JSON, one without the list, one with a bad record.
    (tmp_path / "4.json.gz").write_bytes(gzip.compress(b"<html>"))
    (tmp_path / "5.json.gz").write_bytes(gzip.compress(b'{"Records":{"id":9}}'))
    (tmp_path / "6.json.gz").write_bytes(gzip.compress(b'{"Records":[{"id":4},{"id":"\xff"},{"id":5}]}'))
    assert rows(registration, [0]) == [(1,), (2,), (3,), (4,), (5,), (9,)]
    inspection = inspect_source(tmp_path / "*.json.gz", records="Records", encoding="utf-8")
    assert inspection.records == 6
    assert inspection.bad_records == 2
    with pytest.raises(SourceError, match=r"is not a JSON object|stands among the records"):
        register(tmp_path / "*.json.gz", records="Records", encoding="utf-8", strict=True)
    with pytest.raises(SourceError, match="no list of objects stands at 'events'"):
        register(tmp_path / "[0-3].json.gz", records="events")


@pytest.mark.parametrize(
    "text",
    [
        '[{"a":1},{"a":2},{"a":3}]',
        '[\n{"a":1},\n{"a":2},\n{"a":3}\n]\n',
        json.dumps([{"a": 1}, {"a": 2}, {"a": 3}], indent=2),
        "".join(json.dumps({"a": i}, indent=4) + "\n" for i in (1, 2, 3)),
        '\ufeff[{"a":1},\r\n{"a":2},{"a":3}]',
    ],
)
def test_lists_and_objects_over_many_lines(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    registration = register(path)
    assert rows(registration) == [(1,), (2,), (3,)]
    if text.startswith("["):
        path.write_text(text.rstrip()[:-1] + ', {"a": 4, "b": [}, {"a": 5}]')
        assert (5,) in rows(registration)


def test_a_document_can_be_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{\n "n": 1,\n "l": [{"k": "x"}]\n}\n')
    with pytest.raises(SourceError, match="--records l "):
        register(path)
    registration = register(path, records="$")
    assert types(registration) == {"n": "BIGINT", "l": "OTHER"}
    assert one(registration, "COUNT(*), SUM({n})") == (1, 1)


def test_r15_a_declared_key_that_no_record_has_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a":1}\n')
    inspection = inspect_source(path, types={"b.c": "BIGINT"})
    assert inspection.notes == ("column 'b.c' was declared, but no record has it",)
    assert rows(inspection.registration) == [(1, None)]
    path.write_text('{"a":1,"b":{"c":7}}\n{"b":{"c":"x"}}\n')
    assert rows(inspection.registration) == [(1, 7), (None, None)]
