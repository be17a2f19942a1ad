"""The pod cache equals a fresh list however its watch is interrupted, and reports no pod after its dismissal."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import yaml
from tests.kubernetes.control_plane import ControlPlane
from tests.support.examples import examples

from hekla.backends.base import BackendError, PodKey
from hekla.backends.kubernetes import access, names
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.domain.phases import PodPhase
from hekla.lib.clock import now

CUTS = examples(500)
_MANY = 30
SELECTOR = names.selector({names.CLUSTER: "c1"})


class BrokenApi(Api):
    """An API whose watches break in every way, after a few events each."""

    def __init__(self, found: access.Access, seed: int) -> None:
        super().__init__(found)
        self._dice, self.cuts, self.is_whole = random.Random(seed), 0, False
        self._events: list[Json] = []

    def watch(self, path: str, version: str, *, seconds: int, **params: str | int) -> Iterator[Json]:
        if self.is_whole:
            yield from super().watch(path, version, seconds=seconds, **params)
            return
        self.cuts += 1
        left = self._dice.randrange(4)
        yield from self._repeated()
        for event in super().watch(path, version, seconds=1, **params):
            if not left:
                self._break()
                return
            left -= 1
            self._events.append(event)
            yield event

    def _repeated(self) -> Iterator[Json]:
        """A restored server sends earlier events again."""
        if self._events and self._dice.random() < 0.2:
            yield from self._events[-3:]

    def _break(self) -> None:
        """Ends quietly, by a connection error, by a server error, or because the version has expired."""
        errors: list[Exception | None] = [
            None,
            BackendError("The API server does not answer"),
            ApiError(500, "InternalError", "etcd is away"),
            ApiError(GONE, "Expired", "too old resource version"),
        ]
        if error := self._dice.choice(errors):
            raise error


def admin_access(plane: ControlPlane, folder: Path) -> access.Access:
    """Access as the admin, by a kubeconfig."""
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(plane.kubeconfig()))
    return access.from_kubeconfig(path)


@pytest.fixture
def found(control_plane: ControlPlane, tmp_path: Path) -> access.Access:
    return admin_access(control_plane, tmp_path)


@pytest.fixture
def own_plane(disposable_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    """The control plane of this module; its namespace `default` has no pods."""
    yield disposable_control_plane
    disposable_control_plane.request("DELETE", "/api/v1/namespaces/default/pods?gracePeriodSeconds=0")


def pod(index: int) -> Json:
    """A pod that is never bound."""
    key = PodKey("job", "worker", index, 0)
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": key.name, "labels": names.labels("c1", key)}, "spec": spec}


class PodWriter:
    """Changes pods directly at the API server."""

    def __init__(self, plane: ControlPlane, namespace: str, seed: int) -> None:
        self._plane, self._path, self._dice = plane, f"/api/v1/namespaces/{namespace}/pods", random.Random(seed)
        self._count, self.names, self.deleted = 0, [], set()  # type: ignore[var-annotated]

    def act(self) -> None:
        grow = self.create if len(self.names) < _MANY else self.delete
        do: Callable[[], None] = self._dice.choice([grow, self.create, self._change, self._recreate, self.delete])
        do()

    def do_some(self, times: int, lock: Lock) -> None:
        """Acts this many times, once the lock is free."""
        with lock:
            for _time in range(times):
                self.act()

    def create(self) -> None:
        made = self._plane.request("POST", self._path, pod(self._count))
        self._count += 1
        self.names.append(made["metadata"]["name"])

    def _change(self) -> None:
        if self.names:
            change = {"metadata": {"annotations": {"touched": str(self._dice.random())}}}
            path = f"{self._path}/{self._dice.choice(self.names)}"
            self._plane.request("PATCH", path, change, content_type="application/merge-patch+json")

    def delete(self) -> None:
        if self.names:
            name = self.names.pop(self._dice.randrange(len(self.names)))
            self._plane.request("DELETE", f"{self._path}/{name}", {"gracePeriodSeconds": 0})
            self.deleted.add(name)

    def _recreate(self) -> None:
        """Replaces a pod by another one of the same name."""
        if self.names:
            name = self._dice.choice(self.names)
            self._plane.request("DELETE", f"{self._path}/{name}", {"gracePeriodSeconds": 0})
            self._plane.request("POST", self._path, pod(int(name.split("-")[-2])))


def test_cache_misses_nothing_however_its_watch_breaks(found, control_plane, namespace, monkeypatch) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.001,))
    api, writer = BrokenApi(found, seed=5), PodWriter(control_plane, namespace, seed=7)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", SELECTOR, now)
    _, cursor = cache.list_now()
    reported: dict[str, Any] = {}
    give_up_at = time.monotonic() + 300
    while api.cuts < CUTS:
        assert time.monotonic() < give_up_at, f"only {api.cuts} cuts"
        writer.act()
        changes = cache.since(cursor)
        pods, cursor = changes if changes is not None else cache.list_now()
        reported |= {one.name: one for one in pods}
    api.is_whole = True
    assert_equals_fresh_list(cache, control_plane, namespace)
    changes = cache.since(cursor)
    pods, _ = changes if changes is not None else cache.list_now()
    reported |= {one.name: one for one in pods}
    assert {name for name, one in reported.items() if not one.is_deleted} == set(writer.names)
    gone = {name: one for name, one in reported.items() if one.is_deleted}
    assert set(gone) <= writer.deleted
    assert {one.observation.phase for one in gone.values()} <= {PodPhase.LOST}
    cache.close()
    api.close()


def assert_equals_fresh_list(cache: PodCache, plane: ControlPlane, namespace: str) -> None:
    """Waits until the cache, by watching alone, equals a fresh list."""
    listed = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    found = [one["metadata"] for one in listed]
    fresh = {one["name"]: (one["uid"], int(one["resourceVersion"])) for one in found}
    give_up_at = time.monotonic() + 60
    while (held := {one.name: (one.uid, one.version) for one in cache.all() if not one.is_deleted}) != fresh:
        assert time.monotonic() < give_up_at, (held, fresh)
        time.sleep(0.002)


def test_dismissed_pod_is_not_reported_again(found, control_plane, namespace) -> None:
    api = Api(found)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", SELECTOR, now)
    writer = PodWriter(control_plane, namespace, seed=1)
    writer.create()
    (one,), _ = cache.list_now()
    writer.delete()
    cache.dismiss([one])
    assert cache.list_now()[0] == []
    assert cache.find(namespace, one.name) is None
    cache.close()
    api.close()


def test_cache_recovers_after_the_api_server_is_killed(own_plane, tmp_path) -> None:
    api = Api(admin_access(own_plane, tmp_path))
    cache = PodCache(api, "/api/v1/namespaces/default/pods", SELECTOR, now)
    writer = PodWriter(own_plane, "default", seed=1)
    writer.create()
    cache.list_now()
    cache.wait(0.1)
    own_plane.kill_api_server()
    with pytest.raises(BackendError):
        cache.list_now()
    own_plane.start_api_server()
    writer.create()
    writer.delete()
    assert_equals_fresh_list(cache, own_plane, "default")
    cache.close()
    api.close()


@pytest.mark.thorough
def test_cache_follows_a_restored_store(own_plane, tmp_path) -> None:
    """The cache knows newer versions of pods, deleted ones and new ones, which the restored store does not have."""
    api, writer = Api(admin_access(own_plane, tmp_path)), PodWriter(own_plane, "default", seed=2)
    cache = PodCache(api, "/api/v1/namespaces/default/pods", SELECTOR, now)
    for _ in range(4):
        writer.create()
    cache.list_now()
    before = {one.name: one.version for one in cache.all()}
    own_plane.back_up_store()
    for _ in range(20):
        writer.act()
    assert_equals_fresh_list(cache, own_plane, "default")
    known = {one.name: one.version for one in cache.known()}
    assert any(known.get(name, version) > version for name, version in before.items())
    own_plane.restore_store()
    own_plane.wait_until(lambda: {one.name: one.version for one in cache.known()} == before, 60)
    writer.create()
    assert_equals_fresh_list(cache, own_plane, "default")
    cache.close()
    api.close()


def test_unusual_line_separators_do_not_stop_the_watch(found, control_plane, namespace) -> None:
    """Some characters end a line of text, but not a line of the watch."""
    api = Api(found)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", SELECTOR, now)
    cache.list_now()
    writer = PodWriter(control_plane, namespace, seed=1)
    odd = pod(99)
    odd["spec"]["containers"][0]["env"] = [{"name": "A", "value": "\x85 \u2028 \x0b \x1c"}]
    control_plane.request("POST", writer._path, odd)
    writer.create()
    assert_equals_fresh_list(cache, control_plane, namespace)
    cache.close()
    api.close()


def test_watch_continues_after_an_invalid_object(found, control_plane, namespace, monkeypatch) -> None:
    api, odd = Api(found), [{"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "odd"}}}]
    watch = api.watch
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", SELECTOR, now)
    monkeypatch.setattr(api, "watch", lambda *one, **more: iter([odd.pop()]) if odd else watch(*one, **more))
    cache.list_now()
    PodWriter(control_plane, namespace, seed=1).create()
    assert_equals_fresh_list(cache, control_plane, namespace)
    cache.close()
    api.close()


def test_watch_thread_closes_its_own_connection(found, control_plane, namespace) -> None:
    """If another thread closed it, the file descriptor could be reused, and the watch would read from the new owner."""
    api = Api(found)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", SELECTOR, now)
    cache.list_now()
    give_up_at = time.monotonic() + 30
    while not api._watches:
        assert time.monotonic() < give_up_at
        time.sleep(0.01)
    thread = cache._reflector._thread
    cache.close()
    thread.join(30)
    assert not thread.is_alive()
    assert not api._watches
    api.close()
