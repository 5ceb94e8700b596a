"""What the commands that write pictures have in common: a file's ending says what it is to hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.cli.talk import say

if TYPE_CHECKING:
    from discreet.pictures import Drawing

__all__ = ["check_picture", "written"]


def check_picture(option: str, path: str | None, *, text: bool = False) -> str:
    """What kind of picture a file is to hold: "svg" or "png", or "text".

    Args:
        option: that named it, for errors.
        path: of the file; None for stdout.
        text: whether there is a form as text too, which is what goes to stdout and to other than named files.

    Raises:
        UsageError: another ending, or the drawing package is not installed: told before anything is charged.
    """
    if text and (path is None or path in ("-", "/dev/stdout")):
        return "text"
    if text and str(path).lower().endswith(".txt"):
        return "text"
    from discreet.pictures import format_of, require

    kind = format_of(path, option, also=(".txt",) if text else ())
    require()
    return kind


def written(drawing: Drawing) -> bytes:
    """A picture's bytes, with a word on stderr where a font was missing."""
    if drawing.missing:
        say(
            "no installed font has some signs of the picture's texts, so their code points stand there: install one "
            "(for Chinese: fonts-noto-cjk), or write an .svg, which is shown with the fonts of whoever looks at it"
        )
    return drawing.content
