"""Letters and their other case, one character for one, as Unicode's simple mappings have them.

Engines change case by their own tables, by the locale of a database or a machine, or by the letters around (a final
sigma). These tables are the same everywhere; DuckDB's own functions agree with them (`tests/test_conformance.py`).
"""

from __future__ import annotations

from functools import cache

__all__ = ["FOLD", "LOWER", "UPPER", "fold", "mapping"]


def _lower(letter: str) -> str:
    changed = letter.lower()
    return changed if len(changed) == 1 else "i"  # only of the I with a dot, U+0130, are there two


def _upper(letter: str) -> str:
    if letter == "ß":
        return "ẞ"
    for changed in (letter.upper(), letter.title()):
        if len(changed) == 1:
            return changed
    return letter


def _fold(letter: str) -> str:
    if letter in "\u0130\u0131":
        return letter  # Turkish letters fold to themselves
    changed = letter.casefold()
    return changed if len(changed) == 1 else _lower(letter)


LOWER, UPPER, FOLD = "lower", "upper", "fold"
_RULES = {LOWER: _lower, UPPER: _upper, FOLD: _fold}


@cache
def mapping(name: str) -> tuple[str, str]:
    """The letters that change, and what they change to, in two texts of one length."""
    rule = _RULES[name]
    pairs = [(letter, rule(letter)) for letter in map(chr, range(1, 0x110000)) if letter != rule(letter)]
    return "".join(before for before, _ in pairs), "".join(after for _, after in pairs)


def fold(text: str) -> str:
    """A text without its letters' case."""
    return "".join(map(_fold, text))
