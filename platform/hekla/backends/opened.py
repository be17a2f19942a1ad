"""Opened backends, one a cluster and process; opened anew when the cluster's configuration or the key to it changed."""

import hashlib
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


def opened(
    *, cluster_id: int, kind: str, name: str, config: Mapping[str, Any], home: Path, key: str | None = None
) -> Backend:
    """The backend of this cluster, kept open. Raises Invalid where its configuration is wrong."""
    stamp = _digest([kind, name, config, str(home), key])
    with _lock:
        held = _opened.get(cluster_id)
        if held is not None and held[0] == stamp:
            return held[1]
        backend = open_backend(kind, cluster=name, config=config, home=home, clock=clock.now, key=key)
        _opened[cluster_id] = (stamp, backend)
    if held is not None:
        held[1].close()  # takes seconds where its watches are slow to end, which others need not wait for
    return backend


def _digest(facts: list[Any]) -> str:
    """The same for the same facts, which cannot be told from it."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
