"""What the pods of a task ask of their node and its runtime: ports, devices, pull secrets, a runtime class, users.

Documents of jobs use snake_case; `RuntimeSettings` has Kubernetes' own form, which manifests and pods share. Whether a
cluster allows a setting is up to its backend. What gives a pod power over its node (privileges, capabilities, the
node's network or processes) does not exist here.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from hekla.domain.errors import Problem
from hekla.domain.field_types import Label, StrictInteger
from hekla.domain.translation import translate
from hekla.domain.validation import InconsistentFields, join, quote
from hekla.domain.volumes import ObjectName

MAX_HOST_PORTS = MAX_PULL_SECRETS = MAX_RESOURCE_CLAIMS = 16
MAX_GROUPS = 32
_MAX_ID = 2**31 - 1
_OF_CONTAINERS = ("read_only_root_filesystem",)


class PortProtocol(StrEnum):
    """The protocol of a port."""

    TCP = "TCP"
    UDP = "UDP"
    SCTP = "SCTP"


def _address(text: str) -> str:
    """The address in its usual form; empty for all addresses of the node. Raises ValueError."""
    try:
        return text and str(ipaddress.ip_address(text))
    except ValueError as error:
        raise ValueError(translate("{text} is not an IP address.", text=quote(text))) from error


Port = Annotated[StrictInteger, Field(ge=1, le=65_535)]
Id = Annotated[StrictInteger, Field(ge=0, le=_MAX_ID)]


class HostPortSpec(BaseModel):
    """A port of the node that leads to a port of the pod. `host_ip`: an address of the node; empty for all."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host_port: Port
    container_port: Port
    protocol: PortProtocol = PortProtocol.TCP
    host_ip: Annotated[str, Field(max_length=45), AfterValidator(_address)] = ""

    def kubernetes_form(self) -> dict[str, Any]:
        """As a port of a container."""
        return {
            "containerPort": self.container_port,
            "hostPort": self.host_port,
            **({"protocol": str(self.protocol)} if self.protocol is not PortProtocol.TCP else {}),
            **({"hostIP": self.host_ip} if self.host_ip else {}),
        }


class SecurityContext(BaseModel):
    """The user and the groups of the pods, and whether they can write outside of volumes.

    `fs_group`, `supplemental_groups`: further groups; volumes belong to the first, if they support it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    run_as_user: Id | None = None
    run_as_group: Id | None = None
    run_as_non_root: bool = False
    fs_group: Id | None = None
    supplemental_groups: Annotated[tuple[Id, ...], Field(max_length=MAX_GROUPS)] = ()
    read_only_root_filesystem: bool = False

    @model_validator(mode="after")
    def _user_agrees(self) -> "SecurityContext":
        if self.run_as_non_root and self.run_as_user == 0:
            raise InconsistentFields(
                [Problem("run_as_user", translate("User 0 is root, which run_as_non_root forbids."))]
            )
        return self

    def names(self) -> list[str]:
        """The fields with a value."""
        return list(self.model_dump(exclude_defaults=True))


NO_SECURITY_CONTEXT = SecurityContext()


class ResourceClaim(BaseModel):
    """Devices that each pod of a task gets: those of a ResourceClaim, or of one made from a ResourceClaimTemplate.

    `requests`: the requests of the claim whose devices the container may use; empty for all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Label
    resource_claim_name: ObjectName = ""
    resource_claim_template_name: ObjectName = ""
    requests: Annotated[tuple[Label, ...], Field(max_length=32)] = ()

    @model_validator(mode="after")
    def _has_one_source(self) -> "ResourceClaim":
        if bool(self.resource_claim_name) == bool(self.resource_claim_template_name):
            message = translate(
                "Set exactly one of resource_claim_name (existing claim) and resource_claim_template_name (a claim for "
                "each pod)."
            )
            raise InconsistentFields([Problem("", message)])
        return self

    def pod_form(self) -> dict[str, str]:
        """As an entry of `resourceClaims` in the spec of a pod."""
        fields = {
            "resourceClaimName": self.resource_claim_name,
            "resourceClaimTemplateName": self.resource_claim_template_name,
        }
        return {"name": self.name, **{name: text for name, text in fields.items() if text}}

    def container_form(self) -> list[dict[str, str]]:
        """As entries of `claims` in the resources of a container."""
        return [{"name": self.name, "request": one} for one in self.requests] or [{"name": self.name}]


def _distinct_claims(claims: tuple[ResourceClaim, ...]) -> tuple[ResourceClaim, ...]:
    names = [one.name for one in claims]
    message = translate("Another claim of the task has this name.")
    problems = [Problem(join(at, "name"), message) for at, name in enumerate(names) if name in names[:at]]
    if problems:
        raise InconsistentFields(problems)
    return claims


def _distinct_ports(ports: tuple[HostPortSpec, ...]) -> tuple[HostPortSpec, ...]:
    keys = [(one.host_port, one.protocol, one.host_ip) for one in ports]
    message = translate("The task has this port of the node already.")
    problems = [Problem(join(at, "host_port"), message) for at, key in enumerate(keys) if key in keys[:at]]
    if problems:
        raise InconsistentFields(problems)
    return ports


def _distinct_names(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(translate("Each secret may occur only once."))
    return names


HostPorts = Annotated[tuple[HostPortSpec, ...], Field(max_length=MAX_HOST_PORTS), AfterValidator(_distinct_ports)]
ResourceClaims = Annotated[
    tuple[ResourceClaim, ...], Field(max_length=MAX_RESOURCE_CLAIMS), AfterValidator(_distinct_claims)
]
PullSecrets = Annotated[
    tuple[Annotated[ObjectName, Field(min_length=1)], ...],
    Field(max_length=MAX_PULL_SECRETS),
    AfterValidator(_distinct_names),
]


@dataclass(frozen=True, slots=True)
class RuntimeSettings:
    """The settings of the pods of one task. `runtime_class`: empty for the cluster's default."""

    runtime_class: str = ""
    pull_secrets: tuple[str, ...] = ()
    host_ports: tuple[HostPortSpec, ...] = ()
    security_context: SecurityContext = NO_SECURITY_CONTEXT
    resource_claims: tuple[ResourceClaim, ...] = ()

    def pod_fields(self) -> dict[str, Any]:
        """In the spec of a Kubernetes pod; empty ones are left out."""
        fields = {
            "runtimeClassName": self.runtime_class,
            "imagePullSecrets": [{"name": name} for name in self.pull_secrets],
            "resourceClaims": [one.pod_form() for one in self.resource_claims],
            "securityContext": {to_camel(name): value for name, value in self._context(of_container=False).items()},
        }
        return {name: value for name, value in fields.items() if value}

    def container_fields(self) -> dict[str, Any]:
        """In the container of a Kubernetes pod; empty ones are left out."""
        fields = {
            "ports": [port.kubernetes_form() for port in self.host_ports],
            "securityContext": {to_camel(name): value for name, value in self._context(of_container=True).items()},
        }
        return {name: value for name, value in fields.items() if value}

    def resource_fields(self) -> dict[str, Any]:
        """In the resources of the container of a Kubernetes pod, beside its amounts; empty ones are left out."""
        claims = [entry for one in self.resource_claims for entry in one.container_form()]
        return {"claims": claims} if claims else {}

    def _context(self, *, of_container: bool) -> Mapping[str, Any]:
        values = self.security_context.model_dump(mode="json", exclude_defaults=True)
        return {name: value for name, value in values.items() if (name in _OF_CONTAINERS) is of_container}


NO_SETTINGS = RuntimeSettings()
