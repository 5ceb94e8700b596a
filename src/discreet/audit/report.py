"""What an audit found, as a frozen value; as text for people and as plain values for a file."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.audit.side_channels import Times
from discreet.audit.statistics import Statistics
from discreet.exact import decimal_text
from discreet.plan import Plan

__all__ = ["PARTS", "Finding", "Report", "Used", "broken"]

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
        worst: the unit of that pair.
        seen: what many runs on that pair show.
        times: side channels.
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
    worst: str = ""
    seen: Statistics | None = None
    times: Times | None = None
    findings: tuple[Finding, ...] = ()

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
        if self.seen is not None:
            lines += ["", *_seen(self.seen, self.worst)]
        if self.times is not None:
            lines += ["", "side channels, for information", *self.times.lines()]
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
            "statistics": None if self.seen is None else _plain(self.seen, self.worst),
            "side_channels": None
            if self.times is None
            else {"milliseconds_of_noise": self.times.noise, "milliseconds_of_query": self.times.query},
            "findings": [{"part": f.part, "where": f.where, "what": f.what} for f in self.findings],
        }


def broken(seen: Statistics) -> str:
    """What a failed test of the runs shows."""
    found = seen.failing
    return (
        f"epsilon is at least {found.bound:.4g}, claimed is {seen.claimed:g}: {found.event} in {found.often:,} of "
        f"{found.trials:,} runs on one table, {found.seldom:,} on the other (wrong once in {1 / found.error:,.0f})"
    )


def _seen(seen: Statistics, worst: str) -> list[str]:
    claim = f"epsilon {seen.claimed:g}" + (f", delta {seen.delta:g}" if seen.delta else "")
    lines = [f"statistics: {seen.runs:,} runs of the noise and {seen.answers:,} answers on each table ({worst})"]
    lines.append(f"  claimed {claim}; certified with 95 % confidence: epsilon is at least {seen.shown.bound:.4g}")
    if seen.shown.event is not None:
        counts = f"{seen.shown.often:,} of {seen.shown.trials:,} runs on one table, {seen.shown.seldom:,} on the other"
        lines.append(f"  by the event: {seen.shown.event} ({counts})")
    lines.append(f"  power: {power(seen)}")
    return [*lines, *_picture(seen)]


def power(seen: Statistics) -> str:
    """What the runs would have told."""
    if seen.factor is None:
        return (
            "so many runs would not have told noise ten times too small; this pair moves too little or epsilon is large"
        )
    return f"noise {seen.factor:g} times too small would have failed the audit with probability 0.95"


def _picture(seen: Statistics) -> list[str]:
    """Both histograms, one under the other, turned by a quarter: a line a bin."""
    edges, whole, without = seen.histogram
    if not edges:
        return []
    most = max(*whole, *without)
    lines = [f"  {seen.drawn}: with the unit (left) and without it (right)"]
    for i in range(0, len(whole), 2):
        a, b = (sum(counts[i : i + 2]) / 2 / most for counts in (whole, without))
        left, right = ("█" * round(30 * share) for share in (a, b))
        lines.append(f"  {left:>30} {edges[i]:>12.4g} {right}")
    return lines


def _plain(seen: Statistics, worst: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "unit": worst,
        "runs": seen.runs,
        "answers": seen.answers,
        "claimed_epsilon": seen.claimed,
        "claimed_delta": seen.delta,
        "power": power(seen),
    }
    for name, certified in (("certified", seen.shown), ("failing", seen.failing)):
        found[name] = {
            "epsilon_at_least": certified.bound,
            "error": certified.error,
            "event": None if certified.event is None else str(certified.event),
            "runs": [certified.often, certified.seldom, certified.trials],
        }
    edges, whole, without = seen.histogram
    return found | {"histogram": {"of": seen.drawn, "edges": edges, "with": whole, "without": without}}


def _percent(used: int, declared: int) -> str:
    return "all" if used == declared else f"{100 * used / declared:.1f} %"
