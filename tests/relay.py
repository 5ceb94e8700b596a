"""A relay on the way to a server, which can be told to hang up at a moment of one's choice: a network that fails."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
from types import TracebackType
from typing import Self


class Relay:
    """Listens on 127.0.0.1 and passes on all that is said to and from a server's port there, until it hangs up.

    Args:
        port: of the server.

    Attributes:
        port: its own.
        hang_up_before: bytes from the client that never reach the server.
        hang_up_after: bytes from the client, the server's answer to which never comes back.
        silent_after: the same, but the line stays open, and dead.
        rewrite: what to replace in the server's first words, and by what.
    """

    def __init__(self, port: int) -> None:
        self._server = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.hang_up_before = self.hang_up_after = self.silent_after = b""
        self.rewrite: tuple[bytes, bytes] | None = None
        self._lines: list[socket.socket] = []
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        for line in self._lines:
            line.close()

    def well_again(self) -> None:
        """Pass on everything from now on."""
        self.hang_up_before = self.hang_up_after = self.silent_after = b""

    def _listen(self) -> None:
        with contextlib.suppress(OSError):  # closed
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._server))
                self._lines += [client, server]
                threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with client, server, contextlib.suppress(OSError, ValueError):
            while True:
                for line in select.select([client, server], [], [])[0]:
                    words = line.recv(65_536)
                    if not words:
                        return
                    if line is server:
                        client.sendall(words.replace(*self.rewrite) if self.rewrite else words)
                        continue
                    if self.hang_up_before and self.hang_up_before in words:
                        return
                    server.sendall(words)
                    if self.hang_up_after and self.hang_up_after in words:
                        server.recv(65_536)  # the server has answered: it is done there
                        return
                    if self.silent_after and self.silent_after in words:
                        client.recv(1)  # until the client hangs up
                        return
