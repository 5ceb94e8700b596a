"""The pictures of the chapter on the Laplace mechanism, from the product's own functions: docs/pictures/laplace-*.svg.

Run by `make docs`. The bytes are the same each time: nothing in a picture is random. Each picture brings its own
ground and colours, for light and for dark, so that it can be read on any page. Words stay text, in two languages.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from discreet.laplace import DiscreteLaplace, Laplace, LaplaceMechanism, textbook
from figures import gaussian_sd, laplace_sd, laplace_tight_sd

PLACE = Path(__file__).parent / "pictures"
LANGUAGES = {"": 0, ".zh-CN": 1}

LIGHT = {
    "paper": "#fdfdfc",
    "ink": "#20242b",
    "soft": "#646b76",
    "line": "#dcdfe4",
    "blue": "#1f5fd0",
    "red": "#c8372d",
    "green": "#0f7b5f",
}
DARK = {
    "paper": "#1d2026",
    "ink": "#e8eaee",
    "soft": "#a3abb8",
    "line": "#3a404b",
    "blue": "#7fb0ff",
    "red": "#ff8d82",
    "green": "#5fd3ae",
}
PAPER, INK, SOFT, LINE, BLUE, RED, GREEN = LIGHT.values()

FONTS = "'DejaVu Sans', 'Noto Sans', 'Noto Sans CJK SC', 'PingFang SC', 'Microsoft YaHei', sans-serif"

SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "discreet",
    "font.family": "DejaVu Sans",  # comes with matplotlib: places do not depend on what is installed
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.facecolor": PAPER,
    "figure.facecolor": PAPER,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "lines.linewidth": 2,
}

Words = Callable[[str, str], str]
"""Chooses between the English and the Chinese words."""


def density(figure: Figure, say: Words) -> None:
    """Laplace(0, b) for three b, with the standard deviation of each."""
    axes = figure.subplots()
    x = np.linspace(-10, 10, 1601)
    for b, colour, place in ((1, BLUE, (0.3, 0.485)), (2, GREEN, (0.95, 0.225)), (4, RED, (-9.8, 0.035))):
        law = Laplace(b)
        axes.plot(x, law.pdf(x), color=colour)
        axes.text(*place, f"b = {b}", color=colour, va="center", ha="left")
        at = law.std()
        axes.plot([at, at], [0, float(law.pdf(at))], color=colour, linestyle=(0, (2, 2)))
        axes.plot([at], [float(law.pdf(at))], "o", color=colour, markersize=4)
        axes.text(at + 0.1, float(law.pdf(at)) + 0.014, f"√2 b = {at:.2f}", color=colour, fontsize=9)
    axes.set_xlabel(say("noise", "噪声"))
    axes.set_ylabel(say("density", "密度"))
    axes.set_xticks([-10, -5, 0, 5, 10])
    axes.set_yticks([0, 0.25, 0.5])
    axes.set_xlim(-10, 10)
    axes.set_ylim(0, 0.54)


def ratio(figure: Figure, say: Words) -> None:
    """Two neighbouring answers under Laplace and Gaussian noise: the densities, and ln of their ratio."""
    grid = figure.subplots(2, 2, sharex=True, height_ratios=(3, 2))
    x = np.linspace(-5, 6, 1101)
    sd = Laplace(1).std()
    gauss = [np.exp(-((x - mu) ** 2) / (2 * sd**2)) / (sd * math.sqrt(2 * math.pi)) for mu in (0, 1)]
    laplace = [Laplace(1, mu).pdf(x) for mu in (0, 1)]
    names = (say("Laplace, b = 1", "拉普拉斯，b = 1"), say("Gaussian, as wide", "高斯，同样宽"))
    for column, (name, (one, other)) in enumerate(zip(names, (laplace, gauss), strict=True)):
        top, bottom = grid[0][column], grid[1][column]
        top.plot(x, one, color=BLUE)
        top.plot(x, other, color=GREEN)
        top.set_title(name, fontsize=10, loc="left")
        loss = np.log(one / other)
        inside = np.abs(loss) <= 1 + 1e-9
        bottom.axhspan(-1, 1, color=LINE, linewidth=0)
        bottom.plot(x, np.where(inside, loss, np.nan), color=INK)
        bottom.plot(x, np.where(inside, np.nan, loss), color=RED)
        bottom.set_ylim(-3, 3)
        bottom.set_yticks([-1, 0, 1], ["−ε", "0", "ε"])
        top.set_ylim(0, 0.55)
        top.set_yticks([])
        top.spines["left"].set_visible(False)
        bottom.set_xlabel(say("output", "输出"))
        bottom.set_xticks([-4, -2, 0, 2, 4, 6])
    grid[0][0].text(-0.35, 0.5, "f(D) = 0", color=BLUE, ha="right", va="center", fontsize=9)
    grid[0][0].text(1.35, 0.5, "f(D′) = 1", color=GREEN, ha="left", va="center", fontsize=9)
    grid[1][0].set_ylabel(say("ln of ratio", "比值的 ln"))
    grid[1][1].text(-4.6, -2.2, say("leaves the band at every width", "无论多宽都会越出"), color=RED, fontsize=9)


def inverse(figure: Figure, say: Words) -> None:
    """The distribution function read backwards: u in, noise out."""
    axes = figure.subplots()
    law = Laplace(1)
    x = np.linspace(-5, 5, 1001)
    axes.plot(x, law.cdf(x), color=BLUE)
    axes.text(3.3, 0.91, "F(x)", color=BLUE)
    for u in (0.08, 0.3, 0.5, 0.9, 0.97):
        at = float(law.ppf(u))
        axes.plot([-5, at], [u, u], color=SOFT, linewidth=1, linestyle=(0, (2, 2)))
        axes.annotate("", (at, 0), (at, u), arrowprops={"arrowstyle": "-|>", "color": RED, "shrinkA": 0, "shrinkB": 0})
        axes.plot([at], [u], "o", color=RED, markersize=4)
    axes.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    axes.set_xlim(-5, 5)
    axes.set_ylim(0, 1.02)
    axes.set_ylabel(say("u, uniform", "均匀的 u"))
    axes.set_xlabel(say("noise, b = 1", "噪声，b = 1"))


def zero(figure: Figure, say: Words) -> None:
    """The left end of what the formula can give: the values at the smallest u."""
    axes = figure.subplots()
    steps = np.arange(1.0, 400.0)
    values = textbook._inverse(steps * 2.0**-53, 1.0)
    axes.vlines(values, 0.55, 0.95, color=RED, linewidth=1)
    axes.fill_between([-39.9, float(values[0])], 0.55, 0.95, color=LINE, linewidth=0)
    axes.text(-38, 0.75, say("never", "从不出现"), color=RED, ha="center", va="center")
    axes.text(-40.3, 0.75, "−∞ ←", color=RED, ha="right", va="center")
    whole = np.arange(-40.0, -30.0)
    axes.vlines(whole[np.asarray(DiscreteLaplace(1).pmf(whole)) > 0], 0.05, 0.4, color=BLUE, linewidth=2)
    for k, name in ((0, "u = 2⁻⁵³"), (1, "2 · 2⁻⁵³"), (2, "3 · 2⁻⁵³")):
        axes.text(float(values[k]), 1.0, name, rotation=35, fontsize=8, color=SOFT)
    axes.set_xlim(-41.5, -30.5)
    axes.set_ylim(0, 1.35)
    axes.set_yticks([0.22, 0.75], [say("ours, scale 1", "本库，尺度 1"), say("formula, b = 1", "公式，b = 1")])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(say("noise far out in the left tail", "左尾深处的噪声"))


def bits(figure: Figure, say: Words) -> None:
    """Sixty neighbouring doubles: which of them can come out of 0 + noise, which of 1 + noise."""
    axes = figure.subplots()
    start, count = 0.3, 60
    doubles = [start]
    while len(doubles) < count:
        doubles.append(math.nextafter(doubles[-1], 1.0))
    for row, (answer, colour) in enumerate(((0.0, BLUE), (1.0, GREEN))):
        for place, value in enumerate(doubles):
            can = textbook._reachable(value, answer, 1.0)
            axes.plot(
                [place], [1 - row], "s" if can else ".", color=colour if can else LINE, markersize=6 if can else 4
            )
    axes.set_xlim(-1, count)
    axes.set_ylim(-0.5, 1.5)
    axes.set_yticks([1, 0], [say("0 + noise", "0 + 噪声"), say("1 + noise", "1 + 噪声")])
    axes.set_xticks([0, count - 1], ["0.3", f"0.3 + {count - 1} · 2⁻⁵⁴"])
    axes.tick_params(axis="both", length=0)
    axes.spines["left"].set_visible(False)
    axes.set_xlabel(say("sixty doubles, one beside the other", "六十个相邻的双精度数"))


def many(figure: Figure, say: Words) -> None:
    """The noise of each of many counts of the same persons, at (1, 10^-6)."""
    axes = figure.subplots()
    counts = [1, 3, 9, 16, 24, 36, 60, 100]
    lines = (
        (laplace_sd, BLUE, say("Laplace", "拉普拉斯")),
        (laplace_tight_sd, GREEN, say("Laplace, tight", "拉普拉斯，紧组合")),
        (gaussian_sd, RED, say("Gaussian", "高斯")),
    )
    for noise, colour, name in lines:
        # Three digits: the tight composition is computed by a Fourier transform, whose last digits are not the same
        # on every processor.
        values = [float(f"{noise(count):.3g}") for count in counts]
        axes.plot(counts, values, color=colour)
        axes.text(106, values[-1], name, color=colour, va="center")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(1, 100)
    axes.set_ylim(1, 150)
    axes.set_xticks([1, 10, 100], ["1", "10", "100"])
    axes.set_yticks([1, 10, 100], ["1", "10", "100"])
    axes.grid(color=LINE, linewidth=0.8)
    axes.set_xlabel(say("how many counts, of the same persons", "对同一批人的计数个数"))
    axes.set_ylabel(say("standard deviation of each", "每个计数的标准差"))


def wrong(figure: Figure, say: Words) -> None:
    """A sum of values up to 100: the noise that was claimed to be enough, and the noise that is."""
    grid = figure.subplots(2, 1, sharex=True)
    x = np.linspace(-200, 300, 5001)
    names = (
        say("sensitivity taken as 1: b = 1", "敏感度误作 1：b = 1"),
        say("sensitivity 100: b = 100", "敏感度 100：b = 100"),
    )
    for axes, sensitivity, name in zip(grid, (1, 100), names, strict=True):
        scale = LaplaceMechanism(sensitivity, 1).scale
        axes.plot(x, Laplace(scale, 0).pdf(x), color=BLUE)
        axes.plot(x, Laplace(scale, 100).pdf(x), color=GREEN)
        axes.set_yticks([])
        axes.set_ylim(0, None)
        axes.spines["left"].set_visible(False)
        axes.set_title(name, fontsize=10, loc="left")
    grid[0].text(-8, 0.38, say("without Wang", "没有小王"), color=BLUE, ha="right", fontsize=9)
    grid[0].text(
        108, 0.38, say("with Wang, whose value is 100", "有小王，他的值是 100"), color=GREEN, ha="left", fontsize=9
    )
    grid[1].set_xlabel(say("released sum", "发布的总和"))


PICTURES: dict[str, tuple[Callable[[Figure, Words], None], float]] = {
    "density": (density, 3.0),
    "ratio": (ratio, 3.6),
    "many": (many, 3.2),
    "inverse": (inverse, 3.0),
    "zero": (zero, 2.1),
    "bits": (bits, 1.7),
    "wrong": (wrong, 3.0),
}
"""Each picture, with its height in inches."""


def svg(name: str, language: str) -> str:
    """One picture as SVG text."""
    draw, height = PICTURES[name]

    def say(*words: str) -> str:
        return words[LANGUAGES[language]]

    with mpl.rc_context(SETTINGS), warnings.catch_warnings():
        # Chinese words are written with the reader's fonts; the one that measures them here has none.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        figure = Figure(figsize=(7.2, height), layout="constrained")
        draw(figure, say)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return _for_light_and_dark(out.getvalue())


def _for_light_and_dark(text: str) -> str:
    """A reader's preference for dark turns the colours; programs that know no such rule show the light ones."""
    rules = "".join(
        f'[style*="{what}: {light}"]{{{what}:{DARK[name]} !important}}'
        for name, light in LIGHT.items()
        for what in ("fill", "stroke")
    )
    style = f"<style>@media (prefers-color-scheme: dark) {{{rules}}}</style>\n <defs>"
    return text.replace("'DejaVu Sans'", FONTS).replace("<defs>", style, 1)


def all_pictures() -> dict[str, str]:
    """Every picture, by the name of its file."""
    return {f"laplace-{name}{language}.svg": svg(name, language) for name in PICTURES for language in LANGUAGES}


def main() -> None:
    """Write them all."""
    PLACE.mkdir(exist_ok=True)
    for name, text in all_pictures().items():
        (PLACE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
