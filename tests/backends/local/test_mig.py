"""MIG instances of NVIDIA's GPUs, with a pretended driver: a divided GPU and a whole one."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest
from tests.backends.local.test_gpus import MEMORY, node

from hekla.backends.local import gpus, mig
from hekla.backends.local.sandbox import root
from hekla.domain.cards import CardUse, HeldCard, NodeCard, decided, held
from hekla.domain.resources import Resources

SMALL, LARGE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-2g.20gb.me"
PROFILES = {10: "1g.10gb", 11: "2g.20gb+me", 12: "1g.10gb"}
CAPS = {10: (21, 22), 11: (30, 31), 12: (39, 40)}


def is_instance(gpu: int) -> bool:
    return gpu in PROFILES


def instance(_gpu: int, number: int) -> int:
    if number + 10 not in PROFILES:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
    return number + 10


def mode(gpu: int) -> list[int]:
    if gpu == 1:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return [pynvml.NVML_DEVICE_MIG_ENABLE, pynvml.NVML_DEVICE_MIG_ENABLE]


@pytest.fixture(autouse=True)
def driver(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    answers: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUUID": lambda gpu: f"MIG-{gpu}" if is_instance(gpu) else f"GPU-{gpu}",
        "nvmlDeviceGetMinorNumber": lambda gpu: gpu + 4,
        "nvmlDeviceGetName": lambda gpu: f"NVIDIA H100 MIG {PROFILES[gpu]}" if is_instance(gpu) else "NVIDIA H100",
        "nvmlDeviceGetMemoryInfo": lambda gpu, version=None: SimpleNamespace(total=10 * 2**30) if gpu > 1 else MEMORY,
        "nvmlDeviceGetMigMode": mode,
        "nvmlDeviceGetMaxMigDeviceCount": lambda _gpu: 7,
        "nvmlDeviceGetMigDeviceHandleByIndex": instance,
        "nvmlDeviceGetGpuInstanceId": lambda one: one,
        "nvmlDeviceGetComputeInstanceId": lambda _one: 0,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)
    for one, (part, cores) in CAPS.items():
        folder = tmp_path / f"capabilities/gpu4/mig/gi{one}"
        (folder / "ci0").mkdir(parents=True)
        (folder / "access").write_text(f"DeviceFileMinor: {part}\nDeviceFileMode: 292\nDeviceFileModify: 1\n")
        (folder / "ci0/access").write_text(f"DeviceFileMinor: {cores}\nDeviceFileMode: 292\n")
    monkeypatch.setattr(mig, "_CAPABILITIES", tmp_path / "capabilities")
    monkeypatch.setattr(gpus, "_library", gpus._Library())


def test_instances_of_each_profile_are_a_resource(tmp_path: Path) -> None:
    found = node(tmp_path)
    assert found.cards == (
        NodeCard(SMALL, 0, "MIG-10", "NVIDIA H100 MIG 1g.10gb", 10240),
        NodeCard(LARGE, 0, "MIG-11", "NVIDIA H100 MIG 2g.20gb+me", 10240),
        NodeCard(SMALL, 1, "MIG-12", "NVIDIA H100 MIG 1g.10gb", 10240),
        NodeCard("nvidia.com/gpu", 1, "GPU-1", "NVIDIA H100", 81079),
    )
    counted = {name: found.allocatable[name] for name in (SMALL, LARGE, "nvidia.com/gpu")}
    assert counted == {SMALL: 2000, LARGE: 1000, "nvidia.com/gpu": 1000}


def test_instances_are_not_shared_with_the_memory_of_whole_gpus(tmp_path: Path) -> None:
    """The plugin `deviceshare` numbers the shared ones from 0."""
    found = node(tmp_path, share_gpu_memory=True)
    (shared,) = decided({"volcano.sh/gpu-index": "0"}, found.cards, Resources.parse({"volcano.sh/gpu-memory": "8"}))
    assert (shared.id, gpus._device_name(shared)) == ("GPU-1", "nvidia.com/gpu=1")
    assert (found.allocatable["volcano.sh/gpu-number"], found.allocatable["volcano.sh/gpu-memory"]) == (1000, 81079000)
    assert found.allocatable[SMALL] == 2000


def test_pods_get_instances_of_their_own(tmp_path: Path) -> None:
    cards = node(tmp_path).cards
    use = CardUse(cards)
    first = use.choose(Resources.parse({SMALL: "1"}))
    use.add(first)
    second = use.choose(Resources.parse({SMALL: "1"}))
    names = [gpus.variables(cards, pod, in_container=False)["CUDA_VISIBLE_DEVICES"] for pod in (first, second)]
    assert names == ["MIG-10", "MIG-12"]
    assert [gpus._device_name(one) for one in (*first, HeldCard("nvidia.com/gpu", 1, "GPU-1"))] == [
        "nvidia.com/gpu=MIG-10",
        "nvidia.com/gpu=1",
    ]


@pytest.mark.parametrize(
    ("mine", "expected"),
    [
        ((), {"nvidia4", "nvidia5", "nvidia-caps"}),
        ((0,), {"nvidia5", *(f"nvidia-caps/nvidia-cap{n}" for n in (1, 30, 31, 39, 40, 48))}),
        ((3,), {"nvidia4", "nvidia-caps"}),
    ],
)
def test_a_pod_opens_only_its_instances(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mine: tuple[int, ...], expected: set[str]
) -> None:
    """Nor instances that are made later, whose files may be there already."""
    files = [f"nvidia-cap{number}" for number in (1, 21, 22, 30, 31, 39, 40, 48)]
    cards = node(tmp_path).cards
    monkeypatch.setattr(mig.os, "listdir", lambda _path: files)
    assert set(gpus.hidden_devices(cards, [held(cards[one]) for one in mine])) == expected


def test_a_divided_gpu_without_instances_is_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMaxMigDeviceCount", lambda _gpu: 0)
    cards = node(tmp_path).cards
    assert [card.id for card in cards] == ["GPU-1"]
    assert set(gpus.hidden_devices(cards, [held(cards[0])])) == {"nvidia4", "nvidia-caps"}
    assert set(gpus.hidden_devices([], [])) == {"nvidia4", "nvidia-caps"}


def test_some_devices_of_a_folder_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(root.os, "listdir", lambda _path: ["a", "b"])
    assert root._parts("nvidia-caps", ["nvidia-caps/b", "nvidia0"]) == ["nvidia-caps/a"]
    assert root._parts("nvidia-caps", ["nvidia-caps-other/b", "nvidia0"]) == ["nvidia-caps"]
