"""Arithmetic after the noise: right, total on every input, with intervals that hold."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.errors import RefusedError, UsageError
from discreet.formulas import DEEPEST, Slot, Sort, call, canonical_formula, enclose, evaluate, fixed

N, W, T, B, D = Sort.NUMBER, Sort.WHOLE, Sort.TEXT, Sort.BOOLEAN, Sort.DATE


def make(tree: Any) -> Any:
    """A formula from nested lists; a Sort stands for a slot at its place among the sorts, else a constant."""
    slots: list[Sort] = []

    def build(node: Any) -> Any:
        if isinstance(node, list):
            return call(node[0], [build(n) for n in node[1:]], "test")
        if isinstance(node, Sort):
            slots.append(node)
            return Slot(len(slots) - 1, node)
        return fixed(node)

    return build(tree)


@pytest.mark.parametrize(
    ("tree", "values", "expected"),
    [
        (["divide", W, W], [7, 2], 3.5),
        (["divide", W, W], [7, 0], None),
        (["divide", N, N], [1.0, 0.0], None),
        (["divide", N, N], [1e300, 1e-300], None),  # beyond a double
        (["multiply", N, N], [1e300, 1e300], None),
        (["multiply", W, W], [2**100, 3], 3 * 2**100),
        (["add", W, Decimal("0.1")], [1], 1.1),
        (["subtract", W, W], [None, 1], None),
        (["modulo", W, W], [-7, 3], -1),
        (["modulo", N, N], [5.5, 0.0], None),
        (["round", N, 1], [2.25], 2.3),  # 2.25 is exact in binary: a half, away from zero
        (["round", N, 1], [-2.25], -2.3),
        (["round", W, -2], [1250], 1300),
        (["floor", N], [-0.5], -1),
        (["ceil", N], [0.2], 1),
        (["round", N], [2.5], 3),
        (["round", N, 0], [2.5], 3.0),
        (["trunc", N], [-2.5], -2),
        (["div", W, W], [-7, 2], -3),
        (["div", W, W], [7, 0], None),
        (["pow", N, N], [-8.0, 0.5], None),
        (["pow", N, N], [2.0, 10.0], 1024.0),
        (["pow", N, N], [0.0, -1.0], None),
        (["sign", N], [-0.5], -1),
        (["sqrt", N], [-1.0], None),
        (["ln", N], [0.0], None),
        (["exp", N], [1e6], None),
        (["abs", W], [-3], 3),
        (["nullif", W, 0], [0], None),
        (["divide", W, ["nullif", W, 0]], [7, 0], None),
        (["coalesce", ["divide", W, W], 0], [7, 0], 0.0),
        (["case", ["gt", W, 5], "many", "few"], [6], "many"),
        (["case", ["gt", W, 5], "many", "few"], [None], "few"),
        (["and", ["gt", W, 5], ["lt", W, 0]], [None, 1], False),
        (["and", ["gt", W, 5], ["lt", W, 0]], [None, -1], None),
        (["or", ["gt", W, 5], ["lt", W, 0]], [None, -1], True),
        (["not", ["is_null", W]], [None], False),
        (["in", T, "a", "b"], ["b"], True),
        (["in", T, "a"], [None], None),
        (["like", T, "%a_c%"], ["xxabcx"], True),
        (["like", T, "a%"], ["ba"], False),
        (["like", T, "%"], [""], True),
        (["greatest", W, 0], [-4], 0),
        (["least", N, 1], [1.5], 1.0),
        (["eq", D, "2024-05-01"], [datetime.date(2024, 5, 1)], True),
        (["extract_quarter", D], [datetime.date(2024, 5, 1)], 2),
        (["upper", T], ["ab"], "AB"),
        (["upper", T], ["aß"], "Aß"),  # letter by letter, as in row expressions
        (["like", T, "10\\%"], ["10%"], True),
        (["like", T, "10\\%"], ["10x"], False),
        (["like", T, "\\"], ["x"], None),  # a pattern that has no meaning
        (["ilike", T, "A_c%"], ["abCd"], True),
        (["length", T], ["年a"], 2),
        (["byte_length", T], ["年a"], 4),
        (["trim", T], ["\u3000 a\u00a0"], "a"),
        (["rtrim", T, "/"], ["a//"], "a"),
        (["substr", T, 2, 2], ["abcd"], "bc"),
        (["substr", T, -3, 2], ["abcd"], "bc"),
        (["substr", T, 0, 1], ["abcd"], "a"),
        (["left", T, 2], ["abcd"], "ab"),
        (["right", T, 2], ["abcd"], "cd"),
        (["strpos", T, "c"], ["abcd"], 3),
        (["starts_with", T, "ab"], ["abcd"], True),
        (["replace", T, "b", "xx"], ["abc"], "axxc"),
        (["split_part", T, "/", 2], ["a/b/c"], "b"),
        (["split_part", T, "/", 9], ["a/b/c"], ""),
        (["length", T], [None], None),
        (["is_distinct", W, W], [None, None], False),
        (["is_distinct", W, W], [None, 1], True),
        (["log", N], [math.e], 1.0),
        (["log", N, 2], [8.0], 3.0),
        (["log", N, 1], [8.0], None),
        (["cast", W, "DOUBLE"], [3], 3.0),
        (["cast", N, "BIGINT"], [2.5], 3),
        (["cast", B, "BIGINT"], [True], 1),
        (["cast", N, "DECIMAL(9, 2)"], [2.345], 2.35),
        (["cast", W, "VARCHAR"], [-7], "-7"),
        (["cast", B, "VARCHAR"], [True], "true"),
        (["cast", W, "BOOLEAN"], [0], False),
        (["extract_isodow", D], [datetime.date(2024, 5, 5)], 7),
        (["extract_dayofweek", D], [datetime.date(2024, 5, 5)], 1),
        (["extract_week", D], [datetime.date(2024, 1, 6)], 0),
        (["extract_week", D], [datetime.date(2024, 1, 7)], 1),
        (["extract_isoyear", D], [datetime.date(2021, 1, 3)], 2020),
    ],
)
def test_value(tree: Any, values: list[Any], expected: Any) -> None:
    got = evaluate(make(tree), values)
    assert got == expected
    assert type(got) is type(expected)


def test_a_number_is_a_double_and_a_whole_number_is_not() -> None:
    assert make(["divide", W, W]).sort is N
    assert make(["add", W, W]).sort is W
    assert make(["add", W, N]).sort is N
    assert isinstance(evaluate(make(["divide", W, W]), [4, 2]), float)
    assert isinstance(evaluate(make(["coalesce", N, 0]), [None]), float)


@pytest.mark.parametrize(
    "tree", [["add", W, T], ["gt", W, "a"], ["and", W, B], ["case", W, 1, 2], ["coalesce", T, 1], ["round", N, 1, 1]]
)
def test_sorts_that_do_not_go_together(tree: Any) -> None:
    with pytest.raises(UsageError):
        make(tree)


def test_refusals() -> None:
    with pytest.raises(RefusedError, match="free"):
        make(["median", N])
    with pytest.raises(UsageError, match="cannot make text from a number"):
        make(["cast", N, "VARCHAR"])
    with pytest.raises(RefusedError, match="GROUP BY"):
        make(["cast", D, "TIMESTAMP"])
    with pytest.raises(UsageError, match="2024-12-31"):
        make(["gt", D, "soon"])
    deep: Any = W
    for _ in range(DEEPEST + 1):
        deep = ["negate", deep]
    with pytest.raises(UsageError, match="nested"):
        make(deep)


def test_numbers_stay_of_a_size() -> None:
    square: Any = 2**100
    for _ in range(8):
        square = ["multiply", square, square]  # 2^(100 * 2^8) if it were computed
    assert evaluate(make(square), []) is None


def test_like_takes_little_time() -> None:
    assert evaluate(make(["like", T, "%a" * 40 + "%b"]), ["a" * 2000]) is False


@pytest.mark.parametrize(
    ("tree", "intervals", "expected"),
    [
        (["divide", W, W], [(10, 20), (2, 5)], (2.0, 10.0)),
        (["divide", W, W], [(10, 20), (-2, 5)], None),
        (["divide", W, W], [(10, 20), (0, 5)], None),
        (["subtract", W, W], [(1, 2), (3, 5)], (-4, -1)),
        (["multiply", W, W], [(-1, 2), (-3, 5)], (-6, 10)),
        (["negate", N], [(-1.0, 2.0)], (-2.0, 1.0)),
        (["abs", W], [(-3, 2)], (0, 3)),
        (["abs", W], [(-3, -2)], (2, 3)),
        (["round", N, 1], [(0.26, 0.34)], (0.3, 0.3)),
        (["sqrt", N], [(4.0, 9.0)], (2.0, 3.0)),
        (["sqrt", N], [(-4.0, 9.0)], None),
        (["coalesce", ["divide", W, W], 0], [(10, 20), (2, 5)], (2.0, 10.0)),
        (["divide", W, ["nullif", W, 0]], [(10, 20), (2, 5)], (2.0, 10.0)),
        (["divide", W, ["nullif", W, 0]], [(10, 20), (0, 5)], None),
        (["case", ["gt", W, 0], 1, 2], [(1, 2)], None),
        (["add", W, Decimal("0.5")], [(1, 2)], (1.5, 2.5)),
        (["add", W, W], [(1, 2), None], None),
    ],
)
def test_interval(tree: Any, intervals: list[Any], expected: Any) -> None:
    assert enclose(make(tree), intervals) == expected


numbers = st.one_of(
    st.none(),
    st.integers(-(2**70), 2**70),
    st.sampled_from([0, 1, -1]),
)
trees = st.recursive(
    st.one_of(st.just(W), st.integers(-3, 3), st.decimals("-9", "9", places=2)),
    lambda inner: st.one_of(
        st.tuples(
            st.sampled_from(
                ["add", "subtract", "multiply", "divide", "modulo", "div", "pow", "greatest", "least", "nullif"]
            ),
            inner,
            inner,
        ).map(list),
        st.tuples(
            st.sampled_from(
                ["negate", "abs", "round", "floor", "ceil", "trunc", "sign", "sqrt", "ln", "log2", "exp", "coalesce"]
            ),
            inner,
        ).map(list),
    ),
    max_leaves=12,
)


@given(trees, st.data())
def test_total_and_enclosed(tree: Any, data: st.DataObject) -> None:
    """Whatever the values: a number or missing, never an error; and inside the interval, if there is one."""
    formula = make(tree)
    count = json.dumps(canonical_formula(formula)).count('"slot"')
    values = [data.draw(numbers) for _ in range(count)]
    got = evaluate(formula, values)
    assert got is None or (isinstance(got, int) and formula.sort in (W, Sort.NULL)) or math.isfinite(got)  # type: ignore[arg-type]
    margins = [data.draw(st.tuples(st.integers(0, 5), st.integers(0, 5))) for _ in range(count)]
    intervals = [None if v is None else (v - a, v + b) for v, (a, b) in zip(values, margins, strict=True)]
    found = enclose(formula, intervals)
    if found is not None:
        assert got is not None
        low, high = (Fraction(end) for end in found)
        slack = Fraction(1, 10**9) * (1 + abs(low) + abs(high))  # doubles are rounded
        assert low - slack <= Fraction(got) <= high + slack  # type: ignore[arg-type]
