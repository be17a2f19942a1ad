"""Flows that the real controller runs: to the end, into a failure, and stopped in the middle."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.controller.conftest import World
from tests.support import auditor

from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.flows import services
from hekla.apps.flows.models import Flow, FlowStep
from hekla.apps.jobs.models import Job
from hekla.domain.flows import FlowSpec
from hekla.lib import clock

LONG = {"HEKLA_SIM_SECONDS": "3600"}


def step(name: str, *depends_on: str, command: str = "exit 0", env: dict[str, str] | None = None, **more: Any) -> Any:
    """A step of one task of two pods. `env` says how they end where they are simulated."""
    task = {"name": "main", "replicas": 2, "command": ["sh", "-c", command], "resources": {"cpu": "500m"}}
    job = {"tasks": [{**task, "env": {"HEKLA_SIM_SECONDS": "5", **(env or {})}}]}
    return {"name": name, "depends_on": depends_on, "job": job, **more}


@pytest.fixture
def play(world: World) -> Callable[..., Flow]:
    """Starts a flow and lets it and the controller go on until something is so; by default until it is over."""

    def until(*steps: dict[str, Any], done: Callable[[Flow], bool] = lambda flow: flow.ended_at is not None) -> Flow:
        spec = FlowSpec.parse({"name": "flow", "steps": steps})
        flow = services.start(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
        return go_on(world, flow, done)

    return until


def go_on(world: World, flow: Flow, done: Callable[[Flow], bool]) -> Flow:
    def look() -> bool:
        services.advance_all(now=clock.now())
        flow.refresh_from_db()
        return done(flow)

    world.turn_until(look)
    auditor.audit()
    return flow


def phases() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "phase"))


def test_it_runs_to_its_end_in_the_order_that_was_asked_for(play: Callable[..., Flow]) -> None:
    flow = play(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
    assert flow.phase == "succeeded"
    assert phases() == {f"flow-{name}": "completed" for name in "abcd"}
    times = {job.name.removeprefix("flow-"): job for job in Job.objects.all()}
    for before, after in ("ab", "ac", "bd", "cd"):
        assert times[before].finished_at <= times[after].submitted_at  # type: ignore[operator]
    told = list(LoggedEvent.objects.filter(subject=f"flow:{flow.uid}").order_by("id").values_list("kind", flat=True))
    assert told[0] == "FlowStarted"
    assert told.count("FlowStepStarted") == 4
    assert told[-1] == "FlowPhaseChanged"


def test_a_step_that_fails_lets_nothing_follow(play: Callable[..., Flow], world: World) -> None:
    flow = play(step("a", command="exit 3", env={"HEKLA_SIM_EXIT": "3"}), step("b", "a"))
    assert (flow.phase, phases()) == ("failed", {"flow-a": "failed"})
    assert FlowStep.objects.get(name="b").job is None


def test_it_is_stopped_in_the_middle(play: Callable[..., Flow], world: World) -> None:
    flow = play(
        step("a"), step("b", "a", command="sleep 60", env=LONG), step("c", "b"),
        done=lambda _: phases().get("flow-b") == "running",
    )  # fmt: skip
    stopped = services.stop(flow, user=world.alice, now=clock.now())
    assert stopped.phase == "terminated"
    over = go_on(world, stopped, lambda flow: flow.ended_at is not None)
    assert over.phase == "terminated"
    assert phases() == {"flow-a": "completed", "flow-b": "terminated"}


def test_a_probe_lets_a_step_begin_while_the_one_before_it_runs(play: Callable[..., Flow], world: World) -> None:
    flow = play(
        step("server", command="sleep 60", env=LONG),
        step("client", "server", probes=[{"task": "main", "state": "running"}]),
        done=lambda _: phases().get("flow-client") == "completed",
    )
    assert phases() == {"flow-server": "running", "flow-client": "completed"}
    services.stop(flow, user=world.alice, now=clock.now())
    assert go_on(world, flow, lambda flow: flow.ended_at is not None).phase == "terminated"
