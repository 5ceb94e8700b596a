"""Text in formulas on noisy values: what keys and words can be made into. See `formulas`, and `binding_text` for what
the functions mean. Nothing private is in hand, so nothing here has to hide anything; it only must be total.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from discreet.patterns import BLANKS, like_pieces

__all__ = ["TEXT_FUNCTIONS"]

_LONGEST = 10_000


def _letters(change: Callable[[str], str]) -> Callable[[str], str]:
    """Letter by letter, so that the length stays: a letter whose other form has several letters is kept."""

    def apply(text: str) -> str:
        changed = ((letter, change(letter)) for letter in text)
        return "".join(new if len(new) == 1 else old for old, new in changed)

    return apply


_lower, _upper = _letters(str.lower), _letters(str.upper)


def _like(text: str, pattern: str) -> bool:
    """% for any text, _ for one character. By going back to the last % only, in time |text| * |pattern|."""
    pieces = like_pieces(pattern)
    i = j = start = 0
    star = -1
    while i < len(text):
        if j < len(pieces) and pieces[j] == ("%", True):
            star, start, j = j, i, j + 1
        elif j < len(pieces) and (pieces[j] == ("_", True) or pieces[j] == (text[i], False)):
            i, j = i + 1, j + 1
        elif star >= 0:
            start, i, j = start + 1, start + 1, star + 1
        else:
            return False
    return all(piece == ("%", True) for piece in pieces[j:])


def _substr(text: str, start: int, length: int = _LONGEST) -> str:
    """From place `start`, counted from 1, or from the end where it is below 0; place 0 is place 1."""
    first = max(0, len(text) + start) if start < 0 else max(0, start - 1)
    return text[first : first + max(0, length)]


def _right(text: str, length: int) -> str:
    return text[max(0, len(text) - length) :] if length > 0 else ""


def _split_part(text: str, separator: str, place: int) -> str:
    parts = text.split(separator)  # an empty separator raises ValueError: missing
    return parts[place - 1] if 1 <= place <= len(parts) else ""


def _short(text: str) -> str:
    if len(text) > _LONGEST:
        raise OverflowError
    return text


Shape = tuple[str, ...]
_ONE, _TWO, _SIDE = [("text",)], [("text", "text")], [("text", "whole")]

TEXT_FUNCTIONS: dict[str, tuple[Sequence[Shape], str, Callable[..., object]]] = {
    "like": (_TWO, "condition", _like),
    "ilike": (_TWO, "condition", lambda x, y: _like(_lower(x), _lower(y))),
    "starts_with": (_TWO, "condition", str.startswith),
    "ends_with": (_TWO, "condition", str.endswith),
    "strpos": (_TWO, "whole", lambda x, y: x.find(y) + 1),
    "length": (_ONE, "whole", len),
    "byte_length": (_ONE, "whole", lambda x: len(x.encode())),
    "lower": (_ONE, "text", _lower),
    "upper": (_ONE, "text", _upper),
    "trim": ([*_ONE, *_TWO], "text", lambda x, y=BLANKS: x.strip(y)),
    "ltrim": ([*_ONE, *_TWO], "text", lambda x, y=BLANKS: x.lstrip(y)),
    "rtrim": ([*_ONE, *_TWO], "text", lambda x, y=BLANKS: x.rstrip(y)),
    "substr": ([*_SIDE, ("text", "whole", "whole")], "text", _substr),
    "left": (_SIDE, "text", lambda x, n: x[: max(0, n)]),
    "right": (_SIDE, "text", _right),
    "replace": ([("text", "text", "text")], "text", lambda x, old, new: _short(x.replace(old, new) if old else x)),
    "split_part": ([("text", "text", "whole")], "text", _split_part),
}
"""By name: what it takes (one of several shapes), what it gives, and the value of arguments that are not missing."""
