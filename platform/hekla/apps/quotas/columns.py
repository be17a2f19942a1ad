"""Quotas of single members as columns of a table of people, with the names of the form and the API."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from hekla.apps.accounts.models import User
from hekla.apps.event_log.services import Actor
from hekla.apps.invitations import extras
from hekla.apps.quotas import selectors, services
from hekla.apps.quotas.forms import BoundsForm
from hekla.apps.quotas.models import Quota
from hekla.apps.tenancy.models import Tenant
from hekla.domain.errors import Invalid, Problem


class QuotaColumns:
    """The limits of one member. An empty cell leaves the limit unchanged."""

    heads: Mapping[str, Any] = {
        "jobs": gettext_lazy("Unfinished jobs"),
        "sessions": gettext_lazy("Debugging sessions"),
        "gpu_hours": gettext_lazy("GPU-hours per month"),
        "resources": gettext_lazy("Resources in use"),
    }
    spellings: Mapping[str, set[str]] = {
        "jobs": {"jobs", "unfinishedjobs", "未结束的作业", "作业数"},
        "sessions": {"sessions", "debuggingsessions", "调试会话", "会话数"},
        "gpu_hours": {"gpuhours", "gpuhoursamonth", "每月gpu小时"},
        "resources": {"resources", "atonce", "资源", "同时"},
    }

    def read(self, cells: Mapping[str, str]) -> extras.Values:
        """The limits in these cells. Raises Invalid."""
        form = BoundsForm({name: cells.get(name, "") for name in self.heads})
        if problems := [Problem(name, str(one)) for name, wrong in form.errors.items() for one in wrong]:
            raise Invalid(problems)
        bounds = {name: value for name, value in form.cleaned_data.items() if value not in (None, "", {})}
        return services.checked(bounds)

    def may(self, user: User, tenant: Tenant) -> bool:
        """Whether the person may set the quotas of members of the tenant."""
        return selectors.may_set(user, tenant, Quota.Of.ONE)

    def differing(self, values: extras.Values, tenant: Tenant, user: User) -> extras.Values:
        """The limits that differ from the member's current ones."""
        quota = Quota.objects.filter(tenant=tenant, of=Quota.Of.ONE, user=user).first() or Quota()
        return {name: value for name, value in values.items() if getattr(quota, name) != value}

    def give(self, values: extras.Values, tenant: Tenant, user: User, *, actor: Actor, now: datetime) -> None:
        """Set these limits; other limits of the member stay."""
        services.bound(tenant=tenant, of=Quota.Of.ONE, user=user, bounds=values, actor=actor, now=now)

    def words(self, values: extras.Values) -> str:
        """The limits in one sentence."""
        bounds = [f"{self.heads[name]} {_text(values[name])}" for name in self.heads if name in values]
        return _("Quota: %(bounds)s.") % {"bounds": _(", ").join(bounds)} if bounds else ""


def _text(value: Any) -> str:  # noqa: ANN401  (a JSON value)
    return " ".join(f"{name}={amount}" for name, amount in value.items()) if isinstance(value, dict) else str(value)


extras.KNOWN.append(QuotaColumns())
