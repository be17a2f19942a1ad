"""The schedulers that Hekla is compared with: a binder without logic, and kube-scheduler."""

import itertools
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hekla.backends.kubernetes.api import Json
from hekla.bench.cluster.observing import BindTimes, observed
from hekla.bench.cluster.place import BenchCluster, pod, pods_of, until
from hekla.launcher.embedded.child import spawn
from hekla.launcher.terminal import LaunchRefused

_NOBODY = "hekla-bench"
_DEFAULT = "default-scheduler"
_REQUESTS_PER_SECOND = 5000


def no_logic(place: BenchCluster, pods: int, seconds: float, *, made_before: bool) -> tuple[float, BindTimes]:
    """Bind pods to nodes in turn, with as many requests in flight as Hekla. Returns the start time and the binds."""
    nodes = itertools.cycle(place.nodes())

    async def bind(manifest: Json) -> None:
        meta = {"name": manifest["metadata"]["name"]}
        target = {"apiVersion": "v1", "kind": "Node", "name": next(nodes)}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": meta, "target": target}
        await place.client.create(f"{path}/{meta['name']}/binding", body)

    async def make_and_bind(manifest: Json) -> None:
        await place.client.create(path, manifest)
        await bind(manifest)

    manifests = [pod(index, seconds, _NOBODY) for index in range(pods)]
    with place.namespace() as namespace, observed(place, namespace, pods) as observer:
        path = pods_of(namespace)
        if made_before:
            place.make(namespace, manifests)
        began = time.monotonic()
        place.client.run_all(bind if made_before else make_and_bind, manifests)
        return began, observer.wait()


def kube_scheduler(
    place: BenchCluster, program: Path, pods: int, seconds: float, *, made_before: bool
) -> tuple[float, BindTimes]:
    """Bind with kube-scheduler, without its usual client limits. Returns the start time and the binds.

    `made_before`: the pods exist before it starts; otherwise they are created while it runs.
    """
    manifests = [pod(index, seconds, _DEFAULT) for index in range(pods)]
    if made_before:
        with place.namespace() as namespace, observed(place, namespace, pods) as observer:
            place.make(namespace, manifests)
            began = time.monotonic()
            with _running(place, program):
                return began, observer.wait()
    with _running(place, program), place.namespace() as first:
        place.make(first, manifests[:1])
        until(lambda: all(one["spec"].get("nodeName") for one in place.pods(first)), "kube-scheduler binds nothing.")
        with place.namespace() as namespace, observed(place, namespace, pods) as observer:
            began = time.monotonic()
            place.make(namespace, manifests)
            return began, observer.wait()


@contextmanager
def _running(place: BenchCluster, program: Path) -> Iterator[None]:
    limits = {"qps": _REQUESTS_PER_SECOND, "burst": 2 * _REQUESTS_PER_SECOND}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(place.kubeconfig), **limits},
        "leaderElection": {"leaderElect": False},
        "parallelism": 16,
    }
    with tempfile.TemporaryDirectory(prefix="hekla-bench-") as folder:
        file, log = Path(folder) / "configuration.json", Path(folder) / "log"
        file.write_text(json.dumps(configuration))
        with log.open("wb") as output:
            process = spawn([program, f"--config={file}", "--secure-port=0"], output=output.fileno(), env={})
        try:
            yield
        except LaunchRefused as error:
            raise LaunchRefused(f"{error} kube-scheduler said: {log.read_text()[-500:]}") from error
        finally:
            process.terminate()
            process.wait()
