"""A small thread pool for the database queries of all open pages, independent of the number of sockets."""

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
    """A thread pool whose threads keep their database connections until the pool ends."""

    def __init__(self) -> None:
        self._opened: list[BaseDatabaseWrapper] = []
        self.pool = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="live", initializer=self._begin)

    def _begin(self) -> None:
        connection = connections["default"]
        connection.inc_thread_sharing()  # another thread closes it, after this one has ended
        self._opened.append(connection)

    def end(self) -> None:
        """Wait until the threads are idle, end them, and close their connections."""
        self.pool.shutdown()
        for connection in self._opened:
            connection.close()


_threads: list[_Threads] = []


async def in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a thread of the pool, and return its result."""
    if not _threads:
        _threads.append(_Threads())
    return await database_sync_to_async(work, thread_sensitive=False, executor=_threads[0].pool)()


def release_threads() -> None:
    """End the pool when no page is open. The next page starts a new one."""
    while _threads:
        Thread(target=_threads.pop().end, name="live-end").start()


def per_loop(make: Callable[[], U]) -> Callable[[], U]:
    """A function that returns one object per event loop, created on first use. A server has one loop."""
    made: dict[asyncio.AbstractEventLoop, U] = {}

    def of_this_loop() -> U:
        loop = asyncio.get_running_loop()
        if loop not in made:
            for ended in [other for other in made if other.is_closed()]:
                del made[ended]
            made[loop] = make()
        return made[loop]

    return of_this_loop
