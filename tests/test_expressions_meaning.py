"""What row expressions mean: the engine against plain Python, over nasty rows, and examples of each rule by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from discreet.binding import bind
from discreet.engines.duckdb_connection import connect
from discreet.query import Node
from discreet.row_rendering import render
from expression_oracle import UnknownError, agrees, evaluate
from expression_tables import SCHEMA, create_source, expressions, nasty_rows, values_of

ROWS = nasty_rows(seed=7, count=120)


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connect(threads=1) as found:
        create_source(found, ROWS)
        yield found


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(node=expressions(2))
def test_the_engine_agrees_with_python(connection: Any, node: Node) -> None:
    expression = bind(node, SCHEMA)
    for found, row in zip(values_of(connection, expression), ROWS, strict=True):
        try:
            meant = evaluate(expression, row)
        except UnknownError:
            continue
        assert agrees(found, meant), (render(expression).sql(dialect="duckdb"), row, found, meant)
