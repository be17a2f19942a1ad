"""The objects of each tenant in a cluster: created before its first pod, and checked periodically.

If each tenant has its own namespace, Hekla grants itself the permissions for pods only there.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hekla.backends.base import BackendError, StartDelayed
from hekla.backends.kubernetes import names, tenant_manifests
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, ApiError, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.layout import NamespaceLayout, namespace_path
from hekla.backends.tenancy import TenantOrder

_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SELF_REVIEWS = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_POLICIES = "/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
_OVER_QUOTA = "exceeded quota"
"""In the server's message, this follows the name of the pod."""
_FAILURE_SECONDS = 5.0
_PERMISSION_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
"""Pauses between checks: a granted permission takes effect with a delay."""


def is_over_quota(refusal: ApiError) -> bool:
    """Whether the refusal is only about a full quota."""
    return refusal.status == FORBIDDEN and _OVER_QUOTA in str(refusal)


class TenantNamespaces:
    """The tenants' namespaces of one cluster."""

    def __init__(self, client: AsyncClient, layout: NamespaceLayout, cluster: str, config: KubernetesConfig) -> None:
        self._client, self._layout, self._cluster, self._config = client, layout, cluster, config
        self._role = config.tenant_role
        self._ours = {names.CLUSTER: cluster}
        self._user = ""
        self._accessible: set[str] = set()
        self._provisioned: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._failures: dict[str, tuple[float, BackendError]] = {}

    async def apply(self, order: TenantOrder) -> None:
        """Create or update everything in the order. Raises BackendError."""
        if self._layout.per_tenant:
            # others may have revoked our permissions
            self._accessible.discard(self._layout.namespace_of(order.tenant))
            await self._provision(order.tenant)
            await self._apply_quota(order)
        else:
            await self._apply_policy(order.tenant)

    @asynccontextmanager
    async def provisioned(self, tenant: str) -> AsyncIterator[None]:
        """A context for requests in the tenant's namespace, which it creates if missing. If a request shows that it was
        deleted, the next call creates it again.

        `tenant`: its short name, or its name in labels. Raises StartDelayed for a full quota, BackendError.
        """
        tenant = names.tenant(tenant)
        await self._ensure(tenant)
        try:
            yield
        except ApiError as error:
            if is_over_quota(error):
                _, over, which = str(error).partition(_OVER_QUOTA)
                raise StartDelayed(f"{over}{which}") from error
            if error.status in (FORBIDDEN, NOT_FOUND):  # others may have deleted the namespace
                self._provisioned.discard(tenant)
                self._accessible.discard(self._layout.namespace_of(tenant))
            raise

    async def grant_access(self, namespace: str) -> None:
        """Bind our role to our own user in this namespace of a tenant. Raises BackendError."""
        if namespace in self._accessible:
            return
        binding = tenant_manifests.role_binding(self._role, await self._username(), self._ours)
        await self._client.create_once(f"{_RBAC}/namespaces/{namespace}/rolebindings", binding)
        await self._await_permission(namespace)
        self._accessible.add(namespace)

    async def _ensure(self, tenant: str) -> None:
        if not self._layout.per_tenant or not tenant or tenant in self._provisioned:
            return
        async with self._locks.setdefault(tenant, asyncio.Lock()):  # others wait until it is created
            until, error = self._failures.get(tenant, (0.0, None))
            if error and time.monotonic() < until:
                raise BackendError(str(error)) from error
            if tenant not in self._provisioned:
                await self._try_to_provision(tenant)

    async def _try_to_provision(self, tenant: str) -> None:
        """Provision the tenant. Stores a failure: repeating it for each of a thousand pods delays other tenants."""
        try:
            await self._provision(tenant)
        except BackendError as error:
            self._failures[tenant] = time.monotonic() + _FAILURE_SECONDS, error
            raise
        self._failures.pop(tenant, None)

    async def _provision(self, tenant: str) -> None:
        """Create the namespace, its service account and the network policy, before any pod."""
        namespace = self._layout.namespace_of(tenant)
        await self._create_namespace(namespace, tenant)
        await self.grant_access(namespace)
        account = tenant_manifests.service_account(self._labels(tenant))
        await self._client.create_once(f"{namespace_path(namespace)}/serviceaccounts", account)
        await self._apply_policy(tenant)
        self._provisioned.add(names.tenant(tenant))

    async def _create_namespace(self, namespace: str, tenant: str) -> None:
        """Create the namespace if missing. Raises BackendError if it belongs to others or is being deleted."""
        path = namespace_path(namespace)
        found = await self._client.find(path)
        if found is None:
            self._accessible.discard(namespace)
            manifest = tenant_manifests.namespace(namespace, self._labels(tenant), self._config.security_level)
            made = await self._client.create_once("/api/v1/namespaces", manifest)
            found = made or await self._client.get(path)  # another process has just created it
        labels = found["metadata"].get("labels") or {}
        if any(labels.get(name) != value for name, value in self._labels(tenant).items()):
            raise BackendError(f"The namespace {namespace} is there, and does not belong to the tenant {tenant}")
        if "deletionTimestamp" in found["metadata"]:
            self._accessible.discard(namespace)
            raise BackendError(f"The namespace {namespace} is being deleted")

    async def _apply_policy(self, tenant: str) -> None:
        """Apply the policies: who may connect to the tenant's pods, and to what they may connect."""
        labels, per_tenant = self._labels(tenant), self._layout.per_tenant
        name = tenant_manifests.POLICY if per_tenant else f"{tenant_manifests.POLICY}-{labels[names.TENANT]}"
        selected = {} if per_tenant else labels
        user = await self._username()
        policy = tenant_manifests.network_policy(name, selected, user, labels)
        egress = tenant_manifests.egress_policy(f"{name}-egress", selected, self._config, labels, user)
        for one in (policy, egress):
            await self._apply(_POLICIES.format(namespace=self._layout.namespace_of(tenant)), one)

    async def _apply_quota(self, order: TenantOrder) -> None:
        path = f"{namespace_path(self._layout.namespace_of(order.tenant))}/resourcequotas"
        if order.resources:
            await self._apply(path, tenant_manifests.resource_quota(order.resources, self._labels(order.tenant)))
        else:
            await self._client.delete(f"{path}/{tenant_manifests.QUOTA}", grace_seconds=0)

    async def _apply(self, path: str, manifest: Json) -> None:
        """Create the object, or update its spec."""
        if await self._client.create_once(path, manifest):
            return
        object_path = f"{path}/{manifest['metadata']['name']}"
        found = await self._client.get(object_path)
        if change := tenant_manifests.replacement_patch(found.get("spec") or {}, manifest["spec"]):
            await self._client.patch(object_path, {"spec": change})

    async def _await_permission(self, namespace: str) -> None:
        attributes = {"verb": "create", "group": "", "resource": "pods", "namespace": namespace}
        for pause in _PERMISSION_PAUSES:
            answer = await self._client.create(_ACCESS_REVIEWS, {"spec": {"resourceAttributes": attributes}})
            if (answer.get("status") or {}).get("allowed"):
                return
            await asyncio.sleep(pause)
        raise BackendError(f"The role {self._role} gives no right to make pods in the namespace {namespace}")

    async def _username(self) -> str:
        """Our user name at the server."""
        if not self._user:
            review = await self._client.create(_SELF_REVIEWS, {})
            self._user = str(review["status"]["userInfo"]["username"])
        return self._user

    def _labels(self, tenant: str) -> dict[str, str]:
        return {**self._ours, names.TENANT: names.tenant(tenant)}
