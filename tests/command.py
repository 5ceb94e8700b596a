"""How the tests run `discreet`: in this process where only words and codes matter, as a real process elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.cli.app import app
from discreet.cli.faults import run

DISCREET = [sys.executable, "-m", "discreet"]

# One line: the thing, a colon, the rule, a full stop, perhaps a hint.
ERROR = re.compile(r"discreet: [^:\n]+.*: .+[.!?]( Hint: .+)?")

# What no error may show. (".duckdb" and ".sqlite3" are endings of files.)
INSIDE = re.compile(r"Traceback|Error\(|\bdiscreet\.(?!toml\b)\w|\{|(?<!\.)\b(duckdb|sqlite3|sqlglot|numpy)\b|\b0x")


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    def error(self) -> str:
        """The last line of stderr, which must be an error in the one form, and must show nothing of our insides."""
        line = self.err.rstrip("\n").split("\n")[-1]
        assert ERROR.fullmatch(line), self.err
        assert not INSIDE.search(line), line
        return line


class Command:
    """`discreet` with a ledger of its own."""

    def __init__(self, ledger: Path, capfd) -> None:
        self.ledger = ledger
        self._capfd = capfd

    def __call__(self, *arguments: str) -> Outcome:
        """In this process."""
        self._capfd.readouterr()
        code = run(app, list(arguments))
        out, err = self._capfd.readouterr()
        return Outcome(code, out, err)

    def process(self, *arguments: str | bytes, cwd: Path | None = None, **settings) -> Outcome:
        """As a process."""
        done = subprocess.run(
            [*DISCREET, *arguments],
            capture_output=True,
            encoding="utf-8",
            cwd=cwd,
            env=environment(self.ledger),
            timeout=120,
            check=False,
            **settings,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


def environment(ledger: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "DISCREET_LEDGER": str(ledger), **more}


def python(text: str, arguments: Sequence[str], ledger: Path, **settings) -> subprocess.Popen[str]:
    """A Python process that runs `text` with `arguments` as its command line."""
    return subprocess.Popen(
        [sys.executable, "-c", text, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(ledger),
        **settings,
    )
