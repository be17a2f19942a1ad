"""Who holds leases from here."""

import os
import socket


def holder() -> str:
    """Who this process is when it holds a lease."""
    return f"{socket.gethostname()}:{os.getpid()}"
