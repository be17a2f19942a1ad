"""The runtime classes of a cluster, as its backend reports them."""

from collections.abc import Mapping

from hekla.domain.cluster_objects import RUNTIME_KINDS, ObjectKind
from hekla.domain.runtime_classes import RuntimeClassFacts
from hekla.scheduling.cluster_objects import ObjectCache, Objects

RuntimeClassesByName = Mapping[str, RuntimeClassFacts]


def runtime_class_cache() -> ObjectCache[RuntimeClassesByName]:
    """A cache of runtime classes."""
    return ObjectCache(RUNTIME_KINDS, _by_name, {})


def _by_name(objects: Objects) -> RuntimeClassesByName:
    return {name: RuntimeClassFacts.read(body) for name, body in objects[ObjectKind.RUNTIME_CLASS].items()}
