"""Real processes: which outlive which, that nothing is left over, and that nothing runs twice."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from hekla.backends.base import PodKey
from hekla.backends.local import isolation, processes
from hekla.backends.local.pod_folder import PodFolder, ShimStatus
from hekla.backends.local.sandbox.order import LAYERS
from hekla.domain.phases import PodPhase

FAMILY = """
(trap '' TERM; echo child $BASHPID; exec -a deaf sleep 1000) &
(sh -c 'sleep 1000 & echo grandchild $!; wait') &
setsid sh -c 'echo escaped $$; exec sleep 1000' &
sleep 0.1; echo all; wait
"""


def folder_of(cluster, key: PodKey) -> PodFolder:
    return PodFolder(str(cluster.home / "local" / "c1" / "pods" / key.job / key.name))


def alive(pid: int) -> bool:
    return processes.read_process(pid) is not None


def eventually(question, seconds: float = 10.0) -> bool:
    give_up_at = time.monotonic() + seconds
    while not question():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.02)
    return True


def folder_without_shim(cluster, key: PodKey) -> PodFolder:
    """The folder of an ended pod, after its shim has ended too."""
    cluster.ended(key)
    folder = folder_of(cluster, key)
    assert eventually(lambda: folder.holder() is None)
    return folder


@pytest.fixture(params=["in a sandbox", "without one"])
def any_local(request, local, monkeypatch):
    """This machine with and without the namespaces, whose end would end all processes of a pod."""
    if request.param == "without one":
        monkeypatch.setattr(isolation, "failures", lambda: dict.fromkeys(LAYERS, "not here"))
    return local


def pids_of(cluster, key: PodKey, inside: list[int]) -> list[int]:
    """The process ids on this machine of processes that know others, those of their namespace."""
    leader = folder_of(cluster, key).status()["pid"]
    found = {inner_pid(pid): pid for pid in (leader, *processes.descendants(leader))}
    return [found[pid] for pid in inside]


def inner_pid(pid: int) -> int:
    """The number by which a process knows itself."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in text.splitlines() if line.startswith("NSpid:")).split()[-1])


def with_family(cluster) -> tuple[PodKey, dict[str, int]]:
    """A pod with a child that ignores SIGTERM, a grandchild, and one in another session; their process ids."""
    order = cluster.order(command=("bash", "-c", FAMILY), grace_seconds=0.2)
    key = cluster.started(order)
    assert eventually(lambda: "all\n" in cluster.log(key))
    words = [line.split() for line in cluster.log(key).splitlines()]
    family = {line[0]: int(line[1]) for line in words if len(line) == 2}
    return key, dict(zip(family, pids_of(cluster, key, list(family.values())), strict=True))


def test_pod_outlives_the_process_that_started_it(local):
    order = local.order(script="sleep 0.3; echo finished")
    with local.starter(order) as starter:
        starter.stdin.write("go\n")
        starter.stdin.flush()
        assert starter.stdout.readline() == "started\n"
        os.kill(starter.pid, signal.SIGKILL)
    assert local.ended(order.key).phase == PodPhase.SUCCEEDED
    assert local.log(order.key) == "finished\n"


def test_shim_and_pod_have_sessions_of_their_own(local):
    key = local.started(local.long())
    local.until(key, PodPhase.RUNNING)
    shim = processes.read_process(folder_of(local, key).holder())
    pod = processes.read_process(folder_of(local, key).status()["pid"])
    assert len({shim.session, pod.session, os.getsid(0)}) == 3
    assert pod.parent == shim.pid
    assert shim.parent != os.getpid()


def test_stop_ends_all_descendants(any_local):
    key, family = with_family(any_local)
    assert set(family) == {"child", "grandchild", "escaped"}
    any_local.stop(key, reason="Enough")
    assert any_local.ended(key).reason == "Stopped"
    assert not any(alive(pid) for pid in family.values())


def test_background_processes_end_with_the_pod(any_local):
    script = "sleep 1000 & echo $!; setsid sleep 1000 & echo $!; sleep 0.5"
    key = any_local.started(any_local.order(script=script))
    assert eventually(lambda: any_local.log(key).count("\n") == 2)
    background = pids_of(any_local, key, [int(pid) for pid in any_local.log(key).split()])
    assert any_local.ended(key).phase == PodPhase.SUCCEEDED
    assert not any(alive(pid) for pid in background)


def test_stopped_pod_has_its_grace_period(local):
    script = "trap 'echo goodbye; exit 5' TERM; echo ready; while :; do sleep 0.02; done"
    key = local.started(local.order(script=script, grace_seconds=10))
    assert eventually(lambda: local.log(key) == "ready\n")
    local.stop(key, reason="Enough")
    pod = local.ended(key)
    assert (pod.reason, pod.exit_code) == ("Stopped", 5)
    assert local.log(key).endswith("goodbye\n")


def test_stop_continues_after_the_requester_died(any_local):
    """The request is a file. A shim without the signal finds it at its next check."""
    key, family = with_family(any_local)
    folder = folder_of(any_local, key)
    folder.request_stop({"reason": "Enough", "at": time.time(), "grace_seconds": 0.1})
    assert any_local.ended(key).message == "Enough"
    assert not any(alive(pid) for pid in family.values())


def test_killed_shim_ends_its_pod_and_nothing_runs_twice(any_local):
    key, family = with_family(any_local)
    folder = folder_of(any_local, key)
    os.kill(folder.holder(), signal.SIGKILL)
    pod = any_local.ended(key)
    assert (pod.phase, pod.reason) == (PodPhase.LOST, "ShimDied")
    assert not any(alive(pid) for pid in [*family.values(), folder.status()["pid"]])
    any_local.start(any_local.order(command=("bash", "-c", FAMILY)))
    assert any_local.observation(key) == pod
    assert folder.holder() is None
    assert any_local.log(key).count("all\n") == 1


def test_killed_shim_ends_no_pod_of_a_copied_data_folder(make_cluster):
    original, copied = make_cluster("local"), make_cluster("local")
    keys = [cluster.started(cluster.long()) for cluster in (original, copied)]
    assert keys[0] == keys[1]
    for cluster, key in zip((original, copied), keys, strict=True):
        cluster.until(key, PodPhase.RUNNING)
    os.kill(folder_of(copied, keys[1]).holder(), signal.SIGKILL)
    assert copied.ended(keys[1]).phase == PodPhase.LOST
    assert original.observation(keys[0]).phase == PodPhase.RUNNING
    assert alive(folder_of(original, keys[0]).status()["pid"])


def test_shim_that_died_between_intent_and_launch_is_not_repeated(local):
    key = local.started(local.order(script="echo ran"))
    folder = folder_without_shim(local, key)
    Path(folder.log).write_bytes(b"")
    folder.write_status(ShimStatus(phase="preparing", at=time.time(), launched=True))
    assert local.observation(key).phase == PodPhase.LOST
    assert local.log(key) == ""


def test_crash_between_claim_and_launch_is_repaired_by_the_next_start(local, monkeypatch):
    with monkeypatch.context() as broken:
        broken.setattr("hekla.backends.local.recovery._launch", lambda folder: None)
        key = local.started(local.order(script="echo ran"))
    assert local.observation(key).phase == PodPhase.PREPARING or local.observation(key).phase.is_final
    local.start(local.order(script="echo ran"))
    assert local.ended(key).phase == PodPhase.SUCCEEDED
    assert local.log(key) == "ran\n"


def test_pod_from_before_a_reboot_is_lost(local):
    key = local.started(local.order(script="echo ran"))
    folder = folder_without_shim(local, key)
    order = folder.order()
    folder.write_order({**order, "boot": "another"})
    folder.write_status(ShimStatus(phase="running", at=time.time(), launched=True, pid=os.getpid(), pid_started="0"))
    pod = local.observation(key)
    assert (pod.phase, pod.reason) == (PodPhase.LOST, "NodeRestarted")


def test_pod_with_a_damaged_record_is_lost_and_hides_no_other(local):
    broken, whole = local.started(local.order(0)), local.started(local.order(1))
    local.ended(broken)
    local.ended(whole)
    Path(folder_of(local, broken).path, "status.json").write_text("{")
    assert local.observation(broken).phase == PodPhase.LOST
    assert local.observation(whole).phase == PodPhase.SUCCEEDED


@pytest.mark.parametrize(
    ("command", "reason", "exit_code"),
    [
        (("no-such-command",), "CommandNotFound", 127),
        (("/etc/passwd",), "CommandNotExecutable", 126),
        (("sh", "-c", "kill -SEGV $$"), "SIGSEGV", 139),
        (("sh", "-c", "kill -KILL $$"), "SIGKILL", 137),
    ],
)
def test_failure_has_a_reason(local, command, reason, exit_code):
    pod = local.ended(local.started(local.order(command=command)))
    assert (pod.phase, pod.reason, pod.exit_code) == (PodPhase.FAILED, reason, exit_code)
    assert pod.message


def test_pod_inherits_no_locks_of_the_shim(local):
    """Nothing is inherited but the three standard streams."""
    key = local.started(local.order(script="ls /proc/$$/fd"))
    local.ended(key)
    assert local.log(key).split() == ["0", "1", "2"]


def test_status_names_the_process(local):
    key = local.started(local.long())
    local.until(key, PodPhase.RUNNING)
    status = json.loads(Path(folder_of(local, key).path, "status.json").read_text())
    assert processes.read_process(status["pid"]).started == status["pid_started"]
