"""Elements of HTML as text, with everything in them escaped. What is not made here is not markup."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

__all__ = ["Child", "Html", "element", "joined", "words"]


class Html(str):
    """Text that is markup already, from this module only."""

    __slots__ = ()


Child: TypeAlias = "Html | str | None | Iterable[Child]"
"""What stands in an element: markup, text to be escaped, nothing, or several of these."""

_EMPTY = frozenset({"meta", "br", "hr", "rect", "line", "path", "polyline"})


def element(name: str, /, *children: Child, **attributes: str | float | None) -> Html:
    """One element. Attributes that are None are left out; ``_`` in their names is a ``-``, at the end it is nothing
    (``class_``)."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_printable(str(value)), quote=True)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not children:
        return Html(f"<{name}{written}/>" if name not in ("meta", "br", "hr") else f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(children)}</{name}>")


def joined(children: Child) -> Html:
    """Several one after the other."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str):
        return words(children)
    return Html("".join(joined(child) for child in children))


def words(text: str) -> Html:
    """Text, escaped. Signs that cannot be seen, or that turn the direction of writing, are written as what they are."""
    return Html(escape(_printable(text), quote=True))


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign == "\n" else f"\\x{ord(sign):02x}" for sign in text)
