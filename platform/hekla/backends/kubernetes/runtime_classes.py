"""The RuntimeClasses that jobs may name, followed because they add to the requests and constraints of pods."""

import logging
from collections.abc import Callable, Collection, Iterator, Sequence

from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.object_store import OptionalObjectStore
from hekla.domain.cluster_objects import ObjectFacts, ObjectKind
from hekla.domain.runtime_classes import RuntimeClassFacts

log = logging.getLogger(__name__)
_PATH = "/apis/node.k8s.io/v1/runtimeclasses"


class RuntimeClassStore:
    """The runtime classes of one cluster with these names. Implements `base.RuntimeClasses`."""

    def __init__(self, api: Api, names: Collection[str], wake: Callable[[], None]) -> None:
        self._store, self._names = OptionalObjectStore(api, _PATH, wake), frozenset(names)
        self._listed: tuple[object, Sequence[ObjectFacts]] = (None, ())

    def list_runtime_classes(self) -> Sequence[ObjectFacts]:
        """From the watch; the last known ones if they cannot be read now."""
        if self._store.follow_if_possible() and self._listed[0] != self._store.changes:
            self._listed = self._store.changes, tuple(self._read_all())
        return self._listed[1]

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was recently."""
        return self._store.fault

    def close(self) -> None:
        """End the watch. The owner closes the connections."""
        self._store.close()

    def _read_all(self) -> Iterator[ObjectFacts]:
        for (_namespace, name), _version, body in self._store.all():
            if name in self._names and (found := _facts(name, body)):
                yield found


def _facts(name: str, body: Json) -> ObjectFacts | None:
    """What is reported of a runtime class; None if it cannot be read."""
    reported = {field: body[field] for field in ("overhead", "scheduling") if body.get(field)}
    try:
        RuntimeClassFacts.read(reported)
        return ObjectFacts.of(ObjectKind.RUNTIME_CLASS, name, reported)
    except (ValueError, TypeError, AttributeError) as error:
        log.warning("the runtime class %s is left out: %s", name, error)
        return None
