"""In the control worker, one thread per cluster waits for changes at its backend and requests a reconciliation.

The thread also reads the rows: every second while there is work, every two seconds otherwise. A lost message therefore
costs a second or two. A cluster without work is not reconciled. Its thread still renews the lease, so that the pages
show the cluster as managed, and takes the lease after another process has released it.
"""

import logging
import threading
from typing import Any

from celery.signals import worker_ready, worker_shutting_down
from django.db import DatabaseError, Error, close_old_connections

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs import selectors as jobs
from hekla.backends.base import BackendError
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.controller.wakeups import request_reconcile
from hekla.domain.errors import HeklaError, NotFound
from hekla.lib import clock

log = logging.getLogger(__name__)
_BREATH_SECONDS = 0.02
"""Between two requests for one cluster: a backend that changes all the time must not flood the queue."""
_BUSY_SECONDS, _QUIET_SECONDS = 1.0, 2.0
"""Between two reads of the rows, with and without work: well within the lifetime of a lease."""
_RECONCILES_FOR_SECONDS = 1.0
"""After this time the rows are read again although a reconciliation still runs."""


class ClusterWatcher:
    """The threads of this process that watch clusters."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._watched: set[int] = set()

    def start(self) -> None:
        """Watch all active clusters, and those that are added later, until `stop`."""
        threading.Thread(target=self._watch_all, name="watch", daemon=True).start()

    def stop(self) -> None:
        """Let every thread end after its current step."""
        self._stop.set()

    def _watch_all(self) -> None:
        """Start a thread for each cluster that has none; look for new clusters every few seconds."""
        while not self._stop.is_set():
            try:
                for cluster in clusters.active():
                    if cluster.pk not in self._watched:
                        self._watched.add(cluster.pk)
                        name = f"watch-{cluster}"
                        threading.Thread(target=self.watch, args=[cluster.pk], name=name, daemon=True).start()
            except DatabaseError as error:
                log.warning("no database now: %s", error)
            close_old_connections()
            self._stop.wait(3)

    def watch(self, cluster_id: int) -> None:
        """Wait for changes at the backend of one cluster until it is removed or the process stops.

        The cluster's row is read each time, because its configuration may have changed. With an older copy, this thread
        and the controller would close each other's backend.
        """
        pause = 0.0
        while not self._stop.is_set():
            try:
                cluster = clusters.by_id(cluster_id)
                if backend_of(cluster).wait(pause) or is_due(cluster):
                    _request_reconcile(cluster_id)
                    self._stop.wait(_BREATH_SECONDS)
                    pause = _BUSY_SECONDS
                else:
                    pause = _QUIET_SECONDS
            except NotFound:
                controllers.close(cluster_id)  # it was removed
                return
            except (BackendError, HeklaError, OSError, Error) as error:
                log.warning("cannot watch cluster %s: %s", cluster_id, error)
                close_old_connections()
                self._stop.wait(2)


def is_due(cluster: Cluster) -> bool:
    """Whether the rows call for a reconciliation by this process."""
    now = clock.now()
    lease = leases.of(cluster)
    if cluster.is_paused:
        return False
    if lease is None or not leases.is_held(lease, now=now):
        return True
    if lease.holder != identity():
        return False
    if jobs.has_work(cluster.pk):
        return True
    if controllers.get(cluster.pk).is_idle():  # a reconciliation that hangs must lose the lease
        leases.renew(cluster.pk, lease.epoch, now=now)
    return False


def _request_reconcile(cluster_id: int) -> None:
    """Request a reconciliation; one that is running here only has to run once more, without a message."""
    if controllers.get(cluster_id).request_another():
        controllers.get(cluster_id).wait_until_idle(_RECONCILES_FOR_SECONDS)
    else:
        request_reconcile(cluster_id)


watcher = ClusterWatcher()


@worker_ready.connect
def start(sender: Any = None, **_kwargs: Any) -> None:  # noqa: ANN401
    """Watch in the worker of the control queue only."""
    if "control" in {queue.name for queue in sender.task_consumer.queues}:
        watcher.start()


@worker_shutting_down.connect
def stop(**_kwargs: Any) -> None:  # noqa: ANN401
    """Release the leases of a stopping worker, so that the next one need not wait for them to expire."""
    watcher.stop()
    try:
        leases.release(identity(), now=clock.now())
    except DatabaseError as error:
        log.warning("could not give the leases up: %s", error)
