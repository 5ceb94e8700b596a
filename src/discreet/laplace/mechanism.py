"""The Laplace mechanism on integers: calibrate, account, release."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard, cast, overload

import numpy as np
from numpy.typing import NDArray

from discreet.entropy import Entropy, SystemEntropy
from discreet.errors import UsageError
from discreet.exact import RationalLike, parse_epsilon, parse_rational
from discreet.laplace.distribution import DiscreteLaplace
from discreet.laplace.limbs import Int128Array
from discreet.laplace.sampler import Integers, draw, draw_limbs
from discreet.laplace.scale import SCALE_MAX, SCALE_MIN, check_scale
from discreet.privacy import PrivacyLoss

__all__ = ["LIMBS_SCALE_MAX", "LaplaceMechanism"]

LIMBS_SCALE_MAX = Fraction(2**120)
"""The largest scale for 128-bit totals: noise of 2^126 or more then has a probability below 2 e^-64, and with
totals below 2^126 (design, section 2, rule 9) nothing wraps around."""

_EPSILON_RULE = "must be above 0"


@dataclass(frozen=True, init=False)
class LaplaceMechanism:
    """Adds discrete Laplace noise of scale sensitivity / epsilon to an exact integer answer.

    If changing the data to neighbouring data moves the vector of answers by at most `sensitivity` in L1, then
    releasing all of it with independent noise is epsilon-differentially private: for integers x and x' the
    probabilities of an output y differ by the factor q^(|y - x| - |y - x'|) <= e^(|x - x'| / scale), and the
    exponents of the entries add up to at most sensitivity / scale = epsilon (Dwork and Roth 2014, theorem
    3.6; the discrete noise is the "geometric mechanism" of Ghosh, Roughgarden and Sundararajan 2009). This
    holds exactly, because the noise has exactly this law and no rounding follows it.

    Args:
        sensitivity: a number above 0, from declared public bounds, never from the data.
        epsilon: from 10^-12 to 10^9 with at most 12 decimal places; or, for shares of one epsilon, any
            ``Fraction`` above 0.

    Attributes:
        scale: sensitivity / epsilon as an exact rational, in the units of the answer.

    Raises:
        UsageError: for a sensitivity or an epsilon out of range, and if their quotient is not in [10^-12,
            2^128].
    """

    sensitivity: Fraction
    epsilon: Fraction
    scale: Fraction

    def __init__(self, sensitivity: RationalLike, epsilon: RationalLike) -> None:
        exact_sensitivity = parse_rational("sensitivity", sensitivity, rule="must be a number above 0")
        if exact_sensitivity <= 0:
            raise UsageError("sensitivity", "must be a number above 0", str(sensitivity))
        # A share of an epsilon is any fraction (a third of 0.1, say): only what people type lies on the grid.
        exact_epsilon = epsilon if isinstance(epsilon, Fraction) else parse_epsilon(epsilon)
        if exact_epsilon <= 0:
            raise UsageError("epsilon", _EPSILON_RULE, str(epsilon))
        scale = exact_sensitivity / exact_epsilon
        if not SCALE_MIN <= scale <= SCALE_MAX:
            raise UsageError(
                "the scale of the noise, sensitivity / epsilon,",
                "must be from 0.000000000001 (10^-12) to 2^128",
                f"{sensitivity} / {epsilon}",
            )
        object.__setattr__(self, "sensitivity", exact_sensitivity)
        object.__setattr__(self, "epsilon", exact_epsilon)
        object.__setattr__(self, "scale", scale)

    @overload
    def release(self, value: int | np.integer) -> int: ...
    @overload
    def release(self, value: NDArray[np.integer] | NDArray[np.object_]) -> Integers: ...
    def release(self, value: object) -> int | Integers:
        """The answer plus noise.

        Args:
            value: an exact integer (a Python int of any size, or a NumPy integer), or a NumPy array of
                integers (of an integer dtype, or Python ints in an object array) of any shape.

        Returns:
            for an integer an int; for an array one of the same shape: int64 if the scale is at most 2^55 and
            every noisy entry fits, else Python ints in an object array. (Which of the two is a function of
            the noisy answer, so it tells nothing else.)

        Raises:
            UsageError: for floats, booleans, text and everything else that is not an exact integer.
        """
        scale = check_scale(self.scale)
        if isinstance(value, np.ndarray):
            return _release_array(value, scale)
        if not _is_integer(value):
            raise _not_an_integer(type(value).__name__)
        return int(value) + int(draw(scale, 1, SystemEntropy())[0])

    def release_limbs(self, totals: Int128Array, entropy: Entropy | None = None) -> Int128Array:
        """Exact 128-bit totals plus noise, entry by entry, mod 2^128: for the release path.

        Args:
            totals: the exact totals, below 2^126 in magnitude.
            entropy: the source of randomness; None for the operating system's.

        Raises:
            UsageError: if the scale is above `LIMBS_SCALE_MAX`; a plan checks that before anything is read.
        """
        scale = check_scale(self.scale)
        if scale > LIMBS_SCALE_MAX:
            raise UsageError("the scale of the noise", "must be at most 2^120 for 128-bit totals", str(scale))
        source = SystemEntropy() if entropy is None else entropy
        return totals.add(draw_limbs(scale, len(totals), source))

    def interval(self, confidence: RationalLike) -> tuple[int, int]:
        """(-k, k), k the smallest integer such that |noise| <= k with at least that probability, exactly."""
        return DiscreteLaplace(self.scale).interval(confidence)

    def loss(self, sensitivity: RationalLike) -> PrivacyLoss:
        """What a release costs if neighbours differ by `sensitivity` in L1: epsilon = sensitivity / scale.

        Raises:
            UsageError: for a sensitivity below 0.
        """
        exact = parse_rational("sensitivity", sensitivity, rule="must be a number, 0 or more")
        if exact < 0:
            raise UsageError("sensitivity", "must be a number, 0 or more", str(sensitivity))
        return PrivacyLoss(exact / self.scale)


def _release_array(values: NDArray[np.generic], scale: Fraction) -> Integers:
    if values.dtype == np.object_:
        if not all(_is_integer(value) for value in values.flat):
            raise _not_an_integer("an object array that holds something else")
    elif values.dtype.kind not in "iu":
        raise _not_an_integer(f"an array of {values.dtype}")
    noise = cast("Integers", draw(scale, values.size, SystemEntropy()).reshape(values.shape))
    # Every dtype but uint64 and object is a part of int64.
    if noise.dtype == np.int64 and np.can_cast(values.dtype, np.int64):
        exact = values.astype(np.int64)
        total = exact + noise  # wraps silently in arrays; the next line tells where
        if not np.any(((exact ^ total) & (noise ^ total)) < 0):
            return total
    sums = [int(value) + int(drawn) for value, drawn in zip(values.flat, noise.flat, strict=True)]
    fits = noise.dtype == np.int64 and all(-(2**63) <= value < 2**63 for value in sums)
    result = np.array(sums, dtype=np.int64 if fits else np.object_)
    return cast("Integers", result.reshape(values.shape))


def _is_integer(value: object) -> TypeGuard[int | np.integer]:
    if isinstance(value, np.generic):
        return value.dtype.kind in "iu"  # not by class: timedelta64 is a subclass of NumPy's integers
    return isinstance(value, int) and not isinstance(value, bool)


def _not_an_integer(what: str) -> UsageError:
    return UsageError(
        "the value to release",
        "must be an exact integer or a NumPy array of integers; floats, booleans and text are refused",
        what,
        "reduce it to an integer first, on a public grid: floor(x / h) with x clamped to declared bounds",
    )
