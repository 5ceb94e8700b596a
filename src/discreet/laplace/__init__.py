"""The Laplace mechanism: the law (`distribution`), the draw (`sampler`), the release (`mechanism`).

`distribution` and `sampler` never import each other, so that each tests the other. `textbook` holds the
published floating-point formula and its faults; it is for teaching, and is not imported here.
"""

from __future__ import annotations

from discreet.laplace.distribution import DiscreteLaplace, Laplace
from discreet.laplace.limbs import Int128Array
from discreet.laplace.mechanism import LaplaceMechanism
from discreet.laplace.sampler import sample_discrete_laplace, sample_laplace

__all__ = [
    "DiscreteLaplace",
    "Int128Array",
    "Laplace",
    "LaplaceMechanism",
    "sample_discrete_laplace",
    "sample_laplace",
]
