"""The pages' examples: found, run, and compared with what the page says, noise aside.

A page is README*.md or docs/*.md. Its fenced blocks are run from top to bottom with one ledger a page:

- ``console``: each line after ``$ `` is a command; what stands below it is its output, stdout and stderr together;
- ``python``: run as a program; a ``text`` block right after it is its output;
- ``sh``: lines of ``make``, whose targets must exist.

Two outputs agree if they are the same once noise is masked: in tables and CSV the columns with an interval, in
JSON the members with ``_low`` and ``_high`` beside them, the draws of ``discreet noise``; and times and paths.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Block", "blocks", "commands", "masked"]

LANGUAGES = {"console", "python", "sh", "sql", "text", "toml"}
_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]\d+)?")
_NEGATIVE = "negative counts are noise"  # said only if one appears


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [Block(m["language"], m["text"], text[: m.start()].count("\n") + 1) for m in _FENCE.finditer(text)]
    assert text.count("\n```") + text.startswith("```") == 2 * len(found), f"{page.name}: a fence is not closed"
    return found


def commands(block: Block) -> list[tuple[str, str]]:
    """The commands of a console block, each with the output that the page shows."""
    assert block.text.startswith("$ "), f"line {block.line}: a console block starts with a command"
    pairs = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            more, _, output = output.partition("\n")
            command = command[:-1] + more.removeprefix("> ")
        pairs.append((command, output))
    return pairs


def masked(output: str, command: str = "") -> list[str]:
    """An output's lines without its noise."""
    words = shlex.split(command)
    if words[:2] == ["discreet", "noise"]:
        return [_NUMBER.sub("#", line) for line in output.splitlines()]
    lines: list[str] = []
    noisy: list[bool] | None = None  # the columns of the table that we are in
    names: list[str] | None = None  # the columns of the CSV that we are in
    for line in output.splitlines():
        if line.startswith(_NEGATIVE):
            continue
        cells = re.split(r"  +", line.strip())
        if set(line) == {"─", " "}:
            header = re.split(r"  +", lines[-1].strip())
            noisy = [_is_interval(header, i) or _is_interval(header, i + 1) for i in range(len(header))]
            lines.append("─")
        elif noisy is not None and len(cells) == len(noisy):
            masks = zip(cells, noisy, strict=True)
            lines.append("  ".join(_NUMBER.sub("#", cell) if noise else _plain(cell) for cell, noise in masks))
        elif line.lstrip().startswith("{"):
            lines.append(json.dumps(_masked_row(json.loads(line.strip().rstrip(",")))))
        elif re.fullmatch(r"\w+(,\w+)*", line) and any(f",{name}_low" in line for name in line.split(",")):
            names = line.split(",")
            lines.append(line)
        elif names is not None and line.count(",") == len(names) - 1:
            row = dict(zip(names, line.split(","), strict=True))
            lines.append(json.dumps(_masked_row(row)))
        else:
            noisy = names = None
            lines.append("  ".join(_plain(cell) for cell in cells))
    return lines


def _is_interval(header: list[str], i: int) -> bool:
    return i < len(header) and header[i].endswith("% interval")


def _plain(text: str) -> str:
    """Without times and paths."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)", "TIME", text)
    return re.sub(r"file:\S*/", "file:/", text)


def _masked_row(row: dict[str, object]) -> dict[str, object]:
    noisy = {name for name in row if f"{name}_low" in row}
    noisy |= {f"{name}_{end}" for name in noisy for end in ("low", "high")}
    return {name: type(value).__name__ if name in noisy else value for name, value in row.items()}
