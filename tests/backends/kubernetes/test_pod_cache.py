"""However the watch is cut, the cache comes to be what a fresh list says, and nothing that ended is told of no more."""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import pytest
import yaml
from tests.kubernetes.control_plane import ControlPlane

from hekla.backends.base import BackendError, PodKey
from hekla.backends.kubernetes import access, names
from hekla.backends.kubernetes.api import GONE, Api, ApiError, Json
from hekla.backends.kubernetes.pod_cache import PodCache
from hekla.domain.phases import PodPhase
from hekla.lib.clock import now

CUTS = int(os.environ.get("HEKLA_CUTS", "150"))
_MANY = 30
OURS = names.selector({names.CLUSTER: "c1"})


class Broken(Api):
    """An API whose watches break in every way that a watch can, after a few events each."""

    def __init__(self, found: access.Access, seed: int) -> None:
        super().__init__(found)
        self._dice, self.cuts, self.is_whole = random.Random(seed), 0, False
        self._told: list[Json] = []

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
            self._told.append(event)
            yield event

    def _repeated(self) -> Iterator[Json]:
        """A server that was put back tells again what it told before."""
        if self._told and self._dice.random() < 0.2:
            yield from self._told[-3:]

    def _break(self) -> None:
        """Quietly, by an error of the line, by one of the server, or because it has forgotten the version."""
        errors: list[Exception | None] = [
            None,
            BackendError("The API server does not answer"),
            ApiError(500, "InternalError", "etcd is away"),
            ApiError(GONE, "Expired", "too old resource version"),
        ]
        if error := self._dice.choice(errors):
            raise error


def reached(plane: ControlPlane, folder: Path) -> access.Access:
    """As the admin, by a kubeconfig."""
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(plane.kubeconfig()))
    return access.from_kubeconfig(path)


@pytest.fixture
def found(control_plane: ControlPlane, tmp_path: Path) -> access.Access:
    return reached(control_plane, tmp_path)


def pod(index: int) -> Json:
    """One that nobody binds."""
    key = PodKey("job", "worker", index, 0)
    spec = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "none"}]}
    return {"metadata": {"name": key.name, "labels": names.labels("c1", key)}, "spec": spec}


class People:
    """What others do to pods meanwhile, by their own line to the server."""

    def __init__(self, plane: ControlPlane, namespace: str, seed: int) -> None:
        self._plane, self._place, self._dice = plane, f"/api/v1/namespaces/{namespace}/pods", random.Random(seed)
        self._count, self.there, self.deleted = 0, [], set()  # type: ignore[var-annotated]

    def act(self) -> None:
        grow = self.make if len(self.there) < _MANY else self.delete
        do: Callable[[], None] = self._dice.choice([grow, self.make, self._change, self._remake, self.delete])
        do()

    def do_some(self, times: int, turn: Lock) -> None:
        """Once it is their turn."""
        with turn:
            for _time in range(times):
                self.act()

    def make(self) -> None:
        made = self._plane.request("POST", self._place, pod(self._count))
        self._count += 1
        self.there.append(made["metadata"]["name"])

    def _change(self) -> None:
        if self.there:
            change = {"metadata": {"annotations": {"touched": str(self._dice.random())}}}
            path = f"{self._place}/{self._dice.choice(self.there)}"
            self._plane.request("PATCH", path, change, content_type="application/merge-patch+json")

    def delete(self) -> None:
        if self.there:
            name = self.there.pop(self._dice.randrange(len(self.there)))
            self._plane.request("DELETE", f"{self._place}/{name}", {"gracePeriodSeconds": 0})
            self.deleted.add(name)

    def _remake(self) -> None:
        """Another pod of the same name."""
        if self.there:
            name = self._dice.choice(self.there)
            self._plane.request("DELETE", f"{self._place}/{name}", {"gracePeriodSeconds": 0})
            self._plane.request("POST", self._place, pod(int(name.split("-")[-2])))


def test_a_watch_that_is_cut_in_every_way_misses_nothing(found, control_plane, namespace, monkeypatch) -> None:
    monkeypatch.setattr("hekla.backends.kubernetes.reflector._PAUSES", (0.001,))
    api, people = Broken(found, seed=5), People(control_plane, namespace, seed=7)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", OURS, now)
    _, cursor = cache.list_now()
    seen: dict[str, Any] = {}
    give_up_at = time.monotonic() + 300
    while api.cuts < CUTS:
        assert time.monotonic() < give_up_at, f"only {api.cuts} cuts"
        people.act()
        told = cache.since(cursor)
        pods, cursor = told if told is not None else cache.list_now()
        seen |= {one.name: one for one in pods}
    api.is_whole = True
    compare(cache, control_plane, namespace)
    told = cache.since(cursor)
    pods, _ = told if told is not None else cache.list_now()
    seen |= {one.name: one for one in pods}
    assert {name for name, one in seen.items() if not one.is_deleted} == set(people.there)
    gone = {name: one for name, one in seen.items() if one.is_deleted}
    assert set(gone) <= people.deleted
    assert {one.observation.phase for one in gone.values()} <= {PodPhase.LOST}
    cache.close()
    api.close()


def compare(cache: PodCache, plane: ControlPlane, namespace: str) -> None:
    """What the cache comes to hold by watching alone is what a fresh list holds."""
    listed = plane.request("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
    found = [one["metadata"] for one in listed]
    fresh = {one["name"]: (one["uid"], int(one["resourceVersion"])) for one in found}
    give_up_at = time.monotonic() + 30
    while (held := {one.name: (one.uid, one.version) for one in cache.all() if not one.is_deleted}) != fresh:
        assert time.monotonic() < give_up_at, (held, fresh)
        time.sleep(0.002)


def test_what_was_dismissed_is_told_of_no_more(found, control_plane, namespace) -> None:
    api = Api(found)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", OURS, now)
    people = People(control_plane, namespace, seed=1)
    people.make()
    (one,), _ = cache.list_now()
    people.delete()
    cache.dismiss([one])
    assert cache.list_now()[0] == []
    assert cache.find(namespace, one.name) is None
    cache.close()
    api.close()


def test_the_api_server_is_killed_and_comes_back(mortal_control_plane, tmp_path) -> None:
    api = Api(reached(mortal_control_plane, tmp_path))
    cache = PodCache(api, "/api/v1/namespaces/default/pods", OURS, now)
    people = People(mortal_control_plane, "default", seed=1)
    people.make()
    cache.list_now()
    cache.wait(0.1)
    mortal_control_plane.kill_api_server()
    with pytest.raises(BackendError):
        cache.list_now()
    mortal_control_plane.start_api_server()
    people.make()
    people.delete()
    compare(cache, mortal_control_plane, "default")
    cache.close()
    api.close()


def test_a_store_that_is_put_back_to_an_earlier_day_is_believed(mortal_control_plane, tmp_path) -> None:
    """Pods of which newer versions were known, some that were deleted since, and none of those made since."""
    api, people = Api(reached(mortal_control_plane, tmp_path)), People(mortal_control_plane, "default", seed=2)
    cache = PodCache(api, "/api/v1/namespaces/default/pods", OURS, now)
    for _ in range(4):
        people.make()
    cache.list_now()
    before = {one.name: one.version for one in cache.all()}
    mortal_control_plane.back_up_store()
    for _ in range(20):
        people.act()
    cache.list_now()
    known = {one.name: one.version for one in cache.known()}
    assert any(known.get(name, version) > version for name, version in before.items())
    mortal_control_plane.restore_store()
    mortal_control_plane.wait_until(lambda: {one.name: one.version for one in cache.known()} == before, 60)
    people.make()
    compare(cache, mortal_control_plane, "default")
    cache.close()
    api.close()


def test_no_letter_that_a_person_writes_stops_the_watch(found, control_plane, namespace) -> None:
    """Some letters end a line of text, but not one of a watch."""
    api = Api(found)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", OURS, now)
    cache.list_now()
    people = People(control_plane, namespace, seed=1)
    odd = pod(99)
    odd["spec"]["containers"][0]["env"] = [{"name": "A", "value": "\x85 \u2028 \x0b \x1c"}]
    control_plane.request("POST", people._place, odd)
    people.make()
    compare(cache, control_plane, namespace)
    cache.close()
    api.close()


def test_the_watch_goes_on_after_an_object_that_nobody_understands(
    found, control_plane, namespace, monkeypatch
) -> None:
    api, odd = Api(found), [{"type": "MODIFIED", "object": {"metadata": {"resourceVersion": "odd"}}}]
    watch = api.watch
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", OURS, now)
    monkeypatch.setattr(api, "watch", lambda *one, **more: iter([odd.pop()]) if odd else watch(*one, **more))
    cache.list_now()
    People(control_plane, namespace, seed=1).make()
    compare(cache, control_plane, namespace)
    cache.close()
    api.close()


def test_whoever_watches_ends_its_own_connection_when_the_cache_is_closed(found, control_plane, namespace) -> None:
    """Closed under it, the connection's number would come to be another's, from which the watch would read."""
    api = Api(found)
    cache = PodCache(api, f"/api/v1/namespaces/{namespace}/pods", OURS, now)
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
