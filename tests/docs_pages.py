"""The pages' examples: found, run, and compared with what the page says, noise aside.

A page is README*.md or docs/*.md. Its fenced blocks are run from top to bottom with one ledger a page:

- ``console``: each line after ``$ `` is a command; what stands below it is its output, stdout and stderr together;
- ``python``: run as a program; a ``text`` block right after it is its output. On a page that says
  ``<!-- one session -->`` the programs continue each other, and more ``text`` blocks continue the output;
- ``text`` under ``<!-- noise -->``: its numbers differ each time;
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

__all__ = ["LANGUAGES", "ONE_SESSION", "Block", "blocks", "commands", "compare", "masked", "outputs"]

ONE_SESSION = "<!-- one session -->"
LANGUAGES = {"console", "python", "sh", "sql", "text", "toml"}
_FENCE = re.compile(
    r"^(?P<noise><!-- noise -->\n\n)?```(?P<language>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_NUMBER = re.compile(r"-?\d[\d,]*(\.\d+)?(e[+-]\d+)?")
_ANY_NUMBER = re.compile(r"-?\d[\d,]*\.?\d*(e[+-]\d+)?")  # NumPy prints 2.0 as "2." among others
_NEGATIVE = "negative counts are noise"  # said only if one appears


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    noise: bool = False


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, in order."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(m["language"], m["text"], text[: m.start("language")].count("\n") + 1, m["noise"] is not None)
        for m in _FENCE.finditer(text)
    ]
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


def outputs(found: list[Block], i: int) -> list[Block]:
    """The `text` blocks right after block i: its output."""
    end = i + 1
    while end < len(found) and found[end].language == "text":
        end += 1
    return found[i + 1 : end]


def compare(printed: str, said: list[Block]) -> tuple[list[str], list[str]]:
    """The lines that were printed and those of the blocks, without noise: equal if all is as the page says."""
    lines = printed.splitlines()
    got: list[str] = []
    expected: list[str] = []
    for block in said:
        size = len(block.text.splitlines())
        mine, lines = lines[:size], lines[size:]
        mask = _bare if block.noise else masked
        got += mask("\n".join(mine))
        expected += mask(block.text)
    return got + lines, expected


def _bare(text: str) -> list[str]:
    """Lines without any numbers, and without the spaces that align them."""
    lines = [_ANY_NUMBER.sub("#", line) for line in text.splitlines()]
    return [re.sub(r"\s+", " ", re.sub(r"(?<=\[) +| +(?=\])", "", line)) for line in lines]


def masked(output: str, command: str = "") -> list[str]:
    """An output's lines without its noise."""
    words = shlex.split(command)
    if words[:2] == ["discreet", "noise"]:
        return [_NUMBER.sub("#", line) for line in output.splitlines()]
    if words[:2] == ["discreet", "audit"]:
        # Numbers, bars, and the event that told most, are another run's.
        lines = [re.sub(r" *█+ *", "", _NUMBER.sub("#", line)).strip() for line in output.splitlines()]
        return [re.sub(r"(by the event:|with the unit).*", r"\1", line) if "%" not in line else line for line in lines]
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
    """Without times, hashes and paths."""
    text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(Z|\+00:00)", "TIME", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "HASH", text)
    text = re.sub(r"(?<=[ :])/\S*/(?=\w+\.sqlite)", "/", text)
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME", text)
    return re.sub(r"file:\S*/", "file:/", text)


def _masked_row(row: dict[str, object]) -> dict[str, object]:
    noisy = {name for name in row if f"{name}_low" in row}
    noisy |= {f"{name}_{end}" for name in noisy for end in ("low", "high")}
    return {name: type(value).__name__ if name in noisy else value for name, value in row.items()}
