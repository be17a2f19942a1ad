"""The GPUs of this machine that NVIDIA's driver reports, and how processes find those that their pod holds."""

import functools
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import pynvml

from hekla.backends.base import PodOrder
from hekla.backends.local import mig
from hekla.backends.local.gpu_links import GpuLinks
from hekla.domain.cards import MAX_CARDS, NUMBER, NVIDIA, HeldCard, NodeCard

_MIB = 2**20
_CONTEXT_MIB = 640
"""What a process takes of a card's memory beside its data: 518 to 676 MiB on an H100."""
_LEAST_SECONDS, _TIMES = 30.0, 200.0
"""How long an answer of the driver is used, at least and as a multiple of the time that it took. Where no program keeps
the driver loaded, a query takes seconds."""
_FILES = Path("/proc/driver/nvidia/gpus")
_NVIDIA_VARIABLES = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "nvidia.com": _NVIDIA_VARIABLES,
    "volcano.sh": _NVIDIA_VARIABLES,
    "amd.com": ("HIP_VISIBLE_DEVICES",),
    "huawei.com": ("ASCEND_RT_VISIBLE_DEVICES",),
    "kunlunxin.com": ("XPU_VISIBLE_DEVICES",),
    "baidu.com": ("XPU_VISIBLE_DEVICES",),
}
"""By the vendor of the resource: the variables by which a process knows its cards."""


def detected(*, shares_memory: bool) -> tuple[NodeCard, ...]:
    """The GPUs and MIG instances, as the cards of the resources by which jobs request them."""
    return tuple(_cards(NUMBER if shares_memory else NVIDIA))[:MAX_CARDS]


def _cards(resource: str) -> Iterator[NodeCard]:
    """`resource`: that of whole GPUs. Their index is the driver's number, also beside divided ones, but if their memory
    is shared, the plugin `deviceshare` numbers them without gaps.
    """
    counted: Counter[str] = Counter()
    for number, gpu in enumerate(_reported()):
        if gpu.instances is None:
            index = counted[NUMBER] if resource == NUMBER else number
            yield NodeCard(resource, index, gpu.id, gpu.model, gpu.memory_mib, gpu.is_healthy)
            counted[NUMBER] += 1
        for one in gpu.instances or ():
            size = one.memory_bytes // _MIB
            yield NodeCard(one.resource, counted[one.resource], one.id, one.model, size, gpu.is_healthy)
            counted[one.resource] += 1


def shared_indices() -> dict[int, int]:
    """By the driver's numbers of whole GPUs: their indices if their memory is shared. Call `detected` before."""
    whole = (number for number, gpu in enumerate(_reported()) if gpu.instances is None)
    return {number: index for index, number in enumerate(whole)}


def has_nvml() -> bool:
    """Whether NVIDIA's library for queries finds a GPU."""
    return bool(_library.gpus())


def driver_version() -> str:
    """The version of NVIDIA's driver; empty if its library for queries does not answer."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ""
    try:
        return str(pynvml.nvmlSystemGetDriverVersion())
    except pynvml.NVMLError:
        return ""
    finally:
        pynvml.nvmlShutdown()


class _Gpu(NamedTuple):
    """A GPU as the driver reports it. `device`: the name of its file in /dev. `instances`: None if it is undivided."""

    id: str = ""
    model: str = ""
    memory_mib: int = 0
    is_healthy: bool = True
    device: str = ""
    instances: tuple[mig.MigDevice, ...] | None = None

    def devices(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The id of the GPU and of its instances, and the names of the files in /dev that a pod with it needs."""
        yield self.id, (self.device,)
        yield from ((one.id, one.devices) for one in self.instances or ())


_FAILED = _Gpu(is_healthy=False)


class _Library:
    """NVIDIA's library for queries (NVML), and its last answer."""

    def __init__(self) -> None:
        self._gpus: tuple[_Gpu, ...] = ()
        self._query_at = -math.inf

    def gpus(self) -> tuple[_Gpu, ...]:
        """The GPUs by number. One that no longer answers keeps what is known of it, and is not healthy."""
        now = time.monotonic()
        if now >= self._query_at:
            both = zip_longest(self._gpus, _gpus_by_nvml(), fillvalue=_FAILED)
            self._gpus = tuple(gpu if gpu.is_healthy else known._replace(is_healthy=False) for known, gpu in both)
            after = time.monotonic()
            self._query_at = after + max(_LEAST_SECONDS, _TIMES * (after - now))
        return self._gpus


_library, _links = _Library(), GpuLinks()


def links() -> dict[str, str]:
    """The annotation with the links of the whole GPUs, if the driver reports them. Call `detected` before."""
    ids = tuple(gpu.id if gpu.is_healthy else "" for gpu in _reported())
    return _links.annotations(ids, tuple(shared_indices()))


def _gpus_by_nvml() -> list[_Gpu]:
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return []
    try:
        found = list(map(_gpu_by_nvml, range(min(pynvml.nvmlDeviceGetCount(), MAX_CARDS))))
        _links.measure(tuple(gpu.id for gpu in found))
        return found
    except pynvml.NVMLError:
        return []
    finally:
        pynvml.nvmlShutdown()


def _gpu_by_nvml(index: int) -> _Gpu:
    """One that has failed has no more than its number."""
    try:
        gpu = pynvml.nvmlDeviceGetHandleByIndex(index)
        minor = pynvml.nvmlDeviceGetMinorNumber(gpu)
        return _Gpu(
            pynvml.nvmlDeviceGetUUID(gpu),
            pynvml.nvmlDeviceGetName(gpu),
            memory_mib(gpu).usable,
            device=f"nvidia{minor}",
            instances=tuple(mig.instances(gpu, minor)) if mig.is_divided(gpu) else None,
        )
    except pynvml.NVMLError:
        return _FAILED


class MemoryInfo(NamedTuple):
    """Of a GPU, in MiB: what programs can use, and what they use."""

    usable: int
    used: int


def memory_mib(gpu: object) -> MemoryInfo:
    """Without the part that the driver keeps for itself; those before version 510 do not report it."""
    try:
        found = pynvml.nvmlDeviceGetMemoryInfo(gpu, version=pynvml.nvmlMemory_v2)
        own = found.reserved
    except pynvml.NVMLError:
        found, own = pynvml.nvmlDeviceGetMemoryInfo(gpu), 0
    return MemoryInfo(int(found.total - own) // _MIB, int(found.used) // _MIB)


@functools.cache
def _by_files() -> tuple[_Gpu, ...]:
    """Without the library: in the order of their bus addresses, as the driver numbers them."""
    return tuple(map(_gpu_by_file, sorted(_FILES.glob("*/information"))[:MAX_CARDS]))


def _gpu_by_file(path: Path) -> _Gpu:
    lines = (line.partition(":") for line in path.read_text(encoding="utf-8", errors="replace").splitlines())
    fields = {name.strip(): text.strip() for name, _, text in lines}
    return _Gpu(fields.get("GPU UUID", ""), fields.get("Model", ""), device=f"nvidia{fields.get('Device Minor', '')}")


def hidden_devices(cards: Iterable[NodeCard], held: Iterable[HeldCard]) -> list[str]:
    """The files in /dev that a pod does not need for its GPUs and MIG instances, as far as the ids of the node's cards
    tell. Those of a divided GPU without instances are among them: instances may be made while the pod runs.
    """
    ids, mine, reported = [card.id for card in cards], {card.id for card in held}, _reported()
    known = {id for id in ids if id}
    if ids and not known:
        return []
    divided = {gpu.id for gpu in reported if gpu.instances is not None}
    files = [found for gpu in reported for found in gpu.devices()]
    needed = {name for id, names in files if id in mine for name in names}
    hidden = [names[0] for id, names in files if id in (known | divided) - mine and names[0] not in needed]
    return [*dict.fromkeys(hidden), *(mig.hidden_capabilities(needed) if divided else ())]


def _reported() -> tuple[_Gpu, ...]:
    return _library.gpus() or _by_files()


def variables(cards: Iterable[NodeCard], held: Sequence[HeldCard], *, in_container: bool) -> dict[str, str]:
    """The variables for a pod with these cards on a machine with those; empty ones if it holds none.

    In a container, cards without ids are numbered from 0 again.
    """
    found = {name: "" for card in cards for name in _variables_of(card.resource)}
    by_variable: dict[str, list[HeldCard]] = {}
    for card in held:
        for name in _variables_of(card.resource):
            by_variable.setdefault(name, []).append(card)
    found |= {name: ",".join(_names(name, mine, in_container)) for name, mine in by_variable.items()}
    parts = [card for card in held if card.part_mib]
    if parts:
        found |= {"VOLCANO_GPU_ALLOCATED": str(parts[0].part_mib), "VOLCANO_GPU_TOTAL": str(parts[0].memory_mib)}
    return found


def part_variables(held: Iterable[HeldCard]) -> dict[str, str]:
    """For a pod with parts of cards: what keeps JAX and TensorFlow to them. By default they take most of a card.

    A job can overwrite these variables. PyTorch takes only what it needs.
    """
    fractions = [_data_mib(card.part_mib) / card.memory_mib for card in held if card.part_mib and card.memory_mib]
    if not fractions:
        return {}
    return {"XLA_PYTHON_CLIENT_MEM_FRACTION": f"{min(fractions):.4f}", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}


def _data_mib(part: int) -> int:
    """How much of a part is left for data."""
    return max(part - _CONTEXT_MIB, part // 2)


def _variables_of(resource: str) -> tuple[str, ...]:
    return _VARIABLES.get(resource.partition("/")[0], ())


def _names(variable: str, cards: Sequence[HeldCard], in_container: bool) -> list[str]:
    """Only NVIDIA's libraries take ids. Their numbers depend on the order that each program chooses."""
    if variable in _NVIDIA_VARIABLES and all(card.id for card in cards):
        return [card.id for card in cards]
    return [str(at if in_container else card.index) for at, card in enumerate(cards)]


def container_devices(order: PodOrder) -> list[str]:
    """The names of a pod's cards in the Container Device Interface, in which drivers describe them to engines.

    Without known cards, a pod that requests GPUs of NVIDIA gets all.
    """
    if not order.cards and order.resources.amount(NVIDIA):
        return [f"{NVIDIA}=all"]
    return [_device_name(card) for card in order.cards]


def _device_name(card: HeldCard) -> str:
    if card.resource.startswith(mig.PREFIX):
        return f"{NVIDIA}={card.id}"
    if card.resource == NUMBER:
        numbers = (number for number, index in shared_indices().items() if index == card.index)
        return f"{NVIDIA}={next(numbers, card.index)}"
    return f"{card.resource}={card.index}"
