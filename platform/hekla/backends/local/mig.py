"""MIG instances: parts of one of NVIDIA's GPUs, each with memory and cores of its own.

Jobs request them as NVIDIA's device plugin for Kubernetes names them, one resource for each profile.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import pynvml

PREFIX = "nvidia.com/mig-"
CAPABILITY_FILES = "nvidia-caps"
"""The folder of /dev with the files of all instances, also of those that are made later."""
_CAPABILITIES = Path("/proc/driver/nvidia/capabilities")
_MINOR = re.compile(r"^DeviceFileMinor:\s*(\d+)\s*$", re.MULTILINE)


class MigDevice(NamedTuple):
    """An instance. `model`: the GPU's name with the profile. `devices`: the names in /dev of the files that open it."""

    id: str
    model: str
    memory_bytes: int
    devices: tuple[str, ...]

    @property
    def resource(self) -> str:
        """The resource that counts instances of this profile."""
        return PREFIX + self.model.rpartition(" MIG ")[2].replace("+", ".")


def is_divided(gpu: object) -> bool:
    """Whether the GPU is in MIG mode, in which only its instances can be used. Raises NVMLError if it has failed."""
    try:
        present, _after_reset = pynvml.nvmlDeviceGetMigMode(gpu)
    except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_FunctionNotFound):  # one that cannot be divided
        return False
    return bool(present == pynvml.NVML_DEVICE_MIG_ENABLE)


def instances(gpu: object, minor: int) -> Iterator[MigDevice]:
    """The instances of a divided GPU, in the driver's order. `minor`: the number in the name of its device file.

    Raises NVMLError if the GPU has failed.
    """
    for number in range(pynvml.nvmlDeviceGetMaxMigDeviceCount(gpu)):
        with contextlib.suppress(pynvml.NVMLError_NotFound):  # there are fewer than the most
            one = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(gpu, number)
            yield MigDevice(
                pynvml.nvmlDeviceGetUUID(one),
                pynvml.nvmlDeviceGetName(one),
                int(pynvml.nvmlDeviceGetMemoryInfo(one).total),
                _devices(one, minor),
            )


def _devices(instance: object, minor: int) -> tuple[str, ...]:
    """The files of the GPU, of its part (GPU instance) and of the cores there (compute instance).

    A driver that does not name the latter two opens instances by the file of the GPU alone.
    """
    part = _CAPABILITIES / f"gpu{minor}/mig/gi{pynvml.nvmlDeviceGetGpuInstanceId(instance)}"
    cores = part / f"ci{pynvml.nvmlDeviceGetComputeInstanceId(instance)}"
    found = [f"nvidia{minor}"]
    for folder in (part, cores):
        with contextlib.suppress(OSError):
            named = _MINOR.search((folder / "access").read_text(encoding="utf-8"))
            found += [f"{CAPABILITY_FILES}/nvidia-cap{named[1]}"] if named else []
    return tuple(found)


def hidden_capabilities(needed: Collection[str]) -> list[str]:
    """What a pod that needs these files of /dev may not find of the folder: all of it if it needs none.

    A file may open an instance that is made while the pod runs, so only those that it needs are left.
    """
    if not any(name.startswith(f"{CAPABILITY_FILES}/") for name in needed):
        return [CAPABILITY_FILES]
    with contextlib.suppress(OSError):
        files = (f"{CAPABILITY_FILES}/{name}" for name in sorted(os.listdir(f"/dev/{CAPABILITY_FILES}")))
        return [name for name in files if name not in needed]
    return []
