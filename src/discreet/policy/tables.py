"""TOML tables, taken apart key by key: each fault is noted with its key path, and the reading goes on."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, TypeVar

from discreet.errors import UsageError
from discreet.policy.declared import near

__all__ = ["Faults", "Table"]

T = TypeVar("T")


class Faults:
    """The faults found so far, in the order of the file's reading."""

    def __init__(self) -> None:
        self.found: list[UsageError] = []

    def note(self, path: str, rule: str, value: object = None, hint: str = "") -> None:
        self.found.append(UsageError(path, rule, _shown(value), hint))

    @contextmanager
    def noting(self) -> Iterator[None]:
        """What is refused inside becomes a fault."""
        try:
            yield
        except UsageError as fault:
            self.found.append(fault)


class Table:
    """One table. Take every key that may stand in it, then `finish`: what is left over is unknown.

    Args:
        path: its key path; "" for the whole file.
        value: what stands there.
        faults: where faults go.
    """

    def __init__(self, path: str, value: object, faults: Faults) -> None:
        self.path, self.faults = path, faults
        self._known: list[str] = []
        self._values: dict[str, Any] = {}
        if isinstance(value, dict):
            self._values = value
        else:
            faults.note(path, "must be a table", value, f"write [{path}] and its keys below")

    def at(self, key: str) -> str:
        """The key path of one of its keys."""
        plain = key.replace("_", "a").replace("-", "a").isalnum() and key.isascii()
        shown = key if plain else '"' + key.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return f"{self.path}.{shown}" if self.path else shown

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def take(self, key: str, read: Callable[[str, Any], T]) -> T | None:
        """The value of a key, read; None if it is absent or faulty.

        Args:
            read: from key path and value; raises UsageError for a faulty one.
        """
        self._known.append(key)
        if key not in self._values:
            return None
        try:
            return read(self.at(key), self._values[key])
        except UsageError as fault:
            self.faults.found.append(fault)
            return None

    def require(self, key: str, why: str, hint: str) -> None:
        """Note that a key is missing."""
        if key not in self._values:
            self.faults.note(self.at(key), f"is missing: {why}", hint=hint)

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """The tables below a key, by name."""
        self._known.append(key)
        if key in self._values:
            below = Table(self.at(key), self._values[key], self.faults)
            for name in below._values:
                yield name, Table(below.at(name), below._values[name], self.faults)

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def raw(self, key: str) -> Any:
        """The value of a key as it stands; None if it is absent."""
        self._known.append(key)
        return self._values.get(key)

    def finish(self) -> None:
        """Note every key that was not asked for."""
        for key in self._values:
            if key not in self._known:
                hint = near(key, self._known) or f"known here: {', '.join(self._known)}"
                self.faults.note(self.at(key), "is not a key that a policy knows", hint=hint)


def text(path: str, value: object) -> str:
    """A text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise UsageError(path, "must be a text in quotes", _shown(value))
    return value


def flag(path: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise UsageError(path, "must be true or false", _shown(value))
    return value


def number(path: str, value: object) -> int | Decimal:
    """A number as it was typed; NaN and infinities are left to who reads it further."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise UsageError(path, "must be a number, without quotes", _shown(value))
    return value


def whole(path: str, value: object) -> int:
    """A whole number from 1."""
    from discreet.exact import parse_positive_integer

    return parse_positive_integer(path, number(path, value))


def texts(path: str, value: object) -> tuple[str, ...]:
    """A list of texts."""
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise UsageError(path, 'must be a list of texts, such as ["a", "b"]', _shown(value))
    return tuple(value)


def _shown(value: object) -> object:
    """A value of the file for an error: as one would write it there."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal | datetime.date | datetime.time):
        return str(value)
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a list of {len(value)} values"
    return value
