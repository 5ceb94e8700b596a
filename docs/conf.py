"""The site: Sphinx reads the Markdown pages of this folder (MyST); Furo lays them out. Built by `make docs`.

It reads without a network: no web fonts, nothing from elsewhere, formulas as MathML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from docutils import nodes
from docutils.utils.math import latex2mathml

import discreet

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.writers.html5 import HTML5Translator

project = "discreet"
author = "the discreet authors"
project_copyright = "2026, the discreet authors"
release = discreet.__version__

extensions = ["myst_parser"]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]  # commands and SQL show what their highlighter does not know

html_theme = "furo"
html_title = f"discreet {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"

BAR = re.compile(r"<mo[^>]*>\|</mo>")


def _inline(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(_mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def _display(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(_mathml(node.astext(), as_block=True))
    raise nodes.SkipNode


def _mathml(text: str, *, as_block: bool) -> str:
    """Docutils' own translation, which browsers show by themselves; Sphinx ships scripts from elsewhere only."""
    tree: str = latex2mathml.tex2mathml(text, as_block=as_block)
    tree = BAR.sub('<mo lspace="0" rspace="0">|</mo>', tree)  # else browsers set a closing bar like an operator
    return f'<div class="math">{tree}</div>\n' if as_block else tree


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (_inline, None), (_display, None))
