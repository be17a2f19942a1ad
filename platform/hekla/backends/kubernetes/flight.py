"""Many chains of requests to an API server at once, from one thread.

To start a pod takes a chain of requests, each of which mostly waits for the server; so many chains go side by side. The
loop runs only while somebody waits for it: there is no thread that could go on writing when its owner is not to.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

import aiohttp

from hekla.backends.base import BackendError
from hekla.backends.kubernetes import instruments
from hekla.backends.kubernetes.access import Access
from hekla.backends.kubernetes.api import CONFLICT, MERGE, NOT_FOUND, OK_BELOW, ApiError, Json, refusal, unreachable

Item = TypeVar("Item")
Chain = asyncio.Task[Any]
AT_ONCE = 32
"""More than an API server of two cores can use, and few enough that it serves others beside us."""
_LOOK_UP_SECONDS = 1.0
_PATIENCE = aiohttp.ClientTimeout(total=20.0, sock_connect=5.0)
_PATIENCE_WITH_MACHINES = aiohttp.ClientTimeout(total=4.0)
_IDLE_SECONDS = 30.0
"""After which a connection is not used again: the server may have closed it, and a creation is not asked for twice."""


class Flight:
    """Connections to one API server. Threads take turns."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._turn = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session: aiohttp.ClientSession | None = None
        self._gates: list[asyncio.Future[None]] = []
        self._knocked = asyncio.Event()
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
            waiting, under_way = iter(items), set[asyncio.Task[tuple[Item, BackendError | None]]]()
            try:
                while True:
                    meanwhile()
                    self._let_go_on()
                    room = AT_ONCE - len(under_way)
                    under_way |= {loop.create_task(_attempt(work, item)) for item in islice(waiting, room)}
                    if not under_way:
                        return
                    done, under_way = loop.run_until_complete(self._some_of(under_way))
                    yield from (task.result() for task in done)
            finally:
                loop.run_until_complete(_cut_off(under_way))
                if self._is_over:
                    self._let_go()

    async def leave(self) -> None:
        """Asked for inside of a chain: wait until `meanwhile` was called once more, and did not object."""
        gate: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._gates.append(gate)
        self._knocked.set()
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
        content = None if body is None else json.dumps(body).encode()
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
        self._knocked.clear()
        for gate in self._gates:
            if not gate.done():  # cancelled, with its chain
                gate.set_result(None)
        self._gates.clear()

    async def _some_of(self, chains: set[Chain]) -> tuple[set[Chain], set[Chain]]:
        """Those that are done, and the others, once one is done or asks for leave."""
        knock = asyncio.ensure_future(self._knocked.wait())
        await asyncio.wait({*chains, knock}, timeout=_LOOK_UP_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        knock.cancel()
        done = {chain for chain in chains if chain.done()}
        return done, chains - done

    def _opened_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop, self._knocked = asyncio.new_event_loop(), asyncio.Event()
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


async def _attempt(work: Callable[[Item], Coroutine[Any, Any, None]], item: Item) -> tuple[Item, BackendError | None]:
    try:
        await work(item)
    except BackendError as error:
        return item, error
    return item, None


async def _cut_off(tasks: set[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _read(told: bytes) -> Json:
    try:
        found: Json = json.loads(told)
    except ValueError as error:
        raise unreachable(error) from error
    return found
