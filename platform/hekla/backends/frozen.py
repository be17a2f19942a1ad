"""Working folders of failed pods that stay for a while, so that another pod can continue in them.

A pod whose order says `freezes` has a working folder that outlives it. Pods with `frozen` in their order get that
folder, and the volumes of that pod. The folder stays until it is released, or its job is removed.
"""

from typing import Protocol

from hekla.backends.base import PodKey


class FrozenFolders(Protocol):
    """Folders of ended pods. All calls are idempotent."""

    def measure(self, key: PodKey) -> int:
        """The bytes that the folder of this pod occupies; 0 if there is none. Raises BackendError."""

    def release(self, key: PodKey) -> None:
        """Delete the folder, and what this pod alone has beside it. Its log stays. Raises BackendError.

        Nothing checks here whether a pod uses the folder.
        """
