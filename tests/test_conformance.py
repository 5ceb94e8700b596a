"""One suite for every engine: the totals before the noise are those of the definition, bit for bit, on nasty rows.

What an engine cannot say for every row is refused when the query is planned (R62). `docs/engines.md` says what a new
engine needs to stand here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from conformance_engines import Bench, DuckDBBench, PostgresBench, totals_of
from definition import Question, Row, S, totals, unit_of
from discreet.errors import RefusedError
from discreet.plan import Plan
from tables import ROWS, plan_of, questions, statistic_of

ENGINES = ("duckdb", "postgres")


@pytest.fixture(scope="module", params=ENGINES)
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    if request.param == "duckdb":
        yield DuckDBBench(tmp_path_factory.mktemp("rows"))
    else:
        with closing(PostgresBench(request.getfixturevalue("postgres_server"))) as found:
            yield found


QUICK = settings(
    max_examples=25, deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck)
)


def checked(bench: Bench, rows: list[Row], question: Question, plan: Plan) -> list[list[int]]:
    """The totals over these rows, which are the definition's."""
    found = totals_of(bench.hold(rows), plan)
    for measurement, vector in zip(plan.measurements, found, strict=True):
        weight = S // measurement.weight if question.unit and measurement.statistic != "distinct_count" else 1
        meant = totals(rows, question, statistic_of(measurement))
        assert [x * weight for x in vector] == meant, (bench.name, measurement)
    return found


@QUICK
@given(rows=ROWS, question=questions(), data=st.data())
def test_generated_questions_over_generated_tables(
    bench: Bench, rows: list[Row], question: Question, data: st.DataObject
) -> None:
    """Bit for bit what the definition says; and one unit's rows move them by no more than the sensitivity."""
    try:
        plan = plan_of(question, bench.registration)
    except RefusedError:
        return  # by types and bounds alone
    found = checked(bench, rows, question, plan)
    whose = [unit_of(row, question) if question.unit else i for i, row in enumerate(rows)]
    if rows:
        gone = data.draw(st.sampled_from(list(dict.fromkeys(whose))))
        left = [row for row, who in zip(rows, whose, strict=True) if who != gone]
        for measurement, a, b in zip(plan.measurements, found, totals_of(bench.hold(left), plan), strict=True):
            distance = sum(abs(x - y) for x, y in zip(a, b, strict=True))
            assert distance <= (measurement.sensitivity if gone is not None else 0), (bench.name, measurement)
