"""An answer as a table: a row a group, each number with its interval and a small picture of it."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.answer import Answer, AnswerColumn
from discreet.chart import panels_of
from discreet.exact import decimal_text
from discreet.formats import key_text, shown_parts
from discreet.html.charts import intervals
from discreet.html.elements import Html, element

__all__ = ["answer_table", "plain_table"]

MOST_ROWS = 500


def answer_table(answer: Answer, label: str) -> Html:
    """The table, which scrolls by itself where the page is narrow.

    Args:
        label: what it holds, for those who hear it.
    """
    level = decimal_text(answer.confidence * 100)
    shown = min(len(answer), MOST_ROWS)
    heads: list[Html] = []
    cells: list[list[Html]] = [[] for _ in range(shown)]
    statistics = {statistic["name"] for statistic in answer.details["statistics"]}
    pictures = {panel.name: intervals(panel) for panel in panels_of(answer)}
    for column in answer.columns:
        is_key = column.name not in statistics
        is_number = column.low is not None
        heads.append(element("th", column.name, scope="col", class_="n" if is_number else None))
        if column.low is None or column.high is None:
            for i, value in enumerate(column.values[:shown]):
                cells[i].append(_key(value) if is_key else element("td", key_text(value)))
            continue
        heads += [element("th", f"{level} % interval", scope="col", class_="n"), _picture_head(column)]
        for i, (value, ends) in enumerate(shown_parts(column)[:shown]):
            cells[i] += [element("td", value, class_="n"), element("td", ends or "none", class_="n")]
            cells[i].append(element("td", pictures[column.name][i], class_="p"))
    rows = [element("tr", row) for row in cells]
    more = len(answer) - shown
    caption = element("caption", f"{more:,} more groups are not shown here.") if more else None
    table = element("table", caption, element("thead", element("tr", heads)), element("tbody", rows))
    return element("div", table, class_="scroll", role="region", aria_label=label, tabindex=0)


def _key(value: object) -> Html:
    return element("th", key_text(value), scope="row")  # type: ignore[arg-type]


def _picture_head(column: AnswerColumn) -> Html:
    return element("th", element("span", f"{column.name}, drawn", class_="quiet"), scope="col", aria_hidden="true")


def plain_table(heads: Sequence[str], rows: Sequence[Sequence[str]], numeric: Sequence[bool], label: str) -> Html:
    """A table whose first column names its rows."""
    head = element(
        "thead",
        element(
            "tr",
            [
                element("th", text, scope="col", class_="n" if right else None)
                for text, right in zip(heads, numeric, strict=True)
            ],
        ),
    )
    body = [
        element(
            "tr",
            [
                element("th", cell, scope="row") if i == 0 else element("td", cell, class_="n" if right else None)
                for i, (cell, right) in enumerate(zip(row, numeric, strict=True))
            ],
        )
        for row in rows
    ]
    table = element("table", head, element("tbody", body))
    return element("div", table, class_="scroll", role="region", aria_label=label, tabindex=0)
