"""What Kubeflow's jobs have in common: replicas by role, a restart policy for each, and one `runPolicy`.

A role becomes a task with its name in lower case. Its restart policy becomes policies of the task:

    OnFailure, Always  a failed pod is restarted, up to `backoffLimit` times (default: no limit, so the highest here)
    ExitCode           it is restarted if its exit code is that of an external signal
    Never              a failed pod ends the job, unless it is the job's only pod

The first role of `leaders` that the job has is its leader: when the leader's pods have succeeded, the others are
stopped and the job completes. A TFJob completes with the first pod of its workers if these lead.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from hekla.domain import frameworks
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats import pods, run_policy
from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields, Findings
from hekla.domain.formats.reader import ManifestReader, without_none
from hekla.domain.formats.writing import metadata
from hekla.domain.jobspec import JobSpec
from hekla.domain.policies import LifecyclePolicy
from hekla.domain.task_spec import MAX_RETRY, SuccessPolicy, TaskSpec
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import join, not_one_of

Document = dict[str, Any]

_LEADERS = ("Master", "Chief", "Launcher")
_IN_PODS = ("Always", "OnFailure", "Never")
_RESTARTS = (*_IN_PODS, "ExitCode")
_SIGNALS = (130, 137, 138, 143)
_RESTART_NOTES = {
    "Always": gettext_noop("failed pods restart. Succeeded pods do not."),
    "ExitCode": gettext_noop("of the exit codes from 128, only 130, 137, 138 and 143 restart a pod."),
}


def _no_fields(_reading: ManifestReader, _spec: Fields, _document: Document) -> None:
    """For kinds without fields of their own."""


def _nothing_more(_spec: JobSpec, _roles: Mapping[str, TaskSpec]) -> Document:
    return {}


def _all_replicas(_reading: ManifestReader, _spec: Fields, _roles: Collection[str]) -> SuccessPolicy:
    return SuccessPolicy.ALL_REPLICAS


def _usual_names(_tasks: Collection[str]) -> Mapping[str, str] | None:
    return {}


@dataclass(frozen=True, slots=True)
class KubeflowKind:
    """A kind of job whose replicas have roles.

    `replicas`: the field that holds them; `restart`: their default restart policy (`leader_restart`: a leader's, if it
    differs); `backoff_limit`: the default number of restarts, None for no limit; `container`: the name of the main
    container; `port`: the name of its port. `main`: the role of a task that is alone in its job. `plugin`: the job
    plugin that connects the pods; `arguments`: its arguments for tasks of these names, None if it is not needed.
    `success_policy`: the policy of the leader's task, for these roles. `read`: reads the fields that only this kind has
    into the JobSpec document; `write`: returns those fields.
    """

    kind: str
    replicas: str
    roles: tuple[str, ...]
    leaders: tuple[str, ...]
    restart: str
    container: str
    plugin: str
    main: str = "Worker"
    port: str = ""
    leader_restart: str = ""
    backoff_limit: int | None = None
    arguments: Callable[[Collection[str]], Mapping[str, str] | None] = _usual_names
    success_policy: Callable[[ManifestReader, Fields, Collection[str]], SuccessPolicy] = _all_replicas
    read: Callable[[ManifestReader, Fields, Document], None] = _no_fields
    write: Callable[[JobSpec, Mapping[str, TaskSpec]], Document] = _nothing_more

    def format(self, *, api_version: str = "kubeflow.org/v1", word: str = "") -> Format:
        """The format for the registry."""
        return Format(word or self.kind.lower(), api_version, self.kind, self._read, self._write)

    def _read(self, reading: ManifestReader, job: Fields) -> Document:
        spec = job.fields("spec")
        limits, retries = run_policy.read(reading, spec)
        document = reading.head(job.fields("metadata")) | limits
        owner = spec.fields(self.replicas)
        reading.findings.origins["tasks"] = owner.path
        found = {role: owner.fields(role) for role in owner.names() if role in self.roles}
        counts = {role: _count(replica.take("replicas")) for role, replica in found.items()}
        arguments = self._arguments(found)
        document["plugins"] = {} if arguments is None else reading.plugin(self.plugin, arguments, owner.path)
        success = self.success_policy(reading, spec, found)
        restarts = set()
        document["tasks"] = []
        for role, replica in found.items():
            task = self._task(reading, replica, role, len(document["tasks"]))
            restart = self._restart(reading, replica, role)
            restarts.add(restart)
            task["policies"] = self._policies(role, restart if retries else "Never", counts, success)
            if success is SuccessPolicy.FIRST_REPLICA and self._leads(role, counts, success):
                task["success_policy"] = success
            document["tasks"].append(task)
            replica.close()
        owner.ignore(*self.roles)
        owner.close()
        if retries and document["max_retry"] is None and restarts - {"Never"}:
            document["max_retry"] = self._usual_limit(reading)
        self.read(reading, spec, document)
        spec.close()
        return document

    def _usual_limit(self, reading: ManifestReader) -> int:
        """The restarts of a job without `backoffLimit`."""
        if self.backoff_limit is None:
            message = translate(
                "not set. Kubeflow has no limit. Here a job restarts at most {most} times.", most=MAX_RETRY
            )
            reading.findings.remark("max_retry", message)
        return self.backoff_limit or MAX_RETRY

    def _restart(self, reading: ManifestReader, replica: Fields, role: str) -> str:
        usual = (self.leader_restart if role in self.leaders else "") or self.restart
        restart = replica.text("restartPolicy") or usual
        if restart not in _RESTARTS:
            reading.findings.problem(replica.at("restartPolicy"), not_one_of(restart, _RESTARTS))
        elif restart in _RESTART_NOTES:
            reading.findings.not_honoured(replica.at("restartPolicy"), translate(_RESTART_NOTES[restart]))
        return restart

    def _task(self, reading: ManifestReader, replica: Fields, role: str, place: int) -> Document:
        target = join("tasks", place)
        reading.findings.origins[target] = replica.path
        document = {
            "name": role.lower(),
            "replicas": reading.take(replica, "replicas", join(target, "replicas")),
            **pods.read(
                reading,
                replica.fields("template"),
                target,
                main=self.container,
                restarts=_IN_PODS,
            ),
        }
        return without_none(document)

    def _policies(self, role: str, restart: str, counts: Mapping[str, int], success: SuccessPolicy) -> list[Document]:
        """The policies of a task: those that are read, and those that are recognised when writing."""
        ends = {"events": ["PodFailed"], "action": "TerminateJob"}
        return [
            *([{"exit_code": code, "action": "RestartPod"} for code in _SIGNALS] if restart == "ExitCode" else []),
            *([{"events": ["PodFailed"], "action": "RestartPod"}] if restart in ("Always", "OnFailure") else []),
            *([ends] if restart in ("Never", "ExitCode") and sum(counts.values()) > 1 else []),
            *([{"events": ["TaskCompleted"], "action": "CompleteJob"}] if self._leads(role, counts, success) else []),
        ]

    def _leads(self, role: str, counts: Mapping[str, int], success: SuccessPolicy) -> bool:
        """Whether the job completes with this role, before other pods end."""
        is_leader = role == next((leader for leader in self.leaders if leader in counts), None)
        required = 1 if success is SuccessPolicy.FIRST_REPLICA else counts[role]
        return is_leader and sum(counts.values()) > required

    def _arguments(self, found: Mapping[str, Fields]) -> Mapping[str, str] | None:
        arguments = self.arguments([role.lower() for role in found])
        ports = [port for replica in found.values() if (port := self._port_of(replica))]
        return {**arguments, "port": str(ports[0])} if ports and arguments is not None else arguments

    def _port_of(self, replica: Fields) -> object:
        """The port that a template names. It is looked up separately, since the reader of pods ignores ports."""
        pod = Fields(replica.take("template"), "", Findings()).fields("spec")
        ports = [port for one in pod.list_of_fields("containers") for port in one.list_of_fields("ports")]
        return next(
            (port.take("containerPort") for port in ports if self.port and port.take("name") == self.port), None
        )

    def _write(self, spec: JobSpec) -> Document:
        roles = self._roles_of(spec)
        replicas = {role: self._written(role, task, roles, spec) for role, task in roles.items()}
        fields = {"runPolicy": run_policy.write(spec), **self.write(spec, roles), self.replicas: replicas}
        return {"metadata": metadata(spec), "spec": fields}

    def _roles_of(self, spec: JobSpec) -> dict[str, TaskSpec]:
        """The task of each role: the task with the role's name, or with the name in the plugin's option."""
        options = self._options(spec)
        roles: dict[str, TaskSpec] = {}
        problems = []
        for place, task in enumerate(spec.tasks):
            fitting = [role for role in self.roles if options.get(role.lower(), role.lower()) == task.name]
            fitting.sort(key=lambda role: role.lower() != task.name)
            role = next(iter(fitting), self.main if len(spec.tasks) == 1 else "")
            if sentence := self._misfit(task, role, roles):
                problems.append(Problem(join("tasks", place), sentence))
            roles.setdefault(role, task)
        if problems:
            raise Invalid(problems)
        return roles

    def _misfit(self, task: TaskSpec, role: str, assigned: Mapping[str, TaskSpec]) -> str:
        """Why the task cannot have that role in this kind of job; empty if it can."""
        if not role:
            return translate(
                "{kind} has the roles {roles}. {task} is not one of them.",
                kind=self.kind,
                roles=", ".join(self.roles),
                task=task.name,
            )
        if role in assigned:
            return translate(
                "{kind} has one {role} task, which is {other} already.",
                kind=self.kind,
                role=role,
                other=assigned[role].name,
            )
        if role in _LEADERS and task.replicas > 1:
            return translate(
                "The {role} of a {kind} is one pod. {task} has {replicas} replicas.",
                role=role,
                kind=self.kind,
                task=task.name,
                replicas=task.replicas,
            )
        return ""

    def _options(self, spec: JobSpec) -> frameworks.base.Options:
        if self.plugin not in spec.plugins:
            return {}
        return frameworks.load_frameworks()[self.plugin].read(spec.plugins[self.plugin])[0]

    def _written(self, role: str, task: TaskSpec, roles: Mapping[str, TaskSpec], spec: JobSpec) -> Document:
        counts = {other: one.replicas for other, one in roles.items()}
        known = (restart for restart in ("Never", "OnFailure", "ExitCode") if self._says(role, restart, counts, task))
        port = self._options(spec).get("port") if self.port else None
        named = (self.port, port) if isinstance(port, int) else None
        return {
            "replicas": task.replicas,
            "restartPolicy": next(known, "Never"),
            "template": pods.write(task, spec, name=self.container, restart=None, port=named),
        }

    def _says(self, role: str, restart: str, counts: Mapping[str, int], task: TaskSpec) -> bool:
        return task.policies == tuple(
            LifecyclePolicy.model_validate(one) for one in self._policies(role, restart, counts, task.success_policy)
        )


def _count(value: object) -> int:
    return value if isinstance(value, int) else 1
