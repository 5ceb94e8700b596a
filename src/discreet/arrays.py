"""Private counts, sums and means of values that are already in hand: one value is one person.

These functions debit no ledger: whoever calls them twice on the same values must add up the epsilons. For a
file, a table or a log, use `discreet.open`, which keeps the budget.

The relation is "add or remove one value". Only the container's declared type decides the grid (a NumPy
dtype, a Polars or Arrow type) and whether there are numbers to add up, never the values themselves. A plain
list or a column of Python objects has no declared type: it is counted on the grid of floats, and what is no number
in it is missing from sums and means, so that no refusal tells what one value is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet import sensitivity
from discreet.bounds import parse_bounds
from discreet.entropy import SystemEntropy
from discreet.errors import UsageError
from discreet.estimators import estimate_output
from discreet.exact import decimal_text, parse_confidence, parse_epsilon
from discreet.grid import Grid, choose_grid
from discreet.laplace.limbs import Int128Array
from discreet.laplace.mechanism import LaplaceMechanism
from discreet.plan import Measurement, PlannedOutput
from discreet.privacy import split
from discreet.schema import FLOAT, INTEGER

__all__ = ["PrivateNumber", "count", "mean", "sum"]

_CHUNK = 2**20
_DECADES = 400  # beyond any bounds and any grid
_MISSING_TYPES = frozenset(("NAType", "NaTType"))


@dataclass(frozen=True)
class PrivateNumber:
    """A private number.

    Attributes:
        value: the noisy answer.
        epsilon: what it cost, exactly. No ledger was debited.
        scale: of the Laplace noise, in the value's units; for a mean, of the noise on the sum around the centre
            of the bounds, which is then divided by the noisy count.
        name: "count", "sum" or "mean".
    """

    name: str
    value: int | float
    epsilon: Fraction
    scale: Fraction
    _output: PlannedOutput = field(repr=False)
    _measurements: tuple[Measurement, ...] = field(repr=False)
    _noisy: tuple[Int128Array, ...] = field(repr=False)

    def interval(self, confidence: object = "0.95") -> tuple[int | float, int | float]:
        """The ends of an interval that holds the exact (clipped) value with that confidence.

        Raises:
            UsageError: a confidence that is not between 0 and 1.
        """
        level = parse_confidence(confidence)
        estimate = estimate_output(self._output, self._measurements, self._noisy, level)
        return estimate.low[0], estimate.high[0]

    def __repr__(self) -> str:
        low, high = (f"{end:,.6g}" if isinstance(end, float) else f"{end:,}" for end in self.interval())
        shown = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:,.6g}"
        return f"{self.name} {shown} (95 % interval {low} … {high}; epsilon {decimal_text(self.epsilon)})"


def count(values: object, *, epsilon: object) -> PrivateNumber:
    """How many values there are, missing ones (None, NaN, NULL, masked) left out, as a whole number.

    It may be negative: clamping it at 0 afterwards costs nothing, but biases a total of many such counts.
    Debits no ledger. Sensitivity 1: one person is one value. Scale 1 / epsilon.

    Args:
        values: a list, a NumPy array, a pandas, Polars or Arrow column.
        epsilon: the cost.

    Raises:
        UsageError: an epsilon that is not valid, or values that are not a column.
    """
    exact = parse_epsilon(epsilon)
    measurement = _count_measurement(exact)
    output = PlannedOutput("count", "count", (0,), "count", whole=True)
    return _release("count", output, (measurement,), (_count(_column(values)),), exact)


def sum(values: object, *, bounds: object = None, epsilon: object) -> PrivateNumber:
    """The sum of the values, each clamped to the declared bounds; missing ones are left out.

    In a plain list or a column of objects, what is no number is missing too.

    Debits no ledger. Sensitivity max(|lower|, |upper|), the declared one, never the data's own.

    Args:
        values: a list, a NumPy array, a pandas, Polars or Arrow column of numbers.
        bounds: (lower, upper): the range that you know values to have, without looking at these.
        epsilon: the cost.

    Raises:
        UsageError: no bounds, or an argument that is not valid.
    """
    exact = parse_epsilon(epsilon)
    column, grid, whole = _numbers(values, bounds, "sum")
    if grid.largest == 0:
        raise UsageError("sum", "is always 0 between these bounds", hint="declare wider bounds")
    weight = sensitivity.row_weight(row_level=True)
    bound = sensitivity.of_sum(1, weight, grid)
    measurement = Measurement("sum", None, grid, weight, 1, bound, exact)
    total, _ = _totals(column, grid)
    output = PlannedOutput("sum", "sum", (0,), "sum", whole)
    return _release("sum", output, (measurement,), (total,), exact)


def mean(values: object, *, bounds: object = None, epsilon: object) -> PrivateNumber:
    """The mean of the values, each clamped to the declared bounds, itself always between them.

    Half of epsilon goes to the sum around the centre of the bounds (sensitivity (upper - lower) / 2), half to
    the count (sensitivity 1). In a plain list or a column of objects, what is no number is missing.
    Debits no ledger.

    Args:
        values: a list, a NumPy array, a pandas, Polars or Arrow column of numbers.
        bounds: (lower, upper): the range that you know values to have, without looking at these.
        epsilon: the cost.

    Raises:
        UsageError: no bounds, or an argument that is not valid.
    """
    exact = parse_epsilon(epsilon)
    column, grid, _ = _numbers(values, bounds, "mean")
    total, present = _totals(column, grid)
    if grid.width == 0:
        output = PlannedOutput("mean", "constant", (0,), "mean", constant=grid.bounds.lower)
        return _release("mean", output, (_count_measurement(exact),), (present,), exact)
    half, other = split(exact, (Fraction(1), Fraction(1)))
    weight = sensitivity.row_weight(row_level=True)
    bound = sensitivity.of_centred_sum(1, weight, grid)
    centred = Measurement("centred_sum", None, grid, weight, 1, bound, half)
    # The sum of 2 q - qL - qU over the present values, from the sum of q and their number; still exact.
    exact_centred = 2 * total - (grid.lowest + grid.highest) * present
    output = PlannedOutput("mean", "mean", (0, 1), "mean")
    return _release("mean", output, (centred, _count_measurement(other)), (exact_centred, present), exact)


def _count_measurement(epsilon: Fraction) -> Measurement:
    weight = sensitivity.row_weight(row_level=True)
    return Measurement("count", None, None, weight, 1, sensitivity.of_count(1, weight), epsilon)


def _release(
    name: str,
    output: PlannedOutput,
    measurements: tuple[Measurement, ...],
    totals: Sequence[int],
    epsilon: Fraction,
) -> PrivateNumber:
    # In hand: exact integer totals, PRIVATE.
    noisy = tuple(
        LaplaceMechanism(m.sensitivity, m.epsilon).release_limbs(Int128Array.from_ints([t]), SystemEntropy())
        for m, t in zip(measurements, totals, strict=True)
    )
    # In hand: noisy totals; all below is post-processing.
    value = estimate_output(output, measurements, noisy, Fraction(19, 20)).values[0]
    scale = measurements[0].scale * measurements[0].unit_value
    return PrivateNumber(name, value, epsilon, scale, output, measurements, noisy)


def _column(values: object) -> NDArray[Any] | list[Any]:
    """The values as a one-dimensional NumPy array if they have a declared type, else as a list."""
    example = "pass a list, a NumPy array, or a pandas, Polars or Arrow column"
    if values is None or isinstance(values, str | bytes | dict | set | frozenset):
        raise UsageError("values", "must be a column of values", type(values).__name__, example)
    if isinstance(values, np.ndarray):
        if values.ndim != 1:
            raise UsageError("values", "must have one dimension", f"{values.ndim} dimensions", example)
        if isinstance(values, np.ma.MaskedArray):
            # A masked value is missing, whatever stands under the mask.
            values = values.compressed()
        return values.tolist() if values.dtype == object else values
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        raise UsageError("values", "must be one column, not a table", type(values).__name__, example)
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind != "O" and hasattr(values, "to_numpy"):
        return np.asarray(values.to_numpy())
    for to_list in ("to_pylist", "to_list", "tolist"):  # Arrow, Polars, pandas' own types: missing is None
        if hasattr(values, to_list):
            return list(getattr(values, to_list)())
    if isinstance(values, Iterable):
        return list(values)
    raise UsageError("values", "must be a column of values", type(values).__name__, example)


def _is_missing(value: object) -> bool:
    if value is None or type(value).__name__ in _MISSING_TYPES:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return isinstance(value, Decimal) and value.is_nan()


def _count(column: NDArray[Any] | list[Any]) -> int:
    if isinstance(column, list):
        return len(column) - len([1 for value in column if _is_missing(value)])
    if column.dtype.kind == "f":
        return len(column) - int(np.count_nonzero(np.isnan(column)))
    if column.dtype.kind in "mM":
        return len(column) - int(np.count_nonzero(np.isnat(column)))
    return len(column)


def _numbers(values: object, bounds: object, name: str) -> tuple[NDArray[Any] | list[Any], Grid, bool]:
    """The column, its grid, and whether sums on it are whole numbers."""
    example = f"for example discreet.{name}(ages, bounds=(0, 120), epsilon=0.5)"
    if bounds is None:
        raise UsageError(
            f"{name}, bounds",
            "are required: without them one value could be anything, and no noise would hide it; the data's own "
            "minimum and maximum are private",
            hint=example,
        )
    declared = parse_bounds(bounds, f"{name}, bounds", example)
    declared_type = _not_numeric(values)
    if declared_type is not None:
        raise UsageError("values", "must be numbers", declared_type)
    column = _column(values)
    kind = FLOAT
    if not isinstance(column, list):
        if column.dtype.kind not in "biuf" or column.dtype.itemsize > 8:
            raise UsageError("values", "must be numbers", str(column.dtype))
        kind = FLOAT if column.dtype.kind == "f" else INTEGER
    grid = choose_grid(kind, declared, name)
    return column, grid, kind is INTEGER and grid.step.denominator == 1


_NUMERIC = ("int", "uint", "float", "halffloat", "double", "decimal", "bool", "object", "null")


def _not_numeric(values: object) -> str | None:
    """The declared type of a column that has one of its own, if that is not one of numbers; NumPy's are told by
    their kind."""
    dtype = getattr(values, "dtype", getattr(values, "type", None))
    if dtype is None or isinstance(dtype, np.dtype) or callable(dtype):
        return None
    name = str(getattr(dtype, "pyarrow_dtype", dtype))
    return None if name.lower().startswith(_NUMERIC) and not name.lower().startswith("interval") else name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Decimal | Fraction | np.integer | np.floating | np.bool_)


def _totals(column: NDArray[Any] | list[Any], grid: Grid) -> tuple[int, int]:
    """The exact sum of q = floor(clamp(x) / step) over the present values, and how many those are."""
    if isinstance(column, list):
        present = [value for value in column if _is_number(value) and not _is_missing(value)]
        total = 0
        for value in present:
            total += _one(value, grid)
        return total, len(present)
    total, number = 0, 0
    for start in range(0, len(column), _CHUNK):
        chunk = column[start : start + _CHUNK]
        if chunk.dtype.kind == "f":
            chunk = chunk[~np.isnan(chunk)].astype(np.float64)
            low, high = float(grid.bounds.lower), float(grid.bounds.upper)
            # A power of two scales a double exactly; clamped again as an integer, |q| <= B for certain.
            q = np.floor(np.clip(chunk, low, high) * float(1 / grid.step)).astype(np.int64)
            q = np.clip(q, grid.lowest, grid.highest)
            total += int(q.sum())  # 2^20 values of at most 2^41 fit 64 bits
        elif grid.step == 1 and (chunk.dtype.kind == "i" or chunk.dtype.itemsize < 8):
            q = np.clip(chunk.astype(np.int64), max(grid.lowest, -(2**63)), min(grid.highest, 2**63 - 1))
            # In halves of 32 bits: 2^20 whole values could pass 64 bits.
            total += (int((q >> 32).sum()) << 32) + int((q & 0xFFFFFFFF).sum())
        else:
            values, times = np.unique(chunk, return_counts=True)
            for value, repeated in zip(values.tolist(), times.tolist(), strict=True):
                total += _one(value, grid) * repeated
        number += len(chunk)
    return total, number


def _one(value: Any, grid: Grid) -> int:
    """floor(clamp(x) / step) of one number, exactly."""
    if isinstance(value, float | np.floating):
        value = float(value)
        if math.isinf(value):
            return grid.highest if value > 0 else grid.lowest
    elif isinstance(value, Decimal):
        if value.is_infinite() or value.adjusted() > _DECADES:
            return grid.highest if value > 0 else grid.lowest
        if value.adjusted() < -_DECADES and value != 0:
            # As a fraction it could fill the memory. Nothing on a grid lies between it and this.
            value = Fraction(1 if value > 0 else -1, 10**_DECADES)
    elif isinstance(value, np.integer | np.bool_):
        value = int(value)
    x = Fraction(value)
    if x <= grid.bounds.lower:
        return grid.lowest
    if x >= grid.bounds.upper:
        return grid.highest
    scaled = x / grid.step
    return min(max(scaled.numerator // scaled.denominator, grid.lowest), grid.highest)
