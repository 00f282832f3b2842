"""A wire to a port of this machine, which can let connections hang half-open, as a lost peer does, or hold answers."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Link:
    """One connection over the wire."""

    def __init__(self, near: socket.socket, far: socket.socket, answering: threading.Event) -> None:
        self.speaks = True
        self._ends = (near, far)
        self._pumps = [
            threading.Thread(target=self._pump, args=(near, far, None)),
            threading.Thread(target=self._pump, args=(far, near, answering)),
        ]
        for pump in self._pumps:
            pump.start()

    def close(self) -> None:
        """End it at both ends."""
        self._cut()
        for pump in self._pumps:
            pump.join()
        for end in self._ends:
            end.close()

    def _cut(self) -> None:
        for end in self._ends:
            with suppress(OSError):  # it has ended by itself
                end.shutdown(socket.SHUT_RDWR)

    def _pump(self, here: socket.socket, there: socket.socket, flows: threading.Event | None) -> None:
        with suppress(OSError):  # cut
            while data := here.recv(1 << 16):
                if flows:
                    flows.wait()
                if self.speaks:
                    there.sendall(data)
        if self.speaks:
            self._cut()


class Wire:
    """Forwards connections to a port of this machine, and lets them hang on request."""

    def __init__(self, port: int) -> None:
        self._target = ("127.0.0.1", port)
        self._links: list[Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._answering = threading.Event()
        self._answering.set()
        self._thread = threading.Thread(target=self._accept, name="wire")
        self._thread.start()

    def lead_to(self, port: int) -> None:
        """Let new connections lead to another port, as after a name was given another address."""
        self._target = ("127.0.0.1", port)

    def silence(self) -> None:
        """Let all present connections hang half-open: never closed, and never another byte. New ones work."""
        for link in self._links:
            link.speaks = False

    def hold_answers(self) -> None:
        """Let requests through, and keep what is answered, on new connections too, until `release_answers`."""
        self._answering.clear()

    def release_answers(self) -> None:
        """Hand over the answers that were held, and all later ones at once."""
        self._answering.set()

    def close(self) -> None:
        """Cut all connections off."""
        self.release_answers()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for link in self._links:
            link.close()

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was shut down
            while True:
                near, _ = self._listener.accept()
                try:
                    self._links.append(Link(near, socket.create_connection(self._target), self._answering))
                except ConnectionRefusedError:
                    near.close()
