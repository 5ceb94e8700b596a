"""The auditor put to the test itself: it must pass what is right and catch every planted fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

from discreet.audit.auditor import Extent, audit
from discreet.audit.faults import FAULTS, Fault, planted
from discreet.audit.report import Finding
from discreet.errors import DiscreetError
from discreet.plan import Plan, Request
from discreet.planning import make_plan
from discreet.query import Name
from discreet.schema import Column, Registration, Schema, parse_type
from discreet.sql import parse

__all__ = ["Tried", "self_test", "tried"]

_COLUMNS = {"who": "VARCHAR", "kind": "VARCHAR", "n": "BIGINT", "x": "DOUBLE"}
_PUBLIC = """
    SELECT kind, COUNT(*) AS n, COUNT(DISTINCT who) AS who, AVG(x, contribution_bounds_per_row => (-1, 5)) AS mean,
           SUM(n * 3, contribution_bounds_per_row => (0, 20)) AS total
    FROM data WHERE n IS NULL OR n <> 5 GROUP BY kind
"""
_CHOSEN = "SELECT kind, COUNT(*) AS n FROM data GROUP BY kind"
_EXTENT = Extent(neighbours=8, runs=20_000, answers=16, measured=False, to_the_end=False)


@dataclass(frozen=True)
class Tried:
    """What became of one fault.

    Attributes:
        fault: its name; "" for no fault at all.
        found: by which the auditor caught it; None if it did not.
    """

    fault: str
    found: Finding | None


def self_test(
    faults: Sequence[Fault] = FAULTS, told: Callable[[str, float], None] = lambda part, share: None
) -> Iterator[Tried]:
    """Without a fault first, with both queries; then with each fault. Takes a minute or two.

    Args:
        faults: to plant.
        told: of the progress.
    """
    for chosen in (False, True):
        yield Tried("", _first_finding(chosen))
    for i, fault in enumerate(faults):
        told("self-test", i / len(faults))
        yield tried(fault)


def tried(fault: Fault) -> Tried:
    """Plant one fault and audit the query in which it is to be found."""
    with planted(fault):
        return Tried(fault.name, _first_finding(fault.chosen))


def _first_finding(chosen: bool) -> Finding | None:
    try:
        report = audit(_plan(chosen), label="self-test", extent=_EXTENT)
    except DiscreetError as error:
        return Finding("planning", "the plan", f"it cannot be made: {error}")
    return report.findings[0] if report.findings else None


def _plan(chosen: bool) -> Plan:
    """Made while the fault is planted: it may be one of the plan's."""
    columns = tuple(Column(name, parse_type(kind)) for name, kind in _COLUMNS.items())
    registration = Registration("audit:self-test", "duckdb", Schema(columns), {})
    request = Request(
        epsilon=Fraction(1),
        unit=(Name(("who",)),),
        max_contributions=4,
        delta=Fraction(1, 200) if chosen else Fraction(0),
        keys={} if chosen else {"kind": ["A", "B", "C", None]},
    )
    return make_plan(parse(_CHOSEN if chosen else _PUBLIC), registration, request)
