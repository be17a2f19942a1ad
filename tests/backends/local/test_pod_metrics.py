"""What pods use: by their processes, their control groups and the GPUs' driver."""

from datetime import UTC, datetime
from types import SimpleNamespace

import pynvml
import pytest

from hekla.backends.base import PodKey
from hekla.backends.local import machine, pod_metrics
from hekla.domain.phases import PodPhase

AT = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
KEY = PodKey("job", "main", 0, 1)
TICKS = pod_metrics.os.sysconf("SC_CLK_TCK")
PAGE = pod_metrics.os.sysconf("SC_PAGE_SIZE")


def process(pid, parent, own=0, gathered=0, resident=0, shared=0):
    return pod_metrics._Process(pid, parent, own, gathered, resident, shared)


class Folder:
    """A pod's folder as far as it is asked here."""

    def __init__(self, shim, cgroup=""):
        self.holder = lambda: shim
        self.order = lambda: {"cgroup": cgroup}


@pytest.fixture
def processes(monkeypatch):
    """A shim (10) with a pod of two processes, one of which has a child, beside a stranger."""
    table = [
        process(1, 0, own=9999, resident=9999),
        process(10, 1, own=50, gathered=3 * TICKS, resident=100, shared=10),
        process(11, 10, own=TICKS, gathered=TICKS, resident=300, shared=100),
        process(12, 11, own=2 * TICKS, resident=250, shared=150),
    ]
    monkeypatch.setattr(pod_metrics, "_processes", lambda: iter(table))
    monkeypatch.setattr(machine, "gpu_ids", tuple)


def test_all_processes_below_the_shim_count_and_those_that_ended(processes):
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert use.cpu_seconds == 7.0
    assert use.memory_bytes == (200 + 100 + 150) * PAGE
    assert (use.gpus_busy, use.gpu_memory_bytes) == (None, None)


@pytest.mark.parametrize("shim", [None, 77])
def test_a_pod_without_a_shim_is_left_out(processes, shim):
    assert pod_metrics.measure_pods({KEY: Folder(shim)}, at=AT) == []


def test_a_control_group_knows_better(processes, tmp_path):
    (tmp_path / "cpu.stat").write_text("usage_usec 4500000\nuser_usec 1\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    (tmp_path / "memory.stat").write_text("anon 1\ninactive_file 400000\n")
    (use,) = pod_metrics.measure_pods({KEY: Folder(10, str(tmp_path))}, at=AT)
    assert (use.cpu_seconds, use.memory_bytes) == (4.5, 600_000)


def test_a_control_group_that_is_gone_leaves_what_the_processes_told(processes, tmp_path):
    (use,) = pod_metrics.measure_pods({KEY: Folder(10, str(tmp_path / "gone"))}, at=AT)
    assert (use.cpu_seconds, use.memory_bytes) == (7.0, 450 * PAGE)


@pytest.fixture
def two_gpus(processes, monkeypatch):
    """A driver that shows the pod's processes on two GPUs, one of them shared with a stranger."""
    on = {0: [(11, 2**30), (1, 2**20)], 1: [(11, None), (12, 2**29)]}
    monkeypatch.setattr(machine, "gpu_ids", lambda: ("a", "b"))
    monkeypatch.setattr(pynvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlShutdown", lambda: None)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", lambda: 2)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetHandleByIndex", lambda number: number)
    monkeypatch.setattr(
        pynvml,
        "nvmlDeviceGetComputeRunningProcesses",
        lambda device: [SimpleNamespace(pid=pid, usedGpuMemory=held) for pid, held in on[device]],
    )


def answers(monkeypatch, answer):
    """The driver's answer to which part of each GPU its processes took."""

    def told(device, since):
        assert since == int((AT.timestamp() - pod_metrics.GPU_WINDOW_SECONDS) * 1e6)
        if isinstance(answer, Exception):
            raise answer
        return [SimpleNamespace(pid=pid, smUtil=part) for pid, part in answer[device]]

    monkeypatch.setattr(pynvml, "nvmlDeviceGetProcessUtilization", told)


def test_gpus_are_counted_by_the_parts_that_its_processes_took(two_gpus, monkeypatch):
    answers(monkeypatch, {0: [(11, 40), (11, 60), (1, 30)], 1: [(12, 25)]})
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert use.gpus_busy == pytest.approx(0.75)
    assert use.gpu_memory_bytes == 2**30 + 2**29


@pytest.mark.parametrize(
    ("error", "busy"), [(pynvml.NVML_ERROR_NOT_FOUND, 0.0), (pynvml.NVML_ERROR_NOT_SUPPORTED, None)]
)
def test_a_driver_that_saw_no_work_and_one_that_does_not_tell_are_two_things(two_gpus, monkeypatch, error, busy):
    answers(monkeypatch, pynvml.NVMLError(error))
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert use.gpus_busy == busy
    assert use.gpu_memory_bytes == 2**30 + 2**29


def test_a_driver_that_fails_costs_no_other_figure(two_gpus, monkeypatch):
    def broken():
        raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    monkeypatch.setattr(pynvml, "nvmlDeviceGetCount", broken)
    (use,) = pod_metrics.measure_pods({KEY: Folder(10)}, at=AT)
    assert (use.cpu_seconds, use.gpus_busy) == (7.0, None)


def test_what_a_child_used_counts_after_it_ended(local):
    script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    key = local.started(local.order(script=f"sh -c '{script}'; echo counted; exec sleep 1000"))
    local.until(key, PodPhase.RUNNING)
    while "counted" not in local.log(key):
        local.backend.wait(0.05)
    (use,) = local.backend.metrics.measure([key])
    assert use.cpu_seconds > 0
