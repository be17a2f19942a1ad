"""Runs the observer, and computes rates and waits from its binds."""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from hekla.backends.kubernetes import names
from hekla.bench.cluster.observer import READY
from hekla.bench.cluster.place import BenchCluster
from hekla.launcher.terminal import LaunchRefused

_OBSERVER = "hekla.bench.cluster.observer"


@dataclass(frozen=True, slots=True)
class BindTimes:
    """For each pod its job and the time of its bind, in seconds of the monotonic clock."""

    pods: Mapping[str, tuple[str, float]]

    def per_second(self) -> float:
        """Binds per second, from the first bind to the last."""
        at = sorted(instant for _job, instant in self.pods.values())
        return (len(at) - 1) / (at[-1] - at[0])

    def per_second_since(self, began: float) -> float:
        """Binds per second, from `began` to the last bind."""
        return len(self.pods) / (max(instant for _job, instant in self.pods.values()) - began)

    def waits(self, since: Mapping[str, float]) -> list[float]:
        """Milliseconds from the time of each pod's job to its bind, sorted."""
        return sorted((instant - since[job]) * 1000 for job, instant in self.pods.values())


class Observer:
    """The observer process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def wait(self) -> BindTimes:
        """Wait until all pods are bound. Raises LaunchRefused if the observer ends earlier."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        if not line:
            raise LaunchRefused("The pods of the measurement were not watched to their end.")
        return BindTimes({name: (job, at) for name, (job, at) in json.loads(line).items()})


@contextmanager
def observed(place: BenchCluster, namespace: str, count: int, *, job: str = "") -> Iterator[Observer]:
    """Observe `count` binds in this namespace from now on; with `job` only those of this job."""
    which = names.selector({names.JOB: job}) if job else ""
    argv = [sys.executable, "-P", "-m", _OBSERVER, str(place.kubeconfig), namespace, str(count), which]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            if process.stdout is None or process.stdout.readline().strip() != READY:
                raise LaunchRefused("The pods of the cluster cannot be watched.")
            yield Observer(process)
        finally:
            process.terminate()


def percentiles(ordered: list[float]) -> dict[str, float]:
    """p50, p99 and maximum of sorted values, rounded to 0.1."""
    last = len(ordered) - 1
    found = {"p50": statistics.median(ordered), "p99": ordered[min(last, int(0.99 * len(ordered)))], "max": ordered[-1]}
    return {name: round(value, 1) for name, value in found.items()}
