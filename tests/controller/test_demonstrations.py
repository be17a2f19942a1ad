"""Each demonstration, run by the real controller on its simulated cluster, ends as its page announces."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.support import auditor

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.demonstrations import services, stages
from hekla.apps.demonstrations.catalogue import DEMONSTRATIONS
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.demonstrations.scenes import Demonstration
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.queues.models import Queue
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.controller.controllers import controllers
from hekla.lib import clock
from hekla.pages.demonstrations import outcomes
from hekla.pages.demonstrations.job_views import JobView, job_views

TWICE_AS_FAST = 2 * stages.SPEED


@dataclass
class Play:
    """A run until its end: the pods of each job at every look."""

    run: DemoRun
    looks: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each look and job: pods on a node that are not stopping, and succeeded pods."""

    def look(self) -> bool:
        """Advances the run and records its pods. Returns whether the run is over."""
        services.advance_all(now=clock.now())
        self.looks.append([_held_and_done(job.pk) for job in self.run.jobs.order_by("id")])
        self.run.refresh_from_db()
        return self.run.ended_at is not None

    @property
    def views(self) -> list[JobView]:
        return job_views(self.run)


def _held_and_done(job: int) -> tuple[int, int]:
    pods = [pod for pod in Pod.objects.filter(job=job) if not pod.stopping]
    return sum(pod.phase in ("bound", "preparing", "running") for pod in pods), sum(
        pod.phase == "succeeded" for pod in pods
    )


@pytest.fixture
def people(transactional_db: None, settings: Any, tmp_path: Path) -> Iterator[tuple[Tenant, User]]:
    settings.HEKLA_HOME = tmp_path
    now = clock.now()
    controllers.reset()
    ada = accounts.create_user(username="ada", password=None, platform_role="admin", actor=PLATFORM, now=now)
    tenant = tenancy.create(slug="lab", name="Lab", actor=PLATFORM, now=now)
    tenancy.add_member(tenant, ada, "member", actor=PLATFORM, now=now)
    yield tenant, ada
    controllers.reset()


@pytest.fixture
def play(people: tuple[Tenant, User], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Play]:
    """Starts a demonstration and runs it to its end."""
    monkeypatch.setattr("tests.controller.conftest.LAST_SECONDS", 60.0)
    monkeypatch.setattr(stages, "SPEED", TWICE_AS_FAST)
    monkeypatch.setattr("hekla.apps.demonstrations.services.PAUSE_SECONDS", 1)

    def until_it_is_over(name: str, without: str = "") -> Play:
        tenant, ada = people
        run = services.start(name, without=without, tenant=tenant, user=ada, now=clock.now())
        played = Play(run)
        World(ada, tenant, run.cluster, Queue.objects.get(name=run.cluster.name)).reconcile_until(played.look)
        auditor.audit()
        return played

    return until_it_is_over


def evicted(played: Play) -> list[list[str]]:
    """For each job the reasons of its evictions."""
    return [list(Pod.objects.filter(job=view.job, evicted=True).values_list("stop_reason", flat=True))
            for view in played.views]  # fmt: skip


BY_DEFAULT = ("elastic-other-queue", "racks")
"""Those that run also without their policy by default: one without an action, one without a plugin."""
MODES = [
    pytest.param(one, without, marks=pytest.mark.thorough if without and one.name not in BY_DEFAULT else ())
    for one in DEMONSTRATIONS
    for without in ("", one.without and one.without.name)
    if without is not None
]


@pytest.mark.parametrize(("demonstration", "without"), MODES, ids=lambda one: getattr(one, "name", one))
def test_demonstration_ends_as_announced(play: Callable[..., Play], demonstration: Demonstration, without: str) -> None:
    played = play(demonstration.name, without)
    outcome, _lesson = demonstration.expected(without)
    assert [view.job.phase for view in played.views] == ["completed"] * len(demonstration.acts)
    assert evicted(played) == [[outcome.action] * count for count in outcome.evicted or [0] * len(played.views)]
    assert outcomes.is_as_announced(demonstration, outcome, played.views)
    for look in played.looks:
        for (held, done), act in zip(look, demonstration.acts, strict=False):
            least = act.least or sum(act.roles.values())
            assert held + done == 0 or held + done >= least, "a gang was placed in part, or evicted below its minimum"
    _OWN[demonstration.name, without](played)


def _gangs(played: Play) -> None:
    first, second = (view.job for view in played.views)
    assert first.finished_at <= second.started_at  # type: ignore[operator]
    assert all(0 in [held for held, _ in look] for look in played.looks)


def _together(played: Play) -> None:
    assert sorted(view.nodes for view in played.views) == [((f"node-{n}", 6),) for n in (1, 2, 3)]


def _at_once(played: Play) -> None:
    busy = [[held for held, _ in look] for look in played.looks if any(held for held, _ in look)]
    assert busy[0] == [5, 5]


def _made_room(played: Play) -> None:
    assert [(10, 0)] in played.looks, "the first job ran as a whole before the second was submitted"
    assert [(5, 0), (5, 0)] in played.looks
    first, second = (view.job for view in played.views)
    evictions = LoggedEvent.objects.filter(subject=f"job:{first.uid}", kind="PodEvicted")
    assert {event.payload["for_name"] for event in evictions} == {second.name}


def _made_room_in_its_queue(played: Play) -> None:
    assert len({view.job.queue_id for view in played.views}) == 1
    _made_room(played)


def _gave_back(played: Play) -> None:
    assert len({view.job.queue_id for view in played.views}) == 2
    _made_room(played)


def _no_room(played: Play) -> None:
    both = [look for look in played.looks if len(look) == 2]
    assert not [look for look in both if look[1] != (0, 0) and look[0][1] == 0], "while all pods of the first job run"


def _apart(played: Play) -> None:
    assert max(len(view.nodes) for view in played.views) > 1


def _packed(played: Play) -> None:
    *small, large = (node for view in played.views for node, _ in view.nodes)
    assert (len(set(small)), large in small) == (1, False)


def _each_its_node(played: Play) -> None:
    *small, _large = (node for view in played.views for node, _ in view.nodes)
    assert len(set(small)) == 3


def _racks(played: Play) -> None:
    assert sorted(view.nodes for view in played.views) == [
        (("node-1", 4), ("node-2", 4)),
        (("node-3", 4), ("node-4", 4)),
    ]


def _mixed(played: Play) -> None:
    assert all({"node-1", "node-2"} & (on := {node for node, _ in view.nodes}) and {"node-3", "node-4"} & on
               for view in played.views)  # fmt: skip


_OWN = {
    ("gangs", ""): _gangs,
    ("together", ""): _together,
    ("together", "task-topology"): _apart,
    ("elastic-at-once", ""): _at_once,
    ("elastic-same-queue", ""): _made_room_in_its_queue,
    ("elastic-same-queue", "preempt"): _no_room,
    ("elastic-other-queue", ""): _gave_back,
    ("elastic-other-queue", "reclaim"): _no_room,
    ("packed", ""): _packed,
    ("packed", "binpack"): _each_its_node,
    ("racks", ""): _racks,
    ("racks", "network-topology-aware"): _mixed,
}
