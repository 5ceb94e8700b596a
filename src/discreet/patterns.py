"""Patterns of LIKE and of regular expressions, checked before anything is read.

A regular expression must be of a plain part of RE2's language that every such engine accepts, and so small that
it always compiles: RE2 matches in time linear in the text and never goes back (Cox 2010, "Regular expression
matching in the wild"). What is accepted: letters, ``.``, classes, groups, ``|``, the anchors ``^ $ \\A \\z \\b \\B``,
repetitions up to 1,000, lazy ones too, and the flags i, m and s.
"""

from __future__ import annotations

import string

from discreet.errors import UsageError

__all__ = ["BLANKS", "check_like", "check_pattern", "like_pieces"]

BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
"""What TRIM takes away when nothing is said: Unicode's White_Space."""

LONGEST_PATTERN = 1_000
_MOST_REPETITIONS = 1_000
_LARGEST = 30_000
_DEEPEST = 30

_CLASS_LETTERS = frozenset("dDwWsS")
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANCHORS = frozenset("AzbB")
_POSIX = frozenset(
    (
        *("alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph"),
        *("lower", "print", "punct", "space", "upper", "word", "xdigit"),
    )
)
_PUNCTUATION = frozenset(string.punctuation)
_HEX = frozenset(string.hexdigits)


def check_like(pattern: str, thing: str) -> None:
    """
    Raises:
        UsageError: the pattern is too long, or ends in a backslash that stands before nothing.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(thing, f"takes a pattern of at most {LONGEST_PATTERN} characters")
    like_pieces(pattern, thing)


def like_pieces(pattern: str, thing: str = "LIKE") -> list[tuple[str, bool]]:
    """The characters of a LIKE pattern, each with whether it is a wildcard: % (any text) or _ (one character).

    A backslash makes the next character stand for itself.

    Raises:
        UsageError: a backslash at the end.
    """
    pieces: list[tuple[str, bool]] = []
    characters = iter(pattern)
    for character in characters:
        if character != "\\":
            pieces.append((character, character in "%_"))
            continue
        escaped = next(characters, None)
        if escaped is None:
            hint = r"write two for one: 'C:\\%'"
            raise UsageError(thing, "has a pattern that ends in a backslash, which must stand before a sign", hint=hint)
        pieces.append((escaped, False))
    return pieces


def check_pattern(pattern: str, thing: str) -> None:
    """
    Raises:
        UsageError: the regular expression is not of the accepted language, or too large.
    """
    if len(pattern) > LONGEST_PATTERN:
        raise UsageError(thing, f"takes a pattern of at most {LONGEST_PATTERN} characters")
    reader = _Reader(pattern, thing)
    size, _ = reader.alternatives(0)
    if reader.place < len(pattern):
        raise reader.wrong("has a closing parenthesis too many")
    if size > _LARGEST:
        raise UsageError(thing, "has a pattern that is too large", pattern, "use fewer or smaller repetitions {m,n}")


class _Reader:
    """Reads a pattern from left to right. Each method gives the size of what it read (an upper estimate of RE2's
    instructions), the largest product of nested repetitions in it, and whether it can be repeated."""

    def __init__(self, pattern: str, thing: str) -> None:
        self.pattern, self.thing, self.place = pattern, thing, 0

    def wrong(self, rule: str) -> UsageError:
        rule = f"{rule}, at character {self.place + 1} of the pattern"
        return UsageError(
            self.thing, rule, self.pattern, "letters, ., classes, groups, |, ^, $ and repetitions are read"
        )

    def peek(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.pattern[place] if place < len(self.pattern) else ""

    def take(self) -> str:
        character = self.peek()
        self.place += 1
        return character

    def alternatives(self, level: int) -> tuple[int, int]:
        if level > _DEEPEST:
            raise self.wrong(f"nests more than {_DEEPEST} groups")
        size, repeated = self.sequence(level)
        while self.peek() == "|":
            self.take()
            more, times = self.sequence(level)
            size, repeated = size + more + 2, max(repeated, times)
        return size, repeated

    def sequence(self, level: int) -> tuple[int, int]:
        total, most = 2, 1
        while self.peek() not in ("", "|", ")"):
            size, repeated, repeatable = self.atom(level)
            times = self.repetition(repeatable)
            most = max(most, repeated * times)
            if most > _MOST_REPETITIONS:
                raise self.wrong(f"repeats more than {_MOST_REPETITIONS} times")
            total += (size + 2) * times
        return total, most

    def repetition(self, repeatable: bool) -> int:
        """How many copies of the atom a repetition behind it needs."""
        sign = self.peek()
        if sign not in ("*", "+", "?", "{") or not sign:
            return 1
        if not repeatable:
            raise self.wrong("repeats an anchor or a flag")
        times = 1 if sign != "{" else self.braces()
        if sign != "{":
            self.take()
        if self.peek() == "?":
            self.take()
        if self.peek() and self.peek() in "*+?{":
            raise self.wrong("repeats a repetition")
        return times

    def braces(self) -> int:
        end = self.pattern.find("}", self.place)
        low, comma, high = self.pattern[self.place + 1 : max(end, self.place)].partition(",")
        numbers = [low, high] if high else [low]
        if end < 0 or not all(n.isascii() and n.isdigit() and len(n) <= 4 for n in numbers):
            raise self.wrong(r"has a brace that is no repetition {m,n} (write \{ for the sign)")
        least, most = int(low), int(high) if high else int(low) + (1 if comma else 0)
        if least > most or max(least, most) > _MOST_REPETITIONS:
            raise self.wrong(f"needs a repetition of {{m,n}} with m <= n <= {_MOST_REPETITIONS}")
        self.place = end + 1
        return max(most, 1)

    def atom(self, level: int) -> tuple[int, int, bool]:
        character = self.take()
        match character:
            case "(":
                return self.group(level)
            case "[":
                return self.bracket(), 1, True
            case "\\":
                size, repeatable = self.escape()
                return size, 1, repeatable
            case "^" | "$":
                return 2, 1, False
            case ".":
                return 16, 1, True
            case "*" | "+" | "?" | "{":
                self.place -= 1
                raise self.wrong("repeats nothing" if character != "{" else r"has a brace; write \{ for the sign")
            case "]" | "}":
                self.place -= 1
                raise self.wrong(f"has a lone {character} (write \\{character} for the sign)")
            case _:
                return 8, 1, True

    def group(self, level: int) -> tuple[int, int, bool]:
        if self.peek() == "?":
            self.take()
            flags = ""
            while self.peek() and self.peek() in "ims":
                flags += self.take()
            closing = self.take()
            if closing == ")" and flags and len(set(flags)) == len(flags):
                return 1, 1, False  # (?i): the flags hold from here on
            if closing != ":" or len(set(flags)) != len(flags):
                raise self.wrong("knows the groups (...), (?:...), (?i) and (?i:...) only")
        size, repeated = self.alternatives(level + 1)
        if self.take() != ")":
            raise self.wrong("has a group that is not closed")
        return size + 4, repeated, True

    def escape(self) -> tuple[int, bool]:
        """What follows a backslash outside of a class."""
        letter = self.take()
        if letter in _CLASS_LETTERS and letter:
            return 24, True
        if letter in _ANCHORS and letter:
            return 2, False
        self.place -= 1
        self.character_escape()
        return 8, True

    def character_escape(self) -> str:
        """The one character that an escape stands for."""
        letter = self.take()
        if letter in _CONTROL:
            return _CONTROL[letter]
        if letter in _PUNCTUATION and letter:
            return letter
        if letter == "x":
            return self.code()
        self.place -= 1
        raise self.wrong("has an escape that is not known here (a group's number, for example)")

    def code(self) -> str:
        if self.peek() == "{":
            end = self.pattern.find("}", self.place)
            digits, after = self.pattern[self.place + 1 : max(end, self.place)], end + 1
        else:
            digits, after = self.pattern[self.place : self.place + 2], self.place + 2
            if len(digits) < 2:
                digits = ""
        if not digits or len(digits) > 6 or not set(digits) <= _HEX:
            raise self.wrong(r"needs \x41 or \x{10FF}")
        value = int(digits, 16)
        if not 0 < value <= 0x10FFFF or 0xD800 <= value <= 0xDFFF:
            raise self.wrong("names a character that does not exist")
        self.place = after
        return chr(value)

    def bracket(self) -> int:
        """A class [...], after its opening."""
        size = 16
        if self.peek() == "^":
            self.take()
        if self.peek() == "]":
            raise self.wrong(r"has an empty class (write \] for the sign)")
        while True:
            character = self.peek()
            if not character:
                raise self.wrong("has a class that is not closed")
            if character == "]":
                self.take()
                return size
            size += 16
            if character == "[" and self.peek(1) == ":":
                self.posix()
                continue
            if character == "\\" and self.peek(1) in _CLASS_LETTERS and self.peek(1):
                self.place += 2
                if self.peek() == "-" and self.peek(1) not in ("]", ""):
                    raise self.wrong("has a range that begins with a class")
                continue
            first = self.class_character()
            if self.peek() == "-" and self.peek(1) not in ("]", ""):
                self.take()
                last = self.class_character()
                if last < first:
                    raise self.wrong("has a range that runs backwards")

    def class_character(self) -> str:
        character = self.take()
        if character == "\\":
            return self.character_escape()
        if character == "[":
            self.place -= 1
            raise self.wrong(r"has a bracket in a class (write \[ for the sign)")
        return character

    def posix(self) -> None:
        end = self.pattern.find(":]", self.place)
        name = self.pattern[self.place + 2 : max(end, self.place)].removeprefix("^")
        if name not in _POSIX:
            raise self.wrong("has a class that is not known")
        self.place = end + 2
        if self.peek() == "-" and self.peek(1) not in ("]", ""):
            raise self.wrong("has a range that begins with a class")
