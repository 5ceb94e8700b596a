"""The auditor: attacks an owner's own query and reports what it could find out.

Nothing that answers a query imports it. It calls the very functions that answer (`relational`, `engines`, `release`,
`postprocessing`) on tables of its own, charges nothing, and writes to no ledger.
"""

from __future__ import annotations

__all__: list[str] = []
