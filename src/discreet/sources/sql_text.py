"""Text into SQL text: the only place where a name, a path or an option becomes part of a statement."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["character", "identifier", "literal", "literal_list", "one_file"]


def literal(text: str) -> str:
    """A string literal. DuckDB reads no escapes in it but the doubled quote."""
    return "'" + text.replace("'", "''") + "'"


def literal_list(texts: Iterable[str]) -> str:
    """A list of string literals."""
    return "[" + ", ".join(literal(text) for text in texts) + "]"


def identifier(name: str) -> str:
    """A quoted identifier: whatever it holds, it is only ever a name."""
    return '"' + name.replace('"', '""') + '"'


def one_file(path: str) -> str:
    """A string literal for a reader's path argument that means this one file, even if it holds ``*?[``."""
    return literal("".join(f"[{c}]" if c in "*?[" else c for c in path))


def character(c: str) -> str:
    """One character in a regular expression of the engine, whatever it means there."""
    return f"\\x{{{ord(c):x}}}"
