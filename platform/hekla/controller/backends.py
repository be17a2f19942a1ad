"""Opened backends, one a cluster and process; opened anew when the cluster's configuration changed."""

import json
from threading import Lock

from django.conf import settings

from hekla.apps.clusters.models import Cluster
from hekla.backends.base import Backend
from hekla.backends.registry import open_backend
from hekla.lib import clock

_opened: dict[int, tuple[str, Backend]] = {}
_lock = Lock()


def backend_of(cluster: Cluster) -> Backend:
    """The backend of this cluster. Raises Invalid where its configuration is wrong."""
    stamp = json.dumps([cluster.kind, cluster.name, cluster.config], sort_keys=True)
    with _lock:
        held = _opened.get(cluster.pk)
        if held is None or held[0] != stamp:
            backend = open_backend(
                cluster.kind,
                cluster=cluster.name,
                config=cluster.config,
                home=settings.HEKLA_HOME,
                clock=clock.now,
            )
            held = _opened[cluster.pk] = (stamp, backend)
        return held[1]
