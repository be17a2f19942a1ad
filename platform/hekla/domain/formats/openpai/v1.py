"""JobConfigs from before protocol version 2: JSON that begins with `jobName`."""

from collections.abc import Mapping
from typing import Any

from hekla.domain.formats.base import Format
from hekla.domain.formats.fields import Fields
from hekla.domain.formats.openpai import writing
from hekla.domain.formats.openpai.completion import RoleCompletion
from hekla.domain.formats.openpai.placeholders import as_word
from hekla.domain.formats.openpai.request import JobRequest, RoleRequest, document
from hekla.domain.formats.openpai.v2 import read_integer
from hekla.domain.formats.reader import ManifestReader
from hekla.domain.formats.run_policy import most_retries
from hekla.domain.task_spec import MAX_RETRY
from hekla.domain.translation import gettext_noop, translate
from hekla.domain.validation import quote

_FOLDERS = {"dataDir": "PAI_DATA_DIR", "codeDir": "PAI_CODE_DIR", "outputDir": "PAI_OUTPUT_DIR"}
_NOT_FETCHED = gettext_noop("nothing is copied from or to this address. Pods can read it from {variable}.")
_LOGIN = gettext_noop("the cluster's registry credentials are used to pull images.")
_GPU_TYPE = gettext_noop("the queue decides where its jobs run.")
_ANY_PORT = gettext_noop("{label}: ports are allocated from free ones.")
_FOR_EVER, _PLAINLY = -1, -2


def recognise(job: Mapping[str, Any]) -> bool:
    """Whether the document is a JobConfig of this version."""
    return "jobName" in job and "protocolVersion" not in job


def _read(reading: ManifestReader, job: Fields) -> dict[str, Any]:
    findings = reading.findings
    if "jobName" not in job:
        findings.problem(job.at("jobName"), translate("Required."))
    env = _variables(job)
    image = reading.take(job, "image", "image")
    roles = [_role(role, place, image, env) for place, role in enumerate(job.list_of_fields("taskRoles"))]
    if not roles:
        findings.problem(job.at("taskRoles"), translate("At least one is required."))
    for name, why in (("authFile", _LOGIN), ("gpuType", _GPU_TYPE)):
        reading.unless(job, name, (), translate(why))
    findings.origins |= {"name": job.at("jobName"), "queue": job.at("virtualCluster"), "tasks": job.at("taskRoles")}
    job_request = JobRequest(
        name=job.text("jobName"),
        roles=roles,
        queue=job.text("virtualCluster"),
        retries=_retries(job),
        retries_path=job.at("retryCount"),
        min_success=read_integer(job, "killAllOnCompletedTaskNumber", 0, 0) or None,
    )
    return document(job_request, findings)


def _variables(job: Fields) -> dict[str, str]:
    """The variables of all pods: the job's own, and the addresses of its folders."""
    env = {name: as_word(value) for name, value in job.mapping("jobEnvs").items() if value is not None}
    for field, name in _FOLDERS.items():
        if address := job.text(field):
            env[name] = address
            job.findings.not_honoured(job.at(field), translate(_NOT_FETCHED, variable=name))
    return env


def _retries(job: Fields) -> int:
    count = read_integer(job, "retryCount", 0, 0) if job.take("retryCount") not in (_FOR_EVER, _PLAINLY) else 0
    if job.take("retryCount") == _FOR_EVER:
        job.findings.not_honoured(job.at("retryCount"), most_retries())
        return MAX_RETRY
    return count


def _role(role: Fields, place: int, image: object, env: Mapping[str, str]) -> RoleRequest:
    replicas = read_integer(role, "taskNumber", 1, 1)
    name = role.text("name")
    if not name:
        role.findings.problem(role.at("name"), translate("Required."))
    command = role.text("command")
    if not command.strip():
        role.findings.problem(role.at("command"), translate("Required."))
    role_request = RoleRequest(
        name=name or f"role_{place}",
        path=role.path,
        fields=_places(role),
        script=command.strip(),
        image=image,
        replicas=replicas,
        cpu=_amount(role, "cpuNumber"),
        memory_mb=_amount(role, "memoryMB"),
        gpu=_amount(role, "gpuNumber"),
        ports=_ports(role),
        ends=_ends(role, replicas),
        shm=read_integer(role, "shmMB", 0, 0),
        env=env,
    )
    role.close()
    return role_request


def _amount(role: Fields, name: str) -> Any:  # noqa: ANN401  (the JobSpec judges it)
    return role.take(name) or None


def _places(role: Fields) -> dict[str, str]:
    fields = {"replicas": "taskNumber", "command": "command", "resources.cpu": "cpuNumber", "shm": "shmMB"}
    fields |= {"resources.memory": "memoryMB", "resources.nvidia.com/gpu": "gpuNumber"}
    return {target: role.at(name) for target, name in fields.items()} | {"image": "image"}


def _ports(role: Fields) -> dict[str, int]:
    ports = {}
    for port in role.list_of_fields("portList"):
        label = port.text("label")
        if not label:
            port.findings.problem(port.at("label"), translate("Required."))
        if port.take("beginAt") not in (None, 0):
            port.findings.not_honoured(port.at("beginAt"), translate(_ANY_PORT, label=quote(label)))
        ports[label or "port"] = read_integer(port, "portNumber", 1, 1)
        port.close()
    return ports


def _ends(role: Fields, replicas: int) -> RoleCompletion:
    """A null count never ends the job."""
    failed = 1 if "minFailedTaskCount" not in role.all_names() else read_integer(role, "minFailedTaskCount", -1, 1)
    return RoleCompletion(role.path, failed, read_integer(role, "minSucceededTaskCount", -1, 1), replicas)


OPENPAI_V1 = Format("openpai-v1", "1", "JobConfig", _read, writing.version_1, mounts_files=False, recognise=recognise)
