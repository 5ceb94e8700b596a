"""The one exit: every way a command can end, as an exit code and a line on stderr. Never a traceback, which
could show data."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import typer

from discreet.cli import INTERRUPTED
from discreet.cli.talk import be_quiet, say
from discreet.errors import DiscreetError, UsageError

if TYPE_CHECKING:
    from typer import Typer

__all__ = ["run"]

INTERNAL = 1
_UNEXPECTED = (
    "discreet: internal fault: the command stopped, and why is not shown, since that could show data. "
    "Hint: `discreet budget SOURCE` tells whether the query was charged."
)
# The one base of the usage errors that typer raises; it has a public name for its child only.
_TYPER_USAGE_ERROR = cast("type[Exception]", typer.BadParameter.__mro__[1])


def run(app: Typer, arguments: Sequence[str]) -> int:
    """Run a command and tell how it ended.

    Returns:
        The exit code.
    """
    be_quiet(False)
    try:
        _check_text(arguments)
        code = app(list(arguments), standalone_mode=False, prog_name="discreet")
        if sys.stdout is not None:
            sys.stdout.flush()
    except DiscreetError as error:
        say(f"discreet: {error}", error=True)
        return error.exit_code
    except _TYPER_USAGE_ERROR as error:
        say(f"discreet: {_usage(error)}", error=True)
        return UsageError.exit_code
    except BrokenPipeError:
        # The reader of our stdout went away. Python would complain at exit when it flushes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except (KeyboardInterrupt, typer.Abort):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        say("discreet: interrupted.", error=True)
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - the outermost door: anything else is a fault of ours, told by a constant text
        say(_UNEXPECTED, error=True)
        return INTERNAL
    if code == INTERRUPTED:  # typer turns Ctrl-C into this
        say("discreet: interrupted.", error=True)
    return code if isinstance(code, int) else 0


def _check_text(arguments: Sequence[str]) -> None:
    for argument in arguments:
        if any("\ud800" <= c <= "\udfff" for c in argument):
            raise UsageError("argument", "must be valid Unicode text", ascii(argument))


def _usage(error: Exception) -> UsageError:
    """What typer found wrong, in the form of all our errors."""
    text = str(getattr(error, "format_message", error.__str__)()).strip().rstrip(".")
    text = re.sub(r"'\[(\w+)\]'", r"'\1'", text)  # an argument that may be left out where another stands for it
    thing, mark, rule = text.partition(": ")
    if not mark:
        thing, rule = "usage", text
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "discreet")
    return UsageError(thing[:1].lower() + thing[1:], rule[:1].lower() + rule[1:], hint=f"{command} --help")
