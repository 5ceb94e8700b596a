"""How the pages look: light and dark, on a phone and on paper."""

from __future__ import annotations

__all__ = ["COLOURS", "DARK", "fragment_style", "page_style"]

COLOURS = {
    "ink": "#1b1b1b",
    "quiet": "#595959",
    "paper": "#ffffff",
    "band": "#f5f5f5",
    "rule": "#d0d0d0",
    "noise": "#0072b2",
    "pale": "#a9d0e8",
    "grey": "#767676",
    "greypale": "#d4d4d4",
    "mark": "#b84d00",
    "bread": "#f7ead0",
    "crust": "#8a6420",
}
"""Text and what stands out have a contrast of at least 4.5 to the paper (WCAG 2.2, 1.4.3)."""

DARK = {
    "ink": "#ececec",
    "quiet": "#b4b4b4",
    "paper": "#17191c",
    "band": "#202327",
    "rule": "#43474d",
    "noise": "#6cb8ea",
    "pale": "#2b5f80",
    "grey": "#9a9a9a",
    "greypale": "#4b4f55",
    "mark": "#f59a55",
    "bread": "#3a3122",
    "crust": "#d2a04a",
}

_PARTS = """
%s table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin:.5rem 0}
%s caption{text-align:left;color:var(--quiet);padding:.2rem 0}
%s th,%s td{padding:.25rem .6rem;border-bottom:1px solid var(--rule);text-align:left;vertical-align:top}
%s th[scope=row]{font-weight:600;min-width:10ch;max-width:22rem;overflow-wrap:anywhere}
%s thead th{white-space:nowrap}
%s th.n{text-align:right}
%s td.n{text-align:right;white-space:nowrap}
%s td.p{padding:.2rem .6rem;min-width:8rem}
%s svg.i{display:block;width:10rem;height:1.1rem}
%s .bar{fill:var(--pale)} %s .doubt .bar{fill:var(--greypale)}
%s .line{stroke:var(--noise);stroke-width:2;fill:none} %s .doubt .line{stroke:var(--grey)}
%s .zero{stroke:var(--grey);stroke-width:1;stroke-dasharray:2 2}
%s .area{fill:var(--pale);stroke:none} %s .rule{stroke:var(--rule);stroke-width:1}
%s .total{stroke:var(--mark);stroke-width:2;stroke-dasharray:6 4;fill:none}
%s svg *{vector-effect:non-scaling-stroke}
%s .quiet{color:var(--quiet)} %s .mark{color:var(--mark)}
%s .scroll{overflow-x:auto;max-width:100%%}
%s .scroll:focus-visible,%s a:focus-visible{outline:3px solid var(--noise);outline-offset:2px}
"""


def _variables(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def _parts(scope: str) -> str:
    return "".join(line.replace("%s", scope).replace("%%", "%") for line in _PARTS.strip().splitlines())


def fragment_style() -> str:
    """For a piece of a notebook: nothing outside it is touched."""
    scope = ".discreet"
    return (
        f"{scope}{{{_variables(COLOURS)}color:var(--ink);background:var(--paper);padding:.6rem .8rem;"
        "font:14px/1.5 system-ui,sans-serif;color-scheme:light dark}"
        f"@media (prefers-color-scheme:dark){{{scope}{{{_variables(DARK)}}}}}"
        # Notebooks that are dark by their own switch say so in these ways.
        f"[data-jp-theme-light=false] {scope},.vscode-dark {scope},[data-theme=dark] {scope}{{{_variables(DARK)}}}"
        f"[data-jp-theme-light=true] {scope},.vscode-light {scope},[data-theme=light] {scope}{{{_variables(COLOURS)}}}"
        f"{_parts(scope)}"
        f"{scope} p{{margin:.3rem 0}}"
        f"{scope} .flow{{display:flex;flex-wrap:wrap;gap:.6rem;align-items:stretch;margin:.5rem 0}}"
        f"{scope} .slice{{border:1px solid var(--crust);border-radius:6px;background:var(--bread);padding:.4rem .7rem;"
        "flex:1 1 11rem}"
        f"{scope} svg.c{{display:block;width:14rem;max-width:100%;height:4.5rem}}"
    )


def page_style() -> str:
    """For the whole page."""
    return (
        f":root{{{_variables(COLOURS)}color-scheme:light dark}}"
        f"@media (prefers-color-scheme:dark){{:root{{{_variables(DARK)}}}}}"
        "*{box-sizing:border-box}"
        "body{margin:0 auto;max-width:62rem;padding:0 1rem 3rem;color:var(--ink);background:var(--paper);"
        "font:1rem/1.55 system-ui,'Noto Sans CJK SC','PingFang SC','Microsoft YaHei',sans-serif}"
        "h1{font-size:1.7rem;line-height:1.25;margin:1.5rem 0 .3rem;overflow-wrap:anywhere}"
        "h2{font-size:1.3rem;margin:2.2rem 0 .5rem;border-bottom:2px solid var(--rule)}"
        "h3{font-size:1.05rem;margin:1.2rem 0 .3rem}"
        "a{color:var(--noise)}"
        ".skip{position:absolute;left:-999rem}.skip:focus{position:static}"
        "pre{white-space:pre-wrap;overflow-wrap:anywhere;background:var(--band);padding:.6rem .8rem;border-radius:4px;"
        "font:.9rem/1.45 ui-monospace,monospace}"
        "dl{display:grid;grid-template-columns:max-content 1fr;gap:.15rem 1rem;margin:.5rem 0}"
        "dt{color:var(--quiet)}dd{margin:0;overflow-wrap:anywhere}"
        "figure{margin:.5rem 0}svg.budget{display:block;width:100%;height:12rem;background:var(--band)}"
        ".ends{display:flex;justify-content:space-between;color:var(--quiet);font-size:.9rem}"
        "article{border-top:1px solid var(--rule);padding-top:.2rem;margin-top:1.5rem}"
        "footer{margin-top:3rem;border-top:2px solid var(--rule);padding-top:.5rem;color:var(--quiet);font-size:.9rem;"
        "overflow-wrap:anywhere}"
        f"{_parts('body')}"
        "@media (max-width:34rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}th,td{padding:.25rem .35rem}"
        "svg.i{width:7rem}}"
        # On paper: dark words on white whatever the screen was, nothing cut in two, no way to scroll.
        f"@media print{{:root{{{_variables(COLOURS)}}}body{{max-width:none;padding:0;font-size:10pt}}"
        "nav,.skip{display:none}article,figure,tr{break-inside:avoid}h2,h3{break-after:avoid}"
        ".scroll{overflow:visible}svg *{print-color-adjust:exact;-webkit-print-color-adjust:exact}}"
    )
