"""The address of a ledger on a PostgreSQL server: ``postgresql://user@host:port/database?sslmode=verify-full``.

All that libpq takes may stand in it. What is shown of it, anywhere, is user, host, port, database and service.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import parse_qsl, quote, urlsplit

from discreet.errors import UsageError

__all__ = ["connection_options", "holds_password", "is_address", "options_of", "same_place", "shown_place"]

_SCHEMES = ("postgresql://", "postgres://")

_WHERE = ("host", "hostaddr", "port", "dbname", "service")


def is_address(text: str) -> bool:
    """Whether this names a server and not a file."""
    return text.startswith(_SCHEMES)


def holds_password(address: str) -> bool:
    """Whether a password stands in an address. (Asked of a policy, which needs no library to be read.)"""
    parts = urlsplit(address)
    asked = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    return ":" in parts.netloc.rpartition("@")[0] or not asked.isdisjoint(("password", "sslpassword"))


def options_of(address: str) -> dict[str, str]:
    """What an address says, by libpq's names; a secret may be among it.

    Raises:
        UsageError: for one that libpq does not understand, or without its library. It is not shown.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        rule = "on a PostgreSQL server is reached through the library psycopg"
        raise UsageError("a ledger", rule, hint="pip install 'discreet[postgres]'") from None
    found = None
    with suppress(psycopg.Error, UnicodeError, ValueError):  # whose texts quote the address
        found = conninfo_to_dict(address)
    if found is None or "\0" in address:
        raise UsageError(
            "ledger",
            "is not a valid address of a PostgreSQL server",
            hint="write postgresql://USER@HOST:PORT/DATABASE, with %40 for an @ in a name",
        )
    return {name: str(value) for name, value in found.items() if value is not None}


def shown_place(options: Mapping[str, str]) -> str:
    """An address without its secrets, and without what is no part of the place."""
    user, host = options.get("user", ""), options.get("host") or options.get("hostaddr", "")
    text = "postgresql://"
    if user:
        text += quote(user, safe="") + "@"
    text += quote(host, safe=",.:-_[]") if ":" not in host else f"[{host}]"
    if port := options.get("port", ""):
        text += f":{port}"
    text += "/" + quote(options.get("dbname", ""), safe="")
    if service := options.get("service"):
        text += f"?service={quote(service, safe='')}"
    return text


def same_place(one: str, other: str) -> bool:
    """Whether two addresses name one database, whoever asks there."""
    first, second = options_of(one), options_of(other)
    return all(first.get(name) == second.get(name) for name in _WHERE)


def connection_options(options: Mapping[str, str], timeout: float) -> dict[str, str]:
    """The same with what an address may leave out: bounds on waiting for a host that does not answer, and where several
    hosts are named, the one that takes writes."""
    usual = {
        "connect_timeout": f"{max(2, round(timeout))}",
        "target_session_attrs": "read-write",
        "keepalives_idle": "15",
        "keepalives_interval": "5",
        "keepalives_count": "3",
        "tcp_user_timeout": "30000",  # milliseconds that what was sent may stay unanswered
        "fallback_application_name": "discreet",
        "client_encoding": "UTF8",
    }
    return {**usual, **options, "client_encoding": "UTF8"}
