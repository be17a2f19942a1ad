"""External pods that name our scheduler: watched, bound to the engine's nodes, evicted if budgets allow.

Hekla never creates, completes or deletes them. It writes only their node and their pending reason.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Any

from hekla.backends.base import BackendError
from hekla.backends.external_pods import BindRefused, EvictionRefused, ExternalBind
from hekla.backends.kubernetes import external_pod_state
from hekla.backends.kubernetes.api import (
    BAD_REQUEST,
    CONFLICT,
    FORBIDDEN,
    INVALID,
    NOT_FOUND,
    Api,
    ApiError,
    Json,
)
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.bindings import binding
from hekla.backends.kubernetes.budgets import eviction, is_protected
from hekla.backends.kubernetes.claim_allocation import ClaimAllocation
from hekla.backends.kubernetes.config import ExternalPodsSettings
from hekla.backends.kubernetes.external_pod_cache import ExternalPodCache
from hekla.backends.kubernetes.volume_binding import VolumeBinding
from hekla.domain.external_pods import ExternalPod, ExternalPodRules, PodGroup
from hekla.lib.clock import Clock

log = logging.getLogger(__name__)
_STRATEGIC = "application/strategic-merge-patch+json"
_SCHEDULING = "/apis/scheduling.volcano.sh/v1beta1"
_REFUSALS = (BAD_REQUEST, FORBIDDEN, INVALID)
"""Answers about the binding itself, for example of an admission webhook."""
_GROUPS_VALID_SECONDS = 1.0
_ABSENCE_VALID_SECONDS = 60.0


class KubernetesExternalPods:
    """Implements `external_pods.ExternalPods` for the namespaces that a configuration names.

    `priority_of`: the value of a priority class of the cluster, if it is known. Without `claims`, pods that claim
    devices are not placed.
    """

    def __init__(
        self,
        config: ExternalPodsSettings,
        api: Api,
        client: AsyncClient,
        clock: Clock,
        wake: Callable[[], None],
        priority_of: Callable[[str], int | None],
        volumes: VolumeBinding,
        claims: ClaimAllocation | None = None,
    ) -> None:
        self.rules = ExternalPodRules(config.namespaces, config.queue, config.owner)
        self.recorded: frozenset[str] = frozenset()
        self._api, self._client, self._clock, self._priority_of = api, client, clock, priority_of
        self._volumes = volumes
        self._claims, scheduler, may_claim = claims, config.scheduler_name, claims is not None
        self._caches = {
            name: ExternalPodCache(api, name, scheduler, wake, may_claim=may_claim) for name in config.namespaces
        }
        self._groups: dict[str, tuple[float, Mapping[str, PodGroup]]] = {}
        self._admits_groups = config.admits_groups
        self._has_none_until = float("-inf")
        self._hidden: set[str] = set()

    def list_pods(self, *, fresh: AbstractSet[str] = frozenset()) -> Mapping[str, Sequence[ExternalPod]]:
        """From the watches. A namespace that becomes unreadable is logged once."""
        found: dict[str, Sequence[ExternalPod]] = {}
        for name, cache in self._caches.items():
            try:
                found[name] = cache.all(fresh=name in fresh)
                self._hidden.discard(name)
            except BackendError as error:
                if name not in self._hidden:
                    log.warning("the pods of others in %s cannot be seen: %s", name, error)
                self._hidden.add(name)
        return found

    def list_groups(self, namespaces: AbstractSet[str]) -> Mapping[str, Mapping[str, PodGroup]] | None:
        """Volcano's PodGroups, which operators create for gangs; Volcano need not run."""
        found: dict[str, Mapping[str, PodGroup]] = {}
        for namespace in sorted(namespaces):
            if time.monotonic() < self._has_none_until:
                return None
            with contextlib.suppress(BackendError):
                found[namespace] = self._groups_in(namespace)
        return found if time.monotonic() >= self._has_none_until else None

    def list_new_groups(self) -> Sequence[PodGroup]:
        """In all configured namespaces, if the configuration sets `admits_groups`."""
        found = self.list_groups(self._caches.keys()) if self._admits_groups else None
        return [group for own in (found or {}).values() for group in own.values() if group.is_new]

    def _groups_in(self, namespace: str) -> Mapping[str, PodGroup]:
        """The PodGroups by name, read at most once a second. Raises BackendError."""
        at, known = self._groups.get(namespace, (float("-inf"), {}))
        if time.monotonic() - at < _GROUPS_VALID_SECONDS:
            return known
        try:
            pages = list(self._api.pages(f"{_SCHEDULING}/namespaces/{namespace}/podgroups"))
        except ApiError as error:
            if error.status == NOT_FOUND:
                self._has_none_until = time.monotonic() + _ABSENCE_VALID_SECONDS
            log.info("the PodGroups in %s cannot be seen: %s", namespace, error)
            raise
        read = (external_pod_state.parse_pod_group(one) for page in pages for one in page.get("items") or ())
        found = {one.name: replace(one, priority=self._priority_of(one.priority_class)) for one in read}
        self._groups[namespace] = time.monotonic(), found
        return self._groups[namespace][1]

    def set_recorded(self, uids: AbstractSet[str]) -> None:
        """Store the uids for `KubernetesCluster.nodes`."""
        self.recorded = frozenset(uids)

    def bind_many(
        self, binds: Iterable[ExternalBind], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[ExternalBind, BackendError | None]]:
        """Bind many pods concurrently, after their claims are allocated and bound. Each binding has the uid of the pod,
        so it cannot bind a later one.
        """
        return self._client.run_each(self._bind, binds, heartbeat)

    def protected(self, pods: Sequence[ExternalPod], *, heartbeat: Callable[[], None]) -> Mapping[str, str]:
        """By a dry run. If the server does not answer, the pod is not protected."""
        results = self._client.run_each(self._try_to_evict, pods, heartbeat)
        return {pod.uid: str(error) for pod, error in results if isinstance(error, EvictionRefused)}

    def evict_many(
        self, pods: Iterable[ExternalPod], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[ExternalPod, BackendError | None]]:
        """Through the Eviction API, which checks the budgets."""
        return self._client.run_each(self._evict, pods, heartbeat)

    def write_reasons(
        self, reasons: Iterable[tuple[ExternalPod, str]], *, heartbeat: Callable[[], None]
    ) -> Iterator[tuple[tuple[ExternalPod, str], BackendError | None]]:
        """As the condition PodScheduled, in which schedulers report why a pod is pending."""
        return self._client.run_each(self._write_reason, reasons, heartbeat)

    def set_group_phase(self, group: PodGroup, phase: str) -> None:
        """Patch its status."""
        path = f"{_SCHEDULING}/namespaces/{group.namespace}/podgroups/{group.name}"
        self._api.patch(path, {"status": {"phase": phase}})
        self._groups.pop(group.namespace, None)

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        return next((cache.fault for cache in self._caches.values() if cache.fault), "")

    def close(self) -> None:
        """End the watches."""
        for cache in self._caches.values():
            cache.close()

    async def _bind(self, bind: ExternalBind) -> None:
        """Raises NodeUnsuitable, StartDelayed, BindRefused, BackendError."""
        body = binding(bind.pod.name, bind.pod.uid, bind.node, bind.annotations)
        if self._claims and (wanted := bind.pod.claims):
            await self._claims.allocate(wanted, bind.node, bind.pod)
        await self._volumes.bind(bind.pod.volume_claims, bind.node, bind.pod.namespace)
        await self._client.checkpoint()
        try:
            await self._ignore_deleted(self._client.create(f"{_path_of(bind.pod)}/binding", body))
        except ApiError as error:
            if error.status in _REFUSALS:
                raise BindRefused(str(error)) from error
            raise

    async def _try_to_evict(self, pod: ExternalPod) -> None:
        await self._evict(pod, "?dryRun=All")

    async def _evict(self, pod: ExternalPod, how: str = "") -> None:
        body = eviction(pod.name, pod.namespace, pod.uid)
        try:
            await self._ignore_deleted(self._client.create(f"{_path_of(pod)}/eviction{how}", body))
        except ApiError as error:
            if is_protected(error):
                raise EvictionRefused(str(error)) from error
            raise

    async def _write_reason(self, reason: tuple[ExternalPod, str]) -> None:
        pod, message = reason
        body: Json = {
            "metadata": {"uid": pod.uid},
            **external_pod_state.unschedulable_condition(message, self._clock()),
        }
        change = self._client.patch(f"{_path_of(pod)}/status", body, content_type=_STRATEGIC)
        await self._ignore_deleted(change)

    async def _ignore_deleted(self, request: Any) -> None:  # noqa: ANN401  (any awaitable answer)
        """Ignore errors about a deleted or already bound pod: the next read reports it."""
        try:
            await request
        except ApiError as error:
            if error.status not in (NOT_FOUND, CONFLICT):
                raise


def _path_of(pod: ExternalPod) -> str:
    return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
