"""A server that accepts connections and answers nothing, like one that is stopped or starved."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def silent_server() -> Iterator[str]:
    """Its address, as the URL of an API server. Counts nothing and ends with the block."""
    with socket.create_server(("127.0.0.1", 0), backlog=256) as listener:
        accepted: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    accepted.append(listener.accept()[0])
                except OSError:
                    return

        thread = threading.Thread(target=accept, name="silent server", daemon=True)
        thread.start()
        try:
            yield f"https://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)
            for connection in accepted:
                connection.close()
