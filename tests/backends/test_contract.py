"""The contract of backends: what the controller relies on, for every kind."""

import asyncio
import dataclasses
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.backends.conftest import CONFIGS
from tests.support.pods import no_heartbeat

from hekla.backends.base import Backend, PodKey, UnknownPod
from hekla.backends.kind import BackendContext
from hekla.backends.registry import kinds, open_backend
from hekla.backends.tenancy import TenantOrder
from hekla.domain.addresses import Replica
from hekla.domain.cards import HeldCard
from hekla.domain.errors import Invalid
from hekla.domain.phases import PodPhase
from hekla.lib.clock import now

UNKNOWN_POD = PodKey("nobody", "worker", 0, 0)
KINDS = tuple(kinds())


@pytest.mark.kubernetes
def test_every_kind_has_a_contract_test(make_cluster):
    assert {make_cluster(kind).kind for kind in KINDS} == set(KINDS)


def test_nodes_have_names_and_room(cluster):
    for node in cluster.backend.nodes():
        assert node.name
        assert node.ready
        assert node.allocatable["cpu"] >= 4000
        assert node.allocatable["pods"] > 0


@pytest.mark.every_kind
def test_pod_runs_to_completion(cluster):
    key = cluster.started(cluster.order())
    pod = cluster.ended(key)
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.SUCCEEDED, 0, "")
    assert pod.at.tzinfo == UTC


@pytest.mark.parametrize("cluster", sorted(CONFIGS.keys() - {"containers"}), indirect=True)
def test_pod_with_cards_runs_as_any_other(cluster):
    """An engine of containers would look for the devices."""
    order = cluster.order(cards=[HeldCard("nvidia.com/gpu", 1, "GPU-b")], annotations={"volcano.sh/gpu-index": "1"})
    assert cluster.ended(cluster.started(order)).phase == PodPhase.SUCCEEDED


@pytest.mark.parametrize("code", [1, 3, 255])
def test_exit_code_is_reported(cluster, code):
    pod = cluster.ended(cluster.started(cluster.order(script=f"exit {code}", exit_code=code)))
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.FAILED, code, "Error")
    assert str(code) in pod.message


def test_pod_is_observed_from_its_start(cluster):
    key = cluster.started(cluster.long())
    assert cluster.observation(key).phase in {PodPhase.PREPARING, PodPhase.RUNNING}
    assert cluster.until(key, PodPhase.RUNNING).exit_code is None


def test_observation_of_an_ended_pod_is_stable(cluster):
    key = cluster.started(cluster.order())
    pod = cluster.ended(key)
    assert cluster.observation(key) == pod == cluster.observation(key)


def test_second_start_has_no_effect(cluster):
    order = cluster.order(script="echo once")
    cluster.start(order)
    cluster.start(order)
    pod = cluster.ended(order.key)
    cluster.start(order)
    assert cluster.observation(order.key) == pod
    if cluster.backend_kind == "local":
        assert cluster.log(order.key) == "once\n"


def test_concurrent_starts_from_several_processes_make_one_pod(cluster):
    order = cluster.order(script="echo once")
    with cluster.starter(order, times=2) as starter:
        starter.stdin.write("go\n")
        starter.stdin.flush()
        assert [starter.stdout.readline() for _ in range(2)] == ["started\n"] * 2
    cluster.ended(order.key)
    assert [pod.key for pod in cluster.backend.observe(None).pods] == [order.key]
    if cluster.backend_kind == "local":
        assert cluster.log(order.key) == "once\n"


@pytest.mark.every_kind
def test_running_pod_can_be_stopped(cluster):
    key = cluster.started(cluster.long())
    cluster.until(key, PodPhase.RUNNING)
    cluster.stop(key, reason="Its job was aborted")
    cluster.stop(key, reason="Said twice")
    pod = cluster.ended(key)
    assert (pod.phase, pod.reason, pod.message) == (PodPhase.FAILED, "Stopped", "Its job was aborted")
    assert pod.exit_code == 143


def test_stop_right_after_the_start_takes_effect(cluster):
    key = cluster.started(cluster.long())
    cluster.stop(key, reason="Changed my mind")
    assert cluster.ended(key).reason == "Stopped"


def test_pod_stopped_before_its_start_never_runs(cluster):
    order = cluster.long()
    cluster.stop(order.key, reason="Not wanted")
    cluster.start(order)
    pod = cluster.observation(order.key)
    assert (pod.phase, pod.reason, pod.message) == (PodPhase.FAILED, "Stopped", "Not wanted")


def test_stop_of_an_ended_pod_has_no_effect(cluster):
    key = cluster.started(cluster.order())
    pod = cluster.ended(key)
    cluster.stop(key, reason="Too late")
    assert cluster.observation(key) == pod


@pytest.mark.every_kind
def test_second_backend_of_the_cluster_observes_the_same(cluster):
    running, ended = cluster.started(cluster.long(0)), cluster.started(cluster.order(1))
    cluster.until(running, PodPhase.RUNNING)
    cluster.ended(ended)
    observed = {pod.key: pod for pod in cluster.reopen().observe(None).pods}
    assert observed[running] == cluster.observation(running)
    assert observed[ended] == cluster.observation(ended)


def test_earlier_backend_observes_pods_of_another(cluster):
    other = cluster.reopen()
    other.observe(None)
    key = cluster.started(cluster.long())
    cluster.until(key, PodPhase.RUNNING)
    assert [pod.key for pod in other.observe(None).pods] == [key]
    assert other.logs(key, offset=0, limit=10).complete is False


def test_observing_since_a_cursor_includes_all_changes(cluster):
    first, second = cluster.started(cluster.long(0)), cluster.started(cluster.long(1))
    cluster.until(first, PodPhase.RUNNING)
    cluster.until(second, PodPhase.RUNNING)
    cursor = cluster.backend.observe(None).cursor
    cluster.stop(first, reason="Enough")
    cluster.ended(first)
    changed = {pod.key: pod for pod in cluster.backend.observe(cursor).pods}
    assert changed[first].phase == PodPhase.FAILED


@pytest.mark.parametrize("cursor", ["", "nonsense", "0:0", "abc:99999999"])
def test_invalid_cursor_observes_everything(cluster, cursor):
    key = cluster.started(cluster.long())
    observed = cluster.backend.observe(cursor)
    assert [pod.key for pod in observed.pods] == [key]
    assert observed.complete


@pytest.mark.every_kind
def test_log_is_read_by_offset(cluster):
    key = cluster.started(cluster.order(script="printf 'one\\ntwo\\n'; printf 'three\\n' >&2"))
    cluster.ended(key)
    whole = cluster.backend.logs(key, offset=0, limit=100_000)
    assert whole.complete
    assert whole.next_offset == len(whole.data) > 0
    pieces, offset, complete = b"", 0, False
    while not complete:
        chunk = cluster.backend.logs(key, offset=offset, limit=5)
        assert chunk.offset == offset
        pieces, offset, complete = pieces + chunk.data, chunk.next_offset, chunk.complete
    assert pieces == whole.data
    behind = cluster.backend.logs(key, offset=10**9, limit=5)
    assert (behind.data, behind.offset) == (b"", whole.next_offset)


def test_forgotten_pod_is_not_observed_but_keeps_its_log(cluster):
    key = cluster.started(cluster.order(script="echo hello"))
    cluster.ended(key)
    log = cluster.log(key)
    cluster.backend.forget([key, UNKNOWN_POD])
    cluster.backend.forget([key])
    assert cluster.observation(key) is None
    assert cluster.reopen().observe(None).pods == []
    assert cluster.log(key) == log != ""


def test_forgotten_pod_does_not_run_again(cluster):
    order = cluster.order()
    cluster.ended(cluster.started(order))
    cluster.backend.forget([order.key])
    cluster.start(order)
    assert cluster.observation(order.key) is None


@pytest.mark.every_kind
def test_only_logs_of_a_removed_job_remain(cluster):
    mine, running = cluster.started(cluster.order(0, script="echo mine; touch left")), cluster.started(cluster.long(1))
    other = cluster.started(cluster.long(0, job="other"))
    cluster.ended(mine)
    cluster.until(running, PodPhase.RUNNING)
    log = cluster.log(mine)
    for _ in range(2):
        cluster.backend.remove("job")
        assert [pod.key for pod in cluster.backend.observe(None).pods] == [other]
        found = cluster.backend.inventory()
        assert (found.alive, found.present, found.logged) == ({other}, {"other"}, {"job", "other"})
        assert cluster.log(mine) == log
        assert cluster.backend.logs(running, offset=0, limit=100).complete


def test_pod_of_a_removed_job_does_not_run_again(cluster):
    order = cluster.order()
    cluster.ended(cluster.started(order))
    cluster.backend.remove("job")
    cluster.start(order)
    assert cluster.observation(order.key) is None or cluster.observation(order.key).phase.is_final
    assert not cluster.backend.inventory().alive


@pytest.mark.parametrize("removed_before", [True, False])
def test_nothing_of_a_job_remains_without_its_logs(cluster, removed_before):
    mine, running = cluster.started(cluster.order(0)), cluster.started(cluster.long(1))
    cluster.ended(mine)
    cluster.until(running, PodPhase.RUNNING)
    if removed_before:
        cluster.backend.remove("job")
    cluster.backend.remove_logs("job")
    cluster.backend.remove_logs("job")
    found = cluster.backend.inventory()
    assert (found.alive, found.present, found.logged) == (frozenset(), frozenset(), frozenset())
    for key in (mine, running):
        with pytest.raises(UnknownPod):
            cluster.backend.logs(key, offset=0, limit=1)


@pytest.mark.every_kind
def test_inventory_of_live_pods_is_current(cluster):
    ended, running = cluster.started(cluster.order(0)), cluster.started(cluster.long(1))
    cluster.ended(ended)
    cluster.until(running, PodPhase.RUNNING)
    assert cluster.has_alive(running)


def test_unknown_pod_has_no_log_and_can_be_removed(cluster):
    with pytest.raises(UnknownPod):
        cluster.backend.logs(UNKNOWN_POD, offset=0, limit=1)
    cluster.backend.remove("nobody")


# Facets


KUBERNETES = ("kubernetes", "kubernetes-tenants")
LOCAL = ("local", "containers")
FACETS = {
    "exec": (*KUBERNETES, *LOCAL),
    "port_forwarding": (*KUBERNETES, *LOCAL),
    "budgets": (*KUBERNETES, "simulated"),
    "tenancy": KUBERNETES,
    "metrics": LOCAL,
}
"""The kinds of backends with each facet."""


@pytest.fixture
def facet(cluster, request):
    """One facet of a backend that has it."""
    return getattr(cluster.backend, request.param)


def with_facet(name):
    return pytest.mark.parametrize(("cluster", "facet"), [(kind, name) for kind in FACETS[name]], indirect=True)


@pytest.mark.every_kind
def test_backend_has_the_facets_of_its_kind(cluster):
    found = {name for name in FACETS if getattr(cluster.backend, name) is not None}
    assert found == {name for name, kinds in FACETS.items() if cluster.kind in kinds}


def test_backend_has_either_a_runner_or_a_delegated_scheduler(cluster):
    assert (cluster.backend.runner is None) != (cluster.backend.delegated is None)


def test_facet_is_the_same_object_each_time(cluster):
    """Caches about a facet are valid as long as the object is the same."""
    for name in ("external_pods", "displayed_queues"):
        assert getattr(cluster.backend, name) is getattr(cluster.backend, name)


@with_facet("exec")
def test_exec_in_an_unknown_pod_fails(cluster, facet):
    with pytest.raises(UnknownPod):
        asyncio.run(enter(facet.run(UNKNOWN_POD, ["true"])))


@with_facet("port_forwarding")
def test_port_forwarding_to_an_unknown_pod_fails(cluster, facet):
    with pytest.raises(UnknownPod):
        asyncio.run(enter(facet.connect(UNKNOWN_POD, 80)))


@with_facet("budgets")
def test_no_pod_is_protected_without_a_budget(cluster, facet):
    key = cluster.started(cluster.long())
    cluster.until(key, PodPhase.RUNNING)
    assert facet.protected([key, UNKNOWN_POD], heartbeat=no_heartbeat) == {}


@with_facet("tenancy")
def test_tenant_owns_its_pods_after_one_or_two_applications(cluster, facet):
    tenant = cluster.tenant or "lab"
    for _ in range(2):
        ((_order, error),) = facet.apply_many([TenantOrder(tenant)], heartbeat=no_heartbeat)
        assert error is None
    key = cluster.started(cluster.long())
    (pod,) = cluster.backend.observe(None).pods
    assert pod.key == key
    assert facet.owns(tenant, pod.key)
    facet.remove_others([tenant])
    facet.remove_others([tenant])


@with_facet("tenancy")
def test_applying_tenants_stops_when_the_heartbeat_raises(cluster, facet):
    class LeaseLost(Exception):
        pass

    def lose_lease():
        raise LeaseLost

    with pytest.raises(LeaseLost):
        list(facet.apply_many([TenantOrder("lab")], heartbeat=lose_lease))


async def enter(context):
    async with context:
        pass


def test_wait_ends_with_a_change(cluster):
    _settle(cluster.backend)
    key = cluster.started(cluster.order(script="sleep 0.1"))
    for _ in range(20):
        assert cluster.backend.wait(10), "wait() missed a change"
        if cluster.observation(key).phase.is_final:
            return
    raise AssertionError("the pod never ended")


def test_change_wakes_once_without_an_observation(cluster):
    """A watching process may be unable to act. The same change must not wake it for ever."""
    _settle(cluster.backend)
    cluster.until(cluster.started(cluster.long()), PodPhase.RUNNING)
    cluster.start(cluster.long(1))
    woken = [cluster.backend.wait(0.3)]
    while len(woken) < 20 and (any(woken[-3:]) or not any(woken)):
        woken.append(cluster.backend.wait(0.3))
    assert any(woken)
    assert not any(woken[-3:])


def test_wait_times_out(cluster):
    _settle(cluster.backend)
    assert cluster.backend.wait(0.01) is False


def _settle(backend: Backend) -> None:
    """Observes, so that nothing is new; the very first wait may not know this yet."""
    backend.wait(0)
    backend.observe(None)


def replica(number: int, job: str = "job") -> Replica:
    return Replica(job, "digits", "worker", number, number)


@pytest.mark.parametrize("kind", KINDS)
def test_each_replica_has_an_address_of_its_own(kind, tmp_path_factory):
    backend = open_backend(kind, {}, BackendContext("c1", tmp_path_factory.mktemp("home"), now))

    @given(st.sets(st.integers(0, 2**21), min_size=2, max_size=50))
    def check(slots: set[int]) -> None:
        addresses = {backend.runner.address(replica(slot)) for slot in slots}
        assert len(addresses) == len(slots)
        assert addresses == {backend.runner.address(replica(slot)) for slot in slots}

    check()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("config", [{"colour": "red"}, {"nodes": 3}, {"allocatable": {"cpu": "many"}}])
def test_invalid_configuration_is_refused_with_its_path(kind, config, tmp_path):
    with pytest.raises(Invalid) as refusal:
        open_backend(kind, config, BackendContext("c1", tmp_path, now))
    assert refusal.value.problems[0].path.startswith(f"config.{next(iter(config))}")


def test_unknown_kind_is_refused(tmp_path):
    with pytest.raises(Invalid):
        open_backend("abacus", {}, BackendContext("c1", tmp_path, now))


def test_similar_keys_are_different_pods(cluster):
    first = cluster.order()
    second = dataclasses.replace(first, key=PodKey("job", "worker-0", 0, 0))
    cluster.start(first)
    cluster.start(second)
    assert {pod.key for pod in cluster.backend.observe(None).pods} == {first.key, second.key}


BUSY = "i=0; while :; do i=$((i+1)); done"


@with_facet("metrics")
def test_usage_of_a_running_pod_is_measured(cluster, facet):
    key = cluster.started(cluster.order(script=BUSY, runs_seconds=1_000_000))
    cluster.until(key, PodPhase.RUNNING)
    first = _use_above(cluster, facet, key, 0.0)
    assert (first.key, first.at.tzinfo) == (key, UTC)
    assert first.memory_bytes > 0
    assert _use_above(cluster, facet, key, first.cpu_seconds).at > first.at


@with_facet("metrics")
def test_pods_that_do_not_run_have_no_usage(cluster, facet):
    ended = cluster.started(cluster.order())
    cluster.ended(ended)
    assert facet.measure([ended, UNKNOWN_POD]) == []
    assert facet.measure([]) == []


def _use_above(cluster, metrics, key, cpu_seconds):
    """The usage of the pod, once it is above this CPU time."""
    for _ in range(200):
        found = [use for use in metrics.measure([key]) if use.cpu_seconds > cpu_seconds]
        if found:
            return found[0]
        cluster.backend.wait(0.05)
    raise AssertionError("the CPU time never grew")
