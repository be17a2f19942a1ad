"""Tenant quotas: limits on what namespaces and owners hold. They hold under every policy and cause no evictions."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.engine.builders import POLICY, bound, job, node, running, state
from tests.engine.clusters import amounts
from tests.engine.histories import HOLDING, History
from tests.engine.test_histories import POLICIES, SEEDS
from tests.support.examples import examples

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions, PendingReason
from hekla.engine.model import EACH_OWNER, ClusterState, PodGroupSpec, PodStatus, TenantQuota
from hekla.engine.policy import parse
from hekla.engine.scheduler_cache import SchedulerCache

WHOLE_GANGS = parse(
    'actions: "enqueue, allocate, gangpreempt, gangreclaim, backfill"\ntiers:\n- plugins:\n  - name: priority\n'
    "  - name: gang\n- plugins:\n  - name: predicates\n  - name: capacity\n"
)
BARE = parse('actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: predicates\n')
LENIENT = parse(  # its first tier permits everything
    'actions: "enqueue, allocate, preempt, backfill"\ntiers:\n- plugins:\n  - name: sla\n'
    "    arguments: {sla-waiting-time: 1s}\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: proportion\n"
)
EVERY_POLICY = {**POLICIES, "uprooting": WHOLE_GANGS, "bare": BARE, "lenient": LENIENT}


class HistoryWithQuotas(History):
    """A history whose jobs belong to two namespaces and three owners, with quotas that change at random."""

    def _job(self) -> PodGroupSpec:
        return replace(super()._job(), namespace=self.dice.choice("ab"), owner=self.dice.choice("xyz"))

    def _change_cluster(self) -> None:
        super()._change_cluster()
        if self.dice.random() < 0.3 or not self.state.tenant_quotas:
            self.state = replace(self.state, tenant_quotas=tuple(self._random_quotas()))

    def _random_quotas(self) -> Iterator[TenantQuota]:
        for namespace in "ab":
            for owner in ("", EACH_OWNER, "x"):
                if self.dice.random() < 0.6:
                    yield TenantQuota(namespace, self._random_limits(), owner)

    def _random_limits(self) -> dict[str, float]:
        most = {"cpu": self.dice.choice([0, 1000, 2000, 4000]), "memory": self.dice.choice([1, 4, 8]) * 2.0**30}
        return {name: most[name] for name in self.dice.choice([["cpu"], ["memory"], ["cpu", "memory"]])}


def counts_for(one: TenantQuota, group: PodGroupSpec, all_quotas: tuple[TenantQuota, ...]) -> bool:
    """Whether the job counts for the quota."""
    if one.namespace != group.namespace:
        return False
    own = any(other.owner == group.owner and other.namespace == group.namespace for other in all_quotas)
    return one.owner in ("", group.owner) or (one.owner == EACH_OWNER and not own)


def jobs_sharing(one: TenantQuota, cluster: ClusterState) -> Iterator[list[PodGroupSpec]]:
    """Groups of jobs whose sum the quota limits: all of them, or those of each owner."""
    jobs = [each for each in cluster.jobs if counts_for(one, each, cluster.tenant_quotas)]
    if one.owner != EACH_OWNER:
        yield jobs
    else:
        yield from ([each for each in jobs if each.owner == owner] for owner in {each.owner for each in jobs})


def newly_bound(jobs: list[PodGroupSpec], decisions: Decisions) -> Resources:
    binds = {bind.pod for bind in decisions.binds}
    return sum((task.request for each in jobs for task in each.pods if task.uid in binds), Resources())


def held(jobs: list[PodGroupSpec]) -> Resources:
    return sum((task.request for each in jobs for task in each.pods if task.status in HOLDING), Resources())


@pytest.mark.parametrize("policy", EVERY_POLICY.values(), ids=EVERY_POLICY)
@given(SEEDS)
@settings(max_examples=examples(25), deadline=None)
def test_started_pods_never_exceed_a_quota(policy, seed) -> None:
    for cluster, decisions in HistoryWithQuotas(seed, policy).run_with_changes(12):
        for one in cluster.tenant_quotas:
            for jobs in jobs_sharing(one, cluster):
                new, before = newly_bound(jobs, decisions), held(jobs)
                assert all(before.amount(name) + much <= one.limits.get(name, 1e99) for name, much in new.items())


@pytest.mark.parametrize("policy", EVERY_POLICY.values(), ids=EVERY_POLICY)
@given(SEEDS)
@settings(max_examples=examples(8), deadline=None)
def test_quotas_that_are_not_reached_change_nothing(policy, seed) -> None:
    vast = tuple(TenantQuota(namespace, {"cpu": 1e12}, owner) for namespace in "ab" for owner in ("", EACH_OWNER, "x"))
    for cluster, decisions in HistoryWithQuotas(seed, policy).run_with_changes(8):
        unlimited, limited = replace(cluster, tenant_quotas=()), replace(cluster, tenant_quotas=vast)
        assert decided(cycle(limited, policy, 0.0)) == decided(cycle(unlimited, policy, 0.0))
        assert decisions is not None


def decided(decisions: Decisions) -> tuple[Decisions, object]:
    """The decisions, and the kinds of their reasons: quotas split classes, and each class counts nodes at its turn."""
    kinds = {uid: [(one.cause, one.action, one.code) for one in found] for uid, found in decisions.reasons.items()}
    return replace(decisions, reasons={}), kinds


@given(SEEDS)
@settings(max_examples=examples(20), deadline=None)
def test_cached_cycles_decide_the_same(seed) -> None:
    cache = SchedulerCache()
    for cluster, decisions in HistoryWithQuotas(seed, POLICIES["default"]).run_with_changes(12):
        incremental = cycle(cluster, POLICIES["default"], 0.0, is_detailed=True, cache=cache)
        assert (incremental.binds, incremental.phases, incremental.reasons) == (
            decisions.binds,
            decisions.phases,
            decisions.reasons,
        )


@given(SEEDS)
@settings(max_examples=examples(20), deadline=None)
def test_quota_reasons_name_a_reached_limit(seed) -> None:
    for _cluster, decisions in HistoryWithQuotas(seed, POLICIES["default"]).run_with_changes(12):
        for reason in (one for reasons in decisions.reasons.values() for one in reasons if one.plugin == "quota"):
            assert reason.need
            for name, need in reason.need.items():
                assert reason.used.amount(name) + need > reason.limit.amount(name)
            assert reason.ever == all(need <= reason.limit.amount(name) for name, need in reason.need.items())


# Single cases.


def decide_with_quotas(jobs: list[PodGroupSpec], *quotas: TenantQuota, policy=POLICY, nodes=None) -> Decisions:
    return cycle(replace(state(nodes or [node("a", "16")], jobs), tenant_quotas=quotas), policy, 0.0)


def labels_of(namespace: str, owner: str = "x") -> dict[str, str]:
    return {"namespace": namespace, "owner": owner}


def first_reason(decisions: Decisions, name: str) -> PendingReason:
    return decisions.reasons[name][0]


CPUS = TenantQuota("lab", {"cpu": 4000.0})


def test_job_waits_with_a_reason_while_its_namespace_is_at_its_quota() -> None:
    decisions = decide_with_quotas(
        [running("old", 3, "a", **labels_of("lab")), job("new", 2, phase=GangPhase.PENDING, **labels_of("lab"))], CPUS
    )
    reason = first_reason(decisions, "new")
    assert (decisions.binds, decisions.phases["new"]) == ((), GangPhase.PENDING)
    assert (reason.code, reason.action, reason.ever) == ("tenant_quota", "enqueue", True)
    amounts_of_reason = (
        reason.need.quantities(),
        reason.limit.quantities(),
        reason.used.quantities(),
        reason.have.quantities(),
    )
    assert amounts_of_reason == ({"cpu": "2"}, {"cpu": "4"}, {"cpu": "3"}, {"cpu": "1"})


def test_jobs_of_other_namespaces_are_not_blocked() -> None:
    """The cache of infeasible classes does not apply across quotas."""
    jobs = [job(f"lab{n}", 1, created_at=n, **labels_of("lab")) for n in range(6)]
    jobs += [job(f"bio{n}", 1, created_at=9 + n, **labels_of("bio")) for n in range(6)]
    decisions = decide_with_quotas([running("old", 3, "a", **labels_of("lab")), *jobs], CPUS)
    assert bound(decisions) == {"lab0": 1} | {f"bio{n}": 1 for n in range(6)}
    assert [first_reason(decisions, f"lab{n}").code for n in range(1, 6)] == ["tenant_quota"] * 5


def test_own_quota_of_an_owner_replaces_the_one_for_each_owner() -> None:
    quotas = TenantQuota("lab", {"cpu": 1000.0}, EACH_OWNER), TenantQuota("lab", {"cpu": 3000.0}, "y")
    jobs = [job(f"{owner}{n}", 1, created_at=n, **labels_of("lab", owner)) for owner in "xyz" for n in range(4)]
    assert bound(decide_with_quotas(jobs, *quotas)) == {"x0": 1, "y0": 1, "y1": 1, "y2": 1, "z0": 1}


def test_admitted_jobs_count_while_they_are_pending() -> None:
    waits = job(
        "waits", 1, cpu="3", phase=GangPhase.INQUEUE, task={"node_selector": {"no": "where"}}, **labels_of("lab")
    )
    late = [job(name, 1, cpu="1", phase=GangPhase.PENDING, **labels_of("lab")) for name in ("first", "second")]
    decisions = decide_with_quotas([waits, *late], CPUS)
    assert decisions.phases["first"] is not GangPhase.PENDING
    assert (decisions.phases["second"], first_reason(decisions, "second").used.quantities()) == (
        GangPhase.PENDING,
        {"cpu": "4"},
    )


def test_lowered_quota_evicts_nothing_and_starts_nothing() -> None:
    jobs = [running("old", 4, "a", **labels_of("lab")), job("new", 1, **labels_of("lab"))]
    decisions = decide_with_quotas(jobs, TenantQuota("lab", {"cpu": 2000.0}), policy=POLICIES["default"])
    assert (decisions.binds, decisions.evictions) == ((), ())
    reason = first_reason(decisions, "new")
    assert (reason.used.quantities(), reason.have.quantities()) == ({"cpu": "4"}, {})


def test_job_that_does_not_request_a_limited_resource_starts() -> None:
    quotas = TenantQuota("lab", {"memory": 0.0})
    assert bound(decide_with_quotas([job("a", 1, **labels_of("lab"))], quotas)) == {"a": 1}


def test_job_larger_than_the_quota_can_never_start() -> None:
    assert not first_reason(
        decide_with_quotas([job("big", 5, phase=GangPhase.PENDING, **labels_of("lab"))], CPUS), "big"
    ).ever


def test_no_eviction_for_a_job_that_its_quota_holds_back() -> None:
    jobs = [
        running("old", 3, "a", minimum=1, **labels_of("lab")),
        running("other", 1, "a", minimum=0, **labels_of("bio")),
        job("urgent", 2, priority=9, **labels_of("lab")),
    ]
    jobs = [replace(one, pods=tuple(replace(t, priority=one.priority) for t in one.pods)) for one in jobs]
    decisions = decide_with_quotas(jobs, CPUS, policy=POLICIES["priority"], nodes=[node("a", "4")])
    assert decisions.evictions == ()
    assert cycle(state([node("a", "4")], jobs), POLICIES["priority"], 0.0).evictions


def test_stopping_pods_count_until_they_are_gone() -> None:
    leaving = running("old", 4, "a", **labels_of("lab"))
    leaving = replace(leaving, pods=tuple(replace(t, status=PodStatus.RELEASING) for t in leaving.pods))
    assert decide_with_quotas([leaving, job("new", 1, **labels_of("lab"))], CPUS).binds == ()
    assert bound(decide_with_quotas([job("new", 1, **labels_of("lab"))], CPUS)) == {"new": 1}


def test_elastic_gang_starts_as_many_pods_as_the_quota_allows() -> None:
    assert bound(decide_with_quotas([job("elastic", 6, minimum=2, **labels_of("lab"))], CPUS)) == {"elastic": 4}


def test_memory_is_limited_too() -> None:
    tasks = tuple(replace(t, request=amounts(1, 2)) for t in job("j", 4).pods)
    elastic = replace(job("j", 4, minimum=1, **labels_of("lab")), pods=tasks)
    assert bound(decide_with_quotas([elastic], TenantQuota("lab", {"memory": 5 * 2.0**30}))) == {"j": 2}
