"""A process of its own that starts one pod: says that it is ready, starts at the first line of input, ends at the last.

`python starter.py '{"kind": …, "home": …, "config": …, "index": …, "address": …, "script": …}'`
"""

import json
import sys
from pathlib import Path

from tests.support.pods import start_pod

from hekla.backends.base import PodKey, PodOrder
from hekla.backends.kind import BackendContext
from hekla.backends.registry import open_backend
from hekla.lib.clock import now

if __name__ == "__main__":
    wish = json.loads(sys.argv[1])
    backend = open_backend(wish["kind"], wish["config"], BackendContext("c1", Path(wish["home"]), now))
    print("ready", flush=True)
    sys.stdin.readline()
    order = PodOrder(
        key=PodKey("job", "worker", wish["index"], 0, tenant=wish["tenant"]),
        node=wish["node"],
        address=wish["address"],
        command=("sh", "-c", wish["script"]),
        env={"HEKLA_SIM_SECONDS": "1"},
    )
    start_pod(backend, order)
    print("started", flush=True)
    sys.stdin.read()
