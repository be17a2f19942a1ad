"""Quotas on held resources: they apply under every policy, and are reported before and after submission."""

from typing import Any

import pytest
from tests.controller.conftest import World
from tests.controller.test_cluster_controller import phase
from tests.simulation.conftest import POLICY, WorldFactory, abort_and_settle, has_started, settle, spec, submit
from tests.simulation.test_what_if import preview
from tests.support.examples import EVERY

from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.quotas import services as quotas
from hekla.apps.quotas.models import Quota
from hekla.lib import clock
from hekla.simulation.what_if import StartVerdict

BARE = 'actions: "allocate"\ntiers:\n- plugins: [{name: predicates}]\n'
CASES = [(policy, quota_of) for quota_of in ("tenant", "each") for policy in ("", POLICY, BARE)]
"""By default every other one, with each policy and each quota: without policy, bare, with evictions."""


def set_quota(world: World, subject: str = "tenant", **resources: str) -> None:
    common: dict[str, Any] = {"tenant": world.tenant, "by": world.alice, "actor": PLATFORM, "now": clock.now()}
    world.alice.platform_role = "admin"
    quotas.set_quota(of=Quota.Of(subject), user=None, bounds={"resources": resources}, **common)


def reasons_of(job: Job) -> list[str]:
    return [labels.reason(reason) for reason in Job.objects.get(pk=job.pk).waiting]


def running_pods() -> int:
    return Pod.objects.filter(phase__in=["bound", "preparing", "running"]).count()


@pytest.mark.parametrize(("policy", "quota_of"), CASES[:: min(EVERY, 2)])
def test_job_waits_for_its_quota_and_starts_when_it_is_raised(found: WorldFactory, policy: str, quota_of: str) -> None:
    world = found({}, {}, policy=policy)
    set_quota(world, quota_of, cpu="3")
    submit(world, spec("first", replicas=2))
    settle(world)
    answer = preview(world, spec(replicas=2))
    quota_owner = "tenant" if quota_of == "tenant" else "owner in this tenant"
    message = f"Waiting for 2 CPU. Quota of its {quota_owner}: 2 of 3 CPU in use."
    assert (answer.verdict, labels.reason(answer.reasons[0]).startswith(message)) == (StartVerdict.WAITS, True)
    second = submit(world, spec("second", replicas=2))
    settle(world)
    assert (phase(second), reasons_of(second)[0].startswith(message), running_pods()) == ("pending", True, 2)
    set_quota(world, quota_of, cpu="4")
    settle(world)
    assert (has_started(second), running_pods()) == (True, 4)


def test_job_waits_for_pods_of_its_quota(found: WorldFactory) -> None:
    world = found({}, {})
    set_quota(world, pods="3")
    first = submit(world, spec("first", replicas=2, cpu="100m"))
    settle(world)
    second = submit(world, spec("second", replicas=2, cpu="100m"))
    settle(world)
    assert reasons_of(second)[0] == "Waiting for 2 pods. Quota of its tenant: 2 of 3 pods in use."
    assert running_pods() == 2
    abort_and_settle(world, first)
    assert has_started(second)


def test_lowered_quota_stops_nothing_and_preview_says_never(found: WorldFactory) -> None:
    world = found({}, {})
    first = submit(world, spec("first", replicas=3))
    settle(world)
    set_quota(world, cpu="1")
    settle(world)
    assert (has_started(first), running_pods()) == (True, 3)
    answer = preview(world, spec(replicas=2))
    assert (answer.verdict, "The quota of Lab is 1." in answer.problems[0]) == (StartVerdict.NEVER, True)
    assert "worker.replicas=1" not in map(str, answer.offers), "its tenant is over its quota now"
