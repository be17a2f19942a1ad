"""The spec of a task of a job: replicas of one command, with what each of them gets."""

import re
from enum import StrEnum
from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator
from pydantic_core.core_schema import ValidationInfo

from hekla.domain import policies
from hekla.domain.autoscaling import Autoscaling
from hekla.domain.card_resources import card_counts
from hekla.domain.errors import Problem
from hekla.domain.field_types import Label, OptionalLabel, Quantity, StrictInteger, Text
from hekla.domain.job_problems import RESOURCE_NAME, resource_problem
from hekla.domain.network_topology import NetworkTopologySpec
from hekla.domain.numa import TopologyPolicy
from hekla.domain.placement import NO_AFFINITY, Affinity, SpreadConstraints, TaskLabels, Tolerations
from hekla.domain.pod_annotations import PodAnnotations
from hekla.domain.policies import LifecyclePolicy
from hekla.domain.resources import Resources
from hekla.domain.runtime_settings import (
    NO_SECURITY_CONTEXT,
    HostPorts,
    PullSecrets,
    ResourceClaims,
    RuntimeSettings,
    SecurityContext,
)
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields
from hekla.domain.volumes import MAX_VOLUMES, ObjectName, VolumeMount

MAX_TASKS = 50
MAX_REPLICAS = 10_000
MAX_ENV_BYTES = 128 * 1024
MAX_PORT_NAME = 15
"""A port has a host name of its own, made of its name and the uid of its job."""
MAX_RETRY = 1000
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_PORT = re.compile(rf"[a-z0-9]([a-z0-9-]{{0,{MAX_PORT_NAME - 2}}}[a-z0-9])?")


def _folder(path: str) -> str:
    if ".." in PurePosixPath(path).parts:
        raise ValueError(translate("A folder path must not contain “..”."))
    return path


Strings = Annotated[dict[str, Text], Field(max_length=256)]
Words = Annotated[tuple[Annotated[Text, Field(max_length=65_536)], ...], Field(max_length=512)]


class Iteration(StrEnum):
    """Whether a task waits for all of its dependencies, or for any one."""

    ALL = "all"
    ANY = "any"


class SuccessPolicy(StrEnum):
    """Whether a task completes with all of its replicas, or with its first replica (index 0)."""

    ALL_REPLICAS = "AllReplicas"
    FIRST_REPLICA = "FirstReplica"


class Dependency(BaseModel):
    """Pods of a task are created when the minimum of these tasks runs or has succeeded."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    tasks: Annotated[tuple[Label, ...], Field(min_length=1, max_length=MAX_TASKS)]
    iteration: Iteration = Iteration.ALL


class TaskSpec(BaseModel):
    """A role in a job, for example `ps` or `worker`: replicas of one command.

    Without a command, pods run the command of their image, with `args` in place of its arguments.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Label
    replicas: Annotated[StrictInteger, Field(ge=0, le=MAX_REPLICAS)] = 1
    min_available: Annotated[StrictInteger, Field(ge=0)] | None = None
    image: Annotated[Text, Field(max_length=512)] = ""
    command: Annotated[Words, Field(validate_default=True)] = ()
    args: Words = ()
    resources: Annotated[dict[str, Quantity], Field(max_length=64)] = {}
    env: Strings = {}
    environment: OptionalLabel = ""
    working_dir: Annotated[Text, Field(max_length=1024), AfterValidator(_folder)] = ""
    policies: Annotated[tuple[LifecyclePolicy, ...], Field(max_length=32)] = ()
    success_policy: SuccessPolicy = SuccessPolicy.ALL_REPLICAS
    max_retry: Annotated[StrictInteger, Field(ge=-1, le=MAX_RETRY)] = 3
    labels: TaskLabels = {}
    annotations: PodAnnotations = {}
    node_selector: Strings = {}
    tolerations: Tolerations = ()
    affinity: Affinity = NO_AFFINITY
    topology_spread_constraints: SpreadConstraints = ()
    grace_seconds: Annotated[StrictInteger, Field(ge=0, le=86_400)] = 30
    depends_on: Dependency | None = None
    partition_size: Annotated[StrictInteger, Field(ge=1)] | None = None
    min_partitions: Annotated[StrictInteger, Field(ge=1)] | None = None
    partition_topology: NetworkTopologySpec | None = None
    topology_policy: TopologyPolicy = TopologyPolicy.NONE
    volume_mounts: Annotated[tuple[VolumeMount, ...], Field(max_length=MAX_VOLUMES)] = ()
    ports: Annotated[dict[str, Annotated[StrictInteger, Field(ge=1, le=65_535)]], Field(max_length=8)] = {}
    host_ports: HostPorts = ()
    pull_secrets: PullSecrets = ()
    runtime_class: ObjectName = ""
    security_context: SecurityContext = NO_SECURITY_CONTEXT
    resource_claims: ResourceClaims = ()
    autoscaling: Autoscaling | None = None

    @field_validator("min_available")
    @classmethod
    def _minimum_fits(cls, value: int | None, info: ValidationInfo) -> int | None:
        replicas = info.data.get("replicas")
        if value is not None and replicas is not None and value > replicas:
            raise ValueError(
                translate(
                    "The task has {replicas} replicas, so {value} cannot be available.",
                    replicas=replicas,
                    value=value,
                )
            )
        return value

    @field_validator("partition_size")
    @classmethod
    def _partitions_are_whole(cls, value: int | None, info: ValidationInfo) -> int | None:
        replicas = info.data.get("replicas")
        if value is not None and replicas is not None and replicas % value:
            raise ValueError(
                translate(
                    "The task has {replicas} replicas, which is not a multiple of the partition size {value}.",
                    replicas=replicas,
                    value=value,
                )
            )
        return value

    @field_validator("min_partitions")
    @classmethod
    def _minimum_of_partitions_fits(cls, value: int | None, info: ValidationInfo) -> int | None:
        size, least, replicas = (info.data.get(name) for name in ("partition_size", "min_available", "replicas"))
        if value is None or replicas is None:
            return value
        if size is None:
            raise ValueError(translate("Only with a partition size: the task is not divided."))
        if value * size > replicas:
            raise ValueError(translate("The task has {count} partitions.", count=replicas // size))
        if least is not None and least != value * size:
            raise ValueError(
                translate(
                    "{value} partitions have {pods} pods, so the minimum of the task cannot be {least}.",
                    value=value,
                    pods=value * size,
                    least=least,
                )
            )
        return value

    @field_validator("partition_topology")
    @classmethod
    def _has_partitions(cls, value: NetworkTopologySpec | None, info: ValidationInfo) -> NetworkTopologySpec | None:
        if value is not None and info.data.get("partition_size", 1) is None:
            raise ValueError(translate("Only with a partition size: the task is not divided."))
        return value

    @field_validator("topology_policy")
    @classmethod
    def _nodes_can_follow(cls, value: TopologyPolicy, info: ValidationInfo) -> TopologyPolicy:
        resources = info.data.get("resources")
        if value is TopologyPolicy.NONE or resources is None:
            return value
        amounts = Resources.parse(resources)
        if not amounts.amount("memory") or not amounts.amount("cpu") or amounts.amount("cpu") % 1000:
            raise ValueError(
                translate("Only with a whole number of CPUs and an amount of memory: nodes pin no other pods to CPUs.")
            )
        return value

    @field_validator("autoscaling")
    @classmethod
    def _can_scale(cls, value: Autoscaling | None, info: ValidationInfo) -> Autoscaling | None:
        replicas, resources = (info.data.get(name) for name in ("replicas", "resources"))
        if value is None or replicas is None or resources is None:
            return value
        if info.data.get("partition_size") is not None:
            raise ValueError(translate("Not with partitions: their number is fixed."))
        if not card_counts(Resources.parse(resources)):
            raise ValueError(translate("Only with GPUs: the task requests none, so nothing measures its utilization."))
        if value.max_replicas < replicas:
            message = translate(
                "The task has {replicas} replicas, so {most} cannot be the maximum.",
                replicas=replicas,
                most=value.max_replicas,
            )
            raise InconsistentFields([Problem("max_replicas", message)])
        if value.max_replicas > MAX_REPLICAS:
            raise InconsistentFields([Problem("max_replicas", translate("The limit is {most:,}.", most=MAX_REPLICAS))])
        return value

    @field_validator("command")
    @classmethod
    def _names_a_program(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if not value and not info.data.get("image", "unknown"):
            raise ValueError(
                translate("Required. Only a task with an image can run without: it runs the image's command.")
            )
        if value and not value[0].strip():
            raise InconsistentFields(
                [Problem("0", translate("The first word is the program to start. It must not be empty."))]
            )
        return value

    @field_validator("args")
    @classmethod
    def _are_for_the_image(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if value and info.data.get("command"):
            raise ValueError(translate("These are for the image's own command. Add them to the end of the command."))
        return value

    @field_validator("resources")
    @classmethod
    def _are_amounts(cls, value: dict[str, str]) -> dict[str, str]:
        raise_any([problem for name, text in value.items() if (problem := resource_problem(name, text))])
        return value

    @field_validator("env")
    @classmethod
    def _are_variables(cls, value: dict[str, str]) -> dict[str, str]:
        problems = [
            Problem(
                name, translate("A variable name has letters, digits and underscores, and cannot begin with a digit.")
            )
            for name in value
            if not _VARIABLE.fullmatch(name)
        ]
        if sum(len(name) + len(text) for name, text in value.items()) > MAX_ENV_BYTES:
            problems.append(
                Problem("", translate("The variables exceed {kib} KiB in total.", kib=MAX_ENV_BYTES // 1024))
            )
        raise_any(problems)
        return value

    @field_validator("node_selector")
    @classmethod
    def _are_node_labels(cls, value: dict[str, str]) -> dict[str, str]:
        raise_any(
            [
                Problem(name, translate("Invalid node label name."))
                for name in value
                if not RESOURCE_NAME.fullmatch(name)
            ]
        )
        return value

    @field_validator("policies")
    @classmethod
    def _policies_agree(cls, value: tuple[LifecyclePolicy, ...]) -> tuple[LifecyclePolicy, ...]:
        return without_contradiction(value)

    @field_validator("max_retry")
    @classmethod
    def _is_not_zero(cls, value: int) -> int:
        if value == 0:
            raise ValueError(translate("Must be at least 1, or -1 for no limit."))
        return value

    @field_validator("ports")
    @classmethod
    def _are_ports(cls, value: dict[str, int]) -> dict[str, int]:
        sentence = translate(
            "A port name has at most {most} lowercase letters, digits and hyphens.", most=MAX_PORT_NAME
        )
        raise_any([Problem(name, sentence) for name in value if not _PORT.fullmatch(name)])
        return value

    @cached_property
    def request(self) -> Resources:
        """The resources that one replica requests."""
        return Resources.parse(self.resources)

    @property
    def runtime_settings(self) -> RuntimeSettings:
        """What its pods ask of their node and its runtime."""
        return RuntimeSettings(
            self.runtime_class, self.pull_secrets, self.host_ports, self.security_context, self.resource_claims
        )

    @property
    def minimum(self) -> int:
        """How many replicas the task needs at least."""
        if self.min_available is not None:
            return self.min_available
        return (
            self.min_partitions * self.partition_size if self.min_partitions and self.partition_size else self.replicas
        )

    def partition(self, index: int) -> int:
        """The partition of a replica, from 0. A task that is not divided is one partition."""
        return index // self.partition_size if self.partition_size else 0

    @property
    def has_gangs_of_partitions(self) -> bool:
        """Whether each partition is placed as a gang of its own."""
        return self.min_partitions is not None or self.partition_topology is not None


def raise_any(problems: list[Problem]) -> None:
    """Raise these problems, if there are any."""
    if problems:
        raise InconsistentFields(problems)


def without_contradiction(value: tuple[LifecyclePolicy, ...]) -> tuple[LifecyclePolicy, ...]:
    """The policies, unless they contradict each other."""
    raise_any([Problem(str(place), sentence) for place, sentence in policies.contradictions(value)])
    return value
