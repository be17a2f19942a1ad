"""Usage of this machine: of its CPUs, its memory and its GPUs."""

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import psutil
import pynvml
import pytest

from hekla.backends.local import gpus, machine, node_metrics
from hekla.backends.local.config import LocalConfig
from hekla.backends.local.node_metrics import MachineMeter
from hekla.domain.node_usage import CardMetrics

AT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
GIB = 2**30


class Cpu(SimpleNamespace):
    """Seconds of one CPU; guests count as user time too."""

    def __iter__(self) -> Any:
        return iter(vars(self).values())


def cpus(*pairs: tuple[float, float]) -> list[Cpu]:
    return [Cpu(user=busy, idle=idle / 2, iowait=idle / 2, guest=busy / 2) for busy, idle in pairs]


@pytest.fixture
def times(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets busy and idle seconds of each CPU. This process may use the first two."""

    def put(*pairs: tuple[float, float]) -> None:
        monkeypatch.setattr(psutil, "cpu_times", lambda percpu: cpus(*pairs))

    monkeypatch.setattr(psutil.Process, "cpu_affinity", lambda _self: [0, 1])
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(total=8 * GIB, available=6 * GIB))
    monkeypatch.setattr(machine, "measured", lambda: {"cpu": 2000.0, "memory": 8.0 * GIB, "pods": 110.0})
    monkeypatch.setattr(machine, "memory_bytes", lambda: 8 * GIB)
    monkeypatch.setattr(gpus, "has_nvml", lambda: False)
    put((10, 90), (10, 90), (0, 0))
    return put


def test_cpu_usage_is_that_since_the_last_measurement(times: Callable[..., None]) -> None:
    meter = MachineMeter(LocalConfig())
    times((11, 99), (15, 95), (1000, 0))
    (found,) = meter.measure(AT)
    assert (found.name, found.at) == (machine.node_name(), AT)
    assert found.cpu == pytest.approx(30)
    assert found.memory == 25
    assert dict(found.whole) == {"cpu": 2000, "memory": 8 * GIB}
    times((11.1, 99.1), (15.1, 95.1))
    assert meter.measure(AT) == (), "too soon"
    times((21, 99), (25, 95))
    (found,) = meter.measure(AT)
    assert found.cpu == pytest.approx(100)


def test_memory_of_a_container_is_that_of_its_control_group(
    times: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: 4 * GIB)
    answers = {"/sys/fs/cgroup/memory": 1 * GIB}
    monkeypatch.setattr(node_metrics, "group_memory", answers.get)
    assert node_metrics._used_memory() == GIB
    answers.clear()
    assert node_metrics._used_memory() == 2 * GIB


@pytest.fixture
def driver(times: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    """NVIDIA's driver, with three GPUs of which the second one has failed."""

    def device(index: int) -> int:
        if index == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    monkeypatch.setattr(gpus, "has_nvml", lambda: True)
    monkeypatch.setattr(gpus, "_library", gpus._Library())
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 3)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", device)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", lambda gpu: SimpleNamespace(gpu=60 + gpu))

    def memory(gpu: int, version: int) -> SimpleNamespace:
        """As the second version reports it: the first one counts the driver's own part as used."""
        assert version == pynvml.nvmlMemory_v2
        return SimpleNamespace(total=80 * GIB, reserved=GIB // 2, used=gpu * GIB)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", memory)


def measured_cards(**config: Any) -> list[CardMetrics]:
    meter = MachineMeter(LocalConfig(**config))
    return list(meter._cards())


@pytest.mark.usefixtures("driver")
def test_gpus_are_measured_under_the_resource_that_counts_them() -> None:
    assert measured_cards() == [CardMetrics("nvidia.com/gpu", 0, 60, 0), CardMetrics("nvidia.com/gpu", 2, 62, 2048)]
    assert [card.resource for card in measured_cards(share_gpu_memory=True)] == ["volcano.sh/gpu-number"] * 2


@pytest.mark.usefixtures("driver")
def test_configured_cards_are_not_those_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    assert measured_cards(cards=[{"resource": "huawei.com/Ascend910"}]) == []

    def fail() -> int:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", fail)
    assert measured_cards() == []
