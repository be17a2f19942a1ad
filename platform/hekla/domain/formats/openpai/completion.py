"""When a job ends, and what is retried: `completion`, `taskRetryCount` and `jobRetryCount` as policies.

    minFailedInstances 1       a failed pod ends the job, or restarts it, up to jobRetryCount times
    minFailedInstances other   a failed pod ends nothing; the job is judged when all pods have ended
    minSucceededInstances all  of several task roles, the first whose pods have all succeeded completes the job
    minSucceededInstances -1   the job is complete when all pods have ended
    minSucceededInstances some this number of successes completes a job with only one task role

A gang restarts as a whole when one of its pods is evicted. If `extras.gangAllocation` is false, pods start one by one,
and a failed one is restarted, up to `taskRetryCount` times.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hekla.domain.formats.fields import Findings
from hekla.domain.formats.run_policy import most_retries
from hekla.domain.frameworks.openpai import TaskRole
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction, LifecycleEvent, LifecyclePolicy
from hekla.domain.task_spec import MAX_RETRY, TaskSpec
from hekla.domain.translation import gettext_noop, translate

NO_LIMIT = -1

_LOST = {"events": [str(LifecycleEvent.POD_EVICTED)], "action": str(LifecycleAction.RESTART_JOB)}
_DONE = {"events": [str(LifecycleEvent.TASK_COMPLETED)], "action": str(LifecycleAction.COMPLETE_JOB)}
_JUDGED = gettext_noop("failures are counted when all pods have finished. The gang fails if one pod fails.")
_ONE_ROLE = gettext_noop("only jobs with one task role can complete after a number of successes. This job needs all.")
_GANG = gettext_noop("pods of a gang do not restart one by one, unless extras.gangAllocation is false.")
_TOGETHER = gettext_noop("the restarts of all pods are counted together.")
_ONE_BY_ONE = gettext_noop("the pods of this job restart one by one.")


@dataclass(frozen=True, slots=True)
class RoleCompletion:
    """The completion of one task role, and its path in the JobConfig. NO_LIMIT in `failed`, `succeeded`: no number ends
    it.
    """

    path: str
    failed: int
    succeeded: int
    replicas: int
    retries: int = 0


@dataclass(frozen=True, slots=True)
class CompletionPlan:
    """The completion of all task roles, the retries of the job, and whether it is a gang."""

    roles: Mapping[str, RoleCompletion]
    retries: int = 0
    is_gang: bool = True

    @property
    def pods(self) -> int:
        return sum(role.replicas for role in self.roles.values())

    @property
    def pod_retries(self) -> int:
        """The number of restarts of single pods."""
        return 0 if self.is_gang else max((role.retries for role in self.roles.values()), default=0)


def read(plan: CompletionPlan) -> dict[str, Any]:
    """The fields of the JobSpec document for the plan; `policies_of` has the policies of the tasks."""
    restarts = plan.retries if any(role.failed == 1 for role in plan.roles.values()) else 0
    limit = min(plan.pod_retries or restarts, MAX_RETRY)
    document: dict[str, Any] = {"max_retry": limit} if limit > 0 else {}
    if plan.is_gang and plan.pods > 1:
        document["policies"] = [_LOST]
    if not plan.is_gang and plan.pods > 1:
        document["min_available"] = 1
    if wanted := _successes(plan):
        document["min_success"] = wanted
    return document


def policies_of(plan: CompletionPlan, task: str) -> list[dict[str, Any]]:
    """The policies of a task."""
    ends = plan.roles[task]
    failure = [
        {"events": [str(LifecycleEvent.POD_FAILED)], "action": str(action)} for action in _on_failure(plan, ends)
    ]
    leads = len(plan.roles) > 1 and ends.succeeded == ends.replicas
    return [*failure, *([_DONE] if leads else [])]


def _on_failure(plan: CompletionPlan, ends: RoleCompletion) -> list[LifecycleAction]:
    if plan.pod_retries:
        return [LifecycleAction.RESTART_POD] if ends.retries else [LifecycleAction.TERMINATE_JOB]
    if ends.failed != 1:
        return []
    if plan.retries:
        return [LifecycleAction.RESTART_JOB]
    return [LifecycleAction.TERMINATE_JOB] if plan.pods > 1 else []


def _successes(plan: CompletionPlan) -> int | None:
    """The required number of successes; None if the plan has none."""
    alone = next(iter(plan.roles.values())) if len(plan.roles) == 1 else None
    if alone and 0 < alone.succeeded < alone.replicas:
        return alone.succeeded
    strict = all(role.failed == 1 for role in plan.roles.values())
    return plan.pods if not plan.is_gang and plan.pods > 1 and strict else None


def report(plan: CompletionPlan, findings: Findings, job_path: str) -> None:
    """Report differences from OpenPAI."""
    for role in plan.roles.values():
        if role.failed != 1:
            findings.not_honoured(f"{role.path}.completion.minFailedInstances", translate(_JUDGED))
        if len(plan.roles) > 1 and 0 < role.succeeded < role.replicas:
            findings.not_honoured(f"{role.path}.completion.minSucceededInstances", translate(_ONE_ROLE))
        if role.retries and (plan.is_gang or plan.pods > 1):
            findings.not_honoured(f"{role.path}.taskRetryCount", translate(_GANG if plan.is_gang else _TOGETHER))
    if plan.pod_retries and plan.retries:
        findings.not_honoured(job_path, translate(_ONE_BY_ONE))
    if plan.retries > MAX_RETRY:
        findings.not_honoured(job_path, most_retries())


def plan_of(spec: JobSpec, roles: Mapping[str, TaskRole], *, has_plugin: bool) -> CompletionPlan:
    """The plan that a job's policies come from, as far as there is one."""
    alone = spec.replicas == 1 and any(_has(task, LifecycleAction.RESTART_POD) for task in spec.tasks)
    is_gang = not alone and not (spec.min_available == 1 and spec.replicas > 1)
    restarts = any(_has(task, LifecycleAction.RESTART_JOB) for task in spec.tasks)
    ends = {task.name: _ends(task, spec, roles[task.name] if has_plugin else None) for task in spec.tasks}
    return CompletionPlan(ends, spec.max_retry if restarts else 0, is_gang)


def _ends(task: TaskSpec, spec: JobSpec, role: TaskRole | None) -> RoleCompletion:
    retries = spec.max_retry if _has(task, LifecycleAction.RESTART_POD) else 0
    if role is not None:
        return RoleCompletion("", role.min_failed, role.succeeded(task), task.replicas, retries)
    alone = len(spec.tasks) == 1
    fails = any(LifecycleEvent.POD_FAILED in policy.events for policy in task.policies) or spec.replicas == 1
    leads = alone or LifecyclePolicy.model_validate(_DONE) in task.policies
    counted = spec.min_success if alone and spec.min_success else task.replicas
    return RoleCompletion("", 1 if fails else NO_LIMIT, counted if leads else NO_LIMIT, task.replicas, retries)


def _has(task: TaskSpec, action: LifecycleAction) -> bool:
    return any(LifecycleEvent.POD_FAILED in policy.events and policy.action is action for policy in task.policies)
