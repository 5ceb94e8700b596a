"""Entering a registration in the ledger, with a fingerprint of what the files hold; and who else has the same."""

from __future__ import annotations

from discreet.ledger import Ledger
from discreet.ledger.fingerprint_key import fingerprint_key
from discreet.ledger.places import state_file
from discreet.schema import Registration
from discreet.sources.contents import content_fingerprint

__all__ = ["enter", "fingerprint_of", "twins", "twins_note"]


def enter(book: Ledger, registration: Registration, *, first: bool = False) -> int:
    """Store what the owner discloses about a source, and the fingerprint of its content. The version in force.

    Args:
        first: only if there is none yet.

    Raises:
        SourceError: a file is gone since it was read.
        LedgerError: the ledger or its key cannot be used.
    """
    return book.register(registration, first=first, fingerprint=fingerprint_of(book, registration))


def fingerprint_of(book: Ledger, registration: Registration) -> str:
    """The fingerprint of what a source's files hold now; "" for what has no files. Where the ledger is on a server, its
    key lies in the state folder of who registers, on this host.

    Raises:
        SourceError, LedgerError: as `enter`.
    """
    return content_fingerprint(registration, fingerprint_key(book.path or state_file()))


def twins(book: Ledger, source: str) -> tuple[str, ...]:
    """Other sources that were registered with the same content and charge another budget: for the owner's eyes only, as
    it depends on the data."""
    known = book.fingerprints()
    mine, account = known.get(source, ""), book.account(source)
    same = (other for other, theirs in known.items() if mine and theirs == mine and other != source)
    return tuple(other for other in same if book.account(other) != account)


def twins_note(found: tuple[str, ...]) -> str:
    """What the owner is told of them; "" if there are none."""
    if not found:
        return ""
    return (
        f"note: the same content is registered, under another budget, as {', '.join(found)}. Whoever asks both spends "
        'two budgets on the same persons. To share one: budget = "NAME" for both in the policy, and [budgets.NAME]'
    )
