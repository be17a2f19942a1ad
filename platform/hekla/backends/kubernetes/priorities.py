"""Under which PriorityClass a pod goes, so that kubelets and other schedulers know what comes first, too.

One that the cluster has is taken where its name and its value are those of the job's class; else one of ours, which is
named after its value, since neither ever changes. No class of the system is ever asked for.
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
_NAME, _OF_THE_SYSTEM = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"), "system-"
_HOLDS_SECONDS = 300.0
_AGAIN_SECONDS = 60.0
"""After which what could not be had is asked for again."""
_HEARD_WITHIN = (0.05, 0.1, 0.2, 0.4, 0.8)
Made = TypeVar("Made")


class Priorities:
    """Of one cluster. `is_on`: whether its configuration wants pods to have them."""

    def __init__(self, client: AsyncClient, cluster: str, *, is_on: bool) -> None:
        self._client, self._cluster, self._is_on = client, cluster, is_on
        self._known: dict[PodPriority, tuple[str, float]] = {}
        self._doors: dict[PodPriority, asyncio.Lock] = {}

    async def class_for(self, wanted: PodPriority | None) -> str:
        """The name of the object; empty: none is wanted, or none can be had. Raises BackendError."""
        if wanted is None or not self._is_on:
            return ""
        async with self._doors.setdefault(wanted, asyncio.Lock()):  # who comes while it is made waits for it
            name, until = self._known.get(wanted, ("", 0.0))
            if time.monotonic() > until:
                name = await self._asked(wanted)
                self._known[wanted] = name, time.monotonic() + (_HOLDS_SECONDS if name else _AGAIN_SECONDS)
            return name

    async def heard(self, name: str, make: Callable[[], Awaitable[Made]]) -> Made:
        """What is made there with this class, where there is one, as soon as the server has heard of the class."""
        for pause in _HEARD_WITHIN if name else ():
            try:
                return await make()
            except ApiError as error:
                if error.status != FORBIDDEN or "PriorityClass" not in str(error):
                    raise
            await asyncio.sleep(pause)
        return await make()

    def forget(self, wanted: PodPriority | None) -> None:
        """The server refused a pod with it: somebody may have deleted the object."""
        if wanted is not None:
            self._known.pop(wanted, None)

    async def _asked(self, wanted: PodPriority) -> str:
        """A pod that cannot have its class starts without: the engine knows its priority all the same."""
        try:
            name = await self._of_the_cluster(wanted) or await self._ours(wanted.value)
        except ApiError as error:
            if error.status not in (FORBIDDEN, INVALID, BAD_REQUEST):
                raise
            log.warning("pods of the class %s have no priority in the cluster: %s", wanted.name, error)
            return ""
        if not name:
            log.warning("pods of the class %s have no priority in the cluster: its name is taken", wanted.name)
        return name

    async def _of_the_cluster(self, wanted: PodPriority) -> str:
        if not _NAME.fullmatch(wanted.name) or wanted.name.startswith(_OF_THE_SYSTEM):
            return ""
        found = await self._client.find(f"{_PLACE}/{wanted.name}")
        return wanted.name if found is not None and found.get("value") == wanted.value else ""

    async def _ours(self, value: int) -> str:
        """Made when it is first needed. Empty: somebody else has an object of that name."""
        wanted = manifest(value, self._cluster)
        name = str(wanted["metadata"]["name"])
        found = await self._client.find(f"{_PLACE}/{name}")
        if found is None:
            made = await self._client.create_once(_PLACE, wanted)
            found = made or await self._client.get(f"{_PLACE}/{name}")  # another process made it at this moment
        is_ours = names.CLUSTER in (found["metadata"].get("labels") or {})
        return name if is_ours and found.get("value") == value else ""


def manifest(value: int, cluster: str) -> Json:
    """A class of ours. Whom to evict for it our engine decides, and nobody else."""
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
