"""The ledger on a PostgreSQL server: what is peculiar to servers. (What holds for every ledger is tested on both.)"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

from command import DISCREET, Command, Outcome
from discreet.errors import LedgerError, PolicyError, UsageError
from discreet.ledger import Ledger, default_path, postgres_session, postgres_store
from discreet.ledger.places import same_ledger, shown_ledger
from discreet.policy import load_policy
from ledger_places import ONE, PLENTY, balance, debit, is_clear, start, write_some
from postgres_server import PASSWORD, PostgresServer, new_server
from relay import Relay


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that a test may stop, start and change."""
    server = new_server()
    yield server
    server.stop()
    shutil.rmtree(server.folder)


def through(relay: Relay, url: str) -> str:
    """The same address, by way of the relay."""
    before, _, rest = url.rpartition("@")
    return f"{before}@127.0.0.1:{relay.port}/{rest.partition('/')[2]}"


def execute(url: str, *statements: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


# --- addresses and passwords ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgresql://u:secret@h:5/db", "postgresql://u@h:5/db"),
        ("postgres://u:secret@h/db?sslmode=require&password=secret", "postgresql://u@h/db"),
        ("postgresql:///db?host=/run/sock&password=secret", "postgresql://%2Frun%2Fsock/db"),
        ("postgresql://u%40x:secret@[::1]:5/d%2Fb", "postgresql://u%40x@[::1]:5/d%2Fb"),
        ("postgresql://a:1,b:2/db", "postgresql://a,b:1,2/db"),
        ("postgresql://u:secret@/?service=ledger", "postgresql://u@/?service=ledger"),
        ("/home/u:secret@x/ledger", "/home/u:secret@x/ledger"),
    ],
)
def test_an_address_is_shown_without_its_secrets(address: str, shown: str) -> None:
    assert shown_ledger(address) == shown


@pytest.mark.parametrize(
    "address",
    [
        "mysql://u:secret@h/db",
        "postgresql+psycopg://u:secret@h/db",
        "postgresql://u:%zzsecret@h/db",
        "postgresql://u@h/db?nonsense=secret",
        "postgresql://u:secret@h/d\0b",
    ],
)
def test_what_is_no_address_is_refused_without_a_word_of_it(address: str) -> None:
    """It may hold a password."""
    with pytest.raises(UsageError, match="ledger") as refused:
        Ledger(address)
    assert "secret" not in str(refused.value)
    assert "secret" not in repr(refused.value)
    assert refused.value.__context__ is None or refused.value.__suppress_context__


def test_two_addresses_of_one_place() -> None:
    """Whoever asks there, and by whatever scheme; a file is never the same as a server."""
    assert same_ledger("postgresql://ann:x@h/db", "postgres://bob@h/db?sslmode=require")
    assert not same_ledger("postgresql://h/db", "postgresql://h/other")
    assert not same_ledger("postgresql://h/db", "postgresql://g/db")
    assert not same_ledger("/db", "postgresql://h/db")


def test_the_default_place_may_be_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for address in ("postgresql://h/db", "mysql://h/db"):
        monkeypatch.setenv("DISCREET_LEDGER", address)
        assert default_path() == address  # not a path: that would make one slash of two


def test_no_error_shows_a_password(postgres_url: str, postgres_server: PostgresServer) -> None:
    """Wrong password, wrong user, no such database, no such host, no server; nor do `repr` and `place`."""
    name = postgres_url.rpartition("/")[2]
    secret = "wrong-secret"  # noqa: S105
    wrong = postgres_server.url(name, password=secret)
    nobody = postgres_server.url(name, user="nobody-here", password=secret)
    nowhere = postgres_server.url("no_such_database")
    silent = postgres_url.replace(f":{postgres_server.port}/", ":1/")
    for address, said in (
        (wrong, "does not let this user in: the password was refused"),
        (nobody, "does not let this user in"),
        (nowhere, "does not let this user in"),
        (silent, "cannot be reached"),
        ("postgresql://u:wrong-secret@host.invalid/db", "cannot be reached"),
    ):
        with pytest.raises(LedgerError, match=said) as error:
            Ledger(address)
        fault: BaseException | None = error.value
        assert is_clear(fault, address.replace(":wrong-secret@", "@"))
        while fault is not None:
            assert "wrong-secret" not in repr(fault)
            assert PASSWORD not in repr(fault)
            fault = fault.__context__
    with Ledger(postgres_url) as ledger:
        assert ledger.path is None
        assert ledger.place == postgres_url.replace(f":{quote(PASSWORD, safe='')}@", "@")
        assert repr(ledger) == f"Ledger({ledger.place!r})"


def test_a_password_file_is_enough(postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "pgpass"
    escaped = PASSWORD.replace("\\", "\\\\").replace(":", "\\:")
    file.write_text(f"*:*:*:postgres:{escaped}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    with Ledger(postgres_url.replace(f":{quote(PASSWORD, safe='')}@", "@")) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
        debit(ledger)


def test_looking_makes_no_ledger(postgres_url: str) -> None:
    with pytest.raises(LedgerError, match="does not exist") as error:
        Ledger(postgres_url, create=False)
    assert is_clear(error.value, postgres_url)
    assert execute(postgres_url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'discreet'") == [(0,)]


# --- whose rights --------------------------------------------------------------------------------------


def role(server: PostgresServer, url: str, *grants: str) -> str:
    """An address for a new user with these rights."""
    name = f"r_{os.getpid()}_{time.monotonic_ns()}"
    database = url.rpartition("/")[2]
    server.execute(f"CREATE ROLE {name} LOGIN PASSWORD 'p'")
    for grant in grants:
        server.execute(f"{grant} TO {name}", database)
    return server.url(database, user=name, password="p")  # noqa: S106


def test_analysts_need_to_read_and_add_only(postgres_url: str, postgres_server: PostgresServer) -> None:
    """With SELECT and INSERT alone everything works, but for making, migrating and changing."""
    head = write_some(postgres_url, 2)
    rights = ("GRANT USAGE ON SCHEMA discreet", "GRANT SELECT, INSERT ON discreet.entries")
    analyst = role(postgres_server, postgres_url, *rights)
    with Ledger(analyst) as ledger:
        entry = debit(ledger)
        ledger.record_release(entry, {"n": 1})
        ledger.verify(head)
    for statement in ("UPDATE discreet.entries SET epsilon = '0'", "ALTER TABLE discreet.entries DISABLE TRIGGER ALL"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            execute(analyst, statement)


@pytest.mark.parametrize(
    "rights",
    [
        (),
        ("GRANT USAGE ON SCHEMA discreet",),
        ("GRANT USAGE ON SCHEMA discreet", "GRANT INSERT ON discreet.entries"),
        ("GRANT USAGE ON SCHEMA discreet", "GRANT SELECT ON discreet.entries"),
    ],
)
def test_missing_rights_are_named(postgres_url: str, postgres_server: PostgresServer, rights: tuple[str, ...]) -> None:
    write_some(postgres_url, 1)
    analyst = role(postgres_server, postgres_url, *rights)
    with (
        pytest.raises(LedgerError, match="may not be read and written by this user") as error,
        Ledger(analyst) as ledger,
    ):
        debit(ledger)
    assert is_clear(error.value, analyst.replace(":p@", "@"))
    assert balance(postgres_url).queries == 1


def test_who_may_not_create_makes_no_ledger(postgres_url: str, postgres_server: PostgresServer) -> None:
    analyst = role(postgres_server, postgres_url)
    with pytest.raises(LedgerError, match="may not be read and written by this user"):
        Ledger(analyst)


def test_an_owner_without_the_database_makes_one_in_a_schema_given(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    owner = role(postgres_server, postgres_url)
    name = owner.partition("//")[2].partition(":")[0]
    execute(postgres_url, f"CREATE SCHEMA discreet AUTHORIZATION {name}")
    with Ledger(owner) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
        debit(ledger)
        ledger.verify()
    execute(postgres_url, f"DROP OWNED BY {name} CASCADE")


def test_rows_that_a_policy_hides_are_an_error(postgres_url: str, postgres_server: PostgresServer) -> None:
    """Else the ledger would look shorter than it is, and there would be more to spend."""
    write_some(postgres_url, 3)
    rights = ("GRANT USAGE ON SCHEMA discreet", "GRANT SELECT, INSERT ON discreet.entries")
    analyst = role(postgres_server, postgres_url, *rights)
    execute(
        postgres_url,
        "ALTER TABLE discreet.entries ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY p ON discreet.entries USING (kind <> 'debit')",
    )
    with pytest.raises(LedgerError, match="may not be read"), Ledger(analyst) as ledger:
        debit(ledger)


def test_another_table_of_that_name_is_not_taken_for_ours(postgres_url: str) -> None:
    """Neither one in another schema nor a temporary one; and one that is no ledger is refused and left alone."""
    write_some(postgres_url, 2)
    execute(postgres_url, "CREATE TABLE public.entries (number int)", "ALTER ROLE postgres SET search_path = public")
    try:
        with Ledger(postgres_url) as ledger:
            with psycopg.connect(postgres_url):
                connection = ledger._store._connection  # type: ignore[attr-defined]
                connection.execute("CREATE TEMP TABLE entries (LIKE discreet.entries)")
            debit(ledger)
            ledger.verify()
    finally:
        execute(postgres_url, "ALTER ROLE postgres RESET search_path")
    assert balance(postgres_url).queries == 3
    execute(postgres_url, "COMMENT ON TABLE discreet.entries IS NULL")
    with pytest.raises(LedgerError, match="is not a ledger") as error:
        Ledger(postgres_url)
    assert is_clear(error.value, postgres_url)


def test_a_database_of_another_encoding_is_refused(postgres_server: PostgresServer) -> None:
    """It could not hold every name."""
    name = f"latin_{os.getpid()}"
    postgres_server.execute(f"CREATE DATABASE {name} ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(LedgerError, match="encoding LATIN1") as error:
        Ledger(postgres_server.url(name))
    assert is_clear(error.value, postgres_server.url(name))
    postgres_server.execute(f"DROP DATABASE {name}")


def test_a_name_too_long_for_an_index_is_refused(postgres_url: str) -> None:
    """Before anything is charged; 2,000 bytes are fine."""
    with Ledger(postgres_url) as ledger:
        for name in (os.urandom(1000).hex(), os.urandom(4000).hex()):
            if len(name) > 2000:
                with pytest.raises(LedgerError, match="cannot hold a name as long") as error:
                    ledger.set_budget(name, ONE, unit="actor")
                assert is_clear(error.value, postgres_url)
            else:
                ledger.set_budget(name, ONE, unit="actor")
                debit(ledger, name)
        ledger.verify()


# --- durability ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_may_forget_is_refused(own_server: PostgresServer, setting: str) -> None:
    """Also where the setting is changed while a ledger is open; nothing is charged."""
    own_server.start()
    url = own_server.url(own_server.new_database())
    write_some(url, 1)
    with Ledger(url) as ledger:
        own_server.execute(f"ALTER SYSTEM SET {setting} = off")
        # Settings of the server's command line go first, so that it must be started anew.
        own_server.stop()
        own_server.start(f"{setting}=off")
        with pytest.raises(
            LedgerError, match=f"may forget what it has confirmed: its setting {setting} is off"
        ) as error:
            debit(ledger)
        assert is_clear(error.value, url)
    with pytest.raises(LedgerError, match="may forget"), Ledger(url) as ledger:
        debit(ledger)
    own_server.execute(f"ALTER SYSTEM RESET {setting}")
    own_server.stop()
    own_server.start()
    assert balance(url).queries == 1
    own_server.stop()


def test_a_commit_is_synchronous_whatever_the_user_says(postgres_url: str, postgres_server: PostgresServer) -> None:
    """As seen by a trigger that runs within the ledger's own transaction."""
    name = postgres_url.rpartition("/")[2]
    postgres_server.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    write_some(postgres_url, 1)
    execute(
        postgres_url,
        "CREATE TABLE seen (said text)",
        "CREATE FUNCTION look() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN INSERT INTO public.seen VALUES (current_setting(''synchronous_commit'')); RETURN NULL; END'",
        "CREATE TRIGGER look AFTER INSERT ON discreet.entries FOR EACH ROW EXECUTE FUNCTION look()",
    )
    assert execute(postgres_url, "SHOW synchronous_commit") == [("off",)]
    with Ledger(postgres_url) as ledger:
        debit(ledger)
    assert execute(postgres_url, "SELECT said FROM seen") == [("on",)]


def test_a_table_that_is_not_logged_is_refused(postgres_url: str) -> None:
    """A crash would empty it."""
    write_some(postgres_url, 1)
    execute(postgres_url, "ALTER TABLE discreet.entries SET UNLOGGED")
    with (
        pytest.raises(LedgerError, match="not an ordinary one that is logged") as error,
        Ledger(postgres_url) as ledger,
    ):
        debit(ledger)
    assert is_clear(error.value, postgres_url)


def test_a_power_cut_loses_nothing_that_was_confirmed(own_server: PostgresServer) -> None:
    """Every process of the server is killed at once while others debit, three times over."""
    own_server.start()
    url = own_server.url(own_server.new_database())
    with Ledger(url) as ledger:
        ledger.set_budget("s", PLENTY, unit="actor")
    acknowledged: set[int] = set()
    for _ in range(3):
        with start("toil", url) as one, start("toil", url) as two:
            assert one.stdout is not None
            assert two.stdout is not None
            acknowledged |= {int(one.stdout.readline()), int(two.stdout.readline())}
            time.sleep(0.05)
            own_server.kill()
            for child in (one, two):
                assert child.stdout is not None
                *lines, end = child.stdout.read().splitlines()
                assert end.startswith("error")
                assert is_clear(end, url), end
                acknowledged |= {int(line) for line in lines}
        own_server.start()
        with Ledger(url) as ledger:
            ledger.verify()
            booked = {entry.number for entry in ledger.history("s") if entry.state}
        assert acknowledged <= booked
    own_server.stop()


def test_a_standby_that_does_not_answer_is_not_waited_for_without_end(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server commits, and waits for a standby that never comes; it is told to stop waiting, and the debit counts as
    charged but not as made."""
    own_server.start()
    url = own_server.url(own_server.new_database())
    write_some(url, 1)
    with Ledger(url) as ledger:
        own_server.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        own_server.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)
        with monkeypatch.context() as patch:
            patch.setattr(postgres_store, "_ANSWER_WITHIN", 0.5)
            began = time.monotonic()
            with pytest.raises(LedgerError, match="did not confirm what was being written") as error:
                debit(ledger)
            assert time.monotonic() - began < 20
        assert is_clear(error.value, url)
        own_server.execute("ALTER SYSTEM RESET synchronous_standby_names")
        own_server.execute("SELECT pg_reload_conf()")
        assert balance(url).queries == 2
        debit(ledger)
    own_server.stop()


def test_a_frozen_server_is_not_waited_for_without_end(
    own_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the line open, and does not look at its own limits."""
    own_server.start()
    url = own_server.url(own_server.new_database())
    write_some(url, 1)
    with Ledger(url, timeout=0.1) as ledger:
        session = ledger._store._connection.info.backend_pid  # type: ignore[attr-defined]
        monkeypatch.setattr(postgres_store, "_ANSWER_WITHIN", 0.2)
        monkeypatch.setattr(postgres_session, "_GRACE", 0.2)
        frozen = (own_server.pid(), session)
        try:
            for pid in frozen:
                os.kill(pid, signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(LedgerError, match="cannot be reached") as error:
                debit(ledger)
            assert time.monotonic() - began < 20
            assert is_clear(error.value, url)
        finally:
            for pid in frozen:
                os.kill(pid, signal.SIGCONT)
        debit(ledger)
    assert balance(url).queries == 2
    own_server.stop()


# --- connections that break ----------------------------------------------------------------------------


def test_a_connection_that_ended_while_idle_is_opened_again(postgres_url: str) -> None:
    """As after a restart of the server, or a firewall that forgets."""
    write_some(postgres_url, 1)
    with Ledger(postgres_url) as ledger:
        for act in (lambda: debit(ledger), lambda: ledger.balance("s")):
            session = ledger._store._connection.info.backend_pid  # type: ignore[attr-defined]
            execute(postgres_url, f"SELECT pg_terminate_backend({session}, 5000)")
            act()
    assert balance(postgres_url).queries == 2


def test_a_connection_that_breaks_before_the_commit_charges_nothing(
    postgres_url: str, postgres_server: PostgresServer
) -> None:
    write_some(postgres_url, 1)
    with Relay(postgres_server.port) as relay, Ledger(through(relay, postgres_url)) as ledger:
        for words in (b"BEGIN", b"INSERT INTO"):
            relay.hang_up_before = words
            with pytest.raises(LedgerError, match="connection broke") as error:
                debit(ledger)
            assert is_clear(error.value, through(relay, postgres_url))
            assert "nothing was charged" in error.value.hint
            relay.well_again()
            assert balance(postgres_url).queries == 1
        debit(ledger)
    assert balance(postgres_url).queries == 2


@pytest.mark.parametrize(("where", "charged"), [("before", 0), ("after", 1)])
def test_a_connection_that_breaks_while_committing_is_told_so(
    postgres_url: str, postgres_server: PostgresServer, where: str, charged: int
) -> None:
    """Nobody knows then whether the debit counts. It may, so that nothing is answered, and asking again is charged
    again; what the ledger tells afterwards is what counts."""
    write_some(postgres_url, 1)
    with Relay(postgres_server.port) as relay, Ledger(through(relay, postgres_url)) as ledger:
        setattr(relay, f"hang_up_{where}", b"; COMMIT")
        with pytest.raises(LedgerError, match="did not confirm what was being written: the connection broke") as error:
            debit(ledger)
        assert is_clear(error.value, through(relay, postgres_url))
        relay.well_again()
        found = ledger.balance("s")
        assert found is not None
        assert found.queries == 1 + charged
        debit(ledger)
        ledger.verify()


def test_a_dead_line_is_not_waited_for_without_end(
    postgres_url: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that swallows everything, in the middle of a commit."""
    write_some(postgres_url, 1)
    with Relay(postgres_server.port) as relay, Ledger(through(relay, postgres_url)) as ledger:
        monkeypatch.setattr(postgres_store, "_ANSWER_WITHIN", 0.2)
        monkeypatch.setattr(postgres_session, "_GRACE", 0.2)
        relay.silent_after = b"; COMMIT"
        began = time.monotonic()
        with pytest.raises(LedgerError, match="did not confirm"):
            debit(ledger)
        assert time.monotonic() - began < 20
        relay.well_again()
        monkeypatch.undo()
        assert balance(postgres_url).queries == 2


def test_behind_a_pooler_no_statement_is_prepared(postgres_url: str, postgres_server: PostgresServer) -> None:
    """A pooler names sessions that are not the server's. A statement that we prepared in one of them could be another's
    in the next."""
    write_some(postgres_url, 1)
    with Ledger(postgres_url) as ledger:
        for _ in range(8):
            debit(ledger)
        assert ledger._store._connection._prepared._names  # type: ignore[attr-defined]
    with Relay(postgres_server.port) as relay:
        relay.rewrite = (b"K\0\0\0\x0c\0\0", b"K\0\0\0\x0c\x7f\x7f")
        with Ledger(through(relay, postgres_url)) as ledger:
            for _ in range(8):
                debit(ledger)
            assert not ledger._store._connection._prepared._names  # type: ignore[attr-defined]
    assert balance(postgres_url).queries == 17


def test_a_ledger_that_goes_back_is_noticed_by_who_saw_more(postgres_url: str) -> None:
    """A backup put back, a standby that lagged and took over: every process that had seen a later entry refuses."""
    write_some(postgres_url, 5)
    with Ledger(postgres_url) as ledger, Ledger(postgres_url) as reader:
        entry = debit(ledger)
        assert reader.balance("s") is not None
        cut = f"DELETE FROM discreet.entries WHERE number >= {entry}"
        execute(postgres_url, "ALTER TABLE discreet.entries DISABLE TRIGGER ALL", cut)
        execute(postgres_url, "ALTER TABLE discreet.entries ENABLE TRIGGER ALL")
        for act in (lambda: debit(ledger), lambda: ledger.balance("s"), lambda: reader.balance("s")):
            with pytest.raises(LedgerError, match="went back behind entries that this process has seen") as error:
                act()
            assert is_clear(error.value, postgres_url)
        with Ledger(postgres_url) as other:  # has seen nothing: a head kept elsewhere would tell
            debit(other)
        with pytest.raises(LedgerError, match="went back"):
            debit(ledger)


def test_a_ledger_that_is_gone_is_not_begun_anew_by_who_uses_it(postgres_url: str) -> None:
    write_some(postgres_url, 1)
    with Ledger(postgres_url) as ledger:
        execute(postgres_url, "DROP SCHEMA discreet CASCADE")
        with pytest.raises(LedgerError, match="damaged or was tampered with") as error:
            debit(ledger)
        assert is_clear(error.value, postgres_url)
    assert execute(postgres_url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'discreet'") == [(0,)]


# --- waiting -------------------------------------------------------------------------------------------


def test_who_holds_the_lock_and_does_nothing_is_thrown_out(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is stopped in the middle of a debit does not keep all others from theirs; its own is undone."""
    write_some(postgres_url, 1)
    monkeypatch.setattr(postgres_store, "_IDLE_AT_MOST", 0.3)
    with Ledger(postgres_url) as stuck, Ledger(postgres_url) as other:
        with pytest.raises(LedgerError, match="connection broke"), stuck._store.writing() as entries:
            assert debit(other) == 4
            entries.execute("SELECT 1")
        debit(stuck)
    assert balance(postgres_url).queries == 3


def test_a_table_locked_by_hand_is_waited_for_and_then_named(postgres_url: str) -> None:
    """Reading too: as while a migration or a repair goes on."""
    write_some(postgres_url, 1)
    with Ledger(postgres_url, timeout=0.3) as ledger, psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE discreet.entries IN ACCESS EXCLUSIVE MODE")
        for act in (lambda: debit(ledger), lambda: ledger.balance("s")):
            with pytest.raises(LedgerError, match=r"locked by another process for more than 0\.3 seconds") as error:
                act()
            assert is_clear(error.value, postgres_url)
        other.rollback()
        debit(ledger)


def test_a_statement_that_takes_too_long_is_named(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write_some(postgres_url, 1)
    execute(
        postgres_url,
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'",
        "CREATE TRIGGER slow AFTER INSERT ON discreet.entries FOR EACH ROW EXECUTE FUNCTION slow()",
    )
    monkeypatch.setattr(postgres_store, "_ANSWER_WITHIN", 0.2)
    with Ledger(postgres_url, timeout=0.1) as ledger:
        with pytest.raises(LedgerError, match=r"did not answer within 0\.3 seconds") as error:
            debit(ledger)
        assert is_clear(error.value, postgres_url)
    execute(postgres_url, "DROP TRIGGER slow ON discreet.entries")
    assert balance(postgres_url).queries == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("53100", "disk is full"),
        ("53300", "out of connections"),
        ("53200", "out of connections or memory"),
        ("25006", "takes no writes"),
        ("42501", "may not be read and written"),
        ("55P03", "locked by another process"),
        ("40P01", "locked by another process"),
        ("57014", "did not answer"),
        ("58030", "reports a fault"),
        ("XX000", "reports a fault"),
        ("XX001", "damaged"),
        ("XX002", "damaged"),
        ("23505", "damaged"),
        ("42P01", "damaged"),
        ("P0001", "damaged"),
        ("26000", "code 26000"),
    ],
)
def test_every_fault_of_a_server_is_explained(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, code: str, said: str
) -> None:
    """Whatever the server reports: a LedgerError with what to do, without a word of the server's; and the ledger works
    on afterwards, with nothing charged."""
    write_some(postgres_url, 1)
    with Ledger(postgres_url) as ledger:
        execute(
            postgres_url,
            "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN RAISE EXCEPTION ''relation is malformed: none'' USING ERRCODE = ''{code}''; END'",
            "CREATE TRIGGER fail AFTER INSERT ON discreet.entries FOR EACH ROW EXECUTE FUNCTION fail()",
        )
        with pytest.raises(LedgerError, match=said) as error:
            debit(ledger)
        assert error.value.__suppress_context__
        assert is_clear(error.value, postgres_url)
        execute(postgres_url, "DROP TRIGGER fail ON discreet.entries")
        assert balance(postgres_url).queries == 1
        debit(ledger)


# --- many hosts ----------------------------------------------------------------------------------------


def test_threads_with_ledgers_of_their_own(postgres_url: str) -> None:
    """Eight ledgers in eight threads, five debits each, a budget of 1: ten fit."""
    with Ledger(postgres_url) as ledger:
        ledger.set_budget("s", ONE, unit="actor")
    results: list[str] = []

    def work() -> None:
        with Ledger(postgres_url, timeout=60) as mine:
            for _ in range(5):
                try:
                    debit(mine)
                except Exception as error:  # noqa: BLE001 - told below
                    results.append(type(error).__name__)
                else:
                    results.append("paid")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == ["BudgetError"] * 30 + ["paid"] * 10


def test_a_file_and_a_server_keep_one_chain(tmp_path: Path, postgres_url: str) -> None:
    """The same acts at the same times give the same hashes: entries may be compared, or moved, between the two."""
    from datetime import UTC, datetime

    heads = []
    for place in (str(tmp_path / "ledger"), postgres_url):
        with Ledger(place, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC)) as ledger:
            ledger.set_budget("größe", ONE, unit="actor")
            entry = debit(ledger, "größe", analyst="zoë")
            ledger.record_release(entry, {"n": 2**70, "x": [None, 1.5, "é\u0000"]})
            heads.append(ledger.verify())
    assert heads[0] == heads[1]


# --- the command line ----------------------------------------------------------------------------------

COUNT = "SELECT COUNT(*) AS n FROM data"
ASK = (COUNT, "--unit", "who", "--max-contributions", "10", "--epsilon", "0.5")


def test_the_command_line_on_a_server(discreet: Command, visits: Path, postgres_url: str, tmp_path: Path) -> None:
    """By --ledger and by DISCREET_LEDGER: one budget, asked until it is used up; no line shows the password."""
    shown = []
    first = discreet("query", str(visits), *ASK, "--budget", "1", "--ledger", postgres_url)
    assert first.code == 0, first.err
    there = {**os.environ, "DISCREET_LEDGER": postgres_url}
    done = subprocess.run(
        [*DISCREET, "query", str(visits), *ASK, "--fresh"], env=there, capture_output=True, text=True, check=False
    )
    again = Outcome(done.returncode, done.stdout, done.stderr)
    assert again.code == 0, again.err
    third = discreet("query", str(visits), *ASK, "--fresh", "--ledger", postgres_url)
    assert third.code == 3
    assert "left: epsilon 0;" in third.error()
    budget = discreet("budget", str(visits), "--verify", "--ledger", postgres_url)
    assert budget.code == 0, budget.err
    refused = discreet("query", str(visits), *ASK, "--ledger", postgres_url.replace("127.0.0.1", "localhost.invalid"))
    assert refused.code == 5
    shown += [first, again, third, budget, refused]
    for outcome in shown:
        for text in (outcome.out, outcome.err):
            assert PASSWORD not in text
            assert quote(PASSWORD, safe="") not in text
    assert not list(tmp_path.glob("**/*.sqlite")), "no ledger is made beside it"


def test_init_check_and_refresh_on_a_server(
    discreet: Command, visits: Path, postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner's way: a policy beside a ledger on a server, which is looked at without making one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DISCREET_LEDGER", postgres_url)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made = discreet(
        "init", str(visits), "--unit", "who", "--max-contributions", "10", "--budget", "1", "--bounds", "minutes=0..60",
        "-o", "discreet.toml",
    )  # fmt: skip
    assert made.code == 0, made.err
    for words in (("check",), ("query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "0.5"), ("refresh", "visits")):
        done = discreet(*words)
        assert done.code == 0, (words, done.err)
        assert quote(PASSWORD, safe="") not in done.out + done.err
    with Ledger(postgres_url) as ledger:
        ledger.verify()
        assert [str(account) for account in ledger.accounts()] == [f"file:{visits.resolve()}"]


@pytest.mark.parametrize(
    ("written", "rule"),
    [
        ("postgresql://u:secret@h/db", "must not hold a password"),
        ("postgresql://u@h/db?password=secret", "must not hold a password"),
        ("mysql://u:secret@h/db", "must be the path of a file, or an address postgresql"),
    ],
)
def test_a_policy_holds_no_password(tmp_path: Path, written: str, rule: str) -> None:
    """More people read it than may know one; the refusal does not show it."""
    policy = tmp_path / "discreet.toml"
    policy.write_text(
        f'ledger = "{written}"\n[datasets.v]\nsource = "v.csv"\nprivacy_unit = "who"\nmax_contributions = 1\n'
        "[datasets.v.budget]\nepsilon = 1\n"
    )
    with pytest.raises(PolicyError, match=rule) as refused:
        load_policy(policy)
    assert "secret" not in str(refused.value)
    policy.write_text(policy.read_text().replace(written, "postgresql://u@h/db"))
    assert load_policy(policy).ledger == "postgresql://u@h/db"
