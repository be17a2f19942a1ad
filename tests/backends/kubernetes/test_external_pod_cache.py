"""Ends of deleted external pods are reported for a while, and only a limited number of them."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from hekla.backends.kubernetes import external_pod_cache as module
from hekla.backends.kubernetes.api import Json
from hekla.backends.kubernetes.external_pod_cache import ExternalPodCache
from hekla.domain.phases import PodPhase

MADE = "2026-03-01T10:00:00Z"
VERSIONS = itertools.count(2)


class QuietServer:
    """A server with a list of pods and without watch events."""

    def __init__(self) -> None:
        self.items: list[Json] = []

    def pages(self, _path: str, **_params: str) -> Iterator[Json]:
        yield {"metadata": {"resourceVersion": str(next(VERSIONS))}, "items": self.items}

    def watch(self, *_args: Any, **_params: Any) -> Iterator[Json]:
        return iter(())

    def end_watches(self) -> None:
        pass


@pytest.fixture
def server() -> QuietServer:
    return QuietServer()


@pytest.fixture
def cache(server: QuietServer) -> Iterator[ExternalPodCache]:
    made = ExternalPodCache(server, "team-a", "hekla", lambda: None)  # type: ignore[arg-type]
    yield made
    made.close()


def pod(uid: str, phase: str, *, is_ending: bool = False) -> Json:
    meta = {"name": uid, "namespace": "team-a", "uid": uid, "creationTimestamp": MADE}
    meta |= {"resourceVersion": str(next(VERSIONS))} | ({"deletionTimestamp": MADE} if is_ending else {})
    return {"metadata": meta, "spec": {"containers": [{"name": "a"}], "nodeName": "n"}, "status": {"phase": phase}}


def phases(cache: ExternalPodCache) -> dict[str, PodPhase]:
    return {one.uid: one.phase for one in cache.all(fresh=False)}


def test_end_of_a_deleted_pod_is_reported_if_it_ended_by_itself(cache) -> None:
    cache.all(fresh=True)
    for uid, phase in (("a", "Succeeded"), ("b", "Failed")):
        cache._reflector.handle("MODIFIED", pod(uid, phase))
        cache._reflector.handle("MODIFIED", pod(uid, phase, is_ending=True))
        cache._reflector.handle("DELETED", pod(uid, phase, is_ending=True))
    assert phases(cache) == {"a": PodPhase.SUCCEEDED, "b": PodPhase.FAILED}


def test_pod_that_failed_after_its_deletion_is_not_reported(cache) -> None:
    cache.all(fresh=True)
    cache._reflector.handle("DELETED", pod("a", "Running"))
    for uid, phase in (("b", "Failed"), ("c", "Succeeded")):
        cache._reflector.handle("MODIFIED", pod(uid, "Running", is_ending=True))
        cache._reflector.handle("MODIFIED", pod(uid, phase, is_ending=True))
        cache._reflector.handle("DELETED", pod(uid, phase, is_ending=True))
    assert phases(cache) == {"c": PodPhase.SUCCEEDED}


def test_failure_by_a_deletion_does_not_count_while_the_pod_exists(cache, server) -> None:
    server.items = [pod("listed", "Failed", is_ending=True), pod("failed", "Failed")]
    cache.all(fresh=True)
    for uid, before in (("a", "Pending"), ("b", "Running"), ("c", "Failed")):
        cache._reflector.handle("MODIFIED", pod(uid, before))
    for uid in ("a", "b", "c", "failed"):
        cache._reflector.handle("MODIFIED", pod(uid, "Failed", is_ending=True))
    assert phases(cache) == {
        "listed": PodPhase.RUNNING,
        "failed": PodPhase.FAILED,
        "a": PodPhase.PREPARING,
        "b": PodPhase.RUNNING,
        "c": PodPhase.FAILED,
    }


def test_known_end_is_reported_even_if_the_watch_missed_the_deletion(cache, server) -> None:
    cache.all(fresh=True)
    cache._reflector.handle("MODIFIED", pod("a", "Succeeded"))
    cache._reflector.handle("MODIFIED", pod("b", "Running"))
    assert {one.uid for one in cache.all(fresh=True)} == {"a"}


def test_only_the_last_ends_are_reported_and_only_for_a_time(server, monkeypatch) -> None:
    monkeypatch.setattr(module, "_MAX_ENDS", 2)
    cache = ExternalPodCache(server, "team-a", "hekla", lambda: None)
    cache.all(fresh=True)
    for uid in "abc":
        cache._reflector.handle("DELETED", pod(uid, "Succeeded"))
    assert list(phases(cache)) == ["b", "c"]
    monkeypatch.setattr(module, "_ENDS_REPORTED_SECONDS", -1.0)
    assert phases(cache) == {}
    cache.close()
