"""JobConfigs of protocol version 2, as OpenPAI's clients send them.

The commands, with those of the deployment and of the prerequisites around them, form one bash script. `<% … %>` in it
is filled from the JobConfig, except `$secrets`, whose values are not part of a JobSpec (`domain.secrets`).
"""

from collections.abc import Mapping
from typing import Any

from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.openpai import extras as extras_
from hekla.domain.formats.openpai import writing
from hekla.domain.formats.openpai.completion import RoleCompletion
from hekla.domain.formats.openpai.extras import Extras
from hekla.domain.formats.openpai.placeholders import PlaceholderValues, names_in, read_secrets
from hekla.domain.formats.openpai.prerequisites import Prerequisites, list_choices, texts
from hekla.domain.formats.openpai.request import JobRequest, RoleRequest, document
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote, suggest

VERSION = "2"
_ONLY_IF_DONE = 'openpai_status=$?; [ "$openpai_status" -eq 0 ] || exit "$openpai_status"'
_NO_ROLE = gettext_noop("the job has no task role of this name.")
_INFINIBAND = gettext_noop("only GPU devices are supported.")


def recognise(job: Mapping[str, Any]) -> bool:
    """Whether the document is a JobConfig of this version."""
    return "protocolVersion" in job


def _read(reading: ManifestReader, job: Fields) -> dict[str, Any]:
    findings = reading.findings
    if str(job.take("protocolVersion")) != VERSION:
        message = translate(
            "Must be {version}, not {given}.", version=VERSION, given=quote(job.take("protocolVersion"))
        )
        findings.problem(job.at("protocolVersion"), message)
    if job.text("type") != "job":
        message = translate("Must be job. Other JobConfigs cannot be submitted.")
        findings.problem(job.at("type"), message)
    job.ignore("version", "contributor")
    reading.secrets = read_secrets(job)
    job_request = _Reader(job).read()
    findings.origins |= {
        "name": job.at("name"), "queue": job.at("defaults.virtualCluster"), "priority": job.at("extras"),
        "tasks": job.at("taskRoles"), "max_retry": job.at("jobRetryCount"), "description": job.at("description"),
    }  # fmt: skip
    return document(job_request, findings)


class _Reader:
    """Reads one JobConfig, with what its task roles refer to."""

    def __init__(self, job: Fields) -> None:
        self._job, self._findings = job, job.findings
        self._prerequisites = Prerequisites(job)
        self._extras: Extras = extras_.read(job.fields("extras"))
        self._parameters = job.mapping("parameters")
        self._defaults = job.fields("defaults")
        self._deployment = self._chosen_deployment()

    def read(self) -> JobRequest:
        """The requested job."""
        job = self._job
        if "name" not in job:
            self._findings.problem(job.at("name"), translate("Required."))
        owner = job.fields("taskRoles")
        if not owner.names():
            self._findings.problem(owner.path, translate("At least one is required."))
        job_request = JobRequest(
            name=job.text("name"),
            roles=[self._role(owner.fields(name), name) for name in owner.names()],
            queue=self._defaults.text("virtualCluster"),
            retries=read_integer(job, "jobRetryCount", 0, 0),
            retries_path=job.at("jobRetryCount"),
            is_gang=self._extras.is_gang,
            priority=self._extras.priority,
            description=job.text("description"),
        )
        self._defaults.close()
        self._prerequisites.close()
        self._close_deployments()
        return job_request

    def _chosen_deployment(self) -> Fields | None:
        """The deployment that `defaults` names; the others are for other platforms."""
        self._deployments = self._job.list_of_fields("deployments")
        found = {one.text("name"): one for one in self._deployments}
        name = self._defaults.text("deployment")
        if name and name not in found:
            hint = suggest(name, found) or list_choices(found)
            message = translate("Unknown deployment {name}{hint}", name=quote(name), hint=hint)
            self._findings.problem(self._defaults.at("deployment"), message)
        return found.get(name)

    def _close_deployments(self) -> None:
        """Report the fields of deployments without effect, and the roles of the chosen one that the job lacks."""
        for deployment in self._deployments:
            roles = deployment.fields("taskRoles")
            if deployment is self._deployment:
                known = self._job.fields("taskRoles").names()
                for name in roles.names():
                    if name not in known:
                        self._findings.not_honoured(roles.at(name), translate(_NO_ROLE))
            deployment.close()

    def _role(self, role: Fields, name: str) -> RoleRequest:
        replicas = read_integer(role, "instances", 1, 1)
        resources, options = role.fields("resourcePerInstance"), role.fields("extraContainerOptions")
        role_request = RoleRequest(
            name=name,
            path=role.path,
            fields=_places(role),
            script=self._script(role, name),
            image=self._prerequisites.image(role),
            replicas=replicas,
            cpu=resources.take("cpu") or None,
            memory_mb=resources.take("memoryMB") or None,
            gpu=resources.take("gpu") or None,
            ports=_ports(resources.fields("ports")),
            ends=_ends(role, replicas),
            shm=read_integer(options, "shmMB", 0, 0),
        )
        if options.take("infiniband"):
            self._findings.not_honoured(options.at("infiniband"), translate(_INFINIBAND))
        for inner in (resources, options):
            inner.close()
        role.ignore("protocolVersion")
        role.close()
        return role_request

    def _script(self, role: Fields, name: str) -> str:
        """The whole script of a pod, with values filled in."""
        around = self._deployment.fields("taskRoles").fields(name) if self._deployment else None
        commands = texts(role, "commands")
        if not commands:
            self._findings.problem(role.at("commands"), translate("At least one is required."))
        if around:
            commands = [*texts(around, "preCommands"), *commands, *texts(around, "postCommands")]
            around.close()
        starts, ends = self._prerequisites.commands(role)
        lines = [*starts, *self._extras.before(name), *commands, *([_ONLY_IF_DONE, *ends] if ends else [])]
        script = "\n".join(line.strip() for line in [*lines, *self._extras.after(name)])
        for placeholder in names_in(script):
            self._prerequisites.use(role, placeholder)
        return self._filling(role).fill(script, role.at("commands")).strip()

    def _filling(self, role: Fields) -> PlaceholderValues:
        named = {f"${name}": self._prerequisites.chosen(role, name) for name in ("script", "output", "data")}
        return PlaceholderValues({"$parameters": self._parameters, **named}, self._findings)


def _places(role: Fields) -> dict[str, str]:
    resources = role.at("resourcePerInstance")
    return {
        "replicas": role.at("instances"),
        "command": role.at("commands"),
        "image": role.at("dockerImage"),
        "resources.cpu": f"{resources}.cpu",
        "resources.memory": f"{resources}.memoryMB",
        "resources.nvidia.com/gpu": f"{resources}.gpu",
        "shm": f"{role.at('extraContainerOptions')}.shmMB",
    }


def _ports(ports: Fields) -> dict[str, int]:
    return {label: read_integer(ports, label, 1, 1) for label in ports.names()}


def _ends(role: Fields, replicas: int) -> RoleCompletion:
    completion = role.fields("completion")
    ends = RoleCompletion(
        path=role.path,
        failed=read_integer(completion, "minFailedInstances", 1, 1, none=-1),
        succeeded=read_integer(completion, "minSucceededInstances", replicas, 1, none=-1),
        replicas=replicas,
        retries=read_integer(role, "taskRetryCount", 0, 0),
    )
    completion.close()
    return ends


def read_integer(fields: Fields, name: str, otherwise: int, least: int, *, none: int | None = None) -> int:
    """An integer of at least `least`, or `none`; else `otherwise`. With `none` and `least` 1, 0 means unset, as in
    OpenPAI.
    """
    value = fields.take(name)
    if value is None or (value == 0 and least == 1 and none is not None):
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool) or (value < least and value != none):
        fields.findings.problem(fields.at(name), _not_whole(value, least, none))
        return otherwise
    return value


def _not_whole(value: object, least: int, none: int | None) -> str:
    values = {"least": least, "given": quote(value)}
    if none is None:
        return translate("Must be an integer of at least {least}, not {given}.", **values)
    return translate("Must be an integer of at least {least}, or {none}, not {given}.", none=none, **values)


OPENPAI = Format("openpai", VERSION, "JobConfig", _read, writing.version_2, mounts_files=False, recognise=recognise)
