"""Pending reasons, compared with the cluster: scarce resources, free amounts, and what happens when they are freed."""

import random

import pytest
from tests.simulation.conftest import WorldFactory, abort_and_settle, has_started, settle, spec, submit
from tests.support.examples import EVERY

from hekla.apps.accounts import services as accounts
from hekla.apps.event_log.services import PLATFORM
from hekla.apps.job_history import labels
from hekla.apps.jobs import services
from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job, Pod
from hekla.apps.queues import services as queues
from hekla.apps.tenancy import services as tenancy
from hekla.domain.resources import Resources
from hekla.lib import clock
from hekla.simulation import descriptions, what_if
from hekla.simulation.what_if import StartVerdict


def idle_by_node() -> list[Resources]:
    """What each node has left, from the rows of its pods."""
    pods = list(Pod.objects.exclude(node="").select_related("job"))
    nodes = Job.objects.get(pk=pods[0].job_id).cluster.nodes.all()
    held = {node.name: [pod for pod in pods if pod.node == node.name] for node in nodes}
    return [
        Resources.parse(node.allocatable)
        - sum((spec_of(pod.job).task(pod.task).request for pod in held[node.name]), Resources())
        for node in nodes
    ]


def test_only_the_scarce_resource_is_named_and_frees_the_job(found: WorldFactory) -> None:
    world = found({"memory": "24Gi"})
    busy = submit(world, spec("busy", replicas=3, resources={"memory": "256Mi"}))
    settle(world)
    waits = submit(world, spec("waits", cpu="2", resources={"memory": "1Gi"}))
    settle(world)
    waits.refresh_from_db()
    sentence = labels.reason(waits.waiting[0])
    assert sentence.startswith("Waiting for 2 CPU. ")
    assert "1 CPU" in sentence
    assert "memory" not in sentence
    abort_and_settle(world, busy)
    assert has_started(waits)


def test_memory_is_named_where_it_is_scarce(found: WorldFactory) -> None:
    world = found({"memory": "4Gi"})
    submit(world, spec("busy", resources={"memory": "3Gi"}))
    waits = submit(world, spec("waits", resources={"memory": "2Gi"}))
    settle(world)
    waits.refresh_from_db()
    sentence = labels.reason(waits.waiting[0])
    assert sentence.startswith("Waiting for 2 GiB memory. ")
    assert "1 GiB memory" in sentence
    assert "CPU" not in sentence


@pytest.mark.parametrize("seed", range(10 if EVERY == 1 else 2))
def test_free_amounts_are_those_of_the_nodes(found: WorldFactory, seed: int) -> None:
    dice = random.Random(seed)
    world = found(*({"cpu": str(dice.randint(2, 6)), "memory": f"{dice.randint(2, 9)}Gi"} for _ in range(2)))
    for number in range(8):
        memory = {"memory": f"{dice.randint(1, 2)}Gi"}
        submit(world, spec(f"job-{number}", cpu=dice.choice(["500m", "1", "2"]), resources=memory))
    settle(world)
    waiting = [job for job in Job.objects.all() if not has_started(job) and job.waiting]
    assert waiting
    idle = idle_by_node()
    whole = sum(idle, Resources())
    for job in waiting:
        reason = job.waiting[0]
        need, have = Resources.parse(reason["need"]), Resources.parse(reason["have"])
        for name in labels.scarce_resources(need, have):
            limit = max(one.amount(name) for one in idle)
            if reason["code"] == "no_node_fits":
                assert have.amount(name) == limit
            else:
                assert have.amount(name) <= whole.amount(name)


def test_holders_are_named_as_far_as_the_reader_may_see_them(found: WorldFactory) -> None:
    world, now = found({}), clock.now()
    theirs = tenancy.create(slug="theirs", name="Theirs", actor=PLATFORM, now=now)
    charlie = accounts.create_user(username="charlie", password=None, actor=PLATFORM, now=now)
    tenancy.add_member(theirs, charlie, "admin", actor=PLATFORM, now=now)
    submit(world, spec("mine", replicas=1))
    services.submit(spec=spec("secret", replicas=3), tenant=theirs, user=charlie, now=now)
    waits = submit(world, spec("waits", cpu="2"))
    settle(world)
    for_alice = descriptions.in_use(what_if.predict_job(Job.objects.get(pk=waits.pk), user=world.alice))
    assert for_alice == ["In use by: mine (1 CPU), 1 job of other tenants (3 CPU)."]
    draft = what_if.predict_draft(spec(cpu="2"), tenant=theirs, user=charlie)
    assert "In use by: secret (3 CPU), 1 job of other tenants (1 CPU)." in descriptions.sentences(draft)


def test_holders_of_a_queue_limit_are_its_jobs(found: WorldFactory) -> None:
    world, now = found({"cpu": "8"}), clock.now()
    limited = {"capability": {"cpu": "2"}}
    small = queues.create(cluster=world.cluster, name="small", values=limited, actor=PLATFORM, now=now)
    submit(world, spec("elsewhere", replicas=3))
    submit(world, spec("inside", cpu="2", queue="small"))
    settle(world)
    answer = what_if.predict_draft(spec(queue="small"), tenant=world.tenant, user=world.alice, queue=small)
    assert answer.verdict is StartVerdict.WAITS
    assert descriptions.in_use(answer) == ["In use by: inside (2 CPU)."]
