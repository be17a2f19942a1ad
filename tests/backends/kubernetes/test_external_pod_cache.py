"""How a pod of others ended is told for a while after it is deleted, and what is kept for that is bounded."""

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


class Quiet:
    """A server that says what it lists, and tells nothing."""

    def __init__(self) -> None:
        self.items: list[Json] = []

    def pages(self, _path: str, **_params: str) -> Iterator[Json]:
        yield {"metadata": {"resourceVersion": str(next(VERSIONS))}, "items": self.items}

    def watch(self, *_args: Any, **_params: Any) -> Iterator[Json]:
        return iter(())

    def end_watches(self) -> None:
        pass


@pytest.fixture
def server() -> Quiet:
    return Quiet()


@pytest.fixture
def others(server: Quiet) -> Iterator[ExternalPodCache]:
    made = ExternalPodCache(server, "team-a", "hekla", lambda: None)  # type: ignore[arg-type]
    yield made
    made.close()


def pod(uid: str, phase: str, *, is_ending: bool = False) -> Json:
    meta = {"name": uid, "namespace": "team-a", "uid": uid, "creationTimestamp": MADE}
    meta |= {"resourceVersion": str(next(VERSIONS))} | ({"deletionTimestamp": MADE} if is_ending else {})
    return {"metadata": meta, "spec": {"containers": [{"name": "a"}], "nodeName": "n"}, "status": {"phase": phase}}


def told(others: ExternalPodCache) -> dict[str, PodPhase]:
    return {one.uid: one.phase for one in others.all(fresh=False)}


def test_what_ended_by_itself_is_told_though_it_is_deleted(others) -> None:
    others.all(fresh=True)
    for uid, phase in (("a", "Succeeded"), ("b", "Failed")):
        others._reflector.handle("MODIFIED", pod(uid, phase))
        others._reflector.handle("MODIFIED", pod(uid, phase, is_ending=True))
        others._reflector.handle("DELETED", pod(uid, phase, is_ending=True))
    assert told(others) == {"a": PodPhase.SUCCEEDED, "b": PodPhase.FAILED}


def test_what_was_told_to_end_is_gone_unless_it_succeeded(others) -> None:
    others.all(fresh=True)
    others._reflector.handle("DELETED", pod("a", "Running"))
    for uid, phase in (("b", "Failed"), ("c", "Succeeded")):
        others._reflector.handle("MODIFIED", pod(uid, "Running", is_ending=True))
        others._reflector.handle("MODIFIED", pod(uid, phase, is_ending=True))
        others._reflector.handle("DELETED", pod(uid, phase, is_ending=True))
    assert told(others) == {"c": PodPhase.SUCCEEDED}


def test_an_end_that_was_heard_is_told_also_where_the_watch_missed_the_deletion(others, server) -> None:
    others.all(fresh=True)
    others._reflector.handle("MODIFIED", pod("a", "Succeeded"))
    others._reflector.handle("MODIFIED", pod("b", "Running"))
    assert {one.uid for one in others.all(fresh=True)} == {"a"}


def test_of_those_that_are_gone_only_the_last_are_told_and_not_for_ever(server, monkeypatch) -> None:
    monkeypatch.setattr(module, "_MAX_ENDS", 2)
    others = ExternalPodCache(server, "team-a", "hekla", lambda: None)
    others.all(fresh=True)
    for uid in "abc":
        others._reflector.handle("DELETED", pod(uid, "Succeeded"))
    assert list(told(others)) == ["b", "c"]
    monkeypatch.setattr(module, "_ENDS_REPORTED_SECONDS", -1.0)
    assert told(others) == {}
    others.close()
