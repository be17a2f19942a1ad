"""Draining of nodes: what the preview says is what happens then."""

from typing import Any

import pytest
from tests.controller.conftest import SIZE, World
from tests.controller.test_cluster_controller import phase

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.clusters import services as clusters
from hekla.apps.clusters.models import Node
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs import services
from hekla.apps.jobs.models import Job, Pod
from hekla.controller import disruption_budgets
from hekla.controller.controllers import controllers
from hekla.domain.errors import Forbidden, Refused
from hekla.domain.job_kinds import SESSION
from hekla.domain.jobspec import JobSpec
from hekla.lib import clock
from hekla.simulation import drain_descriptions
from hekla.simulation.draining import DrainFate, preview_drain

on_simulated = pytest.mark.parametrize("world", ["simulated"], indirect=True)
FAN = "a new fan"


def submit(world: World, name: str, *, cpu: str, policies: list[dict[str, Any]] = [], **more: Any) -> Job:  # noqa: B006
    env = {"HEKLA_SIM_SECONDS": "1000"}
    task: dict[str, Any] = {"name": "main", "command": ["x"], "resources": {"cpu": cpu}, "env": env}
    spec = JobSpec.parse({"name": name, "tasks": [task], "policies": policies, **more})
    return services.submit(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())


def operator() -> User:
    found = User.objects.filter(username="otto").first()
    return found or accounts.create_user(
        username="otto", password=None, platform_role="operator", actor=PLATFORM, now=clock.now()
    )


def living(node: str) -> list[str]:
    return sorted(str(pod.job) for pod in Pod.objects.filter(node=node) if not pod.is_final)


def configure(world: World, *nodes: dict[str, Any]) -> None:
    config = {"nodes": [{"allocatable": SIZE, **node} for node in nodes], "seed": 1, "speed": 10}
    clusters.change(world.cluster, {"config": config}, actor=PLATFORM, now=clock.now())
    controllers.reset()


@on_simulated
def test_preview_comes_true(world: World) -> None:
    """Of four jobs of one node: one moves at once, one restarts, one ends, and one fits nowhere else."""
    configure(world, {"name": "big", "allocatable": {**SIZE, "cpu": "16"}})
    restart = [{"events": ["PodEvicted"], "action": "RestartJob"}]
    jobs = {
        "moves": submit(world, "moves", cpu="1", kind=SESSION),
        "restarts": submit(world, "restarts", cpu="1", policies=restart, max_retry=2),
        "ends": submit(world, "ends", cpu="1", policies=[{"events": ["PodEvicted"], "action": "TerminateJob"}]),
        "large": submit(world, "large", cpu="8"),
    }
    world.reconcile_until(lambda: all(phase(job) == "running" for job in jobs.values()))
    configure(world, {"name": "big", "allocatable": {**SIZE, "cpu": "16"}}, {"name": "small"})
    world.reconcile_until(lambda: Node.objects.count() == 2)
    waits = submit(world, "waits", cpu="6")  # 5 CPUs are free on the large node, and the small one has 4
    controllers.reconcile(world.cluster)

    node, otto, before = Node.objects.get(name="big"), operator(), LoggedEvent.objects.count()
    found = preview_drain(node, user=otto)
    assert LoggedEvent.objects.count() == before
    by_name = {one.job.name: one for one in found.jobs}
    assert {name: one.fate for name, one in by_name.items()} == {
        "moves": DrainFate.MOVES, "restarts": DrainFate.RESTARTS, "ends": DrainFate.ENDS, "large": DrainFate.MOVES
    }  # fmt: skip
    assert (by_name["moves"].is_session, by_name["restarts"].restarts_left) == (True, 1)
    assert {name: dict(one.nodes) for name, one in by_name.items()} == {
        "moves": {"small": 1}, "restarts": {"small": 1}, "ends": {}, "large": {}
    }  # fmt: skip
    assert [name for name, one in by_name.items() if not one.fits] == ["large"]
    assert [job.name for job in found.stranded] == ["waits"]
    assert "1 pod on node small" in drain_descriptions.when(by_name["moves"], found.at)
    assert "no other node" in drain_descriptions.when(by_name["large"], found.at)
    assert "1 restart is left" in drain_descriptions.fate(by_name["restarts"])
    assert "of work since the start" in drain_descriptions.lost(by_name["moves"])

    done = services.drain(node, reason=f"  {FAN} ", user=otto, now=clock.now())
    assert (done.pods, done.jobs) == (4, 4)
    evicted = LoggedEvent.objects.filter(kind="PodEvicted", actor_name="otto")
    assert {event.payload["message"] for event in evicted} == {FAN}
    assert LoggedEvent.objects.get(kind="NodeDrained").payload == {"node": "big", "reason": FAN, "pods": 4, "jobs": 4}
    world.reconcile_until(lambda: living("small") == ["moves", "restarts"] and not living("big"))
    world.reconcile_until(lambda: phase(jobs["ends"]) == by_name["ends"].ends_as.replace("ing", "ed"))
    assert Job.objects.get(name="restarts").retry_count == 1
    assert [phase(job) for job in (jobs["large"], waits)] == ["pending", "pending"]

    clusters.cordon(Node.objects.get(name="big"), cordoned=False, actor=PLATFORM, now=clock.now())
    world.reconcile_until(lambda: living("big") == ["large", "waits"])
    assert Node.objects.get(name="big").draining_since is None


@on_simulated
def test_pod_bound_by_a_decision_from_before_is_evicted_too(world: World) -> None:
    configure(world, {"name": "one"})
    job, otto = submit(world, "late", cpu="1"), operator()
    world.reconcile_until(lambda: phase(job) == "running")
    node = Node.objects.get()
    clusters.begin_draining(node, reason=FAN, actor=PLATFORM, now=clock.now())
    clusters.note_drain(node, pods=0, jobs=0, actor=PLATFORM, now=clock.now())
    world.reconcile_until(lambda: not living("one"))
    event = LoggedEvent.objects.get(kind="PodEvicted")
    assert (event.actor_name, event.payload["action"], event.payload["message"]) == ("controller", "drain", FAN)
    with pytest.raises(Refused, match="reason"):
        services.drain(node, reason=" ", user=otto, now=clock.now())
    with pytest.raises(Forbidden):
        services.drain(node, reason=FAN, user=world.alice, now=clock.now())
    with pytest.raises(Forbidden):
        preview_drain(node, user=world.alice)


@on_simulated
def test_pod_of_a_drain_that_just_ended_stays(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The controller knows of the drain, and the node is uncordoned before it evicts."""
    configure(world, {"name": "one"})
    job = submit(world, "stays", cpu="1")
    world.reconcile_until(lambda: phase(job) == "running")
    node = Node.objects.get()
    clusters.begin_draining(node, reason=FAN, actor=PLATFORM, now=clock.now())
    clusters.note_drain(node, pods=0, jobs=0, actor=PLATFORM, now=clock.now())
    unprotected = disruption_budgets.unprotected

    def after_the_end(lease: Any, pods: Any, **more: Any) -> Any:
        clusters.cordon(Node.objects.get(), cordoned=False, actor=PLATFORM, now=clock.now())
        return unprotected(lease, pods, **more)

    monkeypatch.setattr(disruption_budgets, "unprotected", after_the_end)
    world.reconcile_until(lambda: Node.objects.get().draining_since is None)
    assert living("one") == ["stays"]
    assert not LoggedEvent.objects.filter(kind="PodEvicted").exists()


@on_simulated
def test_a_drain_is_refused_if_other_pods_are_there_than_in_its_preview(world: World) -> None:
    first = submit(world, "first", cpu="1")
    world.reconcile_until(lambda: phase(first) == "running")
    node, user = Node.objects.get(), operator()
    token = preview_drain(node, user=user).token
    second = submit(world, "second", cpu="1")
    world.reconcile_until(lambda: phase(second) == "running")
    with pytest.raises(services.DrainPreviewOutdated, match=r"New: second main-0\. Gone: none\."):
        services.drain(node, reason=FAN, user=user, now=clock.now(), token=token)
    with pytest.raises(services.DrainPreviewOutdated):
        services.drain(node, reason=FAN, user=user, now=clock.now(), token="1-x")
    node.refresh_from_db()
    assert not node.is_cordoned
    assert not Pod.objects.filter(evicted=True).exists()
    pods = Pod.objects.filter(phase="running").values_list("pk", flat=True)
    done = services.drain(node, reason=FAN, user=user, now=clock.now(), token="-".join(map(str, sorted(pods))))
    assert done.pods == 2
