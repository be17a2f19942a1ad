"""The measurements of Hekla on a cluster: a flood of jobs, a steady flow, and a restart of the controller."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hekla.bench.cluster.checking import check
from hekla.bench.cluster.console import BenchConsole, until_quiet
from hekla.bench.cluster.load import FOR_EVER, fill
from hekla.bench.cluster.observing import BindTimes, observed, percentiles
from hekla.bench.cluster.place import BenchCluster, pod_of_others

_WARM_UP_SECONDS = 10.0
Flood = tuple[float, BindTimes, dict[str, Any]]
"""The start of the controller, the binds, and the cost (CPU, writes per pod)."""


@contextmanager
def _queue(place: BenchCluster, console: BenchConsole, *, is_last: bool = False, adopts: bool = False) -> Iterator[str]:
    """Create a namespace, a cluster and a queue with the same name."""
    with place.namespace(is_last=is_last) as namespace, console.cluster(namespace, adopts=adopts):
        yield namespace


def flood(
    place: BenchCluster, console: BenchConsole, *, jobs: int, gang: int, seconds: float
) -> tuple[float, BindTimes, dict[str, Any]]:
    """Submit all jobs before the controller starts. Its writes are counted until the last pod is deleted."""
    with _queue(place, console) as queue:
        for _job in range(jobs):
            console.submit(queue, gang, seconds)
        with observed(place, queue, jobs * gang) as observer, console.at_work() as controller:
            bound = observer.wait()
            check(place, queue)
            facts = {"cpu_seconds": round(controller.cpu_seconds(), 1)}
            until_quiet(place, queue)
            writes = {name: round(count / (jobs * gang), 3) for name, count in sorted(controller.writes().items())}
        return controller.began, bound, {**facts, "writes_per_pod": writes}


def bind_external_pods(
    place: BenchCluster, console: BenchConsole, *, jobs: int, gang: int, seconds: float
) -> tuple[float, BindTimes]:
    """Let Hekla bind the same number of external pods, created before the controller starts."""
    with _queue(place, console, adopts=True) as queue, observed(place, queue, jobs * gang) as observer:
        place.make(queue, (pod_of_others(index, gang, seconds) for index in range(jobs * gang)))
        with console.at_work() as controller:
            return controller.began, observer.wait()


def steady_flow(
    place: BenchCluster, console: BenchConsole, *, jobs: int, gang: int, per_second: float
) -> dict[str, float]:
    """Percentiles of the milliseconds from submission to bind, per pod, at `per_second` submissions."""
    with _queue(place, console) as queue:
        with observed(place, queue, (jobs + 1) * gang) as observer, console.at_work():
            warm_up, _at = console.submit(queue, gang, 1.0)
            time.sleep(_WARM_UP_SECONDS)
            since = dict(console.submit(queue, gang, 1.0) for _due in _paced(jobs, per_second))
            bound = observer.wait()
            until_quiet(place, queue)
        return percentiles(BindTimes({name: pod for name, pod in bound.pods.items() if pod[0] != warm_up}).waits(since))


def _paced(count: int, per_second: float) -> Iterator[None]:
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / per_second - time.monotonic()))
        yield


def measure_restart(place: BenchCluster, console: BenchConsole, *, running: int, gang: int) -> dict[str, Any]:
    """With `running` pods, kill the controller. Measure the next one: seconds to its first bind, and its memory."""
    with _queue(place, console, is_last=True) as queue:
        fill(place, console, queue, running=running, gang=gang)
        uid, _at = console.submit(queue, 1, FOR_EVER)
        with observed(place, queue, 1, job=uid) as observer, console.at_work() as controller:
            observer.wait()
            time.sleep(_WARM_UP_SECONDS)
            before = controller.peak_mib()
            controller.process.kill()
        uid, _at = console.submit(queue, 1, FOR_EVER)
        with observed(place, queue, 1, job=uid) as observer, console.at_work() as controller:
            ((_job, at),) = observer.wait().pods.values()
            check(place, queue)
            after = controller.peak_mib()
        return {
            "running": running,
            "seconds_to_the_first_bind": round(at - controller.began, 2),
            "peak_mib": before,
            "peak_mib_begun_anew": after,
        }
