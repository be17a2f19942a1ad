"""Cards of nodes, from the backend to the process: which pod gets which, with and without `deviceshare`."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.controller.conftest import SIZE, World
from tests.controller.test_cluster_controller import phase
from tests.kubernetes.control_plane import ControlPlane

from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.controller.observations import key_of
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.scheduling.cache import read_snapshot

A100 = {"model": "A100", "memory": "8Gi", "ids": ["GPU-a", "GPU-b"]}
SHARED = {**A100, "resource": "volcano.sh/gpu-number"}
SHARING = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}]
- plugins: [{name: deviceshare, arguments: {deviceshare.GPUSharingEnable: true}}]
"""
WAIT = "exec sleep 1000"
_NAMES = {"gpu": "nvidia.com/gpu", "npu": "huawei.com/Ascend910", "amd": "amd.com/gpu"}
PRINT = 'echo "cuda=[$CUDA_VISIBLE_DEVICES] nvidia=[$NVIDIA_VISIBLE_DEVICES]"'
on_local = pytest.mark.parametrize("world", ["local"], indirect=True)
on_kubernetes = pytest.mark.parametrize("world", ["kubernetes"], indirect=True)
on_simulated = pytest.mark.parametrize("world", ["simulated"], indirect=True)


def configure(world: World, *cards: dict[str, Any], policy: str = "") -> None:
    """Gives the only node these cards."""
    config: dict[str, Any] = {"allocatable": SIZE, "cards": list(cards)}
    if world.cluster.kind == "simulated":
        config = {"nodes": [{"name": "n", **config}], "speed": 10}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    if policy:
        clusters.set_policy(world.cluster, policy, note="", by=None, actor=PLATFORM, now=clock.now())
    controllers.reset()


def submit(world: World, name: str, script: str = WAIT, **requests: str) -> Job:
    """`requests`: `gpu` for NVIDIA's resource, else the names of Volcano's."""
    amounts = {_NAMES.get(one, f"volcano.sh/{one.replace('_', '-')}"): text for one, text in requests.items()}
    task = {
        "name": "main",
        "command": ["sh", "-c", script],
        "resources": {"cpu": "100m", **amounts},
        "env": {"HEKLA_SIM_SECONDS": "1000"},
    }
    spec = JobSpec.parse({"name": name, "tasks": [task]})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def pod_of(job: Job) -> Pod:
    return Pod.objects.get(job=job)


def cards_of(*jobs: Job) -> list[list[str]]:
    return [[card["id"] or str(card["index"]) for card in pod_of(job).cards] for job in jobs]


def log_of(world: World, job: Job) -> str:
    return backend_of(world.cluster).logs(key_of(pod_of(job)), offset=0, limit=10_000).data.decode()


def run(world: World, *jobs: Job, until: str = "running") -> None:
    world.reconcile_until(lambda: all(phase(job) == until for job in jobs))


@pytest.fixture(autouse=True)
def nothing_runs_on(world: World) -> Iterator[None]:
    """Stops the processes of the test."""
    yield
    for job in Job.objects.all():
        backend_of(world.cluster).remove(job.uid.hex)


def prints(world: World, *jobs: Job) -> list[str]:
    """What each job prints at once; they run on."""
    run(world, *jobs)
    world.backend_until(lambda: all("\n" in log_of(world, job) for job in jobs))
    return [log_of(world, job).strip() for job in jobs]


@on_local
def test_two_jobs_of_one_machine_print_two_cards(world: World) -> None:
    configure(world, A100)
    jobs = [submit(world, name, f"{PRINT}; {WAIT}", gpu="1") for name in ("first", "second")]
    assert prints(world, *jobs) == ["cuda=[GPU-a] nvidia=[GPU-a]", "cuda=[GPU-b] nvidia=[GPU-b]"]
    node = Node.objects.get()
    assert node.allocatable["nvidia.com/gpu"] == "2"
    assert [(card["id"], card["model"], card["memory_mib"]) for card in node.cards] == [
        ("GPU-a", "A100", 8192), ("GPU-b", "A100", 8192)
    ]  # fmt: skip


@on_local
def test_job_without_cards_sees_none(world: World) -> None:
    configure(world, A100)
    jobs = [submit(world, "without", f"{PRINT}; {WAIT}"), submit(world, "both", f"{PRINT}; {WAIT}", gpu="2")]
    assert prints(world, *jobs) == ["cuda=[] nvidia=[]", "cuda=[GPU-a,GPU-b] nvidia=[GPU-a,GPU-b]"]


@on_local
def test_machine_without_cards_sets_no_variable(world: World) -> None:
    configure(world)
    assert prints(world, submit(world, "one", f"echo ${{CUDA_VISIBLE_DEVICES-unset}}; {WAIT}")) == ["unset"]


@on_local
def test_four_jobs_share_one_card(world: World) -> None:
    configure(world, {**SHARED, "ids": ["GPU-a"]}, policy=SHARING)
    script = f"{PRINT} part=$VOLCANO_GPU_ALLOCATED/$VOLCANO_GPU_TOTAL; {WAIT}"
    jobs = [submit(world, f"job-{at}", script, gpu_memory="2048") for at in range(4)]
    assert prints(world, *jobs) == ["cuda=[GPU-a] nvidia=[GPU-a] part=2048/8192"] * 4
    fifth = submit(world, "fifth", gpu_memory="1")
    world.reconcile_until(lambda: bool(Job.objects.get(pk=fifth.pk).waiting))
    assert pod_of(jobs[3]).annotations["volcano.sh/gpu-index"] == "0"


@on_local
def test_whole_shared_card_is_requested_as_all_of_its_memory(world: World) -> None:
    configure(world, {**SHARED, "ids": ["GPU-a"]}, policy=SHARING)
    part = submit(world, "part", gpu_memory="2048")
    run(world, part)
    with pytest.raises(Invalid, match=r"A whole one is volcano\.sh/gpu-memory: 8192"):
        submit(world, "number", gpu_number="1")
    whole = submit(world, "whole", gpu_memory="8192")
    world.reconcile_until(lambda: bool(Job.objects.get(pk=whole.pk).waiting))
    assert phase(part) == "running"


@on_local
def test_cards_of_other_vendors_have_their_variables(world: World) -> None:
    configure(
        world,
        {"resource": "huawei.com/Ascend910", "count": 4},
        {"resource": "amd.com/gpu", "ids": ["GPU-x", "GPU-y"]},
    )
    script = f'echo "[$ASCEND_RT_VISIBLE_DEVICES] [$HIP_VISIBLE_DEVICES]"; {WAIT}'
    jobs = [submit(world, "npus", script, npu="3"), submit(world, "gpu", script, amd="1")]
    assert prints(world, *jobs) == ["[0,1,2] []", "[] [0]"]


@on_local
def test_restart_keeps_the_cards_and_gives_others_to_new_pods(world: World) -> None:
    configure(world, A100)
    first = submit(world, "first", gpu="1")
    run(world, first)
    controllers.reset()  # a new process: it knows only the rows, and opens the backend anew
    second = submit(world, "second", f"{PRINT}; {WAIT}", gpu="1")
    assert prints(world, second) == ["cuda=[GPU-b] nvidia=[GPU-b]"]
    assert cards_of(first, second) == [["GPU-a"], ["GPU-b"]]


@on_local
def test_bound_pod_that_was_not_started_starts_with_its_cards(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller dies between the record of the decision and the start."""
    configure(world, A100)
    monkeypatch.setattr("hekla.controller.cluster_controller.apply_decisions", lambda *_args, **_more: None)
    job = submit(world, "one", f"{PRINT}; {WAIT}", gpu="1")
    controllers.reconcile(world.cluster)
    assert (pod_of(job).phase, cards_of(job)) == ("bound", [["GPU-a"]])
    monkeypatch.undo()
    controllers.reset()
    other = submit(world, "other", f"{PRINT}; {WAIT}", gpu="1")
    assert prints(world, job, other) == ["cuda=[GPU-a] nvidia=[GPU-a]", "cuda=[GPU-b] nvidia=[GPU-b]"]


@on_local
def test_card_of_an_ended_pod_is_given_again(world: World) -> None:
    configure(world, {**A100, "ids": ["GPU-a"]})
    first, second = submit(world, "first", "true", gpu="1"), submit(world, "second", gpu="1")
    run(world, first, until="completed")
    run(world, second)
    assert cards_of(first, second) == [["GPU-a"], ["GPU-a"]]


@on_simulated
def test_unhealthy_card_is_not_given(world: World) -> None:
    configure(world, {**A100, "unhealthy": [0]})
    first, second = submit(world, "first", gpu="1"), submit(world, "second", gpu="1")
    run(world, first)
    assert Node.objects.get().allocatable["nvidia.com/gpu"] == "1"
    world.reconcile_until(lambda: bool(Job.objects.get(pk=second.pk).waiting))
    assert (cards_of(first), list(second.pods.all())) == ([["GPU-b"]], [])


@on_simulated
def test_shares_without_deviceshare_fill_the_first_card_with_room(world: World) -> None:
    configure(world, SHARED)
    jobs = [submit(world, name, gpu_memory=part) for name, part in (("a", "6000"), ("b", "6000"), ("c", "2000"))]
    run(world, *jobs)
    assert cards_of(*jobs) == [["GPU-a"], ["GPU-b"], ["GPU-a"]]


@on_simulated
def test_later_policy_with_deviceshare_knows_who_holds_which_card(world: World) -> None:
    configure(world, SHARED)
    first = submit(world, "first", gpu_memory="6000")
    run(world, first)
    assert pod_of(first).annotations["volcano.sh/gpu-index"] == "0"
    clusters.set_policy(world.cluster, SHARING, note="", by=None, actor=PLATFORM, now=clock.now())
    jobs = [submit(world, name, gpu_memory=part) for name, part in (("b", "6000"), ("c", "2000"))]
    run(world, *jobs)
    assert cards_of(*jobs) == [["GPU-b"], ["GPU-a"]]
    (group, *_) = read_snapshot(world.cluster, now=clock.now()).state.jobs
    assert group.pods[0].annotations["volcano.sh/gpu-index"] == "0"


@on_simulated
def test_pods_of_one_gang_get_different_cards(world: World) -> None:
    configure(world, A100)
    task = {"name": "main", "command": ["x"], "replicas": 2, "resources": {"cpu": "100m", "nvidia.com/gpu": "1"}}
    spec = JobSpec.parse({"name": "gang", "tasks": [{**task, "env": {"HEKLA_SIM_SECONDS": "1000"}}]})
    job = services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
    run(world, job)
    assert [card["id"] for pod in job.pods.order_by("index") for card in pod.cards] == ["GPU-a", "GPU-b"]


@on_simulated
def test_more_gpus_than_cards_share_the_least_used(world: World) -> None:
    config = {"nodes": [{"name": "n", "allocatable": {**SIZE, "nvidia.com/gpu": "4"}, "cards": [A100]}], "speed": 10}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    controllers.reset()
    jobs = [submit(world, f"job-{at}", gpu="1") for at in range(4)]
    run(world, *jobs)
    assert cards_of(*jobs) == [["GPU-a"], ["GPU-b"], ["GPU-a"], ["GPU-b"]]


def change_node(world: World, plane: ControlPlane, allocatable: dict[str, str], annotations: dict[str, str]) -> None:
    """As a device plugin does."""
    path, content_type = f"/api/v1/nodes/{Node.objects.get().name}", "application/merge-patch+json"
    status = {"capacity": allocatable, "allocatable": allocatable}
    plane.request("PATCH", f"{path}/status", {"status": status}, content_type=content_type)
    plane.request("PATCH", path, {"metadata": {"annotations": annotations}}, content_type=content_type)
    controllers.reset()  # nodes are read again
    world.reconcile_until(lambda: bool(Node.objects.get().cards))


def annotations_of(plane: ControlPlane, world: World, job: Job) -> dict[str, str]:
    name = key_of(pod_of(job)).name
    path = f"/api/v1/namespaces/{world.cluster.config['namespace']}/pods/{name}"
    return dict(plane.request("GET", path)["metadata"]["annotations"])


@on_kubernetes
def test_shared_card_reaches_the_pod_as_annotation(world: World, small_cluster: ControlPlane) -> None:
    controllers.reconcile(world.cluster)
    amounts = {"volcano.sh/gpu-memory": "16384", "volcano.sh/gpu-number": "2"}
    change_node(world, small_cluster, amounts, {"volcano.sh/gpu-unhealthy-ids": "0"})
    clusters.set_policy(world.cluster, SHARING, note="", by=None, actor=PLATFORM, now=clock.now())
    job = submit(world, "one", gpu_memory="4096")
    run(world, job)
    assert annotations_of(small_cluster, world, job)["volcano.sh/gpu-index"] == "1"
    assert [(card["index"], card["part_mib"], card["memory_mib"]) for card in pod_of(job).cards] == [(1, 4096, 8192)]
    assert [card["is_healthy"] for card in Node.objects.get().cards] == [False, True]


@on_kubernetes
def test_virtual_card_reaches_the_pod_as_annotation(world: World, small_cluster: ControlPlane) -> None:
    controllers.reconcile(world.cluster)
    registered = "GPU-a,4,8192,NVIDIA-A100,true,hami-core:GPU-b,4,8192,NVIDIA-A100,true,hami-core"
    amounts = {"volcano.sh/vgpu-number": "8", "volcano.sh/vgpu-memory": "16384"}
    change_node(world, small_cluster, amounts, {"volcano.sh/node-vgpu-register": registered})
    policy = SHARING.replace("GPUSharingEnable", "VGPUEnable")
    clusters.set_policy(world.cluster, policy, note="", by=None, actor=PLATFORM, now=clock.now())
    job = submit(world, "one", vgpu_number="1", vgpu_memory="2048")
    run(world, job)
    found = annotations_of(small_cluster, world, job)
    assert found["volcano.sh/vgpu-ids-new"] == "GPU-b,NVIDIA-A100,2048,0"
    assert found["volcano.sh/vgpu-node"] == Node.objects.get().name
    (card,) = pod_of(job).cards
    assert (card["id"], card["index"], card["model"], card["part_mib"]) == ("GPU-b", 1, "NVIDIA-A100", 2048)
