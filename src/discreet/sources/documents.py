"""JSON documents of any size as a stream of the records inside them: ``{"Records": [...]}``, top-level lists,
objects over many lines, one after the other.

Each record is cut out as it is written, character by character, so that its numbers and keys stay what they
are; only line breaks between its tokens become blanks. A record that is no JSON is left out alone: its end is
found by its brackets. Memory is bounded by the longest record that counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from discreet.errors import UsageError
from discreet.sources.lines import LONGEST_LINE

__all__ = ["parse_records_path", "records"]

_BLANK = re.compile(r"[ \t\r\n\ufeff]*")
# A string that is not closed ends with its line, as no string holds a line break, or with the window.
_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*("|\n|\\?\Z)|[{}\[\]]', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}\s]+")
_AFTER = tuple(" \t\r\n,]}:")
_STEP = re.compile(r'\.?("(?:[^"\\]|\\.)+"|[^.\[\]"]+)(\[\*\])?')


def parse_records_path(text: str) -> tuple[str, ...]:
    """The keys that lead to the list of records: ``Records``, ``data.items``, ``"a.b".c``, ``$.a[*]``; ``$``
    alone is the document itself.

    Raises:
        UsageError: if it is no such path.
    """
    rest = text.strip().removeprefix("$").removeprefix("[*]")
    keys: list[str] = []
    while rest:
        match = _STEP.match(rest)
        if match is None:
            raise UsageError(
                "records",
                "must be the path of a list",
                text,
                hint="--records Records, or data.items (Python: records=)",
            )
        key = match[1]
        keys.append(str(json.loads(key)) if key.startswith('"') else key)
        rest = rest[match.end() :]
    if not text.strip():
        raise UsageError("records", "must not be empty", text, hint="'$' is the document itself")
    return tuple(keys)


def records(texts: Iterable[str], path: Sequence[str]) -> Iterator[str | None]:
    """Each record as one line of JSON; None for each place where something else than a record stands.

    Args:
        texts: the file's text, in pieces.
        path: the keys that lead to the list of records; empty for the documents themselves, or the elements of
            a list of them.
    """
    yield from _Reader(iter(texts)).documents(tuple(path))


class _Reader:
    """A window on the text. `position` is where the next token starts."""

    def __init__(self, pieces: Iterator[str]) -> None:
        self.pieces = pieces
        self.text = ""
        self.position = 0
        self.ended = False
        self.decoder = json.JSONDecoder()

    def documents(self, path: tuple[str, ...]) -> Iterator[str | None]:
        """Values one after the other, commas and newlines between them."""
        while (mark := self.peek()) != "":
            if mark in ",]}":
                self.position += 1
            else:
                yield from self.value(path, listed=False)

    def value(self, path: tuple[str, ...], *, listed: bool) -> Iterator[str | None]:
        """The records in the value that starts here, and beyond it."""
        mark = self.peek()
        if mark == "[" and not listed:
            yield from self.elements(path)
        elif mark == "{" and path:
            yield from self.members(path)
        else:
            found = self.take()
            if found is None or (mark != "{" and not path):
                yield None
            elif not path:  # else the path leads elsewhere: what has no list has no records
                yield found

    def elements(self, path: tuple[str, ...]) -> Iterator[str | None]:
        self.position += 1
        while (mark := self.peek()) not in ("]", ""):
            if mark == ",":
                self.position += 1
            elif mark == "}":
                return  # brackets that do not match: the list has ended somehow
            else:
                yield from self.value(path, listed=True)
        self.position += 1

    def members(self, path: tuple[str, ...]) -> Iterator[str | None]:
        self.position += 1
        while (mark := self.peek()) not in ("}", ""):
            if mark == ",":
                self.position += 1
                continue
            if mark == "]":
                return
            key = self.take()
            if self.peek() != ":":
                yield None
                if self.peek() not in ("}", "", ",", "]"):
                    self.take()
                continue
            self.position += 1
            if _is_key(key, path[0]):
                yield from self.value(path[1:], listed=False)
            elif self.peek() not in ("}", ",", "]", ""):
                self.take()
        self.position += 1

    def peek(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            match = _BLANK.match(self.text, self.position)
            self.position = match.end() if match else self.position
            if self.position < len(self.text) or not self.more():
                return self.text[self.position : self.position + 1]

    def more(self) -> bool:
        """Take in another piece, and forget what is behind. False at the end of the text."""
        if self.ended:
            return False
        piece = next(self.pieces, None)
        if piece is None:
            self.ended = True
            return False
        self.text = self.text[self.position :] + piece
        self.position = 0
        return True

    def take(self) -> str | None:
        """The value that starts here, on one line; None if it is no JSON, or too long. Moves beyond it."""
        while True:
            try:
                _, end = self.decoder.raw_decode(self.text, self.position)
            except (ValueError, RecursionError):
                end = -1
            # A number or a word at the end of the window may go on in the next piece.
            if end >= 0 and (self.ended or self.text[end - 1] in '"}]' or self.text[end : end + 1] in _AFTER):
                return self.cut(end)
            stuck = len(self.text) - self.position > LONGEST_LINE or not self.more()
            if stuck and (end < 0 or not self.ended):
                return self.skip()

    def skip(self) -> str | None:
        """Move beyond a value that the decoder does not take, by its brackets.

        What is nested too deep for Python is not too deep for the engine, which looks at it again; so the text
        is given all the same, if all of it is here.
        """
        if self.text[self.position] not in '{["':
            self.skip_scalar()
            return None
        here, at = True, self.position
        still_open: list[str] = []
        while True:
            match = _TOKEN.search(self.text, at)
            if match is None or match[1] in ("", "\\"):
                # No token, or a string that goes on beyond the window: look on from there.
                self.position = match.start() if match else len(self.text)
                if match and len(self.text) - self.position > LONGEST_LINE:
                    self.text, self.position = '"' + match[1], 0
                here = False
                if not self.more():
                    self.position = len(self.text)
                    return None
                at = self.position
                continue
            at = match.end()
            if match[0] in "{[":
                still_open.append(match[0])
            elif match[0] in "}]":
                opening = "{" if match[0] == "}" else "["
                if opening not in still_open:
                    at = match.start()  # it closes what stands around this value
                    break
                while still_open.pop() != opening:
                    pass
            if not still_open:
                break
        if here:
            return self.cut(at)
        self.position = at
        return None

    def cut(self, end: int) -> str | None:
        raw = self.text[self.position : end]
        self.position = end
        return raw.replace("\n", " ").replace("\r", " ") if len(raw) <= LONGEST_LINE else None

    def skip_scalar(self) -> None:
        while True:
            match = _SCALAR.match(self.text, self.position)
            self.position = match.end() if match else self.position + 1
            if self.position < len(self.text) or not self.more():
                return


def _is_key(token: str | None, key: str) -> bool:
    if token is None or not token.startswith('"'):
        return False
    try:
        return bool(json.loads(token) == key)
    except ValueError:
        return False
