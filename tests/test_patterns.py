"""Patterns: what is accepted always compiles in the engine, and matches what Python's own engine matches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.engines.duckdb_connection import connect
from discreet.errors import UsageError
from discreet.patterns import check_like, check_pattern, like_pieces


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connect(threads=1) as found:
        subjects = [
            "",
            "a",
            "b",
            "abc",
            "aaab",
            "a\nb",
            "1.5",
            "x_1",
            "A-Z",
            "it's",
            "é",
            "年龄",
            "[a]",
            "a{2}",
            "^$",
            "\\",
        ]
        found.register("subjects", pa.table({"s": [*subjects, None]}))
        yield found


def matches(connection: Any, pattern: str) -> list[tuple[str | None, bool | None]]:
    text = pattern.replace("'", "''")
    found: list[tuple[str | None, bool | None]] = connection.execute(
        f"SELECT s, regexp_matches(s, '{text}') FROM subjects"
    ).fetchall()
    return found


GOOD = [
    *(
        "",
        "a",
        "a|b",
        "(a|b)+",
        "(?:ab)*?c",
        "^a.c$",
        r"\d+\.\d",
        "[a-z]+",
        "[^a-z]",
        r"[\d_-]",
        r"[\[\]]",
        "a{2}",
        "a{2,}",
    ),
    *(
        "a{0,3}?",
        r"\bx\b",
        r"\Aa\z",
        "(?i)ABC",
        "(?s)a.b",
        "(?i:A)b",
        "(a(b(c)?)?)?",
        "|",
        "()",
        "(|a)",
        r"\x61\x{5E74}",
    ),
    *(
        r"[[:alpha:]]+",
        r"[^[:^digit:]]",
        "年龄",
        r"\{\}\^\$\\",
        "a-b",
        r"[a\-z]",
        "a{1000}",
        "(?:a{10}){100}",
        r"\a\f\n\r\t\v",
    ),
    *("-", "it's", "x_y", "[-a]", "[a-]", ",", "a b", "(?im)^x", r"[\x41-\x5A]"),
]

BAD = [
    ("(", "not closed"),
    (")", "closing parenthesis"),
    ("a)", "closing parenthesis"),
    ("[a", "not closed"),
    ("[]", "empty class"),
    ("[z-a]", "runs backwards"),
    ("[[a]", "bracket in a class"),
    ("[[:foo:]]", "not known"),
    ("[\\d-z]", "begins with a class"),
    ("*", "repeats nothing"),
    ("a|*", "repeats nothing"),
    ("(+)", "repeats nothing"),
    ("a**", "repeats a repetition"),
    ("a+*", "repeats a repetition"),
    ("a{2}{3}", "repeats a repetition"),
    ("^*", "repeats an anchor"),
    ("a{", "brace"),
    ("a{,3}", "brace"),
    ("a{3,2}", "m <= n"),
    ("a{1001}", "1000"),
    ("(?:a{100}){11}", "more than 1000"),
    ("{", "brace"),
    ("}", "lone }"),
    ("]", "lone ]"),
    ("\\", "escape"),
    ("\\1", "escape"),
    ("\\k<a>", "escape"),
    ("\\Q*\\E", "escape"),
    ("\\pL", "escape"),
    ("\\C", "escape"),
    ("(?=a)", "groups"),
    ("(?!a)", "groups"),
    ("(?<=a)", "groups"),
    ("(?P<n>a)", "groups"),
    ("(?ii)", "groups"),
    ("(?", "groups"),
    ("\\x", "\\x41"),
    ("\\x{110000}", "does not exist"),
    ("\\x{D800}", "does not exist"),
    ("\\x00", "does not exist"),
    ("a" * 1001, "at most 1000"),
    ("[a-z]{1000}[a-z]{1000}", "too large"),
    ("(" * 40 + "a" + ")" * 40, "nests more"),
]


@pytest.mark.parametrize("pattern", GOOD)
def test_good_patterns_compile_and_match_as_in_python(connection: Any, pattern: str) -> None:
    check_pattern(pattern, "REGEXP_CONTAINS")
    python = re.sub(r"\\x\{([0-9A-F]+)\}", lambda m: chr(int(m[1], 16)), pattern).replace(r"\z", r"\Z")
    python = python.replace("[[:alpha:]]", "[a-zA-Z]").replace("[^[:^digit:]]", "[0-9]")
    python = re.sub(r"(?<!\\)\$$", r"\\Z", python)
    for subject, found in matches(connection, pattern):
        meant = None if subject is None else re.search(python, subject, re.ASCII) is not None
        assert found == meant, (pattern, subject)


@pytest.mark.parametrize(("pattern", "rule"), BAD, ids=[pattern[:20] for pattern, _ in BAD])
def test_bad_patterns_are_refused(pattern: str, rule: str) -> None:
    with pytest.raises(UsageError) as caught:
        check_pattern(pattern, "REGEXP_CONTAINS")
    assert rule in caught.value.rule


_SIGNS = st.sampled_from(
    (
        *("a", "b", "年", "é", ".", "*", "+", "?", "|", "(", ")", "(?:", "(?i)", "(?s:", "[", "]", "^", "$", "-", "\\"),
        *("\\d", "\\w", "\\b", "{2}", "{1,3}", "{0,1000}", "{7,}", "[a-z]", "[^a]", "[[:digit:]]", "\\x41", "{", "}"),
        *("\\x{10FFFF}", ",", "\n"),
    )
)


@settings(max_examples=1_500, deadline=None)
@given(signs=st.lists(_SIGNS, max_size=14))
def test_whatever_is_accepted_compiles(connection: Any, signs: list[str]) -> None:
    pattern = "".join(signs)
    try:
        check_pattern(pattern, "REGEXP_CONTAINS")
    except UsageError:
        return
    matches(connection, pattern)  # raises if RE2 does not take it


def test_the_largest_patterns_compile(connection: Any) -> None:
    """At the limit of what is accepted, in each way to be large."""
    found = 0
    for part in (
        "a{1000}",
        "年{1000}",
        ".{100}",
        "[^a]{50}",
        "[a-zé-ÿ]{50}",
        "\\w{100}",
        "(?:a|b|c){100}",
        "(?i)k{100}",
        "[[:^alpha:]]",
    ):
        pattern = part
        while True:
            try:
                check_pattern(pattern + part, "REGEXP_CONTAINS")
            except UsageError:
                break
            pattern += part
        try:
            check_pattern(pattern, "REGEXP_CONTAINS")
        except UsageError:
            continue
        matches(connection, pattern)
        found += 1
    assert found >= 5


def test_like_patterns() -> None:
    assert like_pieces("a%_") == [("a", False), ("%", True), ("_", True)]
    assert like_pieces(r"\%\_\\a") == [("%", False), ("_", False), ("\\", False), ("a", False)]
    with pytest.raises(UsageError, match="backslash"):
        check_like("a\\", "LIKE")
    check_like("a\\\\", "LIKE")
    with pytest.raises(UsageError, match="1000"):
        check_like("%" * 1001, "LIKE")
