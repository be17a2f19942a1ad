"""Writing a Volcano Job: what `load` reads back as the same JobSpec, and a cluster with Volcano runs."""

import re
from typing import Any

from hekla.domain.formats import yaml_text
from hekla.domain.formats.volcano import words
from hekla.domain.jobspec import Dependency, JobSpec, TaskSpec
from hekla.domain.policies import Policy

_CONFIG_KEY = re.compile(r"[-._A-Za-z0-9]+")


def dump(spec: JobSpec) -> str:
    """The job as YAML; with its files in a ConfigMap before it."""
    return yaml_text.write([*([_config_map(spec)] if spec.files else []), _job(spec)])


def _job(spec: JobSpec) -> dict[str, Any]:
    annotations = {
        **spec.annotations,
        words.KIND: spec.kind if spec.kind != "training" else None,
        words.DESCRIPTION: spec.description or None,
        words.PRIORITY: str(spec.priority) if spec.priority else None,
    }
    return {
        "apiVersion": words.API_VERSION,
        "kind": "Job",
        "metadata": _set(name=spec.name, annotations=_without_none(annotations)),
        "spec": _set(
            schedulerName="volcano",
            queue=spec.queue,
            minAvailable=spec.min_available,
            minSuccess=spec.min_success,
            maxRetry=spec.max_retry,
            ttlSecondsAfterFinished=spec.ttl_seconds_after_finished,
            policies=[_policy(policy) for policy in spec.policies],
            plugins={name: list(arguments) for name, arguments in spec.plugins.items()},
            tasks=[_task(task, spec) for task in spec.tasks],
        ),
    }


def _policy(policy: Policy) -> dict[str, Any]:
    names = [str(event) for event in policy.events]
    return _set(
        event=names[0] if len(names) == 1 else None,
        events=names if len(names) > 1 else [],
        exitCode=policy.exit_code,
        action=str(policy.action),
        timeout=f"{policy.timeout_seconds}s" if policy.timeout_seconds else None,
    )


def _task(task: TaskSpec, spec: JobSpec) -> dict[str, Any]:
    annotations = {words.ENVIRONMENT: task.environment} if task.environment else {}
    return _set(
        name=task.name,
        replicas=task.replicas,
        minAvailable=task.min_available,
        maxRetry=task.max_retry,
        partitionPolicy=_partitions(task, task.partition_size) if task.partition_size else None,
        dependsOn=_depends_on(task.depends_on) if task.depends_on else None,
        policies=[_policy(policy) for policy in task.policies],
        template=_set(metadata=_set(annotations=annotations), spec=_pod(task, spec)),
    )


def _partitions(task: TaskSpec, size: int) -> dict[str, Any]:
    return {"totalPartitions": task.replicas // size, "partitionSize": size}


def _depends_on(dependency: Dependency) -> dict[str, Any]:
    return {"name": list(dependency.tasks), "iteration": str(dependency.iteration)}


def _pod(task: TaskSpec, spec: JobSpec) -> dict[str, Any]:
    return _set(
        restartPolicy="Never",
        terminationGracePeriodSeconds=task.grace_seconds,
        nodeSelector=dict(task.node_selector),
        containers=[_container(task, spec)],
        volumes=[{"name": "files", "configMap": _files_volume(spec)}] if spec.files else [],
    )


def _container(task: TaskSpec, spec: JobSpec) -> dict[str, Any]:
    return _set(
        name=task.name,
        image=task.image or None,
        workingDir=_working_dir(task, spec),
        command=list(task.command),
        env=[{"name": name, "value": value} for name, value in task.env.items()],
        resources=_set(requests=dict(task.resources), limits=dict(task.resources)),
        volumeMounts=[{"name": "files", "mountPath": words.FOLDER}] if spec.files else [],
    )


def _working_dir(task: TaskSpec, spec: JobSpec) -> str | None:
    """Without files a pod's own folder needs no name; with them it is where they are mounted."""
    if not spec.files or task.working_dir.startswith("/"):
        return task.working_dir or None
    return f"{words.FOLDER}/{task.working_dir}".rstrip("/")


def _config_map(spec: JobSpec) -> dict[str, Any]:
    data = dict(zip(_keys(spec), spec.files.values(), strict=True))
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": _config_name(spec)}, "data": data}


def _files_volume(spec: JobSpec) -> dict[str, Any]:
    keys = _keys(spec)
    plain = keys == list(spec.files)
    items = [{"key": key, "path": path} for key, path in zip(keys, spec.files, strict=True)]
    return _set(name=_config_name(spec), items=[] if plain else items)


def _keys(spec: JobSpec) -> list[str]:
    """A key of a ConfigMap has no folders: where a path is none, all files are numbered."""
    if all(_CONFIG_KEY.fullmatch(path) for path in spec.files):
        return list(spec.files)
    return [f"file-{number}" for number in range(len(spec.files))]


def _config_name(spec: JobSpec) -> str:
    return f"{spec.name}-files"


def _set(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    """The fields that say something."""
    return {name: value for name, value in fields.items() if value is not None and value not in ([], {})}


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
