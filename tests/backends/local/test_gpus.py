"""The cards of this machine: NVIDIA's driver, its files, and the cluster's configuration."""

from dataclasses import replace
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
from hekla.engine.plugins.deviceshare.inventory import parse_links
from hekla.engine.plugins.deviceshare.links import best_set

MEMORY = SimpleNamespace(total=85_520_809_984, reserved=503_316_480, used=0)
"""As an H100 with 80 GB reports it. CUDA finds the difference, 81,079 MiB."""


@pytest.fixture(autouse=True)
def read_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "_library", gpus._Library())
    gpus._by_files.cache_clear()


@pytest.fixture
def lost() -> set[int]:
    """The numbers of the GPUs that have fallen off the bus."""
    return {1}


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch, lost: set[int]) -> None:
    """Two GPUs."""

    def handle(index: int) -> int:
        if index in lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return index

    def undivided(_gpu: int) -> list[int]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    answers: dict[str, Any] = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetMigMode": undivided,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": handle,
        "nvmlDeviceGetUUID": lambda gpu: f"GPU-{'ab'[gpu]}",
        "nvmlDeviceGetMinorNumber": lambda _gpu: 5,
        "nvmlDeviceGetName": lambda _gpu: "NVIDIA H100",
        "nvmlDeviceGetMemoryInfo": lambda _gpu, version=None: MEMORY,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(pynvml, name, answer)


def node(tmp_path, **config: Any) -> Any:
    return machine.node(tmp_path, parse_config(LocalConfig, config))


def test_gpus_of_the_driver(driver, tmp_path) -> None:
    found = node(tmp_path)
    healthy = NodeCard("nvidia.com/gpu", 0, "GPU-a", "NVIDIA H100", 81079)
    assert found.cards == (healthy, NodeCard("nvidia.com/gpu", 1, is_healthy=False))
    assert found.allocatable["nvidia.com/gpu"] == 1000
    assert found.annotations == {}


def test_shared_gpus_of_the_driver(driver, tmp_path) -> None:
    found = node(tmp_path, share_gpu_memory=True)
    assert "nvidia.com/gpu" not in found.allocatable
    assert (found.allocatable[NUMBER], found.allocatable["volcano.sh/gpu-memory"]) == (2000, 81_079_000)
    assert found.annotations == {"volcano.sh/gpu-unhealthy-ids": "1"}


def test_all_memory_of_a_driver_that_does_not_report_its_own_part(driver, tmp_path, monkeypatch) -> None:
    def before_510(_gpu: int, version: int | None = None) -> SimpleNamespace:
        if version:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return MEMORY

    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", before_510)
    assert node(tmp_path).cards[0].memory_mib == 81559


def test_gpu_that_fails_is_noticed_and_comes_back(driver, lost, tmp_path, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(gpus.time, "monotonic", lambda: now[0])
    lost.clear()
    first, second = node(tmp_path).cards
    lost.add(1)
    assert node(tmp_path).cards == (first, second)  # the answer is used for a while
    now[0] = 31.0
    found = node(tmp_path)
    assert found.cards == (first, replace(second, is_healthy=False))
    assert found.allocatable["nvidia.com/gpu"] == 1000
    lost.clear()
    now[0] = 62.0
    assert node(tmp_path).cards == (first, second)


def test_driver_that_no_longer_answers_has_only_failed_gpus(driver, lost, tmp_path, monkeypatch) -> None:
    """After an update of the driver, its library refuses to work with the loaded kernel module."""

    def mismatch() -> None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH)

    now = [0.0]
    monkeypatch.setattr(gpus.time, "monotonic", lambda: now[0])
    lost.clear()
    before = node(tmp_path).cards
    monkeypatch.setattr(pynvml, "nvmlInit", mismatch)
    now[0] = 31.0
    assert node(tmp_path).cards == tuple(replace(card, is_healthy=False) for card in before)


def test_slow_driver_is_queried_rarely(driver, tmp_path, monkeypatch) -> None:
    now, queries = [0.0], []

    def load() -> None:
        queries.append(now[0])
        now[0] += 2.0

    monkeypatch.setattr(gpus.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(pynvml, "nvmlInit", load)
    for at in (0.0, 60.0, 401.0, 403.0):
        now[0] = at
        node(tmp_path)
    assert queries == [0.0, 403.0]


def test_gpus_of_a_driver_without_its_library(tmp_path, monkeypatch) -> None:
    for bus, name in (("0000:41:00.0", "b"), ("0000:01:00.0", "a")):
        (tmp_path / bus).mkdir()
        text = f"Model: \t\t NVIDIA A10\nIRQ:   \t\t 7\nGPU UUID: \t GPU-{name}\nDevice Minor: \t 0\n"
        (tmp_path / bus / "information").write_text(text)
    monkeypatch.setattr(gpus, "_gpus_by_nvml", list)
    monkeypatch.setattr(gpus, "_FILES", tmp_path)
    assert node(tmp_path).cards == tuple(
        NodeCard("nvidia.com/gpu", index, f"GPU-{name}", "NVIDIA A10") for index, name in enumerate("ab")
    )


def set_links(monkeypatch: pytest.MonkeyPatch, ancestor: int) -> None:
    """Four GPUs: 0 and 2 have NVLink, and so have 1 and 3. The nearest common part of all is that `ancestor`."""
    ids = {"nvmlDeviceGetCount": lambda: 4, "nvmlDeviceGetUUID": lambda gpu: f"GPU-{gpu}-{ancestor}"}
    for name, answer in ids.items():
        monkeypatch.setattr(pynvml, name, answer)

    def status(first: int, second: int, index: int) -> int:
        assert index == pynvml.NVML_P2P_CAPS_INDEX_NVLINK
        is_linked = (first + second) % 2 == 0
        return pynvml.NVML_P2P_STATUS_OK if is_linked else pynvml.NVML_P2P_STATUS_NOT_SUPPORTED

    def common(first: int, second: int) -> int:
        if ancestor < 0:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return ancestor

    monkeypatch.setattr(pynvml, "nvmlDeviceGetP2PStatus", status)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetTopologyCommonAncestor", common)


@pytest.mark.parametrize("lost", [set()])
def test_links_of_the_gpus_are_measured_for_the_scheduler(driver, tmp_path, monkeypatch, lost) -> None:
    set_links(monkeypatch, pynvml.NVML_TOPOLOGY_NODE)
    links = parse_links(node(tmp_path, share_gpu_memory=True).annotations["hekla.io/gpu-links"])
    assert links.tolist() == [[0, 2, 7, 2], [2, 0, 2, 7], [7, 2, 0, 2], [2, 7, 2, 0]]
    assert best_set(links, (0, 1, 2, 3), 2) == (0, 2)
    written = {"hekla.io/gpu-links": "[[0, 1], [1, 0]]"}
    assert node(tmp_path, annotations=written).annotations == written, "people know better"


@pytest.mark.parametrize("lost", [{1, 3}])
def test_gpu_that_has_failed_has_no_links(driver, tmp_path, monkeypatch, lost) -> None:
    set_links(monkeypatch, -1)
    text = node(tmp_path).annotations["hekla.io/gpu-links"]
    assert parse_links(text).tolist() == [[0, 0, 7, 0], [0, 0, 0, 0], [7, 0, 0, 0], [0, 0, 0, 0]]


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


def test_parts_of_cards_keep_frameworks_to_them() -> None:
    part = held(NodeCard(NUMBER, 0, "GPU-a", "H100", 81079), 16384)
    found = gpus.part_variables([part])
    assert found == {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1942", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    small = replace(part, part_mib=1000)
    assert gpus.part_variables([part, small])["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.0062"
    assert gpus.part_variables([replace(part, part_mib=0)]) == {}
    assert gpus.part_variables([replace(part, memory_mib=0)]) == {}


def test_job_overwrites_the_variables_of_its_part(make_cluster) -> None:
    cluster = make_cluster("local")
    part = HeldCard(NUMBER, 0, "GPU-a", "H100", 81079, part_mib=16384)
    own = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.1"}
    script = "echo $XLA_PYTHON_CLIENT_MEM_FRACTION $TF_FORCE_GPU_ALLOW_GROWTH"
    key = cluster.started(cluster.order(script=script, cards=(part,), env=own))
    cluster.ended(key)
    assert cluster.log(key).split() == ["0.1", "true"]


def test_devices_of_other_pods_are_hidden(driver, tmp_path) -> None:
    cards = node(tmp_path).cards
    assert gpus.hidden_devices(cards, []) == ["nvidia5"]
    assert gpus.hidden_devices(cards, [held(cards[0])]) == []
    assert gpus.hidden_devices([NodeCard("nvidia.com/gpu", 0)], []) == []  # described without ids


def test_gpu_that_appears_later_is_withheld_from_pods_without_cards(make_cluster, driver, monkeypatch) -> None:
    """Without its variable, a program would take each GPU of the machine."""
    monkeypatch.setattr(gpus, "_gpus_by_nvml", list)
    cluster = make_cluster("local")
    cluster.backend.nodes()
    monkeypatch.undo()
    monkeypatch.setattr(gpus, "_library", gpus._Library())
    monkeypatch.setattr(gpus, "_gpus_by_nvml", lambda: [gpus._Gpu("GPU-a", "NVIDIA H100", 81079, device="nvidia0")])
    key = cluster.started(cluster.order(script="echo [${CUDA_VISIBLE_DEVICES-unset}]"))
    cluster.ended(key)
    assert cluster.log(key) == "[]\n"


def test_pod_does_not_find_a_hidden_device(make_cluster, monkeypatch) -> None:
    """With another device, since this machine may have no GPU."""
    monkeypatch.setattr(gpus, "hidden_devices", lambda *_: ["full"])
    cluster = make_cluster("local")
    key = cluster.started(cluster.order(script="ls /dev"))
    cluster.ended(key)
    found = cluster.log(key).split()
    has_namespaces = NAMESPACES not in isolation.failures()
    assert ("null" in found, "full" in found) == (True, not has_namespaces)
