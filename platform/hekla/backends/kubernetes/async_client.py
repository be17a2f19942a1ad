"""Many concurrent requests to an API server, from one thread.

Starting a pod takes several requests in sequence: a pipeline, which mostly waits for the server. So many pipelines run
concurrently. The event loop runs only while a caller waits for it, so no thread writes after its owner has lost the
lease.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Generic, TypeVar

import aiohttp
import orjson

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import instruments
from hekla.backends.kubernetes.access import Access
from hekla.backends.kubernetes.answer_limits import MAX_ANSWER_BYTES, AnswerTooLong
from hekla.backends.kubernetes.api import (
    CONFLICT,
    MERGE,
    NOT_FOUND,
    OK_BELOW,
    UNAUTHORIZED,
    ApiError,
    Json,
    refusal,
    unreachable,
)

Item = TypeVar("Item")
Pipeline = asyncio.Task[tuple[Item, BackendError | None]]
MAX_IN_FLIGHT = 32
"""Concurrent requests: enough to use an API server on two cores fully, few enough to leave room for other clients."""
MAX_PIPELINES = 2 * MAX_IN_FLIGHT
"""More than MAX_IN_FLIGHT, because some pipelines compute or wait at a checkpoint."""
_HEARTBEAT_SECONDS = 1.0
_TIMEOUT = aiohttp.ClientTimeout(total=20.0, sock_connect=5.0)
_NODE_TIMEOUT = aiohttp.ClientTimeout(total=4.0)
_IDLE_SECONDS = 30.0
"""A connection idle for longer is not reused: the server may have closed it, and creations are not retried."""


class _Pipelines(Generic[Item]):
    """The pipelines of one `run_each` call. `wake` is called when one has ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[Item], Coroutine[Any, Any, None]],
        wake: Callable[[], None],
    ) -> None:
        self._loop, self._work, self._wake = loop, work, wake
        self.running: set[Pipeline[Item]] = set()
        self._ended: list[Pipeline[Item]] = []

    def start(self, items: Iterable[Item]) -> None:
        """Start a pipeline for each item."""
        for item in items:
            pipeline = self._loop.create_task(_attempt(self._work, item))
            pipeline.add_done_callback(self._end)
            self.running.add(pipeline)

    def results(self) -> Iterator[tuple[Item, BackendError | None]]:
        """Results of the pipelines that have ended since the last call."""
        ended, self._ended = self._ended, []
        self.running.difference_update(ended)
        yield from (pipeline.result() for pipeline in ended)

    def _end(self, pipeline: Pipeline[Item]) -> None:
        self._ended.append(pipeline)
        self._wake()


class AsyncClient:
    """Connections to one API server. Concurrent calls of several threads run one after another."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._in_use = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._checkpoints: list[asyncio.Future[None]] = []
        self._wake_up: asyncio.Future[None] | None = None
        self._is_closed = False

    def run_each(
        self,
        work: Callable[[Item], Coroutine[Any, Any, None]],
        items: Iterable[Item],
        heartbeat: Callable[[], None],
    ) -> Iterator[tuple[Item, BackendError | None]]:
        """Do the work for each item, and yield each item with its error as it ends. `heartbeat` is called at least once
        a second; it may raise to stop everything.

        Items are read lazily. `items` and `heartbeat` are called outside of the event loop. If the caller stops
        iterating, or `heartbeat` raises, running pipelines are cancelled wherever they are; see `checkpoint`.
        """
        with self._in_use:
            loop = self._opened_loop()
            waiting, pipelines = iter(items), _Pipelines(loop, work, self._wake)
            ticker = loop.create_task(self._tick())
            try:
                while True:
                    heartbeat()
                    self._pass_checkpoints()
                    pipelines.start(islice(waiting, MAX_PIPELINES - len(pipelines.running)))
                    if not pipelines.running:
                        return
                    self._run_until_woken(loop)
                    yield from pipelines.results()
            finally:
                loop.run_until_complete(_cancel(ticker, *pipelines.running))
                if self._is_closed:
                    self._disconnect()

    async def checkpoint(self) -> None:
        """Inside a pipeline: wait until `heartbeat` was called once more and did not raise."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._checkpoints.append(gate)
        self._wake()
        await gate

    async def get(self, path: str) -> Json:
        """An object."""
        return _read(await self._request("GET", path))

    async def find(self, path: str) -> Json | None:
        """An object, or None if it does not exist."""
        try:
            return await self.get(path)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def create(self, path: str, body: Json) -> Json:
        """Create an object. Raises ApiError with CONFLICT if the name exists."""
        return _read(await self._request("POST", path, body))

    async def create_once(self, path: str, body: Json) -> Json | None:
        """Create an object. Returns it, or None if it exists already."""
        try:
            return await self.create(path, body)
        except ApiError as error:
            if error.status == CONFLICT and error.reason == "AlreadyExists":
                return None
            raise

    async def patch(self, path: str, body: Json, *, content_type: str = MERGE) -> Json:
        """Change some fields of an object by a patch."""
        return _read(await self._request("PATCH", path, body, content_type=content_type))

    async def delete(self, path: str, *, grace_seconds: int) -> None:
        """Delete an object. No effect if it does not exist."""
        body = {"propagationPolicy": "Background", "gracePeriodSeconds": grace_seconds}
        try:
            await self._request("DELETE", path, body)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def text(self, path: str, **params: str | int) -> bytes:
        """A response that is not JSON, for example a log. The node may be dead, so the time-out is short."""
        return await self._request("GET", path, params=params, timeout=_NODE_TIMEOUT)

    def run_all(self, work: Callable[[Item], Coroutine[Any, Any, None]], items: Iterable[Item]) -> None:
        """Do the work for each item. Raises the first error, and starts nothing more after it."""
        for _item, error in self.run_each(work, items, lambda: None):
            if error is not None:
                raise error

    def close(self) -> None:
        """Close the connections, or if a call is running, let it close them at its end."""
        self._is_closed = True
        if self._in_use.acquire(blocking=False):
            try:
                self._disconnect()
            finally:
                self._in_use.release()

    def _disconnect(self) -> None:
        if self._loop is not None:
            if self._session is not None:
                self._loop.run_until_complete(self._session.close())
            self._loop.close()
        self._loop = self._session = None

    async def _request(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        params: Mapping[str, str | int] | None = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout = _TIMEOUT,
    ) -> bytes:
        instruments.count(method, path)
        sent_at = self._access.silence.check()
        content = None if body is None else orjson.dumps(body)
        headers = {"Accept": "application/json, */*", "Content-Type": content_type}
        options = {"data": content, "params": params, "timeout": timeout, "allow_redirects": False}
        try:
            headers |= await self._access.header_async()
            login = self._access.login
            options |= login.aiohttp_options
            url = login.server + path
            async with self._opened().request(method, url, headers=headers, **options) as response:  # type: ignore[arg-type]
                status, found = response.status, await _content(response)
        except (aiohttp.ClientError, OSError, RuntimeError, ValueError) as error:  # a time-out is an OSError
            if timeout is _TIMEOUT and isinstance(error, TimeoutError):
                self._access.silence.record_timeout(sent_at)
            raise unreachable(error) from error
        self._access.silence.record_answer()
        if status == UNAUTHORIZED:
            self._access.reject(login)
        if status >= OK_BELOW:
            raise refusal(status, found)
        return found

    def _pass_checkpoints(self) -> None:
        for gate in self._checkpoints:
            if not gate.done():  # cancelled, with its pipeline
                gate.set_result(None)
        self._checkpoints.clear()

    def _run_until_woken(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run until a pipeline ends or reaches a checkpoint, or a heartbeat is due."""
        self._wake_up = loop.create_future()
        loop.run_until_complete(self._wake_up)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_HEARTBEAT_SECONDS)
            self._wake()

    def _wake(self) -> None:
        """Leave the event loop."""
        if self._wake_up is not None and not self._wake_up.done():
            self._wake_up.set_result(None)

    def _opened_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = _new_loop()
        return self._loop

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connections = aiohttp.TCPConnector(limit=MAX_IN_FLIGHT, keepalive_timeout=_IDLE_SECONDS, loop=self._loop)
            self._session = aiohttp.ClientSession(
                connector=connections, timeout=_TIMEOUT, cookie_jar=aiohttp.DummyCookieJar(loop=self._loop)
            )
        return self._session


def _new_loop() -> asyncio.AbstractEventLoop:
    """An event loop of uvloop, which is faster, if it is installed."""
    try:
        import uvloop  # noqa: PLC0415
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _attempt(work: Callable[[Item], Coroutine[Any, Any, None]], item: Item) -> tuple[Item, BackendError | None]:
    try:
        await work(item)
    except BackendError as error:
        return item, error
    return item, None


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _content(response: aiohttp.ClientResponse) -> bytes:
    """All of the answer. Its time is limited by the request's time-out. Raises AnswerTooLong."""
    pieces: list[bytes] = []
    size = 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise AnswerTooLong("The answer is too long")
        pieces.append(piece)
    return b"".join(pieces)


def _read(content: bytes) -> Json:
    try:
        found: Json = orjson.loads(content)
    except ValueError as error:
        raise unreachable(error) from error
    return found
