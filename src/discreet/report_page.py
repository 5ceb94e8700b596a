"""All releases of a data set on one page: it needs nothing but itself, and can be read on a phone and on paper."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.deployment import Deployment, Release, Step
from discreet.exact import decimal_text
from discreet.html.answers import answer_table, plain_table
from discreet.html.charts import budget_line
from discreet.html.elements import Child, Html, element
from discreet.html.notebooks import loss_words
from discreet.html.styles import page_style
from discreet.ledger import Kind
from discreet.numerals import number_text
from discreet.report_reading import what_to_know

__all__ = ["page_html"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page_html(seen: Deployment) -> str:
    """All releases of a data set as one page that needs nothing but itself."""
    title = f"Private releases about {seen.name}"
    sections = [
        ("glance", "At a glance", _glance(seen)),
        ("know", "What the reader must know", element("ul", [element("li", line) for line in what_to_know(seen)])),
        ("budget", "The budget over time", _budget(seen)),
        ("releases", "The releases", _releases(seen)),
    ]
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Html(page_style())),
    )
    contents = [element("li", element("a", name, href=f"#{key}")) for key, name, _ in sections]
    questions = [
        element("li", element("a", _name(release), href=f"#release-{release.number}")) for release in seen.releases
    ]
    body = element(
        "body",
        element("a", "Skip to the releases", href="#releases", class_="skip"),
        element("header", element("h1", title), element("p", f"Put together {_time(seen.time)}.", class_="quiet")),
        element("nav", element("ul", contents), element("ol", questions) if questions else None, aria_label="Contents"),
        element(
            "main",
            [
                element("section", element("h2", name, id=key), content, aria_labelledby=key)
                for key, name, content in sections
            ],
        ),
        element(
            "footer",
            element(
                "p",
                f"Made by {seen.software} from the ledger alone; every entry was checked. Its newest entry is "
                f"number {seen.entries}, with the hash ",
                element("code", seen.head),
                ".",
            ),
        ),
    )
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def _glance(seen: Deployment) -> Html:
    pairs: list[tuple[str, str]] = [("Data", ", ".join(d.name for d in seen.datasets) or seen.name)]
    if seen.shared_by:
        pairs.append(("Budget shared by", ", ".join(name.rpartition("/")[2] for name in seen.shared_by)))
    if seen.budget is not None:
        pairs += [("Privacy unit", seen.budget.unit), ("Neighbours", seen.budget.relation)]
    if seen.balance is not None:
        pairs += [
            ("Total", loss_words(seen.balance.total)),
            ("Spent", loss_words(seen.balance.spent)),
            ("Left", loss_words(seen.balance.left)),
        ]
    else:
        pairs.append(("Budget", "none is set"))
    charged, given = len(seen.releases), len(seen.released)
    pairs.append(
        ("Questions charged", f"{charged}, of which {given} were answered" if charged != given else str(charged))
    )
    return _pairs(pairs)


def _budget(seen: Deployment) -> Child:
    steps = seen.steps
    if not steps:
        return element("p", "Nothing was set or spent yet.")
    picture = budget_line(
        [step.time for step in steps],
        [float(step.spent.epsilon) for step in steps],
        [None if step.total is None else float(step.total.epsilon) for step in steps],
    )
    top = max((step.total.epsilon for step in steps if step.total is not None), default=None)
    limit = "" if top is None else f", below the total (dashed), {decimal_text(top)} at the most"
    caption = f"Epsilon spent so far (filled){limit}. The table below tells the same."
    ends = element("div", element("span", _time(steps[0].time)), element("span", _time(steps[-1].time)), class_="ends")
    heads = ("entry", "time (UTC)", "what", "cost", "spent in all", "total")
    rows = [[str(s.entry), _time(s.time), _what(s), _loss(s.loss), _loss(s.spent), _loss(s.total)] for s in steps]
    table = plain_table(heads, rows, (False, False, False, True, True, True), "the budget, step by step")
    return [element("figure", picture, ends, element("figcaption", caption, class_="quiet")), table]


def _what(step: Step) -> str:
    match step.kind:
        case Kind.DEBIT:
            return "a question" + (f" by {step.analyst}" if step.analyst else "")
        case Kind.BUDGET:
            return "the budget was set"
        case Kind.RAISE:
            return "the budget was raised"
        case Kind.JOIN:
            return f"{step.source.rpartition('/')[2]} joined, with what it had spent"
    return "the accounting was set: " + ", ".join(f"{name} {value}" for name, value in step.says.items())


def _loss(loss: object) -> str:
    return "" if loss is None else loss_words(loss).removeprefix("epsilon ")  # type: ignore[arg-type]


def _releases(seen: Deployment) -> Child:
    if not seen.releases:
        return element("p", "No question was charged yet.")
    return [_release(release) for release in seen.releases]


def _name(release: Release) -> str:
    statistics = ", ".join(str(s["name"]) for s in release.details.get("statistics", ()))
    keys = ", ".join(str(name) for key in release.details.get("keys", ()) for name in key["names"])
    text = statistics + (f" by {keys}" if keys else "")
    return text or " ".join(release.entry.query.split())[:80]


def _release(release: Release) -> Html:
    entry, answer = release.entry, release.answer
    key = f"release-{release.number}"
    pairs = [
        ("Asked", _time(entry.time) + (f" by {entry.analyst}" if entry.analyst else "")),
        ("Cost", loss_words(entry.loss)),
    ]
    if entry.limits:
        pairs.append(("Limits", ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in entry.limits.items())))
    content: Child = None
    if answer is None:
        state = f"no answer: {entry.reason or entry.state}; its cost stays spent"
        pairs.append(
            ("Outcome", state if not release.is_released else "an answer in a form that cannot be read any more")
        )
    else:
        details = answer.details
        pairs.append(("Promise", str(details["promise"])))
        pairs.append(("Noise", _noise(details["measurements"])))
        if details["timezone"] != "UTC":
            pairs.append(("Time zone", str(details["timezone"])))
        selection = details.get("group_selection")
        if selection:
            pairs.append(("Groups", f"chosen from the data: {selection['why']}"))
        content = answer_table(answer, f"answer to question {release.number}")
    return element(
        "article",
        element("h3", f"{release.number}. {_name(release)}", id=key),
        element("pre", element("code", entry.query.strip())),
        content,
        _pairs(pairs),
        aria_labelledby=key,
    )


def _noise(measurements: Sequence[dict[str, object]]) -> str:
    """Each different noise once."""
    texts = [
        f"{m['measured']}: discrete Laplace, scale {number_text(float(str(m['scale_in_the_answer'])))}"
        for m in measurements
    ]
    return "; ".join(dict.fromkeys(texts))


def _pairs(pairs: Sequence[tuple[str, str]]) -> Html:
    return element("dl", [[element("dt", name), element("dd", text)] for name, text in pairs])


def _time(text: str) -> str:
    return text[:19].replace("T", " ") + " UTC"
