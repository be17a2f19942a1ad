"""Opened backends, one a cluster and process; opened anew when the cluster's configuration changed."""

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from hekla.backends.base import Backend
from hekla.backends.registry import open_backend
from hekla.lib import clock

_opened: dict[int, tuple[str, Backend]] = {}
_lock = Lock()


def opened(*, cluster_id: int, kind: str, name: str, config: Mapping[str, Any], home: Path) -> Backend:
    """The backend of this cluster, kept open. Raises Invalid where its configuration is wrong."""
    stamp = json.dumps([kind, name, config, str(home)], sort_keys=True)
    with _lock:
        held = _opened.get(cluster_id)
        if held is None or held[0] != stamp:
            backend = open_backend(kind, cluster=name, config=config, home=home, clock=clock.now)
            if held is not None:
                held[1].close()
            held = _opened[cluster_id] = (stamp, backend)
        return held[1]
