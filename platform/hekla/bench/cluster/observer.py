"""A process that records when pods of a namespace are first seen bound, by the system's monotonic clock.

`python -m hekla.bench.cluster.observer KUBECONFIG NAMESPACE COUNT SELECTOR` prints `ready`. After COUNT binds it prints
one JSON object: for each pod name its job and the time in seconds.
"""

import json
import sys
import time
from pathlib import Path

from hekla.backends.kubernetes import names
from hekla.backends.kubernetes.access import from_kubeconfig
from hekla.backends.kubernetes.api import Api
from hekla.bench.cluster.place import pods_of

READY = "ready"
_SECONDS = 3600


def main(kubeconfig: str, namespace: str, count: str, selector: str) -> int:
    """Watch the pods, and print the binds."""
    api, path = Api(from_kubeconfig(Path(kubeconfig))), pods_of(namespace)
    version = api.get(path, limit=1)["metadata"]["resourceVersion"]
    print(READY, flush=True)
    bound: dict[str, tuple[str, float]] = {}
    for event in api.watch(path, version, seconds=_SECONDS, labelSelector=selector):
        pod, now = event["object"], time.monotonic()
        if event["type"] != "BOOKMARK" and pod["spec"].get("nodeName"):
            meta = pod["metadata"]
            bound.setdefault(meta["name"], (meta.get("labels", {}).get(names.JOB, ""), now))
        if len(bound) >= int(count):
            break
    print(json.dumps(bound), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
