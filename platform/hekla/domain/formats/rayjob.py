"""RayJobs (`ray.io/v1`): a cluster of their own, and the task `submitter`, which submits the entrypoint to it.

When the submitter has succeeded, the job completes and the cluster stops. When it fails, the job ends; with
`backoffLimit` it restarts with a new cluster, as in KubeRay.
"""

import json
import shlex
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid
from hekla.domain.formats import pods, run_policy
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.raycluster import VERSION, read_head, read_tasks
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.task_spec import MAX_RETRY
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, quote

Document = dict[str, Any]

_SUBMITTER = "submitter"
_AMOUNTS = {"cpu": "500m", "memory": "200Mi"}
"""What a submitter without a template of its own requests in KubeRay."""
_FROM_HEAD = ("image", "environment", "pull_secrets", "security_context", "runtime_class")
_MODES = ("K8sJobMode", "HTTPMode", "SidecarMode")
_WAITS = "until ray job list >/dev/null 2>&1; do sleep 2; done"
_INTERACTIVE = gettext_noop("Use K8sJobMode. A job runs its entrypoint and accepts no other.")
_SELECTOR = gettext_noop("A job runs a cluster of its own. Use rayClusterSpec.")
_SUBMITS_ONCE = gettext_noop("a submitter that fails ends the job, or restarts it (backoffLimit).")
_OPTIONS = {
    "jobId": "submission-id",
    "entrypointNumCpus": "entrypoint-num-cpus",
    "entrypointNumGpus": "entrypoint-num-gpus",
    "entrypointResources": "entrypoint-resources",
}
"""Fields that are options of `ray job submit`."""


def _read(reading: ManifestReader, manifest: Fields) -> Document:
    document, runs_unchanged = read_head(reading, manifest.fields("metadata"))
    spec = manifest.fields("spec")
    reading.unless(spec, "suspend", (False,), translate("a submitted job starts as soon as it fits."))
    reading.unless(spec, "managedBy", (), translate("this platform runs the job."))
    for name in ("ttlSecondsAfterFinished", "deletionPolicy", "deletionStrategy"):
        reading.unless(spec, name, (), translate(run_policy.CLEAN))
    reading.unless(spec, "shutdownAfterJobFinishes", (True,), translate(run_policy.CLEAN))
    _refuse_other_modes(spec)
    document["active_deadline_seconds"] = reading.take(spec, "activeDeadlineSeconds", "active_deadline_seconds")
    document |= read_tasks(reading, spec.fields("rayClusterSpec"), runs_unchanged=runs_unchanged)
    retries = _retries(reading, spec)
    failed = "RestartJob" if retries else "TerminateJob"
    submitter = _submitter(reading, spec, document["tasks"])
    submitter["policies"] = [
        {"events": ["PodFailed"], "action": failed},
        {"events": ["TaskCompleted"], "action": "CompleteJob"},
    ]
    spec.close()
    return {**document, "tasks": [*document["tasks"], submitter], "max_retry": retries or MAX_RETRY}


def _refuse_other_modes(spec: Fields) -> None:
    mode = spec.take("submissionMode")
    if mode not in (None, "", *_MODES):
        spec.findings.problem(spec.at("submissionMode"), translate(_INTERACTIVE))
    if spec.take("clusterSelector"):
        spec.findings.problem(spec.at("clusterSelector"), translate(_SELECTOR))


def _retries(reading: ManifestReader, spec: Fields) -> Any:  # noqa: ANN401  (the spec judges it)
    submitter = spec.fields("submitterConfig")
    reading.unless(submitter, "backoffLimit", (0,), translate(_SUBMITS_ONCE))
    submitter.close()
    limit = reading.take(spec, "backoffLimit", "max_retry", zero_is_default=True)
    return run_policy.limited(reading, limit)


def _submitter(reading: ManifestReader, spec: Fields, tasks: list[Document]) -> Document:
    target = join("tasks", len(tasks))
    reading.findings.origins[target] = spec.path
    template = spec.fields("submitterPodTemplate")
    document = {"resources": _AMOUNTS} | {name: tasks[0][name] for name in _FROM_HEAD if name in tasks[0]}
    if template.names():
        document = pods.read(reading, template, target, restarts=("Never", "OnFailure"))
    command = _command(spec)
    if not document.get("command"):
        reading.findings.origins[join(target, "command")] = spec.at("entrypoint")
        document |= {"command": command, "args": None}
    return without_none({**document, "name": _SUBMITTER})


def _command(spec: Fields) -> tuple[str, ...]:
    words = ["ray", "job", "submit"]
    for field, option in _OPTIONS.items():
        if (value := spec.take(field)) not in (None, ""):
            words.append(f"--{option}={value}")
    if environment := _runtime_environment(spec):
        words.append(f"--runtime-env-json={environment}")
    if metadata := spec.mapping("metadata"):
        words.append(f"--metadata-json={json.dumps(metadata, default=str)}")
    return "sh", "-c", f"{_WAITS}; exec {shlex.join([*words, '--', *_entrypoint(spec)])}"


def _entrypoint(spec: Fields) -> list[str]:
    try:
        words = shlex.split(spec.text("entrypoint"))
    except ValueError:
        spec.findings.problem(spec.at("entrypoint"), translate("A quotation mark has no end."))
        return []
    if not words:
        spec.findings.problem(spec.at("entrypoint"), translate("Required. It is what the job runs on its cluster."))
    return words


def _runtime_environment(spec: Fields) -> str:
    """The runtime environment as JSON; empty without one."""
    text, path = spec.text("runtimeEnvYAML"), spec.at("runtimeEnvYAML")
    try:
        documents = yaml_text.read(text)
    except Invalid as error:
        spec.findings.problem(path, error.problems[0].message)
        return ""
    if not documents:
        return ""
    if len(documents) > 1 or not isinstance(documents[0], dict):
        spec.findings.problem(path, translate("Must be a mapping of fields to values, not {given}.", given=quote(text)))
        return ""
    return json.dumps(documents[0], default=str)


RAYJOB = Format("rayjob", VERSION, "RayJob", _read)
