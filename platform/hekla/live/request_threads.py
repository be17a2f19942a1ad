"""Each request is answered in a thread of its own, which ends with it; so must its connection to the database.

Left to the garbage collector it would stay open for as long as that takes, and the database admits only so many.
"""

from typing import Any

from django.core.signals import request_finished
from django.db import connections


def close_with_requests() -> None:
    """From now on, in this process."""
    request_finished.connect(_close, dispatch_uid="the thread of a request ends")


def _close(**_kwargs: Any) -> None:  # noqa: ANN401
    for connection in connections.all(initialized_only=True):
        connection.close()
