"""A deployment as one JSON document: everything, complete, exact numbers as text."""

from __future__ import annotations

import json
from typing import Any

from discreet.answer import loss_texts
from discreet.deployment import DataSet, Deployment, Release, Step
from discreet.privacy import RELATION
from discreet.reports import statements

__all__ = ["as_json", "document"]


def as_json(found: Deployment) -> str:
    """As text."""
    return json.dumps(document(found), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(found: Deployment) -> dict[str, Any]:
    """As plain JSON values."""
    budget, balance = found.budget, found.balance
    return {
        "report": "private releases",
        "name": found.name,
        "made": found.time,
        "software": found.software,
        "datasets": [_dataset(one) for one in found.datasets],
        "promise": {
            "in_words": statements.guarantee(found),
            "privacy_unit": None if budget is None else budget.unit,
            "per": list(found.promises),
            "relation": RELATION,
            "variant": "pure" if found.is_pure else "approximate",
            "total": None if budget is None else loss_texts(budget.total),
            "spent": None if balance is None else loss_texts(balance.spent),
            "left": None if balance is None else loss_texts(balance.left),
            "window": None if budget is None else str(budget.window),
            "current_window": "" if balance is None else balance.window,
            "spent_in_all_windows": None if balance is None or balance.in_all is None else loss_texts(balance.in_all),
            "accounting": None if budget is None else str(budget.accounting.method),
            "sum_of_losses": None if balance is None or balance.basic is None else loss_texts(balance.basic),
            "composition": statements.accounting(found),
            "model": "central",
            "shared_by": list(found.shared_by),
        },
        "budget_over_time": [_step(step) for step in found.steps],
        "by_analyst": [
            {"analyst": s.analyst, "window": s.window, **loss_texts(s.spent), "queries": s.queries}
            for s in found.shares
        ],
        "releases": [_release(release) for release in found.releases],
        "post_processing": statements.post_processing(found),
        "not_protected": [{"what": what, "why": why} for what, why in statements.NOT_PROTECTED],
        "nist_sp_800_226": [{"topic": topic, "stated": stated} for topic, stated in statements.evaluation(found)],
        "ledger": {"entries": found.entries, "head": found.head},
    }


def _dataset(one: DataSet) -> dict[str, Any]:
    columns = () if one.registration is None else one.registration.schema.columns
    return {
        "source": one.source,
        "name": one.name,
        "format": None if one.registration is None else one.registration.format,
        "columns": [{"name": column.name, "type": str(column.type)} for column in columns],
        "registered": [{"version": version, "time": time} for version, time in one.versions],
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "entry": step.entry,
        "time": step.time,
        "kind": str(step.kind),
        "source": step.source,
        "analyst": step.analyst,
        "cost": None if step.loss is None else loss_texts(step.loss),
        "spent": loss_texts(step.spent),
        "total": None if step.total is None else loss_texts(step.total),
        "window": step.window,
        "says": dict(step.says),
    }


def _release(release: Release) -> dict[str, Any]:
    entry = release.entry
    return {
        "number": release.number,
        "entry": entry.number,
        "time": entry.time,
        "source": entry.source,
        "version": entry.version,
        "analyst": entry.analyst,
        "query": entry.query,
        "digest": entry.digest,
        "state": str(entry.state),
        "reason": entry.reason,
        "cost": None if entry.loss is None else loss_texts(entry.loss),
        "limits": dict(entry.limits),
        "answer": None if release.answer is None else _answer(release),
    }


_OF_THE_ENTRY = ("epsilon", "delta", "charged", "left", "ledger_entry", "replay", "source", "query", "limits", "digest")


def _answer(release: Release) -> dict[str, Any]:
    if release.answer is None:
        raise AssertionError
    return {name: value for name, value in release.answer.report().items() if name not in _OF_THE_ENTRY}
