"""`discreet report`: all releases of a data set as one document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from discreet.cli.arguments import choose
from discreet.cli.budget import opened_ledger, whose
from discreet.cli.output import destination
from discreet.cli.talk import say
from discreet.errors import UsageError

if TYPE_CHECKING:
    from discreet.deployment import Deployment

__all__ = ["FORMATS", "write_report"]

FORMATS = ("markdown", "html", "json", "yaml")


def write_report(
    source: str | None, *, ledger: str | None, policy: str | None, format: str | None, html: bool, output: str | None
) -> None:
    """Write the report of a source, of a policy's data set, or of a budget that several share. Reads the ledger only,
    and checks all of it.

    Raises:
        UsageError: the ledger knows no such source; PyYAML is not installed; --html beside another format.
        LedgerError: there is no ledger, it cannot be read, or it is damaged.
        OutputError: the file cannot be written.
    """
    if html and format not in (None, "html"):
        raise UsageError("--html", "and --format exclude each other", format, "leave one of them out")
    format = "html" if html else format or "markdown"
    choose("--format", format, FORMATS)
    asked = whose(source, ledger, policy)
    with opened_ledger(asked) as (book, identity):
        from discreet.deployment import deployment

        own = ("", "-wal", "-shm", "-journal") if book.path is not None else ()
        taken = {Path(f"{book.path}{suffix}"): "the ledger" for suffix in own}
        with destination("--output", output, taken, lambda path: f"file:{path}" == identity) as place:
            found = deployment(book, identity)
            place.write(_rendered(found, format), machine=format != "markdown")
    many = "1 release" if len(found.releases) == 1 else f"{len(found.releases)} releases"
    say(f"{many}; the ledger was checked up to entry {found.entries}, its head: {found.head}")
    if format == "yaml":
        from discreet.reports.registry import entry, to_fill_in

        say(f"for the owner to fill in: {', '.join(to_fill_in(entry(found)))}")


def _rendered(found: Deployment, format: str) -> str:
    match format:
        case "json":
            from discreet.reports.document import as_json

            return as_json(found)
        case "html":
            from discreet.report_page import page_html

            return page_html(found)
        case "yaml":
            from discreet.reports.registry import as_yaml

            return as_yaml(found)
        case _:
            from discreet.reports.markdown import render

            return render(found)
