"""What the owner is asked on a terminal when a policy is begun."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import typer

from discreet.cli.talk import say
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.policy.writing import Draft
    from discreet.query import Bounds
    from discreet.schema import Column, Registration

__all__ = ["Conversation", "check_unit", "fitting"]


def fitting(column: Column, bounds: Bounds) -> Bounds:
    """Bounds that a policy can declare for a column.

    Raises:
        UsageError: they are of another kind than its values.
    """
    kind = column.type.kind
    if kind.is_number and bounds.written != "number":
        raise UsageError(f"bounds of {column.name!r}", "must be two numbers, such as 0..100")
    if kind.is_temporal and bounds.written != "date":
        raise UsageError(f"bounds of {column.name!r}", "must be two days, such as 2024-01-01..2024-12-31")
    if not kind.is_number and not kind.is_temporal:
        raise UsageError(f"bounds of {column.name!r}", f"are for numbers and dates, but the column is {kind}")
    return bounds


def check_unit(draft: Draft, registration: Registration) -> None:
    """Refuse a privacy unit that the source's columns do not make.

    Raises:
        UsageError: naming what is wrong.
    """
    from discreet.policy import BudgetPolicy, DatasetPolicy
    from discreet.policy.checking import declared_unit
    from discreet.privacy import PrivacyLoss

    budget = BudgetPolicy("", "", PrivacyLoss(Fraction(1)))
    declared_unit(DatasetPolicy("", draft.name, draft.source, budget, privacy_unit=draft.unit), registration)


@dataclass
class Conversation:
    """Questions to the owner, one after the other. Enter leaves a place open; what is refused is asked again."""

    draft: Draft
    registration: Registration

    def held(self, *, with_bounds: bool) -> Draft:
        """Ask all that the flags left open.

        Args:
            with_bounds: whether bounds are asked for.
        """
        self._unit()
        self._limits()
        if with_bounds:
            self._bounds()
        self._budget()
        return self.draft

    def _unit(self) -> None:
        if self.draft.unit or self.draft.row_level:
            return
        say(
            'Whose rows are protected together? A column, or several with commas; "row" if each row is one person.\n'
            "Enter leaves a place open, here and below."
        )
        self._ask("privacy unit", self._unit_said)

    def _unit_said(self, text: str) -> None:
        if text.strip().casefold() == "row" and self.registration.schema.position("row") is None:
            self._set(row_level=True)
            return
        draft = dataclasses.replace(self.draft, unit=(text.strip(),))
        check_unit(draft, self.registration)
        self.draft = draft

    def _limits(self) -> None:
        if self.draft.row_level:
            return
        who = " and ".join(self.draft.unit) or "unit"
        if self.draft.max_contributions is None:
            say(f"How many rows may one {who} weigh, over all groups? What most stay under, as far as you know.")
            self._ask_number("max_contributions")
        if self.draft.max_groups_contributed is None:
            say(f"In how many groups may one {who} be counted, where they are counted? Enter: no limit of its own.")
            self._ask_number("max_groups_contributed")

    def _ask_number(self, name: str) -> None:
        from discreet.exact import parse_positive_integer

        self._ask(name, lambda text: self._set(**{name: parse_positive_integer(name, text)}))

    def _bounds(self) -> None:
        from discreet.bounds import parse_bounds_option
        from discreet.policy.writing import policy_text

        numbers = [column for column in self.draft.columns if column.type.kind.is_number]
        if not numbers:
            return
        say(
            "Between which bounds are numbers summed or averaged? LOW..HIGH, from what you know: values outside are\n"
            "clamped. A full stop ends the list."
        )

        for column in numbers:

            def said(text: str, column: Column = column) -> None:
                bounds = fitting(column, parse_bounds_option(f"{column.name}={text}")[1])
                draft = dataclasses.replace(self.draft, bounds={**self.draft.bounds, column.name: bounds})
                policy_text(draft)  # refuses what a policy cannot hold
                self.draft = draft

            if self._ask(f"{_printable(column.name)} ({column.type})", said, end=".") == ".":
                return

    def _budget(self) -> None:
        from discreet.exact import parse_delta, parse_epsilon

        if self.draft.epsilon is None:
            say("What may all queries together cost, for good? 3 is a usual start; it can be raised, never lowered.")
            self._ask("epsilon", lambda text: self._set(epsilon=parse_epsilon(text, name="budget")))
        if self.draft.epsilon is not None and self.draft.delta is None:
            say(
                "And at which chance may the promise fail, for groups chosen from the data? Enter: none; 1e-6 is usual."
            )
            self._ask("delta", lambda text: self._set(delta=parse_delta(text, name="the budget's delta") or None))
            self._groups()
        if self.draft.epsilon is not None and self.draft.default_epsilon is None:
            say("What does a query cost that does not say it? Enter: each has to say it.")
            self._ask("default_epsilon", self._default_said)

    def _groups(self) -> None:
        if self.draft.delta is not None:
            self._ask("May analysts let groups be chosen from the data? y or n", self._groups_said)

    def _groups_said(self, text: str) -> None:
        word = text.strip().casefold()
        if word not in ("y", "yes", "n", "no"):
            raise UsageError("answer", "must be y or n", text)
        self._set(unknown_groups=word.startswith("y"))

    def _default_said(self, text: str) -> None:
        from discreet.exact import decimal_text, parse_epsilon

        epsilon = parse_epsilon(text)
        if self.draft.epsilon is not None and epsilon > self.draft.epsilon:
            raise UsageError("epsilon", f"must not be above the budget's, {decimal_text(self.draft.epsilon)}", text)
        self._set(default_epsilon=epsilon)

    def _set(self, **values: Any) -> None:
        self.draft = dataclasses.replace(self.draft, **values)

    def _ask(self, prompt: str, answer: Callable[[str], None], end: str = "") -> str:
        """Ask until the answer is taken, or nothing or `end` is answered.

        Returns:
            What was answered.
        """
        while True:
            sys.stderr.write(f"{prompt}: ")
            sys.stderr.flush()
            line = sys.stdin.readline()
            if not line:  # Ctrl-D: nothing was written, nothing registered
                sys.stderr.write("\n")
                raise typer.Abort
            text = line.strip()
            if text in ("", end):
                return text
            try:
                answer(text)
            except UsageError as fault:
                say(f"  {fault}")
            else:
                return text


def _printable(name: str) -> str:
    """A column's name on a terminal: no control character of it moves the cursor."""
    return "".join(c if c.isprintable() else "?" for c in name)
