"""A process that starts one pod: it prints "ready", starts at the first line of input, and ends at the end of input.

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
    fields = json.loads(sys.argv[1])
    backend = open_backend(fields["kind"], fields["config"], BackendContext("c1", Path(fields["home"]), now))
    print("ready", flush=True)
    sys.stdin.readline()
    order = PodOrder(
        key=PodKey("job", "worker", fields["index"], 0, tenant=fields["tenant"]),
        node=fields["node"],
        address=fields["address"],
        command=("sh", "-c", fields["script"]),
        env={"HEKLA_SIM_SECONDS": "1"},
    )
    start_pod(backend, order)
    print("started", flush=True)
    sys.stdin.read()
