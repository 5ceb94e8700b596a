"""The noise sandwich for a terminal: boxes and block letters, no wider than asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from discreet.exact import decimal_text
from discreet.laplace.distribution import Laplace
from discreet.numerals import number_text
from discreet.privacy import PrivacyLoss
from discreet.sandwich import Layer, Noise, Sandwich, axis_reach

__all__ = ["NARROWEST", "draw_text", "without_signs"]

NARROWEST = 60
_BESIDE = 78
_BLOCKS = " ▁▂▃▄▅▆▇█"
_HEIGHT = 3  # lines of a curve


def draw_text(picture: Sandwich, width: int = 80) -> str:
    """The picture as lines of text.

    Args:
        picture: what to draw.
        width: columns of the terminal; at least `NARROWEST` are used.
    """
    width = max(width, NARROWEST)
    lines = [f"The noise sandwich of a query to {_printable(picture.source)}", ""]
    lines += ["  " + line for line in _wrapped(picture.query, width - 2)]
    lines.append("")
    lines += _bread(picture, width)
    body: list[str] = []
    for layer, reach in zip(picture.layers, axis_reach(picture.layers), strict=True):
        body += [*([""] if body else []), *_layer(layer, reach, picture.level, width - 4)]
    lines += _box("+ Laplace noise = the answer", body, width)
    lines.append(" " * (width // 2) + "▼")
    lines += _box("the ledger", _ledger(picture, width - 4), width)
    for note in picture.notes:
        lines += _wrapped(f"note: {note}", width)
    return "\n".join(line.rstrip() for line in lines)


def _bread(picture: Sandwich, width: int) -> list[str]:
    """The first three boxes: side by side where there is room for them."""
    beside = width >= _BESIDE
    third = (width - 2) // 3 if beside else width
    last = width - 2 - 2 * third if beside else width
    boxes = [
        _box("the rows", picture.rows, third),
        _box("one person weighs", picture.limits, third),
        _box("exact totals: closed", [*picture.totals, "▒" * (last - 4)], last),
    ]
    if beside:
        return [*_beside(boxes), " " * (width - 1 - last // 2) + "▼"]
    down = " " * (width // 2) + "▼"
    return [line for box in boxes for line in (*box, down)]


def without_signs(picture: Sandwich) -> Sandwich:
    """The picture's words for a terminal that shows ASCII only: what would take more room there takes it here."""

    def plain(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace("±", "+-").replace("…", "..").replace("×", "x") for text in texts)

    layers = (
        replace(layer, weighs=plain(layer.weighs), width=plain(layer.width), becomes=plain((layer.becomes,))[0])
        for layer in picture.layers
    )
    return replace(picture, layers=tuple(layers))


def _layer(layer: Layer, reach: float, level: str, width: int) -> list[str]:
    asked = "" if layer.asked == layer.name else f": {layer.asked}"
    lines = [*_wrapped(f"{layer.name}{asked}", width)]
    lines += ["  " + line for line in _wrapped(f"costs {layer.costs}", width - 2)]
    for text in layer.weighs:
        lines += ["  " + line for line in _wrapped(text, width - 2)]
    for noise in layer.noises:
        lines += ["  " + line for line in _wrapped(noise_line(noise), width - 2)]
    if layer.drawn is not None:
        lines += ["  " + line for line in _curve(layer.drawn, reach, level, width - 4)]
    answer = f"answer: {layer.becomes}" + (f"; {level} half-width: {', '.join(layer.width)}" if layer.width else "")
    return lines + ["  " + line for line in _wrapped(answer, width - 2)]


def noise_line(noise: Noise) -> str:
    """One noise in words."""
    measure = f" {noise.measure}" if noise.measure else ""
    what = f"{noise.measured} ({noise.copies} levels, the widest)" if noise.copies > 1 else noise.measured
    if noise.same_as:
        return f"noise on {what}: that of {noise.same_as}, b = {number_text(noise.scale)}{measure}"
    if noise.copies > 1:
        return f"noise on {what}: b = sensitivity / epsilon = {number_text(noise.scale)}{measure}"
    parts = f"{number_text(noise.sensitivity)} / {number_text(float(noise.epsilon))}"
    return f"noise on {what}: b = sensitivity / epsilon = {parts} = {number_text(noise.scale)}{measure}"


def _curve(noise: Noise, reach: float, level: str, width: int) -> list[str]:
    """The density of the noise, and below it an axis with the band that holds it with the given confidence."""
    columns = min(width, 65)
    columns -= 1 - columns % 2  # so that 0 has a column of its own
    half = columns // 2
    law = Laplace(str(noise.scale))
    positions = [reach * (i - half) / half for i in range(columns)]
    peak = float(law.pdf(0))
    heights = [round(float(law.pdf(x)) / peak * _HEIGHT * 8) for x in positions]
    lines = []
    for row in reversed(range(_HEIGHT)):
        lines.append("".join(_BLOCKS[min(8, max(0, height - 8 * row))] for height in heights))
    ends = [half - round(noise.band / reach * half), half + round(noise.band / reach * half)]
    marks = ["─"] * columns
    marks[ends[0]], marks[half], marks[ends[1]] = "├", "┼", "┤"
    lines.append("".join(marks))
    low, high = f"-{number_text(noise.band, 3)}", number_text(noise.band, 3)
    label = f"{low} to {high}{' ' + noise.measure if noise.measure else ''}: {level} of the noise"
    lines.append(label.center(columns).rstrip())
    return lines


def _ledger(picture: Sandwich, width: int) -> list[str]:
    cost = loss_line(picture.cost)
    if picture.before is None or picture.after is None:
        return _wrapped(f"no budget is set yet; this query costs {cost}", width)
    lines = [f"left before: {loss_line(picture.before)}", f"this query:  {cost}"]
    if picture.enough:
        lines.append(f"left after:  {loss_line(picture.after)}")
    else:
        lines.append("the budget is too small: the query would be refused")
    total = picture.total
    if total is not None and total.epsilon > 0 and picture.enough:
        lines.append(_bar(picture, total, width))
    return [part for line in lines for part in _wrapped(line, width)]


def _bar(picture: Sandwich, total: PrivacyLoss, width: int) -> str:
    """Spent, this query and what is left, as parts of the total epsilon."""
    if picture.before is None:
        raise AssertionError
    columns = min(width, 65) - 2
    before = float(1 - picture.before.epsilon / total.epsilon)
    own = float(picture.cost.epsilon / total.epsilon)
    first = round(before * columns)
    second = max(1, round((before + own) * columns) - first)
    rest = max(0, columns - first - second)
    return f"[{'█' * first}{'▒' * second}{'·' * rest}]"


def loss_line(loss: PrivacyLoss) -> str:
    """A loss in words; delta only where it is not 0."""
    text = f"epsilon {decimal_text(loss.epsilon)}"
    return f"{text}, delta {decimal_text(loss.delta, digits=30)}" if loss.delta else text


def _box(title: str, body: Sequence[str], width: int) -> list[str]:
    from rich.cells import cell_len

    head = f"╭─ {title} "
    lines = [head + "─" * (width - 1 - cell_len(head)) + "╮"]
    for text in body:
        for line in _wrapped(text, width - 4) if cell_len(text) > width - 4 else [text]:
            lines.append(f"│ {line}{' ' * (width - 4 - cell_len(line))} │")
    return [*lines, "╰" + "─" * (width - 2) + "╯"]


def _beside(boxes: Sequence[Sequence[str]]) -> list[str]:
    """Boxes side by side, of one height, with arrows between them."""
    height = max(len(box) for box in boxes)
    tall = []
    for box in boxes:
        inner = len(box[0]) - 2
        tall.append([*box[:-1], *("│" + " " * inner + "│" for _ in range(height - len(box))), box[-1]])
    middle = height // 2
    return [("▶" if i == middle else " ").join(parts) for i, parts in enumerate(zip_longest(*tall, fillvalue=""))]


def _wrapped(text: str, width: int) -> list[str]:
    """Lines of at most `width` columns; wide characters take two."""
    import io

    from rich.console import Console
    from rich.text import Text

    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    return [line.plain.rstrip() for line in Text(_printable(text)).wrap(console, width)] or [""]


def _printable(text: str) -> str:
    """Control characters would let a name move the terminal's cursor."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)
