"""In which namespaces our objects are: all in one, or those of each tenant in its own."""

from collections.abc import Mapping
from typing import Any

from hekla.backends.base import PodKey
from hekla.backends.config import parse_config
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.backends.kubernetes.pod_state import PodState, parse_pod

_MAX_NAME = 63


class NamespaceLayout:
    """The namespaces of one cluster. `base`: the one in its configuration. `per_tenant`: each tenant has its own."""

    def __init__(self, config: KubernetesConfig) -> None:
        self.base, self.per_tenant = config.namespace, config.namespaces == "tenant"

    @property
    def pods_path(self) -> str:
        """Where the API lists and watches all our pods."""
        return "/api/v1/pods" if self.per_tenant else f"{namespace_path(self.base)}/pods"

    def namespace_of(self, tenant: str) -> str:
        """Where objects of this tenant are created. Without a tenant: where they were before tenants had their own."""
        return tenant_namespace(self.base, tenant) if self.per_tenant and tenant else self.base

    def may_contain(self, namespace: str) -> bool:
        """Whether a namespace of this name may be one of ours."""
        return namespace == self.base or (self.per_tenant and namespace.startswith(f"{self.base}-"))

    def parse_pod(self, pod: Json) -> PodState | None:
        """The state of this pod. None: it is not ours, whatever labels others gave it.

        In a tenant's namespace pods belong to this tenant only. Whether its job does, `owns` tells.
        """
        found = parse_pod(pod) if self.may_contain(pod["metadata"]["namespace"]) else None
        if found is None or found.namespace == self.base:
            return found
        return found if found.key.tenant and found.namespace == self.namespace_of(found.key.tenant) else None

    def owns(self, tenant: str, key: PodKey) -> bool:
        """Whether a pod observed under this key belongs to this tenant."""
        return not (self.per_tenant and key.tenant) or key.tenant in (tenant, names.tenant(tenant))


class PodLocator:
    """Where a pod is: where it was seen, else where it is to be created.

    It is looked for only where it can be: elsewhere others may have created one of its name.
    """

    def __init__(self, layout: NamespaceLayout, cache: PodCache) -> None:
        self._layout, self._cache = layout, cache

    def find(self, key: PodKey) -> PodState | None:
        """Its cached state: in its tenant's namespace, else in the one from before tenants had their own."""
        own, base = self._layout.namespace_of(key.tenant), self._layout.base
        return self._cache.find(own, key.name) or (self._cache.find(base, key.name) if own != base else None)

    def namespace_path(self, key: PodKey) -> str:
        """The path of its namespace."""
        known = self.find(key)
        is_there = known is not None and not known.is_deleted
        return namespace_path(known.namespace if known and is_there else self._layout.namespace_of(key.tenant))

    def pod_path(self, key: PodKey) -> str:
        """The path of the pod itself."""
        return f"{self.namespace_path(key)}/pods/{key.name}"


def namespace_path(name: str) -> str:
    """The path of a namespace."""
    return f"/api/v1/namespaces/{name}"


def tenant_namespace(base: str, tenant: str) -> str:
    """The name of a tenant's namespace: always the same, and short enough."""
    whole = f"{base}-{names.tenant(tenant)}"
    if len(whole) <= _MAX_NAME:
        return whole
    digest = names.digest(whole)
    return f"{whole[: _MAX_NAME - len(digest) - 1].rstrip('-')}-{digest}"


def moves_pods(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the second configuration puts pods elsewhere than the first. Raises Invalid."""
    return _namespaces(before) != _namespaces(after)


def leaves_objects_behind(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether the second configuration does not find what was created under the first. Raises Invalid."""
    old, new = _namespaces(before), _namespaces(after)
    return old != new and not (old[0] == new[0] and new[1] == "tenant")


def _namespaces(config: Mapping[str, Any]) -> tuple[str, str]:
    parsed = parse_config(KubernetesConfig, config)
    return parsed.namespace, parsed.namespaces
