"""What the controller may rely on, whichever backend it has."""

import asyncio
import contextlib
import dataclasses
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pods import no_heartbeat

from hekla.backends.base import Backend, PodKey, UnknownPod
from hekla.backends.kind import BackendContext
from hekla.backends.registry import kinds, open_backend
from hekla.backends.tenancy import TenantOrder
from hekla.domain.addresses import Replica
from hekla.domain.errors import Invalid
from hekla.domain.phases import PodPhase
from hekla.lib.clock import now

NOBODY = PodKey("nobody", "worker", 0, 0)
KINDS = tuple(kinds())


@pytest.mark.kubernetes
def test_every_kind_has_a_contract_test(make_place):
    assert {make_place(kind).kind for kind in KINDS} == set(KINDS)


def test_nodes_have_names_and_room(place):
    for node in place.backend.nodes():
        assert node.name
        assert node.ready
        assert node.allocatable["cpu"] >= 4000
        assert node.allocatable["pods"] > 0


def test_a_pod_runs_to_its_end(place):
    key = place.started(place.order())
    pod = place.ended(key)
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.SUCCEEDED, 0, "")
    assert pod.at.tzinfo == UTC


@pytest.mark.parametrize("code", [1, 3, 255])
def test_the_exit_code_is_told(place, code):
    pod = place.ended(place.started(place.order(script=f"exit {code}", exit_code=code)))
    assert (pod.phase, pod.exit_code, pod.reason) == (PodPhase.FAILED, code, "Error")
    assert str(code) in pod.message


def test_a_pod_is_seen_from_the_moment_it_is_started(place):
    key = place.started(place.long())
    assert place.seen(key).phase in {PodPhase.PREPARING, PodPhase.RUNNING}
    assert place.until(key, PodPhase.RUNNING).exit_code is None


def test_what_is_observed_stays_observed(place):
    key = place.started(place.order())
    pod = place.ended(key)
    assert place.seen(key) == pod == place.seen(key)


def test_a_second_start_finds_the_first(place):
    order = place.order(script="echo once")
    place.start(order)
    place.start(order)
    pod = place.ended(order.key)
    place.start(order)
    assert place.seen(order.key) == pod
    if place.kind == "local":
        assert place.log(order.key) == "once\n"


def test_starts_from_several_processes_at_once_make_one_pod(place):
    order = place.order(script="echo once")
    with contextlib.ExitStack() as stack:
        starters = [stack.enter_context(place.starter(order)) for _ in range(3)]
        for starter in starters:
            starter.stdin.write("go\n")
            starter.stdin.flush()
        assert [starter.stdout.readline() for starter in starters] == ["started\n"] * 3
    place.ended(order.key)
    assert [pod.key for pod in place.backend.observe(None).pods] == [order.key]
    if place.kind == "local":
        assert place.log(order.key) == "once\n"


def test_a_pod_that_runs_can_be_stopped(place):
    key = place.started(place.long())
    place.until(key, PodPhase.RUNNING)
    place.stop(key, reason="Its job was aborted")
    place.stop(key, reason="Said twice")
    pod = place.ended(key)
    assert (pod.phase, pod.reason, pod.message) == (PodPhase.FAILED, "Stopped", "Its job was aborted")
    assert pod.exit_code == 143


def test_a_stop_right_after_the_start_is_not_lost(place):
    key = place.started(place.long())
    place.stop(key, reason="Changed my mind")
    assert place.ended(key).reason == "Stopped"


def test_a_pod_that_was_stopped_before_its_start_never_runs(place):
    order = place.long()
    place.stop(order.key, reason="Not wanted")
    place.start(order)
    pod = place.seen(order.key)
    assert (pod.phase, pod.reason, pod.message) == (PodPhase.FAILED, "Stopped", "Not wanted")


def test_to_stop_an_ended_pod_changes_nothing(place):
    key = place.started(place.order())
    pod = place.ended(key)
    place.stop(key, reason="Too late")
    assert place.seen(key) == pod


def test_another_opening_of_the_same_cluster_sees_the_same(place):
    running, ended = place.started(place.long(0)), place.started(place.order(1))
    place.until(running, PodPhase.RUNNING)
    place.ended(ended)
    seen = {pod.key: pod for pod in place.reopened().observe(None).pods}
    assert seen[running] == place.seen(running)
    assert seen[ended] == place.seen(ended)


def test_an_opening_that_was_there_before_sees_what_another_starts(place):
    other = place.reopened()
    other.observe(None)
    key = place.started(place.long())
    place.until(key, PodPhase.RUNNING)
    assert [pod.key for pod in other.observe(None).pods] == [key]
    assert other.logs(key, offset=0, limit=10).complete is False


def test_observing_since_a_cursor_tells_at_least_what_changed(place):
    first, second = place.started(place.long(0)), place.started(place.long(1))
    place.until(first, PodPhase.RUNNING)
    place.until(second, PodPhase.RUNNING)
    cursor = place.backend.observe(None).cursor
    place.stop(first, reason="Enough")
    place.ended(first)
    changed = {pod.key: pod for pod in place.backend.observe(cursor).pods}
    assert changed[first].phase == PodPhase.FAILED


@pytest.mark.parametrize("cursor", ["", "nonsense", "0:0", "abc:99999999"])
def test_a_cursor_that_means_nothing_here_tells_everything(place, cursor):
    key = place.started(place.long())
    seen = place.backend.observe(cursor)
    assert [pod.key for pod in seen.pods] == [key]
    assert seen.complete


def test_the_log_is_read_by_offset(place):
    key = place.started(place.order(script="printf 'one\\ntwo\\n'; printf 'three\\n' >&2"))
    place.ended(key)
    whole = place.backend.logs(key, offset=0, limit=100_000)
    assert whole.complete
    assert whole.next_offset == len(whole.data) > 0
    pieces, offset, complete = b"", 0, False
    while not complete:
        chunk = place.backend.logs(key, offset=offset, limit=5)
        assert chunk.offset == offset
        pieces, offset, complete = pieces + chunk.data, chunk.next_offset, chunk.complete
    assert pieces == whole.data
    behind = place.backend.logs(key, offset=10**9, limit=5)
    assert (behind.data, behind.offset) == (b"", whole.next_offset)


def test_a_forgotten_pod_is_told_of_no_more_but_keeps_its_log(place):
    key = place.started(place.order(script="echo hello"))
    place.ended(key)
    log = place.log(key)
    place.backend.forget([key, NOBODY])
    place.backend.forget([key])
    assert place.seen(key) is None
    assert place.reopened().observe(None).pods == []
    assert place.log(key) == log != ""


def test_a_forgotten_pod_does_not_run_again(place):
    order = place.order()
    place.ended(place.started(order))
    place.backend.forget([order.key])
    place.start(order)
    assert place.seen(order.key) is None


def test_of_a_removed_job_only_its_logs_are_left(place):
    mine, running = place.started(place.order(0, script="echo mine; touch left")), place.started(place.long(1))
    other = place.started(place.long(0, job="other"))
    place.ended(mine)
    place.until(running, PodPhase.RUNNING)
    said = place.log(mine)
    for _ in range(2):
        place.backend.remove("job")
        assert [pod.key for pod in place.backend.observe(None).pods] == [other]
        found = place.backend.inventory()
        assert (found.alive, found.present, found.logged) == ({other}, {"other"}, {"job", "other"})
        assert place.log(mine) == said
        assert place.backend.logs(running, offset=0, limit=100).complete


def test_a_pod_of_a_removed_job_does_not_run_again(place):
    order = place.order()
    place.ended(place.started(order))
    place.backend.remove("job")
    place.start(order)
    assert place.seen(order.key) is None or place.seen(order.key).phase.is_final
    assert not place.backend.inventory().alive


@pytest.mark.parametrize("removed_before", [True, False])
def test_without_its_logs_nothing_of_a_job_is_left(place, removed_before):
    mine, running = place.started(place.order(0)), place.started(place.long(1))
    place.ended(mine)
    place.until(running, PodPhase.RUNNING)
    if removed_before:
        place.backend.remove("job")
    place.backend.remove_logs("job")
    place.backend.remove_logs("job")
    found = place.backend.inventory()
    assert (found.alive, found.present, found.logged) == (frozenset(), frozenset(), frozenset())
    for key in (mine, running):
        with pytest.raises(UnknownPod):
            place.backend.logs(key, offset=0, limit=1)


def test_what_is_at_work_is_told_afresh(place):
    ended, running = place.started(place.order(0)), place.started(place.long(1))
    place.ended(ended)
    place.until(running, PodPhase.RUNNING)
    assert place.works(running)


def test_nobody_knows_a_pod_that_never_was(place):
    with pytest.raises(UnknownPod):
        place.backend.logs(NOBODY, offset=0, limit=1)
    place.backend.remove("nobody")


# Facets


KUBERNETES = ("kubernetes", "kubernetes-tenants")
HAVE = {
    "exec": KUBERNETES,
    "port_forwarding": (*KUBERNETES, "local"),
    "budgets": KUBERNETES,
    "tenancy": KUBERNETES,
    "metrics": ("local",),
}
"""Which backends have a facet."""


@pytest.fixture
def facet(place, request):
    """One facet of a backend that has it."""
    return getattr(place.backend, request.param)


def of(name):
    return pytest.mark.parametrize(("place", "facet"), [(kind, name) for kind in HAVE[name]], indirect=True)


def test_a_backend_has_the_facets_of_its_kind(place):
    found = {name for name in HAVE if getattr(place.backend, name) is not None}
    assert found == {name for name, kinds in HAVE.items() if place.kind in kinds}


def test_pods_are_started_by_us_or_by_the_clusters_own_scheduler(place):
    assert (place.backend.runner is None) != (place.backend.delegated is None)


def test_a_facet_stays_the_same_thing(place):
    """Whoever remembers something of a facet knows by the object whether it still holds."""
    for name in ("external_pods", "displayed_queues"):
        assert getattr(place.backend, name) is getattr(place.backend, name)


@of("exec")
def test_no_command_runs_in_a_pod_that_never_was(place, facet):
    with pytest.raises(UnknownPod):
        asyncio.run(entered(facet.run(NOBODY, ["true"])))


@of("port_forwarding")
def test_no_connection_leads_to_a_pod_that_never_was(place, facet):
    with pytest.raises(UnknownPod):
        asyncio.run(entered(facet.connect(NOBODY, 80)))


@of("budgets")
def test_without_a_budget_no_pod_is_protected(place, facet):
    key = place.started(place.long())
    place.until(key, PodPhase.RUNNING)
    assert facet.protected([key, NOBODY], heartbeat=no_heartbeat) == {}


@of("tenancy")
def test_a_tenant_owns_its_pods_whether_applied_once_or_twice(place, facet):
    tenant = place.tenant or "lab"
    for _ in range(2):
        ((_order, error),) = facet.apply_many([TenantOrder(tenant)], heartbeat=no_heartbeat)
        assert error is None
    key = place.started(place.long())
    (pod,) = place.backend.observe(None).pods
    assert pod.key == key
    assert facet.owns(tenant, pod.key)
    facet.remove_others([tenant])
    facet.remove_others([tenant])


@of("tenancy")
def test_what_is_done_for_tenants_stops_when_the_heartbeat_raises(place, facet):
    class LeaseLost(Exception):
        pass

    def lost():
        raise LeaseLost

    with pytest.raises(LeaseLost):
        list(facet.apply_many([TenantOrder("lab")], heartbeat=lost))


async def entered(way):
    async with way:
        pass


def test_wait_ends_when_something_happens(place):
    _settle(place.backend)
    key = place.started(place.order(script="sleep 0.1"))
    for _ in range(20):
        assert place.backend.wait(10), "a change was not told"
        if place.seen(key).phase.is_final:
            return
    raise AssertionError("it never ended")


def test_news_wake_once_also_where_nobody_looks(place):
    """Who watches is not always who may act: it must not be woken by the same for ever."""
    _settle(place.backend)
    place.until(place.started(place.long()), PodPhase.RUNNING)
    place.start(place.long(1))
    woken = [place.backend.wait(0.3) for _ in range(20)]
    assert any(woken)
    assert woken[-1] is False


def test_wait_gives_up_in_time(place):
    _settle(place.backend)
    assert place.backend.wait(0.01) is False


def _settle(backend: Backend) -> None:
    """After an observation nothing is new; the very first wait may not know yet."""
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
def test_a_wrong_configuration_is_refused_with_its_path(kind, config, tmp_path):
    with pytest.raises(Invalid) as refusal:
        open_backend(kind, config, BackendContext("c1", tmp_path, now))
    assert refusal.value.problems[0].path.startswith(f"config.{next(iter(config))}")


def test_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(Invalid):
        open_backend("abacus", {}, BackendContext("c1", tmp_path, now))


def test_keys_that_look_alike_are_different_pods(place):
    first = place.order()
    second = dataclasses.replace(first, key=PodKey("job", "worker-0", 0, 0))
    place.start(first)
    place.start(second)
    assert {pod.key for pod in place.backend.observe(None).pods} == {first.key, second.key}


BUSY = "i=0; while :; do i=$((i+1)); done"


@of("metrics")
def test_what_a_running_pod_uses_is_measured(place, facet):
    key = place.started(place.order(script=BUSY, runs_seconds=1_000_000))
    place.until(key, PodPhase.RUNNING)
    first = _use_above(place, facet, key, 0.0)
    assert (first.key, first.at.tzinfo) == (key, UTC)
    assert first.memory_bytes > 0
    assert _use_above(place, facet, key, first.cpu_seconds).at > first.at


@of("metrics")
def test_pods_that_do_not_run_use_nothing(place, facet):
    ended = place.started(place.order())
    place.ended(ended)
    assert facet.measure([ended, NOBODY]) == []
    assert facet.measure([]) == []


def _use_above(place, metrics, key, cpu_seconds):
    """What it uses once that is more than so much CPU time."""
    for _ in range(200):
        found = [use for use in metrics.measure([key]) if use.cpu_seconds > cpu_seconds]
        if found:
            return found[0]
        place.backend.wait(0.05)
    raise AssertionError("it never used more")
