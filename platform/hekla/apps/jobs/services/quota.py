"""Checks submissions against the quotas of the tenant and of the person."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.jobs import spending
from hekla.apps.queues.models import Queue
from hekla.apps.quotas import selectors as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy.models import Tenant
from hekla.domain.card_resources import card_counts
from hekla.domain.errors import Problem, Refused
from hekla.domain.job_kinds import SESSION
from hekla.domain.jobspec import JobSpec
from hekla.domain.resources import format_quantity, parse_quantity


class QuotaExceeded(Refused):
    """The quota of the tenant, or of the person there, is used up."""

    code = "quota_exceeded"


def require(
    specs: Sequence[JobSpec],
    queues: Sequence[Queue],
    *,
    tenant: Tenant,
    user: User,
    now: datetime,
    is_dry: bool = False,
    by: User | None = None,
    bounds: Sequence[Quota] | None = None,
) -> None:
    """Raises QuotaExceeded unless these jobs of this person may be submitted to these queues.

    Call it in the unit of work that submits them. `is_dry`: nothing is submitted, so nothing is locked. `by`: who acts;
    for another person's jobs the message names the owner. `bounds`: the quotas, if already read.
    """
    facts = {"tenant": tenant, "name": str(user) if by not in (None, user) else ""}
    for quota in quotas.binding(tenant, user, is_dry=is_dry) if bounds is None else bounds:
        _require_room(quota, user, specs, facts)
        if quota.gpu_hours is not None and any(map(_asks_cards, specs, queues)):
            _require_hours(quota, user, facts, now)


def _require_room(quota: Quota, user: User, specs: Sequence[JobSpec], facts: dict[str, Any]) -> None:
    sessions = sum(spec.kind == SESSION for spec in specs)
    for most, count, more, refusal in (
        (quota.jobs, spending.unfinished, len(specs), _TOO_MANY_JOBS),
        (quota.sessions, spending.sessions, sessions, _TOO_MANY_SESSIONS),
    ):
        if most is None or not more:
            continue
        used = int(_of(quota, user, count(quota.tenant)))
        if used + more > most:
            raise QuotaExceeded(refusal.text(quota, facts | {"most": most, "used": used, "more": more}))


def _require_hours(quota: Quota, user: User, facts: dict[str, Any], now: datetime) -> None:
    hours = spending.card_hours(quota.tenant, now)
    used = _of(quota, user, {owner: sum(spent.values()) for owner, spent in hours.items()})
    if quota.gpu_hours is not None and used >= quota.gpu_hours:
        since = date_format(spending.month_of(now), "DATE_FORMAT")
        raise QuotaExceeded(_USED_UP.text(quota, facts | {"most": quota.gpu_hours, "used": used, "since": since}))


def never_fitting(
    spec: JobSpec, *, tenant: Tenant, user: User, bounds: Sequence[Quota] | None = None
) -> Iterator[Problem]:
    """Problems of a job that needs more than the tenant, or this person there, may ever use at once.

    `bounds`: the quotas, if already read.
    """
    for quota in quotas.binding(tenant, user, is_dry=True) if bounds is None else bounds:
        for name, text in quota.resources.items():
            yield from _too_much_at_once(spec, quota, name, parse_quantity(name, text))


def _too_much_at_once(spec: JobSpec, quota: Quota, name: str, most: float) -> Iterator[Problem]:
    """Problems with one resource, at its path: a replica's resources; for the gang, the replicas of its only task that
    uses the resource, else the tasks.
    """
    facts = {"name": name, "most": format_quantity(name, most), "tenant": quota.tenant}
    if name == "pods":
        yield from _too_many_pods(spec, quota, most, facts)
        return
    requests = {place: amount for place, task in enumerate(spec.tasks) if (amount := task.request.amount(name))}
    for place, amount in requests.items():
        if amount > most:
            sentence = _one_exceeds(quota, facts | {"need": format_quantity(name, amount)})
            yield Problem(f"tasks.{place}.resources.{name}", sentence)
    least = spec.minimum_resources().amount(name)
    if least > most >= max(requests.values()):
        path = f"tasks.{next(iter(requests))}.replicas" if len(requests) == 1 else "tasks"
        yield Problem(path, _gang_exceeds(quota, facts | {"need": format_quantity(name, least)}))


def _too_many_pods(spec: JobSpec, quota: Quota, most: float, facts: dict[str, Any]) -> Iterator[Problem]:
    if spec.gang_minimum > most:
        path = "tasks.0.replicas" if len(spec.tasks) == 1 else "tasks"
        yield Problem(path, _gang_exceeds(quota, facts | {"need": str(spec.gang_minimum)}))


def _one_exceeds(quota: Quota, facts: dict[str, Any]) -> str:
    if quota.of == Quota.Of.TENANT:
        sentence = _(
            "One replica requests %(need)s of %(name)s. The quota of %(tenant)s is %(most)s. Ask a platform "
            "admin for more."
        )
    else:
        sentence = _(
            "One replica requests %(need)s of %(name)s. The quota of a member in %(tenant)s is %(most)s. Ask "
            "an admin of %(tenant)s for more."
        )
    return sentence % facts


def _gang_exceeds(quota: Quota, facts: dict[str, Any]) -> str:
    if quota.of == Quota.Of.TENANT:
        sentence = _(
            "The job needs at least %(need)s of %(name)s in total. The quota of %(tenant)s is %(most)s. Ask a "
            "platform admin for more."
        )
    else:
        sentence = _(
            "The job needs at least %(need)s of %(name)s in total. The quota of a member in %(tenant)s is "
            "%(most)s. Ask an admin of %(tenant)s for more."
        )
    return sentence % facts


def _asks_cards(spec: JobSpec, queue: Queue) -> bool:
    """Whether the job would hold real cards."""
    return not queue.cluster.is_simulated and any(card_counts(task.request) for task in spec.tasks)


def _of(quota: Quota, user: User, amounts: dict[int, Any]) -> float:
    return float(sum(amounts.values()) if quota.of == Quota.Of.TENANT else amounts.get(user.pk, 0))


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The message by owner of the quota: the tenant, the reader, or another person for whom the reader acts."""

    of_tenant: Promise
    of_oneself: Promise
    of_another: Promise

    def text(self, quota: Quota, facts: dict[str, Any]) -> str:
        of_person = self.of_another if facts["name"] else self.of_oneself
        return str(self.of_tenant if quota.of == Quota.Of.TENANT else of_person) % facts


_TOO_MANY_JOBS = _Refusal(
    gettext_lazy(
        "%(tenant)s has %(used)d of %(most)d unfinished jobs. %(more)d more would exceed the quota. Wait until "
        "jobs finish, or ask a platform admin."
    ),
    gettext_lazy(
        "You have %(used)d of %(most)d unfinished jobs in %(tenant)s. %(more)d more would exceed the quota. "
        "Wait until jobs finish, or ask an admin of %(tenant)s."
    ),
    gettext_lazy(
        "%(name)s has %(used)d of %(most)d unfinished jobs in %(tenant)s. %(more)d more would exceed the "
        "quota. Wait until jobs finish, or ask an admin of %(tenant)s."
    ),
)
_TOO_MANY_SESSIONS = _Refusal(
    gettext_lazy(
        "%(tenant)s has %(used)d of %(most)d debugging sessions. %(more)d more would exceed the quota. Stop "
        "one, or ask a platform admin."
    ),
    gettext_lazy(
        "You have %(used)d of %(most)d debugging sessions in %(tenant)s. %(more)d more would exceed the quota. "
        "Stop one, or ask an admin of %(tenant)s."
    ),
    gettext_lazy(
        "%(name)s has %(used)d of %(most)d debugging sessions in %(tenant)s. %(more)d more would exceed the "
        "quota. Stop one, or ask an admin of %(tenant)s."
    ),
)
_USED_UP = _Refusal(
    gettext_lazy(
        "%(tenant)s has used %(used).1f of %(most)d GPU-hours this month, since %(since)s (UTC). Ask a "
        "platform admin for more."
    ),
    gettext_lazy(
        "You have used %(used).1f of %(most)d GPU-hours in %(tenant)s this month, since %(since)s (UTC). Ask "
        "an admin of %(tenant)s for more."
    ),
    gettext_lazy(
        "%(name)s has used %(used).1f of %(most)d GPU-hours in %(tenant)s this month, since %(since)s (UTC). "
        "Ask an admin of %(tenant)s for more."
    ),
)
