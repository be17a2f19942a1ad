"""The specification of a job that continues where a pod failed: the same pod, with a shell instead of its command."""

import secrets
from typing import Any

from hekla.apps.clusters import selectors as clusters
from hekla.apps.clusters.models import Cluster
from hekla.apps.jobs.facts import valid_spec
from hekla.apps.jobs.models import Job, Pod
from hekla.domain.job_kinds import SESSION
from hekla.domain.job_problems import MAX_HOST_NAME
from hekla.domain.jobspec import JobSpec

LAST_SECONDS = 8 * 3600
"""How long it runs at most."""
_HOST, _SHORT = "kubernetes.io/hostname", "main"
FAILED_COMMAND, _HISTORY = "HEKLA_FAILED_COMMAND", "/tmp/.hekla-history-"  # noqa: S108  (in the pod)
_WAIT = (
    'umask 077; set -C; printf "%s\\n" "$HEKLA_FAILED_COMMAND" > "$HISTFILE"; '
    'echo "Open a terminal: the command that failed is the last one in its history."; '
    'trap "exit 0" TERM INT; while :; do sleep 3600 & wait "$!"; done'
)
"""Writes the failed command into the history of the shells that are opened in the pod, then waits for its end.

The command may contain secrets, and more people read the log and the working folder. Pods on a machine without
isolation share its `/tmp`: each job has a file of its own, which it makes itself or not at all.
"""
FILES_TASK = "files"
"""The task of jobs that only have the files of another one (`files_spec`)."""
_OF_FILES = ("cpu", "memory")
_ONLY_WAIT = 'trap "exit 0" TERM INT; while :; do sleep 3600 & wait "$!"; done'
_NOT_OF_ONE_POD = {
    *("name", "replicas", "min_available", "command", "args", "policies", "success_policy", "max_retry", "depends_on"),
    *("partition_size", "min_partitions", "partition_topology", "autoscaling", "env", "node_selector"),
}


def debug_spec(job: Job, pod: Pod, name: str) -> JobSpec:
    """The job of this name that continues where this pod of the job failed. Raises Invalid.

    Its files, its command and the settings of its plugins come from the failed pod when it starts.
    """
    task = valid_spec(job).task(pod.task)
    fields = {
        "name": task.name if len(f"{name}-{task.name}-0") <= MAX_HOST_NAME else _SHORT,
        "command": ["sh", "-c", _WAIT],
        "env": {**task.env, "HISTFILE": f"{_HISTORY}{secrets.token_hex(12)}"},
        "node_selector": {**task.node_selector, **_node_of(pod, job.cluster)},
    }
    return _one_pod(job, pod, name, fields)


def files_spec(job: Job, pod: Pod, name: str) -> JobSpec:
    """The job of this name in which a copy of the files of this pod can be looked at: its environment, nothing that
    runs, and no cards. Raises Invalid.
    """
    task = valid_spec(job).task(pod.task)
    amounts = task.model_dump(mode="json").get("resources", {})
    fields = {
        "name": FILES_TASK,
        "command": ["sh", "-c", _ONLY_WAIT],
        "env": dict(task.env),
        "node_selector": dict(task.node_selector),
        "resources": {resource: amounts[resource] for resource in _OF_FILES if resource in amounts},
    }
    return _one_pod(job, pod, name, fields)


def _one_pod(job: Job, pod: Pod, name: str, fields: dict[str, Any]) -> JobSpec:
    """A session of one pod like this one, with these fields of its task. Raises Invalid."""
    spec = valid_spec(job)
    task = spec.task(pod.task)
    mounted = {mount.name for mount in task.volume_mounts}
    document: dict[str, Any] = {
        "name": name,
        "kind": SESSION,
        "queue": job.queue.name,
        "priority": spec.priority,
        "priority_class": spec.priority_class,
        "volumes": [
            volume.model_dump(mode="json", exclude_defaults=True) for volume in spec.volumes if volume.name in mounted
        ],
        "tasks": [{**task.model_dump(mode="json", exclude_defaults=True, exclude=_NOT_OF_ONE_POD), **fields}],
        "max_retry": 1,
        "active_deadline_seconds": LAST_SECONDS,
    }
    return JobSpec.parse(document)


def _node_of(pod: Pod, cluster: Cluster) -> dict[str, str]:
    """The label of the node that has the files, if there are several nodes."""
    node = clusters.nodes_of(cluster, [pod.node]).first() if cluster.kind == Cluster.Kind.KUBERNETES else None
    name = node.labels.get(_HOST) if node else None
    return {_HOST: name} if name else {}
