"""The cards of this machine: NVIDIA's driver, its files, and the cluster's configuration."""

from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from hekla.backends.config import parse_config
from hekla.backends.local import gpus, isolation, machine
from hekla.backends.local.config import LocalConfig
from hekla.backends.local.sandbox.order import NAMESPACES
from hekla.domain.cards import NUMBER, HeldCard, NodeCard, held
from hekla.domain.errors import Invalid


@pytest.fixture(autouse=True)
def read_anew() -> None:
    gpus._by_nvml.cache_clear()
    gpus._by_files.cache_clear()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two GPUs, the second of which has fallen off the bus."""

    def handle(index: int) -> int:
        if index == 1:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    answers: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": handle,
        "nvmlDeviceGetUUID": lambda _gpu: "GPU-a",
        "nvmlDeviceGetMinorNumber": lambda _gpu: 5,
        "nvmlDeviceGetName": lambda _gpu: "NVIDIA H100",
        "nvmlDeviceGetMemoryInfo": lambda _gpu: SimpleNamespace(total=80 * 2**30),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)


def node(tmp_path, **config: Any) -> Any:
    return machine.node(tmp_path, parse_config(LocalConfig, config))


def test_gpus_of_the_driver(driver, tmp_path) -> None:
    found = node(tmp_path)
    healthy = NodeCard("nvidia.com/gpu", 0, "GPU-a", "NVIDIA H100", 81920)
    assert found.cards == (healthy, NodeCard("nvidia.com/gpu", 1, is_healthy=False))
    assert found.allocatable["nvidia.com/gpu"] == 1000
    assert found.annotations == {}


def test_shared_gpus_of_the_driver(driver, tmp_path) -> None:
    found = node(tmp_path, share_gpu_memory=True)
    assert "nvidia.com/gpu" not in found.allocatable
    assert (found.allocatable[NUMBER], found.allocatable["volcano.sh/gpu-memory"]) == (2000, 81_920_000)
    assert found.annotations == {"volcano.sh/gpu-unhealthy-ids": "1"}


def test_gpus_of_a_driver_without_its_library(tmp_path, monkeypatch) -> None:
    for bus, name in (("0000:41:00.0", "b"), ("0000:01:00.0", "a")):
        (tmp_path / bus).mkdir()
        text = f"Model: \t\t NVIDIA A10\nIRQ:   \t\t 7\nGPU UUID: \t GPU-{name}\nDevice Minor: \t 0\n"
        (tmp_path / bus / "information").write_text(text)
    monkeypatch.setattr(gpus, "_by_nvml", tuple)
    monkeypatch.setattr(gpus, "_DRIVER", tmp_path)
    assert node(tmp_path).cards == tuple(
        NodeCard("nvidia.com/gpu", index, f"GPU-{name}", "NVIDIA A10") for index, name in enumerate("ab")
    )


def test_configured_cards_replace_those_of_the_driver(driver, tmp_path) -> None:
    found = node(
        tmp_path,
        cards=[{"resource": "huawei.com/Ascend910", "model": "910B", "memory": "64Gi", "count": 2, "unhealthy": [1]}],
        allocatable={"volcano.sh/other": "3"},
        annotations={"hekla.io/gpu-links": "[[0, 1], [1, 0]]"},
    )
    assert [(card.index, card.memory_mib, card.is_healthy) for card in found.cards] == [
        (0, 65536, True),
        (1, 65536, False),
    ]
    assert (found.allocatable["huawei.com/Ascend910"], found.allocatable["volcano.sh/other"]) == (1000, 3000)
    assert "nvidia.com/gpu" not in found.allocatable
    assert found.annotations == {"hekla.io/gpu-links": "[[0, 1], [1, 0]]"}


@pytest.mark.parametrize(
    "cards",
    [
        [{"count": 65}],
        [{"count": 40}, {"count": 40}],
        [{"ids": ["a,b"]}],
        [{"ids": ["a\n"]}],
        [{"resource": "gpu"}],
        [{"memory": "much"}],
        [{"model": "x" * 101}],
    ],
)
def test_invalid_cards_are_refused(cards: list[dict[str, object]]) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_config(LocalConfig, {"cards": cards})
    assert refusal.value.problems[0].path.startswith("config.cards")


def variables(mine: list[HeldCard], *, in_container: bool = False) -> dict[str, str]:
    cards = [NodeCard("nvidia.com/gpu", 0), NodeCard("kunlunxin.com/xpu", 0), NodeCard("example.com/other", 0)]
    return gpus.variables(cards, mine, in_container=in_container)


def test_variables_without_cards_are_empty() -> None:
    names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "XPU_VISIBLE_DEVICES")
    assert variables([]) == dict.fromkeys(names, "")
    assert gpus.variables([], [], in_container=False) == {}


def test_cards_without_ids_have_numbers() -> None:
    mine = [HeldCard("nvidia.com/gpu", 2), HeldCard("nvidia.com/gpu", 5), HeldCard("kunlunxin.com/xpu", 3, "x")]
    assert variables(mine)["CUDA_VISIBLE_DEVICES"] == "2,5"
    assert variables(mine)["XPU_VISIBLE_DEVICES"] == "3"
    assert variables(mine, in_container=True)["CUDA_VISIBLE_DEVICES"] == "0,1"


def test_devices_of_other_pods_are_hidden(driver, tmp_path) -> None:
    cards = node(tmp_path).cards
    assert gpus.hidden_devices(cards, []) == ["nvidia5"]
    assert gpus.hidden_devices(cards, [held(cards[0])]) == []
    assert gpus.hidden_devices([NodeCard("nvidia.com/gpu", 0)], []) == []  # described without ids


def test_pod_does_not_find_a_hidden_device(make_cluster, monkeypatch) -> None:
    """With another device, since this machine may have no GPU."""
    monkeypatch.setattr(gpus, "hidden_devices", lambda *_: ["full"])
    cluster = make_cluster("local")
    key = cluster.started(cluster.order(script="ls /dev"))
    cluster.ended(key)
    found = cluster.log(key).split()
    has_namespaces = NAMESPACES not in isolation.failures()
    assert ("null" in found, "full" in found) == (True, not has_namespaces)
