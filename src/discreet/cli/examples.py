"""Examples for `--help`: each line runs from a folder that holds `examples`, as the tests do."""

from __future__ import annotations

__all__ = ["EXAMPLES", "epilog"]

_LOG = "examples/commits.jsonl.gz"
_WHO = "--unit actor --max-contributions 50"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "query": (
        f'discreet query {_LOG} "SELECT COUNT(*) AS n FROM commits" {_WHO} --epsilon 0.5 --budget 3',
        f'discreet query {_LOG} "SELECT action, COUNT(*) AS n FROM commits GROUP BY action" {_WHO} --epsilon 0.5 '
        "--keys action=A,M,D --format csv",
        f'discreet query {_LOG} "SELECT AVG(lag_s) AS lag FROM commits" {_WHO} --epsilon 0.5 --bounds lag_s=0..86400',
    ),
    "estimate": (
        f'discreet estimate {_LOG} "SELECT COUNT(*) AS n FROM commits" {_WHO} --epsilon 0.5',
        f'discreet estimate {_LOG} "SELECT COUNT(*) AS n FROM commits" {_WHO} --target n=50',
    ),
    "explain": (
        f'discreet explain {_LOG} "SELECT COUNT(*) AS n FROM commits" {_WHO} --epsilon 0.5',
        f'discreet explain {_LOG} "SELECT COUNT(*) AS n FROM commits" {_WHO} --epsilon 0.5 -o explain.svg',
    ),
    "audit": (f'discreet audit {_LOG} "SELECT COUNT(*) AS n FROM commits" {_WHO} --epsilon 0.5',),
    "budget": (
        f"discreet budget {_LOG}",
        f"discreet budget raise {_LOG} --budget 5",
        f"discreet budget {_LOG} --format json",
        "discreet budget --verify",
    ),
    "report": (
        f"discreet report {_LOG} -o report.md",
        f"discreet report {_LOG} --format json -o report.json",
        f"discreet report {_LOG} --html -o report.html",
    ),
    "init": (f"discreet init {_LOG} {_WHO} --budget 3 -o discreet.toml",),
    "check": ("discreet check --policy discreet.toml",),
    "refresh": ("discreet refresh --policy discreet.toml",),
    "noise": ("discreet noise --scale 10 --size 5",),
    "demo": ("discreet demo",),
}


def epilog(command: str) -> str:
    """The end of a command's help. (The sign at its start keeps the lines as they are.)"""
    return "\b\n" + "\n".join(["Examples:", *(f"  {line}" for line in EXAMPLES[command])])
