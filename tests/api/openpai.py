"""JobConfigs for the tests of the OpenPAI API."""

from typing import Any

import yaml

V1, V2 = "/rest-server/api/v1", "/rest-server/api/v2"


def config(name: str = "train", **changes: Any) -> dict[str, Any]:
    """A small valid JobConfig of version 2."""
    role = {
        "instances": 1,
        "dockerImage": "image",
        "resourcePerInstance": {"cpu": 1, "memoryMB": 64, "gpu": 0},
        "commands": ["echo hello"],
    }
    return {
        "protocolVersion": 2,
        "name": name,
        "type": "job",
        "prerequisites": [{"type": "dockerimage", "name": "image", "uri": "python:3.12"}],
        "taskRoles": {"worker": {**role, **changes.pop("role", {})}},
        **changes,
    }


def old_config(name: str = "old", **changes: Any) -> dict[str, Any]:
    """A small JobConfig of version 1."""
    role = {"name": "main", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 64, "command": "echo hello"}
    return {"jobName": name, "image": "python:3.12", "taskRoles": [role], **changes}


def send(client: Any, document: dict[str, Any], query: str = "", *, kind: str = "text/yaml") -> Any:
    """Submit a JobConfig as YAML."""
    return client.post(f"{V2}/jobs{query}", yaml.safe_dump(document), content_type=kind)


def refused(answer):
    """Status and code of a refusal. Every refusal has a message."""
    body = answer.json()
    assert set(body) == {"code", "message"}
    assert body["message"]
    return answer.status_code, body["code"]
