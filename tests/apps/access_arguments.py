"""The arguments of routes about alerts, reports, prices, experiments and OpenPAI's jobs, with their rows."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from tests.apps.conftest import People

from hekla.apps.accounts.models import User
from hekla.apps.alerts import services as alerts
from hekla.apps.alerts.models import AlertAction, AlertRule
from hekla.apps.announcements import services as announcements
from hekla.apps.clusters.models import Cluster
from hekla.apps.policy_lab import services as policy_lab
from hekla.apps.policy_lab.models import LabRun
from hekla.apps.prices import services as prices
from hekla.apps.reports import leaving
from hekla.apps.reports import services as reports
from hekla.domain.alert_rules import AlertRuleSpec
from hekla.domain.prices import PriceSpec
from hekla.domain.reports import ReportSpec
from hekla.pages.access_matrix import declared

_OF_EXPERIMENTS = [f"policy_lab:{name}" for name in ("detail", "state", "cancel", "delete")]
_OF_EXPERIMENTS += ["api:v1:experiment", "api:v1:experiment_cancel"]
_OF_TRACES = ("policy_lab:trace", "policy_lab:delete_trace", "api:v1:lab_trace")
_WITHOUT_RULE = {"alerts:list", "alerts:create", "api:v1:alerts", "api:v1:alert_measures", "api:v1:alert_rules"}
_WITHOUT_RULE |= {"api:v1:alert_rule_preview"}


def announced_change(rule: AlertRule, now: datetime) -> AlertAction:
    """A change that the rule makes in an hour, unless somebody vetoes it."""
    facts: dict[str, Any] = {"episode": uuid4(), "number": 0, "moment": "fire", "kind": "stop_job", "spec": {}}
    facts |= {"subject": "job:1", "name": "a job", "created_at": now, "due_at": now + timedelta(hours=1)}
    return AlertAction.objects.create(rule=rule, **facts)


def rule_arguments(people: People, spec: AlertRuleSpec, now: datetime) -> dict[str, list[Any]]:
    """The arguments of the routes of alerts, for a new rule of the tenant."""
    rule, _secret = alerts.create(spec=spec, tenant=people.lab, user=people.alice, now=now)
    found = {name: [rule.uid] for name in declared() if name.startswith(("alerts:", "api:v1:alert"))}
    change = announced_change(rule, now)
    found |= {name: [change.uid] for name in ("alerts:veto", "api:v1:alert_action_veto")}
    return found | {name: [] for name in _WITHOUT_RULE} | {"alerts:create_for": ["lab"]}


REPORT = {"name": "use", "sections": ["classes"], "every": "week", "recipients": ["alice"]}
_REPORT_FORM = {
    **{"name": "other", "about": "all", "sections": ["classes"], "period": "week", "every": "never"},
    **{"hour": "8", "time_zone": "UTC", "recipients": "alice"},
}
_PRICES = {"name": "2027", "currency": "EUR", "cpu": "0.1"}
ROW_DATA: dict[str, dict[str, Any]] = {
    "prices:create": {**_PRICES, "memory": "0", "gpu": "0", "day": "2100-01-01", "hour": "0"},
    "api:v1:price_lists": {"begin_at": "2100-01-01T00:00:00Z", "spec": _PRICES},
    **{f"reports:{name}": _REPORT_FORM for name in ("create", "edit")},
    "reports:pause": {"pause": "yes"},
    "api:v1:reports": {"name": "other", "sections": ["classes"]},
    "api:v1:report": {"hour": 9},
    "api:v1:job_reminders": {"cause": "stalled"},
    "api:v1:announcements": {"text": "Maintenance"},
    "announcements:create": {"text": "Maintenance", "level": "info"},
}
_WITHOUT_REPORT = {"reports:list", "reports:create", "api:v1:reports", "api:v1:report_sections"}


def report_arguments(people: People, now: datetime) -> dict[str, list[Any]]:
    """The arguments of the routes of reports, for one that was sent to its owner."""
    report = reports.create(spec=ReportSpec.parse(REPORT), user=people.alice, now=now)
    run = reports.send_now(report, user=people.alice, now=now - timedelta(minutes=2))
    found = {name: [report.uid] for name in declared() if name.startswith(("reports:", "api:v1:report"))}
    return (
        found
        | {name: [] for name in _WITHOUT_REPORT}
        | {
            "reports:run": [report.uid, run.uid],
            "reports:leave": [leaving.link(report, people.alice).rstrip("/").rpartition("/")[2]],
        }
    )


def announcement_arguments(people: People, now: datetime) -> dict[str, list[Any]]:
    """The arguments of the routes of an announcement for a tenant."""
    values = {"text": "Maintenance", "begin_at": now - timedelta(hours=1)}
    one = announcements.announce(values=values, tenants=[people.lab], user=people.ada, now=now)
    names = ("announcements:withdraw", "announcements:dismiss", "api:v1:announcement", "api:v1:announcement_dismissal")
    return {name: [one.uid] for name in names}


def row_arguments(people: People, spec: AlertRuleSpec, now: datetime) -> dict[str, list[Any]]:
    """The arguments of the routes of a rule, a report and an announcement of the tenant, and of prices."""
    found = rule_arguments(people, spec, now) | report_arguments(people, now)
    return found | announcement_arguments(people, now) | price_arguments(people, now)


def price_arguments(people: People, now: datetime) -> dict[str, list[Any]]:
    """The arguments of the routes of price lists, for one that has not begun."""
    begin = now + timedelta(days=2)
    made = prices.create(spec=PriceSpec.parse(_PRICES), begin_at=begin, user=people.ada, now=now)
    found = {name: [made.uid] for name in declared() if name.startswith(("prices:", "api:v1:price_list"))}
    return found | {name: [] for name in ("prices:list", "prices:create", "api:v1:price_lists")}


TRACE = "JobID|Submit|Start|End|State\n1|2026-01-01T00:00:00|2026-01-01T01:00:00|2026-01-01T02:00:00|COMPLETED\n"
"""A file with one job, as `sacct` prints it."""
TRACE_FACTS: dict[str, Any] = {
    **{"format": "sacct", "jobs": 1, "pods": 1, "queues": ["gpu"], "notes": {"no_zone": 1}, "first_unreadable": 3},
    **{name: datetime(2026, 1, day, tzinfo=UTC) for name, day in (("starts_at", 1), ("ends_at", 2))},
}


def experiment_arguments(cluster: Cluster, owner: User, now: datetime) -> dict[str, list[Any]]:
    """The arguments of the routes of experiments, and of a trace with this owner."""
    trace = policy_lab.store_trace(name="jobs.txt", content=b"JobID", facts=TRACE_FACTS, user=owner, now=now)
    facts: dict[str, Any] = {"cluster": cluster, "policy": "", "change": {}, "created_at": now}
    facts |= {"starts_at": now - timedelta(days=1), "ends_at": now}
    waiting, over = (LabRun.objects.create(state=state, **facts) for state in ("waiting", "failed"))
    found = {name: [(waiting if name.endswith("cancel") else over).uid] for name in _OF_EXPERIMENTS}
    return found | {name: [trace.uid] for name in _OF_TRACES}


def openpai_arguments(owner: str, name: str) -> dict[str, list[Any]]:
    """The arguments of OpenPAI's routes."""
    job = f"{owner}~{name}"
    about = ("job", "config", "ssh", "execution_type", "job_attempts", "attempts_health", "events", "tag")
    return {
        **{f"openpai:{version}:{route}": [job] for version in ("v1", "v2") for route in about},
        **{f"openpai:v1:{route}_of": [owner, name] for route in about},
        **{f"openpai:{version}:virtual_cluster": ["labs-own"] for version in ("v1", "v2")},
        **{f"openpai:v2:{route}": [job, 0] for route in ("attempt", "job_attempt")},
        **{f"openpai:v2:{route}": [owner] for route in ("user", "user_")},
        **{f"openpai:v2:{route}": [job, 0, "main", 0, 0] for route in ("logs", "log")},
        "openpai:v2:task": [job, 0, "main", 0],
        "openpai:v1:jobs_of": [owner],
    }
