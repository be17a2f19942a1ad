"""Objects of a Kubernetes cluster that the engine reads, followed by watches once a job needs them."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import FORBIDDEN, NOT_FOUND, Api, ApiError
from hekla.backends.kubernetes.layout import NamespaceLayout, Scopes
from hekla.backends.kubernetes.object_store import ObjectStore, StoredObject
from hekla.domain.cluster_objects import MAX_OBJECTS, ObjectFacts, ObjectKind, external_scope

log = logging.getLogger(__name__)
_ABSENCE_VALID_SECONDS = 60.0


class ClusterStore(ABC):
    """Objects of some kinds in one cluster. Implements `base.ClusterObjects`. `wake`: called after each change.

    `external`: the namespaces of external pods.
    """

    def __init__(
        self, api: Api, layout: NamespaceLayout, wake: Callable[[], None], external: Collection[str] = ()
    ) -> None:
        self.api, self.layout, self._wake = api, layout, wake
        self.external_scopes = {name: external_scope(name) for name in external}
        self._stores: dict[ObjectKind, ObjectStore] = {}
        self._absent_until = float("-inf")
        self._facts: dict[tuple[ObjectKind, str, str, int], ObjectFacts | None] = {}
        self._listed: tuple[object, Sequence[ObjectFacts]] = (None, ())

    @abstractmethod
    def places(self) -> Mapping[ObjectKind, str]:
        """The API path of each kind. Raises BackendError."""

    @abstractmethod
    def facts(self, kind: ObjectKind, stored: StoredObject, scopes: Scopes) -> ObjectFacts | None:
        """What is reported of an object; None if it does not matter.

        Raises KeyError, TypeError, AttributeError or ValueError for an invalid one.
        """

    def scope(self, stored: StoredObject, scopes: Scopes) -> str:
        """The scope on which `facts` of the object depends."""
        return scopes.get(stored.name[0], "-")

    def list_objects(self, tenants: Collection[str]) -> Sequence[ObjectFacts]:
        """From the watches; none in a cluster without such objects, or without the right to read them."""
        if not self._follow_if_possible():
            return ()
        scopes = self.layout.scopes(tenants) | self.external_scopes
        basis = [(kind, store, store.changes) for kind, store in self._stores.items()], scopes
        if basis != self._listed[0]:
            self._listed = basis, tuple(self._read_all(scopes))
        return self._listed[1]

    def follow(self) -> None:
        """List what is not listed yet, and follow its changes. Raises BackendError."""
        if not self._stores:
            self._stores = {kind: ObjectStore(self.api, path, self._wake) for kind, path in self.places().items()}
        for store in self._stores.values():
            store.follow()

    def __getitem__(self, kind: ObjectKind) -> ObjectStore:
        """The objects of one kind, once they are followed."""
        return self._stores[kind]

    def changes(self, kinds: Collection[ObjectKind]) -> Sequence[int]:
        """How often objects of each of these kinds have changed."""
        return [self._stores[kind].changes for kind in kinds]

    @property
    def fault(self) -> str:
        """The unexpected error that last ended a watch, if that was recently."""
        return next((store.fault for store in self._stores.values() if store.fault), "")

    def close(self) -> None:
        """End the watches. The owner closes the connections."""
        for store in self._stores.values():
            store.close()

    def _follow_if_possible(self) -> bool:
        if time.monotonic() < self._absent_until:
            return False
        try:
            self.follow()
        except BackendError as error:
            log.info("objects that the engine reads cannot be listed: %s", error)
            if isinstance(error, ApiError) and error.status in (NOT_FOUND, FORBIDDEN):
                self._absent_until = time.monotonic() + _ABSENCE_VALID_SECONDS
            return False
        return True

    def _read_all(self, scopes: Scopes) -> Iterator[ObjectFacts]:
        known, self._facts = self._facts, {}
        for kind, store in self._stores.items():
            objects = store.all()
            if len(objects) > MAX_OBJECTS:
                log.warning("the cluster has %d objects of the kind %s; %d count", len(objects), kind, MAX_OBJECTS)
            for one in objects[:MAX_OBJECTS]:
                key = kind, self.scope(one, scopes), "/".join(one.name), one.version
                self._facts[key] = found = known[key] if key in known else self._read(kind, one, scopes)
                if found is not None:
                    yield found

    def _read(self, kind: ObjectKind, stored: StoredObject, scopes: Scopes) -> ObjectFacts | None:
        try:
            return self.facts(kind, stored, scopes)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            log.warning("%s %s is left out: %s", kind, "/".join(filter(None, stored.name)), error)
            return None
