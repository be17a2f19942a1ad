"""The configuration of this machine as a cluster."""

import os
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from hekla.backends.card_config import Cards
from hekla.backends.config import ClusterConfig, FieldWords, Quantities
from hekla.domain.cpu_sets import parse_cpus
from hekla.domain.numa import TopologyPolicy
from hekla.domain.translation import gettext_noop, translate


def _absolute(path: str) -> str:
    if not os.path.isabs(path) or os.path.normpath(path) in {"/", "/proc", "/dev", "/sys"}:
        raise ValueError(f"“{path}” is not the absolute path of a folder that can be shared.")
    return os.path.normpath(path)


def _cpu_list(text: str) -> str:
    try:
        parse_cpus(text)
    except ValueError as error:
        raise ValueError(translate("Write CPUs as Linux does, for example 0-3,8.")) from error
    return text


SharedFolder = Annotated[str, AfterValidator(_absolute)]


class LocalConfig(ClusterConfig):
    """Amounts that replace the measured ones, and labels in addition to the machine's own.

    `runtime`: whether pods are processes of this machine, or containers of Podman or Docker, with images. `socket`: of
    that engine; empty: the usual place. `image`: of pods that name none.
    `shared_folders`: folders of this machine, such as data sets, that every pod may read. `writable_folders`: those to
    which every pod may write as far as their permissions allow its user. `accept_weak_isolation`: serve several tenants
    although this machine cannot keep their pods apart.
    `cards`: replace the GPUs that NVIDIA's driver reports, for example for another vendor. `share_gpu_memory`: several
    pods may share a GPU of NVIDIA: it counts as `volcano.sh/gpu-number` and `gpu-memory`, not as `nvidia.com/gpu`.
    `cpu_policy`: with `static`, as with a kubelet, pods that request whole CPUs have them for themselves, and the node
    reports its NUMA cells. `topology_policy`: on how many cells those CPUs may be. `reserved_cpus`: those that no pod
    has for itself, for the console and other pods, such as `0-1`; empty: the lowest.
    """

    words: ClassVar[FieldWords] = {
        **ClusterConfig.words,
        "allocatable": (
            gettext_noop("Resources"),
            gettext_noop("In place of the measured ones, one name=value per line. For example: cpu=16, memory=64Gi."),
        ),
        "runtime": (
            gettext_noop("Runtime"),
            gettext_noop("Processes of this machine, or containers of Podman or Docker, which run images."),
        ),
        "socket": (gettext_noop("Socket"), gettext_noop("Of Podman or Docker. Empty: the usual place.")),
        "image": (gettext_noop("Default image"), gettext_noop("For containers that name none.")),
        "labels": (gettext_noop("Labels"), gettext_noop("Of the node, one name=value per line.")),
        "annotations": (gettext_noop("Annotations"), gettext_noop("Of the node, one name=value per line.")),
        "cards": (gettext_noop("Cards"), gettext_noop("In place of the GPUs that the driver reports.")),
        "share_gpu_memory": (
            gettext_noop("Share GPU memory"),
            gettext_noop("Several pods may share a GPU. Jobs then request volcano.sh/gpu-memory."),
        ),
        "shared_folders": (gettext_noop("Readable folders"), gettext_noop("Every pod may read them. One per line.")),
        "writable_folders": (
            gettext_noop("Writable folders"),
            gettext_noop("Every pod may write there as far as its user may. One per line."),
        ),
        "accept_weak_isolation": (
            gettext_noop("Accept weak isolation"),
            gettext_noop("Serve several tenants although this machine cannot keep their pods apart."),
        ),
        "cpu_policy": (
            gettext_noop("CPU policy"),
            gettext_noop("static: pods that request whole CPUs have them for themselves."),
        ),
        "topology_policy": (gettext_noop("Topology policy"), gettext_noop("On how many NUMA cells these CPUs may be.")),
        "reserved_cpus": (gettext_noop("Reserved CPUs"), gettext_noop("For the console. For example: 0-1.")),
    }
    main: ClassVar[tuple[str, ...]] = ("runtime", "image", "allocatable", "labels")

    allocatable: Quantities = {}
    runtime: Literal["processes", "containers"] = "processes"
    socket: Annotated[str, Field(pattern=r"^(/.*)?$", max_length=100)] = ""
    image: Annotated[str, Field(min_length=1, max_length=500)] = "python:3.11-slim"
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    cards: Cards = ()
    share_gpu_memory: bool = False
    shared_folders: list[SharedFolder] = []
    writable_folders: list[SharedFolder] = []
    accept_weak_isolation: bool = False
    cpu_policy: Literal["none", "static"] = "none"
    topology_policy: TopologyPolicy = TopologyPolicy.NONE
    reserved_cpus: Annotated[str, Field(max_length=1000), AfterValidator(_cpu_list)] = ""

    @model_validator(mode="after")
    def _sets_nothing_without_effect(self) -> "LocalConfig":
        if self.cpu_policy == "none" and (self.reserved_cpus or self.topology_policy is not TopologyPolicy.NONE):
            raise ValueError(translate("topology_policy and reserved_cpus need the cpu_policy static."))
        return self
