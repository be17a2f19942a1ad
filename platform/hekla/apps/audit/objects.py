"""The object of an event: its kind as a noun, its name, and whether it still exists.

Names come from the rows that exist, else from the event itself, else from earlier events of the same object: so an
object that was deleted has its name, too. A page of entries needs four queries, however many objects they have.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from django.utils.translation import gettext_lazy

from hekla.apps.accounts import selectors as accounts
from hekla.apps.clusters import selectors as clusters
from hekla.apps.event_log import selectors as event_log
from hekla.apps.event_log.models import LoggedEvent
from hekla.apps.jobs import selectors as jobs

NOUNS: Mapping[str, Any] = {
    "alert-rule": gettext_lazy("alert rule {name}"),
    "announcement": gettext_lazy("announcement {name}"),
    "batch": gettext_lazy("batch {name}"),
    "cluster": gettext_lazy("cluster {name}"),
    "demonstration": gettext_lazy("demonstration {name}"),
    "department": gettext_lazy("department {name}"),
    "environment": gettext_lazy("environment {name}"),
    "federated-queue": gettext_lazy("federated queue {name}"),
    "flow": gettext_lazy("flow {name}"),
    "gallery": gettext_lazy("published template {name}"),
    "invitation": gettext_lazy("tenant {name}"),
    "job": gettext_lazy("job {name}"),
    "lab-trace": gettext_lazy("trace {name}"),
    "platform": gettext_lazy("the platform"),
    "preset": gettext_lazy("saved template {name}"),
    "price-list": gettext_lazy("price list {name}"),
    "priority_class": gettext_lazy("priority class {name}"),
    "queue": gettext_lazy("queue {name}"),
    "report": gettext_lazy("report {name}"),
    "schedule": gettext_lazy("schedule {name}"),
    "template": gettext_lazy("template {name}"),
    "tenant": gettext_lazy("tenant {name}"),
    "user": "{name}",
}
"""By the first part of an event's subject. An invitation is one to a tenant."""
_QUOTAS: Mapping[str, Any] = {
    "each": gettext_lazy("each member of tenant {name}"),
    "one": gettext_lazy("{username} in tenant {name}"),
}
_NAME_FIELDS = {"user": "username", "gallery": "title"}
"""The field with the name of the object, if not `name`."""
_NOT_ITS_NAME = {
    "FlowStepStarted", "JobViewSaved", "JobViewDeleted", "SecurityKeyAdded", "SecurityKeyRemoved", "TokenCreated",
    "TokenRevoked",
}  # fmt: skip
"""Kinds whose field `name` names something else."""
_DELETIONS = {
    "AlertRuleDeleted", "AnnouncementDeleted", "ClusterRemoved", "FederatedQueueDeleted", "FlowDeleted",
    "JobTemplateDeleted", "LabTraceDeleted", "PresetDeleted", "PriceListDeleted", "PriorityClassDeleted",
    "ReportDeleted", "ScheduleDeleted",
    "TemplateWithdrawn",
}  # fmt: skip
_BIRTHS = {"BatchSubmitted", "FlowStarted", "JobTemplateCreated", "ScheduleCreated", "TemplatePublished"}
_FEW_EVENTS = {
    "batch", "environment", "federated-queue", "flow", "gallery", "preset", "priority_class", "schedule", "template",
}  # fmt: skip
"""Objects with so few events that those of a page can be read."""


class AuditedTenant(NamedTuple):
    """A tenant in the audit log: there are hundreds, and a page needs only this of each."""

    pk: int
    slug: str
    name: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class AuditObject:
    """The object of an entry. `noun`: its phrase, with a place for the name. `key`: after the colon of the subject."""

    kind: str
    key: str
    noun: str
    name: str
    is_deleted: bool = False

    @property
    def phrase(self) -> str:
        """The object in words, for example `queue vision`."""
        return self.noun.format(name=self.name)


class ObjectNames:
    """The names of the objects of some events."""

    def __init__(self, events: Collection[LoggedEvent], tenants: Mapping[int, AuditedTenant]) -> None:
        self._tenants, self._nouns = tenants, dict[str, str]()
        keys: dict[str, set[str]] = defaultdict(set)
        for event in events:
            kind, _colon, key = event.subject.partition(":")
            keys[kind].add(key)
        self._names = {
            "job": jobs.names(keys["job"]),
            "user": _named(accounts.everybody().filter(pk__in=_numbers(keys["user"])), "username"),
            "cluster": _named(clusters.all_clusters(), "name") if keys["cluster"] else {},
        }
        self._deleted, self._earlier = _past(keys)

    def of(self, event: LoggedEvent) -> AuditObject:
        """The object of one of the events."""
        kind, _colon, key = event.subject.partition(":")
        noun = self._nouns.get(kind) or self._nouns.setdefault(kind, str(NOUNS.get(kind, "{name}")))
        if event.kind == "QuotaSet" and (of_members := _QUOTAS.get(event.payload.get("of", ""))):
            username = str(event.payload.get("username", "")).replace("{", "{{").replace("}", "}}")
            noun = str(of_members).replace("{username}", username)
        return AuditObject(kind, key, noun, self._name(event, kind, key), self._is_deleted(event.subject, kind, key))

    def _name(self, event: LoggedEvent, kind: str, key: str) -> str:
        if kind in ("tenant", "invitation"):
            tenant = self._tenants.get(event.tenant_id or 0)
            return str(tenant.name if tenant else event.payload.get("name") or key)
        own = "" if event.kind in _NOT_ITS_NAME else event.payload.get(_NAME_FIELDS.get(kind, "name"))
        if event.kind == "PolicyChanged":
            own = event.payload.get("cluster")
        return str(self._names.get(kind, {}).get(key) or own or self._earlier.get(event.subject) or key[:8])

    def _is_deleted(self, subject: str, kind: str, key: str) -> bool:
        known = self._names.get(kind)
        return subject in self._deleted if known is None else key not in known


def _past(keys: Mapping[str, Collection[str]]) -> tuple[set[str], dict[str, str]]:
    """Which of these objects were deleted, and the names that they got when they were created."""
    subjects = [f"{kind}:{key}" for kind in _FEW_EVENTS for key in keys.get(kind, ())]
    deleted: set[str] = set()
    names: dict[str, str] = {}
    for subject, kind, payload in event_log.of_subjects(subjects, _DELETIONS | _BIRTHS) if subjects else ():
        names[subject] = str(payload.get("name") or payload.get("title") or "")
        if kind in _DELETIONS:
            deleted.add(subject)
        else:
            deleted.discard(subject)  # published again
    return deleted, names


def _named(rows: Any, field: str) -> dict[str, str]:  # noqa: ANN401  (a query of any model)
    return {str(key): name for key, name in rows.order_by().values_list("pk", field)}


def _numbers(keys: Iterable[str]) -> list[int]:
    return [int(key) for key in keys if key.isdecimal()]
