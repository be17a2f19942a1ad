"""The cluster under test: its nodes, a namespace per measurement, and uniform pods."""

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


class BenchCluster:
    """The cluster of a kubeconfig's current context, with full permissions."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig, self._access = kubeconfig, access.from_kubeconfig(kubeconfig)
        self.api, self.client = Api(self._access), AsyncClient(self._access)

    def nodes(self) -> list[str]:
        """The names of its nodes. Raises LaunchRefused if there are none."""
        found = [node["metadata"]["name"] for page in self.api.pages("/api/v1/nodes") for node in page["items"]]
        if not found:
            raise LaunchRefused("The cluster has no machines.")
        return found

    def pods(self, namespace: str) -> Iterator[Json]:
        """The present pods of a namespace."""
        for page in self.api.pages(pods_of(namespace)):
            yield from page["items"]

    @contextmanager
    def namespace(self, *, is_last: bool = False) -> Iterator[str]:
        """Create a namespace, and delete it afterwards. Waits for the end of the deletion unless it `is_last`."""
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
        """Create these pods, many in parallel."""

        async def make_one(manifest: Json) -> None:
            await self.client.create(pods_of(namespace), manifest)

        self.client.run_all(make_one, pods)

    async def _make(self, namespace: str) -> None:
        await self.client.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def close(self) -> None:
        """Close the connections."""
        self.api.close()
        self.client.close()


def pods_of(namespace: str) -> str:
    """The API path of the pods of a namespace."""
    return f"/api/v1/namespaces/{namespace}/pods"


def pod(index: int, seconds: float, scheduler: str) -> Json:
    """The manifest of a pod for this scheduler, like Hekla's pods, down to the length of the names."""
    key = PodKey(job=_JOB, task="worker", index=index, attempt=1, tenant="bench")
    address = names.address_of(Replica(key.job, "bench", key.task, index, slot=0))
    env, requests = {"HEKLA_SIM_SECONDS": f"{seconds:g}"}, Resources.parse({"cpu": CPU})
    order = PodOrder(key, node="", command=("true",), address=address, env=env, image="none", resources=requests)
    made = Manifests("bench", KubernetesConfig()).pod(order)
    made["spec"]["schedulerName"] = scheduler
    return made


def pod_of_others(index: int, gang: int, seconds: float) -> Json:
    """The manifest of an external pod for Hekla's scheduler, as an operator creates it, with `gang` pods per job."""
    made = pod(index, seconds, names.SCHEDULER)
    made["metadata"] |= {"labels": {"training.kubeflow.org/job-name": f"job-{index // gang}"}, "annotations": {}}
    return made


def until(holds: Callable[[], bool], otherwise: str) -> None:
    """Poll until the condition holds. Raises LaunchRefused with the message `otherwise` after `PATIENCE_SECONDS`."""
    limit = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > limit:
            raise LaunchRefused(otherwise)
        time.sleep(0.2)
