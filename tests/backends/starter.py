"""Starts one pod, from one or several processes at once.

`python starter.py '{"kind": …, "home": …, "config": …, "index": …, "address": …, "script": …, "times": …}'` prints
"ready", starts the pod at the first line of input, prints "started" for each process, and ends at the end of input. The
others are its forks: to import the backends takes a second.
"""

import json
import multiprocessing
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.pods import start_pod

from hekla.backends.base import PodKey, PodOrder
from hekla.backends.kind import BackendContext
from hekla.backends.registry import open_backend
from hekla.lib.clock import now


def start(fields: dict[str, Any], wait: Callable[[], object]) -> None:
    """Start the pod with a backend of this process. `wait`: for the others, with the backend open."""
    backend = open_backend(fields["kind"], fields["config"], BackendContext("c1", Path(fields["home"]), now))
    wait()
    order = PodOrder(
        key=PodKey("job", "worker", fields["index"], 0, tenant=fields["tenant"]),
        node=fields["node"],
        address=fields["address"],
        command=("sh", "-c", fields["script"]),
        env={"HEKLA_SIM_SECONDS": "1"},
    )
    start_pod(backend, order)


def main(fields: dict[str, Any]) -> None:
    """Start the pod in this process and in forks, at the first line of input."""
    forks = multiprocessing.get_context("fork")
    go = forks.Barrier(fields["times"])
    others = [forks.Process(target=start, args=(fields, go.wait)) for _ in range(fields["times"] - 1)]
    for other in others:
        other.start()

    def wait() -> None:
        print("ready", flush=True)
        sys.stdin.readline()
        go.wait()

    start(fields, wait)
    print("started", flush=True)
    for other in others:
        other.join()
        print("started" if other.exitcode == 0 else other.exitcode, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
