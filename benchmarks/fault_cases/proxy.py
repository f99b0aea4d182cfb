"""A TCP proxy whose connections can be cut for a while."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Forwards 127.0.0.1:<port> to `target`, until it is cut; closed with the block."""

    def __init__(self, target: str) -> None:
        host, _, port = target.partition(":")
        self._target = (host, int(port))
        self._flowing = threading.Event()
        self._flowing.set()
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._accept()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close_all()
        for thread in self._threads:
            thread.join()

    def close_all(self) -> None:
        """Cut: nobody can connect, and who was connected no longer is."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._drop_pairs()
        self._flowing.set()

    def fall_silent(self) -> None:
        """Cut: connections stay open and connecting works, but nothing comes through."""
        self._flowing.clear()

    def restore(self) -> None:
        """Let everybody connect again; what was in flight is lost."""
        self._drop_pairs()
        if not self._flowing.is_set():
            self._flowing.set()
            return
        host, _, port = self.address.partition(":")
        self._listener = socket.create_server((host, int(port)))
        self._accept()

    def _accept(self) -> None:
        self._start(self._serve, self._listener)

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
                server = socket.create_connection(self._target)
            except OSError:
                return
            self._pairs.append((client, server))
            self._start(self._pump, client, server)
            self._start(self._pump, server, client)

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._flowing.wait()
                sink.sendall(data)
        _close(source, sink)

    def _drop_pairs(self) -> None:
        pairs, self._pairs = self._pairs, []
        for pair in pairs:
            _close(*pair)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, name="proxy", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()


def _close(*sockets: socket.socket) -> None:
    for one in sockets:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
        one.close()
