"""In which namespace things of ours are: all in one, or those of each tenant in one of its own."""

from collections.abc import Mapping
from typing import Any

from hekla.backends import config as configuration
from hekla.backends.base import PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.cache import Cache
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.reading import Seen, seen

_MAX_NAME = 63


class Places:
    """The namespaces of one cluster of ours. `base`: that of its configuration."""

    def __init__(self, config: KubernetesConfig) -> None:
        self.base, self.is_apart = config.namespace, config.namespaces == "tenant"

    @property
    def pods(self) -> str:
        """Where the API lists and watches all our pods."""
        return "/api/v1/pods" if self.is_apart else f"{path(self.base)}/pods"

    def namespace_of(self, tenant: str) -> str:
        """Where things of this tenant are made; of nobody in particular: where they were before tenants were apart."""
        return namespace(self.base, tenant) if self.is_apart and tenant else self.base

    def has(self, name: str) -> bool:
        """Whether a namespace of this name may be one of ours."""
        return name == self.base or (self.is_apart and name.startswith(f"{self.base}-"))

    def seen(self, pod: Json) -> Seen | None:
        """What is so with this pod. None: it is not ours, whatever its labels say where others make pods.

        In a tenant's namespace pods are of this tenant only. Whose job its labels may name, `is_of` tells.
        """
        found = seen(pod) if self.has(pod["metadata"]["namespace"]) else None
        if found is None or found.namespace == self.base:
            return found
        return found if found.key.tenant and found.namespace == self.namespace_of(found.key.tenant) else None

    def is_of(self, key: PodKey, tenant: str) -> bool:
        """Whether a pod that was seen with this key is this tenant's."""
        return not (self.is_apart and key.tenant) or key.tenant in (tenant, names.tenant(tenant))


class Finder:
    """Where a pod is: where it was seen, else where it is to be made.

    It is looked for where it can be only: elsewhere somebody else may have made one of its name.
    """

    def __init__(self, places: Places, cache: Cache) -> None:
        self._places, self._cache = places, cache

    def seen(self, key: PodKey) -> Seen | None:
        """As far as it is known: where its tenant has pods, else where they were before tenants were apart."""
        own, base = self._places.namespace_of(key.tenant), self._places.base
        return self._cache.find(own, key.name) or (self._cache.find(base, key.name) if own != base else None)

    def place(self, key: PodKey) -> str:
        """The path of its namespace."""
        known = self.seen(key)
        is_there = known is not None and not known.is_gone
        return path(known.namespace if known and is_there else self._places.namespace_of(key.tenant))

    def pod(self, key: PodKey) -> str:
        """The path of the pod itself."""
        return f"{self.place(key)}/pods/{key.name}"


def path(name: str) -> str:
    """The path of a namespace."""
    return f"/api/v1/namespaces/{name}"


def namespace(base: str, tenant: str) -> str:
    """The name of a tenant's namespace: always the same, and short enough."""
    whole = f"{base}-{names.tenant(tenant)}"
    if len(whole) <= _MAX_NAME:
        return whole
    digest = names.digest(whole)
    return f"{whole[: _MAX_NAME - len(digest) - 1].rstrip('-')}-{digest}"


def is_moved(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether pods are somewhere else by the one configuration than by the other. Raises Invalid."""
    return _place(before) != _place(after)


def leaves_behind(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether what was made by the former is not found any more by the latter. Raises Invalid."""
    was, is_now = _place(before), _place(after)
    return was != is_now and not (was[0] == is_now[0] and is_now[1] == "tenant")


def _place(config: Mapping[str, Any]) -> tuple[str, str]:
    read = configuration.read(KubernetesConfig, config)
    return read.namespace, read.namespaces
