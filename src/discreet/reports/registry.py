"""A deployment as an entry of the Differential Privacy Deployments Registry: YAML, as far as the ledger knows it.

The field names and the values that some of them are limited to are those of the registry's schema, as it stood in 2026
(https://registry.opendp.org; `schemas/deployments-schema.yaml` of its data). What only the owner can say stands there
as an empty text.
"""

from __future__ import annotations

from typing import Any

from discreet.deployment import Deployment
from discreet.errors import UsageError
from discreet.exact import decimal_text
from discreet.ledger import Window
from discreet.privacy import RELATION, PrivacyLoss
from discreet.reports import statements
from discreet.reports.statements import loss_text, settings

__all__ = ["as_yaml", "entry", "to_fill_in"]


def as_yaml(found: Deployment) -> str:
    """As text.

    Raises:
        UsageError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError:
        raise UsageError("format yaml", "needs PyYAML", hint="pip install 'discreet[yaml]', or --format json") from None

    def block(dumper: Any, text: str) -> Any:
        """Several lines as a block, so that they can be read and edited."""
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)

    with_blocks: Any = type("WithBlocks", (yaml.SafeDumper,), {})
    with_blocks.add_representer(str, block)
    text: str = yaml.dump(entry(found), Dumper=with_blocks, sort_keys=False, allow_unicode=True, width=100)
    return text


def to_fill_in(value: Any, path: str = "") -> list[str]:
    """The paths of the fields that are left to the owner."""
    if isinstance(value, dict):
        return [gap for key, inner in value.items() for gap in to_fill_in(inner, f"{path}.{key}" if path else key)]
    if isinstance(value, list):
        return [gap for inner in value for gap in to_fill_in(inner, path)]
    return [path] if value == "" else []


def entry(found: Deployment) -> dict[str, Any]:
    """As plain values."""
    budget = found.budget
    asked = [release.entry.time[:10] for release in found.releases]
    return {
        "url_slug": "",
        "deployment": {
            "basic": {
                "name": found.name,
                "data_curators": [{"data_curator_name": "", "data_curator_type": ""}],
                "description": _description(found),
                "intended_use": "",
                "data_product_type": "SQL queries",
                "data_product_region": "",
                "publication_date": min(asked, default=""),
            },
            "dp_variant": {
                "variant_name": "Pure DP" if found.is_pure else "Approximate DP",
                "data_domain": _domain(found),
                "unprotected_quantities": _unprotected(),
            },
            "privacy_loss": {
                "privacy_unit": statements.units(found),
                "privacy_unit_details": (
                    f"{RELATION}: adjacent tables differ by all rows of one unit, however many, at distance 1. "
                    + _limits(found)
                ),
                **({} if budget is None else {"privacy_parameters": _parameters(budget.total)}),
                "privacy_parameters_details": _spent(found),
            },
            "deployment_model": _model(found),
            "implementation": _implementation(found),
            "administrative": {"status": "Draft", "registry_authors": [""], "tier": 3},
        },
    }


def _parameters(total: PrivacyLoss) -> dict[str, Any]:
    found: dict[str, Any] = {"epsilon": float(total.epsilon)}
    # A number such as 1e-06 would be read as a text by some YAML readers; the schema allows a text.
    return found | ({"delta": decimal_text(total.delta, digits=30)} if total.delta else {})


def _description(found: Deployment) -> str:
    return (
        f"Noisy answers to SQL questions about {found.name}: {len(found.released)} released so far, of "
        f"{len(found.releases)} charged."
    )


def _domain(found: Deployment) -> str:
    lines = []
    for one in found.datasets:
        columns = () if one.registration is None else one.registration.schema.columns
        listed = ", ".join(f"{column.name} ({column.type})" for column in columns)
        lines.append(f"- {one.name}: tables with the columns {listed}")
    return "\n".join(lines)


def _unprotected() -> str:
    return (
        "No statistic is released without noise. Disclosed by the owner: names and types of the columns, and the "
        "keys and tables declared public."
    )


def _limits(found: Deployment) -> str:
    limits = dict.fromkeys(settings(release.entry.limits) for release in found.releases)
    return f"Limits on one unit, query by query: {'; '.join(limits) or 'none yet'}."


def _spent(found: Deployment) -> str:
    balance, budget = found.balance, found.budget
    if balance is None or budget is None:
        return "No budget is set yet."
    text = f"These are the totals that can never be exceeded; spent on {found.time[:10]}: {loss_text(balance.spent)}."
    if budget.window is not Window.NEVER:
        text = (
            f"These are the totals of one window ({budget.window!s}, by the calendar in UTC); spent in "
            f"{balance.window}: {loss_text(balance.spent)}. What all windows lose together has no bound"
            + (f"; so far it is {loss_text(balance.in_all)}." if balance.in_all is not None else ".")
        )
    return text


def _model(found: Deployment) -> dict[str, Any]:
    budget = found.budget
    renewed = "never" if budget is None else str(budget.window)
    versions = max((len(one.versions) for one in found.datasets), default=0)
    return {
        "model_name": "Central",
        "trust_assumptions": (
            "The owner, who holds the data, the ledger and the computer, is trusted. Analysts and readers are "
            "not; they may work together, and may know everything about all other persons."
        ),
        "actors": "\n".join(
            [
                "- Owner: declares unit, limits, bounds, public keys and budget; can read the data.",
                "- Analysts: ask questions and see noisy answers. "
                + ", ".join(sorted({s.analyst or "(not named)" for s in found.shares})),
                "- Readers: see what is published of the answers.",
            ]
        ),
        "release_type": "One release" if len(found.released) == 1 else "Many releases",
        "release_type_details": (
            f"Questions are answered until the budget is spent. It begins anew: {renewed}. The ledger refuses "
            f"what would "
            "exceed it."
        ),
        "data_source_type": "Dynamic" if versions > 1 else "Static",
        "data_source_type_details": (
            "By the owner's word: the data count as changed when they are registered anew. Now: "
            + "; ".join(f"{one.name}, version {len(one.versions)}" for one in found.datasets)
        ),
        "access_type": "Interactive",
        "access_type_details": (
            "All analysts share one budget, so that they may collude. "
            + "; ".join(
                f"{s.analyst or '(not named)'}{f' in {s.window}' if s.window else ''}: {loss_text(s.spent)}"
                for s in found.shares
            )
        ).strip(),
    }


def _implementation(found: Deployment) -> dict[str, Any]:
    stated = dict(statements.evaluation(found))
    return {
        "preprocessing_and_hyperparameter_tuning": "\n".join(
            [
                "- Names and types of the columns were read from the source at registration, as the owner's "
                "disclosure; no privacy loss is counted for them.",
                f"- Contribution limits: {stated['Contribution limits']}",
                f"- Bounds: {stated['Bounds']}",
                f"- Thresholds: {stated['Thresholds']}",
            ]
        ),
        "mechanisms": "\n".join(
            [
                *(f"- {one}" for one in statements.mechanisms(found)),
                f"- Library: {found.software}.",
                f"- {stated['Implementation']}",
                f"- {stated['Data security and access']}",
            ]
        ),
        "composition": statements.accounting(found) + ".",
        "post_processing": statements.post_processing(found),
        "justification": "",
        "utility": stated["Utility and bias"],
        "additional_information": "\n".join([*_releases(found), f"Head of the ledger: {found.head}"]),
    }


def _releases(found: Deployment) -> list[str]:
    """One line a question."""
    lines = []
    for release in found.releases:
        cost = "" if release.entry.loss is None else loss_text(release.entry.loss)
        query = " ".join(release.entry.query.split()).replace("`", "'")
        lines.append(f"- {release.entry.time[:10]}, {cost}, {release.entry.state!s}: `{query}`")
    return lines
