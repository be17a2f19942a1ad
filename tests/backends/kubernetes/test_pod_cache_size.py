"""The size of the pod cache is bounded by the existing pods, not by all that ever existed."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from hekla.backends.base import PodKey
from hekla.backends.kubernetes import names
from hekla.backends.kubernetes import pod_cache as module
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.lib.clock import now

MADE = "2026-03-01T10:00:00Z"


class QuietServer:
    """A server without pods and without watch events."""

    def pages(self, _path: str, **_params: str) -> Iterator[Json]:
        yield {"metadata": {"resourceVersion": "1"}, "items": []}

    def watch(self, *_args: Any, **_params: Any) -> Iterator[Json]:
        return iter(())


@pytest.fixture
def cache() -> PodCache:
    made = PodCache(QuietServer(), "/pods", "", now)  # type: ignore[arg-type]
    made.close()  # without a watch thread
    return made


VERSIONS = itertools.count(2)


def pod(index: int) -> Json:
    key = PodKey("job", "worker", index, 0)
    meta = {"name": key.name, "namespace": "hekla", "uid": f"u{index}", "creationTimestamp": MADE}
    meta["resourceVersion"] = str(next(VERSIONS))
    return {"metadata": {**meta, "labels": names.labels("c1", key)}, "spec": {}, "status": {"phase": "Succeeded"}}


def test_watching_process_keeps_few_deleted_pods(cache, monkeypatch) -> None:
    monkeypatch.setattr(module, "_MAX_DELETED", 3)
    for index in range(10):
        cache._reflector.handle("ADDED", pod(index))
        cache._reflector.handle("DELETED", pod(index))
    cache._reflector.handle("ADDED", pod(10))
    assert [one.name for one in cache.all()] == [f"job-worker-{index}-0" for index in (7, 8, 9, 10)]


@pytest.mark.parametrize("is_deleted_first", [True, False])
def test_dismissed_and_deleted_pods_are_dropped(cache, is_deleted_first) -> None:
    for index in range(10):
        cache._reflector.handle("ADDED", pod(index))
        one = cache.find("hekla", f"job-worker-{index}-0")
        assert one is not None
        if is_deleted_first:
            cache._reflector.handle("DELETED", pod(index))
        cache.dismiss([one])
        if not is_deleted_first:
            cache._reflector.handle("DELETED", pod(index))
    assert cache.all() == []
    assert not cache._dismissed
