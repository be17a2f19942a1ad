"""Usage of pods: from processes, control groups and the GPU driver."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pynvml
import pytest

from hekla.backends.base import PodKey
from hekla.backends.local import gpus, pod_metrics
from hekla.domain.phases import PodPhase

AT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
KEY = PodKey("job", "main", 0, 1)
TICKS = pod_metrics.os.sysconf("SC_CLK_TCK")
PAGE = pod_metrics.os.sysconf("SC_PAGE_SIZE")


def process(pid, parent, own=0, gathered=0, resident=0, shared=0):
    return pod_metrics._Process(pid, parent, own, gathered, resident, shared)


class Folder:
    """The parts of a pod's folder that are read here."""

    def __init__(self, shim, cgroup="", gpus=()):
        self.holder = lambda: shim
        self.order = lambda: {"groups": [cgroup] if cgroup else [], "gpus": gpus}


@pytest.fixture
def processes(monkeypatch):
    """A shim (10) with a pod of two processes, one of which has a child, beside a foreign process."""
    table = [
        process(1, 0, own=9999, resident=9999),
        process(10, 1, own=50, gathered=3 * TICKS, resident=100, shared=10),
        process(11, 10, own=TICKS, gathered=TICKS, resident=300, shared=100),
        process(12, 11, own=2 * TICKS, resident=250, shared=150),
    ]
    monkeypatch.setattr(pod_metrics, "_processes", lambda: iter(table))
    monkeypatch.setattr(gpus, "has_nvml", lambda: False)


def test_usage_includes_all_processes_below_the_shim_and_ended_ones(processes):
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert use.cpu_seconds == 7.0
    assert use.memory_bytes == (200 + 100 + 150) * PAGE
    assert (use.gpus_busy, use.gpu_memory_bytes) == (None, None)


@pytest.mark.parametrize("shim", [None, 77])
def test_pod_without_a_shim_is_left_out(processes, shim):
    assert pod_metrics.measure_pods({KEY: Folder(shim)}, at=AT) == []


def test_control_group_takes_precedence(processes, tmp_path):
    (tmp_path / "cpu.stat").write_text("usage_usec 4500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 400000\n")
    (use,) = pod_metrics.measure_pods({KEY: Folder(10, str(tmp_path))}, at=AT)
    assert (use.cpu_seconds, use.memory_bytes) == (4.5, 600_000)


def test_missing_control_group_falls_back_to_processes(processes, tmp_path):
    (use,) = pod_metrics.measure_pods({KEY: Folder(10, str(tmp_path / "gone"))}, at=AT)
    assert (use.cpu_seconds, use.memory_bytes) == (7.0, 450 * PAGE)


@pytest.fixture
def two_gpus(processes, monkeypatch):
    """A driver with the pod's processes on two GPUs, one of them shared with a foreign process."""
    on = {0: [(11, 2**30), (1, 2**20)], 1: [(11, None), (12, 2**29)]}
    monkeypatch.setattr(gpus, "has_nvml", lambda: True)
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda number: number)
    monkeypatch.setattr(
        pynvml,
        "nvmlDeviceGetComputeRunningProcesses",
        lambda device: [SimpleNamespace(pid=pid, usedGpuMemory=held) for pid, held in on[device]],
    )


def set_utilization(monkeypatch, answer):
    """Sets the driver's response: the utilization of each GPU by process."""

    def respond(device, since):
        assert since == int((AT.timestamp() - pod_metrics.GPU_WINDOW_SECONDS) * 1e6)
        if isinstance(answer, Exception):
            raise answer
        return [SimpleNamespace(pid=pid, smUtil=part) for pid, part in answer[device]]

    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", respond)


def test_gpu_usage_is_the_utilization_by_the_pods_processes(two_gpus, monkeypatch):
    set_utilization(monkeypatch, {0: [(11, 40), (11, 60), (1, 30)], 1: [(12, 25)]})
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert use.gpus_busy == pytest.approx(0.75)
    assert use.gpu_memory_bytes == 2**30 + 2**29


@pytest.mark.parametrize(
    ("error", "busy"), [(pynvml.NVML_ERROR_NOT_FOUND, 0.0), (pynvml.NVML_ERROR_NOT_SUPPORTED, None)]
)
def test_idle_gpu_differs_from_a_driver_without_utilization(two_gpus, monkeypatch, error, busy):
    set_utilization(monkeypatch, pynvml.NVMLError(error))
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert use.gpus_busy == busy
    assert use.gpu_memory_bytes == 2**30 + 2**29


def test_whole_gpus_are_measured_if_the_driver_tells_nothing_about_processes(two_gpus, monkeypatch):
    set_utilization(monkeypatch, pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED))
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUUID", lambda device: f"GPU-{device}")
    monkeypatch.setattr(pynvml, "nvmlDeviceGetUtilizationRates", lambda device: SimpleNamespace(gpu=90 + device))
    memory = SimpleNamespace(total=80 * 2**30, reserved=0, used=2**30)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetMemoryInfo", lambda _device, version: memory)
    (use,) = pod_metrics.measure_pods({KEY: Folder(10, gpus=["GPU-0", "GPU-1"])}, at=AT)
    assert (use.gpus_busy, use.gpu_memory_bytes) == (pytest.approx(1.81), 2 * 2**30)
    (use,) = pod_metrics.measure_pods({KEY: Folder(10, gpus=["GPU-0", "GPU-7"])}, at=AT)
    assert use.gpus_busy is None, "one of its GPUs has gone"


def test_failing_driver_affects_no_other_value(two_gpus, monkeypatch):
    def fail():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", fail)
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert (use.cpu_seconds, use.gpus_busy) == (7.0, None)


def test_usage_of_an_ended_child_counts(local):
    script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    key = local.started(local.order(script=f"sh -c '{script}'; echo counted; exec sleep 1000"))
    local.until(key, PodPhase.RUNNING)
    while "counted" not in local.log(key):
        local.backend.wait(0.05)
    (use,) = local.backend.metrics.measure([key])
    assert use.cpu_seconds > 0
