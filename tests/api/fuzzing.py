"""The OpenAPI document for generated requests: its application, the rules that it cannot state, and valid documents."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

import schemathesis
from django.test.client import ClientHandler
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.settings import patched_settings
from schemathesis.config import SchemathesisConfig
from tests.apps.access_arguments import TRACE
from tests.support.once import once

from hekla.api.v1.schema import SchemaView

JOB = {"name": "there", "tasks": [{"name": "main", "command": ["true"]}]}
DOCUMENTS = {
    "jobs": JOB,
    "templates": JOB,
    "flows": {"name": "there", "steps": [{"name": "a", "job": JOB}]},
    "batches": {
        "name": "there",
        "parameters": {"n": ["1"]},
        "job": {"tasks": [{"name": "main", "command": ["echo", "{{ n }}"]}]},
    },
    "schedules": {"name": "there", "cron": "@daily", "job": JOB},
}
SECRETS = ("kubeconfig", "server", "authority", "token")
POLICY = "actions: allocate\ntiers:\n- plugins: [{name: gang}]\n"
ROWS_OF_ADMINS: dict[str, dict[str, Any]] = {
    "federated-queues": {"name": "there", "members": ["default", "far"]},
    "departments": {"slug": "there", "name": "There"},
    "priority-classes": {"name": "there", "value": 1},
    "saved_templates": {"name": "there", "spec": JOB},
    "gallery": {"title": "There", "spec": JOB, "tenant": "lab"},
}
NAMES = {"queues": "default", "clusters": "sim", "tenants": "lab"}


Fit = Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]


def _with(**values: Any) -> Fit:
    """The document, with these values in the fields that it has."""
    return lambda body, _own: {**body, **{name: value for name, value in values.items() if name in body}}


def _without(*names: str, **values: Any) -> Fit:
    """The document without these fields, and with these values."""
    return lambda body, own: {name: value for name, value in _with(**values)(body, own).items() if name not in names}


def _retention(body: dict[str, Any], _own: dict[str, Any]) -> dict[str, Any]:
    days = sorted((body.get("log_days", 1), body.get("history_days", 1)))
    return {"log_days": days[0], "history_days": days[1]}


def _quota(body: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    found = _without("username", resources={"cpu": "2"})(body, own)
    return {**found, "username": "alice"} if body["of"] == "one" else found


def _action(body: dict[str, Any], _own: dict[str, Any]) -> dict[str, Any]:
    part = {"RestartTask": ("task",), "RestartPod": ("task", "index"), "RestartPartition": ("task", "index")}
    return {"action": body["action"], **{name: _PART[name] for name in part.get(body["action"], ())}}


def _bulk(body: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    return {**body, "uids": [own.get("uid", str(UUID(int=0)))], "priority": body.get("priority") or 1}


_PART = {"task": "main", "index": 0}
_AMOUNTS = {"guarantee": {"cpu": "1"}, "deserved": {"cpu": "2"}, "capability": {"cpu": "4"}}
_OF_QUEUE: dict[str, Any] = {
    **_AMOUNTS,
    **{f"{how}_node_groups": ["a"] for how in ("required", "preferred", "avoided")},
    "excluded_node_groups": ["b"],
    "node_group_limits": {"a": {"cpu": "1"}},
    "card_quota": {"A100": 1},
    "hierarchy": "",
    "hierarchy_weights": "",
}
_PLAIN: dict[str, Any] = {
    "volumes": [],
    "plugins": {},
    "files": {},
    "policies": [],
    "priority_class": "",
    "priority": 0,
}
_job = _without("min_available", "min_success", queue="default", tasks=JOB["tasks"], **_PLAIN)
_RULE: dict[str, Any] = {
    **{"measure": "nodes_not_ready", "cluster": "", "queue": "", "node_label": "", "actions": []},
    **{"comparison": "above", "threshold": 2, "clear": None},
}
_REPORT: dict[str, Any] = {
    **{"sections": ["classes", "waste"], "scope": "all", "subject": "", "time_zone": "UTC", "recipients": ["root"]},
}
_PRICES = {"name": "prices", "currency": "EUR", "cpu": "0.03", "models": {"A100": "2"}}
_PERIOD = {"starts_at": "2026-01-01T00:00:00Z", "ends_at": "2026-01-02T00:00:00Z"}
FITS: dict[str, Fit] = {
    # What a rule measures decides on its other fields.
    "POST /api/v1/alert-rules": _with(**_RULE),
    "POST /api/v1/alert-rules/preview": _with(**_RULE),
    "PATCH /api/v1/alert-rules/{uid}": _with(**_RULE),
    # The sections and people must exist.
    "POST /api/v1/reports": _with(**_REPORT),
    "PATCH /api/v1/reports/{uid}": _with(**_REPORT),
    "POST /api/v1/price-lists": _with(spec=_PRICES, begin_at="2100-01-01T00:00:00Z"),
    "POST /api/v1/policy-lab": _with(cluster="sim", change={}, trace=None, **_PERIOD),
    "POST /api/v1/policy-lab/traces": _with(format="sacct", content=TRACE),
    # Fields of a job depend on each other, on the installed plugins and on rows.
    "POST /api/v1/jobs": _job,
    "POST /api/v1/what-if": _job,
    "POST /api/v1/templates": _job,
    "POST /api/v1/flows": _with(steps=DOCUMENTS["flows"]["steps"]),
    "POST /api/v1/batches": lambda body, _own: {**DOCUMENTS["batches"], "name": body["name"]},
    "POST /api/v1/schedules": _with(cron="@daily", time_zone="UTC", job=JOB),
    "PATCH /api/v1/schedules/{uid}": _without("name", "suspended", cron="@daily", time_zone="UTC", job=JOB),
    "POST /api/v1/saved_templates": _with(spec=JOB, tenant="lab"),
    "POST /api/v1/gallery": _without("template", spec=JOB, tenant="lab", fields_open=[]),
    # Values must fit the template, or the job.
    "POST /api/v1/gallery/{uid}/jobs": _without("version", name="mine", values={}),
    "PATCH /api/v1/jobs/{uid}/scale": lambda _body, _own: {"tasks": {"main": {"replicas": 2}}},
    "POST /api/v1/jobs/{uid}/actions": _action,
    "PATCH /api/v1/jobs/{uid}/frozen-pods/{task}/{index}": lambda body, _own: {"seconds": body.get("seconds", 60)},
    "POST /api/v1/jobs/bulk": _bulk,
    # Each kind has its own configuration and credentials.
    "POST /api/v1/clusters": _without(*SECRETS, kind="simulated", config={"nodes": []}),
    "PATCH /api/v1/clusters/{name}": _without(*SECRETS, config={"nodes": []}),
    "POST /api/v1/clusters/{name}/try": _without(*SECRETS, config={"nodes": []}),
    "PUT /api/v1/clusters/{name}/metrics-token": _with(token="s3cret"),
    "PATCH /api/v1/nodes/{cluster}/{node}/labels": _with(set_labels={"fast-disk": "yes"}),
    "POST /api/v1/nodes/{cluster}/{node}/drain": _with(reason="a new fan"),
    # Texts have their own syntax.
    "PUT /api/v1/clusters/{name}/policy": _with(text=POLICY),
    "POST /api/v1/clusters/{name}/policy/trial": _with(text=POLICY),
    "POST /api/v1/people/import": _with(text="email\nzoe@example.org\n"),
    # Documents name rows, amounts depend on each other and on the nodes, and node groups on each other.
    "POST /api/v1/queues": _with(cluster="sim", tenants=["lab"], parent=None, **_OF_QUEUE),
    "PATCH /api/v1/queues/{name}": _with(name="default", cluster="sim", tenants=["lab"], parent=None, **_OF_QUEUE),
    "POST /api/v1/queues/{name}/preview": _with(
        name="default", cluster="sim", tenants=["lab"], parent=None, **_OF_QUEUE
    ),
    "POST /api/v1/federated-queues": _with(members=["default", "far"], tenants=["lab"]),
    "PATCH /api/v1/federated-queues/{name}": _with(members=["default", "far"], tenants=["lab"]),
    "POST /api/v1/announcements": _with(tenants=["lab"], end_at=None),
    "POST /api/v1/departments": _with(heads=["alice"], tenants=["lab"]),
    "PATCH /api/v1/departments/{slug}": _with(heads=["alice"], tenants=["lab"]),
    "POST /api/v1/priority-classes": _with(tenants=["lab"]),
    "PATCH /api/v1/priority-classes/{name}": _with(tenants=["lab"]),
    "PUT /api/v1/tenants/{slug}/quotas": _quota,
    "PATCH /api/v1/tenants/{slug}/retention": _retention,
    # Channels need an address, which must be a public one.
    "PUT /api/v1/notifications/settings": _without("webhook_url", channels=["page"]),
    "PUT /api/v1/jobs/{uid}/notifications": _with(channels=["page"]),
}
"""The operations with rules that JSON Schema cannot state: how a document that fits its schema fits them, too.

The function gets the document and the values of the existing row. Of every other operation, each document that fits its
schema is accepted.
"""
VALID: list[tuple[str, dict[str, Any]]] = [
    *((f"POST /api/v1/{kind}", document) for kind, document in DOCUMENTS.items()),
    ("POST /api/v1/what-if", JOB),
    ("POST /api/v1/saved_templates", {"name": "mine", "spec": JOB}),
    ("POST /api/v1/gallery", {"title": "One", "spec": JOB, "tenant": "lab"}),
    ("PATCH /api/v1/schedules/{uid}", {"cron": "@hourly"}),
    ("PATCH /api/v1/jobs/{uid}/scale", {"tasks": {"main": {"replicas": 2}}}),
    ("POST /api/v1/jobs/{uid}/actions", {"action": "AbortJob"}),
    ("PATCH /api/v1/clusters/{name}", {"is_paused": True}),
    ("PATCH /api/v1/queues/{name}", {"weight": 2, "capability": {"cpu": "2"}}),
    ("POST /api/v1/queues/{name}/preview", {"weight": 2}),
    ("POST /api/v1/federated-queues", {"name": "any", "members": ["default", "far"], "tenants": ["lab"]}),
    ("POST /api/v1/departments", {"slug": "physics", "name": "Physics", "heads": ["alice"]}),
    ("POST /api/v1/priority-classes", {"name": "high", "value": 10}),
    ("PUT /api/v1/tenants/{slug}/quotas", {"of": "one", "username": "alice", "jobs": 2}),
    ("PATCH /api/v1/tenants/{slug}/retention", {"log_days": 1, "history_days": 2}),
    ("POST /api/v1/people/import", {"text": "email\nzoe@example.org\n"}),
    ("POST /api/v1/gallery/{uid}/jobs", {"name": "mine", "values": {}}),
    ("POST /api/v1/jobs/bulk", {"action": "AbortJob", "uids": []}),
    ("POST /api/v1/alert-rules", {"name": "down", "measure": "nodes_not_ready", "threshold": 2}),
    ("POST /api/v1/announcements", {"text": "Maintenance", "tenants": ["lab"]}),
    ("POST /api/v1/policy-lab", {"cluster": "sim", **_PERIOD}),
    ("POST /api/v1/policy-lab/traces", {"name": "jobs.txt", "format": "sacct", "content": TRACE}),
    ("POST /api/v1/price-lists", {"begin_at": "2100-01-01T00:00:00Z", "spec": _PRICES}),
    ("POST /api/v1/reports", {"name": "use", "sections": ["classes"]}),
    ("POST /api/v1/clusters", {"name": "new-one", "kind": "simulated", "config": {"nodes": []}}),
    ("POST /api/v1/clusters/{name}/try", {}),
    ("PUT /api/v1/clusters/{name}/metrics-token", {"token": "s3cret"}),
    ("PUT /api/v1/clusters/{name}/policy", {"text": POLICY}),
    ("POST /api/v1/clusters/{name}/policy/trial", {"text": POLICY}),
    ("POST /api/v1/queues", {"name": "small", "cluster": "sim", "weight": 2, "tenants": ["lab"]}),
    ("PATCH /api/v1/federated-queues/{name}", {"description": "All of them."}),
    ("PATCH /api/v1/departments/{slug}", {"description": "Atoms and more."}),
    ("PATCH /api/v1/priority-classes/{name}", {"value": 11}),
    ("PUT /api/v1/notifications/settings", {"moments": ["ended"], "channels": ["mail"], "mail": "a@example.org"}),
    ("PUT /api/v1/jobs/{uid}/notifications", {"moments": [], "channels": []}),
    ("POST /api/v1/tenants/{slug}/invitations", {"email": "zoe@example.org"}),
]
HISTORY = [
    f"GET /api/v1/jobs/{{uid}}{part}"
    for part in ("", "/copy", "/events", "/notifications", "/receipts", "/reclaim-risk", "/start", "/waits")
]
"""Operations that read a deleted job, too: its history is kept for the retention of its tenant."""
_ANSWERED = ["2xx", "3xx", "401", "403", "404", "409", "412", "429"]
"""412: a generated `If-Match` is well formed, but no ETag of the resource."""
CONFIG = SchemathesisConfig.from_dict(
    {
        "generation": {"mode": "all", "allow-x00": False},  # no text takes NUL; `test_malformed_requests` sends some
        "checks": {
            "positive_data_acceptance": {"expected-statuses": _ANSWERED},
            "negative_data_rejection": {
                "expected-statuses": ["400", "401", "403", "404", "405", "406", "409", "412", "413", "415"]
            },
        },
        "phases": {"stateful": {"inference": {"algorithms": []}}},  # the document names the links
        "operations": [{"include-name": label, "checks": {"use_after_free": {"enabled": False}}} for label in HISTORY],
    }
)

schemathesis.serializer.alias("application/offset+octet-stream", "application/octet-stream")

_HANDLER = ClientHandler()


def _application(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    """The console, in the transaction of the test."""
    response = _HANDLER(environ)
    start_response(f"{response.status_code} {response.reason_phrase}", list(response.items()))
    return [response.content]


def openapi_document() -> dict[str, Any]:
    """The OpenAPI document, as a client reads it."""
    read: dict[str, Any] = json.loads(_text())
    return read


@cache
def _text() -> str:
    return once("openapi.json", _generated)


def _generated() -> str:
    with patched_settings(SchemaView().custom_settings):
        return json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str)


def load(found: dict[str, Any]) -> Any:
    """The schema of the operations in this document, whose requests the console answers."""
    schema = schemathesis.openapi.from_dict(found, config=CONFIG)
    schema.app = _application
    return schema
