"""Measure what running pods use, every ten seconds in one call of the backend, and store it."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from hekla.apps.jobs.models import Pod
from hekla.apps.usage import services
from hekla.apps.usage.levels import FINEST
from hekla.apps.usage.services import Reading
from hekla.backends.base import BackendError, Metrics
from hekla.controller.lease_context import LeaseContext
from hekla.controller.observations import key_of
from hekla.domain.phases import PodPhase

log = logging.getLogger(__name__)
EVERY = timedelta(seconds=FINEST)
THIN_EVERY = timedelta(minutes=1)


def measure_pods(lease: LeaseContext, metrics: Metrics, pods: Sequence[Pod]) -> None:
    """Store the usage of the running pods among these. A failure is logged, and the next call tries again."""
    running = {key_of(pod): pod.pk for pod in pods if pod.phase == PodPhase.RUNNING}
    if not running:
        return
    try:
        found = metrics.measure(list(running))
    except BackendError as error:
        log.warning("could not measure pods, will try again: %s", error)
        return
    readings = [
        Reading(running[use.key], use.at, use.cpu_seconds, use.memory_bytes, use.gpus_busy, use.gpu_memory_bytes)
        for use in found
    ]
    if readings:
        services.record(lease.cluster_id, lease.epoch, readings)
