"""The shared parts of a Kubernetes backend: one of each, however many threads need it first."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hekla.backends.kind import BackendContext
from hekla.backends.kubernetes import parts as module
from hekla.backends.kubernetes.access import Access, from_key
from hekla.backends.kubernetes.backend import KubernetesBackend
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.keys import ClusterKey
from hekla.backends.kubernetes.volcano import VolcanoBackend
from hekla.lib import clock

_THREADS = 8
_SHARED = ("access", "api", "client", "cache", "locator", "tenant_namespaces", "pod_creation", "pod_deletion")


def sign_in(*_args: object) -> Access:
    """Takes long enough for every thread to arrive."""
    time.sleep(0.05)
    return from_key(ClusterKey("https://127.0.0.1:1"))


def open_kubernetes(home: Path, name: str = "c") -> KubernetesBackend:
    return KubernetesBackend(KubernetesConfig(), BackendContext(name, home, clock.now, None))


def read_at_once(read: Callable[[], object]) -> list[object]:
    """What threads get that all read at the same moment."""
    barrier = threading.Barrier(_THREADS)

    def run(_number: int) -> object:
        barrier.wait(10)
        return read()

    with ThreadPoolExecutor(_THREADS) as pool:
        return list(pool.map(run, range(_THREADS)))


@pytest.mark.parametrize("name", _SHARED)
def test_threads_share_each_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(module.access, "find", sign_in)
    parts = open_kubernetes(tmp_path).parts
    assert len(set(map(id, read_at_once(lambda: getattr(parts, name))))) == 1
    parts.close()


@pytest.mark.parametrize(
    ("kind", "facet"), [(KubernetesBackend, "runner"), (KubernetesBackend, "tenancy"), (VolcanoBackend, "delegated")]
)
def test_threads_share_each_facet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, facet: str) -> None:
    backend = kind(KubernetesConfig(), BackendContext("c", tmp_path, clock.now, None))
    slow, kind_of_facet = threading.Event(), type(getattr(backend, facet))
    made = kind(KubernetesConfig(), BackendContext("c", tmp_path, clock.now, None))
    create = kind_of_facet.__init__

    def create_slowly(self: object, parts: object) -> None:
        slow.wait(0.05)
        create(self, parts)

    monkeypatch.setattr(kind_of_facet, "__init__", create_slowly)
    assert len(set(map(id, read_at_once(lambda: getattr(made, facet))))) == 1


def test_failed_sign_in_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes: list[Exception | Access] = [module.access.keys.KeyRefused("no"), sign_in()]

    def find(*_args: object) -> Access:
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(module.access, "find", find)
    parts = open_kubernetes(tmp_path).parts
    with pytest.raises(module.access.keys.KeyRefused):
        parts.access  # noqa: B018
    assert parts.access is parts.access


def test_slow_sign_in_of_one_cluster_delays_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_answer, is_waiting = threading.Event(), threading.Event()
    slow, quick = open_kubernetes(tmp_path / "slow"), open_kubernetes(tmp_path / "quick")

    def find(home: Path, *_args: object) -> Access:
        if home.name == "slow":
            is_waiting.set()
            assert may_answer.wait(30)
        return sign_in()

    monkeypatch.setattr(module.access, "find", find)
    with ThreadPoolExecutor(2) as pool:
        slow_api = pool.submit(lambda: slow.parts.api)
        assert is_waiting.wait(10)
        try:
            assert pool.submit(lambda: quick.parts.api).result(10)
        finally:
            may_answer.set()
        assert slow_api.result(10)
