"""Faults to plant, one at a time, by name: each must be caught by the auditor, or it is worth nothing.

Nothing that answers a query imports this module (a test holds that), and there is no switch: a fault lives in this
process alone, while `planted` runs, and only the self-test plants any.
"""

from __future__ import annotations

import hashlib
import importlib
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from discreet.entropy import SystemEntropy
from discreet.exact import parse_rational
from discreet.laplace.limbs import Int128Array
from discreet.laplace.sampler import draw_limbs
from discreet.schema import Kind

__all__ = ["FAULTS", "Fault", "planted"]

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        name: in words.
        changes: what is replaced ("module:name", or "module:Class.name") by what is made of it.
        chosen: whether it is looked for in a query that chooses its groups.
    """

    name: str
    changes: tuple[tuple[str, Change], ...]
    chosen: bool = False


@contextmanager
def planted(fault: Fault) -> Iterator[None]:
    """Plant a fault; in every module that knows the thing by that name. Taken out again at the end."""
    done: list[tuple[object, str, object]] = []
    try:
        for target, change in fault.changes:
            module, _, name = target.partition(":")
            owner: Any = importlib.import_module(module)
            *path, name = name.split(".")
            for part in path:
                owner = getattr(owner, part)
            real = owner.__dict__[name]
            wrong = change(real)
            owners = [owner] if path else [m for m in _house() if m.__dict__.get(name) is real]
            for one in owners:
                done.append((one, name, real))
                setattr(one, name, wrong)
        yield
    finally:
        for one, name, real in reversed(done):
            setattr(one, name, real)


def _house() -> list[Any]:
    return [module for name, module in list(sys.modules.items()) if name.startswith("discreet") and module is not None]


# --- the changes -------------------------------------------------------------------------------------------------


def _scale_halved(real: Any) -> Any:
    def mechanism(sensitivity: Any, epsilon: Any) -> Any:
        return real(sensitivity / Fraction(2) if type(sensitivity) is int else sensitivity, epsilon)

    return mechanism


def _groups_forgotten(real: Any) -> Any:
    return lambda limit, weight: real(1, weight)


def _threshold_moved(by: int) -> Change:
    return lambda real: lambda noisy, selection: real(noisy, replace(selection, margin=selection.margin + by))


def _float_noise(real: Any) -> Any:
    """The formula as it is usually published, in doubles, and a sum of doubles."""

    def add_noise(measurements: Any, totals: Any, entropy: Any) -> Any:
        noisy = []
        for m, total in zip(measurements, totals, strict=True):
            uniform = entropy.words(len(total)).astype(np.float64) / 2.0**64 - 0.5
            noise = -float(m.scale) * np.sign(uniform) * np.log(np.maximum(1e-300, 1 - 2 * np.abs(uniform)))
            sums = np.array([float(x) for x in total.to_ints()]) + noise
            noisy.append(Int128Array.from_ints(math.floor(x) for x in sums.tolist()))
        return tuple(noisy)

    return add_noise


def _noise_reused(real: Any) -> Any:
    def release_limbs(self: Any, totals: Any, entropy: Any = None) -> Any:
        one = draw_limbs(self.scale, 1, entropy)
        return totals.add(Int128Array(np.repeat(one.high, len(totals)), np.repeat(one.low, len(totals))))

    return release_limbs


def _without_noise(which: Callable[[Any], bool]) -> Change:
    def change(real: Any) -> Any:
        def add_noise(measurements: Any, totals: Any, entropy: Any) -> Any:
            noisy = real(measurements, totals, entropy)
            trio = zip(measurements, totals, noisy, strict=True)
            return tuple(total if which(m) else with_noise for m, total, with_noise in trio)

        return add_noise

    return change


def _nan_fails(real: Any) -> Any:
    def on_grid(x: Any, type_: Any, grid: Any, *rest: Any) -> Any:
        if type_.kind is not Kind.FLOAT:
            return real(x, type_, grid, *rest)
        whole = exp.Cast(this=x.copy(), to=exp.DataType.build("BIGINT"))
        return exp.Case(ifs=[exp.If(this=exp.func("isnan", x.copy()), true=whole)], default=real(x, type_, grid, *rest))

    return on_grid


def _clamp_first(real: Any) -> Any:
    """The self-test asks for the sum of three times n."""

    def on_grid(x: Any, type_: Any, grid: Any, *rest: Any) -> Any:
        within = real(x, type_, grid, *rest)
        return within if type_.kind is Kind.FLOAT else exp.Mul(this=exp.paren(within), expression=exp.Literal.number(3))

    return on_grid


class _Order:
    """Rows in the order of their exact totals."""

    def __init__(self) -> None:
        self.totals: list[int] = []

    def remember(self, real: Any) -> Any:
        def add_noise(measurements: Any, totals: Any, entropy: Any) -> Any:
            self.totals = totals[0].to_ints()
            return real(measurements, totals, entropy)

        return add_noise

    def show(self, real: Any) -> Any:
        def answer_columns(plan: Any, keys: Any, noisy: Any, confidence: Any) -> Any:
            columns = real(plan, keys, noisy, confidence)
            order = sorted(range(len(columns[0].values)), key=lambda i: self.totals[i])
            return tuple(replace(c, values=tuple(c.values[i] for i in order)) for c in columns)

        return answer_columns


class _State:
    """A generator with a state of its own, as libraries have them: a seed, and a counter that a fork copies."""

    def __init__(self, *, seeded: bool) -> None:
        self._seed = b"7" if seeded else SystemEntropy().bits(128).to_bytes(16, "little")
        self._seeded = seeded
        self._drawn = 0

    def _bytes(self, size: int) -> bytes:
        self._drawn += 0 if self._seeded else 1
        return hashlib.shake_256(self._seed + self._drawn.to_bytes(8, "little")).digest(size)

    def words(self, real: Any) -> Any:
        return lambda _, count: np.frombuffer(self._bytes(8 * count), dtype="<u8").astype(np.uint64)

    def bits(self, real: Any) -> Any:
        return lambda _, count: int.from_bytes(self._bytes(count // 8 + 1), "little") >> (8 - count % 8)


def _stateful(*, seeded: bool) -> tuple[tuple[str, Change], ...]:
    state = _State(seeded=seeded)
    return (("discreet.entropy:SystemEntropy.words", state.words), ("discreet.entropy:SystemEntropy.bits", state.bits))


def _order_leaked() -> tuple[tuple[str, Change], ...]:
    order = _Order()
    return (("discreet.release:add_noise", order.remember), ("discreet.postprocessing:answer_columns", order.show))


FAULTS = (
    Fault("the scale is halved", (("discreet.release:LaplaceMechanism", _scale_halved),)),
    Fault("groups are forgotten in the sensitivity", (("discreet.sensitivity:of_unit_count", _groups_forgotten),)),
    Fault("each measurement spends the whole epsilon", (
        ("discreet.planning:split", lambda real: lambda epsilon, shares: (epsilon,) * len(shares)),
    )),
    Fault("> stands for >= at the threshold", (("discreet.release:passes", _threshold_moved(1)),), chosen=True),
    Fault("the threshold is one too low", (("discreet.release:passes", _threshold_moved(-1)),), chosen=True),
    Fault("noise in floats", (("discreet.release:add_noise", _float_noise),)),
    Fault("one noise for all groups", (("discreet.laplace.mechanism:LaplaceMechanism.release_limbs", _noise_reused),)),
    Fault("no noise on one statistic", (
        ("discreet.release:add_noise", _without_noise(lambda m: m.statistic == "unit_count")),
    )),
    Fault("a mean divides by the true count", (
        ("discreet.release:add_noise", _without_noise(lambda m: m.statistic == "count" and m.expression is not None)),
    )),
    Fault("no clamp", (("discreet.statement_parts:clamp", lambda real: lambda x, low, high: x),)),
    Fault("the clamp comes before the expression", (("discreet.rendering:on_grid", _clamp_first),)),
    Fault("NaN is let through", (
        ("discreet.rendering:on_grid", _nan_fails),
    )),
    Fault("heavy units are not cut down", (
        ("discreet.relational:Compiler._heavy", lambda real: lambda self, rows, limit, weight: real(
            self, rows, 2**40, weight)),
    )),
    Fault("keys are taken from the data", (
        ("discreet.engines.duckdb:_spread", lambda real: lambda values, places, cells, offset: real(
            values, places, cells, offset)[np.sort(places)]),
    )),
    Fault("the order of rows tells the totals", _order_leaked()),
    Fault("the engine's error comes out", (
        ("discreet.engines.duckdb:_without_engine_text", lambda real: lambda work: work()),
    )),
    Fault("a fork copies the state of randomness", _stateful(seeded=False)),
    Fault("a seed", _stateful(seeded=True)),
    Fault("a negative epsilon is accepted", (
        ("discreet.exact:parse_epsilon", lambda real: lambda value, *, name="epsilon": parse_rational(
            name, value, rule="must be a number")),
    )),
)  # fmt: skip
"""Issue 5 asks for about fifteen."""
