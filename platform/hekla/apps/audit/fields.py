"""The names of the fields that events report as changed, as nouns inside a sentence."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

_FIELDS: Mapping[str, Any] = {
    "actions": gettext_lazy("actions"),
    "actions_per_hour": gettext_lazy("actions per hour"),
    "annotations": gettext_lazy("annotations"),
    "avoided_node_groups": gettext_lazy("avoided node groups"),
    "capability": gettext_lazy("limit"),
    "card_quota": gettext_lazy("card limits by model"),
    "clear": gettext_lazy("threshold to clear"),
    "cluster": gettext_lazy("cluster"),
    "comparison": gettext_lazy("comparison"),
    "concurrency": gettext_lazy("concurrency rule"),
    "config": gettext_lazy("configuration"),
    "cpu_percent": gettext_lazy("CPU limit of the idle rule"),
    "cron": gettext_lazy("times"),
    "department": gettext_lazy("department"),
    "description": gettext_lazy("description"),
    "deserved": gettext_lazy("deserved share"),
    "display_name": gettext_lazy("full name"),
    "enabled": gettext_lazy("activation"),
    "ends_sessions": gettext_lazy("end of idle sessions"),
    "every": gettext_lazy("schedule"),
    "excluded_node_groups": gettext_lazy("excluded node groups"),
    "files_gib": gettext_lazy("limit of files in GiB"),
    "for_seconds": gettext_lazy("duration in seconds"),
    "gpu_job_minutes": gettext_lazy("idle time of GPU jobs in minutes"),
    "gpu_percent": gettext_lazy("GPU limit of the idle rule"),
    "grace_minutes": gettext_lazy("grace time in minutes"),
    "guarantee": gettext_lazy("guaranteed amount"),
    "heads": gettext_lazy("department heads"),
    "hierarchy": gettext_lazy("hierarchy path"),
    "hierarchy_weights": gettext_lazy("hierarchy weights"),
    "history_days": gettext_lazy("history retention in days"),
    "hour": gettext_lazy("hour"),
    "idle_minutes": gettext_lazy("idle time in minutes"),
    "is_active": gettext_lazy("sign-in permission"),
    "is_default": gettext_lazy("default setting"),
    "is_offered": gettext_lazy("availability to new jobs"),
    "is_paused": gettext_lazy("pause"),
    "job": gettext_lazy("job description"),
    "job_order": gettext_lazy("job order"),
    "log_days": gettext_lazy("log retention in days"),
    "measure": gettext_lazy("measure"),
    "name": gettext_lazy("name"),
    "network_kib": gettext_lazy("network limit of the idle rule"),
    "never_preempts": gettext_lazy("ban on preemption"),
    "node_group_limits": gettext_lazy("limits in node groups"),
    "node_label": gettext_lazy("node label"),
    "parent": gettext_lazy("parent queue"),
    "paused": gettext_lazy("pause"),
    "period": gettext_lazy("period"),
    "platform_role": gettext_lazy("platform role"),
    "preferred_node_groups": gettext_lazy("preferred node groups"),
    "priority": gettext_lazy("priority"),
    "queue": gettext_lazy("queue"),
    "queues": gettext_lazy("queues"),
    "recipients": gettext_lazy("recipients"),
    "reclaimable": gettext_lazy("permission to reclaim"),
    "recovery_seconds": gettext_lazy("recovery in seconds"),
    "required_node_groups": gettext_lazy("required node groups"),
    "requirements": gettext_lazy("packages"),
    "scope": gettext_lazy("scope"),
    "sections": gettext_lazy("contents"),
    "severity": gettext_lazy("severity"),
    "spec": gettext_lazy("job description"),
    "starting_deadline_seconds": gettext_lazy("start deadline in seconds"),
    "subject": gettext_lazy("subject"),
    "suspend": gettext_lazy("suspension"),
    "tenants": gettext_lazy("tenants"),
    "threshold": gettext_lazy("threshold"),
    "time_zone": gettext_lazy("time zone"),
    "username": gettext_lazy("user name"),
    "value": gettext_lazy("value"),
    "weight": gettext_lazy("weight"),
    "window_minutes": gettext_lazy("window in minutes"),
}
_OF_KIND: Mapping[tuple[str, str], Any] = {
    ("QuotaSet", "gpu_hours"): gettext_lazy("limit of GPU-hours per month"),
    ("QuotaSet", "jobs"): gettext_lazy("limit of unfinished jobs"),
    ("QuotaSet", "resources"): gettext_lazy("limit"),
    ("QuotaSet", "sessions"): gettext_lazy("limit of debugging sessions"),
    ("TenantChanged", "is_active"): gettext_lazy("activity"),
}
_RESOURCES: Mapping[str, Any] = {
    "cpu": gettext_lazy("CPUs"),
    "memory": gettext_lazy("memory"),
    "nvidia.com/gpu": gettext_lazy("GPUs"),
    "pods": gettext_lazy("pods"),
}


def has_label(kind: str, field: str) -> bool:
    """Whether the field has a label of its own."""
    return (kind, field) in _OF_KIND or field in _FIELDS


def label(kind: str, path: str) -> str:
    """A field of this kind of event as a noun. `path`: with the part that changed, if it is one, after a dot."""
    field, _dot, part = path.partition(".")
    noun = _OF_KIND.get((kind, field)) or _FIELDS.get(field)
    words = str(noun) if noun else field.replace("_", " ")
    if not part:
        return words
    if field == "config":
        return _("{part} setting").format(part=part)
    return _("{field} of {part}").format(field=words, part=_RESOURCES.get(part, part))
