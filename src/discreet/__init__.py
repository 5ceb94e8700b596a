"""discreet: private answers about tables and logs.

    import discreet
    log = discreet.open("examples/commits.jsonl.gz", privacy_unit="actor", max_contributions=20, budget=3)
    print(log.query("SELECT COUNT(*) AS changes FROM data", epsilon=0.5))

Everything is loaded when it is first used: importing the package is instant.
"""

from __future__ import annotations

from importlib import import_module

# Type checkers take this name for true. Importing it from typing would cost a fifth of the time until the command
# can answer Ctrl-C.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from discreet import agg
    from discreet.answer import Answer
    from discreet.arrays import PrivateNumber, count, mean, sum
    from discreet.dataset import Dataset
    from discreet.errors import (
        BudgetError,
        DiscreetError,
        EngineError,
        LedgerError,
        RefusedError,
        SourceError,
        UsageError,
    )
    from discreet.estimate import Estimate
    from discreet.laplace import (
        DiscreteLaplace,
        Laplace,
        LaplaceMechanism,
        sample_discrete_laplace,
        sample_laplace,
    )
    from discreet.ledger import Ledger
    from discreet.opening import open_source as open
    from discreet.privacy import PrivacyLoss

__version__ = "0.1.0"

_HOMES = {
    "Answer": "answer",
    "BudgetError": "errors",
    "Dataset": "dataset",
    "DiscreetError": "errors",
    "DiscreteLaplace": "laplace",
    "EngineError": "errors",
    "Estimate": "estimate",
    "Laplace": "laplace",
    "LaplaceMechanism": "laplace",
    "Ledger": "ledger",
    "LedgerError": "errors",
    "PrivacyLoss": "privacy",
    "PrivateNumber": "arrays",
    "RefusedError": "errors",
    "SourceError": "errors",
    "UsageError": "errors",
    "count": "arrays",
    "mean": "arrays",
    "sample_discrete_laplace": "laplace",
    "sample_laplace": "laplace",
    "sum": "arrays",
}

__all__ = [
    "Answer",
    "BudgetError",
    "Dataset",
    "DiscreetError",
    "DiscreteLaplace",
    "EngineError",
    "Estimate",
    "Laplace",
    "LaplaceMechanism",
    "Ledger",
    "LedgerError",
    "PrivacyLoss",
    "PrivateNumber",
    "RefusedError",
    "SourceError",
    "UsageError",
    "__version__",
    "agg",
    "count",
    "mean",
    "open",
    "sample_discrete_laplace",
    "sample_laplace",
    "sum",
]


def __getattr__(name: str) -> Any:
    if name == "agg":
        return import_module("discreet.agg")
    if name == "open":
        return import_module("discreet.opening").open_source
    if name in _HOMES:
        return getattr(import_module(f"discreet.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'discreet' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
