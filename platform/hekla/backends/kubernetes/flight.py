"""Many chains of requests to an API server at once, from one thread.

To start a pod takes a chain of requests, each of which mostly waits for the server; so many chains go side by side. The
loop runs only while somebody waits for it: there is no thread that could go on writing when its owner is not to.
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
from hekla.backends.kubernetes.api import CONFLICT, MERGE, NOT_FOUND, OK_BELOW, ApiError, Json, refusal, unreachable

Item = TypeVar("Item")
Chain = asyncio.Task[tuple[Item, BackendError | None]]
AT_ONCE = 32
"""Requests: more than an API server of two cores can use, and few enough that it serves others beside us."""
MAX_CHAINS = 2 * AT_ONCE
"""While some are at work here, or wait for leave, there are requests of others to be sent."""
_LOOK_UP_SECONDS = 1.0
_PATIENCE = aiohttp.ClientTimeout(total=20.0, sock_connect=5.0)
_PATIENCE_WITH_MACHINES = aiohttp.ClientTimeout(total=4.0)
_IDLE_SECONDS = 30.0
"""After which a connection is not used again: the server may have closed it, and a creation is not asked for twice."""


class _Chains(Generic[Item]):
    """Those of one call. `stir` is called when one has ended."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        work: Callable[[Item], Coroutine[Any, Any, None]],
        stir: Callable[[], None],
    ) -> None:
        self._loop, self._work, self._stir = loop, work, stir
        self.under_way: set[Chain[Item]] = set()
        self._over: list[Chain[Item]] = []

    def begin(self, items: Iterable[Item]) -> None:
        """A chain for each."""
        for item in items:
            chain = self._loop.create_task(_attempt(self._work, item))
            chain.add_done_callback(self._end)
            self.under_way.add(chain)

    def ended(self) -> Iterator[tuple[Item, BackendError | None]]:
        """What came of those that have ended since this was asked last."""
        over, self._over = self._over, []
        self.under_way.difference_update(over)
        yield from (chain.result() for chain in over)

    def _end(self, chain: Chain[Item]) -> None:
        self._over.append(chain)
        self._stir()


class Flight:
    """Connections to one API server. Threads take turns."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._turn = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._gates: list[asyncio.Future[None]] = []
        self._news: asyncio.Future[None] | None = None
        self._is_over = False

    def each(
        self,
        work: Callable[[Item], Coroutine[Any, Any, None]],
        items: Iterable[Item],
        meanwhile: Callable[[], None],
    ) -> Iterator[tuple[Item, BackendError | None]]:
        """Do it for each, and tell as they come what went wrong; `meanwhile` is called at least each second.

        Items are asked for when there is room for them, and `meanwhile` is called, outside of the loop. Who asks no
        further, or whom `meanwhile` stops, leaves what is under way cut off wherever it stands; see also `leave`.
        """
        with self._turn:
            loop = self._opened_loop()
            waiting, chains = iter(items), _Chains(loop, work, self._stir)
            pulse = loop.create_task(self._pulse())
            try:
                while True:
                    meanwhile()
                    self._let_go_on()
                    chains.begin(islice(waiting, MAX_CHAINS - len(chains.under_way)))
                    if not chains.under_way:
                        return
                    self._await_news(loop)
                    yield from chains.ended()
            finally:
                loop.run_until_complete(_cut_off(pulse, *chains.under_way))
                if self._is_over:
                    self._let_go()

    async def leave(self) -> None:
        """Asked for inside of a chain: wait until `meanwhile` was called once more, and did not object."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gates.append(gate)
        self._stir()
        await gate

    async def get(self, path: str) -> Json:
        """An object."""
        return _read(await self._answer("GET", path))

    async def find(self, path: str) -> Json | None:
        """An object; None: there is none."""
        try:
            return await self.get(path)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    async def create(self, path: str, body: Json) -> Json:
        """A new object. Raises ApiError with CONFLICT where there is one of that name."""
        return _read(await self._answer("POST", path, body))

    async def create_once(self, path: str, body: Json) -> Json | None:
        """The object that was made; None: it is there already."""
        try:
            return await self.create(path, body)
        except ApiError as error:
            if error.status == CONFLICT and error.reason == "AlreadyExists":
                return None
            raise

    async def patch(self, path: str, body: Json, *, content_type: str = MERGE) -> Json:
        """A change to some fields of an object."""
        return _read(await self._answer("PATCH", path, body, content_type=content_type))

    async def delete(self, path: str, *, grace_seconds: int) -> None:
        """An object; what is not there needs no deleting."""
        body = {"propagationPolicy": "Background", "gracePeriodSeconds": grace_seconds}
        try:
            await self._answer("DELETE", path, body)
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise

    async def text(self, path: str, **params: str | int) -> bytes:
        """What is no JSON, such as a log: it comes from a machine that may be dead, so nobody waits long for it."""
        return await self._answer("GET", path, params=params, timeout=_PATIENCE_WITH_MACHINES)

    def all(self, work: Callable[[Item], Coroutine[Any, Any, None]], items: Iterable[Item]) -> None:
        """Do it for each. Raises the first error that comes, after which nothing more is begun."""
        for _item, error in self.each(work, items, lambda: None):
            if error is not None:
                raise error

    def close(self) -> None:
        """Let go of the connections, once nobody uses them any more."""
        self._is_over = True
        if self._turn.acquire(blocking=False):
            try:
                self._let_go()
            finally:
                self._turn.release()

    def _let_go(self) -> None:
        if self._loop is not None:
            if self._session is not None:
                self._loop.run_until_complete(self._session.close())
            self._loop.close()
        self._loop = self._session = None

    async def _answer(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        params: Mapping[str, str | int] | None = None,
        content_type: str = "application/json",
        timeout: aiohttp.ClientTimeout = _PATIENCE,
    ) -> bytes:
        instruments.count(method, path)
        content = None if body is None else orjson.dumps(body)
        headers = {"Accept": "application/json, */*", "Content-Type": content_type}
        asked = {"data": content, "params": params, "timeout": timeout, "allow_redirects": False}
        try:
            headers |= self._access.header()
            url = self._access.server + path
            async with self._opened().request(method, url, headers=headers, **asked) as answer:  # type: ignore[arg-type]
                status, told = answer.status, await answer.read()
        except (aiohttp.ClientError, OSError, RuntimeError, ValueError) as error:  # a time-out is an OSError
            raise unreachable(error) from error
        if status >= OK_BELOW:
            raise refusal(status, told)
        return told

    def _let_go_on(self) -> None:
        for gate in self._gates:
            if not gate.done():  # cancelled, with its chain
                gate.set_result(None)
        self._gates.clear()

    def _await_news(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let the chains go on until one has ended or asks for leave, or the pulse beats."""
        self._news = loop.create_future()
        loop.run_until_complete(self._news)

    async def _pulse(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_UP_SECONDS)
            self._stir()

    def _stir(self) -> None:
        """Something is to be looked at from outside of the loop."""
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _opened_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = _new_loop()
        return self._loop

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connections = aiohttp.TCPConnector(
                ssl=self._access.context, limit=AT_ONCE, keepalive_timeout=_IDLE_SECONDS, loop=self._loop
            )
            self._session = aiohttp.ClientSession(
                connector=connections, timeout=_PATIENCE, cookie_jar=aiohttp.DummyCookieJar(loop=self._loop)
            )
        return self._session


def _new_loop() -> asyncio.AbstractEventLoop:
    """The faster one, where there is one for this system."""
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


async def _cut_off(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _read(told: bytes) -> Json:
    try:
        found: Json = orjson.loads(told)
    except ValueError as error:
        raise unreachable(error) from error
    return found
