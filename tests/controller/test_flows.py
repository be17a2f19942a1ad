"""Flows with the real controller: completed, failed and stopped."""

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
    """A step of one task with two pods. `env` sets how simulated pods end."""
    task = {"name": "main", "replicas": 2, "command": ["sh", "-c", command], "resources": {"cpu": "500m"}}
    job = {"tasks": [{**task, "env": {"HEKLA_SIM_SECONDS": "5", **(env or {})}}]}
    return {"name": name, "depends_on": depends_on, "job": job, **more}


@pytest.fixture
def run(world: World) -> Callable[..., Flow]:
    """Starts a flow and reconciles until the condition holds, by default until the flow is over."""

    def until(*steps: dict[str, Any], done: Callable[[Flow], bool] = lambda flow: flow.ended_at is not None) -> Flow:
        spec = FlowSpec.parse({"name": "flow", "steps": steps})
        flow = services.start(spec=spec, tenant=world.tenant, user=world.alice, now=clock.now())
        return continue_until(world, flow, done)

    return until


def continue_until(world: World, flow: Flow, done: Callable[[Flow], bool]) -> Flow:
    def look() -> bool:
        services.advance_all(now=clock.now())
        flow.refresh_from_db()
        return done(flow)

    world.reconcile_until(look)
    auditor.audit()
    return flow


def phases() -> dict[str, str]:
    return dict(Job.objects.values_list("name", "phase"))


def test_flow_runs_its_steps_in_order(run: Callable[..., Flow]) -> None:
    flow = run(step("a"), step("b", "a"), step("c", "a"), step("d", "b", "c"))
    assert flow.phase == "succeeded"
    assert phases() == {f"flow-{name}": "completed" for name in "abcd"}
    times = {job.name.removeprefix("flow-"): job for job in Job.objects.all()}
    for before, after in ("ab", "ac", "bd", "cd"):
        assert times[before].finished_at <= times[after].submitted_at  # type: ignore[operator]
    kinds = list(LoggedEvent.objects.filter(subject=f"flow:{flow.uid}").order_by("id").values_list("kind", flat=True))
    assert kinds[0] == "FlowStarted"
    assert kinds.count("FlowStepStarted") == 4
    assert kinds[-1] == "FlowPhaseChanged"


def test_failed_step_starts_no_dependent_step(run: Callable[..., Flow], world: World) -> None:
    flow = run(step("a", command="exit 3", env={"HEKLA_SIM_EXIT": "3"}), step("b", "a"))
    assert (flow.phase, phases()) == ("failed", {"flow-a": "failed"})
    assert FlowStep.objects.get(name="b").job is None


def test_flow_can_be_stopped_halfway(run: Callable[..., Flow], world: World) -> None:
    flow = run(
        step("a"), step("b", "a", command="sleep 60", env=LONG), step("c", "b"),
        done=lambda _: phases().get("flow-b") == "running",
    )  # fmt: skip
    stopped = services.stop(flow, user=world.alice, now=clock.now())
    assert stopped.phase == "terminated"
    over = continue_until(world, stopped, lambda flow: flow.ended_at is not None)
    assert over.phase == "terminated"
    assert phases() == {"flow-a": "completed", "flow-b": "terminated"}


def test_probe_starts_a_step_while_its_dependency_runs(run: Callable[..., Flow], world: World) -> None:
    flow = run(
        step("server", command="sleep 60", env=LONG),
        step("client", "server", probes=[{"task": "main", "state": "running"}]),
        done=lambda _: phases().get("flow-client") == "completed",
    )
    assert phases() == {"flow-server": "running", "flow-client": "completed"}
    services.stop(flow, user=world.alice, now=clock.now())
    assert continue_until(world, flow, lambda flow: flow.ended_at is not None).phase == "terminated"
