"""What the cache keeps is bounded by what there is, not by what ever was."""

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


class Quiet:
    """A server that has no pods, and tells nothing."""

    def pages(self, _path: str, **_params: str) -> Iterator[Json]:
        yield {"metadata": {"resourceVersion": "1"}, "items": []}

    def watch(self, *_args: Any, **_params: Any) -> Iterator[Json]:
        return iter(())


@pytest.fixture
def cache() -> PodCache:
    made = PodCache(Quiet(), "/pods", "", now)  # type: ignore[arg-type]
    made.close()  # so that it watches nothing by itself
    return made


VERSIONS = itertools.count(2)


def pod(index: int) -> Json:
    key = PodKey("job", "worker", index, 0)
    meta = {"name": key.name, "namespace": "hekla", "uid": f"u{index}", "creationTimestamp": MADE}
    meta["resourceVersion"] = str(next(VERSIONS))
    return {"metadata": {**meta, "labels": names.labels("c1", key)}, "spec": {}, "status": {"phase": "Succeeded"}}


def test_a_process_that_only_watches_keeps_few_of_those_that_are_gone(cache, monkeypatch) -> None:
    monkeypatch.setattr(module, "_MAX_DELETED", 3)
    for index in range(10):
        cache._reflector.handle("ADDED", pod(index))
        cache._reflector.handle("DELETED", pod(index))
    cache._reflector.handle("ADDED", pod(10))
    assert [one.name for one in cache.all()] == [f"job-worker-{index}-0" for index in (7, 8, 9, 10)]


@pytest.mark.parametrize("is_told_first", [True, False])
def test_of_those_that_were_dismissed_and_deleted_nothing_is_kept(cache, is_told_first) -> None:
    for index in range(10):
        cache._reflector.handle("ADDED", pod(index))
        one = cache.find("hekla", f"job-worker-{index}-0")
        assert one is not None
        if is_told_first:
            cache._reflector.handle("DELETED", pod(index))
        cache.dismiss([one])
        if not is_told_first:
            cache._reflector.handle("DELETED", pod(index))
    assert cache.all() == []
    assert not cache._dismissed
