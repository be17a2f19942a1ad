"""A few threads in which all open pages query the database, however many sockets there are."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import TypeVar

from channels.db import database_sync_to_async
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

T = TypeVar("T")
U = TypeVar("U")
_MAX_THREADS = 6


class _Threads:
    """Threads that keep their connections to the database until all of them end."""

    def __init__(self) -> None:
        self._opened: list[BaseDatabaseWrapper] = []
        self.pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="live", initializer=self._begin)

    def _begin(self) -> None:
        connection = connections["default"]
        connection.inc_thread_sharing()  # closed by another thread, once this one has ended
        self._opened.append(connection)

    def end(self) -> None:
        """Wait until they are idle, and close their connections."""
        self.pool.shutdown()
        for connection in self._opened:
            connection.close()


_threads: list[_Threads] = []


async def in_thread(work: Callable[[], T]) -> T:
    """What the work returns, done beside the event loop."""
    if not _threads:
        _threads.append(_Threads())
    return await database_sync_to_async(work, thread_sensitive=False, executor=_threads[0].pool)()


def release_threads() -> None:
    """End the threads, since no page is open; the next page starts new ones."""
    while _threads:
        Thread(target=_threads.pop().end, name="live-end").start()


def per_loop(make: Callable[[], U]) -> Callable[[], U]:
    """One object for each event loop, made when it is first needed; a server has one loop."""
    made: dict[asyncio.AbstractEventLoop, U] = {}

    def of_this_loop() -> U:
        loop = asyncio.get_running_loop()
        if loop not in made:
            for ended in [other for other in made if other.is_closed()]:
                del made[ended]
            made[loop] = make()
        return made[loop]

    return of_this_loop
