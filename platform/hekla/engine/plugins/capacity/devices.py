"""Claimed devices by class (Kubernetes' dynamic resource allocation), where queues limit them.

A queue's capability names such a limit `deviceclass/<class>`. Nodes do not publish these amounts, so they count here
and not for the fit of pods on nodes. A class that no queue names is not counted (`volcano-spec` §5.3).
"""

from collections.abc import Iterable

import numpy as np

from hekla.engine.columns import Vector
from hekla.engine.job_info import ALLOCATED, JobInfo, PodInfo
from hekla.engine.policy import PluginOption
from hekla.engine.queue_attributes import DEVICE_CLASS_PREFIX
from hekla.engine.session import Session

_SWITCH = "capacity.DynamicResourceAllocationEnable"


def counts_devices(option: PluginOption) -> bool:
    """Whether claimed devices are switched on."""
    return str(option.arguments.get(_SWITCH, False)).lower() == "true"


class Demand:
    """What a pod counts for in its queue: its request and, if switched on, the devices that it claims."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._nothing, self._dimensions = np.zeros_like(session.total_resources), session.dimensions
        names = session.dimensions.names if counts_devices(option) else ()
        self._classes = [name for name in names if name.startswith(DEVICE_CLASS_PREFIX)]

    @property
    def counts_claims(self) -> bool:
        """Whether claimed devices count too."""
        return bool(self._classes)

    def of(self, pod: PodInfo) -> Vector:
        """All that one pod counts for."""
        return pod.request + self._claims(pod) if self._classes and pod.spec.claimed_devices else pod.request

    def total(self, pods: Iterable[PodInfo]) -> Vector:
        """All that these pods count for."""
        return sum((self.of(pod) for pod in pods), self._nothing)

    def claimed(self, job: JobInfo) -> Vector:
        """What the placed pods of a job have claimed."""
        placed = (pod for pod in job.pods if pod.status in ALLOCATED)
        return sum((self._claims(pod) for pod in placed), self._nothing)

    def _claims(self, pod: PodInfo) -> Vector:
        claims = pod.spec.claimed_devices
        return self._dimensions.vector({name: claims.amount(name) for name in self._classes})
