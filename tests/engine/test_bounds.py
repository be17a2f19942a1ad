"""What namespaces and owners may hold at once: it holds under every policy, at every moment, and nobody goes for it."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.engine.clusters import amounts
from tests.engine.histories import HOLDING, History
from tests.engine.test_histories import POLICIES, SEEDS
from tests.engine.worlds import POLICY, bound, job, node, running, state
from tests.support.examples import examples

from hekla.domain.phases import GangPhase
from hekla.domain.resources import Resources
from hekla.engine import cycle
from hekla.engine.decisions import Decisions, PendingReason
from hekla.engine.model import EACH_OWNER, ClusterState, PodGroupSpec, PodStatus, TenantQuota
from hekla.engine.policy import parse
from hekla.engine.scheduler_cache import SchedulerCache

UPROOTING = parse(
    'actions: "enqueue, allocate, gangpreempt, gangreclaim, backfill"\ntiers:\n- plugins:\n  - name: priority\n'
    "  - name: gang\n- plugins:\n  - name: predicates\n  - name: capacity\n"
)
BARE = parse('actions: "allocate, backfill"\ntiers:\n- plugins:\n  - name: predicates\n')
LENIENT = parse(  # a tier that permits everything goes before all others
    'actions: "enqueue, allocate, preempt, backfill"\ntiers:\n- plugins:\n  - name: sla\n'
    "    arguments: {sla-waiting-time: 1s}\n- plugins:\n  - name: gang\n  - name: predicates\n  - name: proportion\n"
)
EVERY_POLICY = {**POLICIES, "uprooting": UPROOTING, "bare": BARE, "lenient": LENIENT}


class Owned(History):
    """Jobs belong to two namespaces and three owners, and bounds change now and then."""

    def _job(self) -> PodGroupSpec:
        return replace(super()._job(), namespace=self.dice.choice("ab"), owner=self.dice.choice("xyz"))

    def _happen(self) -> None:
        super()._happen()
        if self.dice.random() < 0.3 or not self.state.tenant_quotas:
            self.state = replace(self.state, tenant_quotas=tuple(self._bounds()))

    def _bounds(self) -> Iterator[TenantQuota]:
        for namespace in "ab":
            for owner in ("", EACH_OWNER, "x"):
                if self.dice.random() < 0.6:
                    yield TenantQuota(namespace, self._most(), owner)

    def _most(self) -> dict[str, float]:
        most = {"cpu": self.dice.choice([0, 1000, 2000, 4000]), "memory": self.dice.choice([1, 4, 8]) * 2.0**30}
        return {name: most[name] for name in self.dice.choice([["cpu"], ["memory"], ["cpu", "memory"]])}


def counts(one: TenantQuota, of: PodGroupSpec, all_bounds: tuple[TenantQuota, ...]) -> bool:
    """Whether a job counts for a bound."""
    if one.namespace != of.namespace:
        return False
    own = any(other.owner == of.owner and other.namespace == of.namespace for other in all_bounds)
    return one.owner in ("", of.owner) or (one.owner == EACH_OWNER and not own)


def holders(one: TenantQuota, asked: ClusterState) -> Iterator[list[PodGroupSpec]]:
    """The jobs that count together."""
    jobs = [each for each in asked.jobs if counts(one, each, asked.tenant_quotas)]
    if one.owner != EACH_OWNER:
        yield jobs
    else:
        yield from ([each for each in jobs if each.owner == owner] for owner in {each.owner for each in jobs})


def started(jobs: list[PodGroupSpec], decided: Decisions) -> Resources:
    binds = {bind.pod for bind in decided.binds}
    return sum((task.request for each in jobs for task in each.pods if task.uid in binds), Resources())


def held(jobs: list[PodGroupSpec]) -> Resources:
    return sum((task.request for each in jobs for task in each.pods if task.status in HOLDING), Resources())


@pytest.mark.parametrize("policy", EVERY_POLICY.values(), ids=EVERY_POLICY)
@given(SEEDS)
@settings(max_examples=examples(25), deadline=None)
def test_what_starts_never_exceeds_a_bound(policy, seed) -> None:
    for asked, decided in Owned(seed, policy).live(12):
        for one in asked.tenant_quotas:
            for jobs in holders(one, asked):
                new, before = started(jobs, decided), held(jobs)
                assert all(before.amount(name) + much <= one.limits.get(name, 1e99) for name, much in new.items())


@pytest.mark.parametrize("policy", EVERY_POLICY.values(), ids=EVERY_POLICY)
@given(SEEDS)
@settings(max_examples=examples(8), deadline=None)
def test_bounds_that_nobody_meets_change_nothing(policy, seed) -> None:
    vast = tuple(TenantQuota(namespace, {"cpu": 1e12}, owner) for namespace in "ab" for owner in ("", EACH_OWNER, "x"))
    for asked, decided in Owned(seed, policy).live(8):
        without, within = replace(asked, tenant_quotas=()), replace(asked, tenant_quotas=vast)
        assert cycle(within, policy, 0.0) == cycle(without, policy, 0.0)
        assert decided is not None


@given(SEEDS)
@settings(max_examples=examples(20), deadline=None)
def test_what_is_kept_between_cycles_makes_no_difference(seed) -> None:
    world = SchedulerCache()
    for asked, decided in Owned(seed, POLICIES["default"]).live(12):
        kept = cycle(asked, POLICIES["default"], 0.0, is_detailed=True, cache=world)
        assert (kept.binds, kept.phases, kept.reasons) == (decided.binds, decided.phases, decided.reasons)


@given(SEEDS)
@settings(max_examples=examples(20), deadline=None)
def test_who_is_told_of_a_bound_meets_one(seed) -> None:
    for _asked, decided in Owned(seed, POLICIES["default"]).live(12):
        for reason in (one for reasons in decided.reasons.values() for one in reasons if one.plugin == "quota"):
            assert reason.need
            for name, need in reason.need.items():
                assert reason.used.amount(name) + need > reason.limit.amount(name)
            assert reason.ever == all(need <= reason.limit.amount(name) for name, need in reason.need.items())


# In the small.


def within(jobs: list[PodGroupSpec], *bounds: TenantQuota, policy=POLICY, nodes=None) -> Decisions:
    return cycle(replace(state(nodes or [node("a", "16")], jobs), tenant_quotas=bounds), policy, 0.0)


def of(namespace: str, owner: str = "x") -> dict[str, str]:
    return {"namespace": namespace, "owner": owner}


def why(decided: Decisions, name: str) -> PendingReason:
    return decided.reasons[name][0]


CPUS = TenantQuota("lab", {"cpu": 4000.0})


def test_a_job_waits_while_its_namespace_has_all_it_may_and_is_told_so() -> None:
    decided = within([running("old", 3, "a", **of("lab")), job("new", 2, phase=GangPhase.PENDING, **of("lab"))], CPUS)
    reason = why(decided, "new")
    assert (decided.binds, decided.phases["new"]) == ((), GangPhase.PENDING)
    assert (reason.code, reason.action, reason.ever) == ("tenant_quota", "enqueue", True)
    told = reason.need.quantities(), reason.limit.quantities(), reason.used.quantities(), reason.have.quantities()
    assert told == ({"cpu": "2"}, {"cpu": "4"}, {"cpu": "3"}, {"cpu": "1"})


def test_others_go_on_beside_it() -> None:
    """The engine learns who found nothing from jobs that are alike: not across bounds."""
    jobs = [job(f"lab{n}", 1, created_at=n, **of("lab")) for n in range(6)]
    jobs += [job(f"bio{n}", 1, created_at=9 + n, **of("bio")) for n in range(6)]
    decided = within([running("old", 3, "a", **of("lab")), *jobs], CPUS)
    assert bound(decided) == {"lab0": 1} | {f"bio{n}": 1 for n in range(6)}
    assert [why(decided, f"lab{n}").code for n in range(1, 6)] == ["tenant_quota"] * 5


def test_an_owner_has_their_own_bound_or_that_of_each() -> None:
    bounds = TenantQuota("lab", {"cpu": 1000.0}, EACH_OWNER), TenantQuota("lab", {"cpu": 3000.0}, "y")
    jobs = [job(f"{owner}{n}", 1, created_at=n, **of("lab", owner)) for owner in "xyz" for n in range(4)]
    assert bound(within(jobs, *bounds)) == {"x0": 1, "y0": 1, "y1": 1, "y2": 1, "z0": 1}


def test_jobs_that_were_let_in_keep_others_of_their_namespace_out_while_they_wait() -> None:
    waits = job("waits", 1, cpu="3", phase=GangPhase.INQUEUE, task={"node_selector": {"no": "where"}}, **of("lab"))
    late = [job(name, 1, cpu="1", phase=GangPhase.PENDING, **of("lab")) for name in ("first", "second")]
    decided = within([waits, *late], CPUS)
    assert decided.phases["first"] is not GangPhase.PENDING
    assert (decided.phases["second"], why(decided, "second").used.quantities()) == (GangPhase.PENDING, {"cpu": "4"})


def test_a_lowered_bound_evicts_nobody_and_starts_nothing() -> None:
    jobs = [running("old", 4, "a", **of("lab")), job("new", 1, **of("lab"))]
    decided = within(jobs, TenantQuota("lab", {"cpu": 2000.0}), policy=POLICIES["default"])
    assert (decided.binds, decided.evictions) == ((), ())
    reason = why(decided, "new")
    assert (reason.used.quantities(), reason.have.quantities()) == ({"cpu": "4"}, {})


def test_what_asks_for_nothing_of_it_starts_all_the_same() -> None:
    bounds = TenantQuota("lab", {"memory": 0.0})
    assert bound(within([job("a", 1, **of("lab"))], bounds)) == {"a": 1}


def test_what_is_more_than_the_bound_never_starts() -> None:
    assert not why(within([job("big", 5, phase=GangPhase.PENDING, **of("lab"))], CPUS), "big").ever


def test_nobody_is_evicted_for_a_job_that_its_bound_keeps_back() -> None:
    jobs = [
        running("old", 3, "a", minimum=1, **of("lab")),
        running("other", 1, "a", minimum=0, **of("bio")),
        job("urgent", 2, priority=9, **of("lab")),
    ]
    jobs = [replace(one, pods=tuple(replace(t, priority=one.priority) for t in one.pods)) for one in jobs]
    decided = within(jobs, CPUS, policy=POLICIES["priority"], nodes=[node("a", "4")])
    assert decided.evictions == ()
    assert cycle(state([node("a", "4")], jobs), POLICIES["priority"], 0.0).evictions


def test_what_ends_holds_its_place_until_it_is_gone() -> None:
    leaving = running("old", 4, "a", **of("lab"))
    leaving = replace(leaving, pods=tuple(replace(t, status=PodStatus.RELEASING) for t in leaving.pods))
    assert within([leaving, job("new", 1, **of("lab"))], CPUS).binds == ()
    assert bound(within([job("new", 1, **of("lab"))], CPUS)) == {"new": 1}


def test_a_gang_that_may_shrink_gets_what_its_bound_leaves() -> None:
    assert bound(within([job("elastic", 6, minimum=2, **of("lab"))], CPUS)) == {"elastic": 4}


def test_amounts_of_memory_are_bound_too() -> None:
    tasks = tuple(replace(t, request=amounts(1, 2)) for t in job("j", 4).pods)
    elastic = replace(job("j", 4, minimum=1, **of("lab")), pods=tasks)
    assert bound(within([elastic], TenantQuota("lab", {"memory": 5 * 2.0**30}))) == {"j": 2}
