"""What many queries lose together, more tightly than the sum of their epsilons.

Basic composition (the sum, exact; `privacy.PrivacyLoss`) needs nothing of this room. With a delta, two sharper
ways: a Renyi filter (`renyi`), which holds for epsilons that are chosen as one goes, and the exact composition of
queries that all cost the same epsilon (`same_epsilon`). Every figure is an upper bound, rounded up. Formulas,
proofs and what is *not* valid: `docs/accounting.md`.
"""

from __future__ import annotations
