"""Quotas and their use, as far as the reader may see them: the tenant's, and those of its members."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from hekla.apps.accounts.models import User
from hekla.apps.job_history import labels
from hekla.apps.jobs import selectors, spending
from hekla.apps.jobs.selectors import TaskAllocation
from hekla.apps.quotas import selectors as quotas
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy import selectors as tenancy
from hekla.apps.tenancy.models import Tenant
from hekla.domain.resources import Resources


@dataclass(frozen=True, slots=True)
class Part:
    """The use of a limit in the cluster of this name (empty: in none), and both in words."""

    cluster: str
    used: float
    most: float
    words: str


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """Limits and use of a member or a tenant. `user` None: the tenant; `quota` None: no limit at all."""

    tenant: Tenant
    user: User | None
    quota: Quota | None
    jobs: int
    sessions: int
    card_hours: Mapping[str, float]
    """The hours of this month on cards, by their resource."""
    held: Mapping[str, Resources]
    """The resources that their pods hold, by cluster name; empty if no quota of the tenant limits resources."""

    @property
    def gpu_hours(self) -> float:
        """The hours on all cards together, as the limit counts them."""
        return sum(self.card_hours.values())

    @property
    def hours_by_card(self) -> str:
        """The hours by resource, in words; empty if one resource has all of them."""
        return labels.hours_by_card(self.card_hours)

    @property
    def at_once(self) -> list["Part"]:
        """For each limited resource, its use in the cluster where it is highest."""
        most = Resources.parse(self.quota.resources) if self.quota else Resources()
        return [self._part(name, most) for name in (self.quota.resources if self.quota else ())]

    def _part(self, name: str, most: Resources) -> "Part":
        cluster, held = max(self.held.items(), key=lambda item: item[1].amount(name), default=("", Resources()))
        is_used = held.amount(name) > 0
        return Part(cluster if is_used else "", held.amount(name), most.amount(name), labels.part(held, most, name))

    @property
    def name(self) -> str:
        return str(self.user or self.tenant)


def visible_rows(user: User, tenant: Tenant, now: datetime) -> list[QuotaRow]:
    """The tenant's row, and those of all members if the person may set quotas, else only their own."""
    members = [member.user for member in tenancy.members(tenant)]
    sets = any(quotas.may_set(user, tenant, of) for of in Quota.Of)
    return list(_rows(tenant, members if sets else [one for one in members if one == user], now))


def _rows(tenant: Tenant, members: Sequence[User], now: datetime) -> Iterator[QuotaRow]:
    every, jobs, sessions = quotas.of_tenant(tenant), spending.unfinished(tenant), spending.sessions(tenant)
    hours = spending.card_hours(tenant, now)
    own = {quota.user_id: quota for quota in every}
    general = {quota.of: quota for quota in every if quota.user_id is None}
    held = selectors.held_by(tenant) if any(quota.resources for quota in every) else []
    whole = general.get(Quota.Of.TENANT)
    counts = (sum(jobs.values()), sum(sessions.values()))
    yield QuotaRow(tenant, None, whole, *counts, _sum(hours.values()), _together(held))
    for user in members:
        quota = own.get(user.pk) or general.get(Quota.Of.EACH)
        theirs = (one for one in held if one.job.owner_id == user.pk)
        counts = (jobs.get(user.pk, 0), sessions.get(user.pk, 0))
        yield QuotaRow(tenant, user, quota, *counts, hours.get(user.pk, {}), _together(theirs))


def _sum(amounts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found: defaultdict[str, float] = defaultdict(float)
    for one in amounts:
        for resource, hours in one.items():
            found[resource] += hours
    return dict(found)


def _together(held: Iterable[TaskAllocation]) -> dict[str, Resources]:
    found: defaultdict[str, Resources] = defaultdict(Resources)
    for one in held:
        found[one.job.cluster.name] += (one.request + {"pods": 1}) * len(one.nodes)
    return dict(found)
