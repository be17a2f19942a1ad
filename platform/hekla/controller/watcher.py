"""In the control worker, one thread per cluster waits for changes at its backend and requests a reconciliation.

The thread also reads the rows: every second while there is work, every two seconds otherwise. A lost message therefore
costs a second or two. A cluster without work is reconciled every 20 seconds. In between, its thread renews the lease,
so that the pages show the cluster as managed, and takes the lease after another process has released it.

No error ends these threads: without them a cluster would stand still, and nothing would say so. They log it, record it
in the lease for the pages, and try again.
"""

import logging
import threading

from django.db import DatabaseError, Error, close_old_connections, connection

from hekla.apps.clusters import leases
from hekla.apps.clusters import selectors as clusters
from hekla.apps.jobs import selectors as jobs
from hekla.apps.jobs.selectors import WatchedCluster
from hekla.backends.base import BackendError
from hekla.backends.pool import close_backend
from hekla.controller import heartbeat
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.lease_context import identity
from hekla.controller.wakeups import request_reconcile
from hekla.domain.errors import HeklaError, NotFound

log = logging.getLogger(__name__)
_BREATH_SECONDS = 0.02
"""Between two requests for one cluster: a backend that changes all the time must not flood the queue."""
_BUSY_SECONDS, _QUIET_SECONDS = 1.0, 2.0
"""Between two reads of the rows, with and without work: well within the lifetime of a lease."""
_NEW_CLUSTER_SECONDS = 3.0
_FIRST_RETRY_SECONDS, _LONGEST_RETRY_SECONDS = 2.0, 30.0
_OVERDUE_SECONDS = 20.0
"""A cluster without work is reconciled so often, to record its nodes and what they use."""
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
        """Every few seconds, report that this worker is alive, and start a thread for each new cluster."""
        while not self._stop.is_set():
            heartbeat.beat()
            try:
                for pk, name in clusters.active_names():
                    if pk not in self._watched:
                        self._watched.add(pk)
                        threading.Thread(target=self.watch, args=[pk], name=f"watch-{name}", daemon=True).start()
            except Error as error:
                log.warning("no database now: %s", error)
            except Exception:
                log.exception("cannot look for new clusters")
            close_old_connections()
            self._stop.wait(_NEW_CLUSTER_SECONDS)
        connection.close()

    def watch(self, cluster_id: int) -> None:
        """Wait for changes at the backend of one cluster until it is removed or the process stops.

        The cluster's row is read each time, because its configuration may have changed. With an older copy, this thread
        and the controller would close each other's backend.
        """
        pause: float | None = 0.0
        retry = _FIRST_RETRY_SECONDS
        while not self._stop.is_set():
            try:
                pause = self._look(cluster_id, pause)
                retry = _FIRST_RETRY_SECONDS
                continue
            except NotFound:
                self._forget(cluster_id)
                return
            except (BackendError, HeklaError, OSError, Error) as error:
                log.warning("cannot watch cluster %s: %s", cluster_id, error)
            except Exception as error:
                log.exception("cannot watch cluster %s", cluster_id)
                _report(cluster_id, f"{type(error).__name__}: {error}")
            close_old_connections()
            self._stop.wait(retry)
            retry = min(2 * retry, _LONGEST_RETRY_SECONDS)

    def _look(self, cluster_id: int, pause: float | None) -> float | None:
        """Read the rows, then wait for a change at the backend, and request a reconciliation then.

        `pause`: how long to wait. None: request one before, if the rows call for it, and choose. Returns the next one.
        """
        watched = jobs.watched(cluster_id)
        backend = backend_of(watched.cluster)
        if pause is None:
            pause = self._request(cluster_id) if is_due(watched) else _QUIET_SECONDS
        has_changed = backend.wait(pause)
        _report(cluster_id, backend.fault or controllers.get(cluster_id).fault)
        return self._request(cluster_id) if has_changed else None

    def _request(self, cluster_id: int) -> float:
        """Request a reconciliation. Returns how long to wait then."""
        _request_reconcile(cluster_id)
        self._stop.wait(_BREATH_SECONDS)
        return _BUSY_SECONDS

    def _forget(self, cluster_id: int) -> None:
        """Release what this process has of a removed cluster: threads, connections and caches."""
        controllers.close(cluster_id)
        close_backend(cluster_id)
        self._watched.discard(cluster_id)
        connection.close()  # of this thread, which ends


def is_due(watched: WatchedCluster) -> bool:
    """Whether the rows call for a reconciliation by this process. If not, it keeps the lease that it has."""
    cluster = watched.cluster
    if cluster.is_paused:
        return False
    if not watched.holder:
        return True
    if watched.holder != identity():
        return False
    controller = controllers.get(cluster.pk)
    if watched.has_work or controller.is_overdue(_OVERDUE_SECONDS):
        return True
    if controller.is_idle():  # a reconciliation that hangs must lose the lease
        leases.renew(cluster.pk, watched.epoch)
    return False


def _report(cluster_id: int, fault: str) -> None:
    """Record a fault for the pages while it lasts, and its end once."""
    controller = controllers.get(cluster_id)
    if not fault and not controller.has_reported_fault:
        return
    try:
        leases.report_fault(cluster_id, identity(), fault)
        controller.has_reported_fault = bool(fault)
    except Error as error:
        log.warning("cannot record the fault of cluster %s: %s", cluster_id, error)


def _request_reconcile(cluster_id: int) -> None:
    """Request a reconciliation; one that is running here only has to run once more, without a message."""
    if controllers.get(cluster_id).request_another():
        controllers.get(cluster_id).wait_until_idle(_RECONCILES_FOR_SECONDS)
    else:
        request_reconcile(cluster_id)


watcher = ClusterWatcher()


def stop() -> None:
    """Release the leases of a stopping worker, so that the next one need not wait for them to expire."""
    watcher.stop()
    try:
        leases.release(identity())
    except DatabaseError as error:
        log.warning("could not give the leases up: %s", error)
