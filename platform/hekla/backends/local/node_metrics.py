"""What is used of this machine: its CPUs, its memory and its GPUs, by all processes."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Lock
from typing import NamedTuple

import psutil
import pynvml

from hekla.backends.base import NodeMetrics
from hekla.backends.local import gpus, machine
from hekla.backends.local.config import LocalConfig
from hekla.backends.local.pod_metrics import group_memory
from hekla.domain.cards import MAX_CARDS, NUMBER, NVIDIA
from hekla.domain.node_usage import CardMetrics
from hekla.domain.resources import Resources

_LEAST_SECONDS = 0.5
"""Of CPU time between two measurements: the counters advance in steps of a hundredth of a second."""
_GROUPS = ("/sys/fs/cgroup", "/sys/fs/cgroup/memory")


class _CpuTimes(NamedTuple):
    """Seconds since the start of the machine, of all CPUs that this process may use."""

    busy: float
    whole: float


class MachineMeter:
    """Measures this machine. CPU usage is the mean since the measurement before."""

    def __init__(self, config: LocalConfig) -> None:
        self._config, self._lock = config, Lock()
        self._last = _cpu_times()

    def measure(self, at: datetime) -> Sequence[NodeMetrics]:
        """The usage; nothing if the last measurement is less than a moment ago."""
        with self._lock:
            last, now = self._last, _cpu_times()
            if now.whole - last.whole < _LEAST_SECONDS:
                return ()
            self._last = now
        cpu = 100 * (now.busy - last.busy) / (now.whole - last.whole)
        whole = machine.measured()
        memory = 100 * _used_memory() / whole["memory"]
        sizes = Resources({name: whole[name] for name in ("cpu", "memory")})
        return [NodeMetrics(machine.node_name(), at, cpu, memory, sizes, tuple(self._cards()))]

    def _cards(self) -> Iterator[CardMetrics]:
        """The usage of NVIDIA's GPUs, if they are the node's cards."""
        if self._config.cards or not gpus.has_nvml():
            return
        resource = NUMBER if self._config.share_gpu_memory else NVIDIA
        indices = gpus.shared_indices() if resource == NUMBER else {}
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlInit()
            try:
                for index in range(min(pynvml.nvmlDeviceGetCount(), MAX_CARDS)):
                    with contextlib.suppress(pynvml.NVMLError):
                        yield replace(_card(resource, index), index=indices.get(index, index))
            finally:
                pynvml.nvmlShutdown()


def _card(resource: str, index: int) -> CardMetrics:
    gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
    busy = float(pynvml.nvmlDeviceGetUtilizationRates(gpu).gpu)
    return CardMetrics(resource, index, busy, gpus.memory_mib(gpu).used)


def _cpu_times() -> _CpuTimes:
    times = psutil.cpu_times(percpu=True)
    usable = psutil.Process().cpu_affinity() if hasattr(psutil.Process, "cpu_affinity") else range(len(times))
    mine = [times[cpu] for cpu in usable if cpu < len(times)]
    idle = sum(one.idle + getattr(one, "iowait", 0.0) for one in mine)
    guests = sum(getattr(one, "guest", 0.0) + getattr(one, "guest_nice", 0.0) for one in mine)  # part of user time
    whole = sum(map(sum, mine)) - guests
    return _CpuTimes(whole - idle, whole)


def _used_memory() -> int:
    """Of the machine, or of our container if that has a limit, in bytes, without what is freed on demand."""
    found = psutil.virtual_memory()
    if machine.memory_bytes() < found.total:
        for group in _GROUPS:
            if (used := group_memory(group)) is not None:
                return used
    return int(found.total - found.available)
