"""The one tree of exceptions.

Each error names the *thing* it is about, the *rule* that was broken, the *value* the caller gave (never a
value from the data, never an engine's own text) and, where there is one, a *hint*: what to write instead.
`exit_code` is what the command line exits with.
"""

from __future__ import annotations

import re

__all__ = [
    "BudgetError",
    "DiscreetError",
    "EngineError",
    "LedgerError",
    "OutputError",
    "PolicyError",
    "RefusedError",
    "SourceError",
    "UsageError",
    "without_password",
]

_LONGEST_VALUE = 120
_MOST_FAULTS = 50


class DiscreetError(Exception):
    """The root: catch this to catch everything that discreet raises on purpose.

    Args:
        thing: what the error is about, in the user's words ("epsilon", "column 'files'").
        rule: what must hold.
        value: what the caller wrote, if that is what broke the rule. Shown shortened. Never a data value.
        hint: what to do instead.
    """

    exit_code = 1

    def __init__(self, thing: str, rule: str, value: object = None, hint: str = "") -> None:
        self.thing = thing
        self.rule = rule
        self.value = value
        self.hint = hint
        super().__init__(thing, rule, value, hint)

    def __str__(self) -> str:
        text = f"{self.thing}: {self.rule}"
        if self.value is not None:
            shown = without_password(self.value if isinstance(self.value, str) else repr(self.value))
            if len(shown) > _LONGEST_VALUE:
                shown = shown[: _LONGEST_VALUE - 1] + "…"
            text += f" (got {shown!r})" if isinstance(self.value, str) else f" (got {shown})"
        if not text.endswith((".", "!", "?")):
            text += "."
        return f"{text} Hint: {without_password(self.hint)}" if self.hint else text


_PASSWORDS = re.compile(r"(?i)(postgres(?:ql)?://)\S*@|([?&]password=)[^&\s]*")


def without_password(text: str) -> str:
    """A text for people in which an address of a database is named without user and password."""
    return _PASSWORDS.sub(r"\1\2", text)


class SourceError(DiscreetError):
    """A file or table cannot be opened, read or registered (exit 1)."""


class OutputError(DiscreetError):
    """A result cannot be written (exit 1)."""


class EngineError(DiscreetError):
    """The engine failed while it ran a statement (exit 1). The text is constant: engines quote the data."""


class UsageError(DiscreetError, ValueError):
    """A value, an option, a name or a policy is not valid (exit 2)."""

    exit_code = 2


class PolicyError(UsageError):
    """A policy is not valid (exit 2). All its faults are told at once.

    Args:
        name: of the policy's file.
        faults: each with the key path as its thing.
    """

    def __init__(self, name: str, faults: tuple[UsageError, ...]) -> None:
        self.faults = faults
        number = "1 fault" if len(faults) == 1 else f"{len(faults)} faults"
        super().__init__(f"policy {name}", f"has {number}; nothing was charged")
        self.args = (name, faults)

    def __str__(self) -> str:
        shown = self.faults[:_MOST_FAULTS]
        more = len(self.faults) - len(shown)
        rest = [f"  and {more} more"] if more else []
        return "\n".join([f"{self.thing} {self.rule}:", *(f"  {fault}" for fault in shown), *rest])


class BudgetError(DiscreetError):
    """The budget does not allow this query (exit 3)."""

    exit_code = 3


class RefusedError(DiscreetError):
    """The question cannot be answered privately as it stands (exit 4). Nothing was read, nothing charged."""

    exit_code = 4


class LedgerError(DiscreetError):
    """The ledger cannot be read, written or trusted (exit 5)."""

    exit_code = 5
