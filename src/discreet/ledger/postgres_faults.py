"""What a PostgreSQL server reports, as a LedgerError that says what happened and what to do.

Its own texts never pass: they quote values, and are in the server's language. Only SQLSTATE decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.errors import LedgerError
from discreet.ledger.chain import OWNER_CHECK

if TYPE_CHECKING:
    import psycopg

__all__ = ["damaged", "explain", "lost", "not_a_ledger", "not_durable", "refused", "unknown_outcome"]


def refused(thing: str, *, by_password: bool) -> LedgerError:
    """No connection. (libpq tells why in words only.)"""
    if by_password:
        return LedgerError(
            thing,
            "does not let this user in: the password was refused, or the database is not there",
            hint="check user, password (a password file, PGPASSFILE) and the name of the database",
        )
    return LedgerError(
        thing,
        "cannot be reached, or does not let this user in",
        hint="check that the server runs and takes writes, the address, the user and the password (PGPASSFILE)",
    )


def lost(thing: str) -> LedgerError:
    """The connection broke, and nothing was being committed."""
    return LedgerError(thing, "was lost from sight: the connection broke", hint="nothing was charged; try again")


def unknown_outcome(thing: str) -> LedgerError:
    """The connection broke, or was cut short, while a transaction was being committed."""
    return LedgerError(
        thing,
        "did not confirm what was being written: the connection broke, or the wait for its standby was cut short. "
        "It may count as charged, and nothing is answered from it",
        hint="`discreet budget` tells whether it was charged; asking again is charged again",
    )


def not_durable(thing: str, setting: str) -> LedgerError:
    """The server may lose what it confirmed."""
    return LedgerError(
        thing,
        f"may forget what it has confirmed: {setting}",
        hint="nothing was charged; let whoever runs the server change that, or name another ledger",
    )


def damaged(thing: str) -> LedgerError:
    """It contradicts itself, or is not what this house made."""
    return LedgerError(thing, "is damaged or was tampered with", hint=OWNER_CHECK)


def not_a_ledger(thing: str) -> LedgerError:
    """Somebody else's table stands where ours would."""
    return LedgerError(
        thing,
        'holds a table "discreet.entries" that is not a ledger',
        hint=f"name another database; it was left as it is. If it held a ledger, {OWNER_CHECK}",
    )


def explain(thing: str, error: psycopg.Error, *, waited: float, answer_within: float) -> LedgerError:
    """A fault that the server reports within a transaction, which it has undone.

    Args:
        waited: how many seconds others may hold the lock.
        answer_within: how many seconds one statement may take.
    """
    code = error.sqlstate or ""
    match code:
        case "55P03" | "40P01":  # lock not available, deadlock
            rule = f"stayed locked by another process for more than {waited:g} seconds"
            hint = "nothing was charged; try again, or find the process that holds it"
        case "57014":
            rule = f"did not answer within {answer_within:g} seconds, or was told to stop"
            hint = "nothing was charged; try again, or ask whoever runs the server"
        case "54000":
            rule, hint = (
                "cannot hold a name as long as this one",
                "2,000 bytes are safe for a source, account or analyst",
            )
        case "53100":
            rule = "cannot grow: the server's disk is full"
            hint = "make room; nothing can be asked until the ledger can be written"
        case "53300" | "53200" | "53000" | "53400":
            rule = "is out of connections or memory"
            hint = "nothing was charged; try again later, or ask whoever runs the server"
        case "25006":
            rule = "takes no writes: the server is a standby, or the database is read-only"
            hint = "name the server that takes writes; nothing was charged"
        case "42501":
            rule = "may not be read and written by this user"
            hint = (
                "let its owner GRANT USAGE ON SCHEMA discreet and SELECT, INSERT ON discreet.entries to this user; "
                "who makes or migrates a ledger needs the right to create in the database"
            )
        case "58030" | "58P01" | "XX000":
            rule = "could not be read or written: the server reports a fault"
            hint = "check the server's disk and its log"
        case _ if code[:2] in {"22", "23", "42", "P0", "XX"}:
            # A value that cannot be, a guard that said no, a table or column that is gone, a broken page.
            return damaged(thing)
        case "" | "25P03":
            return lost(thing)
        case _ if code[:2] == "08" or code[:4] == "57P0":
            return lost(thing)
        case _:
            rule = f"cannot be used (code {code} of the server)"
            hint = "try again; if it stays so, keep the ledger and name another"
    return LedgerError(thing, rule, hint=hint)
