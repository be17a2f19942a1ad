"""What tenants have in a cluster before their first pod, made once and looked at again and again.

Where each tenant has a namespace of its own, we give ourselves there what its pods need, and nowhere else.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hekla.backends.base import BackendError, StartDelayed
from hekla.backends.kubernetes import names, walls
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.places import Places, path
from hekla.backends.tenancy import TenantOrder

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_POLICIES = "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
_OVER_QUOTA = "exceeded quota"
"""So the server's sentence goes on, after the name of the pod."""
_FAILS_FOR_SECONDS = 5.0
_HOLDS_WITHIN = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""A right that was given holds as soon as the server has heard of it."""


def is_over_quota(refusal: ApiError) -> bool:
    """Whether all that is missing is room in a quota."""
    return refusal.status == FORBIDDEN and _OVER_QUOTA in str(refusal)


class Homes:
    """Of one cluster. `role`: the ClusterRole with what we need in the namespace of a tenant."""

    def __init__(self, client: AsyncClient, places: Places, cluster: str, role: str) -> None:
        self._client, self._places, self._cluster, self._role = client, places, cluster, role
        self._ours = {names.CLUSTER: cluster}
        self._user = ""
        self._open: set[str] = set()
        self._furnished: set[str] = set()
        self._doors: dict[str, asyncio.Lock] = {}
        self._failed: dict[str, tuple[float, BackendError]] = {}

    async def keep(self, order: TenantOrder) -> None:
        """All of it, as ordered. Raises BackendError."""
        if self._places.is_apart:
            self._open.discard(self._places.namespace_of(order.tenant))  # what was given may be taken again
            await self._furnish(order.tenant)
            await self._bound(order)
        else:
            await self._guard(order.tenant)

    @asynccontextmanager
    async def entered(self, tenant: str) -> AsyncIterator[None]:
        """Around what is done there: what it needs is there, or will be next time where somebody took it away.

        `tenant`: by its short name, or as labels call it. Raises StartDelayed for a full quota, BackendError.
        """
        tenant = names.tenant(tenant)
        await self._ensure(tenant)
        try:
            yield
        except ApiError as error:
            if is_over_quota(error):
                _, over, which = str(error).partition(_OVER_QUOTA)
                raise StartDelayed(f"{over}{which}") from error
            if error.status in (FORBIDDEN, NOT_FOUND):  # somebody may have deleted the namespace
                self._furnished.discard(tenant)
                self._open.discard(self._places.namespace_of(tenant))
            raise

    async def let_in(self, namespace: str) -> None:
        """We may do in this namespace of a tenant what we need to. Raises BackendError."""
        if namespace in self._open:
            return
        binding = walls.rights(self._role, await self._who(), self._ours)
        await self._client.create_once(f"{_RBAC}/namespaces/{namespace}/rolebindings", binding)
        await self._await_right(namespace)
        self._open.add(namespace)

    async def _ensure(self, tenant: str) -> None:
        if not self._places.is_apart or not tenant or tenant in self._furnished:
            return
        async with self._doors.setdefault(tenant, asyncio.Lock()):  # who comes while it is made waits for it
            until, error = self._failed.get(tenant, (0.0, None))
            if error and time.monotonic() < until:
                raise BackendError(str(error)) from error
            if tenant not in self._furnished:
                await self._try_to_furnish(tenant)

    async def _try_to_furnish(self, tenant: str) -> None:
        """What fails is not tried again for each of a thousand pods, which would keep those of others waiting."""
        try:
            await self._furnish(tenant)
        except BackendError as error:
            self._failed[tenant] = time.monotonic() + _FAILS_FOR_SECONDS, error
            raise
        self._failed.pop(tenant, None)

    async def _furnish(self, tenant: str) -> None:
        """The namespace with its account, and the policy before any pod."""
        namespace = self._places.namespace_of(tenant)
        await self._make(namespace, tenant)
        await self.let_in(namespace)
        await self._client.create_once(f"{path(namespace)}/serviceaccounts", walls.account(self._labels(tenant)))
        await self._guard(tenant)
        self._furnished.add(names.tenant(tenant))

    async def _make(self, namespace: str, tenant: str) -> None:
        """Raises BackendError where one of that name is somebody else's, or on its way out."""
        found = await self._client.find(path(namespace))
        if found is None:
            self._open.discard(namespace)
            wanted = walls.namespace(namespace, self._labels(tenant))
            made = await self._client.create_once("/api/v1/namespaces", wanted)
            found = made or await self._client.get(path(namespace))  # another process made it at this moment
        labels = found["metadata"].get("labels") or {}
        if any(labels.get(name) != value for name, value in self._labels(tenant).items()):
            raise BackendError(f"The namespace {namespace} is there, and does not belong to the tenant {tenant}")
        if "deletionTimestamp" in found["metadata"]:
            self._open.discard(namespace)
            raise BackendError(f"The namespace {namespace} is being deleted")

    async def _guard(self, tenant: str) -> None:
        """Pods of others do not reach those of this tenant."""
        labels, is_apart = self._labels(tenant), self._places.is_apart
        name = walls.POLICY if is_apart else f"{walls.POLICY}-{labels[names.TENANT]}"
        wanted = walls.policy(name, {} if is_apart else labels, await self._who(), labels)
        await self._keep(_POLICIES.format(namespace=self._places.namespace_of(tenant)), wanted)

    async def _bound(self, order: TenantOrder) -> None:
        place = f"{path(self._places.namespace_of(order.tenant))}/resourcequotas"
        if order.resources:
            await self._keep(place, walls.quota(order.resources, self._labels(order.tenant)))
        else:
            await self._client.delete(f"{place}/{walls.QUOTA}", grace_seconds=0)

    async def _keep(self, place: str, wanted: Json) -> None:
        """It is there, and says this."""
        if await self._client.create_once(place, wanted):
            return
        one = f"{place}/{wanted['metadata']['name']}"
        found = await self._client.get(one)
        if change := walls.difference(found.get("spec") or {}, wanted["spec"]):
            await self._client.patch(one, {"spec": change})

    async def _await_right(self, namespace: str) -> None:
        asked = {"verb": "create", "group": "", "resource": "pods", "namespace": namespace}
        for pause in _HOLDS_WITHIN:
            answer = await self._client.create(_REVIEWS, {"spec": {"resourceAttributes": asked}})
            if (answer.get("status") or {}).get("allowed"):
                return
            await asyncio.sleep(pause)
        raise BackendError(f"The role {self._role} gives no right to make pods in the namespace {namespace}")

    async def _who(self) -> str:
        """As whom the server knows us."""
        if not self._user:
            told = await self._client.create(_WHO, {})
            self._user = str(told["status"]["userInfo"]["username"])
        return self._user

    def _labels(self, tenant: str) -> dict[str, str]:
        return {**self._ours, names.TENANT: names.tenant(tenant)}
