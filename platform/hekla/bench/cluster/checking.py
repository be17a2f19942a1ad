"""Checks the binds: no node is over-committed, and each job is bound completely or not at all."""

from collections import defaultdict

from hekla.backends.kubernetes import names
from hekla.bench.cluster.place import BenchCluster
from hekla.domain.resources import Resources
from hekla.launcher.terminal import LaunchRefused


def check(place: BenchCluster, namespace: str) -> None:
    """Raises LaunchRefused if the binds are invalid, because the measurement is then invalid too."""
    held: dict[str, Resources] = defaultdict(Resources)
    bound: dict[str, set[bool]] = defaultdict(set)
    for pod in place.pods(namespace):
        node = pod["spec"].get("nodeName", "")
        bound[pod["metadata"]["labels"][names.JOB]].add(bool(node))
        held[node] += Resources.parse(pod["spec"]["containers"][0]["resources"]["requests"]) + Resources({"pods": 1})
    if half := [job for job, found in bound.items() if len(found) > 1]:
        raise LaunchRefused(f"Of the job {half[0]} only some pods are bound.")
    for page in place.api.pages("/api/v1/nodes"):
        for node in page["items"]:
            room = Resources.parse({name: node["status"]["allocatable"][name] for name in ("cpu", "pods")})
            if not held[node["metadata"]["name"]].fits_in(room):
                raise LaunchRefused(f"The machine {node['metadata']['name']} holds more than it has.")
