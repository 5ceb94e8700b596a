"""PostgreSQL as a source: what the catalogue says, what is refused, what never leaves, on a real server."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import psycopg
import pytest

import discreet
from discreet.cli import main
from discreet.engines.postgres import PostgresEngine
from discreet.errors import EngineError, RefusedError, SourceError, UsageError
from discreet.plan import Request
from discreet.planning import make_plan
from discreet.quirks.postgres import POSTGRES
from discreet.relational import compile_plan, needed_columns
from discreet.relational_selection import compile_selection
from discreet.sources import identify, locate, register
from discreet.sql import parse, parse_expression
from postgres_server import PASSWORD, PostgresServer

GUEST = "guest"
HUGE = "40000000"  # an epsilon at which the noise is far below one unit

TABLE = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN cents AS numeric(10, 2);
CREATE TABLE visits (
  actor varchar(20), code char(4), state mood, id uuid, small smallint, number integer, wide bigint, price cents,
  hundreds numeric(5, -2), free numeric, ratio real, share double precision, day date, at timestamp, time timestamptz,
  ok boolean, info jsonb, plain json, tags text[], span interval, "Odd ""name" integer,
  twice integer GENERATED ALWAYS AS (number * 2) STORED
);
INSERT INTO visits (actor, code, state, id, small, number, wide, price, hundreds, free, ratio, share, day, at, time, ok,
                    info, plain, tags, span, "Odd ""name") VALUES
 ('a', 'x', 'sad', '00000000-0000-0000-0000-000000000001', -32768, 7, 9223372036854775807, 12.25, 12345, 1e200, 0.5,
  'NaN', '2024-02-29', '2024-02-29 12:00', '2024-02-29 12:00+02', true, '{"user": {"id": "7", "first": 2.5}}',
  '{"bad": "\\u0000"}', '{x}', '1 day', 1),
 ('b', 'x   ', 'ok', NULL, 32767, NULL, -9223372036854775808, -0.01, -12345, 'NaN', 'Infinity', '-Infinity', 'infinity',
  '-infinity', 'infinity', false, '{"user": {"id": 8}}', '{}', NULL, NULL, 2),
 ('c', '', NULL, NULL, NULL, -7, 0, NULL, NULL, 'Infinity', 'NaN', 5e-324, '0044-03-15 BC', '20000-01-01',
  '20000-01-01', NULL, '"text"', '{}', '{}', NULL, 3);
"""

TYPES = {
    "free": "DECIMAL(9,2)",
    "info.user.id": "BIGINT",
    "info.user.first": "DOUBLE",
    "info.none": "VARCHAR",
}


@pytest.fixture
def table(postgres_server: PostgresServer, postgres_url: str) -> str:
    """The address of a database with `visits`."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(TABLE)
    return postgres_url


def opened(url: str, folder: Path, **more: Any) -> discreet.dataset.Dataset:
    return discreet.open(
        url, **{"table": "visits", "privacy_unit": "actor", "max_contributions": 1, "budget": 10**9}
        | {"ledger": folder / "ledger.db", "types": TYPES} | more,
    )  # fmt: skip


def exactly(data: Any, sql: str, **more: Any) -> list[Any]:
    """The one row of an answer whose noise is nothing."""
    (row,) = data.query(sql, epsilon=HUGE, **more).to_dicts()
    return [round(value, 3) for name, value in row.items() if not name.endswith(("_low", "_high"))]


# --- types ------------------------------------------------------------------------------------------------------------


def test_the_catalogue_knows_the_types(table: str) -> None:
    columns = register(locate(table, table="visits"), types=TYPES).schema.columns
    assert {column.name: str(column.type) for column in columns} == {
        **dict.fromkeys(("actor", "code", "state", "id", "info.none"), "VARCHAR"),
        **dict.fromkeys(("small", "number", "wide", 'Odd "name', "twice", "info.user.id"), "BIGINT"),
        **dict.fromkeys(("ratio", "share", "info.user.first"), "DOUBLE"),
        **dict.fromkeys(("info", "plain", "tags", "span"), "OTHER"),
        "price": "DECIMAL(10,2)",
        "hundreds": "DECIMAL(7,0)",
        "free": "DECIMAL(9,2)",
        "day": "DATE",
        "at": "TIMESTAMP",
        "time": "TIMESTAMPTZ",
        "ok": "BOOLEAN",
    }


VALUES = [
    ("COUNT(*)", 3),
    ("COUNTIF(code = 'x')", 2),  # blanks at the end of char(n) mean nothing
    ("COUNTIF(state = 'sad')", 1),
    ("COUNTIF(id = '00000000-0000-0000-0000-000000000001')", 1),
    ("SUM(small, contribution_bounds_per_row => (-40000, 40000))", -1),
    ("COUNTIF(wide IN (-9223372036854775808, 9223372036854775807))", 2),
    ("SUM(price, contribution_bounds_per_row => (-1, 20))", 12.24),
    ("SUM(hundreds, contribution_bounds_per_row => (0, 20000))", 12300),
    ("COUNT(free)", 0),  # 1e200, NaN and infinity do not fit
    ("SUM(ratio, contribution_bounds_per_row => (0, 2))", 2.5),
    ("SUM(share, contribution_bounds_per_row => (-2, 2))", -2),
    ("COUNT(share)", 2),
    ("COUNT(day)", 1),  # only what lies in the years 1 to 9999
    ("COUNT(at)", 1),
    ("COUNT(time)", 1),
    ("COUNTIF(EXTRACT(HOUR FROM time) = 10)", 1),
    ("COUNTIF(ok)", 1),
    ("SUM(info.user.id, contribution_bounds_per_row => (0, 10))", 15),
    ("SUM(info.user.first, contribution_bounds_per_row => (0, 10))", 2.5),
    ("COUNT(info.none)", 0),
    ('SUM("Odd ""name", contribution_bounds_per_row => (0, 10))', 6),
    ("SUM(twice, contribution_bounds_per_row => (-20, 20))", 0),
]


def test_values_of_every_type(table: str, tmp_path: Path) -> None:
    with contextlib.closing(opened(table, tmp_path)) as data:
        for text, value in VALUES:
            assert exactly(data, f"SELECT {text} AS v FROM visits") == [pytest.approx(value, abs=2e-3)], text


@pytest.mark.parametrize(("kind", "value"), [("DOUBLE", 2), ("BIGINT", 0), ("HUGEINT", 0)])
def test_numeric_without_digits_is_read_as_declared(table: str, tmp_path: Path, kind: str, value: float) -> None:
    """1e200, NaN and infinity: doubles hold the first and the last, whole numbers none."""
    with contextlib.closing(opened(table, tmp_path, types={"free": kind})) as data:
        (found,) = exactly(data, "SELECT SUM(free, contribution_bounds_per_row => (0, 1)) AS s FROM visits")
    assert found == pytest.approx(value, rel=1e-3, abs=1e-3)


def test_what_changed_since_is_missing(table: str, tmp_path: Path) -> None:
    """The stored schema stays in force: a column that is gone or became something else is missing, never an error."""
    question = "SELECT COUNT(number) AS n, COUNT(price) AS p, SUM(small, contribution_bounds_per_row => (-9, 9)) AS s, "
    question += "COUNT(info.user.id) AS i FROM visits"
    with contextlib.closing(opened(table, tmp_path)) as data, psycopg.connect(table, autocommit=True) as owner:
        assert exactly(data, question) == [2, 2, 0, 2]
        owner.execute(
            "ALTER TABLE visits DROP COLUMN twice, DROP COLUMN price, ALTER COLUMN number TYPE date USING NULL"
        )
        owner.execute("ALTER TABLE visits ALTER COLUMN small TYPE text USING 'x', ALTER COLUMN info TYPE text")
        owner.execute("UPDATE visits SET small = '7 ' WHERE actor = 'a'")
        assert exactly(data, question, fresh=True) == [0, 0, 7, 0]


# --- what is refused before anything is charged -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "table", "says"),
    [
        ("CREATE VIEW v AS SELECT 1 AS a", "v", "is a view"),
        ("CREATE TABLE s (a integer); ALTER TABLE s ENABLE ROW LEVEL SECURITY", "s", "row security"),
        ("CREATE TABLE q (a integer)", "q", "may not be read"),
        ("", "nothing", "there is no such table"),
        ("", None, "say which table"),
        ("CREATE SCHEMA other; CREATE TABLE other.t (a integer, \"A\" integer); GRANT USAGE ON SCHEMA other TO PUBLIC; "
         "GRANT SELECT ON other.t TO PUBLIC", "other.t", "differ in case alone"),
    ],
)  # fmt: skip
def test_tables_that_are_refused(
    postgres_server: PostgresServer, postgres_url: str, make: str, table: str | None, says: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as owner:
        with contextlib.suppress(psycopg.errors.DuplicateObject):
            owner.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
        for statement in filter(None, make.split("; ")):
            owner.execute(statement.encode())
        if table == "s":
            owner.execute("GRANT SELECT ON s TO guest")
    database = postgres_url.rpartition("/")[2]
    with pytest.raises(SourceError) as caught:
        register(locate(postgres_server.url(database, user="guest", password=GUEST), table=table))
    assert says in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM visits WHERE REGEXP_CONTAINS(actor, 'a+')",
        "SELECT SUM(CAST(share AS DECIMAL(30, 2)), contribution_bounds_per_row => (0, 1)) FROM visits",
    ],
)
def test_what_it_cannot_say_is_refused_by_name(table: str, tmp_path: Path, sql: str) -> None:
    """R62: in query and in estimate, before any charge."""
    with contextlib.closing(opened(table, tmp_path)) as data:
        for ask in (data.query, data.estimate):
            with pytest.raises(RefusedError, match="is not supported on PostgreSQL"):
                ask(sql, epsilon=1)
        assert data.balance().queries == 0


def test_a_server_that_is_gone_costs_nothing(postgres_server: PostgresServer, table: str, tmp_path: Path) -> None:
    with contextlib.closing(opened(table, tmp_path)) as data:
        postgres_server.execute("ALTER TABLE visits RENAME TO gone", table.rpartition("/")[2])
        with pytest.raises(SourceError, match="there is no such table"):
            data.query("SELECT COUNT(*) FROM visits", epsilon=1)
        assert data.balance().queries == 0


# --- one table, one budget, no password -------------------------------------------------------------------------------


def test_the_identity_is_the_tables() -> None:
    """Whoever asks, by whatever name of this host, with whatever settings."""
    same = [
        "postgresql://ann:secret@localhost:5432/shop",
        "POSTGRES://bob@127.0.0.1/shop?connect_timeout=3",
        "postgresql://[::1]:5432/shop",
        "postgresql://ann@/shop?host=/var/run/postgresql&port=5432",
    ]
    found = {identify(text, table=name).source for text in same for name in ("visits", "public.visits")}
    assert found == {"postgresql://localhost:5432/shop/public.visits"}
    assert identify("postgresql://DB.example.org/shop::sales.v").source == (
        "postgresql://db.example.org:5432/shop/sales.v"
    )
    assert identify("postgresql://ann:secret@h/shop::v").address == "postgresql://ann:secret@h/shop"
    assert "secret" not in repr(identify("postgresql://ann:secret@h/shop::v"))


@pytest.mark.parametrize("address", ["postgresql://ann:secret@h/d?none=1", "postgresql://ann:secret@h/d?service=s"])
def test_an_address_that_is_none_is_not_shown(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        identify(address, table="t")
    assert "secret" not in str(caught.value)
    assert caught.value.__context__ is None


def command(arguments: list[str]) -> object:
    """The exit code of the command line."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    return ended.value.code


def test_the_password_is_stored_and_shown_nowhere(
    table: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ledger, report = tmp_path / "ledger.db", tmp_path / "report.json"
    ask = ["query", table, "SELECT kind, COUNT(*) FROM visits GROUP BY kind", "--keys", "kind=a", "--unit", "actor"]
    ask += ["--max-contributions", "1", "--epsilon", "1", "--budget", "10", "--ledger", str(ledger)]
    ask[2] = ask[2].replace("kind", "code")
    ask[4] = "code=x"
    assert command([*ask, "--report", str(report)]) == 0
    assert command(["budget", table + "::visits", "--ledger", str(ledger)]) == 0
    assert command([*ask[:1], table.replace("/test_", "/none_"), *ask[2:]]) == 1
    assert command([*ask[:2], "SELECT COUNT(*) FROM nothing", "--unit", "actor", "--epsilon", "1"]) == 1
    shown = "".join(capsys.readouterr()) + report.read_text()
    with contextlib.closing(opened(table, tmp_path, types=None, budget=None)) as data:
        shown += repr(data) + repr(data.registration) + repr(vars(data.query("SELECT COUNT(*) FROM data", epsilon=1)))
    stored = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with sqlite3.connect(ledger) as connection:
        shown += "\n".join(connection.iterdump())
    connection.close()
    written = table.split("//postgres:")[1].split("@127.0.0.1", maxsplit=1)[0]
    for secret in (PASSWORD, written):
        assert secret not in shown
        assert secret.encode() not in stored


# --- what the server does ---------------------------------------------------------------------------------------------


def engine_and_plan(url: str, sql: str, **more: Any) -> tuple[PostgresEngine, Any]:
    registration = register(locate(url, table="visits"), types=TYPES)
    unit = parse_expression("actor", "unit")
    request = Request(epsilon=Fraction(1), unit=unit, max_contributions=1, **more)
    return PostgresEngine(registration, url), make_plan(parse(sql), registration, request)


def failing(column: str, secret: str) -> str:
    return f"(SELECT CAST(CONCAT({column}, '{secret}') AS integer))"


@pytest.mark.parametrize(
    "expression",
    [
        "CAST(CONCAT(c0, 'secret') AS integer)",
        "CAST(c0 AS date)",
        "1 / (length(c0) - length(c0))",
        "CAST(CONCAT('{', c0) AS jsonb)::text",
        "chr(-length(c0))",
        "no_such_function(c0)",
        "lpad(c0, 1000000000)",
        "c0 ~ '('",
        "pg_sleep(60)::text",
    ],
)
def test_the_servers_text_never_leaves(table: str, expression: str) -> None:
    """Statements that raise, as ours must not: the error is one constant, with nothing behind it."""
    engine, plan = engine_and_plan(table + "?options=-cstatement_timeout%3D2000", "SELECT COUNT(actor) FROM visits")
    statement = compile_plan(plan, 0, engine.quirks)
    text = engine.quirks.sql(statement.results[0].select)
    broken = _Broken(text.replace("c0 AS x0", f"{expression} AS x0"))
    assert expression in broken.text
    object.__setattr__(statement.results[0], "select", broken)
    with pytest.raises(EngineError) as caught:
        engine.run(statement)
    assert str(caught.value) == "engine: could not run the query; its cost stays spent."
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


class _Broken:
    """A statement that is text already."""

    def __init__(self, text: str) -> None:
        self.text = text

    def transform(self, _: Any) -> _Broken:
        return self

    def sql(self, dialect: str) -> str:
        return self.text


def test_one_snapshot_and_nothing_written(table: str) -> None:
    """Rows that come while a query runs are in none of its statements; and it cannot write."""
    engine, plan = engine_and_plan(table, "SELECT code, COUNT(*) FROM visits GROUP BY code", delta=Fraction(1, 10**6))
    with engine.session(needed_columns(plan)) as session, psycopg.connect(table, autocommit=True) as owner:
        counted = compile_selection(plan, plan.selection.limit, 0, POSTGRES)
        assert sorted(session.candidates(counted).to_ints()) == [1, 2]
        owner.execute("INSERT INTO visits (actor, code) SELECT 'n' || i, 'x' FROM generate_series(1, 9) AS i")
        assert sorted(session.candidates(counted).to_ints()) == [1, 2]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            session._connection.execute("CREATE TEMP TABLE t (a integer)")


def test_names_of_others_stand_in_for_nothing(table: str) -> None:
    """A function of the same name in the user's schema is not called: the search path is the server's own."""
    with psycopg.connect(table, autocommit=True) as owner:
        owner.execute(
            "CREATE FUNCTION public.char_length(text) RETURNS integer LANGUAGE sql AS $$ SELECT 1000 $$; "
            "CREATE OPERATOR public.<> (FUNCTION = pg_catalog.texteq, LEFTARG = text, RIGHTARG = text)"
        )
        owner.execute(f"ALTER DATABASE {table.rpartition('/')[2]} SET search_path = public, pg_catalog".encode())
    bounds = "contribution_bounds_per_row => (0, 1000)"
    engine, plan = engine_and_plan(table, f"SELECT SUM(LENGTH(actor), {bounds}) FROM visits")
    assert engine.run(compile_plan(plan, 0, POSTGRES))[0].to_ints() == [3 * 2**20]


def test_an_interrupt_ends_the_statement(table: str) -> None:
    """Ctrl-C cancels what runs on the server, and stays what it is."""
    import _thread

    engine, plan = engine_and_plan(table, "SELECT COUNT(actor) FROM visits")
    statement = compile_plan(plan, 0, engine.quirks)
    text = engine.quirks.sql(statement.results[0].select)
    broken = _Broken(text.replace("c0 AS x0", "pg_sleep(60)::text AS x0"))
    object.__setattr__(statement.results[0], "select", broken)
    timer = threading.Timer(1.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        engine.run(statement)
    timer.join()


@pytest.fixture(autouse=True)
def no_guest(postgres_server: PostgresServer) -> Iterator[None]:
    """Roles outlive databases."""
    yield
    for (database,) in postgres_server.execute("SELECT datname FROM pg_database WHERE datname LIKE 'test_%'"):
        with contextlib.suppress(psycopg.errors.UndefinedObject):
            postgres_server.execute("DROP OWNED BY guest", database)
    postgres_server.execute("DROP ROLE IF EXISTS guest")


def test_check_of_a_policy_whose_table_is_registered(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server holds no files, and misses none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "discreet.toml").write_text(
        f'ledger = "books.sqlite"\n[datasets.visits]\nsource = "{table}"\ntable = "visits"\nprivacy_unit = "actor"\n'
        'max_contributions = 1\nbudget.epsilon = 3\ncolumns.free = { type = "DECIMAL(9,2)" }\n'
    )
    for command in (["query", "SELECT COUNT(*) AS n FROM visits", "--epsilon", "1"], ["check"]):
        with pytest.raises(SystemExit) as left:
            main(command)
        assert left.value.code == 0, capsys.readouterr().err
    assert "registered (version 1); left of the budget: epsilon 2" in capsys.readouterr().err
