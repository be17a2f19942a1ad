"""The controllers of this process, one per cluster."""

from threading import Lock

from hekla.apps.clusters.models import Cluster
from hekla.controller.cluster_controller import ClusterController


class ControllerPool:
    """Makes a cluster's controller when it is first asked for."""

    def __init__(self) -> None:
        self._controllers: dict[int, ClusterController] = {}
        self._lock = Lock()

    def get(self, cluster_id: int) -> ClusterController:
        """The controller of this cluster here."""
        with self._lock:
            if cluster_id not in self._controllers:
                self._controllers[cluster_id] = ClusterController(cluster_id)
            return self._controllers[cluster_id]

    def reconcile(self, cluster: Cluster) -> None:
        """Reconcile this cluster, here and now."""
        self.get(cluster.pk).reconcile(cluster)

    def close(self, cluster_id: int) -> None:
        """The cluster was removed: forget it."""
        with self._lock:
            controller = self._controllers.pop(cluster_id, None)
        if controller is not None:
            controller.close()

    def reset(self) -> None:
        """Forget all of them, as a new process would."""
        with self._lock:
            self._controllers.clear()


controllers = ControllerPool()
