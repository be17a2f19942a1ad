"""This machine as one node: its resources, and whether it is ready for pods."""

import functools
import platform
import shutil
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from hekla.backends.base import NodeInfo
from hekla.backends.card_config import described
from hekla.backends.local import gpus
from hekla.backends.local.config import LocalConfig
from hekla.domain import cards
from hekla.domain.card_resources import product_labels
from hekla.domain.cards import NodeCard
from hekla.domain.numa import NumaTopology
from hekla.domain.resources import Resources

PODS = 110
MIN_FREE_DISK_BYTES = 64 * 2**20


def node(home: Path, config: LocalConfig, numa: NumaTopology | None = None) -> NodeInfo:
    """The node, with the configured amounts in place of measured ones. `numa`: if pods may have CPUs for themselves:
    then all pods together request no more, as reserved CPUs are not allocatable.
    """
    free = shutil.disk_usage(home).free
    ready, found = free >= MIN_FREE_DISK_BYTES, cards_of(config)
    links = {} if config.cards else gpus.links()
    cpus = {"cpu": 1000.0 * sum(whole for whole, _free in numa.cells)} if numa else {}
    return NodeInfo(
        name=node_name(),
        allocatable=Resources({**measured(), **cpus, **cards.amounts(found), **Resources.parse(config.allocatable)}),
        labels={**machine_labels(), **product_labels(found), **config.labels},
        ready=ready,
        message="" if ready else f"Only {free // 2**20} MiB are free on the disk of {home}.",
        annotations={**cards.annotations(found), **links, **config.annotations},
        cards=found,
        numa=numa,
    )


def cards_of(config: LocalConfig) -> Sequence[NodeCard]:
    """The configured cards, else those of the driver."""
    return described(config.cards) or gpus.detected(shares_memory=config.share_gpu_memory)


def node_name() -> str:
    """The host name, used as the node's name."""
    return socket.gethostname()


@functools.cache
def measured() -> Mapping[str, float]:
    """CPUs that this process may use, memory and pods, in internal units. Measured once: they do not change."""
    cpus = len(psutil.Process().cpu_affinity()) if hasattr(psutil.Process, "cpu_affinity") else psutil.cpu_count() or 1
    found = {"cpu": cpus * 1000, "memory": memory_bytes(), "pods": PODS}
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
def machine_labels() -> Mapping[str, str]:
    """The labels that every Kubernetes node has."""
    return {
        "kubernetes.io/hostname": node_name(),
        "kubernetes.io/os": platform.system().lower(),
        "kubernetes.io/arch": {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine()),
    }
