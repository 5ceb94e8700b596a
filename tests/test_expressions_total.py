"""The total claim: no row can make an accepted expression raise, and every value is of the declared type.

Through the real engine, over nasty rows: in a table, whose statistics the engine uses, and in a Parquet file.
"""

from __future__ import annotations

import datetime as dt
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from discreet.binding import FUNCTIONS, bind
from discreet.engines.duckdb_connection import connect
from discreet.expressions import LARGEST, LONGEST_READ_TEXT, Expression, longest_text, rendered_size
from discreet.query import Apply, Node
from discreet.row_rendering import render
from discreet.schema import Kind
from expression_tables import SCHEMA, Grammar, binds, bound, create_source, expressions, nasty_rows, values_of


@pytest.fixture(scope="module", params=["table", "parquet"])
def connection(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with connect(threads=1) as found:
        path = tmp_path_factory.mktemp("rows") / "rows.parquet" if request.param == "parquet" else None
        create_source(found, nasty_rows(seed=20, count=150), path)
        yield found


def is_sound(value: Any, expression: Expression) -> bool:
    """Whether a value keeps what `expressions` says of its kind."""
    if value is None:
        return True
    match expression.type.kind:
        case Kind.INTEGER:
            return type(value) is int and (expression.type.bits == 128 or -(2**63) <= value < 2**63)
        case Kind.FLOAT:
            return type(value) is float and not math.isnan(value)
        case Kind.TEXT:
            longest = longest_text(expression)
            return type(value) is str and (longest is None or len(value) <= longest)
        case Kind.BOOLEAN:
            return type(value) is bool
        case Kind.DECIMAL:
            return -value.as_tuple().exponent == expression.type.scale
        case Kind.DATE:
            return type(value) is dt.date  # beyond the years 1 to 9999 DuckDB hands over a text
        case Kind.TIMESTAMP:
            return type(value) is dt.datetime and value.tzinfo is None
        case _:
            return type(value) is dt.datetime and value.tzinfo is not None


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(node=expressions(3))
def test_no_row_makes_an_expression_raise(connection: Any, node: Node) -> None:
    """Design 2.6."""
    expression = bind(node, SCHEMA)
    values = values_of(connection, expression)
    wrong = [value for value in values if not is_sound(value, expression)]
    assert not wrong, (render(expression).sql(dialect="duckdb"), wrong[:3])
    # As a filter, which the engine moves about: as many rows as there are values.
    sql = render(expression).sql(dialect="duckdb")
    found = connection.execute(f"SELECT count(*) FROM (SELECT {sql} AS v FROM source) WHERE v IS NOT NULL").fetchall()
    assert found == [(sum(value is not None for value in values),)]


def test_every_function_is_generated() -> None:
    """The generated expressions miss no function; seen over many draws."""
    seen: set[str] = set()

    def collect(node: Node) -> None:
        if isinstance(node, Apply):
            seen.add(node.function)
            for argument in node.arguments:
                collect(argument)

    dice = random.Random(1)
    for _ in range(5_000):
        node = Grammar(dice.choice).any(2)
        if binds(node):
            collect(node)
    assert set(FUNCTIONS) <= seen, set(FUNCTIONS) - seen


def test_a_guard_does_not_multiply_what_it_repeats() -> None:
    """`rendered_size` bounds what is written for the engine: at most a dozen nodes for each part it counts."""

    @settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(node=expressions(3))
    def check(node: Node) -> None:
        expression = bind(node, SCHEMA)
        size = rendered_size(expression)
        assert size <= LARGEST
        assert sum(1 for _ in render(expression).walk()) <= 16 * size

    check()


def test_long_texts_are_cut_where_functions_read_them(connection: Any) -> None:
    import pyarrow as pa

    long = "ß" * (LONGEST_READ_TEXT + 5)
    connection.register("long_text", pa.table({"c0": [long, None, "x"]}))
    for function in ("upper", "lower", "trim"):
        expression = bind(Apply(function, (bind_name("s"),)), SCHEMA)
        sql = render(expression).sql(dialect="duckdb").replace("c9", "c0")
        found = connection.execute(f"SELECT length({sql}) FROM long_text").fetchall()
        assert found == [(LONGEST_READ_TEXT,), (None,), (1,)]


def test_built_texts_reach_their_bound_and_no_more(connection: Any) -> None:
    import pyarrow as pa

    connection.register("built", pa.table({"c9": ["x" * 70_000, "年" * 999, None], "c10": ["y" * 1_001, "", "z"]}))
    for text, lengths in (
        ("REPLACE(LEFT(s, 500), 'x', 'yyyyyyyyyyyyyyyyyyyy')", [10_000, 500, None]),
        ("CONCAT(s, s, s, s, s, s, s, s, s, LEFT(r, 1000))", [10_000, 9 * 999, None]),
        ("s || r", [2_000, 999, None]),
        ("REPLACE(s, '年', '')", [1_000, 0, None]),
    ):
        expression = bound(text)
        sql = render(expression).sql(dialect="duckdb")
        found = connection.execute(f"SELECT length({sql}) FROM built").fetchall()
        assert [length for (length,) in found] == lengths, text
        assert max(length or 0 for length in lengths) <= (longest_text(expression) or 0)


def bind_name(name: str) -> Node:
    from discreet.query import Name

    return Name((name,))
