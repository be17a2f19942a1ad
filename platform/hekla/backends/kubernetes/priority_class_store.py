"""The values of the PriorityClasses of a cluster, followed once a PodGroup names one."""

from collections.abc import Callable

from hekla.backends.base import BackendError
from hekla.backends.kubernetes.api import Api
from hekla.backends.kubernetes.object_store import OptionalObjectStore

_PATH = "/apis/scheduling.k8s.io/v1/priorityclasses"


class PriorityClassStore:
    """The priority classes of one cluster. `wake`: called after each change."""

    def __init__(self, api: Api, wake: Callable[[], None]) -> None:
        self._store = OptionalObjectStore(api, _PATH, wake)

    def value_of(self, name: str) -> int | None:
        """The value of the class; None without a name, without such a class, or without the right to read it.

        Raises BackendError.
        """
        if not name:
            return None
        if not self._store.follow_if_possible() and not self._store.is_absent:
            raise BackendError("The priority classes of the cluster cannot be read now")
        found = self._store.find("", name)
        return int(found["value"]) if found else None

    @property
    def fault(self) -> str:
        """The unexpected error that last ended the watch, if that was recently."""
        return self._store.fault

    def close(self) -> None:
        """End the watch. The owner closes the connections."""
        self._store.close()
