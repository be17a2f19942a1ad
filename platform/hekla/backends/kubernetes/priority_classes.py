"""The PriorityClass of each pod, so kubelets and other schedulers know its priority too.

The cluster's own class is used if it has the name and the value of the job's class. Otherwise Hekla creates one, named
after its value, because a class never changes. System classes are never used.
"""

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hekla.backends.base import PodPriority
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import BAD_REQUEST, FORBIDDEN, INVALID, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient

log = logging.getLogger(__name__)
_GROUP = "scheduling.k8s.io/v1"
_PLACE = f"/apis/{_GROUP}/priorityclasses"
_NAME, _SYSTEM_PREFIX = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"), "system-"
_VALID_SECONDS = 300.0
_RETRY_SECONDS = 60.0
"""After a failure."""
_CREATE_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8)
ResultT = TypeVar("ResultT")


class PodPriorityClasses:
    """The priority classes of one cluster. `is_on`: whether its configuration enables them."""

    def __init__(self, client: AsyncClient, cluster: str, *, is_on: bool) -> None:
        self._client, self._cluster, self._is_on = client, cluster, is_on
        self._known: dict[PodPriority, tuple[str, float]] = {}
        self._locks: dict[PodPriority, asyncio.Lock] = {}

    async def class_for(self, wanted: PodPriority | None) -> str:
        """The name of the PriorityClass; empty if none is wanted or possible. Raises BackendError."""
        if wanted is None or not self._is_on:
            return ""
        async with self._locks.setdefault(wanted, asyncio.Lock()):  # others wait until it is created
            name, until = self._known.get(wanted, ("", 0.0))
            if time.monotonic() > until:
                name = await self._find_or_create(wanted)
                self._known[wanted] = name, time.monotonic() + (_VALID_SECONDS if name else _RETRY_SECONDS)
            return name

    async def create_with(self, name: str, make: Callable[[], Awaitable[ResultT]]) -> ResultT:
        """Create an object that uses this class, if any. Retries until the server's admission knows a new class."""
        for pause in _CREATE_PAUSES if name else ():
            try:
                return await make()
            except ApiError as error:
                if error.status != FORBIDDEN or "PriorityClass" not in str(error):
                    raise
            await asyncio.sleep(pause)
        return await make()

    def forget(self, wanted: PodPriority | None) -> None:
        """Drop the cached class, because the server refused a pod with it: the class may have been deleted."""
        if wanted is not None:
            self._known.pop(wanted, None)

    async def _find_or_create(self, wanted: PodPriority) -> str:
        """The name; empty if not possible. The pod then starts without; the engine knows its priority anyway."""
        try:
            name = await self._existing_class(wanted) or await self._own_class(wanted.value)
        except ApiError as error:
            if error.status not in (FORBIDDEN, INVALID, BAD_REQUEST):
                raise
            log.warning("pods of the class %s have no priority in the cluster: %s", wanted.name, error)
            return ""
        if not name:
            log.warning("pods of the class %s have no priority in the cluster: its name is taken", wanted.name)
        return name

    async def _existing_class(self, wanted: PodPriority) -> str:
        if not _NAME.fullmatch(wanted.name) or wanted.name.startswith(_SYSTEM_PREFIX):
            return ""
        found = await self._client.find(f"{_PLACE}/{wanted.name}")
        return wanted.name if found is not None and found.get("value") == wanted.value else ""

    async def _own_class(self, value: int) -> str:
        """The name of Hekla's class, created if missing. Empty if the name belongs to an object of others."""
        wanted = manifest(value, self._cluster)
        name = str(wanted["metadata"]["name"])
        found = await self._client.find(f"{_PLACE}/{name}")
        if found is None:
            made = await self._client.create_once(_PLACE, wanted)
            found = made or await self._client.get(f"{_PLACE}/{name}")  # another process has just created it
        is_ours = names.CLUSTER in (found["metadata"].get("labels") or {})
        return name if is_ours and found.get("value") == value else ""


def manifest(value: int, cluster: str) -> Json:
    """A PriorityClass that never preempts: only Hekla's engine decides which pods to evict."""
    return {
        "apiVersion": _GROUP,
        "kind": "PriorityClass",
        "metadata": {
            "name": f"hekla-{value}" if value >= 0 else f"hekla-minus-{-value}",
            "labels": {names.CLUSTER: cluster},
        },
        "value": value,
        "preemptionPolicy": "Never",
        "description": "Made by Hekla for pods of jobs whose priority class has this value.",
    }
