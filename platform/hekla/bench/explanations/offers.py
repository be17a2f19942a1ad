"""Whether offered changes start a pending job: each is applied to a copy of the cluster that a fresh engine decides."""

import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hekla.apps.jobs.facts import spec_of
from hekla.apps.jobs.models import Job
from hekla.bench.explanations.world import DEFAULT, ExplainedCluster, cluster, job_spec
from hekla.domain.errors import Invalid
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import Resources
from hekla.domain.spec_changes import apply_changes
from hekla.engine.model import QueueSpec, TenantQuota
from hekla.engine.policy import DEFAULT_POLICY_TEXT
from hekla.simulation import suggestions
from hekla.simulation.suggestions import Changes, Suggestion
from hekla.simulation.what_if import evicted_for, resized

EVICTING = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: binpack}]
"""
CAPACITY = """\
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: drf}, {name: predicates}, {name: capacity}, {name: nodeorder}]
"""


@dataclass
class OfferResult:
    """How many pending jobs there were, how many got an offer, and how many offers there were and started the job."""

    jobs: int = 0
    helped: int = 0
    offers: int = 0
    held: int = 0

    @property
    def share(self) -> float:
        """The share of offers that started the job."""
        return self.held / self.offers if self.offers else 1.0

    def as_data(self) -> dict[str, float]:
        """The counts and the share."""
        return asdict(self) | {"share": self.share}

    def count(self, world: ExplainedCluster, job: Job) -> list[Suggestion]:
        """Apply all offers for this job. Returns those that did not start it."""
        found = offers(world, job)
        wrong = [offer for offer in found if not comes_true(world, job, offer)]
        self.jobs, self.helped = self.jobs + 1, self.helped + bool(found)
        self.offers, self.held = self.offers + len(found), self.held + len(found) - len(wrong)
        return wrong


def offers(world: ExplainedCluster, job: Job) -> list[Suggestion]:
    """What the job's page offers: changes of the job itself, and other queues for a changed copy."""
    spec, other_queues = spec_of(job), [one.name for one in world.empty.queues if one.name != job.queue.name]

    def trial(changed: JobSpec, changes: Changes) -> int | None:
        return evicted_for(world.course.fork(), _changed(world, job, changed, changes))

    return suggestions.offers(spec, other_queues, trial, until=math.inf).offers


def comes_true(world: ExplainedCluster, job: Job, offer: Suggestion) -> bool:
    """Whether the job, or its changed copy, starts after this change."""
    other = world.rebuilt()
    changed = _changed(world, job, apply_changes(spec_of(job), offer.changes), offer.changes)
    other.put(changed)
    return other.has_started(changed)


def _changed(world: ExplainedCluster, job: Job, spec: JobSpec, changes: Changes) -> Job:
    """The job with another size, or a changed copy beside it."""
    if all(change.is_of_size for change in changes):
        return resized(job, spec)
    whose = {"tenant": job.tenant_id, "owner": job.owner_id, "priority": job.priority}
    return world.row(spec, never_preempts=job.never_preempts, **whose)


def mixed_clusters(seed: int, number: int) -> Iterator[tuple[ExplainedCluster, list[Job]]]:
    """Random clusters, each with its pending jobs."""
    dice = random.Random(seed)  # noqa: S311  (no secret)
    for _ in range(number):
        world = _mixed_cluster(dice)
        yield world, [row for row in world.rows.values() if not world.has_started(row)]


def measure(seed: int = 1, number: int = 100) -> OfferResult:
    """The offers in this many random clusters."""
    found = OfferResult()
    for world, waiting in mixed_clusters(seed, number):
        for job in waiting:
            found.count(world, job)
    return found


def _mixed_cluster(dice: random.Random) -> ExplainedCluster:
    sizes = [
        {"cpu": str(dice.randint(2, 8)), "memory": f"{dice.randint(4, 16)}Gi", "labels": {"zone": dice.choice("ab")}}
        | ({"nvidia.com/gpu": str(dice.choice((2, 4)))} if dice.random() < 0.5 else {})  # noqa: PLR2004  (one half)
        for _ in range(dice.randint(1, 4))
    ]
    policy = dice.choice((DEFAULT_POLICY_TEXT, DEFAULT_POLICY_TEXT, EVICTING, CAPACITY))
    limit = Resources.parse({"cpu": dice.randint(2, 8)}) if dice.random() < 0.3 else None  # noqa: PLR2004
    queues = QueueSpec(DEFAULT, weight=dice.randint(1, 3), capability=limit), QueueSpec("other")
    quota = (TenantQuota("2", {"cpu": dice.randint(2, 6) * 1000.0}),) if dice.random() < 0.3 else ()  # noqa: PLR2004
    world = ExplainedCluster(cluster(*sizes, queues=queues, tenant_quotas=quota), policy)
    for number in range(dice.randint(3, 9)):
        spec = _mixed_job(dice, f"job-{number}", has_gpus=any("nvidia.com/gpu" in size for size in sizes))
        if spec is not None:
            world.submit(spec, tenant=dice.randint(1, 2), owner=dice.randint(1, 3), priority=dice.choice((0, 0, 5)))
    return world


def _mixed_job(dice: random.Random, name: str, *, has_gpus: bool) -> JobSpec | None:
    replicas = dice.choice((1, 1, 2, 3, 4))
    amounts = {"memory": dice.choice(("256Mi", "1Gi", "3Gi"))}
    amounts |= {"nvidia.com/gpu": str(dice.randint(1, 2))} if has_gpus and dice.random() < 0.4 else {}  # noqa: PLR2004
    fields: dict[str, Any] = {"cpu": dice.choice(("500m", "1", "2", "4")), "resources": amounts}
    fields["min_available"] = dice.choice((None, None, dice.randint(1, replicas)))
    fields["node_selector"] = dice.choice(({}, {}, {}, {"zone": dice.choice("ab")}))
    fields["queue"] = dice.choice((DEFAULT, DEFAULT, "other"))
    try:
        return job_spec(name, replicas, **fields)
    except Invalid:
        return None
