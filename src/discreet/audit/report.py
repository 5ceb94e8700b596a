"""What an audit found, as a frozen value; as text for people and as plain values for a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from discreet.exact import decimal_text
from discreet.plan import Plan

__all__ = ["PARTS", "Finding", "Report", "Used"]

PARTS = ("machinery", "neighbours", "statistics", "side channels")
"""In the order in which they run. What the last one sees is reported, never a fault."""


@dataclass(frozen=True)
class Finding:
    """A promise that is not kept.

    Attributes:
        part: which part of the audit found it.
        where: the neighbour or the piece of machinery.
        what: what is wrong.
    """

    part: str
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.part}, {self.where}: {self.what}"


@dataclass(frozen=True)
class Used:
    """How much of a measurement's declared sensitivity was reached, by the neighbour that reached most.

    Attributes:
        statistic: the measurement.
        used, declared: the L1 distance and the sensitivity.
        why: the unit.
    """

    statistic: str
    used: int
    declared: int
    why: str


@dataclass(frozen=True)
class Report:
    """An audit's outcome.

    Attributes:
        plan: of the query.
        real: whether the tables were made of the owner's rows. The report is private then.
        label: of the synthetic tables; the same label gives the same tables.
        rows: of the whole table.
        kept: the rows that the query counts.
        compared: the units that were taken out, by what they are.
        used: for each measurement.
        loss: the largest privacy loss that any pair of tables allows, exactly.
        findings: the promises that are not kept. None: the audit passes.
    """

    plan: Plan
    real: bool
    label: str
    rows: int
    kept: int
    compared: tuple[str, ...]
    used: tuple[Used, ...]
    loss: Fraction
    findings: tuple[Finding, ...] = ()
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return not self.findings

    def lines(self) -> list[str]:
        """For people."""
        which = "a copy of your rows" if self.real else f"synthetic rows (label {self.label})"
        lines = [f"audited on {self.rows:,} {which}, of which the query counts {self.kept:,}"]
        lines.append("")
        lines.append(f"neighbours: {len(self.compared)} pairs of tables; each lacks one unit of the other")
        width = max((len(u.statistic) for u in self.used), default=0)
        lines += [
            f"  {u.statistic:<{width}}  used {_percent(u.used, u.declared):>6} of the declared sensitivity ({u.why})"
            for u in self.used
        ]
        cost = self.plan.loss.epsilon
        lines.append(f"  the worst pair allows epsilon {float(self.loss):.4g} of the declared {decimal_text(cost)}")
        return lines

    def document(self) -> dict[str, Any]:
        """As plain JSON values."""
        privacy = "made of private rows: as private as the data itself" if self.real else "of synthetic rows only"
        return {
            "this_report": privacy,
            "passed": self.passed,
            "query": self.plan.text,
            "digest": self.plan.digest,
            "epsilon": decimal_text(self.plan.loss.epsilon),
            "delta": decimal_text(self.plan.loss.delta, digits=30),
            "table": {"real": self.real, "label": self.label, "rows": self.rows, "kept": self.kept},
            "neighbours": list(self.compared),
            "used": [
                {"statistic": u.statistic, "used": str(u.used), "declared": str(u.declared), "unit": u.why}
                for u in self.used
            ],
            "largest_loss": float(self.loss),
            "findings": [{"part": f.part, "where": f.where, "what": f.what} for f in self.findings],
            **self.more,
        }


def _percent(used: int, declared: int) -> str:
    return "all" if used == declared else f"{100 * used / declared:.1f} %"
