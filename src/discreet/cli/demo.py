"""`discreet demo`: the main job on the example log, with the command that anyone would type for it."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.query import Question, ask
from discreet.cli.talk import say
from discreet.errors import SourceError

if TYPE_CHECKING:
    from discreet.answer import Answer

__all__ = ["show_demo"]

_NAME = "commits.jsonl.gz"
_SQL = (
    "SELECT action, COUNT(*) AS changes, COUNT(DISTINCT actor) AS actors "
    "FROM commits WHERE YEAR(time) = 2024 GROUP BY action"
)
_OPTIONS = {
    "--unit": "actor",
    "--max-contributions": "50",
    "--epsilon": "1",
    "--keys": "action=A,M,D",
    "--budget": "3",
}


def show_demo() -> None:
    """Ask how many changes and how many distinct actors there were per action in 2024 (UTC).

    Raises:
        SourceError: the example log is not there.
    """
    source = _shown(_example())
    say("A log of 91,668 file changes by 2,320 persons, who shall not be recognised. The question:")
    say("")
    say(f'  discreet query {shlex.quote(source)} \\\n    "{_SQL}" \\')
    say("    " + " ".join(f"{name} {value}" for name, value in _OPTIONS.items()))
    say("")
    with tempfile.TemporaryDirectory(prefix="discreet-demo-") as folder:
        say("(The demo keeps its books in a temporary ledger; yours stays as it is.)")
        answer = ask(
            Question(
                source=source,
                sql=_SQL,
                unit=[_OPTIONS["--unit"]],
                max_contributions=_OPTIONS["--max-contributions"],
                epsilon=_OPTIONS["--epsilon"],
                keys=[_OPTIONS["--keys"]],
                budget=_OPTIONS["--budget"],
                ledger=str(Path(folder) / "ledger.sqlite"),
            ),
            format="table",
            output=None,
            report=None,
        )
    say("")
    for line in _sandwich(answer):
        say(line)


def _example() -> Path:
    """Beside the package in a wheel, in the repository's folder in a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / _NAME).is_file():
            return folder / _NAME
    raise SourceError("the example log", "is not installed with this package", _NAME)


def _shown(path: Path) -> str:
    """As one would type it: from the current folder, if it lies below it."""
    near = Path("examples") / _NAME
    return str(near) if near.is_file() and near.samefile(path) else str(path)


def _sandwich(answer: Answer) -> list[str]:
    limit = answer.details["limits"]["max_contributions"]
    scales = [f"{m['measured']} {m['scale_in_the_answer']:g}" for m in answer.details["measurements"]]
    return [
        "The noise sandwich:",
        f"  bread  exact whole totals, in which no actor weighs more than {limit} rows   (stay inside)",
        f"  noise  + discrete Laplace noise, of scale: {', '.join(scales)}",
        "  bread  = the table above, with its intervals   (all that ever leaves)",
    ]
