"""Our black-box test (`discreet.audit.events`) on other libraries: `make bench-peers`, then

    PYTHONPATH=src .bench-peers/bin/python bench/peers/audit.py

It must find what is publicly known of them, and nothing in what is sound; and it compares the law of the error of
counts, sums and means at one epsilon. A library that is not installed is named and left out.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence

import numpy as np

from discreet.audit.binomial import lower_bound
from discreet.audit.events import Features, examine

ERROR = 1e-6
ROWS = 1_000


def installed(name: str) -> bool:
    there = importlib.util.find_spec(name) is not None
    if not there:
        print(f"{name}: not installed, left out")
    return there


def told(what: str, whole: Features, without: Features, claimed: float, delta: float) -> None:
    runs = len(next(iter(whole.values())))
    (found,) = examine(whole, without, delta, [ERROR])
    verdict = "ABOVE THE CLAIM" if found.bound > claimed else "within the claim"
    print(f"{what}: claimed epsilon {claimed:g}, delta {delta:g}; certified epsilon >= {found.bound:.3f} ({verdict})")
    if found.event is not None:
        print(f"    by {found.event}: {found.often:,} of {found.trials:,} against {found.seldom:,}; {runs:,} runs")


def errors(what: str, release: Callable[[], float], exact: float, runs: int = 3_000) -> None:
    error = np.array([release() for _ in range(runs)]) - exact
    size, spread = np.abs(error).mean(), error.std()
    print(f"    {what:<28} mean |error| {size:9.4f}  deviation {spread:9.4f}  bias {error.mean():8.4f}")


def lowest_bits(values: Sequence[float]) -> np.ndarray:
    """The place of the lowest set bit of each double."""
    mantissas, exponents = np.frexp(np.asarray(values))
    whole = (mantissas * 2.0**53).astype(np.int64)
    bit = whole & -whole
    return np.where(whole == 0, -2000.0, np.log2(np.maximum(bit, 1).astype(float)) + exponents - 53)


def low_bits_of_diffprivlib(runs: int = 30_000) -> None:
    """Its issue 94: the Laplace mechanism for doubles adds in doubles, and the low bits tell 0 from 1."""
    from diffprivlib.mechanisms import Laplace

    outputs = {}
    for value in (0.0, 1.0):
        mechanism = Laplace(epsilon=1.0, sensitivity=1.0)
        values = [mechanism.randomise(value) for _ in range(runs)]
        outputs[value] = {"the value": np.array(values), "the lowest set bit": lowest_bits(values)}
    told("diffprivlib 0.6.6, Laplace, 0 against 1", outputs[0.0], outputs[1.0], 1.0, 0.0)


def threshold_of_opendp(runs: int = 30_000) -> None:
    """Its issue 2922: at scale 1 and threshold 5 the delta of `make_laplace_threshold` is too small."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l01inf_distance(dp.absolute_distance(T=int))
    mechanism = dp.m.make_laplace_threshold(*space, scale=1.0, threshold=5)
    epsilon, delta = mechanism.map((1, 1, 1))
    released = sum(bool(mechanism({"only me": 1})) for _ in range(runs))
    q = math.exp(-1.0)
    print(f"OpenDP 0.16, make_laplace_threshold, scale 1, threshold 5: claimed epsilon {epsilon:g}, delta {delta:.4f}")
    print(f"    a group of one unit is released in {released:,} of {runs:,} runs: {released / runs:.4f}")
    low = lower_bound(released, runs, ERROR)
    verdict = "ABOVE THE CLAIM" if low > delta else "within the claim"
    print(f"    delta is at least {low:.4f}, wrong once in a million ({verdict})")
    print(f"    by the law, P(1 + X >= 5) = q^4 / (1 + q) = {q**4 / (1 + q):.4f}")
    whole, without = np.zeros(runs), np.zeros(runs)
    whole[:released] = 1.0
    np.random.default_rng().shuffle(whole)
    told("the same, by events", {"the group is released": whole}, {"the group is released": without}, epsilon, delta)


def honest_count_of_opendp(runs: int = 50_000) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    mechanism = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0)
    outputs = [{"the value": np.array([float(mechanism(n)) for _ in range(runs)])} for n in (100, 101)]
    told("OpenDP 0.16, make_laplace on integers", outputs[0], outputs[1], 1.0, 0.0)


def laws() -> None:
    """Counts, sums and means of 1,000 values 0..9 at epsilon 1, one row a person."""
    from fractions import Fraction

    from discreet.laplace.mechanism import LaplaceMechanism

    values = [i % 10 for i in range(ROWS)]
    total = float(sum(values))
    print("law of the error at epsilon 1 (1,000 rows, values 0..9)")
    count, sums = LaplaceMechanism(1, Fraction(1)), LaplaceMechanism(9, Fraction(1))
    errors("discreet, count", lambda: float(count.release(ROWS)), ROWS)
    errors("discreet, sum", lambda: float(sums.release(int(total))), total)
    # A mean is a sum around the centre (in half steps, of at most 9) and a count, at half of epsilon each.
    around, rows = LaplaceMechanism(9, Fraction(1, 2)), LaplaceMechanism(1, Fraction(1, 2))
    centred = int(2 * total - 9 * ROWS)

    def mean() -> float:
        return 4.5 + float(around.release(centred)) / 2 / max(1.0, float(rows.release(ROWS)))

    errors("discreet, mean", mean, total / ROWS)
    if installed("opendp"):
        import opendp.prelude as dp

        dp.enable_features("contrib")
        for name, exact, scale in (("count", ROWS, 1.0), ("sum", int(total), 9.0)):
            mechanism = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=scale)
            errors(f"OpenDP, {name}", lambda m=mechanism, n=exact: float(m(n)), float(exact))
    if installed("diffprivlib"):
        from diffprivlib import tools

        array = np.array(values, dtype=float)
        errors("diffprivlib, sum", lambda: float(tools.sum(array, epsilon=1.0, bounds=(0, 9))), total)
        errors("diffprivlib, mean", lambda: float(tools.mean(array, epsilon=1.0, bounds=(0, 9))), total / ROWS)
    if installed("pydp"):
        from pydp.algorithms.laplacian import BoundedMean, BoundedSum, Count

        def of(kind: Callable[..., object], **options: object) -> float:
            return float(kind(epsilon=1.0, **options).quick_result(values))  # type: ignore[attr-defined]

        bounds = {"lower_bound": 0, "upper_bound": 9, "dtype": "int"}
        errors("PyDP, count", lambda: of(Count, dtype="int"), ROWS, runs=500)
        errors("PyDP, sum", lambda: of(BoundedSum, **bounds), total, runs=500)
        errors("PyDP, mean", lambda: of(BoundedMean, **bounds), total / ROWS, runs=500)
    installed("tmlt")


if __name__ == "__main__":
    laws()
    if installed("opendp"):
        honest_count_of_opendp()
        threshold_of_opendp()
    if installed("diffprivlib"):
        low_bits_of_diffprivlib()
