"""Jobs of Kubernetes (`batch/v1`): one pod template and a number of completions.

Kubernetes starts the pods of a Job one by one, so the annotation `scheduling.volcano.sh/group-min-member` sets the
gang, and `scheduling.volcano.sh/queue-name` the queue. A failed pod is restarted up to `backoffLimit` times; with 0 its
failure ends the job. Without `completions`, one success is enough when all pods have ended.
"""

import re
from typing import Any

from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import annotations, pods, run_policy
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.writing import metadata, priority_class, without_empty
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecycleAction, LifecycleEvent, LifecyclePolicy
from hekla.domain.translation import gettext_noop, translate

_USUAL_LIMIT = 6
_AT_ONCE = gettext_noop("all completions can run at the same time.")
_NOT_HERE = gettext_noop("only listed exit codes (FailJob, Count) and evictions (Ignore) are supported.")
_INDEXES = gettext_noop("only a number of successes is supported.")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_RESTARTS = LifecyclePolicy(events=(LifecycleEvent.POD_FAILED,), action=LifecycleAction.RESTART_POD)
_ENDS = LifecyclePolicy(events=(LifecycleEvent.POD_FAILED,), action=LifecycleAction.TERMINATE_JOB)


def _read(reading: ManifestReader, job: Fields) -> dict[str, Any]:
    more = {"queue": annotations.QUEUE, "min_available": annotations.GANG, "priority_class": annotations.PRIORITY_CLASS}
    document = reading.head(job.fields("metadata"), **more)
    spec = job.fields("spec")
    limits, retries = run_policy.read_limits(reading, spec)
    document |= limits
    if retries and document["max_retry"] is None:
        document["max_retry"] = _USUAL_LIMIT
    indexed = spec.take("completionMode") == "Indexed"
    reading.unless(spec, "completionMode", ("Indexed", "NonIndexed"), translate("Use Indexed or NonIndexed."))
    document["plugins"] = reading.plugin("indexed", {}, spec.at("completionMode")) if indexed else None
    replicas = _counts(reading, spec, document)
    task = _task(reading, spec, replicas)
    failures = _RESTARTS if retries else _ENDS
    policies = [
        *_failure_rules(reading, spec, retries=retries),
        *([failures.model_dump()] if retries or replicas != 1 else []),
    ]
    spec.close()
    return {**document, "tasks": [{**task, "policies": policies}]}


def _counts(reading: ManifestReader, spec: Fields, document: dict[str, Any]) -> object:
    """The number of replicas. Also sets the gang's minimum and the required successes."""
    parallelism, completions = spec.take("parallelism"), spec.take("completions")
    replicas = (1 if parallelism is None else parallelism) if completions is None else completions
    named = "parallelism" if completions is None else "completions"
    reading.findings.origins["tasks.0.replicas"] = spec.at(named)
    if completions is not None and parallelism not in (None, completions):
        reading.findings.not_honoured(spec.at("parallelism"), translate(_AT_ONCE))
    wanted = _successes(reading, spec)
    if not isinstance(replicas, int) or replicas <= 1 or document["min_available"] == replicas:
        document["min_available"] = None
    else:
        document["min_available"] = 1 if document["min_available"] is None else document["min_available"]
        wanted = replicas if wanted is None and completions is not None else wanted
    document["min_success"] = wanted
    return replicas


def _successes(reading: ManifestReader, spec: Fields) -> object:
    """The required successes in the success policy; None without one."""
    wanted = None
    policy = spec.fields("successPolicy")
    for place, rule in enumerate(policy.list_of_fields("rules")):
        if place == 0 and "succeededIndexes" not in rule:
            wanted = reading.take(rule, "succeededCount", "min_success")
            rule.close()
        else:
            reading.findings.not_honoured(rule.path, translate(_INDEXES))
    policy.close()
    return wanted


def _task(reading: ManifestReader, spec: Fields, replicas: object) -> dict[str, Any]:
    template = spec.fields("template")
    reading.findings.origins["tasks"] = spec.at("template")
    reading.findings.origins["tasks.0"] = spec.at("template")
    document = pods.read(reading, template, "tasks.0", restarts=("Never", "OnFailure"))
    return without_none({"name": _container_name(spec), "replicas": replicas, **document})


def _container_name(spec: Fields) -> str:
    """The task's name: its container's if valid, else `main`. Looked up with findings of its own, which are not
    reported.
    """
    pod = Fields(spec.take("template"), "", Findings()).fields("spec")
    names = [container.text("name") for container in pod.list_of_fields("containers")]
    return names[0] if names and _NAME.fullmatch(names[0]) else "main"


def _failure_rules(reading: ManifestReader, spec: Fields, *, retries: bool) -> list[dict[str, Any]]:
    """`podFailurePolicy` as policies. Without retries, a failure that counts ends the job anyway and needs no rule."""
    policy = spec.fields("podFailurePolicy")
    found: list[dict[str, Any]] = []
    for rule in policy.list_of_fields("rules"):
        more = _failure_rule(rule)
        found += [
            one for one in more if retries or one["action"] != str(LifecycleAction.RESTART_POD) or "events" in one
        ]
        if not more:
            reading.findings.not_honoured(rule.path, translate(_NOT_HERE))
    policy.close()
    return found


def _failure_rule(rule: Fields) -> list[dict[str, Any]]:
    action, codes = rule.text("action"), rule.fields("onExitCodes")
    conditions = rule.list_of_fields("onPodConditions")
    if action == "Ignore" and [one.take("type") for one in conditions] == ["DisruptionTarget"]:
        return [{"events": [str(LifecycleEvent.POD_EVICTED)], "action": str(LifecycleAction.RESTART_POD)}]
    done = {"FailJob": LifecycleAction.TERMINATE_JOB, "Count": LifecycleAction.RESTART_POD}.get(action)
    if done is None or conditions or codes.text("operator") != "In" or "containerName" in codes:
        return []
    return [{"exit_code": code, "action": str(done)} for code in codes.sequence("values")]


def _write(spec: JobSpec) -> dict[str, Any]:
    if len(spec.tasks) != 1:
        names = ", ".join(task.name for task in spec.tasks)
        message = translate("A Kubernetes Job has one pod template. This job has {names}.", names=names)
        raise Invalid([Problem("tasks", message)])
    task, rules = spec.tasks[0], spec.tasks[0].policies
    gang = spec.gang_minimum if task.replicas > 1 else 1
    restarts = _RESTARTS in rules
    needs_all = spec.min_success == task.replicas or (spec.min_success is None and gang == task.replicas)
    few = spec.min_success if not needs_all else None
    fields = without_empty(
        parallelism=task.replicas,
        completions=task.replicas if needs_all or few else None,
        completionMode="Indexed" if "indexed" in spec.plugins or few else None,
        backoffLimit=spec.max_retry if restarts else 0,
        activeDeadlineSeconds=spec.active_deadline_seconds,
        ttlSecondsAfterFinished=spec.ttl_seconds_after_finished,
        podFailurePolicy=without_empty(rules=[rule for policy in rules for rule in _written_rules(policy)]),
        successPolicy={"rules": [{"succeededCount": few}]} if few else None,
        template=pods.write(task, spec),
    )
    group = {annotations.GANG: str(gang)} if gang > 1 else {}
    head = metadata(spec, {annotations.QUEUE: spec.queue, **group, **priority_class(spec)})
    return {"metadata": head, "spec": fields}


def _written_rules(policy: LifecyclePolicy) -> list[dict[str, Any]]:
    if policy.timeout_seconds:
        return []
    if policy.exit_code is not None:
        action = {LifecycleAction.TERMINATE_JOB: "FailJob", LifecycleAction.RESTART_POD: "Count"}.get(policy.action)
        return [{"action": action, "onExitCodes": {"operator": "In", "values": [policy.exit_code]}}] if action else []
    if policy == LifecyclePolicy(events=(LifecycleEvent.POD_EVICTED,), action=LifecycleAction.RESTART_POD):
        return [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]
    return []


KUBERNETES_JOB = Format("job", "batch/v1", "Job", _read, _write)
