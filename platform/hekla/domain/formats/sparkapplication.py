"""SparkApplications (`sparkoperator.k8s.io/v1beta2`): a driver and its executors as one gang.

The driver does not create the executors: drivers cannot fill a queue and then wait for executors that find no room. It
starts a standalone master and submits the application there; each executor is a worker of this master. With dynamic
allocation the gang needs `minExecutors`, and further ones start while there is room.
"""

import shlex
from typing import Any

from hekla.domain.formats import annotations, pods, run_policy, spark_pods
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.replica_range import start_size
from hekla.domain.formats.spark_submit import arguments
from hekla.domain.frameworks.spark import start_driver
from hekla.domain.task_spec import MAX_RETRY
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, not_one_of

Document = dict[str, Any]

_TYPES = ("Java", "Scala", "Python", "R")
_MODES = ("cluster", "client", "in-cluster-client")
_RESTARTS = ("Never", "OnFailure", "Always")
_DRIVER = gettext_noop("the driver runs in a pod of the job.")
_ALWAYS = gettext_noop("an application that has succeeded does not start again. It restarts after failures.")
_FIXED = gettext_noop("executors beyond minExecutors start when there is room for them, and are preempted first.")
_DELAY = gettext_noop("Hekla chooses the delay before a restart.")


def _read(reading: ManifestReader, manifest: Fields) -> Document:
    document = reading.head(manifest.fields("metadata"), active_deadline_seconds=annotations.DEADLINE)
    spec = manifest.fields("spec")
    spec.ignore("sparkVersion", "pythonVersion")
    if spec.take("type") not in (None, *_TYPES):
        spec.findings.problem(spec.at("type"), not_one_of(spec.take("type"), _TYPES))
    reading.unless(spec, "mode", _MODES, translate(_DRIVER))
    document |= _scheduling(reading, spec)
    document["ttl_seconds_after_finished"] = reading.take(spec, "timeToLiveSeconds", "ttl_seconds_after_finished")
    driver, executor = (
        spark_pods.read(reading, spec, role, place) for place, role in enumerate(("driver", "executor"))
    )
    retries = _retries(reading, spec.fields("restartPolicy"))
    words = arguments(reading, spec, document["name"], (driver, executor))
    failed = {"events": ["PodFailed"], "action": "RestartJob" if retries else "TerminateJob"}
    completed = {"events": ["TaskCompleted"], "action": "CompleteJob"}
    worker = {"SPARK_WORKER_CORES": str(executor.cores), "SPARK_WORKER_MEMORY": f"{executor.memory_mib}m"}
    tasks = [
        {**driver.task, "command": start_driver(shlex.join(words)), "policies": [failed, completed]},
        {
            **executor.task,
            **_replicas(reading, spec),
            "env": executor.task["env"] | worker,
            "policies": [{"events": ["PodFailed"], "action": "RestartPod"}],
        },
    ]
    spec.close()
    plugins = reading.plugin("spark", {}, spec.path)
    return {**document, "tasks": tasks, "plugins": plugins, "max_retry": retries or MAX_RETRY}


def _scheduling(reading: ManifestReader, spec: Fields) -> Document:
    reading.unless(spec, "batchScheduler", pods.SCHEDULERS, translate(pods.OTHER_SCHEDULER))
    options = spec.fields("batchSchedulerOptions")
    document = {
        "queue": reading.take(options, "queue", "queue"),
        "priority_class": reading.take(options, "priorityClassName", "priority_class"),
    }
    if needs := options.mapping("resources"):
        reading.findings.origins["min_resources"] = options.at("resources")
        document["min_resources"] = needs
    options.close()
    return document


def _retries(reading: ManifestReader, policy: Fields) -> Any:  # noqa: ANN401  (the spec judges it)
    """How often a failed application restarts."""
    kind = policy.text("type") or "Never"
    if kind not in _RESTARTS:
        policy.findings.problem(policy.at("type"), not_one_of(kind, _RESTARTS))
    for name in ("onFailureRetryInterval", "onSubmissionFailureRetries", "onSubmissionFailureRetryInterval"):
        reading.unless(policy, name, (), translate(_DELAY))
    if kind == "Always":
        reading.findings.not_honoured(policy.at("type"), translate(_ALWAYS))
    limit = reading.take(policy, "onFailureRetries", "max_retry", zero_is_default=True)
    policy.close()
    if kind == "Never":
        return None
    return run_policy.limited(reading, MAX_RETRY if limit is None and kind == "Always" else limit)


def _replicas(reading: ManifestReader, spec: Fields) -> Document:
    """The numbers of executors."""
    target, executor, dynamic = join("tasks", 1), spec.fields("executor"), spec.fields("dynamicAllocation")
    instances = reading.take(executor, "instances", join(target, "replicas"))
    if dynamic.take("enabled") is not True:
        spec.ignore("dynamicAllocation")
        return without_none({"replicas": instances})
    reading.findings.not_honoured(dynamic.at("enabled"), translate(_FIXED))
    least = reading.take(dynamic, "minExecutors", join(target, "min_available")) or 0
    most, first = dynamic.take("maxExecutors"), dynamic.take("initialExecutors")
    wanted = next((number for number in (most, first, instances) if number is not None), 1)
    if most is not None:
        reading.findings.origins[join(target, "replicas")] = dynamic.at("maxExecutors")
    dynamic.ignore("shuffleTrackingTimeout")
    dynamic.close()
    return {"replicas": start_size(reading, wanted, (least, most), join(target, "replicas")), "min_available": least}


SPARKAPPLICATION = Format("sparkapplication", "sparkoperator.k8s.io/v1beta2", "SparkApplication", _read)
