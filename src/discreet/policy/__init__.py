"""The policy: what the owner of private data declares once, in a TOML file, for everybody who asks.

The whole file is checked when it is loaded, and every fault is told at once, with its key path and the fix.
What the keys mean: `docs/policy.md`.
"""

from __future__ import annotations

from discreet.policy.declared import BudgetPolicy, ColumnPolicy, DatasetPolicy, Policy
from discreet.policy.reading import load_policy, parse_policy

__all__ = ["BudgetPolicy", "ColumnPolicy", "DatasetPolicy", "Policy", "load_policy", "parse_policy"]
