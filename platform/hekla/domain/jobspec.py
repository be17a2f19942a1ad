"""The spec of a job: tasks with replicas. Forms, YAML, REST and the CLI all parse into it.

A `JobSpec` is always well formed; whether its queue is open or its name free is checked elsewhere. Everything in it has
a limit, since it is stored in a row, copied into pods and rendered on pages.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any, TypeGuard

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core.core_schema import ValidationInfo

from hekla.domain import frameworks, volumes
from hekla.domain.errors import Invalid, Problem
from hekla.domain.field_types import LABEL_FORM, Label, OptionalLabel, Quantity, StrictInteger, Text, is_label
from hekla.domain.job_kinds import MAX_PRIORITY
from hekla.domain.job_problems import (
    dependency_cycles,
    duplicate_names,
    duplicate_ports,
    file_path_problem,
    long_host_names,
    parent_folders,
    resource_problem,
    unknown_dependencies,
)
from hekla.domain.model_errors import explain, findings
from hekla.domain.network_topology import NetworkTopologySpec
from hekla.domain.pod_annotations import Annotations
from hekla.domain.policies import LifecyclePolicy
from hekla.domain.resources import Resources
from hekla.domain.task_spec import MAX_REPLICAS, MAX_RETRY, MAX_TASKS, TaskSpec, raise_any, without_contradiction
from hekla.domain.translation import translate
from hekla.domain.validation import join
from hekla.domain.volumes import MAX_VOLUMES, VolumeSpec

MAX_FILES = 32
MAX_FILE_BYTES = 256 * 1024
MAX_JOB_NAME = 53
MAX_KEEP_SECONDS = 7 * 86_400
"""How long the files of a failed pod are kept at most."""
MAX_IDLE_SECONDS, MAX_IDLE_GRACE_SECONDS = 12 * 3600, 10 * 3600


class JobSpec(BaseModel):
    """The spec of a job."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=MAX_JOB_NAME), AfterValidator(is_label), LABEL_FORM]
    description: Annotated[Text, Field(max_length=2_000)] = ""
    kind: Annotated[str, Field(max_length=32), AfterValidator(is_label), LABEL_FORM] = "training"
    queue: Label = "default"
    priority: Annotated[StrictInteger, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    priority_class: OptionalLabel = ""
    volumes: Annotated[tuple[VolumeSpec, ...], Field(max_length=MAX_VOLUMES)] = ()
    tasks: Annotated[tuple[TaskSpec, ...], Field(min_length=1, max_length=MAX_TASKS)]
    min_available: Annotated[StrictInteger, Field(ge=1)] | None = None
    min_success: Annotated[StrictInteger, Field(ge=1)] | None = None
    min_resources: Annotated[dict[str, Quantity], Field(max_length=64)] = {}
    network_topology: NetworkTopologySpec | None = None
    max_retry: Annotated[StrictInteger, Field(ge=1, le=MAX_RETRY)] = 3
    active_deadline_seconds: Annotated[StrictInteger, Field(ge=1, le=10 * 365 * 86_400)] | None = None
    ttl_seconds_after_finished: Annotated[StrictInteger, Field(ge=0, le=10 * 365 * 86_400)] | None = None
    keep_failed_seconds: Annotated[StrictInteger, Field(ge=60, le=MAX_KEEP_SECONDS)] | None = None
    idle_after_seconds: Annotated[StrictInteger, Field(ge=600, le=MAX_IDLE_SECONDS)] | None = None
    idle_grace_seconds: Annotated[StrictInteger, Field(ge=300, le=MAX_IDLE_GRACE_SECONDS)] | None = None
    policies: Annotated[tuple[LifecyclePolicy, ...], Field(max_length=32)] = ()
    plugins: Annotated[dict[str, tuple[Annotated[Text, Field(max_length=4096)], ...]], Field(max_length=32)] = {}
    files: Annotated[dict[str, Text], Field(max_length=MAX_FILES)] = {}
    annotations: Annotations = {}

    @classmethod
    def parse(cls, document: Mapping[str, Any]) -> "JobSpec":
        """The job that this JSON-like document describes. Raises Invalid with every problem in it."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise Invalid([*explain(error, cls), *cls._behind(document, error)]) from error

    @classmethod
    def _behind(cls, document: Mapping[str, Any], error: ValidationError) -> list[Problem]:
        """Contradictions between the job and its tasks, which pydantic skips while a task is invalid.

        They are only reported if names and replicas of the tasks are valid.
        """
        wrong = {details["loc"] for details in findings(error)}
        tasks = document.get("tasks") if isinstance(document, Mapping) else None
        places = {(loc[0], loc[-1]) for loc in wrong if len(loc) > 1}
        if not _are_mappings(tasks) or places & {("tasks", "name"), ("tasks", "replicas")} or ("tasks",) in wrong:
            return []
        numbers = [{key: task[key] for key in ("name", "replicas") if key in task} for task in tasks]
        right = [
            key for key in ("min_available", "min_success", "plugins") if not any(loc[:1] == (key,) for loc in wrong)
        ]
        try:
            cls.model_validate(
                {"name": "x", "tasks": [{**task, "command": ["x"]} for task in numbers]}
                | {key: document[key] for key in right if key in document}
            )
        except ValidationError as more:
            return explain(more, cls)
        return []

    @property
    def remarks(self) -> tuple[str, ...]:
        """Warnings about fields without effect, or with an unexpected one, as sentences that begin with the path."""
        return tuple(f"{remark.path}: {remark.message}" for remark in self.placed_remarks())

    def placed_remarks(self) -> list[Problem]:
        """The remarks as problems with paths."""
        of_volumes = [
            Problem(join("volumes", remark.path), remark.message)
            for remark in volumes.remarks(self.volumes, self.tasks)
        ]
        return [*frameworks.remarks(self), *of_volumes, *self._remarks_of_topologies()]

    def _remarks_of_topologies(self) -> Iterator[Problem]:
        own = [("network_topology", self.network_topology)]
        for place, task in enumerate(self.tasks):
            own.append((join("tasks", place, "partition_topology"), task.partition_topology))
        for path, topology in own:
            for remark in topology.remarks() if topology else ():
                yield Problem(join(path, remark.path), remark.message)

    def document(self) -> dict[str, Any]:
        """As JSON-like data without default values; `parse` reads it back."""
        return self.model_dump(mode="json", exclude_defaults=True)

    @cached_property
    def claims_devices(self) -> bool:
        """Whether its pods claim devices of the cluster."""
        return any(task.resource_claims for task in self.tasks)

    @cached_property
    def has_dependencies(self) -> bool:
        """Whether a task depends on others."""
        return any(task.depends_on for task in self.tasks)

    @property
    def has_timeouts(self) -> bool:
        """Whether a policy has a timeout."""
        rules = (*self.policies, *(policy for task in self.tasks for policy in task.policies))
        return any(policy.timeout_seconds is not None for policy in rules)

    @property
    def replicas(self) -> int:
        """The number of pods of the whole job."""
        return sum(task.replicas for task in self.tasks)

    @property
    def gang_minimum(self) -> int:
        """How many pods must be placed together for the job to start (minAvailable)."""
        return self.min_available if self.min_available is not None else sum(task.minimum for task in self.tasks)

    def task(self, name: str) -> TaskSpec:
        """The task of that name. Raises KeyError."""
        return next((task for task in self.tasks if task.name == name), None) or _no_task(name)

    @cached_property
    def admission_resources(self) -> Resources:
        """What must be free before the job is admitted to the queue (minResources); by default what its gang needs."""
        return Resources.parse(self.min_resources) if self.min_resources else self.minimum_resources()

    def minimum_resources(self) -> Resources:
        """The resources of the smallest gang."""
        total = Resources()
        for task, count in zip(self.tasks, self._minimum_members(), strict=True):
            total += task.request * count
        return total

    def _minimum_members(self) -> list[int]:
        """The pods of each task in the smallest gang, earlier tasks first."""
        wanted = self.gang_minimum
        minimums_fit = wanted >= sum(task.minimum for task in self.tasks)
        members = [task.minimum if minimums_fit else 0 for task in self.tasks]
        for place, task in enumerate(self.tasks):
            members[place] += min(task.replicas - members[place], wanted - sum(members))
        return members

    @model_validator(mode="before")
    @classmethod
    def _commands_of_plugins(cls, document: Any) -> Any:  # noqa: ANN401  (whatever was sent)
        return _with_commands(document) if isinstance(document, Mapping) else document

    @field_validator("volumes")
    @classmethod
    def _volumes_have_names(cls, value: tuple[VolumeSpec, ...]) -> tuple[VolumeSpec, ...]:
        raise_any(volumes.duplicate_names(value))
        return tuple(sorted(value, key=lambda volume: volume.name))

    @field_validator("tasks")
    @classmethod
    def _tasks_agree(cls, value: tuple[TaskSpec, ...], info: ValidationInfo) -> tuple[TaskSpec, ...]:
        problems = duplicate_names(value) + long_host_names(str(info.data.get("name", "")), value)
        problems += duplicate_ports(value)
        problems += unknown_dependencies(value) or dependency_cycles(value)
        if "volumes" in info.data:
            problems += volumes.mount_problems(info.data["volumes"], value)
        total = sum(task.replicas for task in value)
        if total > MAX_REPLICAS:
            problems.append(
                Problem(
                    "",
                    translate(
                        "The tasks have {total:,} replicas in total. The limit is {most:,}.",
                        most=MAX_REPLICAS,
                        total=total,
                    ),
                )
            )
        if total == 0:
            problems.append(Problem("", translate("No task has replicas, so there is nothing to run.")))
        raise_any(problems)
        return value

    @field_validator("min_available", "min_success")
    @classmethod
    def _minimum_fits(cls, value: int | None, info: ValidationInfo) -> int | None:
        total = sum(task.replicas for task in info.data.get("tasks", ()))
        if value is not None and "tasks" in info.data and value > total:
            raise ValueError(
                translate(
                    "The tasks have {total} replicas in total, so {value} can never be reached.",
                    total=total,
                    value=value,
                )
            )
        return value

    @field_validator("min_resources")
    @classmethod
    def _are_amounts(cls, value: dict[str, str]) -> dict[str, str]:
        raise_any([problem for name, text in value.items() if (problem := resource_problem(name, text))])
        return value

    @field_validator("idle_grace_seconds")
    @classmethod
    def _grace_follows_idleness(cls, value: int | None, info: ValidationInfo) -> int | None:
        if value is not None and info.data.get("idle_after_seconds", 0) is None:
            raise ValueError(translate("Has no effect without idle_after_seconds."))
        return value

    @field_validator("policies")
    @classmethod
    def _policies_agree(cls, value: tuple[LifecyclePolicy, ...]) -> tuple[LifecyclePolicy, ...]:
        return without_contradiction(value)

    @field_validator("plugins")
    @classmethod
    def _plugins_agree(cls, value: dict[str, tuple[str, ...]], info: ValidationInfo) -> dict[str, tuple[str, ...]]:
        if "tasks" in info.data:
            raise_any(frameworks.check(value, info.data["tasks"]))
        return value

    @field_validator("files")
    @classmethod
    def _files_agree(cls, value: dict[str, str]) -> dict[str, str]:
        problems = [Problem(path, sentence) for path in value if (sentence := file_path_problem(path, value))]
        size = sum(len(text.encode()) for text in value.values())
        if size > MAX_FILE_BYTES:
            problems.append(
                Problem(
                    "",
                    translate(
                        "The files have {kib:.0f} KiB in total. The limit is {most} KiB.",
                        most=MAX_FILE_BYTES // 1024,
                        kib=size / 1024,
                    ),
                )
            )
        raise_any(problems)
        return value

    @model_validator(mode="after")
    def _volumes_are_mounted(self) -> "JobSpec":
        """Every volume is mounted, and none over a file of the job or its plugins."""
        if self.volumes:
            files = [*self.files, *(frameworks.files(self) if self.plugins else ())]
            unused, hiding = (
                volumes.unmounted_volumes(self.volumes, self.tasks),
                volumes.mounts_over_files(self.tasks, files),
            )
            placed = [*(("volumes", one) for one in unused), *(("tasks", one) for one in hiding)]
            raise_any([Problem(join(part, one.path), one.message) for part, one in placed])
        return self

    @model_validator(mode="after")
    def _files_leave_room(self) -> "JobSpec":
        """No file of the job is a folder of a plugin's file, and the reverse."""
        if self.files and self.plugins:
            theirs = frameworks.files(self)
            folders = {folder for path in theirs for folder in parent_folders(path)}
            wrong = [path for path in self.files if path in folders or not theirs.isdisjoint(parent_folders(path))]
            message = translate("This path conflicts with a file of the job's plugins.")
            raise_any([Problem(join("files", path), message) for path in wrong])
        return self


def _with_commands(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """The document, with default commands of plugins for tasks without one."""
    plugins, tasks = document.get("plugins"), document.get("tasks")
    if not _are_mappings(tasks) or not isinstance(plugins, Mapping):
        return document
    commands = frameworks.commands(plugins)
    defaults = [
        {"command": commands[name]} if (name := str(task.get("name"))) in commands and not task.get("args") else {}
        for task in tasks
    ]
    return {**document, "tasks": [{**command, **task} for command, task in zip(defaults, tasks, strict=True)]}


def _are_mappings(tasks: object) -> TypeGuard[list[Mapping[str, Any]]]:
    return isinstance(tasks, list) and all(isinstance(task, Mapping) for task in tasks)


def _no_task(name: str) -> TaskSpec:
    raise KeyError(name)
