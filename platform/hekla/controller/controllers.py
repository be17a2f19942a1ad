"""The controllers of this process, one per cluster."""

from threading import Lock

from hekla.apps.clusters.models import Cluster
from hekla.controller.cluster_controller import ClusterController


class ControllerPool:
    """Creates the controller of a cluster at its first use."""

    def __init__(self) -> None:
        self._controllers: dict[int, ClusterController] = {}
        self._lock = Lock()

    def get(self, cluster_id: int) -> ClusterController:
        """This process's controller of the cluster."""
        with self._lock:
            if cluster_id not in self._controllers:
                self._controllers[cluster_id] = ClusterController(cluster_id)
            return self._controllers[cluster_id]

    def reconcile(self, cluster: Cluster) -> None:
        """Reconcile this cluster, here and now."""
        self.get(cluster.pk).reconcile(cluster)

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
