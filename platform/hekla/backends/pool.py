"""The pool of open backends: one per cluster and process, reopened if the configuration or credentials change."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from threading import Lock
from typing import Any

from hekla.backends.base import Backend
from hekla.backends.kind import BackendContext
from hekla.backends.registry import open_backend
from hekla.lib import clock

_backends: dict[int, tuple[str, Backend]] = {}
_lock = Lock()


def get_backend(
    *,
    cluster_id: int,
    kind: str,
    name: str,
    config: Mapping[str, Any],
    home: Path,
    key: str | None = None,
    metrics_token: str = "",
) -> Backend:
    """The open backend of this cluster, from the pool. Raises Invalid if its configuration is wrong."""
    stamp = _digest([kind, name, config, str(home), key, metrics_token])
    with _lock:
        former = _backends.get(cluster_id)
        if former is not None and former[0] == stamp:
            return former[1]
        backend = open_backend(kind, config, BackendContext(name, home, clock.now, key, metrics_token))
        _backends[cluster_id] = (stamp, backend)
    if former is not None:
        former[1].close()  # outside the lock: watches may take seconds to end
    return backend


def close_backend(cluster_id: int) -> None:
    """Close the backend of a removed cluster, if this process has opened it."""
    with _lock:
        _stamp, backend = _backends.pop(cluster_id, ("", None))
    if backend is not None:
        backend.close()


def _digest(facts: list[Any]) -> str:
    """A hash of the facts, which contain credentials."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()
