"""A server that answers each request with one byte every few moments, and never ends."""

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_PAUSE_SECONDS = 0.05


@contextmanager
def dripping_server(head: bytes, drop: bytes, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Its address, as the URL of an API server. It sends `head` at once, then `drop` again and again."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        ended = threading.Event()
        threads: list[threading.Thread] = []

        def accept() -> None:
            with suppress(OSError):
                while True:
                    connection, _address = listener.accept()
                    threads.append(threading.Thread(target=_drip, args=(connection, tls, head, drop, ended)))
                    threads[-1].start()

        acceptor = threading.Thread(target=accept, name="dripping server", daemon=True)
        acceptor.start()
        try:
            yield f"{'https' if tls else 'http'}://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            ended.set()
            listener.shutdown(socket.SHUT_RDWR)
            for thread in (acceptor, *threads):
                thread.join(10)


def _drip(
    accepted: socket.socket, tls: ssl.SSLContext | None, head: bytes, drop: bytes, ended: threading.Event
) -> None:
    accepted.settimeout(10)
    with suppress(OSError), tls.wrap_socket(accepted, server_side=True) if tls else accepted as connection:
        connection.recv(65536)
        connection.sendall(head)
        while not ended.wait(_PAUSE_SECONDS):
            connection.sendall(drop)
