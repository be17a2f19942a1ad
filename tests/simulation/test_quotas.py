"""Quotas of what is held at once: they hold whatever the policy says, and are told before and after submission."""

from typing import Any

import pytest
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase
from tests.simulation.conftest import POLICY, Found, begun, settle, spec, submit
from tests.simulation.test_what_if import ask

from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.lib import clock
from hekla.simulation.what_if import StartVerdict

BARE = 'actions: "allocate"\ntiers:\n- plugins: [{name: predicates}]\n'


def bound(world: World, of: str = "tenant", **resources: str) -> None:
    told: dict[str, Any] = {"tenant": world.tenant, "by": world.alice, "actor": PLATFORM, "now": clock.now()}
    world.alice.platform_role = "admin"
    quotas.set_quota(of=Quota.Of(of), user=None, bounds={"resources": resources}, **told)


def why(job: Job) -> list[str]:
    return [labels.reason(reason) for reason in Job.objects.get(pk=job.pk).waiting]


def running() -> int:
    return Pod.objects.filter(phase__in=["bound", "preparing", "running"]).count()


@pytest.mark.parametrize("policy", ["", POLICY, BARE], ids=["default", "with evictions", "bare"])
@pytest.mark.parametrize("of", ["tenant", "each"])
def test_a_job_waits_for_its_quota_and_starts_when_it_is_raised(found: Found, policy: str, of: str) -> None:
    world = found({}, {}, policy=policy)
    bound(world, of, cpu="3")
    submit(world, spec("first", replicas=2))
    settle(world)
    answer = ask(world, spec(replicas=2))
    whose = "tenant" if of == "tenant" else "owner in this tenant"
    told = f"Waiting for 2 CPU. Quota of its {whose}: 2 of 3 CPU in use."
    assert (answer.verdict, labels.reason(answer.reasons[0]).startswith(told)) == (StartVerdict.WAITS, True)
    second = submit(world, spec("second", replicas=2))
    settle(world)
    assert (phase(second), why(second)[0].startswith(told), running()) == ("pending", True, 2)
    bound(world, of, cpu="4")
    settle(world)
    assert (begun(second), running()) == (True, 4)


def test_a_lowered_quota_ends_nothing_and_what_never_fits_is_told(found: Found) -> None:
    world = found({}, {})
    first = submit(world, spec("first", replicas=3))
    settle(world)
    bound(world, cpu="1")
    settle(world)
    assert (begun(first), running()) == (True, 3)
    answer = ask(world, spec(replicas=2))
    assert (answer.verdict, "The quota of Lab is 1." in answer.problems[0]) == (StartVerdict.NEVER, True)
    assert "worker.replicas=1" not in map(str, answer.offers), "its tenant is over its quota now"
