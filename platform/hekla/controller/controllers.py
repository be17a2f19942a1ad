"""The controllers of this process, one per cluster."""

from threading import BoundedSemaphore, Lock

from structlog.contextvars import bound_contextvars

from hekla.apps.clusters.models import Cluster
from hekla.controller.cluster_controller import ClusterController

MAX_UNPROVEN = 2
"""How many of the worker's slots may reconcile clusters whose backend is not known to answer: half of them."""


class ControllerPool:
    """Creates the controller of a cluster at its first use."""

    def __init__(self) -> None:
        self._controllers: dict[int, ClusterController] = {}
        self._unproven = BoundedSemaphore(MAX_UNPROVEN)
        self._lock = Lock()

    def get(self, cluster_id: int) -> ClusterController:
        """This process's controller of the cluster."""
        with self._lock:
            if cluster_id not in self._controllers:
                self._controllers[cluster_id] = ClusterController(cluster_id)
            return self._controllers[cluster_id]

    def reconcile(self, cluster: Cluster) -> None:
        """Reconcile this cluster, here and now.

        A silent backend takes its time, so clusters that may be silent share some of the slots. If none is free,
        nothing happens: the watcher requests another reconciliation soon.
        """
        controller = self.get(cluster.pk)
        with bound_contextvars(cluster=cluster.name):  # in the log
            if controller.is_responsive:
                controller.reconcile(cluster)
            elif self._unproven.acquire(blocking=False):
                try:
                    controller.reconcile(cluster)
                finally:
                    self._unproven.release()

    def stuck(self, seconds: float) -> list[int]:
        """The clusters whose running reconciliation has made no progress for so long."""
        with self._lock:
            return [key for key, controller in self._controllers.items() if controller.is_stuck(seconds)]

    def close(self, cluster_id: int) -> None:
        """Drop the controller of a removed cluster."""
        with self._lock:
            controller = self._controllers.pop(cluster_id, None)
        if controller is not None:
            controller.close()

    def reset(self) -> None:
        """Drop all controllers, as if the process were new."""
        with self._lock:
            self._controllers.clear()


controllers = ControllerPool()
