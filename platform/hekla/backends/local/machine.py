"""This machine as one node: its resources, and whether it is ready for pods."""

import functools
import platform
import shutil
import socket
from collections.abc import Mapping
from pathlib import Path

import psutil
import pynvml

from hekla.backends.base import NodeInfo
from hekla.domain.resources import Resources

PODS = 110
GPU = "nvidia.com/gpu"
MIN_FREE_DISK_BYTES = 64 * 2**20


def node(home: Path, overrides: Mapping[str, float], labels: Mapping[str, str]) -> NodeInfo:
    """The node, with `overrides` in place of measured amounts."""
    free = shutil.disk_usage(home).free
    ready = free >= MIN_FREE_DISK_BYTES
    return NodeInfo(
        name=node_name(),
        allocatable=Resources({**measured(), **overrides}),
        labels={**machine_labels(), **labels},
        ready=ready,
        message="" if ready else f"Only {free // 2**20} MiB are free on the disk of {home}.",
    )


def node_name() -> str:
    """The host name, used as the node's name."""
    return socket.gethostname()


@functools.cache
def measured() -> Mapping[str, float]:
    """CPUs that this process may use, memory, pods and GPUs, in internal units. Measured once: they do not change."""
    cpus = len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else psutil.cpu_count() or 1
    found = {"cpu": cpus * 1000, "memory": memory_bytes(), "pods": PODS, GPU: len(gpu_ids()) * 1000}
    return {name: float(amount) for name, amount in found.items() if amount}


def memory_bytes() -> int:
    """The memory of the machine, or the limit of our container if that is less, in bytes."""
    limits = [psutil.virtual_memory().total]
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            limits.append(int(text))
    return min(limits)


@functools.cache
def gpu_ids() -> tuple[str, ...]:
    """The identifiers of the GPUs that the NVIDIA driver reports; none without a driver."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
        return tuple(pynvml.nvmlDeviceGetUUID(handle) for handle in handles)
    finally:
        pynvml.nvmlShutdown()


@functools.cache
def machine_labels() -> Mapping[str, str]:
    """The labels that every Kubernetes node has."""
    return {
        "kubernetes.io/hostname": node_name(),
        "kubernetes.io/os": platform.system().lower(),
        "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    }
