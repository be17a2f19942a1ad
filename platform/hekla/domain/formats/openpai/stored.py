"""The stored form of a JobConfig, for those who read it back: without secrets."""

import math
from collections.abc import Mapping
from typing import Any

from hekla.domain import yaml_text
from hekla.domain.errors import Invalid, Problem
from hekla.domain.formats.openpai import names, v1, v2
from hekla.domain.formats.openpai.placeholders import MASK
from hekla.domain.job_problems import MAX_HOST_NAME
from hekla.domain.jobspec import MAX_JOB_NAME, JobSpec
from hekla.domain.translation import gettext_noop, translate

_NOT_ONE = gettext_noop("Expected one JobConfig: a mapping that begins with protocolVersion or jobName.")


def document_of(text: str | bytes) -> dict[str, Any]:
    """The JobConfig in a text as plain data. Raises Invalid for anything else."""
    documents = yaml_text.read(text)
    if len(documents) != 1 or not isinstance(documents[0], dict) or not is_jobconfig(documents[0]):
        raise Invalid([Problem("", translate(_NOT_ONE))])
    return documents[0]


def is_jobconfig(document: Mapping[str, Any]) -> bool:
    """Whether this is a JobConfig, of either version."""
    return v2.recognise(document) or v1.recognise(document)


def own_name(document: Mapping[str, Any]) -> str:
    """The job's name in its JobConfig."""
    return str(document.get("name") or document.get("jobName") or "")


def mask_secrets(document: Mapping[str, Any]) -> dict[str, Any]:
    """The JobConfig with asterisks in place of secrets, as data that a database accepts."""
    copy = {str(name): _clean(value) for name, value in document.items()}
    if "secrets" in copy:
        copy["secrets"] = MASK
    prerequisites = copy.get("prerequisites")
    for one in prerequisites if isinstance(prerequisites, list) else ():
        if isinstance(one, dict) and "auth" in one:
            one["auth"] = _masked_login(one["auth"])
    return copy


def _masked_login(login: Any) -> Any:  # noqa: ANN401  (JSON-like data)
    if not isinstance(login, dict):
        return MASK
    return {name: value if name != "password" or str(value).startswith("<%") else MASK for name, value in login.items()}


def _clean(value: Any) -> Any:  # noqa: ANN401  (what YAML can hold)
    if isinstance(value, Mapping):
        return {_clean(str(name)): _clean(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_clean(inner) for inner in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value).replace("\0", "\ufffd")


def rename(spec: JobSpec, owner: str, name: str) -> JobSpec:
    """The job under a unique name, for when another person's job has its name; its pods see no change."""
    room = MAX_HOST_NAME - max(len(f"-{task.name}-{task.replicas}") for task in spec.tasks)
    mark = names.mark(f"{owner}~{name}")
    document = spec.document()
    arguments = [argument for argument in spec.plugins["openpai"] if not argument.startswith("--name=")]
    document["plugins"]["openpai"] = [f"--name={name}", *arguments]
    return JobSpec.parse({**document, "name": f"{spec.name[: min(room, MAX_JOB_NAME) - 7].rstrip('-')}-{mark}"})
