"""Working folders that outlive their pods: each is a volume claim, which stays until it is released.

A claim is created before its pod, and deleted with the pod unless that failed by itself. The next attempt of the
replica deletes the claim of the attempt before. When the job ends, those of failed pods that do not stay are released,
and its removal deletes what is left.
"""

from hekla.backends.base import BackendError, PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.api import NOT_FOUND, Api, ApiError
from hekla.backends.kubernetes.layout import PodLocator
from hekla.backends.kubernetes.resource_paths import CLAIMS
from hekla.domain.resources import parse_quantity


def frozen_claim(key: PodKey) -> str:
    """The API path of the claim of this pod's working folder, below that of its namespace."""
    return f"{CLAIMS}/{names.work_claim_of(key)}"


class KubernetesFrozenFolders:
    """Implements `frozen.FrozenFolders`."""

    def __init__(self, api: Api, locator: PodLocator) -> None:
        self._api, self._locator = api, locator

    def measure(self, key: PodKey) -> int:
        """The size of the volume, which is occupied however much is in it."""
        try:
            claim = self._api.get(self._path(key))
        except ApiError as error:
            if error.status != NOT_FOUND:
                raise
            return 0
        capacity = (claim.get("status") or {}).get("capacity") or claim["spec"]["resources"]["requests"]
        try:
            return int(parse_quantity("memory", str(capacity.get("storage", "0"))))
        except ValueError as error:
            raise BackendError("The size of the claim cannot be read") from error

    def release(self, key: PodKey) -> None:
        """Delete the claim. While a pod mounts it, the cluster waits for the end of that pod."""
        self._api.delete(self._path(key))

    def _path(self, key: PodKey) -> str:
        return f"{self._locator.namespace_path(key)}/{frozen_claim(key)}"
