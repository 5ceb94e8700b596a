"""The pages of docs/reference/, from the code itself: the command line's options, the Python names, the errors.

Run by `make docs`; a test holds the pages equal to what this makes.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import typer.main

import discreet
from discreet import errors
from discreet.cli.app import app

PLACE = Path(__file__).parent / "reference"

MADE = "<!-- Made by docs/make_reference.py. A test holds them equal. -->\n"

FIRST = ("open", "Dataset", "Answer", "Estimate")
"""The order of the Python page: these, then the other names by what they are for."""
GROUPS = {
    "Opening and asking": FIRST,
    "Values in hand": ("count", "sum", "mean", "PrivateNumber"),
    "Terms for the builder": ("agg",),
    "The noise": ("LaplaceMechanism", "DiscreteLaplace", "Laplace", "sample_discrete_laplace", "sample_laplace"),
    "Losses and the ledger": ("PrivacyLoss", "Ledger"),
}
GIVEN = {"Answer", "Dataset", "Estimate", "PrivateNumber"}
"""Classes whose objects are given, not made: how they are made is no part of the reference."""

EXIT_CODES = {
    0: "fine",
    1: "the engine, a file or the disk failed",
    2: "the command, a value in it or the policy is wrong",
    3: "the budget does not allow it",
    4: "it cannot be answered privately; the message says what can",
    5: "the ledger cannot be read, written or trusted",
    130: "interrupted; the message says whether the query was charged",
}


def pages() -> dict[str, str]:
    """Every page's text, by the name of its file."""
    return {"cli.md": command_line(), "python.md": python(), "errors.md": error_page()}


# The command line


def command_line() -> str:
    """Options that several commands take are listed once."""
    group: Any = typer.main.get_command(app)
    commands: dict[str, Any] = dict(_commands(group, ""))
    seen: dict[str, list[str]] = {}
    for name, command in commands.items():
        for parameter in _options(command):
            seen.setdefault(_row(parameter), []).append(name)
    shared = {row: names for row, names in seen.items() if len(names) > 1}
    parts = [f"# The command line\n\n{MADE}\n{_prose(inspect.cleandoc(group.help))}\n"]
    parts.append(f"{_prose(group.epilog)} [Errors](errors.md) says more.\n")
    parts.append("`discreet --version` shows the version; each command has `--help`.\n")
    for name, command in commands.items():
        parts.append(f"## discreet {name}\n\n{_prose(inspect.cleandoc(command.help or ''))}\n")
        words = [a.metavar if a.required or "[" in a.metavar else f"[{a.metavar}]" for a in _arguments(command)]
        words = ["discreet", name, *words, *(["[OPTIONS]"] if _options(command) else [])]
        parts.append(f"```text\n{' '.join(words)}\n```\n")
        rows = [(f"`{a.metavar}`", _cell(a.help or "")) for a in _arguments(command)]
        own = [_row(parameter) for parameter in _options(command) if _row(parameter) not in shared]
        if rows or own:
            parts.append(_table(("word or option", "meaning"), [*(f"| {a} | {b} |" for a, b in rows), *own]))
        more = [_names(parameter) for parameter in _options(command) if _row(parameter) in shared]
        if more:
            parts.append(f"And of the [shared options](#shared-options): {', '.join(more)}.\n")
    parts.append("## Shared options\n\nThey mean the same wherever they are taken.\n")
    parts.append(_table(("option", "meaning"), shared))
    return "\n".join(parts)


def _commands(group: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if command.hidden:
            continue
        if hasattr(command, "commands"):
            yield from _commands(command, f"{prefix}{name} ")
        else:
            yield prefix + name, command


def _arguments(command: Any) -> list[Any]:
    return [parameter for parameter in command.params if parameter.param_type_name == "argument"]


def _options(command: Any) -> list[Any]:
    found = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    return [parameter for parameter in found if parameter.name != "help" and not parameter.hidden]


def _names(parameter: Any) -> str:
    return "`" + " / ".join([*sorted(parameter.opts, key=len), *parameter.secondary_opts]) + "`"


def _row(parameter: Any) -> str:
    value = f" {parameter.metavar}" if parameter.metavar and not parameter.is_flag else ""
    text = _cell(parameter.help or "")
    if parameter.default not in (None, False, (), "") and "Default" not in text:
        text += f" Default: {parameter.default}."
    return f"| {_names(parameter)[:-1]}{value}` | {text} |"


def _table(head: tuple[str, ...], rows: Iterable[str]) -> str:
    return "\n".join([f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows]) + "\n"


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|")


# Python


def python() -> str:
    """Every public name, with what its docstring says."""
    exceptions = {
        name
        for name in discreet.__all__
        if inspect.isclass(value := getattr(discreet, name)) and issubclass(value, Exception)
    }
    placed = {name for names in GROUPS.values() for name in names} | exceptions | {"__version__"}
    if placed != set(discreet.__all__):
        raise SystemExit(f"docs/make_reference.py: no place, or no such name: {placed ^ set(discreet.__all__)}")
    parts = [
        f"# Python\n\n{MADE}\nEverything here is `discreet.` and its name. [Errors](errors.md) has a page of its own.\n"
    ]
    for title, names in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _documented(name, getattr(discreet, name))
    return "\n".join(parts)


def _documented(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, ModuleType):
        yield _docstring(value, "")
        for inner in value.__all__:
            yield from _documented(f"{name}.{inner}", getattr(value, inner))
        return
    called = inspect.isfunction(value) or name not in GIVEN
    yield f"### {name}\n"
    if called:
        yield f"```text\n{_call(name, value)}\n```\n"
    yield _docstring(value, name)
    if inspect.isclass(value):
        for inner, member in vars(value).items():
            if not inner.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                called_as = _call(inner, member) if inspect.isfunction(member) else inner
                short = called_as == inner or called_as.endswith("()")
                yield f"#### {name}.{called_as if short else inner}\n"
                if not short:
                    yield f"```text\n{called_as}\n```\n"
                yield _docstring(member, f"{name}.{inner}")


def _call(name: str, value: Any) -> str:
    """How it is called, without types: the words say what may be given. One line, or one a parameter."""
    shown, keyword_only = [], False
    for parameter in inspect.signature(value).parameters.values():
        if parameter.name == "self" or parameter.name.startswith("_"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            shown.append("*")
        text = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        if parameter.default is not parameter.empty:
            text += f"={'...' if callable(parameter.default) else repr(parameter.default)}"
        shown.append(text)
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= 88 else textwrap.fill(line, 88, subsequent_indent=" " * 4)


_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$", re.MULTILINE)
_TITLES = {
    "Args": "Arguments",
    "Attributes": "Attributes",
    "Returns": "Returns",
    "Raises": "Raises",
    "Yields": "Yields",
}


def _docstring(value: Any, name: str) -> str:
    """A docstring as Markdown: its prose, then each section as a list."""
    text = inspect.getdoc(value)
    if not text:
        raise SystemExit(f"docs/make_reference.py: {name} has no docstring")
    first, *rest = _SECTION.split(text)
    parts = [_prose(first.strip())]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        section = textwrap.dedent(body.strip("\n"))
        # What stands at the margin again is prose that goes on after the section.
        match = re.search(r"^\S", body.lstrip("\n"), re.MULTILINE)
        after = ""
        if match:
            section = textwrap.dedent(body.lstrip("\n")[: match.start()])
            after = body.lstrip("\n")[match.start() :].strip()
        parts.append("*Arguments*" if title == "Args" else f"*{title}*")
        items = re.split(r"^(?=\S)", section.strip(), flags=re.MULTILINE)
        if title == "Returns":
            parts.append(_prose(_joined(section)))
        else:
            parts.append("\n".join(_item(_joined(item)) for item in items if item.strip()))
        if after:
            parts.append(_prose(after))
    return "\n\n".join(parts) + "\n"


def _joined(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _item(text: str) -> str:
    head, colon, rest = text.partition(": ")
    return f"- `{head}`: {_prose(rest)}" if colon and re.fullmatch(r"[\w, *]+", head) else f"- {_prose(text)}"


def _prose(text: str) -> str:
    """Plain text as Markdown: what stands in code quotes or is set in stays, all else means itself."""
    blocks = text.replace("``", "`").split("\n\n")
    return "\n\n".join(block if block.startswith("    ") else _escaped(block) for block in blocks)


def _escaped(block: str) -> str:
    pieces = re.split(r"(`[^`]*`)", block)
    return "".join(p if p.startswith("`") else re.sub(r"([*_<\[\]$])", r"\\\1", p) for p in pieces)


# Errors


def error_page() -> str:
    """The exit codes and the tree of exceptions."""
    kinds = {name: kind for name in errors.__all__ if inspect.isclass(kind := getattr(errors, name))}
    used = {kind.exit_code for kind in kinds.values()}
    if not used <= set(EXIT_CODES):
        raise SystemExit(f"docs/make_reference.py: no words for exit codes {used - set(EXIT_CODES)}")
    parts = [
        f"# Errors and exit codes\n\n{MADE}",
        "An error names the thing, the rule, the value that was given, and a hint. It never names a value from the\n"
        "data, nor what the engine said: engines quote the data.\n",
        "## Exit codes\n",
        "Data goes to stdout, talk to stderr.\n",
        _table(("code", "means"), [f"| {code} | {text} |" for code, text in EXIT_CODES.items()]),
        "## Exceptions\n",
        "In Python the same errors are exceptions, all below `discreet.DiscreetError`. A policy's faults are told at\n"
        "once, as `PolicyError.faults`.\n",
    ]
    rows = []
    for name, kind in kinds.items():
        parents = ", ".join(f"`{parent.__name__}`" for parent in kind.__bases__)
        first = _joined((inspect.getdoc(kind) or "").split("\n\n")[0])
        rows.append(f"| `{name}` | {parents} | {kind.exit_code} | {_cell(first)} |")
    parts.append(_table(("exception", "is a", "exit code", "when"), rows))
    parts.append(
        _docstring(errors.DiscreetError, "DiscreetError").partition("\n\n")[2].replace("Arguments", "Attributes")
    )
    return "\n".join(parts)


def main() -> None:
    """Write them all."""
    PLACE.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PLACE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
