"""Metrics of running pods: CPU time, memory, and GPUs if there are any.

They come from a pod's control group, if it has one, else from the processes below its shim. One pass over /proc finds
those of all pods, so its cost grows with the machine's processes and not with pods times processes.

CPU time is that of running processes and, because parents account for their children, of ended ones. A child that is
never waited for is not counted. The figure never falls.

Memory is the sum of each process's own memory, plus once the largest shared part of any of them (files, shared memory).
Pages that a forked child still shares with its parent count for both.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

import pynvml

from hekla.backends.base import PodKey, PodMetrics
from hekla.backends.local import gpus
from hekla.backends.local.pod_folder import PodFolder

_MIB = 2**20
GPU_WINDOW_SECONDS = 10.0
"""The time over which a GPU's utilization is averaged."""


class _Process(NamedTuple):
    """A process: CPU time in ticks, memory in pages. `gathered`: CPU time of ended children that were waited for."""

    pid: int
    parent: int
    own: int
    gathered: int
    resident: int
    shared: int


@dataclass
class _Figures:
    """Figures of one pod. `gpus`: the ids of those that it holds alone."""

    cpu_seconds: float
    memory_bytes: int
    pids: frozenset[int]
    gpus: tuple[str, ...] = ()


def can_measure() -> bool:
    """Whether this system lists its processes in /proc, like Linux."""
    return os.path.exists("/proc/self/stat")


def measure_pods(pods: Mapping[PodKey, PodFolder], *, at: datetime) -> list[PodMetrics]:
    """The metrics of these pods. Pods without a shim are left out."""
    table = _Table(_processes())
    found = ((key, _measure_pod(folder, table)) for key, folder in pods.items())
    measured = _gpu_metrics(at) if gpus.has_nvml() else _Gpus()
    return [_metrics(key, pod, measured, at) for key, pod in found if pod]


def _measure_pod(folder: PodFolder, table: "_Table") -> _Figures | None:
    order = folder.order()
    # The processes of a container are descendants of its first one, and not of the shim.
    root = (folder.status() or {}).get("pid") if order and order.get("container") else folder.holder()
    found = table.below(root) if root else None
    if found and order:
        found.gpus = tuple(order.get("gpus", ()))
        for group in order["groups"]:
            _read_group(group, found)
    return found


def _metrics(key: PodKey, pod: _Figures, measured: "_Gpus", at: datetime) -> PodMetrics:
    """What its processes use of GPUs. If the driver does not report that: what is used of the GPUs that it holds."""
    mine = [measured.by_pid[pid] for pid in pod.pids if pid in measured.by_pid]
    busy = [gpu.busy for gpu in mine if gpu.busy is not None]
    if not busy and pod.gpus and all(gpu in measured.by_id for gpu in pod.gpus):
        mine = [measured.by_id[gpu] for gpu in pod.gpus]
        busy = [gpu.busy for gpu in mine if gpu.busy is not None]
    if not mine:
        return PodMetrics(key, at, pod.cpu_seconds, pod.memory_bytes)
    memory = sum(one.memory_bytes for one in mine)
    return PodMetrics(key, at, pod.cpu_seconds, pod.memory_bytes, sum(busy) if busy else None, memory)


# Processes


class _Table:
    """The machine's processes at one moment."""

    def __init__(self, processes: Iterable[_Process]) -> None:
        self._by_pid = {process.pid: process for process in processes}
        self._children: dict[int, list[_Process]] = {}
        for process in self._by_pid.values():
            self._children.setdefault(process.parent, []).append(process)

    def below(self, shim: int) -> _Figures | None:
        """The total of this process's descendants, without itself; None if it has ended."""
        root = self._by_pid.get(shim)
        if root is None:
            return None
        family = list(self._descendants(shim))
        ticks = root.gathered + sum(process.own + process.gathered for process in family)
        pages = sum(max(0, process.resident - process.shared) for process in family)
        pages += max((process.shared for process in family), default=0)
        return _Figures(
            cpu_seconds=ticks / os.sysconf("SC_CLK_TCK"),
            memory_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
            pids=frozenset(process.pid for process in family),
        )

    def _descendants(self, pid: int) -> Iterator[_Process]:
        ahead = [pid]
        while ahead:
            for child in self._children.get(ahead.pop(), ()):
                yield child
                ahead.append(child.pid)


def _processes() -> Iterator[_Process]:
    for name in os.listdir("/proc"):
        if name.isdigit() and (process := _read(int(name))):
            yield process


def _read(pid: int) -> _Process | None:
    """The process; None if it has ended. One that waits to be reaped still has its CPU time."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            stat = file.read().rpartition(")")[2].split()
        with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
            resident, shared = (int(part) for part in file.read().split()[1:3])
    except (OSError, ValueError):
        return None
    own, gathered = int(stat[11]) + int(stat[12]), int(stat[13]) + int(stat[14])
    return _Process(pid, int(stat[1]), own, gathered, resident, shared)


# Control groups


def _read_group(group: str, found: _Figures) -> None:
    """Replace our figures by the kernel's own, if the group has them."""
    with contextlib.suppress(OSError, KeyError, ValueError):
        found.cpu_seconds = int(_pairs(f"{group}/cpu.stat")["usage_usec"]) / 1e6
    if (memory := group_memory(group)) is not None:
        found.memory_bytes = memory


def group_memory(group: str) -> int | None:
    """The bytes of a control group, without what is freed on demand; None if it does not say.

    Version 1 has other names.
    """
    for name, freed_on_demand in (
        ("memory.current", "inactive_file"),
        ("memory.usage_in_bytes", "total_inactive_file"),
    ):
        with contextlib.suppress(OSError, KeyError, ValueError), open(f"{group}/{name}", encoding="utf-8") as file:
            cache = int(_pairs(f"{group}/memory.stat")[freed_on_demand])
            return max(0, int(file.read()) - cache)
    return None


def _pairs(path: str) -> dict[str, str]:
    with open(path, encoding="utf-8") as file:
        return {name: value for name, _, value in (line.strip().partition(" ") for line in file)}


# GPUs


@dataclass
class _OnGpu:
    """The GPU usage of one process, or of all on one GPU. `busy`: None if the driver does not report it."""

    busy: float | None = None
    memory_bytes: int = 0


@dataclass
class _Gpus:
    """The usage of GPUs, by the pid of each process that computes on one, and by the id of each GPU."""

    by_pid: dict[int, _OnGpu] = field(default_factory=dict)
    by_id: dict[str, _OnGpu] = field(default_factory=dict)


def _gpu_metrics(at: datetime) -> _Gpus:
    found = _Gpus()
    with contextlib.suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        try:
            for number in range(pynvml.nvmlDeviceGetCount()):
                device = pynvml.nvmlDeviceGetHandleByIndex(number)
                with contextlib.suppress(pynvml.NVMLError):
                    _read_whole_gpu(device, found)
                _read_gpu(device, at, found)
        finally:
            pynvml.nvmlShutdown()
    return found


def _read_whole_gpu(device: object, found: _Gpus) -> None:
    busy, memory = pynvml.nvmlDeviceGetUtilizationRates(device).gpu / 100, gpus.memory_mib(device).used * _MIB
    found.by_id[pynvml.nvmlDeviceGetUUID(device)] = _OnGpu(busy, memory)


def _read_gpu(device: object, at: datetime, found: _Gpus) -> None:
    parts = _utilization(device, at)
    for process in pynvml.nvmlDeviceGetComputeRunningProcesses(device):
        usage = found.by_pid.setdefault(process.pid, _OnGpu())
        usage.memory_bytes += process.usedGpuMemory or 0
        if parts is not None:
            usage.busy = (usage.busy or 0.0) + parts.get(process.pid, 0.0)


def _utilization(device: object, at: datetime) -> dict[int, float] | None:
    """By pid, the fraction of this GPU's time used by each process recently; None if the driver does not report it."""
    since = int((at.timestamp() - GPU_WINDOW_SECONDS) * 1e6)
    shares: dict[int, list[float]] = {}
    try:
        for sample in pynvml.nvmlDeviceGetProcessUtilization(device, since):
            shares.setdefault(sample.pid, []).append(sample.smUtil / 100)
    except pynvml.NVMLError_NotFound:
        return {}
    except pynvml.NVMLError:
        return None
    return {pid: sum(some) / len(some) for pid, some in shares.items()}
