"""The namespaces of our objects: one for all, or one for each tenant."""

from collections.abc import Iterable, Mapping
from typing import Any

from hekla.backends.base import PodKey
from hekla.backends.config import parse_config
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.backends.kubernetes.pod_state import PodState, parse_pod

_MAX_NAME = 63
Scopes = Mapping[str, str]
"""The short name of the tenant of each namespace of ours; empty for one that all tenants share. The `external_scope`
of each with external pods.
"""


class NamespaceLayout:
    """The namespaces of one cluster. `base`: the one in its configuration. `per_tenant`: each tenant has its own."""

    def __init__(self, config: KubernetesConfig) -> None:
        self.base, self.per_tenant = config.namespace, config.namespaces == "tenant"

    @property
    def pods_path(self) -> str:
        """The API path to list and watch all our pods."""
        return "/api/v1/pods" if self.per_tenant else f"{namespace_path(self.base)}/pods"

    def namespace_of(self, tenant: str) -> str:
        """The namespace for new objects of this tenant. Without a tenant: the one from before tenants had their own."""
        return tenant_namespace(self.base, tenant) if self.per_tenant and tenant else self.base

    def scopes(self, tenants: Iterable[str]) -> dict[str, str]:
        """Those of these tenants."""
        return {self.namespace_of(tenant): tenant if self.per_tenant else "" for tenant in tenants}

    def may_contain(self, namespace: str) -> bool:
        """Whether a namespace with this name may be one of ours."""
        return namespace == self.base or (self.per_tenant and namespace.startswith(f"{self.base}-"))

    def parse_pod(self, pod: Json) -> PodState | None:
        """The state of this pod, or None if it is not ours, even if others gave it our labels.

        A tenant's namespace contains only pods of this tenant. `owns` checks whether the job belongs to it too.
        """
        found = parse_pod(pod) if self.may_contain(pod["metadata"]["namespace"]) else None
        if found is None or found.namespace == self.base:
            return found
        return found if found.key.tenant and found.namespace == self.namespace_of(found.key.tenant) else None

    def owns(self, tenant: str, key: PodKey) -> bool:
        """Whether a pod observed with this key belongs to this tenant."""
        return not (self.per_tenant and key.tenant) or key.tenant in (tenant, names.tenant(tenant))


class PodLocator:
    """Locates a pod: in the namespace where it was observed, else where it will be created.

    Other namespaces are not searched, because others may have created a pod of the same name there.
    """

    def __init__(self, layout: NamespaceLayout, cache: PodCache) -> None:
        self._layout, self._cache = layout, cache

    def find(self, key: PodKey) -> PodState | None:
        """The cached state: from its tenant's namespace, else from the one from before tenants had their own."""
        own, base = self._layout.namespace_of(key.tenant), self._layout.base
        return self._cache.find(own, key.name) or (self._cache.find(base, key.name) if own != base else None)

    def namespace_path(self, key: PodKey) -> str:
        """The API path of the pod's namespace."""
        known = self.find(key)
        is_there = known is not None and not known.is_deleted
        return namespace_path(known.namespace if known and is_there else self._layout.namespace_of(key.tenant))

    def pod_path(self, key: PodKey) -> str:
        """The API path of the pod."""
        return f"{self.namespace_path(key)}/pods/{key.name}"


def namespace_path(name: str) -> str:
    """The API path of a namespace."""
    return f"/api/v1/namespaces/{name}"


def tenant_namespace(base: str, tenant: str) -> str:
    """The name of a tenant's namespace: stable, and at most 63 characters."""
    whole = f"{base}-{names.tenant(tenant)}"
    if len(whole) <= _MAX_NAME:
        return whole
    digest = names.digest(whole)
    return f"{whole[: _MAX_NAME - len(digest) - 1].rstrip('-')}-{digest}"


def moves_pods(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the second configuration puts pods in other namespaces than the first. Raises Invalid."""
    return _namespaces(before) != _namespaces(after)


def leaves_objects_behind(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the second configuration does not find objects created with the first. Raises Invalid."""
    old, new = _namespaces(before), _namespaces(after)
    return old != new and not (old[0] == new[0] and new[1] == "tenant")


def _namespaces(config: Mapping[str, Any]) -> tuple[str, str]:
    parsed = parse_config(KubernetesConfig, config)
    return parsed.namespace, parsed.namespaces
