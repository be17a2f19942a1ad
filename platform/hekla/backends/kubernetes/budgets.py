"""Whether a pod of ours may be taken from its work: the Eviction API is asked, and nothing is evicted by that.

What ends a pod of ours is its deadline (see `ending`), of which budgets of disruptions know nothing. Each pod is asked
for as if it went alone.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from hekla.backends.base import PodKey
from hekla.backends.kubernetes.api import ApiError, Json
from hekla.backends.kubernetes.flight import Flight
from hekla.backends.kubernetes.places import Finder

log = logging.getLogger(__name__)
TOO_MANY_REQUESTS = 429


def eviction(name: str, namespace: str, uid: str) -> Json:
    """The wish that this pod go, and no other of its name."""
    return {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": uid}},
    }


class Budgets:
    """Those of one cluster."""

    def __init__(self, flight: Flight, finder: Finder) -> None:
        self._flight, self._finder = flight, finder

    def kept(self, keys: Sequence[PodKey], meanwhile: Callable[[], None]) -> Mapping[PodKey, str]:
        """Those that are not to go now, and why. Where the server does not say, nothing keeps a pod."""
        found: dict[PodKey, str] = {}
        for key, error in self._flight.each(self._ask, [key for key in keys if self._is_at_work(key)], meanwhile):
            if isinstance(error, ApiError) and error.status == TOO_MANY_REQUESTS:
                found[key] = str(error)
            elif error is not None:
                log.info("whether %s may go cannot be asked: %s", key.name, error)
        return found

    def _is_at_work(self, key: PodKey) -> bool:
        """One that was asked to end is ending already."""
        pod = self._finder.seen(key)
        return pod is not None and pod.is_bound and not (pod.is_stopping or pod.is_gone)

    async def _ask(self, key: PodKey) -> None:
        pod = self._finder.seen(key)
        if pod is not None:
            body = eviction(pod.name, pod.namespace, pod.uid)
            await self._flight.create(f"{pod.path}/eviction?dryRun=All", body)
