"""In the control worker, a thread a cluster waits for its backend to stir and then asks for a turn.

It also looks at the rows, often while there is work and seldom else, and asks for a turn where they call for one: so
a message that was lost costs a second or two. A cluster without work gets no turns. Then the thread holds on to the
lease by itself, so that everybody sees that the cluster is looked after, and takes it where another process let it go.
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
"""Between two wishes of one cluster: more of them than can be granted would bury those that matter."""
_BUSY_SECONDS, _QUIET_SECONDS = 1.0, 2.0
"""How often it looks at the rows while there is work, and while there is none: well within the lifetime of a lease."""
_TURNS_FOR_SECONDS = 1.0
"""After which it is looked up anew also while a turn is under way."""
_stop = threading.Event()
_watched: set[int] = set()


@worker_ready.connect
def begin(sender: Any = None, **_kwargs: Any) -> None:  # noqa: ANN401
    """Only the worker of the control queue watches."""
    if "control" in {queue.name for queue in sender.task_consumer.queues}:
        threading.Thread(target=_watch_all, name="watch", daemon=True).start()


@worker_shutting_down.connect
def end(**_kwargs: Any) -> None:  # noqa: ANN401
    """A stopping worker gives its leases up, so that the next one need not wait for them to end."""
    _stop.set()
    try:
        leases.release(identity(), now=clock.now())
    except DatabaseError as error:
        log.warning("could not give the leases up: %s", error)


def _watch_all() -> None:
    """Start a thread for each cluster that has none yet; look for new ones every few seconds."""
    while not _stop.is_set():
        try:
            for cluster in clusters.active():
                if cluster.pk not in _watched:
                    _watched.add(cluster.pk)
                    threading.Thread(target=_watch, args=[cluster.pk], name=f"watch-{cluster}", daemon=True).start()
        except DatabaseError as error:
            log.warning("no database now: %s", error)
        close_old_connections()
        _stop.wait(3)


def _is_due(cluster: Cluster) -> bool:
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
    if controllers.get(cluster.pk).is_idle():  # one that stands still in the middle of a turn is to lose it
        leases.renew(cluster.pk, lease.epoch, now=now)
    return False


def _request_reconcile(cluster_id: int) -> None:
    """Ask for a reconciliation. One that follows another anyway need not be asked for again before that."""
    if controllers.get(cluster_id).request_another():
        controllers.get(cluster_id).wait_until_idle(_TURNS_FOR_SECONDS)
    else:
        request_reconcile(cluster_id)


def _watch(cluster_id: int) -> None:
    """It is looked up anew each time, since how it is reached may have changed: of two that each held to their own
    view of that, each would close what the other has opened.
    """
    pause = 0.0
    while not _stop.is_set():
        try:
            cluster = clusters.by_id(cluster_id)
            if backend_of(cluster).wait(pause) or _is_due(cluster):
                _request_reconcile(cluster_id)
                _stop.wait(_BREATH_SECONDS)
                pause = _BUSY_SECONDS
            else:
                pause = _QUIET_SECONDS
        except NotFound:
            controllers.close(cluster_id)  # it was removed
            return
        except (BackendError, HeklaError, OSError, Error) as error:
            log.warning("cannot watch cluster %s: %s", cluster_id, error)
            close_old_connections()
            _stop.wait(2)
