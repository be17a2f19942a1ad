"""The cluster that is measured: namespaces for one measurement each, its machines, and pods that all are alike."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from hekla.backends.base import PodKey, PodOrder
from hekla.backends.kubernetes import access, names
from hekla.backends.kubernetes.api import Api, Json
from hekla.backends.kubernetes.async_client import AsyncClient
from hekla.backends.kubernetes.config import KubernetesConfig
from hekla.backends.kubernetes.manifests import Manifests
from hekla.domain.addresses import Replica
from hekla.domain.resources import Resources
from hekla.launcher.terminal import LaunchRefused

CPU = "100m"
_JOB = uuid4().hex
PATIENCE_SECONDS = 600.0


class Place:
    """One API server, as the current context of a kubeconfig reaches it, by somebody who may do anything there."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig, self._access = kubeconfig, access.from_kubeconfig(kubeconfig)
        self.api, self.client = Api(self._access), AsyncClient(self._access)

    def nodes(self) -> list[str]:
        """The names of its machines. Raises LaunchRefused where there are none."""
        found = [node["metadata"]["name"] for page in self.api.pages("/api/v1/nodes") for node in page["items"]]
        if not found:
            raise LaunchRefused("The cluster has no machines.")
        return found

    def pods(self, namespace: str) -> Iterator[Json]:
        """All that are there now."""
        for page in self.api.pages(pods_of(namespace)):
            yield from page["items"]

    @contextmanager
    def namespace(self, *, is_last: bool = False) -> Iterator[str]:
        """A fresh one, in which pods can be made; it is gone before anything else is measured, if that is to be."""
        name = f"hekla-bench-{uuid4().hex[:8]}"
        self.client.run_all(self._make, [name])
        accounts = f"/api/v1/namespaces/{name}/serviceaccounts"
        until(lambda: bool(self.api.get(accounts)["items"]), "The cluster gives new namespaces no account.")
        try:
            yield name
        finally:
            self.api.delete(f"/api/v1/namespaces/{name}")
            query = {"fieldSelector": f"metadata.name={name}"}
            if not is_last:
                until(lambda: not self.api.get("/api/v1/namespaces", **query)["items"], "A namespace does not go.")

    def make(self, namespace: str, pods: Iterable[Json]) -> None:
        """These pods, many at once."""

        async def make_one(manifest: Json) -> None:
            await self.client.create(pods_of(namespace), manifest)

        self.client.run_all(make_one, pods)

    async def _make(self, namespace: str) -> None:
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def close(self) -> None:
        """Let go of its connections."""
        self.api.close()
        self.client.close()


def pods_of(namespace: str) -> str:
    """Where they are."""
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(index: int, seconds: float, scheduler: str) -> Json:
    """One that is like those that Hekla makes, down to the length of its names, for this scheduler."""
    key = PodKey(job=_JOB, task="worker", index=index, attempt=1, tenant="bench")
    address = names.address_of(Replica(key.job, "bench", key.task, index, slot=0))
    env, requests = {"HEKLA_SIM_SECONDS": f"{seconds:g}"}, Resources.parse({"cpu": CPU})
    order = PodOrder(key, node="", command=("true",), address=address, env=env, image="none", resources=requests)
    made = Manifests("bench", KubernetesConfig()).pod(order)
    made["spec"]["schedulerName"] = scheduler
    return made


def pod_of_others(index: int, gang: int, seconds: float) -> Json:
    """One that an operator might have made for Hekla's scheduler, so many of them for each of its jobs."""
    made = pod(index, seconds, names.SCHEDULER)
    made["metadata"] |= {"labels": {"training.kubeflow.org/job-name": f"job-{index // gang}"}, "annotations": {}}
    return made


def until(holds: Callable[[], bool], otherwise: str) -> None:
    """Ask again and again. Raises LaunchRefused, with these words, where it does not come to hold."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > limit:
            raise LaunchRefused(otherwise)
        time.sleep(0.2)
