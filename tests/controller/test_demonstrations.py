"""Each demonstration, decided by the real controller on its simulated cluster, shows what its page announces.

Time is simulated too: it passes between two reconciliations, so that nothing waits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.controller.conftest import describe
from tests.support import auditor
from tests.support.examples import EVERY

from hekla.apps.accounts import services as accounts
from hekla.apps.accounts.models import User
from hekla.apps.demonstrations import services
from hekla.apps.demonstrations.catalogue import DEMONSTRATIONS, get
from hekla.apps.demonstrations.models import DemoRun
from hekla.apps.demonstrations.scenes import Demonstration
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.jobs.models import Pod
from hekla.apps.tenancy import services as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.controller.backends import backend_of
from hekla.controller.controllers import controllers
from hekla.lib import clock
from hekla.pages.demonstrations import context
from hekla.pages.demonstrations.job_views import JobView
from hekla.pages.demonstrations.run_views import RunView, run_view

STEP, LONGEST = timedelta(seconds=1), timedelta(minutes=4)
LONG_STEP = timedelta(seconds=5)
"""For jobs that are scaled: they are measured, so the controller acts although nothing has happened."""
Squares = list[list[int]]


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.at = clock.now()

    def __call__(self) -> datetime:
        return self.at


@dataclass
class Play:
    """A run until its end: the pods of each job whenever something has happened."""

    demonstration: Demonstration
    run: DemoRun
    looks: list[list[tuple[int, int]]] = field(default_factory=list)
    """For each look and job: pods on a node that are not stopping, and succeeded pods."""

    def look(self) -> None:
        self.looks.append([_held_and_done(job.pk) for job in self.run.jobs.order_by("id")])

    @property
    def view(self) -> RunView:
        return run_view(self.demonstration, self.run)

    @property
    def jobs(self) -> list[JobView]:
        return list(self.view.views)


def _held_and_done(job: int) -> tuple[int, int]:
    pods = [pod for pod in Pod.objects.filter(job=job) if not pod.stopping]
    return sum(pod.phase in ("bound", "preparing", "running") for pod in pods), sum(
        pod.phase == "succeeded" for pod in pods
    )


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(clock, "now", made)
    return made


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
def play(time: Time, people: tuple[Tenant, User]) -> Callable[..., Play]:
    """Starts a demonstration and runs it to its end."""

    def until_it_is_over(demonstration: Demonstration, without: str = "") -> Play:
        tenant, ada = people
        run = services.start(demonstration.name, without=without, tenant=tenant, user=ada, now=clock.now())
        played, last, number, looked_at = Play(demonstration, run), clock.now() + LONGEST, 0, 0
        is_measured, cluster = any(act.busy_gpus for act in demonstration.acts), run.cluster
        while run.ended_at is None:
            assert clock.now() < last, describe()
            if backend_of(cluster).wait(0) or event_log.last_number() > number or is_measured:
                controllers.reconcile(cluster)
            number = event_log.last_number()
            services.advance_all(now=clock.now())
            if event_log.last_number() > looked_at:
                looked_at = event_log.last_number()
                played.look()
            run.refresh_from_db(fields=["ended_at"])
            time.at += LONG_STEP if is_measured else STEP
        auditor.audit()
        return played

    return until_it_is_over


_SOME = [
    one if number % EVERY == 0 else pytest.param(one, marks=pytest.mark.thorough)
    for number, one in enumerate(DEMONSTRATIONS)
]


@pytest.mark.parametrize("demonstration", _SOME, ids=lambda one: one.name)
def test_demonstration_shows_the_difference(
    play: Callable[..., Play], people: tuple[Tenant, User], demonstration: Demonstration
) -> None:
    parts = [demonstration.without.name] if demonstration.without else []
    words = [_clause(play(demonstration, without)) for without in ("", *parts)]
    page = context.detail(demonstration.name, people[1])
    assert all(clause in page["difference"] for clause in words)
    assert len(set(words)) == len(words) == len(page["sides"])


def _clause(played: Play) -> str:
    """The clause about a run, which must have gone as announced."""
    demonstration, view = played.demonstration, played.view
    outcome = demonstration.expected(played.run.without)
    assert [job.job.phase for job in view.views] == ["completed"] * len(demonstration.acts)
    assert view.found is not None
    assert view.found.value == outcome.value, view.found.words
    assert [job.evictions for job in view.views] == list(outcome.evicted or [0] * len(view.views))
    assert view.is_as_announced
    for look in played.looks:
        for (held, done), act in zip(look, demonstration.acts, strict=False):
            least = act.least or sum(act.roles.values())
            assert held + done == 0 or held + done >= least, "a gang was placed in part, or evicted below its minimum"
    if check := _OWN.get((demonstration.name, played.run.without)):
        check(played)
    return view.found.words


def test_page_draws_both_runs_and_says_what_differs(play: Callable[..., Play], people: tuple[Tenant, User]) -> None:
    spread, (_tenant, ada) = get("spread"), people
    play(spread)
    assert context.detail("spread", ada)["difference"] == "With nodeorder, a job had pods on 4 nodes."
    play(spread, "nodeorder")
    page = context.detail("spread", ada)
    sentence = "With nodeorder, a job had pods on 4 nodes; without it, no job had pods on more than 1 node."
    assert page["difference"] == sentence
    both = [[area.nodes for area in side.areas] for side in page["sides"]]
    assert [_squares(nodes) for (nodes,) in both] == [[[1, 0, 0, 0]] * 4, [[1, 1, 1, 1], *[[0, 0, 0, 0]] * 3]]


def test_demonstrations_with_other_nodes_share_a_cluster(play: Callable[..., Play]) -> None:
    first, second, third = (_clause(play(get(name))) for name in ("links", "numa", "links"))
    assert first == third != second


def _squares(nodes: Any) -> Squares:
    return [list(part.holders) for node in nodes for part in node.parts]


def drawn(played: Play) -> Squares:
    """The squares of each part of each node, in the drawing of the run that has ended."""
    return [squares for area in played.view.areas for squares in _squares(area.nodes)]


def _gangs(played: Play) -> None:
    assert all(0 in [held for held, _ in look] for look in played.looks if len(look) > 1)


def _together(played: Play) -> None:
    assert sorted(view.nodes for view in played.jobs) == [((f"node-{n}", 6),) for n in (1, 2, 3)]


def _at_once(played: Play) -> None:
    busy = [[held for held, _ in look] for look in played.looks if any(held for held, _ in look)]
    assert busy[0] == [5, 5]


def _made_room(played: Play) -> None:
    assert [(10, 0)] in played.looks, "the first job ran as a whole before the second was submitted"
    assert [(5, 0), (5, 0)] in played.looks
    first, second = (view.job for view in played.jobs)
    evictions = LoggedEvent.objects.filter(subject=f"job:{first.uid}", kind="PodEvicted")
    assert {event.payload["for_name"] for event in evictions} == {second.name}


def _made_room_in_its_queue(played: Play) -> None:
    assert len({view.job.queue_id for view in played.jobs}) == 1
    _made_room(played)


def _gave_back(played: Play) -> None:
    assert len({view.job.queue_id for view in played.jobs}) == 2
    _made_room(played)


def _racks(played: Play) -> None:
    assert sorted(view.nodes for view in played.jobs) == [
        (("node-1", 4), ("node-2", 4)),
        (("node-3", 4), ("node-4", 4)),
    ]


def _evicted_from_the_zone(played: Play) -> None:
    assert drawn(played) == [[2] * 4, [1] * 4]
    revocable, _ordinary = played.jobs
    assert revocable.nodes == (("node-1", 4),)
    assert revocable.actions == ("shuffle",)


def _lent(played: Play) -> None:
    assert drawn(played) == [[1] * 8, [2] * 4]


def _in_cells(played: Play) -> None:
    assert drawn(played) == [[0] * 4] * 4 + [[1] * 8] * 2


def _linked(played: Play) -> None:
    assert drawn(played) == [[1, 1], [2, 2]]


def _shared(played: Play) -> None:
    assert drawn(played) == [[1] * 3 + [2] * 3 + [0] * 2, [3] * 3 + [4] * 3 + [0] * 2]


def _overcommitted(played: Play) -> None:
    ((node,),) = ([area.nodes[0]] for area in played.view.areas)
    assert sum(len(part.over) for part in node.parts) == 1


def _equal_shares(played: Play) -> None:
    assert drawn(played) == [[1] * 3 + [2] * 6, [1] * 12 + [2] * 2 + [0] * 4]


def _large_job_is_next(played: Play) -> None:
    assert drawn(played) == [[3, 3]]


def _small_job_is_next(played: Play) -> None:
    assert drawn(played) == [[2, 4]]


def _grew(played: Play) -> None:
    assert [(2, 0)] in played.looks
    (view,) = played.jobs
    (event,) = LoggedEvent.objects.filter(subject=f"job:{view.job.uid}", kind="JobAutoscaled")
    assert (event.payload["new"], event.payload["utilization"], event.payload["target"]) == (3, 91, 70)


_OWN: dict[tuple[str, str], Callable[[Play], None]] = {
    ("gangs", ""): _gangs,
    ("together", ""): _together,
    ("elastic-at-once", ""): _at_once,
    ("elastic-same-queue", ""): _made_room_in_its_queue,
    ("elastic-other-queue", ""): _gave_back,
    ("autoscaling", ""): _grew,
    ("racks", ""): _racks,
    ("hours", ""): _evicted_from_the_zone,
    ("colocation", ""): _lent,
    ("numa", ""): _in_cells,
    ("links", ""): _linked,
    ("sharing", ""): _shared,
    ("sharing", "deviceshare"): _overcommitted,
    ("shares", ""): _equal_shares,
    ("reservation", ""): _large_job_is_next,
    ("reservation", "reservation"): _small_job_is_next,
}
