"""Tries a policy on the current state: the next cycle under it, beside the next cycle under the policy in force.

One cycle of each from the same state; nothing is written. Later cycles, when evicted pods are gone and new pods exist,
are not simulated.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from hekla import engine
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.models import Job
from hekla.domain.phases import GangPhase
from hekla.engine.decisions import Decisions, ExtensionFault
from hekla.engine.policy import SchedulerPolicy
from hekla.scheduling import cache, extenders, policy_check
from hekla.scheduling.policy_check import PolicyWarning
from hekla.scheduling.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """What a cycle does to a job: whether it is admitted, how many of its pods start, and how many are evicted."""

    is_let_in: bool = False
    starts: int = 0
    yields: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """A job that the two policies treat differently."""

    job: Job
    now: TrialOutcome
    then: TrialOutcome


@dataclass(frozen=True, slots=True)
class Trial:
    """The jobs that differ, the failures and warnings of the new policy, and how many jobs were compared."""

    differences: tuple[Difference, ...]
    faults: tuple[ExtensionFault, ...]
    jobs: int
    warnings: tuple[PolicyWarning, ...] = ()


def try_policy(cluster: Cluster, in_force: SchedulerPolicy, other: SchedulerPolicy, *, now: datetime) -> Trial:
    """Compare the next cycle of this cluster under both policies."""
    current = cache.read_snapshot(cluster, now=now)
    compared = (extenders.as_if_agreeing(policy) for policy in (in_force, other))
    before, after = (engine.cycle(current.state, policy, now.timestamp()) for policy in compared)
    old, new = _fates(current, before), _fates(current, after)
    differences = (Difference(job, old[uid], new[uid]) for uid, job in current.jobs.items() if old[uid] != new[uid])
    warnings = tuple(policy_check.warnings(cluster, other))
    return Trial(tuple(differences), after.faults, len(current.jobs), warnings)


def _fates(current: Snapshot, decided: Decisions) -> Mapping[str, TrialOutcome]:
    starts, yields = Counter(bind.job for bind in decided.binds), Counter(one.job for one in decided.evictions)
    return {
        uid: TrialOutcome(_is_let_in(job, decided.phases.get(uid)), starts[uid], yields[uid])
        for uid, job in current.jobs.items()
    }


def _is_let_in(job: Job, phase: GangPhase | None) -> bool:
    return job.gang_phase == GangPhase.PENDING and phase not in (None, GangPhase.PENDING)
